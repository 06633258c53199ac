//! Reads and writes ATIF, the trajectory format of Harbor: one JSON object whose steps hold what
//! the user, the agent and the system said, with the results of an agent's calls in its step.
//!
//! ```text
//! {"schema_version": "ATIF-v1.7", "session_id": "…", "agent": {"name": "haft", "version": "…"},
//!  "steps": [{"step_id": 1, "source": "user", "message": "fix it"},
//!            {"step_id": 2, "source": "agent", "message": "", "tool_calls": […], "observation": {…}}]}
//! ```
//!
//! Everything that ATIF has no field for is written under `extra`, from which it is read again.

use std::collections::HashMap;

use haft_store::ConversationDocument;
use haft_types::{
    Envelope, Image, LlmMetadata, Message, Metadata, Origin, Part, Role, Thinking, ToolCall,
    ToolResult, ToolStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chat::image_from_url;
use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

/// The version that is written. Later versions add only audio.
const VERSION: &str = "ATIF-v1.7";
/// The media types of images that the format allows.
const IMAGE_TYPES: [(&str, &str); 4] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
];

#[derive(Serialize, Deserialize)]
struct Trajectory {
    schema_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(rename = "trajectory_id", skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    agent: TrajectoryAgent,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    final_metrics: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent_trajectories: Option<Vec<Self>>,
}

#[derive(Serialize, Deserialize)]
struct TrajectoryAgent {
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Step {
    #[serde(rename = "step_id")]
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Value>,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_name: Option<String>,
    message: StepContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Call>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Metadata>,
}

/// The text of a step or a result, or texts and images.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StepContent {
    Text(String),
    Pieces(Vec<ContentPiece>),
}

impl Default for StepContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

#[derive(Default, Serialize, Deserialize)]
struct ContentPiece {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Media>,
}

#[derive(Serialize, Deserialize)]
struct Media {
    media_type: String,
    path: String,
}

#[derive(Serialize, Deserialize)]
struct Call {
    tool_call_id: String,
    function_name: String,
    arguments: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Metadata>,
}

#[derive(Default, Serialize, Deserialize)]
struct Observation {
    results: Vec<ObservedResult>,
}

#[derive(Serialize, Deserialize)]
struct ObservedResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    source_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<StepContent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Metadata>,
}

#[derive(Default, Serialize, Deserialize)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<Metadata>,
}

/// Reads a trajectory, and each trajectory of a sub-agent that is embedded in it.
pub(crate) fn read_trajectories(
    source: SourceText<'_>,
) -> Result<Vec<ImportedConversation>, ImportError> {
    let root: Trajectory = serde_json::from_str(source.text)?;
    let mut waiting = vec![root];
    let mut read = Vec::new();
    while let Some(mut trajectory) = waiting.pop() {
        waiting.extend(trajectory.subagent_trajectories.take().unwrap_or_default());
        read.push(import_trajectory(trajectory, source)?);
    }
    Ok(read)
}

/// True if the value is a trajectory in this format.
pub(crate) fn is_trajectory(value: &Value) -> bool {
    value
        .get("schema_version")
        .and_then(Value::as_str)
        .is_some_and(|version| version.starts_with("ATIF-"))
}

fn import_trajectory(
    trajectory: Trajectory,
    source: SourceText<'_>,
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    builder.set_start(trajectory.steps.iter().find_map(read_step_time));
    for (index, step) in trajectory.steps.into_iter().enumerate() {
        let model = step.model_name.clone();
        let model = model.or_else(|| trajectory.agent.model_name.clone());
        import_step(&mut builder, step, model.as_deref()).map_err(|problem| {
            ImportError::Message {
                number: index + 1,
                problem,
            }
        })?;
    }
    let mut metadata = Metadata::new();
    metadata.insert("agent".into(), trajectory.agent.name.into());
    metadata.extend(trajectory.notes.map(|notes| ("notes".into(), notes.into())));
    let name = trajectory
        .extra
        .and_then(|mut extra| take_text(&mut extra, "name"));
    builder.finish(
        ImportFormat::Atif.name(),
        ConversationHeader {
            // The trajectories of sub-agents may share the session of the main agent.
            id: trajectory.id.or(trajectory.session_id),
            name,
            metadata,
        },
    )
}

fn read_step_time(step: &Step) -> Option<haft_types::Timestamp> {
    step.timestamp.as_ref().and_then(time::parse_timestamp)
}

fn import_step(
    builder: &mut ConversationBuilder,
    step: Step,
    model: Option<&str>,
) -> Result<(), String> {
    let at = read_step_time(&step);
    let mut extra = step.extra.unwrap_or_default();
    let parts = read_content(step.message);
    let calls = step.tool_calls.unwrap_or_default();
    let message = match step.source.as_str() {
        "agent" => {
            let thinking = step.reasoning_content.filter(|text| !text.is_empty());
            let thinking = thinking.map(|text| {
                Part::Thinking(Thinking {
                    text,
                    ..Thinking::default()
                })
            });
            let parts = thinking.into_iter().chain(parts);
            let parts = parts.chain(calls.iter().map(read_call)).collect();
            let mut message = builder.new_message(Role::Assistant, parts, at);
            message.llm_metadata = build_reply_metadata(model, step.metrics.map(read_metrics));
            message
        }
        "user" | "system" => match extra.get("role").and_then(Value::as_str) {
            Some("summary") => builder.new_message(Role::Summary, parts, at),
            None if step.source == "system" => builder.new_instructions(parts, at),
            Some("system") => builder.new_message(Role::System, parts, at),
            Some(_) | None => builder.new_message(Role::User, parts, at),
        },
        other => return Err(format!("`source` is `{other}`, not user, agent or system")),
    };
    let origin = extra.remove("origin");
    let origin = origin.and_then(|origin| serde_json::from_value(origin).ok());
    builder.push(match origin {
        Some(origin) if message.role == Role::User => message.with_origin(origin),
        Some(_) | None => message,
    });
    import_results(builder, step.observation.unwrap_or_default(), &calls, at);
    Ok(())
}

/// Adds the results of a step. Results that name no call belong to the calls of the step in order,
/// if there is one for each; otherwise the agent acted without calls.
fn import_results(
    builder: &mut ConversationBuilder,
    observation: Observation,
    calls: &[Call],
    at: Option<haft_types::Timestamp>,
) {
    let results = observation.results;
    let is_in_order = results.len() == calls.len()
        && results.iter().all(|result| result.source_call_id.is_none());
    for (index, result) in results.into_iter().enumerate() {
        let mut extra = result.extra.unwrap_or_default();
        let own_time = extra.get("timestamp").and_then(time::parse_timestamp);
        let at = own_time.or(at);
        let parts = result.content.map(read_content).unwrap_or_default();
        let by_order = calls.get(index).filter(|_| is_in_order);
        let call = result
            .source_call_id
            .or_else(|| take_text(&mut extra, "tool_call_id"))
            .or_else(|| by_order.map(|call| call.tool_call_id.clone()));
        let message = match call {
            Some(call) => {
                let (text, images) = split_images(parts);
                let envelope = read_envelope(text, &mut extra);
                let name = take_text(&mut extra, "tool_name");
                let result = builder.build_result_part(&call, name.as_deref(), envelope);
                let content = std::iter::once(result).chain(images).collect();
                builder.new_message(Role::Tool, content, at)
            }
            None => builder
                .new_message(Role::User, parts, at)
                .with_origin(Origin::Engine),
        };
        builder.push(message);
    }
}

/// Returns the text of all text parts, and the other parts.
fn split_images(parts: Vec<Part>) -> (String, Vec<Part>) {
    let mut text = String::new();
    let mut images = Vec::new();
    for part in parts {
        match part {
            Part::Text { text: piece, .. } => text.push_str(&piece),
            Part::Image(_) | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {
                images.push(part);
            }
        }
    }
    (text, images)
}

fn read_envelope(text: String, extra: &mut Metadata) -> Envelope {
    let status = extra.remove("status");
    match status.and_then(|status| serde_json::from_value(status).ok()) {
        Some(ToolStatus::Error) => {
            let code = take_text(extra, "error_code").unwrap_or_else(|| "error".to_owned());
            Envelope::failure(code, text)
        }
        Some(status) => Envelope {
            status,
            ..Envelope::success(text)
        },
        None => Envelope::success(text),
    }
}

fn read_content(content: StepContent) -> Vec<Part> {
    match content {
        StepContent::Text(text) if text.is_empty() => Vec::new(),
        StepContent::Text(text) => vec![Part::from_text(text)],
        StepContent::Pieces(pieces) => pieces
            .into_iter()
            .map(|piece| match piece.source {
                Some(media) => image_from_url(&media.path),
                None => Part::from_text(piece.text.unwrap_or_default()),
            })
            .collect(),
    }
}

fn read_call(call: &Call) -> Part {
    let written = call
        .extra
        .as_ref()
        .and_then(|extra| extra.get("arguments")?.as_str());
    Part::ToolCall(ToolCall {
        id: call.tool_call_id.clone(),
        name: call.function_name.clone(),
        arguments: written.map_or_else(|| call.arguments.to_string(), str::to_owned),
        signature: None,
    })
}

fn read_metrics(metrics: Metrics) -> ReportedUsage {
    let extra = metrics.extra.unwrap_or_default();
    let count = |key: &str| extra.get(key).and_then(Value::as_u64).unwrap_or(0);
    let cached = metrics.cached_tokens.unwrap_or(0);
    let written = count("cache_write_tokens");
    ReportedUsage {
        input: metrics
            .prompt_tokens
            .unwrap_or(0)
            .saturating_sub(cached + written),
        cached,
        written,
        output: metrics.completion_tokens.unwrap_or(0),
        reasoning: count("reasoning_tokens"),
    }
}

fn take_text(extra: &mut Metadata, key: &str) -> Option<String> {
    match extra.remove(key) {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    }
}

/// A conversation in ATIF.
pub struct AtifTrajectory {
    /// The trajectory as JSON.
    pub json: Value,
    /// The images to be written beside the trajectory: the relative path of each, and the image.
    pub images: Vec<(String, Image)>,
    /// The number of images that are replaced by a text.
    pub omitted_images: usize,
}

/// Converts a conversation to ATIF. Returns `None` if it has no messages, which the format does not
/// allow. Images are saved under `image_folder`; without a folder, texts replace them.
pub fn convert_to_atif(
    document: &ConversationDocument,
    version: &str,
    image_folder: Option<&str>,
) -> serde_json::Result<Option<AtifTrajectory>> {
    let mut writer = TrajectoryWriter {
        image_folder,
        ..TrajectoryWriter::default()
    };
    for message in &document.messages {
        writer.add_message(message);
    }
    if writer.steps.is_empty() {
        return Ok(None);
    }
    let id = document.id.to_string();
    let mut extra = Metadata::new();
    extra.insert("name".into(), document.name.clone().into());
    extra.extend(document.metadata.clone());
    let trajectory = Trajectory {
        schema_version: VERSION.to_owned(),
        session_id: Some(id.clone()),
        id: Some(id),
        agent: TrajectoryAgent {
            name: "haft".to_owned(),
            version: version.to_owned(),
            model_name: writer.last_model(),
        },
        final_metrics: Some(writer.sum_metrics()),
        steps: writer.steps,
        notes: None,
        extra: Some(extra),
        subagent_trajectories: None,
    };
    Ok(Some(AtifTrajectory {
        json: serde_json::to_value(trajectory)?,
        images: writer.images,
        omitted_images: writer.omitted_images,
    }))
}

/// Collects the steps of a trajectory.
#[derive(Default)]
struct TrajectoryWriter<'a> {
    steps: Vec<Step>,
    /// The index of the step of each call, by call id.
    call_steps: HashMap<String, usize>,
    image_folder: Option<&'a str>,
    images: Vec<(String, Image)>,
    omitted_images: usize,
}

impl TrajectoryWriter<'_> {
    fn add_message(&mut self, message: &Message) {
        if message.role == Role::Tool {
            self.add_result(message);
            return;
        }
        let mut step = Step {
            number: self.steps.len() as u64 + 1,
            timestamp: Some(message.created_at.to_string().into()),
            message: self.write_content(&message.content, message.joined_text()),
            ..Step::default()
        };
        let mut extra = Metadata::new();
        extra.insert("message_id".into(), message.message_id.to_string().into());
        match message.role {
            Role::Assistant => {
                "agent".clone_into(&mut step.source);
                step.reasoning_content = join_thinking(message);
                self.add_calls(&mut step, message);
                if let Some(made) = &message.llm_metadata {
                    step.model_name = Some(made.model_name.clone()).filter(|name| !name.is_empty());
                    step.metrics = Some(write_metrics(made));
                }
            }
            Role::User if message.origin() == Origin::Engine => {
                "system".clone_into(&mut step.source);
            }
            Role::User => "user".clone_into(&mut step.source),
            Role::System | Role::Summary | Role::Tool => "system".clone_into(&mut step.source),
        }
        // The source is that of the role, except for these.
        if message.role == Role::Summary || (message.role == Role::User && step.source == "system")
        {
            extra.insert("role".into(), message.role.to_string().into());
        }
        if message.role == Role::User && message.origin() != Origin::User {
            extra.insert("origin".into(), json!(message.origin()));
        }
        step.extra = Some(extra);
        self.steps.push(step);
    }

    fn add_calls(&mut self, step: &mut Step, message: &Message) {
        let index = self.steps.len();
        let calls: Vec<_> = message.tool_calls().map(write_call).collect();
        for call in &calls {
            self.call_steps.insert(call.tool_call_id.clone(), index);
        }
        step.tool_calls = Some(calls).filter(|calls| !calls.is_empty());
    }

    /// Adds a tool message to the step of its call. If there is none, it becomes a step of its own.
    fn add_result(&mut self, message: &Message) {
        let Some(result) = message.tool_results().next() else {
            return;
        };
        let mut extra = write_result_extra(message, result);
        let step = self.call_steps.get(&result.tool_call_id).copied();
        if step.is_none() {
            extra.insert("tool_call_id".into(), result.tool_call_id.clone().into());
        }
        let observed = ObservedResult {
            source_call_id: step.map(|_| result.tool_call_id.clone()),
            content: Some(self.write_content(&message.content, result.envelope.text.clone())),
            extra: Some(extra),
        };
        let index = step.unwrap_or_else(|| {
            self.steps.push(Step {
                number: self.steps.len() as u64 + 1,
                timestamp: Some(message.created_at.to_string().into()),
                source: "system".to_owned(),
                ..Step::default()
            });
            self.steps.len() - 1
        });
        let observation = self.steps[index].observation.get_or_insert_default();
        observation.results.push(observed);
    }

    /// Returns `text` and the images of `parts` as the content of a step or result.
    fn write_content(&mut self, parts: &[Part], text: String) -> StepContent {
        let images: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Image(image) => Some(image),
                Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => {
                    None
                }
            })
            .collect();
        if images.is_empty() {
            return StepContent::Text(text);
        }
        let text = ContentPiece {
            kind: "text".to_owned(),
            text: Some(text),
            source: None,
        };
        let pieces = images.into_iter().map(|image| self.write_image(image));
        let pieces: Vec<_> = pieces.collect();
        StepContent::Pieces(std::iter::once(text).chain(pieces).collect())
    }

    fn write_image(&mut self, image: &Image) -> ContentPiece {
        let known = IMAGE_TYPES
            .iter()
            .find(|(media_type, _)| *media_type == image.media_type);
        let (Some(folder), Some((_, extension))) = (self.image_folder, known) else {
            self.omitted_images += 1;
            return ContentPiece {
                kind: "text".to_owned(),
                text: Some(format!("[image: {}]", image.media_type)),
                source: None,
            };
        };
        let path = format!("{folder}/{}.{extension}", self.images.len() + 1);
        self.images.push((path.clone(), image.clone()));
        ContentPiece {
            kind: "image".to_owned(),
            text: None,
            source: Some(Media {
                media_type: image.media_type.clone(),
                path,
            }),
        }
    }

    fn last_model(&self) -> Option<String> {
        self.steps
            .iter()
            .rev()
            .find_map(|step| step.model_name.clone())
    }

    /// Returns the totals of all steps. The total cost is absent if the cost of a step is unknown.
    fn sum_metrics(&self) -> Value {
        let metrics: Vec<_> = self
            .steps
            .iter()
            .filter_map(|step| step.metrics.as_ref())
            .collect();
        let sum = |count: fn(&Metrics) -> Option<u64>| -> u64 {
            metrics.iter().filter_map(|metrics| count(metrics)).sum()
        };
        let mut total = json!({
            "total_prompt_tokens": sum(|metrics| metrics.prompt_tokens),
            "total_completion_tokens": sum(|metrics| metrics.completion_tokens),
            "total_cached_tokens": sum(|metrics| metrics.cached_tokens),
            "total_steps": self.steps.len(),
        });
        let costs: Option<Vec<f64>> = metrics.iter().map(|metrics| metrics.cost_usd).collect();
        if let Some(costs) = costs.filter(|costs| !costs.is_empty()) {
            total["total_cost_usd"] = costs.iter().sum::<f64>().into();
        }
        total
    }
}

fn join_thinking(message: &Message) -> Option<String> {
    let texts: Vec<_> = message
        .content
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(thinking) => Some(thinking.text.as_str()),
            Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => None,
        })
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn write_call(call: &ToolCall) -> Call {
    let object = serde_json::from_str::<Metadata>(&call.arguments).ok();
    // The format allows only objects as arguments.
    let extra = object.is_none().then(|| {
        let mut extra = Metadata::new();
        extra.insert("arguments".into(), call.arguments.clone().into());
        extra
    });
    Call {
        tool_call_id: call.id.clone(),
        function_name: call.name.clone(),
        arguments: Value::Object(object.unwrap_or_default()),
        extra,
    }
}

fn write_result_extra(message: &Message, result: &ToolResult) -> Metadata {
    let mut extra = Metadata::new();
    extra.insert("message_id".into(), message.message_id.to_string().into());
    extra.insert("timestamp".into(), message.created_at.to_string().into());
    extra.insert("tool_name".into(), result.name.clone().into());
    extra.insert("status".into(), json!(result.envelope.status));
    let error = result.envelope.error.as_ref();
    extra.extend(error.map(|error| ("error_code".into(), error.code.clone().into())));
    extra
}

fn write_metrics(made: &LlmMetadata) -> Metrics {
    let costs = [
        made.input_cost,
        made.output_cost,
        made.cached_input_cost,
        made.cache_write_cost,
    ];
    let is_priced = costs.iter().any(Option::is_some);
    let mut extra = Metadata::new();
    for (key, count) in [
        ("cache_write_tokens", made.cache_write_tokens),
        ("reasoning_tokens", made.reasoning_tokens),
    ] {
        if count > 0 {
            extra.insert(key.into(), count.into());
        }
    }
    Metrics {
        prompt_tokens: Some(made.input_tokens + made.cached_input_tokens + made.cache_write_tokens),
        completion_tokens: Some(made.output_tokens),
        cached_tokens: Some(made.cached_input_tokens),
        cost_usd: is_priced.then(|| costs.iter().flatten().sum()),
        extra: Some(extra).filter(|extra| !extra.is_empty()),
    }
}

#[cfg(test)]
mod tests;
