//! Tools that read, find and change files, and what they share: how a file is loaded ([`disk`],
//! [`encoding`]), what must hold before it is changed ([`guard`]), what is said of documents
//! ([`documents`]), how text in it is found and replaced ([`edit`]), and how changes reach the
//! disk, all or none ([`change`]).

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
pub(crate) mod guard;
pub(crate) mod list_files;
pub(crate) mod multi_edit;
pub(crate) mod nearest_path;
pub(crate) mod pattern;
pub(crate) mod read_file;
pub(crate) mod replace_in_file;
pub(crate) mod search_files;
pub(crate) mod walk;
pub(crate) mod write_to_file;
