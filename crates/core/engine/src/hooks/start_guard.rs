//! Decides whether haft may start a program without a tool call, for a hook or a server.
//!
//! Invariant: a program starts only with the user's approval if it belongs to the project and its
//! files have changed since the project was trusted, or if no sandbox confines it. Without a user
//! to ask, such a program does not start.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use haft_project::external::quote_for_shell;
use haft_project::{Footprint, Level};
use haft_types::{ContentHash, SandboxLayer};
use serde_json::json;
use tokio::sync::Mutex;

use crate::calls::approval::{Approval, ApprovalReply, Approver, SubjectKind};
use crate::calls::permit::DecisionState;
use crate::names;

/// Decides which programs a session may start without a tool call.
pub struct StartGuard {
    approver: Option<Arc<dyn Approver>>,
    shared: Arc<DecisionState>,
    /// The hashes of the project's runnable files when the project was trusted.
    trusted: BTreeMap<String, ContentHash>,
    /// The decisions so far, by the text that identifies the request.
    decisions: Mutex<HashMap<String, bool>>,
}

/// A program that is about to start.
pub struct StartRequest<'a> {
    /// The requester: `hook`, or the name of a server.
    pub name: &'a str,
    /// The command: a shell command line, or a program and its arguments.
    pub lines: Vec<String>,
    /// The level of the configuration that names the program.
    pub level: Level,
    /// The project's root.
    pub root: &'a Path,
    /// The working directory of the program.
    pub cwd: &'a Path,
    /// The sandbox layer that would confine the program.
    pub layer: SandboxLayer,
    /// True if the user can be asked at this moment.
    pub can_ask: bool,
}

impl StartRequest<'_> {
    /// Returns the command as one line. Words are quoted like in a shell, so that different
    /// commands never give equal lines.
    fn command_line(&self) -> String {
        match self.lines.as_slice() {
            [line] => line.clone(),
            words => words
                .iter()
                .map(|word| quote_for_shell(word))
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// The refusal to start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartRefusal {
    /// The reason, as a phrase for an error message.
    pub reason: String,
    /// True if the guard has already refused an equal request.
    pub again: bool,
}

impl StartGuard {
    /// Creates a guard that asks `approver`. `trusted` contains the hashes of the project's
    /// runnable files as of the time when the project was trusted.
    pub fn new(
        approver: Option<Arc<dyn Approver>>,
        shared: Arc<DecisionState>,
        trusted: BTreeMap<String, ContentHash>,
    ) -> Self {
        Self {
            approver,
            shared,
            trusted,
            decisions: Mutex::default(),
        }
    }

    /// Checks whether a program may start. Asks the user if needed, at most once for each state of
    /// the program's files.
    pub async fn check(&self, request: &StartRequest<'_>) -> Result<(), StartRefusal> {
        let Some((reason, state)) = self.reason_to_ask(request) else {
            return Ok(());
        };
        let subject = request.command_line();
        let key = format!("{} {subject} {state}", request.name);
        let mut settled = self.decisions.lock().await;
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
                // The user is asked if a later request allows it.
                let again = settled.insert(format!("{key} told"), false).is_some();
                refused(again)
            }
            (None, Some(approver)) => {
                let approval = Approval {
                    agent: names::MAIN_AGENT.to_owned(),
                    call_id: None,
                    tool: request.name.to_owned(),
                    arguments: json!({ "command": subject }),
                    subject,
                    subject_kind: SubjectKind::Text,
                    reason: reason.clone(),
                    leaves_sandbox: false,
                    parts: Vec::new(),
                    remember: Vec::new(),
                };
                let _alone = self.shared.lock_prompt().await;
                let yes = matches!(
                    approver.ask(&approval).await,
                    ApprovalReply::Once | ApprovalReply::Always
                );
                settled.insert(key, yes);
                if yes { Ok(()) } else { refused(false) }
            }
        }
    }

    /// Returns the reason why the program needs approval, and a text that identifies the state of
    /// the program's files. Returns `None` if the program may start without approval.
    fn reason_to_ask(&self, request: &StartRequest<'_>) -> Option<(String, String)> {
        let of_project = match request.level {
            Level::Project => true,
            Level::User | Level::Repository => false,
        };
        if of_project {
            let found = Footprint::read_files_named_by(request.root, request.cwd, &request.lines);
            let changed: Vec<_> = found
                .files()
                .iter()
                .filter(|(name, hash)| self.trusted.get(*name) != Some(hash))
                .collect();
            if !changed.is_empty() || !found.is_complete() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(words: &[&str]) -> String {
        let request = StartRequest {
            name: "hook",
            lines: words.iter().map(|word| (*word).to_owned()).collect(),
            level: Level::User,
            root: Path::new("/p"),
            cwd: Path::new("/p"),
            layer: SandboxLayer::None,
            can_ask: true,
        };
        request.command_line()
    }

    #[test]
    fn command_line_quotes_words() {
        for (words, line) in [
            (&["make && rm x"][..], "make && rm x"),
            (&["sh", "-c", "rm -rf ~"], "sh -c 'rm -rf ~'"),
            (&["a", "b c"], "a 'b c'"),
            (&["a b", "c"], "'a b' c"),
            (&["a", "", "it's\n"], "a '' 'it'\\''s\n'"),
        ] {
            assert_eq!(command_line(words), line);
        }
    }
}
