//! Masks secrets in text before it is stored, logged or exported.
//!
//! The masker finds keys of known shapes, private keys, bearer tokens, passwords in URLs,
//! assignments to variables whose names mark a secret, and the values passed to its constructor. A
//! label such as `[masked: web token]` replaces each secret.
//!
//! Invariant: masking masked text changes nothing, and text without a secret is borrowed, not
//! copied.

mod encoded;
mod shapes;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use encoded::EncodedValues;
use shapes::{KeyAlphabet, SHAPES};

/// The minimum length of a secret value passed to [`Masker::with_values`], in bytes. Shorter values
/// are more likely words than secrets.
const MIN_VALUE_BYTES: usize = 8;

/// Finds secrets in text and replaces them with labels.
#[derive(Clone, Debug, Default)]
pub struct Masker {
    known: Option<AhoCorasick>,
    /// The known values again, if encoded forms of them are masked, too.
    encoded: Option<EncodedValues>,
}

/// The range of a secret in the text, and the name of the kind of secret.
struct SecretMatch {
    at: Range<usize>,
    name: &'static str,
}

/// Finds the fixed prefixes of keys and tokens. A text is examined further only after such a
/// prefix.
static KEY_STARTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let starts = SHAPES.iter().map(|shape| shape.start).chain([
        JWT,
        PRIVATE_KEY,
        BEARER,
        BEARER_LOWER,
        ADDRESS,
    ]);
    // The build fails only for many more patterns than these.
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(starts)
        .ok()
});

const JWT: &str = "eyJ";
const PRIVATE_KEY: &str = "-----BEGIN ";
const BEARER: &str = "Bearer ";
const BEARER_LOWER: &str = "bearer ";
const ADDRESS: &str = "://";

/// The substrings by which the name of a variable is recognized as that of a secret.
const SECRET_NAMES: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
];

impl Masker {
    /// Creates a masker that also masks `values`, such as the keys in the configuration. Short
    /// values are ignored, because masking them would hide ordinary words.
    pub fn with_values<Text: AsRef<str>>(values: impl IntoIterator<Item = Text>) -> Self {
        let values: Vec<_> = values
            .into_iter()
            .filter(|value| value.as_ref().trim().len() >= MIN_VALUE_BYTES)
            .collect();
        let trimmed = values.iter().map(|value| value.as_ref().trim());
        let known = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(trimmed);
        Self {
            known: known.ok().filter(|_| !values.is_empty()),
            encoded: None,
        }
    }

    /// Like [`Self::with_values`], but also masks the values in text in which they have percent or
    /// JSON escapes, or are encoded as base64 or hexadecimal digits. Searching takes longer.
    pub fn with_encoded_values<Text: AsRef<str>>(values: impl IntoIterator<Item = Text>) -> Self {
        let values: Vec<_> = values.into_iter().collect();
        let long: Vec<&str> = values
            .iter()
            .map(|value| value.as_ref().trim())
            .filter(|value| value.len() >= MIN_VALUE_BYTES)
            .collect();
        Self {
            encoded: EncodedValues::new(&long),
            ..Self::with_values(&long)
        }
    }

    /// Builds the search tables that all maskers share, which takes some time. Otherwise, the first
    /// search builds them. Call this function on another thread to hide the delay.
    pub fn prepare_tables() {
        LazyLock::force(&KEY_STARTS);
    }

    /// Replaces the secrets in all strings of a JSON value with labels. Field names are not
    /// changed.
    pub fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_json(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_json(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the text with a label in place of each secret.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find_secrets(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for SecretMatch { at, name } in found {
            out.push_str(&text[done..at.start]);
            push_label(name, &mut out);
            done = at.end;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// Masks the pieces of one text. A secret that lies in several pieces is replaced in the first
    /// and removed from the others.
    pub fn mask_pieces(&self, pieces: &[&str]) -> Vec<String> {
        let found = self.find_secrets(&pieces.concat());
        let mut start = 0;
        let mut masked = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let end = start + piece.len();
            let mut out = String::new();
            let mut done = start;
            let inside = found
                .iter()
                .filter(|one| one.at.start < end && one.at.end > start);
            for SecretMatch { at, name } in inside {
                out.push_str(&piece[done.saturating_sub(start)..at.start.max(done) - start]);
                if at.start >= start {
                    push_label(name, &mut out);
                }
                done = at.end.min(end);
            }
            out.push_str(&piece[done - start..]);
            masked.push(out);
            start = end;
        }
        masked
    }

    /// Returns the secrets in the text, in their order. Secrets that overlap are one, named after
    /// the first.
    fn find_secrets(&self, text: &str) -> Vec<SecretMatch> {
        let mut found = Vec::new();
        if let Some(known) = &self.known {
            found.extend(known.find_iter(text).map(|hit| SecretMatch {
                at: hit.range(),
                name: "key",
            }));
        }
        if let Some(encoded) = &self.encoded {
            found.extend(
                encoded
                    .find(text)
                    .into_iter()
                    .map(|at| SecretMatch { at, name: "key" }),
            );
        }
        find_keys(text, &mut found);
        find_assignments(text, &mut found);
        found.sort_by_key(|found| (found.at.start, std::cmp::Reverse(found.at.end)));
        let mut merged: Vec<SecretMatch> = Vec::with_capacity(found.len());
        for one in found {
            match merged.last_mut() {
                Some(last) if one.at.start < last.at.end => {
                    last.at.end = last.at.end.max(one.at.end);
                }
                Some(_) | None => merged.push(one),
            }
        }
        merged
    }
}

fn push_label(name: &str, out: &mut String) {
    out.push_str("[masked: ");
    out.push_str(name);
    out.push(']');
}

fn find_keys(text: &str, found: &mut Vec<SecretMatch>) {
    let Some(starts) = KEY_STARTS.as_ref() else {
        return;
    };
    for hit in starts.find_iter(text) {
        let which = hit.pattern().as_usize();
        let one = match SHAPES.get(which) {
            Some(shape) => {
                let end = find_run_end(text, hit.end(), shape.alphabet);
                let long = end - hit.end() >= shape.min && is_word_start(text, hit.start());
                (long && looks_random(&text[hit.end()..end]))
                    .then_some((hit.start()..end, shape.name))
            }
            None => match &text[hit.range()] {
                JWT => match_web_token(text, hit.start()),
                PRIVATE_KEY => match_private_key(text, hit.start()),
                ADDRESS => match_url_password(text, hit.end()),
                _ => match_bearer_token(text, hit.end()),
            },
        };
        found.extend(one.map(|(at, name)| SecretMatch { at, name }));
    }
}

/// Returns the end of the run of characters of `alphabet` that begins at `start`.
fn find_run_end(text: &str, start: usize, alphabet: KeyAlphabet) -> usize {
    let length = text.as_bytes()[start..]
        .iter()
        .take_while(|byte| alphabet.contains(**byte))
        .count();
    start + length
}

fn is_word_start(text: &str, at: usize) -> bool {
    !text[..at]
        .bytes()
        .next_back()
        .is_some_and(|before| before.is_ascii_alphanumeric() || before == b'_')
}

/// True if the key contains both letters and digits, as random keys do. Names made of words rarely
/// contain digits.
fn looks_random(body: &str) -> bool {
    body.bytes().any(|byte| byte.is_ascii_digit())
        && body.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Matches a JSON web token: at least three parts, separated by dots. The first part is an encoded
/// JSON object and begins with `eyJ`.
fn match_web_token(text: &str, start: usize) -> Option<(Range<usize>, &'static str)> {
    let end = find_run_end(text, start, KeyAlphabet::Dotted);
    let parts: Vec<_> = text[start..end].split('.').collect();
    let whole = parts.len() >= 3 && parts.iter().take(2).all(|part| part.len() >= 10);
    (whole && is_word_start(text, start)).then_some((start..end, "web token"))
}

/// Matches the text between the first and the last line of a private key, or to the end of the text
/// if the last line is missing.
fn match_private_key(text: &str, start: usize) -> Option<(Range<usize>, &'static str)> {
    let rest = &text[start..];
    let heading = rest
        .find("-----\n")
        .or_else(|| rest.find("-----\\n"))
        .or_else(|| rest.find("-----\r"))?;
    if !rest[..heading].ends_with("PRIVATE KEY") && !rest[..heading].ends_with("PRIVATE KEY BLOCK")
    {
        return None;
    }
    let body = start + heading + "-----".len();
    let end = text[body..]
        .find("-----END")
        .map_or(text.len(), |end| body + end);
    // A body that is masked already is not masked again.
    let inside = text[body..end].trim_matches(['\n', '\r', ' ']);
    (!inside.is_empty() && !inside.starts_with("[masked")).then_some((body..end, "private key"))
}

fn match_bearer_token(text: &str, start: usize) -> Option<(Range<usize>, &'static str)> {
    let end = find_run_end(text, start, KeyAlphabet::Base64).max(find_run_end(
        text,
        start,
        KeyAlphabet::Dotted,
    ));
    let body = &text[start..end];
    (body.len() >= 16 && looks_random(body)).then_some((start..end, "bearer token"))
}

/// Matches the password of `scheme://user:password@host`.
fn match_url_password(text: &str, start: usize) -> Option<(Range<usize>, &'static str)> {
    let rest = &text[start..];
    let end = rest
        .find(|c: char| c.is_whitespace() || "/\"'`<>".contains(c))
        .unwrap_or(rest.len());
    let (credentials, _) = rest[..end].rsplit_once('@')?;
    let (user, password) = credentials.split_once(':')?;
    let is_variable = password.starts_with(['$', '{', '%', '[']);
    let at = start + user.len() + 1;
    (password.len() >= 3 && !is_variable).then_some((at..at + password.len(), "password"))
}

/// Finds the values of assignments `NAME=value` whose name marks a secret, as in environment files
/// and on command lines. Spaces around `=` are allowed only for two settings of AWS, whose
/// credentials file contains such spaces.
fn find_assignments(text: &str, found: &mut Vec<SecretMatch>) {
    for (sign, _) in text.match_indices('=') {
        let before = text[..sign].trim_end_matches(' ');
        let name_start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = &before[name_start.map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        })..];
        let spaced = before.len() < sign || text[sign + 1..].starts_with(' ');
        let of_aws = name.eq_ignore_ascii_case("aws_secret_access_key")
            || name.eq_ignore_ascii_case("aws_session_token");
        let secret = !spaced
            && is_constant_name(name)
            && SECRET_NAMES.iter().any(|part| name.contains(part));
        if !of_aws && !secret {
            continue;
        }
        let value_start =
            sign + 1 + text[sign + 1..].len() - text[sign + 1..].trim_start_matches(' ').len();
        let quoted = text[value_start..].starts_with(['"', '\'']);
        let value_start = value_start + usize::from(quoted);
        let value = &text[value_start..];
        let end = value.find(|c: char| c.is_whitespace() || "\"'`;,&|<>()\\".contains(c));
        let value = &value[..end.unwrap_or(value.len())];
        let is_path = value.starts_with(['=', '/', '~', '.', '$', '%', '{', '[']);
        if value.len() >= 12 && !is_path && looks_random(value) {
            found.push(SecretMatch {
                at: value_start..value_start + value.len(),
                name: "secret",
            });
        }
    }
}

fn is_constant_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests;
