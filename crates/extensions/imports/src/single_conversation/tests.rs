use super::*;

const CHAT: &str = r#"[
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What is in "}, {"type": "text", "text": "a.txt?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
    {"role": "assistant", "content": null, "tool_calls":
        [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a.txt\" }"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "hello"},
    {"role": "assistant", "content": ""},
    {"role": "system", "content": "The user is waiting."}
]"#;

#[test]
fn read_single_conversation_reads_chat_messages() {
    let read = read_single_conversation(CHAT).unwrap();
    assert_eq!(
        (read.id.as_str(), read.system.as_deref()),
        ("from-file", Some("Be brief."))
    );
    let roles: Vec<_> = read.messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::Tool, Role::User],
        "empty messages are left out"
    );
    assert_eq!(read.messages[0].joined_text(), "What is in a.txt?");
    assert_eq!(read.messages[0].content.len(), 3);
    let call = read.messages[1].tool_calls().next().unwrap();
    assert_eq!(
        (call.name.as_str(), call.arguments.as_str()),
        ("read", r#"{"path": "a.txt" }"#),
        "bytes are kept"
    );
    let result = read.messages[2].tool_results().next().unwrap();
    assert_eq!(
        (result.name.as_str(), result.envelope.text.as_str()),
        ("read", "hello"),
        "named by its call"
    );
    assert!(
        !read.messages[3].opens_round(),
        "a program's words open no round"
    );
}

#[test]
fn read_single_conversation_keeps_id_and_messages_of_a_document() {
    let id = "00000001-0000-4000-8000-000000000000".parse().unwrap();
    let message = Message::from_text(id, Role::User, "hi", Timestamp::UNIX_EPOCH);
    let text = format!(
        "{{\"id\": \"abc\", \"messages\": [{}]}}\n",
        serde_json::to_string(&message).unwrap()
    );
    let read = read_single_conversation(&text).unwrap();
    assert_eq!((read.id.as_str(), read.messages), ("abc", vec![message]));
}

#[test]
fn read_single_conversation_of_a_longer_file_only_appends() {
    let long = read_single_conversation(CHAT).unwrap().messages;
    let cut = CHAT.find(",\n    {\"role\": \"tool\"").unwrap();
    let short = read_single_conversation(&format!("{}]", &CHAT[..cut]))
        .unwrap()
        .messages;
    assert_eq!(short, long[..2]);
}

#[test]
fn read_single_conversation_names_the_mistake() {
    let problem = |text: &str| read_single_conversation(text).unwrap_err().to_string();
    assert!(problem("{\"messages\": []}").contains("no messages"));
    assert!(problem("{\"turns\": []}").contains("`messages`"));
    assert!(problem("hello").contains("expected value"));
    assert!(
        problem("[{\"role\": \"robot\", \"content\": \"x\"}]")
            .contains("message 1: unknown role `robot`")
    );
    assert!(problem("[{\"role\": \"tool\", \"content\": \"x\"}]").contains("tool_call_id"));
    assert!(
        problem("[{\"role\": \"user\", \"content\": [{\"type\": \"sound\"}]}]").contains("`sound`")
    );
    let lines = "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}\n".repeat(3);
    assert!(
        problem(&lines).contains("3 lines of JSON"),
        "{}",
        problem(&lines)
    );
}
