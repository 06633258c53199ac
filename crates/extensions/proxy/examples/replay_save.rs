//! Replays recorded conversations through the saver of `haft proxy --save`, and prints what they would
//! have cost with and without it.
//!
//! `HAFT_TRAJECTORIES` names the recordings: gzipped, one JSON object a line, as `.ci/run` uses them.
//! Every request of every conversation is built as an agent sends it, rewritten, and billed by a
//! simulated cache that follows the provider's rules, with the recorded times. Nothing of the
//! saver's own estimates is used. Recordings without a system prompt get one of 12,000 tokens.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::Duration;

use haft_context::{CachePiece, CacheSimulator};
use haft_model::Catalogue;
use haft_proxy::{ReceivedRequest, SaveEvent, SavePolicy, SaveSetup, Saver};
use haft_testkit::support::FakeClock;
use haft_types::{Api, CacheKind, CacheRule, ContentHash, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// The bytes of the system prompt of a recording that has none.
const FIXED_BYTES: usize = 48_000;
const START: &str = "2026-01-01T00:00:00Z";
/// The names under which edit tools take the text to replace.
const OLD_TEXT: [&str; 5] = ["old_string", "old_str", "old_text", "oldText", "search"];

#[derive(Deserialize)]
struct Recording {
    id: String,
    source: String,
    messages: Vec<Value>,
    #[serde(default)]
    ts: Vec<Option<String>>,
    #[serde(default)]
    compactions: Vec<Compaction>,
}

#[derive(Deserialize)]
struct Compaction {
    at: usize,
}

/// A provider: its API, its cache rule and its relative prices.
struct Provider {
    name: &'static str,
    api: Api,
    model: &'static str,
    kind: CacheKind,
    lifetime: &'static str,
    read: f64,
    write: f64,
}

const PROVIDERS: [Provider; 2] = [
    Provider {
        name: "Anthropic",
        api: Api::Anthropic,
        model: "claude-opus-4-6",
        kind: CacheKind::Anthropic,
        lifetime: "5m",
        read: 0.1,
        write: 1.25,
    },
    Provider {
        name: "OpenAI",
        api: Api::OpenaiChat,
        model: "gpt-5",
        kind: CacheKind::Openai,
        lifetime: "10m",
        read: 0.1,
        write: 1.0,
    },
];

/// The figures of one conversation.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    turns: usize,
    received: f64,
    sent: f64,
    passes: usize,
    edits: usize,
    blind: usize,
    unseen: usize,
}

fn main() -> Result<(), Failure> {
    let path = std::env::var_os("HAFT_TRAJECTORIES").ok_or("HAFT_TRAJECTORIES is not set")?;
    let file = flate2::read::GzDecoder::new(std::fs::File::open(path)?);
    let recordings: Vec<Recording> = BufReader::new(file)
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect::<Result<_, Failure>>()?;
    for provider in &PROVIDERS {
        let mut groups: BTreeMap<String, Vec<Figures>> = BTreeMap::new();
        for recording in &recordings {
            let figures = replay(recording, provider)?;
            if std::env::var_os("REPLAY_DETAILS").is_some() && figures.passes > 0 {
                println!("{} {figures:?}", recording.id);
            }
            let source = recording.source.split('@').next().unwrap_or_default();
            let source = source.trim_start_matches("github:");
            for group in [source, "all"] {
                groups.entry(group.to_owned()).or_default().push(figures);
            }
            if figures.turns >= 100 {
                groups
                    .entry("at least 100 turns".to_owned())
                    .or_default()
                    .push(figures);
            }
        }
        println!(
            "\n| {} | conversations | changed | cost of those changed | dearer | at most | unseen results | blind edits |\n| --- | --- | --- | --- | --- | --- | --- | --- |",
            provider.name
        );
        for (name, list) in groups {
            println!("{}", format_row(&name, &list));
        }
    }
    Ok(())
}

fn format_row(name: &str, list: &[Figures]) -> String {
    let touched: Vec<_> = list.iter().filter(|one| one.passes > 0).collect();
    let of_touched = if touched.is_empty() {
        "–".to_owned()
    } else {
        let sent: f64 = touched.iter().map(|one| one.sent).sum();
        let received: f64 = touched.iter().map(|one| one.received).sum();
        format!("{:+.1} %", 100.0 * (sent / received - 1.0))
    };
    let dearer = touched
        .iter()
        .filter(|one| one.sent > one.received * 1.0005);
    let worst = touched
        .iter()
        .map(|one| one.sent / one.received)
        .fold(1.0, f64::max);
    let edits: usize = touched.iter().map(|one| one.edits).sum();
    let blind: usize = touched.iter().map(|one| one.blind).sum();
    let unseen: usize = touched.iter().map(|one| one.unseen).sum();
    format!(
        "| {name} | {} | {} | {of_touched} | {} | {:+.1} % | {unseen} | {blind} of {edits} |",
        list.len(),
        touched.len(),
        dearer.count(),
        100.0 * (worst - 1.0),
    )
}

fn replay(recording: &Recording, provider: &Provider) -> Result<Figures, Failure> {
    let turns = count_requests(&recording.messages);
    let bytes: usize = recording
        .messages
        .iter()
        .map(|one| one.to_string().len())
        .sum();
    if FIXED_BYTES + bytes < 4 * SavePolicy::default().budget_tokens() as usize {
        // Too short to be changed.
        return Ok(Figures {
            turns,
            ..Figures::default()
        });
    }
    let folder = tempfile::tempdir()?;
    let clock = Arc::new(FakeClock::starting_at(START.parse()?));
    let passes = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&passes);
    let setup = SaveSetup {
        catalogue: Catalogue::with_built_in([].into(), [].into())?,
        clock: clock.clone(),
        policy: SavePolicy::default(),
        agents: vec!["codex".to_owned()],
        agent: Some("codex".to_owned()),
        folder: folder.path().to_owned(),
        spill_folder: None,
        is_dry_run: false,
    };
    let saver = Saver::new(setup, move |event| {
        if matches!(event, SaveEvent::Cleared { .. }) {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let rule = CacheRule {
        rule: provider.kind,
        ttl: provider.lifetime.into(),
        look_back: Some(20),
        ..CacheRule::default()
    };
    let mut before = CacheSimulator::new(&rule);
    let mut after = CacheSimulator::new(&rule);
    let mut figures = Figures::default();
    let first: Option<Timestamp> = recording.ts.iter().flatten().find_map(|at| at.parse().ok());
    let mut elapsed = Duration::ZERO;
    let compactions: HashSet<usize> = recording.compactions.iter().map(|one| one.at).collect();
    let mut start = 0;
    for (index, message) in recording.messages.iter().enumerate() {
        if compactions.contains(&index) {
            start = index;
        }
        let is_continued = index > start && recording.messages[index - 1]["role"] == "assistant";
        if message["role"] != "assistant" || index == start || is_continued {
            continue;
        }
        let at: Option<Timestamp> = recording
            .ts
            .get(index)
            .and_then(|at| at.as_ref()?.parse().ok());
        if let Some((at, first)) = at.zip(first) {
            let now = at.duration_since(first).unsigned_abs();
            clock.advance(now.saturating_sub(elapsed));
            elapsed = elapsed.max(now);
        }
        let body = build_body(provider, &recording.messages[start..index]);
        let rewritten = saver.rewrite(ReceivedRequest {
            api: provider.api,
            path: "/v1/messages",
            upstream: "",
            headers: &[],
            body: body.to_string().as_bytes(),
        });
        let sent = match rewritten {
            Some(rewritten) => serde_json::from_str(&rewritten.body)?,
            None => body.clone(),
        };
        let price = |cache: &mut CacheSimulator, body: &Value| {
            let usage = cache.send_request(elapsed, &build_pieces(body));
            provider.read * usage.cached_input as f64
                + provider.write * (usage.input + usage.cache_write) as f64
        };
        figures.turns += 1;
        figures.received += price(&mut before, &body);
        figures.sent += price(&mut after, &sent);
        figures.unseen += count_unseen(&body, &sent);
        let edits = list_edits(message);
        figures.edits += edits.len();
        if sent != body {
            figures.blind += count_blind(&edits, &body, &sent);
        }
    }
    figures.passes = passes.load(std::sync::atomic::Ordering::Relaxed);
    Ok(figures)
}

/// Returns the number of messages of the model that follow a message of the user or a result.
fn count_requests(messages: &[Value]) -> usize {
    let is_reply = |message: &Value| message["role"] == "assistant";
    let pairs = messages.windows(2);
    pairs
        .filter(|pair| is_reply(&pair[1]) && !is_reply(&pair[0]))
        .count()
}

/// Builds the request that an agent sends after these messages.
fn build_body(provider: &Provider, messages: &[Value]) -> Value {
    let system: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "system")
        .filter_map(|message| message["content"].as_str())
        .collect();
    let system = if system.is_empty() {
        "word ".repeat(FIXED_BYTES / 5)
    } else {
        system.join("\n")
    };
    let rest = messages
        .iter()
        .filter(|message| message["role"] != "system");
    let mut list: Vec<Value> = Vec::new();
    for message in rest {
        if provider.api == Api::OpenaiChat {
            let mut message = message.clone();
            for name in ["synthetic", "reasoning_content"] {
                message.as_object_mut().map(|fields| fields.remove(name));
            }
            list.push(message);
            continue;
        }
        let (role, blocks) = build_blocks(message);
        match list.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            Some(_) | None => list.push(json!({"role": role, "content": blocks})),
        }
    }
    if provider.api == Api::OpenaiChat {
        list.insert(0, json!({"role": "system", "content": system}));
        let tool = json!({"type": "function", "function": {"name": "tool", "parameters": {}}});
        return json!({"model": provider.model, "messages": list, "tools": [tool]});
    }
    let mark = json!({"type": "ephemeral"});
    // As Claude Code does: the system prompt, and the last two messages of the user.
    let users = list.iter_mut().filter(|message| message["role"] == "user");
    for message in users.rev().take(2) {
        if let Some(last) = message["content"]
            .as_array_mut()
            .and_then(|one| one.last_mut())
        {
            last["cache_control"] = mark.clone();
        }
    }
    let system = json!([{"type": "text", "text": system, "cache_control": mark}]);
    json!({"model": provider.model, "system": system, "messages": list, "tools": [{"name": "tool"}]})
}

fn build_blocks(message: &Value) -> (&'static str, Vec<Value>) {
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    if message["role"] == "tool" {
        let id = &message["tool_call_id"];
        return (
            "user",
            vec![json!({"type": "tool_result", "tool_use_id": id, "content": text})],
        );
    }
    let mut blocks = Vec::new();
    if !text.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        blocks.push(json!({
            "type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input,
        }));
    }
    if blocks.is_empty() {
        blocks.push(json!({"type": "text", "text": "-"}));
    }
    let role = if message["role"] == "assistant" {
        "assistant"
    } else {
        "user"
    };
    (role, blocks)
}

fn build_pieces(body: &Value) -> Vec<CachePiece> {
    let lists = [&body["tools"], &body["system"], &body["messages"]];
    let elements = lists.into_iter().filter_map(Value::as_array).flatten();
    elements
        .map(|element| {
            let mut plain = element.clone();
            let boundary = remove_marks(&mut plain);
            let text = plain.to_string();
            CachePiece {
                hash: ContentHash::from_content(text.as_bytes()),
                tokens: text.len() as u64 / 4,
                blocks: element["content"].as_array().map_or(1, Vec::len).max(1) as u32,
                boundary,
            }
        })
        .collect()
}

/// Removes the cache markers of a value. Returns true if there was one.
fn remove_marks(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            let mut found = fields.remove("cache_control").is_some();
            for value in fields.values_mut() {
                found |= remove_marks(value);
            }
            found
        }
        Value::Array(list) => list
            .iter_mut()
            .map(remove_marks)
            .fold(false, |found, one| found | one),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Counts the results after the last reply that are not sent as they were received.
fn count_unseen(body: &Value, sent: &Value) -> usize {
    let new = |body: &Value| -> Vec<Value> {
        let mut list = body["messages"].as_array().cloned().unwrap_or_default();
        let replied = list
            .iter()
            .rposition(|message| message["role"] == "assistant")
            .map_or(0, |last| last + 1);
        let mut list = list.split_off(replied);
        for message in &mut list {
            remove_marks(message);
        }
        list
    };
    let pairs = new(body).into_iter().zip(new(sent));
    pairs.filter(|(received, sent)| received != sent).count()
}

/// Returns the texts that the edits of a reply replace, one list for each edit.
fn list_edits(message: &Value) -> Vec<Vec<String>> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let mut edits = Vec::new();
    for call in calls {
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let mut texts = Vec::new();
        if let Ok(arguments) = serde_json::from_str(arguments) {
            collect_old_text(&arguments, &mut texts);
        }
        if !texts.is_empty() {
            edits.push(texts);
        }
    }
    edits
}

fn collect_old_text(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if OLD_TEXT.contains(&name.as_str()) => {
                        texts.push(text.clone());
                    }
                    value => collect_old_text(value, texts),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|one| collect_old_text(one, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Counts the edits that replace a line which was received but not sent.
fn count_blind(edits: &[Vec<String>], body: &Value, sent: &Value) -> usize {
    let received = join_strings(&body["messages"]);
    let sent = join_strings(&sent["messages"]);
    let is_blind = |texts: &&Vec<String>| {
        let mut lines = texts.iter().flat_map(|text| text.lines());
        lines.any(|line| {
            let line = line.trim();
            !line.is_empty() && !sent.contains(line) && received.contains(line)
        })
    };
    edits.iter().filter(is_blind).count()
}

fn join_strings(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(list) => list.iter().map(join_strings).collect(),
        Value::Object(fields) => fields.values().map(join_strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
