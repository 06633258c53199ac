//! Converts events to the messages that Claude Code's public SDKs read (`--compat claude`).
//!
//! Invariant: every line has one of the types these SDKs know (`system`, `assistant`, `user`,
//! `result`, `stream_event`); events without a counterpart are left out. A reply becomes a message
//! only when it is complete. While it arrives, its text is sent as `stream_event`s.

mod partial;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haft_types::{
    CallPhase, CompactionPhase, Event, EventBody, IdSource, Outcome, PermissionMode, ToolError,
    ToolStatus, TurnResult, Usage,
};
use serde_json::{Map, Value, json};

use crate::{CLAUDE_CODE_VERSION, ClaudeCall, ToolNaming};
use partial::PartialReply;

/// The parts of the first message that haft's events do not contain.
#[derive(Clone, Debug, Default)]
pub struct Introduction {
    pub tools: Vec<String>,
    pub mode: PermissionMode,
    /// Selects whether the client uses haft's or Claude Code's names for tools.
    pub naming: ToolNaming,
    /// The available slash commands.
    pub commands: Vec<String>,
    /// The sub-agents that can be started.
    pub agents: Vec<String>,
    /// The available skills.
    pub skills: Vec<String>,
    /// The MCP servers of the command line, and whether each is connected.
    pub servers: Vec<(String, bool)>,
}

/// Selects whether the text of a reply is sent while it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialMessages {
    /// Sends the text as it arrives, as `stream_event`s.
    Send,
    /// Sends complete messages only.
    Omit,
}

/// Converts the events of one session to messages.
pub struct ClaudeMessages {
    ids: Box<dyn IdSource>,
    introduction: Introduction,
    session: String,
    model: String,
    /// The folder to which relative paths in calls refer.
    cwd: PathBuf,
    /// The blocks of the reply that is arriving.
    draft: Vec<ReplyBlock>,
    partial: Option<PartialReply>,
    calls: HashMap<String, ToolUse>,
    denials: Vec<Value>,
    /// The size of the last request in tokens.
    window: u64,
    /// The size of the model's window in tokens.
    window_size: u64,
    /// The usage of each model since the last result, sub-agents included.
    models: BTreeMap<String, ModelUse>,
    /// The stop reason of the last reply, if there was one since the last result.
    stop_reason: Option<&'static str>,
    /// The time when the last request was sent.
    requested_at: Option<Instant>,
    api_time: Duration,
}

/// The usage of one model.
#[derive(Debug, Default)]
struct ModelUse {
    usage: Usage,
    /// The cost in USD of the requests whose price is known.
    cost: f64,
    /// The size of the model's window in tokens; 0 if only sub-agents used the model.
    window_size: u64,
}

impl ModelUse {
    fn to_json(&self) -> Value {
        json!({
            "inputTokens": self.usage.input,
            "outputTokens": self.usage.output,
            "cacheReadInputTokens": self.usage.cached_input,
            "cacheCreationInputTokens": self.usage.cache_write,
            "webSearchRequests": 0,
            "costUSD": self.cost,
            "contextWindow": self.window_size,
        })
    }
}

/// A block of a reply.
#[derive(Clone, Debug, PartialEq)]
enum ReplyBlock {
    Text(String),
    Thinking(String),
    Call(ToolUse),
}

#[derive(Clone, Debug, PartialEq)]
struct ToolUse {
    id: String,
    name: String,
    input: Value,
}

impl ReplyBlock {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            // Events do not contain the provider's signatures.
            Self::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": ""}),
            Self::Call(ToolUse { id, name, input }) => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        }
    }
}

impl ClaudeMessages {
    /// Creates the converter for one session.
    pub fn new(
        ids: Box<dyn IdSource>,
        introduction: Introduction,
        partial: PartialMessages,
    ) -> Self {
        let partial = match partial {
            PartialMessages::Send => Some(PartialReply::default()),
            PartialMessages::Omit => None,
        };
        Self {
            ids,
            introduction,
            session: String::new(),
            model: String::new(),
            cwd: PathBuf::new(),
            draft: Vec::new(),
            partial,
            calls: HashMap::new(),
            denials: Vec::new(),
            window: 0,
            window_size: 0,
            models: BTreeMap::new(),
            stop_reason: None,
            requested_at: None,
            api_time: Duration::ZERO,
        }
    }

    /// Returns the messages for an event, in order. Most events produce no message.
    pub fn convert_event(&mut self, event: &Event) -> Vec<Value> {
        let is_main = event.agent == "main";
        if let EventBody::Usage {
            model, usage, cost, ..
        } = &event.body
        {
            let used = self.models.entry(model.clone()).or_default();
            used.usage += *usage;
            used.cost += cost.map_or(0.0, |cost| cost.total);
            if is_main {
                used.window_size = self.window_size;
            }
        }
        // The result of the call that started a sub-agent contains the sub-agent's work.
        if !is_main {
            return Vec::new();
        }
        event.conversation_id.as_str().clone_into(&mut self.session);
        let pieces = self.partial.as_mut().map_or_else(Vec::new, |partial| {
            partial.convert_event(&event.body, &self.model, self.introduction.naming)
        });
        let mut lines: Vec<_> = pieces
            .into_iter()
            .map(|piece| self.build_message("stream_event", json!({"event": piece})))
            .collect();
        lines.extend(self.convert_body(&event.body));
        lines
    }

    fn convert_body(&mut self, body: &EventBody) -> Option<Value> {
        match body {
            EventBody::Conversation { model, cwd, .. } => {
                self.model.clone_from(model);
                self.cwd = cwd.into();
                Some(self.build_init_message(cwd))
            }
            EventBody::Text { text } => {
                match self.draft.last_mut() {
                    Some(ReplyBlock::Text(before)) => before.push_str(text),
                    _ => self.draft.push(ReplyBlock::Text(text.clone())),
                }
                None
            }
            EventBody::Thinking { text } => {
                match self.draft.last_mut() {
                    Some(ReplyBlock::Thinking(before)) => before.push_str(text),
                    _ => self.draft.push(ReplyBlock::Thinking(text.clone())),
                }
                None
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Finished,
                arguments,
                raw,
            } => {
                let unreadable = || json!({"raw": raw.clone().unwrap_or_default()});
                let input = arguments.clone().unwrap_or_else(unreadable);
                let ClaudeCall { name, input } = self
                    .introduction
                    .naming
                    .translate_call(name, &input, &self.cwd);
                let call = ToolUse {
                    id: id.clone(),
                    name,
                    input,
                };
                self.calls.insert(id.clone(), call.clone());
                self.draft.push(ReplyBlock::Call(call));
                None
            }
            EventBody::Usage { usage, model, .. } => {
                self.api_time += self
                    .requested_at
                    .take()
                    .map_or(Duration::ZERO, |asked| asked.elapsed());
                self.build_assistant_message(model, usage)
            }
            EventBody::ToolResult {
                id,
                status,
                text,
                error,
                ..
            } => Some(self.build_tool_result_message(id, *status, text, error.as_ref())),
            EventBody::Window { tokens, window, .. } => {
                self.window = *tokens;
                self.window_size = *window;
                self.requested_at = Some(Instant::now());
                None
            }
            EventBody::Compaction {
                phase: CompactionPhase::Finished,
                ..
            } => {
                let metadata = json!({"trigger": "auto", "pre_tokens": self.window});
                Some(self.build_message(
                    "system",
                    json!({"subtype": "compact_boundary", "compact_metadata": metadata}),
                ))
            }
            EventBody::Retry {
                attempt,
                limit,
                delay_ms,
                reason,
            } => {
                // The text of a failed reply is discarded.
                self.draft.clear();
                let facts = json!({"subtype": "api_retry", "attempt": attempt, "max_retries": limit, "retry_delay_ms": delay_ms, "error": reason});
                Some(self.build_message("system", facts))
            }
            EventBody::Error { code, message } => Some(self.build_message(
                "system",
                json!({"subtype": "error", "code": code, "message": message}),
            )),
            EventBody::Notice { code, message } => Some(self.build_message(
                "system",
                json!({"subtype": "notice", "code": code, "message": message}),
            )),
            EventBody::Result(result) => Some(self.build_result_message(result)),
            // Events without a counterpart.
            EventBody::ToolCall { .. }
            | EventBody::ToolProgress { .. }
            | EventBody::Budget { .. }
            | EventBody::Reminders { .. }
            | EventBody::PrefixBreak { .. }
            | EventBody::Pruning { .. }
            | EventBody::Compaction { .. }
            | EventBody::Question { .. }
            | EventBody::Plan { .. }
            | EventBody::Completion { .. }
            | EventBody::FileChanged { .. }
            | EventBody::Subagent { .. }
            | EventBody::BackgroundTask { .. } => None,
        }
    }

    fn build_init_message(&self, cwd: &str) -> Value {
        let naming = self.introduction.naming;
        let mut tools: Vec<_> = self
            .introduction
            .tools
            .iter()
            .map(|name| naming.tool_name(name))
            .collect();
        tools.dedup();
        let server = |(name, connected): &(String, bool)| {
            let status = if *connected { "connected" } else { "pending" };
            json!({"name": name, "status": status})
        };
        let servers: Vec<_> = self.introduction.servers.iter().map(server).collect();
        let facts = json!({
            "subtype": "init",
            "claude_code_version": CLAUDE_CODE_VERSION,
            "cwd": cwd,
            "tools": tools,
            "mcp_servers": servers,
            "model": self.model,
            "permissionMode": claude_mode_name(self.introduction.mode),
            "slash_commands": self.introduction.commands,
            "agents": self.introduction.agents,
            "skills": self.introduction.skills,
            "plugins": [],
            "apiKeySource": "user",
            "output_style": "default",
        });
        self.build_message("system", facts)
    }

    fn build_assistant_message(&mut self, model: &str, usage: &Usage) -> Option<Value> {
        let draft = std::mem::take(&mut self.draft);
        if draft.is_empty() {
            return None;
        }
        let content: Vec<_> = draft.iter().map(ReplyBlock::to_json).collect();
        let has_calls = draft
            .iter()
            .any(|block| matches!(block, ReplyBlock::Call(_)));
        let stop_reason = if has_calls { "tool_use" } else { "end_turn" };
        self.stop_reason = Some(stop_reason);
        let message = json!({
            "id": format!("msg_{}", self.ids.new_uuid().simple()),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": usage_json(usage),
        });
        Some(self.build_message(
            "assistant",
            json!({"message": message, "parent_tool_use_id": null}),
        ))
    }

    fn build_tool_result_message(
        &mut self,
        id: &str,
        status: ToolStatus,
        text: &str,
        error: Option<&ToolError>,
    ) -> Value {
        let denied = error.is_some_and(|error| {
            ["permission_denied", "outside_workspace"].contains(&error.code.as_str())
        });
        if denied && let Some(call) = self.calls.get(id) {
            let denial =
                json!({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input});
            self.denials.push(denial);
        }
        let failed = status == ToolStatus::Error;
        let block =
            json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed});
        self.build_message(
            "user",
            json!({"message": {"role": "user", "content": [block]}, "parent_tool_use_id": null}),
        )
    }

    fn build_result_message(&mut self, result: &TurnResult) -> Value {
        self.draft.clear();
        let subtype = result_subtype(result.outcome, &result.code);
        let failed = subtype != "success";
        let text = if failed && result.text.is_empty() {
            &result.message
        } else {
            &result.text
        };
        let last_stop = self.stop_reason.take();
        // If the model reports the end of the task with a call, the last stop reason is that of a
        // call.
        let stop_reason = if failed { last_stop } else { Some("end_turn") };
        let model_usage: Map<String, Value> = std::mem::take(&mut self.models)
            .into_iter()
            .map(|(model, used)| (model, used.to_json()))
            .collect();
        let mut facts = json!({
            "subtype": subtype,
            "is_error": failed,
            "stop_reason": stop_reason,
            "modelUsage": model_usage,
            "duration_ms": result.duration_ms,
            "duration_api_ms": u64::try_from(self.api_time.as_millis()).unwrap_or(u64::MAX),
            "num_turns": result.turns,
            "result": text,
            // The SDKs require a number.
            "total_cost_usd": result.cost.map_or(0.0, |cost| cost.total),
            "cost_known": result.cost.is_some(),
            "usage": usage_json(&result.usage),
            "permission_denials": std::mem::take(&mut self.denials),
            "outcome": result.outcome,
            "code": result.code,
            "message": result.message,
        });
        if failed {
            facts["errors"] = json!([result.message]);
        }
        if let Some(output) = &result.structured_output {
            facts["structured_output"] = output.clone();
        }
        self.api_time = Duration::ZERO;
        self.build_message("result", facts)
    }

    /// Returns a message of type `kind` with `fields`, a new id and the session id.
    fn build_message(&self, kind: &str, fields: Value) -> Value {
        let mut line = json!({"type": kind});
        if let (Value::Object(line), Value::Object(facts)) = (&mut line, fields) {
            line.extend(facts);
            line.insert("session_id".into(), self.session.as_str().into());
            line.insert("uuid".into(), self.ids.new_uuid().to_string().into());
        }
        line
    }
}

/// Returns the result subtype for the outcome of a turn. A turn that waits for the user counts as a
/// success, with the question as its text.
fn result_subtype(outcome: Outcome, code: &str) -> &'static str {
    match (outcome, code) {
        (Outcome::Completed | Outcome::Waiting, _) => "success",
        (Outcome::Exhausted, "max_turns") => "error_max_turns",
        (Outcome::Exhausted, "max_budget") => "error_max_budget_usd",
        (Outcome::Failed, "schema") => "error_max_structured_output_retries",
        (Outcome::Exhausted | Outcome::Failed | Outcome::Aborted, _) => "error_during_execution",
    }
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "output_tokens": usage.output,
    })
}

pub(crate) fn claude_mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => "plan",
        PermissionMode::Ask => "default",
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Auto => "auto",
        PermissionMode::Yolo => "bypassPermissions",
    }
}
