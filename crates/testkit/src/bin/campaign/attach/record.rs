//! The lines that the clients of a case sent and received, compared with what was stored and done.

use std::collections::{BTreeMap, BTreeSet};

use haft_testkit::support::Tally;
use serde_json::Value;

use super::client::ReceivedLine;
use crate::kill::export::export_only_conversation;
use crate::kill::workspace::Workspace;

/// The facts that the lines of a case state.
#[derive(Default)]
pub(super) struct CaseRecord {
    session: usize,
    /// The ids of the messages that were sent.
    sent: BTreeSet<String>,
    confirmed: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// The answers that won, by session and id of the question, as each client received them.
    answers: BTreeMap<(usize, String), BTreeSet<String>>,
    /// The calls that were asked about, by session and id of the question.
    asked: BTreeMap<(usize, String), String>,
    /// The calls that began to run, with the session.
    began: BTreeMap<String, usize>,
    /// The calls whose start a client of the current session has read, by client and call.
    began_at_client: BTreeSet<(usize, String)>,
    /// Facts that must not occur.
    mistakes: Vec<String>,
    late_answers: u64,
}

impl CaseRecord {
    pub(super) fn begin_session(&mut self) {
        self.session += 1;
        self.began_at_client.clear();
    }

    /// Records that another client has taken a client's place.
    pub(super) fn replace_client(&mut self, client: usize) {
        self.began_at_client.retain(|(of, _)| *of != client);
    }

    pub(super) fn send(&mut self, line: &Value) {
        if line["type"] == "user" {
            self.sent.extend(line["id"].as_str().map(str::to_owned));
        }
    }

    /// Records a line. The lines of one client are in the order of the session. Two clients are read
    /// in turns, so the order of lines of different clients says nothing about the session.
    pub(super) fn receive(&mut self, client: usize, line: &ReceivedLine) {
        let value = &line.value;
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let question = (self.session, text("id"));
        if line.is_type("user") && value["id"].is_string() {
            self.confirmed.insert(text("id"));
        } else if line.is_type("refused") && text("id").starts_with("message-") {
            self.refused.insert(text("id"));
        } else if line.is_type("refused") && value["id"].is_string() {
            self.late_answers += 1;
        } else if line.is_type("refused") {
            self.mistakes.push(format!("a line was refused: {value}"));
        } else if line.is_type("approval_request") {
            let call = text("call_id");
            let began = self.began.get(&call);
            if let Some(session) = began.filter(|session| **session != self.session) {
                self.mistakes.push(format!(
                    "call {call} began in session {session} and is asked about in session {}",
                    self.session
                ));
            }
            if self.began_at_client.contains(&(client, call.clone())) {
                self.mistakes.push(format!(
                    "client {client} is asked about call {call} after the call began"
                ));
            }
            self.asked.insert(question, call);
        } else if line.is_type("approval_answered") {
            self.answers
                .entry(question)
                .or_default()
                .insert(value.to_string());
        } else if line.is_type("tool_call") && value["phase"] == "running" {
            let session = self.session;
            self.began_at_client.insert((client, text("id")));
            let first = *self.began.entry(text("id")).or_insert(session);
            if first != session {
                self.mistakes.push(format!(
                    "call {} ran in the sessions {first} and {session}",
                    text("id")
                ));
            }
        }
    }

    /// Compares the record with the stored conversation and the files with effects.
    pub(super) fn check(&self, place: &Workspace, effects: &[String]) -> Result<(), String> {
        if let Some(mistake) = self.mistakes.first() {
            return Err(mistake.clone());
        }
        if let Some((question, answers)) = self.answers.iter().find(|(_, all)| all.len() > 1) {
            return Err(format!("question {question:?} has {answers:?}"));
        }
        let exported = export_only_conversation(place)?.ok_or("there is no conversation")?;
        let messages: Vec<String> = exported["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .collect();
        for id in &self.sent {
            let stored = messages.iter().filter(|one| one.contains(id)).count();
            let is_right = match (self.confirmed.contains(id), self.refused.contains(id)) {
                (true, false) => stored == 1,
                (false, true) => stored == 0,
                (false, false) => stored <= 1,
                (true, true) => false,
            };
            if !is_right {
                return Err(format!(
                    "`{id}` is stored {stored} times; confirmed: {}, refused: {}",
                    self.confirmed.contains(id),
                    self.refused.contains(id)
                ));
            }
        }
        let answers = messages
            .iter()
            .filter(|one| one.contains("message-"))
            .count();
        if answers != 1 {
            return Err(format!("the question of the model has {answers} answers"));
        }
        for file in effects {
            let lines = place.read_file(file).unwrap_or_default().lines().count();
            let is_uncertain = messages
                .iter()
                .any(|one| one.contains("interrupted") && one.contains("\"role\":\"tool\""));
            if lines > 1 || (lines == 0 && !is_uncertain) {
                return Err(format!("`{file}` has {lines} lines"));
            }
        }
        Ok(())
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        tally.add("answers that won", self.answers.len() as u64);
        tally.add(
            "answers that came second and were refused",
            self.late_answers,
        );
        tally.add("messages confirmed", self.confirmed.len() as u64);
        tally.add("messages refused", self.refused.len() as u64);
        let unknown = self.sent.len() - self.confirmed.union(&self.refused).count();
        tally.add("messages that a kill left unconfirmed", unknown as u64);
    }
}
