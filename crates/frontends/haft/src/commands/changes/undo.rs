//! `haft undo` and `haft redo`: revert file changes of a conversation, and apply reverted changes
//! again.

use std::fmt::Write as _;

use haft_changes::versions::FileVersion;
use haft_changes::{Mode, Report, ReversedPath, Target, UndoError};
use haft_messages::CallHeadline;
use haft_types::{Message, MessageId, Role};
use serde_json::{Value, json};

use super::{ConversationChanges, call_to_json};
use crate::commands::changes::{ChangeOptions, RedoArgs, UndoArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

/// The direction of a reversal, which selects the report's wording.
#[derive(Clone, Copy)]
pub(crate) enum UndoDirection {
    Undo,
    Redo,
}

/// Undoes the last change, or redoes the most recently undone change, and returns the report as
/// text. In [`Mode::DryRun`] the report describes what would be done.
pub(crate) fn undo_or_redo_last(
    opened: &ConversationChanges,
    direction: UndoDirection,
    mode: Mode,
) -> Result<String, UndoError> {
    let report = match direction {
        UndoDirection::Undo => opened.record.undo(&Target::LastCall, None, mode),
        UndoDirection::Redo => opened.record.redo(mode),
    };
    Ok(report_to_text(opened, &report?, mode, direction))
}

/// The effect of undoing the last change, or of redoing the most recently undone change.
pub(crate) struct UndoPreview {
    /// The change, such as `Edit src/main.rs`.
    pub(crate) headline: String,
    /// The effect on each file, one per line.
    pub(crate) files: String,
}

/// Returns what [`undo_or_redo_last`] would do.
pub(crate) fn preview_undo_or_redo(
    opened: &ConversationChanges,
    direction: UndoDirection,
) -> Result<UndoPreview, UndoError> {
    let report = match direction {
        UndoDirection::Undo => opened.record.undo(&Target::LastCall, None, Mode::DryRun),
        UndoDirection::Redo => opened.record.redo(Mode::DryRun),
    }?;
    let mut verbs: Vec<_> = report
        .calls
        .iter()
        .map(|call| CallHeadline::new(&call.tool, &Value::Null).verb)
        .collect();
    verbs.dedup();
    let paths: Vec<_> = report
        .paths
        .iter()
        .map(|taken| opened.display_path(&taken.path))
        .collect();
    let text = report_to_text(opened, &report, Mode::DryRun, direction);
    let files = text.split_once('\n').map_or("", |(_, files)| files);
    Ok(UndoPreview {
        headline: format!("{} {}", verbs.join(", "), paths.join(", ")),
        files: files.to_owned(),
    })
}

pub(super) async fn undo(haft: &Haft, args: &UndoArgs) -> anyhow::Result<ProcessExit> {
    let opened =
        ConversationChanges::find(haft, args.conversation.as_deref(), &args.how.common).await?;
    let target = match (&args.call, &args.message, args.session) {
        (Some(id), _, _) => Target::Call(id.clone()),
        (None, Some(id), _) => {
            let messages = opened.store.messages(&opened.conversation.id).await?;
            Target::Messages(find_replies(&messages, id)?)
        }
        (None, None, true) => Target::Session,
        (None, None, false) => Target::LastCall,
    };
    let report = opened.record.undo(&target, None, undo_mode(&args.how));
    print_report(&opened, report, &args.how, UndoDirection::Undo)
}

pub(super) async fn redo(haft: &Haft, args: &RedoArgs) -> anyhow::Result<ProcessExit> {
    let opened =
        ConversationChanges::find(haft, args.conversation.as_deref(), &args.how.common).await?;
    let report = opened.record.redo(undo_mode(&args.how));
    print_report(&opened, report, &args.how, UndoDirection::Redo)
}

pub(super) fn undo_mode(how: &ChangeOptions) -> Mode {
    if how.dry_run {
        Mode::DryRun
    } else {
        Mode::Apply
    }
}

/// Returns the ids of the model's messages to undo: the message `id` itself if the model wrote it,
/// or all replies to it up to the next prompt if the user wrote it.
fn find_replies(messages: &[Message], id: &str) -> anyhow::Result<Vec<MessageId>> {
    let matches_id = |message: &Message| {
        message.message_id.to_string() == id || message.message_id.short_id().to_string() == id
    };
    let unknown = || usage_error(text!("changes-unknown-message", id));
    let at = messages.iter().position(matches_id).ok_or_else(unknown)?;
    let reply = |message: &Message| (message.role == Role::Assistant).then_some(message.message_id);
    match messages[at].role {
        Role::Assistant => Ok(vec![messages[at].message_id]),
        Role::User => {
            let rest = messages
                .iter()
                .skip(at + 1)
                .take_while(|message| !message.opens_round());
            Ok(rest.filter_map(reply).collect())
        }
        Role::System | Role::Tool | Role::Summary => {
            Err(usage_error(text!("changes-wrong-message", id)))
        }
    }
}

fn print_report(
    opened: &ConversationChanges,
    report: Result<Report, UndoError>,
    how: &ChangeOptions,
    direction: UndoDirection,
) -> anyhow::Result<ProcessExit> {
    let report = match report {
        Ok(report) => report,
        Err(error @ (UndoError::NothingToUndo | UndoError::NothingToRedo)) => {
            if how.json {
                output::print_json(&report_to_json(opened, &Report::default(), how))?;
            } else {
                output::print_to_stderr(&format!("haft: {}", output::localize_text(error)));
            }
            return Ok(ProcessExit::Completed);
        }
        Err(
            error @ (UndoError::UnknownCall(_)
            | UndoError::AlreadyUndone(_)
            | UndoError::UnchangedFile(_)),
        ) => {
            return Err(usage_error(output::hints::explain_error(&error)));
        }
        Err(error @ UndoError::Versions(_)) => return Err(error.into()),
    };
    if how.json {
        output::print_json(&report_to_json(opened, &report, how))?;
    } else {
        output::print_text(&report_to_text(opened, &report, undo_mode(how), direction))?;
    }
    // Skipped files need a decision of the user.
    Ok(if report.is_clean() {
        ProcessExit::Completed
    } else {
        ProcessExit::Waiting
    })
}

pub(super) fn report_to_json(
    opened: &ConversationChanges,
    report: &Report,
    how: &ChangeOptions,
) -> Value {
    let files = report.paths.iter().map(|taken| {
        let mut file =
            json!({ "path": opened.display_path(&taken.path), "action": action_name(taken) });
        if let Err(conflict) = &taken.after {
            file["reason"] = conflict.to_string().into();
        }
        file
    });
    json!({
        "conversation_id": opened.conversation.id,
        "dry_run": how.dry_run,
        "calls": report.calls.iter().map(call_to_json).collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
    })
}

pub(super) fn report_to_text(
    opened: &ConversationChanges,
    report: &Report,
    mode: Mode,
    direction: UndoDirection,
) -> String {
    let calls: Vec<_> = report
        .calls
        .iter()
        .map(|call| format!("`{}` ({})", call.tool, call.call_id))
        .collect();
    let calls = output::join_names(&calls);
    let mut text = match (direction, mode) {
        (UndoDirection::Undo, Mode::Apply) => text!("changes-did-undo", calls),
        (UndoDirection::Undo, Mode::DryRun) => text!("changes-would-undo", calls),
        (UndoDirection::Redo, Mode::Apply) => text!("changes-did-redo", calls),
        (UndoDirection::Redo, Mode::DryRun) => text!("changes-would-redo", calls),
    };
    text.push('\n');
    for taken in &report.paths {
        // Writing to a String cannot fail.
        let done = action_label(taken);
        let blank = " ".repeat(ACTION_COLUMNS.saturating_sub(haft_text::display_width(done)));
        let _ = write!(
            text,
            "  {done}{blank}  {}",
            opened.display_path(&taken.path)
        );
        let _ = match &taken.after {
            Ok(_) => writeln!(text),
            Err(conflict) => writeln!(text, ": {}", output::localize_text(conflict)),
        };
    }
    if !report.is_clean() {
        text.extend([text!("changes-conflicts"), "\n"]);
    }
    text
}

/// The width of the action column, in terminal columns.
const ACTION_COLUMNS: usize = 9;

fn action_label(taken: &ReversedPath) -> &'static str {
    match action_name(taken) {
        "left" => text!("changes-left"),
        "unchanged" => text!("changes-unchanged"),
        "removed" => text!("changes-removed"),
        "recreated" => text!("changes-recreated"),
        _ => text!("changes-restored"),
    }
}

/// Returns the name of the action in the JSON output.
fn action_name(taken: &ReversedPath) -> &'static str {
    match (&taken.before, &taken.after) {
        (_, Err(_)) => "left",
        (before, Ok(after)) if before == after => "unchanged",
        (_, Ok(FileVersion::Absent)) => "removed",
        (FileVersion::Absent, Ok(_)) => "recreated",
        (_, Ok(_)) => "restored",
    }
}
