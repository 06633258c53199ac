//! `haft conversations show`: prints the newest messages of a conversation, or all of them.

use std::fmt::Write as _;

use haft_store::{Conversation, MessagePage, PageEnd};
use haft_types::{Part, ToolStatus};

use super::{named_or_current, open, transfer};
use crate::commands::conversations::ShowConversationArgs;
use crate::haft::Haft;
use crate::output;

pub(super) async fn show(haft: &Haft, args: ShowConversationArgs) -> anyhow::Result<()> {
    let store = open(haft, &args.common)?;
    let conversation = named_or_current(haft, store.as_ref(), args.id.as_deref()).await?;
    if args.json {
        return transfer::print_document(store.as_ref(), &conversation).await;
    }
    let most = if args.all { usize::MAX } else { args.last };
    let page = store.page(&conversation.id, PageEnd::Newest, most).await?;
    output::print(&as_text(&conversation, &page))
}

fn as_text(conversation: &Conversation, page: &MessagePage) -> String {
    let mut text = format!("{} ({})\n", conversation.name, conversation.id);
    if page.earlier() > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{}",
            text!("conversations-earlier", earlier = page.earlier())
        );
    }
    for message in &page.messages {
        let _ = writeln!(
            text,
            "\n{} {} {}",
            message.message_id.short(),
            output::localised(message.role),
            message.created_at.strftime("%Y-%m-%d %H:%M:%S")
        );
        for part in &message.content {
            text.push_str(&indent(&part_as_text(part)));
        }
    }
    haft_text::sanitise(&text).into_owned()
}

/// Formats a part of a message for people.
pub(crate) fn part_as_text(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thinking(thinking) => {
            format!("({}) {}", output::localised("thinking"), thinking.text)
        }
        Part::ToolCall(call) => format!("→ {} {}", call.name, call.arguments),
        Part::ToolResult(result) => {
            let status = match result.envelope.status {
                ToolStatus::Success => "ok",
                ToolStatus::Partial => "partial",
                ToolStatus::Error => "error",
            };
            format!(
                "← {} ({}) {}",
                result.name,
                output::localised(status),
                result.envelope.text
            )
        }
        Part::Image(image) => output::localised(format_args!("[{} picture]", image.media_type)),
    }
}

fn indent(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}
