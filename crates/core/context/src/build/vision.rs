//! The request that has a picture described for a model that takes none.

use haft_types::{Entry, Image, ModelSpec, Part, Request, TokenCounter};

use crate::reduce::compaction::plain_request;

/// Makes the request.
pub fn vision_request(image: &Image, model: &ModelSpec, counter: &dyn TokenCounter) -> Request {
    let instructions = include_str!("../../templates/vision.md");
    let mut request = plain_request(instructions, "vision", "Describe this picture.", model, counter);
    if let Some(segment) = request.segments.last_mut() {
        let mut message = segment.entry.message.clone();
        message.content.push(Part::Image(image.clone()));
        segment.entry = Entry::new(message, counter);
    }
    request
}
