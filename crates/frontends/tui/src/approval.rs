//! A tool call that needs the user's approval: its rows and keys.
//!
//! The subject is printed in full as finished output, so that the user can scroll through it; the
//! question is part of the live region. Invariants: a key that is pressed before the question could
//! be read doesn't answer it (`armed`), and a single key allows at most this one call. A choice
//! that allows more is confirmed with Enter while its rules are visible.

use haft_agent::{Approval, ApprovalReply, MAIN_AGENT, PartVerdict, PermissionRule, SubjectKind};
use haft_messages::{CallHeadline, capitalize};
use haft_text::{reveal_controls, show_exactly};
use haft_types::{Decision, PermissionMode};
use serde_json::Value;

use crate::complete::MenuMove;
use crate::diff::{self, DiffHeaders};
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::proposed_files;
use crate::rule_prefix;
use crate::wrap::{wrap_code, wrap_hanging, wrap_line};

/// The maximum number of rows that a reason or a choice may occupy, so that all choices fit on a
/// small terminal.
const MAX_TEXT_ROWS: usize = 2;
/// The maximum length, in bytes, of rules that are shown inside the question. Longer rules are
/// printed above the question.
const MAX_INLINE_RULES: usize = 60;
/// The minimum width in which short choices are set apart by a further blank, in columns.
const MIN_SPACED_COLUMNS: usize = 30;

/// The dialog of an open approval: the question, the selection, and the step that is shown.
#[derive(Debug)]
pub(crate) struct ApprovalDialog {
    pub(crate) approval: Approval,
    /// True once keys can answer the question.
    pub(crate) armed: bool,
    pub(crate) stage: ApprovalStage,
    /// True if the user can allow all edits until the session ends.
    edits: bool,
    /// The selected row. `None` before the first arrow key, so that Enter alone doesn't answer.
    chosen: Option<usize>,
    /// True if the reason was too long for the question and was printed with the subject.
    reason_above: bool,
    /// The display path of the file in which rules are saved.
    rules_file: String,
    /// The key that opened the input for a text. Cleared when it is certain that the user is
    /// editing the text and not typing a sentence.
    opened_by: Option<char>,
    /// The rules that allow every call of a tool, of which the user was warned.
    warned_of: Option<Vec<String>>,
}

/// A choice that allows more than the call that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Saves the rules of the approval.
    Always,
    /// Applies the rules of the approval until the session ends.
    Session,
    /// Allows all edits until the session ends.
    AllEdits,
}

impl Grant {
    /// Returns the key of the choice.
    pub(crate) fn key(self) -> char {
        match self {
            Self::Always => 'a',
            Self::Session | Self::AllEdits => 's',
        }
    }
}

/// The step of the dialog that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalStage {
    /// A key selects an answer.
    Choose,
    /// Enter confirms this choice.
    Confirm(Grant),
    /// The user types a reason for refusing the call.
    Reason,
    /// The user edits the arguments.
    Change,
    /// The user edits the rules to save, one per line.
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

/// The effect of an answer that the user chooses.
#[derive(Debug, PartialEq)]
pub(crate) enum ApprovalChoice {
    /// Answers the question.
    Answer(ApprovalReply),
    /// Allows calls beyond the one that needs approval, after a confirmation.
    Confirm(Grant),
    /// Asks for a reason before the call is refused.
    Reason,
    /// Opens the arguments for editing, starting with this text.
    Change(String),
    /// Opens the user's editor on the file that the call would write.
    ChangeFile,
    /// Opens the rules for editing, starting with this text.
    Rule(String),
}

/// A row of the question: a key and its meaning.
struct ApprovalRow {
    key: char,
    text: String,
    short: &'static str,
}

impl ApprovalDialog {
    /// Creates the dialog for an approval in the permission mode `mode`. Rules are saved in
    /// `rules_file`.
    pub(crate) fn new(approval: Approval, mode: PermissionMode, rules_file: &str) -> Self {
        let is_edit = is_diff(&approval) || proposed_files::has_editable_files(&approval.tool);
        // Calls that no rule can allow need approval in every mode.
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
            warned_of: None,
        }
    }

    /// Lists the answers in display order.
    fn list_choices(&self) -> Vec<ApprovalRow> {
        let row = |key, text: &str, short| ApprovalRow {
            key,
            text: text.to_owned(),
            short,
        };
        let mut rows = vec![row('y', text!("approval-yes"), text!("approval-short-yes"))];
        if !self.approval.remember.is_empty() {
            let rules = self.joined_rules();
            let count = self.approval.remember.len();
            let many = rules.len() > MAX_INLINE_RULES && count > 1;
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
            let proposed = reveal_controls(&self.proposed_rules().replace('\n', ", ")).into_owned();
            let rule = if many || proposed == rules || proposed.len() > MAX_INLINE_RULES {
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

    /// Returns the choice that a key selects.
    pub(crate) fn choice_for_key(&self, key: char) -> Option<ApprovalChoice> {
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
            'e' if proposed_files::has_editable_files(&self.approval.tool) => {
                Some(ApprovalChoice::ChangeFile)
            }
            'e' => Some(ApprovalChoice::Change(self.editable_arguments())),
            _ => None,
        }
    }

    /// Returns the choice of the selected row.
    pub(crate) fn selected_choice(&self) -> Option<ApprovalChoice> {
        self.choice_for_key(self.list_choices().get(self.chosen?)?.key)
    }

    /// Moves the selection, wrapping around at the ends.
    pub(crate) fn move_selection(&mut self, step: MenuMove) {
        let count = self.list_choices().len();
        self.chosen = Some(match (step, self.chosen) {
            (MenuMove::Up, None | Some(0)) | (MenuMove::PageDown, _) => count - 1,
            (MenuMove::Up, Some(at)) => at - 1,
            (MenuMove::Down, at) => at.map_or(0, |at| (at + 1) % count),
            (MenuMove::PageUp, _) => 0,
        });
    }

    /// Returns true if the user can allow all edits until the session ends.
    pub(crate) fn offers_all_edits(&self) -> bool {
        self.edits
    }

    /// Returns the choice that must be confirmed with Enter.
    pub(crate) fn pending_grant(&self) -> Option<Grant> {
        match self.stage {
            ApprovalStage::Confirm(grant) => Some(grant),
            ApprovalStage::Choose
            | ApprovalStage::Reason
            | ApprovalStage::Change
            | ApprovalStage::Rule => None,
        }
    }

    /// Switches to `stage`, and remembers the letter whose key opens its text input, if there is
    /// one.
    pub(crate) fn open_input(&mut self, stage: ApprovalStage) {
        self.stage = stage;
        self.opened_by = match stage {
            ApprovalStage::Change => Some('e'),
            ApprovalStage::Rule => Some('r'),
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => None,
        };
    }

    /// Records that the user paused after opening the input. A letter that follows is then part of
    /// the edited command.
    pub(crate) fn note_pause(&mut self) {
        if self.stage == ApprovalStage::Change {
            self.opened_by = None;
        }
    }

    /// Returns the start of the sentence that the user seems to be typing, if the key that opened
    /// the input was the sentence's first letter.
    ///
    /// `typed` is a character typed at the end of the text with which the input was opened. After a
    /// rule, only a parenthesis continues the text. After a command, a letter does, but only after
    /// a pause.
    pub(crate) fn take_begun_sentence(&mut self, typed: char) -> Option<String> {
        let opened_by = self.opened_by.take()?;
        let is_sentence = match self.stage {
            ApprovalStage::Rule => typed != '(',
            ApprovalStage::Change => typed.is_alphabetic(),
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => false,
        };
        is_sentence.then(|| format!("{opened_by}{typed}"))
    }

    /// Records that the user is editing the text with which the input was opened.
    pub(crate) fn note_edit(&mut self) {
        self.opened_by = None;
    }

    /// Converts typed text to an answer, or returns the reason why it is invalid. A rule that allows
    /// everything is returned as invalid once, with a warning.
    pub(crate) fn parse_input(&mut self, text: &str) -> Result<ApprovalReply, String> {
        match self.stage {
            ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason => {
                Ok(ApprovalReply::No {
                    reason: text.trim().to_owned(),
                })
            }
            ApprovalStage::Change => {
                let arguments = self.parse_edited_arguments(text)?;
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
                    others if !others.iter().any(|rule| self.can_allow_call(rule)) => Err(text!(
                        "approval-other-rule",
                        tool = self.rule_tools().join(", ")
                    )),
                    wide if allows_everything(wide) && self.warned_of.as_deref() != Some(wide) => {
                        self.warned_of = Some(rules);
                        Err(text!("approval-wide-rule").to_owned())
                    }
                    same if same == self.approval.remember => Ok(ApprovalReply::Always),
                    _ => Ok(ApprovalReply::AlwaysBy { rules }),
                }
            }
        }
    }

    /// Returns the initial text of the input for rules, one rule per line.
    fn proposed_rules(&self) -> String {
        let mut rules: Vec<_> = self
            .approval
            .remember
            .iter()
            .map(|rule| rule_prefix::propose_rule(rule))
            .collect();
        rules.dedup();
        rules.join("\n")
    }

    /// Returns the tools that the approval's rules name.
    fn rule_tools(&self) -> Vec<&str> {
        let mut tools: Vec<_> = self
            .approval
            .remember
            .iter()
            .map(|rule| parse_rule_tool(rule))
            .collect();
        tools.dedup();
        tools
    }

    /// Returns true if `rule` can allow the call. A rule for another tool cannot, and is probably a
    /// typo.
    fn can_allow_call(&self, rule: &str) -> bool {
        let tool = parse_rule_tool(rule);
        tool.contains('*') || self.rule_tools().contains(&tool)
    }

    fn command_line(&self) -> Option<&str> {
        self.approval
            .arguments
            .get("command")
            .and_then(Value::as_str)
    }

    pub(crate) fn editable_arguments(&self) -> String {
        match self.command_line() {
            Some(command) => command.to_owned(),
            None => format!("{:#}", self.approval.arguments),
        }
    }

    fn parse_edited_arguments(&self, text: &str) -> Result<Value, String> {
        if self.command_line().is_none() {
            return serde_json::from_str(text).map_err(|error| text!("approval-not-json", error));
        }
        let mut arguments = self.approval.arguments.clone();
        if let Some(command) = arguments.get_mut("command") {
            *command = text.into();
        }
        Ok(arguments)
    }

    /// Returns the tool of the call if the subject is a diff and the call was made by the main
    /// agent.
    pub(crate) fn diff_tool(&self) -> Option<String> {
        let Approval { agent, tool, .. } = &self.approval;
        (agent == MAIN_AGENT && is_diff(&self.approval)).then(|| tool.clone())
    }

    /// Draws the subject in full.
    pub(crate) fn draw_subject(&mut self, columns: usize) -> Vec<StyledLine> {
        // The subject comes last, right above the question, after any rules and reasons.
        let mut rows = self.draw_heading(columns);
        if self.draw_whole_title(columns).is_none() {
            let subject = self.draw_shown_subject(columns.saturating_sub(2));
            rows.extend(subject.iter().map(indent_row));
        }
        rows.extend(self.draw_parts(columns));
        rows
    }

    /// Draws the text above the subject: rules and reasons that are too long for the question, and
    /// the title.
    pub(crate) fn draw_heading(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut rows = self.draw_rules(columns);
        if wrap_line(&self.draw_reason(), columns).len() > MAX_TEXT_ROWS {
            self.reason_above = true;
            let reason = haft_messages::translate_error(&self.approval.reason);
            let reason = capitalize(&reveal_controls(&reason));
            rows.extend(wrap_line(
                &StyledLine::new(reason, TextStyle::Warning),
                columns,
            ));
            rows.push(StyledLine::empty());
        }
        rows.extend(wrap_line(&self.draw_title(columns), columns));
        rows
    }

    fn draw_shown_subject(&self, columns: usize) -> Vec<StyledLine> {
        let shown = self.approval.shown_subject();
        match self.approval.subject_kind {
            SubjectKind::Diff => {
                let headers = DiffHeaders::PathsOfSeveral;
                diff::draw_diff_rows("", headers, shown.lines(), columns)
            }
            SubjectKind::Text => shown
                .lines()
                .flat_map(|line| wrap_exact_line(line, columns))
                .collect(),
        }
    }

    /// Returns the lines of the subject, and of the parts of the command that need approval if other
    /// parts are already allowed, for output without a layout.
    pub(crate) fn list_exact_lines(&self) -> Vec<String> {
        let shown = self.approval.shown_subject();
        let mut lines: Vec<_> = shown.lines().map(|line| format!("  {line}")).collect();
        let asked = self.list_asked_parts();
        if !asked.is_empty() {
            lines.push(text!("approval-not-allowed-yet").to_owned());
        }
        for part in asked {
            let command = show_exactly(&part.command);
            lines.extend(command.lines().map(|line| format!("    {line}")));
        }
        lines
    }

    /// Draws the question in one row, such as `Run make?`. A command that does not fit is only
    /// called a command, because it is shown below.
    fn draw_title(&self, columns: usize) -> StyledLine {
        if let Some(whole) = self.draw_whole_title(columns) {
            return whole;
        }
        let headline = self.headline();
        if self.is_command_headline(&headline) {
            let verb = headline.verb;
            return self.draw_title_of(&text!("approval-command", verb), "");
        }
        self.draw_title_of(&headline.verb, &first_line(&headline.object))
    }

    /// Draws the question with the whole subject. Returns `None` if the subject is no command, does
    /// not fit in one row, or has characters that must be spelled out.
    fn draw_whole_title(&self, columns: usize) -> Option<StyledLine> {
        let subject = &self.approval.subject;
        let headline = self.headline();
        // A question mark of its own would be taken for the end of the question.
        let is_plain = !subject.is_empty()
            && !subject.contains('\n')
            && !subject.ends_with(['?', '？', ' '])
            && *subject == self.approval.shown_subject();
        if !is_plain || !self.is_command_headline(&headline) {
            return None;
        }
        let whole = self.draw_title_of(&headline.verb, subject);
        (whole.width() <= columns).then_some(whole)
    }

    fn headline(&self) -> CallHeadline {
        CallHeadline::new(&self.approval.tool, &self.approval.arguments)
    }

    /// True if the object of the headline is the command line that would run.
    fn is_command_headline(&self, headline: &CallHeadline) -> bool {
        self.command_line() == Some(&self.approval.subject)
            && headline.object == self.approval.subject
    }

    /// Draws a question about `object`, with the agent, a note if the call leaves the sandbox, and
    /// the size of a diff.
    fn draw_title_of(&self, verb: &str, object: &str) -> StyledLine {
        let Approval {
            agent,
            subject,
            leaves_sandbox,
            ..
        } = &self.approval;
        let mut title = StyledLine::new("? ", TextStyle::Warning)
            .with_text(reveal_controls(verb), TextStyle::Strong);
        if !object.is_empty() {
            title = title.with_text(format!(" {}", reveal_controls(object)), TextStyle::Strong);
        }
        if *leaves_sandbox {
            let outside = format!(" {}", text!("approval-outside"));
            title = title.with_text(outside, TextStyle::Bad);
        }
        if agent != MAIN_AGENT {
            let subagent = text!("approval-of-subagent", agent);
            title = title.with_text(reveal_controls(&subagent), TextStyle::Plain);
        }
        if is_diff(&self.approval) {
            let counts = format!(" ({})", diff::format_change_counts(subject));
            title = title.with_text(counts, TextStyle::Dim);
        }
        title.with_text(text!("approval-mark"), TextStyle::Strong)
    }

    /// Returns the parts of the command that need approval, or nothing if that is all of them.
    fn list_asked_parts(&self) -> Vec<&PartVerdict> {
        let parts = &self.approval.parts;
        let mut asked: Vec<_> = parts
            .iter()
            .filter(|part| part.decision == Decision::Ask)
            .collect();
        if asked.len() == parts.len() {
            asked.clear();
        }
        asked
    }

    /// Draws the parts of the command that need approval, if other parts are already allowed.
    fn draw_parts(&self, columns: usize) -> Vec<StyledLine> {
        let asked = self.list_asked_parts();
        if asked.is_empty() {
            return Vec::new();
        }
        let mut rows = vec![StyledLine::new(
            format!("  {}", text!("approval-not-allowed-yet")),
            TextStyle::Dim,
        )];
        for part in asked {
            let shown = show_exactly(&part.command);
            let command_rows = shown
                .lines()
                .flat_map(|line| wrap_exact_line(line, columns.saturating_sub(4)));
            rows.extend(command_rows.map(|row| indent_row(&indent_row(&row))));
        }
        rows
    }

    /// Draws the rules that "always" would save, if they are too long to be shown inside the
    /// question.
    fn draw_rules(&self, columns: usize) -> Vec<StyledLine> {
        if self.joined_rules().len() <= MAX_INLINE_RULES {
            return Vec::new();
        }
        let mut rows =
            vec![StyledLine::new(text!("approval-always-allows"), TextStyle::Dim).cut(columns)];
        let first = StyledLine::new("  ", TextStyle::Plain);
        let rest = StyledLine::new("    ", TextStyle::Plain);
        rows.extend(self.approval.shown_rules().iter().flat_map(|rule| {
            wrap_hanging(
                &StyledLine::new(rule, TextStyle::Plain),
                &first,
                &rest,
                columns,
            )
        }));
        rows
    }

    /// Draws the reason why the call needs approval. If the reason is printed with the subject, a
    /// short question stands for it.
    fn draw_reason(&self) -> StyledLine {
        if self.reason_above {
            return StyledLine::new(text!("approval-question"), TextStyle::Warning);
        }
        StyledLine::new(self.reason_text(), TextStyle::Warning)
    }

    /// Returns the reason why the call needs approval, or a short question if there is none.
    pub(crate) fn reason_text(&self) -> String {
        let reason = haft_messages::translate_error(&self.approval.reason);
        if reason.is_empty() {
            text!("approval-question").to_owned()
        } else {
            capitalize(&reveal_controls(&reason))
        }
    }

    /// Returns the rules that would be saved, in one line.
    fn joined_rules(&self) -> String {
        self.approval.shown_rules().join(", ")
    }

    /// Draws the question, shortened as far as possible to fit into `room` rows.
    pub(crate) fn draw_question_within(&self, columns: usize, room: usize) -> Vec<StyledLine> {
        let rows = self.draw_question(columns);
        if rows.len() <= room {
            return rows;
        }
        match self.stage {
            ApprovalStage::Choose => {}
            ApprovalStage::Confirm(grant) => {
                return self.draw_confirmation(grant, columns, ConfirmationRows::Few);
            }
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => return rows,
        }
        let mut short = self.draw_short_choices(columns, |_| true);
        if short.len() >= room {
            // The hidden choices keep their keys.
            short = self.draw_short_choices(columns, |key| !matches!(key, 's' | 'r'));
        }
        let reason = wrap_line(&self.draw_reason(), columns);
        let first = reason
            .into_iter()
            .take(room.saturating_sub(short.len()).max(1))
            .collect::<Vec<_>>();
        short.splice(0..0, first);
        short
    }

    /// Draws the choices side by side, without breaking a choice across rows.
    fn draw_short_choices(
        &self,
        columns: usize,
        is_shown: impl Fn(char) -> bool,
    ) -> Vec<StyledLine> {
        let key = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let gap = if columns < MIN_SPACED_COLUMNS {
            ""
        } else {
            " "
        };
        let mut lines = vec![StyledLine::empty()];
        for (at, row) in self
            .list_choices()
            .iter()
            .enumerate()
            .filter(|(_, row)| is_shown(row.key))
        {
            let cell = StyledLine::new(self.format_choice_prefix(at, row.key), key)
                .with_text(row.short, TextStyle::Plain);
            match lines.last_mut() {
                Some(last) if last.width() + gap.len() + cell.width() <= columns => {
                    if last.width() > 0 {
                        last.push(StyledSpan::new(gap, TextStyle::Plain));
                    }
                    cell.spans().iter().for_each(|span| last.push(span.clone()));
                }
                _ => lines.push(cell),
            }
        }
        lines.into_iter().map(|line| line.cut(columns)).collect()
    }

    /// Returns the selection mark and the key that are drawn before a choice.
    fn format_choice_prefix(&self, at: usize, key: char) -> String {
        format!("{}{key} ", if self.chosen == Some(at) { '▸' } else { ' ' })
    }

    /// Draws the effect of a choice, the place where the grant is stored, and the keys.
    fn draw_confirmation(
        &self,
        grant: Grant,
        columns: usize,
        rows: ConfirmationRows,
    ) -> Vec<StyledLine> {
        let (question, kept, keys) = self.confirmation_texts(grant);
        let indent = StyledLine::new("  ", TextStyle::Plain);
        let hung = |text: &str, style| {
            cut_text_rows(wrap_hanging(
                &StyledLine::new(text, style),
                &indent,
                &indent,
                columns,
            ))
        };
        let mut shown = Vec::new();
        if rows == ConfirmationRows::All {
            shown.extend(cut_text_rows(wrap_line(
                &StyledLine::new(question, TextStyle::Warning),
                columns,
            )));
        }
        match grant {
            Grant::Always | Grant::Session => {
                shown.extend(hung(&self.joined_rules(), TextStyle::Strong));
            }
            Grant::AllEdits => {}
        }
        if rows == ConfirmationRows::All {
            shown.extend(hung(&kept, TextStyle::Dim));
        }
        let keys = StyledLine::new(keys, TextStyle::Accent);
        match rows {
            ConfirmationRows::All => shown.extend(wrap_line(&keys, columns)),
            ConfirmationRows::Few => shown.push(keys.cut(columns)),
        }
        shown
    }

    /// Returns the question, the place where the grant is stored, and the keys, each as a sentence.
    pub(crate) fn confirmation_texts(&self, grant: Grant) -> (&'static str, String, &'static str) {
        match grant {
            Grant::Always => (
                text!("approval-confirm-always"),
                text!(
                    "approval-saved-in",
                    file = reveal_controls(&self.rules_file)
                ),
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

    /// Returns the display path of the file in which rules are saved.
    pub(crate) fn rules_file(&self) -> &str {
        &self.rules_file
    }

    /// Returns a sentence that names the saved rules and their file.
    pub(crate) fn saved_message(&self, rules: &[String]) -> String {
        let rules = reveal_controls(&rules.join(", ")).into_owned();
        text!(
            "approval-saved",
            rules,
            file = reveal_controls(&self.rules_file)
        )
    }

    /// Draws the question without a limit on rows.
    pub(crate) fn draw_question(&self, columns: usize) -> Vec<StyledLine> {
        if let ApprovalStage::Confirm(grant) = self.stage {
            return self.draw_confirmation(grant, columns, ConfirmationRows::All);
        }
        let mut rows = cut_text_rows(wrap_line(&self.draw_reason(), columns));
        let key = if self.armed {
            TextStyle::Accent
        } else {
            TextStyle::Dim
        };
        let note = match self.stage {
            ApprovalStage::Choose => {
                for (at, row) in self.list_choices().iter().enumerate() {
                    let style = if self.chosen == Some(at) {
                        TextStyle::Accent
                    } else {
                        TextStyle::Plain
                    };
                    let front = StyledLine::new(self.format_choice_prefix(at, row.key), key);
                    let rest = StyledLine::new("   ", TextStyle::Plain);
                    rows.extend(cut_text_rows(wrap_hanging(
                        &StyledLine::new(&row.text, style),
                        &front,
                        &rest,
                        columns,
                    )));
                }
                text!("approval-choice-keys")
            }
            // Drawn above.
            ApprovalStage::Confirm(_) => "",
            ApprovalStage::Reason => text!("approval-reason-keys"),
            ApprovalStage::Change => text!("approval-edit-keys"),
            ApprovalStage::Rule => {
                let kept = text!(
                    "approval-saved-in",
                    file = reveal_controls(&self.rules_file)
                );
                rows.extend(cut_text_rows(wrap_line(
                    &StyledLine::new(kept, TextStyle::Dim),
                    columns,
                )));
                text!("approval-rule-keys")
            }
        };
        rows.push(StyledLine::new(note, TextStyle::Dim).cut(columns));
        rows
    }
}

/// The rows that a confirmation shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfirmationRows {
    All,
    /// Only the rules and the keys.
    Few,
}

/// Returns the first line of a text, with a mark if more lines follow.
fn first_line(text: &str) -> String {
    match text.trim().split_once('\n') {
        Some((first, _)) => format!("{} …", first.trim_end()),
        None => text.trim().to_owned(),
    }
}

/// Indents a row by two columns.
fn indent_row(row: &StyledLine) -> StyledLine {
    StyledLine::new("  ", TextStyle::Plain)
        .spans()
        .iter()
        .chain(row.spans())
        .cloned()
        .collect()
}

/// Returns true if the subject is a diff. A command line that only looks like a diff is none.
fn is_diff(approval: &Approval) -> bool {
    match approval.subject_kind {
        SubjectKind::Diff => true,
        SubjectKind::Text => false,
    }
}

/// The mark of a row that continues the line above it.
const CONTINUED: &str = "↪ ";

/// Wraps a line of a shown text. Every row but the first has a mark, so that a line break of the
/// text, which can separate two commands, differs from a break for lack of room.
fn wrap_exact_line(line: &str, columns: usize) -> Vec<StyledLine> {
    let line = StyledLine::new(line, TextStyle::Code);
    if line.width() <= columns {
        return vec![line];
    }
    let mark = StyledLine::new(CONTINUED, TextStyle::Dim);
    let rows = wrap_code(&line, columns.saturating_sub(mark.width()));
    let marked = |(at, row): (usize, StyledLine)| {
        if at == 0 {
            return row;
        }
        mark.spans().iter().chain(row.spans()).cloned().collect()
    };
    rows.into_iter().enumerate().map(marked).collect()
}

/// Returns the tool that a rule names.
fn parse_rule_tool(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule).trim()
}

/// Returns true if one of the rules allows every call of a tool that runs commands, or calls of
/// every tool.
fn allows_everything(rules: &[String]) -> bool {
    rules.iter().any(|rule| {
        let tool = parse_rule_tool(rule);
        let pattern = rule
            .split_once('(')
            .map_or("", |(_, pattern)| pattern.trim_end().trim_end_matches(')'));
        let runs_commands = ["execute_command", "background_task", "session_start"].contains(&tool);
        tool.contains('*') || runs_commands && matches!(pattern.trim(), "" | "*" | "**" | ":*")
    })
}

/// Cuts the rows to [`MAX_TEXT_ROWS`], so that the choices below them stay on the screen.
fn cut_text_rows(mut rows: Vec<StyledLine>) -> Vec<StyledLine> {
    if rows.len() > MAX_TEXT_ROWS {
        rows.truncate(MAX_TEXT_ROWS);
        rows.push(StyledLine::new("   …", TextStyle::Dim));
    }
    rows
}

#[cfg(test)]
mod tests {
    use haft_testkit::support::hostile_commands;
    use serde_json::json;

    use super::*;

    pub(crate) fn approval_dialog_for(
        tool: &str,
        arguments: Value,
        subject: &str,
    ) -> ApprovalDialog {
        let approval = Approval {
            agent: MAIN_AGENT.into(),
            call_id: None,
            tool: tool.into(),
            arguments,
            subject: subject.into(),
            subject_kind: if subject.contains("@@ -") {
                SubjectKind::Diff
            } else {
                SubjectKind::Text
            },
            reason: "no rule allows it".into(),
            leaves_sandbox: false,
            parts: Vec::new(),
            remember: Vec::new(),
        };
        ApprovalDialog::new(approval, PermissionMode::Ask, "/home/me/config.toml")
    }

    #[test]
    fn approval_subject_shows_control_characters() {
        let hostile = "rm -rf ~\r\u{1b}[2K\u{1b}[1Als\u{202e}\n\u{8}\u{8}echo";
        let mut asking =
            approval_dialog_for("execute_command", json!({"command": hostile}), hostile);
        let rows: Vec<_> = asking
            .draw_subject(60)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(
            rows,
            [
                "? Run this command?",
                "  rm -rf ~␍␛[2K␛[1Als<U+202E>",
                "  ␈␈echo"
            ]
        );
    }

    #[test]
    fn approval_title_names_leaving_the_sandbox() {
        let mut asking = approval_dialog_for("execute_command", json!({"command": "make"}), "make");
        assert_eq!(asking.draw_subject(60)[0].plain(), "? Run make?");
        asking.approval.leaves_sandbox = true;
        assert_eq!(
            asking.draw_subject(60)[0].plain(),
            "? Run make outside the sandbox?"
        );
    }

    #[test]
    fn approval_prints_long_reasons_above() {
        let mut asking = approval_dialog_for("execute_command", json!({"command": "make"}), "make");
        asking.approval.reason = "it would run outside the sandbox; ".repeat(4) + "the last one";
        let shown: Vec<_> = asking
            .draw_subject(40)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert!(shown.join(" ").contains("the last one"), "{shown:#?}");
        assert_eq!(
            asking.draw_question(40)[0].plain(),
            "Allow this?",
            "it stands there once"
        );
    }

    #[test]
    fn approval_shows_long_subjects_in_full() {
        let line = "x".repeat(10_000);
        let mut asking = approval_dialog_for("execute_command", json!({"command": line}), &line);
        let shown: String = asking
            .draw_subject(40)
            .iter()
            .skip(1)
            .map(|row| row.plain().trim_start_matches([' ', '↪']).to_owned())
            .collect();
        assert_eq!(shown, line);
    }

    #[test]
    fn approval_with_long_rule_shows_all_choices() {
        let mut asking = approval_dialog_for("execute_command", json!({"command": "x"}), "x");
        asking.approval.remember = vec![format!("execute_command({})", "long ".repeat(5_000))];
        asking.approval.reason = "no ".repeat(5_000);
        let rows: Vec<_> = asking
            .draw_question(40)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert!(
            rows.len() < 16 && rows.contains(&" y yes, this once".to_owned()),
            "{rows:#?}"
        );
        let shown: String = asking
            .draw_subject(40)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(shown.matches('g').count(), 5_000, "all of it is above");
    }

    /// Checks the screen with 1,000 commands: a short command is shown in the title, the rows of
    /// any other command are the lines of the shown subject, and a continued row is marked.
    #[test]
    fn approval_draws_hostile_commands_exactly() {
        for command in hostile_commands(44, 1_000) {
            let mut dialog =
                approval_dialog_for("execute_command", json!({"command": command}), "");
            dialog.approval.subject.clone_from(&command);
            let shown = dialog.approval.shown_subject();
            let heading = dialog.draw_heading(50).len();
            let rows: Vec<_> = dialog
                .draw_subject(50)
                .iter()
                .map(StyledLine::plain)
                .collect();
            let mut drawn = String::new();
            for row in &rows[heading..] {
                let row = row.strip_prefix("  ").unwrap();
                match row.strip_prefix(CONTINUED) {
                    Some(rest) if !shown.contains(CONTINUED) => drawn.push_str(rest),
                    _ => drawn.extend(["\n", row]),
                }
            }
            let lines: Vec<_> = shown.lines().collect();
            let drawn = drawn.strip_prefix('\n').unwrap_or_default();
            if dialog.draw_whole_title(50).is_some() {
                assert_eq!(rows, [format!("? Run {command}?")], "{command:?}");
            } else {
                assert_eq!(drawn, lines.join("\n"), "{command:?}");
            }
            let plain: Vec<_> = lines.iter().map(|line| format!("  {line}")).collect();
            assert_eq!(dialog.list_exact_lines(), plain, "{command:?}");
        }
    }

    #[test]
    fn approval_draws_commands_that_look_like_diffs_as_text() {
        let line = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+$(rm -rf ~)";
        let mut dialog = approval_dialog_for("execute_command", json!({"command": line}), "");
        dialog.approval.subject = line.to_owned();
        dialog.approval.remember = vec!["execute_command(x)".to_owned()];
        let rows: Vec<_> = dialog
            .draw_subject(60)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(
            rows[1..],
            [
                "  --- a",
                "  +++ a",
                "  @@ -1 +1 @@",
                "  -x",
                "  +$(rm -rf ~)"
            ]
        );
        assert_eq!(
            dialog.choice_for_key('s'),
            Some(ApprovalChoice::Confirm(Grant::Session)),
            "it is no edit"
        );
    }

    #[test]
    fn approval_parses_keys_and_text() {
        let mut one = approval_dialog_for(
            "execute_command",
            json!({"command": "ls", "cwd": "a"}),
            "ls",
        );
        assert_eq!(
            one.choice_for_key('y'),
            Some(ApprovalChoice::Answer(ApprovalReply::Once))
        );
        assert_eq!(one.choice_for_key('a'), None, "there is no rule to keep");
        assert_eq!(
            one.choice_for_key('e'),
            Some(ApprovalChoice::Change("ls".into()))
        );
        one.stage = ApprovalStage::Change;
        assert_eq!(one.parse_input("ls"), Ok(ApprovalReply::Once));
        assert_eq!(
            one.parse_input("ls -l"),
            Ok(ApprovalReply::Changed {
                arguments: json!({"command": "ls -l", "cwd": "a"})
            })
        );
        one.stage = ApprovalStage::Reason;
        assert_eq!(
            one.parse_input(" not there "),
            Ok(ApprovalReply::No {
                reason: "not there".into()
            })
        );
        let mut other = approval_dialog_for("write_to_file", json!({"path": "a"}), "path: a");
        other.stage = ApprovalStage::Change;
        assert!(other.parse_input("{").is_err());
        assert_eq!(
            other.parse_input(r#"{"path": "b"}"#),
            Ok(ApprovalReply::Changed {
                arguments: json!({"path": "b"})
            })
        );
    }
    #[test]
    fn approval_rule_is_edited_before_saving() {
        let mut one = approval_dialog_for(
            "execute_command",
            json!({"command": "cargo test -p x"}),
            "cargo test -p x",
        );
        assert_eq!(
            (one.choice_for_key('s'), one.choice_for_key('r')),
            (None, None),
            "no rule would hold"
        );
        one.approval.remember = vec!["execute_command(cargo test -p x)".into()];
        assert_eq!(
            one.choice_for_key('s'),
            Some(ApprovalChoice::Confirm(Grant::Session))
        );
        assert_eq!(
            one.choice_for_key('a'),
            Some(ApprovalChoice::Confirm(Grant::Always))
        );
        assert_eq!(
            one.choice_for_key('r'),
            Some(ApprovalChoice::Rule("execute_command(cargo test:*)".into()))
        );
        one.stage = ApprovalStage::Rule;
        assert_eq!(
            one.parse_input("execute_command(cargo test -p x)"),
            Ok(ApprovalReply::Always)
        );
        assert!(one.parse_input("execute_command(*)").is_err(), "a warning");
        let everything = vec!["execute_command(*)".to_owned()];
        assert_eq!(
            one.parse_input("execute_command(*)"),
            Ok(ApprovalReply::AlwaysBy { rules: everything })
        );
        let rules = vec![
            "execute_command(cargo test:*)".to_owned(),
            "read_file(a)".to_owned(),
        ];
        assert_eq!(
            one.parse_input(&rules.join("\n\n ")),
            Ok(ApprovalReply::AlwaysBy { rules })
        );
        assert!(one.parse_input("execute_command(").is_err() && one.parse_input(" \n").is_err());
        assert!(
            one.parse_input("read_file(a)").is_err(),
            "it does not allow this call"
        );
    }

    #[test]
    fn approval_offers_all_edits_only_in_ask_mode() {
        let subject = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n";
        let mut edit = approval_dialog_for("write_to_file", json!({"path": "a"}), subject);
        assert_eq!(edit.choice_for_key('s'), None, "it is asked in every mode");
        edit.approval.remember = vec!["write_to_file(a)".into()];
        let of = |mode| ApprovalDialog::new(edit.approval.clone(), mode, "").choice_for_key('s');
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
    fn approval_confirmation_shows_rules_and_file() {
        let mut one = approval_dialog_for(
            "execute_command",
            json!({"command": "make \u{1b}"}),
            "make \u{1b}",
        );
        one.approval.remember = vec!["execute_command(make \u{1b})".into()];
        let shown = |one: &ApprovalDialog, columns, room| {
            one.draw_question_within(columns, room)
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
                "Enter to save the rule and run, Esc to go back"
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
                "Enter to allow, Esc to go back"
            ]
        );
        one.stage = ApprovalStage::Rule;
        assert!(shown(&one, 70, 20).contains(&"saved in /home/me/config.toml".to_owned()));
    }

    #[test]
    fn approval_arrows_select_and_enter_alone_is_ignored() {
        let mut one = approval_dialog_for("execute_command", json!({"command": "ls"}), "ls");
        assert_eq!(one.selected_choice(), None);
        one.move_selection(MenuMove::Down);
        assert_eq!(
            one.selected_choice(),
            Some(ApprovalChoice::Answer(ApprovalReply::Once))
        );
        assert!(
            one.draw_question(60)
                .iter()
                .any(|row| row.plain() == "▸y yes, this once")
        );
        one.move_selection(MenuMove::Up);
        assert_eq!(
            one.selected_choice(),
            Some(ApprovalChoice::Change("ls".into())),
            "the last row"
        );
        one.move_selection(MenuMove::Up);
        assert_eq!(one.selected_choice(), Some(ApprovalChoice::Reason));
    }
}
