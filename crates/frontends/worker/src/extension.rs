//! Declares the `[worker]` section of the configuration.

use haft_agent::Extension;
use haft_agent::config::Section;

use crate::config::WorkerConfig;

/// The name of the configuration section.
pub const SECTION: &str = "worker";

/// The extension that declares the `[worker]` section. It adds nothing to sessions.
pub struct WorkerExtension;

impl Extension for WorkerExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<WorkerConfig>(SECTION)]
    }
}
