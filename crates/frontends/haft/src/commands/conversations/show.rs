//! `haft conversations show`: prints the newest messages of a conversation, or all of them.

use std::fmt::Write as _;

use haft_store::{Conversation, MessagePage, PageEnd};

use super::{export, find_named_or_current, open_store};
use crate::commands::conversations::ShowConversationArgs;
use crate::haft::Haft;
use crate::output;

pub(super) async fn show_conversation(
    haft: &Haft,
    args: ShowConversationArgs,
) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    let conversation = find_named_or_current(haft, store.as_ref(), args.id.as_deref()).await?;
    if args.json {
        return export::print_document(store.as_ref(), &conversation).await;
    }
    let limit = if args.all { usize::MAX } else { args.last };
    let page = store
        .message_page(&conversation.id, PageEnd::Newest, limit)
        .await?;
    output::print_text(&page_to_text(&conversation, &page))
}

fn page_to_text(conversation: &Conversation, page: &MessagePage) -> String {
    let mut text = format!("{} ({})\n", conversation.name, conversation.id);
    if page.earlier_count() > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "\n{}",
            text!("conversations-earlier", earlier = page.earlier_count())
        );
    }
    for message in &page.messages {
        let _ = writeln!(
            text,
            "\n{} {} {}",
            message.message_id.short_id(),
            output::localize_text(message.role),
            message.created_at.strftime("%Y-%m-%d %H:%M:%S")
        );
        for part in &message.content {
            text.push_str(&indent_lines(&haft_inspect::part_to_text(part)));
        }
    }
    haft_text::sanitize(&text).into_owned()
}

fn indent_lines(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}
