//! Parses the conversation printed by `haft conversations export`.

use serde_json::Value;

use super::workspace::Workspace;

/// Exports the only stored conversation. Returns `None` if there is none yet, and an error if there
/// are several.
pub(crate) fn export_only_conversation(place: &Workspace) -> Result<Option<Value>, String> {
    let listed = run_json_command(place, &["conversations", "list", "--all", "--json"])?;
    let ids: Vec<&str> = listed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["id"].as_str())
        .collect();
    match ids[..] {
        [] => Ok(None),
        [id] => run_json_command(place, &["conversations", "export", id]).map(Some),
        _ => Err(format!(
            "{} conversations instead of one: {listed}",
            ids.len()
        )),
    }
}

fn run_json_command(place: &Workspace, arguments: &[&str]) -> Result<Value, String> {
    let told = |what: &str| format!("`haft {}`: {what}", arguments.join(" "));
    let output = place
        .command(arguments)
        .output()
        .map_err(|error| told(&error.to_string()))?;
    if !output.status.success() {
        return Err(told(&format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| told(&error.to_string()))
}

/// A part of a stored message, reduced to the data that requests contain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredPart {
    User(String),
    Reply(String),
    Call { name: String, arguments: Value },
    Result(String),
}

/// A stored tool call with its results, of which there should be one.
#[derive(Debug)]
pub(crate) struct StoredCall<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) results: Vec<&'a Value>,
}

pub(crate) struct StoredConversation<'a>(pub(crate) &'a Value);

impl<'a> StoredConversation<'a> {
    pub(crate) fn messages(&self) -> &'a [Value] {
        self.0["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the parts of a message whose content is a list.
    fn parts(message: &'a Value) -> &'a [Value] {
        message["content"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Iterates over the parts of all messages that have the type `kind`.
    fn parts_of_type(&self, kind: &'static str) -> impl Iterator<Item = &'a Value> {
        self.messages()
            .iter()
            .flat_map(Self::parts)
            .filter(move |part| part["type"] == kind)
    }

    pub(crate) fn calls(&self) -> Vec<StoredCall<'a>> {
        let results: Vec<&Value> = self.parts_of_type("tool_result").collect();
        let call = |part: &'a Value| {
            let id = part["id"].as_str().unwrap_or_default();
            StoredCall {
                id,
                name: part["name"].as_str().unwrap_or_default(),
                arguments: &part["arguments"],
                results: results
                    .iter()
                    .copied()
                    .filter(|result| result["tool_call_id"] == id)
                    .collect(),
            }
        };
        self.parts_of_type("tool_call").map(call).collect()
    }

    pub(crate) fn result_count(&self) -> usize {
        self.parts_of_type("tool_result").count()
    }

    /// Returns, for each assistant message, its text and the ids of its calls.
    pub(crate) fn replies(&self) -> Vec<(String, Vec<&'a str>)> {
        let of_model = self
            .messages()
            .iter()
            .filter(|message| message["role"] == "assistant");
        let reply = |message: &'a Value| {
            let calls = Self::parts(message)
                .iter()
                .filter(|part| part["type"] == "tool_call");
            (
                message_text(message),
                calls.filter_map(|part| part["id"].as_str()).collect(),
            )
        };
        of_model.map(reply).collect()
    }

    /// Returns the parts of the conversation in order. Reasoning is left out, because its form
    /// depends on the API.
    pub(crate) fn to_parts(&self) -> Vec<StoredPart> {
        let mut said = Vec::new();
        for message in self.messages() {
            let of_user = message["role"] == "user";
            let words = |text: &Value| {
                let text = text.as_str().unwrap_or_default().to_owned();
                if of_user {
                    StoredPart::User(text)
                } else {
                    StoredPart::Reply(text)
                }
            };
            if message["content"].is_string() {
                said.push(words(&message["content"]));
            }
            said.extend(Self::parts(message).iter().filter_map(
                |part| match part["type"].as_str()? {
                    "text" => Some(words(&part["text"])),
                    "tool_call" => {
                        let name = part["name"].as_str()?.to_owned();
                        Some(StoredPart::Call {
                            name,
                            arguments: part["arguments"].clone(),
                        })
                    }
                    "tool_result" => Some(StoredPart::Result(part["text"].as_str()?.to_owned())),
                    _ => None,
                },
            ));
        }
        said
    }
}

fn message_text(message: &Value) -> String {
    if let Some(text) = message["content"].as_str() {
        return text.to_owned();
    }
    let texts = StoredConversation::parts(message)
        .iter()
        .filter(|part| part["type"] == "text");
    texts.filter_map(|part| part["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_export_is_read_in_order_with_every_result_of_a_call() {
        let call = json!({"type": "tool_call", "id": "c", "name": "read_file", "arguments": {"path": "a"}});
        let result = json!({"type": "tool_result", "tool_call_id": "c", "status": "success", "text": "1\ta"});
        let export = json!({"messages": [
            {"role": "user", "content": "task"},
            {"role": "assistant", "content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Look."}, call]},
            {"role": "tool", "content": [result]},
            {"role": "tool", "content": [result]},
        ]});
        let stored = StoredConversation(&export);
        assert_eq!(stored.calls()[0].results.len(), 2, "a doubled result shows");
        assert_eq!(stored.replies(), [("Look.".to_owned(), vec!["c"])]);
        let said = stored.to_parts();
        assert_eq!(said.len(), 5);
        assert_eq!(
            (&said[0], &said[1]),
            (
                &StoredPart::User("task".into()),
                &StoredPart::Reply("Look.".into())
            )
        );
    }
}
