//! Decodes Gemini generateContent requests: two roles, parts identified by their key, calls usually
//! without ids.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, FromPath, Seen, SeenError, SeenPart, SeenRole, SeenTool, array_field,
    image_from_base64, image_from_url, optional_string, owned_or_empty, string_field,
};

pub(super) fn decode_request(body: &Value, from_path: FromPath<'_>) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    for (index, content) in array_field(body, "contents", "")?.iter().enumerate() {
        let path = format!("contents[{index}]");
        let role = match optional_string(content, "role") {
            Some("model") => SeenRole::Assistant,
            Some("user" | "function") | None => SeenRole::User,
            Some(_) => return Err(SeenError::new(path + ".role", "unknown role")),
        };
        let parts = array_field(content, "parts", &path)?;
        let has_results = parts
            .iter()
            .any(|part| get_either_case(part, "functionResponse", "function_response").is_some());
        for (at, part) in parts.iter().enumerate() {
            push_part(
                role,
                part,
                has_results,
                &format!("{path}.parts[{at}]"),
                &mut builder,
            )?;
        }
    }
    let system = get_either_case(body, "systemInstruction", "system_instruction");
    let system: Vec<&str> = match system {
        Some(system) => array_field(system, "parts", "systemInstruction")?
            .iter()
            .filter_map(|part| optional_string(part, "text"))
            .collect(),
        None => Vec::new(),
    };
    let mut tools = Vec::new();
    for tool in array_field(body, "tools", "")? {
        let declared = get_either_case(tool, "functionDeclarations", "function_declarations")
            .and_then(Value::as_array);
        tools.extend(declared.into_iter().flatten().map(|function| {
            SeenTool {
                name: owned_or_empty(optional_string(function, "name")),
                description: owned_or_empty(optional_string(function, "description")),
                parameters: get_either_case(
                    function,
                    "parametersJsonSchema",
                    "parameters_json_schema",
                )
                .or_else(|| function.get("parameters"))
                .cloned()
                .unwrap_or_default(),
            }
        }));
    }
    let limit = get_either_case(body, "generationConfig", "generation_config")
        .and_then(|config| get_either_case(config, "maxOutputTokens", "max_output_tokens"));
    Ok(Seen {
        api: Api::Gemini,
        model: owned_or_empty(from_path.model),
        system: system.join("\n\n"),
        tools,
        messages: builder.finish(),
        max_output_tokens: limit.and_then(Value::as_u64),
        stream: from_path.stream,
        cache_marks: optional_string(body, "cachedContent")
            .map(|_| "cachedContent".to_owned())
            .into_iter()
            .collect(),
    })
}

fn push_part(
    role: SeenRole,
    part: &Value,
    beside_results: bool,
    path: &str,
    builder: &mut Builder,
) -> Result<(), SeenError> {
    let signed = get_either_case(part, "thoughtSignature", "thought_signature").is_some();
    if let Some(call) = get_either_case(part, "functionCall", "function_call") {
        let arguments = call
            .get("args")
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        builder.push_call(
            optional_string(call, "id"),
            string_field(call, "name", path)?,
            arguments,
            signed,
        );
    } else if let Some(result) = get_either_case(part, "functionResponse", "function_response") {
        let (words, failed) = decode_function_response(result.get("response"));
        match optional_string(result, "id") {
            Some(id) => builder.push_result(id, words, Some(failed)),
            None => builder.push_result_by_name(
                string_field(result, "name", path)?,
                words,
                Some(failed),
            ),
        }
        for inner in array_field(result, "parts", path)? {
            if let Some(picture) = decode_image(inner, path)? {
                builder.push_result_image(picture);
            }
        }
    } else if let Some(picture) = decode_image(part, path)? {
        if beside_results {
            builder.push_result_image(picture);
        } else {
            builder.push(role, picture);
        }
    } else if let Some(words) = optional_string(part, "text") {
        let text = words.to_owned();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            builder.push(role, SeenPart::Thinking { text, signed });
        } else {
            builder.push(role, SeenPart::Text { text, signed });
        }
    } else {
        let kind = part
            .as_object()
            .and_then(|part| part.keys().next())
            .cloned()
            .unwrap_or_default();
        builder.push(role, SeenPart::Other { kind });
    }
    Ok(())
}

/// Returns the text at `error`, `output` or `result`, or the whole object as JSON if it has none of
/// them. The flag is true if the tool failed.
fn decode_function_response(response: Option<&Value>) -> (String, bool) {
    let Some(response) = response else {
        return (String::new(), false);
    };
    let words = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    if let Some(error) = response.get("error") {
        return (words(error), true);
    }
    let output = response.get("output").or_else(|| response.get("result"));
    (words(output.unwrap_or(response)), false)
}

fn decode_image(part: &Value, path: &str) -> Result<Option<SeenPart>, SeenError> {
    if let Some(data) = get_either_case(part, "inlineData", "inline_data") {
        let media_type = get_either_case(data, "mimeType", "mime_type").and_then(Value::as_str);
        return Ok(Some(image_from_base64(
            media_type.unwrap_or_default(),
            string_field(data, "data", path)?,
        )));
    }
    let file = get_either_case(part, "fileData", "file_data");
    Ok(file
        .and_then(|file| get_either_case(file, "fileUri", "file_uri"))
        .and_then(Value::as_str)
        .map(image_from_url))
}

/// Returns the field with this name, which may be written in camelCase or `snake_case`, because the
/// API accepts both.
fn get_either_case<'a>(object: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    object
        .get(camel)
        .or_else(|| object.get(snake))
        .filter(|value| !value.is_null())
}
