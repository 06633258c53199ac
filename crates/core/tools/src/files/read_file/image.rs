//! Reads images, encodes them, and detects their media types.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_tool::ToolOutput;
use haft_types::{Envelope, Image};
use serde_json::json;

use super::{ReadError, record_read};
use crate::failure::ToolFailure;
use crate::files::disk::{LoadedFile, format_mtime};
use crate::scope::FileScope;

/// The maximum size of an image in bytes. Larger images exceed the providers' limit of 5 MB in
/// base64.
const MAX_IMAGE_BYTES: usize = 3_750_000;

/// Returns the media type of an image according to its first bytes, because file names can be
/// wrong.
pub(super) fn detect_media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1A\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xFF\xD8\xFF") {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

/// Encodes an image. Returns `None` if the bytes are not an image that providers accept, or are too
/// large.
pub fn encode_image(bytes: &[u8]) -> Option<Image> {
    let media_type = detect_media_type(bytes).filter(|_| bytes.len() <= MAX_IMAGE_BYTES)?;
    Some(Image {
        media_type: media_type.to_owned(),
        data: STANDARD.encode(bytes),
    })
}

/// Returns the image, with a line of text that describes it.
pub(super) fn build_image_output(
    scope: &FileScope,
    path: &Path,
    name: &str,
    loaded: &LoadedFile,
    media_type: &str,
) -> Result<ToolOutput, ToolFailure> {
    let size = loaded.bytes.len();
    if size > MAX_IMAGE_BYTES {
        return Err(ReadError::LargeImage {
            name: name.to_owned(),
            size: size as u64,
            limit: MAX_IMAGE_BYTES,
        }
        .into());
    }
    let mut envelope = Envelope::success(format!("`{name}` is a picture ({media_type}, {size} bytes).")).with_data(
        json!({ "path": name, "media_type": media_type, "bytes": size, "mtime": format_mtime(loaded.state.mtime_ns) }),
    );
    record_read(scope, path, name, loaded, &mut envelope);
    let image = Image {
        media_type: media_type.to_owned(),
        data: STANDARD.encode(&loaded.bytes),
    };
    Ok(ToolOutput {
        images: vec![image],
        ..envelope.into()
    })
}
