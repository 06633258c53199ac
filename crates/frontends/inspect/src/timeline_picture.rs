//! Draws the requests of a conversation as an SVG chart: one column per request, its layers
//! stacked, and the unchanged prefix, which can be cached, in fainter colors.
//!
//! The file is plain SVG without scripts, fonts or external resources. It has its own background,
//! which is dark if the viewer prefers dark colors.

use std::fmt::Write as _;

use haft_store::RequestOutline;
use haft_text::{Anchor, Svg, format_percent, format_thousands};
use haft_types::{Layer, LlmMetadata, ModelSpec};

use crate::message_text::{Countable, format_count};
use crate::prefix_breaks::PrefixBreakReport;

/// A request as a column of the chart, or several consecutive requests.
#[derive(Clone)]
pub struct RequestColumn {
    /// The first and the last request of the column.
    first: u64,
    last: u64,
    /// The request that the column shows, and that its link opens.
    number: u64,
    tokens: u64,
    layers: [LayerTokens; Layer::ALL.len()],
    /// The share of the input that came from the cache, as counted by the provider.
    cached_share: Option<f64>,
    /// A description of the break of the prefix at this request; `None` if the prefix is unbroken.
    broken: Option<String>,
    window: u64,
}

/// The tokens of a layer, inside and outside the unchanged prefix.
#[derive(Clone, Copy, Default)]
struct LayerTokens {
    kept: u64,
    new: u64,
}

impl RequestColumn {
    /// Builds the columns of a log.
    pub fn from_log(
        outlines: &[RequestOutline],
        replies: &[Option<&LlmMetadata>],
        models: &[ModelSpec],
        breaks: &[PrefixBreakReport],
    ) -> Vec<Self> {
        let mut before: Option<&RequestOutline> = None;
        let mut columns = Vec::with_capacity(outlines.len());
        for ((outline, reply), model) in outlines.iter().zip(replies).zip(models) {
            columns.push(Self::from_outline(before, outline, *reply, model, breaks));
            before = Some(outline);
        }
        columns
    }

    /// Combines consecutive columns, so that at most `max_columns` remain. Of the requests of a
    /// column, the first that breaks the prefix is shown, or else the largest.
    pub fn combine(columns: &[Self], max_columns: usize) -> Vec<Self> {
        let size = columns.len().div_ceil(max_columns.max(1)).max(1);
        let combined = columns.chunks(size).filter_map(|group| {
            let broken = group.iter().find(|column| column.broken.is_some());
            let largest = group.iter().max_by_key(|column| column.tokens);
            Some(Self {
                first: group.first()?.first,
                last: group.last()?.last,
                ..broken.or(largest)?.clone()
            })
        });
        combined.collect()
    }

    /// Removes the line that marks the cached share.
    pub fn remove_cache_line(&mut self) {
        self.cached_share = None;
    }

    fn from_outline(
        before: Option<&RequestOutline>,
        outline: &RequestOutline,
        reply: Option<&LlmMetadata>,
        model: &ModelSpec,
        breaks: &[PrefixBreakReport],
    ) -> Self {
        let number = outline.summary.number;
        let same_front = before.is_some_and(|before| {
            before.tools == outline.tools && before.summary.model == outline.summary.model
        });
        let kept = before.filter(|_| same_front).map_or(0, |before| {
            before.segments.common_prefix_len(&outline.segments)
        });
        let before_change = outline.segments.layer_tokens(kept);
        let all = outline.segments.layer_tokens(outline.segments.len());
        let mut layers = [LayerTokens::default(); Layer::ALL.len()];
        for (layer, (kept, all)) in layers.iter_mut().zip(before_change.into_iter().zip(all)) {
            *layer = LayerTokens {
                kept,
                new: all - kept,
            };
        }
        // The tools, and the few tokens each API adds, count as part of the system layer.
        let rest = outline
            .summary
            .tokens
            .saturating_sub(layers.iter().map(|layer| layer.kept + layer.new).sum());
        let system = &mut layers[Layer::System as usize];
        *if kept > 0 {
            &mut system.kept
        } else {
            &mut system.new
        } += rest;
        Self {
            first: number,
            last: number,
            number,
            tokens: outline.summary.tokens,
            layers,
            cached_share: reply.map(|reply| reply.usage().cached_share()),
            broken: breaks
                .iter()
                .find(|one| one.request == number)
                .map(break_text),
            window: u64::from(model.context_window),
        }
    }
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 460.0;
const LEFT_MARGIN: f64 = 72.0;
const RIGHT_MARGIN: f64 = 24.0;
const TOP_MARGIN: f64 = 76.0;
const BOTTOM_MARGIN: f64 = 72.0;
/// The margins of a picture without heading and legend.
const PAGE_TOP_MARGIN: f64 = 24.0;
const PAGE_BOTTOM_MARGIN: f64 = 32.0;

/// The style sheet. Color-blind people can tell its colors apart, on light and on dark backgrounds.
pub const PICTURE_STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.faint { fill: #57606a; font-size: 12px }
.ground { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.system { fill: #0072b2 } .documents { fill: #7a5195 } .history { fill: #009e73 }
.reminders { fill: #e69f00 } .current { fill: #cc79a7 }
.kept { fill-opacity: 0.42 }
.cached { stroke: #24292f; stroke-width: 2 }
.break { fill: #cf222e }
.limit { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 6 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .ground { fill: #0d1117 } .grid { stroke: #3d444d }
.cached { stroke: #e6edf3 } .break { fill: #ff7b72 } .kept { fill-opacity: 0.5 } .limit { stroke: #db6d28 }
}";

/// The options of a drawing.
#[derive(Default)]
pub struct PictureOptions<'a> {
    /// The address of a request without its number. If set, each column is a link, and the picture
    /// has neither heading nor legend, which the page shows as text.
    pub links: Option<&'a str>,
    /// The token count at which clearing begins.
    pub zone: Option<u64>,
    /// If true, the chart grows with the number of columns, so that each is wide enough to click.
    pub zoomed: bool,
}

/// Draws the columns as an SVG document.
pub fn draw_picture(name: &str, columns: &[RequestColumn], frame: &PictureOptions<'_>) -> String {
    const ZOOMED_COLUMN_WIDTH: f64 = 14.0;
    let zoomed = LEFT_MARGIN + RIGHT_MARGIN + ZOOMED_COLUMN_WIDTH * columns.len() as f64;
    let width = if frame.zoomed {
        zoomed.max(WIDTH)
    } else {
        WIDTH
    };
    let role = if frame.links.is_some() {
        "group"
    } else {
        "img"
    };
    let class = if frame.zoomed { "zoomed" } else { "" };
    let (top, bottom) = match frame.links {
        Some(_) => (
            TOP_MARGIN - PAGE_TOP_MARGIN,
            BOTTOM_MARGIN - PAGE_BOTTOM_MARGIN,
        ),
        None => (0.0, 0.0),
    };
    let height = HEIGHT - top - bottom;
    let mut svg = Svg::new(width, height, &[("role", role), ("class", class)]);
    svg.begin_element("title")
        .draw_text(&text!("inspect-picture-title", name));
    svg.add_style(PICTURE_STYLE);
    let ground = svg.begin_element("rect").attribute("class", "ground");
    ground
        .number_attribute("width", width)
        .number_attribute("height", height)
        .number_attribute("rx", 6.0)
        .draw_empty();
    if top > 0.0 {
        svg.begin_element("g")
            .attribute("transform", &format!("translate(0 {})", -top))
            .open();
    }
    let peak = columns
        .iter()
        .map(|column| column.tokens)
        .max()
        .unwrap_or(0);
    if frame.links.is_none() {
        draw_heading(&mut svg, name, columns);
    }
    let limits = choose_limit_lines(columns, frame, peak);
    let scale = TokenScale::new(
        limits
            .iter()
            .map(|(_, tokens)| *tokens)
            .fold(peak, u64::max),
        width,
    );
    scale.draw_grid(&mut svg);
    let slot = (width - LEFT_MARGIN - RIGHT_MARGIN) / columns.len().max(1) as f64;
    let wide = (slot * 0.78).min(56.0);
    let every = columns
        .len()
        .div_ceil(if frame.zoomed {
            columns.len().div_ceil(5).max(1)
        } else {
            24
        })
        .max(1);
    for (index, column) in columns.iter().enumerate() {
        let x = LEFT_MARGIN + slot * index as f64 + (slot - wide) / 2.0;
        draw_column(&mut svg, column, (x, wide), &scale, frame.links);
        if index % every == 0 {
            let below = (x + wide / 2.0, HEIGHT - BOTTOM_MARGIN + 18.0);
            svg.add_label("faint", below, Anchor::Middle, &column.first.to_string());
        }
    }
    for (name, tokens) in limits {
        scale.draw_limit(&mut svg, name, tokens);
    }
    if frame.links.is_none() {
        draw_legend(&mut svg);
    }
    svg.finish()
}

/// Describes the columns in one line: requests, the largest one, and breaks.
pub fn summarize_columns(columns: &[RequestColumn]) -> String {
    let peak = columns.iter().map(|column| column.tokens).max();
    let broken = columns
        .iter()
        .filter(|column| column.broken.is_some())
        .count();
    let window = columns
        .last()
        .map(|column| column.window)
        .filter(|window| *window > 0);
    let peak = peak.unwrap_or(0);
    let share = window.map_or_else(String::new, |window| {
        text!(
            "inspect-picture-window",
            window = format_percent(peak as f64 / window as f64)
        )
    });
    text!(
        "inspect-picture-summary",
        requests = format_count(columns.len(), Countable::Request),
        peak = format_thousands(peak),
        share,
        breaks = format_count(broken, Countable::Break)
    )
}

/// Returns the names and values of the limits to draw as lines: the window and the safe zone. A
/// limit far above all columns is left out, because its line would flatten them.
fn choose_limit_lines(
    columns: &[RequestColumn],
    frame: &PictureOptions<'_>,
    peak: u64,
) -> Vec<(&'static str, u64)> {
    const MAX_PEAK_MULTIPLE: u64 = 4;
    let window = columns
        .last()
        .map(|column| column.window)
        .filter(|window| *window > 0);
    let window = window
        .filter(|_| frame.links.is_some())
        .map(|window| (text!("inspect-picture-window-line"), window));
    let zone = frame
        .zone
        .map(|zone| (text!("inspect-picture-zone-line"), zone));
    window
        .into_iter()
        .chain(zone)
        .filter(|(_, tokens)| *tokens <= MAX_PEAK_MULTIPLE * peak)
        .collect()
}

fn draw_heading(svg: &mut Svg, name: &str, columns: &[RequestColumn]) {
    const MAX_NAME_COLUMNS: usize = 90;
    svg.add_label(
        "title",
        (LEFT_MARGIN, 32.0),
        Anchor::Start,
        &haft_text::truncate_to_width(name, MAX_NAME_COLUMNS),
    );
    let line = summarize_columns(columns);
    svg.add_label("faint", (LEFT_MARGIN, 54.0), Anchor::Start, &line);
}

/// Maps token counts to heights in the chart.
struct TokenScale {
    top: u64,
    step: u64,
    width: f64,
}

impl TokenScale {
    /// Creates a scale with about five grid lines at round numbers.
    fn new(peak: u64, width: f64) -> Self {
        let rough = peak.div_ceil(5).max(1);
        let magnitude = 10_u64.pow(rough.ilog10());
        let step = [1, 2, 5, 10]
            .into_iter()
            .map(|factor| factor * magnitude)
            .find(|step| *step >= rough);
        let step = step.unwrap_or(10 * magnitude);
        Self {
            top: peak.div_ceil(step).max(1) * step,
            step,
            width,
        }
    }

    fn height(&self, tokens: u64) -> f64 {
        (HEIGHT - TOP_MARGIN - BOTTOM_MARGIN) * tokens as f64 / self.top as f64
    }

    fn draw_grid(&self, svg: &mut Svg) {
        for tokens in (0..=self.top).step_by(usize::try_from(self.step).unwrap_or(usize::MAX)) {
            let y = HEIGHT - BOTTOM_MARGIN - self.height(tokens);
            svg.add_line("grid", (LEFT_MARGIN, y), (self.width - RIGHT_MARGIN, y));
            svg.add_label(
                "faint",
                (LEFT_MARGIN - 10.0, y + 4.0),
                Anchor::End,
                &format_thousands(tokens),
            );
        }
    }

    /// Draws a labeled line for a limit.
    fn draw_limit(&self, svg: &mut Svg, name: &str, tokens: u64) {
        let y = HEIGHT - BOTTOM_MARGIN - self.height(tokens);
        svg.add_line("limit", (LEFT_MARGIN, y), (self.width - RIGHT_MARGIN, y));
        svg.add_label(
            "faint",
            (LEFT_MARGIN + 6.0, y - 5.0),
            Anchor::Start,
            &format!("{name}: {}", format_thousands(tokens)),
        );
    }
}

fn draw_column(
    svg: &mut Svg,
    column: &RequestColumn,
    (x, width): (f64, f64),
    scale: &TokenScale,
    links: Option<&str>,
) {
    let said = tooltip_text(column);
    match links {
        Some(to) => {
            let link = svg
                .begin_element("a")
                .attribute("href", &format!("{to}{}", column.number));
            link.attribute("aria-label", &said).open();
        }
        None => svg.begin_element("g").open(),
    }
    svg.begin_element("title").draw_text(&said);
    let mut y = HEIGHT - BOTTOM_MARGIN;
    for (layer, tokens) in Layer::ALL.into_iter().zip(column.layers) {
        for (class, tokens) in [(" kept", tokens.kept), ("", tokens.new)] {
            let height = scale.height(tokens);
            if height > 0.0 {
                y -= height;
                svg.add_rect(&format!("{layer}{class}"), (x, y), (width, height));
            }
        }
    }
    if let Some(share) = column.cached_share {
        let at = HEIGHT - BOTTOM_MARGIN - scale.height(column.tokens) * share;
        svg.add_line("cached", (x - 2.0, at), (x + width + 2.0, at));
    }
    if column.broken.is_some() {
        draw_marker(svg, x + width / 2.0, y - 5.0);
    }
    svg.close_element();
}

/// Draws a small triangle that points down at a column.
fn draw_marker(svg: &mut Svg, x: f64, y: f64) {
    svg.begin_element("path")
        .attribute("class", "break")
        .attribute("d", &format!("M{x:.1} {y:.1}l-5 -9h10z"))
        .draw_empty();
}

fn tooltip_text(column: &RequestColumn) -> String {
    let mut text = text!(
        "inspect-picture-request",
        number = column.number,
        tokens = format_thousands(column.tokens)
    );
    if column.first < column.last {
        text = text!(
            "inspect-picture-requests",
            first = column.first,
            last = column.last,
            shown = text
        );
    }
    for (layer, tokens) in Layer::ALL.into_iter().zip(column.layers) {
        if tokens.kept + tokens.new > 0 {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "\n{}",
                text!(
                    "inspect-picture-layer",
                    layer,
                    kept = format_thousands(tokens.kept),
                    new = format_thousands(tokens.new)
                )
            );
        }
    }
    if let Some(share) = column.cached_share {
        let _ = write!(
            text,
            "\n{}",
            text!("inspect-picture-cached", share = format_percent(share))
        );
    }
    if let Some(told) = &column.broken {
        let _ = write!(text, "\n{told}");
    }
    text
}

fn break_text(broken: &PrefixBreakReport) -> String {
    broken.cause.map_or_else(
        || text!("inspect-picture-no-cause").to_owned(),
        |cause| text!("inspect-picture-break", cause = crate::localize_text(cause)),
    )
}

fn draw_legend(svg: &mut Svg) {
    const BOX: (f64, f64) = (12.0, 12.0);
    let y = HEIGHT - 22.0;
    let mut x = LEFT_MARGIN;
    for layer in Layer::ALL {
        svg.add_rect(layer.name(), (x, y - 11.0), BOX);
        let name = crate::localize_text(layer);
        svg.add_label("", (x + 18.0, y), Anchor::Start, &name);
        x += 36.0 + 7.2 * haft_text::display_width(&name) as f64;
    }
    svg.add_rect("history kept", (x, y - 11.0), BOX);
    svg.add_label(
        "",
        (x + 18.0, y),
        Anchor::Start,
        text!("inspect-picture-legend-faint"),
    );
    x += 138.0;
    svg.add_line("cached", (x, y - 5.0), (x + 14.0, y - 5.0));
    svg.add_label(
        "",
        (x + 20.0, y),
        Anchor::Start,
        text!("inspect-picture-legend-cached"),
    );
    x += 166.0;
    draw_marker(svg, x + 5.0, y);
    svg.add_label(
        "",
        (x + 16.0, y),
        Anchor::Start,
        text!("inspect-picture-legend-break"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_scale_has_few_round_lines_and_fits_the_peak() {
        for peak in [0, 1, 7, 99, 1_234, 60_000, 199_999, 1_000_001] {
            let scale = TokenScale::new(peak, WIDTH);
            assert!(
                scale.top >= peak && scale.top / scale.step <= 6,
                "{peak}: {} by {}",
                scale.top,
                scale.step
            );
        }
    }

    #[test]
    fn draw_picture_escapes_names() {
        let svg = draw_picture("<script>&\"\u{1b}[31m", &[], &PictureOptions::default());
        assert!(
            svg.contains("&lt;script&gt;&amp;&quot;")
                && !svg.contains("<script>")
                && !svg.contains('\u{1b}')
        );
    }
}
