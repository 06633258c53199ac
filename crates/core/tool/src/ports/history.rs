//! Backups of files before a call changes them.

use std::path::Path;

use super::PortError;

/// Saves files before a call changes them, so that the call can be undone.
///
/// Both methods block on disk access; call them from a blocking thread.
pub trait FileHistory: Send + Sync {
    /// Saves the current content of these files before `call` changes them. A path without a file
    /// is recorded as absent. The backup is durable when the function returns. A call must not
    /// change files that could not be saved.
    fn save_files(&self, call: &str, paths: &[&Path]) -> Result<(), PortError>;

    /// Records the new state of files that `call` has changed, so that undoing the call never
    /// overwrites later changes by other programs.
    fn record_changed(&self, call: &str, paths: &[&Path]) -> Result<(), PortError>;
}
