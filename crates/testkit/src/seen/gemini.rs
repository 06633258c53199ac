//! Decodes Gemini generateContent requests: two roles, parts identified by their key, calls usually
//! without ids.

use haft_types::Api;
use serde_json::Value;

use super::{
    Builder, FromPath, Seen, SeenError, SeenPart, SeenRole, SeenTool, image, image_at, list, maybe,
    owned, text,
};

pub(super) fn decode(body: &Value, from_path: FromPath<'_>) -> Result<Seen, SeenError> {
    let mut builder = Builder::default();
    for (index, content) in list(body, "contents", "")?.iter().enumerate() {
        let path = format!("contents[{index}]");
        let role = match maybe(content, "role") {
            Some("model") => SeenRole::Assistant,
            Some("user" | "function") | None => SeenRole::User,
            Some(_) => return Err(SeenError::new(path + ".role", "unknown role")),
        };
        let parts = list(content, "parts", &path)?;
        let has_results = parts
            .iter()
            .any(|part| key(part, "functionResponse", "function_response").is_some());
        for (at, part) in parts.iter().enumerate() {
            part_into(
                role,
                part,
                has_results,
                &format!("{path}.parts[{at}]"),
                &mut builder,
            )?;
        }
    }
    let system = key(body, "systemInstruction", "system_instruction");
    let system: Vec<&str> = match system {
        Some(system) => list(system, "parts", "systemInstruction")?
            .iter()
            .filter_map(|part| maybe(part, "text"))
            .collect(),
        None => Vec::new(),
    };
    let mut tools = Vec::new();
    for tool in list(body, "tools", "")? {
        let declared =
            key(tool, "functionDeclarations", "function_declarations").and_then(Value::as_array);
        tools.extend(declared.into_iter().flatten().map(|function| {
            SeenTool {
                name: owned(maybe(function, "name")),
                description: owned(maybe(function, "description")),
                parameters: key(function, "parametersJsonSchema", "parameters_json_schema")
                    .or_else(|| function.get("parameters"))
                    .cloned()
                    .unwrap_or_default(),
            }
        }));
    }
    let limit = key(body, "generationConfig", "generation_config")
        .and_then(|config| key(config, "maxOutputTokens", "max_output_tokens"));
    Ok(Seen {
        api: Api::Gemini,
        model: owned(from_path.model),
        system: system.join("\n\n"),
        tools,
        messages: builder.finish(),
        max_output_tokens: limit.and_then(Value::as_u64),
        stream: from_path.stream,
        cache_marks: maybe(body, "cachedContent")
            .map(|_| "cachedContent".to_owned())
            .into_iter()
            .collect(),
    })
}

fn part_into(
    role: SeenRole,
    part: &Value,
    beside_results: bool,
    path: &str,
    builder: &mut Builder,
) -> Result<(), SeenError> {
    let signed = key(part, "thoughtSignature", "thought_signature").is_some();
    if let Some(call) = key(part, "functionCall", "function_call") {
        let arguments = call
            .get("args")
            .cloned()
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        builder.call(
            maybe(call, "id"),
            text(call, "name", path)?,
            arguments,
            signed,
        );
    } else if let Some(result) = key(part, "functionResponse", "function_response") {
        let (words, failed) = response(result.get("response"));
        match maybe(result, "id") {
            Some(id) => builder.result(id, words, Some(failed)),
            None => builder.result_by_name(text(result, "name", path)?, words, Some(failed)),
        }
        for inner in list(result, "parts", path)? {
            if let Some(picture) = picture(inner, path)? {
                builder.result_image(picture);
            }
        }
    } else if let Some(picture) = picture(part, path)? {
        if beside_results {
            builder.result_image(picture);
        } else {
            builder.push(role, picture);
        }
    } else if let Some(words) = maybe(part, "text") {
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

/// Returns the text under `output` or `error`, or the whole object as JSON, and whether the tool
/// failed.
fn response(response: Option<&Value>) -> (String, bool) {
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

fn picture(part: &Value, path: &str) -> Result<Option<SeenPart>, SeenError> {
    if let Some(data) = key(part, "inlineData", "inline_data") {
        let media_type = key(data, "mimeType", "mime_type").and_then(Value::as_str);
        return Ok(Some(image(
            media_type.unwrap_or_default(),
            text(data, "data", path)?,
        )));
    }
    let file = key(part, "fileData", "file_data");
    Ok(file
        .and_then(|file| key(file, "fileUri", "file_uri"))
        .and_then(Value::as_str)
        .map(image_at))
}

/// Returns the field by its camelCase or snake_case name; the API accepts both.
fn key<'a>(object: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    object
        .get(camel)
        .or_else(|| object.get(snake))
        .filter(|value| !value.is_null())
}
