//! Prints the events of a run in one of the three formats, or as the messages another program's
//! readers know.

use haft_claude::ClaudeMessages;
use haft_engine::EventSink;
use haft_types::{CallPhase, Event, EventBody, Outcome, SandboxLayer, TaskPhase, ToolStatus};
use serde_json::Value;

use crate::cli::options::OutputFormat;

/// Prints events as they come.
#[derive(Default)]
pub(crate) struct Printer {
    format: OutputFormat,
    verbose: bool,
    /// In whose shape, if not our own.
    messages: Option<ClaudeMessages>,
    /// Text of the current reply. Only when a call follows is it clear that it is not the answer.
    text: String,
    /// Whether everything goes to stdout: what was run elsewhere is only read here.
    on_stdout: bool,
    /// Whether a collector is told of it.
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

    /// Progress on stdout too.
    pub(crate) fn all_on_stdout(self) -> Self {
        Self {
            on_stdout: true,
            ..self
        }
    }

    /// The same, where this process runs what is printed.
    #[cfg(feature = "otel")]
    pub(crate) fn traced(self) -> Self {
        Self {
            traced: true,
            ..self
        }
    }

    /// The same, where JSON has the shape of these messages.
    pub(crate) fn with_messages(self, messages: ClaudeMessages) -> Self {
        Self {
            messages: Some(messages),
            ..self
        }
    }
}

impl EventSink for Printer {
    fn event(&mut self, event: &Event) {
        #[cfg(feature = "otel")]
        if self.traced {
            crate::wiring::traces::event(event, || None);
        }
        let lines = match (&mut self.messages, self.format) {
            (_, OutputFormat::Text) => Vec::new(),
            (Some(messages), OutputFormat::Json | OutputFormat::StreamJson) => messages.take(event),
            (None, OutputFormat::Json | OutputFormat::StreamJson) => {
                serde_json::to_value(event).into_iter().collect()
            }
        };
        match self.format {
            OutputFormat::StreamJson => lines.iter().for_each(super::print_line),
            OutputFormat::Json => {
                if matches!(event.body, EventBody::Result(_)) {
                    lines.iter().for_each(super::print_line);
                }
            }
            OutputFormat::Text if event.agent != haft_engine::MAIN => {
                super::agents::tell(event, self.verbose);
            }
            OutputFormat::Text => self.tell(&event.body),
        }
    }
}

impl Printer {
    /// One line on stderr for what a person wants to follow; the answer alone goes to stdout, at
    /// the end.
    fn tell(&mut self, body: &EventBody) {
        let line = match body {
            EventBody::Text { text } => {
                self.text.push_str(text);
                return;
            }
            EventBody::ToolCall {
                phase: CallPhase::Started,
                ..
            } if !self.text.trim().is_empty() => std::mem::take(&mut self.text).trim().to_owned(),
            EventBody::ToolCall {
                name,
                phase: CallPhase::Finished,
                arguments,
                ..
            } => {
                format!(
                    "• {name}{}",
                    arguments.as_ref().map_or_else(String::new, headline)
                )
            }
            EventBody::ToolResult { status, text, .. }
                if self.verbose || *status == ToolStatus::Error =>
            {
                result_lines(*status, text, if self.verbose { 40 } else { 6 })
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
                    reason = haft_messages::error_text(reason)
                )
            }
            EventBody::Error { message, code, .. } => {
                // Text of a reply that failed is void.
                self.text.clear();
                format!("haft: {}", super::hints::hinted(message, code))
            }
            // Printed when the configuration was loaded.
            EventBody::Notice { code, .. } if code == haft_agent::UNKNOWN_VARIABLE => return,
            EventBody::Notice { message, code } => {
                format!("haft: {}", super::hints::hinted(message, code))
            }
            EventBody::Compaction { message, .. } | EventBody::Pruning { message, .. } => {
                format!("haft: {}", haft_messages::error_text(message))
            }
            EventBody::BackgroundTask { phase, message, .. }
                if self.verbose || *phase != TaskPhase::Started =>
            {
                format!(
                    "haft: {}",
                    text!(
                        "output-background-task",
                        message = haft_messages::error_text(message)
                    )
                )
            }
            EventBody::PrefixBreak {
                message, tokens, ..
            } if self.verbose => {
                text!(
                    "output-prefix-break",
                    message = haft_messages::error_text(message),
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
                if !result.text.is_empty() {
                    drop(super::print(&format!(
                        "{}\n",
                        haft_text::sanitise(&result.text)
                    )));
                }
                match result.outcome {
                    // A failure was printed with its error event.
                    Outcome::Completed | Outcome::Failed => return,
                    // Why it was denied was printed with the call.
                    Outcome::Waiting if result.code == "denied" => {
                        format!("haft: {}", text!("output-denied"))
                    }
                    Outcome::Waiting | Outcome::Aborted | Outcome::Exhausted => {
                        format!(
                            "haft: {}",
                            super::hints::hinted(&result.message, &result.code)
                        )
                    }
                }
            }
            EventBody::Conversation {
                sandbox: Some(status),
                ..
            } if self.verbose || status.layer != SandboxLayer::Namespace => super::sandbox(status),
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
            drop(super::print(&format!("{}\n", haft_text::sanitise(&line))));
        } else {
            super::tell(&line);
        }
    }
}

/// The one argument that says most, short enough for a line. A report is not repeated: it is the
/// answer.
pub(super) fn headline(arguments: &Value) -> String {
    const LONGEST: usize = 100;
    let telling = ["command", "path", "regex"];
    let argument = telling.iter().find_map(|key| arguments.get(key)?.as_str());
    let Some(line) = argument.and_then(|argument| argument.lines().next()) else {
        return String::new();
    };
    format!(" {}", haft_text::truncate_to_width(line, LONGEST))
}

pub(super) fn result_lines(status: ToolStatus, text: &str, most: usize) -> String {
    let text = if status == ToolStatus::Error {
        haft_messages::result_text(text)
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
