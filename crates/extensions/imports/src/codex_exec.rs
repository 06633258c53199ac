//! Reads the event stream of `codex exec --json`. The completed items contain the conversation.
//!
//! The stream does not include the prompt; a placeholder message takes its place. Commands, file
//! changes, and MCP calls are items that contain both call and result.

use haft_types::{Envelope, Origin, Part, Role, Thinking, ToolCall};
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, build_reply_metadata, get_text, parse_json_lines,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, codex};

const PROMPT_PLACEHOLDER: &str = "[The stream does not hold the prompt.]";

pub(crate) fn read_stream(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    let mut about = ConversationHeader::default();
    for event in parse_json_lines(source.text, &mut builder.skipped) {
        match get_text(&event, "type") {
            Some("thread.started") => about.id = get_text(&event, "thread_id").map(str::to_owned),
            Some("turn.started") => {
                let prompt = builder
                    .new_message(Role::User, vec![Part::from_text(PROMPT_PLACEHOLDER)], None)
                    .with_origin(Origin::Engine);
                builder.push(prompt);
            }
            Some("item.completed") => {
                push_item(&mut builder, event.get("item").unwrap_or(&Value::Null));
            }
            // The counts are those of the whole turn, and are stored with its last reply.
            Some("turn.completed") => {
                let usage = event.get("usage").map(codex::read_usage);
                if let Some(reply) = builder.last_reply_mut() {
                    reply.llm_metadata = build_reply_metadata(None, usage);
                }
            }
            Some("item.started" | "item.updated") => {
                push_plan(&mut builder, event.get("item").unwrap_or(&Value::Null));
            }
            Some("turn.failed" | "error") => {}
            _ => builder.skipped += 1,
        }
    }
    builder.finish(ImportFormat::CodexExec.name(), about)
}

fn push_item(builder: &mut ConversationBuilder, item: &Value) {
    let text = |key: &str| get_text(item, key).unwrap_or_default();
    let part = match text("type") {
        "agent_message" | "plan" => Part::from_text(text("text")),
        "reasoning" => Part::Thinking(Thinking {
            text: text("text").to_owned(),
            ..Thinking::default()
        }),
        "command_execution" => {
            let code = item.get("exit_code").and_then(Value::as_i64);
            let refused = code.is_none() && matches!(text("status"), "failed" | "declined");
            let output =
                Some(text("aggregated_output")).filter(|output| !refused || !output.is_empty());
            let output = output.unwrap_or(text("status"));
            let done = if code.map_or(!refused, |code| code == 0) {
                Envelope::success(output)
            } else {
                Envelope::failure("failed", output)
            };
            let done = code.into_iter().fold(done, |done, code| {
                done.with_data(json!({ "exit_code": code }))
            });
            return push_call(
                builder,
                item,
                "shell",
                &json!({ "command": text("command") }),
                done,
            );
        }
        "file_change" => {
            let changes = item
                .get("changes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let line = |change: &Value| {
                let mark = match get_text(change, "kind")? {
                    "add" => "Add",
                    "delete" => "Delete",
                    _ => "Update",
                };
                Some(format!("*** {mark} File: {}\n", get_text(change, "path")?))
            };
            let patch: String = changes.filter_map(line).collect();
            let failed = text("status") == "failed";
            let done = if failed {
                Envelope::failure("failed", "failed")
            } else {
                Envelope::success("Success.")
            };
            return push_call(
                builder,
                item,
                "apply_patch",
                &json!({ "input": patch }),
                done,
            );
        }
        "mcp_tool_call" => {
            let result = item.get("result").unwrap_or(&Value::Null);
            let pieces = result
                .get("content")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let said: Vec<&str> = pieces.filter_map(|piece| get_text(piece, "text")).collect();
            let name = format!("mcp__{}__{}", text("server"), text("tool"));
            let arguments = item.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let problem = item
                .get("error")
                .and_then(|error| get_text(error, "message"));
            let done = match problem.or((text("status") == "failed").then_some("failed")) {
                Some(problem) => Envelope::failure("failed", problem),
                None => Envelope::success(said.join("\n")),
            };
            return push_call(builder, item, &name, &arguments, done);
        }
        // The stream does not include search results.
        "web_search" => {
            return push_call(
                builder,
                item,
                "web_search",
                &json!({ "query": text("query") }),
                Envelope::success(""),
            );
        }
        // The list was already read from its other events, `item.started` and `item.updated`.
        "todo_list" => return,
        _ => return builder.skipped += 1,
    };
    builder.extend_reply(part);
}

/// Adds one version of a to-do list as a call of the tool `update_plan`.
fn push_plan(builder: &mut ConversationBuilder, item: &Value) {
    if get_text(item, "type") != Some("todo_list") {
        return;
    }
    let step_of = |item: &Value| {
        let status = if item.get("completed") == Some(&true.into()) {
            "completed"
        } else {
            "pending"
        };
        json!({ "step": item.get("text"), "status": status })
    };
    let steps = item
        .get("items")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let plan = json!({ "plan": steps.map(step_of).collect::<Vec<_>>() });
    let id = format!(
        "{}_{}",
        get_text(item, "id").unwrap_or_default(),
        builder.message_count()
    );
    push_call(
        builder,
        &json!({ "id": id }),
        "update_plan",
        &plan,
        Envelope::success(""),
    );
}

/// Adds a tool call, followed by its result.
fn push_call(
    builder: &mut ConversationBuilder,
    item: &Value,
    name: &str,
    arguments: &Value,
    done: Envelope,
) {
    let Some(id) = get_text(item, "id").map(str::to_owned) else {
        return builder.skipped += 1;
    };
    let call = ToolCall {
        id: id.clone(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
        signature: None,
    };
    builder.extend_reply(Part::ToolCall(call));
    let content = vec![builder.build_result_part(&id, Some(name), done)];
    let message = builder.new_message(Role::Tool, content, None);
    builder.push(message);
}
