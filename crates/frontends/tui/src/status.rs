//! Draws the status line: model, mode, sandbox, fill of the context window, cache hits, and cost.
//!
//! Invariant: the status line is one row of at most `columns` columns, and shows only known values:
//! no cache share before a request, no sandbox before a session, a `+` if a price is missing.

use haft_text::{format_dollars, format_thousands};
use haft_types::{BudgetLayer, Cost, Layer, PermissionMode, SandboxLayer, Usage};

use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::link::{CacheView, ContextParts, ConversationTotals};
use crate::wrap::wrap_line;

/// The width of the bar that shows the context window, in columns.
const BAR_COLUMNS: u64 = 12;

/// The values in the status line, and the totals for `/cost` and `/context`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StatusLine {
    pub(crate) model: String,
    pub(crate) mode: PermissionMode,
    /// The name of the current Vim mode. `None` without Vim bindings.
    pub(crate) editing: Option<&'static str>,
    /// The layer of the command sandbox. `None` until the session reports it.
    pub(crate) sandbox: Option<SandboxLayer>,
    pub(crate) layers: Vec<BudgetLayer>,
    pub(crate) tokens: u64,
    pub(crate) window: u64,
    /// The usage of the last request.
    pub(crate) usage: Option<Usage>,
    /// The cost of all requests since haft was started, and of the earlier requests of a
    /// conversation that was resumed. `None` before the first request with a price.
    pub(crate) spent: Option<f64>,
    pub(crate) unpriced: bool,
    pub(crate) total: Usage,
    pub(crate) requests: u32,
    /// A description of the last request that lost the provider's cache because its prefix changed,
    /// for `/context`.
    pub(crate) prefix_break: Option<String>,
    /// The provider's cache after the last request. `None` while a request is being sent, and if the
    /// lifetime of its entries is unknown.
    pub(crate) cache: Option<CacheView>,
}

impl StatusLine {
    /// Adds the usage and cost of a request to the totals.
    pub(crate) fn add_usage(&mut self, usage: Usage, cost: Option<Cost>) {
        self.requests += 1;
        self.total += usage;
        match cost {
            Some(cost) => *self.spent.get_or_insert(0.0) += cost.total,
            None => self.unpriced = true,
        }
    }

    /// Sets the size and the cost of a conversation that was resumed.
    pub(crate) fn set_totals(&mut self, totals: ConversationTotals) {
        let ConversationTotals {
            layers,
            tokens,
            window,
            requests,
            total,
            last,
            spent,
            unpriced,
        } = totals;
        (self.layers, self.tokens, self.window) = (layers, tokens, window);
        (self.requests, self.total, self.usage) = (requests, total, last);
        (self.spent, self.unpriced) = (spent, unpriced);
    }

    /// Records that the prefix of a request has changed, so that `tokens` tokens could not be read
    /// from the cache.
    pub(crate) fn set_prefix_break(&mut self, message: &str, tokens: u64) {
        let message = haft_messages::translate_error(message);
        let tokens = format_thousands(tokens);
        self.prefix_break = Some(text!("app-prefix-break", message, tokens));
    }

    /// Resets the values of the last request, because another conversation was opened.
    pub(crate) fn forget_conversation(&mut self) {
        self.tokens = 0;
        self.window = 0;
        self.usage = None;
        self.prefix_break = None;
        self.cache = None;
        self.layers.clear();
    }

    /// Draws the status line. If there is too little room, less important parts are omitted first.
    pub(crate) fn draw_line(&self, columns: usize) -> StyledLine {
        let mut parts: Vec<(u8, StyledLine)> = vec![
            (0, self.draw_mode()),
            (2, StyledLine::new(&self.model, TextStyle::Dim)),
        ];
        if let Some(editing) = self.editing {
            parts.insert(0, (1, StyledLine::new(editing, TextStyle::Strong)));
        }
        if self.window > 0 {
            parts.push((1, self.draw_window()));
        }
        match self.sandbox {
            Some(SandboxLayer::None) => parts.push((
                2,
                StyledLine::new(text!("app-no-sandbox"), TextStyle::Warning),
            )),
            Some(layer) => parts.push((
                4,
                StyledLine::new(text!("app-sandbox", layer), TextStyle::Dim),
            )),
            None => {}
        }
        if let Some(usage) = self.usage.filter(|usage| usage.all_input() > 0) {
            parts.push((
                3,
                StyledLine::new(
                    text!(
                        "app-cache",
                        percent = format_args!("{:.0}", usage.cached_share() * 100.0)
                    ),
                    TextStyle::Dim,
                ),
            ));
        }
        if let Some(cache) = self.cache {
            parts.push((4, StyledLine::new(describe_cache(cache), TextStyle::Dim)));
        }
        if let Some(money) = self.format_cost() {
            parts.push((1, StyledLine::new(money, TextStyle::Dim)));
        }
        loop {
            let line = join_parts(&parts);
            let least = parts.iter().map(|part| part.0).max().unwrap_or(0);
            if line.width() <= columns || least == 0 {
                return line.cut(columns);
            }
            let at = parts.iter().rposition(|part| part.0 == least).unwrap_or(0);
            parts.remove(at);
        }
    }

    /// Returns the total cost, or `None` before the first request with a price.
    pub(crate) fn format_cost(&self) -> Option<String> {
        let spent = self.spent?;
        let more = if self.unpriced { "+" } else { "" };
        Some(if spent < 0.995 {
            format!("${spent:.3}{more}")
        } else {
            format!("${spent:.2}{more}")
        })
    }

    /// Draws the token budget of the last request, for `/context`.
    pub(crate) fn draw_budget(&self) -> Vec<StyledLine> {
        if self.window == 0 {
            return vec![StyledLine::new(text!("app-nothing-sent"), TextStyle::Dim)];
        }
        let mut lines = vec![self.draw_window().with_text(
            format!(
                "  {}",
                text!(
                    "app-tokens",
                    used = format_thousands(self.tokens),
                    window = format_thousands(self.window)
                )
            ),
            TextStyle::Plain,
        )];
        for BudgetLayer {
            layer,
            tokens,
            share,
        } in &self.layers
        {
            let (glyph, style) = layer_glyph(*layer);
            let cells = (share * 40.0).round() as usize;
            let name = layer_name(*layer);
            let blanks = " ".repeat(10_usize.saturating_sub(haft_text::display_width(name)));
            lines.push(
                StyledLine::new(format!("  {glyph} {name}{blanks}"), style)
                    .with_text(
                        format!("{:>10} {:>5.1}% ", format_thousands(*tokens), share * 100.0),
                        TextStyle::Plain,
                    )
                    .with_text(glyph.to_string().repeat(cells), style),
            );
        }
        lines
    }

    fn draw_mode(&self) -> StyledLine {
        let style = match self.mode {
            PermissionMode::Plan | PermissionMode::Ask => TextStyle::Accent,
            PermissionMode::AcceptEdits | PermissionMode::Auto => TextStyle::Warning,
            PermissionMode::Yolo => TextStyle::Bad,
        };
        StyledLine::new(self.mode.name(), style)
    }

    fn draw_window(&self) -> StyledLine {
        let percent = self.tokens as f64 * 100.0 / self.window as f64;
        let style = if percent >= 80.0 {
            TextStyle::Warning
        } else {
            TextStyle::Dim
        };
        let mut line = StyledLine::new("[", TextStyle::Dim);
        let mut drawn = 0;
        let mut sum = 0;
        for BudgetLayer { layer, tokens, .. } in &self.layers {
            sum += tokens;
            // A layer that isn't empty gets at least one cell while there is room.
            let until = (sum * BAR_COLUMNS / self.window)
                .max(if *tokens > 0 { drawn + 1 } else { drawn })
                .min(BAR_COLUMNS);
            let (glyph, style) = layer_glyph(*layer);
            line.push(StyledSpan::new(
                glyph.to_string().repeat((until - drawn) as usize),
                style,
            ));
            drawn = until;
        }
        line.push(StyledSpan::new(
            " ".repeat((BAR_COLUMNS - drawn) as usize),
            TextStyle::Plain,
        ));
        line.with_text("] ", TextStyle::Dim)
            .with_text(format!("{percent:.0}%"), style)
    }
}

/// Describes how long the cached prefix lives, and the price of writing it again.
fn describe_cache(cache: CacheView) -> String {
    let CacheView { minutes, rebuild } = cache;
    match (minutes, rebuild.map(format_dollars)) {
        (0, Some(price)) => text!("app-cache-expired", price),
        (0, None) => text!("app-cache-expired-unpriced").to_owned(),
        (minutes, Some(price)) => text!("app-cache-lives", minutes, price),
        (minutes, None) => text!("app-cache-lives-unpriced", minutes),
    }
}

/// Draws the parts of the next request with their sizes, for `/context`.
pub(crate) fn draw_context(context: &ContextParts, columns: usize) -> Vec<StyledLine> {
    let used: u64 = context.parts.iter().map(|part| part.tokens).sum();
    let window = context.window.max(1);
    let share = |tokens: u64| tokens as f64 / window as f64;
    let percent = format!("{:.0}%", share(used) * 100.0);
    let head = text!(
        "app-context-next",
        percent,
        used = format_thousands(used),
        window = format_thousands(context.window)
    );
    let free = window.saturating_sub(used + context.reserve);
    let unused = [
        (text!("app-context-free"), free),
        (text!("app-context-reserve"), context.reserve),
    ];
    let mut parts: Vec<_> = context
        .parts
        .iter()
        .map(|part| PartRow {
            glyph: layer_glyph(part.layer),
            name: &part.name,
            tokens: part.tokens,
            share: share(part.tokens),
            bar: (share(part.tokens) * 40.0).round() as usize,
            about: &part.about,
        })
        .collect();
    parts.extend(unused.map(|(name, tokens)| PartRow {
        glyph: ('·', TextStyle::Dim),
        name,
        tokens,
        share: share(tokens),
        bar: 0,
        about: "",
    }));
    let widest = |width: fn(&PartRow<'_>) -> usize| parts.iter().map(width).max().unwrap_or(0);
    let widths = PartWidths {
        name: widest(|part| haft_text::display_width(part.name)),
        digits: widest(|part| format_thousands(part.tokens).len()),
        bar: widest(|part| part.bar),
    };
    let mut rows = wrap_line(&StyledLine::new(head, TextStyle::Strong), columns);
    for part in parts {
        rows.extend(part.draw_rows(&widths, columns));
    }
    rows
}

/// A row of the output of `/context`: a part of the request, or the unused rest of the window.
struct PartRow<'a> {
    glyph: (char, TextStyle),
    name: &'a str,
    tokens: u64,
    share: f64,
    /// The length of the bar, in columns.
    bar: usize,
    about: &'a str,
}

/// The width of the widest entry in each column of `/context`, for alignment.
struct PartWidths {
    name: usize,
    digits: usize,
    bar: usize,
}

impl PartRow<'_> {
    fn draw_rows(&self, widths: &PartWidths, columns: usize) -> Vec<StyledLine> {
        let (glyph, style) = self.glyph;
        let blanks = " ".repeat(
            widths
                .name
                .saturating_sub(haft_text::display_width(self.name)),
        );
        let front =
            StyledLine::new(format!("  {glyph} "), style).with_text(self.name, TextStyle::Plain);
        let digits = widths.digits;
        let numbers = format!(
            "  {:>digits$} {:>5.1}%",
            format_thousands(self.tokens),
            self.share * 100.0
        );
        let row = front
            .clone()
            .with_text(format!("{blanks}{numbers}"), TextStyle::Plain);
        if row.width() > columns {
            // Without enough room, the numbers are drawn below the name.
            return [front, StyledLine::new(numbers, TextStyle::Plain)]
                .map(|row| row.cut(columns))
                .into();
        }
        let bar = glyph.to_string().repeat(self.bar);
        let with_bar = if bar.is_empty() {
            row.clone()
        } else {
            row.clone().with_text(format!(" {bar}"), style)
        };
        let bar_width = widths.bar;
        let with_description = row
            .clone()
            .with_text(format!(" {bar:<bar_width$} "), style)
            .with_text(self.about, TextStyle::Dim);
        [with_description, with_bar, row]
            .into_iter()
            .skip(usize::from(self.about.is_empty()))
            .find(|form| form.width() <= columns)
            .into_iter()
            .collect()
    }
}

/// Returns the glyph and style of a layer in bars. The glyphs differ, so layers are distinguishable
/// without color.
fn layer_glyph(layer: Layer) -> (char, TextStyle) {
    match layer {
        Layer::System => ('█', TextStyle::Accent),
        Layer::Documents => ('▓', TextStyle::Link),
        Layer::History => ('▒', TextStyle::Plain),
        Layer::Reminders => ('░', TextStyle::Warning),
        Layer::Current => ('▪', TextStyle::Good),
    }
}

fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::System => text!("app-layer-system"),
        Layer::Documents => text!("app-layer-documents"),
        Layer::History => text!("app-layer-history"),
        Layer::Reminders => text!("app-layer-reminders"),
        Layer::Current => text!("app-layer-current"),
    }
}

fn join_parts(parts: &[(u8, StyledLine)]) -> StyledLine {
    let mut line = StyledLine::empty();
    for (at, (_, part)) in parts.iter().enumerate() {
        if at > 0 {
            line.push(StyledSpan::new(" · ", TextStyle::Dim));
        }
        part.spans().iter().for_each(|span| line.push(span.clone()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> StatusLine {
        let layer = |layer, tokens: u64| BudgetLayer {
            layer,
            tokens,
            share: tokens as f64 / 100_000.0,
        };
        StatusLine {
            model: "mock/some-model-with-a-name".into(),
            sandbox: Some(SandboxLayer::Namespace),
            layers: vec![
                layer(Layer::System, 9_000),
                layer(Layer::History, 40_000),
                layer(Layer::Current, 10),
            ],
            tokens: 49_010,
            window: 100_000,
            usage: Some(Usage {
                input: 1_000,
                cached_input: 9_000,
                ..Usage::default()
            }),
            spent: Some(0.1234),
            ..StatusLine::default()
        }
    }

    #[test]
    fn status_line_at_four_widths() {
        let shown: Vec<_> = [200, 80, 40, 12]
            .map(|columns| status().draw_line(columns).plain())
            .into();
        insta::assert_snapshot!(shown.join("\n"));
        assert!(status().draw_line(5).width() <= 5);
    }

    #[test]
    fn describe_cache_names_the_time_left_and_the_price_after_it() {
        let described = [(4, Some(0.115)), (4, None), (0, Some(0.115)), (0, None)]
            .map(|(minutes, rebuild)| describe_cache(CacheView { minutes, rebuild }));
        assert_eq!(
            described,
            [
                "cached 4 min, then $0.1150",
                "cached 4 min",
                "cache expired: $0.1150",
                "cache expired"
            ]
        );
    }

    #[test]
    fn budget_rows_show_all_layers() {
        insta::assert_snapshot!(
            status()
                .draw_budget()
                .iter()
                .map(|line| line.plain() + "\n")
                .collect::<String>()
        );
    }

    #[test]
    fn format_cost_marks_missing_prices() {
        let mut status = StatusLine::default();
        assert_eq!(status.format_cost(), None);
        status.add_usage(
            Usage::default(),
            Some(Cost {
                total: 1.5,
                ..Cost::default()
            }),
        );
        assert_eq!(status.format_cost().as_deref(), Some("$1.50"));
        status.add_usage(Usage::default(), None);
        assert_eq!(status.format_cost().as_deref(), Some("$1.50+"));
    }
}
