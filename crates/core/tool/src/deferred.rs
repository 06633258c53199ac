//! The text about deferred tools that a model reads: full descriptions, names or a count.
//!
//! Texts of tools from outside are sanitized and truncated.

use haft_text::sanitize;
use haft_types::ToolSpec;

/// The maximum length of a tool's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// The amount of detail with which deferred tools are listed for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDetail {
    /// The list contains the name, the description and the arguments of each tool.
    Whole,
    /// The list contains only the names of the tools.
    Names,
    /// The list contains only the number of tools.
    Counts,
}

impl ToolDetail {
    /// Renders the list with as much detail as fits into `budget` tokens. If not even the count of
    /// tools fits, the count is returned.
    pub fn fit_to_budget(
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

    /// Lists the tools with this amount of detail. If details are missing, the text refers to
    /// `tool_search`.
    pub fn list_tools(self, tools: &[ToolSpec]) -> String {
        match self {
            Self::Whole => tools
                .iter()
                .map(describe_tool)
                .collect::<Vec<_>>()
                .join("\n"),
            Self::Names => {
                let names: Vec<_> = tools
                    .iter()
                    .map(|tool| format!("`{}`", sanitize(&tool.name)))
                    .collect();
                format!("{} (arguments: `tool_search`)", names.join(", "))
            }
            Self::Counts => format!("{} tools: `tool_search` finds them", tools.len()),
        }
    }
}

/// Formats the name, description and arguments of a tool as a list item.
pub fn describe_tool(tool: &ToolSpec) -> String {
    let schema = serde_json::to_string(&tool.parameters).unwrap_or_default();
    let description = sanitize_and_truncate(&tool.description, MAX_DESCRIPTION_CHARS);
    format!(
        "- `{}`: {description}\n  arguments: {}",
        sanitize(&tool.name),
        sanitize(&schema)
    )
}

/// Sanitizes a text and truncates it to `max_chars` characters. A truncated text ends in ` […]`.
pub fn sanitize_and_truncate(text: &str, max_chars: usize) -> String {
    let text = sanitize(text.trim());
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} […]", text[..end].trim_end()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_detail_fits_the_budget_and_is_sanitised() {
        let tool = |name: &str, description: String| ToolSpec {
            name: name.into(),
            description,
            parameters: json!({"type": "object"}),
        };
        let tools = [
            tool("show\u{1b}[2J", " Shows. ".into()),
            tool("long", "x".repeat(1_001)),
        ];
        let fitted = |budget| {
            ToolDetail::fit_to_budget(budget, &str::len, |detail| detail.list_tools(&tools))
        };
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
