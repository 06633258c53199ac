//! Grammars whose large tables are packed in the binary, and unpacked when a language is first
//! used.
//!
//! `build.rs` packs the tables, and compiles each grammar with zeroed memory in their place and a
//! function that fills it. The calls into that code are the only `unsafe`: `unpack` fills the
//! tables of a grammar once, before any parser can use it.

use std::sync::OnceLock;

use tree_sitter::Language;
use tree_sitter_language::LanguageFn;

use crate::languages::Grammar;

/// A grammar that was compiled without its large tables, together with these tables in compressed
/// form.
pub(crate) struct PackedGrammar {
    language: unsafe extern "C" fn() -> *const (),
    fill: unsafe extern "C" fn(tables: *const u8, length: usize) -> bool,
    packed: &'static [u8],
    filled: OnceLock<Result<(), String>>,
}

impl PackedGrammar {
    /// Returns the complete grammar, after unpacking its tables on the first call. The error is the
    /// reason why the tables cannot be unpacked.
    pub(crate) fn unpack(&self) -> Result<Language, String> {
        self.filled.get_or_init(|| self.fill_tables()).clone()?;
        // SAFETY: tree-sitter generated the function from the grammar, and the tables are filled.
        Ok(unsafe { LanguageFn::from_raw(self.language) }.into())
    }

    fn fill_tables(&self) -> Result<(), String> {
        let tables = zstd::stream::decode_all(self.packed).map_err(|error| error.to_string())?;
        // SAFETY: the function reads `length` bytes, or none if that is not the size of the tables.
        // It is called once, and nothing else reads or writes the tables yet: only `unpack` returns
        // the grammar, afterwards.
        let fits = unsafe { (self.fill)(tables.as_ptr(), tables.len()) };
        fits.then_some(())
            .ok_or_else(|| "its tables do not fit".to_owned())
    }

    /// Returns the size of the compressed tables, in bytes.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.packed.len()
    }
}

/// Defines one static for each grammar, given the grammar's name in C symbols and the query for its
/// definitions.
macro_rules! grammars {
    ($($constant:ident = $name:literal, $query:literal)*) => {$(
        pub(crate) static $constant: Grammar = {
            unsafe extern "C" {
                #[link_name = concat!("tree_sitter_", $name)]
                fn language() -> *const ();
                #[link_name = concat!("tree_sitter_", $name, "_fill")]
                fn fill(tables: *const u8, length: usize) -> bool;
            }
            let packed = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".zst"));
            let grammar = PackedGrammar { language, fill, packed, filled: OnceLock::new() };
            Grammar::new(grammar, include_str!(concat!("languages/", $query)))
        };
    )*};
}

grammars! {
    BASH = "bash", "bash.scm"
    C = "c", "c.scm"
    CPP = "cpp", "cpp.scm"
    C_SHARP = "c_sharp", "csharp.scm"
    GO = "go", "go.scm"
    JAVA = "java", "java.scm"
    JAVASCRIPT = "javascript", "javascript.scm"
    PHP = "php", "php.scm"
    PYTHON = "python", "python.scm"
    RUBY = "ruby", "ruby.scm"
    RUST = "rust", "rust.scm"
    TSX = "tsx", "typescript.scm"
    TYPESCRIPT = "typescript", "typescript.scm"
}
