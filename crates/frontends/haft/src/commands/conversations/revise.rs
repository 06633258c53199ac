//! `haft conversations revise`: changes a message from now on; the store keeps the earlier version.

use std::io::Read;

use haft_store::Revision;
use haft_types::Part;
use serde_json::json;

use super::change::{find_message_id, parse_metadata};
use super::{ReviseArgs, find_named_or_current, open_store};
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: ReviseArgs) -> anyhow::Result<()> {
    let pairs = parse_metadata(&args.metadata)?;
    let text = match args.text {
        Some(text) if text == "-" => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text)?;
            Some(text)
        }
        text => text,
    };
    if text.is_none() && pairs.is_empty() {
        return Err(usage_error(text!("conversations-revise-nothing")));
    }
    let store = open_store(haft, &args.output.common)?;
    let conversation = find_named_or_current(haft, store.as_ref(), args.id.as_deref()).await?;
    let messages = store.messages(&conversation.id).await?;
    let id = find_message_id(&messages, &args.message)?;
    let stored = messages.iter().find(|one| one.message_id == id);
    let content = match (text, stored) {
        (Some(text), Some(stored)) => {
            Some(replace_text(&stored.content, &text).ok_or_else(|| {
                usage_error(text!(
                    "conversations-revise-no-text",
                    message = args.message.clone()
                ))
            })?)
        }
        _ => None,
    };
    let revised = store
        .revise_message(
            &conversation.id,
            id,
            Revision {
                content,
                metadata: pairs,
                ..Revision::default()
            },
        )
        .await?;
    if args.output.json {
        return output::print_json(
            &json!({ "conversation_id": conversation.id, "message": revised }),
        );
    }
    output::print_text_line(&text!(
        "conversations-revised",
        message = id,
        conversation = conversation.id
    ))
}

/// Returns the content with `text` in place of its first text part and without its other text
/// parts, or `None` if it has no text part. Tool calls and results stay, because neighboring
/// messages refer to them.
fn replace_text(content: &[Part], text: &str) -> Option<Vec<Part>> {
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    let first = content.iter().position(is_text)?;
    let part = |(at, part): (usize, &Part)| {
        if at == first {
            Some(Part::from_text(text))
        } else {
            Some(part.clone()).filter(|part| !is_text(part))
        }
    };
    Some(content.iter().enumerate().filter_map(part).collect())
}
