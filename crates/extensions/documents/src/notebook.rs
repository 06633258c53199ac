//! Reads Jupyter notebooks: cells with their outputs. Images are mentioned, but not included.

use std::collections::BTreeMap;

use haft_text::sanitize;
use serde::Deserialize;
use serde_json::Value;

use super::flow::TextFlow;
use super::{DocumentError, DocumentText};

/// True if the content has the keys of a notebook in format 4. The extension `.ipynb` is no proof,
/// because other files may have it.
pub(super) fn is_notebook(bytes: &[u8]) -> bool {
    let begins = bytes.trim_ascii_start().starts_with(b"{");
    let contains = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    begins && contains(b"\"cells\"") && contains(b"\"nbformat\"")
}

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<NotebookCell>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct NotebookCell {
    #[serde(rename = "cell_type")]
    kind: String,
    #[serde(default)]
    source: NotebookText,
    #[serde(default)]
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<CellOutput>,
}

#[derive(Deserialize)]
struct CellOutput {
    #[serde(rename = "output_type")]
    kind: String,
    /// The name of the stream. Empty if the output is not a stream.
    #[serde(default)]
    name: String,
    #[serde(default)]
    text: NotebookText,
    #[serde(default)]
    data: BTreeMap<String, Value>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
    #[serde(default)]
    traceback: Vec<String>,
}

/// A text that is stored as one string or as a list of lines.
#[derive(Deserialize)]
#[serde(untagged)]
enum NotebookText {
    One(String),
    Lines(Vec<String>),
}

impl Default for NotebookText {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl NotebookText {
    fn to_text(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Lines(lines) => lines.concat(),
        }
    }
}

/// Extracts the text of a notebook.
pub(super) fn read_notebook(bytes: &[u8]) -> Result<DocumentText, DocumentError> {
    let notebook: Notebook = serde_json::from_slice(bytes)
        .map_err(|error| DocumentError::Damaged(format!("it is no valid notebook ({error})")))?;
    let language = notebook.metadata["language_info"]["name"]
        .as_str()
        .unwrap_or("code")
        .to_owned();
    let mut flow = TextFlow::default();
    for (number, cell) in (1..).zip(&notebook.cells) {
        let source = cell.source.to_text();
        match cell.kind.as_str() {
            "code" => {
                let count = cell
                    .execution_count
                    .map_or_else(String::new, |count| format!(", run {count}"));
                flow.push_heading(&format!("## Cell {number} ({language}{count})"));
                push_lines(&mut flow, &source);
                for output in &cell.outputs {
                    push_output(&mut flow, output);
                }
            }
            kind => {
                flow.push_heading(&format!("## Cell {number} ({kind})"));
                push_lines(&mut flow, &source);
            }
        }
    }
    Ok(flow.finish())
}

fn push_output(flow: &mut TextFlow, output: &CellOutput) {
    match output.kind.as_str() {
        "stream" => {
            flow.push_line(if output.name == "stderr" {
                "[Standard error:]"
            } else {
                "[Output:]"
            });
            push_lines(flow, &output.text.to_text());
        }
        "error" => {
            flow.push_line(&sanitize(&format!(
                "[Error: {}: {}]",
                output.ename, output.evalue
            )));
            for part in &output.traceback {
                push_lines(flow, part);
            }
        }
        _ => {
            flow.push_line("[Result:]");
            push_data(flow, &output.data);
        }
    }
}

/// Writes the plain-text representation of a cell's result. All other representations, such as
/// images, are only mentioned with their sizes.
fn push_data(flow: &mut TextFlow, data: &BTreeMap<String, Value>) {
    let size = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).map(str::len).sum(),
        other => other.to_string().len(),
    };
    for (kind, value) in data.iter().filter(|(kind, _)| *kind != "text/plain") {
        // Base64 encodes three bytes in four characters.
        let bytes = if kind.starts_with("image/") && kind != "image/svg+xml" {
            size(value) / 4 * 3
        } else {
            size(value)
        };
        flow.push_line(&sanitize(&format!("[{kind}, {bytes} bytes]")));
    }
    if let Some(plain) = data
        .get("text/plain")
        .and_then(|value| NotebookText::deserialize(value).ok())
    {
        push_lines(flow, &plain.to_text());
    }
}

/// Writes the lines of a text, without colors and other control sequences.
fn push_lines(flow: &mut TextFlow, text: &str) {
    for line in sanitize(text).lines() {
        flow.push_line(line.trim_end());
    }
}
