//! `haft logs`: shows the log lines of runs: loaded files, requests, tool calls and failures.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use haft_log::{Follower, LogLevel, LogLine, TURN_STARTED, for_each_line, read_newest_lines};
use haft_types::Timestamp;
use serde_json::{Value, json};

use crate::cli::options::Common;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// The interval between polls of the log.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The maximum number of runs that `--runs` lists.
const MAX_RUNS: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The run to show, by its id or the beginning of it; the last one by default.
    #[arg(conflicts_with_all = ["all", "runs"])]
    run: Option<String>,
    /// List the runs that the log holds.
    #[arg(long, conflicts_with_all = ["all", "follow", "level", "lines"])]
    runs: bool,
    /// Show the lines of all runs and commands.
    #[arg(long)]
    all: bool,
    /// Follow the log of all runs until Ctrl-C.
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
    /// Show only this many of the newest lines.
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// As JSON, one object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

/// A run that the log contains.
struct LoggedRun {
    id: String,
    started: Timestamp,
    model: String,
    folder: String,
    /// The outcome of the run's last turn; `None` if that turn has not ended, or haft was killed.
    outcome: Option<String>,
    /// The number of lines of level `warn` and `error`.
    problems: usize,
}

pub(crate) fn run(haft: &Haft, args: &LogArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let folder = settings.places.log_folder();
    if args.runs {
        let runs = collect_runs(&folder);
        if runs.is_empty() && !args.json {
            output::print_to_stderr(&format!(
                "haft: {}",
                text!("logs-none", folder = folder.display())
            ));
        }
        return list_runs(&runs, args.json);
    }
    // The follower is opened before the lines are read, so that a line that arrives in between is
    // shown twice rather than never.
    let follower = args.follow.then(|| Follower::new(&folder));
    let run = match (&args.run, args.all) {
        (Some(named), _) => Some(find_run(&folder, named)?),
        (None, true) => None,
        (None, false) => find_last_run(&folder),
    };
    let is_shown = |line: &LogLine| {
        line.level <= args.level && run.as_ref().is_none_or(|run| line.run == *run)
    };
    let most = args.lines.unwrap_or(usize::MAX);
    // Most lines belong to other runs and need no parsing.
    let lines = read_newest_lines(&folder, most, |line| {
        run.as_ref().is_none_or(|run| line.contains(run))
            && parse_line(line).is_some_and(|line| is_shown(&line))
    });
    if lines.is_empty() && !args.follow {
        output::print_to_stderr(&format!(
            "haft: {}",
            text!("logs-none", folder = folder.display())
        ));
    }
    print_lines(args, &lines)?;
    let Some(mut follower) = follower else {
        return Ok(ProcessExit::Completed);
    };
    loop {
        let lines = follower.read_new_lines().into_iter().filter(|line| {
            parse_line(line).is_some_and(|line| {
                line.level <= args.level && args.run.as_ref().is_none_or(|_| is_shown(&line))
            })
        });
        print_lines(args, &lines.collect::<Vec<_>>())?;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the id of the process that most recently started a turn.
fn find_last_run(folder: &Path) -> Option<String> {
    let starts = |line: &str| {
        line.contains(TURN_STARTED)
            && parse_line(line).is_some_and(|line| line.message == TURN_STARTED)
    };
    let lines = read_newest_lines(folder, 1, starts);
    Some(parse_line(lines.first()?)?.run)
}

/// Returns the processes that ran a turn, in the order of their first turns.
fn collect_runs(folder: &Path) -> Vec<LoggedRun> {
    let mut runs: Vec<LoggedRun> = Vec::new();
    let mut problems: BTreeMap<String, usize> = BTreeMap::new();
    for_each_line(folder, |line| {
        let Some(line) = parse_line(line).filter(|line| !line.run.is_empty()) else {
            return;
        };
        let text = |name: &str| {
            line.fields
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        if line.level <= LogLevel::Warn {
            *problems.entry(line.run.clone()).or_default() += 1;
        }
        match runs.iter_mut().find(|run| run.id == line.run) {
            Some(run)
                if line.message == "turn ended" && text("agent") == haft_engine::MAIN_AGENT =>
            {
                run.outcome = Some(text("outcome"));
            }
            None if line.message == TURN_STARTED => {
                let model = text("model");
                let folder = text("cwd");
                runs.push(LoggedRun {
                    id: line.run,
                    started: line.time,
                    model,
                    folder,
                    outcome: None,
                    problems: 0,
                });
            }
            Some(_) | None => {}
        }
    });
    for run in &mut runs {
        run.problems = problems.get(&run.id).copied().unwrap_or_default();
    }
    runs
}

/// Returns the id of the only run whose id starts with `named`. No match and several matches are
/// usage errors.
fn find_run(folder: &Path, named: &str) -> anyhow::Result<String> {
    let mut found: Vec<String> = Vec::new();
    for_each_line(folder, |line| {
        if let Some(line) =
            parse_line(line).filter(|line| line.run.starts_with(named) && !line.run.is_empty())
            && !found.contains(&line.run)
        {
            found.push(line.run);
        }
    });
    match <[String; 1]>::try_from(found) {
        Ok([run]) => Ok(run),
        Err(none) if none.is_empty() => Err(usage_error(text!("logs-unknown-run", run = named))),
        Err(several) => Err(usage_error(text!(
            "logs-several-runs",
            run = named,
            ids = several.join(", ")
        ))),
    }
}

fn list_runs(runs: &[LoggedRun], as_json: bool) -> anyhow::Result<ProcessExit> {
    let newest = runs.iter().rev().take(MAX_RUNS);
    if as_json {
        let one = |run: &LoggedRun| {
            let LoggedRun {
                id,
                started,
                model,
                folder,
                outcome,
                problems,
            } = run;
            json!({
                "run": id, "started_at": started, "model": model, "cwd": folder, "outcome": outcome,
                "problems": problems,
            })
        };
        output::print_json(&newest.map(one).collect())?;
        return Ok(ProcessExit::Completed);
    }
    let headings = [
        text!("logs-column-run"),
        text!("logs-column-started"),
        text!("logs-column-outcome"),
        text!("logs-column-problems"),
        text!("logs-column-model"),
        text!("logs-column-folder"),
    ];
    let mut table = TextTable::new(&headings);
    for LoggedRun {
        id,
        started,
        model,
        folder,
        outcome,
        problems,
    } in newest
    {
        let outcome = outcome.clone().unwrap_or_else(|| "-".to_owned());
        table.add_row(vec![
            id.clone(),
            format!("{started:.0}"),
            outcome,
            problems.to_string(),
            model.clone(),
            folder.clone(),
        ]);
    }
    if !runs.is_empty() {
        output::print_text(&table.to_string())?;
    }
    Ok(ProcessExit::Completed)
}

fn parse_line(line: &str) -> Option<LogLine> {
    serde_json::from_str(line).ok()
}

fn print_lines(args: &LogArgs, lines: &[String]) -> anyhow::Result<()> {
    let mut text = String::new();
    for line in lines {
        if args.json {
            text.push_str(line);
        } else if let Some(line) = parse_line(line) {
            text.push_str(&haft_text::sanitize(&line_to_text(&line)));
        }
        text.push('\n');
    }
    output::print_text(&text)
}

/// Formats a line for people: its time, level, message and fields. The module is shown only if it
/// does not belong to haft.
fn line_to_text(line: &LogLine) -> String {
    let LogLine {
        time,
        level,
        run: _,
        target,
        message,
        fields,
    } = line;
    let level = format!("{level:?}").to_uppercase();
    let mut text = format!("{time:.3} {level:<5} {message}");
    if !target.starts_with("haft") {
        text.extend([" target=", target]);
    }
    for (name, value) in fields {
        let value = match value {
            Value::String(value) if value.contains([' ', '=', '"']) => format!("{value:?}"),
            Value::String(value) => value.clone(),
            other => other.to_string(),
        };
        text.extend([" ", name, "=", &value]);
    }
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_to_text_prints_one_line() {
        let line = parse_line(
            r#"{"time":"2026-11-16T00:52:39.123456Z","level":"warn","target":"haft_engine::files","message":"not\nrecorded","fields":{"call":"c1","reason":"no room","tries":3}}"#,
        );
        let text = line_to_text(&line.unwrap());
        assert_eq!(
            text,
            "2026-11-16T00:52:39.123Z WARN  not recorded call=c1 reason=\"no room\" tries=3"
        );
    }
}
