//! Checks that the body of a reply doesn't depend on the sizes and the timing of its chunks.

use haft_testkit::support::{Campaign, Random, RawClient, RawReply, Trial};
use haft_testkit::{Reply, ReplyPart, Script, ScriptCall, ScriptedServer};
use haft_types::Api;
use serde_json::{Value, json};

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "chunking",
    about: "Any size of the pieces of a reply gives the same bytes, on every API.",
    trial: Trial::Alone(run_case),
};

fn run_case(random: &mut Random) -> Result<(), String> {
    let api = *random.choose(&Api::ALL).ok_or("no API")?;
    let stream = random.below(2) == 0;
    let whole = random_reply(random);
    let size = 1 + random.below(200);
    let cut = Reply {
        chunk_bytes: Some(size),
        ..whole.clone()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (whole, cut) = runtime.block_on(async {
        Ok::<_, String>((
            request_reply(api, stream, whole).await?,
            request_reply(api, stream, cut).await?,
        ))
    })?;
    if !whole.complete || !cut.complete {
        return Err(format!("{api}: a reply did not come to its end"));
    }
    if whole.body != cut.body {
        return Err(format!(
            "{api}, pieces of {size} bytes: {} bytes differ from {}",
            cut.body.len(),
            whole.body.len()
        ));
    }
    if cut.pieces.iter().rev().skip(1).any(|piece| *piece != size) {
        return Err(format!(
            "{api}: pieces of {size} bytes asked, {:?} sent",
            cut.pieces
        ));
    }
    Ok(())
}

fn random_reply(random: &mut Random) -> Reply {
    let count = 1 + random.below(4);
    let mut parts = Vec::with_capacity(count);
    for index in 0..count {
        parts.push(match random.below(3) {
            0 => ReplyPart::text(random.text(80)),
            1 => ReplyPart::thinking(random.text(80)),
            _ => {
                let arguments = match random.below(2) {
                    0 => json!({ "value": random.text(40) }),
                    _ => Value::String(random.text(40)),
                };
                ReplyPart::ToolCall(
                    ScriptCall::new("tool", arguments).with_id(format!("id_{index}")),
                )
            }
        });
    }
    Reply {
        delta_chars: Some(1 + random.below(9)),
        ..Reply::parts(parts)
    }
}

async fn request_reply(api: Api, stream: bool, reply: Reply) -> Result<RawReply, String> {
    let script = Script::replies([reply]).map_err(|error| error.to_string())?;
    let server = ScriptedServer::start(script)
        .await
        .map_err(|error| error.to_string())?;
    let user = json!([{ "role": "user", "content": "Hi." }]);
    let (path, body) = match api {
        Api::OpenaiChat => (
            "/v1/chat/completions",
            json!({ "model": "m", "stream": stream, "messages": user }),
        ),
        Api::OpenaiResponses => (
            "/v1/responses",
            json!({ "model": "m", "stream": stream, "input": user }),
        ),
        Api::Anthropic => (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 9, "stream": stream, "messages": user }),
        ),
        Api::Gemini => (
            if stream {
                "/v1beta/models/m:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/m:generateContent"
            },
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi." }] }] }),
        ),
    };
    let headers = [
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
    ];
    let mut client = RawClient::connect(server.address())
        .await
        .map_err(|error| error.to_string())?;
    let reply = client
        .post(path, &headers, &body)
        .await
        .map_err(|error| error.to_string())?;
    match reply.status {
        200 => Ok(reply),
        status => Err(format!(
            "{api}: status {status}: {}",
            String::from_utf8_lossy(&reply.body)
        )),
    }
}
