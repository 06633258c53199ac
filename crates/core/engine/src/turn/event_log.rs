//! Writes the events of a turn to haft's log.
//!
//! Invariant: a log line contains only names, paths, codes, and numbers. Prompts, replies,
//! arguments, results, and texts of servers and hooks are never logged, at any level. The match on
//! events is exhaustive, so that a new kind of event is not logged before its loggable parts are
//! chosen.

use std::time::Duration;

use haft_project::FileProblem;
use haft_types::{
    CompactionPhase, ConversationId, EventBody, Outcome, SubagentPhase, TaskPhase, ToolStatus,
    TurnResult,
};
use tracing::{debug, error, info, warn};

use crate::budget::meter::to_millis;

/// The maximum length, in bytes, of a logged name that a model chose.
const MAX_NAME_CHARS: usize = 64;

/// The codes of notices whose text haft writes itself: it contains files, settings, models, and
/// numbers. Other notices and errors repeat text of a model, a server, or a hook, so only their
/// code is logged.
const LOGGABLE_NOTICE_CODES: [&str; 24] = [
    "agent_tools",
    "context_warning",
    "defaults_by_model",
    "defaults_changed",
    "defaults_in_view",
    "defaults_small_windows",
    "document",
    "hooks",
    "hooks_confined",
    "image_left_out",
    "mcp_server",
    "model_role",
    "nothing_changed",
    "project_policy",
    "quote",
    "rag",
    "recovered",
    "recovery_failed",
    "spill_failed",
    "too_many_calls",
    "untrusted",
    "web",
    "worker",
    "worktree_removed",
];

/// The codes of notices that report a failure, which are logged as warnings.
const FAILURE_CODES: [&str; 4] = [
    "image_left_out",
    "permissions",
    "recovery_failed",
    "spill_failed",
];

/// The codes of errors, besides [`LOGGABLE_NOTICE_CODES`], after which the turn goes on. They are
/// logged as warnings; other errors end a turn.
const PASSING_ERROR_CODES: [&str; 6] = [
    "active_context",
    "fallback",
    "hook",
    "stored_state",
    "summary_model",
    "vision",
];

/// Details of a call's run that its result does not contain.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallRun {
    pub(crate) ran: Duration,
    /// The programs in the call's command line.
    pub(crate) programs: Vec<String>,
}

/// Logs one event of an agent's turn. `run` contains the details of the call if the event is an
/// [`EventBody::ToolResult`]; it is `None` if the call did not run.
pub(crate) fn log_event(
    conversation: &ConversationId,
    agent: &str,
    body: &EventBody,
    run: Option<&CallRun>,
) {
    match body {
        EventBody::Conversation {
            resumed,
            model,
            cwd,
            sandbox,
            name: _,
        } => {
            info!(%conversation, agent, model, cwd, resumed, "turn started");
            if let Some(sandbox) = sandbox {
                let reasons = sandbox.reasons.join("; ");
                info!(layer = %sandbox.layer, reasons, "sandbox chosen");
            }
        }
        EventBody::ToolResult {
            id,
            name,
            status,
            error,
            text: _,
        } => {
            let code = error.as_ref().map(|error| error.code.as_str());
            log_call(
                agent,
                loggable_name(name),
                loggable_name(id),
                *status,
                code,
                run,
            );
        }
        EventBody::Window {
            tokens,
            window,
            pruned_tokens,
            round,
        } => {
            debug!(
                agent,
                tokens, window, pruned_tokens, round, "request measured"
            );
        }
        EventBody::Reminders { index, kinds } => {
            let kinds = kinds.join(", ");
            debug!(agent, index, kinds, "reminders placed");
        }
        EventBody::PrefixBreak {
            cause,
            tokens,
            cost,
            index,
            forecast: _,
            owner: _,
            message: _,
            message_id: _,
        } => {
            info!(agent, cause, tokens, cost, index, "cached prefix broken");
        }
        EventBody::Pruning {
            step,
            tokens,
            message: _,
        } => info!(agent, step, tokens, "context pruned"),
        EventBody::Compaction {
            phase,
            rounds,
            message: _,
        } => match phase {
            CompactionPhase::Started => info!(agent, rounds, "compaction started"),
            CompactionPhase::Finished => info!(agent, rounds, "compaction finished"),
            CompactionPhase::Failed => warn!(agent, rounds, "compaction failed"),
        },
        EventBody::Notice { code, message } => {
            let reason = loggable_text(code, message);
            if FAILURE_CODES.contains(&code.as_str()) {
                warn!(agent, code, reason, "notice shown");
            } else {
                info!(agent, code, reason, "notice shown");
            }
        }
        EventBody::Error { code, message } => {
            let reason = loggable_text(code, message);
            let passes = |codes: &[&str]| codes.contains(&code.as_str());
            if passes(&LOGGABLE_NOTICE_CODES) || passes(&PASSING_ERROR_CODES) {
                warn!(agent, code, reason, "error shown");
            } else {
                error!(agent, code, reason, "error shown");
            }
        }
        EventBody::Question {
            options,
            question: _,
        } => info!(agent, options = options.len(), "question asked"),
        EventBody::Plan {
            options,
            response: _,
        } => info!(agent, options = options.len(), "plan presented"),
        EventBody::FileChanged { path, change } => {
            info!(agent, path, change = variant_name(change), "file changed");
        }
        EventBody::BackgroundTask {
            id,
            phase,
            exit_code,
            command,
            output: _,
            message: _,
        } => {
            let programs = haft_permission::find_program_names(command).join(", ");
            match phase {
                TaskPhase::Started | TaskPhase::Finished => {
                    info!(
                        agent,
                        task = id,
                        phase = variant_name(phase),
                        exit_code,
                        programs,
                        "background task"
                    );
                }
                TaskPhase::Failed | TaskPhase::Killed | TaskPhase::Lost => {
                    warn!(
                        agent,
                        task = id,
                        phase = variant_name(phase),
                        exit_code,
                        programs,
                        "background task"
                    );
                }
            }
        }
        EventBody::Subagent {
            phase,
            name,
            model,
            result,
            parent: _,
            call_id: _,
            task: _,
        } => match (phase, result) {
            (SubagentPhase::Started, _) => info!(agent, name, model, "sub-agent started"),
            (SubagentPhase::Finished, result) => {
                let outcome = result.as_ref().map(|result| result.outcome.name());
                info!(agent, name, model, outcome, "sub-agent finished");
            }
        },
        EventBody::Result(result) => log_turn_end(conversation, agent, result),
        // Requests and retries are logged by the client that sends them, with their durations. The
        // other events contain only text, or repeat another event.
        EventBody::Usage { .. }
        | EventBody::Retry { .. }
        | EventBody::Budget { .. }
        | EventBody::Text { .. }
        | EventBody::Thinking { .. }
        | EventBody::ToolCall { .. }
        | EventBody::ToolProgress { .. }
        | EventBody::Completion { .. } => {}
    }
}

fn log_call(
    agent: &str,
    tool: &str,
    call: &str,
    status: ToolStatus,
    code: Option<&str>,
    run: Option<&CallRun>,
) {
    let ms = run.map(|run| to_millis(run.ran));
    let programs = run
        .filter(|run| !run.programs.is_empty())
        .map(|run| run.programs.join(", "));
    match status {
        ToolStatus::Success => info!(
            agent,
            tool,
            call,
            ms,
            programs,
            outcome = "success",
            "tool call"
        ),
        ToolStatus::Partial => info!(
            agent,
            tool,
            call,
            ms,
            programs,
            outcome = "partial",
            code,
            "tool call"
        ),
        ToolStatus::Error => warn!(
            agent,
            tool,
            call,
            ms,
            programs,
            outcome = "error",
            code,
            "tool call"
        ),
    }
}

fn log_turn_end(conversation: &ConversationId, agent: &str, result: &TurnResult) {
    let TurnResult {
        outcome,
        code,
        turns,
        duration_ms: ms,
        usage,
        cost,
        ..
    } = result;
    let input = usage.all_input();
    let output = usage.output;
    let cost = cost.map(|cost| cost.total);
    let name = outcome.name();
    match outcome {
        Outcome::Completed => {
            info!(%conversation, agent, outcome = name, code, turns, ms, input, output, cost, "turn ended");
        }
        Outcome::Waiting | Outcome::Aborted | Outcome::Exhausted => {
            warn!(%conversation, agent, outcome = name, code, turns, ms, input, output, cost, "turn ended");
        }
        Outcome::Failed => {
            error!(%conversation, agent, outcome = name, code, turns, ms, input, output, cost, "turn ended");
        }
    }
}

/// Returns the name of a variant in lower case, as in serialized events.
fn variant_name(variant: &impl std::fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// Logs the reasons why files were skipped.
pub(crate) fn log_problems(message: &'static str, problems: &[FileProblem]) {
    for FileProblem { path, line, what } in problems {
        warn!(path = %path.display(), line, reason = haft_text::redact_quoted(what), "{message}");
    }
}

/// Returns the part of a message that may be logged, or `None` if only its code may be logged.
fn loggable_text(code: &str, message: &str) -> Option<String> {
    LOGGABLE_NOTICE_CODES
        .contains(&code)
        .then(|| haft_text::redact_quoted(message))
}

/// Returns a name that a model chose, or a placeholder if the text is not a plain name.
fn loggable_name(name: &str) -> &str {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/|".contains(c);
    if name.len() <= MAX_NAME_CHARS && name.chars().all(is_name) {
        name
    } else {
        "[not a name]"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loggable_removes_text_from_hooks_servers_and_files() {
        assert_eq!(loggable_text("unauthorized", "the server says no"), None);
        assert_eq!(loggable_text("hook_message", "a hook says hello"), None);
        assert_eq!(
            loggable_text("document", "a.md: \"text\" is no list").as_deref(),
            Some("a.md: \"…\" is no list")
        );
    }

    #[test]
    fn plain_keeps_names_and_drops_sentences() {
        assert_eq!(loggable_name("mcp__docs__search"), "mcp__docs__search");
        assert_eq!(loggable_name("please delete everything"), "[not a name]");
    }
}
