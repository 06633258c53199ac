//! Builds the request that asks a model for the title of a conversation.

use haft_types::{ModelSpec, PromptLanguage, Request, TokenCounter, prompt};

use crate::reduce::compaction::build_plain_request;

/// Builds a request that asks `model` for the title of a conversation that began with `task` and
/// `answer`.
pub fn build_title_request(
    task: &str,
    answer: &str,
    language: PromptLanguage,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Request {
    build_plain_request(
        prompt!("../../templates/title").text(language),
        "title",
        &format!("<task>\n{task}\n</task>\n\n<answer>\n{answer}\n</answer>"),
        model,
        counter,
    )
}
