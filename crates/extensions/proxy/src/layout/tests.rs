use super::*;

fn split_and_join(api: Api, body: &str) -> SplitBody {
    let split = split_body(api, body).unwrap();
    let texts: Vec<_> = split
        .segments
        .iter()
        .map(|segment| segment.text.as_str())
        .collect();
    assert_eq!(split.layout.join(&texts), body);
    let stored = serde_json::to_string(&split.layout).unwrap();
    assert_eq!(
        serde_json::from_str::<BodyLayout>(&stored).unwrap(),
        split.layout,
        "{stored}"
    );
    split
}

#[test]
fn join_restores_bodies_byte_for_byte() {
    let bodies = [
        (
            Api::OpenaiChat,
            r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"é\u00e9"}],"tools":[{"a":1},{"b":2}],"stream":true}"#,
            4,
        ),
        (
            Api::OpenaiChat,
            "{ \"messages\" : [ {\"role\":\"user\"} ,\n {\"role\":\"user\"},{} ] , \"model\":\"m\" }\n",
            3,
        ),
        (
            Api::OpenaiResponses,
            r#"{"instructions":"be kind","input":"one text","model":"m"}"#,
            2,
        ),
        (
            Api::OpenaiResponses,
            r#"{"input":[{"type":"message"},{"type":"reasoning"}],"tools":[]}"#,
            2,
        ),
        (
            Api::Anthropic,
            r#"{"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"messages":[{"role":"user","content":"x"}],"tools":[{"name":"t"}]}"#,
            4,
        ),
        (
            Api::Gemini,
            r#"{"contents":[{"parts":[{"text":"x"}]}],"systemInstruction":{"parts":[]},"tools":[{"functionDeclarations":[]}]}"#,
            3,
        ),
        (Api::OpenaiChat, r#"{"messages":[]}"#, 0),
    ];
    for (api, body, segments) in bodies {
        assert_eq!(split_and_join(api, body).segments.len(), segments, "{body}");
    }
}

#[test]
fn split_is_none_for_bodies_that_are_no_requests() {
    for body in [
        "",
        "[]",
        "{}",
        "no json",
        r#"{"messages":[}"#,
        r#"{"prompt":"x"}"#,
    ] {
        assert_eq!(split_body(Api::OpenaiChat, body), None, "{body}");
    }
}

#[test]
fn split_puts_tools_first_and_messages_last() {
    let split = split_and_join(
        Api::Anthropic,
        r#"{"messages":[{"m":1}],"system":"s","tools":[{"t":1}]}"#,
    );
    let kinds: Vec<_> = split.segments.iter().map(|segment| segment.kind).collect();
    assert_eq!(
        kinds,
        [SegmentKind::Tool, SegmentKind::System, SegmentKind::Message]
    );
}

#[test]
fn split_removes_cache_markers_from_messages() {
    let plain = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}"#;
    let marked = [
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"cache_control": {"type":"ephemeral"}, "type":"text","text":"hi"}]}]}"#,
        r#"{"messages":[{"role":"user","content":[{"type":"text" , "cache_control":null,"text":"hi"}]}]}"#,
    ];
    let text = |body: &str| {
        split_and_join(Api::Anthropic, body).segments[0]
            .text
            .replace(' ', "")
    };
    for body in marked {
        assert_eq!(text(body), text(plain), "{body}");
        assert!(split_and_join(Api::Anthropic, body).segments[0].boundary);
    }
    assert!(!split_and_join(Api::Anthropic, plain).segments[0].boundary);
    // The words in a text are no marker.
    let spoken =
        r#"{"messages":[{"role":"user","content":"\"cache_control\":{} and cache_control"}]}"#;
    let spoken = split_and_join(Api::Anthropic, spoken);
    assert!(!spoken.segments[0].boundary && spoken.segments[0].text.contains("cache_control"));
    let two = r#"{"messages":[{"a":{"x":1,"cache_control":{"y":[1,"}"]}},"cache_control":{}}]}"#;
    assert_eq!(
        split_and_join(Api::Anthropic, two).segments[0].text,
        r#"{"a":{"x":1}}"#
    );
    let only = r#"{"messages":[{"cache_control":{}}]}"#;
    assert_eq!(split_and_join(Api::Anthropic, only).segments[0].text, "{}");
}

#[test]
fn layout_does_not_grow_with_the_messages() {
    let body = |count: usize| {
        let messages = vec![r#"{"role":"user","content":"some words"}"#; count].join(",");
        format!(r#"{{"model":"m","messages":[{messages}],"stream":true}}"#)
    };
    let size = |count| {
        serde_json::to_string(&split_and_join(Api::OpenaiChat, &body(count)).layout)
            .unwrap()
            .len()
    };
    assert!(size(1_000) < size(2) + 10);
}
