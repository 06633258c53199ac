//! Produces conversations of haft itself: its real tools on real source trees, and a scripted model
//! that follows a plan.
//!
//! Each conversation is a few dozen runs of the binary against the scripted model server, then
//! exported. Times and ids are replaced, so that equal sources give equal conversations: seven
//! seconds per step, 90 seconds before an input, twelve minutes before every third one. The exports
//! are stored in the folder named by `HAFT_OWN_SESSIONS` and reused by the next run.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, ensure};
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::{ContentHash, MessageId, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use super::plan::{PlannedRound, SourceFile, plan_conversation};
use crate::figures;
use crate::subject::{self, Workspace};

/// The crates of this repository whose sources the conversations are about.
const REPOSITORY_CRATES: [&str; 10] = [
    "core/context",
    "core/engine",
    "core/model",
    "core/permission",
    "core/project",
    "core/store",
    "core/tools",
    "extensions/imports",
    "extensions/mcp",
    "frontends/tui",
];
/// The crates of the registry whose sources the conversations are about.
const REGISTRY_CRATES: [&str; 12] = [
    "clap_builder",
    "h2",
    "hyper",
    "minijinja",
    "regex-automata",
    "reqwest",
    "rustls",
    "serde_json",
    "syn",
    "tokio",
    "toml_edit",
    "url",
];
/// Minimum number of source trees.
const MIN_TREES: usize = 20;
/// The maximum number of copied files per tree.
const MAX_FILES: usize = 120;
/// The maximum size of a copied file in bytes.
const MAX_FILE_BYTES: u64 = 200_000;

/// The folder in which exports are kept.
pub(super) struct ExportFolder {
    folder: PathBuf,
    /// The temporary folder, if the user named none. Dropping it removes the folder.
    _temporary: Option<TempDir>,
}

impl ExportFolder {
    /// Uses the folder `named`, or a temporary one.
    pub(super) fn new(named: Option<PathBuf>) -> anyhow::Result<Self> {
        let temporary = if named.is_none() {
            Some(tempfile::tempdir()?)
        } else {
            None
        };
        let folder = named
            .or_else(|| Some(temporary.as_ref()?.path().to_owned()))
            .context("there is no folder")?;
        fs::create_dir_all(&folder)?;
        Ok(Self {
            folder,
            _temporary: temporary,
        })
    }

    /// Returns the export of the conversation about a tree; runs the conversation first if there is
    /// no export yet. It has 60 requests plus 11 for each preceding tree.
    pub(super) fn load_or_run(
        &self,
        haft: &Path,
        number: usize,
        tree: &Path,
    ) -> anyhow::Result<String> {
        let file = self.folder.join(format!("session-{number:02}.json"));
        if !file.exists() {
            fs::write(&file, run_session(haft, tree, number, 60 + number * 11)?)?;
        }
        Ok(fs::read_to_string(&file)?)
    }
}

/// Returns the folders of the source trees.
pub(super) fn find_source_trees() -> anyhow::Result<Vec<PathBuf>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut trees: Vec<PathBuf> = REPOSITORY_CRATES
        .iter()
        .map(|name| crates.join(name))
        .collect();
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home
        .context("there is no home folder")?
        .join("registry/src");
    for name in REGISTRY_CRATES {
        match find_newest_version(&sources, name) {
            Some(tree) => trees.push(tree),
            None => figures::print_line(&format!("the sources of {name} are not there: left out")),
        }
    }
    ensure!(
        trees.len() >= MIN_TREES,
        "only {} source trees were found",
        trees.len()
    );
    Ok(trees)
}

/// Returns the folder of the newest available version of a crate.
fn find_newest_version(sources: &Path, name: &str) -> Option<PathBuf> {
    let registries = fs::read_dir(sources).ok()?.flatten();
    let folders = registries
        .filter_map(|registry| fs::read_dir(registry.path()).ok())
        .flatten()
        .flatten();
    let version = |path: &PathBuf| {
        let folder = path
            .file_name()?
            .to_str()?
            .strip_prefix(name)?
            .strip_prefix('-')?
            .to_owned();
        folder
            .starts_with(|letter: char| letter.is_ascii_digit())
            .then_some(folder)
    };
    folders
        .map(|folder| folder.path())
        .filter(|path| version(path).is_some())
        .max()
}

/// Runs a conversation of about `requests` requests about a tree, and exports it.
fn run_session(haft: &Path, tree: &Path, number: usize, requests: usize) -> anyhow::Result<String> {
    let mut files = Vec::new();
    collect_sources(tree, tree, &mut files)?;
    ensure!(
        !files.is_empty(),
        "there are no sources in `{}`",
        tree.display()
    );
    let rounds = plan_conversation(clone_files(&files), number as u64, requests);
    // haft itself asks once more about a round in which no call succeeded.
    let spare = std::iter::repeat_n(Reply::text("That is all I could do."), rounds.len());
    let replies = rounds
        .iter()
        .flat_map(|round| round.replies.clone())
        .chain(spare);
    let server = ScriptedServer::builder(Script::replies(replies)?)
        .lean()
        .start_in_thread()?;
    let place = Workspace::new(&server)?;
    for file in &files {
        let path = place.project().join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(place.project()))?;
        fs::write(path, file.lines.join("\n") + "\n")?;
    }
    for (round, PlannedRound { input, .. }) in rounds.iter().enumerate() {
        let more: &[&str] = if round == 0 { &[] } else { &["-c"] };
        subject::run_measured(place.task_command_with(haft, more, input))?;
    }
    let listed: Value = serde_json::from_slice(
        &place
            .haft_command(haft, &["conversations", "list", "--json"])
            .output()?
            .stdout,
    )?;
    let id = listed[0]["id"]
        .as_str()
        .context("no conversation is listed")?;
    let exported = place
        .haft_command(haft, &["conversations", "export", id])
        .output()?
        .stdout;
    normalize_export(serde_json::from_slice(&exported)?, number)
}

/// Collects the sources below a folder in order.
fn collect_sources(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect_sources(root, &path, files)?;
        } else if files.len() < MAX_FILES
            && (path.extension().is_some_and(|end| end == "rs") || path.ends_with("Cargo.toml"))
            && entry.metadata()?.len() <= MAX_FILE_BYTES
        {
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            if lines.len() > 5 {
                let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
                files.push(SourceFile { path, lines });
            }
        }
    }
    Ok(())
}

fn clone_files(files: &[SourceFile]) -> Vec<SourceFile> {
    files
        .iter()
        .map(|file| SourceFile {
            path: file.path.clone(),
            lines: file.lines.clone(),
        })
        .collect()
}

/// Replaces times and ids by reproducible ones.
fn normalize_export(mut export: Value, number: usize) -> anyhow::Result<String> {
    let messages = export["messages"]
        .as_array_mut()
        .context("the export has no messages")?;
    let mut clock = Duration::ZERO;
    let mut inputs = 0;
    let mut names = Vec::new();
    for (index, message) in messages.iter_mut().enumerate() {
        clock += match message["role"].as_str() {
            Some("user") => {
                inputs += 1;
                if inputs % 3 == 0 {
                    Duration::from_mins(12)
                } else {
                    Duration::from_secs(90)
                }
            }
            Some("tool") => Duration::from_secs(2),
            _ => Duration::from_secs(5),
        };
        let at = Timestamp::from_second(1_763_200_000)?.checked_add(clock)?;
        message["created_at"] = Value::String(at.to_string());
        let id = message["message_id"]
            .as_str()
            .context("a message has no id")?
            .to_owned();
        names.push((
            id,
            MessageId::from_hash(ContentHash::from_content(
                format!("{number} {index}").as_bytes(),
            ))
            .to_string(),
        ));
    }
    let mut text = serde_json::to_string(&export)?;
    for (id, name) in names {
        text = text.replace(&id, &name);
    }
    Ok(text)
}
