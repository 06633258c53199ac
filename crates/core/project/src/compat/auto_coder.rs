//! The folders and files of auto-coder.

use super::Convention;
use crate::knowledge::KnowledgeKind;

/// The folder in which auto-coder stores its descriptions of a project's folders. Its structure is
/// that of `.haft/active-context`.
pub(super) const ACTIVE_CONTEXT: &str = ".auto-coder/active-context";

/// The folder into which auto-coder checks out library documentation.
pub(super) const LIBRARIES_FOLDER: &str = ".auto-coder/libs/llm_friendly_packages";

/// The files in which auto-coder's chat stores the files in focus and the libraries in use, in
/// order of precedence. Which of them exist depends on the version of auto-coder.
pub(super) const MEMORY_FILES: [&str; 2] = [
    ".auto-coder/plugins/chat-auto-coder/memory.json",
    ".auto-coder/memory.json",
];

/// The files in which newer versions of auto-coder store only the libraries in use.
pub(super) const LIBRARY_LISTS: [&str; 2] = [
    ".auto-coder/plugins/chat-auto-coder/memory/libs.json",
    ".auto-coder/memory/libs.json",
];

/// The name of the folders whose commands are Jinja templates.
pub(super) const COMMANDS_FOLDER: &str = ".autocodercommands";

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
    Convention {
        kind: KnowledgeKind::Commands,
        project: &[COMMANDS_FOLDER, ".auto-coder/.autocodercommands"],
        home: &[".auto-coder/.autocodercommands"],
        repositories: &[],
    },
    Convention {
        kind: KnowledgeKind::Workflows,
        project: &[".autocoderworkflow", ".auto-coder/.autocoderworkflow"],
        home: &[".auto-coder/.autocoderworkflow"],
        repositories: &[],
    },
];
