//! Keeps secrets out of stored and sent messages.
//!
//! Messages are masked before they enter the history, so that memory, store and request always
//! agree. A call runs with the arguments that the model wrote; only their stored copy is masked.

use haft_text::Masker;
use haft_types::{Envelope, Message, Part, Thinking};

/// Masks the secrets in a message.
pub(crate) fn mask_message(masker: &Masker, message: &mut Message) {
    for part in &mut message.content {
        match part {
            Part::Text { text, .. } => mask_text(masker, text),
            Part::Thinking(thinking) => mask_thinking(masker, thinking),
            Part::ToolCall(call) => mask_text(masker, &mut call.arguments),
            Part::ToolResult(result) => mask_envelope(masker, &mut result.envelope),
            Part::Image(_) => {}
        }
    }
}

/// Masks the secrets in a result.
pub(crate) fn mask_envelope(masker: &Masker, envelope: &mut Envelope) {
    mask_text(masker, &mut envelope.text);
    masker.mask_json(&mut envelope.data);
    if let Some(error) = &mut envelope.error {
        mask_text(masker, &mut error.message);
    }
}

pub(crate) fn mask_text(masker: &Masker, text: &mut String) {
    if let std::borrow::Cow::Owned(masked) = masker.mask(text) {
        *text = masked;
    }
}

/// Masks the secrets in the model's reasoning. Changed reasoning no longer matches its signature,
/// so the signature is removed and the reasoning is not sent back.
fn mask_thinking(masker: &Masker, thinking: &mut Thinking) {
    let raw_changes = thinking
        .raw
        .as_deref()
        .is_some_and(|raw| masker.mask(raw) != raw);
    let text_changes = masker.mask(&thinking.text) != thinking.text;
    if raw_changes || text_changes {
        let text = masker.mask(&thinking.text).into_owned();
        *thinking = Thinking {
            text,
            signature: None,
            raw: None,
        };
    }
}

/// Returns true if `arguments` contain the placeholder of a masked secret. Writing the placeholder
/// to a file would destroy the secret there.
pub(crate) fn contains_mask(arguments: &str) -> bool {
    arguments.match_indices("[masked: ").any(|(at, start)| {
        let name = arguments[at + start.len()..]
            .split(']')
            .next()
            .unwrap_or_default();
        !name.is_empty()
            && name.len() < 30
            && arguments[at + start.len() + name.len()..].starts_with(']')
    })
}

#[cfg(test)]
mod tests {
    use haft_types::{Role, ToolCall};
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

    #[test]
    fn mask_message_covers_every_part() {
        let envelope = Envelope::failure("e", format!("error {KEY}"))
            .with_data(json!({"lines": [{"text": KEY}]}));
        let result = haft_types::ToolResult {
            tool_call_id: "c".into(),
            name: "t".into(),
            envelope,
        };
        let thinking = Thinking {
            text: KEY.into(),
            signature: Some("s".into()),
            raw: Some(format!("{{\"t\":\"{KEY}\"}}")),
        };
        let call = ToolCall {
            id: "c".into(),
            name: "t".into(),
            arguments: format!("{{\"k\":\"{KEY}\"}}"),
            signature: None,
        };
        let parts = vec![
            Part::from_text(format!("a {KEY}")),
            Part::Thinking(thinking),
            Part::ToolCall(call),
            Part::ToolResult(Box::new(result)),
        ];
        let id = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
        let mut message = Message::new(
            id,
            Role::Assistant,
            parts,
            "2026-11-15T10:00:00Z".parse().unwrap(),
        );
        mask_message(&Masker::default(), &mut message);
        let stored = serde_json::to_string(&message).unwrap();
        assert!(!stored.contains(KEY), "{stored}");
        assert!(!stored.contains("signature"), "{stored}");
        let call = message.tool_calls().next().unwrap();
        assert!(
            serde_json::from_str::<Value>(&call.arguments).is_ok(),
            "still JSON: {}",
            call.arguments
        );
    }

    #[test]
    fn holds_a_mask_recognizes_masked_secrets_only() {
        let masker = Masker::default();
        assert!(contains_mask(&format!(
            "{{\"content\":\"{}\"}}",
            masker.mask(KEY)
        )));
        assert!(!contains_mask("{\"content\":\"[masked] and [masked: \"}"));
    }
}
