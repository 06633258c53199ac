//! Checks requests with an independent decoder: a conversation has equal content on every API, and
//! the server accepts all requests.

use haft_testkit::support::{assert_all_replied, assert_equivalent};
use haft_testkit::{Reply, Script, ScriptCall, Seen};
use haft_types::{Api, Envelope, Image, Message, Part, Role, ToolCall, ToolResult};
use serde_json::json;

use super::{
    ask, client, client_of, client_of_undeclared_model, message, provider, reply_message, request,
    retry_without_waiting, serve,
};

fn result(id: &str, envelope: Envelope, picture: bool) -> Message {
    let result = ToolResult {
        tool_call_id: id.to_owned(),
        name: "read_file".into(),
        envelope,
    };
    let mut content = vec![Part::ToolResult(Box::new(result))];
    content.extend(picture.then(|| {
        // One white pixel.
        let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=";
        Part::Image(Image { media_type: "image/png".into(), data: data.into() })
    }));
    message(Role::Tool, content)
}

/// Sends a conversation of several turns, whose assistant messages come from the server, and
/// returns the requests.
async fn run_conversation(api: Api) -> Vec<Seen> {
    let script = Script::replies([
        Reply::text("Hello."),
        Reply::calls([
            ScriptCall::new("read_file", json!({"path": "a.rs"})),
            ScriptCall::new("read_file", json!({"path": "b.rs"})),
        ])
        .with_text("Reading.")
        .with_thinking("Both files."),
        Reply::call("read_file", json!({"path": "c.rs"})),
        Reply::text("Done."),
    ])
    .unwrap();
    let server = serve(script).await;
    let mut client = client(api, &server);
    let mut messages = vec![
        message(
            Role::User,
            vec![Part::from_text("<rules>Use tabs.</rules>")],
        ),
        message(Role::Assistant, vec![Part::from_text("Understood.")]),
        message(Role::User, vec![Part::from_text("Hi")]),
    ];
    for turn in 0..4 {
        let reply = ask(&mut client, &request(messages.clone()))
            .await
            .1
            .unwrap_or_else(|error| panic!("{api}: {error}"));
        messages.push(reply_message(&client, &reply));
        let ids: Vec<String> = messages
            .last()
            .unwrap()
            .tool_calls()
            .map(|call| call.id.clone())
            .collect();
        for (index, id) in ids.iter().enumerate() {
            let envelope = match index {
                0 => Envelope::success("fn main() {}"),
                _ => Envelope::failure("not_found", "there is no b.rs"),
            };
            // The last result of a block: in other places its position differs between the APIs.
            messages.push(result(id, envelope, turn == 1 && index == 1));
        }
        messages.push(message(
            Role::User,
            vec![Part::from_text(format!("<todo>{turn}</todo>"))],
        ));
        messages.push(message(Role::User, vec![Part::from_text("Go on.")]));
    }
    assert_all_replied(&server)
}

#[tokio::test]
async fn conversation_is_equal_on_every_api() {
    let first = run_conversation(Api::Anthropic).await;
    assert_eq!(first.len(), 4);
    for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::Gemini] {
        let other = run_conversation(api).await;
        assert_eq!(other.len(), first.len());
        for (one, two) in first.iter().zip(&other) {
            assert_equivalent(one, two);
        }
    }
}

#[tokio::test]
async fn request_can_contain_malformed_calls_of_the_model() {
    for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::Anthropic] {
        let botched = ScriptCall::new("no such tool!", "{\"cut".into());
        let server =
            serve(Script::replies([Reply::calls([botched]), Reply::text("Sorry.")]).unwrap()).await;
        let mut client = client(api, &server);
        let user = message(Role::User, vec![Part::from_text("Hi")]);
        let reply = ask(&mut client, &request([user.clone()])).await.1.unwrap();
        let said = reply_message(&client, &reply);
        let id = said.tool_calls().next().unwrap().id.clone();
        let failed = result(
            &id,
            Envelope::failure("invalid_arguments", "not JSON"),
            false,
        );
        let (_, reply) = ask(&mut client, &request([user, said, failed])).await;
        assert!(reply.is_ok(), "{api}: {reply:?} {:?}", server.refusals());
    }
}

#[tokio::test]
async fn conversation_can_move_from_any_api_to_any_other() {
    for from in Api::ALL {
        let first = Reply::call("read_file", json!({"path": "a.rs"}))
            .with_thinking("Hm.")
            .with_text("Reading.");
        let server = serve(Script::replies([first, Reply::text("ok").times(4)]).unwrap()).await;
        let mut maker = client(from, &server);
        let user = message(Role::User, vec![Part::from_text("Hi")]);
        let reply = ask(&mut maker, &request([user.clone()])).await.1.unwrap();
        let mut said = reply_message(&maker, &reply);
        if let Some(made) = &mut said.llm_metadata {
            made.model_name = "elsewhere/model".into();
        }
        let id = said.tool_calls().next().unwrap().id.clone();
        let history = [
            user,
            said,
            result(&id, Envelope::success("fn main() {}"), true),
        ];
        for to in Api::ALL {
            let (_, reply) = ask(&mut client(to, &server), &request(history.clone())).await;
            assert!(
                reply.is_ok(),
                "{from} to {to}: {reply:?} {:?}",
                server.refusals()
            );
        }
        for seen in assert_all_replied(&server).iter().skip(1) {
            let foreign = seen
                .parts()
                .any(|(_, part)| matches!(part, haft_testkit::SeenPart::Thinking { .. }));
            assert!(
                !foreign,
                "thinking of another model was sent to {}",
                seen.api
            );
        }
    }
}

/// Newer Gemini models reject a call without a signature, regardless of the model that made it.
#[tokio::test]
async fn gemini_accepts_calls_of_other_models_without_signatures() {
    let server = serve(Script::replies([Reply::text("ok")]).unwrap()).await;
    let mut client = client_of_undeclared_model(
        "gemini-3-pro",
        provider(Api::Gemini, &server.base_url(Api::Gemini)),
    );
    let call = |id: &str| {
        let arguments = r#"{"path": "a.rs"}"#.into();
        Part::ToolCall(ToolCall {
            id: id.into(),
            name: "read_file".into(),
            arguments,
            signature: Some("other".into()),
        })
    };
    let history = [
        message(Role::User, vec![Part::from_text("Hi")]),
        message(Role::Assistant, vec![call("toolu_1"), call("toolu_2")]),
        result("toolu_1", Envelope::success("one"), false),
        result("toolu_2", Envelope::success("two"), false),
    ];
    let (_, reply) = ask(&mut client, &request(history)).await;
    assert!(reply.is_ok(), "{reply:?} {:?}", server.refusals());
    let body = String::from_utf8(server.requests()[0].body.to_vec()).unwrap();
    assert_eq!(body.matches("thoughtSignature").count(), 1, "{body}");
    assert!(!body.contains("\"other\""), "{body}");
}

#[tokio::test]
async fn thinking_is_returned_to_its_maker() {
    for api in [Api::Anthropic, Api::OpenaiResponses] {
        let first = Reply::call("read_file", json!({"path": "a.rs"})).with_thinking("Hm.");
        let server = serve(Script::replies([first, Reply::text("ok")]).unwrap()).await;
        let mut client = client(api, &server);
        let user = message(Role::User, vec![Part::from_text("Hi")]);
        let reply = ask(&mut client, &request([user.clone()])).await.1.unwrap();
        let said = reply_message(&client, &reply);
        let id = said.tool_calls().next().unwrap().id.clone();
        ask(
            &mut client,
            &request([user, said, result(&id, Envelope::success("x"), false)]),
        )
        .await
        .1
        .unwrap();
        let seen = assert_all_replied(&server);
        let signed = |part: &haft_testkit::SeenPart| {
            matches!(part, haft_testkit::SeenPart::Thinking { signed: true, .. })
        };
        assert!(
            seen[1].parts().any(|(_, part)| signed(part)),
            "{api}: {:?}",
            seen[1]
        );
    }
}

#[tokio::test]
async fn request_contains_the_key_and_declared_headers() {
    for (api, header, value) in [
        (Api::OpenaiChat, "authorization", "Bearer sk-test"),
        (Api::OpenaiResponses, "authorization", "Bearer sk-test"),
        (Api::Anthropic, "x-api-key", "sk-test"),
        (Api::Gemini, "x-goog-api-key", "sk-test"),
    ] {
        let server = serve(Script::replies([Reply::text("ok")]).unwrap()).await;
        let mut provider = provider(api, &server.base_url(api));
        provider.headers.insert("X-Team".into(), "tools".into());
        let mut client = client_of(provider, retry_without_waiting());
        ask(&mut client, &super::hello_request()).await.1.unwrap();
        let sent = &server.requests()[0];
        assert_eq!(sent.header(header), Some(value), "{api}");
        assert_eq!(sent.header("x-team"), Some("tools"), "{api}");
        assert_eq!(
            sent.header("content-type"),
            Some("application/json"),
            "{api}"
        );
    }
}

#[tokio::test]
async fn request_body_equals_the_encoded_body() {
    for api in Api::ALL {
        let server = serve(Script::replies([Reply::text("ok")]).unwrap()).await;
        let mut client = client(api, &server);
        let rendered = client.encode_request(&super::hello_request());
        ask(&mut client, &super::hello_request()).await.1.unwrap();
        assert_eq!(server.requests()[0].body, rendered, "{api}");
    }
}
