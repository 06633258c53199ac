//! Shapes: sets of texts that a word may expand to or that a path rule covers, with a test for
//! whether two shapes overlap.
//!
//! A shape is a text in which some characters of the private use area stand for unknown text. If
//! such a character occurs in a command line, it can only make a shape wider.

/// A placeholder character that stands for any text.
pub(crate) const ANY: char = '\u{E000}';
/// A placeholder character that stands for any text without a slash.
pub(crate) const ANY_IN_NAME: char = '\u{E001}';
/// A placeholder character that stands for any text without a slash, in patterns that the shell
/// replaces by names of existing files.
pub(crate) const STAR: char = '\u{E004}';
/// A placeholder character that stands for one character other than a slash.
pub(crate) const ANY_CHAR: char = '\u{E002}';
/// A placeholder character that stands for the user's home folder.
pub(crate) const HOME: char = '\u{E005}';
/// A placeholder character that stands for the empty text and matches only if no dot follows: a
/// shell pattern does not match hidden files.
pub(crate) const UNDOTTED: char = '\u{E003}';

/// Returns true if some text fits both shapes. Only the first shape may contain [`UNDOTTED`].
pub(crate) fn shapes_overlap(one: &str, other: &str) -> bool {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut seen = vec![false; (one.len() + 1) * (other.len() + 1)];
    let mut open = vec![(0, 0)];
    let repeats = |c: char| matches!(c, ANY | HOME | ANY_IN_NAME | STAR);
    while let Some((i, j)) = open.pop() {
        if std::mem::replace(&mut seen[i * (other.len() + 1) + j], true) {
            continue;
        }
        match (one.get(i).copied(), other.get(j).copied()) {
            (None, None) => return true,
            (Some(UNDOTTED), Some('.')) => {}
            (Some(UNDOTTED), _) => open.push((i + 1, j)),
            (a, b) => {
                if a.is_some_and(repeats) {
                    open.push((i + 1, j));
                }
                if b.is_some_and(repeats) {
                    open.push((i, j + 1));
                }
                if let (Some(a), Some(b)) = (a, b)
                    && chars_overlap(a, b)
                {
                    open.push((i + usize::from(!repeats(a)), j + usize::from(!repeats(b))));
                }
            }
        }
    }
    false
}

/// Returns true if some text fits both characters, each of which may be a placeholder.
fn chars_overlap(a: char, b: char) -> bool {
    match (a, b) {
        (ANY | HOME, _) | (_, ANY | HOME) => true,
        (ANY_IN_NAME | STAR | ANY_CHAR, other) | (other, ANY_IN_NAME | STAR | ANY_CHAR) => {
            other != '/'
        }
        (a, b) => a == b,
    }
}

/// True if a shape contains no placeholder, so that only one text fits.
pub(crate) fn is_known(shape: &str) -> bool {
    !shape.contains([ANY, HOME, ANY_IN_NAME, STAR, ANY_CHAR, UNDOTTED])
}

/// Returns the shapes of a glob. A glob with `**/` has several, because `**/` may match the empty
/// text.
pub(crate) fn build_glob_shapes(glob: &str) -> Vec<String> {
    let (front, rest) = match glob.split_once("**/") {
        Some((front, rest)) if front.is_empty() || front.ends_with('/') => (front, rest),
        Some(_) | None => return vec![build_simple_glob_shape(glob)],
    };
    let front = build_simple_glob_shape(front);
    let behind = build_glob_shapes(rest);
    behind
        .iter()
        .flat_map(|rest| [format!("{front}{rest}"), format!("{front}{ANY}/{rest}")])
        .collect()
}

/// Returns the shape of a glob without `**/`, or a wider shape.
fn build_simple_glob_shape(glob: &str) -> String {
    let mut shape = String::new();
    let mut rest = glob.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => shape.extend(rest.next()),
            '*' if shape.ends_with(ANY_IN_NAME) => {
                shape.pop();
                shape.push(ANY);
            }
            '*' => shape.push(ANY_IN_NAME),
            '?' => shape.push(ANY_CHAR),
            '[' | '{' => {
                let closer = if c == '[' { ']' } else { '}' };
                shape.push(ANY);
                // Nested lists end later than assumed here, which only makes the shape wider.
                let behind = rest
                    .as_str()
                    .rsplit_once(closer)
                    .map_or("", |(_, behind)| behind);
                rest = behind.chars();
            }
            other => shape.push(other),
        }
    }
    shape
}

/// Returns the shape of `path` below `folder`; `folder` contains no links. Parts equal to `.` are
/// dropped, and everything before a part that may be `..` becomes unknown.
pub(crate) fn join_shape(folder: &str, path: &str) -> String {
    let mut shape = folder.to_owned();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            "" | "." => {}
            part if part == ".." || (parts.peek().is_some() && shapes_overlap(part, "..")) => {
                shape = ANY.to_string();
            }
            part => {
                shape.push('/');
                shape.push_str(part);
            }
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob_overlaps(glob: &str, shape: &str) -> bool {
        build_glob_shapes(glob)
            .iter()
            .any(|named| shapes_overlap(shape, named))
    }

    #[test]
    fn overlap_finds_texts_covered_by_both_shapes() {
        let hidden = format!("{UNDOTTED}{ANY_IN_NAME}");
        for (glob, shape) in [
            ("**/.env", ".env".to_owned()),
            ("**/.env", format!(".e{ANY_CHAR}v")),
            ("**/.env", format!(".en{ANY_IN_NAME}")),
            ("**/.env", format!("{ANY}v")),
            ("**/.env", format!("{hidden}/.env")),
            ("**/.env", format!("a/b/{ANY_IN_NAME}env")),
            ("secrets/**", format!("sec{ANY_IN_NAME}/key")),
            ("secrets/**", ANY.to_string()),
            ("*.pem", hidden.clone()),
            ("**/*.{pem,key}", "a/b.key".to_owned()),
            ("a/**/b/**/c", "a/x/b/y/z/c".to_owned()),
            ("a/**/b/**/c", "a/b/c".to_owned()),
            ("[ab]x", "bx".to_owned()),
            ("a\\*", "a*".to_owned()),
            ("env", format!("{UNDOTTED}{ANY_IN_NAME}env")),
        ] {
            assert!(glob_overlaps(glob, &shape), "{glob} {shape:?}");
        }
        for (glob, shape) in [
            ("**/.env", hidden.clone()),
            ("**/.env", format!("{hidden}.rs")),
            ("**/.env", format!("{hidden}.env")),
            ("**/.env", format!("src/{hidden}")),
            ("**/.env", format!("{ANY}.rs")),
            ("secrets/**", format!("src/{hidden}.rs")),
            ("*.pem", format!("sub/{hidden}")),
            ("a\\*", "ab".to_owned()),
        ] {
            assert!(!glob_overlaps(glob, &shape), "{glob} {shape:?}");
        }
    }

    #[test]
    fn below_joins_paths_and_widens_unknown_ones() {
        assert_eq!(join_shape("/p", "./a//b"), "/p/a/b");
        assert_eq!(
            join_shape("/p", &format!(".{ANY_CHAR}/a")),
            format!("{ANY}/a")
        );
        assert_eq!(
            join_shape("/p", &format!(".{ANY_IN_NAME}")),
            format!("/p/.{ANY_IN_NAME}")
        );
        assert_eq!(join_shape("/p", "a/../b"), format!("{ANY}/b"));
    }
}
