//! Compares the user-visible messages with the code that shows them: every key in the code is
//! defined, every defined key is used, the arguments are equal, and every language defines every
//! key.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Front ends whose texts lie in `messages/LANGUAGE/NAME.ftl`.
const SURFACES: [&str; 6] = ["tui", "haft", "serve", "inspect", "worker", "messages"];

/// Messages without a word that could be translated.
const SAME_IN_CHINESE: [&str; 47] = [
    "activity-of-agent",
    "app-mode-meaning",
    "changes-note",
    "serve-what-if-between",
    "config-reason",
    "config-reason-between",
    "app-agent-says",
    "app-alert-question",
    "approval-mark",
    "app-comma",
    "app-menu-place",
    "app-picker-place",
    "app-tokens",
    "app-tokens-out",
    "context-report-end",
    "context-report-heading",
    "context-why-forecast-tokens",
    "context-why-tokens",
    "proxy-conversation-total",
    "demo-end",
    "edits-edited",
    "edits-message",
    "edits-tokens",
    "hints-after",
    "hints-cause",
    "hints-error",
    "inspect-between",
    "inspect-diff-line",
    "models-test-heading",
    "output-between",
    "output-comma",
    "plain-open-command",
    "plain-open-key",
    "output-retry-limit",
    "permissions-verdict",
    "replay-kept",
    "run-permission",
    "serve-and-cost",
    "serve-cause",
    "setup-key-question",
    "table-api",
    "table-id",
    "table-tokens",
    "tools-offer",
    "trust-state",
    "workflows-between",
    "worker-bad-webhook",
];

type Arguments = BTreeSet<String>;

fn front_end_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn read_files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let paths = ignore::WalkBuilder::new(folder)
        .build()
        .map(|entry| entry.unwrap().into_path());
    // Texts of libraries are found by their English text, not by a key.
    let is_keyed = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default();
        name != "library" && name != "reworded"
    };
    let mut all: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|given| given == ending) && is_keyed(path))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "{}", folder.display());
    all
}

/// Returns every key of a language with the arguments in its text.
fn defined_messages(surface_name: &str, language: &str) -> BTreeMap<String, Arguments> {
    let mut keys = BTreeMap::new();
    for (path, text) in read_files(
        &front_end_folder(surface_name)
            .join("messages")
            .join(language),
        "ftl",
    ) {
        let file = path.file_stem().unwrap().to_str().unwrap();
        let parsed = fluent_syntax::parser::parse(text.as_str());
        assert!(
            parsed.is_ok(),
            "{}: {:?}",
            path.display(),
            parsed.err().map(|(_, errors)| errors)
        );
        let mut key = None;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, _)) = line.split_once(" =").filter(|_| !line.starts_with(' ')) {
                assert!(
                    name.starts_with(&format!("{file}-")),
                    "`{name}` stands in {file}.ftl"
                );
                assert!(
                    keys.insert(name.to_owned(), Arguments::new()).is_none(),
                    "`{name}` stands there twice"
                );
                key = Some(name.to_owned());
            }
            let named = line
                .split('$')
                .skip(1)
                .map(leading_identifier)
                .filter(|name| !name.is_empty());
            // `${ $cost }` is an amount of dollars.
            if let Some(arguments) = key.as_ref().and_then(|key| keys.get_mut(key)) {
                arguments.extend(named);
            }
        }
    }
    keys
}

fn leading_identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

/// Returns every use of a message in the code, with its arguments.
fn used_messages(surface_name: &str) -> Vec<(String, Arguments)> {
    let mut uses = Vec::new();
    for (_, text) in read_files(&front_end_folder(surface_name).join("src"), "rs") {
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let calls = code.split("text!(").skip(1).map(str::trim_start);
        for call in calls.filter_map(|call| call.strip_prefix('"')) {
            let (key, rest) = call.split_once('"').unwrap();
            uses.push((key.to_owned(), argument_names(rest)));
        }
    }
    uses.retain(|(key, _)| !key.contains(' '));
    uses
}

/// Returns the argument names in `, name, other = value)`.
fn argument_names(call: &str) -> Arguments {
    let mut depth = 0;
    let mut quoted = false;
    let mut escaped = false;
    let mut parts = vec![String::new()];
    for c in call.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    parts
        .iter()
        .map(|part| leading_identifier(part.trim_start()))
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn english_messages_are_defined_and_used_with_equal_arguments() {
    for name in SURFACES {
        let written = defined_messages(name, "en");
        let used = used_messages(name);
        assert!(
            used.len() >= written.len() && !used.is_empty(),
            "{name}: the uses were not found"
        );
        for (key, arguments) in &used {
            assert_eq!(
                written.get(key),
                Some(arguments),
                "{name}: the arguments of `{key}` in the text, and in the code"
            );
        }
        let used: BTreeSet<_> = used.iter().map(|(key, _)| key).collect();
        let idle: Vec<_> = written.keys().filter(|key| !used.contains(key)).collect();
        assert!(idle.is_empty(), "{name}: nothing shows {idle:?}");
    }
}

#[test]
fn chinese_messages_have_the_english_keys_and_arguments() {
    for name in SURFACES {
        let english = defined_messages(name, "en");
        let chinese = defined_messages(name, "zh-CN");
        for (key, arguments) in &english {
            assert_eq!(
                chinese.get(key),
                Some(arguments),
                "{name}: `{key}` in Chinese, and in English"
            );
        }
        let idle: Vec<_> = chinese
            .keys()
            .filter(|key| !english.contains_key(*key))
            .collect();
        assert!(idle.is_empty(), "{name}: only in Chinese {idle:?}");
    }
}

#[test]
fn chinese_messages_are_translated() {
    for name in SURFACES {
        for (_, text) in read_files(&front_end_folder(name).join("messages/zh-CN"), "ftl") {
            let entries = text
                .split("\n\n")
                .skip(1)
                .flat_map(str::lines)
                .filter(|line| !line.starts_with('#'));
            let mut messages: Vec<(&str, String)> = Vec::new();
            for line in entries {
                match line.split_once(" =").filter(|_| !line.starts_with(' ')) {
                    Some((key, rest)) => messages.push((key, rest.to_owned())),
                    None => messages.last_mut().unwrap().1.push_str(line),
                }
            }
            for (key, said) in messages {
                let is_chinese = said.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
                assert_eq!(
                    is_chinese,
                    !SAME_IN_CHINESE.contains(&key),
                    "`{key}`: {said}"
                );
            }
        }
    }
}

/// Nouns whose number can be 1.
const COUNTED: [&str; 16] = [
    "lines",
    "files",
    "messages",
    "requests",
    "conversations",
    "edits",
    "tools",
    "models",
    "pages",
    "rules",
    "rows",
    "backups",
    "characters",
    "resources",
    "prompts",
    "passages",
];

#[test]
fn counted_nouns_have_a_plural() {
    // Limits, parts of a whole, tokens by layer, and counts that start at two.
    const NEVER_ONE: [&str; 5] = [
        "catalogue-skill-too-large",
        "changes-would-keep",
        "replay-left-out-all",
        "context-test-prefix-parts",
        "approval-always-many",
    ];
    for name in SURFACES {
        for (_, text) in read_files(&front_end_folder(name).join("messages/en"), "ftl") {
            for line in text
                .lines()
                .filter(|line| !line.trim_start().starts_with("*[other]"))
            {
                let counted = line
                    .split("{ $")
                    .skip(1)
                    .filter_map(|rest| rest.split_once(" } "));
                let wrong = counted.filter(|(_, after)| {
                    let word: String = after
                        .chars()
                        .take_while(char::is_ascii_alphabetic)
                        .collect();
                    COUNTED.contains(&word.as_str())
                });
                let key = line.split(" =").next().unwrap();
                assert!(
                    wrong.count() == 0 || NEVER_ONE.contains(&key),
                    "{name}: {line}"
                );
            }
        }
    }
}

#[test]
fn message_files_are_all_loaded() {
    for (name, list) in [
        ("tui", "src/lib.rs"),
        ("haft", "src/output/messages.rs"),
        ("serve", "src/lib.rs"),
        ("inspect", "src/lib.rs"),
        ("worker", "src/lib.rs"),
    ] {
        let list = fs::read_to_string(front_end_folder(name).join(list)).unwrap();
        for (path, _) in read_files(&front_end_folder(name).join("messages/en"), "ftl") {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                list.contains(&format!("\"{stem}\"")),
                "{name} does not read {stem}.ftl"
            );
        }
    }
}

#[test]
fn argument_names_are_found_in_code() {
    let names = |call| argument_names(call).into_iter().collect::<Vec<_>>();
    assert_eq!(names(r#"), "x")"#), Vec::<String>::new());
    assert_eq!(
        names(r#", id, file = path.join("a, (b"), n = f(1, 2))"#),
        ["file", "id", "n"]
    );
}
