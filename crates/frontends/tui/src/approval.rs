//! A call that waits for a yes or no: what is shown, and what keys mean.
//!
//! What is asked about is printed whole, as finished output, so that it can be scrolled through; the question stands in the live
//! region. Invariant: no key that was pressed before the question could be read answers it (`armed`).

use haft_agent::{Approval, ApprovalReply, MAIN};
use haft_text::reveal;
use haft_types::Decision;
use serde_json::Value;

use crate::diff;
use crate::line::{StyledLine, TextStyle};
use crate::proposed;
use crate::wrap::{chop, hang, wrap};

/// Rows of a reason or a choice, so that all of them fit a small terminal.
const FEW: usize = 2;
/// Rules longer than this are shown whole above the question.
const LONG_RULES: usize = 60;

/// A question that is open.
#[derive(Debug)]
pub(crate) struct ApprovalDialog {
    pub(crate) approval: Approval,
    /// Whether keys answer it yet.
    pub(crate) armed: bool,
    pub(crate) stage: ApprovalStage,
}

/// What is being typed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalStage {
    /// Nothing: a key chooses.
    Choose,
    /// The user types a reason for the model, with a no.
    Reason,
    /// Other arguments.
    Change,
}

/// What a key chooses.
#[derive(Debug, PartialEq)]
pub(crate) enum ApprovalChoice {
    /// That is the answer.
    Answer(ApprovalReply),
    /// A reason is typed first.
    Reason,
    /// The arguments are changed first, beginning with this text.
    Change(String),
    /// What a file would hold is changed first, in the user's editor.
    ChangeFile,
}

impl ApprovalDialog {
    pub(crate) fn new(approval: Approval) -> Self {
        Self { approval, armed: false, stage: ApprovalStage::Choose }
    }

    /// What a key means, if anything.
    pub(crate) fn choice(&self, key: char) -> Option<ApprovalChoice> {
        match key {
            'y' => Some(ApprovalChoice::Answer(ApprovalReply::Once)),
            'a' if !self.approval.remember.is_empty() => Some(ApprovalChoice::Answer(ApprovalReply::Always)),
            'n' => Some(ApprovalChoice::Answer(ApprovalReply::No { reason: String::new() })),
            'w' => Some(ApprovalChoice::Reason),
            'e' if proposed::is_file_tool(&self.approval.tool) => Some(ApprovalChoice::ChangeFile),
            'e' => Some(ApprovalChoice::Change(self.editable())),
            _ => None,
        }
    }

    /// The answer that typed text is, or why it is none.
    pub(crate) fn typed(&self, text: &str) -> Result<ApprovalReply, String> {
        match self.stage {
            ApprovalStage::Choose | ApprovalStage::Reason => Ok(ApprovalReply::No { reason: text.trim().to_owned() }),
            ApprovalStage::Change => {
                let arguments = self.changed(text)?;
                Ok(if arguments == self.approval.arguments {
                    ApprovalReply::Once
                } else {
                    ApprovalReply::Changed { arguments }
                })
            }
        }
    }

    fn command(&self) -> Option<&str> {
        self.approval.arguments.get("command").and_then(Value::as_str)
    }

    pub(crate) fn editable(&self) -> String {
        match self.command() {
            Some(command) => command.to_owned(),
            None => format!("{:#}", self.approval.arguments),
        }
    }

    fn changed(&self, text: &str) -> Result<Value, String> {
        if self.command().is_none() {
            return serde_json::from_str(text).map_err(|error| text!("approval-not-json", error));
        }
        let mut arguments = self.approval.arguments.clone();
        if let Some(command) = arguments.get_mut("command") {
            *command = text.into();
        }
        Ok(arguments)
    }

    /// What it is about, whole.
    pub(crate) fn subject(&self, columns: usize) -> Vec<StyledLine> {
        let Approval { agent, tool, subject, parts, leaves_sandbox, .. } = &self.approval;
        let whose = if agent == MAIN { String::new() } else { format!(" {}", text!("approval-of-subagent", agent)) };
        let title = StyledLine::of("? ", TextStyle::Warning)
            .and(reveal(tool), TextStyle::Strong)
            .and(
                if *leaves_sandbox { format!(" {}", text!("approval-outside")) } else { String::new() },
                TextStyle::Warning,
            )
            .and(reveal(&whose), TextStyle::Plain)
            .and(
                if diff::is_diff(subject) { format!("  {}", diff::counts(subject)) } else { String::new() },
                TextStyle::Dim,
            );
        // What is asked about stands right above the question, however many rules there are.
        let mut rows = self.rule_rows(columns);
        rows.extend(wrap(&title, columns));
        let room = columns.saturating_sub(2);
        let inset = |row: StyledLine| {
            StyledLine::of("  ", TextStyle::Plain).spans().iter().chain(row.spans()).cloned().collect()
        };
        let shown: Vec<_> = if diff::is_diff(subject) {
            diff::rows(reveal(subject).lines(), room)
        } else {
            reveal(subject).lines().flat_map(|line| chop(&StyledLine::of(line, TextStyle::Code), room)).collect()
        };
        rows.extend(shown.into_iter().map(inset));
        let asked: Vec<_> = parts.iter().filter(|part| part.decision == Decision::Ask).collect();
        if !asked.is_empty() && asked.len() < parts.len() {
            rows.push(StyledLine::of(format!("  {}", text!("approval-not-allowed-yet")), TextStyle::Dim));
            for part in asked {
                rows.extend(chop(&StyledLine::of(format!("    {}", reveal(&part.command)), TextStyle::Plain), columns));
            }
        }
        let reason = wrap(&self.reason(), columns);
        if reason.len() > FEW {
            rows.extend(reason);
        }
        rows
    }

    /// The rules of "always", where they do not fit beside it.
    fn rule_rows(&self, columns: usize) -> Vec<StyledLine> {
        if self.rules().len() <= LONG_RULES {
            return Vec::new();
        }
        let mut rows = vec![StyledLine::of(text!("approval-always-allows"), TextStyle::Dim).cut(columns)];
        let (first, rest) = (StyledLine::of("  ", TextStyle::Plain), StyledLine::of("    ", TextStyle::Plain));
        let rules = self.approval.remember.iter();
        rows.extend(
            rules.flat_map(|rule| hang(&StyledLine::of(reveal(rule), TextStyle::Plain), &first, &rest, columns)),
        );
        rows
    }

    fn reason(&self) -> StyledLine {
        StyledLine::of(text!("approval-question", reason = reveal(&self.approval.reason)), TextStyle::Warning)
    }

    /// What would be allowed from now on, if that can be.
    fn rules(&self) -> String {
        reveal(&self.approval.remember.join(", ")).into_owned()
    }

    /// The question in no more rows than these, as far as that is possible.
    pub(crate) fn question_within(&self, columns: usize, room: usize) -> Vec<StyledLine> {
        let rows = self.question(columns);
        if rows.len() <= room || self.stage != ApprovalStage::Choose {
            return rows;
        }
        let key = if self.armed { TextStyle::Accent } else { TextStyle::Dim };
        let always = (!self.approval.remember.is_empty()).then_some(("a", text!("approval-short-always")));
        let choices = [("y", text!("approval-short-yes"))].into_iter().chain(always).chain([
            ("n", text!("approval-short-no")),
            ("w", text!("approval-short-reason")),
            ("e", text!("approval-short-edit")),
        ]);
        let line = choices.fold(StyledLine::empty(), |line, (c, meaning)| {
            line.and(format!(" {c} "), key).and(meaning, TextStyle::Plain)
        });
        let mut short = wrap(&line, columns);
        let reason = wrap(&self.reason(), columns);
        let first = reason.into_iter().take(room.saturating_sub(short.len()).max(1)).collect::<Vec<_>>();
        short.splice(0..0, first);
        short
    }

    /// The question.
    pub(crate) fn question(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = few(wrap(&self.reason(), columns));
        let key = if self.armed { TextStyle::Accent } else { TextStyle::Dim };
        let choice = |rows: &mut Vec<StyledLine>, c: &str, meaning: String| {
            let front = StyledLine::of(format!(" {c} "), key);
            rows.extend(few(hang(
                &StyledLine::of(meaning, TextStyle::Plain),
                &front,
                &StyledLine::of("   ", TextStyle::Plain),
                columns,
            )));
        };
        match self.stage {
            ApprovalStage::Choose => {
                choice(&mut rows, "y", text!("approval-yes").into());
                if !self.approval.remember.is_empty() {
                    let (rules, count) = (self.rules(), self.approval.remember.len());
                    let many = rules.len() > LONG_RULES && count > 1;
                    let always =
                        if many { text!("approval-always-many", count) } else { text!("approval-always", rules) };
                    choice(&mut rows, "a", always);
                }
                choice(&mut rows, "n", text!("approval-no").into());
                choice(&mut rows, "w", text!("approval-no-reason").into());
                choice(&mut rows, "e", text!("approval-edit").into());
            }
            ApprovalStage::Reason => {
                rows.push(StyledLine::of(text!("approval-reason-keys"), TextStyle::Dim).cut(columns));
            }
            ApprovalStage::Change => {
                rows.push(StyledLine::of(text!("approval-edit-keys"), TextStyle::Dim).cut(columns));
            }
        }
        rows
    }
}

/// The first of these rows: whatever they say, the choices below them must stay on the screen.
fn few(mut rows: Vec<StyledLine>) -> Vec<StyledLine> {
    if rows.len() > FEW {
        rows.truncate(FEW);
        rows.push(StyledLine::of("   …", TextStyle::Dim));
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn asking(tool: &str, arguments: Value, subject: &str) -> ApprovalDialog {
        ApprovalDialog::new(Approval {
            agent: MAIN.into(),
            tool: tool.into(),
            arguments,
            subject: subject.into(),
            reason: "no rule allows it".into(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        })
    }

    #[test]
    fn nothing_is_hidden_or_repainted() {
        let hostile = "rm -rf ~\r\u{1b}[2K\u{1b}[1Als\u{202e}\n\u{8}\u{8}echo";
        let asking = asking("execute_command", json!({"command": hostile}), hostile);
        let rows: Vec<_> = asking.subject(60).iter().map(StyledLine::plain).collect();
        assert_eq!(rows[1..], ["  rm -rf ~␍␛[2K␛[1Als<U+202E>", "  ␈␈echo"]);
    }

    #[test]
    fn leaving_the_sandbox_stands_in_the_title() {
        let mut asking = asking("execute_command", json!({"command": "make"}), "make");
        assert_eq!(asking.subject(60)[0].plain(), "? execute_command");
        asking.approval.leaves_sandbox = true;
        assert_eq!(asking.subject(60)[0].plain(), "? execute_command outside the sandbox");
    }

    #[test]
    fn reasons_that_do_not_fit_beside_the_choices_stand_above_them() {
        let mut asking = asking("execute_command", json!({"command": "make"}), "make");
        asking.approval.reason = "it would run outside the sandbox; ".repeat(4) + "the last one";
        let shown: Vec<_> = asking.subject(40).iter().map(StyledLine::plain).collect();
        assert!(shown.join(" ").contains("the last one"), "{shown:#?}");
    }

    #[test]
    fn long_subjects_are_shown_whole() {
        let line = "x".repeat(10_000);
        let asking = asking("execute_command", json!({"command": line}), &line);
        let shown: String = asking.subject(40).iter().skip(1).map(|row| row.plain().trim_start().to_owned()).collect();
        assert_eq!(shown, line);
    }

    #[test]
    fn a_long_rule_hides_no_choice() {
        let mut asking = asking("execute_command", json!({"command": "x"}), "x");
        asking.approval.remember = vec![format!("execute_command({})", "long ".repeat(5_000))];
        asking.approval.reason = "no ".repeat(5_000);
        let rows: Vec<_> = asking.question(40).iter().map(StyledLine::plain).collect();
        assert!(rows.len() < 14 && rows.contains(&" y yes, this once".to_owned()), "{rows:#?}");
        let shown: String = asking.subject(40).iter().map(StyledLine::plain).collect();
        assert_eq!(shown.matches('g').count(), 5_000, "all of it is above");
    }

    #[test]
    fn keys_and_words() {
        let mut one = asking("execute_command", json!({"command": "ls", "cwd": "a"}), "ls");
        assert_eq!(one.choice('y'), Some(ApprovalChoice::Answer(ApprovalReply::Once)));
        assert_eq!(one.choice('a'), None, "there is no rule to keep");
        assert_eq!(one.choice('e'), Some(ApprovalChoice::Change("ls".into())));
        one.stage = ApprovalStage::Change;
        assert_eq!(one.typed("ls"), Ok(ApprovalReply::Once));
        assert_eq!(
            one.typed("ls -l"),
            Ok(ApprovalReply::Changed { arguments: json!({"command": "ls -l", "cwd": "a"}) })
        );
        one.stage = ApprovalStage::Reason;
        assert_eq!(one.typed(" not there "), Ok(ApprovalReply::No { reason: "not there".into() }));
        let mut other = asking("write_to_file", json!({"path": "a"}), "path: a");
        other.stage = ApprovalStage::Change;
        assert!(other.typed("{").is_err());
        assert_eq!(other.typed(r#"{"path": "b"}"#), Ok(ApprovalReply::Changed { arguments: json!({"path": "b"}) }));
    }
}
