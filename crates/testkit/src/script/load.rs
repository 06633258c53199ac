//! Parses and checks YAML scripts. Every error names the file, the line and the field.

use std::fmt;

use haft_types::Usage;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::{DEFAULT_MODEL, Garbage, Replace, Replies, Reply, Script, ScriptedError};

/// The error for a script that cannot be parsed or contradicts itself.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The text is not YAML, or doesn't have the form of a script.
    #[error("{file}:{line}:{column}: {what}")]
    Syntax {
        /// The name of the script.
        file: String,
        /// The line of the problem, from 1; 0 if unknown.
        line: u64,
        /// The column of the problem, from 1; 0 if unknown.
        column: u64,
        /// The problem and the field in which it occurs.
        what: String,
    },
    /// A reply in a file contradicts itself.
    #[error("{file}:{line}: reply {number}, field `{field}`: {what}")]
    Field {
        /// The name of the script.
        file: String,
        /// The line on which the reply starts.
        line: u64,
        /// The number of the reply, from 1.
        number: usize,
        field: &'static str,
        /// The problem, and the way to fix it.
        what: &'static str,
    },
    /// A reply built in Rust contradicts itself.
    #[error("reply {number}, field `{field}`: {what}")]
    Reply {
        /// The number of the reply, from 1.
        number: usize,
        field: &'static str,
        /// The problem, and the way to fix it.
        what: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    models: Vec<String>,
    replies: Option<Vec<Spanned<Reply>>>,
    turns: Option<Vec<Spanned<Reply>>>,
}

pub(super) fn from_yaml(file: &str, text: &str) -> Result<Script, ScriptError> {
    let syntax = |line, column, what: String| ScriptError::Syntax {
        file: file.to_owned(),
        line,
        column,
        what,
    };
    let read: File = serde_saphyr::from_str(text).map_err(|error| {
        let (line, column) = error
            .location()
            .map_or((0, 0), |at| (at.line(), at.column()));
        let what = error.without_snippet().to_string();
        // The error message starts with the position, so the position at the end of the parser's
        // text is removed.
        let what = what
            .rsplit_once(" at line ")
            .map_or(what.as_str(), |(what, _)| what)
            .to_owned();
        syntax(line, column, what)
    })?;
    let (spanned, replies) = match (read.replies, read.turns) {
        (Some(listed), None) => {
            let replies = Replies::Listed(listed.iter().map(|reply| reply.value.clone()).collect());
            (listed, replies)
        }
        (None, Some(turns)) => {
            let replies = Replies::Turns(turns.iter().map(|reply| reply.value.clone()).collect());
            (turns, replies)
        }
        (Some(_), Some(_)) => {
            return Err(syntax(1, 1, "give `replies` or `turns`, not both".into()));
        }
        (None, None) => return Err(syntax(1, 1, "a script needs `replies` or `turns`".into())),
    };
    for (index, reply) in spanned.iter().enumerate() {
        check_reply(&reply.value, &replies).map_err(|problem| ScriptError::Field {
            file: file.to_owned(),
            line: reply.defined.line(),
            number: index + 1,
            field: problem.field,
            what: problem.what,
        })?;
    }
    let models = if read.models.is_empty() {
        vec![DEFAULT_MODEL.to_owned()]
    } else {
        read.models
    };
    Ok(Script { replies, models })
}

/// A contradiction within one reply.
pub(super) struct Problem {
    pub(super) field: &'static str,
    pub(super) what: &'static str,
}

/// Checks a reply for contradictions that its types allow. `among` determines how the script
/// chooses replies.
pub(super) fn check_reply(reply: &Reply, among: &Replies) -> Result<(), Problem> {
    let reject_if = |wrong: bool, field, what| {
        if wrong {
            Err(Problem { field, what })
        } else {
            Ok(())
        }
    };
    let simple = reply.text.is_some() || reply.thinking.is_some() || !reply.tool_calls.is_empty();
    let content = simple || !reply.parts.is_empty();
    let in_turns = matches!(among, Replies::Turns(_));
    let http_error = reply.status.is_some() && reply.error_event_after.is_none();

    reject_if(
        in_turns && reply.when.is_some(),
        "when",
        "`turns` are chosen by position; use `replies` for conditions",
    )?;
    reject_if(
        in_turns && reply.times.is_some(),
        "times",
        "`turns` are chosen by position; use `replies` to repeat",
    )?;
    reject_if(reply.times == Some(0), "times", "must be at least 1")?;
    reject_if(
        simple && !reply.parts.is_empty(),
        "parts",
        "give `parts`, or `text`, `thinking` and `tool_calls`, not both",
    )?;
    reject_if(
        reply.signature.is_some() && reply.thinking.is_none(),
        "signature",
        "belongs to `thinking`, which is absent",
    )?;
    reject_if(
        reply.chunk_bytes == Some(0),
        "chunk_bytes",
        "must be at least 1",
    )?;
    reject_if(
        reply.delta_chars == Some(0),
        "delta_chars",
        "must be at least 1",
    )?;
    reject_if(
        reply
            .status
            .is_some_and(|status| !(400..600).contains(&status)),
        "status",
        "must be 400 to 599",
    )?;
    reject_if(
        http_error && content,
        "status",
        "an error reply has no content; remove one of them",
    )?;
    reject_if(
        reply.error.is_some() && reply.status.is_none() && reply.error_event_after.is_none(),
        "error",
        "needs `status` or `error_event_after`",
    )?;
    reject_if(
        reply.retry_after.is_some() && reply.status.is_none(),
        "retry_after",
        "needs `status`, such as 429 or 503",
    )?;
    reject_if(
        reply
            .retry_after
            .is_some_and(|seconds| !seconds.is_finite() || seconds < 0.0),
        "retry_after",
        "must be zero or more seconds",
    )?;
    reject_if(
        reply
            .replace
            .as_ref()
            .is_some_and(|replace| replace.find.is_empty()),
        "replace",
        "`find` is empty; name the text to replace",
    )?;
    reject_if(
        reply.garbage.is_some() && content,
        "garbage",
        "replaces the reply; remove its content",
    )?;
    reject_if(
        reply.garbage.is_some() && reply.error.is_some(),
        "garbage",
        "replaces the error body; remove `error`",
    )?;
    reject_if(
        !content && reply.garbage.is_none() && !http_error && reply.error_event_after.is_none(),
        "text",
        "the reply is empty: give it `text`, `thinking`, `tool_calls`, `parts`, `status` or `garbage`",
    )
}

/// Deserializes a [`Usage`], and rejects unknown fields.
pub(super) fn deserialize_usage<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Usage>, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Written {
        input: u64,
        cached_input: u64,
        cache_write: u64,
        output: u64,
        reasoning: u64,
    }
    let Written {
        input,
        cached_input,
        cache_write,
        output,
        reasoning,
    } = Written::deserialize(deserializer)?;
    if reasoning > output {
        return Err(de::Error::custom(
            "`reasoning` is a part of `output` and cannot be more",
        ));
    }
    Ok(Some(Usage {
        input,
        cached_input,
        cache_write,
        output,
        reasoning,
    }))
}

impl<'de> Deserialize<'de> for ScriptedError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            message: String,
            #[serde(rename = "type")]
            kind: Option<String>,
            code: Option<String>,
        }
        let written = deserializer.deserialize_any(StringOrMapVisitor::<Written>::new(
            "a message, or message, type and code",
        ))?;
        Ok(match written {
            StringOrMap::Text(message) => Self::new(message),
            StringOrMap::Map(Written {
                message,
                kind,
                code,
            }) => Self {
                message,
                kind,
                code,
            },
        })
    }
}

impl<'de> Deserialize<'de> for Garbage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            text: Option<String>,
            hex: Option<String>,
            content_type: Option<String>,
        }
        const HTML: &str = "text/html; charset=utf-8";
        let written = deserializer.deserialize_any(StringOrMapVisitor::<Written>::new(
            "text, or text or hex with content_type",
        ))?;
        let (body, content_type) = match written {
            StringOrMap::Text(text) => (text.into_bytes(), None),
            StringOrMap::Map(Written {
                text: Some(text),
                hex: None,
                content_type,
            }) => (text.into_bytes(), content_type),
            StringOrMap::Map(Written {
                text: None,
                hex: Some(hex),
                content_type,
            }) => {
                let bytes = decode_hex(&hex)
                    .ok_or_else(|| de::Error::custom("`hex` is pairs of hex digits"))?;
                (bytes, content_type)
            }
            StringOrMap::Map(_) => {
                return Err(de::Error::custom(
                    "`garbage` has exactly one of `text` and `hex`",
                ));
            }
        };
        Ok(Self {
            body,
            content_type: content_type.unwrap_or_else(|| HTML.to_owned()),
        })
    }
}

impl<'de> Deserialize<'de> for Replace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            find: String,
            hex: String,
        }
        let Written { find, hex } = Written::deserialize(deserializer)?;
        let with =
            decode_hex(&hex).ok_or_else(|| de::Error::custom("`hex` is pairs of hex digits"))?;
        Ok(Self { find, with })
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// A value that is written either as a string or as a map.
enum StringOrMap<T> {
    Text(String),
    Map(T),
}

// A visitor instead of an untagged enum, which would lose the position of errors inside the map.
struct StringOrMapVisitor<T> {
    expecting: &'static str,
    map: std::marker::PhantomData<T>,
}

impl<T> StringOrMapVisitor<T> {
    fn new(expecting: &'static str) -> Self {
        Self {
            expecting,
            map: std::marker::PhantomData,
        }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for StringOrMapVisitor<T> {
    type Value = StringOrMap<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(StringOrMap::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map)).map(StringOrMap::Map)
    }
}

#[cfg(test)]
mod tests;
