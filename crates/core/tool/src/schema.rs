//! JSON schemas of parameter structs, and parsing of arguments.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The error for arguments that do not match the parameters of a tool.
#[derive(Debug, thiserror::Error)]
#[error("invalid arguments for `{tool}`: {reason}")]
pub struct InvalidArguments {
    tool: String,
    reason: String,
}

/// Returns the JSON schema of a parameter struct: a single object with everything inlined, without
/// `$ref`, null unions and titles.
pub fn parameter_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(PlainSchema));
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    // Some providers reject an object schema without this, even for a tool without parameters.
    if let Some(object) = schema.as_object_mut() {
        object
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// A transform that removes the parts of a schema that providers reject or that models do not need:
/// titles, `null` in type lists, number formats, and default values of null.
#[derive(Clone)]
struct PlainSchema;

impl Transform for PlainSchema {
    fn transform(&mut self, schema: &mut schemars::Schema) {
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        object.remove("title");
        object.remove("format");
        object.remove("$schema");
        if let Some(Value::String(description)) = object.get_mut("description") {
            *description = join_wrapped_lines(description);
        }
        if object.get("default").is_some_and(Value::is_null) {
            object.remove("default");
        }
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        unwrap_optional(object);
        flatten_unit_variants(object);
    }
}

/// Joins the lines of each paragraph, so that the line width of a doc comment does not affect
/// requests.
fn join_wrapped_lines(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.replace('\n', " "))
        .collect();
    paragraphs.join("\n\n")
}

/// Replaces `anyOf: [X, null]`, the schema of an optional enum, with `X`.
fn unwrap_optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(options)) = object.get_mut("anyOf") else {
        return;
    };
    options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = options.as_slice() {
        let mut only = only.clone();
        flatten_unit_variants(&mut only);
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// Replaces `oneOf: [{const: a}, {const: b}]`, the schema of an enum with documented variants, with
/// `enum: [a, b]`.
fn flatten_unit_variants(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get("oneOf") else {
        return;
    };
    let names: Option<Vec<Value>> = variants
        .iter()
        .map(|variant| variant.get("const").cloned())
        .collect();
    if let Some(names) = names {
        object.remove("oneOf");
        object.insert("type".into(), "string".into());
        object.insert("enum".into(), Value::Array(names));
    }
}

/// Parses the arguments of a call as the tool's parameter struct.
pub fn parse_arguments<T: DeserializeOwned>(
    tool: &str,
    arguments: Value,
) -> Result<T, InvalidArguments> {
    serde_json::from_value(arguments).map_err(|error| InvalidArguments {
        tool: tool.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum TodoState {
        Pending,
        InProgress,
        Completed,
    }

    /// One item of a TODO list.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct TodoItem {
        /// What is to be done, in a few words.
        content: String,
        /// How far it has come.
        status: TodoState,
    }

    /// Doc comments become descriptions.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Example {
        /// Where.
        path: String,
        /// From which line.
        start_line: Option<u32>,
        /// The items.
        items: Vec<TodoItem>,
    }

    #[test]
    fn schema_of_is_inlined_and_plain() {
        assert_eq!(
            parameter_schema::<Example>(),
            json!({
                "type": "object",
                "description": "Doc comments become descriptions.",
                "properties": {
                    "path": {"description": "Where.", "type": "string"},
                    "start_line": {"description": "From which line.", "type": "integer", "minimum": 0},
                    "items": {
                        "description": "The items.",
                        "type": "array",
                        "items": {
                            "description": "One item of a TODO list.",
                            "type": "object",
                            "properties": {
                                "content": {"description": "What is to be done, in a few words.", "type": "string"},
                                "status": {
                                    "description": "How far it has come.",
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed"],
                                },
                            },
                            "required": ["content", "status"],
                            "additionalProperties": false,
                        },
                    },
                },
                "required": ["path", "items"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn schema_of_options_and_empty_structs_is_minimal() {
        #[derive(Deserialize, JsonSchema)]
        enum Choice {
            A,
            B,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is looked at")]
        struct Choosing {
            choice: Option<Choice>,
        }
        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        assert_eq!(
            parameter_schema::<Choosing>()["properties"]["choice"],
            json!({"type": "string", "enum": ["A", "B"]})
        );
        assert_eq!(
            parameter_schema::<Nothing>(),
            json!({"type": "object", "properties": {}})
        );
    }

    #[test]
    fn parse_arguments_error_names_the_tool_and_the_reason() {
        let error = parse_arguments::<Example>("read_file", json!({"path": 3}))
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("`read_file`") && error.contains("expected a string"),
            "{error}"
        );
    }
}
