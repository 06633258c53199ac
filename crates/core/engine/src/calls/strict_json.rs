//! Parses the arguments of a tool call strictly: exactly one JSON object, without duplicate keys or
//! trailing text.
//!
//! `serde_json::Value` would silently use the last of two equal keys, so the arguments that run
//! could differ from those shown to the user.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses the arguments as one JSON object, or returns the reason why `text` is not a JSON object.
pub(crate) fn parse_object(text: &str) -> Result<Value, String> {
    // Models often omit the arguments if a tool needs none.
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Strict>(text) {
        Ok(Strict(value @ Value::Object(_))) => Ok(value),
        Ok(Strict(_)) => Err("the arguments are not a JSON object".into()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        StrictValue.deserialize(deserializer).map(Self)
    }
}

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(StrictValue)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(StrictValue)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{key}` stands twice"
                )));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_accepts_one_valid_object() {
        assert_eq!(
            parse_object(r#" {"a": [1, -2, 0.5, null, true, {"b": "ü"}]} "#).unwrap(),
            json!({"a": [1, -2, 0.5, null, true, {"b": "ü"}]})
        );
        assert_eq!(parse_object("").unwrap(), json!({}));
    }

    #[test]
    fn object_rejects_duplicates_trailing_text_and_other_values() {
        for (text, why) in [
            (r#"{"a": 1, "a": 2}"#, "twice"),
            (r#"{"a": {"b": 1, "b": 1}}"#, "twice"),
            (r#"{"a": 1} {"#, "trailing"),
            (r#"{"a": 1"#, "EOF"),
            (r#"["a"]"#, "not a JSON object"),
            (r#""a""#, "not a JSON object"),
            ("{'a': 1}", "not valid JSON"),
        ] {
            let error = parse_object(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
