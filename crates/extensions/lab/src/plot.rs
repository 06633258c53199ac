//! Draws a replay as SVG: for each policy a panel of columns with the tokens read, written and
//! fresh of every request, and below them a line per policy for the accumulated cost.
//!
//! The SVG has no scripts, fonts or external references, and equal outcomes give equal bytes. If
//! there are many requests, several share a column, which shows their mean.

use std::fmt::Write as _;

use haft_text::{Anchor, Svg, format_thousands};
use haft_types::Usage;

use crate::outcome::{PolicyOutcome, RequestOutcome};
use crate::tables::{format_money, format_percent};

const PLOT_WIDTH: f64 = 960.0;
const LEFT_MARGIN: f64 = 72.0;
const RIGHT_MARGIN: f64 = 216.0;
const TOP_MARGIN: f64 = 64.0;
const PANEL_HEIGHT: f64 = 96.0;
const PANEL_GAP: f64 = 40.0;
const LINE_CHART_HEIGHT: f64 = 220.0;
const BOTTOM_MARGIN: f64 = 64.0;
/// The maximum number of columns in a panel. More columns could not be told apart.
const MAX_COLUMNS: usize = 220;

/// Colors that users with color blindness can tell apart, on light and dark backgrounds.
const PALETTE: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195",
];

/// The style sheet of the plot, for pages that must not contain inline styles.
pub const PLOT_STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.faint { fill: #57606a }
.ground { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.read { fill: #56b4e9; fill-opacity: 0.55 } .written { fill: #e69f00 } .fresh { fill: #d55e00 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
text.c0 { fill: #0072b2 } text.c1 { fill: #d55e00 } text.c2 { fill: #009e73 } text.c3 { fill: #cc79a7 }
text.c4 { fill: #e69f00 } text.c5 { fill: #56b4e9 } text.c6 { fill: #7a5195 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .ground { fill: #0d1117 } .grid { stroke: #3d444d }
}";

/// The mean usage of the requests that share a column of the plot.
#[derive(Clone, Copy, Default)]
struct PlotColumn {
    read: f64,
    written: f64,
    fresh: f64,
}

impl PlotColumn {
    fn from_mean(usages: impl ExactSizeIterator<Item = Usage>) -> Self {
        let count = usages.len().max(1) as f64;
        let mut sum = Usage::default();
        usages.for_each(|usage| sum += usage);
        let each = |tokens: u64| tokens as f64 / count;
        Self {
            read: each(sum.cached_input),
            written: each(sum.cache_write),
            fresh: each(sum.input),
        }
    }

    fn total(self) -> f64 {
        self.read + self.written + self.fresh
    }
}

/// A function that translates a sentence of the lab into the user's language; titles and names of
/// policies stay unchanged.
pub type Wording<'a> = &'a dyn Fn(&str) -> String;

/// Draws the outcomes as SVG: for each policy, a panel with the token columns, and a line in a
/// common chart of costs.
pub fn draw_plot(title: &str, outcomes: &[PolicyOutcome], words: Wording<'_>) -> String {
    let longest = outcomes
        .iter()
        .map(|outcome| outcome.requests.len())
        .max()
        .unwrap_or(0)
        .max(1);
    let share = longest.div_ceil(MAX_COLUMNS);
    let columns: Vec<Vec<PlotColumn>> = outcomes
        .iter()
        .map(|outcome| {
            outcome
                .requests
                .chunks(share)
                .map(|some| PlotColumn::from_mean(some.iter().map(|one| one.usage)))
                .collect()
        })
        .collect();
    let peak = columns
        .iter()
        .flatten()
        .map(|column| column.total())
        .fold(1.0, f64::max);
    let height = TOP_MARGIN
        + outcomes.len() as f64 * (PANEL_HEIGHT + PANEL_GAP)
        + LINE_CHART_HEIGHT
        + BOTTOM_MARGIN;
    let mut svg = Svg::new(PLOT_WIDTH, height, &[("role", "img")]);
    svg.begin_element("title").draw_text(&format!(
        "{title}: {}",
        words("what each policy reads, writes and costs")
    ));
    svg.add_style(PLOT_STYLE);
    let ground = svg.begin_element("rect").attribute("class", "ground");
    ground
        .number_attribute("width", PLOT_WIDTH)
        .number_attribute("height", height)
        .number_attribute("rx", 6.0)
        .draw_empty();
    svg.add_label(
        "title",
        (LEFT_MARGIN, 28.0),
        Anchor::Start,
        &haft_text::truncate_to_width(title, 80),
    );
    draw_legend(&mut svg, share, words);
    let slot = (PLOT_WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / longest.div_ceil(share) as f64;
    for (index, (outcome, columns)) in outcomes.iter().zip(&columns).enumerate() {
        let floor =
            TOP_MARGIN + index as f64 * (PANEL_HEIGHT + PANEL_GAP) + PANEL_GAP / 2.0 + PANEL_HEIGHT;
        draw_panel(
            &mut svg,
            outcome,
            columns,
            &PlotPanel {
                floor,
                slot,
                peak,
                words,
            },
        );
    }
    let floor = height - BOTTOM_MARGIN;
    draw_line_chart(&mut svg, outcomes, floor, longest, words);
    svg.finish()
}

fn draw_legend(svg: &mut Svg, share: usize, words: Wording<'_>) {
    let mut x = LEFT_MARGIN;
    for (class, meaning) in [
        ("read", "read from the cache"),
        ("written", "written to it"),
        ("fresh", "neither"),
    ] {
        svg.add_rect(class, (x, 40.0), (12.0, 12.0));
        let meaning = words(meaning);
        svg.add_label("", (x + 18.0, 51.0), Anchor::Start, &meaning);
        x += 40.0 + 6.6 * haft_text::display_width(&meaning) as f64;
    }
    if share > 1 {
        svg.add_label(
            "faint",
            (x, 51.0),
            Anchor::Start,
            &words(&format!("a column is the mean of {share} requests")),
        );
    }
}

/// The position and scale of the panel that is being drawn.
struct PlotPanel<'a> {
    floor: f64,
    slot: f64,
    peak: f64,
    words: Wording<'a>,
}

fn draw_panel(
    svg: &mut Svg,
    outcome: &PolicyOutcome,
    columns: &[PlotColumn],
    frame: &PlotPanel<'_>,
) {
    let PlotPanel {
        floor,
        slot,
        peak,
        words,
    } = *frame;
    let usage = outcome.total_usage();
    let cost = outcome
        .total_cost()
        .map_or_else(String::new, |cost| format!(", {}", format_money(cost)));
    let sums = format!(
        "{} tokens, {} read{cost}",
        format_thousands(usage.all_input()),
        format_percent(usage.cached_share())
    );
    svg.begin_element("text")
        .number_attribute("x", LEFT_MARGIN)
        .number_attribute("y", floor - PANEL_HEIGHT - 6.0)
        .open();
    svg.begin_element("tspan")
        .attribute("class", "name")
        .draw_text(&outcome.name);
    svg.begin_element("tspan")
        .attribute("class", "faint")
        .number_attribute("dx", 8.0)
        .draw_text(&words(&sums));
    svg.close_element();
    for (share, label) in [
        (0.0, "0".to_owned()),
        (1.0, format_thousands(peak.round() as u64)),
    ] {
        draw_grid_line(svg, floor - PANEL_HEIGHT * share, &label);
    }
    let width = slot * 0.86;
    // One path per class keeps the file small even for a thousand requests.
    let mut paths = [String::new(), String::new(), String::new()];
    for (index, column) in columns.iter().enumerate() {
        let x = LEFT_MARGIN + slot * index as f64;
        let mut y = floor;
        for (path, tokens) in paths
            .iter_mut()
            .zip([column.read, column.written, column.fresh])
        {
            let height = PANEL_HEIGHT * tokens / peak;
            if height >= 0.05 {
                y -= height;
                // Writing to a String cannot fail.
                let _ = write!(path, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
            }
        }
    }
    for (class, path) in ["read", "written", "fresh"].into_iter().zip(paths) {
        if !path.is_empty() {
            svg.begin_element("path")
                .attribute("class", class)
                .attribute("d", &path)
                .draw_empty();
        }
    }
}

/// Draws a horizontal line with a label to its left.
fn draw_grid_line(svg: &mut Svg, y: f64, label: &str) {
    svg.add_line("grid", (LEFT_MARGIN, y), (PLOT_WIDTH - RIGHT_MARGIN, y));
    svg.add_label("faint", (LEFT_MARGIN - 8.0, y + 4.0), Anchor::End, label);
}

/// Draws the accumulated cost of each policy, or its accumulated unread tokens if no policy has a
/// cost.
fn draw_line_chart(
    svg: &mut Svg,
    outcomes: &[PolicyOutcome],
    floor: f64,
    longest: usize,
    words: Wording<'_>,
) {
    let priced = outcomes
        .iter()
        .any(|outcome| outcome.total_cost().is_some());
    let sums: Vec<Vec<f64>> = outcomes
        .iter()
        .map(|outcome| running_sums(outcome, priced))
        .collect();
    let top = sums
        .iter()
        .filter_map(|sum| sum.last())
        .fold(f64::MIN_POSITIVE, |top, last| top.max(*last));
    let drawn = if priced {
        "cost of the input so far"
    } else {
        "tokens so far that were not read from the cache"
    };
    svg.add_label(
        "name",
        (LEFT_MARGIN, floor - LINE_CHART_HEIGHT + 22.0),
        Anchor::Start,
        &words(drawn),
    );
    let height = LINE_CHART_HEIGHT - 40.0;
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let amount = if priced {
            format_money(top * share)
        } else {
            format_thousands((top * share).round() as u64)
        };
        draw_grid_line(svg, floor - height * share, &amount);
    }
    let scale = (PLOT_WIDTH - LEFT_MARGIN - RIGHT_MARGIN) / longest as f64;
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (index, sum) in sums.iter().enumerate() {
        let mut points = format!("{LEFT_MARGIN},{floor:.1}");
        let every = sum.len().div_ceil(MAX_COLUMNS).max(1);
        for (number, value) in sum.iter().enumerate() {
            if (number + 1) % every == 0 || number + 1 == sum.len() {
                let x = LEFT_MARGIN + scale * (number + 1) as f64;
                let y = floor - height * value / top;
                let _ = write!(points, " {x:.1},{y:.1}");
            }
        }
        let line = svg
            .begin_element("polyline")
            .attribute("class", "line")
            .attribute("stroke", policy_color(index));
        let line = if index < PALETTE.len() {
            line
        } else {
            line.attribute("stroke-dasharray", "5 4")
        };
        line.attribute("points", &points).draw_empty();
        ends.push((
            floor - height * sum.last().copied().unwrap_or(0.0) / top,
            index,
        ));
    }
    // The policy names are beside the ends of their lines, pushed apart if they would overlap.
    ends.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut below = f64::INFINITY;
    for (end, index) in ends {
        let y = end.min(below - 15.0);
        below = y;
        let name = svg
            .begin_element("text")
            .number_attribute("x", PLOT_WIDTH - RIGHT_MARGIN + 8.0)
            .number_attribute("y", y + 4.0);
        let name = name.attribute("class", &format!("c{}", index % PALETTE.len()));
        name.draw_text(&haft_text::truncate_to_width(&outcomes[index].name, 34));
    }
    svg.add_label(
        "faint",
        (LEFT_MARGIN, floor + 20.0),
        Anchor::Start,
        &words("request 1"),
    );
    svg.add_label(
        "faint",
        (PLOT_WIDTH - RIGHT_MARGIN, floor + 20.0),
        Anchor::End,
        &longest.to_string(),
    );
}

/// Returns the color for the policy with this index. The colors repeat if there are more policies
/// than colors.
fn policy_color(index: usize) -> &'static str {
    PALETTE[index % PALETTE.len()]
}

fn running_sums(outcome: &PolicyOutcome, priced: bool) -> Vec<f64> {
    let mut sum = 0.0;
    let value = |one: &RequestOutcome| {
        let unread = (one.usage.input + one.usage.cache_write) as f64;
        sum += if priced {
            one.cost.unwrap_or(0.0)
        } else {
            unread
        };
        sum
    };
    outcome.requests.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, requests: usize) -> PolicyOutcome {
        let mut outcome = PolicyOutcome::new(name);
        let one = |number: u64| RequestOutcome {
            usage: Usage {
                input: 10,
                cached_input: 100 * number,
                cache_write: 50,
                ..Usage::default()
            },
            cost: Some(0.01),
        };
        outcome.requests.extend((0..requests as u64).map(one));
        outcome
    }

    #[test]
    fn draw_plot_has_a_panel_and_a_line_per_policy() {
        let svg = draw_plot(
            "<talk> & more",
            &[outcome("none", 3), outcome("tail", 3)],
            &str::to_owned,
        );
        assert!(svg.contains("&lt;talk&gt; &amp; more") && !svg.contains("<talk>"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(!svg.contains("style="), "a page may forbid it");
        assert_eq!(svg.matches("class=\"written\" d=").count(), 2);
        assert_eq!(
            svg,
            draw_plot(
                "<talk> & more",
                &[outcome("none", 3), outcome("tail", 3)],
                &str::to_owned
            )
        );
    }

    #[test]
    fn draw_plot_merges_many_requests_into_columns() {
        let svg = draw_plot("long", &[outcome("none", 1_000)], &str::to_owned);
        assert!(svg.contains("mean of 5 requests"));
        assert!(svg.len() < 60_000, "{}", svg.len());
        draw_plot("nothing", &[], &str::to_owned);
        draw_plot("none of them", &[outcome("none", 0)], &str::to_owned);
    }
}
