//! `read_file`: returns a range of numbered lines of a text file or of a document's text, or an
//! image.
//!
//! Every complete read is recorded in the read ledger with the hash of the file's bytes. The ledger
//! later prevents the model from overwriting content that it has not read.

mod document;
pub(crate) mod image;
mod module_hint;
mod notes;
mod page;
mod stream;

use std::path::Path;

use crate::files::disk::{self, LoadedFile, MAX_LOADED, format_mtime, mtime_ns};
use crate::files::documents::{self, DocumentFile};
use crate::files::edit::lines;
use crate::files::encoding::{TextEncoding, decode_text, describe_binary};
use crate::on_files::run_blocking;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

use page::{FilePage, LineRange};

const NAME: &str = "read_file";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Read",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFileParameters {
    /// The file to read.
    path: String,
    /// The first line, from 1; default 1.
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// The last line, included; default the end.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("read_file/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .with_function(|context, parameters| Box::pin(read_with_notes(context, parameters)))
}

async fn read_with_notes(context: &ToolContext, parameters: ReadFileParameters) -> CallResult {
    let path = paths::resolve_path(&context.workspace, &parameters.path).ok();
    let mut output =
        run_blocking(context, move |scope| read_file_range(scope, &parameters)).await?;
    if let Some(path) = path {
        module_hint::add_module_hint(context, &path, &mut output.envelope);
        notes::add_notes(context, &path, &mut output.envelope).await;
    }
    Ok(output)
}

/// The reason why `read_file` cannot show a file.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("`{name}` is {kind} of {size} bytes, not text; use a program that reads it")]
    Binary {
        name: String,
        kind: &'static str,
        size: u64,
    },
    #[error(
        "`{name}` is a picture of {size} bytes; at most {limit} bytes are sent to the model, make it smaller first"
    )]
    LargeImage {
        name: String,
        size: u64,
        limit: usize,
    },
    #[error(
        "`start_line` and `end_line` count from 1, with `start_line` not after `end_line` (got {start} and {end})"
    )]
    Range { start: usize, end: String },
    #[error("`{name}` has {total} lines; `start_line` {start} is beyond its end")]
    Beyond {
        name: String,
        total: usize,
        start: usize,
    },
}

impl Coded for ReadError {
    fn code(&self) -> &'static str {
        match self {
            Self::Binary { .. } => "binary_file",
            Self::LargeImage { .. } => "too_large",
            Self::Range { .. } => "invalid_range",
            Self::Beyond { .. } => "out_of_range",
        }
    }
}

/// Reads a whole file, on behalf of another tool.
pub(crate) fn read_whole_file(scope: &FileScope, path: &str) -> CallResult {
    read_file_range(
        scope,
        &ReadFileParameters {
            path: path.to_owned(),
            start_line: None,
            end_line: None,
        },
    )
}

fn read_file_range(scope: &FileScope, parameters: &ReadFileParameters) -> CallResult {
    let range = LineRange::new(parameters.start_line, parameters.end_line)?;
    let path = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &path);
    let (file, metadata) = disk::open_file(&path, &name)?;
    if metadata.len() > MAX_LOADED {
        documents::reject_large_document(scope, &path, &name, metadata.len())?;
        // The file is too large to load or hash. It is shown by range, but not recorded as read, so
        // that it cannot be overwritten.
        let (page, total) = stream::read_page(file, &name, range, scope)?;
        return Ok(build_page_envelope(&name, &page, total, mtime_ns(&metadata))?.into());
    }
    let loaded = scope.apply_unsaved(&path, disk::load_open_file(file, &metadata, &name)?);
    if let Some(format) = documents::detect_format(scope, &path, &loaded.bytes) {
        let document = DocumentFile {
            path: &path,
            name: &name,
            bytes: &loaded.bytes,
            format,
        };
        return document::read_document(scope, &document, range, loaded.state.mtime_ns);
    }
    documents::reject_unreadable_document(scope, &path, &name, &loaded.bytes)?;
    if let Some(media_type) = image::detect_media_type(&loaded.bytes) {
        return image::build_image_output(scope, &path, &name, &loaded, media_type);
    }
    let Some(decoded) = decode_text(&loaded.bytes) else {
        let kind = describe_binary(&loaded.bytes);
        return Err(ReadError::Binary {
            name,
            kind,
            size: loaded.state.size,
        }
        .into());
    };
    let mut page = FilePage::new(range, scope.limits);
    let mut total = 0;
    for line in lines::split_lines(&decoded.text) {
        total += 1;
        page.offer_line(total, line.text, line.text.len());
    }
    let mut envelope = build_page_envelope(&name, &page, total, loaded.state.mtime_ns)?;
    match decoded.encoding {
        TextEncoding::Utf8 => {}
        other @ (TextEncoding::Utf16Le | TextEncoding::Utf16Be | TextEncoding::Legacy(_)) => {
            add_line(&mut envelope.text, &format!("[Read as {}.]", other.name()));
        }
    }
    record_read(scope, &path, &name, &loaded, &mut envelope);
    Ok(envelope.into())
}

/// Returns the page as text and data, followed by a line that reports the range if the page is not
/// the whole file.
fn build_page_envelope(
    name: &str,
    page: &FilePage,
    total: usize,
    mtime: i64,
) -> Result<Envelope, ReadError> {
    let start = page.range().start_line();
    if total == 0 && start == 1 {
        let data = json!({
            "path": name, "start_line": 0, "end_line": 0, "total_lines": 0, "mtime": format_mtime(mtime), "content": "",
        });
        return Ok(Envelope::success(format!("`{name}` is empty.")).with_data(data));
    }
    let Some(last) = page.last_line() else {
        return Err(ReadError::Beyond {
            name: name.to_owned(),
            total,
            start,
        });
    };
    let mut text = page.numbered_lines().to_owned();
    for remark in page.remarks() {
        add_line(&mut text, &remark);
    }
    if page.is_full() {
        add_line(
            &mut text,
            &format!(
                "[Lines {start}-{last} of {total}. Read on with start_line {}.]",
                last + 1
            ),
        );
    } else if (start, last) != (1, total) {
        add_line(&mut text, &format!("[Lines {start}-{last} of {total}.]"));
    }
    let mut data = json!({
        "path": name, "start_line": start, "end_line": last, "total_lines": total, "mtime": format_mtime(mtime),
        "content": page.plain_lines(),
    });
    if page.is_full() {
        data["truncated"] = true.into();
    }
    Ok(Envelope::success(text).with_data(data))
}

/// Records the read, and adds a note if the file has changed since the read ledger last recorded
/// it.
fn record_read(
    scope: &FileScope,
    path: &Path,
    name: &str,
    loaded: &LoadedFile,
    envelope: &mut Envelope,
) {
    if scope
        .reads
        .last_seen(path)
        .is_some_and(|seen| seen.hash != loaded.state.hash)
    {
        let note = format!("Note: {name} was modified externally.");
        add_line(&mut envelope.text, &note);
        envelope.data["note"] = note.into();
    }
    envelope.context = scope.record_seen(path, loaded.state);
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

/// Converts the arguments that other agents use, `file_path`, `offset` (the first line) and `limit`
/// (the number of lines), to `path`, `start_line` and `end_line`.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    rename_argument(&mut arguments, "file_path", "path");
    rename_argument(&mut arguments, "offset", "start_line");
    let start = arguments
        .get("start_line")
        .and_then(Value::as_u64)
        .unwrap_or(1)
        .max(1);
    if let Some(limit) = arguments
        .shift_remove("limit")
        .as_ref()
        .and_then(Value::as_u64)
    {
        arguments
            .entry("end_line")
            .or_insert_with(|| start.saturating_add(limit.max(1) - 1).into());
    }
    arguments
}

#[cfg(test)]
mod tests;
