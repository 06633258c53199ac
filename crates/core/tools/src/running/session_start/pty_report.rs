//! Reports the state of a session and its new output to the model.

use std::time::Duration;

use haft_sandbox::{AwaitedInput, CapturedOutput, FinishedCommand, TypingError, WaitEnd};
use haft_text::CutLimits;
use haft_types::Envelope;
use serde_json::json;

use crate::failure::{Coded, ToolFailure};
use crate::running::PtySession;
use crate::running::phrases::{
    add_cut_section, add_exit, add_stdout, describe_exit, describe_spill, format_duration,
    hidden_path_hint, undone_entries_hint,
};

/// The state of a session after an interaction, and its new output.
pub(crate) struct PtyReport<'a> {
    session: &'a PtySession,
    pause: WaitEnd,
    waited: Duration,
    output: CapturedOutput,
}

impl<'a> PtyReport<'a> {
    /// Takes the output that the session has written since the last report.
    pub(crate) fn new(session: &'a PtySession, pause: WaitEnd, waited: Duration) -> Self {
        Self {
            session,
            pause,
            waited,
            output: session.terminal.take_new_output(),
        }
    }

    /// Describes the exit of the session's command, or returns `None` if it is running.
    pub(crate) fn describe_ending(&self) -> Option<String> {
        match self.session.terminal.ending()?.as_ref() {
            Ok(finished) => Some(describe_exit(finished.exit)),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Returns the tool result. Fails if the command could not be run. An exit status other than 0
    /// is not a failure: the output shows what happened, as it would to a person at the terminal.
    pub(crate) fn build_envelope(&self, limits: CutLimits) -> Result<Envelope, ToolFailure> {
        let id = self.session.id();
        let ended = self.session.terminal.ending();
        let mut data =
            json!({ "session_id": id, "state": if ended.is_some() { "ended" } else { "running" } });
        let mut text = match ended.as_deref() {
            Some(Err(error)) => return Err(ToolFailure::new("cannot_run", error.to_string())),
            Some(Ok(finished)) => {
                add_exit(&mut data, finished.exit);
                format!("Session {id} has ended: {}.", describe_exit(finished.exit))
            }
            None => self.headline(&id),
        };
        if let (WaitEnd::Awaits(what), None) = (self.pause, &ended) {
            data["awaits"] = match what {
                AwaitedInput::Line => "line",
                AwaitedInput::Hidden => "hidden",
                AwaitedInput::Key => "key",
            }
            .into();
        }
        let cut = self.output.text(limits);
        if self.output.bytes == 0 {
            text.push_str(" No new output.");
        }
        add_cut_section(&mut text, "output", &cut);
        if let Some(Ok(FinishedCommand {
            hidden: Some(hidden),
            ..
        })) = ended.as_deref()
        {
            text.extend(["\n[", &hidden_path_hint(hidden), "]"]);
        }
        if let Some(Ok(finished)) = ended.as_deref()
            && let Some(hint) = undone_entries_hint(finished)
        {
            text.extend(["\n[", &hint, "]"]);
        }
        add_stdout(&mut data, &self.output);
        if cut.is_cut() {
            let all = self.session.terminal.full_output();
            text.push('\n');
            text.push_str(&describe_spill("output of this session so far", &all));
            data["truncated"] = true.into();
            if let Some(file) = &all.spill {
                self.session.keep_file();
                data["spill"] = json!([file.display().to_string()]);
            }
        }
        Ok(Envelope::success(text).with_data(data))
    }

    fn headline(&self, id: &str) -> String {
        match self.pause {
            WaitEnd::Awaits(AwaitedInput::Line) => {
                format!("Session {id} waits for a line of input.")
            }
            WaitEnd::Awaits(AwaitedInput::Hidden) => {
                format!("Session {id} waits for input it does not show, such as a password.")
            }
            WaitEnd::Awaits(AwaitedInput::Key) => {
                format!(
                    "Session {id} waits for input (it reads each key as it is typed, as line editors do)."
                )
            }
            WaitEnd::Quiet => format!("Session {id} is running and quiet."),
            WaitEnd::Busy | WaitEnd::Ended => {
                format!(
                    "Session {id} is still running after {}.",
                    format_duration(self.waited)
                )
            }
        }
    }
}

impl Coded for TypingError {
    fn code(&self) -> &'static str {
        match self {
            Self::LongLine { .. } => "invalid_arguments",
            _ => "cannot_type",
        }
    }
}
