//! The request that has a picture described for a model that takes none.

use haft_types::{Entry, Image, ModelSpec, Part, PromptLanguage, Request, TokenCounter, prompt};

use crate::reduce::compaction::plain_request;

/// Makes the request.
pub fn vision_request(
    image: &Image,
    language: PromptLanguage,
    model: &ModelSpec,
    counter: &dyn TokenCounter,
) -> Request {
    let instructions = prompt!("../../templates/vision").text(language);
    let mut request = plain_request(
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
