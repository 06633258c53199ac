//! Builds the parts of a request besides messages: offered tools, the system message, documents,
//! skills, and descriptions of folders.

pub(crate) mod active_context;
pub(crate) mod advertised;
pub(crate) mod attachments;
pub(crate) mod declared_tools;
pub(crate) mod documents;
pub(crate) mod external;
pub(crate) mod file_stamps;
pub(crate) mod folder_descriptions;
pub(crate) mod offered_tools;
pub(crate) mod prompt_context;
pub(crate) mod prompt_copy;
pub(crate) mod redescribed_tool;
pub(crate) mod touched_files;
