//! The parts of a message, and their stable JSON form.
//!
//! The arguments of a tool call keep the bytes that the model wrote: an object is embedded
//! unchanged, anything else (a cut or broken text) becomes a JSON string. Serialization is written
//! by hand because serde's tagged enums would parse and reprint the arguments.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::tool::Envelope;

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text {
        text: String,
        /// The provider's signature of this text (Gemini); sent back only to that provider.
        signature: Option<String>,
    },
    /// The model's reasoning.
    Thinking(Thinking),
    /// A request by the model to run a tool.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(Box<ToolResult>),
    /// An image. An image directly after a tool result belongs to that result.
    Image(Image),
}

impl Part {
    /// Creates a text part without a signature.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            signature: None,
        }
    }
}

/// The model's reasoning, with the data that its provider requires when it is sent back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thinking {
    /// The readable text; may be empty if the provider hides it.
    pub text: String,
    /// The provider's signature of the reasoning, or its encrypted content.
    pub signature: Option<String>,
    /// The provider's item as received, for items that must be sent back verbatim (OpenAI reasoning
    /// items and redacted thinking).
    pub raw: Option<String>,
}

/// A tool call. Its arguments are kept as received.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The id that the provider gave the call, or one made by haft if the provider gives none.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments exactly as received. They are parsed and checked before the tool runs.
    pub arguments: String,
    /// The provider's signature of the call (Gemini thought signatures); sent back only to that
    /// provider.
    pub signature: Option<String>,
}

impl ToolCall {
    /// The tool that calls deferred tools, with the parameters `name` and `arguments`.
    pub const INDIRECT_TOOL: &'static str = "use_tool";

    /// Returns the call to run. For a call of [`Self::INDIRECT_TOOL`], this is a call of the tool
    /// that it names, with the arguments as the model wrote them. Any other call, and an indirect
    /// call that is malformed, is returned unchanged.
    pub fn resolve_indirect(&self) -> Cow<'_, Self> {
        #[derive(Deserialize)]
        struct NamedCall<'a> {
            name: String,
            #[serde(borrow)]
            arguments: Option<&'a RawValue>,
        }
        if self.name != Self::INDIRECT_TOOL {
            return Cow::Borrowed(self);
        }
        let Ok(NamedCall { name, arguments }) = serde_json::from_str(&self.arguments) else {
            return Cow::Borrowed(self);
        };
        let written = arguments.map_or("{}", RawValue::get);
        // Some models write the object as a JSON string.
        let arguments =
            serde_json::from_str::<String>(written).unwrap_or_else(|_| written.to_owned());
        if name == Self::INDIRECT_TOOL {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self {
            name,
            arguments,
            ..self.clone()
        })
    }
}

/// The result of one tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call that produced the result.
    pub tool_call_id: String,
    pub name: String,
    pub envelope: Envelope,
}

/// An image as base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The MIME type, such as `image/png`.
    pub media_type: String,
    /// The content of the image, encoded as base64.
    pub data: String,
}

/// The serialized form of a call's arguments: the JSON object itself, or a string if the text is
/// not a JSON object.
struct Arguments<'a>(&'a str);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(self.0) {
            // White space around the object would be lost; such a text is written as a string.
            Ok(raw) if raw.get().len() == self.0.len() && self.0.starts_with('{') => {
                raw.serialize(serializer)
            }
            _ => serializer.serialize_str(self.0),
        }
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Text { text, signature } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                serialize_optional(&mut map, "signature", signature.as_ref())?;
            }
            Self::Thinking(thinking) => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("text", &thinking.text)?;
                serialize_optional(&mut map, "signature", thinking.signature.as_ref())?;
                serialize_optional(&mut map, "raw", thinking.raw.as_ref())?;
            }
            Self::ToolCall(call) => {
                map.serialize_entry("type", "tool_call")?;
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("arguments", &Arguments(&call.arguments))?;
                serialize_optional(&mut map, "signature", call.signature.as_ref())?;
            }
            Self::ToolResult(result) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_call_id", &result.tool_call_id)?;
                map.serialize_entry("name", &result.name)?;
                let envelope = &result.envelope;
                map.serialize_entry("status", &envelope.status)?;
                map.serialize_entry("text", &envelope.text)?;
                serialize_optional(
                    &mut map,
                    "data",
                    (!envelope.data.is_null()).then_some(&envelope.data),
                )?;
                serialize_optional(
                    &mut map,
                    "stats",
                    (!envelope.stats.is_null()).then_some(&envelope.stats),
                )?;
                serialize_optional(
                    &mut map,
                    "context",
                    (!envelope.context.is_null()).then_some(&envelope.context),
                )?;
                serialize_optional(&mut map, "error", envelope.error.as_ref())?;
            }
            Self::Image(image) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("media_type", &image.media_type)?;
                map.serialize_entry("data", &image.data)?;
            }
        }
        map.end()
    }
}

fn serialize_optional<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

/// The fields of all kinds of parts together. After deserialization, the fields that a part's kind
/// requires are checked.
#[derive(Deserialize)]
struct PartFields {
    r#type: String,
    text: Option<String>,
    signature: Option<String>,
    raw: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    tool_call_id: Option<String>,
    status: Option<crate::tool::ToolStatus>,
    #[serde(default)]
    stats: serde_json::Value,
    #[serde(default)]
    context: serde_json::Value,
    error: Option<crate::tool::ToolError>,
    media_type: Option<String>,
    // The base64 string of an image, or the value of a tool result.
    #[serde(default)]
    data: serde_json::Value,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = PartFields::deserialize(deserializer)?;
        let missing = D::Error::missing_field;
        Ok(match fields.r#type.as_str() {
            "text" => Self::Text {
                text: fields.text.ok_or_else(|| missing("text"))?,
                signature: fields.signature,
            },
            "thinking" => Self::Thinking(Thinking {
                text: fields.text.ok_or_else(|| missing("text"))?,
                signature: fields.signature,
                raw: fields.raw,
            }),
            "tool_call" => {
                let raw = fields.arguments.ok_or_else(|| missing("arguments"))?;
                let arguments = if raw.get().starts_with('"') {
                    serde_json::from_str(raw.get()).map_err(D::Error::custom)?
                } else {
                    Box::<str>::from(raw).into_string()
                };
                Self::ToolCall(ToolCall {
                    id: fields.id.ok_or_else(|| missing("id"))?,
                    name: fields.name.ok_or_else(|| missing("name"))?,
                    arguments,
                    signature: fields.signature,
                })
            }
            "tool_result" => Self::ToolResult(Box::new(ToolResult {
                tool_call_id: fields.tool_call_id.ok_or_else(|| missing("tool_call_id"))?,
                name: fields.name.ok_or_else(|| missing("name"))?,
                envelope: Envelope {
                    status: fields.status.ok_or_else(|| missing("status"))?,
                    text: fields.text.ok_or_else(|| missing("text"))?,
                    data: fields.data,
                    stats: fields.stats,
                    context: fields.context,
                    error: fields.error,
                },
            })),
            "image" => match fields.data {
                serde_json::Value::String(data) => Self::Image(Image {
                    media_type: fields.media_type.ok_or_else(|| missing("media_type"))?,
                    data,
                }),
                _ => return Err(missing("data")),
            },
            other => {
                return Err(D::Error::unknown_variant(
                    other,
                    &["text", "thinking", "tool_call", "tool_result", "image"],
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant_call(name: &str, arguments: &str) -> (String, String) {
        let call = ToolCall {
            id: "c1".into(),
            name: name.into(),
            arguments: arguments.into(),
            signature: Some("s".into()),
        };
        let meant = call.resolve_indirect().into_owned();
        assert_eq!((meant.id, meant.signature), (call.id, call.signature));
        (meant.name, meant.arguments)
    }

    #[test]
    fn meant_returns_the_tool_named_in_an_indirect_call() {
        let pair = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
        let through = |arguments: &str| meant_call(ToolCall::INDIRECT_TOOL, arguments);
        assert_eq!(
            through(r#"{"name": "glob", "arguments": {"a": 1,  "a": 2}}"#),
            pair("glob", r#"{"a": 1,  "a": 2}"#)
        );
        assert_eq!(through(r#"{"name": "todo_read"}"#), pair("todo_read", "{}"));
        assert_eq!(
            through(r#"{"name": "glob", "arguments": "{\"a\": 1}"}"#),
            pair("glob", r#"{"a": 1}"#)
        );
        for unclear in [
            r#"{"name": "use_tool", "arguments": {}}"#,
            r#"{"arguments": {}}"#,
            "{",
            "[]",
        ] {
            assert_eq!(through(unclear), pair(ToolCall::INDIRECT_TOOL, unclear));
        }
        assert_eq!(
            meant_call("glob", r#"{"name": "x"}"#),
            pair("glob", r#"{"name": "x"}"#)
        );
    }
}
