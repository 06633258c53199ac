//! The compaction gate (SPEC 8.7, 8.8): what must survive an archive, and whether a summary may stand for it.
//!
//! ```text
//! archived messages ──► ledger: literals that must occur in the accepted text, each with the message it comes from
//! a model's summary ──► refused (empty, too large, hostile, cut, in another language), or accepted:
//!                       its text + what it leaves out, verbatim + a receipt a round, by which `recall` brings the text back
//! ```
//!
//! Invariants: whatever is accepted holds every literal of the ledger and is smaller than what it stands for. The fallback is made
//! without a model and passes the same gate as far as there is room.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use haft_types::{Message, MessageId, Role, ShortId, TokenCounter, ToolStatus};

use crate::compaction::CompactionPlan;
use crate::superseded::Subject;

/// Archives below this many tokens may be summarised in as many: headings alone take a hundred.
const FLOOR: u64 = 1_000;
/// Characters of a sentence or line that are kept.
const LONGEST: usize = 300;
/// Lines of a failing command that are kept.
const FAILED_LINES: usize = 10;

/// Why something must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerKind {
    /// The user said it must, must never or must always be so.
    Instruction,
    /// A file was changed.
    FileChanged,
    /// A command failed and has not succeeded since.
    Failing,
    /// A thing left to do.
    OpenTodo,
    /// A process that runs.
    Running,
    /// A message that was named by its id.
    Quoted,
}

impl LedgerKind {
    fn name(self) -> &'static str {
        match self {
            Self::Instruction => "the user said",
            Self::FileChanged => "changed",
            Self::Failing => "failing",
            Self::OpenTodo => "to do",
            Self::Running => "running",
            Self::Quoted => "message",
        }
    }
}

/// Something that must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerItem {
    /// Why.
    pub kind: LedgerKind,
    /// What must occur in the accepted text, letter for letter but for white space.
    pub literal: String,
    /// The message it comes from, where it comes from one.
    pub source: Option<ShortId>,
}

/// What is known besides the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing<'a> {
    /// Things left to do.
    pub todos: &'a [String],
    /// Processes that run.
    pub running: &'a [String],
}

/// Why a summary is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It says nothing.
    #[error("the summary is empty")]
    Empty,
    /// It is not smaller than what it stands for.
    #[error("the summary takes {tokens} tokens, and must take less than {limit}")]
    TooLarge {
        /// Its tokens, with what had to be added.
        tokens: u64,
        /// What it must stay below.
        limit: u64,
    },
    /// It holds what only programs write: calls, roles, tags of the engine's own.
    #[error("the summary holds `{0}`, which a summary never does")]
    Hostile(&'static str),
    /// It ends in the middle.
    #[error("the summary was cut")]
    Cut,
    /// The model would not write one.
    #[error("the model declined to write a summary")]
    Declined,
    /// It is written in a script that neither the form nor the user uses.
    #[error("the summary is written in another language than the session")]
    OtherLanguage,
}

/// Lists what must survive, in the order it came up.
pub fn ledger(plan: &CompactionPlan, standing: Standing<'_>) -> Vec<LedgerItem> {
    let mut items = Vec::new();
    let short: BTreeSet<_> = plan.messages.iter().map(|entry| entry.message.message_id.short()).collect();
    for message in plan.messages.iter().map(|entry| &entry.message) {
        let source = Some(message.message_id.short());
        let mut add = |kind, literal: &str| items.push(LedgerItem { kind, literal: bounded(literal), source });
        if message.role == Role::User {
            let text = message.joined_text();
            sentences(&text).filter(|one| is_instruction(one)).for_each(|one| add(LedgerKind::Instruction, one));
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
            let quoted = words.filter(|word| word.parse::<ShortId>().is_ok_and(|id| short.contains(&id)));
            quoted.for_each(|word| add(LedgerKind::Quoted, word));
        }
    }
    deeds(plan, &mut items);
    let item = |kind| move |text: &String| LedgerItem { kind, literal: bounded(text), source: None };
    items.extend(standing.todos.iter().map(item(LedgerKind::OpenTodo)));
    items.extend(standing.running.iter().map(item(LedgerKind::Running)));
    let mut seen = BTreeSet::new();
    items.retain(|item| !item.literal.is_empty() && seen.insert((item.kind, item.literal.clone())));
    items
}

/// Files changed and commands that fail.
fn deeds(plan: &CompactionPlan, items: &mut Vec<LedgerItem>) {
    let messages = || plan.messages.iter().map(|entry| &entry.message);
    let calls: HashMap<_, _> = messages().flat_map(Message::tool_calls).map(|call| (call.id.as_str(), call)).collect();
    let mut failing = Vec::new();
    for message in messages().filter(|message| message.role == Role::Tool) {
        for result in message.tool_results() {
            let call = calls.get(result.tool_call_id.as_str()).copied();
            let (status, source) = (result.envelope.status, Some(message.message_id.short()));
            let code = result.envelope.data.get("exit_code").and_then(serde_json::Value::as_i64);
            let failed = status == ToolStatus::Error || code.is_some_and(|code| code != 0);
            match call.and_then(Subject::of) {
                Some(Subject::Edit { paths }) if status != ToolStatus::Error => {
                    let changed = |literal| LedgerItem { kind: LedgerKind::FileChanged, literal, source };
                    items.extend(paths.into_iter().map(changed));
                }
                Some(Subject::Run { command, cwd }) => {
                    // The newest run of a command is what counts.
                    failing.retain(|(earlier, _)| *earlier != (command.clone(), cwd.clone()));
                    if failed {
                        let lines = failing_lines(&result.envelope.text);
                        let literals = [bounded(&command)].into_iter().chain(lines);
                        let item = |literal| LedgerItem { kind: LedgerKind::Failing, literal, source };
                        failing.push(((command, cwd), literals.map(item).collect::<Vec<_>>()));
                    }
                }
                Some(Subject::Edit { .. } | Subject::Read { .. }) | None => {}
            }
        }
    }
    items.extend(failing.into_iter().flat_map(|(_, items)| items));
}

/// The lines that name a failing test.
fn failing_lines(output: &str) -> impl Iterator<Item = String> {
    let fails = |line: &&str| line.ends_with("FAILED") || line.starts_with("FAILED ") || line.starts_with("--- FAIL");
    output.lines().map(str::trim).filter(fails).take(FAILED_LINES).map(bounded)
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |letter: char| matches!(letter, '\n' | '!' | '?' | '。' | '！' | '？' | ';' | '；');
    // A full stop ends a sentence only before a space: names of files hold some.
    text.split(ends).flat_map(|part| part.split(". ")).map(|part| part.trim().trim_end_matches('.'))
}

fn is_instruction(sentence: &str) -> bool {
    const WORDS: [&str; 8] = ["must", "never", "always", "don't", "dont", "mustn't", "don’t", "mustn’t"];
    const CHINESE: [&str; 10] = ["必须", "不要", "禁止", "务必", "绝不", "总是", "始终", "一定", "不得", "千万"];
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '\'' | '’')));
    words.any(|word| WORDS.contains(&word))
        || lower.contains("do not ")
        || CHINESE.iter().any(|word| sentence.contains(word))
}

fn bounded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}

/// The literals that do not occur in a text.
pub fn missing<'a>(ledger: &'a [LedgerItem], text: &str) -> Vec<&'a LedgerItem> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ledger.iter().filter(|item| !plain.contains(&item.literal)).collect()
}

/// The text that stands for the archive: the summary, what it leaves out, and a receipt a round.
pub fn accept(
    summary: &str,
    plan: &CompactionPlan,
    ledger: &[LedgerItem],
    counter: &dyn TokenCounter,
) -> Result<String, Refusal> {
    let summary = summary.trim();
    check(summary, plan)?;
    let mut text = summary.to_owned();
    let missing = missing(ledger, summary);
    if !missing.is_empty() {
        text.push_str("\n\n## Kept Verbatim\n");
        for item in missing {
            text.push_str(&line(item));
        }
    }
    let limit = limit(plan);
    let with_receipts = format!("{text}{}", receipts(plan));
    let tokens = u64::from(counter.text(&with_receipts));
    if tokens < limit {
        return Ok(with_receipts);
    }
    // Receipts are a convenience: every message can be found by searching, too.
    let tokens = u64::from(counter.text(&text)).min(tokens);
    if tokens < limit { Ok(text) } else { Err(Refusal::TooLarge { tokens, limit }) }
}

/// What stands for the archive when no summary could be accepted: the ledger, and the receipts as far as there is room. None
/// when the ledger alone takes as much room as what it would stand for.
pub fn fallback(plan: &CompactionPlan, ledger: &[LedgerItem], counter: &dyn TokenCounter) -> Option<String> {
    let mut text = format!(
        "# Archived Session Summary\n\n{} to {}\n\nMade without a model: what had to be kept, word for word.\n",
        plan.from, plan.to
    );
    for item in ledger {
        text.push_str(&line(item));
    }
    let fits = |text: &str| u64::from(counter.text(text)) < limit(plan);
    let with_receipts = format!("{}{}", text.trim_end(), receipts(plan));
    if fits(&with_receipts) {
        return Some(with_receipts);
    }
    let text = text.trim_end().to_owned();
    fits(&text).then_some(text)
}

/// What the accepted text must stay below.
fn limit(plan: &CompactionPlan) -> u64 {
    plan.messages.iter().map(|entry| u64::from(entry.tokens)).sum::<u64>().max(FLOOR)
}

fn line(item: &LedgerItem) -> String {
    let source = item.source.map(|id| format!(" [{id}]")).unwrap_or_default();
    format!("- {}: {}{source}\n", item.kind.name(), item.literal)
}

/// A line a round: by which id its input can be brought back.
fn receipts(plan: &CompactionPlan) -> String {
    const WORDS: usize = 60;
    let inputs = plan.messages.iter().map(|entry| &entry.message).filter(|message| message.opens_round());
    let mut text = String::from("\n\n## Receipts\n`recall` brings a message back by its id.\n");
    for message in inputs {
        let id: MessageId = message.message_id;
        let words: String = bounded(&message.joined_text()).chars().take(WORDS).collect();
        let _ = writeln!(text, "- {} {words}", id.short());
    }
    text.trim_end().to_owned()
}

/// Refuses what can be no summary.
fn check(summary: &str, plan: &CompactionPlan) -> Result<(), Refusal> {
    const HOSTILE: [&str; 12] = [
        "<tool_call",
        "<function_call",
        "<invoke",
        "</session>",
        "<archived_summary",
        "</archived_summary",
        "<system-reminder",
        "<system>",
        "<|im_start|>",
        "<|im_end|>",
        "\nHuman:",
        "\nAssistant:",
    ];
    if !summary.chars().any(char::is_alphanumeric) {
        return Err(Refusal::Empty);
    }
    let lower = summary.to_lowercase();
    if let Some(mark) = HOSTILE.into_iter().find(|mark| lower.contains(&mark.to_lowercase())) {
        return Err(Refusal::Hostile(mark.trim()));
    }
    if summary.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1 {
        return Err(Refusal::Cut);
    }
    let said: String = plan
        .messages
        .iter()
        .filter(|entry| entry.message.role == Role::User)
        .map(|one| one.message.joined_text())
        .collect();
    let written = script(summary);
    if written != Script::Latin && written != script(&said) {
        return Err(Refusal::OtherLanguage);
    }
    Ok(())
}

/// The writing most letters of a text belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Script {
    Latin,
    Han,
    Other,
}

fn script(text: &str) -> Script {
    let (mut latin, mut han, mut other) = (0_usize, 0_usize, 0_usize);
    for letter in text.chars().filter(|letter| letter.is_alphabetic()) {
        match letter {
            '\u{0}'..='\u{24f}' => latin += 1,
            // A character says as much as a word of some letters.
            '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => han += 3,
            _ => other += 1,
        }
    }
    if latin >= han && latin >= other {
        Script::Latin
    } else if han >= other {
        Script::Han
    } else {
        Script::Other
    }
}

#[cfg(test)]
mod tests;
