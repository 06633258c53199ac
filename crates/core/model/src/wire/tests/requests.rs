//! Compares whole bodies with snapshots, and tests details that a pretty-printed snapshot does not
//! show.

use haft_types::{CacheKind, Image, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::wire::Encoder;

#[derive(Deserialize)]
struct Fixture {
    max_output_tokens: Option<u32>,
    cache_key: Option<String>,
    boundaries: Vec<usize>,
    tools: Vec<ToolSpec>,
    messages: Vec<FixtureMessage>,
}

#[derive(Deserialize)]
struct FixtureMessage {
    role: Role,
    model: Option<String>,
    content: Value,
}

fn load_request(path: &std::path::Path) -> Request {
    let fixture: Fixture = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let segments = fixture
        .messages
        .into_iter()
        .enumerate()
        .map(|(index, given)| {
            let content = match given.content {
                Value::String(text) => vec![Part::from_text(text)],
                parts => serde_json::from_value(parts).unwrap(),
            };
            segment(
                message(given.role, content, given.model.as_deref()),
                fixture.boundaries.contains(&index),
            )
        });
    let mut request = request(segments.collect(), fixture.tools);
    request.max_output_tokens = fixture.max_output_tokens;
    request.cache_key = fixture.cache_key;
    request
}

fn body(settings: Settings, request: &Request) -> String {
    String::from_utf8(Encoder::new(settings).encode_body(request).into()).unwrap()
}

fn pretty(body: &str) -> String {
    serde_json::to_string_pretty(&serde_json::from_str::<Value>(body).unwrap()).unwrap()
}

#[test]
fn body_matches_the_snapshots() {
    let mut paths: Vec<_> = std::fs::read_dir(fixtures("requests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let request = load_request(&path);
        let name = path.file_stem().unwrap().to_str().unwrap();
        for api in Api::ALL {
            let mut insta = insta::Settings::clone_current();
            insta.set_snapshot_path(fixtures("requests"));
            insta.set_prepend_module_to_snapshot(false);
            insta.set_omit_expression(true);
            insta.bind(|| {
                insta::assert_snapshot!(
                    format!("{name}.{api}"),
                    pretty(&body(settings(api), &request))
                );
            });
        }
    }
}

/// DeepSeek and Kimi reject a history in which a reply with calls lacks the field, even if there
/// was no reasoning.
#[test]
fn body_returns_reasoning_with_calls_to_models_that_want_it() {
    let thinking = |text: &str| {
        Part::Thinking(haft_types::Thinking {
            text: text.into(),
            ..Default::default()
        })
    };
    let call = || {
        Part::ToolCall(ToolCall {
            id: "call_a".into(),
            name: "f".into(),
            arguments: "{}".into(),
            signature: None,
        })
    };
    let reply = |parts, maker| segment(message(Role::Assistant, parts, Some(maker)), false);
    let replies = request(
        vec![
            reply(
                vec![thinking("Hm. "), thinking("Now."), call()],
                "mock/test",
            ),
            reply(vec![call()], "mock/test"),
            reply(vec![thinking("Mine."), call()], "mock/another"),
            reply(
                vec![thinking("Done."), Part::from_text("Answer.")],
                "mock/test",
            ),
        ],
        vec![],
    );
    let sent = |back| {
        let mut settings = settings(Api::OpenaiChat);
        settings.spec.capabilities.reasoning_back = back;
        let value: Value = serde_json::from_str(&body(settings, &replies)).unwrap();
        let list = value["messages"].as_array().unwrap().clone();
        list.into_iter()
            .map(|message| message.get("reasoning_content").cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sent(true),
        [
            Some("Hm. Now.".into()),
            Some("".into()),
            Some("".into()),
            None
        ]
    );
    assert_eq!(sent(false), [None, None, None, None]);
}

#[test]
fn body_uses_the_old_limit_name_for_reasoning_models_that_need_it() {
    let hello = request(
        vec![segment(
            message(Role::User, vec![Part::from_text("?")], None),
            false,
        )],
        vec![],
    );
    let keys = |reasoning, max_tokens, is_openai| {
        let mut settings = settings(Api::OpenaiChat);
        settings.is_openai = is_openai;
        settings.spec.max_output_tokens = Some(77);
        settings.spec.capabilities.reasoning = reasoning;
        settings.spec.capabilities.max_tokens = max_tokens;
        let value: Value = serde_json::from_str(&body(settings, &hello)).unwrap();
        ["max_tokens", "max_completion_tokens"].map(|key| value.get(key).is_some())
    };
    let old = [true, false];
    let new = [false, true];
    assert_eq!(
        [
            keys(true, true, false),
            keys(true, false, false),
            keys(false, true, false)
        ],
        [old, new, old]
    );
    assert_eq!(keys(true, true, true), new, "OpenAI itself refuses it");
}

#[test]
fn encoder_gives_identical_bytes_for_repeated_requests() {
    let request = load_request(&fixtures("requests/everything.json"));
    for api in Api::ALL {
        let mut encoder = Encoder::new(settings(api));
        let first = encoder.encode_body(&request);
        assert_eq!(first, encoder.encode_body(&request), "{api}");
    }
}

#[test]
fn body_keeps_the_bytes_of_call_arguments() {
    let call = |arguments: &str| {
        Part::ToolCall(ToolCall {
            id: "call_a".into(),
            name: "f".into(),
            arguments: arguments.into(),
            signature: None,
        })
    };
    let sent = |api, arguments: &str| {
        body(
            settings(api),
            &request(
                vec![segment(
                    message(Role::Assistant, vec![call(arguments)], None),
                    false,
                )],
                vec![],
            ),
        )
    };
    let odd = "{ \"n\": 1.00, \"s\": \"\\u0061\" }";
    assert!(sent(Api::Anthropic, odd).contains(&format!("\"input\":{odd}")));
    assert!(sent(Api::Gemini, odd).contains(&format!("\"args\":{odd}")));
    assert!(sent(Api::OpenaiChat, odd).contains(&format!(
        "\"arguments\":{}",
        serde_json::to_string(odd).unwrap()
    )));
    for broken in ["", "null", "[1]", "{\"a\":", "{} x", "{\"a\":\"\\ud800\"}"] {
        assert!(
            sent(Api::Anthropic, broken).contains("\"input\":{}"),
            "{broken}"
        );
        assert!(
            sent(Api::Gemini, broken).contains("\"args\":{}"),
            "{broken}"
        );
        for api in [Api::OpenaiChat, Api::OpenaiResponses] {
            assert!(
                sent(api, broken).contains(r#""arguments":"{}""#),
                "{broken}"
            );
        }
    }
}

#[test]
fn body_ends_with_the_list_of_messages() {
    let request = load_request(&fixtures("requests/everything.json"));
    for (api, list) in [
        (Api::OpenaiChat, "messages"),
        (Api::OpenaiResponses, "input"),
        (Api::Anthropic, "messages"),
        (Api::Gemini, "contents"),
    ] {
        let mut settings = settings(api);
        settings.extra.insert("temperature".into(), 0.into());
        let value: Value = serde_json::from_str(&body(settings, &request)).unwrap();
        let keys: Vec<_> = value
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys.last(), Some(&list), "{api}: {keys:?}");
        assert!(keys.contains(&"temperature"));
    }
    let value: Value = serde_json::from_str(&body(settings(Api::Anthropic), &request)).unwrap();
    let keys: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "model",
            "max_tokens",
            "stream",
            "tools",
            "system",
            "messages"
        ]
    );
}

#[test]
fn anthropic_body_marks_the_first_and_the_last_three_boundaries() {
    let segments: Vec<_> = (0..8)
        .map(|index| {
            let role = if index == 0 { Role::System } else { Role::User };
            segment(
                message(role, vec![Part::from_text(format!("m{index}"))], None),
                true,
            )
        })
        .collect();
    let body = body(settings(Api::Anthropic), &request(segments, vec![]));
    assert_eq!(body.matches("cache_control").count(), 4);
    for index in [0, 5, 6, 7] {
        assert!(
            body.contains(&format!("\"text\":\"m{index}\",\"cache_control\"")),
            "m{index}: {body}"
        );
    }
}

/// Tools precede the system text; without a system text they carry its marker, if fewer than four
/// are used.
#[test]
fn anthropic_tools_carry_the_first_marker_without_a_system_text() {
    let tool = ToolSpec {
        name: "f".into(),
        description: "d".into(),
        parameters: serde_json::json!({"type": "object"}),
    };
    let users = |count| {
        let user = |index| {
            segment(
                message(Role::User, vec![Part::from_text(format!("m{index}"))], None),
                true,
            )
        };
        (0..count).map(user).collect::<Vec<_>>()
    };
    let few = body(
        settings(Api::Anthropic),
        &request(users(1), vec![tool.clone()]),
    );
    assert!(
        few.contains(r#""input_schema":{"type":"object"},"cache_control""#),
        "{few}"
    );
    let many = body(settings(Api::Anthropic), &request(users(9), vec![tool]));
    assert_eq!(many.matches("cache_control").count(), 4, "{many}");
}

#[test]
fn anthropic_marker_contains_the_ttl() {
    let mut settings = settings(Api::Anthropic);
    settings.spec.cache.ttl = "1h".into();
    let one = segment(message(Role::User, vec![Part::from_text("m")], None), true);
    assert!(
        body(settings, &request(vec![one], vec![]))
            .contains(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#)
    );
}

#[test]
fn openai_body_sets_breakpoints_on_user_messages() {
    for api in [Api::OpenaiChat, Api::OpenaiResponses] {
        let mut settings = settings(api);
        settings.spec.cache.rule = CacheKind::OpenaiBreakpoints;
        let segments = vec![
            segment(message(Role::User, vec![Part::from_text("m1")], None), true),
            segment(
                message(Role::Assistant, vec![Part::from_text("m2")], None),
                true,
            ),
        ];
        let body = body(settings, &request(segments, vec![]));
        assert_eq!(
            body.matches(r#""text":"m1","prompt_cache_breakpoint":{"mode":"explicit"}"#)
                .count(),
            1,
            "{body}"
        );
        assert_eq!(body.matches("prompt_cache_breakpoint").count(), 1, "{body}");
    }
}

#[test]
fn body_names_limits_and_cache_keys_as_the_server_does() {
    let mut asked = request(
        vec![segment(
            message(Role::User, vec![Part::from_text("m")], None),
            false,
        )],
        vec![],
    );
    asked.max_output_tokens = Some(77);
    asked.cache_key = Some("key".into());
    let field = |settings: Settings, name: &str| {
        let value: Value = serde_json::from_str(&body(settings, &asked)).unwrap();
        value.pointer(name).cloned()
    };
    let with = |api, change: fn(&mut Settings)| {
        let mut settings = settings(api);
        change(&mut settings);
        settings
    };
    let plain = |_: &mut Settings| {};
    assert_eq!(
        field(with(Api::OpenaiChat, plain), "/max_tokens"),
        Some(77.into())
    );
    assert_eq!(
        field(with(Api::OpenaiChat, plain), "/prompt_cache_key"),
        None
    );
    assert_eq!(
        field(
            with(Api::OpenaiChat, |s| s.is_openai = true),
            "/prompt_cache_key"
        ),
        Some("key".into())
    );
    assert_eq!(
        field(
            with(Api::OpenaiChat, |s| s.is_openai = true),
            "/max_completion_tokens"
        ),
        Some(77.into())
    );
    let reasoning = with(Api::OpenaiChat, |s| s.spec.capabilities.reasoning = true);
    assert_eq!(field(reasoning, "/max_completion_tokens"), Some(77.into()));
    assert_eq!(
        field(with(Api::OpenaiResponses, plain), "/max_output_tokens"),
        Some(77.into())
    );
    assert_eq!(
        field(with(Api::OpenaiResponses, plain), "/prompt_cache_key"),
        Some("key".into())
    );
    assert_eq!(
        field(with(Api::Anthropic, plain), "/max_tokens"),
        Some(77.into())
    );
    assert_eq!(
        field(
            with(Api::Gemini, plain),
            "/generationConfig/maxOutputTokens"
        ),
        Some(77.into())
    );
    let given = with(Api::Gemini, |s| {
        s.extra.insert(
            "generationConfig".into(),
            serde_json::json!({"temperature": 0, "maxOutputTokens": 5}),
        );
    });
    assert_eq!(
        field(given.clone(), "/generationConfig/maxOutputTokens"),
        Some(5.into())
    );
    assert_eq!(
        field(given, "/generationConfig/temperature"),
        Some(0.into())
    );
}

#[test]
fn body_replaces_images_for_models_without_image_input() {
    let picture = Part::Image(Image {
        media_type: "image/png".into(),
        data: "aGFmdA==".into(),
    });
    let one = segment(
        message(Role::User, vec![Part::from_text("see"), picture], None),
        false,
    );
    for api in Api::ALL {
        let mut settings = settings(api);
        settings.spec.capabilities.images = false;
        let body = body(settings, &request(vec![one.clone()], vec![]));
        assert!(
            body.contains("picture left out") && !body.contains("aGFmdA"),
            "{body}"
        );
    }
}

#[test]
fn endpoint_accepts_bases_with_or_without_version_and_slash() {
    let at = |api, name: &str, base: &str| {
        let mut spec = settings(api).spec;
        spec.name = name.into();
        crate::wire::request_endpoint(&base.parse().unwrap(), &spec, true).to_string()
    };
    for base in ["http://h/v1", "http://h/v1/"] {
        assert_eq!(
            at(Api::OpenaiChat, "m", base),
            "http://h/v1/chat/completions"
        );
        assert_eq!(at(Api::OpenaiResponses, "m", base), "http://h/v1/responses");
    }
    for base in ["http://h", "http://h/", "http://h/v1", "http://h/v1/"] {
        assert_eq!(at(Api::Anthropic, "m", base), "http://h/v1/messages");
    }
    for base in ["http://h", "http://h/v1beta", "http://h/v1beta/"] {
        assert_eq!(
            at(Api::Gemini, "m", base),
            "http://h/v1beta/models/m:streamGenerateContent?alt=sse"
        );
    }
    assert_eq!(
        at(Api::Gemini, "tunedModels/x", "http://h/v1"),
        "http://h/v1/tunedModels/x:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        at(Api::Gemini, "a b?c", "http://h"),
        "http://h/v1beta/models/a%20b%3Fc:streamGenerateContent?alt=sse"
    );
    let azure = "https://h/openai/deployments/d?api-version=1";
    assert_eq!(
        at(Api::OpenaiChat, "m", azure),
        "https://h/openai/deployments/d/chat/completions?api-version=1"
    );
}
