//! auto-coder's folders.

use super::Convention;
use crate::ground::Kind;

pub(super) const FOLDERS: &[Convention] = &[
    Convention {
        kind: Kind::Rules,
        project: &[".autocoderrules", ".auto-coder/.autocoderrules", ".auto-coder/autocoderrules"],
        home: &[".auto-coder/autocoderrules"],
        repositories: &[".auto-coder/autocoderrules"],
    },
    Convention {
        kind: Kind::Agents,
        project: &[".autocoderagents", ".auto-coder/.autocoderagents", ".auto-coder/autocoderagents"],
        home: &[".auto-coder/autocoderagents"],
        repositories: &[".auto-coder/autocoderagents"],
    },
    Convention {
        kind: Kind::Tools,
        project: &[".autocodertools", ".auto-coder/.autocodertools", ".auto-coder/autocodertools"],
        home: &[".auto-coder/autocodertools"],
        repositories: &[".auto-coder/autocodertools"],
    },
];
