//! Parses the exit code and output of a hook, in the format that Claude Code documents.

use haft_types::{Decision, HookPoint};
use serde::Deserialize;
use serde_json::Value;

use super::HookOutcome;

/// The maximum length, in characters, of a text that a hook adds for the model.
const MAX_CHARS: usize = 10_000;

/// The JSON output of a hook. Unknown fields are ignored, because they may be meant for other
/// agents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookOutput {
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    additional_context: Option<String>,
    hook_specific_output: Option<HookSpecificOutput>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookSpecificOutput {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

/// Returns the outcome of a hook that exited with code 2, which blocks the event.
pub(super) fn outcome_of_blocking_exit(point: HookPoint, said: &str) -> HookOutcome {
    let said = if said.trim().is_empty() {
        "no reason was given"
    } else {
        said.trim()
    };
    blocking_outcome(point, Some(said))
}

/// Returns the outcome that blocks the event. At points that don't support blocking, the reason
/// becomes a message for the user.
fn blocking_outcome(point: HookPoint, why: Option<&str>) -> HookOutcome {
    let why = shorten_text(why.unwrap_or("no reason was given"));
    match point {
        HookPoint::UserPromptSubmit
        | HookPoint::PreToolCall
        | HookPoint::PostToolCall
        | HookPoint::Stop
        | HookPoint::SubagentStop => HookOutcome {
            block: Some(why),
            ..HookOutcome::default()
        },
        HookPoint::ConversationStart
        | HookPoint::ConversationEnd
        | HookPoint::PreConversationResumed
        | HookPoint::PostConversationResumed
        | HookPoint::PreToolsLoaded
        | HookPoint::PostToolsLoaded
        | HookPoint::PreRulesLoaded
        | HookPoint::PostRulesLoaded
        | HookPoint::PreLibrariesLoaded
        | HookPoint::PostLibrariesLoaded
        | HookPoint::ApiRequestStart
        | HookPoint::ApiRequestEnd
        | HookPoint::ToolGenerationStart
        | HookPoint::ToolGenerationEnd
        | HookPoint::PreCompact
        | HookPoint::Notification => HookOutcome {
            messages: vec![why],
            ..HookOutcome::default()
        },
    }
}

/// Parses the output of a successful hook: JSON as documented by Claude Code, or text.
pub fn parse_hook_output(point: HookPoint, output: &str) -> Result<HookOutcome, String> {
    let output = output.trim();
    if !output.starts_with('{') {
        // Claude Code adds plain text to the context at these two points and ignores it elsewhere.
        let is_context = matches!(
            point,
            HookPoint::ConversationStart | HookPoint::UserPromptSubmit
        ) && !output.is_empty();
        return Ok(HookOutcome {
            context: is_context
                .then(|| shorten_text(output))
                .into_iter()
                .collect(),
            ..HookOutcome::default()
        });
    }
    let printed: HookOutput = serde_json::from_str(output)
        .map_err(|error| format!("its output begins like JSON, but cannot be read: {error}"))?;
    let specific = printed.hook_specific_output.unwrap_or_default();
    let mut outcome = match printed.decision.as_deref() {
        Some("block") => blocking_outcome(point, printed.reason.as_deref()),
        Some("approve") => HookOutcome {
            permission: Some(Decision::Allow),
            ..HookOutcome::default()
        },
        Some(other) => return Err(format!("`{other}` is no decision; use `block`")),
        None => HookOutcome::default(),
    };
    match specific.permission_decision.as_deref() {
        Some("deny") => outcome.merge(blocking_outcome(
            point,
            specific.permission_decision_reason.as_deref(),
        )),
        Some("allow") => outcome.permission = Some(Decision::Allow),
        Some("ask") => outcome.permission = Some(Decision::Ask),
        Some(other) => {
            return Err(format!(
                "`{other}` is no permission decision; use `allow`, `ask` or `deny`"
            ));
        }
        None => {}
    }
    match specific.updated_input {
        None | Some(Value::Null) => {}
        Some(input @ Value::Object(_)) => outcome.input = Some(input),
        Some(_) => return Err("`updatedInput` is not an object".to_owned()),
    }
    let context = specific
        .additional_context
        .into_iter()
        .chain(printed.additional_context);
    outcome.context.extend(
        context
            .filter(|text| !text.trim().is_empty())
            .map(|text| shorten_text(&text)),
    );
    if printed.go_on == Some(false) {
        outcome.stop = Some(
            printed
                .stop_reason
                .unwrap_or_else(|| "no reason was given".to_owned()),
        );
    }
    outcome.messages.extend(printed.system_message);
    Ok(outcome)
}

fn shorten_text(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}\n[… cut after {MAX_CHARS} characters]", &text[..end]),
        None => text.to_owned(),
    }
}
