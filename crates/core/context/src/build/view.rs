//! The execute view: the whole request in four messages, so that a bare "continue" still makes sense.
//!
//! ```text
//! 0 system      rules, documents, a short table of tools
//! 1 assistant   the real dialogue, one line an utterance, the current input last
//! 2 assistant   this round's numbered thoughts, calls and observations
//! 3 system      the state of execution, reminders included
//! ```
//!
//! On an API that does not take that shape, 1 to 3 go as user messages in `<dialogue>`, `<window>` and `<state>`.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Api, Entry, Layer, Message, Origin, Part, Request, Role, Segment, ToolSet};

use crate::build::layers::Layers;
use crate::build::rounds::{Timeline, TimelineItem};
use crate::error::IntegrityError;
use crate::memo::EntryMaker;
use crate::reduce::compress::status_name;
use crate::snapshot::{ExecutionState, PlanStep, Snapshot};

/// The three messages besides the system message, as texts.
struct Texts {
    dialogue: String,
    window: String,
    state: String,
}

/// Takes out the results of older rounds: this view never shows them, so they must not count.
pub(crate) fn forget_old_steps(line: &mut Timeline) {
    let round = line.round;
    line.items.retain(|item| item.round == round || item.role() != Role::Tool);
}

/// The four messages.
pub(crate) fn execute(snapshot: &Snapshot<'_>, layers: &Layers) -> Vec<Segment> {
    let (maker, line) = (snapshot.maker(), &layers.line);
    let running: Vec<_> = line.items.iter().filter(|item| item.round == line.round).collect();
    let texts = Texts {
        dialogue: dialogue(snapshot, line),
        window: window(&running),
        state: state(snapshot.execution, line.round, &layers.run),
    };
    let system = maker.made("system", Role::System, &system_text(layers));
    let mut segments = vec![Segment { layer: Layer::System, owner: "system", entry: system, boundary: false }];
    for (owner, layer, tag, role, text) in [
        ("view:dialogue", Layer::History, "dialogue", Role::Assistant, texts.dialogue),
        ("view:window", Layer::History, "window", Role::Assistant, texts.window),
        ("view:state", Layer::Reminders, "state", Role::System, texts.state),
    ] {
        let entry = shaped(maker, snapshot.model.api, owner, tag, role, &text);
        segments.push(Segment { layer, owner, entry, boundary: false });
    }
    segments
}

/// Whether an API takes assistant messages in a row and a system message at the end.
fn takes_the_shape(api: Api) -> bool {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => true,
        Api::Anthropic | Api::Gemini => false,
    }
}

fn shaped(maker: EntryMaker<'_>, api: Api, owner: &str, tag: &str, role: Role, text: &str) -> Arc<Entry> {
    if takes_the_shape(api) {
        maker.made(owner, role, text)
    } else {
        maker.made(owner, Role::User, &format!("<{tag}>\n{text}\n</{tag}>"))
    }
}

/// Rules, documents and tools.
fn system_text(layers: &Layers) -> String {
    let mut text = layers.system.message.joined_text().trim_end().to_owned();
    for (_, entry) in layers.documents.iter().filter(|(_, entry)| entry.message.role == Role::User) {
        let _ = write!(text, "\n\n====\n\n{}", entry.message.joined_text());
    }
    let table = tool_table(&layers.tools);
    if !table.is_empty() {
        let _ = write!(text, "\n\n====\n\nTOOLS\n\n{table}");
    }
    text.push('\n');
    text
}

/// One line a tool: its name and the first sentence of its description.
fn tool_table(tools: &ToolSet) -> String {
    let line = |spec: &haft_types::ToolSpec| {
        let first = spec.description.lines().next().unwrap_or_default();
        let sentence = first.split_once(". ").map_or(first, |(sentence, _)| sentence);
        format!("- {}: {}", spec.name, sentence.trim_end_matches('.'))
    };
    tools.specs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The real speech: what the user and the model said to each other, the current input last.
fn dialogue(snapshot: &Snapshot<'_>, line: &Timeline) -> String {
    let is_input = |item: &&TimelineItem| item.round == line.round && item.role() == Role::User;
    let inputs = line.items.iter().filter(is_input);
    let before = line.items.iter().filter(|item| !is_input(item));
    let said: Vec<_> = before.chain(inputs).filter_map(|item| utterance(&item.entry.message)).collect();
    let shown = &said[said.len().saturating_sub(snapshot.policy.dialogue as usize)..];
    let all = snapshot.history.iter().filter(|entry| utterance(&entry.message).is_some()).count();

    let mut text = format!("## Dialogue\n\n{}", shown.join("\n"));
    let folded = all.saturating_sub(shown.len());
    if folded > 0 {
        let _ = write!(text, "\n\n({folded} older records are folded.)");
    }
    for summary in &line.summaries {
        let _ = write!(text, "\n\n{}", summary.message.joined_text());
    }
    text
}

/// One line of dialogue; nothing for messages in which nobody speaks.
fn utterance(message: &Message) -> Option<String> {
    let speaker = match message.role {
        Role::User if matches!(message.origin(), Origin::User | Origin::Joined) => "user",
        Role::Assistant => "assistant",
        Role::User | Role::System | Role::Tool | Role::Summary => return None,
    };
    let said = message.joined_text();
    let said = said.trim();
    // JSON writes a text on one line and keeps every character of it.
    (!said.is_empty()).then(|| format!("{speaker}: {}", serde_json::Value::from(said)))
}

/// The running round's steps in detail.
fn window(running: &[&TimelineItem]) -> String {
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
                    // A thought belongs to the call it leads to; a reply without calls gets a number of its own.
                    let number = number.max(1);
                    writeln!(text, "\n{number}. thought: {}", thinking.text.trim())
                }
                Part::ToolCall(call) => writeln!(text, "\n{number}. tool_call: {} {}", call.name, call.arguments),
                Part::ToolResult(result) => {
                    let (status, words) = (status_name(result.envelope.status), result.envelope.text.trim_end());
                    writeln!(text, "\n{number}. observation: {} ({status})\n{words}", result.name)
                }
                Part::Image(image) => writeln!(text, "\n(a picture, {}, is not shown here)", image.media_type),
                Part::Text { .. } | Part::Thinking(_) => Ok(()),
            };
        }
    }
    if number == 0 {
        text.push_str("\nNo step has been taken yet.\n");
    }
    text.trim_end().to_owned()
}

/// Where the work stands, and the reminders.
fn state(execution: Option<&ExecutionState>, round: u32, run: &[(&'static str, Arc<Entry>)]) -> String {
    let mut text = String::from("## Execution state\n\n");
    let max = execution.and_then(|state| state.max_rounds).map(|max| format!("/{max}")).unwrap_or_default();
    let _ = writeln!(text, "round: {round}{max}");
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

/// The view's own rule: four messages of speech, in one of its two shapes.
pub(crate) fn check(request: &Request) -> Result<(), IntegrityError> {
    const NATIVE: [Role; 4] = [Role::System, Role::Assistant, Role::Assistant, Role::System];
    const TAGGED: [Role; 4] = [Role::System, Role::User, Role::User, Role::User];
    let roles: Vec<_> = request.segments.iter().map(|segment| segment.entry.message.role).collect();
    if roles != NATIVE && roles != TAGGED {
        return Err(IntegrityError::ViewShape { roles });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
