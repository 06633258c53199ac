//! MCP tools named by `--allowed-tools`, an agent file or a profile: only these are listed and can
//! be called.

use std::fs;

use haft_testkit::support::{McpServer, Revision};
use haft_testkit::{Reply, Script, Seen, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Ran, Rig};

/// Two servers, `a` and `b`, that offer equal tools, and a model that calls them.
struct TwoServers {
    rig: Rig,
    a: McpServer,
    b: McpServer,
}

impl TwoServers {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
        let a = McpServer::start(Revision::Current).unwrap();
        let b = McpServer::start(Revision::Current).unwrap();
        let file = rig.home().join("config.toml");
        let before = fs::read_to_string(&file).unwrap();
        let servers = format!(
            "[mcp_servers.a]\nurl = \"{}\"\n[mcp_servers.b]\nurl = \"{}\"\n",
            a.url(),
            b.url()
        );
        fs::write(file, format!("{before}{servers}")).unwrap();
        Self { rig, a, b }
    }

    /// Like [`Self::new`], with the tools of both servers already known.
    fn with_known_tools(replies: impl IntoIterator<Item = Reply>) -> Self {
        let two = Self::new(replies);
        assert_eq!(two.rig.run(&["mcp", "test"]).code(), 0);
        two
    }

    fn add_agent(&self, name: &str, head: &str) {
        fs::create_dir_all(self.rig.project().join(".haft/agents")).unwrap();
        let text =
            format!("---\nname: {name}\ndescription: Asks servers\n{head}\n---\nYou are {name}.\n");
        self.rig.write(&format!(".haft/agents/{name}.md"), text);
        assert_eq!(self.rig.run(&["trust"]).code(), 0);
    }

    /// Returns the server list of the first request.
    fn first_server_list(&self) -> String {
        let seen = self.rig.server.generation_requests()[0].decode().unwrap();
        server_list(&seen)
    }
}

fn server_list(request: &Seen) -> String {
    request
        .prompt_section("MCP_SERVER_LIST")
        .expect("the servers are listed")
        .to_owned()
}

/// Returns the tools that a server was asked to run and the resources it was asked to read.
fn received_requests(server: &McpServer) -> Vec<String> {
    let heard = server.received_messages();
    let of = |message: &Value| match message["method"].as_str() {
        Some("tools/call") => Some(message["params"]["name"].as_str()?.to_owned()),
        Some("resources/read") => Some(message["params"]["uri"].as_str()?.to_owned()),
        Some(_) | None => None,
    };
    heard.iter().filter_map(of).collect()
}

fn call(server: &str, tool: &str) -> Reply {
    Reply::call(
        "use_mcp_tool",
        json!({"server_name": server, "tool_name": tool, "arguments": {}}),
    )
}

fn resource_call(server: &str) -> Reply {
    let arguments = json!({"uri": "mem:a"});
    Reply::call(
        "use_mcp_tool",
        json!({"server_name": server, "tool_name": "read_resource", "arguments": arguments}),
    )
}

fn direct_call(server: &str, tool: &str) -> Reply {
    Reply::call(format!("mcp__{server}__{tool}"), json!({}))
}

/// Returns the outcome of each call: `success`, or the code of its error.
fn call_outcomes(ran: &Ran) -> Vec<String> {
    let word = |event: &Value| {
        let error = event["error"]["code"].as_str();
        error
            .or(event["status"].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let events = ran.events();
    events
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .map(word)
        .collect()
}

fn result_texts(ran: &Ran) -> Vec<String> {
    let events = ran.events();
    let results = events.iter().filter(|event| event["type"] == "tool_result");
    results
        .map(|event| event["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Every call that a model may try if only `mcp__a__echo` is allowed.
fn all_attempts() -> Vec<Reply> {
    vec![
        call("a", "echo"),
        call("a", "structured"),
        call("b", "echo"),
        direct_call("a", "picture"),
        direct_call("b", "echo"),
        resource_call("a"),
        direct_call("a", "echo"),
        Reply::text("Done."),
    ]
}

#[track_caller]
fn assert_only_echo(two: &TwoServers, ran: &Ran) {
    let no = "not_offered";
    assert_eq!(
        call_outcomes(ran),
        ["success", no, no, no, no, no, "success"],
        "{}{}",
        ran.stdout(),
        ran.stderr()
    );
    assert_eq!(received_requests(&two.a), ["echo", "echo"]);
    assert_eq!(received_requests(&two.b), [] as [&str; 0]);
    assert!(
        result_texts(ran)[2].contains("`mcp__b__echo`")
            && result_texts(ran)[2].ends_with("only `mcp__a__echo`"),
        "{:?}",
        result_texts(ran)
    );
    let told = two.first_server_list();
    assert!(
        told.contains("## a\n") && told.contains("- `echo`"),
        "{told}"
    );
    for other in ["## b", "`fail`", "`structured`", "`read_resource`", "mem:a"] {
        assert!(!told.contains(other), "{other}: {told}");
    }
}

#[test]
fn allowed_tools_flag_limits_servers_in_every_mode() {
    let allow = "permissions.allow=[\"use_mcp_tool\", \"mcp__a\", \"mcp__b\"]";
    for mode in ["yolo", "ask", "accept-edits", "auto"] {
        let two = TwoServers::with_known_tools(all_attempts());
        let ran = two.rig.run(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            mode,
            "--set",
            allow,
            "--allowed-tools",
            "mcp__a__echo",
            "task",
        ]);
        assert_only_echo(&two, &ran);
    }
}

#[test]
fn agent_file_limits_servers_to_the_named_tool() {
    for tools in [
        "tools: mcp__a__echo",
        "tools: Read, mcp__a__echo",
        "tools:\n  - read_file\n  - mcp__a__echo",
    ] {
        let two = TwoServers::with_known_tools(all_attempts());
        two.add_agent("asker", tools);
        assert_only_echo(&two, &two.rig.task(&["--agent", "asker", "task"]));
    }
}

#[test]
fn profile_limits_servers_to_the_named_tool() {
    let two = TwoServers::with_known_tools(all_attempts());
    let profile = "tools.profiles.mine=[\"read-only\", \"mcp__a__echo\"]";
    assert_only_echo(
        &two,
        &two.rig
            .task(&["--set", profile, "--set", "tools.offer=[\"mine\"]", "task"]),
    );
}

#[test]
fn tool_prefix_allows_matches_and_errors_list_only_these() {
    let two = TwoServers::with_known_tools([
        call("a", "long"),
        call("a", "lost"),
        call("a", "echo"),
        Reply::text("Done."),
    ]);
    let ran = two.rig.task(&["--allowed-tools", "mcp__a__lo*", "task"]);
    assert_eq!(
        call_outcomes(&ran),
        ["success", "unknown_tool", "not_offered"],
        "{}",
        ran.stdout()
    );
    assert!(
        result_texts(&ran)[1].ends_with("has no tool `lost`; it has `long`"),
        "{:?}",
        result_texts(&ran)
    );
    assert_eq!(received_requests(&two.a), ["long"]);
}

#[test]
fn server_name_allows_its_tools_and_resources_only() {
    for name in ["mcp__a", "mcp__a__*"] {
        let two = TwoServers::with_known_tools([
            call("a", "echo"),
            resource_call("a"),
            call("b", "echo"),
            resource_call("b"),
            Reply::text("Done."),
        ]);
        let ran = two.rig.task(&["--allowed-tools", name, "task"]);
        assert_eq!(
            call_outcomes(&ran),
            ["success", "success", "not_offered", "not_offered"],
            "{name}: {}",
            ran.stdout()
        );
        assert_eq!(
            (received_requests(&two.a), received_requests(&two.b)),
            (vec!["echo".to_owned(), "mem:a".to_owned()], Vec::new())
        );
    }
}

#[test]
fn several_tool_names_are_combined() {
    let two = TwoServers::new([
        call("a", "echo"),
        direct_call("b", "structured"),
        call("b", "echo"),
        Reply::text("Done."),
    ]);
    let ran = two
        .rig
        .task(&["--allowed-tools", "mcp__a__echo,mcp__b__structured", "task"]);
    assert_eq!(
        call_outcomes(&ran),
        ["success", "success", "not_offered"],
        "{}",
        ran.stdout()
    );
    assert!(
        result_texts(&ran)[2].ends_with("only `mcp__a__echo`, `mcp__b__structured`"),
        "{:?}",
        result_texts(&ran)
    );
}

#[test]
fn use_mcp_tool_name_allows_every_server() {
    for names in [
        "use_mcp_tool",
        "mcp__*",
        "others",
        "default",
        "*",
        "mcp__a__echo,use_mcp_tool",
    ] {
        let two = TwoServers::new([
            call("a", "echo"),
            call("b", "structured"),
            resource_call("b"),
            Reply::text("Done."),
        ]);
        let ran = two.rig.task(&["--allowed-tools", names, "task"]);
        assert_eq!(
            call_outcomes(&ran),
            ["success", "success", "success"],
            "{names}: {}",
            ran.stdout()
        );
    }
}

#[test]
fn tool_search_finds_only_allowed_tools() {
    let search = |arguments: Value| Reply::call("tool_search", arguments);
    for names in [
        "mcp__a__echo",
        "tool_search,mcp__a__echo",
        "read-only,mcp__a__echo",
    ] {
        let two = TwoServers::new([
            search(json!({"query": ""})),
            search(json!({"query": "structured data"})),
            search(json!({"query": "", "server_name": "b"})),
            Reply::text("Done."),
        ]);
        let ran = two.rig.task(&["--allowed-tools", names, "task"]);
        assert_eq!(
            call_outcomes(&ran),
            ["success", "success", "unknown_server"],
            "{names}: {}",
            ran.stdout()
        );
        let texts = result_texts(&ran);
        assert!(
            texts[0].starts_with("1 of 1 tools fit:\n\nServer `a`\n- `echo`"),
            "{}",
            texts[0]
        );
        assert_eq!(texts[1], "None of 1 tools fits.");
        assert_eq!(texts[2], "there is no MCP server `b`; there are `a`");
        assert_eq!(
            two.b.received_messages(),
            [] as [Value; 0],
            "it was not even asked what it offers"
        );
    }
}

#[test]
fn unknown_tool_names_are_rejected_before_the_run() {
    for name in ["mcp__c__echo", "mcp__c", "mcp__a*", "mcp__a__*echo"] {
        let two = TwoServers::new([]);
        let ran = two.rig.run(&[
            "run",
            "--allowed-tools",
            &format!("mcp__a__echo,{name}"),
            "task",
        ]);
        assert_eq!(ran.code(), 2, "{name}");
        assert!(
            ran.stderr().contains(&format!("`{name}` is not a tool")),
            "{}",
            ran.stderr()
        );
    }
}

/// A conversation keeps the description of a tool that is still allowed, and loses those of other
/// tools.
#[test]
fn resumed_conversation_lists_only_tools_still_allowed() {
    let two = TwoServers::with_known_tools([
        Reply::text("One."),
        call("b", "echo"),
        Reply::text("Two."),
        call("b", "echo"),
        Reply::text("Three."),
    ]);
    two.rig.task(&["first"]);
    assert!(two.first_server_list().contains("## b\n"));
    let go_on = |words: &str| {
        let ran = two
            .rig
            .task(&["-c", "--allowed-tools", "mcp__a__echo", words]);
        assert_eq!(
            call_outcomes(&ran),
            ["not_offered"],
            "{}{}",
            ran.stdout(),
            ran.stderr()
        );
    };
    go_on("second");
    // The tools of the servers are no longer known, but the conversation keeps its second server
    // list.
    fs::remove_dir_all(two.rig.home().join("state/mcp/lists")).unwrap();
    go_on("third");
    let last = server_list(
        &two.rig
            .server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap(),
    );
    assert!(
        last.contains("- `echo`") && !last.contains("## b"),
        "{last}"
    );
    assert_eq!(received_requests(&two.b), [] as [&str; 0]);
}

/// A sub-agent gets the tools that its file names, limited to those of the agent that starts it.
#[test]
fn sub_agent_gets_tools_allowed_for_it_and_its_parent() {
    let no = "not_offered";
    for (starter, head, expected) in [
        ("default", "tools: mcp__a__echo", ["success", no, no]),
        ("run_named_subagents,mcp__a__echo", "", ["success", no, no]),
        (
            "run_named_subagents,mcp__a",
            "tools: mcp__*",
            ["success", "success", no],
        ),
        (
            "run_named_subagents,mcp__a__echo,mcp__b",
            "tools: mcp__a",
            ["success", no, no],
        ),
        (
            "run_named_subagents,use_mcp_tool",
            "tools: mcp__a, mcp__b__echo",
            ["success", "success", "success"],
        ),
    ] {
        let says = |model: &str, results: usize, reply: Reply| {
            reply.when(When {
                model: Some(model.into()),
                tool_results: Some(results),
                ..When::default()
            })
        };
        let start = Reply::call(
            "run_named_subagents",
            json!({"subagents": "subagents: [{name: asker, task: Ask.}]"}),
        );
        let two = TwoServers::with_known_tools([
            says(MODEL, 0, start),
            says(MODEL, 1, Reply::text("Done.")),
            says("other", 0, call("a", "echo")),
            says("other", 1, call("a", "structured")),
            says("other", 2, direct_call("b", "echo")),
            says("other", 3, Reply::text("Asked.")),
        ]);
        let file = two.rig.home().join("config.toml");
        let before = fs::read_to_string(&file).unwrap();
        let model = "[models.\"mock/other\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n";
        fs::write(file, format!("{before}{model}")).unwrap();
        two.add_agent("asker", &format!("model: mock/other\n{head}"));
        let ran = two.rig.task(&["--allowed-tools", starter, "task"]);
        let of_sub: Vec<_> = call_outcomes(&ran).into_iter().take(3).collect();
        assert_eq!(
            of_sub,
            expected,
            "{starter} / {head}: {}{}",
            ran.stdout(),
            ran.stderr()
        );
    }
}

/// An agent file of whose tools none is allowed must not give access to all tools.
#[test]
fn sub_agent_without_any_allowed_tool_is_not_started() {
    let start = Reply::call(
        "run_named_subagents",
        json!({"subagents": "subagents: [{name: asker, task: Ask.}]"}),
    );
    let two = TwoServers::with_known_tools([start, Reply::text("Done.")]);
    two.add_agent("asker", "tools: mcp__b__echo");
    let ran = two.rig.task(&[
        "--allowed-tools",
        "run_named_subagents,mcp__a__echo",
        "task",
    ]);
    let told = &result_texts(&ran)[0];
    assert!(told.contains("`mcp__b__echo` is not a tool"), "{told}");
    assert_eq!(
        two.rig.server.generation_requests().len(),
        2,
        "the sub-agent asked nothing"
    );
}
