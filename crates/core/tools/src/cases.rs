//! Case documents, which explain how to combine several tools. Each document is a file under
//! `cases/`.
//!
//! The first line of a file is the name, the second lists the tools, and the rest is the text.

use haft_tool::CaseDocument;
use haft_types::{Prompt, PromptLanguage, prompt};

const CASE_FILES: [Prompt; 1] = [prompt!("cases/changing_files")];

/// Returns the built-in case documents in `language`.
pub fn case_documents(language: PromptLanguage) -> impl Iterator<Item = CaseDocument> {
    CASE_FILES
        .into_iter()
        .filter_map(move |file| parse_case(file.text(language)))
}

fn parse_case(file: &str) -> Option<CaseDocument> {
    let (name, rest) = file.split_once('\n')?;
    let (tools, text) = rest.split_once('\n')?;
    let tools = tools
        .strip_prefix("tools: ")?
        .split(", ")
        .map(str::to_owned)
        .collect();
    Some(CaseDocument {
        name: name.to_owned(),
        text: text.trim().to_owned(),
        tools,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_documents_name_only_existing_tools() {
        let known: Vec<_> = crate::testing::builtin()
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect();
        for language in [PromptLanguage::English, PromptLanguage::Chinese] {
            assert_eq!(case_documents(language).count(), CASE_FILES.len());
            for case in case_documents(language) {
                assert!(
                    !case.text.is_empty() && !case.tools.is_empty(),
                    "{}",
                    case.name
                );
                for tool in &case.tools {
                    assert!(known.contains(tool), "`{}` names `{tool}`", case.name);
                }
            }
        }
    }
}
