//! The ledger: facts that must survive an archive, found without a model.

use std::collections::{BTreeSet, HashMap};

use haft_types::{Message, Role, ShortId, ToolStatus};

use crate::build::input::own_words;
use crate::build::rounds::is_user_speech;
use crate::reduce::compaction::CompactionPlan;
use crate::reduce::failing_lines::{bounded, cut, failing_lines};
use crate::reduce::superseded::CallSubject;

/// Maximum characters kept of a sentence by the user.
const LONGEST_SENTENCE: usize = 1_000;

/// The reason why a fact must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerKind {
    /// The user said that something must, must never or must always be so.
    Instruction,
    /// A file was changed.
    FileChanged,
    /// A command failed and has not succeeded since.
    Failing,
    /// An open TODO item.
    OpenTodo,
    /// A running process.
    Running,
    /// A message that the user named by its id.
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

/// A fact that must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerItem {
    pub kind: LedgerKind,
    /// The text that must occur in the accepted summary, letter for letter except for white space.
    pub literal: String,
    /// The message that the fact comes from, if any.
    pub source: Option<ShortId>,
}

impl LedgerItem {
    /// Formats the fact as a list item.
    pub(super) fn line(&self) -> String {
        let source = self.source.map(|id| format!(" [{id}]")).unwrap_or_default();
        format!("- {}: {}{source}\n", self.kind.name(), self.literal)
    }
}

/// Facts that the archived messages do not contain.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenWork<'a> {
    /// Open TODO items.
    pub todos: &'a [String],
    /// Running processes.
    pub running: &'a [String],
}

/// Collects the facts that must survive, in the order in which they came up.
pub fn ledger(plan: &CompactionPlan, standing: OpenWork<'_>) -> Vec<LedgerItem> {
    let mut items = Vec::new();
    let short: BTreeSet<_> = plan
        .messages
        .iter()
        .map(|entry| entry.message.message_id.short())
        .collect();
    for message in plan
        .messages
        .iter()
        .map(|entry| &entry.message)
        .filter(|message| is_user_speech(message))
    {
        let source = Some(message.message_id.short());
        let text = message.joined_text();
        let text = own_words(&text);
        let said = |one: &str| LedgerItem {
            kind: LedgerKind::Instruction,
            literal: cut(one, LONGEST_SENTENCE),
            source,
        };
        items.extend(sentences(text).filter(|one| is_instruction(one)).map(said));
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let quoted =
            words.filter(|word| word.parse::<ShortId>().is_ok_and(|id| short.contains(&id)));
        items.extend(quoted.map(|word| LedgerItem {
            kind: LedgerKind::Quoted,
            literal: bounded(word),
            source,
        }));
    }
    files_and_failures(plan, &mut items);
    let item = |kind| {
        move |text: &String| LedgerItem {
            kind,
            literal: bounded(text),
            source: None,
        }
    };
    items.extend(standing.todos.iter().map(item(LedgerKind::OpenTodo)));
    items.extend(standing.running.iter().map(item(LedgerKind::Running)));
    let mut seen = BTreeSet::new();
    items.retain(|item| !item.literal.is_empty() && seen.insert((item.kind, item.literal.clone())));
    items
}

/// Returns the facts whose literals do not occur in a text.
pub fn missing<'a>(ledger: &'a [LedgerItem], text: &str) -> Vec<&'a LedgerItem> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ledger
        .iter()
        .filter(|item| !plain.contains(&item.literal))
        .collect()
}

/// Adds the changed files and the failing commands.
fn files_and_failures(plan: &CompactionPlan, items: &mut Vec<LedgerItem>) {
    let messages = || plan.messages.iter().map(|entry| &entry.message);
    let calls: HashMap<_, _> = messages()
        .flat_map(Message::tool_calls)
        .map(|call| (call.id.as_str(), call))
        .collect();
    let mut failing = Vec::new();
    for message in messages().filter(|message| message.role == Role::Tool) {
        for result in message.tool_results() {
            let call = calls.get(result.tool_call_id.as_str()).copied();
            let status = result.envelope.status;
            let source = Some(message.message_id.short());
            let code = result
                .envelope
                .data
                .get("exit_code")
                .and_then(serde_json::Value::as_i64);
            let failed = status == ToolStatus::Error || code.is_some_and(|code| code != 0);
            for subject in CallSubject::all(call, result, &message.metadata) {
                match subject {
                    // A failed command may have changed files before it failed.
                    CallSubject::Edit { paths }
                        if status != ToolStatus::Error || code.is_some() =>
                    {
                        let changed = |literal| LedgerItem {
                            kind: LedgerKind::FileChanged,
                            literal,
                            source,
                        };
                        items.extend(paths.into_iter().map(changed));
                    }
                    CallSubject::Run { command, cwd } => {
                        // Only the newest run of a command counts.
                        failing.retain(|(earlier, _)| *earlier != (command.clone(), cwd.clone()));
                        if failed {
                            let lines = failing_lines(&result.envelope.text);
                            let literals = [bounded(&command)].into_iter().chain(lines);
                            let item = |literal| LedgerItem {
                                kind: LedgerKind::Failing,
                                literal,
                                source,
                            };
                            failing.push(((command, cwd), literals.map(item).collect::<Vec<_>>()));
                        }
                    }
                    CallSubject::Edit { .. } | CallSubject::Read { .. } => {}
                }
            }
        }
    }
    items.extend(failing.into_iter().flat_map(|(_, items)| items));
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| matches!(c, '\n' | '!' | '?' | '。' | '！' | '？' | ';' | '；');
    // A full stop ends a sentence only before a space, because file names contain dots.
    text.split(ends)
        .flat_map(|part| part.split(". "))
        .map(|part| part.trim().trim_end_matches('.'))
}

fn is_instruction(sentence: &str) -> bool {
    const WORDS: [&str; 8] = [
        "must",
        "never",
        "always",
        "don't",
        "dont",
        "mustn't",
        "don’t",
        "mustn’t",
    ];
    const CHINESE: [&str; 10] = [
        "必须", "不要", "禁止", "务必", "绝不", "总是", "始终", "一定", "不得", "千万",
    ];
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’')));
    words.any(|word| WORDS.contains(&word))
        || lower.contains("do not ")
        || CHINESE.iter().any(|word| sentence.contains(word))
}
