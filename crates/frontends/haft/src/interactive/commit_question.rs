//! `/commit`: shows the message that the model proposes, and asks before anything is committed.
//!
//! The message comes from `haft commit --dry-run`, so that it can be stopped like any other command
//! beside the conversation.

use std::io;
use std::process::Output;

use haft_text::sanitize_bytes;
use haft_tui::{Operation, PickerAction, PickerList, PickerRow, SideAction, UiHandle, UiMessage};
use haft_types::{Cost, Usage};
use serde::Deserialize;

use super::side_actions::describe_output;

const COMMIT: &str = "commit";
const WITH_MESSAGE: &str = "--with-message=";

/// The output of `haft commit --dry-run --json`.
#[derive(Deserialize)]
struct Proposal {
    message: String,
    /// True if all changes of files that git knows are committed, not only what is staged.
    all: bool,
    usage: Usage,
    cost: Option<Cost>,
}

/// Returns true if these arguments of haft ask a model for a commit message.
pub(super) fn asks_first(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|first| first == COMMIT)
        && !has_message(arguments)
        && !has_any(arguments, &["--help", "-h"])
}

fn has_message(arguments: &[String]) -> bool {
    let is_message = |argument: &String| argument.starts_with(WITH_MESSAGE);
    arguments.iter().any(is_message)
}

fn has_any(arguments: &[String], names: &[&str]) -> bool {
    arguments
        .iter()
        .any(|argument| names.contains(&argument.as_str()))
}

/// Returns true if the arguments themselves say that nobody is to be asked.
fn commits_unasked(arguments: &[String]) -> bool {
    has_any(arguments, &["--yes", "-y"])
}

/// Returns the line that is shown while haft runs with `arguments`: without the message, which was
/// shown before.
pub(super) fn shown_line(arguments: &[String]) -> String {
    let shown: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with(WITH_MESSAGE))
        .map(String::as_str)
        .collect();
    format!("haft {}", shown.join(" "))
}

/// Returns the arguments for a `haft commit` that prints the proposed message and does not commit
/// (unless they contain `--yes`).
pub(super) fn proposal_arguments(arguments: &[String]) -> Vec<String> {
    let mut proposal = arguments.to_vec();
    proposal.insert(1, "--json".to_owned());
    if !commits_unasked(arguments) && !has_any(arguments, &["--dry-run"]) {
        proposal.insert(1, "--dry-run".to_owned());
    }
    proposal
}

/// Reports the cost of a proposal, and asks the user whether to commit with its message. Returns
/// the text to show: the message and its cost, or the failure.
pub(super) fn ask_to_commit(
    output: &io::Result<Output>,
    arguments: &[String],
    ui: &UiHandle,
) -> String {
    let proposal = output.as_ref().ok().and_then(|output| {
        let proposal: Option<Proposal> = serde_json::from_slice(&output.stdout).ok();
        proposal.zip(Some(sanitize_bytes(&output.stderr)))
    });
    let Some((proposal, notes)) = proposal else {
        return describe_output(output);
    };
    let Proposal {
        message,
        all,
        usage,
        cost,
    } = proposal;
    ui.send_message(UiMessage::Spent { usage, cost });
    let text = format!("{}\n\n{}", message.trim_end(), notes.trim_end());
    if commits_unasked(arguments) || has_any(arguments, &["--dry-run"]) {
        return text;
    }
    let all = if all { vec!["--all"] } else { Vec::new() };
    let commit = [COMMIT]
        .into_iter()
        .chain(all)
        .map(str::to_owned)
        .chain([format!("{WITH_MESSAGE}{message}")])
        .collect();
    let commit = Operation::Side(SideAction::Haft(commit));
    let row = |text: &str, then| PickerRow {
        text: text.to_owned(),
        about: String::new(),
        then,
    };
    ui.send_message(UiMessage::Pick(PickerList {
        title: text!("interactive-commit-title").to_owned(),
        rows: vec![
            row(text!("interactive-commit-yes"), PickerAction::Do(commit)),
            row(text!("interactive-commit-no"), PickerAction::Leave),
        ],
        is_question: true,
        ..PickerList::default()
    }));
    text
}
