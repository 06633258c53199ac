//! A trait needs two implementations, or one and a test double. Traits with one implementation and no
//! double are listed with the reason why they exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::budgets::{is_test_file, rust_files, split_tests};

const ALLOWED: [(&str, &str); 12] = [
    (
        "AtStep",
        "adds a method to `Result` of the standard library, which only a trait can",
    ),
    (
        "AttachPort",
        "inverts a dependency: a session reports to the socket of `attach`, which is above `engine`",
    ),
    (
        "EditorBuffers",
        "inverts a dependency: tools read an editor's unsaved files, and `acp` is above `tool`",
    ),
    (
        "HelpSandbox",
        "inverts a dependency: the engine runs `--help` in a sandbox that `agent` sets up",
    ),
    (
        "OnFiles",
        "adds a method to a type of `tool`, which must not know the files of `tools`",
    ),
    (
        "PreviewsFiles",
        "adds a method to a type of `tool`, which must not know the files of `tools`",
    ),
    (
        "ProjectCopies",
        "inverts a dependency: the engine opens copies, and a build without `changes` has none",
    ),
    (
        "ProjectCopy",
        "inverts a dependency, together with `ProjectCopies`",
    ),
    (
        "Program",
        "inverts a dependency: `acp` opens sessions with the configuration sections, extensions and \
         sentences of the build, which only the binary lists",
    ),
    (
        "PromptSource",
        "inverts a dependency: front ends offer the prompts of MCP servers, which an extension has",
    ),
    (
        "ServerLink",
        "inverts a dependency: `mcp` speaks over a connection that a front end owns",
    ),
    (
        "StateDocument",
        "is implemented for every stored document, by one macro",
    ),
];

/// Returns the text without comments.
fn without_comments(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the name of the trait that a line declares.
fn declared_trait(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let rest = line.strip_prefix("trait ")?;
    Some(first_name(rest))
}

/// Returns the name at the beginning of a text.
fn first_name(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Returns the name of the trait for each `impl … for` in a text.
fn implemented_traits(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        // A macro that implements a trait for several types repeats with `$(`.
        let code = line.trim_start().trim_start_matches("$(");
        let code = code.strip_prefix("unsafe ").unwrap_or(code);
        if !code.starts_with("impl ") && !code.starts_with("impl<") {
            continue;
        }
        let from = start + line.len() - code.len() + "impl".len();
        let header = text[from..].split(['{', ';']).next().unwrap_or_default();
        let Some((named, _)) = without_parameters(header).split_once(" for ") else {
            continue;
        };
        let path = named.split('<').next().unwrap_or_default().trim();
        found.push(path.rsplit("::").next().unwrap_or_default().to_owned());
    }
    found
}

/// Returns the header of an `impl` without the generic parameters at its beginning.
fn without_parameters(header: &str) -> &str {
    if !header.starts_with('<') {
        return header;
    }
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in header.char_indices() {
        match c {
            '<' => depth += 1,
            // The `>` of `->` closes nothing.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &header[at + 1..];
        }
        before = c;
    }
    header
}

#[test]
fn traits_with_one_implementation_have_a_reason() {
    let mut traits = BTreeSet::new();
    let mut implementations: BTreeMap<String, usize> = BTreeMap::new();
    let mut doubles = BTreeSet::new();
    for (path, text) in rust_files() {
        if path.contains("/examples/") {
            continue;
        }
        let is_test = is_test_file(&path) || path.starts_with("crates/testkit/");
        let (code, tests) = if is_test {
            ("", text.as_str())
        } else {
            split_tests(&text)
        };
        let code = without_comments(code);
        traits.extend(code.lines().filter_map(declared_trait));
        for name in implemented_traits(&code) {
            *implementations.entry(name).or_default() += 1;
        }
        doubles.extend(implemented_traits(&without_comments(tests)));
    }
    assert!(traits.len() > 20, "the traits were not found");
    let single: BTreeSet<&str> = traits
        .iter()
        .filter(|name| implementations.get(*name) == Some(&1) && !doubles.contains(*name))
        .map(String::as_str)
        .collect();
    let allowed: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        single, allowed,
        "left: traits with one implementation and no test double; right: those with a reason"
    );
}

#[test]
fn implemented_traits_are_found() {
    let text = "impl Plain for A {\nimpl<T: Fn() -> X<T>> a::Generic<T> for B<T>\nwhere T: Y {\n    $(impl Many for $kind {\nimpl Own {\nimpl<T> Own<T> {";
    assert_eq!(implemented_traits(text), ["Plain", "Generic", "Many"]);
}
