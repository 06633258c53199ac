//! Validates tool calls before anything runs: the reply was complete, the tool exists, its
//! arguments are strict JSON, and the tool accepts them. An invalid call gets an error result;
//! nothing is repaired or guessed. Permission is decided later, when the call is about to run
//! ([`permit`](crate::calls::permit)).

use std::path::Path;
use std::sync::Arc;

use haft_tool::{Registry, ResolvedTool, Tool};
use haft_types::{Envelope, ModelProfile, StopReason, ToolCall, ToolSpec};
use serde_json::Value;

use super::one_call::Audience;
use super::{one_call, strict_json};
use crate::names;
use crate::session::secrets;
use crate::turn::ToolsDone;

/// A call with a known tool and valid arguments, whose permission is decided later.
pub(crate) struct AdmittedCall {
    pub(crate) call: ToolCall,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) arguments: Value,
}

/// A call that is not run, with the error result that the model receives.
pub(crate) struct RefusedCall {
    pub(crate) call: ToolCall,
    pub(crate) envelope: Envelope,
    /// True if permission was denied and the user could have granted it.
    pub(crate) denied: bool,
}

/// Properties of a reply that affect the check of one of its calls.
struct ReplyFacts<'a> {
    /// The reason why the model stopped.
    stop: &'a StopReason,
    /// True if the checked call is the last call of the reply.
    last: bool,
}

/// Checks every call of a reply. `stop` is the reason why the model stopped writing the reply.
pub(crate) fn check_calls(
    calls: Vec<ToolCall>,
    stop: &StopReason,
    audience: Audience<'_>,
) -> Vec<Result<AdmittedCall, Box<RefusedCall>>> {
    let count = calls.len();
    calls
        .into_iter()
        .enumerate()
        .map(|(index, call)| {
            let facts = ReplyFacts {
                stop,
                last: index + 1 == count,
            };
            check_call(call, &facts, audience)
        })
        .collect()
}

fn check_call(
    call: ToolCall,
    reply: &ReplyFacts<'_>,
    audience: Audience<'_>,
) -> Result<AdmittedCall, Box<RefusedCall>> {
    let refuse = |call, envelope| {
        Err(Box::new(RefusedCall {
            call,
            envelope,
            denied: false,
        }))
    };
    if *reply.stop == StopReason::Length && reply.last {
        let message = "The reply was cut off by the output limit in the middle of this call, so it did not run. Make it again, in smaller pieces.";
        return refuse(call, Envelope::failure("cut", message));
    }
    let Some(ResolvedTool { tool, alias }) = audience.registry.resolve(&call.name) else {
        if let Some(envelope) = fork_refusal(&call.name, audience) {
            return refuse(call, envelope);
        }
        let message = unknown_tool_message(&call.name, audience);
        return refuse(call, Envelope::failure("unknown_tool", message));
    };
    if haft_model::is_unclosed_call(&call) {
        let message = format!(
            "`{}` did not run: the reply ended before the call was closed. Make the whole call again.",
            call.name
        );
        return refuse(call, Envelope::failure("not_closed", message));
    }
    if let Some(envelope) = masked_secret_error(tool.as_ref(), &call.name, &call.arguments) {
        return refuse(call, envelope);
    }
    let arguments = match strict_json::parse_object(&call.arguments) {
        Ok(Value::Object(arguments)) => {
            let translated = Value::Object(match alias {
                Some(alias) => (alias.translate)(arguments),
                None => arguments,
            });
            tool.gateway()
                .and_then(|gateway| gateway.stand_in_arguments(&call.name, &translated))
                .unwrap_or(translated)
        }
        Ok(arguments) => arguments,
        Err(why) => {
            let message = format!(
                "`{}` did not run: {why}. Send one JSON object that fits the tool's schema; line ends in it are \\n, quotes \\\".",
                call.name
            );
            return refuse(call, Envelope::failure("invalid_arguments", message));
        }
    };
    if let Some(envelope) = narrowing_error(tool.as_ref(), &arguments) {
        return refuse(call, envelope);
    }
    // The order of a small model's calls means nothing: the turn ends only if all of them succeed.
    let ends_early = !reply.last && audience.profile == ModelProfile::Full;
    if call.name == names::COMPLETE_TOOL && ends_early {
        return refuse(call, premature_completion_error());
    }
    if audience.profile == ModelProfile::Small
        && let Some(envelope) = diff_as_content_error(&tool.spec().name, &arguments)
    {
        return refuse(call, envelope);
    }
    Ok(AdmittedCall {
        tool: Arc::clone(tool),
        call,
        arguments,
    })
}

/// Returns an error if a call would write a diff into a file, as results show one. A diff is
/// recognized by the heading of a hunk and the first characters of the lines after it.
fn diff_as_content_error(tool: &str, arguments: &Value) -> Option<Envelope> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let content = match tool {
        names::WRITE_TOOL => text("content")?,
        "edit_file" => text("new_text")?,
        _ => return None,
    };
    let path = text("path").unwrap_or_default();
    let mut hunk = content
        .lines()
        .skip_while(|line| {
            line.strip_prefix("@@ -")
                .is_none_or(|rest| !rest.contains(" @@"))
        })
        .peekable();
    let is_diff = hunk.peek().is_some()
        && hunk.all(|line| line.is_empty() || line.starts_with([' ', '+', '-', '@', '\\']));
    let is_patch_file = Path::new(path)
        .extension()
        .is_some_and(|ending| ending == "diff" || ending == "patch");
    if !is_diff || is_patch_file {
        return None;
    }
    let message = format!(
        "`{tool}` did not run: this text is a diff, not the content of `{path}`. Send the lines as they should be in the file, without `@@` and without `+` and `-` before them."
    );
    Some(Envelope::failure("diff_as_content", message))
}

/// Returns an error if `call` reports the task as done although an earlier call of the reply
/// failed.
pub(crate) fn completion_objection(call: &ToolCall, before: &ToolsDone) -> Option<Envelope> {
    (call.name == names::COMPLETE_TOOL && before.any_failed).then(premature_completion_error)
}

fn premature_completion_error() -> Envelope {
    let message = format!(
        "`{}` did not run: it must be the last call of a reply, and the calls before it must succeed. Look at their results first, then call it alone.",
        names::COMPLETE_TOOL
    );
    Envelope::failure("not_alone", message)
}

/// Checks arguments that a hook or the user wrote in place of the model's arguments. Returns an
/// error if they contain a masked secret or exceed the limits of a narrowed tool.
pub(crate) fn check_replaced_arguments(
    tool: &dyn Tool,
    name: &str,
    arguments: &Value,
) -> Option<Envelope> {
    masked_secret_error(tool, name, &arguments.to_string())
        .or_else(|| narrowing_error(tool, arguments))
}

/// Returns the error result of a call outside the limits of a narrowed tool.
fn narrowing_error(tool: &dyn Tool, arguments: &Value) -> Option<Envelope> {
    tool.gateway()?.refusal(arguments)
}

fn masked_secret_error(tool: &dyn Tool, name: &str, arguments: &str) -> Option<Envelope> {
    let message = format!(
        "`{name}` did not run: its arguments hold `[masked: …]`, which stands for a secret that is kept out of this conversation. Writing it would destroy the secret. Change only what is around it, or use a variable or a file that holds it."
    );
    let holds = one_call::has_effects(tool.access()) && secrets::contains_mask(arguments);
    holds.then(|| Envelope::failure("masked", message))
}

/// The maximum number of tools listed in the error for an unknown tool. MCP servers may offer
/// hundreds.
const MAX_LISTED_TOOLS: usize = 20;

/// Returns the name of a tool and its required arguments, such as `` `read_file` (path) ``.
pub(super) fn describe_required_arguments(tool: &Arc<dyn Tool>) -> String {
    let ToolSpec {
        name, parameters, ..
    } = tool.spec();
    let required: Vec<_> = parameters["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    format!("`{name}` ({})", required.join(", "))
}

/// Returns the error result of a fork's call of a tool that the model reads about but may not call.
fn fork_refusal(name: &str, audience: Audience<'_>) -> Option<Envelope> {
    audience.copied?.resolve(name)?;
    let message = format!(
        "`{name}` did not run: {}",
        describe_fork_tools(audience.registry)
    );
    Some(Envelope::failure("outside_tools", message))
}

/// Lists the tools that a fork may call, each with its required arguments.
pub(crate) fn describe_fork_tools(registry: &Registry) -> String {
    let tools: Vec<_> = registry
        .offered_tools()
        .chain(registry.deferred_tools())
        .map(describe_required_arguments)
        .collect();
    if tools.is_empty() {
        "You may call no tools.".to_owned()
    } else {
        format!("You may call only these tools: {}.", tools.join(", "))
    }
}

/// Describes the alternatives to an unknown tool: the tools with a similar name, or else all
/// offered tools, each with its required arguments.
fn unknown_tool_message(name: &str, audience: Audience<'_>) -> String {
    let registry = audience.registry;
    if let Some((name, need)) = haft_tool::find_tool_requirement(name) {
        return format!(
            "The tool `{name}` is not available here; it needs {need}. Go on without it."
        );
    }
    if audience.profile == ModelProfile::Small {
        // The guidance for small models follows.
        return format!("There is no tool `{name}`.");
    }
    let mut near: Vec<_> = registry
        .offered_tools()
        .chain(registry.deferred_tools())
        .map(|tool| (strsim::jaro_winkler(name, &tool.spec().name), tool))
        .filter(|(similarity, _)| *similarity > 0.7)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<_> = near
        .iter()
        .take(3)
        .map(|(_, tool)| describe_required_arguments(tool))
        .collect();
    match near.join(" or ").as_str() {
        "" => {
            let all: Vec<_> = registry
                .offered_tools()
                .take(MAX_LISTED_TOOLS)
                .map(describe_required_arguments)
                .collect();
            format!(
                "There is no tool `{name}`. Do it with one of these: {}.",
                all.join(", ")
            )
        }
        near => format!("There is no tool `{name}`. Did you mean {near}?"),
    }
}

#[cfg(test)]
mod tests;
