//! Checks commands with huge output: haft's memory stays small, the text for the model is bounded,
//! counts are exact, and the complete output can be read by range.
//!
//! Each case runs one hostile command with the real binary and measures haft's peak memory at the
//! request before the command and at the request after it. Then the conversation continues and
//! reads a range of the file with the complete output. The seed selects the kind of output;
//! `--size` sets the bytes a command writes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use haft_testkit::support::{Campaign, HaftCase, Trial};
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::Api;
use serde_json::{Value, json};

use crate::kill::poll_until;
use crate::kill::process::{EndedRun, Running};
use crate::kill::workspace::Workspace;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "output",
    about: "Whatever a command writes: little memory, bounded text, exact counts, the whole in a file.",
    trial: Trial::WithHaft(run_case),
};

/// The number of bytes that a command writes if `--size` is not given.
const DEFAULT_SIZE: u64 = 8 << 20;
/// The maximum growth of haft's peak memory during a case, in bytes.
const MAX_MEMORY_GROWTH: u64 = 64 << 20;
/// The maximum size of a tool result in bytes: the limit for command output, plus a few lines about
/// the output.
const MAX_RESULT_BYTES: usize = 51 * 1024;
const MAX_RESULT_LINES: usize = 2_010;
/// The time limit for a run. It is far above the usual duration, so a run that exceeds it hangs.
const RUN_TIMEOUT: Duration = Duration::from_mins(8);

/// A kind of command output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    /// Lines without end until the timeout, more than the output file may hold.
    Endless,
    /// Many short lines.
    Lines,
    /// One long line.
    Line,
    /// Random bytes.
    Noise,
    /// Output of which one half goes to stdout and the other to stderr.
    Both,
    /// Lines from a background task.
    Background,
    /// Lines that are written to a terminal.
    Terminal,
}

const FLOODS: [Flood; 7] = [
    Flood::Endless,
    Flood::Lines,
    Flood::Line,
    Flood::Noise,
    Flood::Both,
    Flood::Background,
    Flood::Terminal,
];

impl Flood {
    /// Returns the replies whose tool calls produce the whole output.
    fn tool_call_replies(self, size: u64) -> Vec<Reply> {
        let command = |line: String, timeout: u64| {
            vec![Reply::call(
                "execute_command",
                json!({"command": line, "requires_approval": false, "timeout": timeout}),
            )]
        };
        let lines = |bytes: u64| format!("yes | head -c {bytes}");
        let long = RUN_TIMEOUT.as_secs();
        match self {
            // A timeout of 2 s at the default size, 10 s above it.
            Self::Endless => command("yes".to_owned(), if size > DEFAULT_SIZE { 10 } else { 2 }),
            Self::Lines => command(lines(size), long),
            Self::Line => command(format!("head -c {size} /dev/zero | tr '\\0' x"), long),
            Self::Noise => command(format!("head -c {size} /dev/urandom"), long),
            Self::Both => command(
                format!("{} & {} >&2; wait", lines(size / 2), lines(size / 2)),
                long,
            ),
            Self::Background => vec![
                Reply::call(
                    "background_task",
                    json!({"action": "start", "command": lines(size)}),
                ),
                Reply::call(
                    "background_task",
                    json!({"action": "monitor", "task_id": "t1", "timeout": 600}),
                ),
            ],
            // Less output, because a terminal is slow. `-onlcr` avoids the carriage returns that a
            // terminal adds.
            Self::Terminal => {
                let line = format!("stty -onlcr; {}", lines(size / 8));
                vec![Reply::call(
                    "session_start",
                    json!({"command": line, "timeout": 600}),
                )]
            }
        }
    }

    /// Returns the size in bytes of the longer output stream; `None` if the size is unknown in
    /// advance.
    fn stream_bytes(self, size: u64) -> Option<u64> {
        match self {
            Self::Endless => None,
            Self::Both => Some(size / 2),
            Self::Terminal => Some(size / 8),
            Self::Lines | Self::Line | Self::Noise | Self::Background => Some(size),
        }
    }
}

fn run_case(case: &mut HaftCase<'_>) -> Result<(), String> {
    let size = case.size.unwrap_or(DEFAULT_SIZE);
    let flood = FLOODS[case.seed as usize % FLOODS.len()];
    let calls = flood.tool_call_replies(size);
    let count = calls.len();
    // Each reply is delayed, so that there is time to measure the waiting process.
    let wait = |reply: Reply| Reply {
        delay_ms: 400,
        ..reply
    };
    let script = Script::turns(
        calls
            .into_iter()
            .chain([Reply::text("It wrote.")])
            .map(wait),
    );
    let server = ScriptedServer::builder(script.map_err(|error| error.to_string())?);
    let server = server
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let mut place = Workspace::new(case.haft, Api::Anthropic, &server)?;
    let tried = measure_flood(flood, size, count, &place, server);
    match tried {
        Ok(grown) => {
            let steps = (grown >> 20) / 8;
            case.tally.count(format!(
                "{flood:?}: {} to {} MB more memory",
                steps * 8,
                steps * 8 + 8
            ));
            Ok(())
        }
        Err(what) => Err(format!(
            "{flood:?}: {what}\n        kept in {}",
            place.keep_folders()
        )),
    }
}

/// Runs a case. Returns the growth of haft's peak memory in bytes.
fn measure_flood(
    flood: Flood,
    size: u64,
    calls: usize,
    place: &Workspace,
    server: ScriptedServer,
) -> Result<u64, String> {
    let cap = format!("limits.spill_bytes={size}");
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "--set",
        &cap,
        "Let it write.",
    ];
    let mut running = Running::start(place, &arguments, 1)?;
    let before = peak_memory_at(1, &mut running, &server)?;
    let after = peak_memory_at(calls + 1, &mut running, &server)?;
    let ended = running.finish(RUN_TIMEOUT)?;
    let grown = after.saturating_sub(before);
    if grown > MAX_MEMORY_GROWTH {
        return Err(format!(
            "{} MB more memory than the {} MB before",
            grown >> 20,
            before >> 20
        ));
    }
    let told = ResultReport::from_run(&ended)?;
    told.check(flood, size)?;
    check_read_back(flood, &told, place, server)?;
    Ok(grown)
}

/// Returns haft's peak memory, in bytes, at the time when it waits for the reply to the request
/// with this number.
fn peak_memory_at(
    request: usize,
    running: &mut Running,
    server: &ScriptedServer,
) -> Result<u64, String> {
    let asked = poll_until(RUN_TIMEOUT, || {
        Ok(server.generation_requests().len() >= request || running.is_over()?)
    })?;
    if !asked || running.is_over()? {
        return Err(format!("request {request} never came"));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", running.id()))
        .map_err(|error| error.to_string())?;
    let peak = status.lines().find_map(|line| {
        line.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    });
    peak.map(|kilobytes: u64| kilobytes << 10)
        .ok_or_else(|| "no peak memory".to_owned())
}

/// The last tool result of a run, with the numbers that it reports.
struct ResultReport {
    /// The number of lines in the longest stream, as reported.
    lines: u64,
    bytes: u64,
    file: PathBuf,
    text: String,
}

impl ResultReport {
    fn from_run(ended: &EndedRun) -> Result<Self, String> {
        let mut results = ended
            .events
            .iter()
            .filter(|event| event["type"] == "tool_result");
        let text = results
            .next_back()
            .and_then(|event| event["text"].as_str())
            .ok_or("no result")?
            .to_owned();
        let file = text
            .split('`')
            .find(|part| part.contains("/spill/"))
            .ok_or("no file is named")?
            .into();
        let counts =
            parse_counts(&text).ok_or_else(|| format!("no counts: {}", text_tail(&text)))?;
        Ok(Self {
            lines: counts.0,
            bytes: counts.1,
            file,
            text,
        })
    }

    fn check(&self, flood: Flood, size: u64) -> Result<(), String> {
        let Self {
            text,
            lines,
            bytes,
            file,
        } = self;
        if text.len() > MAX_RESULT_BYTES || text.lines().count() > MAX_RESULT_LINES {
            return Err(format!(
                "the model got {} bytes in {} lines",
                text.len(),
                text.lines().count()
            ));
        }
        if let Some(strange) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        {
            return Err(format!("the model got {strange:?}"));
        }
        if flood
            .stream_bytes(size)
            .is_some_and(|expected| expected != *bytes)
        {
            return Err(format!(
                "{bytes} bytes were told, not {:?}",
                flood.stream_bytes(size)
            ));
        }
        let expected_lines = match flood {
            Flood::Line => 1,
            Flood::Noise => *lines,
            Flood::Endless | Flood::Lines | Flood::Both | Flood::Background | Flood::Terminal => {
                bytes.div_ceil(2)
            }
        };
        if *lines != expected_lines {
            return Err(format!(
                "{lines} lines were told of {bytes} bytes, not {expected_lines}"
            ));
        }
        let kept = file
            .metadata()
            .map_err(|error| format!("{}: {error}", file.display()))?
            .len();
        let expected = size.min(*bytes);
        if kept != expected {
            return Err(format!("the file holds {kept} bytes, not {expected}"));
        }
        let said = text.contains(&format!("only the first {size} bytes were kept"));
        if said != (*bytes > size) {
            return Err(format!(
                "what the file holds is told wrong: {}",
                text_tail(text)
            ));
        }
        Ok(())
    }
}

/// Checks that a range of the output file can be read after the conversation was continued.
fn check_read_back(
    flood: Flood,
    told: &ResultReport,
    place: &Workspace,
    server: ScriptedServer,
) -> Result<(), String> {
    let port = server.address().port();
    drop(server);
    let middle = told
        .lines
        .min(told.file.metadata().map_or(0, |file| file.len() / 2))
        / 2
        + 1;
    let read = json!({"path": told.file, "start_line": middle, "end_line": middle + 1});
    let script = Script::replies([
        Reply::call("read_file", read),
        Reply::text("It can be read."),
    ]);
    let server = ScriptedServer::builder(script.map_err(|error| error.to_string())?).port(port);
    let _server = server
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let arguments = [
        "run",
        "-c",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "Read it.",
    ];
    let ended = Running::start(place, &arguments, 2)?.finish(RUN_TIMEOUT)?;
    let result = ended
        .events
        .iter()
        .find(|event| event["type"] == "tool_result")
        .cloned()
        .unwrap_or_default();
    let text = result["text"].as_str().unwrap_or_default();
    if text.len() > MAX_RESULT_BYTES {
        return Err(format!("reading gave {} bytes", text.len()));
    }
    let fits = match flood {
        // The result for a binary file is an error instead of its content.
        Flood::Noise => result["error"]["code"] == "binary_file",
        Flood::Line => result["error"] == Value::Null && text.contains("xxx"),
        Flood::Endless | Flood::Lines | Flood::Both | Flood::Background | Flood::Terminal => {
            text.starts_with(&format!("{middle}\ty\n"))
        }
    };
    if fits {
        Ok(())
    } else {
        Err(format!(
            "line {middle} of the file: {}",
            &text[..text.len().min(300)]
        ))
    }
}

/// Parses the reported numbers of lines and bytes: `The whole stdout has 5 lines and 10 bytes`. A
/// background task reports only `All 5 lines`, which have two bytes each in this campaign.
fn parse_counts(text: &str) -> Option<(u64, u64)> {
    let words: Vec<_> = text.split("has ").last()?.split(' ').collect();
    if let [lines, "lines", "and", bytes, ..] = words.as_slice() {
        return Some((lines.parse().ok()?, bytes.parse().ok()?));
    }
    let lines = text
        .split("[All ")
        .nth(1)?
        .split(' ')
        .next()?
        .parse()
        .ok()?;
    Some((lines, lines * 2))
}

fn text_tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(300))..]
}
