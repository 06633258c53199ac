//! Conversations that haft itself has: its real tools on real source trees, a scripted model that
//! plans what to do.
//!
//! Each is a few dozen runs of the binary against the scripted model server, exported. Times and
//! ids are those of no clock, so that the same sources give the same conversations: seven seconds a
//! step, a minute and a half before an input, twelve minutes before every third one. The exports
//! are written to the folder that `HAFT_OWN_SESSIONS` names, and taken from there the next time.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, ensure};
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::{ContentHash, MessageId, Timestamp};
use serde_json::Value;
use tempfile::TempDir;

use super::plan::{PlannedRound, SourceFile, plan};
use crate::figures;
use crate::subject::{self, Place};

/// Crates of this repository, and of the registry, whose sources are worked on.
const OURS: [&str; 10] = [
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
const OTHERS: [&str; 12] = [
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
/// The fewest that are a corpus.
const FEWEST: usize = 20;
/// Files of a tree that are copied, the largest of them in bytes.
const FILES: usize = 120;
const LARGEST: u64 = 200_000;

/// Where exports are kept.
pub(super) struct ExportFolder {
    folder: PathBuf,
    /// Goes when this does.
    _temporary: Option<TempDir>,
}

impl ExportFolder {
    /// The folder that is named, or a temporary one.
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

    /// The export of the conversation about a tree, had now where it is not there yet. They have
    /// between 60 and 300 requests.
    pub(super) fn export(&self, haft: &Path, number: usize, tree: &Path) -> anyhow::Result<String> {
        let file = self.folder.join(format!("session-{number:02}.json"));
        if !file.exists() {
            fs::write(&file, session(haft, tree, number, 60 + number * 11)?)?;
        }
        Ok(fs::read_to_string(&file)?)
    }
}

/// The folders of the sources.
pub(super) fn trees() -> anyhow::Result<Vec<PathBuf>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut trees: Vec<PathBuf> = OURS.iter().map(|name| crates.join(name)).collect();
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(env::home_dir()?.join(".cargo")));
    let sources = home
        .context("there is no home folder")?
        .join("registry/src");
    for name in OTHERS {
        match newest(&sources, name) {
            Some(tree) => trees.push(tree),
            None => figures::line(&format!("the sources of {name} are not there: left out")),
        }
    }
    ensure!(
        trees.len() >= FEWEST,
        "only {} source trees were found",
        trees.len()
    );
    Ok(trees)
}

/// The newest version of a crate whose sources are there.
fn newest(sources: &Path, name: &str) -> Option<PathBuf> {
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

/// Has a conversation of about so many requests about a tree, and exports it.
fn session(haft: &Path, tree: &Path, number: usize, requests: usize) -> anyhow::Result<String> {
    let mut files = Vec::new();
    collect(tree, tree, &mut files)?;
    ensure!(
        !files.is_empty(),
        "there are no sources in `{}`",
        tree.display()
    );
    let rounds = plan(copies(&files), number as u64, requests);
    // A round in which nothing worked is asked about once more, by haft itself.
    let spare = std::iter::repeat_n(Reply::text("That is all I could do."), rounds.len());
    let replies = rounds
        .iter()
        .flat_map(|round| round.replies.clone())
        .chain(spare);
    let server = ScriptedServer::builder(Script::replies(replies)?)
        .lean()
        .start_in_thread()?;
    let place = Place::new(&server)?;
    for file in &files {
        let path = place.project().join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(place.project()))?;
        fs::write(path, file.lines.join("\n") + "\n")?;
    }
    for (round, PlannedRound { input, .. }) in rounds.iter().enumerate() {
        let more: &[&str] = if round == 0 { &[] } else { &["-c"] };
        subject::run(place.command_with(haft, more, input))?;
    }
    let listed: Value = serde_json::from_slice(
        &place
            .haft(haft, &["conversations", "list", "--json"])
            .output()?
            .stdout,
    )?;
    let id = listed[0]["id"]
        .as_str()
        .context("no conversation is listed")?;
    let exported = place
        .haft(haft, &["conversations", "export", id])
        .output()?
        .stdout;
    timeless(serde_json::from_slice(&exported)?, number)
}

/// The sources below a folder, in order.
fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(root, &path, files)?;
        } else if files.len() < FILES
            && (path.extension().is_some_and(|end| end == "rs") || path.ends_with("Cargo.toml"))
            && entry.metadata()?.len() <= LARGEST
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

fn copies(files: &[SourceFile]) -> Vec<SourceFile> {
    files
        .iter()
        .map(|file| SourceFile {
            path: file.path.clone(),
            lines: file.lines.clone(),
        })
        .collect()
}

/// The export with times and ids that are the same every time.
fn timeless(mut export: Value, number: usize) -> anyhow::Result<String> {
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
            MessageId::derived(ContentHash::of(format!("{number} {index}").as_bytes())).to_string(),
        ));
    }
    let mut text = serde_json::to_string(&export)?;
    for (id, name) in names {
        text = text.replace(&id, &name);
    }
    Ok(text)
}
