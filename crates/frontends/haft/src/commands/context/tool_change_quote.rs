//! Estimates the cost of a tool change for the current conversation, if the change is made outside
//! a session.

use std::collections::HashMap;
use std::time::Duration;

use haft_agent::WallClock;
use haft_context::ContextChange;
use haft_engine::prefix_cache_from_outlines;
use haft_types::{Clock, MessageId};

use super::opened_log::open_any_log;
use crate::cli::options::Common;
use crate::haft::Haft;

/// Returns a sentence about the tokens that the next request of the current conversation must send
/// again because the tools change. Returns `None` if the conversation has no requests, or none of
/// its prefix is in the cache.
pub(crate) async fn quote_tool_change(haft: &Haft, common: &Common) -> Option<String> {
    let log = open_any_log(haft, None, common)
        .await
        .ok()
        .filter(|log| log.imported.is_none())?;
    let outlines = log.outlines().await.ok()?;
    let messages = log.messages().await.ok()?;
    let model = log.find_models(&outlines).ok()?.pop()?;
    let sizes: HashMap<_, _> = messages
        .iter()
        .map(|one| (one.message_id, one.content.len()))
        .collect();
    let cache = prefix_cache_from_outlines(&outlines, &model, |id: MessageId| {
        sizes.get(&id).copied().unwrap_or(1)
    });
    let idle = WallClock
        .now()
        .duration_since(outlines.last()?.summary.sent_at);
    let quote = cache.quote_change(
        ContextChange::Everything,
        Duration::try_from(idle).unwrap_or_default(),
        &model,
    );
    let name = &log.conversation.name;
    (quote.tokens > 0).then(|| {
        text!(
            "context-tools-price",
            name,
            quote = crate::output::localize_text(quote)
        )
    })
}
