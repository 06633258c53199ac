//! Edits of the user's configuration file that keep its comments and order.

use std::path::Path;

use crate::error::ConfigError;

/// Replaces the text of the file with the result of `change`. A missing file counts as empty.
pub fn edit_file<E: From<ConfigError>>(
    file: &Path,
    change: impl FnOnce(&str) -> Result<String, E>,
) -> Result<(), E> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(ConfigError::Unreadable {
                file: file.to_owned(),
                error,
            }
            .into());
        }
    };
    let after = move_below_comments(&before, change(&before)?);
    haft_files::replace_user_file(file, after.as_bytes()).map_err(|error| {
        ConfigError::Unwritable {
            file: file.to_owned(),
            error,
        }
        .into()
    })
}

/// Moves a new table below the comments at the end of the file. These comments belong to the table
/// before them, but would otherwise follow the new table.
fn move_below_comments(before: &str, after: String) -> String {
    let is_comment = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let comments: usize = before
        .split_inclusive('\n')
        .rev()
        .take_while(is_comment)
        .map(str::len)
        .sum();
    let (body, comments) = before.split_at(before.len() - comments);
    let added = after
        .strip_prefix(body)
        .and_then(|rest| rest.strip_suffix(comments));
    match added.filter(|added| comments.contains('#') && added.trim_start().starts_with('[')) {
        Some(added) => {
            let end = if comments.ends_with('\n') { "" } else { "\n" };
            let gap = if added.starts_with('\n') { "" } else { "\n" };
            format!("{body}{comments}{end}{gap}{added}")
        }
        None => after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_comments_keeps_comments_above_a_new_table() {
        let before = "[retry]\nattempts = 2\n\n# [sandbox]\n# network = true\n";
        let after =
            "[retry]\nattempts = 2\n\n[permissions]\nallow = []\n\n# [sandbox]\n# network = true\n";
        let expected =
            "[retry]\nattempts = 2\n\n# [sandbox]\n# network = true\n\n[permissions]\nallow = []\n";
        // The blank line before the comments is part of them.
        assert_eq!(move_below_comments(before, after.to_owned()), expected);
        let open = move_below_comments("a = 1\n# end", "a = 1\n[t]\nb = 2\n# end".to_owned());
        assert_eq!(open, "a = 1\n# end\n\n[t]\nb = 2\n");
        for (before, after) in [
            ("a = 1\n", "a = 1\n[t]\n"),
            ("a = 1\n# c\n", "a = 2\n# c\n"),
            ("", "[t]\n"),
            ("# c\n", "b = 1\n# c\n"),
        ] {
            assert_eq!(move_below_comments(before, after.to_owned()), after);
        }
        assert_eq!(
            move_below_comments("# c\n", "[t]\n# c\n".to_owned()),
            "# c\n\n[t]\n"
        );
    }
}
