//! The lists the user chooses from: conversations, what was said, models, documents.

use std::time::Duration;

use haft_agent::WallClock;
use haft_store::ConversationScope;
use haft_tui::{Focus, ListRequest, Operation, PickerAction, PickerList, PickerRow, RewindTarget, UiMessage};
use haft_types::{self as types, Clock as _, Origin, Role, Timestamp};

use super::TuiSession;
use super::rewind::typed_part;
use crate::commands::changes::ConversationChanges;
use crate::commands::models;
use crate::wiring;

impl TuiSession<'_> {
    /// The conversations of this project, the newest first.
    pub(super) async fn conversations(&self) -> anyhow::Result<PickerList> {
        let store = wiring::open_store(&self.places, &self.config)?;
        let namespace = self.project.namespace();
        let mut listed = store.list(ConversationScope::Namespace(&namespace)).await?;
        listed.sort_by_key(|one| std::cmp::Reverse(one.updated_at));
        let open = self.open_conversation();
        let row = |one: haft_store::ConversationRow| {
            let now = if open.as_deref() == Some(one.id.as_str()) { "open now, " } else { "" };
            let messages = if one.messages == 1 { "message" } else { "messages" };
            PickerRow {
                text: one.name,
                about: format!("{now}{}, {} {messages}", age(one.updated_at), one.messages),
                then: PickerAction::Do(Operation::Resume(one.id.to_string())),
            }
        };
        let rows: Vec<_> = listed.into_iter().map(row).collect();
        let notes = if rows.is_empty() { vec!["There are none in this project yet.".to_owned()] } else { Vec::new() };
        Ok(PickerList { title: "Go on with which conversation?".into(), notes, rows, filter: String::new() })
    }

    /// What the user said in this conversation, the newest first.
    pub(super) async fn messages(&self) -> anyhow::Result<Option<PickerList>> {
        let Some(session) = &self.session else { return Ok(None) };
        let id = session.conversation().id.to_string();
        let changed = ConversationChanges::of(Some(&id), &self.places, &self.config).await?.record.summary()?;
        let changed = !changed.files.is_empty();
        let history = session.history();
        let said = |message: &types::Message| {
            message.role == Role::User && matches!(message.origin(), Origin::User | Origin::Joined)
        };
        let row = |(at, message): (usize, &types::Message)| {
            let words = message.joined_text();
            let text = typed_part(&words).split_whitespace().collect::<Vec<_>>().join(" ");
            let goes = history.len() - at;
            let about =
                format!("{}, {goes} {} go", age(message.created_at), if goes == 1 { "message" } else { "messages" });
            PickerRow { then: how_far(&message.message_id.to_string(), &text, changed), text, about }
        };
        let messages = history.iter().map(|entry| &entry.message).enumerate();
        let rows: Vec<_> = messages.filter(|(_, message)| said(message)).map(row).collect();
        let title = "Back to before which of your messages?".to_owned();
        let notes = vec!["The conversation as it is stays; a copy goes on from there.".to_owned()];
        let list = PickerList { title, notes, rows: rows.into_iter().rev().collect(), filter: String::new() };
        Ok(Some(list).filter(|list| !list.rows.is_empty()))
    }

    /// The models there are, with what the next request costs if they are asked.
    pub(super) fn models(&self, filter: String) -> anyhow::Result<PickerList> {
        let now = match (&self.session, &self.chosen.model) {
            (Some(session), _) => Some(session.model().full_name()),
            (None, Some(chosen)) => Some(chosen.clone()),
            (None, None) => {
                super::lower(&super::without_choice(self.args), &self.config, Some("")).ok().map(|plan| plan.model)
            }
        };
        let mut rows = Vec::new();
        for spec in models::usable(&self.config)? {
            let name = spec.full_name();
            let is_now = now.as_ref() == Some(&name);
            let quote = self.session.as_ref().filter(|_| !is_now).and_then(|session| session.quote_switch(&spec));
            let about = match quote {
                _ if is_now => "asked now".to_owned(),
                Some(quote) => format!("{quote} to write"),
                None => String::new(),
            };
            let then = if is_now { PickerAction::Leave } else { PickerAction::Do(Operation::Model(name.clone())) };
            rows.push(PickerRow { text: name, about, then });
        }
        let notes = if self.session.is_some() {
            vec!["Another model has seen nothing yet: the whole conversation is written to its cache anew.".to_owned()]
        } else {
            Vec::new()
        };
        Ok(PickerList { title: "Which model is asked?".into(), notes, rows, filter })
    }

    /// What is sent to the model about files with every request.
    pub(super) fn files(&self) -> Option<PickerList> {
        let document = |(heading, text, tokens): (&str, &str, u32)| PickerRow {
            text: heading.to_owned(),
            about: format!("{tokens} tokens, in every request"),
            then: PickerAction::Tell(text.to_owned()),
        };
        let focus = |path: &String| PickerRow {
            text: path.clone(),
            about: "focus: its path is in the system message".to_owned(),
            then: PickerAction::Open(Box::new(what_of(path))),
        };
        let documents = self.session.iter().flat_map(|session| session.documents().map(document));
        let rows: Vec<_> = documents.chain(self.chosen.focus.iter().map(focus)).collect();
        let notes = vec!["Enter shows a document. `/files add PATH` names a file as the focus.".to_owned()];
        let list = PickerList { title: "What the model is told of files".into(), notes, rows, filter: String::new() };
        Some(list).filter(|list| !list.rows.is_empty())
    }

    /// Whether the focus changes. Where nothing was sent yet, nothing has to be said first.
    pub(super) fn focus_question(&mut self, focus: Focus) -> anyhow::Result<()> {
        let Some(quote) = self.session.as_ref().and_then(haft_engine::Session::quote_system) else {
            return self.focus_on(&focus);
        };
        let row = |text: &str, then| PickerRow { text: text.to_owned(), about: String::new(), then };
        let list = PickerList {
            title: "Change the focus files?".to_owned(),
            notes: vec![format!("They stand in the system message: the next request has {quote} to write again.")],
            rows: vec![
                row("change them", PickerAction::Do(Operation::Focus(focus))),
                row("leave them", PickerAction::Leave),
            ],
            filter: String::new(),
        };
        self.ui.tell(UiMessage::Pick(list));
        Ok(())
    }

    pub(super) fn focus_on(&mut self, focus: &Focus) -> anyhow::Result<()> {
        let files = &mut self.chosen.focus;
        match focus {
            Focus::Add(paths) => {
                for path in paths {
                    if !files.contains(path) {
                        files.push(path.clone());
                    }
                }
            }
            Focus::Remove(paths) => files.retain(|path| !paths.contains(path)),
            Focus::Clear => files.clear(),
        }
        let files = files.clone();
        let told =
            if files.is_empty() { "no file is the focus".to_owned() } else { format!("focus: {}", files.join(", ")) };
        if let Some(session) = &mut self.session {
            session.set_focus_files(files)?;
        }
        self.tell(&told);
        Ok(())
    }
}

/// What can be done with a focus file.
fn what_of(path: &str) -> PickerList {
    let row = |text: &str, then| PickerRow { text: text.to_owned(), about: String::new(), then };
    let off = Operation::Offer(ListRequest::Focus(Focus::Remove(vec![path.to_owned()])));
    let rows =
        vec![row("mention it", PickerAction::Type(format!("@{path} "))), row("take it off", PickerAction::Do(off))];
    PickerList { title: path.to_owned(), notes: Vec::new(), rows, filter: String::new() }
}

/// Whether files go back too, where any were changed.
fn how_far(message: &str, text: &str, changed: bool) -> PickerAction {
    let back = |take_back| PickerAction::Do(Operation::Rewind { message: message.to_owned(), take_back });
    if !changed {
        return back(RewindTarget::Conversation);
    }
    let row = |text: &str, about: &str, then| PickerRow { text: text.to_owned(), about: about.to_owned(), then };
    PickerAction::Open(Box::new(PickerList {
        title: format!("Back to: {text}"),
        notes: Vec::new(),
        rows: vec![
            row("what was said", "files stay as they are", back(RewindTarget::Conversation)),
            row("what was said, and files", "as they were before it", back(RewindTarget::ConversationAndFiles)),
        ],
        filter: String::new(),
    }))
}

/// How long ago something was, in short form.
fn age(then: Timestamp) -> String {
    let passed = Duration::try_from(WallClock.now().duration_since(then)).unwrap_or_default();
    match passed.as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}
