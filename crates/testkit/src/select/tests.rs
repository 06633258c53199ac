use haft_types::Api;
use serde_json::json;

use super::*;
use crate::script::ScriptCall;
use crate::seen::{FromPath, SeenRole};

/// Returns a request with `turns` assistant turns, each with a tool call whose result is `last`.
fn seen(turns: usize, last: &str) -> Seen {
    let mut messages = vec![json!({ "role": "user", "content": "begin" })];
    for turn in 0..turns {
        let call = json!({ "id": format!("c{turn}"), "type": "function", "function": { "name": "f", "arguments": "{}" } });
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        messages
            .push(json!({ "role": "tool", "tool_call_id": format!("c{turn}"), "content": last }));
    }
    let body = json!({
        "model": "m",
        "messages": messages,
        "tools": [{ "type": "function", "function": { "name": "f", "parameters": {} } }],
    });
    Seen::decode(Api::OpenaiChat, &body, FromPath::default()).unwrap()
}

fn chosen(selector: &mut Selector, script: &Script, seen: &Seen) -> Option<usize> {
    selector.choose(script, Some(seen)).reply
}

#[test]
fn replies_are_taken_in_order_and_repeated_as_told() {
    let script = Script::replies([Reply::text("a").times(2), Reply::text("b")]).unwrap();
    assert!(!needs_decoded_request(&script));
    let mut selector = Selector::default();
    let got: Vec<_> = (0..4)
        .map(|_| selector.choose(&script, None).reply)
        .collect();
    assert_eq!(got, [Some(0), Some(0), Some(1), None]);
    assert_eq!(
        ran_out_message(&script, 4, None),
        "the script has run out: none of its 2 replies is left for request 4 (0 assistant turns, 0 tool results)"
    );
}

#[test]
fn a_conditional_reply_is_unlimited_unless_limited() {
    let often = Reply::text("often").when(When {
        last_contains: Some("again".into()),
        ..When::default()
    });
    let once = Reply::text("once")
        .when(When {
            assistant_messages: Some(1),
            ..When::default()
        })
        .times(1);
    let script = Script::replies([once, often, Reply::text("plain")]).unwrap();
    let mut selector = Selector::default();
    assert_eq!(chosen(&mut selector, &script, &seen(1, "again")), Some(0));
    assert_eq!(chosen(&mut selector, &script, &seen(1, "again")), Some(1));
    assert_eq!(chosen(&mut selector, &script, &seen(1, "again")), Some(1));
    assert_eq!(chosen(&mut selector, &script, &seen(0, "")), Some(2));
    assert_eq!(chosen(&mut selector, &script, &seen(0, "")), None);
}

#[test]
fn every_condition_can_fail_alone() {
    let all = When {
        tool_offered: Some("f".into()),
        last_role: Some(SeenRole::Tool),
        last_contains: Some("word".into()),
        assistant_messages: Some(2),
        tool_results: Some(2),
        request: Some(1),
        api: Some(Api::OpenaiChat),
        model: Some("m".into()),
    };
    let spoilt = [
        When {
            tool_offered: Some("g".into()),
            ..all.clone()
        },
        When {
            last_role: Some(SeenRole::User),
            ..all.clone()
        },
        When {
            last_contains: Some("other".into()),
            ..all.clone()
        },
        When {
            assistant_messages: Some(1),
            ..all.clone()
        },
        When {
            tool_results: Some(3),
            ..all.clone()
        },
        When {
            request: Some(2),
            ..all.clone()
        },
        When {
            api: Some(Api::Gemini),
            ..all.clone()
        },
        When {
            model: Some("n".into()),
            ..all.clone()
        },
    ];
    let seen = seen(2, "a word here");
    let holds = |when: When| {
        let script = Script::replies([Reply::text("x").when(when)]).unwrap();
        chosen(&mut Selector::default(), &script, &seen) == Some(0)
    };
    assert!(holds(all));
    for when in spoilt {
        assert!(!holds(when.clone()), "{when:?}");
    }
}

#[test]
fn turns_depend_on_nothing_but_the_request() {
    let calls = Reply::calls([ScriptCall::new("f", json!({}))]);
    let script = Script::turns([calls.clone(), calls, Reply::text("done")]).unwrap();
    let mut selector = Selector::default();
    let got: Vec<_> = [2, 0, 1, 1, 0, 2]
        .map(|turns| chosen(&mut selector, &script, &seen(turns, "")))
        .into_iter()
        .collect();
    assert_eq!(got, [Some(2), Some(0), Some(1), Some(1), Some(0), Some(2)]);
    assert_eq!(chosen(&mut selector, &script, &seen(3, "")), None);
}
