//! Prompts of servers as commands: `/mcp__server__prompt ARGUMENTS`.

use haft_mcp::{PromptArgument, PromptInfo, Servers};
use haft_project::commands::words;
use haft_text::NameRule;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Mcp, PREFIX, named_tool};
use crate::exit::usage_error;
use crate::wiring::OfferedPrompt;

/// A prompt of a server, as a command.
fn offered(server: &str, prompt: &PromptInfo) -> OfferedPrompt {
    let hint = |argument: &PromptArgument| {
        let name = &argument.name;
        if argument.required {
            format!("<{name}>")
        } else {
            format!("[{name}]")
        }
    };
    OfferedPrompt {
        name: format!("{PREFIX}{server}__{}", plain(&prompt.name)),
        server: server.to_owned(),
        description: prompt.description.clone(),
        argument_hint: prompt
            .arguments
            .iter()
            .map(hint)
            .collect::<Vec<_>>()
            .join(" "),
        about: about(server, &prompt.arguments),
    }
}

/// What it takes, a line for each argument.
fn about(server: &str, arguments: &[PromptArgument]) -> String {
    let line = |argument: &PromptArgument| {
        let needed = if argument.required {
            text!("mcp-prompt-needed")
        } else {
            text!("mcp-prompt-optional")
        };
        format!("{} ({needed}): {}", argument.name, argument.description)
    };
    let lines: Vec<_> = arguments.iter().map(line).collect();
    let takes = if lines.is_empty() {
        text!("mcp-prompt-no-arguments").to_owned()
    } else {
        lines.join("\n")
    };
    text!("mcp-prompt-about", server, takes)
}

/// The prompts of all servers, as far as they are known; nothing is started.
pub(super) fn known(servers: &Servers) -> Vec<OfferedPrompt> {
    let of = |name: &str| {
        let listing = servers.known(name).unwrap_or_default();
        listing
            .prompts
            .iter()
            .map(|prompt| offered(name, prompt))
            .collect::<Vec<_>>()
    };
    servers.iter().flat_map(|server| of(&server.name)).collect()
}

/// What the server says for a command such as `/mcp__server__prompt ARGUMENTS`. The server is
/// started.
pub(super) async fn expand(mcp: &Mcp, called: &str) -> anyhow::Result<String> {
    let called = called.trim_start_matches('/');
    let (name, given) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    let (server, prompt) = named_tool(name)?;
    let failed =
        |error: &dyn std::fmt::Display| usage_error(text!("mcp-prompt-failed", name, error));
    let cancel = CancellationToken::new();
    let listing = mcp
        .servers
        .listing(server, &cancel)
        .await
        .map_err(|error| failed(&error))?;
    let Some(found) = listing
        .prompts
        .iter()
        .find(|one| plain(&one.name) == prompt)
    else {
        let names: Vec<_> = listing
            .prompts
            .iter()
            .map(|one| format!("/{}", offered(server, one).name))
            .collect();
        let there = if names.is_empty() {
            text!("mcp-prompt-none").to_owned()
        } else {
            text!("mcp-prompt-has", names = crate::output::listed(&names))
        };
        return Err(failed(&text!("mcp-prompt-unknown", server, there)));
    };
    let arguments = arguments(&found.arguments, given).map_err(|missing| {
        let hint = offered(server, found).argument_hint;
        failed(&text!("mcp-prompt-missing", missing, name, hint))
    })?;
    let answer = mcp
        .servers
        .prompt(server, &found.name, arguments, &cancel)
        .await
        .map_err(|error| failed(&error))?;
    let text = answer.text();
    if text.trim().is_empty() {
        return Err(failed(&text!("mcp-prompt-empty")));
    }
    Ok(haft_text::sanitise(&text).into_owned())
}

/// The words that were given, by the names of the arguments. The last one takes all that is left.
/// The error is the first one that is missing.
fn arguments(wanted: &[PromptArgument], given: &str) -> Result<Map<String, Value>, String> {
    let mut words = words(given.trim());
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

/// A name as it can stand in a command.
fn plain(name: &str) -> String {
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
    fn words_go_to_arguments_in_order_and_the_rest_to_the_last() {
        let two = wanted(&[("a", true), ("b", false)]);
        for (given, filled) in [
            ("x", json!({"a": "x"})),
            ("'x y' z", json!({"a": "x y", "b": "z"})),
            ("x y z", json!({"a": "x", "b": "y z"})),
        ] {
            assert_eq!(
                arguments(&two, given).map(Value::Object),
                Ok(filled),
                "{given}"
            );
        }
        assert_eq!(arguments(&two, " "), Err("a".to_owned()));
        assert_eq!(arguments(&[], "x y"), Ok(Map::new()));
    }
}
