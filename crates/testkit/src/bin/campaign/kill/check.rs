//! Everything that must hold at the end of a case.

use std::collections::HashSet;

use haft_testkit::Recorded;
use haft_testkit::rules::Refusal;
use serde_json::Value;

use super::events::Told;
use super::export::{self, Stored, StoredCall};
use super::place::Place;
use super::process::Ended;
use super::requests;
use super::task::{self, File};

/// The outcome of a case, as seen from outside.
pub(crate) struct Story<'a> {
    pub(crate) runs: &'a [Ended],
    pub(crate) requests: Vec<Recorded>,
    pub(crate) refusals: Vec<Refusal>,
    /// The conversation as stored after some of the kills.
    pub(crate) snapshots: &'a [Value],
    pub(crate) place: &'a Place,
}

impl Story<'_> {
    pub(crate) fn check(&self) -> Result<(), String> {
        self.finished()?;
        if let Some(refusal) = self.refusals.first() {
            return Err(format!("the server refused a request: {refusal:?}"));
        }
        let export =
            export::of_only_conversation(self.place)?.ok_or("no conversation is stored")?;
        let stored = Stored(&export);
        self.all_in_one_conversation(&stored)?;
        Self::ids_are_unique(&stored)?;
        self.nothing_stored_changed(&stored)?;
        self.acknowledged_is_stored(&stored)?;
        let seen = requests::decode(&self.requests)?;
        requests::only_append(&seen)?;
        requests::are_stored(&seen, &stored.said())?;
        self.every_step_is_stored(&stored)?;
        self.effects_happened_once(&stored)?;
        self.files_are_right(&stored)
    }

    fn finished(&self) -> Result<(), String> {
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

    fn all_in_one_conversation(&self, stored: &Stored<'_>) -> Result<(), String> {
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

    fn ids_are_unique(stored: &Stored<'_>) -> Result<(), String> {
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

    /// Checks that each snapshot taken after a kill is an unchanged prefix of the stored
    /// conversation.
    fn nothing_stored_changed(&self, stored: &Stored<'_>) -> Result<(), String> {
        for snapshot in self.snapshots {
            let mut now = stored.messages().iter();
            for before in Stored(snapshot).messages() {
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

    fn acknowledged_is_stored(&self, stored: &Stored<'_>) -> Result<(), String> {
        let told = Told::by(self.runs);
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

    /// Checks that each reply of the script is stored once and in order, and that at most one call
    /// per kill failed.
    fn every_step_is_stored(&self, stored: &Stored<'_>) -> Result<(), String> {
        let replies = stored.replies();
        let in_order = |(index, (text, _)): (usize, &(String, Vec<&str>))| {
            text.starts_with(&format!("Step {index}."))
        };
        if replies.len() != task::REPLIES || !replies.iter().enumerate().all(in_order) {
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
            .filter(|call| !succeeded(call))
            .collect();
        if failed.len() > kills {
            return Err(format!(
                "{kills} kills, but {} calls failed: {failed:?}",
                failed.len()
            ));
        }
        Ok(())
    }

    fn effects_happened_once(&self, stored: &Stored<'_>) -> Result<(), String> {
        let calls = stored.calls();
        for command in 1..=task::COMMANDS {
            let trace = task::effects(command);
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
                .read(&trace)
                .map_or(0, |text| text.lines().count());
            let expected = if succeeded(call) { 1..=1 } else { 0..=1 };
            if !expected.contains(&lines) {
                return Err(format!(
                    "command {command} had its effect {lines} times; its result: {:?}",
                    call.results
                ));
            }
        }
        Ok(())
    }

    fn files_are_right(&self, stored: &Stored<'_>) -> Result<(), String> {
        let calls = stored.calls();
        for File {
            name,
            before,
            after,
            tool,
        } in [task::EDITED, task::WRITTEN]
        {
            let done = calls
                .iter()
                .find(|call| call.name == tool)
                .is_some_and(succeeded);
            let content = self.place.read(name);
            // An interrupted edit is either applied completely or not at all.
            if content.as_deref() != Some(after) && (done || content.as_deref() != before) {
                return Err(format!(
                    "`{name}` holds {content:?}; `{tool}` succeeded: {done}"
                ));
            }
        }
        self.nothing_half_written()
    }

    fn nothing_half_written(&self) -> Result<(), String> {
        let numbers = 1..=task::COMMANDS;
        let traces = numbers.flat_map(|command| [task::begun(command), task::effects(command)]);
        let ours = [task::EDITED.name, task::WRITTEN.name, task::READ.0].map(str::to_owned);
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

fn succeeded(call: &StoredCall<'_>) -> bool {
    call.results
        .first()
        .is_some_and(|result| result["status"] == "success")
}
