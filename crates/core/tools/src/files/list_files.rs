//! `list_files`: lists the content of a folder, flat or recursively.

use std::fmt::Write as _;
use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

use crate::files::disk::DiskError;
use crate::files::walk;
use crate::files::walk::GitFolder;
use crate::on_files::OnFiles;
use crate::prelude::*;
use crate::scope::FileScope;
use crate::{paths, visible};

const NAME: &str = "list_files";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "LS",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFilesParameters {
    /// The folder; `.` is the working directory.
    path: String,
    /// Whether to list everything below it too; default false.
    recursive: Option<bool>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("list_files/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .on_files(list_folder)
}

fn list_folder(scope: &FileScope, parameters: &ListFilesParameters) -> CallResult {
    let folder = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &folder);
    if !folder.is_dir() {
        return Err(if folder.exists() {
            let message = format!("`{name}` is a file, not a folder; read it to see its content");
            ToolFailure::new("not_a_folder", message)
        } else {
            DiskError::NotFound { name }.into()
        });
    }
    let recursive = parameters.recursive.unwrap_or(false);
    let mut listing = FileListing::default();
    for found in build_walk(scope, &folder, recursive).build() {
        if scope.cancel.is_cancelled() {
            return Err(ToolFailure::new(
                "cancelled",
                format!("listing `{name}` was cancelled"),
            ));
        }
        match found {
            Ok(entry) if entry.depth() == 0 => {}
            Ok(entry) => listing.add_entry(scope, &entry),
            // An unreadable folder further down must not hide the rest.
            Err(error) if error.depth().is_some_and(|depth| depth > 0) => listing.unreadable += 1,
            Err(error) => {
                return Err(ToolFailure::new(
                    "io",
                    format!("cannot list `{name}`: {error}"),
                ));
            }
        }
    }
    Ok(listing.into_envelope(&name, recursive).into())
}

fn build_walk(scope: &FileScope, folder: &Path, recursive: bool) -> WalkBuilder {
    let git = if recursive {
        GitFolder::Skipped
    } else {
        GitFolder::Entered
    };
    let mut builder = walk::build_walk(scope, folder, git);
    builder.hidden(false).sort_by_file_name(Ord::cmp);
    if !recursive {
        builder.standard_filters(false).max_depth(Some(1));
    }
    builder
}

/// The entries of the folder that fit into the output, and the total number of entries.
#[derive(Default)]
struct FileListing {
    entries: Vec<String>,
    bytes: usize,
    files: usize,
    folders: usize,
    unreadable: usize,
    full: bool,
}

impl FileListing {
    fn add_entry(&mut self, scope: &FileScope, entry: &DirEntry) {
        let kind = entry.file_type();
        let mut line =
            visible::reveal_line(&paths::display_path(&scope.workspace, entry.path())).into_owned();
        if kind.is_some_and(|kind| kind.is_dir()) {
            self.folders += 1;
            line.push('/');
        } else {
            self.files += 1;
            if kind.is_some_and(|kind| kind.is_symlink())
                && let Ok(target) = entry.path().read_link()
            {
                let _ = write!(
                    line,
                    " -> {}",
                    visible::reveal_line(&target.display().to_string())
                );
            }
        }
        self.full |= self.entries.len() >= scope.limits.lines
            || self.bytes + line.len() + 1 > scope.limits.bytes;
        if !self.full {
            self.bytes += line.len() + 1;
            self.entries.push(line);
        }
    }

    fn into_envelope(self, name: &str, recursive: bool) -> Envelope {
        let total = self.files + self.folders;
        let mut text = self.entries.join("\n");
        if total == 0 {
            text = format!("`{name}` is empty.");
        }
        if self.full {
            let more = total - self.entries.len();
            let _ = write!(
                text,
                "\n[{more} more of {total} entries in `{name}`. List a folder further down to see them.]"
            );
        }
        if self.unreadable > 0 {
            let _ = write!(text, "\n[{} folders could not be read.]", self.unreadable);
        }
        let mut data = json!({
            "path": name, "recursive": recursive, "total": total, "files": self.files, "folders": self.folders,
            "entries": self.entries,
        });
        if self.full {
            data["truncated"] = true.into();
        }
        Envelope::success(text).with_data(data)
    }
}

/// Removes the argument `ignore`: the project's ignore files determine which files are omitted.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    remove_arguments(&mut arguments, &["ignore"]);
    arguments
}

#[cfg(test)]
mod tests;
