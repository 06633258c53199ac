//! The lists from which the user chooses: conversations, messages, models and documents.

use std::time::Duration;

use haft_agent::WallClock;
use haft_store::ConversationScope;
use haft_tui::{
    Focus, ListRequest, Operation, PickerAction, PickerList, PickerRow, RewindTarget, UiMessage,
};
use haft_types::{self as types, Clock as _, Origin, Role, Timestamp};

use super::TuiSession;
use super::rewind::typed_part;
use crate::commands::changes::ConversationChanges;
use crate::exit::usage_error;

impl TuiSession<'_> {
    /// Lists the conversations of this project, newest first.
    pub(super) async fn conversation_list(&self) -> anyhow::Result<PickerList> {
        let store = self.settings.open_store()?;
        let namespace = self.project.namespace();
        let mut listed = store.list(ConversationScope::Namespace(&namespace)).await?;
        listed.sort_by_key(|one| std::cmp::Reverse(one.updated_at));
        let open = self.current_conversation_id();
        let row = |one: haft_store::ConversationRow| {
            let age = format_age(one.updated_at);
            let messages = one.messages;
            let is_open = open.as_deref() == Some(one.id.as_str());
            PickerRow {
                text: one.name,
                about: if is_open {
                    text!("interactive-conversation-open", age, messages)
                } else {
                    text!("interactive-conversation", age, messages)
                },
                then: PickerAction::Do(Operation::Resume(one.id.to_string())),
            }
        };
        let rows: Vec<_> = listed.into_iter().map(row).collect();
        let notes = if rows.is_empty() {
            vec![text!("interactive-no-conversations").to_owned()]
        } else {
            Vec::new()
        };
        Ok(PickerList {
            title: text!("interactive-resume-title").into(),
            notes,
            rows,
            ..PickerList::default()
        })
    }

    /// Lists the user's messages in this conversation, newest first, or returns `None` if there are
    /// none.
    pub(super) async fn message_list(&self) -> anyhow::Result<Option<PickerList>> {
        let Some(session) = &self.session else {
            return Ok(None);
        };
        let id = session.conversation().id.to_string();
        let changed = ConversationChanges::for_conversation(&self.settings, &id)
            .await?
            .record
            .summary()?;
        let changed = !changed.files.is_empty();
        let history = session.history();
        let row = |(at, message): (usize, &types::Message)| {
            let words = message.joined_text();
            let text = typed_part(&words)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            let goes = history.len() - at;
            let about = text!(
                "interactive-rewind-removes",
                age = format_age(message.created_at),
                messages = goes
            );
            PickerRow {
                then: build_rewind_action(&message.message_id.to_string(), &text, changed),
                text,
                about,
            }
        };
        let messages = history.iter().map(|entry| &entry.message).enumerate();
        let rows: Vec<_> = messages
            .filter(|(_, message)| {
                message.role == Role::User
                    && matches!(message.origin(), Origin::User | Origin::Joined)
            })
            .map(row)
            .collect();
        let title = text!("interactive-rewind-title").to_owned();
        let notes = vec![text!("interactive-rewind-note").to_owned()];
        let list = PickerList {
            title,
            notes,
            rows: rows.into_iter().rev().collect(),
            ..PickerList::default()
        };
        Ok(Some(list).filter(|list| !list.rows.is_empty()))
    }

    /// Lists the usable models, with the price of the next request after a switch.
    pub(super) fn model_list(&self, filter: String) -> anyhow::Result<PickerList> {
        let now = match (&self.session, &self.chosen.model) {
            (Some(session), _) => Some(session.model().full_name()),
            (None, Some(chosen)) => Some(chosen.clone()),
            (None, None) => {
                let args = super::without_empty_resume(self.args);
                super::lower_args(&args, &self.settings, self.project.clone(), Some(""))
                    .ok()
                    .map(|plan| plan.model)
            }
        };
        let mut rows = Vec::new();
        let usable =
            haft_agent::list_usable_models(self.settings.environment(), &self.settings.config)
                .map_err(|error| usage_error(error.to_string()))?;
        for spec in usable.into_iter().map(|declared| declared.spec) {
            let name = spec.full_name();
            let is_now = now.as_ref() == Some(&name);
            let quote = self
                .session
                .as_ref()
                .filter(|_| !is_now)
                .and_then(|session| session.quote_model_switch(&spec));
            let about = match quote {
                _ if is_now => text!("interactive-model-current").to_owned(),
                Some(quote) => {
                    text!(
                        "interactive-model-price",
                        quote = crate::output::localize_text(quote)
                    )
                }
                None => String::new(),
            };
            let then = if is_now {
                PickerAction::Leave
            } else {
                PickerAction::Do(Operation::Model(name.clone()))
            };
            rows.push(PickerRow {
                text: name,
                about,
                then,
            });
        }
        let notes = if self.session.is_some() {
            vec![text!("interactive-model-note").to_owned()]
        } else {
            Vec::new()
        };
        Ok(PickerList {
            title: text!("interactive-model-title").into(),
            notes,
            rows,
            filter,
            ..PickerList::default()
        })
    }

    /// Lists the documents and focus files that are part of every request, or returns `None` if
    /// there are none.
    pub(super) fn file_list(&self) -> Option<PickerList> {
        let document = |(heading, text, tokens): (&str, &str, u32)| PickerRow {
            text: heading.to_owned(),
            about: text!(
                "interactive-document",
                tokens = haft_text::format_thousands(tokens)
            ),
            then: PickerAction::Tell(text.to_owned()),
        };
        let focus = |path: &String| PickerRow {
            text: path.clone(),
            about: text!("interactive-focus").to_owned(),
            then: PickerAction::Open(Box::new(focus_file_actions(path))),
        };
        let documents = self
            .session
            .iter()
            .flat_map(|session| session.documents().map(document));
        let rows: Vec<_> = documents
            .chain(self.chosen.focus.iter().map(focus))
            .collect();
        let notes = vec![text!("interactive-files-note").to_owned()];
        let list = PickerList {
            title: text!("interactive-files-title").into(),
            notes,
            rows,
            ..PickerList::default()
        };
        Some(list).filter(|list| !list.rows.is_empty())
    }

    /// Asks whether to change the focus files, and shows the price of the change. Before the first
    /// request the change is free, so it is made at once.
    pub(super) fn confirm_focus_change(&mut self, focus: Focus) -> anyhow::Result<()> {
        let Some(quote) = self
            .session
            .as_ref()
            .and_then(haft_engine::Session::quote_system_change)
        else {
            return self.change_focus_files(&focus);
        };
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        let list = PickerList {
            title: text!("interactive-focus-title").to_owned(),
            notes: vec![text!(
                "interactive-focus-price",
                quote = crate::output::localize_text(quote)
            )],
            rows: vec![
                row(
                    text!("interactive-focus-change"),
                    PickerAction::Do(Operation::Focus(focus)),
                ),
                row(text!("interactive-focus-cancel"), PickerAction::Leave),
            ],
            ..PickerList::default()
        };
        self.ui.send_message(UiMessage::Pick(list));
        Ok(())
    }

    pub(super) fn change_focus_files(&mut self, focus: &Focus) -> anyhow::Result<()> {
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
        let told = if files.is_empty() {
            text!("interactive-focus-none").to_owned()
        } else {
            text!(
                "interactive-focus-files",
                files = crate::output::join_names(&files)
            )
        };
        if let Some(session) = &mut self.session {
            session.set_focus_files(files)?;
        }
        self.show_text(&told);
        Ok(())
    }
}

/// Lists the actions for a focus file.
fn focus_file_actions(path: &str) -> PickerList {
    let row = |text: &str, then| PickerRow {
        text: text.to_owned(),
        about: String::new(),
        then,
    };
    let off = Operation::Offer(ListRequest::Focus(Focus::Remove(vec![path.to_owned()])));
    let rows = vec![
        row(
            text!("interactive-file-mention"),
            PickerAction::Type(format!("@{path} ")),
        ),
        row(text!("interactive-file-remove"), PickerAction::Do(off)),
    ];
    PickerList {
        title: path.to_owned(),
        notes: Vec::new(),
        rows,
        ..PickerList::default()
    }
}

/// Returns the action that rewinds to a message. If files were changed, it first asks whether to
/// restore them.
fn build_rewind_action(message: &str, text: &str, changed: bool) -> PickerAction {
    let back = |take_back| {
        PickerAction::Do(Operation::Rewind {
            message: message.to_owned(),
            take_back,
        })
    };
    if !changed {
        return back(RewindTarget::Conversation);
    }
    let row = |text: &str, about: &str, then| PickerRow {
        text: text.to_owned(),
        about: about.to_owned(),
        then,
    };
    PickerAction::Open(Box::new(PickerList {
        title: text!("interactive-rewind-to", text),
        notes: Vec::new(),
        rows: vec![
            row(
                text!("interactive-rewind-messages"),
                text!("interactive-rewind-messages-note"),
                back(RewindTarget::Conversation),
            ),
            row(
                text!("interactive-rewind-files"),
                text!("interactive-rewind-files-note"),
                back(RewindTarget::ConversationAndFiles),
            ),
        ],
        is_question: true,
        ..PickerList::default()
    }))
}

/// Formats how long ago a time was, in short form.
pub(crate) fn format_age(then: Timestamp) -> String {
    let passed = Duration::try_from(WallClock.now().duration_since(then)).unwrap_or_default();
    match passed.as_secs() {
        0..60 => text!("interactive-just-now").to_owned(),
        seconds @ 60..3_600 => text!("interactive-minutes-ago", minutes = seconds / 60),
        seconds @ 3_600..86_400 => text!("interactive-hours-ago", hours = seconds / 3_600),
        seconds => text!("interactive-days-ago", days = seconds / 86_400),
    }
}
