//! `haft conversations search`: searches the messages and names of conversations.

use std::fmt::Write as _;
use std::io::IsTerminal;

use haft_store::{ConversationScope, SearchHit, SearchQuery, Snippet};

use super::{open_store, resolve_namespace};
use crate::commands::conversations::SearchArgs;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &SearchArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.output.common)?;
    let namespace = resolve_namespace(haft, &args.place)?;
    let scope = match (args.trash, args.all) {
        (true, _) => ConversationScope::Trash,
        (false, true) => ConversationScope::Everywhere,
        (false, false) => ConversationScope::Namespace(&namespace),
    };
    let text = args.words.join(" ");
    let hits = store
        .search(SearchQuery {
            text: &text,
            scope,
            limit: args.limit,
        })
        .await?;
    if args.output.json {
        return output::print_json(&serde_json::to_value(&hits)?);
    }
    if hits.is_empty() {
        let everywhere = args.all || args.trash;
        let none = if everywhere {
            text!("conversations-search-none")
        } else {
            text!("conversations-search-none-here")
        };
        return output::print_text_line(none);
    }
    output::print_exact(&hits_to_text(&hits))
}

/// Formats each hit as two lines: its place and its snippet.
fn hits_to_text(hits: &[SearchHit]) -> String {
    let mut text = String::new();
    for hit in hits {
        let place = match &hit.message {
            Some(message) => {
                let time = message.created_at.strftime("%Y-%m-%d %H:%M");
                format!("{} {} {time}", message.message_id.short_id(), message.role)
            }
            None => "name".to_owned(),
        };
        let name = haft_text::sanitize(&hit.conversation.name).into_owned();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}  {name}  {place}\n    {}",
            hit.conversation.id.short_prefix(),
            highlight_snippet(&hit.snippet)
        );
    }
    text
}

/// Returns the snippet with every hit in bold, or as plain text if stdout is not a terminal that
/// can show bold.
fn highlight_snippet(snippet: &Snippet) -> String {
    // The text is sanitized before the escape sequences for bold are added. Highlights are
    // character positions, so they are dropped if sanitizing changes the number of characters. That
    // should not happen, because snippets contain no control characters.
    let text = haft_text::sanitize(&snippet.text).into_owned();
    let kept = text.chars().count() == snippet.text.chars().count();
    let snippet = Snippet {
        highlights: if kept {
            snippet.highlights.clone()
        } else {
            Vec::new()
        },
        text,
    };
    let shows_bold = std::io::stdout().is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    if shows_bold {
        snippet.with_highlights("\u{1b}[1m", "\u{1b}[0m")
    } else {
        snippet.text
    }
}
