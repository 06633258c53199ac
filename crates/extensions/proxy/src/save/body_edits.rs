//! Replaces spans of a request body.

use std::ops::Range;

/// A span of a body and the text that replaces it. An empty span inserts the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BodyEdit {
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

/// Applies edits to a body. The spans must not overlap; edits at one position are applied in the
/// order of the list.
pub(crate) fn apply_edits(body: &str, mut edits: Vec<BodyEdit>) -> String {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = String::with_capacity(body.len() + added);
    let mut done = 0;
    for edit in edits {
        out.push_str(&body[done..edit.span.start]);
        out.push_str(&edit.text);
        done = edit.span.end;
    }
    out.push_str(&body[done..]);
    out
}
