//! Hints that name a command of haft, added to results, notices and errors where this front end prints them.
//!
//! The libraries know no commands: another front end has other ways to do the same.

use std::error::Error;

use haft_agent::SetupError;
use haft_changes::UndoError;
use haft_context::EditError;
use haft_engine::OpenError;
use haft_project::library::LibraryError;

/// What to run after a turn that ended with this code, or after a notice of it.
pub(crate) fn after(code: &str) -> Option<&'static str> {
    Some(match code {
        "cancelled" => "`haft run --continue` resumes it.",
        "question" => "Answer it with `haft run --continue \"…\"`.",
        "plan" => {
            "`haft run --continue --permission-mode accept-edits \"go ahead\"` carries it out; \
             `haft run --continue --permission-mode plan \"…\"` changes it."
        }
        "goal_not_reached" => "`haft run --continue --goal \"…\"` continues with your answer.",
        "untrusted" => "`haft trust` trusts it.",
        _ => return None,
    })
}

/// A message with the hint for its code.
pub(crate) fn hinted(message: &str, code: &str) -> String {
    match after(code) {
        Some(hint) if message.ends_with('.') => format!("{message} {hint}"),
        Some(hint) => format!("{message}. {hint}"),
        None => message.to_owned(),
    }
}

/// An error on one line, with the hint for it.
pub(crate) fn explained(error: &(dyn Error + 'static)) -> String {
    match for_error(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Which command helps with an error.
pub(crate) fn for_error(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let inner = match error.downcast_ref() {
        Some(SetupError::Open(open)) => Some(open),
        Some(_) | None => error.downcast_ref(),
    };
    match inner {
        Some(OpenError::NothingToContinue) => return Some("start one with `haft run \"…\"`"),
        Some(OpenError::Unknown(_)) => return Some("`haft conversations list --all` shows them"),
        Some(_) | None => {}
    }
    if let Some(SetupError::UnknownAgent { .. }) = error.downcast_ref() {
        return Some("`haft agents list` shows them");
    }
    if let Some(UndoError::UnknownCall(_)) = error.downcast_ref() {
        return Some("`haft changes` lists those that did");
    }
    if let Some(EditError::Unknown(_)) = error.downcast_ref() {
        return Some("`haft context edit list` shows them");
    }
    if let Some(LibraryError::Unknown(_)) = error.downcast_ref() {
        return Some("`haft lib refresh` fetches the newest list");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_follows_its_sentence() {
        assert_eq!(hinted("Cancelled.", "cancelled"), "Cancelled. `haft run --continue` resumes it.");
        assert_eq!(hinted("/a is not trusted", "untrusted"), "/a is not trusted. `haft trust` trusts it.");
        assert_eq!(hinted("Done.", "answered"), "Done.");
    }

    #[test]
    fn an_error_inside_another_has_its_hint() {
        let error = SetupError::Open(OpenError::Unknown("x".into()));
        assert_eq!(explained(&error), "there is no conversation `x`; `haft conversations list --all` shows them");
    }
}
