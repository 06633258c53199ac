//! Renders the reference of the tools as a page of the documentation: `haft tools list --markdown`.

use std::fmt::Write as _;

use haft_tool::{Availability, Group, Registry, Tool};
use serde_json::Value;

use super::list::access_verb;

/// Renders the documentation page of the tools in `registry`. Tools that are not in `constant` are
/// marked as conditional.
pub(super) fn render_page(registry: &Registry, constant: &Registry) -> String {
    let mut page = include_str!("page.md").to_owned();
    for group in Group::ALL {
        let tools: Vec<_> = registry
            .iter()
            .filter(|tool| tool.manual().group == group)
            .collect();
        if tools.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = write!(page, "\n## {}\n", group_heading(group));
        for tool in tools {
            write_tool(&mut page, tool.as_ref(), registry, constant);
        }
    }
    let cases: Vec<_> = registry.case_documents().collect();
    if !cases.is_empty() {
        page.push_str(
            "\n## Case documents\n\nSent while one of the tools they are about is offered.\n",
        );
        for case in cases {
            let _ = write!(page, "\n### {}\n\n{}\n", case.name, case.text);
        }
    }
    page
}

fn group_heading(group: Group) -> &'static str {
    match group {
        Group::Files => "Files",
        Group::Running => "Running",
        Group::Dialogue => "Dialogue",
        Group::Knowledge => "Knowledge",
        Group::Others => "Others",
    }
}

fn write_tool(page: &mut String, tool: &dyn Tool, registry: &Registry, constant: &Registry) {
    let spec = tool.spec();
    let manual = tool.manual();
    let _ = write!(
        page,
        "\n### `{}`\n\nIt {}.",
        spec.name,
        access_verb(tool.access())
    );
    let aliases: Vec<_> = manual
        .aliases
        .iter()
        .map(|alias| format!("`{}`", alias.name))
        .collect();
    if !aliases.is_empty() {
        let _ = write!(page, " Also called {}.", aliases.join(", "));
    }
    page.push_str(match manual.availability {
        _ if constant.resolve(&spec.name).is_none() => {
            " Offered where there is something for it, see the list above."
        }
        Availability::Native => " Offered with native calls, deferred with text protocols.",
        Availability::Text => " Offered with text protocols, deferred with native calls.",
        Availability::Default | Availability::Extension if registry.offers_tool(&spec.name) => "",
        Availability::Default | Availability::Extension => " Deferred.",
    });
    page.push_str("\n\n");
    write_parameters(page, &spec.parameters);
    // Headings and code fences of a description must not become headings and code fences of the
    // page.
    let _ = write!(page, "\n````text\n{}\n````\n", spec.description);
    if !manual.example.is_empty() {
        let _ = write!(
            page,
            "\n{}:\n\n```json\n{}\n```\n",
            manual.example_of, manual.example
        );
    }
}

fn write_parameters(page: &mut String, schema: &Value) {
    let required: Vec<_> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = schema["properties"]
        .as_object()
        .filter(|properties| !properties.is_empty())
    else {
        page.push_str("No parameters.\n");
        return;
    };
    page.push_str("| parameter | type | |\n| --- | --- | --- |\n");
    for (name, parameter) in properties {
        let kind = match (parameter["enum"].as_array(), parameter["type"].as_str()) {
            (Some(choices), _) => choices
                .iter()
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join(" or "),
            (None, Some(kind)) => kind.to_owned(),
            (None, None) => "any".to_owned(),
        };
        let optional = if required.contains(&name.as_str()) {
            ""
        } else {
            ", optional"
        };
        let description = parameter["description"]
            .as_str()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let _ = writeln!(page, "| `{name}` | {kind}{optional} | {description} |");
    }
}
