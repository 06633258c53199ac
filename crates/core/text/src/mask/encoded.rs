//! Finds known values in text that contains them in an encoded form: with percent or JSON escapes,
//! as base64, or as hexadecimal digits.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// The minimum length of an encoded form, in bytes. Shorter forms occur by chance.
const MIN_FORM_BYTES: usize = 10;
/// The maximum number of nested escapes that are resolved, as in a JSON text inside a JSON string.
const MAX_LEVELS: usize = 4;

/// Known values, and the forms of them that do not follow from escapes.
#[derive(Clone, Debug)]
pub(super) struct EncodedValues {
    plain: AhoCorasick,
    forms: AhoCorasick,
}

impl EncodedValues {
    /// Returns `None` if `values` is empty.
    pub(super) fn new(values: &[&str]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let forms: Vec<String> = values
            .iter()
            .flat_map(|value| list_forms(value.as_bytes()))
            .collect();
        let build = |patterns: &[&str]| {
            AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(patterns)
                .ok()
        };
        let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
        Some(Self {
            plain: build(values)?,
            forms: build(&forms)?,
        })
    }

    /// Returns the ranges of the values in `text`.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut level = UnescapedText::from_plain(text);
        for depth in 0..=MAX_LEVELS {
            // Values that are not escaped are found by the masker itself.
            if depth > 0 {
                let hits = self.plain.find_iter(&*level.bytes);
                found.extend(hits.map(|hit| level.original_range(text, hit.range())));
            }
            let hits = self.forms.find_iter(&*level.bytes);
            found.extend(hits.map(|hit| {
                let run = extend_run(&level.bytes, hit.range());
                level.original_range(text, run)
            }));
            match level.decode() {
                Some(next) => level = next,
                None => break,
            }
        }
        found
    }
}

/// Returns the forms of a value in base64, which has one for each alignment and alphabet, and in
/// hexadecimal digits.
fn list_forms(value: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            forms.push(encode_base64_inside(value, offset, alphabet));
        }
    }
    let digits = value.iter().map(|byte| format!("{byte:02x}"));
    let lower = digits.collect::<Vec<_>>().concat();
    forms.push(lower.to_uppercase());
    forms.push(lower);
    forms.retain(|form| form.len() >= MIN_FORM_BYTES);
    forms.sort();
    forms.dedup();
    forms
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the base64 digits that depend on `value` alone if `offset` bytes precede it.
fn encode_base64_inside(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let mut digits = String::new();
    let bit_at = |bit: usize| {
        let byte = value.get((bit / 8).checked_sub(offset)?)?;
        Some(usize::from(byte >> (7 - bit % 8) & 1))
    };
    for digit in 0..(offset + value.len()) * 8 / 6 {
        let bits = (digit * 6..digit * 6 + 6).map(bit_at);
        let index = bits
            .into_iter()
            .try_fold(0, |sum, bit| Some(sum * 2 + bit?));
        digits.extend(index.map(|index| char::from(alphabet[index])));
    }
    digits
}

/// Extends a range to the whole run of base64 digits around it, because the digits at its ends
/// contain bits of the value, too.
fn extend_run(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    let before = bytes[..range.start]
        .iter()
        .rev()
        .take_while(|byte| is_digit(byte));
    let after = bytes[range.end..].iter().take_while(|byte| is_digit(byte));
    range.start - before.count()..range.end + after.count()
}

/// A text with some escapes resolved, and the positions of its bytes in the original text.
struct UnescapedText<'a> {
    bytes: Cow<'a, [u8]>,
    /// The original position of each byte, and of the end. Empty if nothing is resolved.
    starts: Vec<usize>,
}

impl<'a> UnescapedText<'a> {
    fn from_plain(text: &'a str) -> Self {
        Self {
            bytes: Cow::Borrowed(text.as_bytes()),
            starts: Vec::new(),
        }
    }

    fn original_position(&self, at: usize) -> usize {
        self.starts.get(at).copied().unwrap_or(at)
    }

    fn original_range(&self, text: &str, range: Range<usize>) -> Range<usize> {
        let start = text.floor_char_boundary(self.original_position(range.start));
        let end = text.ceil_char_boundary(self.original_position(range.end));
        start..end
    }

    /// Resolves one level of percent and JSON escapes. Returns `None` if there are none.
    fn decode(&self) -> Option<Self> {
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(self.bytes.len() + 1);
        let mut at = 0;
        let mut changed = false;
        while at < self.bytes.len() {
            let (decoded, length) = decode_escape(&self.bytes[at..]);
            changed |= length > 1;
            starts.extend(std::iter::repeat_n(
                self.original_position(at),
                decoded.len(),
            ));
            out.extend_from_slice(decoded.as_bytes());
            at += length;
        }
        starts.push(self.original_position(self.bytes.len()));
        changed.then_some(Self {
            bytes: Cow::Owned(out),
            starts,
        })
    }
}

/// The bytes that an escape stands for.
struct DecodedBytes {
    bytes: [u8; 4],
    length: usize,
}

impl DecodedBytes {
    fn from_byte(byte: u8) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            length: 1,
        }
    }

    fn from_char(c: char) -> Self {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn len(&self) -> usize {
        self.length
    }
}

/// Returns the bytes that the beginning of `rest` stands for, and its length. A byte that begins no
/// escape stands for itself.
fn decode_escape(rest: &[u8]) -> (DecodedBytes, usize) {
    let hexadecimal = |digits: Option<&[u8]>| {
        let digits = std::str::from_utf8(digits?).ok()?;
        let all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| all)
    };
    let escape = match rest {
        [b'%', ..] => hexadecimal(rest.get(1..3))
            .and_then(|code| u8::try_from(code).ok())
            .map(|byte| (DecodedBytes::from_byte(byte), 3)),
        [b'\\', b'u', ..] => hexadecimal(rest.get(2..6))
            .and_then(char::from_u32)
            .map(|c| (DecodedBytes::from_char(c), 6)),
        [b'\\', escaped @ (b'"' | b'\\' | b'/'), ..] => {
            Some((DecodedBytes::from_byte(*escaped), 2))
        }
        _ => None,
    };
    escape.unwrap_or_else(|| (DecodedBytes::from_byte(rest[0]), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Masker;

    /// A key with characters that each encoding treats differently.
    const KEY: &str = "k1/Q+z~\"9é_Zx-42";

    fn percent(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
        text.bytes()
            .map(|byte| {
                if is_kept(byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    }

    fn base64(bytes: &[u8]) -> String {
        let bits = bytes.iter().map(|byte| format!("{byte:08b}"));
        let mut bits = bits.collect::<Vec<_>>().concat();
        while !bits.len().is_multiple_of(6) {
            bits.push('0');
        }
        bits.as_bytes()
            .chunks(6)
            .map(|six| {
                let six = std::str::from_utf8(six).unwrap();
                char::from(STANDARD[usize::from_str_radix(six, 2).unwrap()])
            })
            .collect()
    }

    fn hexadecimal(text: &str) -> String {
        let digits = text.bytes().map(|byte| format!("{byte:02x}"));
        digits.collect::<Vec<_>>().concat()
    }

    fn all_escaped(text: &str) -> String {
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        units.collect::<Vec<_>>().concat()
    }

    #[test]
    fn masker_finds_values_in_every_encoding() {
        let masker = Masker::with_encoded_values([KEY]);
        let json = serde_json::to_string(KEY).unwrap();
        let json = json.trim_matches('"').to_owned();
        let nested = serde_json::to_string(&json).unwrap();
        for encoded in [
            KEY.to_owned(),
            percent(KEY, |byte| byte.is_ascii_alphanumeric()),
            percent(KEY, |byte| byte.is_ascii_alphanumeric()).replace("%2F", "%2f"),
            percent(KEY, |_| false),
            percent(&percent(KEY, |_| false), |byte| byte != b'%'),
            json.clone(),
            json.replace('/', "\\/"),
            nested.trim_matches('"').to_owned(),
            all_escaped(KEY),
            base64(KEY.as_bytes()),
            base64(format!("u:{KEY}").as_bytes()),
            base64(format!("user:{KEY}").as_bytes()),
            base64(format!("user1:{KEY}!").as_bytes()),
            base64(KEY.as_bytes()).replace('+', "-").replace('/', "_"),
            base64(KEY.as_bytes())
                .replace('+', "%2B")
                .replace('/', "%2F"),
            hexadecimal(KEY),
            hexadecimal(KEY).to_uppercase(),
        ] {
            let text = format!("a {encoded} b");
            assert_eq!(masker.mask(&text), "a [masked: key] b", "{encoded}");
        }
        assert_eq!(masker.mask("a %41 \\n \\u0041 b"), "a %41 \\n \\u0041 b");
        assert_eq!(
            Masker::with_values([KEY]).mask(&json),
            json,
            "only if asked for"
        );
    }

    #[test]
    fn masker_finds_values_across_pieces() {
        let masker = Masker::with_encoded_values([KEY]);
        let (a, rest) = KEY.split_at(5);
        let (b, c) = rest.split_at(4);
        assert_eq!(
            masker.mask_pieces(&["x ", a, b, "", c, " y"]),
            ["x ", "[masked: key]", "", "", "", " y"]
        );
        assert_eq!(masker.mask_pieces(&[]), Vec::<String>::new());
        assert_eq!(masker.mask_pieces(&["a", "b"]), ["a", "b"]);
    }

    #[test]
    fn masked_text_is_not_masked_again() {
        let masker = Masker::with_encoded_values([KEY]);
        let once = masker.mask(&percent(KEY, |_| false)).into_owned();
        assert_eq!(masker.mask(&once), once);
    }
}
