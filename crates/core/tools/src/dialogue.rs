//! Tools through which the model communicates with the user: a question, a plan, a report. The
//! engine acts on the [`TurnFlow`](haft_tool::TurnFlow) that they return.

pub(crate) mod ask_followup_question;
pub(crate) mod attempt_completion;
pub(crate) mod plan_mode_respond;
