//! What is told of a run of a workflow: the events of all its steps as one stream, and its result.
//!
//! Invariant: events are numbered without gaps, and the only `result` is the last one; that of a step is part of its last
//! `subagent` event.

use haft_engine::{EventSink, MAIN};
use haft_project::workflows::Workflow;
use haft_types::{ConversationId, Event, EventBody, Outcome, SubagentPhase, TurnResult};
use serde_json::{Value, json};

use super::record::{Record, StepRecord};
use crate::cli::OutputFormat;
use crate::output::{self, Printer};

/// Prints the events of all steps.
pub(super) struct Told {
    printer: Printer,
    format: OutputFormat,
    seq: u64,
}

impl Told {
    pub(super) fn new(format: OutputFormat, verbose: bool) -> Self {
        Self { printer: Printer::new(format, verbose), format, seq: 0 }
    }

    pub(super) fn event(&mut self, event: Event) {
        self.seq += 1;
        self.printer.event(&Event { seq: self.seq, ..event });
    }

    /// The last word.
    pub(super) fn result(&mut self, result: TurnResult, workflow: &Workflow, record: &Record) {
        match self.format {
            OutputFormat::Text => {
                if !result.text.is_empty() {
                    drop(output::print(&format!("{}\n", haft_text::sanitise(&result.text))));
                }
                if result.outcome != Outcome::Completed {
                    output::tell(&format!("haft: {}", result.message));
                }
            }
            OutputFormat::Json | OutputFormat::StreamJson => {
                self.seq += 1;
                let event = Event {
                    body: EventBody::Result(result),
                    conversation_id: ConversationId::new(&record.id),
                    seq: self.seq,
                    agent: MAIN.to_owned(),
                };
                let Ok(mut value) = serde_json::to_value(event) else { return };
                value["workflow"] = json!(record.workflow);
                value["run"] = json!(record.id);
                value["steps"] = steps(workflow, record);
                output::print_line(&value);
            }
        }
    }
}

/// How every step stands.
fn steps(workflow: &Workflow, record: &Record) -> Value {
    let step = |name: &str| match record.steps.get(name) {
        Some(StepRecord { conversation, result: Some(result) }) => json!({
            "name": name,
            "outcome": result.outcome,
            "code": result.code,
            "message": result.message,
            "text": result.text,
            "conversation_id": conversation,
            "turns": result.turns,
            "usage": result.usage,
            "cost": result.cost,
        }),
        Some(StepRecord { result: None, .. }) | None => json!({ "name": name, "outcome": null }),
    };
    workflow.steps.iter().map(|one| step(&one.name)).collect()
}

/// The events of one step, on their way into the stream.
pub(super) struct StepEvents {
    pub(super) told: std::sync::Arc<std::sync::Mutex<Told>>,
    pub(super) step: String,
    pub(super) run: ConversationId,
    /// As its first event tells it.
    pub(super) model: String,
    pub(super) task: String,
}

impl EventSink for StepEvents {
    fn event(&mut self, event: &Event) {
        if let EventBody::Conversation { model, .. } = &event.body {
            self.model.clone_from(model);
        }
        let marked = |phase, result| EventBody::Subagent {
            phase,
            name: self.step.clone(),
            parent: self.run.clone(),
            call_id: self.step.clone(),
            model: self.model.clone(),
            task: self.task.clone(),
            result,
        };
        let body = match &event.body {
            EventBody::Conversation { .. } => marked(SubagentPhase::Started, None),
            EventBody::Result(result) => marked(SubagentPhase::Finished, Some(Box::new(result.clone()))),
            other => other.clone(),
        };
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        told.event(Event { body, ..event.clone() });
    }
}
