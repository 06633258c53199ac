//! A server's answer to a call, and the tool result that the model gets for it.
//!
//! Invariant: the text is sanitized and within the limits; if anything is left out, the text names
//! the file that holds the complete answer.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use haft_text::{CutLimits, cut_lines, sanitize};
use haft_tool::{ToolContext, ToolOutput};
use haft_types::{Envelope, Image, ToolError, ToolStatus};
use serde_json::{Value, json};

/// The limits of the text that is stored in a tool result's data. Compression in later rounds keeps
/// even fewer lines.
const DATA_LIMITS: CutLimits = CutLimits {
    lines: 200,
    bytes: 8 * 1024,
};

/// A server's answer to a tool call, a resource read, or a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerAnswer {
    pub content: Vec<AnswerContent>,
    /// The structured content, if the server sends any.
    pub structured: Option<Value>,
    /// True if the server marked the answer as an error.
    pub is_error: bool,
}

/// One content block of a server's answer: a text, an image, or other content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerContent {
    Text(String),
    Image(Image),
    /// Content of another type, described in one line.
    Other(String),
}

impl ServerAnswer {
    /// Returns all text blocks, joined by newlines. If there is no text, returns the structured
    /// content as JSON.
    pub fn joined_text(&self) -> String {
        let parts = self.content.iter().filter_map(|part| match part {
            AnswerContent::Text(text) | AnswerContent::Other(text) => Some(text.as_str()),
            AnswerContent::Image(_) => None,
        });
        let text = parts.collect::<Vec<_>>().join("\n");
        match &self.structured {
            // Servers repeat structured content as text for clients that don't support it.
            Some(value) if text.trim().is_empty() => format!("{value:#}"),
            Some(_) | None => text,
        }
    }

    /// Converts the answer to a tool result. Text over the limits is cut, and the complete text is
    /// written to a file.
    pub(crate) fn to_tool_output(
        &self,
        context: &ToolContext,
        server: &str,
        tool: &str,
    ) -> ToolOutput {
        let whole = sanitize(&self.joined_text()).into_owned();
        let limits = CutLimits {
            lines: context.limits.lines.saturating_sub(1),
            bytes: context.limits.bytes,
        };
        let cut = cut_lines(&whole, limits);
        let mut text = cut.text.clone();
        let mut data =
            json!({ "server": server, "tool": tool, "text": cut_lines(&whole, DATA_LIMITS).text });
        if cut.is_cut() {
            data["truncated"] = true.into();
            let size = format!(
                "The whole answer has {} lines and {} bytes",
                cut.total_lines, cut.total_bytes
            );
            let note = match write_spill_file(&whole, &context.workspace.spill) {
                Ok(path) => {
                    data["spill"] = json!([path.display().to_string()]);
                    format!(
                        "{size}. It is in `{}`: read it by range, or search it.",
                        path.display()
                    )
                }
                Err(error) => format!("{size}; it could not be written to a file: {error}."),
            };
            let _ = write!(text, "\n[{note}]");
        }
        let images: Vec<Image> = self
            .content
            .iter()
            .filter_map(AnswerContent::as_image)
            .cloned()
            .collect();
        if text.trim().is_empty() {
            text = match images.len() {
                0 => "The tool answered without a word.".to_owned(),
                _ => "The tool answered with a picture.".to_owned(),
            };
        }
        let mut envelope = Envelope::success(text).with_data(data);
        if self.is_error {
            envelope.status = ToolStatus::Error;
            let message = whole.lines().next().unwrap_or("the tool failed").to_owned();
            envelope.error = Some(ToolError {
                code: "tool_error".into(),
                message,
            });
        }
        ToolOutput {
            images,
            ..envelope.into()
        }
    }
}

impl AnswerContent {
    fn as_image(&self) -> Option<&Image> {
        match self {
            Self::Image(image) => Some(image),
            Self::Text(_) | Self::Other(_) => None,
        }
    }
}

/// Writes `text` to a new file in `folder`, where the model can read it by range.
fn write_spill_file(text: &str, folder: &Path) -> io::Result<PathBuf> {
    let mut file = haft_files::create_temporary_file(folder, "mcp-", ".txt")?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}
