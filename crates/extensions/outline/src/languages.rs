//! Grammars and their queries, each query in its own file.
//!
//! To add a language: add its grammar crate to the manifest, its line to `build.rs` and
//! `packed.rs`, `NAME.scm` to `languages/`, its variant, names and extensions to `SourceLanguage`,
//! and a folder with a real source file and the list of its definitions to `tests/fixtures/`.

use std::sync::OnceLock;

use tree_sitter::{Language, Query};

use crate::packed::PackedGrammar;

/// A grammar and the query for its definitions. The first use unpacks the tables of the grammar and
/// compiles the query.
pub(crate) struct Grammar {
    language: PackedGrammar,
    query: &'static str,
    ready: OnceLock<Result<CompiledGrammar, String>>,
}

/// A grammar that is ready for use, with its compiled query.
pub(crate) struct CompiledGrammar {
    pub(crate) language: Language,
    pub(crate) query: Query,
}

impl Grammar {
    pub(crate) const fn new(language: PackedGrammar, query: &'static str) -> Self {
        Self {
            language,
            query,
            ready: OnceLock::new(),
        }
    }

    /// Returns the grammar and its query, after unpacking and compiling them on the first call. The
    /// error is the reason why that failed.
    pub(crate) fn get_or_compile(&self) -> Result<&CompiledGrammar, &str> {
        let compile = || {
            let language = self.language.unpack()?;
            let query = Query::new(&language, self.query).map_err(|error| error.to_string())?;
            Ok(CompiledGrammar { language, query })
        };
        self.ready
            .get_or_init(compile)
            .as_ref()
            .map_err(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{fs, str};

    use tree_sitter::Parser;

    use crate::{DefinitionKind, SourceLanguage};

    fn fixtures() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
    }

    /// Returns the first bytes of the fixture file of this language.
    fn source(language: SourceLanguage, length: usize) -> String {
        let folder = language
            .name()
            .to_lowercase()
            .replace("++", "pp")
            .replace('#', "sharp");
        let mut entries = fs::read_dir(fixtures().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let path = entries
            .find(|path| path.file_stem().is_some_and(|stem| stem == "source"))
            .unwrap();
        str::from_utf8(&fs::read(path).unwrap()[..length])
            .unwrap()
            .to_owned()
    }

    /// `tests/fixtures/trees` was written with the unmodified grammar crates. Each line holds the
    /// language, the number of bytes that are parsed (the whole file, or two thirds of it, which
    /// ends within a definition), the number of nodes, and the FNV-1a digest of the tree as text.
    #[test]
    fn unpacked_grammars_parse_like_the_grammar_crates() {
        let expected = fs::read_to_string(fixtures().join("trees")).unwrap();
        assert_eq!(expected.lines().count(), 2 * SourceLanguage::ALL.len());
        for row in expected.lines() {
            let [name, length, nodes, digest] = row.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            let language = *SourceLanguage::ALL
                .iter()
                .find(|language| language.name() == name)
                .unwrap();
            let mut parser = Parser::new();
            parser
                .set_language(&language.grammar().get_or_compile().unwrap().language)
                .unwrap();
            let tree = parser
                .parse(source(language, length.parse().unwrap()), None)
                .unwrap();
            let text = tree.root_node().to_sexp();
            let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            let found = text.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
            assert_eq!(
                (
                    tree.root_node().descendant_count().to_string().as_str(),
                    format!("{found:016x}").as_str()
                ),
                (nodes, digest),
                "{row}"
            );
        }
    }

    /// All packed grammars together are smaller than the tables of one unpacked grammar.
    #[test]
    fn packed_tables_are_small() {
        let size =
            |language: &SourceLanguage| (language.name(), language.grammar().language.size());
        let sizes: Vec<_> = SourceLanguage::ALL.iter().map(size).collect();
        let sum: usize = sizes.iter().map(|(_, size)| size).sum();
        assert!(sum <= 1_300_000, "{sum}: {sizes:?}");
    }

    #[test]
    fn queries_compile_and_capture_only_known_names() {
        for &language in SourceLanguage::ALL {
            let ready = language
                .grammar()
                .get_or_compile()
                .unwrap_or_else(|error| panic!("{}: {error}", language.name()));
            for name in ready.query.capture_names() {
                let known = DefinitionKind::of_word(name).is_some()
                    || ["name", "of", "receiver"].contains(name);
                assert!(known, "{}: @{name}", language.name());
            }
        }
    }
}
