//! Tests the guarantee the context engine relies on: appending segments to a request only appends
//! bytes to its body.

use bytes::Bytes;
use haft_types::{Envelope, Image, Thinking, ToolCall, ToolProtocol, ToolResult, ToolStatus};
use proptest::prelude::*;

use super::*;
use crate::wire::Encoder;

const PROTOCOLS: [ToolProtocol; 3] = [ToolProtocol::Native, ToolProtocol::Xml, ToolProtocol::React];

/// Generates a unit of conversation after which a request may end: a message, or a block with all
/// its results.
fn unit() -> impl Strategy<Value = Vec<Message>> {
    let text = "[ -~äß世🌍\n\"\\\\]{0,12}";
    let picture = any::<bool>();
    let user = (text, picture).prop_map(|(text, picture)| {
        let mut parts = vec![Part::from_text(text)];
        parts.extend(picture.then(image));
        vec![message(Role::User, parts, None)]
    });
    let assistant = (text, text, any::<bool>()).prop_map(|(thought, text, own)| {
        let maker = if own { "mock/test" } else { "other/model" };
        let thinking = Thinking {
            text: thought,
            signature: Some("sig".into()),
            raw: None,
        };
        vec![message(
            Role::Assistant,
            vec![Part::Thinking(thinking), Part::from_text(text)],
            Some(maker),
        )]
    });
    let summary =
        text.prop_map(|text| vec![message(Role::Summary, vec![Part::from_text(text)], None)]);
    let block = (
        text,
        prop::collection::vec((text, any::<bool>(), any::<bool>(), "[{}\" a:]{0,6}"), 1..4),
    )
        .prop_map(|(text, calls)| {
            let mut parts = vec![Part::from_text(text)];
            let mut results = Vec::new();
            for (index, (output, failed, picture, arguments)) in calls.into_iter().enumerate() {
                let id = format!("call_{index}");
                parts.push(Part::ToolCall(ToolCall {
                    id: id.clone(),
                    name: "f".into(),
                    arguments,
                    signature: None,
                }));
                let status = if failed {
                    ToolStatus::Error
                } else {
                    ToolStatus::Success
                };
                let envelope = Envelope {
                    status,
                    text: output,
                    ..Envelope::default()
                };
                let result = ToolResult {
                    tool_call_id: id,
                    name: "f".into(),
                    envelope,
                };
                let mut content = vec![Part::ToolResult(Box::new(result))];
                content.extend(picture.then(image));
                results.push(message(Role::Tool, content, None));
            }
            let mut unit = vec![message(Role::Assistant, parts, Some("mock/test"))];
            unit.extend(results);
            unit
        });
    prop_oneof![user, assistant, summary, block]
}

fn image() -> Part {
    Part::Image(Image {
        media_type: "image/png".into(),
        data: "aGFmdA==".into(),
    })
}

fn segments(units: &[Vec<Message>], boundaries: &[bool]) -> Vec<Segment> {
    let system = message(
        Role::System,
        vec![Part::from_text("You are \"haft\".")],
        None,
    );
    std::iter::once(&system)
        .chain(units.iter().flatten())
        .zip(boundaries.iter().cycle())
        .map(|(message, boundary)| segment(message.clone(), *boundary))
        .collect()
}

/// Returns the body without cache markers and without its closing brackets.
fn strip_markers_and_end(body: Bytes) -> String {
    let text = String::from_utf8(body.into()).unwrap();
    let text = text.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
    text.trim_end_matches(['}', ']']).to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn body_only_grows_when_segments_are_appended(
        units in prop::collection::vec(unit(), 1..8),
        cut in any::<prop::sample::Index>(),
        earlier in prop::collection::vec(any::<bool>(), 3),
        later in prop::collection::vec(any::<bool>(), 3),
    ) {
        let shorter = request(segments(&units[..cut.index(units.len() + 1)], &earlier), vec![]);
        let longer = request(segments(&units, &later), vec![]);
        for (api, protocol) in Api::ALL.into_iter().flat_map(|api| PROTOCOLS.map(|protocol| (api, protocol))) {
            let settings = |api| {
                let mut settings = settings(api);
                settings.spec.tool_protocol = protocol;
                settings
            };
            let mut encoder = Encoder::new(settings(api));
            let first = encoder.encode_body(&shorter);
            let second = encoder.encode_body(&longer);
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&second).is_ok());
            // The cache of fragments does not affect the body.
            prop_assert_eq!(&second, &Encoder::new(settings(api)).encode_body(&longer));
            let first = strip_markers_and_end(first);
            let second = strip_markers_and_end(second);
            prop_assert!(second.starts_with(&first), "{api} {protocol:?}\n{first}\n{second}");
        }
    }
}
