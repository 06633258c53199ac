//! The outline as tools reach it.

use std::path::Path;

use haft_tool::{CodeDefinition, CodeOutline, CodeOutlineError, SourceOutline};

use crate::{Definition, Outline, OutlineError, OutlineLimits, SourceLanguage, outline};

/// Finds definitions with the grammars of this crate, within the usual limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeSitter;

impl SourceOutline for TreeSitter {
    fn languages(&self) -> Vec<&'static str> {
        SourceLanguage::ALL.map(SourceLanguage::name).to_vec()
    }

    fn may_be_source(&self, path: &Path) -> bool {
        SourceLanguage::may_be(path)
    }

    fn max_bytes(&self) -> usize {
        OutlineLimits::default().bytes
    }

    fn outline(
        &self,
        path: &Path,
        source: &str,
        stop: &dyn Fn() -> bool,
    ) -> Option<Result<CodeOutline, CodeOutlineError>> {
        let language = SourceLanguage::of(path, source)?;
        let found = outline(language, source, OutlineLimits::default(), stop);
        Some(found.map(CodeOutline::from).map_err(CodeOutlineError::from))
    }
}

impl From<Outline> for CodeOutline {
    fn from(Outline { definitions, damaged, left_out }: Outline) -> Self {
        let definitions = definitions.into_iter().map(CodeDefinition::from).collect();
        Self { definitions, damaged, left_out }
    }
}

impl From<Definition> for CodeDefinition {
    fn from(Definition { kind, name, start_line, end_line, depth }: Definition) -> Self {
        Self { kind: kind.word(), name, start_line, end_line, depth }
    }
}

impl From<OutlineError> for CodeOutlineError {
    fn from(error: OutlineError) -> Self {
        match error {
            OutlineError::TooLarge { size, limit } => Self::TooLarge { size, limit },
            OutlineError::NotText => Self::NotText,
            OutlineError::TimedOut { limit } => Self::TimedOut { limit },
            OutlineError::Stopped => Self::Stopped,
            OutlineError::Grammar { language, reason } => Self::Grammar { language, reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_outlined_where_its_language_is_known() {
        let (reader, go_on) = (TreeSitter, || false);
        let found = reader.outline(Path::new("a.rs"), "fn fill() {}\n", &go_on).unwrap().unwrap();
        let fill = CodeDefinition { kind: "function", name: "fill".to_owned(), start_line: 1, end_line: 1, depth: 0 };
        assert_eq!(found, CodeOutline { definitions: vec![fill], damaged: false, left_out: 0 });
        assert_eq!(reader.outline(Path::new("a.md"), "# fn fill() {}\n", &go_on), None);
        assert!(reader.may_be_source(Path::new("a.rs")) && !reader.may_be_source(Path::new("a.md")));
        assert!(reader.languages().contains(&"Rust"));
    }

    /// The model reads the message of the port; it must be the one this crate writes.
    #[test]
    fn what_went_wrong_is_told_in_the_same_words() {
        for error in [
            OutlineError::TooLarge { size: 2, limit: 1 },
            OutlineError::NotText,
            OutlineError::TimedOut { limit: std::time::Duration::from_secs(3) },
            OutlineError::Stopped,
            OutlineError::Grammar { language: "Rust", reason: "none".to_owned() },
        ] {
            let message = error.to_string();
            assert_eq!(CodeOutlineError::from(error).to_string(), message);
        }
    }
}
