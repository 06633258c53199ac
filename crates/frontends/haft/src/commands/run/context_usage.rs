//! The answer to a client of Claude's SDKs that asks how full the context window is.

use haft_engine::Session;
use haft_types::{Layer, ToolSpec};
use serde_json::{Value, json};

/// The prefix of the names of tools that belong to an MCP server.
const SERVER_TOOL_PREFIX: &str = "mcp__";

/// Describes the next request in the format of `get_context_usage`. Returns `None` if no request
/// can be built.
pub(super) fn build_context_usage(session: &Session) -> Option<Value> {
    let next = session.preview_next_request()?;
    let budget = &next.account.budget;
    let tools = &next.request.tools;
    let used = budget.used_tokens();
    // Layers have the model's own count of tokens; tools and documents have haft's count.
    let scale = used as f64 / next.request.estimated_tokens().max(1) as f64;
    let to_model_tokens = |counted: u32| (f64::from(counted) * scale).round() as u64;
    let tool_tokens = to_model_tokens(tools.tokens);
    let layer_tokens = |wanted: Layer| {
        budget
            .layers
            .iter()
            .filter(|layer| layer.layer == wanted)
            .map(|layer| layer.tokens)
            .sum::<u64>()
    };
    let categories = [
        (
            "System prompt",
            layer_tokens(Layer::System).saturating_sub(tool_tokens),
        ),
        ("Tools", tool_tokens),
        ("Memory files", layer_tokens(Layer::Documents)),
        (
            "Messages",
            layer_tokens(Layer::History) + layer_tokens(Layer::Current),
        ),
        ("Reminders", layer_tokens(Layer::Reminders)),
    ];
    let categories: Vec<_> = categories
        .into_iter()
        .filter(|(_, tokens)| *tokens > 0)
        .map(|(name, tokens)| json!({"name": name, "tokens": tokens, "color": ""}))
        .collect();
    let documents: Vec<_> = session
        .documents()
        .map(|(heading, _, tokens)| {
            json!({"path": heading, "type": "Project", "tokens": to_model_tokens(tokens)})
        })
        .collect();
    let all_bytes: usize = tools.specs.iter().map(count_bytes).sum();
    let server_tools: Vec<_> = tools
        .specs
        .iter()
        .filter_map(|spec| {
            let (server, _) = spec
                .name
                .strip_prefix(SERVER_TOOL_PREFIX)?
                .split_once("__")?;
            let share = count_bytes(spec) as f64 / all_bytes.max(1) as f64;
            let tokens = (tool_tokens as f64 * share).round() as u64;
            Some(json!({"name": spec.name, "serverName": server, "tokens": tokens, "isLoaded": true}))
        })
        .collect();
    Some(json!({
        "categories": categories,
        "totalTokens": used,
        "maxTokens": budget.max_input_tokens(),
        "rawMaxTokens": budget.window,
        "percentage": used as f64 * 100.0 / budget.window.max(1) as f64,
        "model": session.model().full_name(),
        "isAutoCompactEnabled": true,
        "memoryFiles": documents,
        "mcpTools": server_tools,
        "agents": [],
        "gridRows": [],
    }))
}

/// Returns the size of a tool's specification. Its tokens are counted only together with those of
/// the other tools.
fn count_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}
