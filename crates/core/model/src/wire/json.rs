//! Helpers that write JSON piece by piece and inspect JSON without rewriting it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum plausible token count. Larger counts are ignored, so that sums of counts cannot
/// overflow.
const MAX_TOKEN_COUNT: f64 = 1e12;

/// Deserializes a value of minor importance, such as token usage. An invalid value becomes `None`,
/// so that it does not fail the whole reply.
pub(crate) fn deserialize_lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// Deserializes a number of tokens. An invalid number becomes `None`.
pub(crate) fn deserialize_count<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<u64>, D::Error> {
    let number = Value::deserialize(from)?.as_f64();
    Ok(number
        .filter(|number| (0.0..=MAX_TOKEN_COUNT).contains(number))
        .map(|number| number as u64))
}

pub(crate) fn append_value(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing plain data to memory cannot fail. If it did, an empty piece would be better than half
    // a piece.
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}

/// Appends a value to a comma-separated list.
pub(crate) fn append_item(out: &mut Vec<u8>, value: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    append_value(out, value);
}

/// Appends text that is already JSON to a comma-separated list.
pub(crate) fn append_raw_item(out: &mut Vec<u8>, json: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(json.as_bytes());
}

/// Returns the beginning of a body: `{"key":value`.
pub(crate) fn open_body(key: &str, value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    append_field(&mut out, key, value);
    if let Some(first) = out.first_mut() {
        *first = b'{';
    }
    out
}

/// Appends `fields`, which the configuration adds to every request body.
pub(crate) fn append_fields<'a>(
    out: &mut Vec<u8>,
    fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
) {
    for (key, value) in fields {
        append_field(out, key, value);
    }
}

/// Appends `,"key":value`.
pub(crate) fn append_field(out: &mut Vec<u8>, key: &str, value: &impl Serialize) {
    out.push(b',');
    append_value(out, &key);
    out.push(b':');
    append_value(out, value);
}

/// Returns `arguments` unchanged if they are a JSON object, or else `{}`. If `{}` is returned, the
/// result of the call tells the model that its arguments were invalid.
pub(crate) fn object_or_empty(arguments: &str) -> &RawValue {
    // A raw value alone would accept malformed strings, such as half a surrogate pair, so the text
    // is parsed to a value first.
    let sound = matches!(
        serde_json::from_str::<Value>(arguments),
        Ok(Value::Object(_))
    );
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) if sound => raw,
        _ => empty_object(),
    }
}

pub(crate) fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// Returns `raw`, a stored item of the provider, if it is valid JSON and its type is `kind`; else
/// returns `None`. Items are sent back unchanged, so an invalid item would break the request body.
pub(crate) fn check_raw_item<'a>(raw: &'a str, kind: &str) -> Option<&'a str> {
    let value: Value = serde_json::from_str(raw).ok()?;
    (value.get("type")?.as_str()? == kind).then_some(raw)
}
