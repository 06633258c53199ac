//! Reads the images that are sent with a prompt.

use std::path::Path;

use haft_types::Image;

use crate::cli::options::RunArgs;
use crate::exit::usage_error;

/// Reads the images named on the command line.
pub(crate) fn read_images(args: &RunArgs) -> anyhow::Result<Vec<Image>> {
    args.image.iter().map(|path| read_image(path)).collect()
}

pub(crate) fn read_image(path: &Path) -> anyhow::Result<Image> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| usage_error(text!("run-image-unreadable", path = shown, error)))?;
    haft_tools::encode_image(&bytes)
        .ok_or_else(|| usage_error(text!("run-image-none", path = shown)))
}
