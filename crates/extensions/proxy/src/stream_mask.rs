//! Masks secrets in the body of a reply, also those that a stream sends in several pieces.

use std::collections::BTreeMap;

use haft_text::Masker;
use serde_json::Value;

/// The fields that tell the interleaved parts of a stream apart.
const PART_FIELDS: [&str; 5] = ["type", "index", "output_index", "content_index", "item_id"];

/// Returns the body with secrets masked. Events of a stream that contain a piece of a secret are
/// written anew; everything else stays as it was sent.
pub(crate) fn mask_reply_body(masker: &Masker, body: &str) -> String {
    let mut body = StreamBody::parse(body);
    body.mask_pieces(masker, |event, path| {
        let part = PART_FIELDS.map(|field| event[field].to_string());
        format!("{} {path}", part.join(" "))
    });
    // A secret can also continue in another part.
    body.mask_pieces(masker, |_, path| path.to_owned());
    masker.mask(&body.into_text()).into_owned()
}

/// A reply as a list of lines, some of which hold an event.
struct StreamBody<'a> {
    lines: Vec<StreamLine<'a>>,
}

struct StreamLine<'a> {
    /// The text before the event, or the whole line if it holds none.
    before: &'a str,
    event: Option<Value>,
    /// The text of the event as it was sent, and the end of the line.
    sent: &'a str,
    end: &'a str,
    is_changed: bool,
}

/// A text in an event of a stream.
struct TextPiece {
    line: usize,
    pointer: String,
    text: String,
}

impl<'a> StreamBody<'a> {
    fn parse(body: &'a str) -> Self {
        if let Ok(whole @ Value::Array(_)) = serde_json::from_str(body) {
            return Self {
                lines: vec![StreamLine {
                    before: "",
                    event: Some(whole),
                    sent: body,
                    end: "",
                    is_changed: false,
                }],
            };
        }
        Self {
            lines: body.split_inclusive('\n').map(parse_line).collect(),
        }
    }

    /// Masks the texts with equal keys as the pieces of one text. `key_for` receives an event and
    /// the path of the text in it.
    fn mask_pieces(&mut self, masker: &Masker, key_for: impl Fn(&Value, &str) -> String) {
        let mut groups: BTreeMap<String, Vec<TextPiece>> = BTreeMap::new();
        for (number, line) in self.lines.iter().enumerate() {
            let Some(event) = &line.event else { continue };
            let elements = match event {
                Value::Array(elements) => elements.iter().collect(),
                other => vec![other],
            };
            for (element, value) in elements.into_iter().enumerate() {
                let root = if event.is_array() {
                    format!("/{element}")
                } else {
                    String::new()
                };
                collect_texts(value, &root, "", &mut |pointer, path, text| {
                    let piece = TextPiece {
                        line: number,
                        pointer: pointer.to_owned(),
                        text: text.to_owned(),
                    };
                    groups.entry(key_for(value, path)).or_default().push(piece);
                });
            }
        }
        for pieces in groups.into_values().filter(|pieces| pieces.len() > 1) {
            let texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
            let masked = masker.mask_pieces(&texts);
            for (piece, masked) in pieces.iter().zip(masked) {
                if piece.text != masked {
                    self.lines[piece.line].replace_text(&piece.pointer, masked);
                }
            }
        }
    }

    fn into_text(self) -> String {
        let mut text = String::new();
        for line in self.lines {
            text.push_str(line.before);
            match line.event {
                Some(event) if line.is_changed => text.push_str(&event.to_string()),
                Some(_) | None => text.push_str(line.sent),
            }
            text.push_str(line.end);
        }
        text
    }
}

impl StreamLine<'_> {
    fn replace_text(&mut self, pointer: &str, text: String) {
        let value = self
            .event
            .as_mut()
            .and_then(|event| event.pointer_mut(pointer));
        if let Some(value) = value {
            *value = Value::String(text);
            self.is_changed = true;
        }
    }
}

/// Parses a line of an event stream, or of JSON lines.
fn parse_line(line: &str) -> StreamLine<'_> {
    let content = line.trim_end_matches(['\r', '\n']);
    let start = match content.strip_prefix("data:") {
        Some(data) => content.len() - data.trim_start().len(),
        None => 0,
    };
    let sent = &content[start..];
    let event = serde_json::from_str(sent).ok().filter(Value::is_object);
    StreamLine {
        before: &content[..start],
        event,
        sent,
        end: &line[content.len()..],
        is_changed: false,
    }
}

/// Passes every text in `value` to `found`, with its JSON pointer and its path. In the path, an
/// element of a list is named by its field `index`, because streams send lists in pieces.
fn collect_texts(
    value: &Value,
    pointer: &str,
    path: &str,
    found: &mut impl FnMut(&str, &str, &str),
) {
    match value {
        Value::String(text) => found(pointer, path, text),
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let name = &item["index"];
                let path = format!("{path}/{name}");
                collect_texts(item, &format!("{pointer}/{number}"), &path, found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{escaped}");
                collect_texts(field, &pointer, &format!("{path}/{name}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "quiet-key-4711-abcdefgh";

    fn masker() -> Masker {
        Masker::with_encoded_values([KEY])
    }

    fn event_stream(events: &[Value]) -> String {
        let lines = events
            .iter()
            .map(|event| format!("event: x\r\ndata: {event}\r\n\r\n"));
        lines.collect::<Vec<_>>().concat()
    }

    /// Returns the text of all fields named `field`.
    fn joined(body: &str, field: &str) -> String {
        let mut text = String::new();
        for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
            let event: Value = serde_json::from_str(line).unwrap();
            collect_texts(&event, "", "", &mut |_, path, piece| {
                if path.ends_with(field) {
                    text.push_str(piece);
                }
            });
        }
        text
    }

    /// Builds an event of a stream with this text.
    type BuildEvent<'a> = &'a dyn Fn(&str) -> Value;

    #[test]
    fn mask_reply_body_masks_pieces_of_every_api() {
        let (first, last) = KEY.split_at(9);
        let chat = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        let anthropic = |text: &str| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}});
        let arguments = |text: &str| json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": text}});
        let responses = |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
        let gemini = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]});
        let kinds: [(BuildEvent<'_>, &str); 5] = [
            (&chat, "/content"),
            (&anthropic, "/text"),
            (&arguments, "/partial_json"),
            (&responses, "/delta"),
            (&gemini, "/text"),
        ];
        for (event, field) in kinds {
            let body = event_stream(&[
                event("a "),
                event(first),
                event(""),
                event(last),
                event(" b"),
            ]);
            let masked = mask_reply_body(&masker(), &body);
            assert_eq!(joined(&masked, field), "a [masked: key] b", "{masked}");
            let list = Value::from(vec![event(first), event(last)]).to_string();
            let masked = mask_reply_body(&masker(), &list);
            assert!(
                !masked.contains(first) && masked.contains("[masked: key]"),
                "{masked}"
            );
            let lines = format!("{}\n{}\n", event(first), event(last));
            assert!(!mask_reply_body(&masker(), &lines).contains(first));
        }
    }

    #[test]
    fn mask_reply_body_follows_interleaved_parts() {
        let (first, last) = KEY.split_at(9);
        let event =
            |index: u8, text: &str| json!({"type": "d", "index": index, "delta": {"text": text}});
        let body = event_stream(&[event(0, first), event(1, "other"), event(0, last)]);
        let masked = mask_reply_body(&masker(), &body);
        assert_eq!(joined(&masked, "/text"), "[masked: key]other");
        // One character at a time.
        let letters: Vec<_> = KEY.chars().map(|c| event(0, &c.to_string())).collect();
        let masked = mask_reply_body(&masker(), &event_stream(&letters));
        assert_eq!(joined(&masked, "/text"), "[masked: key]");
    }

    #[test]
    fn mask_reply_body_keeps_bodies_without_secrets() {
        for body in [
            "",
            "not JSON",
            "data: [DONE]\n\n",
            "{\"a\" :  1}",
            "event: x\ndata: {\"b\": \"x\",  \"a\": 1}\n\n",
            "[{\"a\": \"x\"},  {\"a\": \"y\"}]",
        ] {
            assert_eq!(mask_reply_body(&masker(), body), body);
        }
        assert_eq!(mask_reply_body(&masker(), KEY), "[masked: key]");
    }
}
