use serde_json::json;

use super::*;

/// Returns one conversation, decoded from a request of each API: parallel calls to the same tool, a
/// failing result, a picture with a result, and two user messages in a row after the results.
fn one_conversation() -> [Seen; 4] {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let chat = json!({
        "model": "m", "stream": true, "max_completion_tokens": 50,
        "tools": [{ "type": "function", "function": { "name": "read", "description": "Reads.", "parameters": schema } }],
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Look." },
            { "role": "assistant", "content": "Reading.", "reasoning_content": "Hm.", "tool_calls": [
                { "id": "x", "type": "function", "function": { "name": "read", "arguments": "{\"path\": \"a\"}" } },
                { "id": "y", "type": "function", "function": { "name": "read", "arguments": "{\"path\":\"b\"}" } },
            ] },
            { "role": "tool", "tool_call_id": "x", "content": "A" },
            { "role": "tool", "tool_call_id": "y", "content": "no such file" },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }] },
            { "role": "user", "content": "Go on." },
            { "role": "user", "content": [{ "type": "text", "text": "Quickly." }] },
        ],
    });
    let responses = json!({
        "model": "m", "stream": true, "max_output_tokens": 50, "instructions": "Be brief.",
        "tools": [{ "type": "function", "name": "read", "description": "Reads.", "parameters": schema, "strict": false }],
        "input": [
            { "role": "user", "content": "Look." },
            { "type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "zz" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Reading." }] },
            { "type": "function_call", "call_id": "p", "name": "read", "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call", "call_id": "q", "name": "read", "arguments": "{\"path\":\"b\"}" },
            { "type": "function_call_output", "call_id": "p", "output": [
                { "type": "input_text", "text": "A" },
                { "type": "input_image", "image_url": "data:image/png;base64,AAAA" },
            ] },
            { "type": "function_call_output", "call_id": "q", "output": "no such file" },
            { "role": "user", "content": [{ "type": "input_text", "text": "Go on." }] },
            { "role": "user", "content": "Quickly." },
        ],
    });
    let anthropic = json!({
        "model": "m", "stream": true, "max_tokens": 50,
        "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
        "tools": [{ "name": "read", "description": "Reads.", "input_schema": schema }],
        "messages": [
            { "role": "user", "content": "Look." },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "s" },
                { "type": "text", "text": "Reading." },
                { "type": "tool_use", "id": "t1", "name": "read", "input": { "path": "a" } },
                { "type": "tool_use", "id": "t2", "name": "read", "input": { "path": "b" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": [
                    { "type": "text", "text": "A" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                ] },
                { "type": "tool_result", "tool_use_id": "t2", "content": "no such file", "is_error": true },
                { "type": "text", "text": "Go on." },
                { "type": "text", "text": "Quickly.", "cache_control": { "type": "ephemeral" } },
            ] },
        ],
    });
    let gemini = json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "generationConfig": { "maxOutputTokens": 50 },
        "tools": [{ "functionDeclarations": [
            { "name": "read", "description": "Reads.", "parametersJsonSchema": schema },
        ] }],
        "contents": [
            { "role": "user", "parts": [{ "text": "Look." }] },
            { "role": "model", "parts": [
                { "text": "Reading." },
                { "functionCall": { "name": "read", "args": { "path": "a" } }, "thoughtSignature": "s" },
                { "functionCall": { "name": "read", "args": { "path": "b" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "read", "response": { "output": "A" } } },
                { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
                { "functionResponse": { "name": "read", "response": { "error": "no such file" } } },
            ] },
            { "role": "user", "parts": [{ "text": "Go on." }, { "text": "Quickly." }] },
        ],
    });
    let from_path = FromPath {
        model: Some("m"),
        stream: true,
    };
    [
        Seen::decode(Api::OpenaiChat, &chat, FromPath::default()).unwrap(),
        Seen::decode(Api::OpenaiResponses, &responses, FromPath::default()).unwrap(),
        Seen::decode(Api::Anthropic, &anthropic, FromPath::default()).unwrap(),
        Seen::decode(Api::Gemini, &gemini, from_path).unwrap(),
    ]
}

#[test]
fn four_carriers_of_one_conversation_say_the_same() {
    let all = one_conversation();
    for one in &all {
        for other in &all {
            assert_eq!(one.difference(other), None, "{} and {}", one.api, other.api);
        }
        assert_eq!(
            (one.model.as_str(), one.stream, one.max_output_tokens),
            ("m", true, Some(50)),
            "{}",
            one.api
        );
        assert_eq!(
            (one.count_assistant_turns(), one.count_tool_results()),
            (1, 2),
            "{}",
            one.api
        );
        let roles: Vec<SeenRole> = one.messages.iter().map(|message| message.role).collect();
        assert_eq!(
            roles,
            [
                SeenRole::User,
                SeenRole::Assistant,
                SeenRole::Tool,
                SeenRole::User
            ],
            "{}",
            one.api
        );
        assert_eq!(
            one.texts(SeenRole::User),
            ["Look.", "Go on.", "Quickly."],
            "{}",
            one.api
        );
        assert_eq!(
            one.texts(SeenRole::Tool),
            ["A", "no such file"],
            "{}",
            one.api
        );
    }
    assert_eq!(all[2].cache_marks, ["system[0]", "messages[2].content[3]"]);
}

#[test]
fn what_the_model_is_told_makes_a_difference() {
    let [seen, ..] = one_conversation();
    let spoil: [fn(&mut Seen); 6] = [
        |seen| seen.system.push('!'),
        |seen| seen.tools[0].description.push('!'),
        |seen| seen.messages[3].parts.swap(1, 2),
        |seen| {
            seen.messages.pop();
        },
        |seen| {
            if let SeenPart::ToolResult { number, .. } = &mut seen.messages[2].parts[0] {
                *number = Some(2);
            }
        },
        |seen| seen.messages[3].role = SeenRole::Assistant,
    ];
    for (index, spoil) in spoil.into_iter().enumerate() {
        let mut other = seen.clone();
        spoil(&mut other);
        assert!(
            !seen.is_equivalent_to(&other),
            "change {index} goes unnoticed"
        );
    }
}

#[test]
fn a_difference_shows_both_sides() {
    let [chat, _, _, mut gemini] = one_conversation();
    let Some(SeenPart::Text { text, .. }) = gemini.messages[3].parts.last_mut() else {
        panic!("a text")
    };
    *text = "Slowly.".into();
    let told = chat.difference(&gemini).unwrap();
    assert!(
        told.contains("Quickly.") && told.contains("Slowly."),
        "{told}"
    );
}

#[test]
fn joined_texts_are_not_two_texts() {
    let decode = |messages: Value| {
        Seen::decode(
            Api::OpenaiChat,
            &json!({ "messages": messages }),
            FromPath::default(),
        )
    };
    let two =
        decode(json!([{ "role": "user", "content": "a" }, { "role": "user", "content": "b" }]))
            .unwrap();
    let one = decode(json!([{ "role": "user", "content": "ab" }])).unwrap();
    assert!(!two.is_equivalent_to(&one));
}

#[test]
fn errors_name_the_place() {
    let body = json!({ "messages": [{ "role": "user", "content": [{ "type": "text" }] }] });
    for api in [Api::OpenaiChat, Api::Anthropic] {
        let error = Seen::decode(api, &body, FromPath::default()).unwrap_err();
        assert_eq!(error.path, "messages[0].content[0].text", "{api}");
    }
}

#[test]
fn a_result_without_its_call_has_no_number() {
    let body = json!({ "messages": [{ "role": "tool", "tool_call_id": "gone", "content": "x" }] });
    let seen = Seen::decode(Api::OpenaiChat, &body, FromPath::default()).unwrap();
    let wanted = SeenPart::ToolResult {
        number: None,
        id: Some("gone".into()),
        text: "x".into(),
        failed: None,
    };
    assert_eq!(seen.messages[0].parts, [wanted]);
}

#[test]
fn the_transcript_is_the_same_on_every_api() {
    let wanted = r#"system: Be brief.
offers read: Reads. {"type":"object","properties":{"path":{"type":"string"}}}
user: Look.
assistant: Reading.
assistant: call#1 read {"path":"a"}
assistant: call#2 read {"path":"b"}
tool: call#1 gave A
tool: call#2 gave no such file
user: picture image/png "#;
    for seen in one_conversation() {
        let transcript = seen.to_string();
        assert!(
            transcript.starts_with(wanted),
            "{}:\n{transcript}",
            seen.api
        );
        assert!(
            transcript.ends_with("user: Go on.\nuser: Quickly.\n"),
            "{}:\n{transcript}",
            seen.api
        );
    }
}
