//! MCP servers, and the hooks and tool selections that restrict them.

use haft_testkit::Reply;
use haft_testkit::support::{McpServer, Revision, SHELL_MCP_SERVER};
use serde_json::{Value, json};

use super::{append_config, pre_tool_call_hook, results, rig, run_in_mode, write_project_config};
use crate::sandbox::has_namespaces;

/// A hook that was written for another agent restricts a server's tools under that agent's names
/// for them.
#[test]
fn hook_on_a_server_matches_every_spelling_of_its_tools() {
    let direct = || Reply::call("mcp__s__show", json!({}));
    let wrapped = || {
        Reply::call(
            "use_mcp_tool",
            json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
        )
    };
    for matcher in ["mcp__s__.*", "mcp__s__show", "use_mcp_tool", "mcp__.*"] {
        let server = McpServer::start(Revision::Current).unwrap();
        let rig = rig([direct(), wrapped(), Reply::text("Done.")]);
        append_config(
            &rig,
            &format!(
                "[permissions]\nallow = [\"mcp__s\"]\n[mcp_servers.s]\nurl = \"{}\"\n",
                server.url()
            ),
        );
        append_config(
            &rig,
            &pre_tool_call_hook(matcher, "echo 'not this one' >&2; exit 2"),
        );
        let ran = run_in_mode(&rig, "auto");
        let texts: Vec<_> = results(&ran)
            .iter()
            .map(|result| result["text"].to_string())
            .collect();
        assert!(
            texts.len() == 2 && texts.iter().all(|text| text.contains("not this one")),
            "{matcher}: {texts:?}"
        );
        assert!(
            server
                .received_messages()
                .iter()
                .all(|message| message["method"] != "tools/call"),
            "{matcher}"
        );
    }
}

fn offered_tools(rig: &crate::rig::Rig) -> Vec<String> {
    let seen = rig.server.generation_requests()[0].decode().unwrap();
    seen.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The project's offer also limits the tools of extensions and servers.
#[test]
fn project_offer_limits_tools_of_extensions_and_servers() {
    let server = McpServer::start(Revision::Current).unwrap();
    for (offer, user, wanted, unwanted) in [
        (
            "[\"read_file\", \"web_crawl\"]",
            "*",
            vec!["read_file", "web_crawl"],
            vec!["use_mcp_tool", "execute_command"],
        ),
        (
            "[\"read_file\", \"use_mcp_tool\"]",
            "*",
            vec!["read_file", "use_mcp_tool"],
            vec!["web_crawl", "write_to_file"],
        ),
        (
            "[\"read_file\", \"mcp__s__echo\"]",
            "*",
            vec!["read_file", "use_mcp_tool"],
            vec!["web_crawl"],
        ),
        (
            "[\"*\"]",
            "read_file,web_crawl",
            vec!["read_file", "web_crawl"],
            vec!["use_mcp_tool", "list_files"],
        ),
        (
            "[\"*\"]",
            "",
            vec!["read_file", "use_mcp_tool", "execute_command"],
            vec![],
        ),
        (
            "[\"nothing_known\"]",
            "*",
            vec![],
            vec!["read_file", "use_mcp_tool", "web_crawl"],
        ),
        (
            "[\"web_crawl\"]",
            "read_file",
            vec![],
            vec!["read_file", "web_crawl"],
        ),
    ] {
        let rig = rig([Reply::text("Done.")]);
        append_config(
            &rig,
            &format!(
                "[web]\ncrawl = true\n[mcp_servers.s]\nurl = \"{}\"\n",
                server.url()
            ),
        );
        write_project_config(&rig, &format!("[tools]\noffer = {offer}\n"));
        let mut arguments = vec!["go"];
        if !user.is_empty() {
            arguments.splice(0..0, ["--allowed-tools", user]);
        }
        let ran = rig.task(&arguments);
        assert_eq!(ran.code(), 0, "{offer} {user}: {}", ran.stderr());
        let names = offered_tools(&rig);
        assert!(
            wanted
                .iter()
                .all(|name| names.contains(&(*name).to_owned())),
            "{offer} {user}: {names:?}"
        );
        assert!(
            unwanted
                .iter()
                .all(|name| !names.contains(&(*name).to_owned())),
            "{offer} {user}: {names:?}"
        );
    }
}

#[test]
fn project_offer_of_one_server_tool_blocks_the_others() {
    let server = McpServer::start(Revision::Current).unwrap();
    let call = Reply::call(
        "use_mcp_tool",
        json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
    );
    let rig = rig([call, Reply::text("Done.")]);
    append_config(
        &rig,
        &format!("[mcp_servers.s]\nurl = \"{}\"\n", server.url()),
    );
    write_project_config(&rig, "[tools]\noffer = [\"read_file\", \"mcp__s__echo\"]\n");
    let ran = rig.task(&["go"]);
    assert_eq!(results(&ran)[0]["status"], "error", "{}", ran.stdout());
    let called = |message: &Value| message["method"] == "tools/call";
    assert!(
        !server.received_messages().iter().any(called),
        "{}",
        ran.stdout()
    );
}

/// The failure of a server is not reported as a message of a hook.
#[test]
fn server_refusal_is_not_reported_as_a_hook() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "server.sh"})),
        Reply::call(
            "write_to_file",
            json!({"path": "server.sh", "content": "touch owned"}),
        ),
        Reply::call(
            "use_mcp_tool",
            json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
        ),
        Reply::text("Done."),
    ]);
    if !has_namespaces(&rig) {
        return;
    }
    rig.write(
        ".mcp.json",
        json!({"mcpServers": {"s": {"command": "/bin/sh", "args": ["server.sh"]}}}).to_string(),
    );
    rig.write("server.sh", SHELL_MCP_SERVER);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    append_config(
        &rig,
        "[permissions]\nallow = [\"mcp__s\", \"write_to_file\"]\n",
    );
    let ran = run_in_mode(&rig, "auto");
    let told: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "error")
        .collect();
    let refused = told.iter().find(|event| {
        event["message"]
            .as_str()
            .unwrap()
            .contains("was not started")
    });
    assert_eq!(
        refused.expect("it is said")["code"],
        "mcp_server",
        "{told:?}"
    );
    assert!(
        told.iter().all(|event| event["code"] != "hook_message"),
        "{told:?}"
    );
    assert!(!rig.project().join("owned").exists());
}
