//! Configuration errors on one line: place, problem, and a suggestion.

use std::path::Path;

use crate::error::ConfigError;

/// Creates the error for a TOML file, with its place and a suggestion for an unknown key.
pub fn error_in_file(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    error_at(
        path,
        text,
        error.span().map(|span| span.start),
        describe_with_suggestion(error.message()),
    )
}

/// Creates the error for a problem at `offset`, or at the start of the file if the offset is
/// unknown.
pub(super) fn error_at(
    path: &Path,
    text: &str,
    offset: Option<usize>,
    problem: String,
) -> ConfigError {
    let (line, column) = offset.map_or((1, 1), |offset| line_and_column(text, offset));
    ConfigError::InFile {
        file: path.to_owned(),
        line,
        column,
        problem,
    }
}

/// Returns the message of an error on one line, with a suggestion for an unknown key.
pub(super) fn describe_with_suggestion(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    // The message of `toml` if an unquoted value was found instead of a name.
    if message == "invalid type: unit variant, expected string only" {
        return "expected a name, not a number, a boolean, a list or a table".to_owned();
    }
    let Some(rest) = message.strip_prefix("unknown field ") else {
        return message;
    };
    let mut names = rest.split('`').skip(1).step_by(2);
    let unknown = names.next().unwrap_or_default();
    unknown_key_message(unknown, &names.collect::<Vec<_>>())
}

/// Returns the message for an unknown key, with the nearest known key or all known keys.
pub(super) fn unknown_key_message(unknown: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), *name))
        .filter(|(distance, _)| *distance <= 1 + unknown.len() / 3)
        .min();
    match (nearest, known.is_empty()) {
        (Some((_, name)), _) => format!("unknown key `{unknown}`; did you mean `{name}`?"),
        (None, false) => format!(
            "unknown key `{unknown}`; the keys here are {}",
            known.join(", ")
        ),
        (None, true) => format!("unknown key `{unknown}`; this section has no keys"),
    }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words_suggests_the_nearest_key() {
        let message = describe_with_suggestion(
            "unknown field `modle`, expected one of `model`, `providers`, `models`",
        );
        assert_eq!(message, "unknown key `modle`; did you mean `model`?");
        let message = describe_with_suggestion("unknown field `zzzzzz`, expected `mode`");
        assert_eq!(message, "unknown key `zzzzzz`; the keys here are mode");
    }

    #[test]
    fn in_words_explains_a_number_in_place_of_a_name() {
        let error = toml::Value::Integer(1)
            .try_into::<haft_types::PermissionMode>()
            .unwrap_err();
        assert_eq!(
            describe_with_suggestion(error.message()),
            "expected a name, not a number, a boolean, a list or a table"
        );
    }

    #[test]
    fn line_and_column_count_from_one_in_characters() {
        assert_eq!(line_and_column("a = 1\nü = ", 9), (2, 3));
        assert_eq!(line_and_column("", 0), (1, 1));
    }
}
