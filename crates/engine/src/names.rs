//! The tools the engine itself must know by name, because they steer the turn.

/// Asks the user.
pub(crate) const ASK: &str = "ask_followup_question";
/// Reports the task as done.
pub(crate) const COMPLETE: &str = "attempt_completion";
