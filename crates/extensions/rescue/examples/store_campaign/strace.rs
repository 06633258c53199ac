//! Calls to the system, watched by strace, and read from its log.

use std::process::{Command, Stdio};

/// Whether strace can be used.
pub(crate) fn is_there() -> bool {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

/// strace with these options, watching this program.
pub(crate) fn command(options: &[&str]) -> Result<Command, String> {
    let mut command = Command::new("strace");
    command
        .args(options)
        .arg(std::env::current_exe().map_err(|error| error.to_string())?);
    Ok(command)
}

/// A call to the system, by when it began and ended: lines of the log, of several threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// What it gave; negative when it failed.
    pub(crate) result: i64,
    pub(crate) begun: usize,
    pub(crate) ended: usize,
}

/// Reads a log made with `-f`. A call that was under way when the log ends is left out.
pub(crate) fn read(log: &str) -> Vec<Call> {
    let mut unfinished: std::collections::HashMap<&str, (usize, String)> =
        std::collections::HashMap::new();
    let mut calls = Vec::new();
    for (at, line) in log.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(begin) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(thread, (at, begin.trim_end().to_owned()));
        } else if rest.starts_with("<... ") {
            let Some((_, end)) = rest.split_once(" resumed>") else {
                continue;
            };
            if let Some((begun, begin)) = unfinished.remove(thread) {
                calls.extend(call(&format!("{begin}{end}"), begun, at));
            }
        } else {
            calls.extend(call(rest, at, at));
        }
    }
    calls.sort_by_key(|call| call.begun);
    calls
}

fn call(text: &str, begun: usize, ended: usize) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    // After the number there may be a path or the name of an error.
    let result = result.split(['<', ' ']).next()?.parse().ok()?;
    Some(Call {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        result,
        begun,
        ended,
    })
}
