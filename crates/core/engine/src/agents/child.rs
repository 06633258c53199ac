//! Opens one sub-agent, runs it within its time limit, and reports its outcome.
//!
//! Invariant: every sub-agent gets a report, even if it crashes, and no work in a copy of the
//! project is lost: it is merged, or kept in a place that the report names.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use haft_context::check_subagent_role;
use haft_model::{Client, ModelError};
use haft_project::agents::{AgentDefinition, AgentTools};
use haft_store::Conversation;
use haft_tool::{AgentReport, WorkPlace};
use haft_tools::{CopyRequest, MergeReport, ProjectCopy};
use haft_types::{ConversationId, Metadata, ModelSpec, Outcome, Prompt, TurnResult, prompt};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::child_start::{ChildStart, failure_report};
use super::evidence::collect_evidence;
use super::hub::AgentMessage;
use super::parent::{Inherited, ParentLink, ParentSession, child_namespace};
use super::relay::{Relay, mark_timeout};
use crate::budget::limits::TurnLimits;
use crate::error::Notice;
use crate::session::Session;
use crate::session::config::{
    Leftovers, ModelServices, ProjectRules, PromptSettings, Roles, Services, SessionConfig,
    TaskSettings, ToolSettings,
};
use crate::session::model_opener::SideModels;
use crate::session::open::{OpenError, make_title};
use crate::stored_state::ChildConversation;

/// The instructions on how a sub-agent finishes its task.
const COMPLETION: Prompt = prompt!("../../prompts/subagent_completion");

/// The reason why a sub-agent was not started.
struct ChildRefusal {
    code: &'static str,
    why: String,
}

impl ChildRefusal {
    fn new(code: &'static str, why: &dyn Display) -> Self {
        Self {
            code,
            why: why.to_string(),
        }
    }
}

/// Runs a sub-agent to its end. This function implements [`ParentSession::run_child`].
pub(super) fn run_child(
    parent: Arc<ParentSession>,
    start: ChildStart,
) -> BoxFuture<'static, AgentReport> {
    Box::pin(run_in_task(parent, start))
}

/// Runs a sub-agent in a separate Tokio task, so that a panic becomes a report.
async fn run_in_task(parent: Arc<ParentSession>, start: ChildStart) -> AgentReport {
    let name = start.assignment.name.clone();
    let conversation = start.conversation.as_str().to_owned();
    if start.cancel.is_cancelled() {
        let report = failure_report(
            &name,
            "cancelled",
            "it did not begin: the call was cancelled",
        );
        return AgentReport {
            outcome: Outcome::Aborted,
            ..report
        };
    }
    let task = tokio::spawn(async move { Box::pin(open_and_run(&parent, start)).await });
    match task.await {
        Ok(Ok(report)) => report,
        Ok(Err(ChildRefusal { code, why })) => failure_report(&name, code, &why),
        Err(error) => {
            let report = failure_report(
                &name,
                "crashed",
                &format!("it crashed ({error}); this is a bug in haft"),
            );
            AgentReport {
                conversation: Some(conversation),
                ..report
            }
        }
    }
}

async fn open_and_run(
    parent: &Arc<ParentSession>,
    start: ChildStart,
) -> Result<AgentReport, ChildRefusal> {
    let time = start.time;
    let cancel = start.cancel.clone();
    let name = start.assignment.name.clone();
    let task = start.assignment.task.clone();
    let call_id = start.call_id.clone();
    let history = Arc::clone(&start.history);
    let (mut session, worktree) = Box::pin(open_child(parent, start)).await?;
    let out_of_time = Arc::new(OnceLock::new());
    let mut relay = Relay {
        events: parent.events.clone(),
        name: name.clone(),
        parent: parent.conversation.clone(),
        call_id: call_id.clone(),
        model: session.model().full_name(),
        task: task.clone(),
        out_of_time: Arc::clone(&out_of_time),
    };
    let result = {
        let mut running = std::pin::pin!(session.run(Some(task), &mut relay, &cancel));
        tokio::select! {
            report = &mut running => report.result,
            () = tokio::time::sleep(time) => {
                // Waits for an orderly end of the turn, so that the conversation can be continued.
                let _ = out_of_time.set(time);
                cancel.cancel();
                running.await.result
            }
        }
    };
    let mut report = build_report(
        &name,
        &session,
        mark_timeout(result, out_of_time.get().copied()),
    );
    if let Some(note) = describe_unread_messages(&session.close_mailbox()) {
        // The caller of a completed agent reads only the answer.
        let read = if report.outcome == Outcome::Completed {
            &mut report.answer
        } else {
            &mut report.message
        };
        read.push_str(&note);
    }
    if let Some(worktree) = worktree {
        let _alone = parent.merge_lock.lock().await;
        let outcome = report.outcome;
        let merged =
            spawn_blocking(move || worktree.merge_and_remove(outcome, history.as_ref(), &call_id))
                .await;
        let MergeReport {
            text,
            changes,
            conflict,
        } = merged.unwrap_or_else(|error| MergeReport {
            text: format!("Its work could not be merged ({error}); this is a bug in haft."),
            ..MergeReport::default()
        });
        (report.merged, report.changes) = (text, changes);
        if conflict {
            "not_merged".clone_into(&mut report.code);
        }
    }
    Ok(report)
}

/// Describes the messages that the agent did not read before it ended; `None` if there are none.
fn describe_unread_messages(messages: &[AgentMessage]) -> Option<String> {
    if messages.is_empty() {
        return None;
    }
    let from: BTreeSet<_> = messages
        .iter()
        .map(|message| format!("`{}`", message.from))
        .collect();
    let from = from.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!(
        " [It ended without reading {} messages from {from}.]",
        messages.len()
    ))
}

fn build_report(name: &str, session: &Session, result: TurnResult) -> AgentReport {
    let TurnResult {
        outcome,
        code,
        message,
        text,
        turns,
        usage,
        cost,
        ..
    } = result;
    let go_on = "name it again with this `conversation` to go on";
    let message = match outcome {
        Outcome::Exhausted if code == "timeout" => {
            format!("{}; {go_on}.", message.trim_end_matches('.'))
        }
        Outcome::Aborted => format!("Cancelled; {go_on}."),
        Outcome::Waiting if code == "question" => {
            format!("It asks a question; {go_on}, with the answer as its task.")
        }
        Outcome::Exhausted | Outcome::Waiting | Outcome::Completed | Outcome::Failed => message,
    };
    AgentReport {
        name: name.to_owned(),
        outcome,
        code,
        message,
        answer: text,
        conversation: Some(session.conversation().id.as_str().to_owned()),
        evidence: collect_evidence(session.history()),
        merged: String::new(),
        changes: Vec::new(),
        turns,
        usage,
        cost,
    }
}

async fn open_child(
    parent: &Arc<ParentSession>,
    start: ChildStart,
) -> Result<(Session, Option<Box<dyn ProjectCopy>>), ChildRefusal> {
    let ChildStart {
        agent,
        assignment,
        running_as,
        mailbox,
        conversation,
        call_id,
        waiting,
        model,
        turns,
        ..
    } = start;
    let file = parent.config.knowledge.paths.display_path(&agent.path);
    check_subagent_role(&agent.name, Some(&agent.role), &file)
        .map_err(|error| ChildRefusal::new("no_role", &error))?;
    let (client, notice) = open_agent_model(parent, &agent, model)?;
    if client.spec().price.is_none() && parent.config.task.limits.needs_price() {
        return Err(ChildRefusal::new(
            "no_price",
            &ModelError::NoPrice(client.spec().full_name()),
        ));
    }
    let earlier = match &assignment.conversation {
        Some(wanted) => Some(find_earlier_conversation(parent, &agent.name, wanted).await?),
        None => None,
    };
    let mut config = child_config(
        &parent.config,
        &agent,
        &running_as,
        client.spec().clone(),
        turns,
    );
    config.notices.extend(notice);
    let place = assignment.place.unwrap_or(if agent.worktree {
        WorkPlace::Worktree
    } else {
        WorkPlace::Project
    });
    let id = earlier.as_ref().map_or(&conversation, |stored| &stored.id);
    let worktree = match place {
        WorkPlace::Project => None,
        WorkPlace::Worktree => {
            Some(
                open_project_copy(parent, id)
                    .await
                    .map_err(|why| ChildRefusal {
                        code: "worktree",
                        why,
                    })?,
            )
        }
    };
    let mut services = child_services(parent, client);
    if let Some(worktree) = &worktree {
        let swept = worktree.cleanup_notes().iter().cloned();
        config.notices.extend(swept.map(|message| Notice {
            code: "worktree_removed",
            message,
            failed: false,
        }));
        config.folders.workspace = worktree.workspace(&parent.config.folders.workspace);
        config.prompt.environment.cwd = config.folders.workspace.cwd.display().to_string();
        let folders = std::iter::once(&config.folders.workspace.root)
            .chain(&config.folders.workspace.extra)
            .cloned()
            .collect();
        services.running = Arc::new(parent.running.for_conversation_in(folders));
    }
    let link = ParentLink {
        inherited: Inherited::from_parent(parent, &config, id, place),
        mailbox: mailbox.unwrap_or_else(|| parent.shared.hub.register(&running_as, &agent.role)),
        waiting,
    };
    let (conversation, resumed) = if let Some(stored) = earlier {
        (stored, true)
    } else {
        let child = ChildConversation {
            conversation: conversation.clone(),
            agent: agent.name.clone(),
            call_id: call_id.clone(),
        };
        parent
            .children
            .add(child)
            .await
            .map_err(|error| ChildRefusal::new("store", &error))?;
        (
            new_conversation(
                parent,
                &agent.name,
                &assignment.task,
                conversation,
                &call_id,
            ),
            false,
        )
    };
    let failed = |error: OpenError| ChildRefusal::new("open", &error);
    let session = Box::pin(Session::open_subagent(
        config,
        services,
        conversation,
        resumed,
        link,
    ))
    .await
    .map_err(failed)?;
    Ok((session, worktree))
}

/// Opens the agent's model. An agent file made for another program may name a model that is not
/// available; the agent then runs on the model of the starting session, and a notice reports it.
fn open_agent_model(
    parent: &ParentSession,
    agent: &AgentDefinition,
    starter: String,
) -> Result<(Client, Option<Notice>), ChildRefusal> {
    let named = agent
        .model
        .as_ref()
        .map(|name| parent.shared.opener.open(name).map_err(|why| (name, why)));
    let notice = match named {
        Some(Ok(client)) => return Ok((client, None)),
        Some(Err(why)) => Some(why),
        None => None,
    };
    let opener = &parent.shared.opener;
    let model = opener.subagent_model.clone().unwrap_or(starter);
    let client = opener.open(&model);
    let client = client.map_err(|why| {
        ChildRefusal::new(
            "model",
            &format!("its model `{model}` cannot be used: {why}"),
        )
    })?;
    let notice = notice.map(|(name, why)| {
        let message = format!(
            "the agent `{}` runs on `{model}`: `{name}` cannot be used ({why})",
            agent.name
        );
        Notice {
            code: "agent_model",
            message,
            failed: false,
        }
    });
    Ok((client, notice))
}

/// Creates the copy of the project that a sub-agent works in.
async fn open_project_copy(
    parent: &Arc<ParentSession>,
    conversation: &ConversationId,
) -> Result<Box<dyn ProjectCopy>, String> {
    let Some(copies) = parent.shared.copies.clone() else {
        return Err("it works in a copy of the project, and this agent makes none".to_owned());
    };
    let parent = Arc::clone(parent);
    let conversation = conversation.clone();
    // git fails if another git process holds its locks.
    let _alone = parent.merge_lock.lock().await;
    let config = parent.config.clone();
    let running = Arc::clone(&parent.running);
    let now = parent.shared.clock.now().into();
    let made = spawn_blocking(move || {
        copies.open_copy(&CopyRequest {
            conversation: &conversation,
            workspace: &config.folders.workspace,
            trusted: config.knowledge.paths.trusted,
            folder: &config.folders.worktrees,
            environment: &config.tools.child_environment,
            running: &running,
            now,
        })
    });
    made.await.unwrap_or_else(|error| {
        Err(format!(
            "its git worktree cannot be made ({error}); this is a bug in haft"
        ))
    })
}

/// Returns the starting session's configuration, overridden by the settings of the agent's file.
fn child_config(
    parent: &SessionConfig,
    agent: &AgentDefinition,
    name: &str,
    model: ModelSpec,
    turns: Option<u32>,
) -> SessionConfig {
    let offered = match &agent.tools {
        AgentTools::All => vec!["*".to_owned()],
        AgentTools::Only(names) if names.is_empty() => vec!["none".to_owned()],
        AgentTools::Only(names) => names.clone(),
    };
    SessionConfig {
        model,
        agent: name.to_owned(),
        prompt: PromptSettings {
            roles: Roles {
                main: Some(parent.safety.masker.mask(&agent.role).into_owned()),
                system_prompt: agent.system_prompt.clone(),
                completion: Some(COMPLETION.text(parent.policy.prompt_language).to_owned()),
                append: parent.prompt.roles.append.clone(),
                sections: parent.prompt.roles.sections.clone(),
            },
            environment: parent.prompt.environment.clone(),
            rules: if agent.include_rules {
                ProjectRules::Include
            } else {
                ProjectRules::Exclude
            },
            focus_files: Vec::new(),
        },
        tools: ToolSettings {
            offered,
            ..parent.tools.clone()
        },
        task: TaskSettings {
            limits: TurnLimits {
                turns,
                ..parent.task.limits
            },
            goal: false,
            answer: None,
            leftovers: Leftovers::End,
            // The inherited permit asks the user.
            approver: None,
            attach_port: None,
        },
        notices: Vec::new(),
        ..parent.clone()
    }
}

fn child_services(parent: &ParentSession, client: Client) -> Services {
    Services {
        shared: Arc::clone(&parent.shared),
        models: ModelServices {
            client,
            fallbacks: VecDeque::new(),
            summarizers: SideModels::default(),
            describers: SideModels::default(),
            titlers: SideModels::default(),
        },
        running: Arc::new(parent.running.for_conversation()),
    }
}

/// Returns the conversation of an earlier run, or an error if it does not belong to `agent`.
async fn find_earlier_conversation(
    parent: &ParentSession,
    agent: &str,
    wanted: &str,
) -> Result<Conversation, ChildRefusal> {
    let unknown = || {
        let why = format!("`{agent}` has no conversation `{wanted}` that was started from here");
        ChildRefusal::new("unknown_conversation", &why)
    };
    let child = parent
        .children
        .find(wanted)
        .filter(|child| child.agent == agent)
        .ok_or_else(unknown)?;
    let stored = parent
        .shared
        .store
        .get(&child.conversation)
        .await
        .map_err(|error| ChildRefusal::new("store", &error))?;
    stored.ok_or_else(unknown)
}

fn new_conversation(
    parent: &ParentSession,
    agent: &str,
    task: &str,
    id: ConversationId,
    call_id: &str,
) -> Conversation {
    let now = parent.shared.clock.now();
    let title = parent
        .config
        .safety
        .masker
        .mask(&make_title(task))
        .into_owned();
    let about: [(&str, Value); 3] = [
        ("parent", json!(parent.conversation)),
        ("call_id", json!(call_id)),
        ("agent", json!(agent)),
    ];
    Conversation {
        name: format!("{agent}: {title}"),
        id,
        namespace: child_namespace(&parent.config.namespace),
        description: String::new(),
        metadata: Metadata::from_iter(about.map(|(key, value)| (key.to_owned(), value))),
        created_at: now,
        updated_at: now,
        messages: 0,
        revisions: 0,
    }
}
