//! A screen as SVG.

use std::fmt::Write as _;

/// How wide and high a cell is.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;

/// Colours around and behind the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Dark,
    Light,
}

impl Theme {
    fn paper(self) -> &'static str {
        match self {
            Self::Dark => "#16181d",
            Self::Light => "#fbfbf9",
        }
    }

    fn ink(self) -> &'static str {
        match self {
            Self::Dark => "#d8dbe2",
            Self::Light => "#24272d",
        }
    }

    /// The first eight colours of a terminal, and the bright ones.
    fn colour(self, number: u8) -> &'static str {
        const DARK: [&str; 8] =
            ["#3a3f4b", "#ef6b73", "#8fce7b", "#e5c07b", "#6cb6ff", "#d08be8", "#56c8d8", "#d8dbe2"];
        const LIGHT: [&str; 8] =
            ["#24272d", "#c4262e", "#2d7d32", "#8a6100", "#1f5fc4", "#8c3fb0", "#0b7285", "#5c626d"];
        let colours = match self {
            Self::Dark => DARK,
            Self::Light => LIGHT,
        };
        colours[usize::from(number % 8)]
    }

    fn of(self, colour: vt100::Color) -> Option<String> {
        match colour {
            vt100::Color::Default => None,
            vt100::Color::Idx(number) => Some(self.colour(number).to_owned()),
            vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

/// How a run of cells looks.
fn style(cell: &vt100::Cell, theme: Theme) -> String {
    let mut style = String::new();
    if let Some(colour) = theme.of(cell.fgcolor()) {
        let _ = write!(style, " fill=\"{colour}\"");
    }
    for (is, what) in [
        (cell.bold(), " font-weight=\"700\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
        (cell.dim(), " opacity=\"0.62\""),
    ] {
        if is {
            style.push_str(what);
        }
    }
    style
}

/// Draws the screen, without the empty rows below what it shows.
pub(super) fn draw(screen: &vt100::Screen, theme: Theme) -> String {
    let (rows, columns) = screen.size();
    let used =
        screen.rows(0, columns).enumerate().filter(|(_, row)| !row.trim().is_empty()).map(|(at, _)| at + 1).last();
    let used = used.unwrap_or(1).min(rows.into());
    let (width, height) = (f64::from(columns) * CELL.0 + 2.0 * MARGIN, used as f64 * CELL.1 + 2.0 * MARGIN);
    // Writing to a String cannot fail.
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">"
    );
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>", theme.paper());
    let _ = writeln!(svg, "<g fill=\"{}\" xml:space=\"preserve\">", theme.ink());
    for row in 0..used as u16 {
        draw_row(&mut svg, screen, row, theme);
    }
    let (row, column) = screen.cursor_position();
    if !screen.hide_cursor() {
        let (x, y) = place(row, column);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\" opacity=\"0.6\"/>",
            y - 13.0,
            CELL.0
        );
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Where the letters of a cell stand.
fn place(row: u16, column: u16) -> (f64, f64) {
    (MARGIN + f64::from(column) * CELL.0, MARGIN + f64::from(row) * CELL.1 + 13.5)
}

fn draw_row(svg: &mut String, screen: &vt100::Screen, row: u16, theme: Theme) {
    let columns = screen.size().1;
    let mut column = 0;
    while column < columns {
        let Some(first) = screen.cell(row, column) else { return };
        let (from, style_of_run) = (column, style(first, theme));
        let mut text = String::new();
        while let Some(cell) = screen.cell(row, column).filter(|cell| style(cell, theme) == style_of_run) {
            if !cell.is_wide_continuation() {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
            }
            column += 1;
        }
        let blanks = text.len() - text.trim_start().len();
        let shown = text.trim();
        if shown.is_empty() {
            continue;
        }
        let (x, y) = place(row, from + blanks as u16);
        let cells = (column - from) as usize - blanks - (text.trim_start().len() - shown.len());
        // Whatever the font, letters stand in their cells.
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\"{style_of_run}>{}</text>",
            cells as f64 * CELL.0,
            escaped(shown)
        );
    }
}

/// Blanks are no-break ones: renderers run others together.
fn escaped(text: &str) -> String {
    text.replace(' ', "\u{a0}").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
