//! Counts of habits that make comments and names hard to read. docs/writing.md has the rules.
//!
//! The counts are hints, reading is the measure: a sentence can pass every test here and still be
//! unclear.

use crate::budgets::{is_test_file, rust_files, split_tests};

/// Words that begin a comment which depends on a sentence before it or names nothing.
const OPENINGS: [&str; 14] = [
    "What", "Whatever", "Who", "Whoever", "Where", "When", "How", "Why", "It", "Its", "They",
    "Those", "So", "The same",
];

/// Names of constants that don't say what is limited or how long something waits.
const RIDDLES: [&str; 13] = [
    "PATIENCE", "LONGEST", "SHORTEST", "MOST", "FEWEST", "LARGEST", "SMALLEST", "DEEPEST",
    "WIDEST", "ENOUGH", "MANY", "LOOK", "TOP",
];

/// A line of the sources outside tests.
struct CodeLine {
    /// `path:line`
    place: String,
    text: String,
}

/// Returns the text of every file that holds more than tests, without the tests at its end.
fn code() -> Vec<(String, String)> {
    let files: Vec<_> = rust_files()
        .into_iter()
        .filter(|(path, _)| !is_test_file(path) && !path.contains("/benches/"))
        .map(|(path, text)| {
            let code = split_tests(&text).0.to_owned();
            (path, code)
        })
        .collect();
    assert!(files.len() > 400, "the sources were not found");
    files
}

/// Returns the first line of every doc comment of an item.
fn first_doc_lines() -> Vec<CodeLine> {
    let mut found = Vec::new();
    for (path, text) in code() {
        let mut is_inside = false;
        for (at, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("///");
            if let Some(comment) = comment.filter(|_| !is_inside) {
                found.push(CodeLine {
                    place: format!("{path}:{}", at + 1),
                    text: comment.trim().to_owned(),
                });
            }
            is_inside = comment.is_some();
        }
    }
    found
}

/// Returns the name of the function that a line defines.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        };
        rest = rest.trim_start();
    }
    for qualifier in ["const ", "async ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(qualifier).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    Some(&name[..name.find(|c: char| !c.is_alphanumeric() && c != '_')?])
}

/// Returns the name of every function, except those that a trait demands, `new` and `main`.
fn functions() -> Vec<CodeLine> {
    let mut found = Vec::new();
    for (path, text) in code() {
        let mut is_in_trait_impl = false;
        for (at, line) in text.lines().enumerate() {
            if line.starts_with("impl") && line.contains(" for ") {
                is_in_trait_impl = true;
            } else if line.starts_with('}') {
                is_in_trait_impl = false;
            }
            let name = function_name(line).filter(|name| !["new", "main"].contains(name));
            if let Some(name) = name.filter(|_| !is_in_trait_impl) {
                found.push(CodeLine {
                    place: format!("{path}:{}", at + 1),
                    text: name.to_owned(),
                });
            }
        }
    }
    found
}

/// Fails if `odd` is more than `percent` of `all`, and lists where the odd ones are.
#[track_caller]
fn assert_share(odd: &[&CodeLine], all: usize, percent: usize) {
    let places: Vec<_> = odd
        .iter()
        .take(40)
        .map(|line| format!("{}: {}", line.place, line.text))
        .collect();
    assert!(
        odd.len() * 100 < all * percent,
        "{} of {all}, less than {percent} % expected:\n{}",
        odd.len(),
        places.join("\n")
    );
}

#[test]
fn doc_comments_begin_with_a_verb_or_a_noun() {
    let comments = first_doc_lines();
    let is_odd = |line: &&CodeLine| {
        OPENINGS.iter().any(|opening| {
            let rest = line.text.strip_prefix(opening);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    let odd: Vec<_> = comments.iter().filter(is_odd).collect();
    assert_share(&odd, comments.len(), 2);
}

#[test]
fn function_names_have_a_verb_and_a_noun() {
    let functions = functions();
    let odd: Vec<_> = functions
        .iter()
        .filter(|line| !line.text.contains('_'))
        .collect();
    assert_share(&odd, functions.len(), 40);
}

#[test]
fn no_function_is_called_of() {
    let found: Vec<_> = functions()
        .into_iter()
        .filter(|line| line.text == "of")
        .map(|line| line.place)
        .collect();
    assert_eq!(found, [""; 0]);
}

#[test]
fn constants_say_what_they_limit() {
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        if path.contains("/fixtures/") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let declaration = line.split_once("const ").or(line.split_once("static "));
            let name = declaration.and_then(|(_, rest)| rest.split_once(':'));
            if name.is_some_and(|(name, _)| RIDDLES.contains(&name)) {
                found.push(format!("{path}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn function_names_are_found() {
    for (line, name) in [
        ("    pub(crate) async fn read_it(", Some("read_it")),
        ("pub const fn limit() -> usize {", Some("limit")),
        ("fn map<T>(t: T) {", Some("map")),
        ("    call: fn (usize) -> usize,", None),
        ("// fn gone()", None),
    ] {
        assert_eq!(function_name(line), name, "{line}");
    }
}
