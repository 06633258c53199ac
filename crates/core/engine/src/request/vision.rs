//! Describes images for a model that does not accept images. A model with the role `vision`
//! describes each image once, and the text is stored with the conversation.
//!
//! Invariant: no image is left out silently. If an image has no description, an event reports the
//! reason.

use haft_context::build_vision_request;
use haft_types::{ContentHash, Image};

use super::compact::{Summary, send_side_request};
use crate::error::EngineError;
use crate::names::DESCRIPTION_HEADING;
use crate::session::Session;
use crate::turn::turn_io::TurnIo;

impl Session {
    /// Returns descriptions of the images as text; `None` if the model accepts images itself.
    pub(crate) async fn describe_images(
        &mut self,
        images: &[Image],
        io: &mut TurnIo<'_>,
    ) -> Result<Option<String>, EngineError> {
        if images.is_empty() || self.config.model.capabilities.images {
            return Ok(None);
        }
        if self.services.shared.opener.vision_models.is_empty() {
            let model = self.config.model.full_name();
            io.emit_notice("image_left_out", format!("a picture is left out: `{model}` takes none, and no model has the role `vision` (`model_roles.vision`) to describe it"));
            return Ok(None);
        }
        let mut texts = Vec::new();
        for image in images {
            let hash = ContentHash::from_content(image.data.as_bytes()).to_string();
            if !self.image_descriptions.0.contains_key(&hash) {
                match self.describe_image(image, io).await {
                    Ok(text) => {
                        self.image_descriptions.0.insert(hash.clone(), text);
                        self.transcript
                            .store_state(&self.image_descriptions)
                            .await?;
                    }
                    Err(why) => io.emit_error(
                        "vision",
                        format!("a picture is left out: it could not be described: {why}"),
                    ),
                }
            }
            let text = self.image_descriptions.0.get(&hash);
            texts.extend(text.map(|text| format!("{DESCRIPTION_HEADING}\n{text}")));
        }
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }

    /// Requests a description of the image from the models with the role `vision`, in order, until
    /// a model is not overloaded.
    async fn describe_image(
        &mut self,
        image: &Image,
        io: &mut TurnIo<'_>,
    ) -> Result<String, String> {
        let mut last = String::new();
        for name in self.services.shared.opener.vision_models.clone() {
            let mut client = match self.services.shared.opener.open(&name) {
                Ok(client) => client,
                Err(why) => {
                    last = format!("`{name}` cannot be used: {why}");
                    continue;
                }
            };
            let by = client.spec().clone();
            let request = build_vision_request(
                image,
                self.config.policy.prompt_language,
                &by,
                self.services.shared.counter.as_ref(),
            );
            match send_side_request(&mut client, &mut self.meter, request, io).await {
                Ok(reply) => {
                    let made = Summary {
                        reply,
                        by,
                        cost: self.meter.take_unreported_cost(),
                    };
                    io.emit(made.usage_event());
                    let text = made.complete_text().map_err(|why| why.to_string())?;
                    return Ok(self.config.safety.masker.mask(text.trim()).into_owned());
                }
                Err(error) if error.is_overload() => last = format!("`{name}`: {error}"),
                Err(error) => return Err(format!("`{name}`: {error}")),
            }
        }
        Err(last)
    }
}
