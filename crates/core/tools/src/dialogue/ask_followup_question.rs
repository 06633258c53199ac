//! `ask_followup_question`: asks the user a question. The engine replaces the result with the
//! user's answer.

use std::future::ready;

use haft_tool::TurnFlow;

use crate::prelude::*;

const NAME: &str = "ask_followup_question";

static MANUAL: Manual = Manual::for_group(Group::Dialogue);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskFollowupQuestionParameters {
    /// One clear question with everything needed to answer it.
    question: String,
    /// Short answers to choose from; the user may still answer freely.
    options: Option<Vec<String>>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("ask_followup_question/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|_, parameters| Box::pin(ready(ask_user(parameters))))
}

fn ask_user(
    AskFollowupQuestionParameters { question, options }: AskFollowupQuestionParameters,
) -> CallResult {
    if question.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`question` is empty; say what you need to know",
        ));
    }
    let options = options.unwrap_or_default();
    let envelope = Envelope::success("The user was asked.")
        .with_data(json!({ "question": question, "options": options }));
    Ok(ToolOutput {
        flow: TurnFlow::Ask { question, options },
        ..envelope.into()
    })
}

#[cfg(test)]
mod tests;
