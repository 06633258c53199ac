//! Tools that read, find and change files, and their shared modules: loading and decoding files
//! ([`disk`], [`encoding`]), checks before a change ([`write_guard`]), documents ([`documents`]),
//! finding and replacing text ([`edit`]), and writing changes to disk, all or none ([`change`]).

pub(crate) mod apply_patch;
pub(crate) mod change;
pub(crate) mod disk;
pub(crate) mod documents;
pub(crate) mod edit;
pub(crate) mod edit_file;
pub(crate) mod encoding;
pub(crate) mod excerpt;
pub(crate) mod extract_to_text;
pub(crate) mod glob;
pub(crate) mod list_files;
pub(crate) mod multi_edit;
pub(crate) mod nearest_path;
pub(crate) mod pattern;
pub(crate) mod read_file;
pub(crate) mod replace_in_file;
pub(crate) mod search_files;
pub(crate) mod walk;
pub(crate) mod write_guard;
pub(crate) mod write_to_file;
