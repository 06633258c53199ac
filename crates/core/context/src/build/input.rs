//! Input treatment: files mentioned with `@` are named to the model, which reads them itself. No content is injected.

use std::collections::HashSet;
use std::fmt::Write as _;

/// The input as it is stored and sent: the user's words, then one reminder that names the mentioned files.
///
/// `exists` tells whether a project-relative path exists; it is asked only about words without `/` and extension. `most` is
/// how many files are named before "(and N more…)".
pub fn treat_input(text: &str, most: usize, exists: &dyn Fn(&str) -> bool) -> String {
    let mentioned = mentions(text, exists);
    if mentioned.is_empty() || most == 0 {
        return text.to_owned();
    }
    let mut treated = format!(
        "{text}\n\n<system-reminder>\nThe user mentions these files. Read them with the `read_file` tool, in this order, before you answer:\n"
    );
    for path in mentioned.iter().take(most) {
        treated.push_str("- ");
        treated.push_str(path);
        treated.push('\n');
    }
    if mentioned.len() > most {
        // Writing to a String cannot fail.
        let _ = writeln!(treated, "(and {} more…)", mentioned.len() - most);
    }
    treated.push_str("</system-reminder>");
    treated
}

/// The paths mentioned, in order, each once.
fn mentions(text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let after_word = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        if after_word {
            continue;
        }
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').map(|(path, _)| path).filter(|path| !path.contains('\n')),
            None => Some(bare_path(rest)),
        };
        let quoted = rest.starts_with('"');
        if let Some(path) = path.filter(|path| stays_inside(path))
            && (quoted || path.contains('/') || has_extension(path) || exists(path))
            && seen.insert(path)
        {
            found.push(path.to_owned());
        }
    }
    found
}

/// The longest path at the front; dots at its end belong to the sentence.
fn bare_path(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c))).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

fn has_extension(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
}

/// Not empty, not absolute, and at no point above the project.
fn stays_inside(path: &str) -> bool {
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

    fn found(text: &str) -> Vec<String> {
        mentions(text, &|path| path == "Makefile")
    }

    #[test]
    fn what_is_a_mention() {
        let cases: &[(&str, &[&str])] = &[
            ("fix @src/main.rs please", &["src/main.rs"]),
            ("see @src/main.rs.", &["src/main.rs"]),
            ("(@a.rs), @b.rs; @a.rs again", &["a.rs", "b.rs"]),
            ("@\"my notes/to do.md\" and more", &["my notes/to do.md"]),
            ("mail me@example.com", &[]),
            ("ünder@the.bridge", &[]),
            ("@Makefile and @someone", &["Makefile"]),
            ("@/etc/passwd @../secret.txt @a/../../b.txt", &[]),
            ("@a/../b.txt", &["a/../b.txt"]),
            ("@\"/etc/passwd\" @\"unclosed", &[]),
            ("@ @. @.. @/", &[]),
            ("@src/", &["src/"]),
            ("用@路径 @文档.md", &[]),
            ("看@notes.md", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), *expected, "{text}");
        }
    }

    #[test]
    fn the_reminder_follows_the_users_words() {
        let treated = treat_input("compare @a.rs and @b.rs", 5, &|_| false);
        assert_eq!(
            treated,
            "compare @a.rs and @b.rs\n\n<system-reminder>\nThe user mentions these files. Read them with the `read_file` tool, in this order, before you answer:\n- a.rs\n- b.rs\n</system-reminder>"
        );
    }

    #[test]
    fn at_most_so_many_are_named() {
        let text = "@f0.rs @f1.rs @f2.rs @f3.rs @f4.rs @f5.rs @f6.rs ".to_owned();
        let treated = treat_input(&text, 5, &|_| false);
        assert!(treated.contains("- f4.rs\n(and 2 more…)\n") && !treated.contains("- f5.rs"), "{treated}");
    }

    #[test]
    fn without_mentions_the_words_are_untouched() {
        assert_eq!(treat_input("no files here", 5, &|_| true), "no files here");
    }
}
