//! The last row: model, mode, sandbox, how full the window is, what came from the cache, and money.
//!
//! Invariant: it is one row of at most the columns asked for, and it shows nothing that was not told: no share before a request,
//! no sandbox before a session, a `+` where a price is missing.

use haft_text::grouped;
use haft_types::{BudgetLayer, Cost, Layer, PermissionMode, SandboxLayer, Usage};

use crate::line::{Line, Span, Tone};

/// Cells of the picture of the window.
const BAR: u64 = 12;

/// What the status line tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Status {
    pub(crate) model: String,
    pub(crate) mode: PermissionMode,
    /// The mode of vi's keys.
    pub(crate) editing: Option<&'static str>,
    /// None before a session has told it.
    pub(crate) sandbox: Option<SandboxLayer>,
    pub(crate) layers: Vec<BudgetLayer>,
    pub(crate) tokens: u64,
    pub(crate) window: u64,
    /// Of the last request.
    pub(crate) usage: Option<Usage>,
    /// Of everything since haft was started; none once something had no price.
    pub(crate) spent: Option<f64>,
    pub(crate) unpriced: bool,
    pub(crate) total: Usage,
    pub(crate) requests: u32,
}

impl Status {
    /// Takes in what a request used.
    pub(crate) fn add(&mut self, usage: Usage, cost: Option<Cost>) {
        self.requests += 1;
        self.total += usage;
        match cost {
            Some(cost) => *self.spent.get_or_insert(0.0) += cost.total,
            None => self.unpriced = true,
        }
    }

    /// Another conversation: what was told of the last request does not hold for it.
    pub(crate) fn forget_request(&mut self) {
        (self.tokens, self.window, self.usage) = (0, 0, None);
        self.layers.clear();
    }

    /// The row. What matters less is left out first.
    pub(crate) fn line(&self, columns: usize) -> Line {
        let mut parts: Vec<(u8, Line)> = vec![(0, self.mode_line()), (2, Line::of(&self.model, Tone::Dim))];
        if let Some(editing) = self.editing {
            parts.insert(0, (1, Line::of(editing, Tone::Strong)));
        }
        if self.window > 0 {
            parts.push((1, self.window_line()));
        }
        match self.sandbox {
            Some(SandboxLayer::None) => parts.push((2, Line::of("no sandbox", Tone::Warning))),
            Some(layer) => parts.push((4, Line::of(format!("sandbox {layer}"), Tone::Dim))),
            None => {}
        }
        if let Some(usage) = self.usage.filter(|usage| usage.all_input() > 0) {
            parts.push((3, Line::of(format!("cache {:.0}%", usage.cached_share() * 100.0), Tone::Dim)));
        }
        if let Some(money) = self.money() {
            parts.push((1, Line::of(money, Tone::Dim)));
        }
        loop {
            let line = joined(&parts);
            let least = parts.iter().map(|part| part.0).max().unwrap_or(0);
            if line.width() <= columns || least == 0 {
                return line.cut(columns);
            }
            let at = parts.iter().rposition(|part| part.0 == least).unwrap_or(0);
            parts.remove(at);
        }
    }

    /// What everything has cost so far; none before anything had a price.
    pub(crate) fn money(&self) -> Option<String> {
        let spent = self.spent?;
        let more = if self.unpriced { "+" } else { "" };
        Some(if spent < 0.995 { format!("${spent:.3}{more}") } else { format!("${spent:.2}{more}") })
    }

    /// The budget picture of the last request, for `/context`.
    pub(crate) fn picture(&self) -> Vec<Line> {
        if self.window == 0 {
            return vec![Line::of("nothing was sent yet", Tone::Dim)];
        }
        let mut lines = vec![
            self.window_line()
                .and(format!("  {} of {} tokens", grouped(self.tokens), grouped(self.window)), Tone::Plain),
        ];
        for BudgetLayer { layer, tokens, share } in &self.layers {
            let (glyph, tone) = glyph(*layer);
            let cells = (share * 40.0).round() as usize;
            lines.push(
                Line::of(format!("  {glyph} {:<10}", name(*layer)), tone)
                    .and(format!("{:>10} {:>5.1}% ", grouped(*tokens), share * 100.0), Tone::Plain)
                    .and(glyph.to_string().repeat(cells), tone),
            );
        }
        lines
    }

    fn mode_line(&self) -> Line {
        let tone = match self.mode {
            PermissionMode::Plan | PermissionMode::Ask => Tone::Accent,
            PermissionMode::AcceptEdits | PermissionMode::Auto => Tone::Warning,
            PermissionMode::Yolo => Tone::Bad,
        };
        Line::of(self.mode.name(), tone)
    }

    fn window_line(&self) -> Line {
        let percent = self.tokens as f64 * 100.0 / self.window as f64;
        let tone = if percent >= 80.0 { Tone::Warning } else { Tone::Dim };
        let mut line = Line::of("[", Tone::Dim);
        let (mut drawn, mut sum) = (0, 0);
        for BudgetLayer { layer, tokens, .. } in &self.layers {
            sum += tokens;
            // A layer that has anything shows, as long as there is room.
            let until = (sum * BAR / self.window).max(if *tokens > 0 { drawn + 1 } else { drawn }).min(BAR);
            let (glyph, tone) = glyph(*layer);
            line.push(Span::new(glyph.to_string().repeat((until - drawn) as usize), tone));
            drawn = until;
        }
        line.push(Span::new(" ".repeat((BAR - drawn) as usize), Tone::Plain));
        line.and("] ", Tone::Dim).and(format!("{percent:.0}%"), tone)
    }
}

/// How a layer looks in a bar: told apart without colour.
fn glyph(layer: Layer) -> (char, Tone) {
    match layer {
        Layer::System => ('█', Tone::Accent),
        Layer::Documents => ('▓', Tone::Link),
        Layer::History => ('▒', Tone::Plain),
        Layer::Reminders => ('░', Tone::Warning),
        Layer::Current => ('▪', Tone::Good),
    }
}

fn name(layer: Layer) -> &'static str {
    match layer {
        Layer::System => "system",
        Layer::Documents => "documents",
        Layer::History => "history",
        Layer::Reminders => "reminders",
        Layer::Current => "current",
    }
}

fn joined(parts: &[(u8, Line)]) -> Line {
    let mut line = Line::empty();
    for (at, (_, part)) in parts.iter().enumerate() {
        if at > 0 {
            line.push(Span::new(" · ", Tone::Dim));
        }
        part.spans().iter().for_each(|span| line.push(span.clone()));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        let layer = |layer, tokens: u64| BudgetLayer { layer, tokens, share: tokens as f64 / 100_000.0 };
        Status {
            model: "mock/some-model-with-a-name".into(),
            sandbox: Some(SandboxLayer::Namespace),
            layers: vec![layer(Layer::System, 9_000), layer(Layer::History, 40_000), layer(Layer::Current, 10)],
            tokens: 49_010,
            window: 100_000,
            usage: Some(Usage { input: 1_000, cached_input: 9_000, ..Usage::default() }),
            spent: Some(0.1234),
            ..Status::default()
        }
    }

    #[test]
    fn at_four_widths() {
        let shown: Vec<_> = [200, 80, 40, 12].map(|columns| status().line(columns).plain()).into();
        insta::assert_snapshot!(shown.join("\n"));
        assert!(status().line(5).width() <= 5);
    }

    #[test]
    fn the_picture_of_the_budget() {
        insta::assert_snapshot!(status().picture().iter().map(|line| line.plain() + "\n").collect::<String>());
    }

    #[test]
    fn money_says_when_it_is_not_all() {
        let mut status = Status::default();
        assert_eq!(status.money(), None);
        status.add(Usage::default(), Some(Cost { total: 1.5, ..Cost::default() }));
        assert_eq!(status.money().as_deref(), Some("$1.50"));
        status.add(Usage::default(), None);
        assert_eq!(status.money().as_deref(), Some("$1.50+"));
    }
}
