//! What files were before a call changed them.

use std::path::Path;

use super::PortError;

/// Keeps what files were before a call changed them, so that the call can be taken back.
///
/// Both methods block on the disk; call them from a thread that may.
pub trait FileHistory: Send + Sync {
    /// Saves these files as they are now, before `call` changes them; a path without a file is
    /// saved as absent. What was saved survives a power cut once this returns, and a call whose
    /// files could not be saved must not change them.
    fn save(&self, call: &str, paths: &[&Path]) -> Result<(), PortError>;

    /// Notes how `call` left files it saved, so that taking it back never touches what someone else
    /// changed later.
    fn changed(&self, call: &str, paths: &[&Path]) -> Result<(), PortError>;
}
