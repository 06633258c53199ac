//! Tests the codecs against fixtures and properties. To add a case, add a file under `fixtures/`.

mod prefix;
mod replies;
mod requests;

use std::path::PathBuf;
use std::sync::Arc;

use haft_types::{
    Api, CacheRule, Capabilities, Entry, Layer, LlmMetadata, Message, MessageId, ModelSpec, Part,
    Request, Role, Segment, Timestamp, TokenCounter, ToolSet, ToolSpec,
};
use serde_json::Map;

use super::Settings;

/// A counter for tests in which token counts are irrelevant.
struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder)
}

fn settings(api: Api) -> Settings {
    let rule = match api {
        Api::Anthropic => haft_types::CacheKind::Anthropic,
        Api::OpenaiChat | Api::OpenaiResponses | Api::Gemini => haft_types::CacheKind::Automatic,
    };
    let spec = ModelSpec {
        provider: "mock".into(),
        name: "test".into(),
        api,
        context_window: 200_000,
        max_output_tokens: None,
        price: None,
        cache: CacheRule {
            rule,
            ..CacheRule::default()
        },
        tool_protocol: haft_types::ToolProtocol::Native,
        capabilities: Capabilities::default(),
        tokenizer_factor: 1.0,
        profile: haft_types::ModelProfile::Full,
        bought_ttl: None,
    };
    Settings {
        full_name: spec.full_name(),
        spec,
        extra: Map::new(),
        omitted: Vec::new(),
        stream: true,
        is_openai: false,
        own_turns: true,
    }
}

fn message(role: Role, content: Vec<Part>, maker: Option<&str>) -> Message {
    let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
    let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
    let mut message = Message::new(id, role, content, at);
    message.llm_metadata = maker.map(|name| {
        LlmMetadata {
            model_name: name.to_owned(),
            ..LlmMetadata::default()
        }
        .into()
    });
    message
}

fn segment(message: Message, boundary: bool) -> Segment {
    Segment {
        layer: Layer::History,
        owner: "test",
        entry: Entry::new(message, &NoCount),
        boundary,
    }
}

fn request(segments: Vec<Segment>, tools: Vec<ToolSpec>) -> Request {
    Request {
        segments,
        tools: tools_of(tools),
        max_output_tokens: None,
        cache_key: None,
    }
}

fn tools_of(tools: Vec<ToolSpec>) -> Arc<ToolSet> {
    ToolSet::new(tools, &NoCount)
}
