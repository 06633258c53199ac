//! What keys do.
//!
//! A key belongs to the first of these that wants it: the open list, the search in what was sent,
//! the open question or form, the menu, the editor.
//! Invariants: no key both answers a question and types; keys that arrive together, as a paste does
//! where the terminal does not mark it, answer no question.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use haft_agent::ApprovalReply;

use haft_types::{Filled, PermissionMode};

use super::{App, Effect, Hint, HistorySearch, view};
use crate::approval::{ApprovalChoice, ApprovalStage, Grant};
use crate::commands::{COMMANDS, is_command};
use crate::complete::{self, CompletionItem, CompletionMenu, MenuMove};
use crate::form;
use crate::image_paste::{ImageSource, image_path};
use crate::line::TextStyle;
use crate::link::{ListRequest, Operation, SideAction};
use crate::picker::{PickerAction, PickerOutcome};
use crate::viewer::{ResultViewer, ViewerOutcome};

impl App {
    pub(super) fn key(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        let hint = self.hint.take();
        if self.picker.is_some() {
            return self.key_of_picker(key, effects);
        }
        if self.viewer.is_some() {
            return self.key_of_viewer(key);
        }
        if std::mem::take(&mut self.shows_keys) {
            match key.code {
                KeyCode::Esc | KeyCode::Enter | KeyCode::Backspace | KeyCode::Char('?') => return,
                // It was no question for the keys.
                KeyCode::Char(_) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                    self.editor.insert("?");
                }
                _ => {}
            }
        } else if self.asks_for_keys(key) {
            self.shows_keys = true;
            return;
        }
        if self.search.is_some() {
            return self.key_of_search(key);
        }
        if self.key_of_question(key, effects) || self.key_of_form(key, effects) {
            return;
        }
        if self.menu.is_none() && self.editor.vim_key(key) {
            return self.rearm(effects);
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('c') if control => self.control_c(hint, effects),
            KeyCode::Char('d') if control && self.editor.is_empty() => effects.push(Effect::Quit),
            KeyCode::Char('g') if control => effects.push(Effect::Edit(self.editor.whole())),
            KeyCode::Char('v') if control && self.asking.is_none() && self.form.is_none() => {
                effects.push(Effect::FindImage {
                    source: ImageSource::Clipboard,
                    text: String::new(),
                });
            }
            KeyCode::Char('l') if control => effects.push(Effect::Redraw),
            KeyCode::Char('z') if control => effects.push(Effect::Suspend),
            KeyCode::Char('o') if control => self.open_last(hint),
            KeyCode::Char('t') if control => self.panes.todo_hidden = !self.panes.todo_hidden,
            KeyCode::Char('r') if control => self.search = Some(HistorySearch::default()),
            KeyCode::Esc if self.menu.is_some() => self.menu = None,
            KeyCode::Esc if self.stop_shell(effects) => {}
            KeyCode::Esc if self.busy => self.interrupt(effects),
            KeyCode::Esc if hint == Some(Hint::RewindAgain) => {
                effects.push(Effect::Do(Operation::Offer(ListRequest::Messages)));
            }
            KeyCode::Esc if self.editor.is_empty() => self.hint = Some(Hint::RewindAgain),
            KeyCode::Esc => {}
            KeyCode::BackTab => self.next_mode(effects),
            KeyCode::Tab => self.complete(),
            KeyCode::Up if self.menu.is_some() => self.step_menu(MenuMove::Up),
            KeyCode::Down if self.menu.is_some() => self.step_menu(MenuMove::Down),
            KeyCode::PageUp if self.menu.is_some() => self.step_menu(MenuMove::PageUp),
            KeyCode::PageDown if self.menu.is_some() => self.step_menu(MenuMove::PageDown),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.typed("\n", effects);
            }
            KeyCode::Char('j') if control => self.typed("\n", effects),
            KeyCode::Enter => self.enter(effects),
            _ => {
                self.edit(key);
                // What was chosen among the last ones means nothing among these.
                self.menu = None;
                self.offer();
                self.want_files(effects);
            }
        }
        self.rearm(effects);
    }

    /// Whether this is the key that shows the others: `?` where nothing is typed yet.
    fn asks_for_keys(&self, key: KeyEvent) -> bool {
        let types = self.asking.is_none() && self.form.is_none() && self.search.is_none();
        key.code == KeyCode::Char('?')
            && types
            && self.editor.is_empty()
            && self.editor.vim_mode() != Some("NORMAL")
    }

    pub(super) fn paste(&mut self, text: &str, effects: &mut Vec<Effect>) {
        (self.hint, self.shows_keys) = (None, false);
        if let Some(picker) = &mut self.picker {
            return picker.paste(text);
        }
        if let Some(search) = &mut self.search {
            search
                .query
                .push_str(text.lines().next().unwrap_or_default());
            return;
        }
        // While a question waits for a key, a paste must not be lost, nor answer it: it is a reason
        // to refuse.
        if self.awaits_choice() {
            self.begin_typing(ApprovalStage::Reason, "");
        }
        if let Some(asking) = &mut self.asking {
            asking.edit();
        }
        match image_path(text).filter(|_| self.asking.is_none() && self.form.is_none()) {
            Some(path) => {
                let source = ImageSource::Path(path);
                let text = text.to_owned();
                effects.push(Effect::FindImage { source, text });
            }
            None => self.editor.paste(text),
        }
        self.menu = None;
        self.rearm(effects);
    }

    fn typed(&mut self, text: &str, effects: &mut Vec<Effect>) {
        self.editor.insert(text);
        self.menu = None;
        self.rearm(effects);
    }

    /// Keys that change the text or move in it, as shells know them.
    fn edit(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let editor = &mut self.editor;
        match key.code {
            KeyCode::Char('a') if control => editor.home(),
            KeyCode::Char('e') if control => editor.end(),
            KeyCode::Char('b') if control => editor.left(),
            KeyCode::Char('f') if control => editor.right(),
            KeyCode::Char('p') if control => editor.up(),
            KeyCode::Char('n') if control => editor.down(),
            KeyCode::Char('k') if control => editor.cut_to_end(),
            KeyCode::Char('u') if control => editor.cut_to_start(),
            KeyCode::Char('w') if control => editor.cut_word(),
            KeyCode::Char('y') if control => editor.put_back(),
            KeyCode::Char('d') if control => editor.delete(),
            KeyCode::Char('h') if control => editor.backspace(),
            KeyCode::Char('b') if alt => editor.word_left(),
            KeyCode::Char('f') if alt => editor.word_right(),
            KeyCode::Char(c) if !control && !alt => editor.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if control || alt => editor.cut_word(),
            KeyCode::Backspace => editor.backspace(),
            KeyCode::Delete => editor.delete(),
            KeyCode::Left if control || alt => editor.word_left(),
            KeyCode::Right if control || alt => editor.word_right(),
            KeyCode::Left => editor.left(),
            KeyCode::Right => editor.right(),
            KeyCode::Up => editor.up(),
            KeyCode::Down => editor.down(),
            KeyCode::Home => editor.home(),
            KeyCode::End => editor.end(),
            _ => {}
        }
    }

    /// Whether the next key may answer a question.
    pub(crate) fn awaits_choice(&self) -> bool {
        let asks = self.asking.as_ref().is_some_and(|asking| {
            asking.armed
                && matches!(
                    asking.stage,
                    ApprovalStage::Choose | ApprovalStage::Confirm(_)
                )
        });
        asks && self.picker.is_none() && self.viewer.is_none() && self.search.is_none()
    }

    /// Handles keys that were read at once. Together they answer no question: their text refuses
    /// the call, with Enter.
    pub(super) fn keys_at_once(&mut self, keys: &[KeyEvent], effects: &mut Vec<Effect>) {
        let mut text = String::new();
        for key in keys.iter().filter(|key| key.kind != KeyEventKind::Release) {
            let plain = !key
                .modifiers
                .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            match key.code {
                _ if !self.awaits_choice() => self.key(*key, effects),
                KeyCode::Char(c) if plain => text.push(c),
                KeyCode::Char('j')
                    if key.modifiers == KeyModifiers::CONTROL && !text.is_empty() =>
                {
                    text.push('\n');
                }
                KeyCode::Enter if !text.is_empty() => text.push('\n'),
                KeyCode::Enter => {}
                KeyCode::Backspace if !text.is_empty() => drop(text.pop()),
                _ => self.key(*key, effects),
            }
        }
        let words = text.trim();
        if words.is_empty() || !self.awaits_choice() {
            return;
        }
        let is_sentence = words.chars().count() > 1 && haft_messages::agreement(words).is_none();
        let is_no = haft_messages::agreement(words) == Some(false);
        if text.ends_with('\n') && is_no {
            return self.answer(
                ApprovalReply::No {
                    reason: String::new(),
                },
                effects,
            );
        }
        let reason = format!(
            "{}{words}",
            self.confirming()
                .map_or_else(String::new, |grant| grant.key().to_string())
        );
        if text.ends_with('\n') && is_sentence {
            return self.answer(ApprovalReply::No { reason }, effects);
        }
        self.begin_typing(ApprovalStage::Reason, &reason);
    }

    /// The choice that waits for Enter.
    fn confirming(&self) -> Option<Grant> {
        match self.asking.as_ref()?.stage {
            ApprovalStage::Confirm(grant) => Some(grant),
            ApprovalStage::Choose
            | ApprovalStage::Reason
            | ApprovalStage::Change
            | ApprovalStage::Rule => None,
        }
    }

    /// Keys while a question is open; whether this was one of them.
    fn key_of_question(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
        let at_end = self.editor.cursor() == self.editor.text().len();
        let Some(asking) = &mut self.asking else {
            return false;
        };
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (asking.stage, key.code) {
            (ApprovalStage::Choose, KeyCode::Char(c)) if asking.armed && plain => {
                match asking.choice(c) {
                    // A letter of no choice begins a sentence.
                    None if !c.is_whitespace() => {
                        self.begin_typing(ApprovalStage::Reason, &c.to_string());
                    }
                    choice => self.choose(choice, effects),
                }
                true
            }
            (ApprovalStage::Confirm(grant), KeyCode::Enter) if key.modifiers.is_empty() => {
                self.grant(grant, effects);
                true
            }
            (ApprovalStage::Confirm(_), KeyCode::Esc | KeyCode::Backspace) => {
                asking.stage = ApprovalStage::Choose;
                true
            }
            // The key of the choice was the first letter of a sentence.
            (ApprovalStage::Confirm(grant), KeyCode::Char(c)) if plain => {
                self.begin_typing(ApprovalStage::Reason, &format!("{}{c}", grant.key()));
                true
            }
            (ApprovalStage::Confirm(_), KeyCode::Enter | KeyCode::Up | KeyCode::Down) => true,
            (ApprovalStage::Change | ApprovalStage::Rule, KeyCode::Char(c)) if plain && at_end => {
                match asking.sentence_begun(c) {
                    Some(text) => {
                        asking.stage = ApprovalStage::Reason;
                        self.editor.set(&text);
                        true
                    }
                    None => false,
                }
            }
            (ApprovalStage::Choose, KeyCode::Up | KeyCode::Down) if asking.armed && plain => {
                asking.step(if key.code == KeyCode::Up {
                    MenuMove::Up
                } else {
                    MenuMove::Down
                });
                true
            }
            // Enter neither sends input nor answers yes while a question is open and nothing in it
            // was chosen.
            (ApprovalStage::Choose, KeyCode::Enter) => {
                let choice = asking.chosen().filter(|_| asking.armed);
                self.choose(choice, effects);
                true
            }
            (ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule, KeyCode::Esc) => {
                asking.stage = ApprovalStage::Choose;
                let draft = self.draft.take().unwrap_or_default();
                self.editor.set(&draft);
                true
            }
            (
                ApprovalStage::Reason | ApprovalStage::Change | ApprovalStage::Rule,
                KeyCode::Enter,
            ) if plain => {
                match asking.typed(&self.editor.whole()) {
                    Ok(answer) => self.answer(answer, effects),
                    Err(why) => self.note(&why, TextStyle::Bad),
                }
                true
            }
            (ApprovalStage::Change | ApprovalStage::Rule, _) => {
                asking.edit();
                false
            }
            (ApprovalStage::Choose | ApprovalStage::Confirm(_) | ApprovalStage::Reason, _) => false,
        }
    }

    /// Allows more than the call at hand: the user has confirmed it.
    fn grant(&mut self, grant: Grant, effects: &mut Vec<Effect>) {
        match grant {
            Grant::Always => self.answer(ApprovalReply::Always, effects),
            Grant::Session => self.answer(ApprovalReply::Session, effects),
            Grant::AllEdits => {
                // Before the answer: what is called next must find it.
                self.set_mode(PermissionMode::AcceptEdits, effects);
                self.answered(
                    text!("app-edits-allowed"),
                    TextStyle::Good,
                    ApprovalReply::Once,
                    effects,
                );
            }
        }
    }

    /// What was chosen of the open question, if anything.
    fn choose(&mut self, choice: Option<ApprovalChoice>, effects: &mut Vec<Effect>) {
        match choice {
            Some(ApprovalChoice::Answer(answer)) => self.answer(answer, effects),
            Some(ApprovalChoice::Confirm(grant)) => {
                if let Some(asking) = &mut self.asking {
                    asking.stage = ApprovalStage::Confirm(grant);
                }
            }
            Some(ApprovalChoice::Reason) => self.begin_typing(ApprovalStage::Reason, ""),
            Some(ApprovalChoice::Change(text)) => {
                self.begin_typing(ApprovalStage::Change, &text);
                // Whoever goes on typing at once types a sentence.
                effects.push(Effect::Arm);
            }
            Some(ApprovalChoice::Rule(text)) => self.begin_typing(ApprovalStage::Rule, &text),
            Some(ApprovalChoice::ChangeFile) => {
                let approval = self
                    .asking
                    .as_ref()
                    .map(|asking| Box::new(asking.approval.clone()));
                effects.extend(approval.map(Effect::EditFile));
            }
            None => {}
        }
    }

    /// Keys while a form is open; whether this was one of them. All others type.
    fn key_of_form(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) -> bool {
        let Some(filling) = &mut self.form else {
            return false;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if !filling.armed => {}
            KeyCode::Enter => {
                let text = self.editor.whole();
                match filling.typed(&text) {
                    form::FormProgress::Next => {
                        self.editor.clear();
                        self.note(&format!("  {}", text.trim()), TextStyle::Strong);
                    }
                    form::FormProgress::Done(filled) => {
                        self.note(&format!("  {}", text.trim()), TextStyle::Strong);
                        self.filled(filled, effects);
                    }
                    form::FormProgress::Wrong(why) => {
                        self.note(&format!("  {why}"), TextStyle::Bad);
                    }
                }
            }
            KeyCode::Esc => self.filled(Filled::Declined, effects),
            KeyCode::Char('c') if control => self.filled(Filled::Cancelled, effects),
            _ => return false,
        }
        true
    }

    fn filled(&mut self, filled: Filled, effects: &mut Vec<Effect>) {
        let (said, style) = match &filled {
            Filled::Accepted(_) => (text!("app-form-sent"), TextStyle::Good),
            Filled::Declined => (text!("app-form-declined"), TextStyle::Bad),
            Filled::Cancelled => (text!("app-form-cancelled"), TextStyle::Bad),
        };
        self.note(&format!("  {said}"), style);
        self.end_question();
        effects.push(Effect::Fill(filled));
    }

    fn key_of_picker(&mut self, key: KeyEvent, effects: &mut Vec<Effect>) {
        let Some(picker) = &mut self.picker else {
            return;
        };
        match picker.key(key) {
            PickerOutcome::Stay => self.rearm(effects),
            // What came to nothing leaves nothing behind.
            PickerOutcome::Closed => (self.picker, self.echo) = (None, None),
            PickerOutcome::Chosen(action) => {
                self.picker = None;
                self.chosen(action, effects);
            }
        }
    }

    /// A row of a list was chosen.
    pub(super) fn chosen(&mut self, action: PickerAction, effects: &mut Vec<Effect>) {
        if !matches!(
            action,
            PickerAction::Type(_) | PickerAction::Do(Operation::Offer(_))
        ) {
            self.print_echo();
        }
        match action {
            PickerAction::Do(operation) => effects.push(Effect::Do(operation)),
            PickerAction::Type(text) => {
                self.echo = None;
                self.editor.set(&text);
            }
            PickerAction::Tell(text) => self.told(&text),
            PickerAction::Mode { mode, prompt } => {
                self.set_mode(mode, effects);
                self.note(
                    &format!("{}: {}", mode.name(), view::meaning(mode)),
                    TextStyle::Dim,
                );
                if let Some(prompt) = prompt {
                    self.submit(prompt, effects);
                }
            }
            PickerAction::Send(text) => self.submit(text, effects),
            // These do not leave the picker.
            PickerAction::Open(_) | PickerAction::Leave => {}
        }
    }

    /// The next mode, from the careful ones on. The one that asks nothing at all comes only to
    /// those who began with it.
    fn next_mode(&mut self, effects: &mut Vec<Effect>) {
        let mode = match self.status.mode {
            PermissionMode::Ask => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Auto,
            PermissionMode::Auto if self.began_with == PermissionMode::Yolo => PermissionMode::Yolo,
            PermissionMode::Auto | PermissionMode::Yolo => PermissionMode::Plan,
            PermissionMode::Plan => PermissionMode::Ask,
        };
        self.hint = Some(Hint::Mode(mode));
        self.set_mode(mode, effects);
    }

    pub(super) fn set_mode(&mut self, mode: PermissionMode, effects: &mut Vec<Effect>) {
        self.status.mode = mode;
        effects.push(Effect::Do(Operation::Mode(mode)));
    }

    /// Whoever is still typing has not read the question.
    pub(super) fn rearm(&mut self, effects: &mut Vec<Effect>) {
        let unread = self.asking.as_ref().is_some_and(|asking| !asking.armed)
            || self
                .picker
                .as_ref()
                .is_some_and(|picker| !picker.is_armed());
        if unread || self.form.as_ref().is_some_and(|form| !form.armed) {
            effects.push(Effect::Arm);
        }
    }

    pub(super) fn begin_typing(&mut self, stage: ApprovalStage, text: &str) {
        if let Some(asking) = &mut self.asking {
            asking.open_input(stage);
        }
        self.draft = Some(self.editor.whole());
        self.editor.set(text);
        self.editor.type_next();
    }

    pub(super) fn answer(&mut self, answer: ApprovalReply, effects: &mut Vec<Effect>) {
        let (said, style) = match &answer {
            ApprovalReply::Once => (text!("app-allowed").to_owned(), TextStyle::Good),
            ApprovalReply::Changed { arguments } => (
                text!("app-allowed-as", call = crate::call::about(arguments)),
                TextStyle::Good,
            ),
            ApprovalReply::Always => (self.saved_rules(None), TextStyle::Good),
            ApprovalReply::AlwaysBy { rules } => (self.saved_rules(Some(rules)), TextStyle::Good),
            ApprovalReply::Session => (text!("app-session-allowed").to_owned(), TextStyle::Good),
            ApprovalReply::No { reason } if reason.is_empty() => {
                (text!("app-not-allowed").to_owned(), TextStyle::Bad)
            }
            ApprovalReply::No { reason } => {
                (text!("app-not-allowed-because", reason), TextStyle::Bad)
            }
        };
        self.answered(&said, style, answer, effects);
    }

    /// Returns what is always allowed now; without `rules`, by those of the approval.
    fn saved_rules(&self, rules: Option<&[String]>) -> String {
        let Some(asking) = &self.asking else {
            return String::new();
        };
        asking.saved(rules.unwrap_or(&asking.approval.remember))
    }

    fn answered(
        &mut self,
        said: &str,
        style: TextStyle,
        answer: ApprovalReply,
        effects: &mut Vec<Effect>,
    ) {
        self.note(&format!("  {said}"), style);
        if let (Some(asking), ApprovalReply::Changed { arguments }) = (&self.asking, &answer) {
            let approval = asking.approval.clone();
            self.call_changed(&approval, arguments);
        }
        let as_shown = !matches!(
            answer,
            ApprovalReply::Changed { .. } | ApprovalReply::No { .. }
        );
        self.shown_change = self
            .asking
            .as_ref()
            .and_then(|asking| asking.change().filter(|_| as_shown));
        self.end_question();
        let now = self.activity.now();
        self.calls.iter_mut().for_each(|call| call.since = now);
        effects.push(Effect::Answer(answer));
    }

    fn control_c(&mut self, hint: Option<Hint>, effects: &mut Vec<Effect>) {
        if !self.editor.is_empty() && self.asking.is_none() {
            self.editor.clear();
            self.menu = None;
            return;
        }
        if self.stop_shell(effects) {
            return;
        }
        if self.busy {
            self.interrupt(effects);
        } else if hint == Some(Hint::QuitAgain) {
            effects.push(Effect::Quit);
        } else {
            self.hint = Some(Hint::QuitAgain);
        }
    }

    /// Stops the command in the user's shell that was started last; whether there was one.
    fn stop_shell(&mut self, effects: &mut Vec<Effect>) -> bool {
        let newest = self.activity.newest_shell();
        effects.extend(newest.map(|id| Effect::Do(Operation::Side(SideAction::Stop(id)))));
        newest.is_some()
    }

    fn interrupt(&mut self, effects: &mut Vec<Effect>) {
        if !self.busy {
            return;
        }
        self.interrupted = true;
        self.hint = Some(Hint::Interrupting);
        effects.push(Effect::Do(Operation::Interrupt));
    }

    fn enter(&mut self, effects: &mut Vec<Effect>) {
        if let Some(before) = self.editor.text().strip_suffix('\\')
            && self.editor.cursor() == self.editor.text().len()
        {
            // A backslash at the end goes on in the next line, for terminals without Alt-Enter.
            let text = format!("{before}\n");
            return self.editor.set(&text);
        }
        // A name that was typed in full is meant, unless something else was chosen.
        let is_name =
            |name: &str| is_command(name) || self.commands.iter().any(|(own, _)| own == name);
        let is_typed = self.editor.text().strip_prefix('/').is_some_and(is_name);
        let would_change = |menu: &CompletionMenu| {
            menu.choice()
                .is_some_and(|item| item.text != self.editor.word())
                && !(is_typed && menu.chosen == 0)
        };
        if self.menu.as_ref().is_some_and(would_change) {
            let command = self.editor.text().starts_with('/');
            self.complete();
            if !command {
                return;
            }
        }
        self.menu = None;
        if self.editor.text().trim().is_empty() {
            return;
        }
        let mut text = self.editor.take();
        effects.push(Effect::Keep(text.clone()));
        if text.starts_with('/') {
            // Completion leaves a blank.
            text.truncate(text.trim_end().len());
        }
        self.said(text, effects);
    }

    /// Prints all of the last result; the second time, any of them can be looked at.
    fn open_last(&mut self, hint: Option<Hint>) {
        match self.results.last() {
            Some(_) if hint == Some(Hint::Opened) => self.viewer = Some(ResultViewer::default()),
            Some((call, text)) => {
                let rows = call.opened(text, self.columns);
                self.print_apart(rows);
                self.hint = Some(Hint::Opened);
            }
            None => self.hint = Some(Hint::NothingToOpen),
        }
    }

    fn key_of_viewer(&mut self, key: KeyEvent) {
        let Some(viewer) = &mut self.viewer else {
            return;
        };
        match viewer.key(
            key,
            &self.results,
            self.columns,
            self.rows.saturating_sub(1),
        ) {
            ViewerOutcome::Stay => return,
            ViewerOutcome::Close => {}
            ViewerOutcome::Print(rows) => self.print_apart(rows),
        }
        self.viewer = None;
    }

    fn key_of_search(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(search) = &mut self.search else {
            return;
        };
        match key.code {
            KeyCode::Char('r') if control => {
                if self.editor.search(&search.query, search.skip + 1).is_some() {
                    search.skip += 1;
                }
            }
            KeyCode::Char('c' | 'g') if control => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Char(c) if !control => {
                search.query.push(c);
                search.skip = 0;
            }
            KeyCode::Backspace => {
                search.query.pop();
                search.skip = 0;
            }
            _ => {
                // Any other key takes what was found.
                let found = self
                    .editor
                    .search(&search.query, search.skip)
                    .map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.editor.set(&found);
                }
            }
        }
    }

    /// What the word before the cursor could become.
    pub(super) fn offer(&mut self) {
        let chosen = self.menu.take().map_or(0, |menu| menu.chosen);
        let word = self.editor.word();
        let items: Vec<_> = if let Some(name) = word
            .strip_prefix('/')
            .filter(|_| self.editor.text() == word)
        {
            let own = COMMANDS
                .iter()
                .map(|command| (command.name, (command.help)()));
            let all: Vec<_> = own
                .chain(self.commands.iter().map(|(name, help)| (&**name, &**help)))
                .collect();
            let used = |name: &str| self.editor.uses(name);
            let found = complete::commands(name, all.iter().map(|command| command.0), used);
            let help = |name: &str| {
                all.iter()
                    .find(|command| command.0 == name)
                    .map_or("", |command| command.1)
            };
            found
                .into_iter()
                .map(|name| CompletionItem {
                    text: format!("/{name}"),
                    help: help(name).to_owned(),
                })
                .collect()
        } else if let Some(name) = word.strip_prefix('@') {
            let all = self.files.iter().chain(&self.resources).map(String::as_str);
            let found = complete::paths(name, all);
            let item = |path: &str| {
                let resource = self.resources.iter().any(|one| one == path);
                CompletionItem {
                    text: if resource {
                        format!("@{path}")
                    } else {
                        mention(path)
                    },
                    help: String::new(),
                }
            };
            found.into_iter().map(item).collect()
        } else {
            Vec::new()
        };
        let chosen = chosen.min(items.len().saturating_sub(1));
        self.menu = (!items.is_empty()).then_some(CompletionMenu { items, chosen });
    }

    /// Files are listed when somebody begins to name one.
    fn want_files(&self, effects: &mut Vec<Effect>) {
        if self.editor.word() == "@" {
            effects.push(Effect::Do(Operation::Side(SideAction::Files)));
        }
    }

    fn step_menu(&mut self, step: MenuMove) {
        if let Some(menu) = &mut self.menu {
            menu.step(step);
        }
    }

    fn complete(&mut self) {
        let Some(text) = self
            .menu
            .take()
            .and_then(|menu| menu.choice().map(|item| item.text.clone()))
        else {
            return;
        };
        let behind = if text.ends_with('/') { "" } else { " " };
        self.editor.replace_word(&format!("{text}{behind}"));
    }
}

/// A file as a prompt mentions it.
fn mention(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(plain) {
        format!("@{path}")
    } else {
        format!("@\"{path}\"")
    }
}
