//! `haft conversations show --cost`: prints the cost of each request by class of token.

use haft_engine::KeepAliveRecord;
use haft_types::{Cost, LlmMetadata, Message, Usage};
use serde_json::{Value, json};

use super::{find_named_or_current, open_store};
use crate::commands::conversations::ShowConversationArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// A request, described by the metadata of its reply.
struct PricedRequest<'a> {
    message: &'a Message,
    metadata: &'a LlmMetadata,
}

impl PricedRequest<'_> {
    /// Returns the request's cost, or `None` if the model had no price.
    fn cost(&self) -> Option<Cost> {
        cost_of_request(self.metadata)
    }
}

/// Returns the cost of a request, or `None` if the model had no price.
pub(crate) fn cost_of_request(made: &LlmMetadata) -> Option<Cost> {
    let input = made.input_cost?;
    let output = made.output_cost?;
    let cached_input = made.cached_input_cost.unwrap_or(0.0);
    let cache_write = made.cache_write_cost.unwrap_or(0.0);
    let total = input + cached_input + cache_write + output;
    Some(Cost {
        input,
        cached_input,
        cache_write,
        output,
        total,
        incomplete: false,
    })
}

/// Totals over all requests. The cost covers only requests with a price; `unpriced` counts the
/// requests without a price.
#[derive(Default)]
struct CostTotal {
    usage: Usage,
    cost: Cost,
    unpriced: usize,
}

pub(super) async fn show_costs(haft: &Haft, args: ShowConversationArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    let conversation = find_named_or_current(haft, store.as_ref(), args.id.as_deref()).await?;
    let messages = store.messages(&conversation.id).await?;
    let asked: Vec<_> = messages
        .iter()
        .filter_map(|message| {
            Some(PricedRequest {
                message,
                metadata: message.llm_metadata.as_deref()?,
            })
        })
        .collect();
    let mut total = CostTotal::default();
    for one in &asked {
        total.usage += one.metadata.usage();
        match one.cost() {
            Some(cost) => total.cost += cost,
            None => total.unpriced += 1,
        }
    }
    let kept = haft_engine::read_keep_alives(store.as_ref(), &conversation.id).await?;
    for one in &kept {
        total.usage += one.usage;
        match one.cost {
            Some(cost) => total.cost += cost,
            None => total.unpriced += 1,
        }
    }
    if args.json {
        return output::print_json(&json!({
            "id": conversation.id,
            "requests": asked.iter().map(request_to_json).collect::<Vec<_>>(),
            "keep_alives": kept,
            "total": {"usage": total.usage, "cost": total.cost, "unpriced": total.unpriced},
        }));
    }
    if asked.is_empty() {
        return output::print_text_line(text!("conversations-cost-none"));
    }
    output::print_text(&costs_to_table(&asked, &kept, &total))
}

fn request_to_json(one: &PricedRequest<'_>) -> Value {
    json!({
        "message_id": one.message.message_id,
        "created_at": one.message.created_at,
        "round": one.metadata.conversation_round,
        "model": one.metadata.model_name,
        "usage": one.metadata.usage(),
        "cost": one.cost(),
    })
}

fn costs_to_table(
    asked: &[PricedRequest<'_>],
    kept: &[KeepAliveRecord],
    total: &CostTotal,
) -> String {
    let headings = [
        text!("table-message"),
        text!("table-round"),
        text!("table-model"),
        text!("table-input"),
        text!("table-cached"),
        text!("table-written"),
        text!("table-output"),
        text!("table-usd-in"),
        text!("table-cached"),
        text!("table-written"),
        text!("table-out"),
        text!("table-total"),
    ];
    let mut table = TextTable::new(&headings);
    for one in asked {
        let names = [
            one.message.message_id.short_id().to_string(),
            one.metadata.conversation_round.to_string(),
            one.metadata.model_name.clone(),
        ];
        table.add_row(cost_table_row(names, one.metadata.usage(), one.cost()));
    }
    for one in kept {
        let names = [
            "-".to_owned(),
            "-".to_owned(),
            text!("conversations-cost-kept").to_owned(),
        ];
        table.add_row(cost_table_row(names, one.usage, one.cost));
    }
    let names = [String::new(), String::new(), output::localize_text("total")];
    table.add_row(cost_table_row(names, total.usage, Some(total.cost)));
    let unpriced = match total.unpriced {
        0 => String::new(),
        requests => format!("{}\n", text!("conversations-cost-unpriced", requests)),
    };
    format!("{table}{unpriced}")
}

fn cost_table_row(names: [String; 3], usage: Usage, cost: Option<Cost>) -> Vec<String> {
    let tokens = [
        usage.input,
        usage.cached_input,
        usage.cache_write,
        usage.output,
    ]
    .map(|tokens| tokens.to_string());
    let money = |of: fn(&Cost) -> f64| {
        cost.as_ref()
            .map_or_else(|| "-".to_owned(), |cost| format!("{:.4}", of(cost)))
    };
    let money = [
        money(|cost| cost.input),
        money(|cost| cost.cached_input),
        money(|cost| cost.cache_write),
        money(|cost| cost.output),
        money(|cost| cost.total),
    ];
    names.into_iter().chain(tokens).chain(money).collect()
}
