//! Hints that name a command of haft, added to results, notices and errors when this front end
//! prints them.
//!
//! Libraries mention no commands, because other front ends do not have them.

use std::error::Error;

use haft_agent::SetupError;
use haft_changes::UndoError;
use haft_context::EditError;
use haft_engine::OpenError;
use haft_project::library::LibraryError;
use haft_store::{Locked, StoreError};

/// Returns the hint for `code`, the code of a turn's outcome or of a notice.
pub(crate) fn find_code_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "cancelled" => text!("hints-cancelled"),
        "question" => text!("hints-question"),
        "plan" => {
            text!("hints-plan")
        }
        "goal_not_reached" => text!("hints-goal"),
        "untrusted" => text!("hints-untrusted"),
        _ => return None,
    })
}

/// Translates a message, and adds the hint for its code.
pub(crate) fn add_hint(message: &str, code: &str) -> String {
    let message = haft_tui::translate_message(code, message);
    match find_code_hint(code) {
        Some(hint) => text!(
            "hints-after",
            message = message.trim_end_matches(['.', '。']),
            hint
        ),
        None => message,
    }
}

/// Formats an error on one line, with its hint.
pub(crate) fn explain_error(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let text = haft_messages::translate_error(&text);
    match find_error_hint(error) {
        Some(hint) => text!("hints-error", error = text, hint),
        None => text.into_owned(),
    }
}

/// Returns a hint that names a command for resolving the error, or `None` if no command helps.
pub(crate) fn find_error_hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let inner = match error.downcast_ref() {
        Some(SetupError::Open(open)) => Some(open),
        Some(_) | None => error.downcast_ref(),
    };
    match inner {
        Some(OpenError::NothingToContinue) => return Some(text!("hints-start")),
        Some(OpenError::Store(StoreError::LockTimeout {
            what: Locked::Conversation(_),
            ..
        })) => {
            return Some(text!("hints-fork"));
        }
        Some(OpenError::Unknown(_)) => return Some(text!("hints-conversations")),
        Some(_) | None => {}
    }
    if let Some(SetupError::UnknownAgent { .. }) = error.downcast_ref() {
        return Some(text!("hints-agents"));
    }
    if let Some(UndoError::UnknownCall(_)) = error.downcast_ref() {
        return Some(text!("hints-changes"));
    }
    if let Some(EditError::Unknown(_)) = error.downcast_ref() {
        return Some(text!("hints-edits"));
    }
    if let Some(LibraryError::Unknown(_)) = error.downcast_ref() {
        return Some(text!("hints-libraries"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_hint_appends_the_hint_to_its_sentence() {
        assert_eq!(
            add_hint("Cancelled.", "cancelled"),
            "Cancelled. `haft run --continue` resumes it."
        );
        assert_eq!(
            add_hint("/a is not trusted", "untrusted"),
            "/a is not trusted. `haft trust` trusts it."
        );
        assert_eq!(add_hint("Done.", "answered"), "Done.");
    }

    #[test]
    fn explain_error_adds_the_hint_of_an_inner_error() {
        let error = SetupError::Open(OpenError::Unknown("x".into()));
        assert_eq!(
            explain_error(&error),
            "there is no conversation `x`; `haft conversations list --all` shows them"
        );
    }
}
