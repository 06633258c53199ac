//! `haft mcp add` and `haft mcp remove`: change config.toml, and keep its comments and order.

use std::path::Path;

use haft_agent::config;
use haft_text::NameRule;
use tokio_util::sync::CancellationToken;
use toml_edit::{Array, InlineTable, Item, Table, Value, value};

use super::live_test;
use crate::cli::options::Common;
use crate::commands::config::file as config_file;
use crate::commands::context;
use crate::commands::mcp::{McpAddArgs, McpTransport};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::{output, wiring};

const SECTION: &str = "mcp_servers";

pub(super) fn run(haft: &Haft, args: &McpAddArgs) -> anyhow::Result<ProcessExit> {
    let file = haft.places()?.config_file();
    print_price(haft, &args.common)?;
    config::edit_file(&file, |before| insert_declaration(&file, before, args))?;
    output::print_text_line(&text!(
        "mcp-declared",
        name = args.name,
        file = file.display()
    ))?;
    if !args.no_test {
        // The server stays declared even if the test fails.
        let (mcp, _) = super::load_servers(haft, &args.common, None)?;
        let server = super::find_server(&mcp, &args.name)?;
        let answer = wiring::build_runtime()?.block_on(async {
            let answer = mcp
                .servers
                .refetch_listing(&args.name, &CancellationToken::new())
                .await;
            mcp.servers.close().await;
            answer
        });
        output::print_text(&live_test::test_to_text(server, &answer))?;
        if answer.is_err() {
            return Ok(ProcessExit::Failed);
        }
    }
    Ok(ProcessExit::Completed)
}

pub(super) fn remove_server(haft: &Haft, name: &str) -> anyhow::Result<ProcessExit> {
    let file = haft.places()?.config_file();
    config::edit_file(&file, |before| remove_declaration(&file, before, name))?;
    output::print_text_line(&text!("mcp-removed", name, file = file.display()))?;
    Ok(ProcessExit::Completed)
}

/// Prints the cost of a tool change for the current conversation, before the change is made.
fn print_price(haft: &Haft, common: &Common) -> anyhow::Result<()> {
    if let Some(message) =
        wiring::build_runtime()?.block_on(context::quote_tool_change(haft, common))
    {
        output::print_to_stderr(&format!("haft: {message}"));
    }
    Ok(())
}

/// Returns the text of the file with the server added. Everything else stays unchanged.
fn insert_declaration(file: &Path, before: &str, args: &McpAddArgs) -> anyhow::Result<String> {
    if !NameRule::Server.allows(&args.name) {
        return Err(usage_error(text!("mcp-bad-name", name = args.name)));
    }
    let server = build_server_table(args)?;
    let mut document = config_file::parse_valid_config(file, before)?;
    let inline = || {
        usage_error(text!(
            "mcp-not-a-table",
            section = SECTION,
            file = file.display()
        ))
    };
    let servers = config_file::get_or_insert_section(&mut document, SECTION).ok_or_else(inline)?;
    if servers.contains_key(&args.name) {
        return Err(usage_error(text!(
            "mcp-already-declared",
            name = args.name,
            file = file.display()
        )));
    }
    servers.insert(&args.name, Item::Table(server));
    let after = document.to_string();
    wiring::check_config(file, &after)?;
    Ok(after)
}

fn remove_declaration(file: &Path, before: &str, name: &str) -> anyhow::Result<String> {
    let missing = || usage_error(text!("mcp-not-declared", file = file.display(), name));
    config_file::remove_entry(file, before, SECTION, name)?.ok_or_else(missing)
}

fn build_server_table(args: &McpAddArgs) -> anyhow::Result<Table> {
    let is_address = |text: &str| text.starts_with("http://") || text.starts_with("https://");
    // Some users write `add --transport http NAME URL`.
    let (url, command) = match (&args.url, args.command.as_slice()) {
        (None, [one]) if is_address(one) && args.transport != Some(McpTransport::Stdio) => {
            (Some(one.clone()), &[][..])
        }
        (url, command) => (url.clone(), command),
    };
    let mut table = Table::new();
    match (url, command) {
        (Some(url), []) if args.transport != Some(McpTransport::Stdio) => {
            if !is_address(&url) {
                return Err(usage_error(text!("mcp-bad-url", url)));
            }
            reject_flag("--env", !args.env.is_empty(), "a program")?;
            reject_flag("--folder", args.folder.is_some(), "a program")?;
            table.insert("url", value(url));
            insert_pairs(&mut table, "headers", &args.header, ':')?;
            if let Some(name) = &args.bearer_token_env {
                table.insert("bearer_token_env", value(name));
            }
        }
        (None, [program, arguments @ ..]) if args.transport != Some(McpTransport::Http) => {
            reject_flag("--header", !args.header.is_empty(), text!("mcp-for-url"))?;
            reject_flag(
                "--bearer-token-env",
                args.bearer_token_env.is_some(),
                text!("mcp-for-url"),
            )?;
            table.insert("command", value(program));
            if !arguments.is_empty() {
                table.insert("args", value(arguments.iter().collect::<Array>()));
            }
            insert_pairs(&mut table, "env", &args.env, '=')?;
            if let Some(folder) = &args.folder {
                table.insert("cwd", value(folder));
            }
        }
        _ => {
            let message = text!("mcp-program-or-url");
            return Err(usage_error(message));
        }
    }
    if let Some(seconds) = args.timeout {
        table.insert("timeout", value(i64::from(seconds)));
    }
    if let Some(decision) = args.permission {
        table.insert("permission", value(decision.name()));
    }
    Ok(table)
}

fn reject_flag(flag: &str, given: bool, of: &str) -> anyhow::Result<()> {
    if given {
        Err(usage_error(text!("mcp-flag-is-for", flag, of)))
    } else {
        Ok(())
    }
}

fn insert_pairs(
    table: &mut Table,
    key: &str,
    given: &[String],
    between: char,
) -> anyhow::Result<()> {
    let mut all = InlineTable::new();
    for pair in given {
        let (name, text) = pair
            .split_once(between)
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| usage_error(text!("mcp-bad-pair", pair, between)))?;
        all.insert(
            name.trim(),
            Value::from(if between == ':' { text.trim() } else { text }),
        );
    }
    if !all.is_empty() {
        table.insert(key, value(all));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, CliCommand};
    use crate::commands::mcp::McpCommand;

    fn add(before: &str, line: &[&str]) -> Result<String, String> {
        let message = ["haft", "mcp", "add"]
            .into_iter()
            .chain(line.iter().copied());
        let cli = Cli::try_parse_from(message).map_err(|error| error.to_string())?;
        let Some(CliCommand::Mcp(mcp)) = cli.command else {
            panic!("{cli:?}")
        };
        let Some(McpCommand::Add(args)) = mcp.command else {
            panic!("{mcp:?}")
        };
        insert_declaration(Path::new("config.toml"), before, &args)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn add_writes_programs_and_services() {
        let before = "# mine\nmodel = \"a/b\" # for now\n";
        let program = "\n[mcp_servers.git]\ncommand = \"npx\"\nargs = [\"-y\", \"server\", \"--root\", \".\"]\nenv = { KEY = \"a=b\" }\n";
        let after = add(
            before,
            &[
                "git", "-e", "KEY=a=b", "--", "npx", "-y", "server", "--root", ".",
            ],
        )
        .unwrap();
        assert_eq!(after, format!("{before}{program}"));
        let url = "[mcp_servers.docs]\nurl = \"https://h/mcp\"\n";
        for line in [
            &["docs", "--url", "https://h/mcp"][..],
            &["--transport", "http", "docs", "https://h/mcp"],
            &["docs", "https://h/mcp"],
        ] {
            assert_eq!(add("", line).unwrap(), url, "{line:?}");
        }
        let header = add(
            "",
            &[
                "d",
                "--url",
                "http://h",
                "-H",
                "X-A: b:c",
                "--permission",
                "allow",
            ],
        )
        .unwrap();
        assert!(
            header.contains("headers = { X-A = \"b:c\" }\npermission = \"allow\"\n"),
            "{header}"
        );
    }

    #[test]
    fn add_rejects_invalid_arguments() {
        for (line, message) in [
            (&["a"][..], "give either a program"),
            (
                &["a", "--url", "http://h", "--", "run"],
                "give either a program",
            ),
            (&["a", "--url", "h"], "not an address"),
            (&["a b", "--", "run"], "cannot be the name"),
            (&["a__b", "--", "run"], "cannot be the name"),
            (
                &["a", "-e", "KEY", "--", "run"],
                "`KEY` is not a name and a value",
            ),
            (
                &["a", "-H", "X: y", "--", "run"],
                "`--header` is for a service",
            ),
            (
                &["a", "--url", "http://h", "-e", "K=v"],
                "`--env` is for a program",
            ),
            (
                &["a", "--permission", "maybe", "--", "run"],
                "expected allow, ask or deny",
            ),
        ] {
            let error = add("", line).unwrap_err();
            assert!(error.contains(message), "{line:?}: {error}");
        }
        let once = add("", &["a", "--", "run"]).unwrap();
        assert!(
            add(&once, &["a", "--", "run"])
                .unwrap_err()
                .contains("haft mcp remove a")
        );
    }

    #[test]
    fn remove_declaration_leaves_the_rest_unchanged() {
        let file = Path::new("config.toml");
        let before = "[mcp_servers.a]\ncommand = \"x\" # first\n\n[mcp_servers.b]\ncommand = \"y\" # second\n";
        assert_eq!(
            remove_declaration(file, before, "a").unwrap(),
            "\n[mcp_servers.b]\ncommand = \"y\" # second\n"
        );
        assert!(
            remove_declaration(file, before, "c")
                .unwrap_err()
                .to_string()
                .contains("declares no MCP server `c`")
        );
    }
}
