//! Detects the language of a source file.

use std::path::Path;

use strum::{IntoStaticStr, VariantArray, VariantNames};

use crate::languages::Grammar;
use crate::packed;

/// A language in which definitions can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray, VariantNames)]
pub enum SourceLanguage {
    /// Bash, and other shells as far as their syntax is compatible with Bash.
    Bash,
    C,
    #[strum(serialize = "C++")]
    Cpp,
    #[strum(serialize = "C#")]
    CSharp,
    Go,
    Java,
    /// JavaScript, including JSX.
    JavaScript,
    #[strum(serialize = "PHP")]
    Php,
    Python,
    Ruby,
    Rust,
    /// TypeScript with JSX.
    #[strum(serialize = "TSX")]
    Tsx,
    TypeScript,
}

impl SourceLanguage {
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    pub(crate) const NAMES: &'static [&'static str] = <Self as VariantNames>::VARIANTS;

    /// Detects the language of a file by its name, or by its text if the name is ambiguous. Returns
    /// `None` if the language is not supported.
    pub fn detect(path: &Path, source: &str) -> Option<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("h") => Some(if looks_like_cpp(source) {
                Self::Cpp
            } else {
                Self::C
            }),
            Some(extension) => Self::from_extension(extension),
            None => match path.file_name().and_then(|name| name.to_str()) {
                Some("Gemfile" | "Rakefile" | "Vagrantfile") => Some(Self::Ruby),
                _ => parse_shebang(source.lines().next().unwrap_or_default()),
            },
        }
    }

    /// True if a file with this name may be in a supported language, so that it is worth opening.
    pub fn may_match(path: &Path) -> bool {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("h") | None => true,
            Some(extension) => Self::from_extension(extension).is_some(),
        }
    }

    fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "bash" | "sh" | "zsh" | "ksh" | "bats" => Self::Bash,
            "c" => Self::C,
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" | "ipp" | "tpp" | "cu"
            | "cuh" => Self::Cpp,
            "cs" | "csx" => Self::CSharp,
            "go" => Self::Go,
            "java" => Self::Java,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "php" | "phtml" => Self::Php,
            "py" | "pyi" | "pyw" => Self::Python,
            "rb" | "rake" | "gemspec" | "ru" => Self::Ruby,
            "rs" => Self::Rust,
            "tsx" => Self::Tsx,
            "ts" | "mts" | "cts" => Self::TypeScript,
            _ => return None,
        })
    }

    /// Returns the display name of the language.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub(crate) fn grammar(self) -> &'static Grammar {
        match self {
            Self::Bash => &packed::BASH,
            Self::C => &packed::C,
            Self::Cpp => &packed::CPP,
            Self::CSharp => &packed::C_SHARP,
            Self::Go => &packed::GO,
            Self::Java => &packed::JAVA,
            Self::JavaScript => &packed::JAVASCRIPT,
            Self::Php => &packed::PHP,
            Self::Python => &packed::PYTHON,
            Self::Ruby => &packed::RUBY,
            Self::Rust => &packed::RUST,
            Self::Tsx => &packed::TSX,
            Self::TypeScript => &packed::TYPESCRIPT,
        }
    }
}

/// True if the text of a header file contains a keyword that C does not have.
fn looks_like_cpp(source: &str) -> bool {
    const CPP_KEYWORDS: [&str; 8] = [
        "class ",
        "namespace ",
        "template",
        "public:",
        "private:",
        "protected:",
        "using ",
        "constexpr ",
    ];
    source.lines().any(|line| {
        CPP_KEYWORDS
            .iter()
            .any(|word| line.trim_start().starts_with(word))
    })
}

/// Returns the language of a script whose `#!` line is `line`, or `None` if it is not supported.
fn parse_shebang(line: &str) -> Option<SourceLanguage> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = words.next()?.rsplit('/').next()?;
    let program = if first == "env" {
        words.find(|word| !word.starts_with('-'))?
    } else {
        first
    };
    match program.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.') {
        "sh" | "bash" | "dash" | "zsh" | "ksh" => Some(SourceLanguage::Bash),
        "python" | "pypy" => Some(SourceLanguage::Python),
        "ruby" => Some(SourceLanguage::Ruby),
        "node" => Some(SourceLanguage::JavaScript),
        "php" => Some(SourceLanguage::Php),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_follows_from_the_name_or_the_first_line() {
        for (path, source, language) in [
            ("src/main.rs", "", Some(SourceLanguage::Rust)),
            ("a/b.test.tsx", "", Some(SourceLanguage::Tsx)),
            ("Rakefile", "", Some(SourceLanguage::Ruby)),
            (
                "run",
                "#!/usr/bin/env -S python3.12 -u\n",
                Some(SourceLanguage::Python),
            ),
            ("run", "#!/bin/sh\n", Some(SourceLanguage::Bash)),
            ("run", "plain words\n", None),
            ("notes.md", "#!/bin/sh\n", None),
            (
                "list.h",
                "struct list { int n; };\n",
                Some(SourceLanguage::C),
            ),
            (
                "list.h",
                "#pragma once\nnamespace a {\n}\n",
                Some(SourceLanguage::Cpp),
            ),
            (
                "list.h",
                "#pragma once\n  template <class T>\n",
                Some(SourceLanguage::Cpp),
            ),
        ] {
            assert_eq!(
                SourceLanguage::detect(Path::new(path), source),
                language,
                "{path}"
            );
        }
        assert!(
            !SourceLanguage::may_match(Path::new("photo.png"))
                && SourceLanguage::may_match(Path::new("bin/tool"))
        );
    }
}
