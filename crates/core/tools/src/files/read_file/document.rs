//! Documents that are not text files, shown as their text.

use haft_sandbox::Supervisor;
use haft_tool::ToolOutput;

use super::page::{Page, Range};
use super::{add_line, show};
use crate::extract::{Format, Source, extract};
use crate::failure::Failure;
use crate::scope::Scope;

/// A range of the lines of a document's text. The read is not noted: what was shown is not what is in the file, so it proves
/// nothing to whoever wants to overwrite it.
pub(super) fn read(
    scope: &Scope,
    supervisor: &Supervisor,
    source: &Source<'_>,
    format: Format,
    range: Range,
    mtime_ns: i64,
) -> Result<ToolOutput, Failure> {
    let extracted = extract(scope, supervisor, source, format)?;
    let mut page = Page::new(range, scope.limits);
    let mut total = 0;
    for line in extracted.text.lines() {
        total += 1;
        page.offer(total, line, line.len());
    }
    let mut envelope = show(source.name, &page, total, mtime_ns)?;
    if extracted.cut {
        add_line(&mut envelope.text, "[The document holds more text than is taken out of it.]");
    }
    let remark = format!("[This is the text of {}; it cannot be edited as text.]", format.name());
    add_line(&mut envelope.text, &remark);
    envelope.data["document"] = format.word().into();
    Ok(envelope.into())
}
