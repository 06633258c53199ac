//! Exports runs as OpenTelemetry spans: a task, its turns, and their requests and tool calls.
//!
//! Spans are sent to the address in the standard environment variables, and nowhere without them. A
//! span contains names, counts and outcomes, never text, arguments or output. Nothing waits for the
//! collector: spans go through a bounded queue to a thread of the SDK. A conversation is a trace:
//! another process that continues the conversation adds to that trace.
//!
//! This crate reads no environment; the addresses come from [`set_environment`]. Read first:
//! [`record_event`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use haft_agent::{HostEnvironment, RandomIds};
use haft_types::{
    CallPhase, CompactionPhase, ContentHash, ConversationId, Cost, Event, EventBody, IdSource as _,
    Outcome, SubagentPhase, ToolShare, TurnResult, Usage,
};
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};

/// The maximum time that a process waits at its end for the collector.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The environment, which names the collector.
static ENVIRONMENT: OnceLock<HostEnvironment> = OnceLock::new();
static PROCESSOR: OnceLock<Option<BatchSpanProcessor>> = OnceLock::new();
/// The turns that run in this process, by conversation.
static TURNS: LazyLock<Mutex<HashMap<ConversationId, TurnSpans>>> = LazyLock::new(Mutex::default);

/// The ids that identify a span: that of its trace and that of the span itself.
pub type SpanIds = (TraceId, SpanId);

struct TurnSpans {
    span: SpanData,
    agent: String,
    model: String,
    request: Option<SpanData>,
    calls: HashMap<String, SpanData>,
}

/// Sets the environment whose variables name the collector. Without it, nothing is exported. Only
/// the first call in a process counts.
pub fn set_environment(environment: HostEnvironment) {
    // Fails if an environment is set already.
    drop(ENVIRONMENT.set(environment));
}

fn span_processor() -> Option<&'static BatchSpanProcessor> {
    let environment = ENVIRONMENT.get()?;
    PROCESSOR
        .get_or_init(|| start_processor(environment))
        .as_ref()
}

/// Sends the remaining spans.
pub fn flush_spans() {
    if let Some(Some(processor)) = PROCESSOR.get()
        && let Err(error @ OTelSdkError::Timeout(_)) =
            processor.shutdown_with_timeout(FLUSH_TIMEOUT)
    {
        tracing::warn!(%error, "the last traces may be lost");
    }
}

fn start_processor(environment: &HostEnvironment) -> Option<BatchSpanProcessor> {
    let set = |name: &str| environment.variable(name).filter(|value| !value.is_empty());
    let off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || set("OTEL_TRACES_EXPORTER").is_some_and(|name| name == "none");
    let endpoint =
        set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT"));
    endpoint.filter(|_| !off)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .build();
    let exporter = exporter
        .inspect_err(|error| tracing::warn!(%error, "no traces are sent"))
        .ok()?;
    let resource = Resource::builder_empty()
        .with_service_name("haft")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_detectors(&[
            Box::new(TelemetryResourceDetector),
            Box::new(EnvResourceDetector::new()),
        ])
        .with_attributes(set("OTEL_SERVICE_NAME").map(|name| KeyValue::new("service.name", name)));
    let mut processor = BatchSpanProcessor::builder(WarnOnce {
        exporter,
        warned: AtomicBool::new(false),
    })
    .build();
    processor.set_resource(&resource.build());
    Some(processor)
}

/// Exports spans, and logs only the first failure of the collector.
#[derive(Debug)]
struct WarnOnce {
    exporter: SpanExporter,
    warned: AtomicBool,
}

impl opentelemetry_sdk::trace::SpanExporter for WarnOnce {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        if let Err(error) = &sent
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, "traces are lost; runs go on, and this is said once");
        }
        sent
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// An attempt of a worker at a task of the queue.
pub struct TaskAttempt<'a> {
    /// The task's id in the queue.
    pub task: i64,
    /// The number of this attempt, starting at 1.
    pub attempt: i64,
    pub labels: &'a [String],
    pub outcome: &'a str,
    /// The stable name of the failure, if the attempt failed.
    pub error: Option<&'a str>,
    pub cost_usd: Option<f64>,
}

/// Returns the span ids of one attempt at a task, by its conversation and the epoch of its lease.
/// Attempts of other workers are further spans of the trace.
pub fn task_span_ids(conversation: &str, epoch: i64) -> SpanIds {
    let own = ContentHash::from_content(format!("{conversation} {epoch}").as_bytes());
    (
        derive_trace_id(conversation),
        SpanId::from(u128::from_be_bytes(own.0) as u64),
    )
}

/// Records the span of an attempt at a task, which took `lasted` and ends now.
pub fn record_task(ids: SpanIds, lasted: Duration, attempt: &TaskAttempt<'_>) {
    let mut span = open_span(
        "task".to_owned(),
        SpanKind::Consumer,
        (ids.0, SpanId::INVALID),
        Vec::new(),
    );
    span.span_context = build_span_context(ids);
    span.start_time -= lasted;
    let labels = attempt.labels.iter().cloned().map(StringValue::from);
    let mut attributes = vec![
        KeyValue::new("haft.task.id", attempt.task),
        KeyValue::new("haft.task.attempt", attempt.attempt),
        KeyValue::new(
            "haft.task.labels",
            Value::Array(Array::String(labels.collect())),
        ),
        KeyValue::new("haft.outcome", attempt.outcome.to_owned()),
    ];
    attributes.extend(
        attempt
            .cost_usd
            .map(|usd| KeyValue::new("haft.cost_usd", usd)),
    );
    close_span(span, attempt.error, attributes);
}

/// Records an event of a run. `task` returns the span ids of the task that the run belongs to, if
/// any.
pub fn record_event(event: &Event, task: impl FnOnce() -> Option<SpanIds>) {
    if span_processor().is_none() {
        return;
    }
    let id = &event.conversation_id;
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let root = || task().unwrap_or_else(|| (derive_trace_id(id.as_str()), SpanId::INVALID));
    match &event.body {
        EventBody::Conversation { model, .. } => {
            drop(turns.insert(id.clone(), begin_turn(event, model, root())));
        }
        EventBody::Subagent {
            phase: SubagentPhase::Started,
            parent,
            call_id,
            model,
            ..
        } => {
            let above = turns
                .get(parent)
                .map(|turn| span_ids(turn.calls.get(call_id).unwrap_or(&turn.span)));
            turns.insert(
                id.clone(),
                begin_turn(event, model, above.unwrap_or_else(root)),
            );
        }
        EventBody::Subagent {
            result: Some(result),
            ..
        } => end_turn(turns.remove(id), result),
        EventBody::Result(result) => end_turn(turns.remove(id), result),
        body => {
            if let Some(turn) = turns.get_mut(id) {
                turn.record_event_body(body);
            }
        }
    }
}

impl TurnSpans {
    fn record_event_body(&mut self, body: &EventBody) {
        match body {
            EventBody::Budget { .. }
            | EventBody::Compaction {
                phase: CompactionPhase::Started,
                ..
            } => {
                self.request = Some(self.open_request_span());
            }
            EventBody::Retry { delay_ms, .. } => {
                if let Some(request) = self.request.take() {
                    close_span(
                        request,
                        Some("retried"),
                        build_model_attributes("chat", &self.model),
                    );
                    let next = self.request.insert(self.open_request_span());
                    next.start_time += Duration::from_millis(*delay_ms);
                }
            }
            EventBody::Usage {
                model,
                usage,
                cost,
                tools,
                ..
            } => {
                // A request of a tool is reported only after it has ended, so it has no open span.
                let request = self
                    .request
                    .take()
                    .unwrap_or_else(|| self.open_request_span());
                close_span(
                    request,
                    None,
                    [
                        build_model_attributes("chat", model),
                        build_usage_attributes(usage, cost.as_ref()),
                        build_tool_usage_attributes(tools),
                        vec![KeyValue::new("gen_ai.agent.name", self.agent.clone())],
                    ]
                    .concat(),
                );
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Finished,
                ..
            } => {
                self.calls.insert(id.clone(), self.open_call_span(id, name));
            }
            EventBody::ToolResult {
                id,
                name,
                status,
                error,
                ..
            } => {
                let span = self
                    .calls
                    .remove(id)
                    .unwrap_or_else(|| self.open_call_span(id, name));
                let status = format!("{status:?}").to_lowercase();
                let code = error.as_ref().map(|error| error.code.as_str());
                close_span(span, code, vec![KeyValue::new("haft.tool.status", status)]);
            }
            _ => {}
        }
    }

    fn open_request_span(&self) -> SpanData {
        let name = self
            .model
            .split_once('/')
            .map_or(&*self.model, |(_, name)| name);
        open_span(
            format!("chat {name}"),
            SpanKind::Client,
            span_ids(&self.span),
            Vec::new(),
        )
    }

    fn open_call_span(&self, id: &str, name: &str) -> SpanData {
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", name.to_owned()),
            KeyValue::new("gen_ai.tool.call.id", id.to_owned()),
        ];
        open_span(
            format!("execute_tool {name}"),
            SpanKind::Internal,
            span_ids(&self.span),
            attributes,
        )
    }
}

fn begin_turn(event: &Event, model: &str, above: SpanIds) -> TurnSpans {
    let mut attributes = build_model_attributes("invoke_agent", model);
    attributes.push(KeyValue::new("gen_ai.agent.name", event.agent.clone()));
    attributes.push(KeyValue::new(
        "gen_ai.conversation.id",
        event.conversation_id.to_string(),
    ));
    let span = open_span(
        format!("invoke_agent {}", event.agent),
        SpanKind::Internal,
        above,
        attributes,
    );
    TurnSpans {
        span,
        agent: event.agent.clone(),
        model: model.to_owned(),
        request: None,
        calls: HashMap::new(),
    }
}

/// Ends the spans of a turn. Requests and calls that are still open get the status of the turn.
fn end_turn(turn: Option<TurnSpans>, result: &TurnResult) {
    let Some(turn) = turn else { return };
    let failed =
        matches!(result.outcome, Outcome::Failed | Outcome::Exhausted).then_some(&*result.code);
    if let Some(request) = turn.request {
        close_span(request, failed, build_model_attributes("chat", &turn.model));
    }
    for call in turn.calls.into_values() {
        close_span(call, failed, Vec::new());
    }
    let mut attributes = build_usage_attributes(&result.usage, result.cost.as_ref());
    attributes.push(KeyValue::new("haft.outcome", result.outcome.name()));
    attributes.push(KeyValue::new("haft.code", result.code.clone()));
    close_span(turn.span, failed, attributes);
}

fn open_span(
    name: String,
    kind: SpanKind,
    (trace, above): SpanIds,
    attributes: Vec<KeyValue>,
) -> SpanData {
    let now = SystemTime::now();
    SpanData {
        span_context: build_span_context((
            trace,
            SpanId::from(RandomIds.new_uuid().as_u128() as u64),
        )),
        parent_span_id: above,
        parent_span_is_remote: false,
        span_kind: kind,
        name: name.into(),
        start_time: now,
        end_time: now,
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("haft").build(),
    }
}

fn build_span_context((trace, span): SpanIds) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::NONE)
}

fn span_ids(span: &SpanData) -> SpanIds {
    (span.span_context.trace_id(), span.span_context.span_id())
}

/// Ends a span and hands it to the exporter. `error` is a stable name for the failure, and becomes
/// the status.
fn close_span(mut span: SpanData, error: Option<&str>, attributes: Vec<KeyValue>) {
    span.end_time = SystemTime::now();
    span.attributes.extend(attributes);
    if let Some(code) = error {
        span.attributes
            .push(KeyValue::new("error.type", code.to_owned()));
        span.status = Status::error(code.to_owned());
    }
    if let Some(processor) = span_processor() {
        processor.on_end(span);
    }
}

/// Returns the trace id of a conversation: the conversation's id if that is a UUID, or else a hash
/// of it.
fn derive_trace_id(conversation: &str) -> TraceId {
    let id = uuid::Uuid::parse_str(conversation).map(uuid::Uuid::into_bytes);
    TraceId::from_bytes(id.unwrap_or_else(|_| ContentHash::from_content(conversation.as_bytes()).0))
}

fn build_model_attributes(operation: &'static str, model: &str) -> Vec<KeyValue> {
    let (provider, name) = model.split_once('/').unwrap_or(("", model));
    vec![
        KeyValue::new("gen_ai.operation.name", operation),
        KeyValue::new("gen_ai.provider.name", provider.to_owned()),
        KeyValue::new("gen_ai.request.model", name.to_owned()),
    ]
}

/// Returns the share of each tool's results in the input of a request, as lists of equal length.
fn build_tool_usage_attributes(tools: &[ToolShare]) -> Vec<KeyValue> {
    if tools.is_empty() {
        return Vec::new();
    }
    let counts = |of: fn(&ToolShare) -> u64| {
        let counts = tools.iter().map(|tool| of(tool).cast_signed());
        Value::Array(Array::I64(counts.collect()))
    };
    let names = tools.iter().map(|tool| tool.name.clone().into());
    vec![
        KeyValue::new(
            "haft.tools.names",
            Value::Array(Array::String(names.collect())),
        ),
        KeyValue::new("haft.tools.cache_read", counts(|tool| tool.cached_input)),
        KeyValue::new("haft.tools.cache_creation", counts(|tool| tool.cache_write)),
        KeyValue::new("haft.tools.uncached", counts(|tool| tool.input)),
    ]
}

fn build_usage_attributes(usage: &Usage, cost: Option<&Cost>) -> Vec<KeyValue> {
    let counts = [
        ("gen_ai.usage.input_tokens", usage.all_input()),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_input),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write,
        ),
        ("gen_ai.usage.output_tokens", usage.output),
    ];
    let counts = counts
        .into_iter()
        .map(|(key, count)| KeyValue::new(key, count.cast_signed()));
    counts
        .chain(cost.map(|cost| KeyValue::new("haft.cost_usd", cost.total)))
        .collect()
}
