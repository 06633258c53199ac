//! Names the open conversation in the background, after its first turn.

use haft_engine::Session;
use haft_tui::UiMessage;
use haft_types::{Event, EventBody};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::TuiSession;

/// A running request for a title, which returns the new name of the conversation.
pub(super) type TitleUpdate = JoinHandle<Option<String>>;

impl TuiSession<'_> {
    /// Asks for a title of the conversation if it has had its first turn and a model has the role
    /// `title`.
    pub(super) fn start_title(&mut self, quit: &CancellationToken) {
        let request = self.session.as_mut().and_then(Session::take_title_request);
        let Some(request) = request else { return };
        let ui = self.ui.clone();
        let cancel = quit.child_token();
        self.title_update = Some(tokio::spawn(async move {
            let mut sink = |event: &Event| match &event.body {
                EventBody::Usage { usage, cost, .. } => ui.send_message(UiMessage::Spent {
                    usage: *usage,
                    cost: *cost,
                }),
                EventBody::Notice { .. } => {
                    ui.send_message(UiMessage::Event(Box::new(event.clone())));
                }
                // Retries in the background are not shown to the user.
                _ => {}
            };
            request.send(&mut sink, &cancel).await
        }));
    }

    /// Gives the session the new name of its conversation, if there is one.
    pub(super) async fn finish_title(&mut self) {
        let update = self.title_update.take_if(|update| update.is_finished());
        let Some(update) = update else { return };
        if let (Ok(Some(name)), Some(session)) = (update.await, &mut self.session) {
            session.set_name(name);
        }
    }
}
