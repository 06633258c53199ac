//! How much a model reads of tools that are not offered to it one by one.
//!
//! What others say of their tools is sanitised and cut.

use haft_text::sanitise;
use haft_types::ToolSpec;

/// The longest description of a tool, in characters.
const DESCRIPTION: usize = 1_000;

/// How much is said of each deferred tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDetail {
    /// Name, description and arguments.
    Whole,
    /// The name.
    Names,
    /// How many there are.
    Counts,
}

impl ToolDetail {
    /// The most that fits into this many tokens, with its text: every tool with its arguments, else
    /// their names, else how many.
    pub fn fitting(
        budget: usize,
        count: &dyn Fn(&str) -> usize,
        text: impl Fn(Self) -> String,
    ) -> (Self, String) {
        for detail in [Self::Whole, Self::Names] {
            let text = text(detail);
            if count(&text) <= budget {
                return (detail, text);
            }
        }
        (Self::Counts, text(Self::Counts))
    }

    /// These tools in this detail, and that `tool_search` tells the rest.
    pub fn list(self, tools: &[ToolSpec]) -> String {
        match self {
            Self::Whole => tools
                .iter()
                .map(describe_tool)
                .collect::<Vec<_>>()
                .join("\n"),
            Self::Names => {
                let names: Vec<_> = tools
                    .iter()
                    .map(|tool| format!("`{}`", sanitise(&tool.name)))
                    .collect();
                format!("{} (arguments: `tool_search`)", names.join(", "))
            }
            Self::Counts => format!("{} tools: `tool_search` finds them", tools.len()),
        }
    }
}

/// A tool in one paragraph: name, description, arguments.
pub fn describe_tool(tool: &ToolSpec) -> String {
    let schema = serde_json::to_string(&tool.parameters).unwrap_or_default();
    let description = shorten(&tool.description, DESCRIPTION);
    format!(
        "- `{}`: {description}\n  arguments: {}",
        sanitise(&tool.name),
        sanitise(&schema)
    )
}

/// Sanitised text of at most so many characters; a cut is shown.
pub fn shorten(text: &str, longest: usize) -> String {
    let text = sanitise(text.trim());
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{} […]", text[..end].trim_end()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_is_told_and_what_is_told_is_sanitised() {
        let tool = |name: &str, description: String| ToolSpec {
            name: name.into(),
            description,
            parameters: json!({"type": "object"}),
        };
        let tools = [
            tool("show\u{1b}[2J", " Shows. ".into()),
            tool("long", "x".repeat(1_001)),
        ];
        let fitted = |budget| ToolDetail::fitting(budget, &str::len, |detail| detail.list(&tools));
        let (detail, whole) = fitted(5_000);
        assert_eq!(detail, ToolDetail::Whole);
        assert!(
            whole.starts_with("- `show`: Shows.\n  arguments: {\"type\":\"object\"}\n- `long`: x"),
            "{whole}"
        );
        assert!(whole.contains("x […]\n"), "{whole}");
        assert_eq!(
            fitted(100),
            (
                ToolDetail::Names,
                "`show`, `long` (arguments: `tool_search`)".to_owned()
            )
        );
        assert_eq!(
            fitted(10),
            (
                ToolDetail::Counts,
                "2 tools: `tool_search` finds them".to_owned()
            )
        );
    }
}
