//! Encodes requests. Turns alternate between `user` and `model`; a thought signature goes back on
//! exactly the part that carried it.

use std::borrow::Cow;

use haft_types::{Image, Message, Part, Request, Role, ToolCall, ToolResult, ToolSpec, ToolStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::wire::json;
use crate::wire::names::sanitize_tool_name;
use crate::wire::{
    CacheMark, CallIds, Fragment, IMAGE_OMITTED, Settings, Wire, WireFrame, WireTurn,
    wrap_as_user_text,
};

pub(crate) struct GeminiWire(pub(crate) Settings);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(flatten)]
    kind: GeminiPartKind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum GeminiPartKind<'a> {
    Text(&'a str),
    InlineData(GeminiInlineData<'a>),
    FunctionResponse(GeminiResponse<'a>),
}

/// A tool call in a turn of the model. It is not a variant of [`GeminiPartKind`], because a
/// flattened enum cannot contain raw arguments.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCallPart<'a> {
    function_call: GeminiCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiInlineData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct GeminiCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct GeminiResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: GeminiResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum GeminiResult<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl Wire for GeminiWire {
    fn encode_front(&self, request: &Request) -> Vec<u8> {
        let Settings { spec, extra, .. } = &self.0;
        let mut config = match extra.get("generationConfig") {
            Some(Value::Object(given)) => given.clone(),
            _ => Map::new(),
        };
        if let Some(limit) = request.max_output_tokens.or(spec.max_output_tokens) {
            config
                .entry("maxOutputTokens")
                .or_insert_with(|| limit.into());
        }
        // The model is in the path.
        let mut out = json::open_body("generationConfig", &config);
        json::append_fields(
            &mut out,
            extra.iter().filter(|(key, _)| *key != "generationConfig"),
        );
        out
    }

    fn encode_tools(&self, tools: &[ToolSpec], _: CacheMark) -> Value {
        let declaration = |tool: &ToolSpec| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters});
        json!([{"functionDeclarations": tools.iter().map(declaration).collect::<Value>()}])
    }

    fn system_frame(&self) -> Option<WireFrame> {
        Some(WireFrame {
            open: "\"systemInstruction\":{\"parts\":[",
            between: ",",
            close: "]}",
        })
    }

    fn encode_system(&self, message: &Message, _: CacheMark) -> Vec<u8> {
        let text = message.joined_text();
        let mut out = Vec::new();
        if !text.trim().is_empty() {
            json::append_value(
                &mut out,
                &GeminiPart {
                    kind: GeminiPartKind::Text(&text),
                    thought_signature: None,
                },
            );
        }
        out
    }

    fn list_opening(&self) -> &'static str {
        "\"contents\":["
    }

    fn turn_frame(&self, turn: WireTurn) -> Option<WireFrame> {
        let open = match turn {
            WireTurn::User => "{\"role\":\"user\",\"parts\":[",
            WireTurn::Assistant => "{\"role\":\"model\",\"parts\":[",
        };
        Some(WireFrame {
            open,
            between: ",",
            close: "]}",
        })
    }

    fn encode_message(&self, message: &Message, _: CacheMark) -> Fragment {
        let turn = if message.role == Role::Assistant {
            WireTurn::Assistant
        } else {
            WireTurn::User
        };
        let mut fragment = Fragment::new(turn);
        if let Some(text) = wrap_as_user_text(message) {
            json::append_item(
                &mut fragment.items,
                &GeminiPart {
                    kind: GeminiPartKind::Text(&text),
                    thought_signature: None,
                },
            );
            return fragment;
        }
        // Only the model that created a signature accepts it.
        let made_here = self.0.is_author_of(message);
        let signed = |signature: &'_ Option<String>| signature.clone().filter(|_| made_here);
        let mut calls = 0;
        let mut after_result = false;
        for part in &message.content {
            match part {
                Part::Text { text, signature } => {
                    let signature = signed(signature);
                    if !text.trim().is_empty() || signature.is_some() {
                        let kind = GeminiPartKind::Text(text);
                        json::append_item(
                            &mut fragment.items,
                            &GeminiPart {
                                kind,
                                thought_signature: signature.as_deref(),
                            },
                        );
                    }
                }
                Part::ToolCall(call) => {
                    let own = signed(&call.signature);
                    let stand_in = (calls == 0).then(|| self.placeholder_signature()).flatten();
                    json::append_item(
                        &mut fragment.items,
                        &call_part(call, own.as_deref().or(stand_in)),
                    );
                    calls += 1;
                }
                Part::ToolResult(result) => {
                    json::append_item(&mut fragment.results, &result_part(result));
                    after_result = true;
                }
                Part::Image(image) => {
                    let target = if after_result {
                        &mut fragment.after_results
                    } else {
                        &mut fragment.items
                    };
                    json::append_item(target, &self.image_part(image));
                }
                // Thoughts are never sent back, only the signatures on other parts.
                Part::Thinking(_) => {}
            }
        }
        fragment
    }
}

fn call_part<'a>(call: &'a ToolCall, thought_signature: Option<&'a str>) -> GeminiCallPart<'a> {
    let function_call = GeminiCall {
        id: known_id(&call.id),
        name: sanitize_tool_name(&call.name),
        args: json::object_or_empty(&call.arguments),
    };
    GeminiCallPart {
        function_call,
        thought_signature,
    }
}

fn result_part(result: &ToolResult) -> GeminiPart<'_> {
    let text = result.envelope.text.as_str();
    let response = match result.envelope.status {
        ToolStatus::Error => GeminiResult::Error(text),
        ToolStatus::Success | ToolStatus::Partial => GeminiResult::Output(text),
    };
    let id = known_id(&result.tool_call_id);
    let name = sanitize_tool_name(&result.name);
    GeminiPart {
        kind: GeminiPartKind::FunctionResponse(GeminiResponse { id, name, response }),
        thought_signature: None,
    }
}

impl GeminiWire {
    /// Returns the placeholder signature that the documentation prescribes for calls made by other
    /// models. Models from the third generation on reject a first call without a signature, even if
    /// another model made the call.
    fn placeholder_signature(&self) -> Option<&'static str> {
        let name = self.0.spec.name.trim_start_matches("models/");
        let generation = name
            .strip_prefix("gemini-")?
            .split(['.', '-'])
            .next()?
            .parse::<u32>()
            .ok()?;
        (generation >= 3).then_some("skip_thought_signature_validator")
    }

    fn image_part<'a>(&self, image: &'a Image) -> GeminiPart<'a> {
        let kind = if self.0.spec.capabilities.images {
            GeminiPartKind::InlineData(GeminiInlineData {
                mime_type: &image.media_type,
                data: &image.data,
            })
        } else {
            GeminiPartKind::Text(IMAGE_OMITTED)
        };
        GeminiPart {
            kind,
            thought_signature: None,
        }
    }
}

/// Returns the id of a call if the provider knows it. Generated ids are left out: some deployments
/// reject the field, and calls without ids are matched by name and order.
fn known_id(id: &str) -> Option<&str> {
    (!id.is_empty() && !CallIds::is_generated(id)).then_some(id)
}
