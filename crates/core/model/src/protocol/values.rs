//! Converts parameter values between the text inside a tag and JSON, according to the tool's
//! schema.

use std::borrow::Cow;

use serde_json::Value;

/// Converts text to a JSON value of the type in `schema`. Text that cannot be parsed as that type
/// becomes a string: the tool's own validation then reports the problem.
pub(super) fn text_to_value(text: &str, schema: &Value) -> Value {
    let text = trim_line_ends(text);
    let parsed = || serde_json::from_str::<Value>(text.trim()).ok();
    let typed = match schema_type(schema) {
        Some("integer") => parsed().filter(|value| value.is_i64() || value.is_u64()),
        Some("number") => parsed().filter(Value::is_number),
        Some("boolean") => parsed().filter(Value::is_boolean),
        Some("array") => parsed().filter(Value::is_array),
        Some("object") => parsed().filter(Value::is_object),
        _ => None,
    };
    typed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Converts a parameter's value to the text inside the parameter's tag. Text with several lines is
/// surrounded by line breaks.
pub(super) fn value_to_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) if text.contains('\n') => {
            // Removing the line end again must not remove a carriage return that belongs to the
            // value.
            let end = if text.ends_with('\r') { "\r\n" } else { "\n" };
            Cow::Owned(format!("\n{text}{end}"))
        }
        Value::String(text) => Cow::Borrowed(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}

/// Removes at most one line break from each end of the text.
fn trim_line_ends(text: &str) -> &str {
    let text = text
        .strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'))
        .unwrap_or(text);
    text.strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text)
}

/// Returns the value of `type` in a JSON schema, if it is a single name.
pub(super) fn schema_type(schema: &Value) -> Option<&str> {
    schema.get("type")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn from_text_takes_types_from_the_schema() {
        let read = |text, kind: &str| text_to_value(text, &json!({ "type": kind }));
        assert_eq!(read("12", "integer"), json!(12));
        assert_eq!(read("\n 12 \n", "integer"), json!(12));
        assert_eq!(read("12", "string"), json!("12"));
        assert_eq!(read("1.5", "integer"), json!("1.5"));
        assert_eq!(read("1.5", "number"), json!(1.5));
        assert_eq!(read("true", "boolean"), json!(true));
        assert_eq!(read("yes", "boolean"), json!("yes"));
        assert_eq!(read("[1, \"a\"]", "array"), json!([1, "a"]));
        assert_eq!(read("{\"a\": 1}", "object"), json!({"a": 1}));
        assert_eq!(read("- a", "array"), json!("- a"));
        assert_eq!(text_to_value("12", &json!({})), json!("12"));
    }

    #[test]
    fn from_text_removes_one_line_break_from_each_end() {
        let read = |text| text_to_value(text, &json!({"type": "string"}));
        assert_eq!(read("\n\n a\n\n"), json!("\n a\n"));
        assert_eq!(read("\r\na\r\n"), json!("a"));
        assert_eq!(read("\n"), json!(""));
        assert_eq!(read(" a "), json!(" a "));
        assert_eq!(
            read("&lt;&amp;"),
            json!("&lt;&amp;"),
            "entities are left alone"
        );
    }

    #[test]
    fn from_text_reads_back_what_was_written() {
        for text in [
            "",
            "a",
            " a ",
            "a\nb",
            "\n",
            "\n\na\n\n",
            "a\r\nb\r",
            "\r",
            "\r\n",
            "a\n\r",
        ] {
            let value = json!(text);
            assert_eq!(
                text_to_value(&value_to_text(&value), &json!({"type": "string"})),
                value,
                "{text:?}"
            );
        }
        for value in [
            json!(-3),
            json!(1.5),
            json!(false),
            json!([1, {"a": null}]),
            json!({"b": []}),
        ] {
            let kinds = ["integer", "number", "boolean", "array", "object"];
            assert!(
                kinds.iter().any(|kind| text_to_value(
                    &value_to_text(&value),
                    &json!({ "type": kind })
                ) == value)
            );
        }
    }
}
