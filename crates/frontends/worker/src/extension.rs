//! Declares the `[worker]` section of the configuration.

use haft_agent::Extension;
use haft_agent::config::Section;

use crate::config::WorkerConfig;

/// The name of the configuration section for workers.
pub const SECTION: &str = "worker";

/// Declares the `[worker]` section of the configuration. Adds nothing to sessions.
pub struct WorkerExtension;

impl Extension for WorkerExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::for_type::<WorkerConfig>(SECTION)]
    }
}
