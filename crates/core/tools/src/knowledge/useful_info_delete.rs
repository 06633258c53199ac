//! `useful_info_delete`: removes a range of lines of a file from view.

use crate::knowledge::useful::StoredUseful;
use crate::knowledge::{failure, of_session, useful_info_list};
use crate::prelude::*;

const NAME: &str = "useful_info_delete";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsefulInfoDeleteParameters {
    /// The number of the range.
    #[schemars(range(min = 1))]
    number: u32,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("useful_info_delete/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .runs(|context, parameters| Box::pin(run(context, parameters)))
}

async fn run(
    context: &ToolContext,
    UsefulInfoDeleteParameters { number }: UsefulInfoDeleteParameters,
) -> CallResult {
    let useful = of_session::<StoredUseful>(context)?;
    let deleted = useful.delete(number).await;
    let item = deleted.map_err(|error| {
        failure(
            &error,
            context
                .tools
                .hint("useful_info_list", "`useful_info_list` shows the numbers"),
        )
    })?;
    let text = format!("No longer kept in view: {}", useful_info_list::line(&item));
    Ok(Envelope::success(text)
        .with_data(json!({ "item": item }))
        .into())
}
