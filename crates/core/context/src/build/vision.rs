//! Builds the request that asks for a description of an image, on behalf of a model without image
//! input.

use haft_types::{Entry, Image, ModelSpec, Part, PromptLanguage, Request, TokenCounter, prompt};

use crate::reduce::compaction::build_plain_request;

/// Builds a request that asks `model` to describe the image.
pub fn build_vision_request(
    image: &Image,
    language: PromptLanguage,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Request {
    let instructions = prompt!("../../templates/vision").text(language);
    let mut request = build_plain_request(
        instructions,
        "vision",
        prompt!("../../templates/vision_task").text(language),
        model,
        counter,
    );
    if let Some(segment) = request.segments.last_mut() {
        let mut message = segment.entry.message.clone();
        message.content.push(Part::Image(image.clone()));
        segment.entry = Entry::new(message, counter);
    }
    request
}
