//! Checks the final answer of a turn against a JSON schema, if a schema was given.

use std::sync::Arc;

use haft_types::{PromptLanguage, prompt};
use serde_json::Value;

use super::{Conclusion, Objection, Reason};

/// The maximum number of problems with an answer that are reported to the model.
const MAX_REPORTED_PROBLEMS: usize = 5;

/// The JSON schema that the final answer must match.
#[derive(Clone, Debug)]
pub struct AnswerSchema {
    schema: Value,
    validator: Arc<jsonschema::Validator>,
}

/// The error for an invalid JSON schema.
#[derive(Debug, thiserror::Error)]
#[error("the schema of the answer cannot be used: {0}")]
pub struct SchemaError(String);

impl AnswerSchema {
    /// Compiles a schema. All references must point into the schema itself.
    pub fn new(schema: Value) -> Result<Self, SchemaError> {
        let validator =
            jsonschema::validator_for(&schema).map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self {
            schema,
            validator: Arc::new(validator),
        })
    }

    /// Returns the instruction to answer according to the schema, which is added to the task.
    pub(crate) fn instruction(&self, language: PromptLanguage) -> String {
        format!(
            "{}\n\n{}",
            prompt!("../../prompts/answer_schema").text(language),
            self.schema
        )
    }

    /// Decides whether a turn may end with the text `answer`.
    pub(crate) fn check_answer(&self, answer: &str) -> Conclusion {
        match self.validate(answer) {
            Ok(output) => Conclusion::Accepted {
                output: Some(output),
            },
            Err(why) => Conclusion::Rejected(Objection {
                text: format!(
                    "Your final answer cannot be taken: {why}. Give the whole answer again as one JSON value that fits the schema, and nothing else."
                ),
                failure: Some(Reason {
                    code: "schema".into(),
                    message: format!("The model gave no answer that fits the schema: {why}."),
                }),
            }),
        }
    }

    fn validate(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(strip_code_fence(answer))
            .map_err(|error| format!("it is not one JSON value ({error})"))?;
        let problem = |error: jsonschema::ValidationError<'_>| {
            let at = error.instance_path().to_string();
            if at.is_empty() {
                error.to_string()
            } else {
                format!("{error} at `{at}`")
            }
        };
        let problems: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(MAX_REPORTED_PROBLEMS)
            .map(problem)
            .collect();
        if problems.is_empty() {
            Ok(value)
        } else {
            Err(problems.join("; "))
        }
    }
}

/// Removes a code fence around the answer, which many models add despite the instruction.
fn strip_code_fence(answer: &str) -> &str {
    let answer = answer.trim();
    let Some(inside) = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return answer;
    };
    inside.split_once('\n').map_or(inside, |(_, inside)| inside)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> AnswerSchema {
        let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        AnswerSchema::new(number).unwrap()
    }

    #[test]
    fn answer_schema_accepts_a_fitting_answer_as_data() {
        for answer in [
            "{\"n\": 3}",
            "  {\"n\": 3}\n",
            "```json\n{\"n\": 3}\n```",
            "```\n{\"n\": 3}\n```",
        ] {
            assert_eq!(schema().validate(answer), Ok(json!({"n": 3})), "{answer}");
        }
    }

    #[test]
    fn answer_schema_reports_the_place_of_an_error() {
        for (answer, why) in [
            ("It is 3.", "not one JSON value"),
            ("{\"n\": 3} {}", "not one JSON value"),
            ("{\"n\": \"3\"}", "`/n`"),
            ("{}", "\"n\" is a required property"),
            ("{\"n\": 1, \"m\": 2}", "'m'"),
        ] {
            let said = schema().validate(answer).unwrap_err();
            assert!(said.contains(why), "{answer}: {said}");
        }
    }

    #[test]
    fn answer_schema_rejects_invalid_schemas_and_remote_references() {
        assert!(AnswerSchema::new(json!({"type": "nonsense"})).is_err());
        assert!(AnswerSchema::new(json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_err());
    }
}
