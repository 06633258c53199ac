//! Operations that take time: turns and archiving. The user's operations are handled meanwhile.

use std::sync::Arc;

use haft_agent::Approver;
use haft_engine::hub::{AgentMessage, Hub, USER};
use haft_engine::{Compacted, MAIN, ModeSwitch, Session, Which};
use haft_text::grouped;
use haft_tui::{Operation, SideAction, UiMessage};
use haft_types::PermissionMode;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::side_actions::SideActions;
use super::{Continuation, TuiSession};
use crate::commands::init;
use crate::commands::run::cancel_on_signals;
use crate::exit::usage_error;
use crate::prompts::{self, INLINE, InlineCommands};

impl TuiSession<'_> {
    pub(super) async fn turn(
        &mut self,
        text: String,
        wanted: &mut UnboundedReceiver<Operation>,
        quit: &CancellationToken,
    ) -> Continuation {
        let cancel = quit.child_token();
        let mut mode = self.chosen.mode;
        let control = TurnControl {
            wanted,
            quit,
            side_actions: &self.side_actions,
            mode: &mut mode,
            running: None,
        };
        let (prompt, next) = control.attend(self.in_full(text, &cancel), &cancel).await;
        self.chosen.mode = mode;
        let prompt = match prompt {
            Ok(prompt) if matches!(next, Continuation::Stay) => prompt,
            Ok(_) => return next,
            Err(error) => {
                self.complain(&error);
                return next;
            }
        };
        if self.session.is_none()
            && let Err(error) = self
                .open(
                    Which::New {
                        title: prompt.clone(),
                    },
                    &prompt,
                )
                .await
        {
            self.complain(&error);
            return Continuation::Stay;
        }
        let prompt = self.side_actions.with_overheard(prompt);
        let Some(session) = &mut self.session else {
            return Continuation::Stay;
        };
        let control = TurnControl {
            wanted,
            quit,
            side_actions: &self.side_actions,
            mode: &mut self.chosen.mode,
            running: Some(RunningTurn::of(session)),
        };
        let mut sink = self.ui.clone();
        let next = control
            .attend(
                Box::pin(session.run(Some(prompt), &mut sink, &cancel)),
                &cancel,
            )
            .await
            .1;
        // The interface still has the prompts that the turn did not read.
        session.drop_unread().await;
        next
    }

    /// Archives older rounds.
    pub(super) async fn compact(
        &mut self,
        focus: &str,
        wanted: &mut UnboundedReceiver<Operation>,
        quit: &CancellationToken,
    ) -> Continuation {
        let Some(session) = &mut self.session else {
            self.tell(text!("interactive-nothing-to-archive"));
            return Continuation::Stay;
        };
        let control = TurnControl {
            wanted,
            quit,
            side_actions: &self.side_actions,
            mode: &mut self.chosen.mode,
            running: Some(RunningTurn::of(session)),
        };
        let cancel = quit.child_token();
        let mut sink = self.ui.clone();
        let focus = Some(focus).filter(|focus| !focus.is_empty());
        let tokens = |session: &Session| {
            session
                .next_request()
                .map(|next| next.account.budget.used())
        };
        let before = tokens(session);
        let (compacted, next) = control
            .attend(session.compact_now(focus, &mut sink, &cancel), &cancel)
            .await;
        let tokens = before.zip(tokens(session));
        session.drop_unread().await;
        match (compacted, tokens) {
            (Ok(Compacted::Archived { .. }), Some((before, after))) => {
                let after = grouped(after);
                let before = grouped(before);
                self.tell(&text!("interactive-compacted", after, before));
            }
            // Already reported by events.
            (Ok(Compacted::Archived { .. } | Compacted::Failed), _) => {}
            (Ok(nothing @ (Compacted::Nothing | Compacted::NotWorthIt)), tokens) => {
                let tokens = tokens.map_or_else(String::new, |(_, now)| {
                    text!("interactive-compact-size", tokens = grouped(now))
                });
                self.tell(&format!("{}{tokens}", crate::output::localised(nothing)));
            }
            (Err(error), _) => self.complain(&error.into()),
        }
        next
    }

    /// Returns the prompt with everything it calls expanded: a command, a server's prompt,
    /// resources.
    async fn in_full(&self, text: String, cancel: &CancellationToken) -> anyhow::Result<String> {
        let interrupted = || usage_error(text!("interactive-interrupted"));
        let text = if self.sources.are_called(&text) {
            cancel
                .run_until_cancelled(self.sources.expand(&text))
                .await
                .ok_or_else(interrupted)?
                .map_err(prompts::extension_error)?
        } else if let Some(wishes) = init::called(&text, &self.paths) {
            let model = self.chosen.model.as_deref().or(self.args.model.as_deref());
            let guide = init::prompt(&self.settings, model, &self.project, wishes);
            self.tell(&guide.quote);
            guide.text
        } else {
            let (pieces, problems) = prompts::expand_and_tell(text, &self.paths)?;
            for text in problems {
                self.ui.tell(UiMessage::Told { text });
            }
            // A rule for one line of a file is not remembered, because the file may change.
            let approver = self.ui.approver(Box::new(|_| Ok(())));
            let project = &self.project;
            let approver: Option<Arc<dyn Approver>> = Some(Arc::new(approver));
            let mode = self.chosen.mode;
            let ui = Some(&self.ui);
            let cancel = cancel.clone();
            InlineCommands {
                settings: &self.settings,
                project,
                mode,
                approver,
                ui,
                cancel,
            }
            .fill(pieces)
            .await?
        };
        cancel
            .run_until_cancelled(self.sources.attach(text))
            .await
            .ok_or_else(interrupted)?
            .map_err(prompts::extension_error)
    }
}

/// Handles the user's operations while work runs.
struct TurnControl<'a> {
    wanted: &'a mut UnboundedReceiver<Operation>,
    quit: &'a CancellationToken,
    side_actions: &'a SideActions,
    mode: &'a mut PermissionMode,
    /// `None` while the prompt is expanded.
    running: Option<RunningTurn>,
}

/// Access to a running turn.
struct RunningTurn {
    /// Delivers prompts to the turn.
    hub: Arc<Hub>,
    switch: ModeSwitch,
    conversation: String,
}

impl RunningTurn {
    fn of(session: &Session) -> Self {
        let conversation = session.conversation().id.to_string();
        Self {
            hub: Arc::clone(session.hub()),
            switch: session.mode_switch(),
            conversation,
        }
    }
}

impl TurnControl<'_> {
    /// Waits for the work, and handles the user's operations meanwhile.
    async fn attend<T>(
        mut self,
        work: impl Future<Output = T>,
        cancel: &CancellationToken,
    ) -> (T, Continuation) {
        let mut work = std::pin::pin!(work);
        let mut next = Continuation::Stay;
        loop {
            tokio::select! {
                // Operations first: a mode that arrives with an approval must apply to the call
                // that the approval lets run.
                biased;
                operation = self.wanted.recv(), if matches!(next, Continuation::Stay) => {
                    next = self.hear(operation, cancel).await;
                }
                done = &mut work => return (done, next),
            }
        }
    }

    /// Handles an operation while the turn runs. Operations that must wait for its end are ignored.
    async fn hear(
        &mut self,
        operation: Option<Operation>,
        cancel: &CancellationToken,
    ) -> Continuation {
        match operation {
            Some(Operation::Interrupt | Operation::Side(SideAction::Stop(INLINE))) => {
                cancel.cancel();
            }
            Some(Operation::Join(text)) => {
                // A prompt that cannot be delivered waits in the interface until the turn is over.
                if let Some(running) = &self.running {
                    let text = self.side_actions.with_overheard(text);
                    let from = USER.to_owned();
                    let to = MAIN.to_owned();
                    drop(
                        running
                            .hub
                            .send(AgentMessage {
                                from,
                                to,
                                group: None,
                                text,
                            })
                            .await,
                    );
                }
            }
            Some(Operation::Mode(mode)) => {
                *self.mode = mode;
                if let Some(running) = &self.running {
                    running.switch.set(mode);
                }
            }
            Some(Operation::Diff) => {
                self.side_actions.diff(
                    self.running
                        .as_ref()
                        .map(|running| running.conversation.as_str()),
                );
            }
            Some(Operation::Side(action)) => self.side_actions.start(action),
            // The interface holds these back until the turn is over.
            Some(
                Operation::Submit(_)
                | Operation::New
                | Operation::Resume(_)
                | Operation::Fork(_)
                | Operation::Await(_)
                | Operation::Offer(_)
                | Operation::Rewind { .. }
                | Operation::Model(_)
                | Operation::Compact(_)
                | Operation::EditContext(_)
                | Operation::Focus(_)
                | Operation::Undo
                | Operation::Redo
                | Operation::Context
                | Operation::Attach(_)
                | Operation::Inspect,
            ) => {}
            Some(Operation::Quit) | None => {
                // A user who does not want to wait for the end of the turn can press Ctrl-C.
                self.quit.cancel();
                cancel_on_signals(self.quit);
                return Continuation::Leave;
            }
        }
        Continuation::Stay
    }
}
