//! A call that waits for a yes or no: what is shown, and what keys mean.
//!
//! What is asked about is printed whole, as finished output, so that it can be scrolled through;
//! the question stands in the live region. Invariants: no key that was pressed before the question
//! could be read answers it (`armed`), and one key allows at most this one call. A choice that
//! allows more is confirmed with Enter while its rules are shown.

use haft_agent::{Approval, ApprovalReply, MAIN, PermissionRule};
use haft_text::reveal;
use haft_types::{Decision, PermissionMode};
use serde_json::Value;

use crate::complete::MenuMove;
use crate::diff;
use crate::line::{StyledLine, TextStyle};
use crate::proposed;
use crate::rule_prefix;
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
    /// Whether edits could be accepted from now on.
    edits: bool,
    /// The choice the arrows stand on: none before the first of them, so that Enter alone says
    /// nothing.
    chosen: Option<usize>,
    /// Whether the reason was too long to stand beside the choices, and was printed with the
    /// subject.
    reason_above: bool,
    /// The file that rules are saved in, as it is shown.
    rules_file: String,
    /// The key that opened the input, until something else shows that the user edits rather than
    /// types a sentence.
    opened_by: Option<char>,
}

/// A choice that allows more than the call at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The rules of the approval are saved.
    Always,
    /// The rules of the approval hold until the session ends.
    Session,
    /// Edits are not asked about until the session ends.
    AllEdits,
}

impl Grant {
    /// The key that chooses it.
    pub(crate) fn key(self) -> char {
        match self {
            Self::Always => 'a',
            Self::Session | Self::AllEdits => 's',
        }
    }
}

/// What is being typed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalStage {
    /// Nothing: a key chooses.
    Choose,
    /// Nothing: Enter confirms this choice.
    Confirm(Grant),
    /// The user types a reason for the model, with a no.
    Reason,
    /// Other arguments.
    Change,
    /// The rules that allow it from now on, one in each line.
    Rule,
}

impl ApprovalStage {
    /// Returns true if the answer is typed into the editor.
    pub(crate) fn uses_editor(self) -> bool {
        match self {
            Self::Choose | Self::Confirm(_) => false,
            Self::Reason | Self::Change | Self::Rule => true,
        }
    }
}

/// What a key chooses.
#[derive(Debug, PartialEq)]
pub(crate) enum ApprovalChoice {
    /// That is the answer.
    Answer(ApprovalReply),
    /// More than this call is allowed, once the user has confirmed it.
    Confirm(Grant),
    /// A reason is typed first.
    Reason,
    /// The arguments are changed first, beginning with this text.
    Change(String),
    /// What a file would hold is changed first, in the user's editor.
    ChangeFile,
    /// Rules are written first, beginning with these.
    Rule(String),
}

/// One of the rows a question ends in.
struct ApprovalRow {
    key: char,
    text: String,
    short: &'static str,
}

impl ApprovalDialog {
    /// Creates the question as it is at first, in this mode. Rules are saved in `rules_file`.
    pub(crate) fn new(approval: Approval, mode: PermissionMode, rules_file: &str) -> Self {
        let is_edit = diff::is_diff(&approval.subject) || proposed::is_file_tool(&approval.tool);
        // What no rule can allow is asked whatever the mode.
        let edits = is_edit && mode == PermissionMode::Ask && !approval.remember.is_empty();
        Self {
            approval,
            armed: false,
            stage: ApprovalStage::Choose,
            edits,
            chosen: None,
            reason_above: false,
            rules_file: rules_file.to_owned(),
            opened_by: None,
        }
    }

    /// What can be answered, in the order it is shown.
    fn rows(&self) -> Vec<ApprovalRow> {
        let row = |key, text: &str, short| ApprovalRow {
            key,
            text: text.to_owned(),
            short,
        };
        let mut rows = vec![row('y', text!("approval-yes"), text!("approval-short-yes"))];
        if !self.approval.remember.is_empty() {
            let rules = self.rules();
            let count = self.approval.remember.len();
            let many = rules.len() > LONG_RULES && count > 1;
            let always = if many {
                text!("approval-always-many", count)
            } else {
                text!("approval-always", rules)
            };
            let session = if self.edits {
                text!("approval-all-edits")
            } else {
                text!("approval-session")
            };
            rows.push(row('s', session, text!("approval-short-session")));
            rows.push(row('a', &always, text!("approval-short-always")));
            let proposed = reveal(&self.proposed_rules().replace('\n', ", ")).into_owned();
            let rule = if many || proposed == rules || proposed.len() > LONG_RULES {
                text!("approval-rule").to_owned()
            } else {
                text!("approval-rule-such-as", rule = proposed)
            };
            rows.push(row('r', &rule, text!("approval-short-rule")));
        }
        rows.push(row('n', text!("approval-no"), text!("approval-short-no")));
        rows.push(row(
            'w',
            text!("approval-no-reason"),
            text!("approval-short-reason"),
        ));
        rows.push(row(
            'e',
            text!("approval-edit"),
            text!("approval-short-edit"),
        ));
        rows
    }

    /// What a key means, if anything.
    pub(crate) fn choice(&self, key: char) -> Option<ApprovalChoice> {
        let can_remember = !self.approval.remember.is_empty();
        match key {
            'y' => Some(ApprovalChoice::Answer(ApprovalReply::Once)),
            's' if self.edits => Some(ApprovalChoice::Confirm(Grant::AllEdits)),
            's' if can_remember => Some(ApprovalChoice::Confirm(Grant::Session)),
            'a' if can_remember => Some(ApprovalChoice::Confirm(Grant::Always)),
            'r' if can_remember => Some(ApprovalChoice::Rule(self.proposed_rules())),
            'n' => Some(ApprovalChoice::Answer(ApprovalReply::No {
                reason: String::new(),
            })),
            'w' => Some(ApprovalChoice::Reason),
            'e' if proposed::is_file_tool(&self.approval.tool) => Some(ApprovalChoice::ChangeFile),
            'e' => Some(ApprovalChoice::Change(self.editable())),
            _ => None,
        }
    }

    /// What the row the arrows stand on means.
    pub(crate) fn chosen(&self) -> Option<ApprovalChoice> {
        self.choice(self.rows().get(self.chosen?)?.key)
    }

    /// The arrows go to another row, and around at the ends.
    pub(crate) fn step(&mut self, step: MenuMove) {
        let count = self.rows().len();
        self.chosen = Some(match (step, self.chosen) {
            (MenuMove::Up, None | Some(0)) | (MenuMove::PageDown, _) => count - 1,
            (MenuMove::Up, Some(at)) => at - 1,
            (MenuMove::Down, at) => at.map_or(0, |at| (at + 1) % count),
            (MenuMove::PageUp, _) => 0,
        });
    }

    /// Returns the choice that waits for Enter.
    pub(crate) fn confirming(&self) -> Option<Grant> {
        match self.stage {
            ApprovalStage::Confirm(grant) => Some(grant),
            ApprovalStage::Choose
            | ApprovalStage::Reason
            | ApprovalStage::Change
            | ApprovalStage::Rule => None,
        }
    }

    /// Opens the input for `stage`.
    pub(crate) fn open_input(&mut self, stage: ApprovalStage) {
        self.stage = stage;
        self.opened_by = match stage {
            ApprovalStage::Change => Some('e'),
            ApprovalStage::Rule => Some('r'),
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => None,
        };
    }

    /// Notes that the user paused after opening the input: the next letter edits a command.
    pub(crate) fn pause(&mut self) {
        if self.stage == ApprovalStage::Change {
            self.opened_by = None;
        }
    }

    /// Returns the beginning of the sentence that the user seems to type, if a choice's key was
    /// only its first letter.
    ///
    /// `typed` is a character for the end of the text that the input was opened with. Behind a
    /// rule, only a parenthesis makes sense. Behind a command, a letter does, but only after a
    /// pause.
    pub(crate) fn sentence_begun(&mut self, typed: char) -> Option<String> {
        let opened_by = self.opened_by.take()?;
        let is_sentence = match self.stage {
            ApprovalStage::Rule => typed != '(',
            ApprovalStage::Change => typed.is_alphabetic(),
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => false,
        };
        is_sentence.then(|| format!("{opened_by}{typed}"))
    }

    /// Notes that the user edits what the input was opened with.
    pub(crate) fn edit(&mut self) {
        self.opened_by = None;
    }

    /// The answer that typed text is, or why it is none.
    pub(crate) fn typed(&self, text: &str) -> Result<ApprovalReply, String> {
        match self.stage {
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => {
                Ok(ApprovalReply::No {
                    reason: text.trim().to_owned(),
                })
            }
            ApprovalStage::Change => {
                let arguments = self.changed(text)?;
                Ok(if arguments == self.approval.arguments {
                    ApprovalReply::Once
                } else {
                    ApprovalReply::Changed { arguments }
                })
            }
            ApprovalStage::Rule => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                let rules: Vec<_> = lines.map(str::to_owned).collect();
                for rule in &rules {
                    PermissionRule::parse(rule, None).map_err(|error| error.to_string())?;
                }
                match rules.as_slice() {
                    [] => Err(text!("approval-no-rule").to_owned()),
                    others if !others.iter().any(|rule| self.is_about_this_tool(rule)) => {
                        Err(text!(
                            "approval-other-rule",
                            tool = self.tools_of_rules().join(", ")
                        ))
                    }
                    same if same == self.approval.remember => Ok(ApprovalReply::Always),
                    _ => Ok(ApprovalReply::AlwaysBy { rules }),
                }
            }
        }
    }

    /// The rules to begin with where they are edited first, one in each line.
    fn proposed_rules(&self) -> String {
        let mut rules: Vec<_> = self
            .approval
            .remember
            .iter()
            .map(|rule| rule_prefix::proposed(rule))
            .collect();
        rules.dedup();
        rules.join("\n")
    }

    /// The tools that the rules of the approval name.
    fn tools_of_rules(&self) -> Vec<&str> {
        let mut tools: Vec<_> = self
            .approval
            .remember
            .iter()
            .map(|rule| tool_of(rule))
            .collect();
        tools.dedup();
        tools
    }

    /// Whether a rule can allow the call: one that names another tool is a slip of the keyboard.
    fn is_about_this_tool(&self, rule: &str) -> bool {
        let tool = tool_of(rule);
        tool.contains('*') || self.tools_of_rules().contains(&tool)
    }

    fn command(&self) -> Option<&str> {
        self.approval
            .arguments
            .get("command")
            .and_then(Value::as_str)
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

    /// The tool that would make the change of files that is shown, where it is one.
    pub(crate) fn change(&self) -> Option<String> {
        let Approval {
            agent,
            tool,
            subject,
            ..
        } = &self.approval;
        (agent == MAIN && diff::is_diff(subject)).then(|| tool.clone())
    }

    /// What it is about, whole.
    pub(crate) fn subject(&mut self, columns: usize) -> Vec<StyledLine> {
        let Approval {
            agent,
            tool,
            subject,
            parts,
            leaves_sandbox,
            ..
        } = &self.approval;
        let whose = if agent == MAIN {
            String::new()
        } else {
            text!("approval-of-subagent", agent)
        };
        let title = StyledLine::of("? ", TextStyle::Warning)
            .and(reveal(tool), TextStyle::Strong)
            .and(
                if *leaves_sandbox {
                    format!(" {}", text!("approval-outside"))
                } else {
                    String::new()
                },
                TextStyle::Warning,
            )
            .and(reveal(&whose), TextStyle::Plain)
            .and(
                if diff::is_diff(subject) {
                    format!("  {}", diff::counts(subject))
                } else {
                    String::new()
                },
                TextStyle::Dim,
            );
        // What is asked about stands right above the question, however many rules and reasons there
        // are.
        let mut rows = self.rule_rows(columns);
        if wrap(&self.reason(), columns).len() > FEW {
            self.reason_above = true;
            let reason = haft_messages::error_text(&self.approval.reason);
            rows.extend(wrap(
                &StyledLine::of(reveal(&reason), TextStyle::Warning),
                columns,
            ));
        }
        rows.extend(wrap(&title, columns));
        let room = columns.saturating_sub(2);
        let inset = |row: StyledLine| {
            StyledLine::of("  ", TextStyle::Plain)
                .spans()
                .iter()
                .chain(row.spans())
                .cloned()
                .collect()
        };
        let shown: Vec<_> = if diff::is_diff(subject) {
            diff::numbered("", reveal(subject).lines(), room)
        } else {
            reveal(subject)
                .lines()
                .flat_map(|line| chop(&StyledLine::of(line, TextStyle::Code), room))
                .collect()
        };
        rows.extend(shown.into_iter().map(inset));
        let asked: Vec<_> = parts
            .iter()
            .filter(|part| part.decision == Decision::Ask)
            .collect();
        if !asked.is_empty() && asked.len() < parts.len() {
            rows.push(StyledLine::of(
                format!("  {}", text!("approval-not-allowed-yet")),
                TextStyle::Dim,
            ));
            for part in asked {
                let parts = chop(
                    &StyledLine::of(reveal(&part.command), TextStyle::Plain),
                    columns.saturating_sub(4),
                );
                rows.extend(parts.into_iter().map(inset).map(inset));
            }
        }
        rows
    }

    /// The rules of "always", where they do not fit beside it.
    fn rule_rows(&self, columns: usize) -> Vec<StyledLine> {
        if self.rules().len() <= LONG_RULES {
            return Vec::new();
        }
        let mut rows =
            vec![StyledLine::of(text!("approval-always-allows"), TextStyle::Dim).cut(columns)];
        let first = StyledLine::of("  ", TextStyle::Plain);
        let rest = StyledLine::of("    ", TextStyle::Plain);
        let rules = self.approval.remember.iter();
        rows.extend(rules.flat_map(|rule| {
            hang(
                &StyledLine::of(reveal(rule), TextStyle::Plain),
                &first,
                &rest,
                columns,
            )
        }));
        rows
    }

    fn reason(&self) -> StyledLine {
        let reason = if self.reason_above {
            "".into()
        } else {
            haft_messages::error_text(&self.approval.reason)
        };
        StyledLine::of(
            text!("approval-question", reason = reveal(&reason)).trim_end(),
            TextStyle::Warning,
        )
    }

    /// What would be allowed from now on, if that can be.
    fn rules(&self) -> String {
        reveal(&self.approval.remember.join(", ")).into_owned()
    }

    /// The question in no more rows than these, as far as that is possible.
    pub(crate) fn question_within(&self, columns: usize, room: usize) -> Vec<StyledLine> {
        let rows = self.question(columns);
        if rows.len() <= room {
            return rows;
        }
        match self.stage {
            ApprovalStage::Choose => {}
            ApprovalStage::Confirm(grant) => {
                return self.confirmation(grant, columns, ConfirmationRows::Few);
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => return rows,
        }
        let mut short = self.short_rows(columns, |_| true);
        if short.len() >= room {
            // Their keys stay; what is left fits.
            short = self.short_rows(columns, |key| !matches!(key, 's' | 'r'));
        }
        let reason = wrap(&self.reason(), columns);
        let first = reason
            .into_iter()
            .take(room.saturating_sub(short.len()).max(1))
            .collect::<Vec<_>>();
        short.splice(0..0, first);
        short
    }

    /// The choices side by side, each in one piece.
    fn short_rows(&self, columns: usize, is_shown: impl Fn(char) -> bool) -> Vec<StyledLine> {
        let key = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let mut lines = vec![StyledLine::empty()];
        for (at, row) in self
            .rows()
            .iter()
            .enumerate()
            .filter(|(_, row)| is_shown(row.key))
        {
            let cell =
                StyledLine::of(self.front(at, row.key), key).and(row.short, TextStyle::Plain);
            match lines.last_mut() {
                Some(last) if last.width() + cell.width() <= columns => {
                    cell.spans().iter().for_each(|span| last.push(span.clone()));
                }
                _ => lines.push(cell),
            }
        }
        lines.into_iter().map(|line| line.cut(columns)).collect()
    }

    /// The mark and the key before a choice.
    fn front(&self, at: usize, key: char) -> String {
        format!("{}{key} ", if self.chosen == Some(at) { '▸' } else { ' ' })
    }

    /// What a choice allows from now on, where that is kept, and the keys.
    fn confirmation(
        &self,
        grant: Grant,
        columns: usize,
        rows: ConfirmationRows,
    ) -> Vec<StyledLine> {
        let (question, kept, keys) = self.confirmed(grant);
        let indent = StyledLine::of("  ", TextStyle::Plain);
        let hung = |text: &str, style| {
            few(hang(
                &StyledLine::of(text, style),
                &indent,
                &indent,
                columns,
            ))
        };
        let mut shown = Vec::new();
        if rows == ConfirmationRows::All {
            shown.extend(few(wrap(
                &StyledLine::of(question, TextStyle::Warning),
                columns,
            )));
        }
        match grant {
            Grant::Always | Grant::Session => shown.extend(hung(&self.rules(), TextStyle::Strong)),
            Grant::AllEdits => {}
        }
        if rows == ConfirmationRows::All {
            shown.extend(hung(&kept, TextStyle::Dim));
        }
        let keys = StyledLine::of(keys, TextStyle::Accent);
        match rows {
            ConfirmationRows::All => shown.extend(wrap(&keys, columns)),
            ConfirmationRows::Few => shown.push(keys.cut(columns)),
        }
        shown
    }

    /// The question, where the grant is kept, and the keys, each as a sentence.
    pub(crate) fn confirmed(&self, grant: Grant) -> (&'static str, String, &'static str) {
        match grant {
            Grant::Always => (
                text!("approval-confirm-always"),
                text!("approval-saved-in", file = reveal(&self.rules_file)),
                text!("approval-always-keys"),
            ),
            Grant::Session => (
                text!("approval-confirm-session"),
                text!("approval-not-saved").to_owned(),
                text!("approval-session-keys"),
            ),
            Grant::AllEdits => (
                text!("approval-confirm-edits"),
                text!("approval-edits-meaning").to_owned(),
                text!("approval-session-keys"),
            ),
        }
    }

    /// The file that rules are saved in.
    pub(crate) fn rules_file(&self) -> &str {
        &self.rules_file
    }

    /// Returns what was allowed by saved rules, and the file they are in.
    pub(crate) fn saved(&self, rules: &[String]) -> String {
        let rules = reveal(&rules.join(", ")).into_owned();
        text!("approval-saved", rules, file = reveal(&self.rules_file))
    }

    /// The question.
    pub(crate) fn question(&self, columns: usize) -> Vec<StyledLine> {
        if let ApprovalStage::Confirm(grant) = self.stage {
            return self.confirmation(grant, columns, ConfirmationRows::All);
        }
        let mut rows = few(wrap(&self.reason(), columns));
        let key = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let note = match self.stage {
            ApprovalStage::Choose => {
                for (at, row) in self.rows().iter().enumerate() {
                    let style = if self.chosen == Some(at) {
                        TextStyle::Accent
                    } else {
                        TextStyle::Plain
                    };
                    let front = StyledLine::of(self.front(at, row.key), key);
                    let rest = StyledLine::of("   ", TextStyle::Plain);
                    rows.extend(few(hang(
                        &StyledLine::of(&row.text, style),
                        &front,
                        &rest,
                        columns,
                    )));
                }
                text!("approval-choice-keys")
            }
            // Returned above.
            ApprovalStage::Confirm(_) => "",
            ApprovalStage::Reason => text!("approval-reason-keys"),
            ApprovalStage::Change => text!("approval-edit-keys"),
            ApprovalStage::Rule => {
                let kept = text!("approval-saved-in", file = reveal(&self.rules_file));
                rows.extend(few(wrap(&StyledLine::of(kept, TextStyle::Dim), columns)));
                text!("approval-rule-keys")
            }
        };
        rows.push(StyledLine::of(note, TextStyle::Dim).cut(columns));
        rows
    }
}

/// How much of a confirmation is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfirmationRows {
    All,
    /// The rules and the keys.
    Few,
}

/// The part of a rule that names its tool.
fn tool_of(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule).trim()
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
        let approval = Approval {
            agent: MAIN.into(),
            tool: tool.into(),
            arguments,
            subject: subject.into(),
            reason: "no rule allows it".into(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        ApprovalDialog::new(approval, PermissionMode::Ask, "/home/me/config.toml")
    }

    #[test]
    fn nothing_is_hidden_or_repainted() {
        let hostile = "rm -rf ~\r\u{1b}[2K\u{1b}[1Als\u{202e}\n\u{8}\u{8}echo";
        let mut asking = asking("execute_command", json!({"command": hostile}), hostile);
        let rows: Vec<_> = asking.subject(60).iter().map(StyledLine::plain).collect();
        assert_eq!(rows[1..], ["  rm -rf ~␍␛[2K␛[1Als<U+202E>", "  ␈␈echo"]);
    }

    #[test]
    fn leaving_the_sandbox_stands_in_the_title() {
        let mut asking = asking("execute_command", json!({"command": "make"}), "make");
        assert_eq!(asking.subject(60)[0].plain(), "? execute_command");
        asking.approval.leaves_sandbox = true;
        assert_eq!(
            asking.subject(60)[0].plain(),
            "? execute_command outside the sandbox"
        );
    }

    #[test]
    fn reasons_that_do_not_fit_beside_the_choices_stand_above_them() {
        let mut asking = asking("execute_command", json!({"command": "make"}), "make");
        asking.approval.reason = "it would run outside the sandbox; ".repeat(4) + "the last one";
        let shown: Vec<_> = asking.subject(40).iter().map(StyledLine::plain).collect();
        assert!(shown.join(" ").contains("the last one"), "{shown:#?}");
        assert_eq!(
            asking.question(40)[0].plain(),
            "Allow this?",
            "it stands there once"
        );
    }

    #[test]
    fn long_subjects_are_shown_whole() {
        let line = "x".repeat(10_000);
        let mut asking = asking("execute_command", json!({"command": line}), &line);
        let shown: String = asking
            .subject(40)
            .iter()
            .skip(1)
            .map(|row| row.plain().trim_start().to_owned())
            .collect();
        assert_eq!(shown, line);
    }

    #[test]
    fn a_long_rule_hides_no_choice() {
        let mut asking = asking("execute_command", json!({"command": "x"}), "x");
        asking.approval.remember = vec![format!("execute_command({})", "long ".repeat(5_000))];
        asking.approval.reason = "no ".repeat(5_000);
        let rows: Vec<_> = asking.question(40).iter().map(StyledLine::plain).collect();
        assert!(
            rows.len() < 16 && rows.contains(&" y yes, this once".to_owned()),
            "{rows:#?}"
        );
        let shown: String = asking.subject(40).iter().map(StyledLine::plain).collect();
        assert_eq!(shown.matches('g').count(), 5_000, "all of it is above");
    }

    #[test]
    fn keys_and_words() {
        let mut one = asking(
            "execute_command",
            json!({"command": "ls", "cwd": "a"}),
            "ls",
        );
        assert_eq!(
            one.choice('y'),
            Some(ApprovalChoice::Answer(ApprovalReply::Once))
        );
        assert_eq!(one.choice('a'), None, "there is no rule to keep");
        assert_eq!(one.choice('e'), Some(ApprovalChoice::Change("ls".into())));
        one.stage = ApprovalStage::Change;
        assert_eq!(one.typed("ls"), Ok(ApprovalReply::Once));
        assert_eq!(
            one.typed("ls -l"),
            Ok(ApprovalReply::Changed {
                arguments: json!({"command": "ls -l", "cwd": "a"})
            })
        );
        one.stage = ApprovalStage::Reason;
        assert_eq!(
            one.typed(" not there "),
            Ok(ApprovalReply::No {
                reason: "not there".into()
            })
        );
        let mut other = asking("write_to_file", json!({"path": "a"}), "path: a");
        other.stage = ApprovalStage::Change;
        assert!(other.typed("{").is_err());
        assert_eq!(
            other.typed(r#"{"path": "b"}"#),
            Ok(ApprovalReply::Changed {
                arguments: json!({"path": "b"})
            })
        );
    }
    #[test]
    fn a_rule_is_edited_before_it_is_kept() {
        let mut one = asking(
            "execute_command",
            json!({"command": "cargo test -p x"}),
            "cargo test -p x",
        );
        assert_eq!(
            (one.choice('s'), one.choice('r')),
            (None, None),
            "no rule would hold"
        );
        one.approval.remember = vec!["execute_command(cargo test -p x)".into()];
        assert_eq!(
            one.choice('s'),
            Some(ApprovalChoice::Confirm(Grant::Session))
        );
        assert_eq!(
            one.choice('a'),
            Some(ApprovalChoice::Confirm(Grant::Always))
        );
        assert_eq!(
            one.choice('r'),
            Some(ApprovalChoice::Rule("execute_command(cargo test:*)".into()))
        );
        one.stage = ApprovalStage::Rule;
        assert_eq!(
            one.typed("execute_command(cargo test -p x)"),
            Ok(ApprovalReply::Always)
        );
        let rules = vec![
            "execute_command(cargo test:*)".to_owned(),
            "read_file(a)".to_owned(),
        ];
        assert_eq!(
            one.typed(&rules.join("\n\n ")),
            Ok(ApprovalReply::AlwaysBy { rules })
        );
        assert!(one.typed("execute_command(").is_err() && one.typed(" \n").is_err());
        assert!(
            one.typed("read_file(a)").is_err(),
            "it does not allow this call"
        );
    }

    #[test]
    fn all_edits_are_offered_only_where_the_mode_would_change() {
        let subject = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n";
        let mut edit = asking("write_to_file", json!({"path": "a"}), subject);
        assert_eq!(edit.choice('s'), None, "it is asked in every mode");
        edit.approval.remember = vec!["write_to_file(a)".into()];
        let of = |mode| ApprovalDialog::new(edit.approval.clone(), mode, "").choice('s');
        assert_eq!(
            of(PermissionMode::Ask),
            Some(ApprovalChoice::Confirm(Grant::AllEdits))
        );
        assert_eq!(
            of(PermissionMode::AcceptEdits),
            Some(ApprovalChoice::Confirm(Grant::Session))
        );
    }

    #[test]
    fn confirmation_shows_the_rules_and_where_they_are_kept() {
        let mut one = asking(
            "execute_command",
            json!({"command": "make \u{1b}"}),
            "make \u{1b}",
        );
        one.approval.remember = vec!["execute_command(make \u{1b})".into()];
        let shown = |one: &ApprovalDialog, columns, room| {
            one.question_within(columns, room)
                .iter()
                .map(StyledLine::plain)
                .collect::<Vec<_>>()
        };
        one.stage = ApprovalStage::Confirm(Grant::Always);
        assert_eq!(
            shown(&one, 70, 20),
            [
                "Always allow this?",
                "  execute_command(make ␛)",
                "  saved in /home/me/config.toml",
                "Enter saves the rule and runs the call, Esc goes back"
            ]
        );
        let small = shown(&one, 24, 3);
        assert_eq!(
            small[..2],
            ["  execute_command(make", "  ␛)"],
            "where it is kept gives way: {small:#?}"
        );
        one.stage = ApprovalStage::Confirm(Grant::Session);
        assert_eq!(
            shown(&one, 70, 20),
            [
                "Allow this until the session ends?",
                "  execute_command(make ␛)",
                "  nothing is saved",
                "Enter allows it, Esc goes back"
            ]
        );
        one.stage = ApprovalStage::Rule;
        assert!(shown(&one, 70, 20).contains(&"saved in /home/me/config.toml".to_owned()));
    }

    #[test]
    fn arrows_walk_and_enter_alone_says_nothing() {
        let mut one = asking("execute_command", json!({"command": "ls"}), "ls");
        assert_eq!(one.chosen(), None);
        one.step(MenuMove::Down);
        assert_eq!(
            one.chosen(),
            Some(ApprovalChoice::Answer(ApprovalReply::Once))
        );
        assert!(
            one.question(60)
                .iter()
                .any(|row| row.plain() == "▸y yes, this once")
        );
        one.step(MenuMove::Up);
        assert_eq!(
            one.chosen(),
            Some(ApprovalChoice::Change("ls".into())),
            "the last row"
        );
        one.step(MenuMove::Up);
        assert_eq!(one.chosen(), Some(ApprovalChoice::Reason));
    }
}
