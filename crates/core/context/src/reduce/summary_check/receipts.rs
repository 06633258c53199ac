//! Receipts: every line of a summary names its source messages, and a list at the end names all
//! messages.
//!
//! ```text
//! model    - src/a.rs – parser fixed [1a2b3c4d, 99999999]        99999999 is no message of the archive and is removed
//! model    - the user wants tabs                                 no id: those of the most similar round and message are added
//! end      - 1a2b3c4d fix the parser: 5e6f7a8b read_file src/a.rs · …
//! ```
//!
//! Invariant: every id left in such brackets names a message of the archive.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use haft_types::{Message, Role, ShortId, ToolCall};

use crate::reduce::compaction::CompactionPlan;
use crate::reduce::failing_lines::bound_line;
use crate::reduce::superseded::CallSubject;

/// The number of characters of a message that are compared with lines of the summary.
const MAX_COMPARED_CHARS: usize = 4_000;

/// The messages of an archive, indexed by their words.
pub(super) struct ArchiveIndex<'a> {
    rounds: Vec<Vec<&'a Message>>,
    known: BTreeSet<ShortId>,
    /// For each word, the indices of the rounds and messages in which it occurs.
    words: HashMap<String, BTreeSet<(usize, usize)>>,
    /// The summary's line with the time span of the archive, which needs no sources.
    span: String,
}

impl<'a> ArchiveIndex<'a> {
    pub(super) fn new(plan: &'a CompactionPlan) -> Self {
        let mut rounds: Vec<Vec<&Message>> = Vec::new();
        for message in plan.messages.iter().map(|entry| &entry.message) {
            match rounds.last_mut() {
                Some(round) if !message.opens_round() => round.push(message),
                Some(_) | None => rounds.push(vec![message]),
            }
        }
        let mut found: HashMap<String, BTreeSet<(usize, usize)>> = HashMap::new();
        for (number, round) in rounds.iter().enumerate() {
            for (index, message) in round.iter().enumerate() {
                for word in comparable_words(&comparable_text(message)) {
                    found.entry(word).or_default().insert((number, index));
                }
            }
        }
        let known = plan
            .messages
            .iter()
            .map(|entry| entry.message.message_id.short_id())
            .collect();
        Self {
            rounds,
            known,
            words: found,
            span: format!("{} to {}", plan.from, plan.to),
        }
    }

    /// Adds the ids of the source messages to every line of the summary that has text.
    pub(super) fn add_sources(&self, summary: &str) -> String {
        let mut signed = String::with_capacity(summary.len() * 5 / 4);
        let mut fenced: Option<String> = None;
        for line in summary.lines() {
            let fence = line.trim_start().starts_with("```");
            match &mut fenced {
                // Code stays unchanged; its ids follow the closing fence.
                Some(code) if fence => {
                    let ids = self.guess_sources(code);
                    signed.extend([line, "\n", &format_ids(&ids), "\n"]);
                    fenced = None;
                }
                Some(code) => {
                    code.push_str(line);
                    code.push('\n');
                    signed.extend([line, "\n"]);
                }
                None if fence => {
                    fenced = Some(String::new());
                    signed.extend([line, "\n"]);
                }
                None => signed.extend([&self.add_line_sources(line), "\n"]),
            }
        }
        signed.trim_end().to_owned()
    }

    fn add_line_sources(&self, line: &str) -> String {
        let (plain, ids) = self.split_off_ids(line);
        let says = plain.trim_matches(|c: char| !c.is_alphanumeric());
        let empty = says.is_empty()
            || says.eq_ignore_ascii_case("none")
            || plain.trim_start().starts_with('#');
        if empty || plain.trim() == self.span {
            return plain;
        }
        let ids = if ids.is_empty() {
            self.guess_sources(&plain)
        } else {
            ids
        };
        format!("{} {}", plain.trim_end(), format_ids(&ids))
    }

    /// Returns the line without the ids in brackets, and those of these ids that belong to an
    /// archived message.
    fn split_off_ids(&self, line: &str) -> (String, Vec<ShortId>) {
        let mut plain = String::new();
        let mut ids = Vec::new();
        let mut rest = line;
        while let Some((before, behind)) = rest.split_once('[') {
            match behind
                .split_once(']')
                .filter(|(_, after)| !after.starts_with('('))
            {
                Some((inside, after)) if let Some(named) = parse_ids(inside) => {
                    plain.push_str(before.trim_end());
                    let new = named
                        .into_iter()
                        .filter(|id| self.known.contains(id) && !ids.contains(id));
                    ids.extend(new.collect::<Vec<_>>());
                    rest = after;
                }
                Some(_) | None => {
                    plain.push_str(before);
                    plain.push('[');
                    rest = behind;
                }
            }
        }
        plain.push_str(rest);
        (plain, ids)
    }

    /// Returns the probable sources of a line: the archived message most similar to it, preceded by
    /// the first message in the round of that message.
    fn guess_sources(&self, line: &str) -> Vec<ShortId> {
        let mut scores: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for places in comparable_words(line)
            .iter()
            .filter_map(|word| self.words.get(word))
        {
            for place in places {
                // A word that occurs everywhere counts little.
                *scores.entry(*place).or_default() += 1.0 / places.len() as f64;
            }
        }
        let best =
            scores
                .into_iter()
                .fold(None::<((usize, usize), f64)>, |best, next| match best {
                    Some(best) if best.1 >= next.1 => Some(best),
                    Some(_) | None => Some(next),
                });
        let id_at = |round: usize, index: usize| {
            self.rounds
                .get(round)?
                .get(index)
                .map(|one| one.message_id.short_id())
        };
        let ids = match best {
            Some(((round, index), _)) => [id_at(round, 0), id_at(round, index)],
            None => [id_at(0, 0), id_at(self.rounds.len().saturating_sub(1), 0)],
        };
        let mut ids: Vec<_> = ids.into_iter().flatten().collect();
        ids.dedup();
        ids
    }

    /// Formats a list of all archived messages by round.
    pub(super) fn format_list(&self, detail: ReceiptDetail) -> String {
        // The stored text names no tool, because the next run may not offer it. The system message
        // explains how to recall a message.
        let mut text = String::from("\n\n## Receipts\nEvery message is kept under its id.\n");
        for round in &self.rounds {
            let [first, rest @ ..] = round.as_slice() else {
                continue;
            };
            let opening: String = bound_line(&first.joined_text()).chars().take(60).collect();
            let others = match detail {
                ReceiptDetail::Subjects => describe_subjects(rest),
                ReceiptDetail::Ids => rest
                    .iter()
                    .map(|message| message.message_id.short_id().to_string())
                    .collect(),
                ReceiptDetail::Rounds => Vec::new(),
            };
            let (colon, gap) = if others.is_empty() {
                ("", "")
            } else {
                (": ", " · ")
            };
            let gap = if detail == ReceiptDetail::Ids {
                " "
            } else {
                gap
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "- {} {opening}{colon}{}",
                first.message_id.short_id(),
                others.join(gap)
            );
        }
        text.trim_end().to_owned()
    }
}

/// The level of detail in which the archived messages are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiptDetail {
    /// The id and the subject of each message are listed.
    Subjects,
    /// The id of each message is listed.
    Ids,
    /// Only the first message of each round is listed.
    Rounds,
}

/// Describes each message by its id and subject; a call and its result share one line.
fn describe_subjects(messages: &[&Message]) -> Vec<String> {
    let calls: HashMap<&str, (&Message, &ToolCall)> = messages
        .iter()
        .flat_map(|one| {
            one.tool_calls()
                .map(|call| (call.id.as_str(), (*one, call)))
        })
        .collect();
    let mut named = HashSet::new();
    let mut lines = Vec::new();
    for message in messages {
        let id = message.message_id.short_id();
        match message.role {
            Role::Tool => {
                for result in message.tool_results() {
                    let call = calls.get(result.tool_call_id.as_str());
                    let about = CallSubject::from_call_and_result(
                        call.map(|(_, call)| *call),
                        result,
                        &message.metadata,
                    );
                    let about: Vec<_> = about.iter().map(CallSubject::format_label).collect();
                    let about: String = bound_line(&about.join(" ")).chars().take(60).collect();
                    // The call may contain text that the result lacks, such as the content of a
                    // written file.
                    let asked = call
                        .map(|(asked, _)| asked.message_id.short_id())
                        .filter(|asked| named.insert(*asked));
                    let asked = asked.map(|asked| format!("{asked} ")).unwrap_or_default();
                    lines.push(
                        format!("{asked}{id} {} {about}", result.name)
                            .trim_end()
                            .to_owned(),
                    );
                }
            }
            Role::Assistant if message.tool_calls().next().is_some() => {}
            Role::User | Role::Assistant | Role::System | Role::Summary => {
                let start: String = bound_line(&message.joined_text())
                    .chars()
                    .take(40)
                    .collect();
                lines.push(format!("{id} {start}").trim_end().to_owned());
            }
        }
    }
    lines
}

fn format_ids(ids: &[ShortId]) -> String {
    let ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    format!("[{}]", ids.join(", "))
}

/// Parses the ids between brackets; `None` if there is any other text.
fn parse_ids(inside: &str) -> Option<Vec<ShortId>> {
    let parts = inside
        .split([',', ';', ' ', '/'])
        .map(|part| part.trim_matches(['`', '#']))
        .filter(|one| !one.is_empty());
    let ids: Option<Vec<_>> = parts
        .filter(|part| {
            !matches!(
                part.to_ascii_lowercase().as_str(),
                "message" | "messages" | "id" | "ids" | "and"
            )
        })
        .map(|part| part.parse().ok())
        .collect();
    ids.filter(|ids| !ids.is_empty())
}

/// Returns the part of a message's text that is compared with lines of the summary.
fn comparable_text(message: &Message) -> String {
    let mut text = message.joined_text();
    text.extend(
        message
            .tool_calls()
            .flat_map(|call| [" ", call.arguments.as_str()]),
    );
    text.extend(
        message
            .tool_results()
            .flat_map(|result| [" ", result.envelope.text.as_str()]),
    );
    text.chars().take(MAX_COMPARED_CHARS).collect()
}

/// Returns the words of a text that help to find its source.
fn comparable_words(text: &str) -> BTreeSet<String> {
    const MIN_WORD_CHARS: usize = 4;
    let words = text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')))
        .map(|word| word.trim_matches(['.', '-', '/']));
    words
        .filter(|word| word.chars().count() >= MIN_WORD_CHARS)
        .map(str::to_lowercase)
        .collect()
}
