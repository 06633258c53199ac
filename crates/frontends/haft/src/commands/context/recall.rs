//! `haft context recall`: prints a message as it was stored, by the id that a summary or a notice
//! names.

use haft_types::{Message, Part, ToolStatus};
use serde_json::json;

use crate::commands::context::RecallArgs;
use crate::commands::conversations;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &RecallArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.output.common)?;
    let store = settings.open_store()?;
    let conversation =
        conversations::find_named_or_current(haft, store.as_ref(), args.conversation.as_deref())
            .await?;
    let messages = store.messages(&conversation.id).await?;
    let id = conversations::find_message_id(&messages, &args.message)?;
    let Some(message) = messages.iter().find(|message| message.message_id == id) else {
        return Ok(());
    };
    // Imported messages were stored without masking.
    let text = haft.masker().mask(&readable_text(message)).into_owned();
    if args.output.json {
        let calls = message.tool_calls().map(|call| &call.name);
        let results = message.tool_results().map(|result| &result.name);
        return output::print_json(&json!({
            "conversation_id": conversation.id,
            "message_id": message.message_id,
            "role": message.role,
            "tools": calls.chain(results).collect::<Vec<_>>(),
            "created_at": message.created_at,
            "text": text,
        }));
    }
    output::print_to_stderr(&heading_line(message));
    let end = if text.ends_with('\n') { "" } else { "\n" };
    output::print_text(&format!("{text}{end}"))
}

/// Returns the heading line for stderr: the message's id, its time and its kind.
fn heading_line(message: &Message) -> String {
    let id = message.message_id.short_id();
    let at = message.created_at;
    let mut results = message.tool_results().map(|result| {
        let how = match result.envelope.status {
            ToolStatus::Success => "",
            ToolStatus::Partial => text!("context-recall-partial"),
            ToolStatus::Error => text!("context-recall-failed"),
        };
        text!("context-recall-result", tool = result.name, how)
    });
    let what = results
        .next()
        .unwrap_or_else(|| output::localize_text(message.role));
    format!("haft: {}", text!("context-recall-heading", id, at, what))
}

/// Returns the texts, calls and results of a message, without the reasoning.
fn readable_text(message: &Message) -> String {
    let part = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::ToolCall(call) => Some(format!("calls {} {}", call.name, call.arguments)),
        Part::ToolResult(result) => Some(result.envelope.text.clone()),
        Part::Image(image) => Some(format!("(a picture, {})", image.media_type)),
        Part::Thinking(_) => None,
    };
    message
        .content
        .iter()
        .filter_map(part)
        .collect::<Vec<_>>()
        .join("\n\n")
}
