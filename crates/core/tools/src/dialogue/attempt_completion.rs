//! `attempt_completion`: reports that the task is done.

use std::future::ready;

use haft_tool::TurnFlow;

use crate::prelude::*;

const NAME: &str = "attempt_completion";

static MANUAL: Manual = Manual {
    availability: Availability::Text,
    ..Manual::for_group(Group::Dialogue)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttemptCompletionParameters {
    /// What was done, what was checked and how, and what is left open. No question or offer at its
    /// end.
    result: String,
    /// A command line that shows the result, such as starting the program; it runs only if the
    /// user chooses to.
    command: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("attempt_completion/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|_, parameters| Box::pin(ready(complete_task(parameters))))
}

fn complete_task(
    AttemptCompletionParameters { result, command }: AttemptCompletionParameters,
) -> CallResult {
    if result.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`result` is empty; report what was done",
        ));
    }
    let mut data = json!({ "result": result });
    if let Some(command) = &command {
        data["command"] = command.as_str().into();
    }
    let envelope = Envelope::success("The result was presented to the user.").with_data(data);
    Ok(ToolOutput {
        flow: TurnFlow::Complete { result, command },
        ..envelope.into()
    })
}

#[cfg(test)]
mod tests;
