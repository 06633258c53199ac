//! Tools for the knowledge of the conversation and the project (TODO list, notes, useful
//! information, messages, modules, skills), the stored values on which they work, and code shared
//! by the tools for notes, useful information and messages.
//!
//! Stored values have a copy in memory ([`kept_document`]), so that building a request reads no
//! database.

pub(crate) mod ac_mod_list;
pub(crate) mod ac_mod_read;
pub(crate) mod ac_mod_write;
pub(crate) mod conversation_message_ids_read;
pub(crate) mod conversation_message_ids_write;
pub(crate) mod count_tokens;
pub(crate) mod kept_document;
pub(crate) mod model_tokens;
pub(crate) mod module_documents;
pub(crate) mod note_add;
pub(crate) mod note_delete;
pub(crate) mod note_query;
pub(crate) mod note_update;
pub(crate) mod notes;
pub(crate) mod recall;
pub(crate) mod todo;
pub(crate) mod todo_read;
pub(crate) mod todo_write;
pub(crate) mod transcript;
pub(crate) mod use_skill;
pub(crate) mod useful;
pub(crate) mod useful_info_add;
pub(crate) mod useful_info_delete;
pub(crate) mod useful_info_list;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use haft_tool::{PortError, ToolContext, Workspace};

use crate::failure::{Coded, ToolFailure};
use crate::{paths, visible};

/// The maximum length of a note or description, in characters. These texts are sent with many
/// requests.
const MAX_NOTE_CHARS: usize = 2_000;

impl Coded for PortError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "not_found",
            Self::Store(_) => "store",
        }
    }
}

/// Returns a value that the session shares with its tools, such as the TODO list.
pub(crate) fn get_session_value<T: Any + Send + Sync>(
    context: &ToolContext,
) -> Result<Arc<T>, PortError> {
    let nothing = || PortError::Store("there is nothing here that could keep it".to_owned());
    context.state.get().ok_or_else(nothing)
}

/// Converts an error of a port to a failure. Appends `hint` if the error reports an unknown id.
pub(crate) fn failure_from_port(error: &PortError, hint: &str) -> ToolFailure {
    let message = match error {
        PortError::Unknown { .. } if hint.is_empty() => error.to_string(),
        PortError::Unknown { .. } => format!("{error}; {hint}"),
        PortError::Store(_) => format!("nothing was changed: {error}"),
    };
    ToolFailure::new(error.code(), message)
}

/// Trims the text of a note or description. Fails if it is empty or too long.
pub(crate) fn check_note_text<'a>(parameter: &str, text: &'a str) -> Result<&'a str, ToolFailure> {
    let text = text.trim();
    let characters = text.chars().count();
    if text.is_empty() {
        Err(ToolFailure::new(
            "invalid_arguments",
            format!("`{parameter}` is empty; say what is worth knowing"),
        ))
    } else if characters > MAX_NOTE_CHARS {
        let message = format!(
            "`{parameter}` has {characters} characters; at most {MAX_NOTE_CHARS} are kept, say it shorter"
        );
        Err(ToolFailure::new("invalid_arguments", message))
    } else {
        Ok(text)
    }
}

/// Resolves a folder or file of the project to the path under which its notes are stored.
pub(crate) fn resolve_note_path(workspace: &Workspace, given: &str) -> Result<String, ToolFailure> {
    let path = paths::resolve_path(workspace, given)?;
    let inside = project_relative_path(workspace, &path).ok_or_else(|| {
        let message = format!(
            "`{given}` is not part of the project; notes are kept for its own folders and files"
        );
        ToolFailure::new("outside_workspace", message)
    })?;
    match path.symlink_metadata() {
        Ok(_) => Ok(inside),
        Err(error) => {
            let message =
                format!("cannot look at `{given}`: {error}; name a folder or file that exists");
            Err(ToolFailure::new("not_found", message))
        }
    }
}

/// Converts a resolved path to the form in which notes store paths: relative to the project.
/// Returns `None` if the path is outside the project.
pub(crate) fn project_relative_path(workspace: &Workspace, path: &Path) -> Option<String> {
    let relative = path.strip_prefix(&workspace.root).ok()?;
    Some(if relative.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        relative.display().to_string()
    })
}

/// Joins the lines of a text into one line, and makes control characters visible.
pub(crate) fn to_one_line(text: &str) -> String {
    let parts: Vec<_> = text.split_whitespace().collect();
    visible::reveal_line(&parts.join(" ")).into_owned()
}
