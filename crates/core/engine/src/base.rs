//! The base loop: a model, a protocol, tools, events, and nothing else.
//!
//! It drives the same [`Turn`] as a [`Session`](crate::Session), over a conversation that it keeps
//! in memory: no store, no files, no project, no context engine, no permission. Whoever builds
//! another kind of agent gives it tools and a system prompt; what the tools may do is theirs to
//! decide. `examples/weather.rs` is such an agent.
//!
//! Invariant: the history it sends is whole: every call has a result, also one that a cancellation
//! cut off.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use haft_model::{Client, O200k, Reply};
use haft_text::Masker;
use haft_tool::{Registry, ToolContext};
use haft_types::{
    Clock, ConversationId, Cost, Entry, Envelope, EventBody, IdSource, Layer, LlmMetadata, Message,
    ModelSpec, Origin, Outcome, Part, PromptLanguage, Request, Role, Segment, StopReason, ToolCall,
    ToolResult, TurnResult,
};
use tokio_util::sync::CancellationToken;

use crate::call_check::{self, Admitted, Refused};
use crate::calls::{self, CallFate};
use crate::driver::{TurnHost, drive, failed, mark_nothing_changed, take_reply, turn_result};
use crate::event_log::CallRun;
use crate::meter::Meter;
use crate::names;
use crate::resume;
use crate::session::AdvertisedTools;
use crate::spending::PaidRequest;
use crate::stored_state::TokenizerFactors;
use crate::subagents::SharedBudget;
use crate::turn::{Input, Position, ToolsDone, Turn, TurnLimits, Unfinished};
use crate::turn_io::{EventSink, TimedCancel, TurnIo, call_result};

/// A model with tools and a system prompt, in a loop.
pub struct BaseLoop {
    client: Client,
    registry: Registry,
    advertised: AdvertisedTools,
    system: Arc<Entry>,
    history: Vec<Arc<Entry>>,
    meter: Meter,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    conversation_id: ConversationId,
    seq: u64,
}

impl BaseLoop {
    /// A loop with these tools and this system prompt. Calls of text protocols are explained after
    /// it.
    pub fn new(
        client: Client,
        registry: Registry,
        system_prompt: &str,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let advertised =
            AdvertisedTools::of(client.spec(), PromptLanguage::English, &registry, &O200k);
        let format = advertised
            .call_format
            .iter()
            .map(|format| format!("\n\n{format}"));
        let text = std::iter::once(system_prompt.to_owned())
            .chain(format)
            .collect::<String>();
        let system = Message::text(ids.message_id(), Role::System, text, clock.now());
        Self {
            system: Entry::new(system, &O200k),
            conversation_id: ConversationId::from(ids.uuid()),
            client,
            registry,
            advertised,
            history: Vec::new(),
            meter: Meter::new(
                TurnLimits::default(),
                SharedBudget::default(),
                TokenizerFactors::default(),
            ),
            folder: PathBuf::from("/"),
            clock,
            ids,
            seq: 0,
        }
    }

    /// The same within these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: TurnLimits) -> Self {
        self.meter.set_limits(limits);
        self
    }

    /// The same with this folder for its tools.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            ..self
        }
    }

    /// Every message so far, in order, without the system prompt.
    pub fn history(&self) -> &[Arc<Entry>] {
        &self.history
    }

    /// Says something to the model and runs the turn to its outcome.
    pub async fn run(
        &mut self,
        input: &str,
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> TurnResult {
        self.meter.begin(self.client.spec().price);
        let timed = TimedCancel::new(cancel, self.meter.time_left());
        let io = TurnIo::new(
            sink,
            &timed.token,
            self.conversation_id.clone(),
            Masker::default(),
            names::MAIN.to_owned(),
        );
        let mut io = io.after(self.seq);
        io.emit(EventBody::Conversation {
            resumed: !self.history.is_empty(),
            name: self.conversation_id.short().to_owned(),
            model: self.client.spec().full_name(),
            cwd: self.folder.display().to_string(),
            sandbox: None,
        });
        for call in resume::unanswered(&self.history) {
            self.answer(
                &call,
                Envelope::failure("interrupted", "The call was interrupted."),
                &mut io,
            );
        }
        self.push(Message::text(
            self.ids.message_id(),
            Role::User,
            input,
            self.clock.now(),
        ));
        let mut turn = Turn::new(self.meter.limits());
        let Ok(mut end) = drive(self, &mut turn, Position::WantsReply, &mut io).await;
        if end.outcome == Outcome::Failed {
            io.error(&end.reason.code, &end.reason.message);
        }
        mark_nothing_changed(&mut end, &turn, &self.history, &self.registry, &mut io);
        let result = turn_result(end, &turn, &self.meter);
        io.emit(EventBody::Result(result.clone()));
        self.seq = io.seq();
        result
    }

    /// The system prompt, then everything that was said.
    fn request(&self) -> Request {
        let segment = |layer, owner, entry: &Arc<Entry>| Segment {
            layer,
            owner,
            entry: Arc::clone(entry),
            boundary: false,
        };
        let mut segments = vec![segment(Layer::System, "system", &self.system)];
        segments.extend(
            self.history
                .iter()
                .map(|entry| segment(Layer::History, "history", entry)),
        );
        // What is behind the newest message was sent before.
        if let Some(last) = segments.last_mut() {
            last.boundary = true;
        }
        Request {
            segments,
            tools: Arc::clone(&self.advertised.tools),
            max_output_tokens: self.client.spec().max_output_tokens,
            cache_key: Some(self.conversation_id.as_str().to_owned()),
        }
    }

    fn answer(&mut self, call: &ToolCall, envelope: Envelope, io: &mut TurnIo<'_>) {
        io.emit(call_result(call, &envelope));
        // APIs want the name under which the call stands in the reply.
        let written = self
            .history
            .iter()
            .rev()
            .flat_map(|entry| entry.message.tool_calls())
            .find(|one| one.id == call.id);
        let name = written.unwrap_or(call).name.clone();
        let result = ToolResult {
            tool_call_id: call.id.clone(),
            name,
            envelope,
        };
        let content = vec![Part::ToolResult(Box::new(result))];
        self.push(Message::new(
            self.ids.message_id(),
            Role::Tool,
            content,
            self.clock.now(),
        ));
    }

    fn push(&mut self, message: Message) {
        self.history.push(Entry::new(message, &O200k));
    }
}

impl TurnHost for BaseLoop {
    type Failure = Infallible;

    fn model(&self) -> &ModelSpec {
        self.client.spec()
    }

    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    async fn send_request(&mut self, io: &mut TurnIo<'_>) -> Result<Input, Infallible> {
        let request = Arc::new(self.request());
        let paid = PaidRequest::reserve(request, &self.client, &self.meter, io.cancel).await;
        let sent = match paid {
            Ok(paid) => {
                paid.send(&mut self.client, &mut self.meter, io.cancel, &mut |delta| {
                    io.delta(delta);
                })
                .await
            }
            Err(error) => Err(error),
        };
        Ok(match sent {
            Ok(reply) => Input::Replied(take_reply(self, reply, io).await?),
            Err(error) => failed(&error),
        })
    }

    fn draft_reply(&self, reply: Reply, cost: Option<Cost>) -> Message {
        let mut message = Message::new(
            self.ids.message_id(),
            Role::Assistant,
            reply.parts,
            self.clock.now(),
        );
        message.llm_metadata =
            Some(LlmMetadata::new(self.model().full_name(), 0, reply.usage, cost).into());
        message
    }

    async fn unfinished(&self) -> Option<Unfinished> {
        let completes =
            self.model().tool_protocol.is_text() && self.registry.offers(names::COMPLETE);
        completes.then_some(Unfinished::NoCompletion)
    }

    async fn append(&mut self, message: Message) -> Result<(), Infallible> {
        self.push(message);
        Ok(())
    }

    async fn append_note(&mut self, text: String) -> Result<(), Infallible> {
        let message = Message::text(self.ids.message_id(), Role::User, text, self.clock.now());
        self.push(message.from(Origin::Engine));
        Ok(())
    }

    /// Runs calls one after another.
    async fn run_calls(
        &mut self,
        calls: Vec<ToolCall>,
        _: u32,
        io: &mut TurnIo<'_>,
    ) -> Result<Input, Infallible> {
        let mut done = ToolsDone::default();
        for checked in call_check::admit_all(calls, &StopReason::ToolUse, &self.registry) {
            if io.cancel.is_cancelled() {
                return Ok(Input::Cancelled);
            }
            let checked = checked.and_then(|admitted| {
                match call_check::completion_objection(&admitted.call, &done) {
                    Some(envelope) => Err(Box::new(Refused {
                        call: admitted.call,
                        envelope,
                        denied: false,
                    })),
                    None => Ok(admitted),
                }
            });
            let (call, mut output) = match checked {
                Ok(Admitted {
                    call,
                    tool,
                    arguments,
                }) => {
                    let context = ToolContext::bare(&self.folder, &call.id, io.cancel.clone());
                    let since = Instant::now();
                    let output = self.registry.call(tool.as_ref(), &context, arguments).await;
                    io.note_run(
                        &call,
                        CallRun {
                            ran: since.elapsed(),
                            ..CallRun::default()
                        },
                    );
                    calls::count_effect(
                        &call,
                        CallFate::of(&output),
                        &self.registry,
                        &mut done.effects,
                    );
                    (call, output)
                }
                Err(refused) => {
                    calls::count_effect(
                        &refused.call,
                        CallFate::NotRun,
                        &self.registry,
                        &mut done.effects,
                    );
                    (refused.call, refused.envelope.into())
                }
            };
            calls::note_output(&call, &mut output, &mut done, &self.registry, io);
            self.answer(&call, output.envelope, io);
        }
        done.spent = self.meter.spent();
        Ok(Input::ToolsDone(done))
    }
}
