//! The relevance of tools for a query.

use haft_types::ToolSpec;

/// Scores how well a tool matches a query. The score is the sum over all terms that the tool
/// contains, where a term in its name counts most. Zero means no match; without terms, every tool
/// scores 1.
pub(super) fn score_tool(source: &str, tool: &ToolSpec, terms: &[String]) -> u32 {
    if terms.is_empty() {
        return 1;
    }
    let name = tool.name.to_lowercase();
    let about = tool.description.to_lowercase();
    let source = source.to_lowercase();
    let keys: Vec<String> = tool
        .parameters
        .get("properties")
        .and_then(|properties| properties.as_object())
        .into_iter()
        .flat_map(|properties| properties.keys())
        .map(|key| key.to_lowercase())
        .collect();
    let score_term = |word: &String| {
        let word = word.as_str();
        if name == word {
            8
        } else if name.contains(word) {
            4
        } else if source.contains(word) {
            2
        } else {
            u32::from(about.contains(word) || keys.iter().any(|key| key.contains(word)))
        }
    };
    terms.iter().map(score_term).sum()
}

/// Splits a query into lowercase terms.
pub(super) fn split_terms(query: &str) -> Vec<String> {
    let parts = query.split(|one: char| !one.is_alphanumeric() && one != '_' && one != '-');
    parts
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relevance_prefers_names_to_descriptions() {
        let tool = |name: &str, description: &str| ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: serde_json::Value::Null,
        };
        let terms = split_terms("Create issue!");
        assert_eq!(terms, ["create", "issue"]);
        let best = score_tool("github", &tool("create_issue", ""), &terms);
        let other = score_tool("github", &tool("close", "Closes an issue."), &terms);
        assert!(best > other && other > 0);
        assert_eq!(score_tool("github", &tool("fork", "Forks."), &terms), 0);
        assert!(
            score_tool("issues", &tool("fork", "Forks."), &terms) > 0,
            "the source's name counts too"
        );
    }
}
