//! `haft conversations stats`: counts the contents of the store.

use haft_store::Totals;
use serde_json::json;

use super::open_store;
use crate::cli::options::JsonArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

pub(super) async fn run(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    let totals = store.totals().await?;
    if args.json {
        let mut all = serde_json::to_value(totals)?;
        all["this_process"] = json!(store.statistics());
        return output::print_json(&all);
    }
    let Totals {
        conversations,
        in_trash,
        namespaces,
        messages,
        revisions,
        requests,
        bytes,
    } = totals;
    let mut table = TextTable::new(&[text!("table-what"), text!("table-count")]);
    let counts = [
        ("conversations", conversations),
        (text!("conversations-stats-trash"), in_trash),
        ("namespaces", namespaces),
        ("messages", messages),
        (text!("conversations-stats-revisions"), revisions),
        (text!("conversations-stats-requests"), requests),
    ];
    for (what, count) in counts {
        table.add_row(vec![output::localize_text(what), count.to_string()]);
    }
    table.add_row(vec![
        text!("conversations-stats-size").to_owned(),
        output::format_bytes(bytes),
    ]);
    output::print_text(&table.to_string())
}
