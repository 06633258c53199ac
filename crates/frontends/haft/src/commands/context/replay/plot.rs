//! A replay as a picture: for each policy a panel of columns, what was read, written and fresh of every request, and below them
//! what all of it cost so far, a line a policy.
//!
//! Plain SVG without scripts, fonts or anything from elsewhere; the same outcomes give the same bytes. Many requests share a
//! column, which then shows their mean.

use std::fmt::Write as _;

use haft_text::grouped;
use haft_types::Usage;

use super::super::picture::escape;
use super::super::words::{money, percent};
use super::Outcome;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 216.0;
const TOP: f64 = 64.0;
const PANEL: f64 = 96.0;
const GAP: f64 = 40.0;
const LINES: f64 = 220.0;
const BOTTOM: f64 = 64.0;
/// Columns beyond this many could not be told apart.
const MOST_COLUMNS: usize = 220;

/// Colours that people who see few colours can tell apart, on light and on dark.
const PALETTE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195"];

const STYLE: &str = "\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.name { font-size: 13px; font-weight: 600 }
.faint { fill: #57606a }
.ground { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.read { fill: #56b4e9; fill-opacity: 0.55 } .written { fill: #e69f00 } .fresh { fill: #d55e00 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .faint { fill: #9198a1 } .ground { fill: #0d1117 } .grid { stroke: #3d444d }
}";

/// The mean of some requests.
#[derive(Clone, Copy, Default)]
struct Column {
    read: f64,
    written: f64,
    fresh: f64,
}

impl Column {
    fn mean(usages: impl ExactSizeIterator<Item = Usage>) -> Self {
        let count = usages.len().max(1) as f64;
        let mut sum = Usage::default();
        usages.for_each(|usage| sum += usage);
        let each = |tokens: u64| tokens as f64 / count;
        Self { read: each(sum.cached_input), written: each(sum.cache_write), fresh: each(sum.input) }
    }

    fn total(self) -> f64 {
        self.read + self.written + self.fresh
    }
}

/// Draws the outcomes.
pub(super) fn draw(title: &str, outcomes: &[Outcome]) -> String {
    let longest = outcomes.iter().map(|outcome| outcome.requests.len()).max().unwrap_or(0).max(1);
    let share = longest.div_ceil(MOST_COLUMNS);
    let columns: Vec<Vec<Column>> = outcomes
        .iter()
        .map(|outcome| {
            outcome.requests.chunks(share).map(|some| Column::mean(some.iter().map(|one| one.usage))).collect()
        })
        .collect();
    let peak = columns.iter().flatten().map(|column| column.total()).fold(1.0, f64::max);
    let height = TOP + outcomes.len() as f64 * (PANEL + GAP) + LINES + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{name}: what each policy reads, writes and costs</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n",
        name = escape(title),
    );
    let shown = haft_text::truncate_to_width(title, 80);
    put(&mut svg, format_args!("<text class=\"title\" x=\"{LEFT}\" y=\"28\">{}</text>\n", escape(&shown)));
    legend(&mut svg, share);
    let slot = (WIDTH - LEFT - RIGHT) / longest.div_ceil(share) as f64;
    for (index, (outcome, columns)) in outcomes.iter().zip(&columns).enumerate() {
        let floor = TOP + index as f64 * (PANEL + GAP) + GAP / 2.0 + PANEL;
        panel(&mut svg, outcome, columns, &Frame { floor, slot, peak });
    }
    let floor = height - BOTTOM;
    lines(&mut svg, outcomes, floor, longest);
    svg.push_str("</svg>\n");
    svg
}

fn legend(svg: &mut String, share: usize) {
    let mut x = LEFT;
    for (class, words) in [("read", "read from the cache"), ("written", "written to it"), ("fresh", "neither")] {
        put(svg, format_args!("<rect class=\"{class}\" x=\"{x}\" y=\"40\" width=\"12\" height=\"12\"/>\n"));
        put(svg, format_args!("<text x=\"{}\" y=\"51\">{words}</text>\n", x + 18.0));
        x += 40.0 + 6.6 * words.len() as f64;
    }
    if share > 1 {
        put(
            svg,
            format_args!("<text class=\"faint\" x=\"{x}\" y=\"51\">a column is the mean of {share} requests</text>\n"),
        );
    }
}

/// Where a panel stands and how it is scaled.
struct Frame {
    floor: f64,
    slot: f64,
    peak: f64,
}

fn panel(svg: &mut String, outcome: &Outcome, columns: &[Column], frame: &Frame) {
    let Frame { floor, slot, peak } = *frame;
    let usage = outcome.usage();
    let cost = outcome.cost().map_or_else(String::new, |cost| format!(", {}", money(cost)));
    let words = format!("{} tokens, {} read{cost}", grouped(usage.all_input()), percent(usage.cached_share()));
    let y = floor - PANEL - 6.0;
    let name = escape(&outcome.name);
    put(
        svg,
        format_args!(
            "<text x=\"{LEFT}\" y=\"{y:.1}\"><tspan class=\"name\">{name}</tspan> <tspan class=\"faint\" dx=\"8\">{words}</tspan></text>\n"
        ),
    );
    for (share, label) in [(0.0, "0".to_owned()), (1.0, grouped(peak.round() as u64))] {
        let (y, end, at) = (floor - PANEL * share, WIDTH - RIGHT, LEFT - 8.0);
        put(svg, format_args!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"));
        put(
            svg,
            format_args!("<text class=\"faint\" x=\"{at}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n", y + 4.0),
        );
    }
    let width = slot * 0.86;
    // One path a class: a picture of a thousand requests stays small.
    let mut paths = [String::new(), String::new(), String::new()];
    for (index, column) in columns.iter().enumerate() {
        let x = LEFT + slot * index as f64;
        let mut y = floor;
        for (path, tokens) in paths.iter_mut().zip([column.read, column.written, column.fresh]) {
            let height = PANEL * tokens / peak;
            if height >= 0.05 {
                y -= height;
                put(path, format_args!("M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z"));
            }
        }
    }
    for (class, path) in ["read", "written", "fresh"].into_iter().zip(paths) {
        if !path.is_empty() {
            put(svg, format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
        }
    }
}

/// What was paid so far, or what was not read where nothing is known to cost anything.
fn lines(svg: &mut String, outcomes: &[Outcome], floor: f64, longest: usize) {
    let priced = outcomes.iter().any(|outcome| outcome.cost().is_some());
    let sums: Vec<Vec<f64>> = outcomes.iter().map(|outcome| running(outcome, priced)).collect();
    let top = sums.iter().filter_map(|sum| sum.last()).fold(f64::MIN_POSITIVE, |top, last| top.max(*last));
    let told = |value: f64| if priced { money(value) } else { grouped(value.round() as u64) };
    let words = if priced { "cost of the input so far" } else { "tokens so far that were not read from the cache" };
    put(svg, format_args!("<text class=\"name\" x=\"{LEFT}\" y=\"{:.1}\">{words}</text>\n", floor - LINES + 22.0));
    let height = LINES - 40.0;
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let (y, end, at) = (floor - height * share, WIDTH - RIGHT, LEFT - 8.0);
        put(svg, format_args!("<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"));
        let (label, y) = (told(top * share), y + 4.0);
        put(svg, format_args!("<text class=\"faint\" x=\"{at}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>\n"));
    }
    let scale = (WIDTH - LEFT - RIGHT) / longest as f64;
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (index, sum) in sums.iter().enumerate() {
        let colour = PALETTE[index % PALETTE.len()];
        let dash = if index < PALETTE.len() { "" } else { " stroke-dasharray=\"5 4\"" };
        let mut points = format!("{LEFT},{floor:.1}");
        let every = sum.len().div_ceil(MOST_COLUMNS).max(1);
        for (number, value) in sum.iter().enumerate() {
            if (number + 1) % every == 0 || number + 1 == sum.len() {
                let (x, y) = (LEFT + scale * (number + 1) as f64, floor - height * value / top);
                put(&mut points, format_args!(" {x:.1},{y:.1}"));
            }
        }
        put(svg, format_args!("<polyline class=\"line\" stroke=\"{colour}\"{dash} points=\"{points}\"/>\n"));
        ends.push((floor - height * sum.last().copied().unwrap_or(0.0) / top, index));
    }
    // Names stand beside the ends of their lines, pushed apart where they would overlap.
    ends.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut below = f64::INFINITY;
    for (end, index) in ends {
        let y = end.min(below - 15.0);
        below = y;
        let (x, colour) = (WIDTH - RIGHT + 8.0, PALETTE[index % PALETTE.len()]);
        let name = haft_text::truncate_to_width(&outcomes[index].name, 34);
        let name = escape(&name);
        put(svg, format_args!("<text x=\"{x}\" y=\"{:.1}\" style=\"fill:{colour}\">{name}</text>\n", y + 4.0));
    }
    let (last, y) = (WIDTH - RIGHT, floor + 20.0);
    put(svg, format_args!("<text class=\"faint\" x=\"{LEFT}\" y=\"{y:.1}\">request 1</text>\n"));
    put(svg, format_args!("<text class=\"faint\" x=\"{last}\" y=\"{y:.1}\" text-anchor=\"end\">{longest}</text>\n"));
}

fn running(outcome: &Outcome, priced: bool) -> Vec<f64> {
    let mut sum = 0.0;
    let value = |one: &super::One| {
        let unread = (one.usage.input + one.usage.cache_write) as f64;
        sum += if priced { one.cost.unwrap_or(0.0) } else { unread };
        sum
    };
    outcome.requests.iter().map(value).collect()
}

fn put(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(piece);
}

#[cfg(test)]
mod tests {
    use super::super::One;
    use super::*;

    fn outcome(name: &str, requests: usize) -> Outcome {
        let mut outcome = Outcome::new(name);
        let one = |number: u64| One {
            usage: Usage { input: 10, cached_input: 100 * number, cache_write: 50, ..Usage::default() },
            cost: Some(0.01),
        };
        outcome.requests.extend((0..requests as u64).map(one));
        outcome
    }

    #[test]
    fn every_policy_has_a_panel_and_a_line() {
        let svg = draw("<talk> & more", &[outcome("none", 3), outcome("tail", 3)]);
        assert!(svg.contains("&lt;talk&gt; &amp; more") && !svg.contains("<talk>"));
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("class=\"written\" d=").count(), 2);
        assert_eq!(svg, draw("<talk> & more", &[outcome("none", 3), outcome("tail", 3)]));
    }

    #[test]
    fn many_requests_share_columns() {
        let svg = draw("long", &[outcome("none", 1_000)]);
        assert!(svg.contains("mean of 5 requests"));
        assert!(svg.len() < 60_000, "{}", svg.len());
        draw("nothing", &[]);
        draw("none of them", &[outcome("none", 0)]);
    }
}
