//! A session as the host of a turn: requests from the context engine, replies to the store, calls
//! past permissions and hooks.
//!
//! Invariant: what an event shows of a message is in the store first (`tool_result`, `usage`),
//! except the text of a reply that is still arriving.

use std::sync::Arc;

use haft_context::{Assembly, ContextError, HintFilter, MessageIds, strip_hints};
use haft_model::{Delta, ModelError, Reply};
use haft_store::SentRequest;
use haft_types::{
    Cost, LlmMetadata, Message, ModelSpec, Part, Request, Role, ToolCall, ToolProtocol,
};

use super::build::cause_of;
use super::models::MOST_SQUEEZES;
use super::{EngineError, Session};
use crate::driver::{TurnHost, failed, take_reply};
use crate::external::Late;
use crate::hooks::HookEvent;
use crate::meter::{Meter, millis};
use crate::resume;
use crate::spending::PaidRequest;
use crate::subagents::Rank;
use crate::turn::{Conclusion, End, Input, Nudge, Objection, Reason, Unfinished};
use crate::turn_io::TurnIo;

/// A session while a turn is driven, and the request in flight.
pub(super) struct SessionTurn<'a> {
    session: &'a mut Session,
    request: Option<Arc<Request>>,
    /// Why that request is not an extension of the one before.
    cause: Option<String>,
    /// How often it was made shorter, because the provider refused it as too long.
    squeezed: u32,
    /// Whether a reply has come: what the user wrote before that waits for a request that follows
    /// one.
    replied: bool,
    /// Whether the last request could never have had a valid reply.
    pub(super) never_valid: bool,
}

impl<'a> SessionTurn<'a> {
    pub(super) fn new(session: &'a mut Session) -> Self {
        Self {
            session,
            request: None,
            cause: None,
            squeezed: 0,
            replied: false,
            never_valid: false,
        }
    }

    /// Sends one request. The error is one that another request might mend.
    async fn ask(
        &mut self,
        request: &Arc<Request>,
        io: &mut TurnIo<'_>,
    ) -> Result<Result<Input, ModelError>, EngineError> {
        let session = &mut *self.session;
        session.call_back(session.request_start(request), io).await;
        if let Some(reason) = session.hooks.take_stop() {
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
            encoding: Some(session.services.models.client.encoding()),
            cause: self.cause.take(),
        };
        // The log must not delay the request: it is written while the model thinks.
        drop(
            session
                .services
                .store
                .log_request(session.transcript.id(), sent),
        );
        let (mut teller, listener) = session.hooks.generation(session.prompt.registry());
        let client = &mut session.services.models.client;
        let meter = &mut session.meter;
        let cancel = io.cancel;
        let mut shown = ShownReply::new(session.config.policy.message_ids, io);
        let arriving = async {
            let mut tell = |delta: Delta| {
                teller.hear(&delta);
                shown.delta(delta);
            };
            let arrived = paid.send(client, meter, cancel, &mut tell).await;
            shown.finish();
            // The listener ends with it.
            drop(teller);
            arrived
        };
        let (arrived, ()) = futures::join!(arriving, listener.listen(cancel));
        let ended = session.request_end(&arrived);
        let reply = match arrived {
            Ok(reply) => reply,
            Err(ModelError::Cancelled) => return Ok(Ok(Input::Cancelled)),
            Err(error) => {
                session.call_back(ended, io).await;
                return Ok(Err(error));
            }
        };
        self.squeezed = 0;
        session.learn_factor(request.tokens(), reply.usage).await?;
        let (reply, failure) = session.continued(request, reply, io).await;
        let replied = take_reply(self, reply, io).await?;
        self.replied = true;
        // Not before: whatever hooks do, the reply is stored.
        self.session.call_back(ended, io).await;
        Ok(Ok(
            failure.map_or(Input::Replied(replied), |error| failed(&error))
        ))
    }

    /// Makes ready for another request after one that failed: shorter, or to another model. `false`
    /// when there is none to try.
    fn recover(
        &mut self,
        refused: &Request,
        error: &ModelError,
        io: &mut TurnIo<'_>,
    ) -> Result<bool, ContextError> {
        if error.is_too_long() && self.squeezed < MOST_SQUEEZES {
            self.squeezed += 1;
            self.session.squeeze(refused, self.squeezed, io);
            return Ok(true);
        }
        if error.is_overload() {
            self.session.switch_model(error, io)
        } else {
            Ok(false)
        }
    }
}

impl TurnHost for SessionTurn<'_> {
    type Failure = EngineError;

    fn model(&self) -> &ModelSpec {
        &self.session.config.model
    }

    fn meter(&mut self) -> &mut Meter {
        &mut self.session.meter
    }

    async fn build_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, EngineError> {
        let session = &mut *self.session;
        session.announce_tasks(io).await?;
        session.announce_agents(io).await?;
        session.take_agent_messages(io).await?;
        if self.replied {
            session.take_watched_input(io).await?;
        }
        session.tell_mode().await?;
        session.append_context().await?;
        session.compact_if_due("", io).await?;
        let late = if session.is_cold() {
            Late::Welcome
        } else {
            Late::Wait
        };
        session.prompt.learn_programs(late, io.cancel).await;
        match session.refresh_documents(io).await {
            Ok(problems) => problems
                .into_iter()
                .for_each(|problem| io.error("document", problem)),
            Err(error) => return Ok(no_request(&error)),
        }
        session.keep_descriptions().await?;
        match session.assembly() {
            Ok(Assembly { request, account }) => {
                self.cause = cause_of(&account);
                session.take_account(&request, account, io).await?;
                self.request = Some(Arc::new(request));
                Ok(Input::Built)
            }
            Err(error) => Ok(no_request(&error)),
        }
    }

    async fn send_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, EngineError> {
        loop {
            let Some(request) = self.request.take() else {
                return Ok(Input::Built);
            };
            let error = match self.ask(&request, io).await? {
                Ok(input) => return Ok(input),
                Err(error) => error,
            };
            match self.recover(&request, &error, io) {
                // Another window or another prefix: the request is built anew.
                Ok(true) => match self.build_request(io).await? {
                    Input::Built => {}
                    other => return Ok(other),
                },
                Ok(false) => {
                    self.never_valid = error.never_valid();
                    return Ok(failed(&error));
                }
                Err(error) => return Ok(no_request(&error)),
            }
        }
    }

    fn draft_reply(&self, reply: Reply, cost: Option<Cost>) -> Message {
        let Session {
            config, transcript, ..
        } = &*self.session;
        let parts = match config.policy.message_ids {
            MessageIds::Off => reply.parts,
            MessageIds::Results | MessageIds::All => {
                reply.parts.into_iter().filter_map(without_hints).collect()
            }
        };
        let mut message = transcript.draft(Role::Assistant, parts);
        let mut made = LlmMetadata::new(
            config.model.full_name(),
            transcript.rounds(),
            reply.usage,
            cost,
        );
        made.time_to_first_token_ms = Some(millis(reply.time_to_first_token));
        made.duration_ms = Some(millis(reply.duration));
        message.llm_metadata = Some(made.into());
        message.metadata.insert(
            resume::STOP_REASON.into(),
            serde_json::to_value(&reply.stop).unwrap_or_default(),
        );
        message
    }

    fn reply_text(&self, message: &Message) -> String {
        spoken(message, self.model().tool_protocol)
    }

    async fn unfinished(&self) -> Option<Unfinished> {
        self.session.unfinished().await
    }

    async fn append(&mut self, message: Message) -> Result<(), EngineError> {
        self.session.transcript.append(message).await
    }

    async fn append_note(&mut self, text: String) -> Result<(), EngineError> {
        self.session.transcript.append_note(&text).await
    }

    async fn run_calls(
        &mut self,
        calls: Vec<ToolCall>,
        replies: u32,
        io: &mut TurnIo<'_>,
    ) -> Result<Input, EngineError> {
        self.session.note_for_agents(replies);
        self.session.run_tools(calls, io).await
    }

    fn nudge_text(&self, nudge: Nudge, replies: u32) -> String {
        // A run that pursues a goal reads how much of its limits it has used, so that the model can
        // share out the rest.
        let used = if nudge == Nudge::Goal {
            self.session.meter.used_of_limits(replies)
        } else {
            String::new()
        };
        let used = if used.is_empty() {
            used
        } else {
            format!(" Used so far: {used}.")
        };
        let language = self.session.config.policy.prompt_language;
        let tools = self.session.prompt.registry().told();
        format!("{}{used}", nudge.told_text(language, &tools))
    }

    async fn conclude(&mut self, end: &End, objections: u32, io: &mut TurnIo<'_>) -> Conclusion {
        let answer = self.session.config.task.answer.as_ref();
        let looked_at = answer.map_or(Conclusion::Accepted { output: None }, |schema| {
            schema.conclude(&end.text)
        });
        let Conclusion::Accepted { output } = looked_at else {
            return looked_at;
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
        match session.call_back(event, io).await.block {
            Some(why) => Conclusion::Rejected(Objection {
                text: format!("Not done yet: {why}"),
                otherwise: None,
            }),
            None if session.has_unread() => Conclusion::Unread { output },
            None => Conclusion::Accepted { output },
        }
    }

    fn take_stop(&self) -> Option<Reason> {
        self.session.hooks.take_stop()
    }
}

fn no_request(error: &ContextError) -> Input {
    Input::Failed(Reason {
        code: "context".into(),
        message: error.to_string(),
    })
}

/// A model that is shown message ids sometimes repeats them; they are not its text. Arguments are
/// left as they are: a file may hold such a line.
fn without_hints(part: Part) -> Option<Part> {
    match part {
        Part::Text { text, signature } => {
            let stripped = strip_hints(&text);
            // Nothing else was said.
            let only_hints =
                stripped.trim().is_empty() && !text.trim().is_empty() && signature.is_none();
            (!only_hints).then(|| Part::Text {
                text: stripped.into_owned(),
                signature,
            })
        }
        part @ (Part::ToolCall(_) | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_)) => {
            Some(part)
        }
    }
}

/// Shows a reply as it arrives, without the message ids it repeats.
pub(super) struct ShownReply<'a, 'io> {
    io: &'a mut TurnIo<'io>,
    /// Where the model sees ids at all.
    hints: Option<HintFilter>,
}

impl<'a, 'io> ShownReply<'a, 'io> {
    pub(super) fn new(ids: MessageIds, io: &'a mut TurnIo<'io>) -> Self {
        Self {
            io,
            hints: (ids != MessageIds::Off).then(HintFilter::default),
        }
    }

    pub(super) fn delta(&mut self, delta: Delta) {
        match (delta, &mut self.hints) {
            (Delta::Text(piece), Some(hints)) => {
                let text = hints.feed(&piece);
                self.show(text);
            }
            (delta, _) => {
                self.finish();
                self.io.delta(delta);
            }
        }
    }

    /// Nothing follows what was held back.
    pub(super) fn finish(&mut self) {
        let rest = self.hints.as_mut().map(HintFilter::finish);
        self.show(rest.unwrap_or_default());
    }

    fn show(&mut self, text: String) {
        if !text.is_empty() {
            self.io.delta(Delta::Text(text));
        }
    }
}

/// What a reply says to the user. Where everything is text, a thought that nothing follows is all
/// that was said.
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
