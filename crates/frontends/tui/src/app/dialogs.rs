//! The dialogs of the interface: approvals, forms, lists, the result viewer, the help on keys.
//!
//! Invariants: at most one approval or form is open; a key that is pressed before the user could
//! read a question doesn't answer the question.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft_agent::{Approval, ApprovalReply};
use haft_types::{Form, FormOutcome, PermissionMode};

use super::composer::Composer;
use super::scrollback::Scrollback;
use super::update::Effect;
use crate::approval::{ApprovalChoice, ApprovalDialog, ApprovalStage, Grant};
use crate::complete::MenuMove;
use crate::form::{FormDialog, FormProgress};
use crate::line::{StyledLine, TextStyle};
use crate::picker::{Picker, PickerList, PickerOutcome};
use crate::viewer::{ResultList, ResultViewer, ViewerOutcome};

/// The maximum number of rows of a list, including its title and its keys.
const PICKER_ROWS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Dialogs {
    approval: Option<ApprovalDialog>,
    form: Option<FormDialog>,
    picker: Option<Picker>,
    viewer: Option<ResultViewer>,
    /// True if the help about keys is shown below the input.
    shows_keys: bool,
    /// The display path of the file in which approval rules are saved.
    rules_file: String,
}

/// The result of handling a key in the open approval dialog.
#[derive(Debug)]
pub(super) enum ApprovalKey {
    /// The dialog doesn't use the key.
    Unused,
    /// The dialog handled the key.
    Used,
    /// The user answered the approval.
    Answer(ApprovalReply),
    /// The user allowed the call and all edits until the session ends.
    AllowEdits,
}

/// The result of handling a key in the open form.
#[derive(Debug)]
pub(super) enum FormKey {
    /// The form doesn't use the key, so the key edits the input.
    Unused,
    /// The form handled the key.
    Used,
    /// The form is complete, declined or cancelled.
    Done(FormOutcome),
}

impl Dialogs {
    pub(super) fn new(rules_file: String) -> Self {
        Self {
            rules_file,
            ..Self::default()
        }
    }

    /// Returns true if an approval or a form is open.
    pub(super) fn has_question(&self) -> bool {
        self.approval.is_some() || self.form.is_some()
    }

    pub(super) fn approval(&self) -> Option<&ApprovalDialog> {
        self.approval.as_ref()
    }

    /// Creates the dialog for an approval, without opening it.
    pub(super) fn create_approval_dialog(
        &self,
        approval: Approval,
        mode: PermissionMode,
    ) -> ApprovalDialog {
        ApprovalDialog::new(approval, mode, &self.rules_file)
    }

    pub(super) fn open_approval(
        &mut self,
        approval: Approval,
        mode: PermissionMode,
        out: &mut Scrollback,
    ) {
        self.close_overlays();
        let mut dialog = self.create_approval_dialog(approval, mode);
        out.print_separated(dialog.draw_subject(out.columns()));
        self.approval = Some(dialog);
    }

    pub(super) fn open_form(&mut self, form: Form, out: &mut Scrollback) {
        self.close_overlays();
        let form = FormDialog::new(form);
        out.print_separated(form.draw_subject(out.columns()));
        self.form = Some(form);
    }

    fn close_overlays(&mut self) {
        self.picker = None;
        self.viewer = None;
    }

    pub(super) fn open_picker(&mut self, list: PickerList) {
        self.picker = Some(Picker::new(list));
    }

    pub(super) fn open_viewer(&mut self) {
        self.viewer = Some(ResultViewer::default());
    }

    pub(super) fn has_picker(&self) -> bool {
        self.picker.is_some()
    }

    /// Returns true if the open list asks a question.
    pub(super) fn has_list_question(&self) -> bool {
        self.picker.as_ref().is_some_and(Picker::is_question)
    }

    /// Closes the open list if it asks a question, because the question was answered elsewhere.
    pub(super) fn close_list_question(&mut self) {
        self.picker.take_if(|picker| picker.is_question());
    }

    pub(super) fn has_viewer(&self) -> bool {
        self.viewer.is_some()
    }

    pub(super) fn shows_keys(&self) -> bool {
        self.shows_keys
    }

    pub(super) fn show_keys(&mut self) {
        self.shows_keys = true;
    }

    /// Hides the help about keys. Returns false if the help wasn't shown.
    pub(super) fn hide_keys(&mut self) -> bool {
        std::mem::take(&mut self.shows_keys)
    }

    /// Allows keys to answer the open question from now on.
    pub(super) fn arm_question(&mut self) {
        if let Some(dialog) = &mut self.approval {
            dialog.armed = true;
            dialog.note_pause();
        }
        if let Some(form) = &mut self.form {
            form.armed = true;
        }
        if let Some(picker) = &mut self.picker {
            picker.arm();
        }
    }

    /// Restarts the delay before keys can answer a question, because a user who is still typing
    /// hasn't read the question.
    pub(super) fn delay_arming(&self, effects: &mut Vec<Effect>) {
        let is_unarmed = self.approval.as_ref().is_some_and(|dialog| !dialog.armed)
            || self
                .picker
                .as_ref()
                .is_some_and(|picker| !picker.is_armed())
            || self.form.as_ref().is_some_and(|form| !form.armed);
        if is_unarmed {
            effects.push(Effect::Arm);
        }
    }

    /// Prevents keys from answering the open approval, because something else has covered it.
    pub(super) fn disarm_approval(&mut self, effects: &mut Vec<Effect>) {
        if let Some(dialog) = &mut self.approval {
            dialog.armed = false;
            effects.push(Effect::Arm);
        }
    }

    /// Returns true if the next key may answer an approval.
    pub(super) fn awaits_choice(&self) -> bool {
        let is_asking = self
            .approval
            .as_ref()
            .is_some_and(|dialog| dialog.armed && !dialog.stage.uses_editor());
        is_asking && self.picker.is_none() && self.viewer.is_none()
    }

    /// Returns true if the cursor is hidden because single keys answer the open approval.
    pub(super) fn hides_cursor(&self) -> bool {
        self.approval
            .as_ref()
            .is_some_and(|dialog| !dialog.stage.uses_editor())
    }

    /// Closes the open approval or form. Returns true if the closed dialog used the editor.
    pub(super) fn close_question(&mut self) -> bool {
        let approval = self.approval.take();
        approval.is_some_and(|dialog| dialog.stage.uses_editor()) || self.form.take().is_some()
    }

    /// Opens the editor for a typed answer, with `text` as the initial content.
    pub(super) fn open_input(&mut self, stage: ApprovalStage, text: &str, composer: &mut Composer) {
        if let Some(dialog) = &mut self.approval {
            dialog.open_input(stage);
        }
        composer.lend_editor(text);
        composer.enter_insert_mode();
    }

    /// Opens the editor for the arguments of the call that needs approval.
    pub(super) fn edit_arguments(&mut self, composer: &mut Composer, effects: &mut Vec<Effect>) {
        if let Some(text) = self
            .approval
            .as_ref()
            .map(ApprovalDialog::editable_arguments)
        {
            self.open_input(ApprovalStage::Change, &text, composer);
            effects.push(Effect::Arm);
        }
    }

    /// Pastes text into the open list. Returns false if no list is open.
    pub(super) fn paste_into_picker(&mut self, text: &str) -> bool {
        match &mut self.picker {
            Some(picker) => {
                picker.paste_into_filter(text);
                true
            }
            None => false,
        }
    }

    /// Records that the user is editing the text with which the input was opened.
    pub(super) fn note_edit(&mut self) {
        if let Some(dialog) = &mut self.approval {
            dialog.note_edit();
        }
    }

    /// Handles a key in the approval dialog, if one is open and uses the key.
    pub(super) fn handle_approval_key(
        &mut self,
        key: KeyEvent,
        composer: &mut Composer,
        out: &mut Scrollback,
        effects: &mut Vec<Effect>,
    ) -> ApprovalKey {
        let Some(dialog) = &mut self.approval else {
            return ApprovalKey::Unused;
        };
        match dialog.stage {
            ApprovalStage::Choose => self.handle_choice_key(key, composer, effects),
            ApprovalStage::Confirm(grant) => self.handle_confirmation_key(key, grant, composer),
            ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule => {
                handle_input_key(dialog, key, composer, out)
            }
        }
    }

    /// Handles a key while the answers to an approval are shown.
    fn handle_choice_key(
        &mut self,
        key: KeyEvent,
        composer: &mut Composer,
        effects: &mut Vec<Effect>,
    ) -> ApprovalKey {
        let Some(dialog) = &mut self.approval else {
            return ApprovalKey::Unused;
        };
        match key.code {
            KeyCode::Char(c) if dialog.armed && is_plain_key(key) => match dialog.choice_for_key(c)
            {
                // A letter of no choice starts a sentence.
                None if !c.is_whitespace() => {
                    self.open_input(ApprovalStage::Reason, &c.to_string(), composer);
                    ApprovalKey::Used
                }
                choice => self.apply_choice(choice, composer, effects),
            },
            KeyCode::Up if dialog.armed && is_plain_key(key) => {
                dialog.move_selection(MenuMove::Up);
                ApprovalKey::Used
            }
            KeyCode::Down if dialog.armed && is_plain_key(key) => {
                dialog.move_selection(MenuMove::Down);
                ApprovalKey::Used
            }
            // The next mode would not ask this: the user confirms it as the choice that means it.
            KeyCode::BackTab if dialog.armed && dialog.offers_all_edits() => {
                let choice = Some(ApprovalChoice::Confirm(Grant::AllEdits));
                self.apply_choice(choice, composer, effects)
            }
            // Enter neither submits input nor allows the call while nothing is selected.
            KeyCode::Enter => {
                let choice = dialog.selected_choice().filter(|_| dialog.armed);
                self.apply_choice(choice, composer, effects)
            }
            _ => ApprovalKey::Unused,
        }
    }

    /// Handles a key while a choice must be confirmed with Enter.
    fn handle_confirmation_key(
        &mut self,
        key: KeyEvent,
        grant: Grant,
        composer: &mut Composer,
    ) -> ApprovalKey {
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => match grant {
                Grant::Always => ApprovalKey::Answer(ApprovalReply::Always),
                Grant::Session => ApprovalKey::Answer(ApprovalReply::Session),
                Grant::AllEdits => ApprovalKey::AllowEdits,
            },
            KeyCode::Esc | KeyCode::Backspace => {
                self.set_stage(ApprovalStage::Choose);
                ApprovalKey::Used
            }
            // The key of the choice was the first letter of a sentence.
            KeyCode::Char(c) if is_plain_key(key) => {
                let text = format!("{}{c}", grant.key());
                self.open_input(ApprovalStage::Reason, &text, composer);
                ApprovalKey::Used
            }
            KeyCode::Enter | KeyCode::Up | KeyCode::Down | KeyCode::BackTab => ApprovalKey::Used,
            _ => ApprovalKey::Unused,
        }
    }

    fn set_stage(&mut self, stage: ApprovalStage) {
        if let Some(dialog) = &mut self.approval {
            dialog.stage = stage;
        }
    }

    fn apply_choice(
        &mut self,
        choice: Option<ApprovalChoice>,
        composer: &mut Composer,
        effects: &mut Vec<Effect>,
    ) -> ApprovalKey {
        match choice {
            Some(ApprovalChoice::Answer(reply)) => return ApprovalKey::Answer(reply),
            Some(ApprovalChoice::Confirm(grant)) => self.set_stage(ApprovalStage::Confirm(grant)),
            Some(ApprovalChoice::Reason) => self.open_input(ApprovalStage::Reason, "", composer),
            Some(ApprovalChoice::Change(text)) => {
                self.open_input(ApprovalStage::Change, &text, composer);
                // A user who continues without a pause types a sentence.
                effects.push(Effect::Arm);
            }
            Some(ApprovalChoice::Rule(text)) => {
                self.open_input(ApprovalStage::Rule, &text, composer);
            }
            Some(ApprovalChoice::ChangeFile) => {
                let approval = self.approval.as_ref().map(|dialog| &dialog.approval);
                effects.extend(approval.cloned().map(Box::new).map(Effect::EditFile));
            }
            None => {}
        }
        ApprovalKey::Used
    }

    /// Handles several keys that were read at once while an approval waited for a single key.
    /// Several keys are text and never allow a call: a sentence that ends with Enter refuses the
    /// call, and other text opens the input for a reason.
    pub(super) fn handle_typed_burst(
        &mut self,
        text: &str,
        composer: &mut Composer,
    ) -> Option<ApprovalReply> {
        let words = text.trim();
        let is_submitted = text.ends_with('\n');
        let agreement = haft_messages::parse_yes_no(words);
        if is_submitted && agreement == Some(false) {
            return Some(ApprovalReply::No {
                reason: String::new(),
            });
        }
        let grant = self
            .approval
            .as_ref()
            .and_then(ApprovalDialog::pending_grant);
        let first = grant.map_or_else(String::new, |grant| grant.key().to_string());
        let reason = format!("{first}{words}");
        if is_submitted && words.chars().count() > 1 && agreement.is_none() {
            return Some(ApprovalReply::No { reason });
        }
        self.open_input(ApprovalStage::Reason, &reason, composer);
        None
    }

    /// Handles a key in the form, if one is open and uses the key.
    pub(super) fn handle_form_key(
        &mut self,
        key: KeyEvent,
        composer: &mut Composer,
        out: &mut Scrollback,
    ) -> FormKey {
        let Some(form) = &mut self.form else {
            return FormKey::Unused;
        };
        match key.code {
            KeyCode::Enter if !form.armed => {}
            KeyCode::Enter => {
                let text = composer.text();
                match form.fill_field(&text) {
                    FormProgress::Next => {
                        composer.clear_text();
                        out.print_note(&format!("  {}", text.trim()), TextStyle::Strong);
                    }
                    FormProgress::Done(filled) => {
                        out.print_note(&format!("  {}", text.trim()), TextStyle::Strong);
                        return FormKey::Done(filled);
                    }
                    FormProgress::Wrong(why) => out.print_note(&format!("  {why}"), TextStyle::Bad),
                }
            }
            KeyCode::Esc => return FormKey::Done(FormOutcome::Declined),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return FormKey::Done(FormOutcome::Canceled);
            }
            _ => return FormKey::Unused,
        }
        FormKey::Used
    }

    /// Handles a key in the open list. The list is closed unless the outcome is
    /// [`PickerOutcome::Stay`].
    pub(super) fn handle_picker_key(&mut self, key: KeyEvent) -> PickerOutcome {
        let Some(picker) = &mut self.picker else {
            return PickerOutcome::Stay;
        };
        let outcome = picker.handle_key(key);
        match outcome {
            PickerOutcome::Stay => {}
            PickerOutcome::Closed | PickerOutcome::Chosen(_) => self.picker = None,
        }
        outcome
    }

    /// Handles a key in the result viewer, which has `height` rows.
    pub(super) fn handle_viewer_key(
        &mut self,
        key: KeyEvent,
        results: &ResultList,
        height: usize,
        out: &mut Scrollback,
    ) {
        let Some(viewer) = &mut self.viewer else {
            return;
        };
        match viewer.handle_key(key, results, out.columns(), height) {
            ViewerOutcome::Stay => return,
            ViewerOutcome::Close => {}
            ViewerOutcome::Print(rows) => out.print_separated(rows),
        }
        self.viewer = None;
    }

    pub(super) fn viewer(&self) -> Option<&ResultViewer> {
        self.viewer.as_ref()
    }

    /// Draws the open list, if any. Also returns the row and column of the cursor.
    pub(super) fn draw_picker(
        &self,
        columns: usize,
        max_rows: usize,
    ) -> Option<(Vec<StyledLine>, (usize, usize))> {
        let picker = self.picker.as_ref()?;
        Some(picker.draw_lists(columns, PICKER_ROWS.min(max_rows)))
    }

    /// Draws the open approval or form.
    pub(super) fn draw_question(&self, columns: usize, max_rows: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        if let Some(dialog) = &self.approval {
            rows.extend(dialog.draw_question_within(columns, max_rows));
        }
        if let Some(form) = &self.form {
            rows.extend(form.draw_question(columns));
        }
        rows
    }
}

/// Handles a key while the user types a reason, arguments or rules.
fn handle_input_key(
    dialog: &mut ApprovalDialog,
    key: KeyEvent,
    composer: &mut Composer,
    out: &mut Scrollback,
) -> ApprovalKey {
    let is_edit = dialog.stage != ApprovalStage::Reason;
    match key.code {
        KeyCode::Char(c) if is_edit && is_plain_key(key) && composer.is_cursor_at_end() => {
            match dialog.take_begun_sentence(c) {
                Some(text) => {
                    dialog.stage = ApprovalStage::Reason;
                    composer.set_text(&text);
                    ApprovalKey::Used
                }
                None => ApprovalKey::Unused,
            }
        }
        KeyCode::Esc => {
            dialog.stage = ApprovalStage::Choose;
            composer.reclaim_editor();
            ApprovalKey::Used
        }
        KeyCode::Enter if is_plain_key(key) => match dialog.parse_input(&composer.text()) {
            Ok(reply) => ApprovalKey::Answer(reply),
            Err(why) => {
                out.print_note(&why, TextStyle::Bad);
                ApprovalKey::Used
            }
        },
        _ => {
            if is_edit {
                dialog.note_edit();
            }
            ApprovalKey::Unused
        }
    }
}

fn is_plain_key(key: KeyEvent) -> bool {
    !key.modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}
