//! `/context edit`: lists the messages that are sent, and shows the price of every change before it
//! is made.

use haft_context::{ContextEdit as Kept, EditReach};
use haft_engine::{CacheState, ContextLine, Session};
use haft_tui::{
    ContextEditAction, ContextEditRequest, ListRequest, Operation, PickerAction, PickerList,
    PickerRow,
};

use super::TuiSession;

impl TuiSession<'_> {
    /// Lists every message, newest first, with the edits that can be made to it.
    pub(super) async fn context_edit_list(&mut self) -> anyhow::Result<Option<PickerList>> {
        let Some(session) = &mut self.session else {
            return Ok(None);
        };
        let lines = session.list_context_lines().await?;
        let mut rows: Vec<_> = lines.iter().rev().map(message_row).collect();
        let edits = session.edits().edits_in_force().len();
        if edits > 0 {
            let text = text!("edits-undo-last", edits);
            let then = ask_action(ContextEditAction::Undo, String::new());
            rows.insert(
                0,
                PickerRow {
                    text,
                    about: String::new(),
                    then,
                },
            );
        }
        let title = text!("edits-title").to_owned();
        let notes = vec![text!("edits-title-note").to_owned()];
        Ok(Some(PickerList {
            title,
            notes,
            rows,
            ..PickerList::default()
        })
        .filter(|list| !list.rows.is_empty()))
    }

    /// Asks whether to make an edit, and shows its cost.
    pub(super) async fn context_edit_question(
        &mut self,
        edit: ContextEditRequest,
    ) -> anyhow::Result<Option<PickerList>> {
        let Some(session) = &mut self.session else {
            return Ok(None);
        };
        let news = session.quote_edit(&to_stored_edit(session, &edit)?).await?;
        let (title, text) = match edit.action {
            ContextEditAction::Drop => (text!("edits-drop-question"), text!("edits-drop")),
            ContextEditAction::Pin => (text!("edits-pin-question"), text!("edits-pin")),
            ContextEditAction::Mask => (text!("edits-mask-question"), text!("edits-mask")),
            ContextEditAction::Restore => (text!("edits-restore-question"), text!("edits-restore")),
            ContextEditAction::Undo => (text!("edits-undo-question"), text!("edits-undo")),
        };
        let mut notes = vec![if news.quote.tokens == 0 {
            text!("edits-nothing-cached").to_owned()
        } else {
            text!(
                "edits-to-write",
                quote = crate::output::localize_text(news.quote)
            )
        }];
        if news.quote.saved_tokens() > 0 {
            notes.push(text!(
                "edits-saves",
                tokens = haft_text::format_thousands(news.quote.saved_tokens())
            ));
        }
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        let rows = vec![
            row(text, PickerAction::Do(Operation::EditContext(edit))),
            row(text!("edits-cancel"), PickerAction::Leave),
        ];
        Ok(Some(PickerList {
            title: title.to_owned(),
            notes,
            rows,
            ..PickerList::default()
        }))
    }

    pub(super) async fn edit_context(&mut self, edit: &ContextEditRequest) -> anyhow::Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let edit = to_stored_edit(session, edit)?;
        let news = session.edit_context(edit).await?;
        self.show_text(&text!("edits-applied", count = news.in_force));
        Ok(())
    }
}

/// Returns the row of a message, with the edits that can be made to it.
fn message_row(line: &ContextLine) -> PickerRow {
    let cache = match line.cache {
        Some(CacheState::Cached) => text!("edits-cached"),
        Some(CacheState::Written | CacheState::Uncached) => "",
        None => text!("edits-not-sent"),
    };
    let edited = line.edited.map_or_else(String::new, |edited| {
        text!(
            "edits-edited",
            how = crate::output::localize_text(edited.name())
        )
    });
    let about = format!(
        "{}{cache}{edited}",
        text!(
            "edits-tokens",
            tokens = haft_text::format_thousands(line.tokens)
        )
    );
    let action = |text: &str, about: &str, action| PickerRow {
        text: text.to_owned(),
        about: about.to_owned(),
        then: ask_action(action, line.id.to_string()),
    };
    let removal = line.removal.as_ref().map_or_else(String::new, |quote| {
        text!("edits-price", quote = crate::output::localize_text(quote))
    });
    let rows = vec![
        action(text!("edits-drop"), &removal, ContextEditAction::Drop),
        action(
            text!("edits-mask"),
            text!("edits-mask-note"),
            ContextEditAction::Mask,
        ),
        action(
            text!("edits-pin"),
            text!("edits-pin-note"),
            ContextEditAction::Pin,
        ),
        action(
            text!("edits-restore"),
            text!("edits-restore-note"),
            ContextEditAction::Restore,
        ),
    ];
    let text = text!(
        "edits-message",
        role = crate::output::localize_text(line.role),
        text = line.excerpt
    );
    let list = PickerList {
        title: text.clone(),
        notes: vec![about.clone()],
        rows,
        ..PickerList::default()
    };
    PickerRow {
        text,
        about,
        then: PickerAction::Open(Box::new(list)),
    }
}

fn ask_action(action: ContextEditAction, message: String) -> PickerAction {
    PickerAction::Do(Operation::Offer(ListRequest::ContextEdit(
        ContextEditRequest { action, message },
    )))
}

/// Converts an edit to the form in which the conversation stores it.
fn to_stored_edit(session: &Session, edit: &ContextEditRequest) -> anyhow::Result<Kept> {
    let ids = |reach| {
        session
            .resolve_messages(std::slice::from_ref(&edit.message), reach)
            .map(|chosen| chosen.ids)
    };
    Ok(match edit.action {
        ContextEditAction::Drop => Kept::Drop {
            ids: ids(EditReach::Block)?.into_iter().collect(),
        },
        ContextEditAction::Pin => Kept::Pin {
            ids: ids(EditReach::Block)?.into_iter().collect(),
        },
        ContextEditAction::Mask => Kept::Mask {
            ids: ids(EditReach::Message)?.into_iter().collect(),
        },
        ContextEditAction::Restore => Kept::Restore {
            ids: ids(EditReach::Block)?.into_iter().collect(),
        },
        ContextEditAction::Undo => Kept::Undo { edits: 1 },
    })
}
