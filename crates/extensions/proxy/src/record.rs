//! Records traffic: each request goes to the request log of a conversation and its reply next to
//! it, both with keys masked.
//!
//! The conversation of a request is found by its prefix ([`grouping`]). Requests are stored like
//! haft's own, so the log grows only by what is new, and every command that shows requests can show
//! these. No failure here affects a request: it becomes a [`ProxyEvent::NotRecorded`].

mod entries;
mod grouping;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use haft_model::{Catalogue, O200k};
use haft_store::{NewConversation, SentRequest, Store, StoreError};
use haft_text::Masker;
use haft_types::{
    Api, Clock, ContentHash, ConversationId, Hasher, IdSource, LlmMetadata, Message, MessageId,
    Metadata, ModelSpec, Part, Request, Role, Segment, Timestamp, ToolSet,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::capture::{CapturedBody, SeenReply, SeenRequest, Traffic};
use crate::encodings::decode_body;
use crate::explanation::{
    RecordedBreak, RequestComparison, RequestExplanation, compute_units, estimate_append_only_usage,
};
use crate::layout::{BodyLayout, SegmentKind, split_body};
use crate::message_parts::model_from_path;
use crate::reply::{self, RecordedReply};
use crate::secrets::{
    HeaderSecrets, list_header_secrets, list_query_secrets, mask_headers, mask_path,
};
use crate::stream_mask::mask_reply_body;
use entries::EntryCache;
use grouping::ProxiedConversation;

pub const NAMESPACE: &str = "proxy";
/// The metadata key that marks a conversation as recorded by the proxy.
pub const RECORDED_BY_KEY: &str = "recorded_by";
/// The number of recorded conversations, newest first, that requests can continue after a restart
/// of the proxy.
const MAX_CONTINUED: usize = 32;
/// The maximum number of secrets that can differ in every request.
const MAX_RECENT_SECRETS: usize = 64;

/// An event that the recorder reports to the front end.
#[derive(Clone, Debug)]
pub enum ProxyEvent {
    /// A request was recorded and its reply has ended.
    Explained(Box<RequestExplanation>),
    /// A request or a reply could not be recorded.
    NotRecorded {
        /// The reason why the recording failed.
        reason: String,
    },
    /// A request that is not addressed to a model was forwarded without being recorded.
    Passed {
        /// The HTTP method of the request.
        method: String,
        /// The path of the request, with keys masked.
        path: String,
        /// The HTTP status of the reply.
        status: u16,
    },
}

/// The layout of a recorded request's body, and its metadata. The request log stores this value as
/// the encoding of the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedBody {
    /// The model's specification at the time of the request.
    pub spec: ModelSpec,
    /// The layout that is needed to restore the body from its segments.
    pub layout: BodyLayout,
    /// The HTTP method of the request.
    pub method: String,
    /// The path of the request, with keys masked.
    pub path: String,
    /// The headers of the request. Only headers that cannot hold a key have their values.
    pub headers: Vec<(String, String)>,
}

impl RecordedBody {
    /// Parses the encoding of a logged request. Returns `None` for a request that haft itself sent,
    /// whose encoding has another format.
    pub fn from_encoding(encoding: &str) -> Option<Self> {
        serde_json::from_str(encoding).ok()
    }

    /// Restores the body of the request from the messages of its segments.
    pub fn join<'a>(&self, messages: impl IntoIterator<Item = &'a Message>) -> String {
        let texts: Vec<_> = messages.into_iter().map(Message::joined_text).collect();
        self.layout.join(&texts)
    }
}

/// A recorded reply. Stored in the state of its conversation under [`exchange_key`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedExchange {
    /// The HTTP status of the reply.
    pub status: u16,
    /// The headers of the reply. Only headers that cannot hold a key have their values.
    pub headers: Vec<(String, String)>,
    /// The decompressed body, with secrets masked. Empty if the body is not stored.
    pub body: String,
    /// True if `body` is encoded as base64, because it is not text. Only earlier versions stored
    /// such bodies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_base64: bool,
    /// The size of a body that is not stored, in bytes. Keys cannot be found in a body that is not
    /// text or has an unknown encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted_bytes: Option<u64>,
    /// True if the body arrived completely.
    pub is_whole: bool,
    /// The time from the request to the end of the reply, in milliseconds.
    pub milliseconds: u64,
}

/// Returns the key under which the reply to the request `number` is stored in the state of its
/// conversation.
pub fn exchange_key(number: u64) -> String {
    format!("exchange/{number}")
}

/// Converts a recorded segment, whose text is the JSON that was sent, to a message for display.
pub fn to_readable_message(message: &Message, owner: &str) -> Message {
    let mut shown = message.clone();
    let parts = entries::decode_messages(entries::owner_kind(owner), &message.joined_text());
    shown.content = parts.into_iter().flat_map(|(_, parts)| parts).collect();
    shown
}

/// The dependencies and settings of a [`TrafficRecorder`].
pub struct RecorderSetup {
    /// The store that receives the record.
    pub store: Arc<dyn Store>,
    /// The catalogue of known models and their prices.
    pub catalogue: Catalogue,
    /// Additional secrets that are masked in all recorded text.
    pub secrets: Vec<String>,
    pub clock: Arc<dyn Clock>,
    /// The source of ids for new conversations.
    pub ids: Arc<dyn IdSource>,
}

/// Records the forwarded traffic as conversations, one request or reply at a time.
pub struct TrafficRecorder {
    setup: RecorderSetup,
    masker: Masker,
    entries: EntryCache,
    conversations: Vec<ProxiedConversation>,
    open: HashMap<u64, OpenExchange>,
    waiting: VecDeque<WaitingTraffic>,
    /// The newest secrets that can differ in every request, such as cookies that a reply sets.
    recent_secrets: VecDeque<String>,
    began: Timestamp,
}

/// A request that was split into segments but not yet assigned to a conversation.
struct PreparedRequest {
    seen: SeenRequest,
    session: Option<String>,
    segments: Vec<Segment>,
    layout: BodyLayout,
    spec: ModelSpec,
}

/// A request or reply that cannot be recorded until an earlier reply has been recorded.
enum WaitingTraffic {
    Request(Box<PreparedRequest>),
    Reply(SeenReply),
}

/// A recorded request whose reply has not ended, with the data needed to explain it.
struct OpenExchange {
    conversation: ConversationId,
    number: u64,
    is_side: bool,
    spec: ModelSpec,
    comparison: RequestComparison,
    round: u32,
}

impl TrafficRecorder {
    /// Creates a recorder. The conversations of earlier runs are not loaded until [`Self::run`] is
    /// called.
    pub fn new(setup: RecorderSetup) -> Self {
        let masker = Masker::with_encoded_values(&setup.secrets);
        let began = setup.clock.now();
        Self {
            setup,
            masker,
            entries: EntryCache::default(),
            conversations: Vec::new(),
            open: HashMap::new(),
            waiting: VecDeque::new(),
            recent_secrets: VecDeque::new(),
            began,
        }
    }

    /// Records traffic until all senders are dropped. The result of each recording is passed to
    /// `observe`.
    pub async fn run(
        mut self,
        mut traffic: UnboundedReceiver<Traffic>,
        observe: impl Fn(ProxyEvent),
    ) {
        if let Err(error) = self.load_conversations().await {
            observe(ProxyEvent::NotRecorded {
                reason: error.to_string(),
            });
        }
        while let Some(seen) = traffic.recv().await {
            match seen {
                Traffic::Request(seen) => match self.prepare_request(seen) {
                    Ok(prepared) => {
                        self.record_traffic(WaitingTraffic::Request(prepared), &observe)
                            .await;
                    }
                    Err(reason) => observe(ProxyEvent::NotRecorded { reason }),
                },
                Traffic::Reply(reply) => {
                    self.record_traffic(WaitingTraffic::Reply(reply), &observe)
                        .await;
                }
                Traffic::Other {
                    method,
                    path,
                    status,
                } => observe(ProxyEvent::Passed {
                    method,
                    path,
                    status,
                }),
            }
        }
        // The replies that the waiting traffic depends on can no longer arrive.
        self.open.clear();
        for waiting in std::mem::take(&mut self.waiting) {
            self.record_traffic(waiting, &observe).await;
        }
        // The store may have deferred writes, which are not durable before it is flushed.
        if let Err(error) = self.setup.store.flush().await {
            observe(ProxyEvent::NotRecorded {
                reason: error.to_string(),
            });
        }
    }

    /// Records a request or reply, and then the traffic that waited for it. A client may send its
    /// next request before the last byte of a reply was forwarded, but the record keeps the reply
    /// first.
    async fn record_traffic(&mut self, traffic: WaitingTraffic, observe: &impl Fn(ProxyEvent)) {
        let mut queue = VecDeque::from([traffic]);
        while let Some(next) = queue.pop_front() {
            let done = match next {
                WaitingTraffic::Request(prepared) => {
                    self.record_request(prepared).await.map(|()| None)
                }
                WaitingTraffic::Reply(reply) if self.is_request_waiting(reply.exchange) => {
                    self.waiting.push_back(WaitingTraffic::Reply(reply));
                    Ok(None)
                }
                WaitingTraffic::Reply(reply) => {
                    let done = self.record_reply(reply).await;
                    queue.extend(self.waiting.drain(..));
                    done
                }
            };
            match done {
                Ok(Some(event)) => observe(event),
                Ok(None) => {}
                Err(reason) => observe(ProxyEvent::NotRecorded { reason }),
            }
        }
    }

    fn is_request_waiting(&self, exchange: u64) -> bool {
        let is_match = |waiting: &WaitingTraffic| match waiting {
            WaitingTraffic::Request(prepared) => prepared.seen.exchange == exchange,
            WaitingTraffic::Reply(_) => false,
        };
        self.waiting.iter().any(is_match)
    }

    /// Loads the newest recorded conversations, so that requests can continue them.
    async fn load_conversations(&mut self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.setup.store);
        let rows = store
            .list(haft_store::ConversationScope::Namespace(NAMESPACE))
            .await?;
        for row in rows.into_iter().take(MAX_CONTINUED) {
            let Some(last) = store.logged_requests(&row.id).await?.pop() else {
                continue;
            };
            let Some(logged) = store.logged_request(&row.id, last.number).await? else {
                continue;
            };
            let messages = store.messages(&row.id).await?;
            let metadata = store
                .get(&row.id)
                .await?
                .map(|one| one.metadata)
                .unwrap_or_default();
            self.conversations.extend(ProxiedConversation::from_stored(
                row.id, &metadata, &logged, &messages,
            ));
        }
        Ok(())
    }

    /// Splits the body of a request into segments and determines the model.
    fn prepare_request(&mut self, seen: SeenRequest) -> Result<Box<PreparedRequest>, String> {
        let body = decode_body_text(&seen.headers, &seen.body)?;
        let split = split_body(seen.api, &body).ok_or_else(|| {
            let path = mask_path(&seen.path, &self.masker);
            format!("a body for {path} is not a request")
        })?;
        let HeaderSecrets { mut keys, random } = list_header_secrets(&seen.headers);
        keys.extend(list_query_secrets(&seen.path));
        self.add_keys(keys);
        self.add_recent_secrets(random);
        let spec = self.find_model(&seen, split.model.as_deref());
        let (segments, layout) =
            self.entries
                .build_segments(&split, &self.masker, self.setup.clock.now());
        Ok(Box::new(PreparedRequest {
            seen,
            session: split.session,
            segments,
            layout,
            spec,
        }))
    }

    async fn record_request(&mut self, prepared: Box<PreparedRequest>) -> Result<(), String> {
        let session = prepared.session.as_deref();
        let found = grouping::find_conversation(
            &self.conversations,
            prepared.seen.api,
            session,
            &prepared.segments,
        );
        let index = match found {
            Some(index) => {
                let id = &self.conversations[index].id;
                if self.open.values().any(|open| open.conversation == *id) {
                    self.waiting.push_back(WaitingTraffic::Request(prepared));
                    return Ok(());
                }
                index
            }
            None => self
                .create_conversation(&prepared)
                .await
                .map_err(|error| error.to_string())?,
        };
        let exchange = prepared.seen.exchange;
        let logged = self.log_request(index, *prepared).await;
        logged
            .map(|open| drop(self.open.insert(exchange, open)))
            .map_err(|error| {
                // The stored state of the conversation is unknown now, so it is not continued.
                self.conversations.swap_remove(index);
                error.to_string()
            })
    }

    /// Creates a conversation for a request that continues none of the recorded conversations.
    async fn create_conversation(
        &mut self,
        prepared: &PreparedRequest,
    ) -> Result<usize, StoreError> {
        let PreparedRequest {
            seen,
            session,
            segments,
            spec,
            ..
        } = prepared;
        let id = ConversationId::from(self.setup.ids.new_uuid());
        let agent = find_header(&seen.headers, "user-agent")
            .and_then(|agent| agent.split(['/', ' ']).next());
        let has_tools = grouping::has_tools(segments);
        let is_side = !has_tools
            && self
                .conversations
                .iter()
                .any(|one| one.has_tools() && one.is_live);
        let mut metadata = Metadata::new();
        metadata.insert(RECORDED_BY_KEY.into(), "proxy".into());
        metadata.insert("agent".into(), agent.unwrap_or("unknown").into());
        metadata.insert("upstream".into(), seen.upstream.clone().into());
        metadata.insert("side".into(), is_side.into());
        if let Some(session) = session {
            metadata.insert("session".into(), self.masker.mask(session).into());
        }
        let name = entries::derive_conversation_title(segments)
            .unwrap_or_else(|| format!("{} request", seen.api));
        let new = NewConversation {
            metadata,
            ..NewConversation::new(id.clone(), NAMESPACE).with_name(name)
        };
        self.setup.store.create(new).await?;
        self.conversations.push(ProxiedConversation::new(
            id,
            seen.api,
            session.clone(),
            is_side,
            spec,
        ));
        Ok(self.conversations.len() - 1)
    }

    async fn log_request(
        &mut self,
        index: usize,
        prepared: PreparedRequest,
    ) -> Result<OpenExchange, StoreError> {
        let PreparedRequest {
            seen,
            segments,
            layout,
            spec,
            ..
        } = prepared;
        let now = self.setup.clock.now();
        let store = Arc::clone(&self.setup.store);
        let layout = layout.map_text(|text| self.masker.mask(text).into_owned());
        let headers = mask_headers(&seen.headers, &self.masker);
        let method = seen.method.clone();
        let path = mask_path(&seen.path, &self.masker);
        let encoding = RecordedBody {
            spec,
            layout,
            method,
            path,
            headers,
        };
        // Serialization cannot fail in practice. If it did, the empty text would not be read as an
        // encoding.
        let text = serde_json::to_string(&encoding).unwrap_or_default();
        let spec = encoding.spec;
        let conversation = &mut self.conversations[index];
        for message in conversation.take_new_messages(&segments) {
            match store.append_message(&conversation.id, &message).await {
                // A concurrent request may have stored the message already.
                Ok(()) | Err(StoreError::MessageIdTaken { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let tools = ToolSet::new(Vec::new(), &O200k);
        let request = Request {
            segments,
            tools,
            max_output_tokens: None,
            cache_key: None,
        };
        let at = now.duration_since(self.began).unsigned_abs();
        let comparison = conversation.past.compare_and_advance(
            &request,
            &spec,
            Duration::from_millis(at.as_millis() as u64),
        );
        let cause = comparison
            .broken
            .as_ref()
            .and_then(|broken| serde_json::to_value(broken.cause).ok());
        let cause = cause.and_then(|cause| cause.as_str().map(str::to_owned));
        let api = seen.api;
        let encoding = Some(text.into());
        let sent = SentRequest {
            model: spec.full_name(),
            api,
            request: Arc::new(request),
            encoding,
            cause,
        };
        let number = store.log_request(&conversation.id, sent).await?;
        let id = conversation.id.clone();
        let is_side = conversation.is_side;
        let round = conversation.rounds;
        Ok(OpenExchange {
            conversation: id,
            number,
            is_side,
            spec,
            comparison,
            round,
        })
    }

    async fn record_reply(&mut self, seen: SeenReply) -> Result<Option<ProxyEvent>, String> {
        let Some(open) = self.open.remove(&seen.exchange) else {
            return Ok(None);
        };
        let HeaderSecrets { keys, random } = list_header_secrets(&seen.headers);
        self.add_recent_secrets([keys, random].concat());
        let text = decode_body_text(&seen.headers, &seen.body);
        let reply = text.as_deref().map(reply::parse_reply).unwrap_or_default();
        let kept = self
            .store_reply(&open, &seen, text, &reply)
            .await
            .map_err(|error| error.to_string());
        let billed = reply.usage;
        let append_only = estimate_append_only_usage(&open.comparison, billed, &open.spec);
        let price = open.spec.price.filter(|_| billed.is_some());
        let units = billed
            .filter(|_| price.is_none())
            .map(|usage| compute_units(usage, append_only, &open.spec));
        let break_price = open.comparison.break_price(billed, &open.spec);
        let broken = open.comparison.broken.map(|broken| RecordedBreak {
            price: Some(break_price),
            ..broken
        });
        let explanation = RequestExplanation {
            conversation: open.conversation,
            number: open.number,
            is_side: open.is_side,
            model: open.spec.full_name(),
            status: seen.status,
            complete: reply.complete,
            tokens: open.comparison.tokens,
            broken,
            predicted: open.comparison.predicted,
            billed,
            cost: price
                .zip(billed)
                .map(|(price, usage)| price.request_cost(usage).total),
            append_only_cost: price.map(|price| price.request_cost(append_only).total),
            units,
            append_only_uncached: append_only.input + append_only.cache_write,
        };
        kept.map(|()| Some(ProxyEvent::Explained(Box::new(explanation))))
    }

    async fn store_reply(
        &mut self,
        open: &OpenExchange,
        seen: &SeenReply,
        text: Result<String, String>,
        reply: &RecordedReply,
    ) -> Result<(), StoreError> {
        let (body, omitted_bytes) = match text {
            Ok(text) => (mask_reply_body(&self.masker, &text), None),
            Err(_) => (String::new(), Some(seen.body.bytes().len() as u64)),
        };
        let exchange = RecordedExchange {
            status: seen.status,
            headers: mask_headers(&seen.headers, &self.masker),
            body,
            is_base64: false,
            omitted_bytes,
            is_whole: seen.body.is_whole,
            milliseconds: seen.elapsed.as_millis() as u64,
        };
        let store = &self.setup.store;
        let id = &open.conversation;
        store
            .set_state(id, &exchange_key(open.number), json!(exchange))
            .await?;
        if !(200..300).contains(&seen.status) || reply.parts.is_empty() {
            return Ok(());
        }
        let message = self.build_reply_message(open, seen, reply);
        if let Some(conversation) = self.conversations.iter_mut().find(|one| one.id == *id) {
            conversation.mark_answered();
        }
        store.append_message(id, &message).await
    }

    /// Converts a parsed reply to an assistant message of its conversation.
    fn build_reply_message(
        &self,
        open: &OpenExchange,
        seen: &SeenReply,
        reply: &RecordedReply,
    ) -> Message {
        let mut hasher = Hasher::default();
        hasher
            .update(open.conversation.as_str().as_bytes())
            .update(&open.number.to_le_bytes());
        let id = MessageId::from_hash(hasher.finish());
        let usage = reply.usage.unwrap_or_default();
        let cost = open.spec.price.map(|price| price.request_cost(usage));
        let mut message = Message::new(
            id,
            Role::Assistant,
            mask_parts(&self.masker, &reply.parts),
            self.setup.clock.now(),
        );
        let mut made = LlmMetadata::new(open.spec.full_name(), open.round, usage, cost);
        made.duration_ms = Some(seen.elapsed.as_millis() as u64);
        made.time_to_first_token_ms = seen.first_byte.map(|first| first.as_millis() as u64);
        message.llm_metadata = Some(made.into());
        message
    }

    /// Adds keys to the secrets that are masked in all recorded text.
    fn add_keys(&mut self, mut keys: Vec<String>) {
        keys.retain(|key| !self.setup.secrets.contains(key));
        if !keys.is_empty() {
            self.setup.secrets.extend(keys);
            self.entries = EntryCache::default();
            self.rebuild_masker();
        }
    }

    /// Adds values to the secrets that are masked in text that is recorded from now on. Text that
    /// was recorded before cannot contain them, so it stays cached.
    fn add_recent_secrets(&mut self, mut values: Vec<String>) {
        values.retain(|value| !self.recent_secrets.contains(value));
        if values.is_empty() {
            return;
        }
        self.recent_secrets.extend(values);
        let surplus = self.recent_secrets.len().saturating_sub(MAX_RECENT_SECRETS);
        self.recent_secrets.drain(..surplus);
        self.rebuild_masker();
    }

    fn rebuild_masker(&mut self) {
        let values = self.setup.secrets.iter().chain(&self.recent_secrets);
        self.masker = Masker::with_encoded_values(values);
    }

    /// Returns the specification of the model that a request names. The model is looked up under
    /// the provider whose address is the request's upstream, or else under the default provider of
    /// the API.
    fn find_model(&self, seen: &SeenRequest, model: Option<&str>) -> ModelSpec {
        let model = model
            .or_else(|| model_from_path(&seen.path))
            .unwrap_or("unknown");
        let catalogue = &self.setup.catalogue;
        let at_upstream = catalogue.providers().find(|(_, provider)| {
            let after_scheme = provider.base_url.split("//").nth(1);
            after_scheme.and_then(|rest| rest.split('/').next()) == Some(&seen.upstream)
        });
        let own = match seen.api {
            Api::OpenaiChat | Api::OpenaiResponses => "openai",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        };
        let provider = at_upstream.map_or(own, |(name, _)| name);
        let resolve = |model: &str| {
            let declared = catalogue.resolve(&format!("{provider}/{model}")).ok()?;
            Some(declared.spec)
        };
        let found = resolve(model).map(|exact| {
            // A name with a date has the properties of the name without it, unless it is declared.
            let undated = strip_date(model).filter(|_| exact.price.is_none());
            let undated = undated.and_then(resolve).map(|spec| ModelSpec {
                name: model.to_owned(),
                ..spec
            });
            undated.unwrap_or(exact)
        });
        ModelSpec {
            api: seen.api,
            ..found.unwrap_or_else(|| ModelSpec {
                provider: provider.to_owned(),
                name: model.to_owned(),
                api: seen.api,
                context_window: ModelSpec::DEFAULT_WINDOW,
                max_output_tokens: None,
                price: None,
                cache: haft_types::CacheRule::default(),
                tool_protocol: haft_types::ToolProtocol::default(),
                capabilities: haft_types::Capabilities::default(),
                profile: haft_types::ModelProfile::Full,
                tokenizer_factor: 1.0,
            })
        }
    }
}

/// Returns the decompressed text of a body. The error is a message that describes why the body
/// cannot be recorded.
fn decode_body_text(headers: &[(String, String)], body: &CapturedBody) -> Result<String, String> {
    if body.is_too_large {
        return Err("there is too much to be recorded at once".to_owned());
    }
    if body.is_empty() {
        return Ok(String::new());
    }
    let bytes = body.bytes();
    let encoding = find_header(headers, "content-encoding");
    let text = decode_body(encoding, &bytes)
        .ok_or_else(|| format!("`{}` is not read", encoding.unwrap_or_default()))?;
    String::from_utf8(text.into_owned())
        .ok()
        // Text in another encoding, in which no key would be found.
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| "a body is not text".to_owned())
}

fn mask_parts(masker: &Masker, parts: &[Part]) -> Vec<Part> {
    let mut parts = parts.to_vec();
    for part in &mut parts {
        let text = match part {
            Part::Text { text, .. } => text,
            Part::Thinking(thinking) => &mut thinking.text,
            Part::ToolCall(call) => &mut call.arguments,
            Part::ToolResult(_) | Part::Image(_) => continue,
        };
        *text = masker.mask(text).into_owned();
    }
    parts
}

/// Returns the name of a model without the date at its end, such as `-20250929` or `-2025-08-07`;
/// `None` if it ends with no date.
fn strip_date(name: &str) -> Option<&str> {
    let mut rest = name;
    let mut digits = 0;
    while digits < 8 {
        let (before, last) = rest.rsplit_once('-')?;
        if last.is_empty() || !last.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits += last.len();
        rest = before;
    }
    (digits == 8).then_some(rest)
}

fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(one, _)| one.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// Hashes a segment's text together with its kind and the number of its occurrence, so that equal
/// segments of a request get different hashes.
fn hash_occurrence(kind: SegmentKind, text: &ContentHash, occurrence: u32) -> ContentHash {
    Hasher::default()
        .update(&[kind as u8])
        .update(&text.0)
        .update(&occurrence.to_le_bytes())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strip_date_removes_whole_dates_only() {
        for (name, expected) in [
            ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
            ("claude-sonnet-4-5", None),
            ("gpt-5", None),
            ("m-123456789", None),
            ("-20250929", Some("")),
            ("model--20250929", Some("model-")),
        ] {
            assert_eq!(strip_date(name), expected, "{name}");
        }
    }
}
