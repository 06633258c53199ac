//! Handles conversations that are open in another haft process: names the process, and offers
//! choices.

use haft_agent::SetupError;
use haft_engine::{ConversationChoice, OpenError};
use haft_store::{Holder, Locked, StoreError};
use haft_tui::{Operation, PickerAction, PickerList, PickerRow, SideAction, UiMessage};
use haft_types::ConversationId;
use tokio::sync::mpsc::UnboundedReceiver;

use super::TuiSession;
use super::lists::format_age;

/// The id of the line that the interface shows while it waits for a conversation.
const WAIT_ID: u64 = u64::MAX - 1;

/// Returns the user's choices if another process has the conversation open; `None` for other
/// errors.
pub(super) fn offer_choices(error: &anyhow::Error) -> Option<PickerList> {
    let Some(SetupError::Open(OpenError::Store(StoreError::LockTimeout { what, holder, .. }))) =
        error.downcast_ref()
    else {
        return None;
    };
    let Locked::Conversation(id) = what else {
        return None;
    };
    let row = |text: &str, about: &str, then| PickerRow {
        text: text.into(),
        about: about.into(),
        then,
    };
    let by = |holder: &Holder| {
        text!(
            "interactive-occupied-by",
            holder,
            age = format_age(holder.since)
        )
    };
    Some(PickerList {
        title: text!("interactive-occupied-title").into(),
        notes: holder.iter().map(by).collect(),
        rows: vec![
            row(
                text!("interactive-occupied-fork"),
                text!("interactive-occupied-fork-note"),
                PickerAction::Do(Operation::Fork(id.to_string())),
            ),
            row(
                text!("interactive-occupied-wait"),
                text!("interactive-occupied-wait-note"),
                PickerAction::Do(Operation::Await(id.to_string())),
            ),
            row(
                text!("interactive-occupied-new"),
                "",
                PickerAction::Do(Operation::New),
            ),
        ],
        ..PickerList::default()
    })
}

impl TuiSession<'_> {
    /// Waits until no other process has the conversation open, and opens it. Returns an operation
    /// that arrived during the wait and remains to be done.
    pub(super) async fn await_conversation(
        &mut self,
        id: String,
        wanted: &mut UnboundedReceiver<Operation>,
    ) -> anyhow::Result<Option<Operation>> {
        let store = self.settings.open_store()?;
        let conversation = ConversationId::new(&id);
        let line = text!("interactive-occupied-waiting").to_owned();
        self.ui
            .send_message(UiMessage::Running { id: WAIT_ID, line });
        let mut carried = None;
        let mut free = false;
        while !free {
            tokio::select! {
                biased;
                operation = wanted.recv() => match operation {
                    Some(Operation::Side(SideAction::Stop(WAIT_ID)) | Operation::Interrupt) => break,
                    Some(Operation::Mode(mode)) => self.chosen.mode = mode,
                    Some(prompt @ Operation::Submit(_)) => carried = Some(prompt),
                    Some(Operation::Quit) | None => {
                        carried = Some(Operation::Quit);
                        break;
                    }
                    Some(Operation::Side(action)) => self.side_actions.start(action),
                    // The interface holds back all other operations.
                    Some(_) => {}
                },
                lock = store.try_lock(&conversation) => match lock {
                    Ok(_) => free = true,
                    Err(StoreError::LockTimeout { .. }) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        self.ui.send_message(UiMessage::Ran {
            id: WAIT_ID,
            text: String::new(),
        });
        if free {
            self.open_session(ConversationChoice::Named(id), "").await?;
            self.show_opened_conversation();
        } else if let Some(Operation::Submit(text)) =
            carried.take_if(|next| matches!(next, Operation::Submit(_)))
        {
            self.ui.send_message(UiMessage::Idle);
            self.ui.send_message(UiMessage::Typed { text });
        }
        Ok(carried)
    }
}
