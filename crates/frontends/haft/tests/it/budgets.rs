//! Counts that keep the code base readable: the size of files, duplicate names, dependencies.
//!
//! No count limits the lines of a crate: such a limit was met with denser lines, not with less
//! code. Tests, examples and test helpers are not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A source file of a crate, without its tests.
pub(crate) struct SourceFile {
    /// The path from the root of the repository.
    pub(crate) path: String,
    /// The folder below `crates`: `core`, `extensions`, `frontends` or `testkit`.
    folder: String,
    pub(crate) text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .unwrap()
}

/// Returns the path from the root of the repository and the text of every Rust file below `crates`.
pub(crate) fn rust_files() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(root.join("crates")).build() {
        let path = entry.unwrap().into_path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            let inside = path.strip_prefix(&root).unwrap().display().to_string();
            found.push((inside, fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// True for files that hold nothing but tests, test helpers or examples.
pub(crate) fn is_test_file(path: &str) -> bool {
    [
        "/tests/",
        "/examples/",
        "/tests.rs",
        "/testing.rs",
        "/test_helper.rs",
    ]
    .iter()
    .any(|part| path.contains(part))
}

pub(crate) fn sources() -> Vec<SourceFile> {
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        if !is_test_file(&path) {
            found.push(SourceFile {
                folder: path.split('/').nth(1).unwrap().to_owned(),
                text: split_tests(&text).0.to_owned(),
                path,
            });
        }
    }
    assert!(found.len() > 400, "the sources were not found");
    found
}

/// Splits a file before the module of tests at its end.
pub(crate) fn split_tests(text: &str) -> (&str, &str) {
    let begin = text.match_indices("#[cfg(test)]\nmod ").find(|(at, _)| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.ends_with('{')
    });
    text.split_at(begin.map_or(text.len(), |(at, _)| at))
}

/// Returns every defined type with the files that define it.
fn defined_types(sources: &[SourceFile]) -> BTreeMap<String, Vec<String>> {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.folder != "testkit") {
        for line in source.text.lines().map(str::trim_start) {
            let line = match line.strip_prefix("pub") {
                Some(rest) if rest.starts_with('(') => {
                    rest.split_once(") ").map_or(rest, |(_, rest)| rest)
                }
                Some(rest) => rest.trim_start(),
                None => line,
            };
            let named = ["struct ", "enum ", "trait "]
                .iter()
                .find_map(|word| line.strip_prefix(word));
            if let Some(rest) = named {
                let name: String = rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                defined.entry(name).or_default().push(source.path.clone());
            }
        }
    }
    defined
}

#[track_caller]
fn assert_at_most(what: &str, found: usize, most: usize) {
    assert!(found <= most, "{what}: {found}, at most {most}");
}

#[test]
fn files_are_small() {
    let mut lines: Vec<_> = sources()
        .iter()
        .map(|source| source.text.lines().count())
        .collect();
    lines.sort_unstable();
    assert_at_most("median lines of a file", lines[lines.len() / 2], 160);
    assert_at_most(
        "90th percentile of lines of a file",
        lines[lines.len() * 9 / 10],
        420,
    );
    assert_at_most("lines of the largest file", *lines.last().unwrap(), 900);
}

/// Returns the number of lines of each function. A function ends at the first `}` with its own
/// indentation.
fn count_function_lines(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let mut counts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let before = code.split("fn ").next().unwrap_or_default();
        let is_qualifier = |word: &str| {
            word.starts_with("pub")
                || ["const", "async", "unsafe", "in", "extern", "\"C\""].contains(&word)
        };
        let is_function = code.contains("fn ")
            && before
                .split([' ', '(', ')', ':'])
                .filter(|word| !word.is_empty())
                .all(|word| is_qualifier(word) || word == "crate" || word == "super");
        if !is_function || code.ends_with(';') {
            continue;
        }
        let indentation = &line[..line.len() - code.len()];
        let end = format!("{indentation}}}");
        let signature_only = format!("{indentation})");
        let last = lines[at..].iter().position(|line| {
            *line == end || line.starts_with(&signature_only) && line.ends_with(';')
        });
        if code.ends_with('}') {
            counts.push(1);
        } else if let Some(last) = last {
            counts.push(last + 1);
        }
    }
    counts
}

#[test]
fn count_function_lines_counts_methods_and_one_liners() {
    let text = "pub(crate) fn one() {\n    x();\n}\n\nimpl A {\n    async fn two(\n        a: u8,\n    ) {\n        if a {\n        }\n    }\n\n    fn short() {}\n}\n";
    assert_eq!(count_function_lines(text), [3, 6, 1]);
}

#[test]
fn functions_fit_a_screen() {
    let mut lines: Vec<_> = sources()
        .iter()
        .flat_map(|source| count_function_lines(&source.text))
        .collect();
    lines.sort_unstable();
    assert!(lines.len() > 5_000, "the functions were not found");
    assert_at_most(
        "99th percentile of lines of a function",
        lines[lines.len() * 99 / 100],
        70,
    );
}

#[test]
fn type_names_are_rarely_defined_twice() {
    let types = defined_types(&sources());
    let twice: Vec<_> = types
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .collect();
    let share = twice.len() * 1000 / types.len();
    assert!(
        share <= DOUBLE_NAMES,
        "{share} type names in a thousand are defined more than once: {twice:?}"
    );
}

#[test]
fn modules_do_not_use_mod_rs() {
    let old = sources()
        .iter()
        .filter(|source| source.path.ends_with("/mod.rs"))
        .count();
    assert_at_most("modules in `mod.rs`", old, OLD_MODULES);
}

#[test]
fn binary_source_folder_has_few_entries() {
    let entries = fs::read_dir(root().join("crates/frontends/haft/src"))
        .unwrap()
        .count();
    assert_at_most(
        "entries in the binary's source folder",
        entries,
        BINARY_ENTRIES,
    );
}

/// Counts the modules of a folder: `foo.rs` and `foo/` are one, and `lib.rs` is none.
fn count_modules(folder: &str) -> usize {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let names: BTreeSet<_> = entries
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_owned())
        .filter(|name| name != "lib")
        .collect();
    names.len()
}

#[test]
fn engine_folders_have_few_modules() {
    for folder in ["crates/core/engine/src", "crates/core/engine/src/session"] {
        assert_at_most(
            &format!("modules in {folder}"),
            count_modules(folder),
            MODULES_OF_A_FOLDER,
        );
    }
}

#[test]
fn session_has_few_fields() {
    let text = fs::read_to_string(root().join("crates/core/engine/src/session.rs")).unwrap();
    let (_, rest) = text.split_once("pub struct Session {\n").unwrap();
    let (fields, _) = rest.split_once("\n}").unwrap();
    let is_field = |line: &&str| !line.trim_start().starts_with("//") && line.contains(": ");
    assert_at_most(
        "fields of a session",
        fields.lines().filter(is_field).count(),
        SESSION_FIELDS,
    );
}

/// State that is stored beside messages is a contract with older versions: its keys are in
/// `stored_state.rs` and nowhere else.
#[test]
fn stored_state_keys_are_in_one_file() {
    for source in sources()
        .iter()
        .filter(|source| !source.path.ends_with("/engine/src/stored_state.rs"))
    {
        for call in [".state(", ".states(", ".set_state(", "project_state("] {
            for (at, _) in source.text.match_indices(call) {
                let arguments = source.text[at + call.len()..]
                    .split(')')
                    .next()
                    .unwrap_or_default();
                assert!(
                    !arguments.contains('"'),
                    "{}: `{call}{arguments})`",
                    source.path
                );
            }
        }
    }
}

#[test]
fn builds_have_few_packages() {
    let packages = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args([
            "tree",
            "--locked",
            "--offline",
            "-p",
            "haft",
            "-e",
            "normal,build",
            "--prefix",
            "none",
        ]);
        let output = command
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap();
        if !output.status.success() {
            eprintln!(
                "skipped: `cargo tree` says {}",
                String::from_utf8_lossy(&output.stderr)
            );
            return None;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let names: BTreeSet<_> = text
            .lines()
            .filter_map(|line| line.split(" (").next())
            .map(str::to_owned)
            .collect();
        Some(names.len())
    };
    if let Some(count) = packages(&[]) {
        assert_at_most("packages of the default build", count, 470);
    }
    if let Some(count) = packages(&["--no-default-features"]) {
        assert_at_most("packages of the core build", count, CORE_PACKAGES);
    }
}

// The limits.
const DOUBLE_NAMES: usize = 5;
const OLD_MODULES: usize = 0;
const BINARY_ENTRIES: usize = 18;
const MODULES_OF_A_FOLDER: usize = 12;
const SESSION_FIELDS: usize = 16;
const CORE_PACKAGES: usize = 290;
