//! Prints figures and their goals.

use std::io::Write;
use std::time::Duration;

/// Prints a figure, and whether it is at most its goal.
pub(crate) fn print_figure(name: &str, figure: f64, unit: &str, goal: Option<f64>) {
    let verdict = match goal {
        Some(goal) if figure <= goal => format!("goal {goal} {unit}: reached"),
        Some(goal) => format!("goal {goal} {unit}: MISSED"),
        None => String::new(),
    };
    print_line(&format!("{name:<58} {figure:>9.2} {unit:<4} {verdict}"));
}

/// Prints a figure, and whether it is at least its goal.
pub(crate) fn print_figure_with_minimum(name: &str, figure: f64, unit: &str, goal: f64) {
    let verdict = if figure >= goal { "reached" } else { "MISSED" };
    print_line(&format!(
        "{name:<58} {figure:>9.2} {unit:<4} goal at least {goal}: {verdict}"
    ));
}

pub(crate) fn print_line(text: &str) {
    drop(writeln!(std::io::stdout(), "{}", text.trim_end()));
}

/// Returns the median in milliseconds.
pub(crate) fn median_ms(durations: &mut [Duration]) -> f64 {
    quantile_ms(durations, 0.5)
}

/// Returns the quantile `share` (0 to 1) in milliseconds.
pub(crate) fn quantile_ms(durations: &mut [Duration], share: f64) -> f64 {
    durations.sort_unstable();
    let index = ((durations.len().saturating_sub(1)) as f64 * share).round() as usize;
    durations
        .get(index)
        .map_or(f64::NAN, |duration| duration.as_secs_f64() * 1e3)
}
