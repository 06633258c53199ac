//! Returns to an earlier message of the conversation, and undoes and redoes file changes.

use haft_changes::Mode;
use haft_engine::Which;
use haft_tui::{Operation, PickerAction, PickerList, PickerRow, RewindTarget, UiMessage};

use super::TuiSession;
use crate::commands::changes::{self, ConversationChanges, Direction, RewindScope};

impl TuiSession<'_> {
    /// Rewinds to before a message. The conversation stays unchanged; a fork of it is opened.
    pub(super) async fn rewind(
        &mut self,
        message: &str,
        take_back: RewindTarget,
    ) -> anyhow::Result<()> {
        let Some(id) = self.open_conversation() else {
            return Ok(());
        };
        // Rewinding writes to the conversation, so it must be closed first.
        self.close().await;
        let gone = self.go_back(&id, message, take_back).await;
        let (which, prompt) = match &gone {
            Ok((rewound, prompt)) => (rewound.clone(), prompt.clone()),
            Err(_) => (id, None),
        };
        self.open(Which::Named(which), "").await?;
        gone?;
        self.tell_opened();
        if let Some(text) = prompt {
            self.ui.tell(UiMessage::Typed { text });
        }
        Ok(())
    }

    /// Rewinds, and returns the id of the conversation to open and the text that the user typed in
    /// the removed message.
    async fn go_back(
        &self,
        id: &str,
        message: &str,
        take_back: RewindTarget,
    ) -> anyhow::Result<(String, Option<String>)> {
        let opened = ConversationChanges::of(&self.settings, id).await?;
        let scope = match take_back {
            RewindTarget::Conversation => RewindScope::Conversation,
            RewindTarget::ConversationAndFiles => RewindScope::ConversationAndFiles,
        };
        let gone = changes::go_back(&opened, message, scope, Mode::Apply).await?;
        if let Some(text) = gone.files(&opened) {
            self.tell(&text);
        }
        let id = gone
            .rewound
            .map_or_else(|| id.to_owned(), |rewound| rewound.id.to_string());
        Ok((id, gone.prompt.map(|prompt| typed_part(&prompt).to_owned())))
    }

    pub(super) async fn undo_list(&self) -> anyhow::Result<Option<PickerList>> {
        self.change_list(Direction::Back).await
    }

    pub(super) async fn redo_list(&self) -> anyhow::Result<Option<PickerList>> {
        self.change_list(Direction::Forth).await
    }

    /// Asks whether to undo or redo, and shows what would happen to files.
    async fn change_list(&self, direction: Direction) -> anyhow::Result<Option<PickerList>> {
        let Some(id) = self.open_conversation() else {
            return Ok(None);
        };
        let opened = ConversationChanges::of(&self.settings, &id).await?;
        let would = changes::described(&opened, direction, Mode::DryRun)?;
        let (title, text, then) = match direction {
            Direction::Back => (
                text!("interactive-undo-title"),
                text!("interactive-undo"),
                Operation::Undo,
            ),
            Direction::Forth => (
                text!("interactive-redo-title"),
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
            title: title.to_owned(),
            notes: would.lines().map(str::to_owned).collect(),
            rows: vec![
                row(text, PickerAction::Do(then)),
                row(text!("interactive-undo-cancel"), PickerAction::Leave),
            ],
            is_question: true,
            ..PickerList::default()
        }))
    }

    pub(super) async fn undo(&self) -> anyhow::Result<()> {
        self.change(Direction::Back).await
    }

    pub(super) async fn redo(&self) -> anyhow::Result<()> {
        self.change(Direction::Forth).await
    }

    async fn change(&self, direction: Direction) -> anyhow::Result<()> {
        let Some(id) = self.open_conversation() else {
            return Ok(());
        };
        let opened = ConversationChanges::of(&self.settings, &id).await?;
        self.tell(&changes::described(&opened, direction, Mode::Apply)?);
        Ok(())
    }

    pub(super) fn open_conversation(&self) -> Option<String> {
        self.session
            .as_ref()
            .map(|session| session.conversation().id.to_string())
    }
}

/// Returns the part of a prompt that the user typed, without text that haft appended.
pub(super) fn typed_part(prompt: &str) -> &str {
    let behind = ["\n\n<system-reminder>\n", super::side_actions::OVERHEARD];
    let ends = behind.iter().filter_map(|mark| prompt.find(mark));
    &prompt[..ends.min().unwrap_or(prompt.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_behind_the_words_is_not_typed_again() {
        assert_eq!(
            typed_part("look at @a.rs\n\n<system-reminder>\nThe user mentions"),
            "look at @a.rs"
        );
        assert_eq!(
            typed_part(&format!(
                "why?{}<shell>\n$ make\n</shell>",
                super::super::side_actions::OVERHEARD
            )),
            "why?"
        );
        assert_eq!(typed_part("two\n\nparagraphs"), "two\n\nparagraphs");
    }
}
