//! The folders and files of auto-coder.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// The folder in which auto-coder stores its descriptions of a project's folders. Its structure is
/// that of `.haft/active-context`.
pub(super) const ACTIVE_CONTEXT: &str = ".auto-coder/active-context";

/// The folder into which auto-coder checks out library documentation.
pub(super) const LIBRARIES_FOLDER: &str = ".auto-coder/libs/llm_friendly_packages";

/// The file in which auto-coder's chat stores the files in focus and the libraries in use.
pub(super) const MEMORY_FILE: &str = ".auto-coder/plugins/chat-auto-coder/memory.json";

pub(super) const FOLDERS: &[Convention] = &[
    Convention {
        kind: KnowledgeKind::Rules,
        project: &[
            ".autocoderrules",
            ".auto-coder/.autocoderrules",
            ".auto-coder/autocoderrules",
        ],
        home: &[".auto-coder/autocoderrules"],
        repositories: &[".auto-coder/autocoderrules"],
    },
    Convention {
        kind: KnowledgeKind::Agents,
        project: &[
            ".autocoderagents",
            ".auto-coder/.autocoderagents",
            ".auto-coder/autocoderagents",
        ],
        home: &[
            ".auto-coder/.autocoderagents",
            ".auto-coder/autocoderagents",
        ],
        repositories: &[
            ".auto-coder/.autocoderagents",
            ".auto-coder/autocoderagents",
        ],
    },
    Convention {
        kind: KnowledgeKind::Tools,
        project: &[
            ".autocodertools",
            ".auto-coder/.autocodertools",
            ".auto-coder/autocodertools",
        ],
        home: &[".auto-coder/.autocodertools", ".auto-coder/autocodertools"],
        repositories: &[".auto-coder/.autocodertools", ".auto-coder/autocodertools"],
    },
];
