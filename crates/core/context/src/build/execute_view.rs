//! The execute view: the whole request in four messages, so that a bare "continue" still makes
//! sense.
//!
//! ```text
//! 0 system      rules, documents, a short table of tools
//! 1 assistant   the dialogue, one line per utterance, in the order it was said; then one line per folded step
//! 2 assistant   this round's numbered thoughts, calls and observations
//! 3 system      the state of execution, including reminders
//! ```
//!
//! On an API that does not accept this shape, messages 1 to 3 are user messages in `<dialogue>`,
//! `<window>` and `<state>`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{
    Api, Entry, Layer, Message, Part, Request, Role, Segment, ToolCall, ToolResult, ToolSet,
};

use crate::build::layers::Layers;
use crate::build::rounds::{Timeline, TimelineItem, is_from_user};
use crate::error::IntegrityError;
use crate::memo::EntryMaker;
use crate::reduce::compress::status_name;
use crate::reduce::superseded::CallSubject;
use crate::snapshot::{ExecutionState, PlanStep, Snapshot};

/// The part of the older conversation that the dialogue shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folding {
    /// The dialogue shows the newest utterances, and one line for each older step.
    Digest,
    /// The dialogue shows only the newest utterances.
    Utterances,
    /// The dialogue shows only the user's first input and the inputs of the running round.
    Inputs,
}

/// The texts of the three messages after the system message.
struct ViewTexts {
    dialogue: String,
    window: String,
    state: String,
}

/// Removes the results of older rounds. The execute view never shows these results, so their tokens
/// must not count.
pub(crate) fn remove_old_results(line: &mut Timeline) {
    let round = line.round;
    line.items
        .retain(|item| item.round == round || item.unseen || item.role() != Role::Tool);
}

/// Returns the items that the window shows: those of the running round, and those of an interrupted
/// step whose results the model has not seen.
fn select_window_items(line: &Timeline) -> impl Iterator<Item = &TimelineItem> {
    let unseen = line.unseen_start();
    line.items
        .iter()
        .enumerate()
        .filter(move |(index, item)| item.round == line.round || *index >= unseen)
        .map(|(_, item)| item)
}

/// Builds the four messages of the execute view. `all` contains the messages as they were before
/// reductions left some of them out.
pub(crate) fn build_execute_view(
    snapshot: &Snapshot<'_>,
    layers: &Layers,
    all: &[TimelineItem],
    folding: Folding,
) -> Vec<Segment> {
    let maker = snapshot.entry_maker();
    let line = &layers.line;
    let running: Vec<_> = select_window_items(line).collect();
    let texts = ViewTexts {
        dialogue: format_dialogue(snapshot, line, all, folding),
        window: format_running_steps(&running),
        state: format_state(snapshot.execution, line.round, &running, &layers.run),
    };
    let system = maker.engine_entry("system", Role::System, &format_system_message(layers));
    let mut segments = vec![Segment {
        layer: Layer::System,
        owner: "system",
        entry: system,
        boundary: false,
    }];
    for (owner, layer, tag, role, text) in [
        (
            "view:dialogue",
            Layer::History,
            "dialogue",
            Role::Assistant,
            texts.dialogue,
        ),
        (
            "view:window",
            Layer::History,
            "window",
            Role::Assistant,
            texts.window,
        ),
        (
            "view:state",
            Layer::Reminders,
            "state",
            Role::System,
            texts.state,
        ),
    ] {
        let entry = make_view_message(maker, snapshot.model.api, owner, tag, role, &text);
        segments.push(Segment {
            layer,
            owner,
            entry,
            boundary: false,
        });
    }
    segments
}

/// True if the API accepts two assistant messages in a row and a system message at the end.
fn accepts_native_shape(api: Api) -> bool {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => true,
        Api::Anthropic | Api::Gemini => false,
    }
}

fn make_view_message(
    maker: EntryMaker<'_>,
    api: Api,
    owner: &str,
    tag: &str,
    role: Role,
    text: &str,
) -> Arc<Entry> {
    if accepts_native_shape(api) {
        maker.engine_entry(owner, role, text)
    } else {
        maker.engine_entry(owner, Role::User, &format!("<{tag}>\n{text}\n</{tag}>"))
    }
}

/// Formats the system message: rules, documents and tools.
fn format_system_message(layers: &Layers) -> String {
    let mut text = layers.system.message.joined_text().trim_end().to_owned();
    for (_, entry) in layers
        .documents
        .iter()
        .filter(|(_, entry)| entry.message.role == Role::User)
    {
        let _ = write!(text, "\n\n====\n\n{}", entry.message.joined_text());
    }
    let table = format_tool_table(&layers.tools);
    if !table.is_empty() {
        let _ = write!(text, "\n\n====\n\nTOOLS\n\n{table}");
    }
    text.push('\n');
    text
}

/// Formats one line per tool, with its name and the first sentence of its description.
fn format_tool_table(tools: &ToolSet) -> String {
    let line = |spec: &haft_types::ToolSpec| {
        let first = spec.description.lines().next().unwrap_or_default();
        let sentence = first
            .split_once(". ")
            .map_or(first, |(sentence, _)| sentence);
        format!("- {}: {}", spec.name, sentence.trim_end_matches('.'))
    };
    tools.specs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Formats the messages of the user and the model in order, followed by folded steps and summaries.
fn format_dialogue(
    snapshot: &Snapshot<'_>,
    line: &Timeline,
    all: &[TimelineItem],
    folding: Folding,
) -> String {
    let said: Vec<_> = all
        .iter()
        .filter_map(|item| Some((item, format_utterance(&item.entry.message)?)))
        .collect();
    let (most, room) = match folding {
        // A line takes about thirty tokens; the digest may take a tenth of the window.
        Folding::Digest => (
            snapshot.policy.dialogue,
            (snapshot.policy.usable_window(snapshot.model) / 300).max(20) as usize,
        ),
        Folding::Utterances => (snapshot.policy.dialogue, 0),
        Folding::Inputs => (0, 0),
    };
    let shown = select_utterances(&said, line.round, most as usize);
    let lines: Vec<_> = shown.iter().map(|index| said[*index].1.as_str()).collect();
    let everything = snapshot
        .history
        .iter()
        .filter(|entry| format_utterance(&entry.message).is_some())
        .count();
    let folded = everything.saturating_sub(shown.len());
    let steps = format_folded_steps(line, all);

    let mut text = format!("## Dialogue\n\n{}", lines.join("\n"));
    if folded > 0 || !steps.is_empty() {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let _ = write!(
            text,
            "\n\n({folded} older utterance{} and {} older step{} are folded.)",
            plural(folded),
            steps.len(),
            plural(steps.len())
        );
    }
    let unlisted = steps.len().saturating_sub(room);
    if unlisted > 0 && room > 0 {
        let _ = write!(text, "\n- ({unlisted} more before these)");
    }
    for step in &steps[unlisted..] {
        let _ = write!(text, "\n- {step}");
    }
    for summary in &line.summaries {
        let _ = write!(text, "\n\n{}", summary.message.joined_text());
    }
    text
}

/// Returns the indices of the utterances to show, in order: the user's first utterance, all of the
/// user's utterances in the running round, and the newest of the others up to a total of
/// `max_shown`. Among the others, the user's utterances have priority.
fn select_utterances(said: &[(&TimelineItem, String)], round: u32, max_shown: usize) -> Vec<usize> {
    let is_user = |index: &usize| said[*index].0.role() == Role::User;
    let first = (0..said.len()).find(|index| is_user(index));
    let always =
        |index: &usize| is_user(index) && (Some(*index) == first || said[*index].0.round == round);
    let mut shown: Vec<_> = (0..said.len()).filter(always).collect();
    let users = (0..said.len())
        .rev()
        .filter(|index| is_user(index) && !always(index));
    let others = (0..said.len()).rev().filter(|index| !is_user(index));
    let rest = users
        .chain(others)
        .take(max_shown.saturating_sub(shown.len()))
        .collect::<Vec<_>>();
    shown.extend(rest);
    shown.sort_unstable();
    shown
}

/// Formats one line for each step that the window does not show: its tool, its subject, and its
/// outcome.
fn format_folded_steps(line: &Timeline, all: &[TimelineItem]) -> Vec<String> {
    let window: HashSet<_> = select_window_items(line).map(TimelineItem::id).collect();
    let results: HashMap<_, _> = all
        .iter()
        .flat_map(|item| {
            item.entry
                .message
                .tool_results()
                .map(move |result| ((item.block, &*result.tool_call_id), (item, result)))
        })
        .collect();
    let folded = all.iter().filter(|item| !window.contains(&item.id()));
    let mut steps = Vec::new();
    for item in folded {
        for call in item.entry.message.tool_calls() {
            let call = &*call.resolve_indirect();
            let result = results.get(&(item.block, call.id.as_str()));
            steps.push(format_folded_step(call, result.copied()));
        }
    }
    steps
}

fn format_folded_step(call: &ToolCall, result: Option<(&TimelineItem, &ToolResult)>) -> String {
    let subjects = match result {
        Some((at, result)) => {
            CallSubject::from_call_and_result(Some(call), result, &at.entry.message.metadata)
        }
        None => CallSubject::from_call(call).into_iter().collect(),
    };
    let subject = subjects
        .first()
        .map(CallSubject::format_label)
        .or_else(|| find_text_argument(&call.arguments))
        .unwrap_or_default();
    let subject: String = subject
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(80)
        .collect();
    let gap = if subject.is_empty() { "" } else { " " };
    format!(
        "{}{gap}{subject}: {}",
        call.name,
        result.map_or("interrupted".into(), |(_, result)| format_outcome(result))
    )
}

/// Returns the value of the first argument that is a string. It serves as the call's subject if no
/// better one is known.
fn find_text_argument(arguments: &str) -> Option<String> {
    let arguments: serde_json::Value = serde_json::from_str(arguments).ok()?;
    arguments
        .as_object()?
        .values()
        .find_map(|value| value.as_str().map(str::to_owned))
}

/// Formats the outcome of a call: its exit code, error code, or status.
fn format_outcome(result: &ToolResult) -> String {
    let code = result
        .envelope
        .data
        .get("exit_code")
        .and_then(serde_json::Value::as_i64);
    match (code, &result.envelope.error) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(error)) => format!("error ({})", error.code),
        (None, None) => status_name(result.envelope.status).to_owned(),
    }
}

/// Formats an utterance as one line of dialogue. Returns `None` for a message without text, and for
/// a message that was written by neither the user nor the model.
fn format_utterance(message: &Message) -> Option<String> {
    let speaker = match message.role {
        Role::User if is_from_user(message) => "user",
        Role::Assistant => "assistant",
        Role::User | Role::System | Role::Tool | Role::Summary => return None,
    };
    let said = message.joined_text();
    let said = said.trim();
    // JSON puts a text on one line and preserves every character.
    (!said.is_empty()).then(|| format!("{speaker}: {}", serde_json::Value::from(said)))
}

/// Formats the steps of the running round in detail.
fn format_running_steps(running: &[&TimelineItem]) -> String {
    let mut text = String::from("## Steps of this round\n");
    let mut number = 0;
    for item in running {
        let message = &item.entry.message;
        if message.role == Role::Assistant && message.tool_calls().next().is_some() {
            number += 1;
        }
        for part in &message.content {
            let _ = match part {
                Part::Thinking(thinking) if !thinking.text.trim().is_empty() => {
                    // A thought belongs to the call that follows it; in a reply without any calls
                    // it is number 1.
                    let number = number.max(1);
                    writeln!(text, "\n{number}. thought: {}", thinking.text.trim())
                }
                Part::ToolCall(call) => writeln!(
                    text,
                    "\n{number}. tool_call: {} {}",
                    call.name, call.arguments
                ),
                Part::ToolResult(result) => {
                    let status = status_name(result.envelope.status);
                    let observed = result.envelope.text.trim_end();
                    writeln!(
                        text,
                        "\n{number}. observation: {} ({status})\n{observed}",
                        result.name
                    )
                }
                Part::Image(image) => writeln!(
                    text,
                    "\n(a picture, {}, is not shown here)",
                    image.media_type
                ),
                // A nudge, the report of a background task or a message from another agent is not
                // dialogue, but the model must read it.
                Part::Text { text: said, .. }
                    if message.role == Role::User && !is_from_user(message) =>
                {
                    writeln!(text, "\nnotice: {}", said.trim())
                }
                Part::Text { .. } | Part::Thinking(_) => Ok(()),
            };
        }
    }
    if number == 0 {
        text.push_str("\nNo step has been taken yet.\n");
    }
    text.trim_end().to_owned()
}

/// Formats the state of execution and the reminders.
fn format_state(
    execution: Option<&ExecutionState>,
    round: u32,
    running: &[&TimelineItem],
    run: &[(&'static str, Arc<Entry>)],
) -> String {
    let mut text = String::from("## Execution state\n\n");
    let _ = match execution.and_then(|state| state.max_replies) {
        // The limit counts replies, not inputs.
        Some(max) => {
            let next = running
                .iter()
                .filter(|item| item.role() == Role::Assistant)
                .count()
                + 1;
            writeln!(
                text,
                "round: {round}, reply {} of {max}",
                next.min(max as usize)
            )
        }
        None => writeln!(text, "round: {round} of no limit"),
    };
    if let Some(state) = execution {
        if !state.mode.is_empty() {
            let _ = writeln!(text, "mode: {}", state.mode);
        }
        if let Some(PlanStep { step, done_when }) = &state.plan_step {
            let _ = writeln!(text, "plan step: {step}\ndone when: {done_when}");
        }
        for task in &state.tasks {
            let _ = writeln!(text, "task: {task}");
        }
        if let Some(last_write) = &state.last_write {
            let _ = writeln!(text, "last write: {last_write}");
        }
    }
    for (_, entry) in run {
        let _ = write!(text, "\n{}\n", entry.message.joined_text().trim_end());
    }
    text.trim_end().to_owned()
}

/// Checks that the request has the four messages of the execute view, either as two assistant
/// messages between system messages, or as three user messages after the system message.
pub(crate) fn check_execute_view(request: &Request) -> Result<(), IntegrityError> {
    const NATIVE: [Role; 4] = [Role::System, Role::Assistant, Role::Assistant, Role::System];
    const TAGGED: [Role; 4] = [Role::System, Role::User, Role::User, Role::User];
    let roles: Vec<_> = request
        .segments
        .iter()
        .map(|segment| segment.entry.message.role)
        .collect();
    if roles != NATIVE && roles != TAGGED {
        return Err(IntegrityError::ViewShape { roles });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
