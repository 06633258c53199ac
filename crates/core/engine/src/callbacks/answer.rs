//! What a hook says: its exit code and output, in the shape Claude Code's documentation gives them.

use haft_types::{Decision, HookPoint};
use serde::Deserialize;
use serde_json::Value;

use super::Reaction;

/// The most characters of a text that reach the model.
const LONGEST: usize = 10_000;

/// What a hook may print. Fields it does not know are left alone: others may read them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    #[serde(rename = "continue")]
    go_on: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    additional_context: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

/// A hook that exits with 2 objects to what happens.
pub(super) fn objection(point: HookPoint, said: &str) -> Reaction {
    let said = if said.trim().is_empty() {
        "no reason was given"
    } else {
        said.trim()
    };
    objected(point, Some(said))
}

/// What an objection means at this point: where nothing can be kept from happening, the user is
/// told.
fn objected(point: HookPoint, why: Option<&str>) -> Reaction {
    let why = short(why.unwrap_or("no reason was given"));
    match point {
        HookPoint::UserPromptSubmit
        | HookPoint::PreToolCall
        | HookPoint::PostToolCall
        | HookPoint::Stop
        | HookPoint::SubagentStop => Reaction {
            block: Some(why),
            ..Reaction::default()
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
        | HookPoint::Notification => Reaction {
            messages: vec![why],
            ..Reaction::default()
        },
    }
}

/// What the output of a hook that succeeded asks for: JSON as Claude Code documents it, or text.
pub fn reaction(point: HookPoint, output: &str) -> Result<Reaction, String> {
    let output = output.trim();
    if !output.starts_with('{') {
        // Words are context where Claude Code takes them so; elsewhere they are nobody's.
        let heard = matches!(
            point,
            HookPoint::ConversationStart | HookPoint::UserPromptSubmit
        ) && !output.is_empty();
        return Ok(Reaction {
            context: heard.then(|| short(output)).into_iter().collect(),
            ..Reaction::default()
        });
    }
    let printed: Printed = serde_json::from_str(output)
        .map_err(|error| format!("its output begins like JSON, but cannot be read: {error}"))?;
    let specific = printed.hook_specific_output.unwrap_or_default();
    let mut reaction = match printed.decision.as_deref() {
        Some("block") => objected(point, printed.reason.as_deref()),
        Some("approve") => Reaction {
            permission: Some(Decision::Allow),
            ..Reaction::default()
        },
        Some(other) => return Err(format!("`{other}` is no decision; use `block`")),
        None => Reaction::default(),
    };
    match specific.permission_decision.as_deref() {
        Some("deny") => reaction.join(objected(
            point,
            specific.permission_decision_reason.as_deref(),
        )),
        Some("allow") => reaction.permission = Some(Decision::Allow),
        Some("ask") => reaction.permission = Some(Decision::Ask),
        Some(other) => {
            return Err(format!(
                "`{other}` is no permission decision; use `allow`, `ask` or `deny`"
            ));
        }
        None => {}
    }
    match specific.updated_input {
        None | Some(Value::Null) => {}
        Some(input @ Value::Object(_)) => reaction.input = Some(input),
        Some(_) => return Err("`updatedInput` is not an object".to_owned()),
    }
    let context = specific
        .additional_context
        .into_iter()
        .chain(printed.additional_context);
    reaction.context.extend(
        context
            .filter(|text| !text.trim().is_empty())
            .map(|text| short(&text)),
    );
    if printed.go_on == Some(false) {
        reaction.stop = Some(
            printed
                .stop_reason
                .unwrap_or_else(|| "no reason was given".to_owned()),
        );
    }
    reaction.messages.extend(printed.system_message);
    Ok(reaction)
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n[… cut after {LONGEST} characters]", &text[..end]),
        None => text.to_owned(),
    }
}
