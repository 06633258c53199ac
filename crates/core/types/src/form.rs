//! Forms that an outside party, such as an MCP server, asks a person to fill in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// A request for a person's input. All its text comes from outside: sanitize it before showing it
/// on a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// The display name of the program that asks.
    pub requester: String,
    /// The reason for the request, shown above the fields.
    pub message: String,
    pub fields: Vec<Field>,
}

/// A field of a form: one value that the person is asked to enter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The key under which the answer is submitted.
    pub name: String,
    /// The display name of the field; if empty, `name` is shown instead.
    pub title: String,
    /// An explanation of the field for the person; may be empty.
    pub description: String,
    /// The kind of value that the field accepts.
    pub kind: FieldKind,
    /// True if the form cannot be submitted without a value for the field.
    pub required: bool,
    /// The value used if the person enters nothing.
    pub default: Option<Value>,
}

/// The kind of value that a form's field accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// Free text.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// Exactly one of the listed choices.
    One(Vec<Choice>),
    /// Any number of the listed choices.
    Some(Vec<Choice>),
}

/// One of the values that a field offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The value that is sent if the person selects the choice.
    pub value: String,
    /// The display name of the choice; may be empty.
    pub title: String,
}

/// The person's response to a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormOutcome {
    /// The person submitted the answers, which are keyed by field name.
    Accepted(Map<String, Value>),
    /// The person declined; the requester may continue without the answers.
    Declined,
    /// The person canceled the operation that showed the form.
    Canceled,
}

impl Field {
    /// Returns the title, or the name if the title is empty.
    pub fn label(&self) -> &str {
        if self.title.is_empty() {
            &self.name
        } else {
            &self.title
        }
    }

    /// Parses a typed line. An empty line means the default, or `None` for an optional field
    /// without a default. The error describes the valid input.
    pub fn parse_answer(&self, line: &str) -> Result<Option<Value>, String> {
        match (line.trim().is_empty(), &self.default) {
            (true, Some(default)) => Ok(Some(default.clone())),
            (true, None) if self.required => Err("it must be given".to_owned()),
            (true, None) => Ok(None),
            (false, _) => self.kind.parse_value(line).map(Some),
        }
    }

    /// Returns a hint to print after the label: the description, the accepted values, and the
    /// default in parentheses. Empty if there is nothing to print.
    pub fn answer_hint(&self) -> String {
        let join_values = |choices: &[Choice]| {
            let values: Vec<_> = choices.iter().map(|choice| choice.value.as_str()).collect();
            values.join(", ")
        };
        let mut notes = Vec::new();
        notes.extend(Some(self.description.clone()).filter(|text| !text.is_empty()));
        notes.extend(match &self.kind {
            FieldKind::Text => None,
            FieldKind::Number | FieldKind::Integer => Some("a number".to_owned()),
            FieldKind::Boolean => Some("y or n".to_owned()),
            FieldKind::One(choices) => Some(format!("one of {}", join_values(choices))),
            FieldKind::Some(choices) => {
                Some(format!("any of {}, with commas", join_values(choices)))
            }
        });
        notes.extend(self.default.as_ref().map(|default| match default {
            Value::String(text) => format!("default {text}"),
            other => format!("default {other}"),
        }));
        notes.extend((self.required && self.default.is_none()).then(|| "needed".to_owned()));
        if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join("; "))
        }
    }
}

impl FieldKind {
    /// Parses a typed line as a value of this kind. The error describes the valid input.
    pub fn parse_value(&self, line: &str) -> Result<Value, String> {
        let line = line.trim();
        match self {
            Self::Text => Ok(line.into()),
            Self::Number => {
                let number = line.parse().ok().and_then(Number::from_f64);
                number
                    .map(Value::Number)
                    .ok_or_else(|| "type a number".to_owned())
            }
            Self::Integer => line
                .parse::<i64>()
                .map(Value::from)
                .map_err(|_| "type a whole number".to_owned()),
            Self::Boolean => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" | "是" => Ok(true.into()),
                "n" | "no" | "false" | "否" => Ok(false.into()),
                _ => Err("type `y` or `n`".to_owned()),
            },
            Self::One(choices) => find_choice(choices, line).map(Value::from),
            Self::Some(choices) => {
                let parts = line
                    .split(',')
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                parts
                    .map(|part| find_choice(choices, part).map(Value::from))
                    .collect::<Result<Vec<_>, _>>()
                    .map(Value::Array)
            }
        }
    }
}

fn find_choice(choices: &[Choice], typed: &str) -> Result<String, String> {
    let found = choices
        .iter()
        .find(|choice| choice.value == typed || choice.title.eq_ignore_ascii_case(typed));
    found.map(|choice| choice.value.clone()).ok_or_else(|| {
        let values: Vec<_> = choices.iter().map(|choice| choice.value.as_str()).collect();
        format!("`{typed}` is none of {}", values.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_notes_describe_the_values_answer_accepts() {
        let field = |required, default: Option<Value>| Field {
            name: "age".into(),
            title: String::new(),
            description: "in years".into(),
            kind: FieldKind::Integer,
            required,
            default,
        };
        assert_eq!(
            field(true, None).answer_hint(),
            " (in years; a number; needed)"
        );
        assert_eq!(
            field(true, Some(json!(7))).answer_hint(),
            " (in years; a number; default 7)"
        );
        assert_eq!(
            field(true, None).parse_answer(" "),
            Err("it must be given".into())
        );
        assert_eq!(
            field(true, Some(json!(7))).parse_answer(""),
            Ok(Some(json!(7)))
        );
        assert_eq!(field(false, None).parse_answer(""), Ok(None));
        assert_eq!(field(false, None).parse_answer(" 36 "), Ok(Some(json!(36))));
        assert_eq!(
            field(false, None).parse_answer("old"),
            Err("type a whole number".into())
        );
    }

    #[test]
    fn answer_converts_a_line_to_its_kind_or_reports_the_error() {
        let colours = || {
            ["red", "green"]
                .map(|value| Choice {
                    value: value.into(),
                    title: value.to_uppercase(),
                })
                .to_vec()
        };
        for (kind, line, wanted) in [
            (FieldKind::Text, " Ada ", Ok(json!("Ada"))),
            (FieldKind::Number, "2.5", Ok(json!(2.5))),
            (FieldKind::Number, "much", Err("type a number")),
            (FieldKind::Number, "inf", Err("type a number")),
            (FieldKind::Integer, "-3", Ok(json!(-3))),
            (FieldKind::Integer, "3.5", Err("type a whole number")),
            (FieldKind::Boolean, "Yes", Ok(json!(true))),
            (FieldKind::Boolean, "否", Ok(json!(false))),
            (FieldKind::Boolean, "maybe", Err("type `y` or `n`")),
            (FieldKind::One(colours()), "GREEN", Ok(json!("green"))),
            (
                FieldKind::One(colours()),
                "blue",
                Err("`blue` is none of red, green"),
            ),
            (
                FieldKind::Some(colours()),
                "red, green,",
                Ok(json!(["red", "green"])),
            ),
            (
                FieldKind::Some(colours()),
                "red, blue",
                Err("`blue` is none of red, green"),
            ),
        ] {
            assert_eq!(
                kind.parse_value(line),
                wanted.map_err(str::to_owned),
                "{kind:?} {line}"
            );
        }
    }
}
