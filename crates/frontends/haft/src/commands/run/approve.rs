//! Prompts on the terminal for approvals before tool calls run, and for the forms of MCP servers.

mod form;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use haft_agent::Places;
use haft_engine::{Approval, ApprovalReply, Approver, MAIN_AGENT};
use haft_messages::CallHeadline;
use haft_text::{reveal_controls, show_exactly};
use haft_types::{Decision, Form, FormOutcome};

use crate::commands::permissions;
use crate::exit::usage_error;
use crate::output::progress_line::pause_line;

/// The interval at which a question on the terminal checks whether it was answered elsewhere, in
/// nanoseconds.
const WITHDRAWAL_INTERVAL: i64 = 100_000_000;

/// Prompts on the controlling terminal, even if standard input and output are redirected.
pub(crate) struct TerminalApprover {
    terminal: Arc<File>,
    /// A lock that the open question holds, so that a withdrawn one ends before the next begins.
    asking: Arc<Mutex<()>>,
    places: Places,
}

/// Withdraws a question on the terminal when it is dropped.
#[derive(Clone, Default)]
struct Withdrawal(Arc<AtomicBool>);

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads the terminal until the question is withdrawn, which counts as the end of the input.
struct QuestionInput<'a> {
    terminal: &'a File,
    withdrawn: &'a AtomicBool,
}

impl Read for QuestionInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: WITHDRAWAL_INTERVAL,
        };
        while !self.withdrawn.load(Ordering::Relaxed) {
            let mut polled = [PollFd::new(self.terminal, PollFlags::IN | PollFlags::HUP)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // Reading reports any other problem.
                _ => return self.terminal.read(buffer),
            }
        }
        Ok(0)
    }
}

impl TerminalApprover {
    /// Opens the controlling terminal. Returns a usage error if the process has none.
    pub(crate) fn open(places: &Places) -> anyhow::Result<Self> {
        let terminal = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .map_err(|error| usage_error(text!("run-ask-no-terminal", error)))?;
        Ok(Self {
            terminal: Arc::new(terminal),
            asking: Arc::default(),
            places: places.clone(),
        })
    }
}

impl TerminalApprover {
    /// Runs `prompt` with the terminal and its input, on a thread of its own. Returns `None` if the
    /// terminal is gone.
    async fn prompt_user<T: Send + 'static>(
        &self,
        prompt: impl FnOnce(&File, &mut dyn BufRead) -> std::io::Result<T> + Send + 'static,
    ) -> Option<T> {
        let withdrawal = Withdrawal::default();
        let withdrawn = Arc::clone(&withdrawal.0);
        let terminal = Arc::clone(&self.terminal);
        let asking = Arc::clone(&self.asking);
        let task = tokio::task::spawn_blocking(move || {
            let _alone = asking.lock().unwrap_or_else(PoisonError::into_inner);
            let input = QuestionInput {
                terminal: &terminal,
                withdrawn: &withdrawn,
            };
            if withdrawn.load(Ordering::Relaxed) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let _paused = pause_line();
            prompt(&terminal, &mut BufReader::new(input))
        });
        let answer = task.await.ok().and_then(Result::ok);
        drop(withdrawal);
        answer
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let approval = approval.clone();
        let rules_file = self.places.config_file().display().to_string();
        self.prompt_user(move |terminal, input| {
            prompt_approval(terminal, input, &approval, &rules_file)
        })
        .await
        // If the terminal is gone, the call is denied.
        .unwrap_or(ApprovalReply::No {
            reason: String::new(),
        })
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        let form = form.clone();
        self.prompt_user(move |terminal, mut input| {
            let mut out = terminal;
            form::fill_form(&mut input, &mut out, &form, || {
                haft_tui::wait_and_discard_typed_ahead(terminal);
            })
        })
        .await
        // If the terminal is gone, the form is canceled.
        .unwrap_or(FormOutcome::Canceled)
    }

    fn answered_elsewhere(&self, _approval: &Approval, reply: &ApprovalReply) {
        let text = format!("\n{}\n", describe_reply_elsewhere(reply));
        // The answer counts even if the terminal is gone.
        drop((&*self.terminal).write_all(text.as_bytes()));
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        permissions::add_rules(&self.places, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Describes an answer that was given in an attached front end.
pub(crate) fn describe_reply_elsewhere(reply: &ApprovalReply) -> &'static str {
    match reply {
        ApprovalReply::No { .. } => text!("run-denied-elsewhere"),
        ApprovalReply::Once
        | ApprovalReply::Changed { .. }
        | ApprovalReply::Always
        | ApprovalReply::AlwaysBy { .. }
        | ApprovalReply::Session => text!("run-allowed-elsewhere"),
    }
}

fn prompt_approval(
    terminal: &File,
    input: &mut dyn BufRead,
    approval: &Approval,
    rules_file: &str,
) -> std::io::Result<ApprovalReply> {
    let mut out = terminal;
    let question = haft_tui::wrap_to_terminal(&format_question(approval));
    out.write_all(question.as_bytes())?;
    out.flush()?;
    haft_tui::wait_and_discard_typed_ahead(terminal);
    loop {
        let choices = haft_tui::wrap_to_terminal(&format_choices(approval, rules_file));
        out.write_all(choices.as_bytes())?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(ApprovalReply::No {
                reason: String::new(),
            });
        }
        // Several lines at once were pasted, so none of them is an answer.
        if haft_tui::has_pending_line(terminal) {
            haft_tui::discard_typed_ahead_now(terminal);
            out.write_all(format!("{}\n", text!("run-several-lines")).as_bytes())?;
            continue;
        }
        if let Some(answer) = parse_answer(line.trim(), approval) {
            return Ok(answer);
        }
    }
}

/// Formats the question, including everything that would run or be written.
pub(crate) fn format_question(approval: &Approval) -> String {
    let Approval {
        agent,
        tool,
        arguments,
        reason,
        parts,
        ..
    } = approval;
    let whose = if agent == MAIN_AGENT {
        String::new()
    } else {
        text!("run-of-subagent", agent)
    };
    let text = format!(
        "\n{}\n\n",
        text!(
            "run-permission",
            call = CallHeadline::new(tool, arguments).to_line(),
            whose,
            reason = haft_messages::capitalize(&haft_messages::translate_error(reason))
        )
    );
    let mut text = reveal_controls(&text).into_owned();
    for line in approval.shown_subject().lines() {
        text.extend(["    ", line, "\n"]);
    }
    let asked: Vec<_> = parts
        .iter()
        .filter(|part| part.decision == Decision::Ask)
        .collect();
    if parts.len() > 1 && asked.len() < parts.len() {
        text.extend(["\n", text!("run-not-allowed-yet"), "\n"]);
        for part in asked {
            text.extend(["    ", &show_exactly(&part.command), "\n"]);
        }
    }
    text.push('\n');
    text
}

/// Formats the keys with which the user can answer, with the rules that "always" saves and the file
/// that stores them.
fn format_choices(approval: &Approval, rules_file: &str) -> String {
    let keys = match approval.shown_rules().as_slice() {
        [] => text!("run-permission-keys").to_owned(),
        rules => text!(
            "run-permission-keys-always",
            rules = crate::output::join_names(rules),
            file = rules_file
        ),
    };
    reveal_controls(&format!("{keys} ")).into_owned()
}

/// Parses a line as an answer. Returns `None` if the question must be asked again.
fn parse_answer(line: &str, approval: &Approval) -> Option<ApprovalReply> {
    match (line, haft_messages::parse_yes_no(line)) {
        (_, Some(true)) => Some(ApprovalReply::Once),
        (_, Some(false)) => Some(ApprovalReply::No {
            reason: String::new(),
        }),
        ("a" | "A" | "always" | "始终", None) if approval.remember.is_empty() => None,
        ("a" | "A" | "always" | "始终", None) => Some(ApprovalReply::Always),
        // An empty line is no answer: pressing Enter once too often must not deny the call.
        ("", None) => None,
        (words, None) => Some(ApprovalReply::No {
            reason: words.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use haft_engine::SubjectKind;
    use haft_permission::PartVerdict;
    use haft_testkit::support::hostile_commands;

    use super::*;

    fn approval(remember: &[&str]) -> Approval {
        let part = |command: &str, decision| PartVerdict {
            command: command.into(),
            decision,
            reason: String::new(),
            rule: None,
        };
        Approval {
            agent: MAIN_AGENT.into(),
            call_id: None,
            tool: "execute_command".into(),
            arguments: serde_json::Value::Null,
            subject: "ls; make\r\nclean \u{1b}[2K".into(),
            subject_kind: SubjectKind::Text,
            reason: "no rule allows `make`".into(),
            leaves_sandbox: false,
            parts: vec![part("ls", Decision::Allow), part("make", Decision::Ask)],
            remember: remember.iter().map(|rule| (*rule).to_owned()).collect(),
        }
    }

    #[test]
    fn format_question_shows_all_without_control_sequences() {
        let text = format_question(&approval(&[]));
        assert!(text.contains("    ls; make␍\n    clean ␛[2K\n"), "{text}");
        assert!(text.contains("Needs approval:\n    make\n"), "{text}");
        assert!(!text.contains('\u{1b}'));
        let of_another = Approval {
            agent: "tester".into(),
            ..approval(&[])
        };
        assert!(format_question(&of_another).contains("(sub-agent tester)?"));
    }

    #[test]
    fn format_question_shows_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let asked = Approval {
                subject: command.clone(),
                parts: Vec::new(),
                ..approval(&[])
            };
            let text = format_question(&asked);
            let (_, shown) = text.split_once(".\n\n").unwrap();
            let lines = shown.strip_suffix("\n").unwrap().lines();
            let lines: Vec<_> = lines
                .map(|line| line.strip_prefix("    ").unwrap())
                .collect();
            let wanted = asked.shown_subject();
            assert_eq!(lines, wanted.lines().collect::<Vec<_>>(), "{command:?}");
        }
    }

    #[test]
    fn parse_answer_accepts_yes_no_always_and_reasons() {
        let can = approval(&["execute_command(make)"]);
        assert_eq!(parse_answer("y", &can), Some(ApprovalReply::Once));
        assert_eq!(parse_answer("是", &can), Some(ApprovalReply::Once));
        assert_eq!(parse_answer("始终", &can), Some(ApprovalReply::Always));
        assert_eq!(
            parse_answer("否", &can),
            Some(ApprovalReply::No {
                reason: String::new()
            })
        );
        assert_eq!(parse_answer("a", &can), Some(ApprovalReply::Always));
        assert_eq!(
            parse_answer("a", &approval(&[])),
            None,
            "there is no rule to keep"
        );
        assert_eq!(parse_answer("", &can), None);
        assert_eq!(
            parse_answer("no", &can),
            Some(ApprovalReply::No {
                reason: String::new()
            })
        );
        assert_eq!(
            parse_answer("yes please, but in out/", &can),
            Some(ApprovalReply::No {
                reason: "yes please, but in out/".into()
            })
        );
        assert_eq!(
            parse_answer("actually no", &can),
            Some(ApprovalReply::No {
                reason: "actually no".into()
            })
        );
        assert!(
            format_choices(&can, "/c.toml")
                .contains("a = always (saves execute_command(make) in /c.toml)")
        );
        assert!(!format_choices(&approval(&[]), "/c.toml").contains("always"));
    }
}
