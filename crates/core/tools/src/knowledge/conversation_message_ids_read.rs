//! `conversation_message_ids_read`: lists the messages of the conversation with their ids.

use haft_text::{CutLimits, cut_lines};
use haft_types::TranscriptLine;

use crate::knowledge::transcript::StoredTranscript;
use crate::knowledge::{failure_from_port, get_session_value, to_one_line};
use crate::prelude::*;

const NAME: &str = "conversation_message_ids_read";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Knowledge)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConversationMessageIdsReadParameters {}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("conversation_message_ids_read/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(list_messages(context, parameters)))
}

async fn list_messages(
    context: &ToolContext,
    _: ConversationMessageIdsReadParameters,
) -> CallResult {
    let lines = get_session_value::<StoredTranscript>(context)?
        .list()
        .await
        .map_err(|error| failure_from_port(&error, "try again"))?;
    let tokens: u64 = lines.iter().map(|line| u64::from(line.tokens)).sum();
    let marked = lines.iter().filter(|line| line.marked).count();
    let shown: Vec<_> = lines.iter().map(format_message).collect();
    // One line is reserved for the totals.
    let limits = CutLimits {
        lines: context.limits.lines.saturating_sub(1),
        bytes: context.limits.bytes,
    };
    let cut = cut_lines(&shown.join("\n"), limits);
    let totals = format!(
        "{} messages, {tokens} tokens, {marked} marked for deletion.",
        lines.len()
    );
    let text = if cut.text.is_empty() {
        totals
    } else {
        format!("{}\n{totals}", cut.text)
    };
    let data = json!({ "messages": lines.len(), "tokens": tokens, "marked": marked });
    Ok(Envelope::success(text).with_data(data).into())
}

fn format_message(line: &TranscriptLine) -> String {
    let tools = line.tools.join(", ");
    let gap = if tools.is_empty() { "" } else { " " };
    let mark = if line.marked { " marked" } else { "" };
    format!(
        "{} {}{gap}{tools} ({} tokens) {}{mark}",
        line.id,
        line.role,
        line.tokens,
        to_one_line(&line.preview)
    )
}

#[cfg(test)]
mod tests;
