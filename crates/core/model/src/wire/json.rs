//! Small helpers to write JSON piece by piece and to look at JSON without rewriting it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// No reply has this many tokens; what a server counts beyond it is not a count. Sums of counts
/// stay far from overflowing.
const MOST_TOKENS: f64 = 1e12;

/// What must not cost a reply when it is wrong, such as how its tokens were counted: absent if it
/// is not of its type.
pub(crate) fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

/// A number of tokens: absent if it is not one.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Value::deserialize(from)?.as_f64();
    Ok(number
        .filter(|number| (0.0..=MOST_TOKENS).contains(number))
        .map(|number| number as u64))
}

/// Appends a value.
pub(crate) fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing plain data to memory cannot fail; were it to, an empty piece beats half of one.
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
    }
}

/// Appends a value to a comma-separated list.
pub(crate) fn push(out: &mut Vec<u8>, value: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    write(out, value);
}

/// Appends bytes that are JSON already to a comma-separated list.
pub(crate) fn push_raw(out: &mut Vec<u8>, json: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(json.as_bytes());
}

/// The beginning of a body: `{"key":value`.
pub(crate) fn open_body(key: &str, value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    field(&mut out, key, value);
    if let Some(first) = out.first_mut() {
        *first = b'{';
    }
    out
}

/// Appends the fields that the configuration adds to every body.
pub(crate) fn fields<'a>(
    out: &mut Vec<u8>,
    fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
) {
    for (key, value) in fields {
        field(out, key, value);
    }
}

/// Appends `,"key":value`.
pub(crate) fn field(out: &mut Vec<u8>, key: &str, value: &impl Serialize) {
    out.push(b',');
    write(out, &key);
    out.push(b':');
    write(out, value);
}

/// Model-made arguments as an object that a server can take: the bytes as received if they are one,
/// else `{}`. The call's result says what was wrong with them.
pub(crate) fn object(arguments: &str) -> &RawValue {
    // Parsed to a value first: that also finds what a raw value lets pass, such as half a surrogate
    // pair.
    let sound = matches!(
        serde_json::from_str::<Value>(arguments),
        Ok(Value::Object(_))
    );
    match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) if sound => raw,
        _ => empty_object(),
    }
}

/// `{}`.
pub(crate) fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// A provider's item kept as it came, if it still is one of that type: what goes out raw must not
/// break the body.
pub(crate) fn kept_item<'a>(raw: &'a str, kind: &str) -> Option<&'a str> {
    let value: Value = serde_json::from_str(raw).ok()?;
    (value.get("type")?.as_str()? == kind).then_some(raw)
}
