//! Reads documents that are not text files, such as PDF files, and returns lines of their text.

use haft_tool::ToolOutput;

use super::page::{FilePage, LineRange};
use super::{add_line, build_page_envelope};
use crate::failure::ToolFailure;
use crate::files::documents::{DocumentFile, extract_text};
use crate::scope::FileScope;

/// Returns a range of lines of a document's text. The read is not recorded in the read ledger: the
/// text is not the content of the file, so it does not permit overwriting the file.
pub(super) fn read_document(
    scope: &FileScope,
    document: &DocumentFile<'_>,
    range: LineRange,
    mtime_ns: i64,
) -> Result<ToolOutput, ToolFailure> {
    let extracted = extract_text(scope, document)?;
    let mut page = FilePage::new(range, scope.limits);
    let mut total = 0;
    for line in extracted.text.lines() {
        total += 1;
        page.offer_line(total, line, line.len());
    }
    let mut envelope = build_page_envelope(document.name, &page, total, mtime_ns)?;
    if extracted.truncated {
        add_line(
            &mut envelope.text,
            "[The document holds more text than is taken out of it.]",
        );
    }
    let remark = format!(
        "[This is the text of {}; it cannot be edited as text.]",
        document.format.name
    );
    add_line(&mut envelope.text, &remark);
    envelope.data["document"] = document.format.id.into();
    Ok(envelope.into())
}
