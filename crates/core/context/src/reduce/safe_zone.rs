//! The safe zone: the tokens above which a request is pruned.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

/// The minimum size of a safe zone, in tokens. Every system prompt is larger.
pub(crate) const MIN_TOKENS: u64 = 1_000;

/// A safe zone as a number of tokens, or as a share of the usable window (the model's window
/// without the reserve for the reply).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenZone")]
pub enum SafeZone {
    /// A share of the usable window, above 0 and below 1.
    Share(f64),
    /// A number of tokens, at least 1,000.
    Tokens(u64),
}

impl Default for SafeZone {
    fn default() -> Self {
        Self::Share(0.8)
    }
}

/// The error for an invalid safe zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SafeZoneError {
    /// The text is not a number with an optional `k` or `M`.
    #[error(
        "safe zone `{0}` is not a number; use tokens (`80000`, `80k`, `0.5M`) or a share of the window (`0.8`)"
    )]
    Unreadable(String),
    /// The number is zero or negative, so that nothing would ever fit.
    #[error(
        "safe zone `{0}` is not above zero; use tokens (`80000`, `80k`, `0.5M`) or a share of the window (`0.8`)"
    )]
    Zero(String),
    /// The zone is so small that no request fits into it.
    #[error(
        "safe zone `{0}` is below 1,000 tokens; use tokens (`80000`, `80k`, `0.5M`) or a share of the window (`0.8`)"
    )]
    TooSmall(String),
    /// The zone is larger than the model's window.
    #[error(
        "a safe zone of {tokens} tokens is larger than the window of {window}; use at most the window"
    )]
    AboveWindow { tokens: u64, window: u32 },
}

impl SafeZone {
    /// Returns the safe zone as a number of tokens for a model with a window of `window` tokens, of
    /// which `usable` are left for input.
    pub fn to_tokens(self, window: u32, usable: u32) -> Result<u64, SafeZoneError> {
        let tokens = match self {
            Self::Share(share) => (share * f64::from(usable)) as u64,
            Self::Tokens(tokens) => tokens,
        };
        if tokens < MIN_TOKENS {
            return Err(SafeZoneError::TooSmall(self.to_string()));
        }
        if tokens > u64::from(window) {
            return Err(SafeZoneError::AboveWindow { tokens, window });
        }
        Ok(tokens)
    }

    fn from_number(number: f64, unit: f64, text: &str) -> Result<Self, SafeZoneError> {
        if !number.is_finite() {
            return Err(SafeZoneError::Unreadable(text.to_owned()));
        }
        if number <= 0.0 {
            return Err(SafeZoneError::Zero(text.to_owned()));
        }
        if unit < 2.0 && number < 1.0 {
            return Ok(Self::Share(number));
        }
        match (number * unit) as u64 {
            tokens if tokens < MIN_TOKENS => Err(SafeZoneError::TooSmall(text.to_owned())),
            tokens => Ok(Self::Tokens(tokens)),
        }
    }
}

impl FromStr for SafeZone {
    type Err = SafeZoneError;

    fn from_str(text: &str) -> Result<Self, SafeZoneError> {
        let number = text.trim();
        let (number, unit) = match number.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1_024.0),
            None => number
                .strip_suffix(['m', 'M'])
                .map_or((number, 1.0), |number| (number, 1_048_576.0)),
        };
        let digits = number.strip_prefix('-').unwrap_or(number);
        // Rust also parses `inf`, `1e5` and `+1`, which are not accepted as sizes.
        if !digits.starts_with(|first: char| first.is_ascii_digit())
            || !digits.chars().all(|one| one.is_ascii_digit() || one == '.')
        {
            return Err(SafeZoneError::Unreadable(text.to_owned()));
        }
        let parsed = number
            .parse()
            .map_err(|_| SafeZoneError::Unreadable(text.to_owned()))?;
        Self::from_number(parsed, unit, text)
    }
}

impl fmt::Display for SafeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{share}"),
            Self::Tokens(tokens) => write!(f, "{tokens}"),
        }
    }
}

impl Serialize for SafeZone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Deserializes a safe zone from either form that configuration files allow.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "tokens such as `80k`, or a share of the window such as `0.8`"
)]
enum WrittenZone {
    Number(f64),
    Text(String),
}

impl TryFrom<WrittenZone> for SafeZone {
    type Error = SafeZoneError;

    fn try_from(written: WrittenZone) -> Result<Self, SafeZoneError> {
        match written {
            WrittenZone::Number(number) => Self::from_number(number, 1.0, &number.to_string()),
            WrittenZone::Text(text) => text.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_zone_matches_the_test_vectors() {
        for line in include_str!("../../fixtures/prune/safe_zones.txt").lines() {
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let fields: Vec<_> = line.split('|').map(str::trim).collect();
            let [text, window, expected] = fields[..] else {
                panic!("three fields: {line}")
            };
            let window: u32 = window.parse().unwrap();
            let tokens = text
                .parse::<SafeZone>()
                .and_then(|zone| zone.to_tokens(window, window));
            match expected.parse::<u64>() {
                Ok(expected) => assert_eq!(tokens, Ok(expected), "{line}"),
                Err(_) => assert!(tokens.unwrap_err().to_string().contains(expected), "{line}"),
            }
        }
    }

    #[test]
    fn safe_zone_accepts_numbers_and_strings() {
        let read = |json: &str| serde_json::from_str::<SafeZone>(json);
        assert_eq!(read("0.8").unwrap(), read("\"0.8\"").unwrap());
        assert_eq!(read("50000").unwrap(), SafeZone::Tokens(50_000));
        assert!(read("-5").is_err() && read("0").is_err() && read("true").is_err());
        assert_eq!(
            serde_json::to_string(&SafeZone::Share(0.8)).unwrap(),
            "\"0.8\""
        );
    }
}
