//! auto-coder's folders.

use super::Convention;
use crate::knowledge::KnowledgeKind;

pub(super) const FOLDERS: &[Convention] = &[
    Convention {
        kind: KnowledgeKind::Rules,
        project: &[".autocoderrules", ".auto-coder/.autocoderrules", ".auto-coder/autocoderrules"],
        home: &[".auto-coder/autocoderrules"],
        repositories: &[".auto-coder/autocoderrules"],
    },
    Convention {
        kind: KnowledgeKind::Agents,
        project: &[".autocoderagents", ".auto-coder/.autocoderagents", ".auto-coder/autocoderagents"],
        home: &[".auto-coder/autocoderagents"],
        repositories: &[".auto-coder/autocoderagents"],
    },
    Convention {
        kind: KnowledgeKind::Tools,
        project: &[".autocodertools", ".auto-coder/.autocodertools", ".auto-coder/autocodertools"],
        home: &[".auto-coder/autocodertools"],
        repositories: &[".auto-coder/autocodertools"],
    },
];
