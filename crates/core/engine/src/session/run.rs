//! Runs one turn of a session: appends the input, drives the turn, and reports its outcome.

use std::path::Path;
use std::sync::Arc;

use haft_context::{CHANGED_FILES_KEY, user_text};
use haft_sandbox::release_free_memory;
use haft_types::{
    Envelope, EventBody, Image, ModelProfile, Origin, Outcome, PermissionMode, Role, ToolCall,
    TurnResult,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Session;
use super::recorded_run::{ANSWER_PREFIX, PLAN_OVER_SUFFIX};
use super::secrets::mask_text;
use crate::agents::parent::Rank;
use crate::calls::caches::is_in_cache;
use crate::calls::one_call::has_effects;
use crate::calls::run_calls::{Interruption, interrupted_result};
use crate::error::EngineError;
use crate::hooks::HookEvent;
use crate::names::{self, GOAL_INSTRUCTION};
use crate::prompt::attachments::PreparedInput;
use crate::turn::attach_port::{AttachSink, AttachTurn};
use crate::turn::change_request::asks_for_change;
use crate::turn::driver::SessionTurn;
use crate::turn::outcome::{RequestedResult, build_turn_result, mark_nothing_changed};
use crate::turn::resume::{self, Resumption};
use crate::turn::turn_io::{EventSink, TimedCancel, TurnIo};
use crate::turn::{Position, Reason, Turn, TurnEnd, Unfinished};

/// The result of [`Session::run`].
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The content of the last event, with secrets masked.
    pub result: TurnResult,
    /// True if no request got a valid reply and the last error points to a fault in the
    /// configuration or the server.
    pub never_valid: bool,
}

impl Session {
    /// Runs one turn until it ends. Without input, continues a turn that was interrupted.
    pub async fn run(
        &mut self,
        input: Option<String>,
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> RunReport {
        self.meter.begin_turn(self.config.model.price);
        let timed = TimedCancel::new(cancel, self.meter.time_left());
        let port = self.attach_port().map(Arc::clone);
        let mut attach_sink;
        let mut _attach_turn = None;
        let sink: &mut dyn EventSink = match &port {
            Some(port) => {
                _attach_turn = Some(AttachTurn::begin(port.as_ref(), &timed.token));
                attach_sink = AttachSink::new(sink, port.as_ref());
                &mut attach_sink
            }
            None => sink,
        };
        let mut io = self.turn_io(sink, &timed.token);
        let mut turn = Turn::new(self.config.task.limits)
            .with_profile(self.config.model.profile)
            .with_loop_limits(self.services.running.limits().loop_limits());
        if let Err(reason) = self.run_prompt_hooks(input.as_deref(), cancel).await {
            self.emit_start_events(&mut io);
            let end = TurnEnd::new(Outcome::Waiting, reason);
            return self.finish_run(end, &turn, false, &mut io).await;
        }
        let ended = self.run_turn(input, &mut turn, &mut io).await;
        let (end, never_valid) = ended.unwrap_or_else(|EngineError::Store(error)| {
            let reason = Reason {
                code: TurnResult::STORE_FAILURE_CODE.into(),
                message: error.to_string(),
            };
            (TurnEnd::new(Outcome::Failed, reason), false)
        });
        self.describe_changed_folders(end.outcome, &mut io).await;
        self.finish_run(end, &turn, never_valid, &mut io).await
    }

    /// Creates the event output of one turn, which also contains the turn's cancellation token.
    pub(crate) fn turn_io<'a>(
        &self,
        sink: &'a mut dyn EventSink,
        cancel: &'a CancellationToken,
    ) -> TurnIo<'a> {
        let id = self.transcript.id().clone();
        let masker = self.config.safety.masker.clone();
        TurnIo::new(sink, cancel, id, masker, self.config.agent.clone()).numbered_after(self.seq)
    }

    /// Runs the turn and returns its end. The returned flag is true if the last request failed
    /// because of a fault in the configuration or the server.
    async fn run_turn(
        &mut self,
        input: Option<String>,
        turn: &mut Turn,
        io: &mut TurnIo<'_>,
    ) -> Result<(TurnEnd, bool), EngineError> {
        let stored = self.transcript.is_stored();
        if stored {
            self.emit_start_events(io);
        }
        let given = input.clone();
        let position = self.apply_input(input, io).await;
        // The event is emitted only once the conversation exists.
        if !stored {
            self.emit_start_events(io);
        }
        self.store_waiting_ranges(io).await;
        let position = position?;
        if let Some(given) = given {
            io.notify_input_stored(&given);
        }
        let mut driven = SessionTurn::new(self);
        let end = driven.drive(turn, position, io).await?;
        Ok((end, driven.never_valid))
    }

    /// Stores the file ranges that waited for the conversation to be in the store.
    async fn store_waiting_ranges(&mut self, io: &mut TurnIo<'_>) {
        if !self.transcript.is_stored() {
            return;
        }
        for range in std::mem::take(&mut self.waiting_ranges) {
            if let Err(error) = self.prompt.knowledge().useful.add(range).await {
                io.emit_error("store", error.to_string());
            }
        }
    }

    fn emit_start_events(&mut self, io: &mut TurnIo<'_>) {
        io.emit(EventBody::Conversation {
            resumed: self.resumed,
            name: self.transcript.conversation().name.clone(),
            model: self.config.model.full_name(),
            cwd: self.config.folders.workspace.cwd.display().to_string(),
            sandbox: Some(self.services.running.sandbox().status().clone()),
        });
        for notice in std::mem::take(&mut self.config.notices) {
            io.emit_stored_notice(notice);
        }
        self.show_hook_notices(io);
    }

    /// Completes an interrupted turn, appends the user's input, and returns the position at which
    /// the turn begins.
    async fn apply_input(
        &mut self,
        input: Option<String>,
        io: &mut TurnIo<'_>,
    ) -> Result<Position, EngineError> {
        let unfinished = if self.transcript.last_turn_ended() {
            None
        } else {
            self.unfinished_work().await
        };
        let Resumption {
            uncertain,
            imported,
            position,
        } = self.transcript.plan_resumption(unfinished);
        for call in imported {
            let envelope = interrupted_result(&call, Interruption::Imported);
            self.store_result(&call, envelope.into(), io).await?;
        }
        for call in uncertain {
            let envelope = self.interrupted_agents_result(&call).await?;
            let envelope =
                envelope.unwrap_or_else(|| interrupted_result(&call, Interruption::Uncertain));
            self.store_result(&call, envelope.into(), io).await?;
        }
        let Some(text) = input else {
            return Ok(position);
        };
        match position {
            Position::WantsAnswer(_) => {
                for call in resume::unanswered_calls(self.transcript.history()) {
                    self.store_result(&call, self.envelope_from_answer(&call, &text).into(), io)
                        .await?;
                    if call.name == names::PLAN_TOOL {
                        let planning = self.mode() == PermissionMode::Plan;
                        self.prompt
                            .set_plan_mode_announced(planning, &self.transcript)
                            .await?;
                    }
                }
            }
            Position::WantsTools(calls) => {
                for call in calls {
                    self.store_result(
                        &call,
                        interrupted_result(&call, Interruption::NotRun).into(),
                        io,
                    )
                    .await?;
                }
                self.append_input(&text, Origin::Joined, io).await?;
            }
            // A turn without an answer is still open, so the input joins it.
            Position::WantsReply if !self.transcript.history().is_empty() => {
                self.append_input(&text, Origin::Joined, io).await?;
            }
            Position::WantsReply | Position::HasReply(_) | Position::Completed(_) => {
                self.append_input(&text, Origin::User, io).await?;
            }
        }
        if let Some(schema) = &self.config.task.answer {
            let instruction = schema.instruction(self.config.policy.prompt_language);
            self.transcript
                .append_user(instruction, Origin::Engine)
                .await?;
        }
        Ok(Position::WantsReply)
    }

    /// Returns the result of a call that asked the user a question. `text` is the user's answer.
    fn envelope_from_answer(&self, call: &ToolCall, text: &str) -> Envelope {
        let over = call.name == names::PLAN_TOOL && self.mode() != PermissionMode::Plan;
        let mode = if over { PLAN_OVER_SUFFIX } else { "" };
        Envelope::success(format!("{ANSWER_PREFIX}{text}{mode}"))
    }

    /// Appends the user's input, after compacting the conversation if needed.
    async fn append_input(
        &mut self,
        text: &str,
        origin: Origin,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        let PreparedInput {
            text: treated,
            metadata,
        } = self.prepare_input(text, io).await;
        self.compact_if_due(&treated, io).await?;
        let sets_goal = self.pursues_goal() && origin == Origin::User;
        let input = if sets_goal {
            format!(
                "{treated}\n\n{}",
                GOAL_INSTRUCTION.text(self.config.policy.prompt_language)
            )
        } else {
            treated
        };
        let images = std::mem::take(&mut self.attached);
        let input = match self.describe_images(&images, io).await? {
            Some(shown) => format!("{input}\n\n{shown}"),
            None => input,
        };
        self.transcript
            .append_input(input, images, origin, metadata)
            .await
    }

    /// Adds images to the user's next input.
    pub fn attach_images(&mut self, images: Vec<Image>) {
        self.attached.extend(images);
    }

    /// Returns true if a turn can end only after the model has reported the goal as reached.
    fn pursues_goal(&self) -> bool {
        self.config.task.goal && self.prompt.offers_completion()
    }

    /// Returns the work that would be unfinished if the model sent a reply without calls.
    pub(crate) async fn unfinished_work(&self) -> Option<Unfinished> {
        let completes = self.prompt.offers_completion();
        if self.pursues_goal() {
            Some(Unfinished::Goal)
        } else if self.config.model.tool_protocol.is_text() && completes {
            // A small model often answers in plain text when it is done.
            let answers = self.config.model.profile == ModelProfile::Small
                && self.transcript.round_has_success();
            Some(Unfinished::NoCompletion).filter(|_| !answers)
        } else if self.agents.rank == Rank::Sub
            || !self.transcript.round_has_called(names::TODO_WRITE)
        {
            // The list belongs to the main agent, and a round that did not change it is about
            // another topic.
            None
        } else {
            Some(self.prompt.todo().count_open_items().await)
                .filter(|open| *open > 0)
                .map(Unfinished::OpenTodos)
        }
    }

    /// Determines whether the prompts of the current round ask for a change of files. Only small
    /// models are held to that: they often answer as if they had changed something.
    pub(crate) fn requested_result(&self) -> RequestedResult {
        let can_change = self.mode() != PermissionMode::Plan
            && self
                .prompt
                .registry()
                .offered_tools()
                .any(|tool| has_effects(tool.access()));
        if self.config.model.profile != ModelProfile::Small || !can_change {
            return RequestedResult::Any;
        }
        let folder = &self.config.folders.workspace.cwd;
        let is_file = |path: &str| folder.join(path).is_file();
        for message in self.transcript.round_messages() {
            let root = &self.config.folders.workspace.root;
            let changed = message.metadata.get(CHANGED_FILES_KEY);
            let mut changed = changed.and_then(Value::as_array).into_iter().flatten();
            if changed.any(|path| !is_in_cache(root, Path::new(path.as_str().unwrap_or_default())))
            {
                return RequestedResult::Any;
            }
            let is_prompt = message.role == Role::User
                && matches!(message.origin(), Origin::User | Origin::Joined);
            if is_prompt && asks_for_change(user_text(&message.joined_text()), &is_file) {
                return RequestedResult::Change;
            }
        }
        RequestedResult::Any
    }

    async fn finish_run(
        &mut self,
        mut end: TurnEnd,
        turn: &Turn,
        never_valid: bool,
        io: &mut TurnIo<'_>,
    ) -> RunReport {
        self.stop_background_agents(io).await;
        if end.outcome == Outcome::Waiting && self.agents.rank == Rank::Main {
            let event = HookEvent::Notification {
                notification_type: "idle_prompt",
                message: end.reason.message.clone(),
            };
            self.call_hooks(event, io).await;
        }
        self.record_turn_outcome(end.outcome);
        if end.outcome == Outcome::Failed {
            io.emit_error(&end.reason.code, &end.reason.message);
        }
        mark_nothing_changed(&mut end, turn, self.requested_result(), io);
        if end.outcome == Outcome::Completed
            && let Err(error) = self.transcript.record_turn_end(end.outcome).await
        {
            io.emit_error("store", error.to_string());
        }
        self.end_leftover_tasks(io).await;
        if let Err(error) = self.services.shared.store.flush().await {
            io.emit_error("store", error.to_string());
        }
        release_free_memory();
        let mut result = build_turn_result(end, turn, &self.meter);
        io.emit(EventBody::Result(result.clone()));
        // The caller may store the result or send it to another model.
        mask_text(&self.config.safety.masker, &mut result.message);
        mask_text(&self.config.safety.masker, &mut result.text);
        self.seq = io.seq();
        self.resumed = true;
        RunReport {
            result,
            never_valid: never_valid && turn.replies() == 0,
        }
    }
}
