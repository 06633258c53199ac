//! What keys of known issuers look like: a beginning nobody else uses, then so many characters of
//! one alphabet.
//!
//! A shape too wide would blind the model to ordinary code, so a beginning that is also a word asks
//! for more characters and a digit among them.

use std::sync::LazyLock;

/// The characters of a key after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAlphabet {
    /// `A-Z a-z 0-9`
    Alphanumeric,
    /// The same with `_` and `-`.
    Url,
    /// The same with `.` too.
    Dotted,
    /// `A-Z a-z 0-9 + / =` and the characters of the URL form.
    Base64,
    /// `A-Z 0-9`
    Upper,
    /// `0-9 a-f`
    Hex,
}

impl KeyAlphabet {
    pub(super) fn has(self, byte: u8) -> bool {
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

/// A kind of key.
pub(super) struct Shape {
    /// What it is called where it stood.
    pub(super) name: &'static str,
    /// How it begins.
    pub(super) start: &'static str,
    /// What follows.
    pub(super) alphabet: KeyAlphabet,
    /// How much at least.
    pub(super) min: usize,
}

/// All of them, from `shapes.txt`; a test holds that no line is left out.
pub(super) static SHAPES: LazyLock<Vec<Shape>> =
    LazyLock::new(|| lines().filter_map(shape).collect());

fn lines() -> impl Iterator<Item = &'static str> {
    include_str!("shapes.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn shape(line: &'static str) -> Option<Shape> {
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
    fn every_line_is_a_shape() {
        let unread: Vec<_> = lines()
            .filter(|line| shape(line).is_none_or(|shape| shape.start.is_empty()))
            .collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert_eq!(SHAPES.len(), 86);
    }
}
