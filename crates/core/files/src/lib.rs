//! Creates, replaces, locks, and reads haft's own files: everything below its configuration, data,
//! state, and cache folders.
//!
//! Invariant: a folder created here has mode 0700 and a file 0600, unless the umask removes more
//! rights; the names of temporary files cannot be predicted.
//!
//! This crate must not touch the files of a project. Those get the modes the user's umask gives
//! them and go through `haft-tools`. It decides nothing about what is stored: callers pass whole
//! paths and bytes.
//!
//! Read first: [`create_folder`], [`replace_file`], and [`LockFile`], the lock between processes.
//!
//! ```
//! use haft_files::{Durability, LockFile, create_temporary_folder, read_text, replace_file};
//!
//! # fn main() -> std::io::Result<()> {
//! let folder = create_temporary_folder(&std::env::temp_dir(), "example-")?;
//! let path = folder.path().join("state.json");
//!
//! // One process at a time. Readers never see half a file, even after a power cut.
//! let lock = LockFile::acquire(&folder.path().join("lock"))?;
//! replace_file(&path, b"{}", Durability::PowerCut)?;
//! drop(lock);
//!
//! assert_eq!(read_text(&path, 1024)?, "{}");
//! // A file that is too large is an error, not a full memory.
//! assert!(read_text(&path, 1).is_err());
//! # Ok(())
//! # }
//! ```

mod file;
mod folder;
mod lock;
mod read;
mod socket;
mod tighten;

pub use file::{
    Durability, copy_new, create_new, create_temporary_file, open_append, open_or_create, rename,
    replace_file, replace_user_file,
};
pub use folder::{
    containing_folder, create_folder, create_new_folder, create_temporary_folder, sync_folder,
};
pub use lock::LockFile;
pub use read::{read_limited, read_text};
pub use socket::{bind_private_socket, connect_private_socket};
pub use tighten::{tighten_mode, tighten_tree};
