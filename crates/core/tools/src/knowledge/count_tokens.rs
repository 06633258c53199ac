//! `count_tokens`: counts the tokens of a file or a text.

use crate::files::disk;
use crate::files::documents::{self, DocumentFile};
use crate::files::encoding::{decode_text, describe_binary};
use crate::knowledge::get_session_value;
use crate::knowledge::model_tokens::ModelTokens;
use crate::on_files::run_blocking;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "count_tokens";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountTokensParameters {
    /// The file to count; of documents and notebooks the text. Give either `path` or `text`.
    path: Option<String>,
    /// The text to count.
    text: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("count_tokens/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .with_function(|context, parameters| {
        let tokens = get_session_value::<ModelTokens>(context);
        Box::pin(run_blocking(context, move |scope| {
            count_tokens(scope, tokens?.as_ref(), parameters)
        }))
    })
}

fn count_tokens(
    scope: &FileScope,
    tokens: &ModelTokens,
    parameters: CountTokensParameters,
) -> CallResult {
    let (name, text) = match parameters {
        CountTokensParameters {
            path: Some(path),
            text: None,
        } => {
            let (name, text) = load_text(scope, &path)?;
            (Some(name), text)
        }
        CountTokensParameters {
            path: None,
            text: Some(text),
        } => (None, text),
        CountTokensParameters {
            path: Some(_),
            text: Some(_),
        }
        | CountTokensParameters {
            path: None,
            text: None,
        } => {
            return Err(ToolFailure::new(
                "invalid_arguments",
                "give either `path` or `text`, and not both",
            ));
        }
    };
    let count = tokens.count(&text);
    let window = tokens.window();
    let lines = text.lines().count();
    let bytes = text.len();
    let share = count as f64 / window.max(1) as f64 * 100.0;
    let what = name
        .as_ref()
        .map_or_else(|| "The text".to_owned(), |name| format!("`{name}`"));
    let shown = format!(
        "{what} has about {count} tokens ({lines} lines, {bytes} bytes), {share:.1} % of the context window of {window}."
    );
    let mut data = json!({ "tokens": count, "lines": lines, "bytes": bytes, "window": window });
    if let Some(name) = name {
        data["path"] = name.into();
    }
    Ok(Envelope::success(shown).with_data(data).into())
}

/// Loads the text of a file in the form in which `read_file` would show it. Returns the name to
/// show and the text.
fn load_text(scope: &FileScope, given: &str) -> Result<(String, String), ToolFailure> {
    let path = paths::resolve_path(&scope.workspace, given)?;
    let name = paths::display_path(&scope.workspace, &path);
    let loaded = disk::load_file(&path, &name)?;
    if let Some(format) = documents::detect_format(scope, &path, &loaded.bytes) {
        let document = DocumentFile {
            path: &path,
            name: &name,
            bytes: &loaded.bytes,
            format,
        };
        return Ok((
            name.clone(),
            documents::extract_text(scope, &document)?.text,
        ));
    }
    if let Some(decoded) = decode_text(&loaded.bytes) {
        return Ok((name, decoded.text));
    }
    let kind = describe_binary(&loaded.bytes);
    let message = format!("`{name}` is {kind}, not text; its tokens cannot be counted");
    Err(ToolFailure::new("binary_file", message))
}

#[cfg(test)]
mod tests;
