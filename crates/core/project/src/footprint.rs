//! The footprint of a project: everything that would run, or steer a run, once the project is
//! trusted.
//!
//! The footprint consists of configuration that names commands, the folders of programs, and every
//! file of the project that a hook or a server names. Invariant: reading it changes nothing and
//! never blocks. Links are not followed (their targets are part of the footprint), pipes and
//! devices are not opened, and the walk is bounded. Every file is hashed completely, whatever its
//! size.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use haft_types::{ContentHash, Hasher};
use rustix::fs::OFlags;
use serde_json::{Map, Value};

use crate::hooks::Hook;
use crate::knowledge::{KnowledgeKind, KnowledgePaths};
use crate::named_files::find_named_files;
use crate::{compat, hooks};

/// The paths of configuration files that declare commands, servers and hooks, and of folders that
/// contain programs.
const FOOTPRINT_PATHS: &[&str] = &[
    ".haft/config.toml",
    ".haft/hooks",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
];

/// The kinds of knowledge whose folders belong to the footprint with all their files.
const FOOTPRINT_KINDS: [KnowledgeKind; 5] = [
    KnowledgeKind::Tools,
    KnowledgeKind::Commands,
    KnowledgeKind::Agents,
    KnowledgeKind::Skills,
    KnowledgeKind::Workflows,
];

/// Returns the files and folders of the footprint, relative to the project's root.
fn list_footprint_paths() -> impl Iterator<Item = String> {
    let folders = FOOTPRINT_KINDS.into_iter().flat_map(move |kind| {
        std::iter::once(format!(".haft/{}", kind.folder_name()))
            .chain(compat::project_folders(kind).map(str::to_owned))
    });
    FOOTPRINT_PATHS
        .iter()
        .map(|name| (*name).to_owned())
        .chain(folders)
}

/// The maximum number of files in a footprint. A project with more files is never trusted; no real
/// project has nearly as many.
const MAX_FILES: usize = 5_000;
/// The maximum number of bytes of a file that are held in memory while the file is hashed.
const CHUNK_BYTES: u64 = 16 * 1024 * 1024;
/// The file that declares MCP servers, and the maximum number of bytes that are read from the file.
const SERVERS_FILE: (&str, u64) = (".mcp.json", 1 << 20);
/// The maximum depth to which folders of the footprint are searched.
const MAX_DEPTH: usize = 16;

/// The files of a project that haft would execute once the project is trusted, each with its
/// content hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    files: BTreeMap<String, ContentHash>,
    /// True if all files and folders of the footprint could be read.
    is_complete: bool,
}

impl Footprint {
    /// Reads the footprint of a project.
    pub fn read_project(root: &Path) -> Self {
        let mut found = Self {
            files: BTreeMap::new(),
            is_complete: true,
        };
        for name in list_footprint_paths() {
            found.add_path(root, &name, 0);
        }
        for lines in collect_command_lines(root) {
            found.add_named_files(root, root, &lines);
        }
        found
    }

    /// Reads the project files whose paths occur in `lines`, which are command lines that are run
    /// in `cwd`.
    pub fn read_files_named_by(root: &Path, cwd: &Path, lines: &[String]) -> Self {
        let mut found = Self {
            files: BTreeMap::new(),
            is_complete: true,
        };
        found.add_named_files(root, cwd, lines);
        found
    }

    /// Returns the content hash of each file, by path relative to the project's root.
    pub fn files(&self) -> &BTreeMap<String, ContentHash> {
        &self.files
    }

    /// True if all files and folders of the footprint could be read. A project with an incomplete
    /// footprint can't be trusted.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the sorted paths of the files that were added, removed or changed since the
    /// footprint `before` was read.
    pub fn changed_paths_since(&self, before: &BTreeMap<String, ContentHash>) -> Vec<String> {
        let now = self
            .files
            .iter()
            .filter(|(name, hash)| before.get(*name) != Some(hash))
            .map(|(name, _)| name);
        let gone = before.keys().filter(|name| !self.files.contains_key(*name));
        let mut changed: Vec<_> = now.chain(gone).cloned().collect();
        changed.sort();
        changed
    }

    fn add_named_files(&mut self, root: &Path, cwd: &Path, lines: &[String]) {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let named = find_named_files(root, cwd, &lines);
        self.is_complete &= named.is_some();
        for name in named
            .into_iter()
            .flatten()
            .filter(|name| !self.files.contains_key(name))
            .collect::<Vec<_>>()
        {
            self.add_path(root, &name, 0);
        }
    }

    fn add_path(&mut self, root: &Path, name: &str, depth: usize) {
        if self.files.len() >= MAX_FILES || depth > MAX_DEPTH {
            self.is_complete = false;
            return;
        }
        let path = root.join(name);
        let Ok(metadata) = path.symlink_metadata() else {
            return;
        };
        let kind = metadata.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path)
                .map(|target| target.as_os_str().as_bytes().to_vec())
                .unwrap_or_default();
            self.add_entry(name, b"link", &target);
            // The target of the link would run too, and may change while the link stays.
            if let Ok(real) = path.canonicalize()
                && real.is_file()
            {
                self.add_file(
                    &real,
                    &format!("{name} -> {}", real.display()),
                    metadata.len(),
                );
            } else if path.is_dir() {
                self.is_complete = false;
            }
        } else if kind.is_dir() {
            self.add_folder(root, name, depth);
        } else if kind.is_file() {
            self.add_file(&path, name, metadata.len());
        } else {
            self.add_entry(name, b"special", b"");
        }
    }

    fn add_folder(&mut self, root: &Path, name: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(root.join(name)) else {
            self.is_complete = false;
            return;
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for entry in names {
            match entry.to_str() {
                Some(entry) => self.add_path(root, &format!("{name}/{entry}"), depth + 1),
                None => self.is_complete = false,
            }
        }
    }

    /// Returns the hash of a regular file with this content.
    pub(crate) fn hash_file_content(content: &[u8]) -> ContentHash {
        let mut hasher = Hasher::default();
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(content);
        hasher.finish()
    }

    fn add_file(&mut self, path: &Path, name: &str, size: u64) {
        let mut hasher = Hasher::default();
        hasher.update(&size.to_le_bytes());
        match hash_content(path, &mut hasher) {
            Ok(()) => drop(self.files.insert(name.to_owned(), hasher.finish())),
            // The file may become readable before it runs.
            Err(_) => self.is_complete = false,
        }
    }

    fn add_entry(&mut self, name: &str, kind: &[u8], bytes: &[u8]) {
        let mut hasher = Hasher::default();
        hasher.update(kind);
        hasher.update(bytes);
        self.files.insert(name.to_owned(), hasher.finish());
    }
}

/// Returns the files that a project's hooks and servers name, and that commands must therefore not
/// change. For a link, both the link and its target are returned.
pub fn list_files_named_by_project(root: &Path) -> Vec<PathBuf> {
    let names = collect_command_lines(root).into_iter().flat_map(|lines| {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        find_named_files(root, root, &lines).unwrap_or_default()
    });
    let paths = names
        .map(|name| root.join(name))
        .flat_map(|path| path.canonicalize().into_iter().chain([path]));
    paths.filter(|path| path.starts_with(root)).collect()
}

/// Returns the command lines that the project's configuration declares: one list per hook, as the
/// hook is loaded, and one list per server with all texts in the server's declaration.
fn collect_command_lines(root: &Path) -> Vec<Vec<String>> {
    let hooks = load_declared_hooks(root);
    let servers = read_declared_servers(root);
    hooks
        .into_iter()
        .map(|hook| vec![hook.command])
        .chain(servers.values().map(collect_strings))
        .collect()
}

/// Loads the hooks that the project declares, even if it is not trusted.
pub(crate) fn load_declared_hooks(root: &Path) -> Vec<Hook> {
    let root = root.to_owned();
    let user = PathBuf::from("/");
    let knowledge = KnowledgePaths {
        cwd: root.clone(),
        root,
        trusted: true,
        user,
        home: None,
    };
    hooks::load_project_hooks(&knowledge, &mut Vec::new())
}

/// Reads the declarations of the project's MCP servers, by name.
pub(crate) fn read_declared_servers(root: &Path) -> Map<String, Value> {
    let text = open_with_flags(&root.join(SERVERS_FILE.0), OFlags::NONBLOCK).and_then(|file| {
        let mut text = String::new();
        file.take(SERVERS_FILE.1)
            .read_to_string(&mut text)
            .map(|_| text)
    });
    let declared: Value = text
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    match declared.get("mcpServers") {
        Some(Value::Object(servers)) => servers.clone(),
        Some(_) | None => Map::new(),
    }
}

/// Collects all strings in the JSON declaration of a server, with the command before its arguments.
fn collect_strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(collect_strings).collect(),
        Value::Object(fields) => {
            let command = fields.get("command").into_iter();
            command
                .chain(
                    fields
                        .iter()
                        .filter(|(key, _)| *key != "command")
                        .map(|(_, value)| value),
                )
                .flat_map(collect_strings)
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn open_with_flags(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn hash_content(path: &Path, hasher: &mut Hasher) -> io::Result<()> {
    let mut file = open_with_flags(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)?;
    loop {
        let mut bytes = Vec::new();
        let read = (&mut file).take(CHUNK_BYTES).read_to_end(&mut bytes)? as u64;
        hasher.update(&bytes);
        if read < CHUNK_BYTES {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
