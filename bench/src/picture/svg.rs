//! Draws a terminal screen as SVG.

use haft_text::{Svg, SvgElement};

/// The width and height of a cell.
const CELL_SIZE: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;

/// The default colors of text and background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Dark,
    Light,
}

impl Theme {
    fn background_color(self) -> &'static str {
        match self {
            Self::Dark => "#16181d",
            Self::Light => "#fbfbf9",
        }
    }

    fn text_color(self) -> &'static str {
        match self {
            Self::Dark => "#d8dbe2",
            Self::Light => "#24272d",
        }
    }

    /// Returns one of the eight ANSI colors; bright colors map to the plain ones.
    fn ansi_color(self, number: u8) -> &'static str {
        const DARK: [&str; 8] = [
            "#3a3f4b", "#ef6b73", "#8fce7b", "#e5c07b", "#6cb6ff", "#d08be8", "#56c8d8", "#d8dbe2",
        ];
        const LIGHT: [&str; 8] = [
            "#24272d", "#c4262e", "#2d7d32", "#8a6100", "#1f5fc4", "#8c3fb0", "#0b7285", "#5c626d",
        ];
        let colours = match self {
            Self::Dark => DARK,
            Self::Light => LIGHT,
        };
        colours[usize::from(number % 8)]
    }

    fn color_hex(self, colour: vt100::Color) -> Option<String> {
        match colour {
            vt100::Color::Default => None,
            vt100::Color::Idx(number) => Some(self.ansi_color(number).to_owned()),
            vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

/// The style of a run of cells.
#[derive(PartialEq)]
struct Style {
    color: Option<String>,
    attributes: Vec<(&'static str, &'static str)>,
}

impl Style {
    fn from_cell(cell: &vt100::Cell, theme: Theme) -> Self {
        let attributes = [
            (cell.bold(), ("font-weight", "700")),
            (cell.italic(), ("font-style", "italic")),
            (cell.underline(), ("text-decoration", "underline")),
            (cell.dim(), ("opacity", "0.62")),
        ];
        let attributes = attributes
            .into_iter()
            .filter(|(is, _)| *is)
            .map(|(_, attribute)| attribute)
            .collect();
        Self {
            color: theme.color_hex(cell.fgcolor()),
            attributes,
        }
    }

    fn apply_to<'a>(&self, element: SvgElement<'a>) -> SvgElement<'a> {
        let element = match &self.color {
            Some(colour) => element.attribute("fill", colour),
            None => element,
        };
        self.attributes
            .iter()
            .fold(element, |element, (name, value)| {
                element.attribute(name, value)
            })
    }
}

/// Draws the screen without the empty rows at its end.
pub(super) fn draw_screen(screen: &vt100::Screen, theme: Theme) -> String {
    let (rows, columns) = screen.size();
    let used = screen
        .rows(0, columns)
        .enumerate()
        .filter(|(_, row)| !row.trim().is_empty())
        .map(|(at, _)| at + 1)
        .last();
    let used = used.unwrap_or(1).min(rows.into());
    let width = f64::from(columns) * CELL_SIZE.0 + 2.0 * MARGIN;
    let height = used as f64 * CELL_SIZE.1 + 2.0 * MARGIN;
    let font = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
    let mut svg = Svg::new(
        width.round(),
        height.round(),
        &[("font-family", font), ("font-size", "14")],
    );
    let paper = svg
        .begin_element("rect")
        .attribute("width", "100%")
        .attribute("height", "100%")
        .number_attribute("rx", 8.0);
    paper
        .attribute("fill", theme.background_color())
        .draw_empty();
    svg.begin_element("g")
        .attribute("fill", theme.text_color())
        .attribute("xml:space", "preserve")
        .open();
    for row in 0..used as u16 {
        draw_row(&mut svg, screen, row, theme);
    }
    let (row, column) = screen.cursor_position();
    if !screen.hide_cursor() {
        let (x, y) = compute_text_position(row, column);
        let cursor = svg
            .begin_element("rect")
            .number_attribute("x", x)
            .number_attribute("y", y - 13.0)
            .number_attribute("width", CELL_SIZE.0);
        cursor
            .number_attribute("height", 16.0)
            .number_attribute("opacity", 0.6)
            .draw_empty();
    }
    svg.finish()
}

/// Returns the coordinates of the text in a cell.
fn compute_text_position(row: u16, column: u16) -> (f64, f64) {
    (
        MARGIN + f64::from(column) * CELL_SIZE.0,
        MARGIN + f64::from(row) * CELL_SIZE.1 + 13.5,
    )
}

fn draw_row(svg: &mut Svg, screen: &vt100::Screen, row: u16, theme: Theme) {
    let columns = screen.size().1;
    let mut column = 0;
    while column < columns {
        let Some(first) = screen.cell(row, column) else {
            return;
        };
        let from = column;
        let style = Style::from_cell(first, theme);
        let mut text = String::new();
        while let Some(cell) = screen
            .cell(row, column)
            .filter(|cell| Style::from_cell(cell, theme) == style)
        {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() {
                    cell.contents()
                } else {
                    " "
                });
            }
            column += 1;
        }
        let blanks = text.len() - text.trim_start().len();
        let shown = text.trim();
        if shown.is_empty() {
            continue;
        }
        let (x, y) = compute_text_position(row, from + blanks as u16);
        let cells = (column - from) as usize - blanks - (text.trim_start().len() - shown.len());
        // The explicit length keeps characters in their cells with any font.
        let text = svg
            .begin_element("text")
            .number_attribute("x", x)
            .number_attribute("y", y)
            .number_attribute("textLength", cells as f64 * CELL_SIZE.0);
        // No-break spaces, because renderers collapse plain ones.
        style
            .apply_to(text.attribute("lengthAdjust", "spacingAndGlyphs"))
            .draw_text(&shown.replace(' ', "\u{a0}"));
    }
}
