//! Checks everything that must hold at the end of a case.

use std::collections::HashSet;

use haft_testkit::Recorded;
use haft_testkit::rules::Refusal;
use serde_json::Value;

use super::events::Acknowledged;
use super::export::{self, StoredCall, StoredConversation};
use super::process::EndedRun;
use super::requests;
use super::task::{self, File};
use super::workspace::Workspace;

/// The outcome of a case, which can be checked without access to haft's internals.
pub(crate) struct CaseOutcome<'a> {
    pub(crate) runs: &'a [EndedRun],
    pub(crate) requests: Vec<Recorded>,
    pub(crate) refusals: Vec<Refusal>,
    /// The conversation as it was stored after some of the kills.
    pub(crate) snapshots: &'a [Value],
    pub(crate) place: &'a Workspace,
}

impl CaseOutcome<'_> {
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_finished()?;
        if let Some(refusal) = self.refusals.first() {
            return Err(format!("the server refused a request: {refusal:?}"));
        }
        let export =
            export::export_only_conversation(self.place)?.ok_or("no conversation is stored")?;
        let stored = StoredConversation(&export);
        self.check_one_conversation(&stored)?;
        Self::check_ids_unique(&stored)?;
        self.check_snapshots_unchanged(&stored)?;
        self.check_acknowledged_stored(&stored)?;
        let seen = requests::decode_requests(&self.requests)?;
        requests::check_append_only(&seen)?;
        requests::check_stored(&seen, &stored.to_parts())?;
        self.check_steps_stored(&stored)?;
        self.check_effects_once(&stored)?;
        self.check_files(&stored)
    }

    fn check_finished(&self) -> Result<(), String> {
        let last = self.runs.last().ok_or("nothing was run")?;
        let outcome = last
            .events
            .last()
            .map(|event| (&event["type"], &event["outcome"]));
        match (last.code, outcome) {
            (Some(0), Some((kind, outcome))) if kind == "result" && outcome == "completed" => {
                Ok(())
            }
            (code, _) => Err(format!(
                "the last run ended with {code:?}: {} {}",
                last.stderr,
                last.last_event()
            )),
        }
    }

    fn check_one_conversation(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        let id = &stored.0["id"];
        match self
            .runs
            .iter()
            .flat_map(|run| &run.events)
            .find(|event| event["conversation_id"] != *id)
        {
            Some(event) => Err(format!(
                "conversation {id} is stored, an event tells of another: {event}"
            )),
            None => Ok(()),
        }
    }

    fn check_ids_unique(stored: &StoredConversation<'_>) -> Result<(), String> {
        let mut ids = HashSet::new();
        for message in stored.messages() {
            if !ids.insert(message["message_id"].as_str()) {
                return Err(format!(
                    "message id {} is stored twice",
                    message["message_id"]
                ));
            }
        }
        let calls = stored.calls();
        let mut ids = HashSet::new();
        for StoredCall { id, results, .. } in &calls {
            if !ids.insert(*id) {
                return Err(format!("call {id} is stored twice"));
            }
            if results.len() != 1 {
                return Err(format!("call {id} has {} results", results.len()));
            }
        }
        match stored.result_count() {
            count if count == calls.len() => Ok(()),
            count => Err(format!(
                "{count} results are stored for {} calls",
                calls.len()
            )),
        }
    }

    /// Checks that each snapshot taken after a kill is the unchanged beginning of the conversation
    /// as finally stored.
    fn check_snapshots_unchanged(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        for snapshot in self.snapshots {
            let mut now = stored.messages().iter();
            for before in StoredConversation(snapshot).messages() {
                let after = now.next();
                if after != Some(before) {
                    return Err(format!(
                        "a stored message changed: it was {before}, it is {after:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_acknowledged_stored(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        let told = Acknowledged::from_runs(self.runs);
        let replies = stored.replies();
        let calls = stored.calls();
        for acked in &told.replies {
            let same =
                |(text, calls): &&(String, Vec<&str>)| *text == acked.text && *calls == acked.calls;
            match replies.iter().filter(same).count() {
                1 => {}
                count => {
                    return Err(format!(
                        "the reply {:?} was shown and is stored {count} times",
                        acked.text
                    ));
                }
            }
        }
        for acked in &told.results {
            let call = calls.iter().find(|call| call.id == acked.call);
            let kept = call.and_then(|call| call.results.first());
            if !kept
                .is_some_and(|kept| kept["text"] == *acked.text && kept["status"] == *acked.status)
            {
                return Err(format!(
                    "the result {:?} of {} was shown, stored is {kept:?}",
                    acked.text, acked.call
                ));
            }
            if told
                .results
                .iter()
                .filter(|other| other.call == acked.call)
                .count()
                > 1
            {
                return Err(format!("the result of {} was shown twice", acked.call));
            }
        }
        Ok(())
    }

    /// Checks that each reply of the script is stored exactly once and in order, and that there is
    /// at most one failed call per kill.
    fn check_steps_stored(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        let replies = stored.replies();
        let in_order = |(index, (text, _)): (usize, &(String, Vec<&str>))| {
            text.starts_with(&format!("Step {index}."))
        };
        if replies.len() != task::REPLY_COUNT || !replies.iter().enumerate().all(in_order) {
            let texts: Vec<&str> = replies
                .iter()
                .map(|(text, _)| text.get(..8).unwrap_or(text))
                .collect();
            return Err(format!("the replies stored are {texts:?}"));
        }
        let kills = self.runs.iter().filter(|run| run.code.is_none()).count();
        let failed: Vec<_> = stored
            .calls()
            .into_iter()
            .filter(|call| !call_succeeded(call))
            .collect();
        if failed.len() > kills {
            return Err(format!(
                "{kills} kills, but {} calls failed: {failed:?}",
                failed.len()
            ));
        }
        Ok(())
    }

    fn check_effects_once(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        let calls = stored.calls();
        for command in 1..=task::COMMAND_COUNT {
            let trace = task::effect_file_name(command);
            let holds = |call: &&StoredCall<'_>| {
                call.arguments["command"]
                    .as_str()
                    .is_some_and(|line| line.contains(&trace))
            };
            let call = calls
                .iter()
                .find(holds)
                .ok_or_else(|| format!("command {command} is not stored"))?;
            let lines = self
                .place
                .read_file(&trace)
                .map_or(0, |text| text.lines().count());
            let expected = if call_succeeded(call) { 1..=1 } else { 0..=1 };
            if !expected.contains(&lines) {
                return Err(format!(
                    "command {command} had its effect {lines} times; its result: {:?}",
                    call.results
                ));
            }
        }
        Ok(())
    }

    fn check_files(&self, stored: &StoredConversation<'_>) -> Result<(), String> {
        let calls = stored.calls();
        for File {
            name,
            before,
            after,
            tool,
        } in [task::EDITED_FILE, task::WRITTEN_FILE]
        {
            let done = calls
                .iter()
                .find(|call| call.name == tool)
                .is_some_and(call_succeeded);
            let content = self.place.read_file(name);
            // An interrupted edit is either applied completely or not at all.
            if content.as_deref() != Some(after) && (done || content.as_deref() != before) {
                return Err(format!(
                    "`{name}` holds {content:?}; `{tool}` succeeded: {done}"
                ));
            }
        }
        self.check_no_leftover_files()
    }

    fn check_no_leftover_files(&self) -> Result<(), String> {
        let numbers = 1..=task::COMMAND_COUNT;
        let traces = numbers.flat_map(|command| {
            [
                task::start_file_name(command),
                task::effect_file_name(command),
            ]
        });
        let ours = [
            task::EDITED_FILE.name,
            task::WRITTEN_FILE.name,
            task::READ_FILE.0,
        ]
        .map(str::to_owned);
        let known: HashSet<String> = traces.chain(ours).collect();
        let folder = self.place.project();
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !known.contains(&name) {
                return Err(format!("`{name}` was left in the project"));
            }
        }
        Ok(())
    }
}

fn call_succeeded(call: &StoredCall<'_>) -> bool {
    call.results
        .first()
        .is_some_and(|result| result["status"] == "success")
}
