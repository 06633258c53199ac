//! Drives a [`Turn`] for a session: builds and sends requests, runs calls, nudges the model, and
//! checks whether the turn may end.
//!
//! Invariant: a message is in the store before an event shows it (`tool_result`, `usage`), except
//! for the text of a reply that is still arriving.

use std::sync::Arc;

use haft_context::{Assembly, ContextError};
use haft_model::{Delta, ModelError};
use haft_store::SentRequest;
use haft_types::{ModelProfile, Request, ToolCall};

use super::reply::StreamedReply;
use super::turn_io::TurnIo;
use super::{Conclusion, Input, Nudge, Objection, Position, Reason, Turn, TurnAction, TurnEnd};
use crate::agents::parent::Rank;
use crate::budget::spending::PaidRequest;
use crate::error::EngineError;
use crate::hooks::HookEvent;
use crate::prompt::external::LateAnswers;
use crate::request::assembly::break_cause_name;
use crate::session::Session;
use crate::session::models::MAX_SHRINK_STEPS;

/// A session while it runs a turn, and the request in flight.
pub(crate) struct SessionTurn<'a> {
    session: &'a mut Session,
    request: Option<Arc<Request>>,
    /// The reason why `request` doesn't extend the previous request, if it doesn't.
    cause: Option<String>,
    /// The number of times the request was shortened because the provider rejected it as too long.
    shrink_steps: u32,
    /// True after the first reply of the turn. Input that the user types before the first reply is
    /// added to the request after that reply.
    replied: bool,
    /// True if the last request failed because of a fault in the configuration or the server.
    pub(crate) never_valid: bool,
}

impl<'a> SessionTurn<'a> {
    pub(crate) fn new(session: &'a mut Session) -> Self {
        Self {
            session,
            request: None,
            cause: None,
            shrink_steps: 0,
            replied: false,
            never_valid: false,
        }
    }

    /// Drives `turn` from the conversation's position to the end of the turn. Fails only if the
    /// store fails, which ends the turn at once.
    pub(crate) async fn drive(
        &mut self,
        turn: &mut Turn,
        position: Position,
        io: &mut TurnIo<'_>,
    ) -> Result<TurnEnd, EngineError> {
        let mut actions = turn.step(Input::Begin(position));
        loop {
            // A turn always requests a step or ends. If it ever does neither, this input makes it
            // report the bug.
            let mut next = Input::Built;
            for action in actions {
                match action {
                    TurnAction::BuildRequest => next = self.build_request(io).await?,
                    TurnAction::SendRequest => {
                        next = self.send_request(io).await?;
                        turn.set_spent(self.session.meter.spent());
                    }
                    TurnAction::RunTools(calls) => {
                        next = self.run_calls(calls, turn.replies(), io).await?;
                    }
                    TurnAction::Nudge(nudge) => {
                        io.emit_notice("nudge", turn.nudge_notice(nudge));
                        let text = self.nudge_text(nudge, turn.replies());
                        self.session.transcript.append_note(&text).await?;
                    }
                    TurnAction::Correct(text) => self.session.transcript.append_note(&text).await?,
                    TurnAction::Conclude(end) => {
                        next = Input::Concluded(self.check_end(&end, turn.objections(), io).await);
                    }
                    TurnAction::End(end) => return Ok(end),
                }
            }
            if io.cancel.is_cancelled() {
                // The turn is also canceled when its time is up.
                let meter = &self.session.meter;
                let late = meter.limits().exceeded_time(meter.elapsed());
                next = late.map_or(Input::Cancelled, Input::Exhausted);
            } else if let Some(reason) = self.session.hooks.take_stop_reason() {
                next = Input::Stopped(reason);
            }
            actions = turn.step(next);
        }
    }

    /// Builds the next request. Returns [`Input::Built`], or the reason why the request can't be
    /// built.
    async fn build_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, EngineError> {
        let session = &mut *self.session;
        session.announce_tasks(io).await?;
        session.announce_ended_agents(io).await?;
        session.append_agent_messages(io).await?;
        session.append_recorded_messages().await?;
        if self.replied {
            session.append_user_input(io).await?;
        }
        session.announce_plan_mode().await?;
        match session.follow_plan_mode() {
            Ok(notice) => notice
                .into_iter()
                .for_each(|one| io.emit_stored_notice(one)),
            Err(error) => return Ok(context_failure_input(&error)),
        }
        session.append_hook_context().await?;
        session.compact_if_due("", io).await?;
        let late = if session.is_cache_cold() {
            LateAnswers::Show
        } else {
            LateAnswers::HoldBack
        };
        session.prompt.refresh_program_help(late, io.cancel).await;
        match session.refresh_documents(io).await {
            Ok(problems) => problems
                .into_iter()
                .for_each(|problem| io.emit_error("document", problem)),
            Err(error) => return Ok(context_failure_input(&error)),
        }
        session.store_descriptions().await?;
        match session.assemble_next_request() {
            Ok(Assembly { request, account }) => {
                self.cause = break_cause_name(&account);
                session.record_account(&request, account, io).await?;
                self.request = Some(Arc::new(request));
                Ok(Input::Built)
            }
            Err(error) => Ok(context_failure_input(&error)),
        }
    }

    /// Sends the request that was built, and stores the reply.
    async fn send_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, EngineError> {
        loop {
            let Some(request) = self.request.take() else {
                return Ok(Input::Built);
            };
            let error = match self.send_once(&request, io).await? {
                Ok(input) => return Ok(input),
                Err(error) => error,
            };
            match self.prepare_retry(&request, &error, io) {
                // The window or the prefix differs now: build the request again.
                Ok(true) => match self.build_request(io).await? {
                    Input::Built => {}
                    other => return Ok(other),
                },
                Ok(false) => {
                    self.never_valid = error.is_setup_failure();
                    return Ok(request_failure_input(&error));
                }
                Err(error) => return Ok(context_failure_input(&error)),
            }
        }
    }

    /// Sends one request. The inner error may be one that [`Self::prepare_retry`] can handle.
    async fn send_once(
        &mut self,
        request: &Arc<Request>,
        io: &mut TurnIo<'_>,
    ) -> Result<Result<Input, ModelError>, EngineError> {
        let session = &mut *self.session;
        session
            .call_hooks(session.request_start_event(request), io)
            .await;
        if let Some(reason) = session.hooks.take_stop_reason() {
            return Ok(Ok(Input::Stopped(reason)));
        }
        let client = &session.services.models.client;
        let paid = match PaidRequest::reserve(
            Arc::clone(request),
            client,
            &session.meter,
            io.cancel,
        )
        .await
        {
            Ok(paid) => paid,
            Err(error) => return Ok(Err(error)),
        };
        let sent = SentRequest {
            model: session.config.model.full_name(),
            api: session.config.model.api,
            request: Arc::clone(paid.request()),
            encoding: Some(session.services.models.client.encoding_json()),
            cause: self.cause.take(),
        };
        // The log must not delay the request: it is written while the model is working.
        drop(
            session
                .services
                .shared
                .store
                .log_request(session.transcript.id(), sent),
        );
        let (mut reporter, listener) = session.hooks.generation_channel(session.prompt.registry());
        let client = &mut session.services.models.client;
        let meter = &mut session.meter;
        let cancel = io.cancel;
        let mut shown = StreamedReply::new(session.config.policy.message_ids, io);
        let arriving = async {
            let mut on_delta = |delta: Delta| {
                reporter.report_delta(&delta);
                shown.push_delta(delta);
            };
            let arrived = paid.send(client, meter, cancel, &mut on_delta).await;
            shown.finish();
            // Ends the listener.
            drop(reporter);
            arrived
        };
        let (arrived, ()) = futures::join!(arriving, listener.listen(cancel));
        let ended = session.request_end_event(&arrived);
        let reply = match arrived {
            Ok(reply) => reply,
            Err(ModelError::Cancelled) => return Ok(Ok(Input::Cancelled)),
            Err(error) => {
                session.call_hooks(ended, io).await;
                return Ok(Err(error));
            }
        };
        self.shrink_steps = 0;
        session
            .learn_tokenizer_factor(request.estimated_tokens(), reply.usage)
            .await?;
        let (reply, failure) = session.continue_reply(request, reply, io).await;
        let replied = session.store_reply(reply, io).await?;
        self.replied = true;
        // The hooks run only after the reply is stored.
        session.call_hooks(ended, io).await;
        Ok(Ok(failure.map_or(Input::Replied(replied), |error| {
            request_failure_input(&error)
        })))
    }

    /// Prepares another request after a failed request: a shorter request, or a request to another
    /// model. Returns `false` if neither is possible.
    fn prepare_retry(
        &mut self,
        refused: &Request,
        error: &ModelError,
        io: &mut TurnIo<'_>,
    ) -> Result<bool, ContextError> {
        if error.is_too_long() && self.shrink_steps < MAX_SHRINK_STEPS {
            self.shrink_steps += 1;
            self.session.shrink_requests(refused, self.shrink_steps, io);
            return Ok(true);
        }
        if error.is_overload() {
            self.session.switch_to_fallback(error, io)
        } else {
            Ok(false)
        }
    }

    /// Runs the calls of a reply and appends their results. `replies` is the number of replies in
    /// the turn so far.
    async fn run_calls(
        &mut self,
        calls: Vec<ToolCall>,
        replies: u32,
        io: &mut TurnIo<'_>,
    ) -> Result<Input, EngineError> {
        self.session.update_roster(replies);
        self.session.run_tools(calls, io).await
    }

    fn nudge_text(&self, nudge: Nudge, replies: u32) -> String {
        // When pursuing a goal, the model is shown how much of the limits is used, so that it can
        // plan the rest.
        let used = if nudge == Nudge::Goal {
            self.session.meter.describe_limits(replies)
        } else {
            String::new()
        };
        let used = if used.is_empty() {
            used
        } else {
            format!(" Used so far: {used}.")
        };
        let language = self.session.config.policy.prompt_language;
        if self.session.config.model.profile == ModelProfile::Small {
            let offered = self.session.prompt.registry().offered_tools();
            let tools = offered.map(|tool| tool.spec().name.clone()).collect();
            let task = self.session.transcript.round_prompt();
            return format!("{}{used}", nudge.small_text(language, &tools, &task));
        }
        let tools = self.session.prompt.registry().known_names();
        format!("{}{used}", nudge.text_with_tools(language, &tools))
    }

    /// Checks whether the answer schema, background agents or hooks require the turn to continue.
    /// `objections` is the number of earlier attempts to end the turn that were rejected.
    async fn check_end(
        &mut self,
        end: &TurnEnd,
        objections: u32,
        io: &mut TurnIo<'_>,
    ) -> Conclusion {
        let answer = self.session.config.task.answer.as_ref();
        let checked = answer.map_or(Conclusion::Accepted { output: None }, |schema| {
            schema.check_answer(&end.text)
        });
        let Conclusion::Accepted { output } = checked else {
            return checked;
        };
        if self.session.wait_for_agent(io).await {
            return Conclusion::Unread { output };
        }
        let session = &*self.session;
        let stop_hook_active = objections > 0;
        let last_assistant_message = end.text.clone();
        let event = match session.agents.rank {
            Rank::Main => HookEvent::Stop {
                stop_hook_active,
                last_assistant_message,
            },
            Rank::Sub => {
                let agent_type = session.config.agent.clone();
                HookEvent::SubagentStop {
                    agent_type,
                    stop_hook_active,
                    last_assistant_message,
                }
            }
        };
        match session.call_hooks(event, io).await.block {
            Some(why) => Conclusion::Rejected(Objection {
                text: format!("Not done yet: {why}"),
                failure: None,
            }),
            None if session.has_unread_messages() => Conclusion::Unread { output },
            None => Conclusion::Accepted { output },
        }
    }
}

fn context_failure_input(error: &ContextError) -> Input {
    Input::Failed(Reason {
        code: "context".into(),
        message: error.to_string(),
    })
}

/// Converts the error of a request that is not retried to an input of the turn.
fn request_failure_input(error: &ModelError) -> Input {
    match error {
        ModelError::Cancelled => Input::Cancelled,
        ModelError::OverBudget(message) => Input::Exhausted(Reason {
            code: error.code().into(),
            message: message.clone(),
        }),
        error => Input::Failed(Reason {
            code: error.code().into(),
            message: error.to_string(),
        }),
    }
}
