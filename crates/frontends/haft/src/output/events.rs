//! Prints the events of a run in one of the three output formats, or as messages of Claude Code.

use haft_claude::ClaudeMessages;
use haft_engine::EventSink;
use haft_messages::CallHeadline;
use haft_types::{CallPhase, Event, EventBody, Outcome, SandboxLayer, TaskPhase, ToolStatus};
use serde_json::Value;

use super::live_run::{LiveRun, print_markdown};
use crate::cli::options::OutputFormat;

/// Prints events as they arrive.
#[derive(Default)]
pub(crate) struct Printer {
    format: OutputFormat,
    verbose: bool,
    /// Converts events to Claude Code's messages; `None` for haft's own JSON format.
    messages: Option<ClaudeMessages>,
    /// Text of the current reply. It is the answer unless a tool call follows.
    text: String,
    /// True if progress goes to stdout instead of stderr: for a run that another process executes.
    on_stdout: bool,
    /// True if a result in JSON is held back until [`Self::print_held_result`], because another turn
    /// may follow.
    holds_result: bool,
    held: Vec<Value>,
    /// True if the run itself waits for the answer to a question.
    awaits_answers: bool,
    /// The view of a run at a terminal; `None` if the output is read by a program.
    live: Option<LiveRun>,
    /// True if events are also exported as trace spans.
    #[cfg(feature = "otel")]
    traced: bool,
}

impl Printer {
    pub(crate) fn new(format: OutputFormat, verbose: bool) -> Self {
        Self {
            format,
            verbose,
            ..Self::default()
        }
    }

    /// Prints progress on stdout instead of stderr.
    pub(crate) fn with_progress_on_stdout(self) -> Self {
        Self {
            on_stdout: true,
            ..self
        }
    }

    /// With the format `json`, prints only the result of the last turn, when
    /// [`Self::print_held_result`] is called.
    pub(crate) fn with_held_result(self) -> Self {
        Self {
            holds_result: true,
            ..self
        }
    }

    /// Leaves out how a turn that waits for an answer is continued, because the run itself waits.
    pub(crate) fn with_awaited_answers(self) -> Self {
        Self {
            awaits_answers: true,
            ..self
        }
    }

    /// Prints the result that was held back.
    pub(crate) fn print_held_result(&mut self) {
        self.held
            .drain(..)
            .for_each(|line| super::print_json_line(&line));
    }

    /// Enables the live view (progress, rendered Markdown, cost) if the process has a terminal and
    /// the output format is text.
    pub(crate) fn with_live_view(self) -> Self {
        let live = match self.format {
            OutputFormat::Text => LiveRun::start(),
            OutputFormat::Json | OutputFormat::StreamJson => None,
        };
        Self { live, ..self }
    }

    /// Also exports trace spans: for a run that this process executes.
    #[cfg(feature = "otel")]
    pub(crate) fn with_traces(self) -> Self {
        Self {
            traced: true,
            ..self
        }
    }

    /// Prints JSON in the message format of Claude Code instead of haft's own events.
    pub(crate) fn with_messages(self, messages: ClaudeMessages) -> Self {
        Self {
            messages: Some(messages),
            ..self
        }
    }
}

impl EventSink for Printer {
    fn attached_input_joined(&mut self, input: &str) {
        match self.format {
            OutputFormat::Text => super::print_to_stderr(&format!("› {input}")),
            OutputFormat::Json | OutputFormat::StreamJson => {}
        }
    }

    fn event(&mut self, event: &Event) {
        #[cfg(feature = "otel")]
        if self.traced {
            haft_traces::record_event(event, || None);
        }
        let lines = match (&mut self.messages, self.format) {
            (_, OutputFormat::Text) => Vec::new(),
            (Some(messages), OutputFormat::Json | OutputFormat::StreamJson) => {
                messages.convert_event(event)
            }
            (None, OutputFormat::Json | OutputFormat::StreamJson) => {
                serde_json::to_value(event).into_iter().collect()
            }
        };
        match self.format {
            OutputFormat::StreamJson => lines.iter().for_each(super::print_json_line),
            OutputFormat::Json => {
                if matches!(event.body, EventBody::Result(_)) && self.holds_result {
                    self.held = lines;
                } else if matches!(event.body, EventBody::Result(_)) {
                    lines.iter().for_each(super::print_json_line);
                }
            }
            OutputFormat::Text if event.agent != haft_engine::MAIN_AGENT => {
                if let Some(live) = &mut self.live {
                    live.count_cost(&event.body);
                }
                super::agents::print_subagent_event(event, self.verbose);
            }
            OutputFormat::Text => {
                if let Some(live) = &mut self.live {
                    live.handle_event(event);
                }
                self.print_body(&event.body);
                if let EventBody::Result(result) = &event.body
                    && let Some(live) = self.live.take()
                {
                    live.finish(result);
                }
            }
        }
    }
}

impl Printer {
    /// Prints one line on stderr for each event that people want to follow. Only the answer goes to
    /// stdout, at the end.
    fn print_body(&mut self, body: &EventBody) {
        let line = match body {
            EventBody::Text { text } => {
                self.text.push_str(text);
                return;
            }
            EventBody::ToolCall {
                phase: CallPhase::Started,
                ..
            } if !self.text.trim().is_empty() => {
                let text = std::mem::take(&mut self.text);
                if self.live.is_some() {
                    return print_markdown(&text);
                }
                text.trim().to_owned()
            }
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                format!("• {}", format_call(name, arguments.as_ref()))
            }
            EventBody::ToolResult { status, text, .. }
                if self.verbose || *status == ToolStatus::Error =>
            {
                format_result_lines(*status, text, if self.verbose { 40 } else { 6 })
            }
            EventBody::Thinking { text } if self.verbose => text.clone(),
            EventBody::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
            } => {
                self.text.clear();
                let limit =
                    limit.map_or_else(String::new, |limit| text!("output-retry-limit", limit));
                text!(
                    "output-retry",
                    attempt,
                    limit,
                    seconds = format_args!("{:.1}", *delay_ms as f64 / 1000.0),
                    reason = haft_messages::translate_error(reason)
                )
            }
            EventBody::Error { message, code, .. } => {
                // Text of a failed reply is discarded.
                self.text.clear();
                format!("haft: {}", super::hints::add_hint(message, code))
            }
            // Already printed when the configuration was loaded.
            EventBody::Notice { code, .. } if code == haft_agent::UNKNOWN_VARIABLE_CODE => return,
            EventBody::Notice { message, code } => {
                format!("haft: {}", super::hints::add_hint(message, code))
            }
            EventBody::Compaction { message, .. } | EventBody::Pruning { message, .. } => {
                format!("haft: {}", haft_messages::translate_error(message))
            }
            EventBody::BackgroundTask { phase, message, .. }
                if self.verbose || *phase != TaskPhase::Started =>
            {
                format!(
                    "haft: {}",
                    text!(
                        "output-background-task",
                        message = haft_messages::translate_error(message)
                    )
                )
            }
            EventBody::PrefixBreak {
                message, tokens, ..
            } if self.verbose => {
                text!(
                    "output-prefix-break",
                    message = haft_messages::translate_error(message),
                    tokens
                )
            }
            EventBody::Question { question, options } => {
                let options: Vec<_> = options
                    .iter()
                    .map(|option| format!("\n  - {option}"))
                    .collect();
                format!("? {question}{}", options.concat())
            }
            EventBody::Plan { options, .. } if !options.is_empty() => {
                let options: Vec<_> = options
                    .iter()
                    .map(|option| format!("\n  - {option}"))
                    .collect();
                text!("output-plan", options = options.concat())
            }
            EventBody::Result(result) => {
                if self.live.is_some() {
                    print_markdown(&result.text);
                } else if !result.text.is_empty() {
                    drop(super::print_text(&format!(
                        "{}\n",
                        haft_text::sanitize(&result.text)
                    )));
                }
                match result.outcome {
                    // The error event has already printed the failure.
                    Outcome::Completed | Outcome::Failed => return,
                    Outcome::Waiting if self.awaits_answers => return,
                    // The result of the call has already printed why it was denied.
                    Outcome::Waiting if result.code == "denied" => {
                        format!("haft: {}", text!("output-denied"))
                    }
                    Outcome::Waiting | Outcome::Aborted | Outcome::Exhausted => {
                        format!(
                            "haft: {}",
                            super::hints::add_hint(&result.message, &result.code)
                        )
                    }
                }
            }
            EventBody::Conversation {
                sandbox: Some(status),
                ..
            } if self.verbose || status.layer != SandboxLayer::Namespace => {
                super::describe_sandbox(status)
            }
            EventBody::Conversation { .. }
            | EventBody::Thinking { .. }
            | EventBody::ToolCall { .. }
            | EventBody::ToolResult { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::BackgroundTask { .. }
            | EventBody::Usage { .. }
            | EventBody::Reminders { .. }
            | EventBody::PrefixBreak { .. }
            | EventBody::Window { .. }
            | EventBody::Budget { .. }
            | EventBody::Plan { .. }
            | EventBody::Completion { .. }
            | EventBody::FileChanged { .. }
            | EventBody::Subagent { .. } => return,
        };
        if self.on_stdout {
            drop(super::print_text(&format!(
                "{}\n",
                haft_text::sanitize(&line)
            )));
        } else {
            super::print_to_stderr(&line);
        }
    }
}

/// Returns what a call does, shortened to fit a line.
pub(super) fn format_call(tool: &str, arguments: Option<&Value>) -> String {
    const MAX_COLUMNS: usize = 100;
    let headline = CallHeadline::new(tool, arguments.unwrap_or(&Value::Null)).to_line();
    haft_text::truncate_to_width(&headline, MAX_COLUMNS).into_owned()
}

pub(super) fn format_result_lines(status: ToolStatus, text: &str, most: usize) -> String {
    let text = if status == ToolStatus::Error {
        haft_messages::translate_result(text)
    } else {
        text.into()
    };
    let total = text.lines().count();
    let mut lines: Vec<_> = text
        .lines()
        .take(most)
        .map(|line| format!("  {line}"))
        .collect();
    if total > most {
        lines.push(format!(
            "  {}",
            text!("output-more-lines", most = total - most)
        ));
    }
    lines.join("\n")
}
