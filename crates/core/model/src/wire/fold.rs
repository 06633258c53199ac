//! Moves user texts after tool results into the last result, as `<system-reminder>` blocks, for
//! models that reject a user message after a tool result.

use std::sync::Arc;

use haft_types::{Entry, Hasher, Part, Role, Segment};

/// Returns the segments in which every user text that follows a tool result has been moved into
/// that result. Messages with images are not moved.
pub(crate) fn fold_text_into_results(segments: &[Segment]) -> Vec<Segment> {
    let mut folded: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        let is_speech = segment.entry.message.role == Role::User && has_only_text(segment);
        match folded.last_mut() {
            Some(last) if is_speech && has_tool_result(last) => {
                append_to_last_result(last, segment);
            }
            _ => folded.push(segment.clone()),
        }
    }
    folded
}

fn has_only_text(segment: &Segment) -> bool {
    segment
        .entry
        .message
        .content
        .iter()
        .all(|part| matches!(part, Part::Text { .. }))
}

fn has_tool_result(segment: &Segment) -> bool {
    segment
        .entry
        .message
        .content
        .iter()
        .any(|part| matches!(part, Part::ToolResult(_)))
}

fn append_to_last_result(last: &mut Segment, added: &Segment) {
    let mut message = last.entry.message.clone();
    let result = message
        .content
        .iter_mut()
        .rev()
        .find_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => None,
        });
    if let Some(result) = result {
        let text = added.entry.message.joined_text();
        for piece in ["\n\n<system-reminder>\n", &text, "\n</system-reminder>"] {
            result.envelope.text.push_str(piece);
        }
    }
    // Computed from the two hashes, so that a long result is not hashed again for every request.
    let hash = Hasher::default()
        .update(&last.entry.hash.0)
        .update(&added.entry.hash.0)
        .finish();
    let tokens = last.entry.tokens.saturating_add(added.entry.tokens);
    last.entry = Arc::new(Entry {
        message,
        hash,
        tokens,
    });
    last.boundary = added.boundary;
}

#[cfg(test)]
mod tests {
    use haft_types::{Envelope, Message, MessageId, Timestamp, TokenCounter, ToolResult};

    use super::*;

    struct NoCount;

    impl TokenCounter for NoCount {
        fn count_text(&self, _: &str) -> u32 {
            0
        }
    }

    fn segment(role: Role, part: Part) -> Segment {
        let id: MessageId = "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap();
        let at: Timestamp = "2026-11-15T10:00:00Z".parse().unwrap();
        let entry = Entry::new(Message::new(id, role, vec![part], at), &NoCount);
        Segment {
            layer: haft_types::Layer::History,
            owner: "test",
            entry,
            boundary: role == Role::User,
        }
    }

    fn result(text: &str) -> Segment {
        let envelope = Envelope::success(text);
        let result = ToolResult {
            tool_call_id: "a".into(),
            name: "f".into(),
            envelope,
        };
        segment(Role::Tool, Part::ToolResult(Box::new(result)))
    }

    #[test]
    fn fold_after_results_moves_reminders_into_the_last_result() {
        let user = |text: &str| segment(Role::User, Part::from_text(text));
        let given = [
            user("go"),
            result("one"),
            result("two"),
            user("<todo/>"),
            user("<role/>"),
        ];
        let folded = fold_text_into_results(&given);
        assert_eq!(folded.len(), 3);
        assert_eq!(folded[..2], given[..2]);
        assert_eq!(
            folded[2]
                .entry
                .message
                .tool_results()
                .next()
                .unwrap()
                .envelope
                .text,
            "two\n\n<system-reminder>\n<todo/>\n</system-reminder>\n\n<system-reminder>\n<role/>\n</system-reminder>"
        );
        assert!(folded[2].boundary);
        // Reordered texts change the hash of the message.
        let swapped = fold_text_into_results(&[
            user("go"),
            result("one"),
            result("two"),
            user("<role/>"),
            user("<todo/>"),
        ]);
        assert_ne!(folded[2].entry.hash, swapped[2].entry.hash);
    }
}
