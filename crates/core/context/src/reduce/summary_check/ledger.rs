//! The ledger: facts that must survive an archive, found without a model.

use std::collections::{BTreeSet, HashMap};

use haft_types::{Message, Role, ShortId, ToolStatus};

use crate::build::mentions::user_text;
use crate::build::rounds::is_from_user;
use crate::reduce::compaction::CompactionPlan;
use crate::reduce::failing_lines::{bound_line, cut_to_line, find_failing_lines};
use crate::reduce::superseded::CallSubject;

/// The maximum number of characters kept of a sentence that the user wrote.
const MAX_SENTENCE_CHARS: usize = 1_000;

/// The reason why a summary must contain a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerKind {
    /// The user demanded that something be done, never be done, or always be done.
    Instruction,
    /// A file was changed.
    FileChanged,
    /// A command failed and has not succeeded since.
    Failing,
    /// A TODO item is open.
    OpenTodo,
    /// A process is running.
    Running,
    /// The user referred to a message by its id.
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

/// A fact that a summary must contain.
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
    pub(super) fn format_line(&self) -> String {
        let source = self.source.map(|id| format!(" [{id}]")).unwrap_or_default();
        format!("- {}: {}{source}\n", self.kind.name(), self.literal)
    }
}

/// The open work at the time of the archive, which cannot be read from the archived messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenWork<'a> {
    /// The open TODO items.
    pub todos: &'a [String],
    /// Descriptions of the running processes.
    pub running: &'a [String],
}

/// Collects the facts that a summary of the archive must contain, in the order in which they came
/// up.
pub fn collect_ledger(plan: &CompactionPlan, standing: OpenWork<'_>) -> Vec<LedgerItem> {
    let mut items = Vec::new();
    let short: BTreeSet<_> = plan
        .messages
        .iter()
        .map(|entry| entry.message.message_id.short_id())
        .collect();
    for message in plan
        .messages
        .iter()
        .map(|entry| &entry.message)
        .filter(|message| is_from_user(message))
    {
        let source = Some(message.message_id.short_id());
        let text = message.joined_text();
        let text = user_text(&text);
        let said = |one: &str| LedgerItem {
            kind: LedgerKind::Instruction,
            literal: cut_to_line(one, MAX_SENTENCE_CHARS),
            source,
        };
        items.extend(
            split_sentences(text)
                .filter(|one| is_instruction(one))
                .map(said),
        );
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        let quoted =
            words.filter(|word| word.parse::<ShortId>().is_ok_and(|id| short.contains(&id)));
        items.extend(quoted.map(|word| LedgerItem {
            kind: LedgerKind::Quoted,
            literal: bound_line(word),
            source,
        }));
    }
    add_files_and_failures(plan, &mut items);
    let item = |kind| {
        move |text: &String| LedgerItem {
            kind,
            literal: bound_line(text),
            source: None,
        }
    };
    items.extend(standing.todos.iter().map(item(LedgerKind::OpenTodo)));
    items.extend(standing.running.iter().map(item(LedgerKind::Running)));
    let mut seen = BTreeSet::new();
    items.retain(|item| !item.literal.is_empty() && seen.insert((item.kind, item.literal.clone())));
    items
}

/// Returns those facts in `ledger` whose literals do not occur in `text`.
pub fn find_missing<'a>(ledger: &'a [LedgerItem], text: &str) -> Vec<&'a LedgerItem> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    ledger
        .iter()
        .filter(|item| !plain.contains(&item.literal))
        .collect()
}

/// Adds the files that were changed and the commands that last failed.
fn add_files_and_failures(plan: &CompactionPlan, items: &mut Vec<LedgerItem>) {
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
            let source = Some(message.message_id.short_id());
            let code = result
                .envelope
                .data
                .get("exit_code")
                .and_then(serde_json::Value::as_i64);
            let failed = status == ToolStatus::Error || code.is_some_and(|code| code != 0);
            for subject in CallSubject::from_call_and_result(call, result, &message.metadata) {
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
                            let lines = find_failing_lines(&result.envelope.text);
                            let literals = [bound_line(&command)].into_iter().chain(lines);
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

fn split_sentences(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| matches!(c, '\n' | '!' | '?' | '。' | '！' | '？' | ';' | '；');
    // A full stop ends a sentence only before a space, because file names contain dots.
    text.split(ends)
        .flat_map(|part| part.split(". "))
        .map(|part| part.trim().trim_end_matches('.'))
}

fn is_instruction(sentence: &str) -> bool {
    const INSTRUCTION_WORDS: [&str; 8] = [
        "must",
        "never",
        "always",
        "don't",
        "dont",
        "mustn't",
        "don’t",
        "mustn’t",
    ];
    const CHINESE_INSTRUCTION_WORDS: [&str; 10] = [
        "必须", "不要", "禁止", "务必", "绝不", "总是", "始终", "一定", "不得", "千万",
    ];
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’')));
    words.any(|word| INSTRUCTION_WORDS.contains(&word))
        || lower.contains("do not ")
        || CHINESE_INSTRUCTION_WORDS
            .iter()
            .any(|word| sentence.contains(word))
}
