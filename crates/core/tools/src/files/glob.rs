//! `glob`: finds files by name, sorted with the newest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::{DirEntry, WalkState};

use crate::files::disk::{DiskError, mtime_ns};
use crate::files::pattern::FilePattern;
use crate::files::walk;
use crate::files::walk::GitFolder;
use crate::on_files::OnFiles;
use crate::prelude::*;
use crate::scope::FileScope;
use crate::{paths, visible};

const NAME: &str = "glob";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Glob",
        translate: |arguments| arguments,
    }],
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GlobParameters {
    /// A glob of `*`, `**`, `?`, `{a,b}` and `[a-z]`: with a slash, such as `folder/**/*.ts`, it
    /// is matched against the path below `path`; without, such as `*.toml`, against every file's
    /// name.
    pattern: String,
    /// The folder to look in; default the working directory.
    path: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("glob/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read_or(arguments, "path", "."),
    )
    .on_files(find_files)
}

fn find_files(scope: &FileScope, parameters: &GlobParameters) -> CallResult {
    let root = paths::resolve_path(&scope.workspace, parameters.path.as_deref().unwrap_or("."))?;
    let name = paths::display_path(&scope.workspace, &root);
    let pattern = compile_pattern(&root, &parameters.pattern)?;
    if !root.is_dir() {
        return Err(if root.exists() {
            let message =
                format!("`{name}` is a file, not a folder; `path` is the folder to look in");
            ToolFailure::new("not_a_folder", message)
        } else {
            DiskError::NotFound { name }.into()
        });
    }
    let newest = Mutex::new(NewestFiles::new(scope.limits.lines));
    let mut builder = walk::build_walk(scope, &root, GitFolder::Skipped);
    builder.hidden(false);
    walk::walk_in_parallel(&mut builder, || {
        Box::new(|found| {
            let take = |act: &dyn Fn(&mut NewestFiles)| {
                act(&mut newest.lock().unwrap_or_else(PoisonError::into_inner));
            };
            match found {
                _ if scope.cancel.is_cancelled() => return WalkState::Quit,
                Ok(entry) if is_not_folder(&entry) && pattern.matches(&root, entry.path()) => {
                    let mtime = entry
                        .metadata()
                        .map_or(i64::MIN, |metadata| mtime_ns(&metadata));
                    take(&|newest| newest.add_file(mtime, entry.path()));
                }
                Ok(_) => {}
                // An unreadable folder must not hide the rest.
                Err(_) => take(&|newest| newest.unreadable += 1),
            }
            WalkState::Continue
        })
    });
    if scope.cancel.is_cancelled() {
        return Err(ToolFailure::new(
            "cancelled",
            format!("looking for files in `{name}` was cancelled"),
        ));
    }
    let newest = newest.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(newest
        .into_envelope(scope, &name, &parameters.pattern)
        .into())
}

fn compile_pattern(root: &Path, pattern: &str) -> Result<FilePattern, ToolFailure> {
    let invalid = |message: String| ToolFailure::new("invalid_pattern", message);
    let below = match Path::new(pattern).strip_prefix(root) {
        // A pattern that begins with the folder applies to the path below it.
        Ok(below) => format!("./{}", below.display()),
        Err(_) if pattern.starts_with('/') => {
            let root = root.display();
            let hint = "give the folder as `path` and the pattern relative to it";
            return Err(invalid(format!(
                "`{pattern}` is not below `{root}`; {hint}"
            )));
        }
        Err(_) => pattern.to_owned(),
    };
    if below.trim_start_matches("./").is_empty() {
        return Err(invalid(
            "`pattern` is empty; `**` stands for every file".to_owned(),
        ));
    }
    FilePattern::new(&below)
        .map_err(|error| invalid(format!("`pattern` is not a valid glob: {error}")))
}

/// True for all entries except folders. Symbolic links are listed, but not followed.
fn is_not_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| !kind.is_dir())
}

/// The newest matching files found so far, and the total number of matching files.
struct NewestFiles {
    most: usize,
    /// The oldest file is on top, so that a newer file can replace it. Among files with equal
    /// times, the first by name counts as the newest.
    heap: BinaryHeap<(Reverse<i64>, PathBuf)>,
    total: usize,
    unreadable: usize,
}

impl NewestFiles {
    fn new(most: usize) -> Self {
        Self {
            most,
            heap: BinaryHeap::new(),
            total: 0,
            unreadable: 0,
        }
    }

    fn add_file(&mut self, mtime: i64, path: &Path) {
        self.total += 1;
        self.heap.push((Reverse(mtime), path.to_owned()));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn into_envelope(self, scope: &FileScope, name: &str, pattern: &str) -> Envelope {
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (_, path) in self.heap.into_sorted_vec() {
            let line =
                visible::reveal_line(&paths::display_path(&scope.workspace, &path)).into_owned();
            bytes += line.len() + 1;
            if bytes > scope.limits.bytes {
                break;
            }
            entries.push(line);
        }
        let mut text = entries.join("\n");
        let more = self.total - entries.len();
        if self.total == 0 {
            text = format!("No files in `{name}` match `{pattern}`.");
        } else if more > 0 {
            let _ = write!(
                text,
                "\n[{more} more of {} files, all older. Use a narrower pattern.]",
                self.total
            );
        }
        if self.unreadable > 0 {
            let _ = write!(text, "\n[{} folders could not be read.]", self.unreadable);
        }
        let mut data =
            json!({ "path": name, "pattern": pattern, "total": self.total, "entries": entries });
        if more > 0 {
            data["truncated"] = true.into();
        }
        Envelope::success(text).with_data(data)
    }
}

#[cfg(test)]
mod tests;
