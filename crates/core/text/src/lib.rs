//! Makes untrusted text safe for people, models and files.
//!
//! Holds one sanitizer for terminals and models alike, the exact form of text for approvals, one masker for secrets, cuts that keep the
//! head and the tail of a long text, and the width of text in terminal columns. Further modules
//! check names, tell public network addresses from private ones, split text into index terms, and
//! format numbers and pictures ([`Svg`]).
//!
//! Everything here is a pure function over values: this crate must not do I/O, and it has no notion
//! of colors or of the size of a terminal.
//!
//! Start with [`sanitize()`] (what may be shown), [`cut_lines`] and [`CutLimits`] (how much of it),
//! [`Masker`] (what may be stored), [`is_public_address`] (what may be reached).
//!
//! ```
//! use haft_text::{CutLimits, cut_lines, sanitize};
//!
//! assert_eq!(sanitize("\x1b[31mred\x1b[0m\r\n"), "red\n");
//! assert_eq!(sanitize("10%\r50%\r100%"), "100%");
//!
//! let cut = cut_lines(&"line\n".repeat(5_000), CutLimits { lines: 11, bytes: 4_096 });
//! assert_eq!(cut.total_lines, 5_000);
//! assert_eq!(cut.omitted_lines, 4_990);
//! assert!(cut.text.contains("4,990 lines"));
//! ```

mod address;
mod cut;
mod exact;
mod invisible;
mod json;
mod mask;
mod names;
mod numbers;
mod redact;
mod sanitize;
mod svg;
mod terminal;
mod terms;
mod width;

pub use address::is_public_address;
pub use cut::{Cut, CutLimits, Gap, cut_ends, cut_lines};
pub use exact::{show_content_exactly, show_diff_exactly, show_exactly};
pub use json::escape_json;
pub use mask::Masker;
pub use names::NameRule;
pub use numbers::{format_dollars, format_percent, format_thousands};
pub use redact::redact_quoted;
pub use sanitize::{reveal_controls, sanitize, sanitize_bytes};
pub use svg::{Anchor, Svg, SvgElement, escape_markup};
pub use terms::{TermScript, TermStyle, TextRun, fold_char};
pub use width::{display_width, truncate_to_width};
