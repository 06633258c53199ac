//! `recall`: returns a message of the conversation as it was stored.

use std::io;
use std::path::{Path, PathBuf};

use haft_files::Durability;
use haft_text::{CutLimits, cut_lines};
use haft_tool::OutputLimits;
use haft_types::ToolStatus;

use crate::knowledge::transcript::{RecalledMessage, StoredTranscript};
use crate::knowledge::{failure_from_port, get_session_value};
use crate::on_files::run_off_thread;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "recall";

static MANUAL: Manual = Manual::for_group(Group::Knowledge);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallParameters {
    /// The 8 digits that a notice or a summary names, or a full UUID.
    message_id: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("recall/prompt"),
        &MANUAL,
        Access::Read,
        |_| Intent::Nothing,
    )
    .with_function(|context, parameters| Box::pin(recall_message(context, parameters)))
}

async fn recall_message(
    context: &ToolContext,
    RecallParameters { message_id }: RecallParameters,
) -> CallResult {
    let transcript = get_session_value::<StoredTranscript>(context)?;
    let found = transcript.recall(&message_id).await;
    let hint = context.tools.hint_if_known(
        "conversation_message_ids_read",
        "`conversation_message_ids_read` lists the messages",
    );
    let message = found.map_err(|error| failure_from_port(&error, hint))?;
    run_off_thread(context, move |scope| {
        Ok(build_envelope(&message, scope).into())
    })
    .await
}

fn build_envelope(message: &RecalledMessage, scope: &FileScope) -> Envelope {
    let heading = format_heading(message);
    // One line is reserved for the heading, one for the path of the complete text.
    let OutputLimits { lines, bytes } = scope.limits;
    let cut = cut_lines(
        &message.text,
        CutLimits {
            lines: lines.saturating_sub(2),
            bytes,
        },
    );
    let mut text = format!("{heading}\n{}", cut.text);
    let mut data = json!({ "message_id": message.id.to_string(), "role": message.role, "tools": message.tools });
    if cut.is_cut() {
        let size = format!(
            "The whole message has {} lines and {} bytes",
            cut.total_lines, cut.total_bytes
        );
        let whereabouts = match write_spill_file(message, &scope.workspace.spill) {
            Ok(path) => {
                data["spill"] = json!([path.display().to_string()]);
                format!(
                    "[{size}. It is in `{}`: read it by range, or search it.]",
                    path.display()
                )
            }
            Err(error) => format!("[{size}; it could not be written to a file: {error}.]"),
        };
        text = format!("{}\n{whereabouts}", text.trim_end_matches('\n'));
        data["truncated"] = true.into();
    }
    Envelope::success(text).with_data(data)
}

fn format_heading(message: &RecalledMessage) -> String {
    let RecalledMessage {
        id,
        role,
        tools,
        status,
        ..
    } = message;
    let tools = tools.join(", ");
    match status {
        Some(ToolStatus::Success) => format!("[Message {id}: the result of {tools}]"),
        Some(ToolStatus::Partial) => format!("[Message {id}: the result of {tools}, done in part]"),
        Some(ToolStatus::Error) => format!("[Message {id}: the result of {tools}, which failed]"),
        None => format!("[Message {id}: {role}]"),
    }
}

/// Writes the complete text of a message to a file that the model can read by range. Repeated
/// recalls of a message write to a single file.
fn write_spill_file(message: &RecalledMessage, folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("recall-{}.txt", message.id));
    haft_files::replace_file(&path, message.text.as_bytes(), Durability::Process)?;
    Ok(path)
}

#[cfg(test)]
mod tests;
