//! Finds paths that exist on the machine but not inside the sandbox.
//!
//! A confined command has a private `/tmp` and `/var/tmp`, and some folders are empty for it. A
//! program in such a folder is "not found" inside the sandbox although it exists outside. This
//! module finds such a path in a failed command, so that the error can name it, and finds the
//! folders that make a configured program visible.
//!
//! This module runs outside the sandbox and only reads: it starts no programs and writes nothing.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::{ConfinementMethod, ConfinementSpec, SandboxPolicy};

/// The folders that are private to every command in a namespace.
pub const PRIVATE_FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];

/// The maximum number of words examined in a text.
const MAX_WORDS: usize = 1_000;
/// The maximum number of separators that a path found in printed output may contain.
const MAX_PATH_SEPARATORS: usize = 16;
/// The maximum number of bytes read from a `#!` line; the kernel reads no more.
const MAX_INTERPRETER_LINE_BYTES: u64 = 256;
/// The number of bytes examined at the end of captured output; earlier output is not searched.
const MAX_OUTPUT_BYTES: usize = 8 * 1024;

/// A path that exists outside the sandbox but cannot be seen inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenPath {
    /// The path as it exists outside the sandbox.
    pub path: PathBuf,
    /// The part of the sandbox that hides the path.
    pub cause: HiddenCause,
}

/// The reason why a path cannot be seen inside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenCause {
    /// The path is below this folder, which is replaced by a private one.
    PrivateFolder(&'static str),
    /// The path is in a folder that contains secrets, belongs to haft, or is listed in `[sandbox]
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
    /// Returns a suggestion for the user, to be printed after the [`fmt::Display`] text.
    pub fn remedy(&self) -> &'static str {
        "move it to another folder, or add that path to `[sandbox] readable`"
    }
}

/// The texts of a command, which are searched for paths, and the context in which relative paths
/// and variables in these texts are resolved.
#[derive(Clone, Copy, Debug)]
pub struct CommandPaths<'a> {
    /// Command lines, or programs and their arguments.
    pub texts: &'a [String],
    /// The working folder of the command.
    pub cwd: &'a Path,
    /// The command's environment, which provides `PATH`, `HOME`, and the values of variables in the
    /// texts.
    pub env: &'a [(String, String)],
}

impl ConfinementSpec {
    /// Returns `path` and the reason why it cannot be seen inside the sandbox although it exists
    /// outside. Returns `None` if the path can be seen or does not exist.
    pub fn hidden_path(&self, path: &Path) -> Option<HiddenPath> {
        path_spellings(path).into_iter().find_map(|place| {
            Some(HiddenPath {
                cause: self.hiding_cause(&place)?,
                path: place,
            })
        })
    }

    /// Returns the first hidden path that the command names or that `output` mentions.
    pub(crate) fn first_hidden_path(
        &self,
        command: CommandPaths<'_>,
        output: &str,
    ) -> Option<HiddenPath> {
        let named = find_named_paths(command).into_iter();
        named
            .chain(find_mentioned_paths(output))
            .flat_map(path_and_interpreter)
            .find_map(|path| self.hidden_path(&path))
    }

    /// Returns a copy of this confinement in which the programs and scripts that the command names
    /// below private folders are readable.
    ///
    /// The whole entry directly below `/tmp` is shown, because a program there needs its neighbors:
    /// `/tmp/venv/bin/server` needs `/tmp/venv/lib`. Files and folders that are not programs stay
    /// hidden: a command that names a cache or a log in `/tmp` creates one in its private `/tmp`.
    /// Folders that are hidden for another reason stay hidden.
    #[must_use]
    pub fn with_programs_readable(&self, command: CommandPaths<'_>) -> Self {
        let programs = find_named_paths(command)
            .into_iter()
            .filter(|path| is_runnable(path))
            .flat_map(path_and_interpreter);
        self.with_paths_readable(&programs.collect::<Vec<_>>())
    }

    /// Returns a copy of this confinement in which all `paths` below private folders are readable.
    #[must_use]
    pub fn with_paths_readable(&self, paths: &[PathBuf]) -> Self {
        let mut shown = self.clone();
        for path in paths {
            let entries = shown.entries_to_expose(path);
            shown.policy.readable.extend(entries);
        }
        shown
    }

    /// Returns the entries in private folders that must be made readable so that `path` becomes
    /// visible. Returns no entries if `path` is already visible.
    fn entries_to_expose(&self, path: &Path) -> BTreeSet<PathBuf> {
        let is_private = |place: &PathBuf| match self.hiding_cause(place) {
            Some(HiddenCause::PrivateFolder(_)) => true,
            Some(HiddenCause::HiddenFolder) | None => false,
        };
        path_spellings(path)
            .into_iter()
            .filter(is_private)
            .filter_map(|place| private_folder_entry(&place))
            .collect()
    }

    /// Returns the reason why `place` is hidden. Checks folders in the order in which the sandbox
    /// mounts them: from the outside in, with hidden folders last.
    fn hiding_cause(&self, place: &Path) -> Option<HiddenCause> {
        let policy = &self.policy;
        let open = policy
            .projects
            .iter()
            .chain(&policy.writable)
            .chain(&policy.readable);
        let open = SandboxPolicy::deepest_component_count(place, open.map(PathBuf::as_path));
        let hidden: Vec<_> = policy.existing_hidden_paths().collect();
        let hidden =
            SandboxPolicy::deepest_component_count(place, hidden.iter().map(PathBuf::as_path));
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
            let is_open =
                open >= SandboxPolicy::deepest_component_count(place, [Path::new(folder)]);
            !is_open
                && below.is_some_and(|below| policy.tmp.join(below).symlink_metadata().is_err())
        };
        policy
            .private_folders()
            .find(is_private)
            .map(HiddenCause::PrivateFolder)
    }
}

/// Returns the entry directly below a private folder that contains or equals `path`, such as
/// `/tmp/venv` for `/tmp/venv/bin`.
pub fn private_folder_entry(path: &Path) -> Option<PathBuf> {
    PRIVATE_FOLDERS.into_iter().find_map(|folder| {
        let entry = path.strip_prefix(folder).ok()?.components().next()?;
        Some(Path::new(folder).join(entry))
    })
}

/// Returns `path` as written and with links resolved. Returns no paths if `path` does not exist.
fn path_spellings(path: &Path) -> Vec<PathBuf> {
    path.canonicalize()
        .map(|real| vec![normalize_lexically(path), real])
        .unwrap_or_default()
}

/// Decodes the end of an output as text, for [`ConfinementSpec::first_hidden_path`].
pub(crate) fn extract_output_end(output: &crate::CapturedOutput) -> String {
    let bytes = if output.tail.is_empty() {
        &output.head
    } else {
        &output.tail
    };
    let from = bytes.len().saturating_sub(MAX_OUTPUT_BYTES);
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Returns every existing path that the texts may name: absolute, relative to the working folder,
/// or a program in the `PATH`.
fn find_named_paths(command: CommandPaths<'_>) -> Vec<PathBuf> {
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
        let text = expand_variables(text, &variable);
        for word in std::iter::once(text.clone()).chain(split_words(&text)) {
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

/// Expands a leading `~`, `$NAME` and `${NAME}` in a word if they have values.
fn expand_variables<'a>(text: &str, variable: &impl Fn(&str) -> Option<&'a str>) -> String {
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

/// Splits a text into all words that could be a path: the words that a shell would find, and their
/// parts between separators.
fn split_words(text: &str) -> Vec<String> {
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

/// Returns every existing absolute path in a message, including paths with spaces.
fn find_mentioned_paths(text: &str) -> Vec<PathBuf> {
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
            let mut ends: Vec<_> = ends.take(MAX_PATH_SEPARATORS).collect();
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

/// True if `c` can precede or follow a path in a text.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || ";|&()<>\"'`=:,{}‘’“”".contains(c)
}

/// Returns the path and, if the path is a script, the interpreter in its `#!` line.
fn path_and_interpreter(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let interpreter = read_interpreter(&path);
    std::iter::once(path).chain(interpreter)
}

/// The extensions of scripts. An interpreter can run such a file even if it is not executable.
const SCRIPT_EXTENSIONS: [&str; 12] = [
    "bash", "cjs", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh", "ts", "zsh",
];

/// True if a file is a program or a script, judged by its mode, its extension, or its first line.
fn is_runnable(path: &Path) -> bool {
    let is_program = path
        .metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let is_script = path
        .extension()
        .is_some_and(|ending| SCRIPT_EXTENSIONS.iter().any(|script| ending == *script));
    is_program || is_script && path.is_file() || read_interpreter(path).is_some()
}

fn read_interpreter(script: &Path) -> Option<PathBuf> {
    // Opening a pipe or a device could block or have side effects.
    if !script.metadata().ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(script)
        .ok()?
        .take(MAX_INTERPRETER_LINE_BYTES)
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

/// Resolves `.` and `..` in the text of a path, without following links.
fn normalize_lexically(path: &Path) -> PathBuf {
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
