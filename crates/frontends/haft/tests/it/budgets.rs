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

/// Returns the uses of a name in a text: true for each call, false for each other use. Names of
/// fields and methods are not uses.
fn find_uses(text: &str, name: &str) -> Vec<bool> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut uses = Vec::new();
    for line in code {
        for (at, _) in line.match_indices(name) {
            let before = &line[..at];
            let after = &line[at + name.len()..];
            let is_method = before.ends_with('.') && !before.ends_with("..");
            let is_field = after.starts_with(':') && !after.starts_with("::");
            let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
            if is_word && !is_method && !is_field {
                uses.push(after.starts_with('('));
            }
        }
    }
    uses
}

/// Returns the named closures whose only use is one call, each with its line number. The scope of
/// a closure ends at the first line that is indented less than its `let`.
fn find_closures_called_once(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        let Some((declared, value)) = code
            .strip_prefix("let ")
            .and_then(|rest| rest.split_once(" ="))
        else {
            continue;
        };
        let value = match value.trim_start() {
            "" => lines.get(at + 1).map_or("", |next| next.trim_start()),
            value => value,
        };
        let closure = value
            .trim_start_matches("async ")
            .trim_start_matches("move ");
        if !closure.starts_with('|') {
            continue;
        }
        let name = declared.trim_start_matches("mut ");
        let name = name.split(':').next().unwrap_or_default();
        let rest = &lines[at + 1..];
        let end = rest.iter().position(|line| {
            let code = line.trim_start();
            !code.is_empty() && line.len() - code.len() < indentation
        });
        let scope = rest[..end.unwrap_or(rest.len())].join("\n");
        if find_uses(&scope, name) == [true] {
            found.push((at + 1, name.to_owned()));
        }
    }
    found
}

#[test]
fn find_closures_called_once_ignores_closures_that_are_passed_or_called_twice() {
    let text = "fn f() {
    let once = |a: u8| a + 1;
    let mut moved = move || {
        once(1);
    };
    let twice = |a| a;
    let passed: u8 = |a| a;
    let long =
        |a| moved();
    let range = |a| a;
    let plain = value(|a| a);
    // once(2), plain(1)
    let made = Made { long: twice(1), range: x.long(), ..range(2) };
    iter.map(passed).map(|x| twice(x));
    &bytes[range(1)..range(2)]
}
fn long() {
    long(1)
}
";
    let found = find_closures_called_once(text);
    assert_eq!(found, [(2, "once".to_owned()), (3, "moved".to_owned())]);
}

#[test]
fn closures_called_once_are_inlined() {
    let mut found = Vec::new();
    for source in sources() {
        for (line, name) in find_closures_called_once(&source.text) {
            found.push(format!("{}:{line}: {name}", source.path));
        }
    }
    assert!(
        found.is_empty(),
        "write these closures where they are called, or as functions:\n{}",
        found.join("\n")
    );
}

/// Returns the statements that bind the elements of a tuple written beside them, each with its
/// line number. Patterns that can fail are not such statements.
fn find_tuple_lets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("let (") {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        let statement = text[at..].split(';').next().unwrap_or_default();
        let Some((pattern, value)) = statement.split_once(" =") else {
            continue;
        };
        let names = pattern.split(": ").next().unwrap_or_default();
        let binds_only = !names.contains(|c: char| c.is_uppercase());
        let value = value.trim();
        let mut depth = 0;
        let end = value.char_indices().find_map(|(at, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (depth == 0).then_some(at + 1)
        });
        let is_tuple = value.starts_with('(') && end == Some(value.len());
        if before.trim().is_empty() && binds_only && is_tuple {
            found.push((text[..at].lines().count(), names.to_owned()));
        }
    }
    found
}

#[test]
fn find_tuple_lets_ignores_destructuring() {
    let text = "fn f() {
    let (a, b) = (1, g(2));
    let (c, d): (Vec<_>, Vec<_>) = (
        x(),
        y(),
    );
    let (e, f) = pair();
    let (g, h) = (x > 1).then_some((1, 2)).unwrap();
    if let (i, Some(j)) = (1, x()) {}
    let (Some(k), Some(l)) = (x(), y()) else {
        return;
    };
}
";
    let lines: Vec<_> = find_tuple_lets(text).into_iter().map(|one| one.0).collect();
    assert_eq!(lines, [2, 3]);
}

#[test]
fn values_are_bound_one_per_statement() {
    let mut found = Vec::new();
    for source in sources() {
        for (line, names) in find_tuple_lets(&source.text) {
            found.push(format!("{}:{line}: {names}", source.path));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
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
