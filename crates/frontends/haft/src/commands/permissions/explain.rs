//! `haft permissions explain`: shows whether a call would be allowed, and why.

use haft_agent::{assess_confinement, find_knowledge_and_trust, set_up_sandbox};
use haft_permission::{Confinement, PermissionRequest, Verdict};
use haft_types::{PermissionMode, ToolCall};
use serde_json::{Value, json};

use crate::commands::permissions::ExplainArgs;
use crate::commands::tools;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output::{self, TextTable};
use crate::wiring;

pub(super) fn run(haft: &Haft, args: &ExplainArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let project = haft.project(args.cwd.as_deref())?;
    let (_, trust_state) = find_knowledge_and_trust(&settings.places, &project)?;
    #[cfg(feature = "mcp")]
    let servers = haft_mcp::gather_servers(
        &settings.places,
        &settings.config,
        &project.root,
        &trust_state,
    )
    .servers;
    let config = &settings.config.permissions;
    let mode = args.permission_mode.unwrap_or(config.mode);
    let confinement = match mode {
        PermissionMode::Ask | PermissionMode::AcceptEdits | PermissionMode::Auto => {
            let projects = vec![project.root.clone()];
            let found = wiring::build_runtime()?.block_on(set_up_sandbox(
                &settings.places,
                &settings.config.sandbox,
                mode,
                projects,
            ))?;
            assess_confinement(&found)
        }
        // In these modes the sandbox makes no difference.
        PermissionMode::Plan | PermissionMode::Yolo => Confinement::None,
    };
    let permissions = haft_agent::load_permissions(haft.environment(), config, mode, confinement)?;
    let permissions = super::restrict_to_project(permissions, &settings, &project, &trust_state)?;
    #[cfg(feature = "mcp")]
    let permissions =
        haft_agent::add_rules(permissions, haft_mcp::server_permission_rules(&servers));
    let workspace = settings.workspace(&project);
    let meant = args
        .tool
        .as_ref()
        .map(|name| resolve_call(name, args.args.as_deref()));
    let (tool, given) = meant.unzip();
    let verdict = match (&args.command, &tool) {
        (Some(line), _) => permissions.decide(&PermissionRequest::for_command(line), &workspace),
        #[cfg(feature = "mcp")]
        (None, Some(name)) if name.starts_with(haft_mcp::PREFIX) => {
            let (server, tool) =
                haft_mcp::split_tool_name(name).map_err(|error| usage_error(error.to_string()))?;
            if !servers.iter().any(|one| one.name == server) {
                output::print_to_stderr(&format!(
                    "haft: {}",
                    text!("permissions-unknown-server", server)
                ));
            }
            permissions.decide(
                &PermissionRequest::for_server_tool(server, tool),
                &workspace,
            )
        }
        (None, tool) => {
            let name = tool.as_deref().unwrap_or_default();
            let arguments = given
                .flatten()
                .ok_or_else(|| usage_error(text!("permissions-needs-args")))?;
            let registry = tools::build_registry(haft.environment());
            let found = registry
                .resolve(name)
                .ok_or_else(|| usage_error(text!("permissions-unknown-tool", name)))?;
            let arguments: Value = serde_json::from_str(&arguments)
                .map_err(|error| usage_error(text!("permissions-args-not-json", error)))?;
            let Value::Object(arguments) = arguments else {
                return Err(usage_error(text!("permissions-args-not-object")));
            };
            let arguments = match found.alias {
                Some(alias) => (alias.translate)(arguments),
                None => arguments,
            };
            let arguments = Value::Object(arguments);
            if let Some(why) = find_schema_error(&found.tool.spec().parameters, &arguments) {
                return print_invalid_call(args.json, &text!("permissions-bad-args", name, why));
            }
            permissions.decide(
                &PermissionRequest::for_tool(found.tool.as_ref(), &arguments),
                &workspace,
            )
        }
    };
    if args.json {
        return output::print_json(&serde_json::to_value(&verdict)?);
    }
    output::print_text(&verdict_to_text(&verdict))
}

/// Returns the tool that a call runs, and its arguments. A call through `use_tool` is resolved to
/// the tool that it names.
fn resolve_call(name: &str, arguments: Option<&str>) -> (String, Option<String>) {
    let Some(arguments) = arguments else {
        return (name.to_owned(), None);
    };
    let call = ToolCall {
        id: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
    };
    let meant = call.resolve_indirect().into_owned();
    (meant.name, Some(meant.arguments))
}

/// Returns the first violation of a tool's schema in the arguments of a call.
fn find_schema_error(schema: &Value, arguments: &Value) -> Option<String> {
    let validator = jsonschema::validator_for(schema).ok()?;
    let error = validator.iter_errors(arguments).next()?;
    let at = error.instance_path().to_string();
    Some(if at.is_empty() {
        error.to_string()
    } else {
        format!("{error} at `{at}`")
    })
}

/// Prints the result for a call that would fail even if it were permitted.
fn print_invalid_call(as_json: bool, reason: &str) -> anyhow::Result<()> {
    if as_json {
        return output::print_json(
            &json!({ "decision": "invalid", "reason": reason, "rule": null, "parts": [] }),
        );
    }
    output::print_text(&haft_text::reveal_controls(&format!("invalid: {reason}\n")))
}

fn verdict_to_text(verdict: &Verdict) -> String {
    let mut text = text!(
        "permissions-verdict",
        decision = verdict.decision,
        reason = haft_messages::translate_error(&verdict.reason)
    ) + "\n";
    if verdict.parts.len() > 1 {
        let mut table = TextTable::new(&[
            text!("table-decision"),
            text!("table-part"),
            text!("table-rule"),
        ]);
        for part in &verdict.parts {
            let rule = part.rule.clone().unwrap_or_else(|| "(none)".to_owned());
            table.add_row(vec![
                part.decision.to_string(),
                haft_text::reveal_controls(&part.command).into_owned(),
                rule,
            ]);
        }
        text.extend(["\n", &table.to_string()]);
    }
    match verdict.remember.as_slice() {
        [] => {}
        rules => {
            let rules: Vec<_> = rules.iter().map(|rule| quote_for_shell(rule)).collect();
            text.extend([
                "\n",
                text!("permissions-to-allow"),
                " ",
                &rules.join(" "),
                "\n",
            ]);
        }
    }
    haft_text::reveal_controls(&text).into_owned()
}

fn quote_for_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
