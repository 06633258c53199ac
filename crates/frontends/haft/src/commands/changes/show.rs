//! `haft changes`: prints the change record of a conversation as a table, as diffs, or as JSON.
//!
//! Invariant: secrets in file contents are masked, and content that is no longer stored is reported
//! as missing, never shown as empty.

use anyhow::Context;
use haft_changes::versions::{FileVersion, StepKind};
use haft_changes::{FileSummary, StepSummary, SummaryKind, unified_diff};
use haft_text::Masker;
use serde_json::{Value, json};

use super::{ConversationChanges, call_to_json};
use crate::commands::changes::ChangesArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn show(haft: &Haft, args: &ChangesArgs) -> anyhow::Result<()> {
    let opened =
        ConversationChanges::find(haft, args.conversation.as_deref(), &args.common).await?;
    let record = opened.record.clone();
    record.finish_interrupted()?;
    let summary = record.summary()?;
    if args.json {
        let files = summary
            .files
            .iter()
            .map(|file| file_to_json(&opened, file, args.content));
        let steps = summary
            .steps
            .iter()
            .map(|step| step_to_json(&opened, step, args.diff));
        return output::print_json(&json!({
            "conversation_id": opened.conversation.id,
            "files": files.collect::<anyhow::Result<Vec<_>>>()?,
            "steps": steps.collect::<anyhow::Result<Vec<_>>>()?,
        }));
    }
    if summary.steps.is_empty() {
        return output::print_text_line(text!("changes-none"));
    }
    if args.net && !summary.files.is_empty() {
        let files = summary.files.iter().map(|file| file_to_text(&opened, file));
        return output::print_text(&files.collect::<anyhow::Result<Vec<_>>>()?.concat());
    }
    if args.diff {
        let steps = summary.steps.iter().map(|step| step_to_text(&opened, step));
        let text = steps.collect::<anyhow::Result<Vec<_>>>()?.join("\n");
        return output::print_text(&text);
    }
    let mut table = TextTable::new(&[
        text!("table-change"),
        text!("table-file"),
        text!("table-lines"),
    ]);
    for file in &summary.files {
        let difference = diff_file(&opened, file)?;
        let lines = difference
            .count_lines()
            .map_or_else(String::new, |(added, removed)| {
                format!("+{added} -{removed}")
            });
        table.add_row(vec![
            output::localize_text(change_kind_name(file)),
            file_label(&opened, file),
            lines,
        ]);
    }
    let mut text = table.to_string();
    if summary.files.is_empty() {
        text = format!("{}\n", text!("changes-all-undone"));
    }
    output::print_text(&text)
}

fn change_kind_name(file: &FileSummary) -> &'static str {
    match file.kind {
        SummaryKind::Added => "added",
        SummaryKind::Modified => "modified",
        SummaryKind::Deleted => "deleted",
        SummaryKind::Moved { .. } => "moved",
    }
}

fn file_label(opened: &ConversationChanges, file: &FileSummary) -> String {
    let name = opened.display_path(&file.path);
    match &file.kind {
        SummaryKind::Moved { from } => format!("{} → {name}", opened.display_path(from)),
        SummaryKind::Added | SummaryKind::Modified | SummaryKind::Deleted => name,
    }
}

/// The difference between two versions of a path.
enum PathDiff {
    /// A unified diff.
    Text(String),
    /// A description, if there is no text to compare.
    Note(String),
}

impl PathDiff {
    /// Returns the numbers of added and removed lines, or `None` for a note.
    fn count_lines(&self) -> Option<(usize, usize)> {
        let Self::Text(diff) = self else { return None };
        // The first two lines are the file headers of the diff.
        let count = |sign: char| {
            diff.lines()
                .skip(2)
                .filter(|line| line.starts_with(sign))
                .count()
        };
        Some((count('+'), count('-')))
    }
}

fn diff_file(opened: &ConversationChanges, file: &FileSummary) -> anyhow::Result<PathDiff> {
    let Some(after) = file.after else {
        return Ok(PathDiff::Note(
            "haft was stopped in the middle of this change".to_owned(),
        ));
    };
    let is_file =
        |version: &FileVersion| matches!(version, FileVersion::File { .. } | FileVersion::Absent);
    if !is_file(&file.before) || !is_file(&after) {
        return Ok(PathDiff::Note(format!(
            "{} → {}",
            describe_version(opened, file.before)?,
            describe_version(opened, after)?
        )));
    }
    let new = opened.display_path(&file.path);
    let old = match &file.kind {
        SummaryKind::Moved { from } => opened.display_path(from),
        SummaryKind::Added | SummaryKind::Modified | SummaryKind::Deleted => new.clone(),
    };
    let side = |version: FileVersion, prefix: &str, name: &str| match version {
        FileVersion::Absent => "/dev/null".to_owned(),
        FileVersion::File { .. }
        | FileVersion::Link { .. }
        | FileVersion::Folder { .. }
        | FileVersion::Unsaved { .. } => {
            format!("{prefix}/{name}")
        }
    };
    let content = |version: FileVersion| -> anyhow::Result<Option<Vec<u8>>> {
        if version == FileVersion::Absent {
            Ok(Some(Vec::new()))
        } else {
            Ok(opened.record.read_content(&version)?)
        }
    };
    let (Some(before), Some(now)) = (content(file.before)?, content(after)?) else {
        return Ok(PathDiff::Note("the content is no longer stored".to_owned()));
    };
    let sides = (side(file.before, "a", &old), side(after, "b", &new));
    let text = unified_diff((&sides.0, &sides.1), &before, &now);
    Ok(text.map_or_else(
        || PathDiff::Note("not text".to_owned()),
        |diff| PathDiff::Text(mask_secrets(&diff)),
    ))
}

/// Masks secrets, because users may pass the output on.
fn mask_secrets(text: &str) -> String {
    Masker::default().mask(text).into_owned()
}

fn describe_version(opened: &ConversationChanges, version: FileVersion) -> anyhow::Result<String> {
    Ok(match version {
        FileVersion::Absent => "nothing".to_owned(),
        FileVersion::File { .. } => "a file".to_owned(),
        FileVersion::Folder { .. } => "a folder".to_owned(),
        FileVersion::Unsaved { size } => format!("something of {size} bytes that was not saved"),
        FileVersion::Link { .. } => match opened.record.read_content(&version)? {
            Some(target) => format!("a link to `{}`", String::from_utf8_lossy(&target)),
            None => "a link".to_owned(),
        },
    })
}

fn step_to_text(opened: &ConversationChanges, step: &StepSummary) -> anyhow::Result<String> {
    let mut text = step_heading(step);
    for file in &step.files {
        text.push_str(&file_to_text(opened, file)?);
    }
    Ok(text)
}

fn file_to_text(opened: &ConversationChanges, file: &FileSummary) -> anyhow::Result<String> {
    let title = format!(
        "{} {}{}",
        output::localize_text(change_kind_name(file)),
        file_label(opened, file),
        mode_change_text(file)
    );
    Ok(match diff_file(opened, file)? {
        PathDiff::Text(diff) => format!("{title}\n{diff}"),
        PathDiff::Note(note) => {
            let note = text!("changes-note", note = output::localize_text(note));
            format!("{title}\n{note}\n")
        }
    })
}

fn step_heading(step: &StepSummary) -> String {
    let who = match (&step.call, step.kind) {
        (Some(call), StepKind::Call) => format!("{} ({})", call.tool, call.call_id),
        (Some(call), StepKind::Undo | StepKind::Redo) => {
            text!(
                "changes-step-undo",
                tool = call.tool,
                call_id = call.call_id
            )
        }
        (None, StepKind::Undo) => text!("changes-undo").to_owned(),
        (None, StepKind::Redo) => text!("changes-redo").to_owned(),
        (None, StepKind::Call) => text!("changes-call").to_owned(),
    };
    let taken_back = if step.taken_back {
        text!("changes-undone")
    } else {
        ""
    };
    format!(
        "== {who}, {}{taken_back}\n",
        step.at.strftime("%Y-%m-%d %H:%M:%S")
    )
}

fn mode_change_text(file: &FileSummary) -> String {
    match (
        file.before.mode(),
        file.after.and_then(|after| after.mode()),
    ) {
        (Some(before), Some(after)) if before != after => {
            text!(
                "changes-mode",
                before = format_args!("{before:o}"),
                after = format_args!("{after:o}")
            )
        }
        _ => String::new(),
    }
}

fn file_to_json(
    opened: &ConversationChanges,
    file: &FileSummary,
    with_content: bool,
) -> anyhow::Result<Value> {
    let mut value = file_header_json(opened, file);
    let (added, removed) = diff_file(opened, file)?.count_lines().unzip();
    value["added"] = added.into();
    value["removed"] = removed.into();
    if with_content {
        let content = match file.after {
            Some(after) => opened.record.read_content(&after)?,
            None => None,
        };
        value["content"] = content
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .map(|text| mask_secrets(&text))
            .into();
    }
    Ok(value)
}

fn file_header_json(opened: &ConversationChanges, file: &FileSummary) -> Value {
    let mut value =
        json!({ "path": opened.display_path(&file.path), "change": change_kind_name(file) });
    if let SummaryKind::Moved { from } = &file.kind {
        value["from"] = opened.display_path(from).into();
    }
    if let (Some(before), Some(after)) = (
        file.before.mode(),
        file.after.and_then(|after| after.mode()),
    ) && before != after
    {
        value["mode"] = json!([format!("{before:o}"), format!("{after:o}")]);
    }
    value
}

fn step_to_json(
    opened: &ConversationChanges,
    step: &StepSummary,
    with_diff: bool,
) -> anyhow::Result<Value> {
    let kind = match step.kind {
        StepKind::Call => "call",
        StepKind::Undo => "undo",
        StepKind::Redo => "redo",
    };
    let files = step.files.iter().map(|file| {
        let mut value = file_header_json(opened, file);
        if with_diff {
            match diff_file(opened, file)? {
                PathDiff::Text(diff) => value["diff"] = diff.into(),
                PathDiff::Note(note) => value["note"] = note.into(),
            }
        }
        Ok(value)
    });
    let mut value = step.call.as_ref().map_or_else(|| json!({}), call_to_json);
    value["kind"] = kind.into();
    value["at"] = serde_json::to_value(step.at).context("a time has no JSON form")?;
    value["taken_back"] = step.taken_back.into();
    value["files"] = files.collect::<anyhow::Result<Vec<_>>>()?.into();
    Ok(value)
}
