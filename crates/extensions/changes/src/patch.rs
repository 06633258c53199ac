//! Parses the text of a patch into its sections.
//!
//! Every marker begins its line, so nothing is guessed. A line that is not part of the format is an
//! error that names the line. Three deviations common in model output are accepted, because each
//! has only one meaning: an empty line stands for an empty unchanged line, the line numbers of a
//! unified diff after `@@` are ignored, and spaces before a marker are ignored where the line
//! cannot be file content.

use haft_tools::{
    BlockAnchor, BlockLine, EditBlock, ParsedPatch, PatchAction, PatchSection, visible_line,
};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The reason why the text of a patch cannot be parsed. Line numbers refer to the patch and begin
/// at 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum PatchError {
    #[error("a patch begins with a line `{BEGIN}`")]
    NoBegin,
    #[error("the line `{END}` is missing: the patch may be cut off, send it whole")]
    NoEnd,
    #[error("line {line} of the patch stands after `{END}`: `{text}`; a patch has one end")]
    AfterEnd { line: usize, text: String },
    #[error("the patch changes no file: it has no `{ADD}`, `{UPDATE}` or `{DELETE}`")]
    NoSections,
    #[error(
        "line {line} of the patch belongs to no file: `{text}`; a section begins with `{ADD}`, `{UPDATE}` or `{DELETE}`"
    )]
    Outside { line: usize, text: String },
    #[error("line {line} of the patch names no file")]
    NoPath { line: usize },
    #[error(
        "line {line} of the patch is no marker: `{text}`; the markers are `{ADD}`, `{UPDATE}`, `{MOVE}`, `{DELETE}`, `{END_OF_FILE}` and `{END}`"
    )]
    Marker { line: usize, text: String },
    #[error("line {line} of the patch is part of a new file and must begin with `+`: `{text}`")]
    NotAdded { line: usize, text: String },
    #[error("line {line} of the patch must begin with ` `, `-`, `+` or `@@`: `{text}`")]
    NoSign { line: usize, text: String },
    #[error("line {line} of the patch comes after `{END_OF_FILE}`; begin the next chunk with `@@`")]
    AfterEndOfFile { line: usize },
    #[error("`{MOVE}` in line {line} of the patch must follow its `{UPDATE}` line at once")]
    Misplaced { line: usize },
    #[error(
        "the chunk of `{path}` that ends before line {line} of the patch has no lines; give what changes below its `@@`"
    )]
    EmptyChunk { path: String, line: usize },
    #[error("the patch updates `{path}` but has no chunk for it; give what changes")]
    NoChunks { path: String },
}

/// Parses a patch into its sections, in order. On failure, returns a message that describes the
/// error.
pub(crate) fn parse_patch(patch: &str) -> Result<ParsedPatch, String> {
    parse_sections(patch).map_err(|error| error.to_string())
}

fn parse_sections(patch: &str) -> Result<ParsedPatch, PatchError> {
    let indent = find_common_indent(patch);
    let lines = patch.lines().enumerate();
    let mut lines =
        lines.map(|(index, line)| (index + 1, line.strip_prefix(indent).unwrap_or(line)));
    match lines.by_ref().find(|(_, line)| !line.trim().is_empty()) {
        Some((_, line)) if line.trim() == BEGIN => {}
        Some(_) | None => return Err(PatchError::NoBegin),
    }
    let last = patch.lines().count()
        - patch
            .lines()
            .rev()
            .take_while(|line| line.trim().is_empty())
            .count();
    let mut reader = PatchReader {
        padded: !indent.is_empty(),
        ..PatchReader::default()
    };
    let mut ended = false;
    for (line, text) in lines {
        if ended {
            if !text.trim().is_empty() {
                return Err(PatchError::AfterEnd {
                    line,
                    text: shorten_line(text),
                });
            }
        } else if text.trim_end() == END || line == last && text.trim() == END {
            reader.padded |= text.starts_with(char::is_whitespace);
            reader.close_section(line)?;
            ended = true;
        } else {
            reader.read_line(line, text)?;
        }
    }
    match (ended, reader.sections.is_empty()) {
        (false, _) => Err(PatchError::NoEnd),
        (true, true) => Err(PatchError::NoSections),
        (true, false) => Ok(ParsedPatch {
            sections: reader.sections,
            padded: reader.padded,
        }),
    }
}

/// Returns the indentation of the patch's first line if all other lines begin with it, else an
/// empty string.
fn find_common_indent(patch: &str) -> &str {
    let mut lines = patch.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    let indent = &first[..first.len() - first.trim_start().len()];
    if lines.all(|line| line.starts_with(indent)) {
        indent
    } else {
        ""
    }
}

fn shorten_line(line: &str) -> String {
    let line = visible_line(line);
    line.get(..line.floor_char_boundary(80))
        .unwrap_or_default()
        .to_owned()
}

#[derive(Default)]
enum OpenSection {
    #[default]
    Closed,
    Add {
        path: String,
        lines: Vec<String>,
        /// The number of empty lines read since the last non-empty line. They belong to the file
        /// only if another line of the file follows.
        blank: usize,
    },
    Update {
        path: String,
        move_to: Option<String>,
        chunks: Vec<EditBlock>,
        chunk: Option<PatchChunk>,
    },
}

#[derive(Default)]
struct PatchChunk {
    block: EditBlock,
    /// The number of empty lines read since the last non-empty line. They belong to the chunk only
    /// if another line of the chunk follows.
    blank: usize,
    ended: bool,
}

impl PatchChunk {
    fn push(&mut self, piece: BlockLine) {
        if !self.block.pieces.is_empty() {
            self.block
                .pieces
                .extend((0..self.blank).map(|_| BlockLine::Keep(String::new())));
        }
        self.blank = 0;
        self.block.pieces.push(piece);
    }
}

#[derive(Default)]
struct PatchReader {
    sections: Vec<PatchSection>,
    open: OpenSection,
    /// True if the patch contained a marker that was accepted despite leading spaces.
    padded: bool,
}

impl PatchReader {
    /// Returns the line without its leading spaces if a marker follows them. Returns `None` if the
    /// line has no leading spaces, or if it may be file content, as inside a chunk.
    fn find_indented_marker<'a>(&self, text: &'a str) -> Option<&'a str> {
        let behind = text.trim_start();
        let begins = |markers: &[&str]| markers.iter().any(|marker| behind.starts_with(marker));
        let is_marker = match &self.open {
            OpenSection::Closed | OpenSection::Add { .. } => begins(&[ADD, UPDATE, DELETE]),
            OpenSection::Update {
                chunk: None,
                chunks,
                ..
            } if chunks.is_empty() => begins(&[MOVE, "@@"]),
            OpenSection::Update {
                chunk: Some(PatchChunk { ended: true, .. }),
                ..
            } => begins(&[ADD, UPDATE, DELETE, "@@"]),
            OpenSection::Update { .. } => false,
        };
        (is_marker && behind.len() < text.len()).then_some(behind)
    }

    fn read_line(&mut self, line: usize, text: &str) -> Result<(), PatchError> {
        let behind = self.find_indented_marker(text);
        self.padded |= behind.is_some();
        let text = behind.unwrap_or(text);
        if text.starts_with("*** ") {
            return self.read_marker(line, text.trim_end());
        }
        match &mut self.open {
            OpenSection::Closed if text.trim().is_empty() => Ok(()),
            OpenSection::Closed => Err(PatchError::Outside {
                line,
                text: shorten_line(text),
            }),
            OpenSection::Add { lines, blank, .. } => match text.strip_prefix('+') {
                Some(added) => {
                    lines.extend(std::iter::repeat_n(String::new(), std::mem::take(blank)));
                    lines.push(added.to_owned());
                    Ok(())
                }
                None if text.trim().is_empty() => {
                    *blank += 1;
                    Ok(())
                }
                None => Err(PatchError::NotAdded {
                    line,
                    text: shorten_line(text),
                }),
            },
            OpenSection::Update {
                path,
                chunks,
                chunk,
                ..
            } => read_update_line(path, chunks, chunk, line, text),
        }
    }

    fn read_marker(&mut self, line: usize, text: &str) -> Result<(), PatchError> {
        let path_after =
            |marker: &str| text.strip_prefix(marker).map(|path| path.trim().to_owned());
        if let Some(path) = path_after(MOVE) {
            return match &mut self.open {
                OpenSection::Update {
                    move_to: to @ None,
                    chunks,
                    chunk: None,
                    ..
                } if chunks.is_empty() => {
                    *to = Some(require_path(path, line)?);
                    Ok(())
                }
                OpenSection::Closed | OpenSection::Add { .. } | OpenSection::Update { .. } => {
                    Err(PatchError::Misplaced { line })
                }
            };
        }
        if text == END_OF_FILE {
            return match &mut self.open {
                OpenSection::Update {
                    chunk: Some(chunk), ..
                } if !chunk.block.pieces.is_empty() && !chunk.ended => {
                    chunk.block.place = BlockAnchor::AtEnd;
                    chunk.ended = true;
                    Ok(())
                }
                OpenSection::Closed | OpenSection::Add { .. } | OpenSection::Update { .. } => {
                    Err(PatchError::Outside {
                        line,
                        text: shorten_line(text),
                    })
                }
            };
        }
        let open = if let Some(path) = path_after(ADD) {
            OpenSection::Add {
                path: require_path(path, line)?,
                lines: Vec::new(),
                blank: 0,
            }
        } else if let Some(path) = path_after(UPDATE) {
            OpenSection::Update {
                path: require_path(path, line)?,
                move_to: None,
                chunks: Vec::new(),
                chunk: None,
            }
        } else if let Some(path) = path_after(DELETE) {
            self.close_section(line)?;
            self.sections.push(PatchSection {
                path: require_path(path, line)?,
                action: PatchAction::Delete,
            });
            return Ok(());
        } else {
            return Err(PatchError::Marker {
                line,
                text: shorten_line(text),
            });
        };
        self.close_section(line)?;
        self.open = open;
        Ok(())
    }

    /// Closes the open section and adds it to the result. `line` is the number of the line after
    /// the section.
    fn close_section(&mut self, line: usize) -> Result<(), PatchError> {
        let section = match std::mem::take(&mut self.open) {
            OpenSection::Closed => return Ok(()),
            OpenSection::Add { path, lines, .. } => {
                let text = lines
                    .iter()
                    .flat_map(|line| [line.as_str(), "\n"])
                    .collect();
                PatchSection {
                    path,
                    action: PatchAction::Add { text },
                }
            }
            OpenSection::Update {
                path,
                move_to,
                mut chunks,
                chunk,
            } => {
                finish_chunk(&path, &mut chunks, chunk, line)?;
                if chunks.is_empty() && move_to.is_none() {
                    return Err(PatchError::NoChunks { path });
                }
                PatchSection {
                    path,
                    action: PatchAction::Update { move_to, chunks },
                }
            }
        };
        self.sections.push(section);
        Ok(())
    }
}

fn require_path(path: String, line: usize) -> Result<String, PatchError> {
    if path.is_empty() {
        Err(PatchError::NoPath { line })
    } else {
        Ok(path)
    }
}

/// Parses one line of a section that updates a file.
fn read_update_line(
    path: &str,
    chunks: &mut Vec<EditBlock>,
    chunk: &mut Option<PatchChunk>,
    line: usize,
    text: &str,
) -> Result<(), PatchError> {
    if let Some(heading) = text.strip_prefix("@@") {
        // Consecutive `@@` lines lead from an outer scope to an inner one.
        if chunk
            .as_ref()
            .is_some_and(|chunk| !chunk.block.pieces.is_empty())
        {
            finish_chunk(path, chunks, chunk.take(), line)?;
        }
        let headings = &mut chunk.get_or_insert_default().block.headings;
        headings.extend(
            Some(heading.strip_prefix(' ').unwrap_or(heading))
                .filter(|text| is_heading(text))
                .map(str::to_owned),
        );
        return Ok(());
    }
    let chunk = chunk.get_or_insert_default();
    if text.is_empty() {
        chunk.blank += 1;
        return Ok(());
    }
    if chunk.ended {
        return Err(PatchError::AfterEndOfFile { line });
    }
    let rest = || text.get(1..).unwrap_or_default().to_owned();
    chunk.push(match text.as_bytes().first() {
        Some(b' ') => BlockLine::Keep(rest()),
        Some(b'-') => BlockLine::Remove(rest()),
        Some(b'+') => BlockLine::Add(rest()),
        Some(_) | None => {
            return Err(PatchError::NoSign {
                line,
                text: shorten_line(text),
            });
        }
    });
    Ok(())
}

/// True if the text after `@@` is the heading of a chunk, that is, if it is neither empty nor the
/// line numbers of a unified diff.
fn is_heading(text: &str) -> bool {
    let numbers = |word: &str, sign: char| {
        word.strip_prefix(sign)
            .is_some_and(|word| word.chars().all(|one| one.is_ascii_digit() || one == ','))
    };
    let mut fields = text.split_whitespace();
    match (fields.next(), fields.next()) {
        (None, _) => false,
        (Some(old), Some(new)) => !(numbers(old, '-') && numbers(new, '+')),
        (Some(_), None) => true,
    }
}

fn finish_chunk(
    path: &str,
    chunks: &mut Vec<EditBlock>,
    chunk: Option<PatchChunk>,
    line: usize,
) -> Result<(), PatchError> {
    match chunk {
        Some(chunk) if !chunk.block.pieces.is_empty() => chunks.push(chunk.block),
        // Only empty lines between sections.
        Some(PatchChunk { block, .. }) if block.headings.is_empty() && !chunks.is_empty() => {}
        Some(_) => {
            return Err(PatchError::EmptyChunk {
                path: path.to_owned(),
                line,
            });
        }
        None => {}
    }
    Ok(())
}
