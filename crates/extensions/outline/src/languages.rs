//! One file a language: its grammar and its query.
//!
//! To add a language: its grammar crate in the manifest, `NAME.rs` and `NAME.scm` here, its variant, names and extensions in
//! `SourceLanguage`, and a folder with a real source and the list of its definitions in `fixtures/`.

pub(crate) mod bash;
pub(crate) mod c;
pub(crate) mod cpp;
pub(crate) mod csharp;
pub(crate) mod go;
pub(crate) mod java;
pub(crate) mod javascript;
pub(crate) mod php;
pub(crate) mod python;
pub(crate) mod ruby;
pub(crate) mod rust;
pub(crate) mod typescript;

use std::sync::OnceLock;

use tree_sitter::{Language, Query};

/// A grammar and the query for its definitions. The query is compiled when it is first used.
pub(crate) struct Grammar {
    language: fn() -> Language,
    query: &'static str,
    ready: OnceLock<Result<CompiledGrammar, String>>,
}

/// A grammar with its query compiled.
pub(crate) struct CompiledGrammar {
    pub(crate) language: Language,
    pub(crate) query: Query,
}

impl Grammar {
    const fn new(language: fn() -> Language, query: &'static str) -> Self {
        Self { language, query, ready: OnceLock::new() }
    }

    /// The compiled query, or what is wrong with it.
    pub(crate) fn ready(&self) -> Result<&CompiledGrammar, &str> {
        let compile = || {
            let language = (self.language)();
            let query = Query::new(&language, self.query).map_err(|error| error.to_string())?;
            Ok(CompiledGrammar { language, query })
        };
        self.ready.get_or_init(compile).as_ref().map_err(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use crate::{DefinitionKind, SourceLanguage};

    #[test]
    fn every_query_compiles_and_captures_only_what_is_known() {
        for language in SourceLanguage::ALL {
            let ready = language.grammar().ready().unwrap_or_else(|error| panic!("{}: {error}", language.name()));
            for name in ready.query.capture_names() {
                let known = DefinitionKind::of_word(name).is_some() || ["name", "of", "receiver"].contains(name);
                assert!(known, "{}: @{name}", language.name());
            }
        }
    }
}
