//! The base loop: a model, a protocol, tools, events, and nothing else.
//!
//! It drives the same [`Turn`] as a [`Session`](crate::Session), over a conversation that it keeps in memory: no store, no files, no
//! project, no context engine, no permission. Whoever builds another kind of agent gives it tools and a system prompt; what the
//! tools may do is theirs to decide. `examples/weather.rs` is such an agent.
//!
//! Invariant: the history it sends is whole: every call has a result, also one that a cancellation cut off.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use haft_model::{Client, Delta, ModelError, O200k, Reply};
use haft_text::Masker;
use haft_tool::{Registry, ToolContext};
use haft_types::{
    Clock, ConversationId, Cost, Entry, Envelope, EventBody, IdSource, Layer, LlmMetadata, Message, Origin, Outcome,
    Part, Request, Role, Segment, StopReason, TokenCounter, ToolCall, ToolResult, TurnResult, Usage,
};
use tokio_util::sync::CancellationToken;

use crate::call_check::{self, ReplyFacts};
use crate::emit::{Emitter, EventSink};
use crate::names;
use crate::resume;
use crate::session::{AdvertisedTools, call_finished, fingerprint, take_flow, tell_delta};
use crate::turn::{
    Action, Conclusion, End, Input, Limits, Position, Reason, Replied, Spent, ToolsDone, Turn, Unfinished,
};

/// A model with tools and a system prompt, in a loop.
pub struct BaseLoop {
    client: Client,
    registry: Registry,
    advertised: AdvertisedTools,
    system: Arc<Entry>,
    history: Vec<Arc<Entry>>,
    limits: Limits,
    folder: PathBuf,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    conversation_id: ConversationId,
    seq: u64,
    spent: Spent,
}

/// What one turn has used.
struct Used {
    since: Instant,
    usage: Usage,
    cost: Option<Cost>,
}

impl BaseLoop {
    /// A loop with these tools and this system prompt. Calls of text protocols are explained after it.
    pub fn new(
        client: Client,
        registry: Registry,
        system_prompt: &str,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let advertised = AdvertisedTools::of(client.spec(), &registry, &O200k);
        let format = advertised.call_format.iter().map(|format| format!("\n\n{format}"));
        let text = std::iter::once(system_prompt.to_owned()).chain(format).collect::<String>();
        let system = Message::text(ids.message_id(), Role::System, text, clock.now());
        Self {
            system: Entry::new(system, &O200k),
            conversation_id: ConversationId::from(ids.uuid()),
            client,
            registry,
            advertised,
            history: Vec::new(),
            limits: Limits::default(),
            folder: PathBuf::from("/"),
            clock,
            ids,
            seq: 0,
            spent: Spent::default(),
        }
    }

    /// The same within these limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The same with this folder for its tools.
    #[must_use]
    pub fn in_folder(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..self }
    }

    /// Every message so far, in order, without the system prompt.
    pub fn history(&self) -> &[Arc<Entry>] {
        &self.history
    }

    /// Says something to the model and runs the turn to its outcome.
    pub async fn run(&mut self, input: &str, sink: &mut dyn EventSink, cancel: &CancellationToken) -> TurnResult {
        let emitter = Emitter::new(sink, self.conversation_id.clone(), Masker::default(), names::MAIN.to_owned());
        let mut emitter = emitter.after(self.seq);
        emitter.emit(EventBody::Conversation {
            resumed: !self.history.is_empty(),
            name: self.conversation_id.short().to_owned(),
            model: self.client.spec().full_name(),
            cwd: self.folder.display().to_string(),
            sandbox: None,
        });
        for call in resume::unanswered(&self.history) {
            self.answer(&call, Envelope::failure("interrupted", "The call was interrupted."), &mut emitter);
        }
        self.push(Message::text(self.ids.message_id(), Role::User, input, self.clock.now()));
        let cost = self.client.spec().price.map(|_| Cost::default());
        let mut used = Used { since: Instant::now(), usage: Usage::default(), cost };
        let mut turn = Turn::new(self.limits);
        let end = self.drive(&mut turn, &mut used, &mut emitter, cancel).await;
        let result = TurnResult {
            outcome: end.outcome,
            code: end.reason.code,
            message: end.reason.message,
            text: end.text,
            turns: turn.replies(),
            duration_ms: u64::try_from(used.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: used.usage,
            cost: used.cost,
            structured_output: end.output,
        };
        emitter.emit(EventBody::Result(result.clone()));
        self.seq = emitter.seq();
        result
    }

    async fn drive(
        &mut self,
        turn: &mut Turn,
        used: &mut Used,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> End {
        let mut actions = turn.step(Input::Begin(Position::WantsReply));
        loop {
            let mut next = Input::Built;
            for action in actions {
                match action {
                    Action::BuildRequest => {}
                    Action::SendRequest => next = self.send(used, emitter, cancel).await,
                    Action::RunTools(calls) => next = self.run_tools(calls, used, emitter, cancel).await,
                    Action::Nudge(nudge) => self.note(nudge.text().to_owned()),
                    Action::Correct(text) => self.note(text),
                    Action::Conclude(_) => next = Input::Concluded(Conclusion::Accepted { output: None }),
                    Action::End(end) => {
                        if end.outcome == Outcome::Failed {
                            emitter.error(&end.reason.code, &end.reason.message);
                        }
                        return end;
                    }
                }
            }
            if cancel.is_cancelled() {
                next = Input::Cancelled;
            }
            turn.note_spent(self.spent_by(used));
            actions = turn.step(next);
        }
    }

    async fn send(&mut self, used: &mut Used, emitter: &mut Emitter<'_>, cancel: &CancellationToken) -> Input {
        let request = self.request();
        let mut tell = |delta: Delta| tell_delta(delta, emitter);
        match self.client.stream(&request, cancel, &mut tell).await {
            Ok(reply) => Input::Replied(self.take_reply(reply, used, emitter)),
            Err(ModelError::Cancelled) => Input::Cancelled,
            Err(error) => Input::Failed(Reason { code: error.code().into(), message: error.to_string() }),
        }
    }

    /// The system prompt, then everything that was said.
    fn request(&self) -> Request {
        let segment =
            |layer, owner, entry: &Arc<Entry>| Segment { layer, owner, entry: Arc::clone(entry), boundary: false };
        let mut segments = vec![segment(Layer::System, "system", &self.system)];
        segments.extend(self.history.iter().map(|entry| segment(Layer::History, "history", entry)));
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

    fn take_reply(&mut self, reply: Reply, used: &mut Used, emitter: &mut Emitter<'_>) -> Replied {
        let spec = self.client.spec();
        let (model, protocol) = (spec.full_name(), spec.tool_protocol);
        let cost = spec.price.map(|price| price.cost(reply.usage));
        used.usage += reply.usage;
        used.cost = used.cost.zip(cost).map(|(mut all, one)| {
            all += one;
            all
        });
        self.spent.tokens += reply.usage.total();
        self.spent.usd += cost.map_or(0.0, |cost| cost.total);
        let mut message = Message::new(self.ids.message_id(), Role::Assistant, reply.parts, self.clock.now());
        message.llm_metadata = Some(LlmMetadata::new(&model, 0, reply.usage, cost));
        let completes = protocol.is_text() && self.registry.get(names::COMPLETE).is_some();
        let replied = Replied {
            calls: message.tool_calls().cloned().collect(),
            text: message.joined_text(),
            stop: reply.stop,
            unfinished: completes.then_some(Unfinished::NoCompletion),
        };
        if !message.content.is_empty() {
            self.push(message);
        }
        for call in &replied.calls {
            emitter.emit(call_finished(call));
        }
        emitter.emit(EventBody::Usage { model, usage: reply.usage, cost, saved_tokens: 0 });
        replied
    }

    /// Runs calls one after another.
    async fn run_tools(
        &mut self,
        calls: Vec<ToolCall>,
        used: &Used,
        emitter: &mut Emitter<'_>,
        cancel: &CancellationToken,
    ) -> Input {
        let mut done = ToolsDone::default();
        let count = calls.len();
        for (index, call) in calls.into_iter().enumerate() {
            if cancel.is_cancelled() {
                return Input::Cancelled;
            }
            let facts = ReplyFacts { stop: &StopReason::ToolUse, calls: count, last: index + 1 == count };
            let (call, output) = match call_check::admit(call, &facts, &self.registry) {
                Ok(admitted) => {
                    let context = ToolContext::bare(&self.folder, &admitted.call.id, cancel.clone());
                    let output = self.registry.call(admitted.tool.as_ref(), &context, admitted.arguments).await;
                    (admitted.call, output)
                }
                Err(refused) => (refused.call, refused.envelope.into()),
            };
            take_flow(&output.flow, &mut done, emitter);
            done.seen.push(fingerprint(&call, &output.envelope));
            self.answer(&call, output.envelope, emitter);
        }
        done.spent = self.spent_by(used);
        Input::ToolsDone(done)
    }

    fn spent_by(&self, used: &Used) -> Spent {
        Spent { elapsed: used.since.elapsed(), ..self.spent }
    }

    fn answer(&mut self, call: &ToolCall, envelope: Envelope, emitter: &mut Emitter<'_>) {
        emitter.emit(EventBody::ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            status: envelope.status,
            text: envelope.text.clone(),
            error: envelope.error.clone(),
        });
        let result = ToolResult { tool_call_id: call.id.clone(), name: call.name.clone(), envelope };
        let content = vec![Part::ToolResult(Box::new(result))];
        self.push(Message::new(self.ids.message_id(), Role::Tool, content, self.clock.now()));
    }

    fn note(&mut self, text: String) {
        let message = Message::text(self.ids.message_id(), Role::User, text, self.clock.now());
        self.push(message.from(Origin::Engine));
    }

    fn push(&mut self, message: Message) {
        self.history.push(Entry::new(message, &O200k as &dyn TokenCounter));
    }
}
