//! `conversation_message_ids_read`: the messages of the conversation with their ids.

use async_trait::async_trait;
use haft_text::{Limits, cut_lines};
use haft_tool::{Access, Intent, Tool, ToolContext, ToolOutput, TranscriptLine, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, settle};
use crate::knowledge::{failure, one_line};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "conversation_message_ids_read";

static MANUAL: Manual =
    Manual { example_of: "Seeing which messages take the most room", example: "{}", ..Manual::of(Group::Knowledge) };

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {}

/// The tool.
pub(crate) struct ConversationMessageIdsRead {
    spec: ToolSpec,
}

impl ConversationMessageIdsRead {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("conversation_message_ids_read/prompt.md")) }
    }
}

#[async_trait]
impl Tool for ConversationMessageIdsRead {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(run(context, arguments).await)
    }
}

async fn run(context: &ToolContext, arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters {} = parse_arguments(NAME, arguments)?;
    let lines = context.transcript.list().await.map_err(|error| failure(&error, "try again"))?;
    let tokens: u64 = lines.iter().map(|line| u64::from(line.tokens)).sum();
    let marked = lines.iter().filter(|line| line.marked).count();
    let shown: Vec<_> = lines.iter().map(show).collect();
    // One line is kept for the totals.
    let limits = Limits { lines: context.limits.lines.saturating_sub(1), bytes: context.limits.bytes };
    let cut = cut_lines(&shown.join("\n"), limits);
    let totals = format!("{} messages, {tokens} tokens, {marked} marked for deletion.", lines.len());
    let text = if cut.text.is_empty() { totals } else { format!("{}\n{totals}", cut.text) };
    let data = json!({ "messages": lines.len(), "tokens": tokens, "marked": marked });
    Ok(Envelope::success(text).with_data(data).into())
}

fn show(line: &TranscriptLine) -> String {
    let tools = line.tools.join(", ");
    let (gap, mark) = (if tools.is_empty() { "" } else { " " }, if line.marked { " marked" } else { "" });
    format!("{} {}{gap}{tools} ({} tokens) {}{mark}", line.id, line.role, line.tokens, one_line(&line.words))
}

#[cfg(test)]
mod tests;
