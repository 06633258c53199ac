//! Checks the final answer against a JSON schema, if one was given.

use std::sync::Arc;

use haft_types::{PromptLanguage, prompt};
use serde_json::Value;

use super::{Conclusion, Objection, Reason};

/// The maximum number of problems of an answer that are reported to the model.
const MOST_PROBLEMS: usize = 5;

/// The JSON schema of the final answer.
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

    /// Returns the instruction that is added to the task.
    pub(crate) fn instruction(&self, language: PromptLanguage) -> String {
        format!(
            "{}\n\n{}",
            prompt!("../../prompts/answer_schema").text(language),
            self.schema
        )
    }

    /// Decides whether a turn may end with this answer.
    pub(crate) fn conclude(&self, answer: &str) -> Conclusion {
        match self.check(answer) {
            Ok(output) => Conclusion::Accepted {
                output: Some(output),
            },
            Err(why) => Conclusion::Rejected(Objection {
                text: format!(
                    "Your final answer cannot be taken: {why}. Give the whole answer again as one JSON value that fits the schema, and nothing else."
                ),
                otherwise: Some(Reason {
                    code: "schema".into(),
                    message: format!("The model gave no answer that fits the schema: {why}."),
                }),
            }),
        }
    }

    fn check(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(without_fence(answer))
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
            .take(MOST_PROBLEMS)
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
fn without_fence(answer: &str) -> &str {
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
    fn an_answer_that_fits_is_data() {
        for answer in [
            "{\"n\": 3}",
            "  {\"n\": 3}\n",
            "```json\n{\"n\": 3}\n```",
            "```\n{\"n\": 3}\n```",
        ] {
            assert_eq!(schema().check(answer), Ok(json!({"n": 3})), "{answer}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (answer, why) in [
            ("It is 3.", "not one JSON value"),
            ("{\"n\": 3} {}", "not one JSON value"),
            ("{\"n\": \"3\"}", "`/n`"),
            ("{}", "\"n\" is a required property"),
            ("{\"n\": 1, \"m\": 2}", "'m'"),
        ] {
            let said = schema().check(answer).unwrap_err();
            assert!(said.contains(why), "{answer}: {said}");
        }
    }

    #[test]
    fn a_schema_that_is_none_or_reaches_out_is_refused() {
        assert!(AnswerSchema::new(json!({"type": "nonsense"})).is_err());
        assert!(AnswerSchema::new(json!({"$ref": "http://127.0.0.1:9/schema.json"})).is_err());
    }
}
