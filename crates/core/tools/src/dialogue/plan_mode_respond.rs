//! `plan_mode_respond`: presents a plan to the user. The engine replaces the result with the user's
//! response.

use std::future::ready;

use haft_tool::TurnFlow;

use crate::prelude::*;

const NAME: &str = "plan_mode_respond";

static MANUAL: Manual = Manual::for_group(Group::Dialogue);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanModeRespondParameters {
    /// The plan, whole and in Markdown: what will be changed in which files and why, in the order
    /// it will be done; how it will be checked; what is still open.
    response: String,
    /// Short answers to choose from, such as two ways to do it.
    options: Option<Vec<String>>,
}

/// Defines the tool `plan_mode_respond`. [`builtin_tools`](crate::builtin_tools) does not contain
/// this tool, because it is offered only in plan mode.
pub fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("plan_mode_respond/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|_, parameters| Box::pin(ready(present_plan(parameters))))
}

fn present_plan(
    PlanModeRespondParameters { response, options }: PlanModeRespondParameters,
) -> CallResult {
    if response.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`response` is empty; say what you plan to do",
        ));
    }
    let options = options.unwrap_or_default();
    let envelope = Envelope::success("The plan was presented.")
        .with_data(json!({ "response": response, "options": options }));
    Ok(ToolOutput {
        flow: TurnFlow::Plan { response, options },
        ..envelope.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[tokio::test]
    async fn plan_mode_respond_presents_the_plan_to_the_user() {
        let bench = Bench::new();
        let output = bench
            .ok(
                &define_tool(),
                json!({"response": "1. a", "options": ["yes"]}),
            )
            .await;
        assert_eq!(
            output.flow,
            TurnFlow::Plan {
                response: "1. a".into(),
                options: vec!["yes".into()]
            }
        );
        let empty = bench.run(&define_tool(), json!({"response": " "})).await;
        assert_eq!(
            (empty.flow, empty.envelope.error.unwrap().code.as_str()),
            (TurnFlow::Continue, "invalid_arguments")
        );
    }
}
