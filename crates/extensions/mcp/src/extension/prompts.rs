//! Offers prompts of servers as commands: `/mcp__server__prompt ARGUMENTS`.

use haft_agent::{OfferedArgument, OfferedPrompt, PromptError, split_words};
use haft_text::NameRule;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{PREFIX, split_tool_name};
use crate::error::McpError;
use crate::listing::{PromptArgument, PromptInfo};
use crate::servers::Servers;

/// The reason why a call such as `/mcp__server__prompt` cannot be replaced by the server's prompt.
#[derive(Debug, thiserror::Error)]
enum ExpandError {
    #[error("the MCP server `{server}` has no such prompt; it has none")]
    NoPrompts { server: String },
    #[error("the MCP server `{server}` has no such prompt; it has {known}")]
    UnknownPrompt { server: String, known: String },
    #[error("`{argument}` is missing; write `/{name} {hint}`")]
    MissingArgument {
        argument: String,
        name: String,
        hint: String,
    },
    #[error("the server answered without text")]
    Empty,
    #[error(transparent)]
    Server(#[from] McpError),
}

/// Lists the prompts of all servers with known listings. Starts no server.
pub(super) fn list_prompts(servers: &Servers) -> Vec<OfferedPrompt> {
    let mut offered = Vec::new();
    for server in servers.iter() {
        let listing = servers.known_listing(&server.name).unwrap_or_default();
        let prompts = listing.prompts.iter();
        offered.extend(prompts.map(|prompt| to_offered_prompt(&server.name, prompt)));
    }
    offered
}

fn to_offered_prompt(server: &str, prompt: &PromptInfo) -> OfferedPrompt {
    let argument = |argument: &PromptArgument| OfferedArgument {
        name: argument.name.clone(),
        description: argument.description.clone(),
        required: argument.required,
    };
    OfferedPrompt {
        name: format!("{PREFIX}{server}__{}", to_command_name(&prompt.name)),
        server: server.to_owned(),
        description: prompt.description.clone(),
        arguments: prompt.arguments.iter().map(argument).collect(),
    }
}

/// Fetches the server's prompt for a call in `text`, such as `/mcp__server__prompt ARGUMENTS`.
/// Starts the server if needed.
pub(super) async fn expand_prompt_call(
    servers: &Servers,
    text: &str,
) -> Result<String, PromptError> {
    let called = text.trim_start_matches('/');
    let (name, given) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    let (server, prompt) =
        split_tool_name(name).map_err(|error| PromptError::Name(error.to_string()))?;
    fetch_prompt(servers, server, prompt, name, given)
        .await
        .map_err(|error| PromptError::Prompt {
            name: name.to_owned(),
            reason: error.to_string(),
        })
}

async fn fetch_prompt(
    servers: &Servers,
    server: &str,
    prompt: &str,
    name: &str,
    given: &str,
) -> Result<String, ExpandError> {
    let cancel = CancellationToken::new();
    let listing = servers.current_listing(server, &cancel).await?;
    let Some(found) = listing
        .prompts
        .iter()
        .find(|one| to_command_name(&one.name) == prompt)
    else {
        let names: Vec<_> = listing
            .prompts
            .iter()
            .map(|one| format!("/{}", to_offered_prompt(server, one).name))
            .collect();
        let server = server.to_owned();
        return Err(if names.is_empty() {
            ExpandError::NoPrompts { server }
        } else {
            let known = names.join(", ");
            ExpandError::UnknownPrompt { server, known }
        });
    };
    let arguments = fill_arguments(&found.arguments, given).map_err(|argument| {
        ExpandError::MissingArgument {
            argument,
            name: name.to_owned(),
            hint: to_offered_prompt(server, found).argument_hint(),
        }
    })?;
    let answer = servers
        .fill_prompt(server, &found.name, arguments, &cancel)
        .await?;
    let text = answer.joined_text();
    if text.trim().is_empty() {
        return Err(ExpandError::Empty);
    }
    Ok(haft_text::sanitize(&text).into_owned())
}

/// Assigns the words of `given` to the arguments in order; the last argument gets all remaining
/// words. The error is the name of the first missing required argument.
fn fill_arguments(wanted: &[PromptArgument], given: &str) -> Result<Map<String, Value>, String> {
    let mut words = split_words(given.trim());
    if let Some(last) = wanted.len().checked_sub(1)
        && words.len() > wanted.len()
    {
        let rest = words.split_off(last);
        words.push(rest.join(" "));
    }
    let mut filled = Map::new();
    let mut words = words.into_iter();
    for argument in wanted {
        match words.next() {
            Some(word) => {
                filled.insert(argument.name.clone(), word.into());
            }
            None if argument.required => return Err(argument.name.clone()),
            None => {}
        }
    }
    Ok(filled)
}

/// Converts a prompt's name to the name of a command, by replacing the characters that a command's
/// name cannot contain.
fn to_command_name(name: &str) -> String {
    name.chars()
        .map(|one| {
            if NameRule::Command.allows_char(one) {
                one
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(names: &[(&str, bool)]) -> Vec<PromptArgument> {
        let one = |(name, required): &(&str, bool)| PromptArgument {
            name: (*name).to_owned(),
            description: String::new(),
            required: *required,
        };
        names.iter().map(one).collect()
    }

    #[test]
    fn fill_arguments_takes_words_in_order_and_the_rest_for_the_last() {
        let two = wanted(&[("a", true), ("b", false)]);
        for (given, filled) in [
            ("x", json!({"a": "x"})),
            ("'x y' z", json!({"a": "x y", "b": "z"})),
            ("x y z", json!({"a": "x", "b": "y z"})),
        ] {
            assert_eq!(
                fill_arguments(&two, given).map(Value::Object),
                Ok(filled),
                "{given}"
            );
        }
        assert_eq!(fill_arguments(&two, " "), Err("a".to_owned()));
        assert_eq!(fill_arguments(&[], "x y"), Ok(Map::new()));
    }
}
