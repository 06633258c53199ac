//! Operations that take time: turns and archiving. The user's operations are handled meanwhile.

use std::sync::Arc;

use haft_agent::Approver;
use haft_engine::hub::{AgentMessage, Hub, USER};
use haft_engine::{CompactionOutcome, ConversationChoice, MAIN_AGENT, ModeSwitch, Session};
use haft_text::format_thousands;
use haft_tui::{Operation, SideAction, UiMessage};
use haft_types::PermissionMode;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::side_actions::SideActions;
use super::{Continuation, TuiSession};
use crate::commands::init;
use crate::commands::run::cancel_on_signals;
use crate::exit::usage_error;
use crate::prompts::{self, INLINE_COMMAND_ID, InlineCommands};

impl TuiSession<'_> {
    pub(super) async fn run_turn(
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
        let (prompt, next) = control
            .await_work(self.expand_prompt(text, &cancel), &cancel)
            .await;
        self.chosen.mode = mode;
        let prompt = match prompt {
            Ok(prompt) if matches!(next, Continuation::Stay) => prompt,
            Ok(_) => return next,
            Err(error) => {
                self.show_error(&error);
                return next;
            }
        };
        if self.session.is_none()
            && let Err(error) = self
                .open_session(
                    ConversationChoice::New {
                        title: prompt.clone(),
                    },
                    &prompt,
                )
                .await
        {
            self.show_error(&error);
            return Continuation::Stay;
        }
        let prompt = self.side_actions.append_shell_output(prompt);
        let Some(session) = &mut self.session else {
            return Continuation::Stay;
        };
        let control = TurnControl {
            wanted,
            quit,
            side_actions: &self.side_actions,
            mode: &mut self.chosen.mode,
            running: Some(RunningTurn::for_session(session)),
        };
        let mut sink = self.ui.clone();
        let next = control
            .await_work(
                Box::pin(session.run(Some(prompt), &mut sink, &cancel)),
                &cancel,
            )
            .await
            .1;
        // The interface still has the prompts that the turn did not read.
        session.drop_unread_input().await;
        // An attached front end may have changed it.
        self.chosen.mode = session.mode();
        next
    }

    /// Archives older rounds of the conversation, and handles the user's operations meanwhile.
    pub(super) async fn compact_conversation(
        &mut self,
        focus: &str,
        wanted: &mut UnboundedReceiver<Operation>,
        quit: &CancellationToken,
    ) -> Continuation {
        let Some(session) = &mut self.session else {
            self.show_text(text!("interactive-nothing-to-archive"));
            return Continuation::Stay;
        };
        let control = TurnControl {
            wanted,
            quit,
            side_actions: &self.side_actions,
            mode: &mut self.chosen.mode,
            running: Some(RunningTurn::for_session(session)),
        };
        let cancel = quit.child_token();
        let mut sink = self.ui.clone();
        let focus = Some(focus).filter(|focus| !focus.is_empty());
        let tokens = |session: &Session| {
            session
                .preview_next_request()
                .map(|next| next.account.budget.used_tokens())
        };
        let before = tokens(session);
        let (compacted, next) = control
            .await_work(session.compact_now(focus, &mut sink, &cancel), &cancel)
            .await;
        let tokens = before.zip(tokens(session));
        session.drop_unread_input().await;
        match (compacted, tokens) {
            (Ok(CompactionOutcome::Archived { .. }), Some((before, after))) => {
                let after = format_thousands(after);
                let before = format_thousands(before);
                self.show_text(&text!("interactive-compacted", after, before));
            }
            // Already reported by events.
            (Ok(CompactionOutcome::Archived { .. } | CompactionOutcome::Failed), _) => {}
            (
                Ok(nothing @ (CompactionOutcome::NothingToArchive | CompactionOutcome::NotWorthIt)),
                tokens,
            ) => {
                let tokens = tokens.map_or_else(String::new, |(_, now)| {
                    text!("interactive-compact-size", tokens = format_thousands(now))
                });
                self.show_text(&format!(
                    "{}{tokens}",
                    crate::output::localize_text(nothing)
                ));
            }
            (Err(error), _) => self.show_error(&error.into()),
        }
        next
    }

    /// Returns the prompt with its slash command or server prompt expanded, and with the resources
    /// that it mentions.
    async fn expand_prompt(
        &self,
        text: String,
        cancel: &CancellationToken,
    ) -> anyhow::Result<String> {
        let interrupted = || usage_error(text!("interactive-interrupted"));
        let text = if self.sources.calls_prompt(&text) {
            cancel
                .run_until_cancelled(self.sources.expand_prompt(&text))
                .await
                .ok_or_else(interrupted)?
                .map_err(prompts::convert_extension_error)?
        } else if let Some(wishes) = init::parse_init_call(&text, &self.paths) {
            let model = self.chosen.model.as_deref().or(self.args.model.as_deref());
            let guide = init::build_prompt(&self.settings, model, &self.project, wishes);
            self.show_text(&guide.quote);
            guide.text
        } else {
            let (pieces, problems) = prompts::expand_with_problems(text, &self.paths)?;
            for text in problems {
                self.ui.send_message(UiMessage::Told { text });
            }
            // Rules for the command lines of a file are not saved, because the file may change.
            let approver = self.ui.create_approver(Box::new(|_| Ok(())));
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
            .replace_commands(pieces)
            .await?
        };
        cancel
            .run_until_cancelled(self.sources.attach_resources(text))
            .await
            .ok_or_else(interrupted)?
            .map_err(prompts::convert_extension_error)
    }
}

/// Handles the user's operations while a turn or a compaction is running.
struct TurnControl<'a> {
    wanted: &'a mut UnboundedReceiver<Operation>,
    quit: &'a CancellationToken,
    side_actions: &'a SideActions,
    mode: &'a mut PermissionMode,
    /// The running turn; `None` while the prompt is still being expanded.
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
    fn for_session(session: &Session) -> Self {
        let conversation = session.conversation().id.to_string();
        Self {
            hub: Arc::clone(session.hub()),
            switch: session.mode_switch(),
            conversation,
        }
    }
}

impl TurnControl<'_> {
    /// Waits until `work` is complete, and handles the user's operations meanwhile.
    async fn await_work<T>(
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
                    next = self.handle_operation(operation, cancel).await;
                }
                done = &mut work => return (done, next),
            }
        }
    }

    /// Handles an operation while the turn runs. Operations that must wait until the turn ends are
    /// ignored.
    async fn handle_operation(
        &mut self,
        operation: Option<Operation>,
        cancel: &CancellationToken,
    ) -> Continuation {
        match operation {
            Some(Operation::Interrupt | Operation::Side(SideAction::Stop(INLINE_COMMAND_ID))) => {
                cancel.cancel();
            }
            // A prompt that the user submitted at the moment at which an attached front end began a
            // turn joins this turn.
            Some(Operation::Submit(text)) if self.running.is_none() => {
                self.side_actions.show_typed(text);
            }
            Some(Operation::Join(text) | Operation::Submit(text)) => {
                // A prompt that cannot be delivered waits in the interface until the turn is over.
                if let Some(running) = &self.running {
                    let text = self.side_actions.append_shell_output(text);
                    let from = USER.to_owned();
                    let to = MAIN_AGENT.to_owned();
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
                self.side_actions.show_diff(
                    self.running
                        .as_ref()
                        .map(|running| running.conversation.as_str()),
                );
            }
            Some(Operation::Side(action)) => self.side_actions.start(action),
            // The interface holds these back until the turn is over.
            Some(
                Operation::New
                | Operation::Resume(_)
                | Operation::Fork(_)
                | Operation::Await(_)
                | Operation::Offer(_)
                | Operation::Rewind { .. }
                | Operation::Model(_)
                | Operation::View(_)
                | Operation::Agent(_)
                | Operation::Useful(_)
                | Operation::Notes(_)
                | Operation::Compact(_)
                | Operation::EditContext(_)
                | Operation::Focus(_)
                | Operation::Undo
                | Operation::Redo
                | Operation::Context
                | Operation::Attach(_)
                | Operation::Trust
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
