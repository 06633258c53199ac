//! `conversation_message_ids_write`: marks messages for deletion.

use std::fmt::Write as _;

use haft_types::{MarkAction, MarkReport, ToolStatus};

use crate::knowledge::transcript::StoredTranscript;
use crate::knowledge::{failure_from_port, get_session_value, to_one_line};
use crate::prelude::*;

const NAME: &str = "conversation_message_ids_write";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConversationMessageIdsWriteParameters {
    /// Ids separated by commas, as `conversation_message_ids_read` lists them, or full UUIDs.
    message_ids: String,
    /// `create` makes these the whole list of marked messages (none: clears it), `append` adds
    /// them to it, `delete` takes them off it.
    action: MarkAction,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("conversation_message_ids_write/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(mark_messages(context, parameters)))
}

async fn mark_messages(
    context: &ToolContext,
    ConversationMessageIdsWriteParameters {
        message_ids,
        action,
    }: ConversationMessageIdsWriteParameters,
) -> CallResult {
    let names_none = message_ids.split(',').all(|id| id.trim().is_empty());
    match action {
        MarkAction::Append | MarkAction::Delete if names_none => {
            let hint = context.tools.hint_if_known(
                "conversation_message_ids_read",
                "; `conversation_message_ids_read` lists them",
            );
            return Err(ToolFailure::new(
                "invalid_arguments",
                format!("`message_ids` names no message{hint}"),
            ));
        }
        // `create` with an empty list clears the current list.
        MarkAction::Create | MarkAction::Append | MarkAction::Delete => {}
    }
    let transcript = get_session_value::<StoredTranscript>(context)?;
    let marked = transcript.mark(action, &message_ids).await;
    let report = marked.map_err(|error| failure_from_port(&error, "try again"))?;
    Ok(build_envelope(action, &report).into())
}

fn build_envelope(action: MarkAction, report: &MarkReport) -> Envelope {
    let MarkReport {
        changed,
        unchanged,
        refused,
        unknown,
        marked,
    } = report;
    let (verb, already) = match action {
        MarkAction::Create | MarkAction::Append => ("marked", "already marked"),
        MarkAction::Delete => ("taken off the list", "not on the list"),
    };
    let mut text = format!(
        "{changed} {verb}, {unchanged} {already}, {} unknown.",
        unknown.len()
    );
    if !unknown.is_empty() {
        let _ = write!(
            text,
            "\nNo message of this conversation: {}.",
            to_one_line(&unknown.join(", "))
        );
    }
    if !refused.is_empty() {
        let ids = refused.join(", ");
        let _ = write!(
            text,
            "\nCannot be marked (system, summary or current request): {ids}."
        );
    }
    let _ = write!(
        text,
        "\nMarked now: {marked}. This acts from the next request on."
    );
    let data = json!({
        "action": action, "changed": changed, "unchanged": unchanged, "unknown": unknown, "refused": refused,
        "marked": marked,
    });
    let whole = unknown.is_empty() && refused.is_empty();
    let status = if whole {
        ToolStatus::Success
    } else {
        ToolStatus::Partial
    };
    Envelope {
        status,
        ..Envelope::success(text).with_data(data)
    }
}

#[cfg(test)]
mod tests;
