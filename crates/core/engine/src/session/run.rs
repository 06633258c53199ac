//! Does what the turn says: takes input in, builds and sends requests, stores replies, and tells the listener.
//!
//! Invariant: what an event shows of a message is in the store first (`tool_result`, `usage`), except the words of a reply that is
//! still arriving.

use std::sync::Arc;

use haft_context::{Assembly, ContextError, strip_hints, treat_input};
use haft_model::{Delta, ModelError, Reply};
use haft_store::SentRequest;
use haft_types::{
    CallPhase, Envelope, EventBody, LlmMetadata, Message, Origin, Outcome, Part, PermissionMode, Request, Role,
    ToolCall, ToolProtocol, TurnResult,
};
use tokio_util::sync::CancellationToken;

use super::build::cause_of;
use super::models::MOST_SQUEEZES;
use super::run_calls::{Interruption, interrupted};
use super::{EngineError, Notice, Session};
use crate::callbacks::Moment;
use crate::emit::{Emitter, EventSink};
use crate::external::Late;
use crate::names;
use crate::resume::{self, Resumption};
use crate::secrets::mask_text;
use crate::subagents::Rank;
use crate::turn::{Action, End, Input, Nudge, Position, Reason, Replied, Turn, Unfinished};

/// How a run ended, and whether the model ever answered.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The last event, without secrets.
    pub result: TurnResult,
    /// Whether no request ever got a valid reply: the fault is in the configuration or the server.
    pub never_valid: bool,
}

impl Session {
    /// Runs one turn to its outcome. Without input it goes on with a turn that was interrupted.
    pub async fn run(
        &mut self,
        input: Option<String>,
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> RunReport {
        let (id, masker) = (self.transcript.id().clone(), self.config.masker.clone());
        let mut emitter = Emitter::new(sink, id, masker, self.config.agent.clone()).after(self.seq);
        self.meter.begin(self.config.model.price);
        let mut run =
            Run { turn: Turn::new(self.meter.limits()), request: None, cause: None, never_valid: false, squeezed: 0 };
        let position = if let Err(reason) = self.greet(input.as_deref(), cancel).await {
            self.announce(&mut emitter);
            let end = End::new(Outcome::Waiting, reason);
            return self.finish(end, &run, &mut emitter, cancel).await;
        } else if self.transcript.is_stored() {
            self.announce(&mut emitter);
            self.take_input(input, &mut emitter, cancel).await
        } else {
            // A conversation is told of only once it exists.
            let position = self.take_input(input, &mut emitter, cancel).await;
            self.announce(&mut emitter);
            position
        };
        let end = match position {
            Ok(position) => self.drive(&mut run, position, &mut emitter, cancel).await,
            Err(error) => Err(error),
        };
        let end = end.unwrap_or_else(|EngineError::Store(error)| {
            let reason = Reason { code: "store".into(), message: error.to_string() };
            End::new(Outcome::Failed, reason)
        });
        self.describe_changes(end.outcome, &mut emitter, cancel).await;
        self.finish(end, &run, &mut emitter, cancel).await
    }

    async fn finish(
        &mut self,
        end: End,
        run: &Run,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> RunReport {
        let report = self.report(end, run, emitter, cancel).await;
        self.seq = emitter.seq();
        self.resumed = true;
        report
    }

    fn announce(&mut self, emitter: &mut Emitter<'_>) {
        emitter.emit(EventBody::Conversation {
            resumed: self.resumed,
            name: self.transcript.conversation().name.clone(),
            model: self.config.model.full_name(),
            cwd: self.config.workspace.cwd.display().to_string(),
            sandbox: Some(self.services.running.sandbox().status().clone()),
        });
        for Notice { code, message } in std::mem::take(&mut self.config.notices) {
            emitter.emit(EventBody::Error { code: code.to_owned(), message });
        }
        self.tell_hooked(emitter);
    }

    async fn drive(
        &mut self,
        run: &mut Run,
        position: Position,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<End, EngineError> {
        let mut actions = run.turn.step(Input::Begin(position));
        loop {
            let mut next = None;
            for action in actions {
                match action {
                    Action::BuildRequest => next = Some(self.build(run, emitter, cancel).await?),
                    Action::SendRequest => {
                        next = Some(self.send(run, emitter, cancel).await?);
                        run.turn.note_spent(self.meter.spent());
                    }
                    Action::RunTools(calls) => {
                        self.note_for_agents(run.turn.replies());
                        next = Some(self.run_tools(calls, emitter, cancel).await?);
                    }
                    Action::Nudge(nudge) => {
                        let note = nudge.text().to_owned() + &self.what_is_left(nudge, run.turn.replies());
                        self.transcript.append_user(note, Origin::Engine).await?;
                    }
                    Action::Conclude(end) => {
                        let conclusion = self.conclude(&end, run.turn.objections(), emitter, cancel).await;
                        next = Some(Input::Concluded(conclusion));
                    }
                    Action::Correct(text) => self.transcript.append_user(text, Origin::Engine).await?,
                    Action::End(end) => return Ok(end),
                }
            }
            let input = match next {
                _ if cancel.is_cancelled() => Input::Cancelled,
                Some(input) => match self.hooked.take_stop() {
                    Some(reason) => Input::Stopped(reason),
                    None => input,
                },
                // The turn always asks for something or ends; should it not, that is told as its own bug.
                None => Input::Built,
            };
            actions = run.turn.step(input);
        }
    }

    /// Mends the end of the conversation, takes the user's words in, and says where the turn begins.
    async fn take_input(
        &mut self,
        input: Option<String>,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Position, EngineError> {
        let unfinished = if self.transcript.turn_ended() { None } else { self.unfinished().await };
        let Resumption { uncertain, position } = self.transcript.resumption(unfinished);
        for call in uncertain {
            let told = self.interrupted_agents(&call).await?;
            let told = told.unwrap_or_else(|| interrupted(&call, Interruption::Uncertain));
            self.answer(&call, told.into(), emitter).await?;
        }
        let Some(text) = input else { return Ok(position) };
        match position {
            Position::WantsAnswer(_) => {
                for call in resume::unanswered(self.transcript.history()) {
                    self.answer(&call, self.answered(&call, &text).into(), emitter).await?;
                    if call.name == names::PLAN {
                        let planning = self.mode() == PermissionMode::Plan;
                        self.prompt.note_plan_mode(planning, &self.transcript).await?;
                    }
                }
            }
            Position::WantsTools(calls) => {
                for call in calls {
                    self.answer(&call, interrupted(&call, Interruption::NotRun).into(), emitter).await?;
                }
                self.take_words(&text, Origin::Joined, emitter, cancel).await?;
            }
            // A round without its answer still runs, and what the user says joins it.
            Position::WantsReply if !self.transcript.history().is_empty() => {
                self.take_words(&text, Origin::Joined, emitter, cancel).await?;
            }
            Position::WantsReply | Position::HasReply(_) | Position::Completed(_) => {
                self.take_words(&text, Origin::User, emitter, cancel).await?;
            }
        }
        if let Some(schema) = &self.config.answer {
            let instruction = schema.instruction();
            self.transcript.append_user(instruction, Origin::Engine).await?;
        }
        Ok(Position::WantsReply)
    }

    /// The user's word on what a call put before them.
    fn answered(&self, call: &ToolCall, text: &str) -> Envelope {
        let over = call.name == names::PLAN && self.mode() != PermissionMode::Plan;
        let mode = if over { "\n\nPlan mode is over: you can change files and run commands now." } else { "" };
        Envelope::success(format!("The user answered: {text}{mode}"))
    }

    /// The user's words with what is said of the files they mention.
    pub(super) fn treated(&self, text: &str) -> String {
        let folder = &self.config.workspace.cwd;
        treat_input(text, self.config.policy.mentions as usize, &|path| folder.join(path).exists())
    }

    /// Appends the user's words. Compaction comes first: it looks at the conversation the words will be answered in.
    async fn take_words(
        &mut self,
        text: &str,
        origin: Origin,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), EngineError> {
        let treated = self.treated(text);
        self.compact_if_due(&treated, emitter, cancel).await?;
        let sets_goal = self.pursues_goal() && origin == Origin::User;
        let words = if sets_goal { format!("{treated}\n\n{}", GOAL.trim_ascii_end()) } else { treated };
        self.transcript.append_user(words, origin).await
    }

    async fn build(
        &mut self,
        run: &mut Run,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Input, EngineError> {
        self.announce_tasks(emitter).await?;
        self.take_letters(emitter).await?;
        self.tell_mode().await?;
        self.append_context().await?;
        self.compact_if_due("", emitter, cancel).await?;
        let failed = |error: ContextError| Input::Failed(Reason { code: "context".into(), message: error.to_string() });
        let late = if self.is_cold() { Late::Welcome } else { Late::Wait };
        self.prompt.learn_programs(late, cancel).await;
        match self.refresh_documents(emitter).await {
            Ok(problems) => problems.into_iter().for_each(|problem| emitter.error("document", problem)),
            Err(error) => return Ok(failed(error)),
        }
        self.keep_descriptions().await?;
        match self.assembly() {
            Ok(Assembly { request, account }) => {
                run.cause = cause_of(&account);
                self.take_account(&request, account, emitter).await?;
                run.request = Some(Arc::new(request));
                Ok(Input::Built)
            }
            Err(error) => Ok(failed(error)),
        }
    }

    async fn send(
        &mut self,
        run: &mut Run,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Result<Input, EngineError> {
        loop {
            let Some(request) = run.request.take() else { return Ok(Input::Built) };
            self.call_back(self.request_start(&request), emitter, cancel).await;
            if let Some(reason) = self.hooked.take_stop() {
                return Ok(Input::Stopped(reason));
            }
            let sent = SentRequest {
                model: self.config.model.full_name(),
                api: self.config.model.api,
                request: Arc::clone(&request),
                encoding: Some(self.services.client.encoding()),
                cause: run.cause.take(),
            };
            // The log must not delay the request: it is written while the model thinks.
            drop(self.services.store.log_request(self.transcript.id(), sent));
            let (mut teller, listener) = self.hooked.generation(self.prompt.registry());
            let client = &mut self.services.client;
            let told = &mut *emitter;
            let arriving = async {
                let mut tell = move |delta: Delta| {
                    teller.hear(&delta);
                    tell_delta(delta, told);
                };
                client.stream(&request, cancel, &mut tell).await
            };
            let (arrived, ()) = futures::join!(arriving, listener.listen(cancel));
            let ended = self.request_end(&arrived);
            let error = match arrived {
                Ok(reply) => {
                    run.squeezed = 0;
                    self.learn_factor(request.tokens(), reply.usage).await?;
                    let (reply, failure) = self.continued(&request, reply, emitter, cancel).await;
                    let replied = self.take_reply(reply, emitter).await?;
                    // Not before: whatever hooks do, the reply is stored.
                    self.call_back(ended, emitter, cancel).await;
                    return Ok(match failure {
                        None => Input::Replied(replied),
                        Some(ModelError::Cancelled) => Input::Cancelled,
                        Some(error) => failed(&error),
                    });
                }
                Err(ModelError::Cancelled) => return Ok(Input::Cancelled),
                Err(error) => {
                    self.call_back(ended, emitter, cancel).await;
                    error
                }
            };
            if error.is_too_long() && run.squeezed < MOST_SQUEEZES {
                run.squeezed += 1;
                self.squeeze(&request, run.squeezed, emitter);
                match self.build(run, emitter, cancel).await? {
                    Input::Built => continue,
                    other => return Ok(other),
                }
            }
            let switched = if error.is_overload() { self.switch_model(&error, emitter) } else { Ok(false) };
            match switched {
                // Another model has another window and another prefix: the request is built anew.
                Ok(true) => match self.build(run, emitter, cancel).await? {
                    Input::Built => {}
                    other => return Ok(other),
                },
                Ok(false) => {
                    run.never_valid = error.never_valid();
                    return Ok(failed(&error));
                }
                Err(error) => {
                    return Ok(Input::Failed(Reason { code: "context".into(), message: error.to_string() }));
                }
            }
        }
    }

    /// How much of its limits a run that pursues a goal has used, so that the model can share out the rest.
    fn what_is_left(&self, nudge: Nudge, replies: u32) -> String {
        if nudge != Nudge::Goal {
            return String::new();
        }
        let used = self.meter.used_of_limits(replies);
        if used.is_empty() { used } else { format!(" Used so far: {used}.") }
    }

    /// Whether only the model's own report ends a turn.
    fn pursues_goal(&self) -> bool {
        self.config.goal && self.prompt.completes()
    }

    /// What a reply without calls would leave to be done.
    async fn unfinished(&self) -> Option<Unfinished> {
        let completes = self.prompt.completes();
        if self.pursues_goal() {
            Some(Unfinished::Goal)
        } else if self.config.model.tool_protocol.is_text() && completes {
            Some(Unfinished::NoCompletion)
        } else if self.rank == Rank::Sub {
            // The list is the main agent's.
            None
        } else {
            self.prompt.todo().has_open_items().await.then_some(Unfinished::OpenTodos)
        }
    }

    /// Stores a reply before anything acts on it.
    async fn take_reply(&mut self, reply: Reply, emitter: &mut Emitter<'_>) -> Result<Replied, EngineError> {
        let model = self.config.model.full_name();
        let cost = self.meter.spend(self.config.model.price, reply.usage);
        let parts = reply.parts.into_iter().map(without_hints).collect();
        let mut message = self.transcript.draft(Role::Assistant, parts);
        let mut made = LlmMetadata::new(&model, self.transcript.rounds(), reply.usage, cost);
        made.time_to_first_token_ms = Some(millis(reply.time_to_first_token));
        made.duration_ms = Some(millis(reply.duration));
        message.llm_metadata = Some(made);
        message.metadata.insert(resume::STOP_REASON.into(), serde_json::to_value(&reply.stop).unwrap_or_default());

        let replied = Replied {
            calls: message.tool_calls().cloned().collect(),
            text: spoken(&message, self.config.model.tool_protocol),
            stop: reply.stop,
            unfinished: self.unfinished().await,
        };
        let finished: Vec<_> = replied.calls.iter().map(call_finished).collect();
        // An empty message would be refused by every API; the turn nudges instead.
        if !message.content.is_empty() {
            self.transcript.append(message).await?;
        }
        for event in finished {
            emitter.emit(event);
        }
        emitter.emit(EventBody::Usage { model, usage: reply.usage, cost, saved_tokens: self.meter.take_saved() });
        Ok(replied)
    }

    async fn report(
        &mut self,
        end: End,
        run: &Run,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> RunReport {
        if end.outcome == Outcome::Waiting && self.rank == Rank::Main {
            let moment = Moment::Notification { notification_type: "idle_prompt", message: end.reason.message.clone() };
            self.call_back(moment, emitter, cancel).await;
        }
        self.note_end(end.outcome);
        if end.outcome == Outcome::Failed {
            emitter.error(&end.reason.code, &end.reason.message);
        }
        if end.outcome == Outcome::Completed
            && let Err(error) = self.transcript.note_turn_ended(end.outcome).await
        {
            emitter.error("store", error.to_string());
        }
        self.leave_tasks(emitter).await;
        if let Err(error) = self.services.store.flush().await {
            emitter.error("store", error.to_string());
        }
        let mut result = TurnResult {
            outcome: end.outcome,
            code: end.reason.code,
            message: end.reason.message,
            text: end.text,
            turns: run.turn.replies(),
            duration_ms: millis(self.meter.elapsed()),
            usage: self.meter.usage(),
            cost: self.meter.cost(),
            structured_output: end.output,
        };
        emitter.emit(EventBody::Result(result.clone()));
        // Whoever is given it may keep it or put it before another model.
        mask_text(&self.config.masker, &mut result.message);
        mask_text(&self.config.masker, &mut result.text);
        RunReport { result, never_valid: run.never_valid && run.turn.replies() == 0 }
    }
}

/// What is added to the words that set a goal.
const GOAL: &str = include_str!("../../prompts/goal.md");

/// What is in flight while a turn is driven.
struct Run {
    turn: Turn,
    request: Option<Arc<Request>>,
    /// Why that request is not an extension of the one before.
    cause: Option<String>,
    never_valid: bool,
    /// How often the request in flight was made shorter, because the provider refused it as too long.
    squeezed: u32,
}

fn failed(error: &ModelError) -> Input {
    Input::Failed(Reason { code: error.code().into(), message: error.to_string() })
}

/// A model that is shown message ids sometimes repeats them; they are not its words.
fn without_hints(part: Part) -> Part {
    match part {
        Part::Text { text, signature } => Part::Text { text: strip_hints(&text).into_owned(), signature },
        Part::ToolCall(call) => {
            Part::ToolCall(ToolCall { arguments: strip_hints(&call.arguments).into_owned(), ..call })
        }
        part @ (Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_)) => part,
    }
}

/// What a reply says to the user. Where everything is text, a thought that nothing follows is all that was said.
fn spoken(message: &Message, protocol: ToolProtocol) -> String {
    let text = message.joined_text();
    if !protocol.is_text() || !text.trim().is_empty() {
        return text;
    }
    let thoughts = message.content.iter().filter_map(|part| match part {
        Part::Thinking(thinking) => Some(thinking.text.as_str()),
        Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
    });
    thoughts.collect()
}

pub(crate) fn tell_delta(delta: Delta, emitter: &mut Emitter<'_>) {
    emitter.emit(match delta {
        Delta::Text(text) => EventBody::Text { text },
        Delta::Thinking(text) => EventBody::Thinking { text },
        Delta::CallStarted { id, name } => {
            EventBody::ToolCall { id, name, phase: CallPhase::Started, arguments: None, raw: None }
        }
        Delta::CallArguments { id, piece } => EventBody::ToolCall {
            id,
            name: String::new(),
            phase: CallPhase::Arguments,
            arguments: None,
            raw: Some(piece),
        },
        // Shown once the whole reply is stored, with its arguments.
        Delta::CallFinished { .. } => return,
        Delta::Retry { attempt, limit, delay_ms, reason } => EventBody::Retry { attempt, limit, delay_ms, reason },
    });
}

pub(crate) fn call_finished(call: &ToolCall) -> EventBody {
    EventBody::ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        phase: CallPhase::Finished,
        arguments: crate::strict_json::object(&call.arguments).ok(),
        raw: Some(call.arguments.clone()),
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
