//! `haft tools stats`: counts the uses of each tool in a conversation, from the stored messages.

use std::collections::BTreeMap;

use haft_context::TOOL_NAME_KEY;
use haft_model::O200k;
use haft_types::{Entry, Message, Role, ToolStatus};
use serde::Serialize;

use crate::cli::options::JsonArgs;
use crate::commands::conversations;
use crate::commands::useful::ConversationArg;
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// The totals of all calls of one tool in a conversation.
#[derive(Default, Serialize)]
struct ToolUsage {
    calls: u32,
    errors: u32,
    /// The number of tokens in the results, as they were first sent.
    tokens: u64,
}

pub(super) async fn run(haft: &Haft, of: &ConversationArg, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let store = settings.open_store()?;
    let conversation =
        conversations::find_named_or_current(haft, store.as_ref(), of.conversation.as_deref())
            .await?;
    let used = count_usage(store.messages(&conversation.id).await?);
    if args.json {
        return output::print_json(&serde_json::to_value(&used)?);
    }
    if used.is_empty() {
        return output::print_text_line(text!("tools-no-calls"));
    }
    let mut rows: Vec<_> = used.into_iter().collect();
    rows.sort_by_key(|(_, used)| std::cmp::Reverse(used.tokens));
    let mut table = TextTable::new(&[
        text!("table-tool"),
        text!("table-calls"),
        text!("table-errors"),
        text!("table-tokens"),
    ]);
    for (
        name,
        ToolUsage {
            calls,
            errors,
            tokens,
        },
    ) in rows
    {
        table.add_row(vec![
            name,
            calls.to_string(),
            errors.to_string(),
            tokens.to_string(),
        ]);
    }
    output::print_text(&table.to_string())
}

fn count_usage(messages: Vec<Message>) -> BTreeMap<String, ToolUsage> {
    let mut used = BTreeMap::<String, ToolUsage>::new();
    for message in messages
        .into_iter()
        .filter(|message| message.role == Role::Tool)
    {
        let own = message
            .metadata
            .get(TOOL_NAME_KEY)
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        for result in message.tool_results() {
            let one = used
                .entry(own.clone().unwrap_or_else(|| result.name.clone()))
                .or_default();
            one.calls += 1;
            one.errors += u32::from(result.envelope.status == ToolStatus::Error);
        }
        let name = own.or_else(|| {
            message
                .tool_results()
                .next()
                .map(|result| result.name.clone())
        });
        if let Some(one) = name.and_then(|name| used.get_mut(&name)) {
            one.tokens += u64::from(Entry::new(message, &O200k).tokens);
        }
    }
    used
}
