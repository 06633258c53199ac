//! Parses the `.mcp.json` of a project, a format shared with other agents. Unknown keys are
//! ignored.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::config::{ServerConfig, ServerSandbox};
use crate::expand::{UnsetVariable, expand_variables};

/// A parsed server entry, or an error: the invalid key of the entry, and the reason.
pub(crate) type Entry = Result<ServerConfig, (String, String)>;

/// Server entries with the names of the servers, in file order.
pub(crate) type NamedEntries = Vec<(String, Entry)>;

#[derive(Deserialize)]
struct EntryFields {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
    sandbox: Option<ServerSandbox>,
}

/// Parses the entries of a file, in file order. Each entry has its own result; the outer error
/// concerns the whole file.
pub(crate) fn parse_entries(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, Entry)>, (String, String)> {
    let whole: Value = serde_json::from_str(text)
        .map_err(|error| (String::new(), format!("it is not JSON: {error}")))?;
    let servers = match whole.get("mcpServers") {
        Some(Value::Object(servers)) => servers.clone(),
        Some(_) => {
            return Err((
                "mcpServers".into(),
                "it must be an object of servers".into(),
            ));
        }
        None => Map::new(),
    };
    Ok(servers
        .into_iter()
        .map(|(name, entry)| (name, parse_entry(entry, variable)))
        .collect())
}

/// Like [`parse_entries`], but for JSON from the command line. Also returns the names of servers of
/// the type `sdk`, to which the session's client connects.
pub(crate) fn parse_given_entries(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(NamedEntries, Vec<String>), (String, String)> {
    let whole: Value = serde_json::from_str(text).unwrap_or_default();
    let (linked, ours): (Vec<_>, Vec<_>) = parse_entries(text, variable)?
        .into_iter()
        .partition(|(name, _)| whole["mcpServers"][name]["type"] == "sdk");
    Ok((ours, linked.into_iter().map(|(name, _)| name).collect()))
}

fn parse_entry(entry: Value, variable: &dyn Fn(&str) -> Option<String>) -> Entry {
    let fields: EntryFields =
        serde_json::from_value(entry).map_err(|error| (String::new(), error.to_string()))?;
    match fields.kind.as_deref() {
        None | Some("stdio" | "http" | "streamable-http" | "streamableHttp") => {}
        Some("sse") => {
            let reason =
                "the transport `sse` is not spoken any more; ask the server for its `http` address";
            return Err(("type".into(), reason.into()));
        }
        Some(other) => return Err(("type".into(), format!("`{other}` is not `stdio` or `http`"))),
    }
    let expand_value = |key: &str, text: String| {
        expand_variables(&text, variable).map_err(|UnsetVariable(name)| {
            (
                key.to_owned(),
                format!(
                    "the variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
                ),
            )
        })
    };
    let optional =
        |key: &str, text: Option<String>| text.map(|text| expand_value(key, text)).transpose();
    let expand_map = |key: &str, map: BTreeMap<String, String>| {
        let entries = map.into_iter().map(|(name, value)| {
            let value = expand_value(&format!("{key}.{name}"), value)?;
            Ok((name, value))
        });
        entries.collect::<Result<BTreeMap<_, _>, (String, String)>>()
    };
    Ok(ServerConfig {
        command: optional("command", fields.command)?,
        args: fields
            .args
            .into_iter()
            .map(|arg| expand_value("args", arg))
            .collect::<Result<_, _>>()?,
        env: expand_map("env", fields.env)?,
        cwd: optional("cwd", fields.cwd)?,
        url: optional("url", fields.url)?,
        headers: expand_map("headers", fields.headers)?,
        enabled: !fields.disabled,
        sandbox: fields.sandbox,
        ..ServerConfig::default()
    })
}
