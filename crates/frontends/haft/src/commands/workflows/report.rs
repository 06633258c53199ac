//! Prints a run of a workflow: the events of all its steps as one stream, and its result as the
//! last event.

use haft_engine::{EventSink, MAIN_AGENT};
use haft_types::{ConversationId, Event, EventBody, Outcome};
use haft_workflows::{
    RunRecord, StepRecord, Workflow, WorkflowObserver, WorkflowReport, WorkflowStep,
};

use crate::cli::options::OutputFormat;
use crate::output::{self, Printer};

/// Prints the events of a workflow's steps.
pub(super) struct StepPrinter(Printer);

impl StepPrinter {
    pub(super) fn new(format: OutputFormat, verbose: bool) -> Self {
        Self(Printer::new(format, verbose))
    }
}

impl WorkflowObserver for StepPrinter {
    fn on_event(&mut self, event: &Event) {
        self.0.event(event);
    }

    fn on_closing_message(&mut self, message: &str) {
        output::print_to_stderr(&format!("haft: {}", output::localize_text(message)));
    }
}

pub(super) fn print_result(report: WorkflowReport, workflow: &Workflow, format: OutputFormat) {
    let WorkflowReport {
        mut result,
        record,
        completed,
        seq,
        ..
    } = report;
    let told = || {
        let message = result_message(workflow, &record, completed);
        let done = completed == workflow.steps.len();
        let rest = message.trim_end_matches(['.', '。']);
        if done {
            message
        } else {
            text!("workflows-go-on", message = rest, name = workflow.name)
        }
    };
    result.message = if format == OutputFormat::Text {
        told()
    } else {
        haft_messages::run_in_english(told)
    };
    match format {
        OutputFormat::Text => {
            if !result.text.is_empty() {
                drop(output::print_text(&format!(
                    "{}\n",
                    haft_text::sanitize(&result.text)
                )));
            }
            if result.outcome != Outcome::Completed {
                output::print_to_stderr(&format!("haft: {}", result.message));
            }
        }
        OutputFormat::Json | OutputFormat::StreamJson => {
            let event = Event {
                body: EventBody::Result(result),
                conversation_id: ConversationId::new(&record.id),
                seq,
                agent: MAIN_AGENT.to_owned(),
            };
            let Ok(value) = serde_json::to_value(event) else {
                return;
            };
            output::print_json_line(&record.add_to_result(value, workflow));
        }
    }
}

/// Describes which steps are done, and why the other steps are not.
pub(crate) fn result_message(workflow: &Workflow, record: &RunRecord, completed: usize) -> String {
    let all = workflow.steps.len();
    if completed == all {
        return text!("workflows-all-done", all);
    }
    let is_done = |name: &String| record.steps.get(name).is_some_and(StepRecord::is_done);
    let why = |step: &WorkflowStep| {
        let name = &step.name;
        if is_done(name) {
            return None;
        }
        if let Some(missing) = step.needs.iter().find(|need| !is_done(need)) {
            return Some(text!("workflows-needs", name, missing));
        }
        Some(match record.steps.get(name) {
            Some(StepRecord {
                result: Some(result),
                conversation,
            }) => {
                let told = output::localize_text(result.message.trim_end_matches('.'));
                let answer = conversation
                    .as_ref()
                    .filter(|_| result.code == "question")
                    .map_or_else(String::new, |id| {
                        text!("workflows-answer", id = id.short_prefix())
                    });
                text!(
                    "workflows-step",
                    outcome = result.outcome.name(),
                    name,
                    told,
                    answer
                )
            }
            Some(StepRecord { result: None, .. }) => text!("workflows-interrupted", name),
            None => text!("workflows-not-begun", name),
        })
    };
    let rest: Vec<_> = workflow.steps.iter().filter_map(why).collect();
    text!(
        "workflows-some-done",
        completed,
        all,
        rest = rest.join(text!("workflows-between"))
    )
}
