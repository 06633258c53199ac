//! MCP servers, and the hooks and tool selections that restrict them.

use haft_testkit::Reply;
use haft_testkit::test::{McpServer, Revision, SHELL_MCP_SERVER};
use serde_json::{Value, json};

use super::{add, hook, of_project, results, rig, run_in};
use crate::sandbox::has_namespaces;

/// A hook that was written for another agent restricts a server's tools under that agent's names
/// for them.
#[test]
fn a_hook_that_guards_a_server_is_not_passed_by_another_spelling() {
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
        add(
            &rig,
            &format!(
                "[permissions]\nallow = [\"mcp__s\"]\n[mcp_servers.s]\nurl = \"{}\"\n",
                server.url()
            ),
        );
        add(&rig, &hook(matcher, "echo 'not this one' >&2; exit 2"));
        let ran = run_in(&rig, "auto");
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
                .heard()
                .iter()
                .all(|message| message["method"] != "tools/call"),
            "{matcher}"
        );
    }
}

fn offered(rig: &crate::rig::Rig) -> Vec<String> {
    let seen = rig.server.generations()[0].seen().unwrap();
    seen.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The project's offer also limits the tools of extensions and servers.
#[test]
fn a_project_narrows_tools_of_extensions_and_servers_as_well() {
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
        add(
            &rig,
            &format!(
                "[web]\ncrawl = true\n[mcp_servers.s]\nurl = \"{}\"\n",
                server.url()
            ),
        );
        of_project(&rig, &format!("[tools]\noffer = {offer}\n"));
        let mut arguments = vec!["go"];
        if !user.is_empty() {
            arguments.splice(0..0, ["--allowed-tools", user]);
        }
        let ran = rig.task(&arguments);
        assert_eq!(ran.code(), 0, "{offer} {user}: {}", ran.stderr());
        let names = offered(&rig);
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
fn a_part_of_a_server_that_a_project_offers_is_all_that_can_be_called() {
    let server = McpServer::start(Revision::Current).unwrap();
    let call = Reply::call(
        "use_mcp_tool",
        json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
    );
    let rig = rig([call, Reply::text("Done.")]);
    add(
        &rig,
        &format!("[mcp_servers.s]\nurl = \"{}\"\n", server.url()),
    );
    of_project(&rig, "[tools]\noffer = [\"read_file\", \"mcp__s__echo\"]\n");
    let ran = rig.task(&["go"]);
    assert_eq!(results(&ran)[0]["status"], "error", "{}", ran.stdout());
    let called = |message: &Value| message["method"] == "tools/call";
    assert!(!server.heard().iter().any(called), "{}", ran.stdout());
}

/// The failure of a server is not reported as a message of a hook.
#[test]
fn a_server_that_is_refused_is_reported_as_a_server() {
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
    add(
        &rig,
        "[permissions]\nallow = [\"mcp__s\", \"write_to_file\"]\n",
    );
    let ran = run_in(&rig, "auto");
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
