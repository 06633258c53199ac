//! Returns to an earlier message of the conversation, and undoes and redoes file changes.

use haft_changes::Mode;
use haft_engine::ConversationChoice;
use haft_tui::{Operation, PickerAction, PickerList, PickerRow, RewindTarget, UiMessage};

use super::TuiSession;
use crate::commands::changes::{self, ConversationChanges, RewindScope, UndoDirection};

impl TuiSession<'_> {
    /// Rewinds to the point before a message. The conversation stays unchanged; a fork of it is
    /// opened.
    pub(super) async fn rewind(
        &mut self,
        message: &str,
        take_back: RewindTarget,
    ) -> anyhow::Result<()> {
        let Some(id) = self.current_conversation_id() else {
            return Ok(());
        };
        // Rewinding writes to the conversation, so it must be closed first.
        self.close_session().await;
        let outcome = self.rewind_conversation(&id, message, take_back).await;
        let (which, prompt) = match &outcome {
            Ok((rewound, prompt)) => (rewound.clone(), prompt.clone()),
            Err(_) => (id, None),
        };
        self.open_session(ConversationChoice::Named(which), "")
            .await?;
        outcome?;
        self.show_opened_conversation();
        if let Some(text) = prompt {
            self.ui.send_message(UiMessage::Typed { text });
        }
        Ok(())
    }

    /// Rewinds, and returns the id of the conversation to open and the text that the user typed in
    /// the removed message.
    async fn rewind_conversation(
        &self,
        id: &str,
        message: &str,
        take_back: RewindTarget,
    ) -> anyhow::Result<(String, Option<String>)> {
        let opened = ConversationChanges::for_conversation(&self.settings, id).await?;
        let scope = match take_back {
            RewindTarget::Conversation => RewindScope::Conversation,
            RewindTarget::ConversationAndFiles => RewindScope::ConversationAndFiles,
        };
        let outcome = changes::rewind_to_message(&opened, message, scope, Mode::Apply).await?;
        if let Some(text) = outcome.files_text(&opened) {
            self.show_text(&text);
        }
        let id = outcome
            .rewound
            .map_or_else(|| id.to_owned(), |rewound| rewound.id.to_string());
        Ok((
            id,
            outcome.prompt.map(|prompt| typed_part(&prompt).to_owned()),
        ))
    }

    pub(super) async fn undo_list(&self) -> anyhow::Result<Option<PickerList>> {
        self.undo_or_redo_list(UndoDirection::Undo).await
    }

    pub(super) async fn redo_list(&self) -> anyhow::Result<Option<PickerList>> {
        self.undo_or_redo_list(UndoDirection::Redo).await
    }

    /// Asks whether to undo or redo, and shows what would happen to files.
    async fn undo_or_redo_list(
        &self,
        direction: UndoDirection,
    ) -> anyhow::Result<Option<PickerList>> {
        let Some(id) = self.current_conversation_id() else {
            return Ok(None);
        };
        let opened = ConversationChanges::for_conversation(&self.settings, &id).await?;
        let would = changes::preview_undo_or_redo(&opened, direction)?;
        let change = would.headline;
        let (title, text, then) = match direction {
            UndoDirection::Undo => (
                text!("interactive-undo-title", change),
                text!("interactive-undo"),
                Operation::Undo,
            ),
            UndoDirection::Redo => (
                text!("interactive-redo-title", change),
                text!("interactive-redo"),
                Operation::Redo,
            ),
        };
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        Ok(Some(PickerList {
            title,
            notes: would.files.lines().map(str::to_owned).collect(),
            rows: vec![
                row(text, PickerAction::Do(then)),
                row(text!("interactive-undo-cancel"), PickerAction::Leave),
            ],
            is_question: true,
            ..PickerList::default()
        }))
    }

    pub(super) async fn undo_changes(&self) -> anyhow::Result<()> {
        self.undo_or_redo(UndoDirection::Undo).await
    }

    pub(super) async fn redo_changes(&self) -> anyhow::Result<()> {
        self.undo_or_redo(UndoDirection::Redo).await
    }

    async fn undo_or_redo(&self, direction: UndoDirection) -> anyhow::Result<()> {
        let Some(id) = self.current_conversation_id() else {
            return Ok(());
        };
        let opened = ConversationChanges::for_conversation(&self.settings, &id).await?;
        self.show_text(&changes::undo_or_redo_last(
            &opened,
            direction,
            Mode::Apply,
        )?);
        Ok(())
    }

    pub(super) fn current_conversation_id(&self) -> Option<String> {
        self.session
            .as_ref()
            .map(|session| session.conversation().id.to_string())
    }
}

/// Returns the part of a prompt that the user typed, without text that haft appended.
pub(super) fn typed_part(prompt: &str) -> &str {
    let behind = [
        "\n\n<system-reminder>\n",
        super::side_actions::SHELL_OUTPUT_HEADING,
    ];
    let ends = behind.iter().filter_map(|mark| prompt.find(mark));
    &prompt[..ends.min().unwrap_or(prompt.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_part_drops_appended_texts() {
        assert_eq!(
            typed_part("look at @a.rs\n\n<system-reminder>\nThe user mentions"),
            "look at @a.rs"
        );
        assert_eq!(
            typed_part(&format!(
                "why?{}<shell>\n$ make\n</shell>",
                super::super::side_actions::SHELL_OUTPUT_HEADING
            )),
            "why?"
        );
        assert_eq!(typed_part("two\n\nparagraphs"), "two\n\nparagraphs");
    }
}
