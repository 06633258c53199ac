//! Describes a text protocol to a model: the format of a call, and each offered tool under its own
//! heading.

use std::fmt::Write as _;

use haft_types::{PromptLanguage, ToolCall, ToolProtocol, ToolSpec, prompt};
use serde_json::{Map, Value};

use super::lower::{format_react_call, format_xml_call};
use super::{COMPLETION_TOOL, values};

/// Returns the part of the system text that describes how to call `tools`. Returns `None` if the
/// API has native calls or there are no tools.
pub fn describe_call_format(
    protocol: ToolProtocol,
    language: PromptLanguage,
    tools: &[ToolSpec],
) -> Option<String> {
    if tools.is_empty() {
        return None;
    }
    let offered = |name: &str| tools.iter().any(|tool| tool.name == name);
    let (format, example, completion) = match protocol {
        ToolProtocol::Native => return None,
        ToolProtocol::Xml => (
            prompt!("prompts/xml"),
            prompt!("prompts/xml_example"),
            prompt!("prompts/xml_completion"),
        ),
        ToolProtocol::React => (
            prompt!("prompts/react"),
            prompt!("prompts/react_example"),
            prompt!("prompts/react_completion"),
        ),
    };
    let mut sections = vec![format.text(language).to_owned()];
    // An example must not use a tool that is not offered.
    if offered("write_to_file") {
        sections.push(example.text(language).to_owned());
    }
    let ends_by_itself = protocol == ToolProtocol::React;
    if ends_by_itself || offered(COMPLETION_TOOL) {
        sections.push(completion.text(language).to_owned());
    }
    sections.push("# Tools".to_owned());
    let labels = prompt!("prompts/labels")
        .text(language)
        .lines()
        .collect::<Vec<_>>();
    sections.extend(
        tools
            .iter()
            .map(|tool| describe_tool(tool, protocol, &labels)),
    );
    Some(sections.join("\n\n"))
}

/// Writes a call in the format of a text protocol. Returns `None` if the API has native calls.
/// `arguments` is a JSON object.
pub fn write_call(protocol: ToolProtocol, name: &str, arguments: &str) -> Option<String> {
    let id = String::new();
    let signature = None;
    let call = ToolCall {
        id,
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature,
    };
    match protocol {
        ToolProtocol::Native => None,
        ToolProtocol::Xml => Some(format_xml_call(&call)),
        ToolProtocol::React => Some(format_react_call(&call)),
    }
}

fn describe_tool(tool: &ToolSpec, protocol: ToolProtocol, labels: &[&str]) -> String {
    let label = |at: usize| labels.get(at).copied().unwrap_or_default();
    let none = Map::new();
    let properties = tool
        .parameters
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let required: Vec<&str> = match tool.parameters.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut out = format!("## {}\n\n{}\n\n", tool.name, tool.description.trim());
    // Writing to a String cannot fail.
    if properties.is_empty() {
        let _ = writeln!(out, "{}", label(0));
    } else {
        let _ = writeln!(out, "{}", label(1));
    }
    for (name, schema) in properties {
        let need = label(if required.contains(&name.as_str()) {
            2
        } else {
            3
        });
        let _ = write!(out, "- `{name}`: {}, {need}", describe_type(schema));
        // Some tool descriptions explain the parameters one by one; only the missing ones are added
        // here.
        let described = tool.description.contains(&format!("- `{name}`"));
        match schema.get("description").and_then(Value::as_str) {
            Some(text) if !described => {
                let _ = write!(
                    out,
                    ". {}",
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                );
            }
            Some(_) | None => {}
        }
        out.push('\n');
    }
    let usage = match protocol {
        ToolProtocol::Native => return out,
        ToolProtocol::Xml => format_xml_usage(tool, properties),
        ToolProtocol::React => format_react_usage(tool, properties),
    };
    let _ = write!(out, "\n{}\n{usage}", label(4));
    out
}

/// Describes the type of a parameter for the model. For a list or an object, the description
/// contains the whole schema, because the model must know the shape to write it.
fn describe_type(schema: &Value) -> String {
    let choices = schema.get("enum").and_then(Value::as_array);
    match (values::schema_type(schema), choices) {
        (_, Some(choices)) => {
            let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
            format!("one of {}", choices.join(", "))
        }
        (Some(kind @ ("array" | "object")), None) => {
            let mut shape = schema.clone();
            if let Value::Object(fields) = &mut shape {
                // The description is written separately.
                fields.shift_remove("description");
            }
            format!("{kind} as JSON, by the schema `{shape}`")
        }
        (Some(kind), None) => kind.to_owned(),
        (None, None) => format!("a value by the schema `{schema}`"),
    }
}

fn format_xml_usage(tool: &ToolSpec, properties: &Map<String, Value>) -> String {
    let mut out = format!("<{}>\n", tool.name);
    for name in properties.keys() {
        let _ = writeln!(out, "<{name}>…</{name}>");
    }
    let _ = write!(out, "</{}>", tool.name);
    out
}

fn format_react_usage(tool: &ToolSpec, properties: &Map<String, Value>) -> String {
    let fields: Vec<_> = properties
        .keys()
        .map(|name| format!("\"{name}\": …"))
        .collect();
    format!("Action: {}[{{{}}}]", tool.name, fields.join(", "))
}
