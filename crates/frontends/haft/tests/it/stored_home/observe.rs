//! The outputs of a binary for a stored home: everything that can be read from it without changing
//! it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::home::StoredHome;
use super::settings_for;

/// Outputs by command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Observed(BTreeMap<String, String>);

/// Conversations whose bodies are kept whole; for the others a hash detects changes.
const WHOLE: [&str; 6] = ["finished", "interrupted", "cut", "edited", "xml", "react"];

impl Observed {
    /// Runs every reading command.
    pub(super) fn from_home(home: &StoredHome) -> Self {
        let mut seen = Self(BTreeMap::new());
        for line in [
            "conversations list --all --json",
            "conversations list --trash --json",
            "conversations namespaces --json",
            "conversations current --json",
            "conversations search --all --json stripes",
            "conversations search --all --json \"revised version\"",
            "conversations search --all --json first version",
            "conversations search --trash --json superfluous",
            "changes finished --json --diff --content",
            "changes xml --json --diff --content",
            "undo finished --dry-run --json",
            "useful list --conversation finished --json",
            "useful show 1 --conversation finished --json",
            "notes list --json",
            "notes show docs --json",
            "trust --show --json",
            "jobs list --json",
            "lib list --json",
            "lib docs flask",
            "rag query zoo stripes --json",
            "mcp list --json",
        ] {
            seen.record_output(home, line);
        }
        seen.record_doctor(home);
        for id in conversation_ids(home) {
            seen.record_conversation(home, &id);
        }
        seen
    }

    pub(super) fn save(&self, file: &Path) {
        let mut packed = GzEncoder::new(File::create(file).unwrap(), Compression::best());
        serde_json::to_writer(&mut packed, &self.0).unwrap();
        packed.finish().unwrap();
    }

    pub(super) fn load(file: &Path) -> Self {
        Self(serde_json::from_reader(GzDecoder::new(File::open(file).unwrap())).unwrap())
    }

    /// Returns the differences from the expected outputs, one per line.
    pub(super) fn differences(&self, expected: &Self) -> Vec<String> {
        let missing = "(nothing)".to_owned();
        let commands = expected.0.keys().chain(
            self.0
                .keys()
                .filter(|command| !expected.0.contains_key(*command)),
        );
        let all = commands.map(|command| {
            (
                command,
                self.0.get(command).unwrap_or(&missing),
                expected.0.get(command).unwrap_or(&missing),
            )
        });
        let line = |(command, now, then): (&String, &String, &String)| {
            let from = now
                .bytes()
                .zip(then.bytes())
                .take_while(|(now, then)| now == then)
                .count()
                .saturating_sub(80);
            let around = |text: &str| -> String {
                String::from_utf8_lossy(text.as_bytes().get(from..).unwrap_or_default())
                    .chars()
                    .take(240)
                    .collect()
            };
            format!(
                "`{command}`\n  then: {:?}\n  now:  {:?}",
                around(then),
                around(now)
            )
        };
        let same = |command: &str, now: &str, then: &str| {
            if command.ends_with(" --next") {
                chosen_messages(now) == chosen_messages(then)
            } else if command.starts_with("context report ") {
                report_without_estimates(now) == report_without_estimates(then)
            } else if command.ends_with(" --cost") {
                // The width of a column may change; its content may not.
                now.split_whitespace().eq(then.split_whitespace())
            } else {
                now == then
            }
        };
        all.filter(|(command, now, then)| !same(command, now, then))
            .map(line)
            .collect()
    }

    fn record_output(&mut self, home: &StoredHome, line: &str) {
        let arguments: Vec<_> = line.split(' ').collect();
        let ran = home.run_successfully(&arguments);
        self.0.insert(line.to_owned(), ran.stdout());
    }

    /// Records the part of `haft doctor` about the store; the rest is about the machine.
    fn record_doctor(&mut self, home: &StoredHome) {
        let told = home.run_successfully(&["doctor", "--json"]).json();
        let about_the_machine = [
            "environment",
            "installation",
            "configuration",
            "commands",
            "sandbox",
            "model",
            "server",
        ];
        let checks: Vec<_> = told["checks"].as_array().unwrap().iter().collect();
        let store: Vec<_> = checks
            .into_iter()
            .filter(|check| !about_the_machine.iter().any(|name| check["name"] == *name))
            .map(|check| json!({"name": check["name"], "health": check["health"]}))
            .collect();
        self.0.insert(
            "doctor".into(),
            json!({"ok": told["ok"], "checks": store}).to_string(),
        );
    }

    fn record_conversation(&mut self, home: &StoredHome, id: &str) {
        self.record_output(home, &format!("conversations export {id}"));
        self.record_output(home, &format!("conversations show {id} --all --cost"));
        let shown = home.run(&["context", "show", id, "--full", "--json"]);
        if shown.code() == 2 {
            assert!(
                shown.stderr().contains("no request"),
                "{id}: {}",
                shown.stderr()
            );
            return;
        }
        let last = shown.json();
        self.0
            .insert(format!("context show {id} --full --json"), shown.stdout());
        self.record_output(home, &format!("context report {id} --json"));
        self.record_output(home, &format!("context why {id} --json"));
        let requests = last["request"].as_u64().unwrap();
        for number in 1..=requests {
            let body = home
                .run_successfully(&["context", "render", id, "--request", &number.to_string()])
                .0
                .stdout;
            let whole = number == requests && WHOLE.contains(&id);
            let kept = if whole {
                String::from_utf8(body).unwrap()
            } else {
                blake3::hash(&body).to_hex().as_str().to_owned()
            };
            self.0
                .insert(format!("context render {id} --request {number}"), kept);
        }
        self.record_next_request(home, id, last["model"].as_str().unwrap());
    }

    /// Records the next request, which depends on the documents kept beside a conversation. System
    /// message and tools are those of the running version.
    fn record_next_request(&mut self, home: &StoredHome, id: &str, model: &str) {
        let arguments = [
            "context", "show", id, "--next", "--full", "--json", "--input", "and now?", "-m", model,
        ];
        let ran = home.run(&[&arguments[..], settings_for(id)].concat());
        let said = if ran.code() == 0 {
            let shown = ran.json();
            let own = |segment: &&Value| segment["layer"] != "system";
            json!(
                shown["segments"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(own)
                    .collect::<Vec<_>>()
            )
            .to_string()
        } else {
            ran.stderr()
        };
        self.0.insert(format!("context show {id} --next"), said);
    }
}

/// Returns a report without estimates, because earlier versions counted tools described in the
/// prompt twice.
fn report_without_estimates(report: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(report).unwrap_or_default();
    [
        "request",
        "model",
        "api",
        "usage",
        "cost",
        "window",
        "output_reserve",
    ]
    .map(|key| report[key].clone())
    .to_vec()
}

/// Returns the messages of the conversation that would be sent next, and which of them only in
/// part. Compression and the positions of reminders follow the policy of the running version.
fn chosen_messages(next: &str) -> Vec<String> {
    let Ok(Value::Array(segments)) = serde_json::from_str(next) else {
        return vec![next.to_owned()];
    };
    let of_conversation =
        |segment: &&Value| matches!(segment["layer"].as_str(), Some("history" | "current"));
    let name = |segment: &Value| match segment["owner"].as_str().unwrap_or_default() {
        "history:compressed" => format!("history {}", segment["message_id"]),
        view if view.starts_with("view:") => view.to_owned(),
        owner => format!("{owner} {}", segment["message_id"]),
    };
    segments.iter().filter(of_conversation).map(name).collect()
}

/// Returns every conversation that is not in the trash.
fn conversation_ids(home: &StoredHome) -> Vec<String> {
    let listed = home
        .run_successfully(&["conversations", "list", "--all", "--json"])
        .json();
    listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}
