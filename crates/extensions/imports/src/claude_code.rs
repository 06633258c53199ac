//! Reads the session files of Claude Code: one part of a message per line, each with the id of its
//! parent line.
//!
//! A session that was rewound has several branches; the one that ends with the newest message is
//! read. A reply of the model spans several lines, one per content block, with a common message id.
//! Sub-agents (side chains) are separate conversations and are skipped.

use std::collections::{HashMap, HashSet};

use haft_types::{
    Envelope, Image, Message, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, cline};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionLine<'a> {
    r#type: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    /// The id of the line that logically precedes this line, if the earlier lines were replaced by
    /// a summary.
    logical_parent_uuid: Option<String>,
    timestamp: Option<Timestamp>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    summary: Option<String>,
}

#[derive(Deserialize)]
struct ApiMessage<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct ClaudeCodeBlock<'a> {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    content: Option<Value>,
    #[serde(default)]
    is_error: bool,
    source: Option<Value>,
}

/// A line of the session with a user or assistant message, together with the parsed message.
struct SessionMessage<'a> {
    line: SessionLine<'a>,
    message: ApiMessage<'a>,
    blocks: Vec<(ClaudeCodeBlock<'a>, &'a str)>,
}

pub(crate) fn read_session(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    read_session_as(source, ImportFormat::ClaudeCode, None)
}

/// Reads a session in Claude Code's line format that was converted from `format`. `system` is the
/// system prompt.
pub(crate) fn read_session_as(
    source: SourceText<'_>,
    format: ImportFormat,
    system: Option<&str>,
) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    if let Some(system) = system {
        let instructions = builder.new_instructions(vec![Part::from_text(system)], None);
        builder.push(instructions);
    }
    let mut about = ConversationHeader::default();
    let mut lines = Vec::new();
    for text in source.text.lines().filter(|line| !line.trim().is_empty()) {
        // The last line of a killed session may be truncated.
        let Ok(line) = serde_json::from_str::<SessionLine<'_>>(text) else {
            builder.skipped += 1;
            continue;
        };
        update_header(&mut about, text, &line);
        lines.push(line);
    }
    let wanted = find_newest_branch(&lines);
    let said = parse_messages(lines, &wanted, &mut builder.skipped);
    let mut replies = ReplyBuilder::default();
    for said in group_replies(select_branch_messages(said)) {
        if said.line.r#type == "assistant" {
            replies.add_line(&mut builder, said);
        } else {
            replies.finish_reply(&mut builder);
            push_user_line(&mut builder, &said);
        }
    }
    replies.finish_reply(&mut builder);
    builder.finish(format.name(), about)
}

/// Updates the id, name, and metadata of the session from a line.
fn update_header(about: &mut ConversationHeader, text: &str, line: &SessionLine<'_>) {
    if let Some(summary) = &line.summary {
        about.name = Some(summary.clone());
    }
    if about.id.is_none() && !line.is_sidechain {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        about.id = value
            .get("sessionId")
            .and_then(Value::as_str)
            .map(str::to_owned);
        about.metadata = select_metadata(
            &value,
            &[
                ("cwd", "cwd"),
                ("gitBranch", "git_branch"),
                ("version", "version"),
            ],
        );
    }
}

/// Returns the indices of the lines on the branch that leads from the first to the newest message.
/// If a parent line is missing, the previous message in the file is used as the parent.
fn find_newest_branch(lines: &[SessionLine<'_>]) -> HashSet<usize> {
    let places: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(place, line)| Some((line.uuid.as_deref()?, place)))
        .collect();
    let is_said = |line: &SessionLine<'_>| line.message.is_some() && !line.is_sidechain;
    let mut at = lines.iter().rposition(is_said);
    let mut wanted = HashSet::new();
    while let Some(place) = at {
        if !wanted.insert(place) {
            break;
        }
        let line = &lines[place];
        let parent = line
            .parent_uuid
            .as_deref()
            .or(line.logical_parent_uuid.as_deref());
        at = match parent {
            None => None,
            Some(parent) => places
                .get(parent)
                .copied()
                .or_else(|| lines[..place].iter().rposition(is_said)),
        };
    }
    wanted
}

fn parse_messages<'a>(
    lines: Vec<SessionLine<'a>>,
    wanted: &HashSet<usize>,
    skipped: &mut usize,
) -> Vec<(SessionMessage<'a>, bool)> {
    let mut all = Vec::new();
    for (place, line) in lines.into_iter().enumerate() {
        if line.is_sidechain || !matches!(line.r#type.as_str(), "user" | "assistant") {
            continue;
        }
        let Some(raw) = line.message else { continue };
        match serde_json::from_str::<ApiMessage<'a>>(raw.get()) {
            Ok(message) => {
                let blocks = parse_blocks(message.content, skipped);
                all.push((
                    SessionMessage {
                        line,
                        message,
                        blocks,
                    },
                    wanted.contains(&place),
                ));
            }
            Err(_) => *skipped += 1,
        }
    }
    all
}

fn parse_blocks<'a>(
    content: Option<&'a RawValue>,
    skipped: &mut usize,
) -> Vec<(ClaudeCodeBlock<'a>, &'a str)> {
    let Some(raw) = content.map(RawValue::get) else {
        return Vec::new();
    };
    if raw.starts_with('"') {
        let Ok(text) = serde_json::from_str::<String>(raw) else {
            return Vec::new();
        };
        let block = ClaudeCodeBlock {
            r#type: "text".into(),
            text: Some(text),
            thinking: None,
            signature: None,
            id: None,
            name: None,
            input: None,
            tool_use_id: None,
            content: None,
            is_error: false,
            source: None,
        };
        return vec![(block, raw)];
    }
    let Ok(raws) = serde_json::from_str::<Vec<&'a RawValue>>(raw) else {
        return Vec::new();
    };
    let mut blocks = Vec::with_capacity(raws.len());
    for raw in raws {
        match serde_json::from_str(raw.get()) {
            Ok(block) => blocks.push((block, raw.get())),
            Err(_) => *skipped += 1,
        }
    }
    blocks
}

/// Returns the messages of the newest branch. Further blocks of the branch's replies, and the
/// results of their calls, are included even if they are on other branches, because parallel calls
/// are stored on separate branches.
fn select_branch_messages(all: Vec<(SessionMessage<'_>, bool)>) -> Vec<SessionMessage<'_>> {
    let mut replies = HashSet::new();
    let mut calls = HashSet::new();
    for (said, _) in all.iter().filter(|(_, wanted)| *wanted) {
        replies.extend(said.message.id.clone());
    }
    let of_reply = |said: &SessionMessage<'_>| {
        said.message
            .id
            .as_ref()
            .is_some_and(|id| replies.contains(id))
    };
    for (said, wanted) in &all {
        if *wanted || of_reply(said) {
            calls.extend(said.blocks.iter().filter_map(|(block, _)| block.id.clone()));
        }
    }
    let keep = |(said, wanted): &(SessionMessage<'_>, bool)| {
        *wanted
            || of_reply(said)
            || said.blocks.iter().any(|(block, _)| {
                block
                    .tool_use_id
                    .as_ref()
                    .is_some_and(|id| calls.contains(id))
            })
    };
    let kept: Vec<bool> = all.iter().map(keep).collect();
    all.into_iter()
        .zip(kept)
        .filter_map(|((said, _), keep)| keep.then_some(said))
        .collect()
}

/// Moves all lines of a reply to the position of its first line. In the file, the lines may be
/// separated by the result of a call that ran while the reply was still streaming.
fn group_replies(mut all: Vec<SessionMessage<'_>>) -> Vec<SessionMessage<'_>> {
    let mut firsts: HashMap<String, usize> = HashMap::new();
    let places: Vec<usize> = all
        .iter()
        .enumerate()
        .map(|(place, said)| match &said.message.id {
            Some(id) => *firsts.entry(id.clone()).or_insert(place),
            None => place,
        })
        .collect();
    let mut keyed: Vec<_> = places.into_iter().zip(all.drain(..)).collect();
    keyed.sort_by_key(|(place, _)| *place);
    keyed.into_iter().map(|(_, said)| said).collect()
}

/// Joins consecutive lines that belong to one reply into one message.
#[derive(Default)]
struct ReplyBuilder {
    open: Option<(Option<String>, Message)>,
}

impl ReplyBuilder {
    fn add_line(&mut self, builder: &mut ConversationBuilder, said: SessionMessage<'_>) {
        let parts: Vec<Part> = said
            .blocks
            .iter()
            .filter_map(|(block, raw)| read_reply_part(block, raw))
            .collect();
        builder.skipped += said.blocks.len() - parts.len();
        let usage = said.message.usage.as_ref().map(read_usage);
        let name = |model: &str| {
            if model.contains('/') {
                model.to_owned()
            } else {
                format!("anthropic/{model}")
            }
        };
        let made = build_reply_metadata(said.message.model.as_deref().map(name).as_deref(), usage);
        match &mut self.open {
            Some((id, message)) if id.is_some() && *id == said.message.id => {
                message.content.extend(parts);
                message.llm_metadata = made.or(message.llm_metadata.take());
            }
            Some(_) | None => {
                self.finish_reply(builder);
                let mut message = builder.new_message(Role::Assistant, parts, said.line.timestamp);
                message.llm_metadata = made;
                self.open = Some((said.message.id, message));
            }
        }
    }

    fn finish_reply(&mut self, builder: &mut ConversationBuilder) {
        if let Some((_, message)) = self.open.take() {
            builder.push(message);
        }
    }
}

fn read_reply_part(block: &ClaudeCodeBlock<'_>, raw: &str) -> Option<Part> {
    match block.r#type.as_str() {
        "text" => Some(Part::from_text(block.text.clone()?)),
        "thinking" => {
            let text = block.thinking.clone()?;
            let signature = block.signature.clone();
            Some(Part::Thinking(Thinking {
                text,
                signature,
                raw: None,
            }))
        }
        "redacted_thinking" => Some(Part::Thinking(Thinking {
            raw: Some(raw.to_owned()),
            ..Thinking::default()
        })),
        "tool_use" => Some(Part::ToolCall(ToolCall {
            id: block.id.clone()?,
            name: block.name.clone()?,
            arguments: block.input.map_or("{}", RawValue::get).to_owned(),
            signature: None,
        })),
        _ => None,
    }
}

fn read_usage(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: get_count(usage, "input_tokens"),
        cached: get_count(usage, "cache_read_input_tokens"),
        written: get_count(usage, "cache_creation_input_tokens"),
        output: get_count(usage, "output_tokens"),
        reasoning: 0,
    }
}

/// Adds one message for each result in the line, then one message with the user's text.
fn push_user_line(builder: &mut ConversationBuilder, said: &SessionMessage<'_>) {
    let mut words = Vec::new();
    for (block, _) in &said.blocks {
        match (block.r#type.as_str(), &block.tool_use_id) {
            ("tool_result", Some(call)) => {
                let content = build_result_parts(builder, call, block);
                let message = builder.new_message(Role::Tool, content, said.line.timestamp);
                builder.push(message);
            }
            ("text", _) => words.extend(
                block
                    .text
                    .clone()
                    .filter(|text| !text.is_empty())
                    .map(Part::from_text),
            ),
            ("image", _) => words.extend(block.source.as_ref().and_then(read_image)),
            _ => builder.skipped += 1,
        }
    }
    let added =
        matches!(words.first(), Some(Part::Text { text, .. }) if cline::is_added_by_cline(text));
    let answered =
        |part: &Part| matches!(part, Part::Text { text, .. } if cline::is_user_answer(text));
    let added = added && !words.iter().any(answered);
    let mut message = builder.new_message(Role::User, words, said.line.timestamp);
    if said.line.is_meta || said.line.is_compact_summary || added {
        message = message.with_origin(Origin::Engine);
    }
    if said.line.is_compact_summary {
        message.metadata.extend(Metadata::from_iter([(
            "compact_summary".to_owned(),
            Value::Bool(true),
        )]));
    }
    builder.push(message);
}

fn build_result_parts(
    builder: &ConversationBuilder,
    call: &str,
    block: &ClaudeCodeBlock<'_>,
) -> Vec<Part> {
    let mut text = String::new();
    let mut images = Vec::new();
    match &block.content {
        Some(Value::String(whole)) => text.push_str(whole),
        Some(Value::Array(pieces)) => {
            for piece in pieces {
                match piece.get("type").and_then(Value::as_str) {
                    Some("image") => images.extend(piece.get("source").and_then(read_image)),
                    _ => text.push_str(
                        piece
                            .get("text")
                            .and_then(Value::as_str)
                            .unwrap_or_default(),
                    ),
                }
            }
        }
        Some(_) | None => {}
    }
    let envelope = if block.is_error {
        Envelope::failure("failed", text)
    } else {
        Envelope::success(text)
    };
    let mut content = vec![builder.build_result_part(call, None, envelope)];
    content.append(&mut images);
    content
}

fn read_image(source: &Value) -> Option<Part> {
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    match text("type") {
        Some("base64") => Some(Part::Image(Image {
            media_type: text("media_type")?.to_owned(),
            data: text("data")?.to_owned(),
        })),
        _ => text("url").map(|url| Part::from_text(format!("[picture at {url}]"))),
    }
}
