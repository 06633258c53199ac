//! `haft conversations import`: imports exports of haft and files of other agents.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use haft_agent::HostEnvironment;
use haft_imports::{
    ImportedConversation, SessionRoots, SourceText, is_database, list_session_files,
    read_conversations, read_stored_text,
};
use haft_store::{Imported, Store};
use haft_types::{ConversationId, Timestamp};
use serde_json::{Value, json};

use super::export::{CURRENT_FILE, NAMESPACES_FILE};
use super::{open_store, resolve_namespace};
use crate::commands::conversations::ImportArgs;
use crate::exit::{ProcessExit, format_failure, usage_error};
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// The size limit of an imported file. Files are read into memory as a whole.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The result of importing one conversation.
struct ImportRow {
    id: ConversationId,
    name: String,
    messages: u64,
    outcome: ImportOutcome,
    skipped: usize,
}

enum ImportOutcome {
    New,
    Same,
    Grown(u64),
}

impl ImportOutcome {
    fn as_text(&self) -> String {
        match self {
            Self::New => "new".to_owned(),
            Self::Same => text!("conversations-import-existing").to_owned(),
            Self::Grown(added) => text!("conversations-import-added", added),
        }
    }
}

/// The results of an import. A bad file does not stop the import of the other files.
#[derive(Default)]
struct ImportReport {
    lines: Vec<ImportRow>,
    failed: Vec<String>,
}

pub(super) async fn run(haft: &Haft, args: &ImportArgs) -> anyhow::Result<ProcessExit> {
    let store = open_store(haft, &args.output.common)?;
    let namespace = resolve_namespace(haft, &args.place)?;
    let mut report = ImportReport::default();
    for path in &args.paths {
        let namespaces = ImportNamespaces {
            default: &namespace,
            known: read_namespaces(path, args)?,
        };
        for file in list_import_files(haft.environment(), path)? {
            import_file(store.as_ref(), args, &file, &namespaces, &mut report).await;
        }
        let current = path.join(CURRENT_FILE);
        if current.is_file()
            && let Err(error) = import_current_conversations(store.as_ref(), &current).await
        {
            report
                .failed
                .push(format!("{}: {}", current.display(), format_failure(&error)));
        }
    }
    for problem in &report.failed {
        output::print_to_stderr(&format!("haft: {}", output::localize_text(problem)));
    }
    print_report(&report, args.output.json)?;
    Ok(if report.failed.is_empty() {
        ProcessExit::Completed
    } else {
        ProcessExit::Failed
    })
}

/// Returns the folders below which other agents keep their sessions.
pub(crate) fn find_session_roots(environment: &HostEnvironment) -> SessionRoots {
    SessionRoots {
        home: environment.absolute_home(),
        project: std::env::current_dir().ok(),
    }
}

/// Lists the files to import from a path: the path itself, the JSON files of a folder, or the
/// session files of an agent if the path is the agent's name.
fn list_import_files(environment: &HostEnvironment, path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.exists()
        && let Some(files) = list_session_files(&find_session_roots(environment), path)
    {
        let none = || {
            usage_error(text!(
                "conversations-import-no-files",
                path = path.display()
            ))
        };
        return Some(files)
            .filter(|files| !files.is_empty())
            .ok_or_else(none);
    }
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for folder in [path.to_owned(), path.join("conversations")] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let file = entry?.path();
            let is_json = file
                .extension()
                .is_some_and(|extension| extension == "json" || extension == "jsonl");
            let special = file
                .file_name()
                .is_some_and(|name| name == CURRENT_FILE || name == NAMESPACES_FILE);
            if is_json && file.is_file() && !special {
                files.push(file);
            }
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(usage_error(text!(
            "conversations-import-no-files",
            path = path.display()
        )));
    }
    Ok(files)
}

/// The namespaces into which conversations are imported.
struct ImportNamespaces<'a> {
    default: &'a str,
    known: BTreeMap<ConversationId, String>,
}

impl ImportNamespaces<'_> {
    fn get(&self, id: &ConversationId) -> &str {
        self.known.get(id).map_or(self.default, String::as_str)
    }
}

/// Reads the namespaces of the conversations in a folder. The result is empty if the folder has no
/// file of namespaces or the command line names the namespace.
fn read_namespaces(
    path: &Path,
    args: &ImportArgs,
) -> anyhow::Result<BTreeMap<ConversationId, String>> {
    let file = path.join(NAMESPACES_FILE);
    if args.place.namespace.is_some() || !file.is_file() {
        return Ok(BTreeMap::new());
    }
    let wrong = |problem: String| usage_error(format!("{}: {problem}", file.display()));
    let text = std::fs::File::open(&file)
        .map_err(anyhow::Error::from)
        .and_then(read_bounded)
        .map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
}

async fn import_file(
    store: &dyn Store,
    args: &ImportArgs,
    file: &Path,
    namespaces: &ImportNamespaces<'_>,
    report: &mut ImportReport,
) {
    let read = read_file(file, args);
    let conversations = match read {
        Ok(conversations) => conversations,
        Err(error) => {
            return report
                .failed
                .push(format!("{}: {}", file.display(), format_failure(&error)));
        }
    };
    for ImportedConversation { document, skipped } in conversations {
        let id = document.id.clone();
        let (conversation, done) = match store.import(document, namespaces.get(&id)).await {
            Ok(Imported::New(conversation)) => (conversation, ImportOutcome::New),
            Ok(Imported::Same(conversation)) => (conversation, ImportOutcome::Same),
            Ok(Imported::Grown {
                conversation,
                added,
            }) => (conversation, ImportOutcome::Grown(added)),
            Err(error) => {
                report
                    .failed
                    .push(format!("{}: conversation `{id}`: {error}", file.display()));
                continue;
            }
        };
        let name = conversation.name;
        let messages = conversation.messages;
        report.lines.push(ImportRow {
            id,
            name,
            messages,
            outcome: done,
            skipped,
        });
    }
}

fn read_file(file: &Path, args: &ImportArgs) -> anyhow::Result<Vec<ImportedConversation>> {
    let mut now = Timestamp::now();
    let bytes;
    if file == Path::new("-") {
        bytes = read_bounded(std::io::stdin().lock())?;
    } else {
        let opened = std::fs::File::open(file)?;
        // The size is checked before the file is read into memory.
        if opened.metadata()?.len() > MAX_FILE_BYTES && !is_database(file) {
            return Err(too_large_error());
        }
        bytes = match read_stored_text(file, None)? {
            Some(text) => text.into_bytes(),
            None => read_bounded(opened)?,
        };
        // Conversations without times get the modification time of the file.
        let modified = std::fs::metadata(file)
            .and_then(|metadata| metadata.modified())
            .ok();
        now = modified
            .and_then(|time| Timestamp::try_from(time).ok())
            .unwrap_or(now);
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| usage_error(text!("conversations-import-not-text")))?;
    Ok(read_conversations(
        SourceText { text: &text, now },
        args.format,
    )?)
}

/// Reads `from` to its end, regardless of the size that the file reports. Returns an error above
/// [`MAX_FILE_BYTES`].
fn read_bounded(from: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        Err(too_large_error())
    } else {
        Ok(bytes)
    }
}

fn too_large_error() -> anyhow::Error {
    usage_error(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20))
}

/// Sets the current conversations that the file names. Prints a message for each conversation that
/// does not exist.
async fn import_current_conversations(store: &dyn Store, path: &Path) -> anyhow::Result<()> {
    let current: BTreeMap<String, Value> =
        serde_json::from_slice(&read_bounded(std::fs::File::open(path)?)?)?;
    for (namespace, id) in current {
        let id = id
            .as_str()
            .ok_or_else(|| usage_error(text!("conversations-import-bad-id", namespace, id)))?;
        let id = ConversationId::new(id);
        if store.get(&id).await?.is_some() {
            store.set_current_conversation(&namespace, &id).await?;
        } else {
            output::print_to_stderr(&format!(
                "haft: {}",
                text!("conversations-import-no-current", id, namespace)
            ));
        }
    }
    Ok(())
}

fn print_report(report: &ImportReport, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let line = |line: &ImportRow| {
            let (state, added) = match line.outcome {
                ImportOutcome::New => ("new", line.messages),
                ImportOutcome::Same => ("same", 0),
                ImportOutcome::Grown(added) => ("grown", added),
            };
            json!({
                "id": line.id, "name": line.name, "messages": line.messages, "state": state, "added": added,
                "skipped": line.skipped,
            })
        };
        return output::print_json(&report.lines.iter().map(line).collect());
    }
    if report.lines.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        text!("table-id"),
        text!("table-name"),
        text!("table-messages"),
        text!("table-state"),
        text!("table-skipped"),
    ]);
    for line in &report.lines {
        let skipped = if line.skipped == 0 {
            "-".to_owned()
        } else {
            line.skipped.to_string()
        };
        let id = line.id.short_prefix().to_owned();
        table.add_row(vec![
            id,
            line.name.clone(),
            line.messages.to_string(),
            line.outcome.as_text(),
            skipped,
        ]);
    }
    output::print_text(&table.to_string())
}
