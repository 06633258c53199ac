//! Converts the forms of MCP servers to elicitation requests of the protocol, and the answers back.

use agent_client_protocol::v1::schema::{
    CreateElicitationRequest, ElicitationAction, ElicitationCapabilities, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, SessionId,
};
use haft_types::{Choice, FieldKind, Form, FormOutcome};
use serde_json::{Map, Value, json};

/// True if the editor can show forms. If its capabilities name no kind of elicitation, forms are
/// meant, because older versions of the protocol had no other kind.
pub(crate) fn supports_forms(offered: Option<&ElicitationCapabilities>) -> bool {
    offered.is_some_and(|offered| offered.form.is_some() || offered.url.is_none())
}

/// Returns the request that shows a form, or `None` if the protocol cannot express one of its
/// fields.
pub(crate) fn build_form_request(
    session: &SessionId,
    form: &Form,
) -> Option<CreateElicitationRequest> {
    let one_of = |choices: &[Choice]| -> Vec<Value> {
        choices
            .iter()
            .map(|choice| json!({"const": choice.value, "title": choice.title}))
            .collect()
    };
    let mut properties = Map::new();
    for field in &form.fields {
        let mut property = match &field.kind {
            FieldKind::Text => json!({"type": "string"}),
            FieldKind::Number => json!({"type": "number"}),
            FieldKind::Integer => json!({"type": "integer"}),
            FieldKind::Boolean => json!({"type": "boolean"}),
            FieldKind::One(choices) => json!({"type": "string", "oneOf": one_of(choices)}),
            FieldKind::Some(choices) => {
                json!({"type": "array", "items": {"anyOf": one_of(choices)}})
            }
        };
        property["title"] = field.label().into();
        if !field.description.is_empty() {
            property["description"] = field.description.as_str().into();
        }
        if let Some(default) = &field.default {
            property["default"] = default.clone();
        }
        properties.insert(field.name.clone(), property);
    }
    let required: Vec<_> = form
        .fields
        .iter()
        .filter(|field| field.required)
        .map(|field| field.name.as_str())
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let mode = ElicitationFormMode::new(ElicitationSessionScope::new(session.clone()), schema);
    Some(CreateElicitationRequest::new(
        mode,
        format!("{}: {}", form.requester, form.message),
    ))
}

/// Converts the editor's answer to the outcome of a form. An answer in which a required value is
/// missing counts as declined.
pub(crate) fn parse_form_answer(form: &Form, action: ElicitationAction) -> FormOutcome {
    let accepted = match action {
        ElicitationAction::Accept(accepted) => accepted,
        ElicitationAction::Cancel => return FormOutcome::Canceled,
        _ => return FormOutcome::Declined,
    };
    let content = serde_json::to_value(accepted.content).unwrap_or_default();
    let value = |name: &str| content.get(name).filter(|value| !value.is_null()).cloned();
    let mut values = Map::new();
    for field in &form.fields {
        match value(&field.name).or_else(|| field.default.clone()) {
            Some(value) => drop(values.insert(field.name.clone(), value)),
            None if field.required => return FormOutcome::Declined,
            None => {}
        }
    }
    FormOutcome::Accepted(values)
}
