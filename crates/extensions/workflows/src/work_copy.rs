//! Runs a session in a copy of the project, and merges the changes back.

use std::path::PathBuf;
use std::sync::Arc;

use haft_engine::{Notice, Services, Session, SessionConfig};
use haft_tool::{Access, CallName, ChangeRecords, Workspace};
use haft_tools::{CopyRequest, MergeReport, ProjectCopy};
use haft_types::{ConversationId, Envelope, Outcome};
use tokio::task::spawn_blocking;

/// The tool name under which the merge of a copy is recorded, so that it can be undone like a tool
/// call.
const MERGE_CALL: &str = "worktree";

/// The copy of the project in which a session works.
pub(crate) struct WorkCopy {
    copy: Box<dyn ProjectCopy>,
    /// The folders of the original project.
    project: Workspace,
    private: Vec<PathBuf>,
    changes: Arc<dyn ChangeRecords>,
}

impl WorkCopy {
    /// Creates a copy of the project, or reuses the existing copy with this name, and changes
    /// `config` so that the session works in the copy.
    pub(crate) async fn open(
        name: &ConversationId,
        config: &mut SessionConfig,
        services: &mut Services,
    ) -> Result<Self, String> {
        let Some(copies) = services.shared.copies.clone() else {
            return Err("it works in a copy of the project, and this agent makes none".to_owned());
        };
        let project = config.folders.workspace.clone();
        let conversation = name.clone();
        let running = Arc::clone(&services.running);
        let environment = Arc::clone(&config.tools.child_environment);
        let workspace = project.clone();
        let folder = config.folders.worktrees.clone();
        let trusted = config.knowledge.paths.trusted;
        let now = services.shared.clock.now().into();
        let made = spawn_blocking(move || {
            copies.open_copy(&CopyRequest {
                conversation: &conversation,
                workspace: &workspace,
                trusted,
                folder: &folder,
                environment: &environment,
                running: &running,
                now,
            })
        });
        let copy = made
            .await
            .map_err(|error| error.to_string())
            .and_then(|made| made)?;
        let swept = copy.cleanup_notes().iter().cloned();
        config.notices.extend(swept.map(|message| Notice {
            code: "worktree_removed",
            message,
            failed: false,
        }));
        let workspace = copy.workspace(&project);
        let folders = std::iter::once(&workspace.root)
            .chain(&workspace.extra)
            .cloned()
            .collect();
        config.prompt.environment.cwd = workspace.cwd.display().to_string();
        config.folders.workspace = workspace;
        services.running = Arc::new(services.running.for_conversation_in(folders));
        let private = config.folders.private.clone();
        let changes = Arc::clone(&services.shared.changes);
        Ok(Self {
            copy,
            project,
            private,
            changes,
        })
    }

    /// Merges the changes into the project if the session completed its work. The merge can be
    /// undone in the session's conversation. The copy is removed unless changes would be lost.
    pub(crate) async fn merge_changes(self, session: &Session, outcome: Outcome) -> MergeReport {
        let conversation = session.conversation().id.clone();
        let Some(message_id) = session
            .history()
            .last()
            .map(|entry| entry.message.message_id)
        else {
            return MergeReport::default();
        };
        let watch = self
            .changes
            .open_record(&conversation, &self.project, &self.private);
        let call = CallName {
            message_id,
            call_id: MERGE_CALL.to_owned(),
            tool: MERGE_CALL.to_owned(),
        };
        let recorded = watch.begin_call(call, Access::Write).await;
        let history = recorded.history();
        let copy = self.copy;
        let merged =
            spawn_blocking(move || copy.merge_and_remove(outcome, history.as_ref(), MERGE_CALL))
                .await;
        let merged = merged.unwrap_or_else(|error| MergeReport {
            text: format!("Its work could not be merged ({error}); this is a bug in haft."),
            conflict: true,
            ..MergeReport::default()
        });
        drop(
            recorded
                .finish_call(Envelope::success(merged.text.clone()).into())
                .await,
        );
        merged
    }
}
