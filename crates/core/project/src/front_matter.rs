//! Parses the YAML front matter between two `---` lines at the beginning of a Markdown file.

use std::path::Path;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::problem::FileProblem;

/// The content of a file, split into front matter and body.
pub(crate) struct SplitFile<T> {
    /// The parsed front matter, or the default value if the file has no front matter or its front
    /// matter cannot be parsed.
    pub(crate) head: T,
    pub(crate) body: String,
    /// True if the file has front matter that cannot be parsed.
    pub(crate) broken: bool,
}

/// Splits a file into front matter and body. Front matter that cannot be parsed is reported, and
/// the body is kept.
pub(crate) fn split_file<T: DeserializeOwned + Default>(
    path: &Path,
    text: &str,
    problems: &mut Vec<FileProblem>,
) -> SplitFile<T> {
    let without_head = |broken| SplitFile {
        head: T::default(),
        body: text.to_owned(),
        broken,
    };
    let Some(rest) = text.strip_prefix("---\n") else {
        return without_head(false);
    };
    let Some((yaml, body)) = split_at_closing_line(rest) else {
        problems.push(
            FileProblem::new(
                path,
                "the front matter has no closing `---`; the whole file is taken as text",
            )
            .at_line(1),
        );
        return without_head(true);
    };
    let body = body.trim_start_matches('\n').to_owned();
    if yaml.trim().is_empty() {
        return SplitFile {
            head: T::default(),
            body,
            broken: false,
        };
    }
    match serde_saphyr::from_str(yaml)
        .or_else(|error| serde_saphyr::from_str(&quote_free_text(yaml)).map_err(|_| error))
    {
        Ok(head) => SplitFile {
            head,
            body,
            broken: false,
        },
        Err(error) => {
            let line = error
                .location()
                .map_or(1, |location| location.line() as usize);
            let why = error.without_snippet().to_string();
            let why = why.lines().next().unwrap_or("it is not YAML");
            // The line number is already a field of the `FileProblem`.
            let why = why.rsplit_once(" at line ").map_or(why, |(why, _)| why);
            // The first line of the YAML is the second line of the file.
            problems.push(
                FileProblem::new(path, format!("the front matter cannot be read: {why}"))
                    .at_line(line + 1),
            );
            SplitFile {
                head: T::default(),
                body,
                broken: true,
            }
        }
    }
}

/// Keys whose values people often write without the quotes that YAML requires.
const FREE_TEXT_KEYS: [&str; 2] = ["description", "argument-hint"];

/// Keys that may follow an unquoted value of several lines, and therefore end this value.
const KNOWN_KEYS: [&str; 14] = [
    "name",
    "description",
    "argument-hint",
    "tools",
    "allowed-tools",
    "disallowedTools",
    "model",
    "color",
    "globs",
    "paths",
    "alwaysApply",
    "include_rules",
    "permissionMode",
    "version",
];

/// Adds the quotes that YAML requires but people omit. Values are quoted in `description: Note: …`,
/// `argument-hint: [a] [b]` and `globs: *.ts`, and in descriptions that continue with examples on
/// the next lines.
fn quote_free_text(yaml: &str) -> String {
    let key_of = |line: &str| {
        line.split_once(':')
            .map(|(key, _)| key.to_owned())
            .filter(|key| KNOWN_KEYS.contains(&&**key))
    };
    let mut out: Vec<String> = Vec::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let value = line.split_once(':').map_or("", |(_, value)| value).trim();
        // Globs are quoted only if YAML would take `*` for an alias.
        let key = key_of(line).filter(|key| match key.as_str() {
            "globs" => value.starts_with('*'),
            key => {
                FREE_TEXT_KEYS.contains(&key)
                    && !value.is_empty()
                    && !value.starts_with(['"', '\'', '|', '>'])
            }
        });
        let Some(key) = key else {
            out.push(line.to_owned());
            continue;
        };
        let mut text = value.to_owned();
        while let Some(more) = lines.next_if(|line| key_of(line).is_none()) {
            text.push('\n');
            text.push_str(more);
        }
        out.push(format!(
            "{key}: {}",
            serde_json::Value::from(text.trim_end())
        ));
    }
    out.join("\n")
}

/// Splits the text at the line `---` that closes the front matter. Returns `None` if there is no
/// such line.
fn split_at_closing_line(rest: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..start], &rest[start + line.len()..]));
        }
        start += line.len();
    }
    None
}

/// A list of words, which may be written as a YAML list or as one comma-separated string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordList(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for WordList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum WordListForm {
            List(Vec<String>),
            Line(String),
            Nothing(()),
        }
        let words = match WordListForm::deserialize(deserializer) {
            Ok(WordListForm::List(words)) => words,
            Ok(WordListForm::Line(line)) => split_outside_braces(&line),
            Ok(WordListForm::Nothing(())) => Vec::new(),
            Err(_) => {
                return Err(D::Error::custom(
                    "expected a list of words, or one line with commas between them",
                ));
            }
        };
        Ok(Self(
            words
                .iter()
                .map(|word| word.trim().to_owned())
                .filter(|word| !word.is_empty())
                .collect(),
        ))
    }
}

/// Splits a line at commas, except for commas within braces, as in `*.{ts,tsx}`.
fn split_outside_braces(line: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in line.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Head {
        globs: WordList,
        description: String,
    }

    fn split_front_matter(text: &str) -> (Head, String, Vec<String>) {
        let mut problems = Vec::new();
        let parted = split_file::<Head>(Path::new("a.md"), text, &mut problems);
        (
            parted.head,
            parted.body,
            problems.iter().map(FileProblem::to_string).collect(),
        )
    }

    #[test]
    fn word_list_accepts_lists_and_lines() {
        let words = |text: &str| split_front_matter(text).0.globs.0;
        assert_eq!(words("---\nglobs: [a, 'b,c']\n---\nx"), ["a", "b,c"]);
        assert_eq!(
            words("---\nglobs: \"*.rs, src/*.{ts,tsx}\"\n---\nx"),
            ["*.rs", "src/*.{ts,tsx}"]
        );
        assert_eq!(words("---\nglobs:\n---\nx"), Vec::<String>::new());
    }

    #[test]
    fn part_reports_the_line_of_an_error_and_keeps_the_text() {
        let (head, body, problems) =
            split_front_matter("---\ndescription: x\nglobs: {a: 1}\n---\n\nText.\n");
        assert_eq!((head, body.as_str()), (Head::default(), "Text.\n"));
        assert!(
            problems[0].starts_with("a.md, line 3: the front matter cannot be read"),
            "{problems:?}"
        );
        let (_, body, problems) = split_front_matter("---\ndescription: x\nText.\n");
        assert_eq!(body, "---\ndescription: x\nText.\n");
        assert!(problems[0].contains("no closing"), "{problems:?}");
    }

    #[test]
    fn part_reads_unquoted_descriptions() {
        let (head, _, problems) =
            split_front_matter("---\ndescription: Note: it's [a] [b]\nglobs: '*.rs'\n---\nx");
        assert_eq!(
            (head.description.as_str(), problems.len()),
            ("Note: it's [a] [b]", 0),
            "{problems:?}"
        );
        assert_eq!(head.globs.0, ["*.rs"]);
    }

    #[test]
    fn part_reads_multi_line_descriptions_up_to_the_next_key() {
        let text = "---\nname: a\ndescription: Use when: asked. Examples:\n\n<example>\nContext: one\nuser: \"Go\"\n</example>\nglobs: *.ts, src/**\n---\nx";
        let (head, _, problems) = split_front_matter(text);
        assert_eq!(problems.len(), 0, "{problems:?}");
        assert!(
            head.description.starts_with("Use when: asked.")
                && head.description.ends_with("</example>")
        );
        assert_eq!(head.globs.0, ["*.ts", "src/**"]);
        assert_eq!(
            split_front_matter("---\ndescription: a: b\nglobs: [\"*.rs\", b]\n---\n")
                .0
                .globs
                .0,
            ["*.rs", "b"]
        );
    }

    #[test]
    fn part_returns_files_without_front_matter_whole() {
        assert_eq!(
            split_front_matter("# A\n---\nb\n---\n").1,
            "# A\n---\nb\n---\n"
        );
    }
}
