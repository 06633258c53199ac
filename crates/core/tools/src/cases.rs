//! Case documents: how some tools are best used together, one file each under `cases/`.
//!
//! The first line is the name, the second names the tools, the rest is the text.

use haft_tool::CaseDocument;

const FILES: [&str; 1] = [include_str!("cases/changing_files.md")];

/// Every built-in case document.
pub fn cases() -> impl Iterator<Item = CaseDocument> {
    FILES.into_iter().filter_map(read)
}

fn read(file: &str) -> Option<CaseDocument> {
    let (name, rest) = file.split_once('\n')?;
    let (tools, text) = rest.split_once('\n')?;
    let tools = tools.strip_prefix("tools: ")?.split(", ").map(str::to_owned).collect();
    Some(CaseDocument { name: name.to_owned(), text: text.trim().to_owned(), tools })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_names_tools_that_are_there() {
        let known: Vec<_> = crate::testing::builtin().iter().map(|tool| tool.spec().name.clone()).collect();
        assert_eq!(cases().count(), FILES.len());
        for case in cases() {
            assert!(!case.text.is_empty() && !case.tools.is_empty(), "{}", case.name);
            for tool in &case.tools {
                assert!(known.contains(tool), "`{}` names `{tool}`", case.name);
            }
        }
    }
}
