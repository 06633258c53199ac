//! Whether haft may start a program of its own accord: a hook, or a server.
//!
//! Invariant: nothing of a project starts unasked whose files are not those that were trusted, nor
//! anything that no sandbox holds; where nobody can be asked, it does not start.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use haft_project::{Footprint, Level};
use haft_types::{ContentHash, SandboxLayer};
use serde_json::json;
use tokio::sync::Mutex;

use crate::approval::{Approval, ApprovalReply, Approver};
use crate::names;
use crate::permit::DecisionState;

/// Decides on what starts without a call, for one session.
pub struct StartGuard {
    approver: Option<Arc<dyn Approver>>,
    shared: Arc<DecisionState>,
    /// The files of the project that may run, as they were when it was trusted.
    trusted: BTreeMap<String, ContentHash>,
    /// What was decided, by what was asked.
    settled: Mutex<HashMap<String, bool>>,
}

/// What would start.
pub struct StartRequest<'a> {
    /// What asks for it: `hook`, or a server by its name.
    pub name: &'a str,
    /// What would run: a line for a shell, or a program and its arguments.
    pub lines: Vec<String>,
    /// Whose it is.
    pub level: Level,
    /// The project's root.
    pub root: &'a Path,
    /// Where it would run.
    pub cwd: &'a Path,
    /// What would hold it in.
    pub layer: SandboxLayer,
    /// Whether somebody can be asked at this moment.
    pub can_ask: bool,
}

/// It may not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRefusal {
    /// Why.
    pub reason: String,
    /// Whether the same was refused before.
    pub again: bool,
}

impl StartGuard {
    /// Asks this person, when it is its turn; `trusted` are the files that were there when the
    /// project was trusted.
    pub fn new(
        approver: Option<Arc<dyn Approver>>,
        shared: Arc<DecisionState>,
        trusted: BTreeMap<String, ContentHash>,
    ) -> Self {
        Self {
            approver,
            shared,
            trusted,
            settled: Mutex::default(),
        }
    }

    /// Whether it may start. Somebody is asked where that is needed, once for the same files.
    pub async fn check(&self, request: &StartRequest<'_>) -> Result<(), StartRefusal> {
        let Some((reason, state)) = self.doubt(request) else {
            return Ok(());
        };
        let subject = request.lines.join(" ");
        let key = format!("{} {subject} {state}", request.name);
        let mut settled = self.settled.lock().await;
        let refused = |again| {
            Err(StartRefusal {
                reason: reason.clone(),
                again,
            })
        };
        match (
            settled.get(&key),
            self.approver.as_ref().filter(|_| request.can_ask),
        ) {
            (Some(true), _) => Ok(()),
            (Some(false), _) => refused(true),
            (None, None) => {
                // Somebody who can be asked later still is.
                let again = settled.insert(format!("{key} told"), false).is_some();
                refused(again)
            }
            (None, Some(approver)) => {
                let approval = Approval {
                    agent: names::MAIN.to_owned(),
                    tool: request.name.to_owned(),
                    arguments: json!({ "command": subject }),
                    subject,
                    reason: reason.clone(),
                    leaves_sandbox: false,
                    parts: Vec::new(),
                    remember: Vec::new(),
                };
                let _alone = self.shared.turn_to_ask().await;
                let yes = matches!(
                    approver.ask(&approval).await,
                    ApprovalReply::Once | ApprovalReply::Always
                );
                settled.insert(key, yes);
                if yes { Ok(()) } else { refused(false) }
            }
        }
    }

    /// Why it cannot just start, and a text that changes with what is wrong.
    fn doubt(&self, request: &StartRequest<'_>) -> Option<(String, String)> {
        let of_project = match request.level {
            Level::Project => true,
            Level::User | Level::Repository => false,
        };
        if of_project {
            let found = Footprint::of_lines(request.root, request.cwd, &request.lines);
            let changed: Vec<_> = found
                .files()
                .iter()
                .filter(|(name, hash)| self.trusted.get(*name) != Some(hash))
                .collect();
            if !changed.is_empty() || !found.is_whole() {
                let names: Vec<_> = changed
                    .iter()
                    .map(|(name, _)| format!("`{name}`"))
                    .collect();
                let names = if names.is_empty() {
                    "what it runs".to_owned()
                } else {
                    names.join(", ")
                };
                return Some((
                    format!("{names} changed since the folder was trusted"),
                    format!("{changed:?}"),
                ));
            }
        }
        let reason = match (request.layer, of_project) {
            (SandboxLayer::Namespace, _) | (SandboxLayer::Landlock, false) => return None,
            (SandboxLayer::Landlock, true) => {
                "there are no namespaces here, so it could write to `.git` and the like"
            }
            (SandboxLayer::None, _) => "there is no sandbox here to hold it",
        };
        Some((reason.to_owned(), String::new()))
    }
}
