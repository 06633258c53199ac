//! Rules about turns: the role of the first message, and which result answers which call.
//!
//! Turns are built as the service does: consecutive messages of one role become one turn. `system`
//! messages inside a conversation belong to no turn and separate none.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, string_field, type_field},
};

/// The first model that accepts `system` messages. Later families accept them as well.
const FIRST_WITH_SYSTEM: &str = "claude-opus-4-8";

/// Consecutive messages of one role, which the service treats as one.
struct Turn<'a> {
    role: &'a str,
    /// The blocks, each with the index of its message and its index in that message. A message
    /// whose content is a single string has no blocks.
    blocks: Vec<(usize, usize, &'a Value)>,
    /// True if the turn has a message before its first block whose content is a single string.
    starts_with_text: bool,
}

fn join_turns(body: &Value) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        let role = string_field(message, "role").unwrap_or_default();
        if role == "system" {
            continue;
        }
        if turns.last().is_none_or(|last| last.role != role) {
            turns.push(Turn {
                role,
                blocks: Vec::new(),
                starts_with_text: false,
            });
        }
        if let Some(turn) = turns.last_mut() {
            turn.starts_with_text |=
                turn.blocks.is_empty() && string_field(message, "content").is_some();
            turn.blocks.extend(
                array_field(message, "content")
                    .iter()
                    .enumerate()
                    .map(|(block, value)| (at, block, value)),
            );
        }
    }
    turns
}

impl<'a> Turn<'a> {
    fn call_ids(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.ids_of_blocks("tool_use", "id")
            .map(|(message, _, id)| (message, id))
    }

    fn result_ids(&self) -> impl Iterator<Item = (usize, usize, &'a str)> {
        self.ids_of_blocks("tool_result", "tool_use_id")
    }

    fn ids_of_blocks(
        &self,
        wanted: &str,
        id: &str,
    ) -> impl Iterator<Item = (usize, usize, &'a str)> {
        self.blocks
            .iter()
            .filter(move |(_, _, block)| type_field(block) == wanted)
            .filter_map(move |(message, at, block)| Some((*message, *at, string_field(block, id)?)))
    }
}

pub(super) fn check_system_role(body: &Value, _: &RequestInfo) -> Verdict {
    let model = string_field(body, "model").unwrap_or_default();
    if accepts_system_messages(model) {
        return Ok(());
    }
    match array_field(body, "messages")
        .iter()
        .position(|message| string_field(message, "role") == Some("system"))
    {
        Some(at) => Err(Problem::new(format!(
            "messages.{at}: role 'system' is not supported on this model"
        ))),
        None => Ok(()),
    }
}

/// True for a model that accepts `system` messages: Opus 4.8, and all families from generation 5
/// on.
fn accepts_system_messages(model: &str) -> bool {
    if model.starts_with(FIRST_WITH_SYSTEM) {
        return true;
    }
    let mut words = model.split('-');
    let claude = words.next() == Some("claude");
    let family = words
        .next()
        .is_some_and(|family| family.chars().all(|c| c.is_ascii_lowercase()));
    let generation = words
        .next()
        .and_then(|generation| generation.parse::<u32>().ok());
    claude && family && generation.is_some_and(|generation| (5..100).contains(&generation))
}

pub(super) fn check_system_placement(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = array_field(body, "messages");
    for (at, message) in messages.iter().enumerate() {
        let before = at
            .checked_sub(1)
            .and_then(|before| string_field(&messages[before], "role"));
        if string_field(message, "role") == Some("system") && before != Some("user") {
            let message =
                format!("messages.{at}: role 'system' must immediately follow a user message");
            return Err(Problem::new(message));
        }
    }
    Ok(())
}

pub(super) fn check_first_role(body: &Value, _: &RequestInfo) -> Verdict {
    match array_field(body, "messages")
        .first()
        .and_then(|message| string_field(message, "role"))
    {
        Some("assistant") => Err(Problem::new(
            "messages: first message must use the \"user\" role",
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_every_call_answered(body: &Value, _: &RequestInfo) -> Verdict {
    let turns = join_turns(body);
    for (at, turn) in turns.iter().enumerate() {
        let answered: HashSet<&str> = match turns.get(at + 1) {
            Some(next) => next.result_ids().map(|(_, _, id)| id).collect(),
            None => HashSet::new(),
        };
        let mut open = turn
            .call_ids()
            .filter(|(_, id)| !answered.contains(id))
            .peekable();
        if let Some((message, _)) = open.peek() {
            return Err(unanswered_calls_problem(
                *message,
                &open.map(|(_, id)| id).collect::<Vec<_>>(),
            ));
        }
    }
    Ok(())
}

fn unanswered_calls_problem(message: usize, ids: &[&str]) -> Problem {
    Problem::new(format!(
        "messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each \
         `tool_use` block must have a corresponding `tool_result` block in the next message.",
        ids.join(", ")
    ))
}

pub(super) fn check_every_result_has_call(body: &Value, _: &RequestInfo) -> Verdict {
    let turns = join_turns(body);
    for (at, turn) in turns.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| turns.get(before));
        let called: HashSet<&str> = before
            .map(|before| before.call_ids().map(|(_, id)| id).collect())
            .unwrap_or_default();
        if let Some((message, block, id)) =
            turn.result_ids().find(|(_, _, id)| !called.contains(id))
        {
            return Err(Problem::new(format!(
                "messages.{message}.content.{block}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )));
        }
    }
    Ok(())
}

pub(super) fn check_results_first(body: &Value, _: &RequestInfo) -> Verdict {
    let turns = join_turns(body);
    for pair in turns.windows(2) {
        let asking = &pair[0];
        let answering = &pair[1];
        let mut other_seen = answering.starts_with_text;
        for (_, _, block) in &answering.blocks {
            let is_result = type_field(block) == "tool_result";
            if is_result && other_seen {
                let id = string_field(block, "tool_use_id").unwrap_or_default();
                // Reported at the position of the call, as the service does.
                let message = asking
                    .call_ids()
                    .find(|(_, call)| *call == id)
                    .map_or(0, |(message, _)| message);
                return Err(unanswered_calls_problem(message, &[id]));
            }
            other_seen |= !is_result;
        }
    }
    Ok(())
}

pub(super) fn check_result_ids_unique(body: &Value, _: &RequestInfo) -> Verdict {
    for turn in join_turns(body) {
        let mut seen = HashSet::new();
        if let Some((message, block, id)) = turn.result_ids().find(|(_, _, id)| !seen.insert(*id)) {
            return Err(Problem::new(format!(
                "messages.{message}.content.{block}: each tool_use must have a single result. Found multiple \
                 `tool_result` blocks with id: {id}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_no_trailing_space(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(last) = array_field(body, "messages")
        .last()
        .filter(|last| string_field(last, "role") == Some("assistant"))
    else {
        return Ok(());
    };
    let block = array_field(last, "content")
        .last()
        .filter(|block| type_field(block) == "text");
    let end = string_field(last, "content")
        .or_else(|| block.and_then(|block| string_field(block, "text")));
    if end.is_some_and(|end| end.ends_with(char::is_whitespace)) {
        return Err(Problem::new(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}
