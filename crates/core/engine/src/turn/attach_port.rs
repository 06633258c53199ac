//! Attaches further front ends to a session, such as other terminals: they follow its events, and
//! their input joins its turns.

use std::collections::VecDeque;
use std::path::Path;

use async_trait::async_trait;
use haft_store::Conversation;
use haft_types::{Event, ModelSpec, PermissionMode};
use tokio_util::sync::CancellationToken;

use super::turn_io::EventSink;
use crate::calls::permit::ModeSwitch;

/// A function that is called with a new permission mode.
pub type ModeListener = Box<dyn Fn(PermissionMode) + Send + Sync>;

/// The description of a session that was just opened.
pub struct OpenedSession<'a> {
    pub conversation: &'a Conversation,
    pub model: &'a ModelSpec,
    /// The folder in which the session works.
    pub working_folder: &'a Path,
    /// Changes the permission mode of the session.
    pub mode_switch: ModeSwitch,
}

/// The further front ends of a session. The session's own front end is the [`EventSink`] of its
/// turns. Except for the asynchronous methods, all must return quickly, because the turn waits
/// for them to return.
#[async_trait]
pub trait AttachPort: Send + Sync {
    /// Called once the session is open.
    fn session_opened(&self, session: OpenedSession<'_>);

    /// Called when a turn begins. The turn ends early if `cancel` is canceled.
    fn begin_turn(&self, cancel: &CancellationToken);

    /// Handles an event of the turn.
    fn event(&self, event: &Event);

    /// Called when the input that began the turn is in the store.
    fn first_input_stored(&self, text: &str);

    /// Called when input of the session's own front end has joined the turn and is in the store.
    fn own_input_stored(&self, text: &str);

    /// Removes and returns the input of the further front ends, oldest first. It becomes part of the
    /// turn.
    fn take_input(&self) -> Vec<String>;

    /// Called when the oldest input returned by [`Self::take_input`] that is not yet stored is in
    /// the store.
    fn taken_input_stored(&self);

    /// Called when the turn has ended.
    fn end_turn(&self);

    /// Called by a front end that starts turns with prompts of the further front ends: it calls
    /// [`Self::next_prompt`] or [`Self::take_prompt`] after each turn. Otherwise, prompts are
    /// refused while no turn is running.
    fn accept_prompts(&self);

    /// Waits for a prompt of a further front end. No prompt is lost if the future is dropped.
    async fn next_prompt(&self) -> String;

    /// Returns a prompt of a further front end if one is waiting.
    fn take_prompt(&self) -> Option<String>;

    /// True if a further front end interrupted the last turn.
    fn was_interrupted(&self) -> bool;

    /// Sets the function that is called when a further front end has changed the permission mode.
    fn set_mode_listener(&self, listener: ModeListener);

    /// Ends all connections, after the events so far were sent. Called when the session is closed.
    async fn close(&self);
}

/// Passes the events of a turn to the session's own front end and to the further ones, and collects
/// the input of both.
pub(crate) struct AttachSink<'a> {
    own: &'a mut dyn EventSink,
    port: &'a dyn AttachPort,
    /// The sources of the input that was taken and is not yet stored, oldest first.
    taken: VecDeque<InputSource>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputSource {
    Own,
    Attached,
}

impl<'a> AttachSink<'a> {
    pub(crate) fn new(own: &'a mut dyn EventSink, port: &'a dyn AttachPort) -> Self {
        Self {
            own,
            port,
            taken: VecDeque::new(),
        }
    }
}

impl EventSink for AttachSink<'_> {
    fn event(&mut self, event: &Event) {
        self.own.event(event);
        self.port.event(event);
    }

    fn input_stored(&mut self, input: &str) {
        self.own.input_stored(input);
        self.port.first_input_stored(input);
    }

    fn input_joined(&mut self, input: &str) {
        // Messages that arrive through the hub were not taken: they are the own front end's.
        match self.taken.pop_front().unwrap_or(InputSource::Own) {
            InputSource::Own => {
                self.own.input_joined(input);
                self.port.own_input_stored(input);
            }
            InputSource::Attached => {
                self.own.attached_input_joined(input);
                self.port.taken_input_stored();
            }
        }
    }

    fn take_input(&mut self) -> Vec<String> {
        let mut texts = self.own.take_input();
        let own = texts.len();
        texts.extend(self.port.take_input());
        self.taken = (0..texts.len())
            .map(|index| {
                if index < own {
                    InputSource::Own
                } else {
                    InputSource::Attached
                }
            })
            .collect();
        texts
    }
}

/// Reports the end of a turn when it is dropped, also if the turn's future is dropped.
pub(crate) struct AttachTurn<'a>(&'a dyn AttachPort);

impl<'a> AttachTurn<'a> {
    pub(crate) fn begin(port: &'a dyn AttachPort, cancel: &CancellationToken) -> Self {
        port.begin_turn(cancel);
        Self(port)
    }
}

impl Drop for AttachTurn<'_> {
    fn drop(&mut self) {
        self.0.end_turn();
    }
}
