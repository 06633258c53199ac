//! Case documents that explain how to combine several tools, one file each under `cases/`.
//!
//! The first line is the name, the second lists the tools, and the rest is the text.

use haft_tool::CaseDocument;
use haft_types::{Prompt, PromptLanguage, prompt};

const FILES: [Prompt; 1] = [prompt!("cases/changing_files")];

/// Returns the built-in case documents.
pub fn cases(language: PromptLanguage) -> impl Iterator<Item = CaseDocument> {
    FILES
        .into_iter()
        .filter_map(move |file| read(file.text(language)))
}

fn read(file: &str) -> Option<CaseDocument> {
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
    fn every_file_is_read_and_names_tools_that_are_there() {
        let known: Vec<_> = crate::testing::builtin()
            .iter()
            .map(|tool| tool.spec().name.clone())
            .collect();
        for language in [PromptLanguage::English, PromptLanguage::Chinese] {
            assert_eq!(cases(language).count(), FILES.len());
            for case in cases(language) {
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
