//! `haft conversations stats`: what is stored.

use haft_store::Totals;
use serde_json::json;

use super::open;
use crate::commands::conversations::StatsArgs;
use crate::output::{self, TextTable};

pub(super) async fn run(args: &StatsArgs) -> anyhow::Result<()> {
    let store = open(&args.common)?;
    let totals = store.totals().await?;
    if args.json {
        let mut all = serde_json::to_value(totals)?;
        all["this_process"] = json!(store.statistics());
        return output::print_json(&all);
    }
    let Totals { conversations, in_trash, namespaces, messages, revisions, requests, bytes } = totals;
    let mut table = TextTable::new(&["WHAT", "COUNT"]);
    let counts = [
        ("conversations", conversations),
        ("in the trash", in_trash),
        ("namespaces", namespaces),
        ("messages", messages),
        ("revisions of messages", revisions),
        ("logged requests", requests),
    ];
    for (what, count) in counts {
        table.row(vec![what.to_owned(), count.to_string()]);
    }
    table.row(vec!["size of the database".to_owned(), output::bytes(bytes)]);
    output::print(&table.to_string())
}
