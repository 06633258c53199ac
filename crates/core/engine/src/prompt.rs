//! Builds the parts of a request besides messages: offered tools, the system message, documents,
//! skills, and descriptions of folders.

pub(crate) mod active;
pub(crate) mod advertised;
pub(crate) mod declared;
pub(crate) mod describe;
pub(crate) mod documents;
pub(crate) mod external;
pub(crate) mod offered_tools;
pub(crate) mod prompt_context;
pub(crate) mod redescribed;
pub(crate) mod stamps;
pub(crate) mod touched;
