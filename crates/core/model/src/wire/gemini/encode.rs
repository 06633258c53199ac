//! Requests. Turns alternate between `user` and `model`; a thought signature goes back on the very part that carried it.

use std::borrow::Cow;

use haft_types::{Image, Message, Part, Request, Role, ToolCall, ToolResult, ToolSpec, ToolStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::wire::json::{self, field};
use crate::wire::names::tool_name;
use crate::wire::{CallIds, Fragment, Frame, IMAGE_OMITTED, Mark, Settings, Turn, Wire, wrapped_text};

pub(crate) struct Gemini(pub(crate) Settings);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Kind<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

/// Not one of [`Kind`]: a flattened enum cannot hold arguments as they came.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl Wire for Gemini {
    fn front(&self, request: &Request) -> Vec<u8> {
        let Settings { spec, extra, .. } = &self.0;
        let mut config = match extra.get("generationConfig") {
            Some(Value::Object(given)) => given.clone(),
            _ => Map::new(),
        };
        if let Some(limit) = request.max_output_tokens.or(spec.max_output_tokens) {
            config.entry("maxOutputTokens").or_insert_with(|| limit.into());
        }
        // The model is in the path; the first field has no comma before it.
        let mut out = b"{\"generationConfig\":".to_vec();
        json::write(&mut out, &config);
        for (key, value) in extra.iter().filter(|(key, _)| *key != "generationConfig") {
            field(&mut out, key, value);
        }
        out
    }

    fn tools(&self, tools: &[ToolSpec], _: Mark) -> Vec<u8> {
        if tools.is_empty() {
            return Vec::new();
        }
        let declarations: Vec<_> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description,
                    "parametersJsonSchema": tool.parameters,
                })
            })
            .collect();
        let mut out = b"\"tools\":".to_vec();
        json::write(&mut out, &json!([{"functionDeclarations": declarations}]));
        out
    }

    fn system_frame(&self) -> Option<Frame> {
        Some(Frame { open: "\"systemInstruction\":{\"parts\":[", between: ",", close: "]}" })
    }

    fn system(&self, message: &Message, _: Mark) -> Vec<u8> {
        let text = message.joined_text();
        let mut out = Vec::new();
        if !text.trim().is_empty() {
            json::write(&mut out, &WirePart { kind: Kind::Text(&text), thought_signature: None });
        }
        out
    }

    fn list(&self) -> &'static str {
        "\"contents\":["
    }

    fn turn(&self, turn: Turn) -> Option<Frame> {
        let open = match turn {
            Turn::User => "{\"role\":\"user\",\"parts\":[",
            Turn::Assistant => "{\"role\":\"model\",\"parts\":[",
        };
        Some(Frame { open, between: ",", close: "]}" })
    }

    fn message(&self, message: &Message, _: Mark) -> Fragment {
        let turn = if message.role == Role::Assistant { Turn::Assistant } else { Turn::User };
        let mut fragment = Fragment::new(turn);
        if let Some(text) = wrapped_text(message) {
            json::push(&mut fragment.items, &WirePart { kind: Kind::Text(&text), thought_signature: None });
            return fragment;
        }
        // A signature means something only to the model that made it.
        let made_here = self.0.made(message);
        let signed = |signature: &'_ Option<String>| signature.clone().filter(|_| made_here);
        let (mut calls, mut after_result) = (0, false);
        for part in &message.content {
            match part {
                Part::Text { text, signature } => {
                    let signature = signed(signature);
                    if !text.trim().is_empty() || signature.is_some() {
                        let kind = Kind::Text(text);
                        json::push(&mut fragment.items, &WirePart { kind, thought_signature: signature.as_deref() });
                    }
                }
                Part::ToolCall(call) => {
                    let own = signed(&call.signature);
                    let stand_in = (calls == 0).then(|| self.stand_in_signature()).flatten();
                    json::push(&mut fragment.items, &call_part(call, own.as_deref().or(stand_in)));
                    calls += 1;
                }
                Part::ToolResult(result) => {
                    json::push(&mut fragment.results, &result_part(result));
                    after_result = true;
                }
                Part::Image(image) => {
                    let target = if after_result { &mut fragment.after_results } else { &mut fragment.items };
                    json::push(target, &self.picture(image));
                }
                // Thoughts are never sent back, only the signatures they left on other parts.
                Part::Thinking(_) => {}
            }
        }
        fragment
    }
}

fn call_part<'a>(call: &'a ToolCall, thought_signature: Option<&'a str>) -> CallPart<'a> {
    let function_call =
        FunctionCall { id: known_id(&call.id), name: tool_name(&call.name), args: json::object(&call.arguments) };
    CallPart { function_call, thought_signature }
}

fn result_part(result: &ToolResult) -> WirePart<'_> {
    let text = result.envelope.text.as_str();
    let response = match result.envelope.status {
        ToolStatus::Error => Outcome::Error(text),
        ToolStatus::Success | ToolStatus::Partial => Outcome::Output(text),
    };
    let (id, name) = (known_id(&result.tool_call_id), tool_name(&result.name));
    WirePart { kind: Kind::FunctionResponse(FunctionResponse { id, name, response }), thought_signature: None }
}

impl Gemini {
    /// From its third generation on the API refuses a first call without signature, also where another model made the
    /// call; for those its documentation names this one.
    fn stand_in_signature(&self) -> Option<&'static str> {
        let name = self.0.spec.name.trim_start_matches("models/");
        let generation = name.strip_prefix("gemini-")?.split(['.', '-']).next()?.parse::<u32>().ok()?;
        (generation >= 3).then_some("skip_thought_signature_validator")
    }

    fn picture<'a>(&self, image: &'a Image) -> WirePart<'a> {
        let kind = if self.0.spec.capabilities.images {
            Kind::InlineData(InlineData { mime_type: &image.media_type, data: &image.data })
        } else {
            Kind::Text(IMAGE_OMITTED)
        };
        WirePart { kind, thought_signature: None }
    }
}

/// The id where the provider knows it. Ids haft made up are left out: some deployments refuse the field, and calls without
/// ids are matched by name and order.
fn known_id(id: &str) -> Option<&str> {
    (!id.is_empty() && !CallIds::is_own(id)).then_some(id)
}
