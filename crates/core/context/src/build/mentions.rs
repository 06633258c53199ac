//! Input treatment: files and folders that the user mentions with `@` are named to the model, which
//! reads them itself. No content is injected.
//!
//! A mention follows these rules. The `@` does not follow an ASCII letter or digit
//! (`me@example.com` is no mention, `请看@src/a.rs` is one). The path is the longest run of ASCII
//! letters, digits and `/ . _ -` without trailing dots, or the longest existing path that includes
//! other letters, or quoted text. The path stays inside the project. Words that often mean
//! something else count only if the project has such a path: words without an extension
//! (`@someone`, `@types/node`), versions (`@v1.2`) and decorators (`@pytest.fixture`).

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::iter;

/// The kind of a path in the project that the user mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MentionKind {
    /// A file, which the model should read.
    File,
    /// A folder, which the model should list.
    Folder,
}

/// The maximum number of path lookups per input. A pasted log may contain thousands of `@`
/// characters.
const MAX_LOOKUPS: usize = 2_000;
/// The maximum length of a word with non-ASCII characters that is treated as a path.
const MAX_NON_ASCII_PATH_BYTES: usize = 512;
/// The maximum length of the extension of a file that may be mentioned although it does not exist.
const MAX_EXTENSION_BYTES: usize = 4;

/// The tools with which the model can read mentioned files and folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MentionTools {
    /// True if the model has the tool `read_file`.
    pub read_file: bool,
    /// True if the model has the tool `list_files`.
    pub list_files: bool,
}

impl MentionTools {
    /// The value for a model that has both tools.
    pub const ALL: Self = Self {
        read_file: true,
        list_files: true,
    };
}

/// A file whose content is attached to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedText {
    /// The path, in any spelling with which the user may have mentioned the file.
    pub names: Vec<String>,
    /// The name and the content, as the model reads them.
    pub text: String,
}

/// Returns the input in the form in which it is stored and sent: the user's text, followed by a
/// reminder. The reminder names the mentioned files and folders, and those tools of the model that
/// can read them. It contains the `attached` files, which are not named again.
///
/// `lookup` returns the kind of a project-relative path, or `None` if the path does not exist. The
/// reminder names at most `max_named` paths, followed by "(and N more…)".
pub fn append_mentions(
    text: &str,
    max_named: usize,
    tools: MentionTools,
    attached: &[AttachedText],
    lookup: &dyn Fn(&str) -> Option<MentionKind>,
) -> String {
    let mut mentioned = find_mentions(user_text(text), lookup);
    mentioned.retain(|(path, _)| {
        let path = path.strip_prefix("./").unwrap_or(path);
        !attached
            .iter()
            .any(|file| file.names.iter().any(|name| name == path))
    });
    let mut paragraphs = Vec::new();
    if !mentioned.is_empty() && max_named > 0 {
        paragraphs.push(list_mentions(&mentioned, max_named, tools));
    }
    if !attached.is_empty() {
        paragraphs.push("The files that the task names:".to_owned());
        paragraphs.extend(attached.iter().map(|file| file.text.clone()));
    }
    if paragraphs.is_empty() {
        return text.to_owned();
    }
    format!(
        "{text}\n\n<system-reminder>\n{}\n</system-reminder>",
        paragraphs.join("\n\n")
    )
}

/// Returns the request to read the mentioned files and list the mentioned folders.
fn list_mentions(
    mentioned: &[(&str, MentionKind)],
    max_named: usize,
    tools: MentionTools,
) -> String {
    let folders = mentioned
        .iter()
        .take(max_named)
        .any(|(_, kind)| *kind == MentionKind::Folder);
    let request = match (folders, tools) {
        (
            true,
            MentionTools {
                read_file: true,
                list_files: true,
            },
        ) => {
            "The user mentions these files and folders. You MUST read each file with the `read_file` tool and list each folder with the `list_files` tool, in this order, before you answer:"
        }
        (
            true,
            MentionTools {
                read_file: true,
                list_files: false,
            },
        ) => {
            "The user mentions these files and folders. You MUST read each file with the `read_file` tool, in this order, before you answer:"
        }
        (
            true,
            MentionTools {
                read_file: false, ..
            },
        ) => "The user mentions these files and folders:",
        (
            false,
            MentionTools {
                read_file: true, ..
            },
        ) => {
            "The user mentions these files. You MUST read them with the `read_file` tool, in this order, before you answer:"
        }
        (
            false,
            MentionTools {
                read_file: false, ..
            },
        ) => "The user mentions these files:",
    };
    let mut list = format!("{request}\n");
    for (path, kind) in mentioned.iter().take(max_named) {
        list.push_str("- ");
        list.push_str(path);
        list.push_str(match kind {
            MentionKind::File => "\n",
            MentionKind::Folder => " (folder)\n",
        });
    }
    if mentioned.len() > max_named {
        // Writing to a String cannot fail.
        let _ = writeln!(list, "(and {} more…)", mentioned.len() - max_named);
    }
    list.trim_end().to_owned()
}

/// Returns the part of an input that the user typed, without piped text and without the reminder
/// about mentioned files.
pub fn user_text(text: &str) -> &str {
    let reminder = text
        .rfind("\n\n<system-reminder>\n")
        .filter(|_| text.ends_with("</system-reminder>"));
    let own = &text[..reminder.unwrap_or(text.len())];
    own.split_once("\n<stdin>\n").map_or(own, |(own, _)| own)
}

/// Returns the mentioned paths in order, without duplicates.
fn find_mentions<'a>(
    text: &'a str,
    lookup: &dyn Fn(&str) -> Option<MentionKind>,
) -> Vec<(&'a str, MentionKind)> {
    let lookups = Cell::new(0);
    let lookup = |path: &str| {
        lookups.set(lookups.get() + 1);
        if lookups.get() > MAX_LOOKUPS {
            None
        } else {
            lookup(path)
        }
    };
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        if text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()) {
            continue;
        }
        let rest = &text[at + 1..];
        let mention = match rest.strip_prefix('"') {
            Some(quoted) => parse_quoted_path(quoted)
                .map(|path| (path, lookup(path).unwrap_or(guess_kind(path)))),
            None => parse_bare_path(rest, &lookup),
        };
        if let Some((path, kind)) = mention
            && seen.insert(
                path.strip_prefix("./")
                    .unwrap_or(path)
                    .trim_end_matches('/'),
            )
        {
            found.push((path, kind));
        }
    }
    found
}

/// Returns the path before the closing quote; `None` if the first line has no closing quote, or if
/// the path leads out of the project.
fn parse_quoted_path(text: &str) -> Option<&str> {
    let end = text.find(['"', '\n'])?;
    let path = &text[..end];
    (text[end..].starts_with('"') && stays_in_project(path)).then_some(path)
}

/// Returns the path at the start of the text, with its kind.
fn parse_bare_path<'a>(
    text: &'a str,
    lookup: &dyn Fn(&str) -> Option<MentionKind>,
) -> Option<(&'a str, MentionKind)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let end = text.find(|c: char| !plain(c)).unwrap_or(text.len());
    if let Some(found) = find_non_ascii_path(text, end, plain, lookup) {
        return Some(found);
    }
    // Trailing dots belong to the sentence.
    let path = text[..end].trim_end_matches('.');
    if !stays_in_project(path) {
        return None;
    }
    let doubtful =
        !path.ends_with('/') && !has_extension(path) || is_version(path) || is_decorator(path);
    // Other trailing marks may belong to the sentence, too; try the path without them as well:
    // `_@a.rs_`, `@a.rs/@b.rs`.
    let bare = path.trim_end_matches(['.', '/', '_', '-']);
    let bare = Some(bare).filter(|bare| *bare != path && stays_in_project(bare));
    match iter::once(path)
        .chain(bare)
        .find_map(|path| lookup(path).map(|kind| (path, kind)))
    {
        Some(found) => Some(found),
        None if doubtful => None,
        None => Some((path, guess_kind(path))),
    }
}

/// Returns the longest existing path at the start of the text that contains non-ASCII characters.
/// In languages without spaces, other text may follow the path directly, so the path may end before
/// any non-ASCII character after `plain_end`.
fn find_non_ascii_path<'a>(
    text: &'a str,
    plain_end: usize,
    plain: impl Fn(char) -> bool,
    lookup: &dyn Fn(&str) -> Option<MentionKind>,
) -> Option<(&'a str, MentionKind)> {
    let letters = text.char_indices().skip_while(|(at, _)| *at < plain_end);
    let mut ends = Vec::new();
    let mut last = plain_end;
    let path = letters.take_while(|&(at, c)| {
        at <= MAX_NON_ASCII_PATH_BYTES
            && (plain(c) || (!c.is_ascii() && !c.is_whitespace() && !c.is_control()))
    });
    for (at, c) in path {
        if !c.is_ascii() && at > plain_end {
            ends.push(at);
        }
        last = at + c.len_utf8();
    }
    if last > plain_end {
        ends.push(last);
    }
    ends.into_iter().rev().find_map(|end| {
        let path = text[..end].trim_end_matches('.');
        let kind = if stays_in_project(path) {
            lookup(path)
        } else {
            None
        };
        kind.map(|kind| (path, kind))
    })
}

/// Returns the probable kind of a path that does not exist.
fn guess_kind(path: &str) -> MentionKind {
    if path.ends_with('/') {
        MentionKind::Folder
    } else {
        MentionKind::File
    }
}

fn has_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
}

/// True for a word such as `pytest.fixture`: outside a folder, and with a longer extension than the
/// common ones.
fn is_decorator(word: &str) -> bool {
    !word.contains('/')
        && word
            .rsplit_once('.')
            .is_some_and(|(_, extension)| extension.len() > MAX_EXTENSION_BYTES)
}

/// True for a version number, such as `v1.2` or `2.0.0-rc.1`: numbers separated by dots, optionally
/// with a leading `v`, and optionally with a suffix after a hyphen.
fn is_version(word: &str) -> bool {
    let numbers = word.split('-').next().unwrap_or_default();
    let numbers = numbers.strip_prefix(['v', 'V']).unwrap_or(numbers);
    numbers
        .split('.')
        .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if the path is relative, is not empty, and never leads above the project.
fn stays_in_project(path: &str) -> bool {
    let mut depth = 0_i32;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return false;
        }
    }
    depth > 0 && !path.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn treat(text: &str, most: usize, lookup: &dyn Fn(&str) -> Option<MentionKind>) -> String {
        append_mentions(text, most, MentionTools::ALL, &[], lookup)
    }

    #[test]
    fn treat_input_names_only_offered_tools() {
        let folder = |path: &str| (path == "src").then_some(MentionKind::Folder);
        for (read_file, list_files) in [(true, true), (true, false), (false, true), (false, false)]
        {
            for text in ["see @a.rs", "see @a.rs in @src"] {
                let treated = append_mentions(
                    text,
                    5,
                    MentionTools {
                        read_file,
                        list_files,
                    },
                    &[],
                    &folder,
                );
                assert!(treated.contains("- a.rs\n"), "{treated}");
                assert!(read_file || !treated.contains("`read_file`"), "{treated}");
                assert!(list_files || !treated.contains("`list_files`"), "{treated}");
            }
        }
    }

    fn lookup(path: &str) -> Option<MentionKind> {
        match path.trim_end_matches('/') {
            "Makefile" | "src/文档.md" | "пример.txt" | "한글/노트.md" | "v1.2" | "src/café.rs" => {
                Some(MentionKind::File)
            }
            "" | "src" | "docs/guide" | "资料" => Some(MentionKind::Folder),
            _ => None,
        }
    }

    fn found(text: &str) -> Vec<&str> {
        find_mentions(text, &lookup)
            .into_iter()
            .map(|(path, _)| path)
            .collect()
    }

    #[test]
    fn mentions_recognizes_paths_after_an_at_sign() {
        let cases: &[(&str, &[&str])] = &[
            ("fix @src/main.rs please", &["src/main.rs"]),
            ("see @src/main.rs.", &["src/main.rs"]),
            ("see @src/main.rs...", &["src/main.rs"]),
            ("(@a.rs), @b.rs; @a.rs again", &["a.rs", "b.rs"]),
            ("@./a.rs and @a.rs, @src and @src/", &["./a.rs", "src"]),
            ("@\"my notes/to do.md\" and more", &["my notes/to do.md"]),
            ("mail me@example.com", &[]),
            ("mail 7@example.com", &[]),
            ("ünder@the.bridge", &[]),
            ("@Makefile and @someone", &["Makefile"]),
            ("@/etc/passwd @../secret.txt @a/../../b.txt", &[]),
            ("@a/../b.txt", &["a/../b.txt"]),
            ("@\"/etc/passwd\" @\"unclosed", &[]),
            ("@\"broken\nline\"", &[]),
            ("@ @. @.. @/", &[]),
            ("@src/ @lib/", &["src/", "lib/"]),
            (
                "_@Makefile_ @Makefile/@v1.2- @_ @-- @/_",
                &["Makefile", "v1.2"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), *expected, "{text}");
        }
    }

    #[test]
    fn mentions_works_in_any_script() {
        let cases: &[(&str, &[&str])] = &[
            ("请看@src/a.rs", &["src/a.rs"]),
            ("请看@src/a.rs，然后改@b.rs。", &["src/a.rs", "b.rs"]),
            ("请看@src/a.rs然后", &["src/a.rs"]),
            ("смотри@a.rs и@пример.txt.", &["a.rs", "пример.txt"]),
            (
                "파일@a.rs을 보세요 @한글/노트.md를",
                &["a.rs", "한글/노트.md"],
            ),
            ("見て@src/a.rs、", &["src/a.rs"]),
            ("@src/文档.md然后修改 @没有.md", &["src/文档.md"]),
            ("列出@src/里的文件", &["src/"]),
            ("@src/café.rs? @资料里", &["src/café.rs", "资料"]),
            ("用@路径 @文档.md", &[]),
            ("看@notes.md", &["notes.md"]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), *expected, "{text}");
        }
    }

    #[test]
    fn mentions_ignores_scopes_and_versions_unless_they_exist() {
        assert_eq!(
            found("@types/node @angular/core/testing @v1.3 @1.2.3 @2.0.0-rc.1 @v2"),
            [""; 0]
        );
        assert_eq!(
            found("@docs/guide and @v1.2, @v1.2/notes.md"),
            ["docs/guide", "v1.2", "v1.2/notes.md"]
        );
    }

    #[test]
    fn mentions_ignores_decorators_unless_they_exist() {
        assert_eq!(
            find_mentions(
                "@pytest.fixture @functools.lru_cache @a.setter @b.json",
                &|path| (path == "a.setter").then_some(MentionKind::File)
            ),
            [
                ("a.setter", MentionKind::File),
                ("b.json", MentionKind::File)
            ]
        );
    }

    #[test]
    fn treat_input_appends_the_reminder_to_the_prompt() {
        let treated = treat("compare @a.rs and @b.rs", 5, &|_| None);
        assert_eq!(
            treated,
            "compare @a.rs and @b.rs\n\n<system-reminder>\nThe user mentions these files. You MUST read them with the `read_file` tool, in this order, before you answer:\n- a.rs\n- b.rs\n</system-reminder>"
        );
    }

    #[test]
    fn treat_input_contains_attached_files_instead_of_their_names() {
        let attached = [AttachedText {
            names: vec!["a.rs".into()],
            text: "`a.rs`:\n```\nx\n```".into(),
        }];
        let treat = |text: &str| append_mentions(text, 5, MentionTools::ALL, &attached, &|_| None);
        let file = "The files that the task names:\n\n`a.rs`:\n```\nx\n```\n</system-reminder>";
        assert_eq!(
            treat("fix @a.rs"),
            format!("fix @a.rs\n\n<system-reminder>\n{file}")
        );
        assert_eq!(
            treat("compare @./a.rs and @b.rs"),
            format!(
                "compare @./a.rs and @b.rs\n\n<system-reminder>\nThe user mentions these files. You MUST read them with the `read_file` tool, in this order, before you answer:\n- b.rs\n\n{file}"
            )
        );
        assert_eq!(user_text(&treat("fix a.rs")), "fix a.rs");
    }

    #[test]
    fn treat_input_asks_to_list_a_folder() {
        let treated = treat("what is in @src and @a.rs?", 5, &lookup);
        assert!(
            treated.ends_with("list each folder with the `list_files` tool, in this order, before you answer:\n- src (folder)\n- a.rs\n</system-reminder>"),
            "{treated}"
        );
    }

    #[test]
    fn treat_input_limits_the_number_of_names() {
        let text = "@f0.rs @f1.rs @f2.rs @f3.rs @f4.rs @f5.rs @f6.rs ".to_owned();
        let treated = treat(&text, 5, &|_| None);
        assert!(
            treated.contains("- f4.rs\n(and 2 more…)\n") && !treated.contains("- f5.rs"),
            "{treated}"
        );
    }

    #[test]
    fn treat_input_ignores_mentions_in_piped_text() {
        let file = |_: &str| Some(MentionKind::File);
        let piped = "look\n\n<stdin>\nat @src/a.rs\n</stdin>";
        assert_eq!(treat(piped, 5, &file), piped);
        let both = treat("see @b.rs\n\n<stdin>\n@src/a.rs\n</stdin>", 5, &file);
        assert!(
            both.contains("- b.rs\n") && !both.contains("- src/a.rs"),
            "{both}"
        );
    }

    #[test]
    fn treat_input_leaves_text_without_mentions_unchanged() {
        assert_eq!(
            treat("no files here", 5, &|_| Some(MentionKind::File)),
            "no files here"
        );
    }

    #[test]
    fn mentions_limits_lookups_for_a_long_text() {
        let asked = Cell::new(0);
        let text = "@用户说@someone ".repeat(100_000);
        let count = |_: &str| {
            asked.set(asked.get() + 1);
            None
        };
        assert!(find_mentions(&text, &count).is_empty());
        assert_eq!(asked.get(), MAX_LOOKUPS);
    }
}
