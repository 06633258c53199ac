//! `useful_info_list`: lists the file ranges that are kept in view.

use crate::knowledge::useful::{StoredUseful, UsefulItem};
use crate::knowledge::{failure_from_port, get_session_value, to_one_line};
use crate::prelude::*;

const NAME: &str = "useful_info_list";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsefulInfoListParameters {}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("useful_info_list/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(list_ranges(context, parameters)))
}

async fn list_ranges(context: &ToolContext, _: UsefulInfoListParameters) -> CallResult {
    let items = get_session_value::<StoredUseful>(context)?
        .list()
        .await
        .map_err(|error| failure_from_port(&error, "try again"))?;
    let lines: Vec<_> = items.iter().map(format_range).collect();
    let text = if items.is_empty() {
        "No useful information is kept.".to_owned()
    } else {
        lines.join("\n")
    };
    Ok(Envelope::success(text)
        .with_data(json!({ "items": items }))
        .into())
}

/// Formats a range for the results of the tools `useful_info_add`, `useful_info_list` and
/// `useful_info_delete`.
pub(crate) fn format_range(item: &UsefulItem) -> String {
    let UsefulItem {
        number,
        path,
        start_line,
        end_line,
        description,
    } = item;
    format!(
        "{number}. `{path}` lines {start_line}-{end_line}: {}",
        to_one_line(description)
    )
}
