//! Draws one finished block of Markdown.
//!
//! Responsible for the layout of headings, lists, quotes, tables and code. Invariant: no row is
//! wider than `columns`, and no text of the block is omitted; URLs of links are shown, so that a
//! link's text can't hide its target.

use haft_text::sanitize;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::table::draw_table;
use crate::highlight::Highlighter;
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::wrap::{MIN_COLUMNS, has_wide_address, wrap_code, wrap_hanging};

/// The mark of an item in a list without numbers.
const BULLET: &str = "• ";

/// Draws one complete block of Markdown, with highlighted code.
pub(crate) fn draw_block(text: &str, columns: usize) -> Vec<StyledLine> {
    layout_block(text, columns, CodeLayout::Highlighted)
}

/// Selects whether code is highlighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CodeLayout {
    /// Code is not highlighted, because the block will soon be drawn again.
    #[default]
    Plain,
    /// Code is highlighted in its language.
    Highlighted,
}

pub(super) fn layout_block(text: &str, columns: usize, looks: CodeLayout) -> Vec<StyledLine> {
    let text = sanitize(text);
    let mut page = MarkdownRenderer {
        columns: columns.max(MIN_COLUMNS),
        looks,
        ..MarkdownRenderer::default()
    };
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(&text, options) {
        page.handle_event(event);
    }
    page.end_line();
    page.rows
}

/// A block that draws a mark before every row inside it.
enum ContainerBlock {
    Quote,
    Item {
        /// The bullet or number of the item. `None` once it has been drawn.
        mark: Option<String>,
        width: usize,
    },
}

#[derive(Default)]
struct MarkdownRenderer {
    columns: usize,
    looks: CodeLayout,
    rows: Vec<StyledLine>,
    line: StyledLine,
    inside: Vec<ContainerBlock>,
    styles: Vec<TextStyle>,
    /// The number of the next item of each open list. `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    /// The language and the code of the open code block.
    code: Option<(String, String)>,
    /// The URL and the text of each open link. The innermost link is the last.
    links: Vec<(String, String)>,
    table: Option<MarkdownTable>,
    /// True if an empty row must be drawn before the next block.
    gap: bool,
}

#[derive(Default)]
struct MarkdownTable {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<StyledLine>>,
    row: Vec<StyledLine>,
}

impl MarkdownRenderer {
    fn handle_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push_text(&text, self.styles.last().copied().unwrap_or_default()),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push_text(&text, TextStyle::Code);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                self.push_text(text.trim_end_matches('\n'), TextStyle::Dim);
            }
            Event::FootnoteReference(text) => self.push_text(&format!("[{text}]"), TextStyle::Dim),
            Event::SoftBreak => self.push_text(" ", TextStyle::Plain),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.start_block();
                self.line =
                    StyledLine::new("─".repeat(self.remaining_columns().min(40)), TextStyle::Dim);
                self.end_block();
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.mark_task(mark);
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.start_block(),
            Tag::Heading { level, .. } => {
                self.start_block();
                self.push_text(&format!("{} ", "#".repeat(level as usize)), TextStyle::Dim);
                self.styles.push(TextStyle::Heading);
            }
            Tag::BlockQuote(_) => {
                self.start_block();
                self.inside.push(ContainerBlock::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.start_block();
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.start_block();
                } else {
                    self.end_line();
                    self.gap = false;
                }
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.styles.push(TextStyle::Emphasis),
            Tag::Strong => self.styles.push(TextStyle::Strong),
            Tag::Strikethrough => self.styles.push(TextStyle::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.styles.push(TextStyle::Link);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Table(alignments) => {
                self.start_block();
                self.table = Some(MarkdownTable {
                    alignments,
                    ..MarkdownTable::default()
                });
            }
            Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        self.end_line();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(None) | None => BULLET.to_owned(),
        };
        let width = haft_text::display_width(&mark);
        self.inside.push(ContainerBlock::Item {
            mark: Some(mark),
            width,
        });
        self.gap = false;
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_block();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.inside.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.end_line();
                // An empty item still needs its mark.
                if let Some(ContainerBlock::Item { mark: Some(_), .. }) = self.inside.last() {
                    self.push_line(&StyledLine::empty());
                }
                self.inside.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.end_line();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                if let Some((address, text)) = self.links.pop()
                    && address != text
                {
                    self.push_text(&format!(" ({address})"), TextStyle::Dim);
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    let row = std::mem::take(&mut table.row);
                    table.rows.push(row);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                for row in draw_table(&table.rows, &table.alignments, self.remaining_columns()) {
                    self.push_line(&row);
                }
                self.gap = true;
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.end_block(),
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn end_code(&mut self) {
        let (language, code) = self.code.take().unwrap_or_default();
        let mut highlighter = match self.looks {
            CodeLayout::Plain => Highlighter::default(),
            CodeLayout::Highlighted => Highlighter::for_language(&language),
        };
        for line in code.lines() {
            let indent = StyledLine::new("  ", TextStyle::Plain);
            let line = highlighter.highlight_line(line);
            let room = self.remaining_columns().saturating_sub(indent.width());
            let rows = if has_wide_address(&line, room) {
                vec![line]
            } else {
                wrap_code(&line, room)
            };
            for row in rows {
                self.push_line(&indent.clone().joined_with(&row));
            }
        }
        self.gap = true;
    }

    /// Replaces the bullet of the current item with the box of a task. A numbered item keeps its
    /// number, and the box follows.
    fn mark_task(&mut self, task_mark: &str) {
        match self.inside.last_mut() {
            Some(ContainerBlock::Item {
                mark: Some(mark), ..
            }) if mark == BULLET => task_mark.clone_into(mark),
            _ => self.push_text(task_mark, TextStyle::Accent),
        }
    }

    fn push_text(&mut self, text: &str, style: TextStyle) {
        if let Some((_, said)) = self.links.last_mut() {
            said.push_str(text);
        }
        self.line.push(StyledSpan::new(text, style));
    }

    /// Starts a block. Ends the previous block, and adds an empty row between the two blocks if
    /// needed.
    fn start_block(&mut self) {
        self.end_line();
        if std::mem::take(&mut self.gap) {
            self.push_line(&StyledLine::empty());
        }
    }

    fn end_block(&mut self) {
        self.end_line();
        self.gap = true;
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.spans().is_empty() {
            self.push_line(&line);
        }
    }

    /// Returns the number of columns that remain inside the open quotes and lists.
    fn remaining_columns(&self) -> usize {
        let taken = self.inside.iter().map(|one| match one {
            ContainerBlock::Quote => 2,
            ContainerBlock::Item { width, .. } => *width,
        });
        self.columns.saturating_sub(taken.sum()).max(MIN_COLUMNS)
    }

    /// Adds a line, preceded by the marks of the quotes and lists in which the line is.
    fn push_line(&mut self, line: &StyledLine) {
        let mut first = StyledLine::empty();
        let mut rest = StyledLine::empty();
        for one in &mut self.inside {
            let (of_first, of_rest) = match one {
                ContainerBlock::Quote => ("│ ".to_owned(), "│ ".to_owned()),
                ContainerBlock::Item { mark, width } => (
                    mark.take().unwrap_or_else(|| " ".repeat(*width)),
                    " ".repeat(*width),
                ),
            };
            first.push(StyledSpan::new(of_first, TextStyle::Dim));
            rest.push(StyledSpan::new(of_rest, TextStyle::Dim));
        }
        // The marks are omitted if deep nesting would leave no room for text.
        if first.width() + MIN_COLUMNS > self.columns {
            (first, rest) = (StyledLine::empty(), StyledLine::empty());
        }
        self.rows
            .extend(wrap_hanging(line, &first, &rest, self.columns));
    }
}
