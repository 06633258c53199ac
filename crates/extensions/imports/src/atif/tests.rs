use haft_types::Timestamp;

use super::*;
use crate::read_conversations;

fn read(text: &str) -> Vec<ImportedConversation> {
    let now = Timestamp::from_second(1_794_736_800).unwrap();
    read_conversations(SourceText { text, now }, None).unwrap()
}

fn read_document(value: &Value) -> ConversationDocument {
    read(&value.to_string()).remove(0).document
}

/// A conversation with every kind of message that haft stores.
fn conversation() -> ConversationDocument {
    let message = |n: u32, rest: Value| {
        let mut message = json!({
            "message_id": format!("00000000-0000-4000-8000-{n:012}"),
            "created_at": format!("2026-11-19T10:00:{n:02}Z"),
            "metadata": {},
        });
        let fields = message.as_object_mut().unwrap();
        fields.extend(rest.as_object().unwrap().clone());
        message
    };
    let result = |call: &str, rest: Value| {
        let mut part = json!({
            "type": "tool_result", "tool_call_id": call, "name": "read_file",
            "status": "success", "text": "one",
        });
        part.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        part
    };
    serde_json::from_value(json!({
        "id": "c1", "name": "Fix it", "description": "", "metadata": {},
        "created_at": "2026-11-19T10:00:01Z", "updated_at": "2026-11-19T10:00:09Z",
        "messages": [
            message(1, json!({"role": "summary", "content": "Earlier rounds."})),
            message(2, json!({"role": "user", "content": [
                {"type": "text", "text": "fix it"},
                {"type": "image", "media_type": "image/png", "data": "iVBORw=="}]})),
            message(3, json!({"role": "assistant", "content": [
                {"type": "thinking", "text": "Look first."},
                {"type": "text", "text": "I look."},
                {"type": "tool_call", "id": "a", "name": "read_file", "arguments": {"path": "x"}},
                {"type": "tool_call", "id": "b", "name": "read_file", "arguments": "{\"path\": "}],
                "llm_metadata": {"model_name": "p/m", "input_tokens": 10, "output_tokens": 5,
                    "cached_input_tokens": 100, "cache_write_tokens": 20, "reasoning_tokens": 2,
                    "input_cost": 0.25, "output_cost": 0.5, "conversation_round": 1}})),
            message(4, json!({"role": "tool", "content": [result("b", json!({
                "status": "error", "text": "not an object",
                "error": {"code": "invalid_arguments", "message": "not an object"}}))]})),
            message(5, json!({"role": "assistant", "content": "Wait."})),
            message(6, json!({"role": "tool", "content": [result("a", json!({}))]})),
            message(7, json!({"role": "user", "content": "Go on.", "metadata": {"origin": "engine"}})),
            message(8, json!({"role": "user", "content": "and y", "metadata": {"origin": "joined"}})),
            message(9, json!({"role": "tool", "content": [result("gone", json!({}))]})),
        ],
    }))
    .unwrap()
}

#[test]
fn convert_to_atif_writes_every_message() {
    let written = convert_to_atif(&conversation(), "1.2.3", Some("c1/images"))
        .unwrap()
        .unwrap();
    let extra = |n: u32| json!({"message_id": format!("00000000-0000-4000-8000-{n:012}")});
    let with = |n: u32, more: Value| {
        let mut extra = extra(n);
        extra
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        extra
    };
    let expected = json!({
        "schema_version": "ATIF-v1.7", "session_id": "c1", "trajectory_id": "c1",
        "agent": {"name": "haft", "version": "1.2.3", "model_name": "p/m"},
        "extra": {"name": "Fix it"},
        "steps": [
            {"step_id": 1, "timestamp": "2026-11-19T10:00:01Z", "source": "system",
                "message": "Earlier rounds.", "extra": with(1, json!({"role": "summary"}))},
            {"step_id": 2, "timestamp": "2026-11-19T10:00:02Z", "source": "user", "message": [
                {"type": "text", "text": "fix it"},
                {"type": "image", "source": {"media_type": "image/png", "path": "c1/images/1.png"}}],
                "extra": extra(2)},
            {"step_id": 3, "timestamp": "2026-11-19T10:00:03Z", "source": "agent",
                "model_name": "p/m", "message": "I look.", "reasoning_content": "Look first.",
                "tool_calls": [
                    {"tool_call_id": "a", "function_name": "read_file", "arguments": {"path": "x"}},
                    {"tool_call_id": "b", "function_name": "read_file", "arguments": {},
                        "extra": {"arguments": "{\"path\": "}}],
                "observation": {"results": [
                    {"source_call_id": "b", "content": "not an object", "extra": with(4, json!({
                        "timestamp": "2026-11-19T10:00:04Z", "tool_name": "read_file",
                        "status": "error", "error_code": "invalid_arguments"}))},
                    {"source_call_id": "a", "content": "one", "extra": with(6, json!({
                        "timestamp": "2026-11-19T10:00:06Z", "tool_name": "read_file",
                        "status": "success"}))}]},
                "metrics": {"prompt_tokens": 130, "completion_tokens": 5, "cached_tokens": 100,
                    "cost_usd": 0.75, "extra": {"cache_write_tokens": 20, "reasoning_tokens": 2}},
                "extra": extra(3)},
            {"step_id": 4, "timestamp": "2026-11-19T10:00:05Z", "source": "agent",
                "message": "Wait.", "extra": extra(5)},
            {"step_id": 5, "timestamp": "2026-11-19T10:00:07Z", "source": "system",
                "message": "Go on.", "extra": with(7, json!({"role": "user", "origin": "engine"}))},
            {"step_id": 6, "timestamp": "2026-11-19T10:00:08Z", "source": "user",
                "message": "and y", "extra": with(8, json!({"origin": "joined"}))},
            {"step_id": 7, "timestamp": "2026-11-19T10:00:09Z", "source": "system", "message": "",
                "observation": {"results": [{"content": "one", "extra": with(9, json!({
                    "timestamp": "2026-11-19T10:00:09Z", "tool_name": "read_file",
                    "status": "success", "tool_call_id": "gone"}))}]}},
        ],
        "final_metrics": {"total_prompt_tokens": 130, "total_completion_tokens": 5,
            "total_cached_tokens": 100, "total_cost_usd": 0.75, "total_steps": 7},
    });
    assert_eq!(written.json, expected);
    let [(path, image)] = written.images.as_slice() else {
        panic!("{:?}", written.images)
    };
    assert_eq!(
        (path.as_str(), image.data.as_str()),
        ("c1/images/1.png", "iVBORw==")
    );
    assert_eq!(written.omitted_images, 0);
}

#[test]
fn images_without_a_folder_are_replaced_and_counted() {
    let written = convert_to_atif(&conversation(), "1.2.3", None)
        .unwrap()
        .unwrap();
    assert_eq!(
        written.json["steps"][1]["message"],
        json!([{"type": "text", "text": "fix it"}, {"type": "text", "text": "[image: image/png]"}])
    );
    assert_eq!((written.images.len(), written.omitted_images), (0, 1));
}

#[test]
fn conversation_without_messages_is_no_trajectory() {
    let mut empty = conversation();
    empty.messages.clear();
    assert!(convert_to_atif(&empty, "1.2.3", None).unwrap().is_none());
}

/// The parts of a message that a trajectory keeps.
fn essence(message: &Message) -> Value {
    let parts: Vec<Value> = message
        .content
        .iter()
        .map(|part| match part {
            // The data of a result is computed again.
            Part::ToolResult(result) => json!([
                result.tool_call_id,
                result.name,
                result.envelope.status,
                result.envelope.text,
                result.envelope.error
            ]),
            _ => json!(part),
        })
        .collect();
    let made = message.llm_metadata.as_ref();
    json!({
        "role": message.role, "origin": message.origin(), "at": message.created_at, "parts": parts,
        "usage": made.map(|made| json!([made.model_name, made.input_tokens, made.output_tokens,
            made.cached_input_tokens, made.cache_write_tokens, made.reasoning_tokens])),
    })
}

#[test]
fn exported_trajectory_is_imported_again() {
    let mut original = conversation();
    // Text replaces the image, and a late result moves to its step.
    original.messages[1].content.truncate(1);
    original.messages.swap(4, 5);
    let written = convert_to_atif(&original, "1.2.3", None).unwrap().unwrap();
    let read = read_document(&written.json);
    assert_eq!((read.id.as_str(), read.name.as_str()), ("c1", "Fix it"));
    let essences = |document: &ConversationDocument| -> Vec<Value> {
        document.messages.iter().map(essence).collect()
    };
    let mut expected = essences(&original);
    // A reply without usage gets the model of the agent.
    expected[5]["usage"] = json!(["p/m", 0, 0, 0, 0, 0]);
    assert_eq!(essences(&read), expected);
}

#[test]
fn results_without_ids_belong_to_the_calls_in_order() {
    let call = |id: &str| json!({"tool_call_id": id, "function_name": "bash", "arguments": {}});
    let read = read_document(&json!({
        "schema_version": "ATIF-v1.2", "session_id": "s", "agent": {"name": "x", "version": "1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "user", "message": "go"},
            {"step_id": 3, "source": "agent", "message": "", "tool_calls": [call("1"), call("2")],
                "observation": {"results": [{"content": "first"}, {"content": "second"}]}},
            {"step_id": 4, "source": "agent", "message": "ls", "observation": {
                "results": [{"content": "a.txt"}, {"content": null}]}},
        ],
    }));
    let shown = read.messages.iter().map(|message| {
        let results = message.tool_results();
        let results = results.map(|one| format!("{}={}", one.tool_call_id, one.envelope.text));
        let text = message.joined_text() + &results.collect::<String>();
        format!("{} {:?}: {text}", message.role, message.origin())
    });
    let shown: Vec<_> = shown.collect();
    assert_eq!(
        shown,
        [
            "system User: Be brief.",
            "user User: go",
            "assistant User: ",
            "tool User: 1=first",
            "tool User: 2=second",
            "assistant User: ls",
            "user Engine: a.txt",
        ]
    );
}

#[test]
fn trajectories_of_sub_agents_are_conversations_of_their_own() {
    let child = |id: &str, nested: Value| {
        json!({
            "schema_version": "ATIF-v1.8", "session_id": "run", "trajectory_id": id,
            "agent": {"name": "x", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": id}],
            "subagent_trajectories": nested,
        })
    };
    let leaf = child("leaf", Value::Null);
    let root = child("root", json!([child("middle", json!([leaf]))]));
    let ids: Vec<_> = read(&root.to_string())
        .into_iter()
        .map(|one| one.document.id.to_string())
        .collect();
    assert_eq!(ids, ["root", "middle", "leaf"]);
}

#[test]
fn unknown_source_is_an_error_that_names_the_step() {
    let text = json!({
        "schema_version": "ATIF-v1.7", "agent": {"name": "x", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "go"},
            {"step_id": 2, "source": "robot", "message": "no"}],
    });
    let now = Timestamp::from_second(1_794_736_800).unwrap();
    let error = read_conversations(
        SourceText {
            text: &text.to_string(),
            now,
        },
        None,
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "message 2: `source` is `robot`, not user, agent or system"
    );
}
