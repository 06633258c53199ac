//! `useful_info_delete`: removes a range of lines of a file from view.

use crate::knowledge::useful::StoredUseful;
use crate::knowledge::{failure_from_port, get_session_value, useful_info_list};
use crate::prelude::*;

const NAME: &str = "useful_info_delete";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsefulInfoDeleteParameters {
    /// The number of the range.
    #[schemars(range(min = 1))]
    number: u32,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("useful_info_delete/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(delete_range(context, parameters)))
}

async fn delete_range(
    context: &ToolContext,
    UsefulInfoDeleteParameters { number }: UsefulInfoDeleteParameters,
) -> CallResult {
    let useful = get_session_value::<StoredUseful>(context)?;
    let deleted = useful.delete(number).await;
    let item = deleted.map_err(|error| {
        failure_from_port(
            &error,
            context
                .tools
                .hint_if_known("useful_info_list", "`useful_info_list` shows the numbers"),
        )
    })?;
    let text = format!(
        "No longer kept in view: {}",
        useful_info_list::format_range(&item)
    );
    Ok(Envelope::success(text)
        .with_data(json!({ "item": item }))
        .into())
}
