//! Shapes of the keys of known issuers: a distinctive prefix, followed by a minimum number of
//! characters of one alphabet.
//!
//! A shape that is too wide would mask ordinary code. A prefix that is also a word therefore
//! requires more characters and a digit among them.

use std::sync::LazyLock;

/// A set of characters, which may follow the prefix of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAlphabet {
    /// `A-Z a-z 0-9`
    Alphanumeric,
    /// `A-Z a-z 0-9 _ -`
    Url,
    /// `A-Z a-z 0-9 _ - .`
    Dotted,
    /// `A-Z a-z 0-9 + / =`, and `_ -` of URL-safe base64.
    Base64,
    /// `A-Z 0-9`
    Upper,
    /// `0-9 a-f`
    Hex,
}

impl KeyAlphabet {
    pub(super) fn contains(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=')
            }
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
        }
    }
}

/// The form of one kind of key: its prefix, and the characters after it.
pub(super) struct Shape {
    /// The name of the kind of key, shown in the label that replaces a key.
    pub(super) name: &'static str,
    pub(super) start: &'static str,
    /// The set of characters that may follow the prefix.
    pub(super) alphabet: KeyAlphabet,
    /// The minimum number of characters after the prefix.
    pub(super) min: usize,
}

/// The shapes of all kinds of keys, from `shapes.txt`. A test checks that every line can be parsed.
pub(super) static SHAPES: LazyLock<Vec<Shape>> =
    LazyLock::new(|| shape_lines().filter_map(parse_shape).collect());

fn shape_lines() -> impl Iterator<Item = &'static str> {
    include_str!("shapes.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn parse_shape(line: &'static str) -> Option<Shape> {
    let mut columns = line.split('|').map(str::trim);
    let start = columns.next()?;
    let alphabet = match columns.next()? {
        "alphanumeric" => KeyAlphabet::Alphanumeric,
        "url" => KeyAlphabet::Url,
        "dotted" => KeyAlphabet::Dotted,
        "base64" => KeyAlphabet::Base64,
        "upper" => KeyAlphabet::Upper,
        "hex" => KeyAlphabet::Hex,
        _ => return None,
    };
    let min = columns.next()?.parse().ok()?;
    Some(Shape {
        name: columns.next()?,
        start,
        alphabet,
        min,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_file_parses_completely() {
        let unread: Vec<_> = shape_lines()
            .filter(|line| parse_shape(line).is_none_or(|shape| shape.start.is_empty()))
            .collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert_eq!(SHAPES.len(), 86);
    }
}
