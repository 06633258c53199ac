//! Defines the tool `use_rag_tool`, which queries a collection.
//!
//! Registered only if there are collections. Querying folders counts as reading; querying a server
//! contacts its host, which needs a permission.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_text::{cut_lines, sanitize};
use haft_tool::{
    Access, Group, Intent, Manual, Tool, ToolContext, ToolDefinition, ToolHealth, ToolOutput,
    Workspace,
};
use haft_types::{Cost, Envelope, Usage, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::collection::{AskError, Collection, CollectionAnswer, CollectionKind};
use crate::local::Passage;
use crate::{PassageResults, RagError};

const NAME: &str = "use_rag_tool";
/// The maximum number of passages in an answer.
const MAX_PASSAGES: usize = 10;

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseRagToolParameters {
    /// The collection, by its name in `RAG_COLLECTIONS`.
    server_name: String,
    /// What you want to know, in the words the documents would use, such as names of functions,
    /// options or error messages: it is a search for words, not for meaning.
    query: String,
}

/// Creates the tool that queries `collections`.
pub fn create_rag_tool(collections: Vec<Collection>) -> impl Tool {
    let list = list_collections(&collections);
    let collections: Arc<[Collection]> = collections.into();
    let known = Arc::clone(&collections);
    ToolDefinition::new(
        NAME,
        prompt!("tool/prompt"),
        &MANUAL,
        Access::Read,
        move |arguments| determine_intent(&known, arguments),
    )
    .with_function(move |context, parameters| {
        let collections = Arc::clone(&collections);
        Box::pin(async move { run_query(&collections, context, parameters).await })
    })
    .with_reachable("RAG_COLLECTIONS", list)
}

fn find_collection<'a>(collections: &'a [Collection], name: &str) -> Option<&'a Collection> {
    collections
        .iter()
        .find(|collection| collection.name == name.trim())
}

fn determine_intent(collections: &[Collection], arguments: &Value) -> Intent {
    let named = arguments
        .get("server_name")
        .and_then(Value::as_str)
        .and_then(|name| find_collection(collections, name));
    match named.map(|collection| &collection.kind) {
        Some(CollectionKind::Remote(remote)) => Intent::Hosts(
            remote
                .url()
                .host_str()
                .map(str::to_owned)
                .into_iter()
                .collect(),
        ),
        Some(CollectionKind::Local(_)) | None => Intent::Nothing,
    }
}

async fn run_query(
    collections: &[Collection],
    context: &ToolContext,
    UseRagToolParameters { server_name, query }: UseRagToolParameters,
) -> Result<ToolOutput, ToolOutput> {
    let Some(collection) = find_collection(collections, &server_name) else {
        let names: Vec<_> = collections
            .iter()
            .map(|one| format!("`{}`", one.name))
            .collect();
        let message = format!(
            "there is no collection `{}`; there are {}",
            server_name.trim(),
            names.join(", ")
        );
        return Err(Envelope::failure("unknown_collection", message).into());
    };
    if query.trim().is_empty() {
        return Err(Envelope::failure(
            "invalid_arguments",
            "`query` is empty; say what to look for",
        )
        .into());
    }
    tokio::select! {
        asked = collection.ask_question(&query, MAX_PASSAGES) => match asked {
            Ok(answer) => {
                let requests = list_embedding_requests(&answer);
                Ok(ToolOutput { requests, ..format_answer(context, collection, &query, answer).into() })
            }
            Err(error) => Err(to_failed_output(&error)),
        },
        () = context.cancel.cancelled() => Err(Envelope::failure("cancelled", "The search was cancelled.").into()),
    }
}

/// Returns the model, the usage, and the cost of each embedding request that an answer needed.
fn list_embedding_requests(answer: &CollectionAnswer) -> Vec<(String, Usage, Option<Cost>)> {
    match answer {
        CollectionAnswer::Passages(found) => found
            .embedding
            .iter()
            .map(|one| (one.model.clone(), one.usage, Some(one.cost)))
            .collect(),
        CollectionAnswer::Text { .. } => Vec::new(),
    }
}

/// Formats the list of collections for the model, one per line.
fn list_collections(collections: &[Collection]) -> String {
    let line = |collection: &Collection| {
        let about = match collection.description.trim() {
            "" => "no description".to_owned(),
            about => sanitize(&about.replace('\n', " ")).into_owned(),
        };
        format!("- `{}`: {about}", collection.name)
    };
    collections.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn to_failed_output(error: &AskError) -> ToolOutput {
    let code = match error {
        AskError::Local(RagError::NoFolder(_)) => "not_found",
        AskError::Local(RagError::Busy(_)) => "busy",
        AskError::Local(RagError::Io { .. } | RagError::Database { .. }) | AskError::Broken(_) => {
            "index_failed"
        }
        AskError::Remote(_) => "server_failed",
    };
    let envelope = Envelope::failure(code, sanitize(&error.to_string()));
    ToolOutput {
        health: ToolHealth::Broken,
        ..envelope.into()
    }
}

/// Formats an answer for the model. The text of documents is sanitized, and enclosed in a code
/// fence that it cannot close.
fn format_answer(
    context: &ToolContext,
    collection: &Collection,
    query: &str,
    answer: CollectionAnswer,
) -> Envelope {
    let (text, sources, partial_data) = match answer {
        CollectionAnswer::Passages(found) => {
            let sources = list_sources(&found.passages, &context.workspace);
            (
                format_passages(&collection.name, &found, &context.workspace),
                sources,
                json!({ "notes": found.notes }),
            )
        }
        CollectionAnswer::Text { text, sources } => {
            let mut told = sanitize(&text).trim_end().to_owned();
            if !sources.is_empty() {
                let lines: Vec<_> = sources
                    .iter()
                    .map(|source| format!("- {}", sanitize(source)))
                    .collect();
                // Writing to a String cannot fail.
                let _ = write!(told, "\n\nSources:\n{}", lines.join("\n"));
            }
            (told, json!(sources), json!({}))
        }
    };
    let cut = cut_lines(&text, context.limits.into());
    let mut data = json!({ "collection": collection.name, "query": query, "sources": sources });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, partial_data) {
        data.extend(
            more.into_iter()
                .filter(|(_, value)| value.as_array().is_none_or(|notes| !notes.is_empty())),
        );
        if cut.is_cut() {
            data.insert("truncated".to_owned(), json!(true));
        }
    }
    Envelope::success(cut.text).with_data(data)
}

fn list_sources(passages: &[Passage], workspace: &Workspace) -> Value {
    let one = |passage: &Passage| json!({"path": workspace.display_path(&passage.path), "start_line": passage.start_line, "end_line": passage.end_line});
    Value::Array(passages.iter().map(one).collect())
}

fn format_passages(name: &str, found: &PassageResults, workspace: &Workspace) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for note in &found.notes {
        let _ = writeln!(text, "Note: {}", sanitize(note));
    }
    match found.passages.len() {
        0 => {
            let _ = write!(
                text,
                "Nothing in `{name}` has any of these words. Try the words the documents would use."
            );
        }
        1 => {
            let _ = writeln!(text, "One passage of `{name}`:");
        }
        many => {
            let _ = writeln!(text, "{many} passages of `{name}`, the best first:");
        }
    }
    for passage in &found.passages {
        let path = workspace.display_path(&passage.path);
        let fence = choose_fence(&passage.text);
        let _ = write!(
            text,
            "\n{}:{}-{}\n{fence}\n{}\n{fence}\n",
            sanitize(&path),
            passage.start_line,
            passage.end_line,
            sanitize(&passage.text)
        );
    }
    text
}

/// Returns a code fence that does not occur in `text`.
pub(crate) fn choose_fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_is_longer_than_any_in_the_text() {
        assert_eq!(choose_fence("plain"), "```");
        assert_eq!(choose_fence("a\n```rust\n````\n"), "`````");
    }

    #[test]
    fn listed_puts_each_collection_on_a_line() {
        let local = |description: &str| Collection {
            name: "docs".into(),
            description: description.into(),
            model: None,
            kind: CollectionKind::Local(Arc::new(crate::Local::new(
                Vec::new(),
                "/nonexistent".into(),
            ))),
        };
        assert_eq!(
            list_collections(&[local("One\ntwo.\u{1b}[2J"), local("")]),
            "- `docs`: One two.\n- `docs`: no description"
        );
    }
}
