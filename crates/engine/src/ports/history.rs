//! What files were before calls changed them.

use std::path::Path;

use haft_tool::{FileHistory, PortError};

/// Keeps nothing: calls cannot be taken back.
pub(crate) struct Unrecorded;

impl FileHistory for Unrecorded {
    fn save(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }

    fn changed(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }
}
