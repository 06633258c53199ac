//! The effects of keys.
//!
//! A key goes to the first of these that handles it: the open list, the result viewer, the help on
//! keys, the history search, the open question or form, Vim mode, the interface, the input line.
//! Invariants: no key both answers a question and types; keys that arrive together, as in a paste
//! that the terminal doesn't mark, never answer a question.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use haft_agent::ApprovalReply;
use haft_messages::CallHeadline;
use haft_types::{FormOutcome, PermissionMode};
use serde_json::Value;

use super::choices::{describe_mode, next_mode};
use super::dialogs::{ApprovalKey, FormKey};
use super::{App, Effect, Hint};
use crate::approval::{ApprovalDialog, ApprovalStage};
use crate::image_paste::{ImageSource, parse_image_path};
use crate::line::TextStyle;
use crate::link::{ListRequest, Operation, SideAction};
use crate::picker::{PickerAction, PickerOutcome};

impl App {
    pub(super) fn handle_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let hint = self.hint.take();
        if self.dialogs.has_picker() {
            return self.handle_picker_key(key, effects);
        }
        if self.dialogs.has_viewer() {
            let height = self.rows.saturating_sub(1);
            let results = self.turn.results();
            return self
                .dialogs
                .handle_viewer_key(key, results, height, &mut self.scrollback);
        }
        if self.handle_help_key(key) {
            return;
        }
        if self.composer.is_searching() {
            return self.composer.handle_search_key(key);
        }
        if self.handle_approval_key(key, effects) || self.handle_form_key(key, effects) {
            return;
        }
        if !self.composer.handle_vim_key(key) && !self.handle_interface_key(key, hint, effects) {
            self.composer.handle_key(key, effects);
        }
        self.dialogs.delay_arming(effects);
    }

    /// Handles a key that controls the interface. Returns false if the key edits the input.
    fn handle_interface_key(
        &mut self,
        key: KeyEvent,
        hint: Option<Hint>,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => self.handle_control_c(hint, effects),
            KeyCode::Char('d') if control && self.composer.is_empty() => self.request_quit(effects),
            KeyCode::Char('g') if control => effects.push(Effect::Edit(self.composer.text())),
            KeyCode::Char('v') if control && !self.dialogs.has_question() => {
                effects.push(Effect::FindImage {
                    source: ImageSource::Clipboard,
                    text: String::new(),
                });
            }
            KeyCode::Char('l') if control => effects.push(Effect::Redraw),
            KeyCode::Char('z') if control => effects.push(Effect::Suspend),
            KeyCode::Char('o') if control => self.open_last_result(),
            KeyCode::Char('t') if control => self.turn.toggle_todo(),
            KeyCode::Char('r') if control => self.composer.start_search(),
            KeyCode::Esc => self.handle_escape(hint, effects),
            KeyCode::BackTab => {
                let mode = next_mode(self.status.mode, self.started_in);
                self.hint = Some(Hint::Mode(mode));
                self.set_mode(mode, effects);
            }
            KeyCode::Enter
                if !key
                    .modifiers
                    .intersects(KeyModifiers::ALT | KeyModifiers::SHIFT) =>
            {
                if let Some(input) = self.composer.handle_enter(effects) {
                    self.dispatch_input(input, effects);
                }
            }
            _ => return false,
        }
        true
    }

    fn handle_escape(&mut self, hint: Option<Hint>, effects: &mut Vec<Effect>) {
        if self.composer.close_menu() || self.stop_shell(effects) {
            return;
        }
        if self.turn.is_busy() {
            self.sends_queue |= self.composer.has_queue();
            self.interrupt_turn(effects);
        } else if hint == Some(Hint::RewindAgain) {
            effects.push(Effect::Do(Operation::Offer(ListRequest::Messages)));
        } else if self.composer.is_empty() {
            self.hint = Some(Hint::RewindAgain);
        }
    }

    /// Shows the help about keys if `?` is typed into an empty input, and hides the help with the
    /// next key. Returns false if the key has another effect.
    fn handle_help_key(&mut self, key: KeyEvent) -> bool {
        if self.dialogs.hide_keys() {
            match key.code {
                KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace | KeyCode::Char('?') => {
                    return true;
                }
                // The question mark was the first character of the input.
                KeyCode::Char(_) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                    self.composer.insert_text("?");
                }
                _ => {}
            }
            return false;
        }
        let asks_for_keys = key.code == KeyCode::Char('?')
            && !self.dialogs.has_question()
            && !self.composer.is_searching()
            && self.composer.is_empty()
            && self.composer.vim_mode() != Some("NORMAL");
        if asks_for_keys {
            self.dialogs.show_keys();
        }
        asks_for_keys
    }

    pub(super) fn handle_paste(&mut self, text: &str, effects: &mut Vec<Effect>) {
        self.hint = None;
        self.dialogs.hide_keys();
        if self.dialogs.paste_into_picker(text) || self.composer.paste_into_search(text) {
            return;
        }
        // While a question waits for a key, a paste must neither be lost nor answer it: it becomes
        // a reason to refuse.
        if self.awaits_choice() {
            self.dialogs
                .open_input(ApprovalStage::Reason, "", &mut self.composer);
        }
        self.dialogs.note_edit();
        match parse_image_path(text).filter(|_| !self.dialogs.has_question()) {
            Some(path) => effects.push(Effect::FindImage {
                source: ImageSource::Path(path),
                text: text.to_owned(),
            }),
            None => self.composer.insert_paste(text),
        }
        self.composer.close_menu();
        self.dialogs.delay_arming(effects);
    }

    /// Returns true if the next key may answer an approval.
    pub(crate) fn awaits_choice(&self) -> bool {
        self.dialogs.awaits_choice() && !self.composer.is_searching()
    }

    /// Handles keys that were read at once. While an approval waits for a single key, several keys
    /// count as text, not as an answer.
    pub(super) fn handle_key_burst(&mut self, keys: &[KeyEvent], effects: &mut Vec<Effect>) {
        let mut text = String::new();
        for key in keys.iter().filter(|key| key.kind != KeyEventKind::Release) {
            let is_plain = !key
                .modifiers
                .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            match key.code {
                _ if !self.awaits_choice() => self.handle_key(*key, effects),
                KeyCode::Char(c) if is_plain => text.push(c),
                KeyCode::Char('j')
                    if key.modifiers == KeyModifiers::CONTROL && !text.is_empty() =>
                {
                    text.push('\n');
                }
                KeyCode::Enter if !text.is_empty() => text.push('\n'),
                KeyCode::Enter => {}
                KeyCode::Backspace if !text.is_empty() => drop(text.pop()),
                _ => self.handle_key(*key, effects),
            }
        }
        if text.trim().is_empty() || !self.awaits_choice() {
            return;
        }
        if let Some(reply) = self.dialogs.handle_typed_burst(&text, &mut self.composer) {
            self.answer_approval(reply, effects);
        }
    }

    /// Handles a key in the open approval. Returns false if the key has another effect.
    fn handle_approval_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
        let outcome = self.dialogs.handle_approval_key(
            key,
            &mut self.composer,
            &mut self.scrollback,
            effects,
        );
        match outcome {
            ApprovalKey::Unused => return false,
            ApprovalKey::Used => {}
            ApprovalKey::Answer(reply) => self.answer_approval(reply, effects),
            ApprovalKey::AllowEdits => {
                // Before the answer, so that the mode holds for the next call.
                self.set_mode(PermissionMode::AcceptEdits, effects);
                self.scrollback.print_note(
                    &format!("  {}", text!("app-edits-allowed")),
                    TextStyle::Good,
                );
                self.send_approval_answer(ApprovalReply::Once, effects);
            }
        }
        true
    }

    /// Handles a key in the open form. Returns false if the key has another effect.
    fn handle_form_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
        match self
            .dialogs
            .handle_form_key(key, &mut self.composer, &mut self.scrollback)
        {
            FormKey::Unused => return false,
            FormKey::Used => {}
            FormKey::Done(filled) => self.fill_form(filled, effects),
        }
        true
    }

    fn fill_form(&mut self, filled: FormOutcome, effects: &mut Vec<Effect>) {
        let (text, style) = match &filled {
            FormOutcome::Accepted(_) => (text!("app-form-sent"), TextStyle::Good),
            FormOutcome::Declined => (text!("app-form-declined"), TextStyle::Bad),
            FormOutcome::Canceled => (text!("app-form-cancelled"), TextStyle::Bad),
        };
        self.scrollback.print_note(&format!("  {text}"), style);
        self.close_question();
        effects.push(Effect::Fill(filled));
    }

    fn handle_picker_key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let was_question = self.dialogs.has_list_question();
        match self.dialogs.handle_picker_key(key) {
            PickerOutcome::Stay => self.dialogs.delay_arming(effects),
            PickerOutcome::Closed => {
                // A command that had no effect leaves no trace.
                self.scrollback.discard_echo();
                if was_question {
                    self.turn.print_options(&mut self.scrollback);
                }
            }
            PickerOutcome::Chosen(action) => {
                if was_question && matches!(action, PickerAction::Type(_)) {
                    self.turn.print_options(&mut self.scrollback);
                }
                self.apply_choice(action, effects);
            }
        }
    }

    /// Carries out the action of a row that was chosen in a list.
    pub(super) fn apply_choice(&mut self, action: PickerAction, effects: &mut Vec<Effect>) {
        if !matches!(
            action,
            PickerAction::Type(_) | PickerAction::Do(Operation::Offer(_))
        ) {
            self.scrollback.print_echo();
        }
        match action {
            PickerAction::Do(operation) => effects.push(Effect::Do(operation)),
            PickerAction::Type(text) => {
                self.scrollback.discard_echo();
                self.composer.set_text(&text);
            }
            PickerAction::Tell(text) => self.turn.print_text(&text, &mut self.scrollback),
            PickerAction::Mode { mode, prompt } => {
                self.change_mode(mode, effects);
                if let Some(prompt) = prompt {
                    self.submit_prompt(prompt, effects);
                }
            }
            PickerAction::Send(text) => {
                // The text may be a number itself.
                self.turn.forget_options();
                self.submit_prompt(text, effects);
            }
            PickerAction::Quit => effects.push(Effect::Quit),
            // The picker handles these itself.
            PickerAction::Open(_) | PickerAction::Leave => {}
        }
    }

    fn set_mode(&mut self, mode: PermissionMode, effects: &mut Vec<Effect>) {
        self.status.mode = mode;
        effects.push(Effect::Do(Operation::Mode(mode)));
    }

    /// Sets the mode and prints its meaning.
    pub(super) fn change_mode(&mut self, mode: PermissionMode, effects: &mut Vec<Effect>) {
        self.set_mode(mode, effects);
        let meaning = describe_mode(mode);
        let text = text!("app-mode-meaning", mode = mode.name(), meaning);
        self.scrollback.print_note(&text, TextStyle::Dim);
    }

    /// Answers the open approval and prints the answer.
    pub(super) fn answer_approval(&mut self, reply: ApprovalReply, effects: &mut Vec<Effect>) {
        let saved_rules = |rules: Option<&[String]>| {
            let saved = |dialog: &ApprovalDialog| {
                dialog.saved_message(rules.unwrap_or(&dialog.approval.remember))
            };
            self.dialogs.approval().map(saved).unwrap_or_default()
        };
        let (text, style) = match &reply {
            ApprovalReply::Once => (text!("app-allowed").to_owned(), TextStyle::Good),
            ApprovalReply::Changed { arguments } => (
                text!(
                    "app-allowed-as",
                    call = self.describe_edited_call(arguments)
                ),
                TextStyle::Good,
            ),
            ApprovalReply::Always => (saved_rules(None), TextStyle::Good),
            ApprovalReply::AlwaysBy { rules } => (saved_rules(Some(rules)), TextStyle::Good),
            ApprovalReply::Session => (text!("app-session-allowed").to_owned(), TextStyle::Good),
            ApprovalReply::No { reason } if reason.is_empty() => {
                (text!("app-not-allowed").to_owned(), TextStyle::Bad)
            }
            ApprovalReply::No { reason } => {
                (text!("app-not-allowed-because", reason), TextStyle::Bad)
            }
        };
        self.scrollback.print_note(&format!("  {text}"), style);
        self.send_approval_answer(reply, effects);
    }

    /// Returns the object of the call that needs approval, with the arguments that the user edited.
    fn describe_edited_call(&self, arguments: &Value) -> String {
        let tool = self
            .dialogs
            .approval()
            .map_or("", |dialog| &*dialog.approval.tool);
        let object = CallHeadline::new(tool, arguments).object;
        haft_text::reveal_controls(&object).into_owned()
    }

    /// Closes the open approval and sends the answer.
    fn send_approval_answer(&mut self, reply: ApprovalReply, effects: &mut Vec<Effect>) {
        self.turn
            .note_approval_answer(self.dialogs.approval(), &reply);
        self.close_question();
        effects.push(Effect::Answer(reply));
    }

    fn handle_control_c(&mut self, hint: Option<Hint>, effects: &mut Vec<Effect>) {
        if !self.composer.is_empty() && self.dialogs.approval().is_none() {
            self.composer.clear_input();
            return;
        }
        if self.stop_shell(effects) {
            return;
        }
        if self.turn.is_busy() {
            self.interrupt_turn(effects);
        } else if hint == Some(Hint::QuitAgain) {
            self.request_quit(effects);
        } else {
            self.hint = Some(Hint::QuitAgain);
        }
    }

    /// Stops the newest command in the user's shell. Returns false if no command is running.
    fn stop_shell(&mut self, effects: &mut Vec<Effect>) -> bool {
        let newest = self.turn.newest_shell();
        effects.extend(newest.map(|id| Effect::Do(Operation::Side(SideAction::Stop(id)))));
        newest.is_some()
    }

    fn interrupt_turn(&mut self, effects: &mut Vec<Effect>) {
        if self.turn.mark_interrupted() {
            self.hint = Some(Hint::Interrupting);
            effects.push(Effect::Do(Operation::Interrupt));
        }
    }

    /// Opens the viewer at the last result.
    fn open_last_result(&mut self) {
        if self.turn.results().last().is_some() {
            self.dialogs.open_viewer();
        } else {
            self.hint = Some(Hint::NothingToOpen);
        }
    }
}
