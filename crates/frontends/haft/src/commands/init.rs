//! `/init`: builds the prompt for writing an AGENTS.md, and estimates the cost.
//!
//! The prompt contains only names of files. The model reads the files with its tools, as far as
//! permission rules allow.

use std::path::Path;

use haft_agent::{Project, configured_model};
use haft_model::O200k;
use haft_project::{KnowledgePaths, commands};
use haft_types::{Price, TokenCounter};

use crate::haft::Settings;

const PROMPT: &str = include_str!("init/prompt.md");
/// The name of this built-in slash command. A custom command of this name takes precedence.
pub(crate) const COMMAND_NAME: &str = "init";
const GUIDE_FILE: &str = "AGENTS.md";

/// Names of the files that describe a project best. A match counts only near the project's root.
const KEY_FILES: [&str; 22] = [
    "README.md",
    "README",
    "README.rst",
    "CONTRIBUTING.md",
    "CLAUDE.md",
    "GEMINI.md",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "tox.ini",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
    "justfile",
    "Gemfile",
    "mix.exs",
    "composer.json",
    "deno.json",
];
/// The maximum depth at which [`KEY_FILES`] are found; files in the project's root have depth 1.
const MAX_KEY_FILE_DEPTH: usize = 2;
const MAX_KEY_FILES: usize = 12;
/// The maximum number of file names in the prompt.
const MAX_FILE_NAMES: usize = 200;

/// The estimated number of tokens that a request contains besides the prompt: the system message,
/// tools and documents.
const FIXED_TOKENS: u64 = 9_000;
/// The estimated number of requests for writing the project's instructions.
const ESTIMATED_REQUESTS: u64 = 5;
/// The estimated number of tokens in all replies together.
const OUTPUT_TOKENS: u64 = 3_000;
/// The estimated number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// The prompt that replaces `/init`, and the estimate shown before it is sent.
pub(crate) struct GuidePrompt {
    pub(crate) text: String,
    pub(crate) quote: String,
}

/// Returns the text after `/init`, or `None` if the prompt does not call `/init` or a custom
/// command has this name.
pub(crate) fn parse_init_call<'a>(prompt: &'a str, paths: &KnowledgePaths) -> Option<&'a str> {
    let called = prompt.trim().strip_prefix('/')?;
    let (name, wishes) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    if name != COMMAND_NAME {
        return None;
    }
    let commands = commands::load_commands(paths, &mut Vec::new());
    commands
        .get(COMMAND_NAME)
        .is_none()
        .then_some(wishes.trim())
}

/// Returns the prompt for a project, with the estimated cost of the model that answers it.
pub(crate) fn build_prompt(
    settings: &Settings,
    model: Option<&str>,
    project: &Project,
    wishes: &str,
) -> GuidePrompt {
    let found = InitProjectFiles::scan(&project.root);
    let mut text = PROMPT.trim_end().to_owned();
    if project.root.join(GUIDE_FILE).symlink_metadata().is_ok() {
        text.push_str("\n\nThere is an `AGENTS.md` already. Read it first. Keep what is right, correct what is not, add what is missing, and change it with edits: do not write it anew.");
    }
    if !wishes.is_empty() {
        text.extend(["\n\nThe user says of it: ", wishes]);
    }
    if !found.key_files.is_empty() {
        text.extend(["\n\nFiles to read:\n", &found.key_files.join("\n")]);
    }
    text.extend([
        "\n\nFiles of the project",
        if found.all_shown {
            ":\n"
        } else {
            ", the first of them:\n"
        },
        &found.names.join("\n"),
    ]);
    let model = model
        .map(str::to_owned)
        .or_else(|| configured_model(&settings.config));
    let price = model.and_then(|model| settings.resolve_model(&model).ok()?.spec.price);
    let quote = format_estimate(
        u64::from(O200k.count_text(&text)) + found.key_file_bytes / BYTES_PER_TOKEN,
        price,
    );
    GuidePrompt { text, quote }
}

/// Formats the estimated cost, assuming that files are read for the first request and sent again
/// with each later request.
fn format_estimate(read: u64, price: Option<Price>) -> String {
    let first = FIXED_TOKENS + read;
    let again = first * (ESTIMATED_REQUESTS - 1);
    let tokens = first * ESTIMATED_REQUESTS + OUTPUT_TOKENS;
    match price {
        Some(price) => {
            let again = again as f64 * price.cached_input.unwrap_or(price.input);
            let fresh = first as f64 * price.cache_write.unwrap_or(price.input);
            let money = (fresh + again + OUTPUT_TOKENS as f64 * price.output) / 1e6;
            text!(
                "init-quote",
                tokens = haft_text::format_thousands(tokens),
                money = format!("{money:.2}")
            )
        }
        None => text!(
            "init-quote-unknown",
            tokens = haft_text::format_thousands(tokens)
        ),
    }
}

/// The files of a project, except files that git ignores.
struct InitProjectFiles {
    names: Vec<String>,
    all_shown: bool,
    key_files: Vec<String>,
    key_file_bytes: u64,
}

impl InitProjectFiles {
    fn scan(root: &Path) -> Self {
        let mut found = Self {
            names: Vec::new(),
            all_shown: true,
            key_files: Vec::new(),
            key_file_bytes: 0,
        };
        let walk = ignore::WalkBuilder::new(root)
            .require_git(false)
            .sort_by_file_name(Ord::cmp)
            .build();
        for entry in walk
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        {
            let Some(name) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else {
                continue;
            };
            let is_key_file = entry.depth() <= MAX_KEY_FILE_DEPTH
                && entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| KEY_FILES.contains(&name));
            if is_key_file && found.key_files.len() < MAX_KEY_FILES {
                found.key_files.push(name.to_owned());
                found.key_file_bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            }
            if found.names.len() == MAX_FILE_NAMES {
                found.all_shown = false;
                break;
            }
            found.names.push(name.to_owned());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_cost_grows_with_the_size_of_the_files() {
        let price = Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
            long: None,
        };
        assert!(
            format_estimate(1_000, Some(price)).contains("$0.09"),
            "{}",
            format_estimate(1_000, Some(price))
        );
        assert!(
            format_estimate(100_000, Some(price)).contains("$0.58"),
            "{}",
            format_estimate(100_000, Some(price))
        );
        assert!(
            format_estimate(1_000, None).contains("53,000"),
            "{}",
            format_estimate(1_000, None)
        );
    }

    #[test]
    fn project_files_lists_names_but_no_contents() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("README.md", "the secret"),
            ("src/main.rs", "fn main"),
            ("a/b/c/Cargo.toml", ""),
            (".gitignore", "out\n"),
            ("out/x", ""),
        ] {
            let at = folder.path().join(name);
            std::fs::create_dir_all(at.parent().unwrap()).unwrap();
            std::fs::write(at, text).unwrap();
        }
        let found = InitProjectFiles::scan(folder.path());
        assert_eq!(
            found.names,
            ["README.md", "a/b/c/Cargo.toml", "src/main.rs"]
        );
        assert_eq!(
            (found.key_files, found.key_file_bytes, found.all_shown),
            (vec!["README.md".to_owned()], 10, true)
        );
    }
}
