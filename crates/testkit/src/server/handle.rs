//! Handles one request: reads, checks, records and answers it.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use haft_types::Api;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use serde_json::Value;

use super::{Mode, Shared};
use crate::body::ScriptBody;
use crate::record::{Handled, Recorded};
use crate::render::{self, RequestTraits};
use crate::route::{PathModel, Route, detect_client_api, find_route};
use crate::rules::{self, RequestInfo};
use crate::scan::{self, Head};
use crate::script::ScriptedError;
use crate::seen::{FromPath, Seen};
use crate::select::{Choice, needs_decoded_request, ran_out_message};
use crate::timing::Watch;
use crate::wire::{self, Wants};

/// A request of which all bytes were received.
struct Arrived {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

pub(super) async fn handle_request(
    shared: Arc<Shared>,
    watch: Option<Watch>,
    request: Request<Incoming>,
) -> Result<Response<ScriptBody>, hyper::Error> {
    let (head, mut incoming) = request.into_parts();
    let route = find_route(
        &head.method,
        head.uri.path(),
        detect_client_api(&head.headers),
    );
    let pieces = read_body(&mut incoming).await?;
    let query = head.uri.query().unwrap_or_default();
    if shared.mode == Mode::Lean
        && !needs_decoded_request(&shared.script)
        && let Route::Generate { api, from_path } = &route
    {
        return Ok(answer_lean(&shared, watch.as_ref(), *api, from_path.as_ref(), &pieces).await);
    }
    let arrived = Arrived {
        method: head.method.to_string(),
        path: head
            .uri
            .path_and_query()
            .map_or_else(String::new, ToString::to_string),
        query: query.to_owned(),
        headers: collect_headers(&head.headers),
        body: join_pieces(pieces),
    };
    let (handled, response, delay) = choose_response(&shared, &route, &arrived);
    if shared.mode == Mode::Strict {
        record_request(&shared, route, arrived, handled);
    }
    sleep_ms(delay).await;
    if let Some(watch) = watch {
        watch.begin_reply();
    }
    Ok(response)
}

async fn read_body(incoming: &mut Incoming) -> Result<Vec<Bytes>, hyper::Error> {
    let mut pieces = Vec::new();
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data() {
            pieces.push(data);
        }
    }
    Ok(pieces)
}

fn join_pieces(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in pieces {
        whole.extend_from_slice(&piece);
    }
    whole.freeze()
}

fn collect_headers(map: &HeaderMap) -> Vec<(String, String)> {
    map.iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect()
}

async fn sleep_ms(delay_ms: u64) {
    if delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
    }
}

fn record_request(shared: &Shared, route: Route, arrived: Arrived, handled: Handled) {
    let mut recorded = shared
        .recorded
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let number = recorded.len() as u64 + 1;
    let Arrived {
        method,
        path,
        query: _,
        headers,
        body,
    } = arrived;
    recorded.push(Recorded {
        number,
        method,
        path,
        headers: headers.into(),
        body,
        handled,
        route,
    });
    let count = recorded.len();
    drop(recorded);
    shared.count.send_replace(count);
}

/// Answers a request for a model reply without decoding the conversation.
async fn answer_lean(
    shared: &Shared,
    watch: Option<&Watch>,
    api: Api,
    from_path: Option<&PathModel>,
    pieces: &[Bytes],
) -> Response<ScriptBody> {
    let body_bytes = pieces.iter().map(Bytes::len).sum();
    let head = match (from_path, pieces) {
        (Some(said), _) => Head {
            model: Some(said.model.clone()),
            stream: Some(said.stream),
        },
        (None, []) => Head::default(),
        (None, [first, ..]) => {
            let head = scan::scan_head(first);
            if head.model.is_some() && head.stream.is_some() {
                head
            } else {
                scan::scan_head(&pieces.concat())
            }
        }
    };
    let Choice { request, reply } = shared
        .selector
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .choose(&shared.script, None);
    let (response, delay) =
        match reply.and_then(|index| shared.script.replies.as_slice().get(index)) {
            Some(reply) => {
                let asked = RequestTraits {
                    api,
                    model: head.model.as_deref().unwrap_or_default(),
                    stream: head.stream.unwrap_or(false),
                    wants: Wants::ALL,
                    tag: request.to_string(),
                    body_bytes,
                };
                (render::build_response(reply, asked), reply.delay_ms)
            }
            None => (
                error_response(api, 500, ran_out_message(&shared.script, request, None)),
                0,
            ),
        };
    sleep_ms(delay).await;
    if let Some(watch) = watch {
        watch.begin_reply();
    }
    response
}

/// Decides how to handle a request. Returns the outcome, the response, and the number of
/// milliseconds to wait before the response is sent.
fn choose_response(
    shared: &Shared,
    route: &Route,
    arrived: &Arrived,
) -> (Handled, Response<ScriptBody>, u64) {
    match route {
        Route::Generate { api, from_path } => {
            choose_reply(shared, *api, from_path.as_ref(), arrived)
        }
        Route::CountTokens { api } => {
            let tokens = render::estimate_tokens(arrived.body.len());
            (
                Handled::Informed,
                render::json_response(200, &wire::encode_token_count(*api, tokens)),
                0,
            )
        }
        Route::Models { api } => (
            Handled::Informed,
            render::json_response(200, &wire::encode_models(*api, &shared.script)),
            0,
        ),
        Route::Unknown { api } => {
            let message = format!("nothing is served at {} {}", arrived.method, arrived.path);
            (Handled::NotFound, error_response(*api, 404, message), 0)
        }
    }
}

fn choose_reply(
    shared: &Shared,
    api: Api,
    from_path: Option<&PathModel>,
    arrived: &Arrived,
) -> (Handled, Response<ScriptBody>, u64) {
    let unreadable = |reason: String| {
        let response = error_response(api, 400, format!("could not read the request: {reason}"));
        (Handled::Unreadable { reason }, response, 0)
    };
    let body: Value = match serde_json::from_slice(&arrived.body) {
        Ok(body) => body,
        Err(error) => return unreadable(format!("the body is not JSON: {error}")),
    };
    let model = from_path.map_or_else(
        || body["model"].as_str().unwrap_or_default(),
        |said| said.model.as_str(),
    );
    let stream = from_path.map_or_else(
        || body["stream"].as_bool().unwrap_or(false),
        |said| said.stream,
    );
    if shared.mode == Mode::Strict {
        let info = RequestInfo {
            model_from_path: from_path.map(|said| said.model.clone()),
            stream,
            headers: arrived.headers.clone(),
        };
        if let Err(refusal) = rules::check_request(api, &body, &info) {
            let response = render::json_response(refusal.status, &refusal.body);
            return (Handled::Refused(refusal), response, 0);
        }
    }
    let seen = if needs_decoded_request(&shared.script) {
        let said = FromPath {
            model: from_path.map(|said| said.model.as_str()),
            stream,
        };
        match Seen::decode(api, &body, said) {
            Ok(seen) => Some(seen),
            Err(error) => return unreadable(error.to_string()),
        }
    } else {
        None
    };
    let Choice { request, reply } = shared
        .selector
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .choose(&shared.script, seen.as_ref());
    let Some((index, reply)) =
        reply.and_then(|index| Some((index, shared.script.replies.as_slice().get(index)?)))
    else {
        let message = ran_out_message(&shared.script, request, seen.as_ref());
        return (Handled::RanOut, error_response(api, 500, message), 0);
    };
    let asked = RequestTraits {
        api,
        model,
        stream,
        wants: Wants::from_request(&body, &arrived.query),
        // The length of the conversation keeps ids distinct if the server restarts but the client
        // doesn't.
        tag: format!("{}_{request}", conversation_length(&body)),
        body_bytes: arrived.body.len(),
    };
    (
        Handled::Replied { reply: index },
        render::build_response(reply, asked),
        reply.delay_ms,
    )
}

fn conversation_length(body: &Value) -> usize {
    let list = ["messages", "input", "contents"]
        .iter()
        .find_map(|key| body.get(key)?.as_array());
    list.map_or(0, Vec::len)
}

fn error_response(api: Api, status: u16, message: String) -> Response<ScriptBody> {
    render::json_response(
        status,
        &wire::error::error_body(api, status, &ScriptedError::new(message), None),
    )
}
