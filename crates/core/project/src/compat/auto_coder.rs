//! The folders and files of auto-coder.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// Descriptions of folders, laid out like haft's own.
pub(super) const ACTIVE_CONTEXT: &str = ".auto-coder/active-context";

/// The checked-out documentation of libraries.
pub(super) const LIBRARIES_FOLDER: &str = ".auto-coder/libs/llm_friendly_packages";

/// The chat's memory: the files in focus and the libraries in use.
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
