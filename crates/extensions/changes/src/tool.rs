//! The tools of this crate: `undo_edit`, which undoes changes of earlier calls, and `apply_patch`.

use std::fmt::Write as _;

use haft_tool::{
    Access, Availability, FileChange, FileUse, Group, Intent, Manual, PortError, Tool,
    ToolDefinition, ToolOutput, UndoOutcome, UndoReport, UndoTarget, UndoneFile,
};
use haft_tools::{FileScope, OnFiles, ToolFailure, visible_line};
use haft_types::{ChangeKind, Envelope, ToolError, ToolStatus, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::patch::parse_patch;

const NAME: &str = "undo_edit";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Files)
};

/// The maximum number of diff lines shown per file.
const MAX_DIFF_LINES: usize = 60;
/// The maximum number of bytes shown per line of a diff.
const MAX_DIFF_LINE_BYTES: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UndoEditParameters {
    /// Take back only the last change of this file. Not with `call_id`.
    path: Option<String>,
    /// Take back the changes of the call with this id.
    call_id: Option<String>,
}

/// Returns the tool `apply_patch`, which changes files as a patch describes.
pub fn apply_patch() -> impl Tool {
    haft_tools::apply_patch(parse_patch)
}

/// Returns the tool `undo_edit`, which undoes the changes of earlier calls.
pub fn undo_edit() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("tool/prompt"),
        &MANUAL,
        Access::Write,
        parse_undo_intent,
    )
    .on_files(undo_changes)
}

fn parse_undo_intent(arguments: &Value) -> Intent {
    match arguments.get("path").and_then(Value::as_str) {
        Some(path) => Intent::Files(vec![FileUse::Write(path.to_owned())]),
        // The changed files are listed only in the record.
        None => Intent::Unknown,
    }
}

fn undo_changes(
    scope: &FileScope,
    parameters: &UndoEditParameters,
) -> Result<ToolOutput, ToolFailure> {
    let target = match parameters {
        UndoEditParameters {
            path: None,
            call_id: None,
        } => UndoTarget::Last,
        UndoEditParameters {
            path: None,
            call_id: Some(id),
        } => UndoTarget::Call(id.clone()),
        UndoEditParameters {
            path: Some(path),
            call_id: None,
        } => UndoTarget::File(scope.resolve_path(path)?.0),
        UndoEditParameters {
            path: Some(_),
            call_id: Some(_),
        } => {
            return Err(ToolFailure::new(
                "invalid_arguments",
                "`path` and `call_id` are both given; give only one of them",
            ));
        }
    };
    let report = scope
        .change_undo
        .undo(&scope.call_id, &target)
        .map_err(|error| nothing_to_undo_error(&target, error))?;
    Ok(format_report(scope, &report))
}

fn nothing_to_undo_error(target: &UndoTarget, error: PortError) -> ToolFailure {
    let PortError::Unknown { .. } = error else {
        return error.into();
    };
    let message = match target {
        UndoTarget::Last => {
            "there is nothing to take back: no call of this conversation changed files that were not taken back already"
                .to_owned()
        }
        UndoTarget::Call(id) => {
            format!(
                "call `{id}` changed no files, or they were taken back already; leave `call_id` out to take back the last call that did"
            )
        }
        UndoTarget::File(path) => {
            format!("no change of `{}` in this conversation is left to take back", path.display())
        }
    };
    ToolFailure::new("nothing_to_undo", message)
}

fn format_report(scope: &FileScope, report: &UndoReport) -> ToolOutput {
    let tools: Vec<_> = report
        .tools
        .iter()
        .map(|tool| format!("`{tool}`"))
        .collect();
    let mut text = format!("Changes of {}:", tools.join(", "));
    let mut diffs = String::new();
    let mut changes = Vec::new();
    let mut seen = Vec::new();
    let mut files = Vec::new();
    for file in &report.files {
        let name = scope.display_path(&file.path);
        let (word, reason) = describe_outcome(&file.outcome);
        // Writing to a String cannot fail.
        let _ = match reason {
            Some(reason) => write!(text, "\n- {word} `{name}`: {reason}"),
            None => write!(text, "\n- {word} `{name}`"),
        };
        files.push(json!({ "path": name, "outcome": word, "reason": reason }));
        changes.extend(to_file_change(file));
        let told_whole = append_diff(&mut diffs, &name, file);
        // A file that the model had read before the call counts as read again if the diff is
        // complete. Otherwise the model must read the file before editing it.
        if let Some(state) = file
            .state
            .filter(|_| told_whole && scope.reads.last_seen(&file.path).is_some())
        {
            seen.push(scope.record_seen(&file.path, state)["file"].take());
        }
    }
    text.push_str(&diffs);
    let mut envelope =
        Envelope::success(text).with_data(json!({ "tools": report.tools, "files": files }));
    envelope.context = json!({ "files": seen });
    let left = report
        .files
        .iter()
        .filter(|file| matches!(file.outcome, UndoOutcome::Skipped(_)))
        .count();
    if left > 0 && left == report.files.len() {
        envelope.status = ToolStatus::Error;
        let message = "nothing was taken back: the files are not as the call left them".to_owned();
        envelope.error = Some(ToolError {
            code: "conflict".to_owned(),
            message,
        });
    } else if left > 0 {
        envelope.status = ToolStatus::Partial;
    }
    ToolOutput {
        changes,
        ..envelope.into()
    }
}

/// Returns the word that names an undo outcome, and, if the file was skipped, the reason.
fn describe_outcome(outcome: &UndoOutcome) -> (&'static str, Option<&str>) {
    match outcome {
        UndoOutcome::Restored => ("restored", None),
        UndoOutcome::Recreated => ("recreated", None),
        UndoOutcome::Removed => ("removed", None),
        UndoOutcome::Unchanged => ("unchanged", None),
        UndoOutcome::Skipped(reason) => ("left as it is", Some(reason)),
    }
}

fn to_file_change(file: &UndoneFile) -> Option<FileChange> {
    let kind = match file.outcome {
        UndoOutcome::Restored => ChangeKind::Modified,
        UndoOutcome::Recreated => ChangeKind::Added,
        UndoOutcome::Removed => ChangeKind::Deleted,
        UndoOutcome::Unchanged | UndoOutcome::Skipped(_) => return None,
    };
    Some(FileChange {
        path: file.path.clone(),
        kind,
    })
}

/// Appends the diff of a restored file to `text`. Returns true if the diff is complete or the file
/// is unchanged.
fn append_diff(text: &mut String, name: &str, file: &UndoneFile) -> bool {
    match file.outcome {
        UndoOutcome::Restored => {}
        UndoOutcome::Unchanged => return true,
        UndoOutcome::Recreated | UndoOutcome::Removed | UndoOutcome::Skipped(_) => return false,
    }
    // The first two lines are the `---` and `+++` header.
    let lines: Vec<_> = file.diff.lines().skip(2).collect();
    let whole =
        lines.len() <= MAX_DIFF_LINES && lines.iter().all(|line| line.len() <= MAX_DIFF_LINE_BYTES);
    if !lines.is_empty() {
        let _ = write!(text, "\n\n`{name}`, with what was taken back:");
    }
    for line in lines.iter().take(MAX_DIFF_LINES) {
        let _ = write!(text, "\n{}", truncate_line(&visible_line(line)));
    }
    if !whole {
        let _ = write!(
            text,
            "\n[The difference is longer. Read `{name}` again before you edit it.]"
        );
    }
    whole
}

/// Truncates a line of a diff to [`MAX_DIFF_LINE_BYTES`].
fn truncate_line(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_DIFF_LINE_BYTES))
        .unwrap_or(line)
}
