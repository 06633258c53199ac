//! `haft logs`: what went wrong without stopping a run.

use std::time::Duration;

use clap::Args;

use crate::commands::options::Common;
use crate::exit::ProcessExit;
use crate::output;
use crate::wiring::log::{Follower, LogLevel, LogLine, newest_lines};

/// How often a look is taken at what is new.
const EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Follow the log until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Show only lines of this level and more severe ones: error, warn, info, debug or trace.
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        hide_possible_values = true,
        default_value = "trace",
        hide_default_value = true
    )]
    level: LogLevel,
    /// Start with this many of the newest lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
    /// As JSON, one object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<ProcessExit> {
    let (places, _) = super::configuration(&args.common)?;
    let folder = places.log();
    // Before the lines are read: one that comes in between is shown twice rather than never.
    let follower = args.follow.then(|| Follower::new(&folder));
    let wanted = |line: &str| parse(line).is_some_and(|line| line.level <= args.level);
    let lines = newest_lines(&folder, args.lines, wanted);
    if lines.is_empty() && !args.follow {
        output::tell(&format!("haft: {}", text!("logs-none", folder = folder.display())));
    }
    show(args, &lines)?;
    let Some(mut follower) = follower else { return Ok(ProcessExit::Completed) };
    loop {
        let lines: Vec<_> = follower.lines().into_iter().filter(|line| wanted(line)).collect();
        show(args, &lines)?;
        std::thread::sleep(EVERY);
    }
}

fn parse(line: &str) -> Option<LogLine> {
    serde_json::from_str(line).ok()
}

fn show(args: &LogArgs, lines: &[String]) -> anyhow::Result<()> {
    let mut text = String::new();
    for line in lines {
        if args.json {
            text.push_str(line);
        } else if let Some(line) = parse(line) {
            text.push_str(&haft_text::sanitise(&as_text(&line)));
        }
        text.push('\n');
    }
    output::print(&text)
}

/// A line for people: when, how bad, where, what, and what is known besides.
fn as_text(line: &LogLine) -> String {
    let LogLine { time, level, target, message, fields } = line;
    let level = format!("{level:?}").to_uppercase();
    let mut text = format!("{time} {level:<5} {target}: {message}");
    for (name, value) in fields {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.extend([" ", name, "=", &value]);
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_people_is_one_line() {
        let line = parse(
            r#"{"time":"2026-11-16T00:52:39.123Z","level":"warn","target":"haft_engine::files","message":"not\nrecorded","fields":{"call":"c1","tries":3}}"#,
        );
        let text = as_text(&line.unwrap());
        assert_eq!(text, "2026-11-16T00:52:39.123Z WARN  haft_engine::files: not recorded call=c1 tries=3");
    }
}
