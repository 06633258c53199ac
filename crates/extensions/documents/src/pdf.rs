//! Reads PDF files in a child process.
//!
//! On malicious files, the PDF library can panic, overflow its stack, hang, or allocate any amount
//! of memory. So it runs in its own process, under the supervisor and with resource limits of the
//! system; if it fails, only the call fails. The process is this program, started with
//! [`CHILD_ARG`].

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use haft_sandbox::{Capture, CommandExit, CommandSpec, HELPER_PROGRAM, Stdin, Supervisor};
use pdf_extract::{Document, Error, OutputError, PlainTextOutput, output_doc_page};
use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::runtime::Handle;

use super::flow::TextFlow;
use super::{DocumentError, DocumentSource, DocumentText, MAX_TEXT_BYTES};

/// The first argument of the child process. The PDF file and the output file follow it. The
/// argument contains no dash, so that it can also be the name of the test that acts as the child in
/// a test program.
const CHILD_ARG: &str = "__haft_read_pdf";

/// The time limit for reading an empty file. For other files, the limit grows with the size.
const BASE_TIMEOUT: Duration = Duration::from_secs(15);
const TIMEOUT_PER_MIB: Duration = Duration::from_millis(500);
/// The time limit for reading the largest files.
const MAX_TIMEOUT: Duration = Duration::from_mins(1);
/// The memory limit for reading an empty file, in bytes. For other files, the limit grows with the
/// size.
const BASE_MEMORY: u64 = 512 << 20;
const MEMORY_PER_BYTE: u64 = 16;
const MAX_MEMORY: u64 = 2 << 30;

fn timeout_for_size(bytes: u64) -> Duration {
    let mib = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
    TIMEOUT_PER_MIB
        .saturating_mul(mib)
        .saturating_add(BASE_TIMEOUT)
        .min(MAX_TIMEOUT)
}

fn memory_for_size(bytes: u64) -> u64 {
    bytes
        .saturating_mul(MEMORY_PER_BYTE)
        .saturating_add(BASE_MEMORY)
        .min(MAX_MEMORY)
}
/// The character that the child process writes after each page.
const PAGE_END: char = '\u{c}';
/// The text that replaces a page that could not be read.
const BAD_PAGE: &str = "[This page could not be read.]";
/// The exit status of the child process for a file with a password.
const STATUS_ENCRYPTED: u8 = 3;
/// The exit status of the child process for a damaged file.
const STATUS_DAMAGED: u8 = 4;

/// Extracts the text of a PDF file. Blocks until the child process has ended.
pub(super) fn read_pdf(
    supervisor: &Supervisor,
    source: &DocumentSource<'_>,
) -> Result<DocumentText, DocumentError> {
    let failed = |error: io::Error| {
        DocumentError::Unavailable(format!("no process could be started for it ({error})"))
    };
    let out = haft_files::create_temporary_file(source.spill, "pdf-", ".txt").map_err(failed)?;
    let time = timeout_for_size(source.bytes.len() as u64);
    let command = CommandSpec {
        argv: vec![
            HELPER_PROGRAM.into(),
            CHILD_ARG.into(),
            source.path.into(),
            out.path().into(),
        ],
        cwd: "/".into(),
        env: Vec::new(),
        timeout: time,
        stdin: Stdin::Null,
        confined: None,
    };
    let finished = Handle::current()
        .block_on(supervisor.run(&command, &Capture::default(), source.cancel))
        .map_err(|error| DocumentError::Unavailable(error.to_string()))?;
    match finished.exit {
        CommandExit::Code(0) => {}
        CommandExit::Cancelled => return Err(DocumentError::Canceled),
        CommandExit::TimedOut => {
            return Err(DocumentError::TooLarge(format!(
                "reading it took more than {} s",
                time.as_secs()
            )));
        }
        CommandExit::Code(code) if code == i32::from(STATUS_ENCRYPTED) => {
            return Err(DocumentError::Encrypted);
        }
        CommandExit::Code(code) if code == i32::from(STATUS_DAMAGED) => {
            return Err(DocumentError::Damaged(
                "it is damaged or uses something that is not understood".to_owned(),
            ));
        }
        CommandExit::Code(_) | CommandExit::Signal(_) => {
            return Err(DocumentError::Damaged(
                "the process that read it crashed".to_owned(),
            ));
        }
    }
    let text = fs::read_to_string(out.path()).map_err(failed)?;
    Ok(format_pages(&text))
}

/// Returns the extracted text with a heading before each page and without superfluous empty lines.
fn format_pages(text: &str) -> DocumentText {
    let mut flow = TextFlow::default();
    let mut empty = true;
    for (number, page) in (1..).zip(text.trim_end_matches(PAGE_END).split(PAGE_END)) {
        flow.push_heading(&format!("## Page {number}"));
        for line in page.trim().lines() {
            empty &= line.trim().is_empty();
            flow.push_text(&expand_ligatures(line.trim()));
            flow.end_paragraph("");
        }
    }
    if empty {
        flow.push_line("[There is no text in it: its pages may be pictures.]");
    }
    flow.finish()
}

/// Replaces ligatures with their letters, so that a search for `office` finds the word.
fn expand_ligatures(line: &str) -> Cow<'_, str> {
    const LIGATURES: [(char, &str); 7] = [
        ('ﬀ', "ff"),
        ('ﬁ', "fi"),
        ('ﬂ', "fl"),
        ('ﬃ', "ffi"),
        ('ﬄ', "ffl"),
        ('ﬅ', "st"),
        ('ﬆ', "st"),
    ];
    if !line.contains(|one| ('ﬀ'..='ﬆ').contains(&one)) {
        return Cow::Borrowed(line);
    }
    let letters = |one| {
        LIGATURES
            .iter()
            .find(|(ligature, _)| *ligature == one)
            .map(|(_, letters)| *letters)
    };
    let mut apart = String::with_capacity(line.len());
    for one in line.chars() {
        match letters(one) {
            Some(letters) => apart.push_str(letters),
            None => apart.push(one),
        }
    }
    Cow::Owned(apart)
}

/// If this process was started to read a PDF file, reads the file and returns the exit code;
/// otherwise returns `None`. Must be called at the beginning of `main` with the program's
/// arguments.
pub fn read_pdf_entry(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != CHILD_ARG {
        return None;
    }
    let path = arguments.next()?;
    let out = arguments.next()?;
    Some(ExitCode::from(run_child(Path::new(&path), Path::new(&out))))
}

fn run_child(path: &Path, out: &Path) -> u8 {
    let set_limit = |resource, most| {
        setrlimit(
            resource,
            Rlimit {
                current: Some(most),
                maximum: Some(most),
            },
        )
    };
    let size = fs::metadata(path).map_or(0, |file| file.len());
    let limits = [
        set_limit(Resource::As, memory_for_size(size)),
        set_limit(Resource::Cpu, timeout_for_size(size).as_secs()),
        set_limit(Resource::Fsize, 2 * MAX_TEXT_BYTES as u64),
        set_limit(Resource::Core, 0),
    ];
    if limits.iter().any(Result::is_err) {
        return 1;
    }
    // Panics are expected in the PDF library, and their messages are not needed.
    std::panic::set_hook(Box::new(|_| {}));
    let read = catch_unwind(|| extract_pages(path)).unwrap_or(Err(STATUS_DAMAGED));
    match read {
        Ok(text) => u8::from(fs::write(out, text).is_err()),
        Err(status) => status,
    }
}

/// Returns the text of all pages, each followed by [`PAGE_END`].
fn extract_pages(path: &Path) -> Result<String, u8> {
    let mut document = Document::load(path).map_err(|_| STATUS_DAMAGED)?;
    // Many files only have a password for changes, so they can be opened with an empty password.
    if document.is_encrypted() {
        document.decrypt("").map_err(|error| match error {
            Error::Decryption(_) | Error::InvalidPassword => STATUS_ENCRYPTED,
            _ => STATUS_DAMAGED,
        })?;
    }
    let mut text = String::new();
    for number in document.get_pages().into_keys() {
        match catch_unwind(AssertUnwindSafe(|| extract_page(&document, number))) {
            Ok(Ok(page)) => text.push_str(&page.replace(PAGE_END, "\n")),
            // A damaged page is replaced, because the other pages may still be readable.
            Ok(Err(_)) | Err(_) => text.push_str(BAD_PAGE),
        }
        text.push(PAGE_END);
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    Ok(text)
}

fn extract_page(document: &Document, number: u32) -> Result<String, OutputError> {
    let mut text = String::new();
    output_doc_page(document, &mut PlainTextOutput::new(&mut text), number)?;
    Ok(text)
}
