//! A table of the request's types and their fields, and a walk that finds unknown fields.

use serde_json::Value;

use super::reject_violations;
use crate::rules::{
    RequestInfo,
    common::{Verdict, Violation},
};

/// A field that a request may have: its name in camel case, its name in snake case, and the content
/// it may have.
struct Field(&'static str, &'static str, FieldContent);

enum FieldContent {
    /// Content that isn't checked here: a plain value, a free-form object, or a schema (which has
    /// its own rules).
    Leaf,
    One(&'static [Field]),
    Many(&'static [Field]),
}
use FieldContent::{Leaf, Many, One};

const BLOB: &[Field] = &[
    Field("mimeType", "mime_type", Leaf),
    Field("data", "data", Leaf),
    Field("displayName", "display_name", Leaf),
];

const FILE: &[Field] = &[
    Field("mimeType", "mime_type", Leaf),
    Field("fileUri", "file_uri", Leaf),
    Field("displayName", "display_name", Leaf),
];

const FUNCTION_CALL: &[Field] = &[
    Field("id", "id", Leaf),
    Field("name", "name", Leaf),
    Field("args", "args", Leaf),
];

const FUNCTION_RESPONSE_PART: &[Field] = &[
    Field("inlineData", "inline_data", One(BLOB)),
    Field("fileData", "file_data", One(FILE)),
    Field("mediaProcessing", "media_processing", Leaf),
];

const FUNCTION_RESPONSE: &[Field] = &[
    Field("id", "id", Leaf),
    Field("name", "name", Leaf),
    Field("response", "response", Leaf),
    Field("parts", "parts", Many(FUNCTION_RESPONSE_PART)),
    Field("willContinue", "will_continue", Leaf),
    Field("scheduling", "scheduling", Leaf),
];

const PART: &[Field] = &[
    Field("text", "text", Leaf),
    Field("thought", "thought", Leaf),
    Field("thoughtSignature", "thought_signature", Leaf),
    Field("inlineData", "inline_data", One(BLOB)),
    Field("fileData", "file_data", One(FILE)),
    Field("functionCall", "function_call", One(FUNCTION_CALL)),
    Field(
        "functionResponse",
        "function_response",
        One(FUNCTION_RESPONSE),
    ),
    Field("executableCode", "executable_code", Leaf),
    Field("codeExecutionResult", "code_execution_result", Leaf),
    Field("toolCall", "tool_call", Leaf),
    Field("toolResponse", "tool_response", Leaf),
    Field("videoMetadata", "video_metadata", Leaf),
    Field("mediaResolution", "media_resolution", Leaf),
    Field("mediaProcessing", "media_processing", Leaf),
    Field("partMetadata", "part_metadata", Leaf),
    Field("audioTranscription", "audio_transcription", Leaf),
    Field("speechMetadata", "speech_metadata", Leaf),
];

const CONTENT: &[Field] = &[
    Field("role", "role", Leaf),
    Field("parts", "parts", Many(PART)),
];

const DECLARATION: &[Field] = &[
    Field("name", "name", Leaf),
    Field("description", "description", Leaf),
    Field("behavior", "behavior", Leaf),
    Field("parameters", "parameters", Leaf),
    Field("parametersJsonSchema", "parameters_json_schema", Leaf),
    Field("response", "response", Leaf),
    Field("responseJsonSchema", "response_json_schema", Leaf),
];

const TOOL: &[Field] = &[
    Field(
        "functionDeclarations",
        "function_declarations",
        Many(DECLARATION),
    ),
    Field("googleSearch", "google_search", Leaf),
    Field("googleSearchRetrieval", "google_search_retrieval", Leaf),
    Field("googleMaps", "google_maps", Leaf),
    Field("codeExecution", "code_execution", Leaf),
    Field("urlContext", "url_context", Leaf),
    Field("computerUse", "computer_use", Leaf),
    Field("fileSearch", "file_search", Leaf),
    Field("mcpServers", "mcp_servers", Leaf),
];

const CALLING_CONFIG: &[Field] = &[
    Field("mode", "mode", Leaf),
    Field("allowedFunctionNames", "allowed_function_names", Leaf),
];

const TOOL_CONFIG: &[Field] = &[
    Field(
        "functionCallingConfig",
        "function_calling_config",
        One(CALLING_CONFIG),
    ),
    Field("retrievalConfig", "retrieval_config", Leaf),
    Field(
        "includeServerSideToolInvocations",
        "include_server_side_tool_invocations",
        Leaf,
    ),
];

const THINKING: &[Field] = &[
    Field("includeThoughts", "include_thoughts", Leaf),
    Field("thinkingBudget", "thinking_budget", Leaf),
    Field("thinkingLevel", "thinking_level", Leaf),
];

const GENERATION: &[Field] = &[
    Field("stopSequences", "stop_sequences", Leaf),
    Field("responseMimeType", "response_mime_type", Leaf),
    Field("responseSchema", "response_schema", Leaf),
    Field("responseJsonSchema", "response_json_schema", Leaf),
    Field("responseFormat", "response_format", Leaf),
    Field("responseModalities", "response_modalities", Leaf),
    Field("candidateCount", "candidate_count", Leaf),
    Field("maxOutputTokens", "max_output_tokens", Leaf),
    Field("temperature", "temperature", Leaf),
    Field("topP", "top_p", Leaf),
    Field("topK", "top_k", Leaf),
    Field("seed", "seed", Leaf),
    Field("presencePenalty", "presence_penalty", Leaf),
    Field("frequencyPenalty", "frequency_penalty", Leaf),
    Field("responseLogprobs", "response_logprobs", Leaf),
    Field("logprobs", "logprobs", Leaf),
    Field(
        "enableEnhancedCivicAnswers",
        "enable_enhanced_civic_answers",
        Leaf,
    ),
    Field("enableAffectiveDialog", "enable_affective_dialog", Leaf),
    Field("speechConfig", "speech_config", Leaf),
    Field("thinkingConfig", "thinking_config", One(THINKING)),
    Field("imageConfig", "image_config", Leaf),
    Field("mediaResolution", "media_resolution", Leaf),
    Field("translationConfig", "translation_config", Leaf),
    Field(
        "audioTranscriptionConfig",
        "audio_transcription_config",
        Leaf,
    ),
];

const SAFETY: &[Field] = &[
    Field("category", "category", Leaf),
    Field("threshold", "threshold", Leaf),
];

const REQUEST: &[Field] = &[
    Field("model", "model", Leaf),
    Field("contents", "contents", Many(CONTENT)),
    Field("tools", "tools", Many(TOOL)),
    Field("toolConfig", "tool_config", One(TOOL_CONFIG)),
    Field("safetySettings", "safety_settings", Many(SAFETY)),
    Field("systemInstruction", "system_instruction", One(CONTENT)),
    Field("generationConfig", "generation_config", One(GENERATION)),
    Field("cachedContent", "cached_content", Leaf),
    Field("labels", "labels", Leaf),
    Field("serviceTier", "service_tier", Leaf),
    Field("store", "store", Leaf),
    Field("continuationToken", "continuation_token", Leaf),
];

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    let mut violations = Vec::new();
    find_unknown_fields(body, REQUEST, &mut String::new(), &mut violations);
    reject_violations(violations)
}

fn find_unknown_fields(
    value: &Value,
    known: &[Field],
    path: &mut String,
    violations: &mut Vec<Violation>,
) {
    use std::fmt::Write;
    for (key, inner) in value.as_object().into_iter().flatten() {
        let Some(Field(_, snake, inside)) =
            known.iter().find(|field| key == field.0 || key == field.1)
        else {
            violations.push(unknown_field_violation(key, path));
            continue;
        };
        let length = path.len();
        let dot = if path.is_empty() { "" } else { "." };
        match (inside, inner) {
            (One(fields), Value::Object(_)) => {
                let _ = write!(path, "{dot}{snake}");
                find_unknown_fields(inner, fields, path, violations);
            }
            (Many(fields), Value::Array(elements)) => {
                for (at, element) in elements.iter().enumerate() {
                    let _ = write!(path, "{dot}{snake}[{at}]");
                    find_unknown_fields(element, fields, path, violations);
                    path.truncate(length);
                }
            }
            (Leaf | One(_) | Many(_), _) => {}
        }
        path.truncate(length);
    }
}

/// Returns the violation for a field that the type doesn't have.
pub(super) fn unknown_field_violation(name: &str, path: &str) -> Violation {
    let place = if path.is_empty() {
        String::new()
    } else {
        format!(" at '{path}'")
    };
    let description = format!(
        "Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field."
    );
    Violation {
        field: path.to_owned(),
        description,
    }
}

/// True if `key` is the name of the field `camel`, in camel case or in snake case.
pub(super) fn is_same_field(key: &str, camel: &str) -> bool {
    let mut upper = false;
    let mut wanted = camel.chars();
    for c in key.chars() {
        if c == '_' {
            upper = true;
            continue;
        }
        let c = if upper { c.to_ascii_uppercase() } else { c };
        upper = false;
        if wanted.next() != Some(c) {
            return false;
        }
    }
    wanted.next().is_none() && !upper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_field_are_one() {
        assert!(is_same_field("thoughtSignature", "thoughtSignature"));
        assert!(is_same_field("thought_signature", "thoughtSignature"));
        assert!(!is_same_field("thought_signatures", "thoughtSignature"));
        assert!(!is_same_field("thought", "thoughtSignature"));
    }

    #[test]
    fn the_table_spells_each_field_both_ways() {
        for table in [
            REQUEST,
            CONTENT,
            PART,
            TOOL,
            DECLARATION,
            GENERATION,
            TOOL_CONFIG,
            CALLING_CONFIG,
            THINKING,
        ] {
            for Field(camel, snake, _) in table {
                assert!(is_same_field(snake, camel), "{camel} is not {snake}");
            }
        }
    }
}
