//! Paths that exist on the machine but not inside the sandbox.
//!
//! A confined command has a `/tmp` and a `/var/tmp` of its own and finds some folders empty. A
//! program that lies there is "not found" inside although it is there outside. This module finds
//! such a path in a command that failed, so that the error can name it, and finds the folders that
//! make a configured program visible.
//!
//! It runs outside the sandbox and only looks: it starts nothing and writes nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::{ConfinementMethod, ConfinementSpec, SandboxPolicy};

/// Folders that every command in a namespace has of its own.
pub const PRIVATE_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];

/// The most words of a text that are examined.
const MAX_WORDS: usize = 1_000;
/// The most separators that a path in a printed line may contain.
const MAX_PARTS: usize = 16;
/// The most bytes of a `#!` line that are read; the kernel reads no more.
const MAX_INTERPRETER: u64 = 256;
/// The most bytes of a captured output that are examined, counted from its end.
const MAX_OUTPUT: usize = 8 * 1024;

/// A path that exists outside the sandbox and cannot be seen inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenPath {
    /// The path as it is found outside.
    pub path: PathBuf,
    /// The part of the sandbox that hides it.
    pub cause: HiddenCause,
}

/// The reason for which a path cannot be seen inside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenCause {
    /// The path lies below this folder, and the command has a private one in its place.
    PrivateFolder(&'static str),
    /// The path lies in a folder that holds secrets, is haft's own, or is listed in `[sandbox]
    /// hidden`.
    HiddenFolder,
}

impl fmt::Display for HiddenPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.cause {
            HiddenCause::PrivateFolder(folder) => {
                write!(
                    out,
                    "`{path}` is hidden by the sandbox, in which `{folder}` is a private folder"
                )
            }
            HiddenCause::HiddenFolder => write!(out, "`{path}` is hidden by the sandbox"),
        }
    }
}

impl HiddenPath {
    /// Returns what a user can do about it, as a sentence that follows the one of [`fmt::Display`].
    pub fn remedy(&self) -> &'static str {
        "move it to another folder, or add that path to `[sandbox] readable`"
    }
}

/// The texts of a command in which paths are looked for, and what relative names in them refer to.
#[derive(Clone, Copy, Debug)]
pub struct CommandPaths<'a> {
    /// Command lines, or programs and arguments.
    pub texts: &'a [String],
    /// The folder the command runs in.
    pub cwd: &'a Path,
    /// The command's environment, for `PATH`, `HOME` and variables in the texts.
    pub env: &'a [(String, String)],
}

impl ConfinementSpec {
    /// Returns why `path` cannot be seen inside although it exists outside, or `None` if it can be
    /// seen or does not exist.
    pub fn hides(&self, path: &Path) -> Option<HiddenPath> {
        places(path).into_iter().find_map(|place| {
            Some(HiddenPath {
                cause: self.hiding_cause(&place)?,
                path: place,
            })
        })
    }

    /// Returns the first path that the command names, or that `output` mentions, and that is hidden
    /// from the command.
    pub(crate) fn hidden_in(&self, command: CommandPaths<'_>, output: &str) -> Option<HiddenPath> {
        let named = named_paths(command).into_iter();
        named
            .chain(mentioned_paths(output))
            .flat_map(with_interpreter)
            .find_map(|path| self.hides(&path))
    }

    /// Returns this confinement with every program and script that the command names below a
    /// private folder made readable.
    ///
    /// The whole entry directly below `/tmp` is shown, because a program there needs its neighbors:
    /// `/tmp/venv/bin/server` needs `/tmp/venv/lib`. Files and folders that are not programs
    /// stay hidden: a command that names a cache or a log in `/tmp` makes one in its own.
    /// Nothing is shown of folders that are hidden for another reason.
    #[must_use]
    pub fn showing(&self, command: CommandPaths<'_>) -> Self {
        let programs = named_paths(command)
            .into_iter()
            .filter(|path| is_runnable(path))
            .flat_map(with_interpreter);
        self.showing_paths(&programs.collect::<Vec<_>>())
    }

    /// Returns this confinement with these paths made readable where they lie below a private
    /// folder.
    #[must_use]
    pub fn showing_paths(&self, paths: &[PathBuf]) -> Self {
        let mut shown = self.clone();
        for path in paths {
            let entries = shown.private_entries(path);
            shown.policy.readable.extend(entries);
        }
        shown
    }

    /// Returns the entries of private folders that must be readable for `path` to be seen; none if
    /// it can be seen already.
    fn private_entries(&self, path: &Path) -> BTreeSet<PathBuf> {
        let is_private = |place: &PathBuf| match self.hiding_cause(place) {
            Some(HiddenCause::PrivateFolder(_)) => true,
            Some(HiddenCause::HiddenFolder) | None => false,
        };
        places(path)
            .into_iter()
            .filter(is_private)
            .filter_map(|place| private_entry(&place))
            .collect()
    }

    /// Returns the cause by the order in which the sandbox mounts folders: from the outside in, a
    /// hidden folder last.
    fn hiding_cause(&self, place: &Path) -> Option<HiddenCause> {
        let policy = &self.policy;
        let open = policy
            .projects
            .iter()
            .chain(&policy.writable)
            .chain(&policy.readable);
        let open = SandboxPolicy::deepest(place, open.map(PathBuf::as_path));
        let hidden: Vec<_> = policy.hidden_places().collect();
        let hidden = SandboxPolicy::deepest(place, hidden.iter().map(PathBuf::as_path));
        if hidden.is_some() && hidden >= open {
            return Some(HiddenCause::HiddenFolder);
        }
        match self.method {
            ConfinementMethod::Namespace => {}
            ConfinementMethod::Landlock => return None,
        }
        let is_private = |folder: &&str| {
            let below = place
                .strip_prefix(folder)
                .ok()
                .filter(|below| !below.as_os_str().is_empty());
            let is_made_inside = |below: &Path| policy.tmp.join(below).symlink_metadata().is_ok();
            let is_open = open >= SandboxPolicy::deepest(place, [Path::new(folder)]);
            below.is_some_and(|below| !is_open && !is_made_inside(below))
        };
        policy
            .private_folders()
            .find(is_private)
            .map(HiddenCause::PrivateFolder)
    }
}

/// Returns the entry directly below a private folder that `path` is or lies in, such as `/tmp/venv`
/// for `/tmp/venv/bin`.
pub fn private_entry(path: &Path) -> Option<PathBuf> {
    PRIVATE_FOLDERS.into_iter().find_map(|folder| {
        let entry = path.strip_prefix(folder).ok()?.components().next()?;
        Some(Path::new(folder).join(entry))
    })
}

/// Returns the path as it is written and as it is without links; neither if it does not exist.
fn places(path: &Path) -> Vec<PathBuf> {
    path.canonicalize()
        .map(|real| vec![without_dots(path), real])
        .unwrap_or_default()
}

/// Returns the end of an output as text, for [`ConfinementSpec::hidden_in`].
pub(crate) fn last_output(output: &crate::CapturedOutput) -> String {
    let bytes = if output.tail.is_empty() {
        &output.head
    } else {
        &output.tail
    };
    let from = bytes.len().saturating_sub(MAX_OUTPUT);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Returns every existing path that the texts may name: absolute, relative to the folder, or a
/// program in the `PATH`.
fn named_paths(command: CommandPaths<'_>) -> Vec<PathBuf> {
    let variable = |name: &str| {
        command
            .env
            .iter()
            .rfind(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    };
    let search: Vec<_> = std::env::split_paths(variable("PATH").unwrap_or_default()).collect();
    let mut found = Vec::new();
    for text in command.texts {
        let text = expand(text, &variable);
        for word in std::iter::once(text.clone()).chain(words(&text)) {
            let path = Path::new(&word);
            if word.contains('/') {
                found.push(command.cwd.join(path));
            } else {
                found.extend(
                    search
                        .iter()
                        .map(|folder| folder.join(path))
                        .find(|path| path.is_file()),
                );
            }
        }
    }
    found.retain(|path| path.is_absolute() && path.symlink_metadata().is_ok());
    found
}

/// Replaces `$NAME`, `${NAME}` and a leading `~` of a word by their values where they are known.
fn expand<'a>(text: &str, variable: &impl Fn(&str) -> Option<&'a str>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    let mut is_start = true;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, end) = match (c, after.strip_prefix('{')) {
            ('$', Some(inner)) => {
                let length = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
                (&inner[..length], inner[length..].strip_prefix('}'))
            }
            ('$', None) => {
                let length = after.find(|c| !is_name(c)).unwrap_or(after.len());
                (&after[..length], Some(&after[length..]))
            }
            ('~', _) if is_start && (after.is_empty() || after.starts_with('/')) => {
                ("HOME", Some(after))
            }
            _ => ("", None),
        };
        is_start = c.is_whitespace() || "\"'=:;|&()".contains(c);
        if let (Some(value), Some(end)) = (variable(name), end) {
            expanded.push_str(value);
            rest = end;
        } else {
            expanded.push(c);
            rest = after;
        }
    }
    expanded
}

/// Splits a text into everything that could be a path: the words a shell makes of it, and their
/// parts.
fn words(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', None) => token.extend(characters.next()),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() || ";|&()<>`".contains(c) => {
                tokens.push(std::mem::take(&mut token));
            }
            (c, _) => token.push(c),
        }
        if tokens.len() > MAX_WORDS {
            break;
        }
    }
    tokens.push(token);
    let parts = |token: &String| {
        let parts: Vec<_> = token
            .split(is_separator)
            .filter(|part| part != token)
            .map(str::to_owned)
            .collect();
        std::iter::once(token.clone())
            .chain(parts)
            .collect::<Vec<_>>()
    };
    let mut words: Vec<String> = tokens.iter().flat_map(parts).collect();
    words.retain(|word| !word.is_empty() && !word.contains('\0'));
    words.truncate(MAX_WORDS);
    words
}

/// Returns every absolute path in a text for people that exists. A path with spaces in it is found
/// whole.
fn mentioned_paths(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in text.lines() {
        let is_start = |at: &usize| line[..*at].chars().next_back().is_none_or(is_separator);
        for start in line.match_indices('/').map(|(at, _)| at).filter(is_start) {
            let rest = &line[start..];
            let ends = rest
                .char_indices()
                .filter(|(_, c)| is_separator(*c))
                .map(|(at, _)| at)
                .chain([rest.len()]);
            let mut ends: Vec<_> = ends.take(MAX_PARTS).collect();
            ends.reverse();
            let paths = ends.into_iter().map(|end| PathBuf::from(&rest[..end]));
            found.extend(
                paths
                    .into_iter()
                    .find(|path| path.symlink_metadata().is_ok()),
            );
        }
        if found.len() > MAX_WORDS {
            break;
        }
    }
    found
}

/// Whether a path in a text can begin after this character and end before it.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || ";|&()<>\"'`=:,{}‘’“”".contains(c)
}

/// Returns the path, and the interpreter that its `#!` line names.
fn with_interpreter(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let interpreter = interpreter(&path);
    std::iter::once(path).chain(interpreter)
}

/// Endings of files that an interpreter runs whatever their mode.
const SCRIPTS: [&str; 12] = [
    "bash", "cjs", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh", "ts", "zsh",
];

/// Whether a file is a program or a script: by its mode, its ending or its first line.
fn is_runnable(path: &Path) -> bool {
    let is_program = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let is_script = path
        .extension()
        .is_some_and(|ending| SCRIPTS.iter().any(|script| ending == *script));
    is_program || is_script && path.is_file() || interpreter(path).is_some()
}

fn interpreter(script: &Path) -> Option<PathBuf> {
    // Opening a pipe or a device could wait or have an effect.
    if !script.metadata().ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(script)
        .ok()?
        .take(MAX_INTERPRETER)
        .read_to_end(&mut start)
        .ok()?;
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = std::str::from_utf8(line).ok()?;
    line.split_whitespace()
        .next()
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Resolves `.` and `..` by name alone, as a path is written.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
