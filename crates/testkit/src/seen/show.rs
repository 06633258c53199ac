//! Formats a request as a transcript. Equal conversations give equal transcripts on every API, so
//! tests can store them.

use std::fmt;

use super::{Seen, SeenPart, SeenTool};

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.system.is_empty() {
            writeln!(f, "system: {}", self.system)?;
        }
        for SeenTool {
            name,
            description,
            parameters,
        } in &self.tools
        {
            writeln!(f, "offers {name}: {description} {parameters}")?;
        }
        for (role, part) in self.parts() {
            match part {
                SeenPart::Text { text, signed: _ } => writeln!(f, "{role}: {text}")?,
                // Each provider has its own form of reasoning, so an API-neutral transcript omits
                // it.
                SeenPart::Thinking { .. } => {}
                SeenPart::ToolCall {
                    number,
                    id: _,
                    name,
                    arguments,
                    signed: _,
                } => {
                    writeln!(f, "{role}: call#{number} {name} {arguments}")?;
                }
                SeenPart::ToolResult {
                    number: Some(number),
                    id: _,
                    text,
                    failed: _,
                } => {
                    writeln!(f, "{role}: call#{number} gave {text}")?;
                }
                SeenPart::ToolResult {
                    number: None,
                    id,
                    text,
                    failed: _,
                } => {
                    writeln!(
                        f,
                        "{role}: unknown call {} gave {text}",
                        id.as_deref().unwrap_or("without id")
                    )?;
                }
                SeenPart::Image { media_type, hash } => {
                    writeln!(f, "{role}: picture {media_type} {hash}")?;
                }
                SeenPart::Other { kind } => writeln!(f, "{role}: ({kind})")?,
            }
        }
        Ok(())
    }
}
