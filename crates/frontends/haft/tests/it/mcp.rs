//! MCP servers from the configuration to the model and back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use haft_testkit::support::{McpServer, Revision, SHELL_MCP_SERVER, visit_url};
use haft_testkit::{Reply, Script, Seen, SeenPart};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

fn call(server: &str, tool: &str, arguments: &Value) -> Reply {
    Reply::call(
        "use_mcp_tool",
        json!({"server_name": server, "tool_name": tool, "arguments": arguments}),
    )
}

fn append_config(rig: &Rig, text: &str) {
    let file = rig.home().join("config.toml");
    let before = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{before}{text}")).unwrap();
}

/// Adds the shell server as `s`, which notes each start in the file `starts`. It runs unconfined,
/// because it writes to haft's home folder.
pub(crate) fn add_shell_server(rig: &Rig) {
    let script = rig.home().join("server.sh");
    fs::write(&script, SHELL_MCP_SERVER).unwrap();
    let script = script.display();
    let home = rig.home().display();
    append_config(
        rig,
        &format!(
            "[mcp_servers.s]\ncommand = \"/bin/sh\"\nargs = [\"{script}\"]\ncwd = \"{home}\"\nenv = {{ GIVEN = \"this\" }}\nsandbox = false\n"
        ),
    );
}

pub(crate) fn count_starts(rig: &Rig) -> usize {
    fs::read_to_string(rig.home().join("starts"))
        .unwrap_or_default()
        .lines()
        .count()
}

fn seen_requests(rig: &Rig) -> Vec<Seen> {
    rig.server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect()
}

/// Returns the table of servers. A command is cut at a width, so its paths are left out.
fn list_screen(rig: &Rig) -> String {
    let shown = rig.run(&["mcp", "list"]);
    assert_eq!(shown.code(), 0, "{}", shown.stderr());
    let lines = shown.stdout();
    let lines = lines.lines().map(|line| match line.split_once("/bin/sh ") {
        Some((before, _)) => format!("{before}/bin/sh …\n"),
        None => format!("{line}\n"),
    });
    rig.mask_text(&lines.collect::<String>())
}

fn tool_results(ran: &Ran) -> Vec<Value> {
    ran.events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect()
}

fn server_list(request: &Seen) -> String {
    request
        .prompt_section("MCP_SERVER_LIST")
        .expect("the servers are listed")
        .to_owned()
}

#[test]
fn server_starts_only_when_called() {
    let rig = rig([
        Reply::text("Nothing to do."),
        call("s", "show", &json!({})),
        Reply::text("Done."),
    ]);
    add_shell_server(&rig);
    assert_eq!(rig.task(&["first"]).code(), 0);
    assert_eq!(count_starts(&rig), 0, "a request alone starts nothing");
    let ran = rig.task(&["second"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(tool_results(&ran)[0]["text"], "GIVEN=this SECRET=");
    assert_eq!(count_starts(&rig), 1);
    let first = server_list(&seen_requests(&rig)[0]);
    assert!(
        first.contains("## s\nIts tools are not known yet"),
        "{first}"
    );
}

#[test]
fn server_list_holds_known_tools_without_a_start() {
    let rig = rig([Reply::text("Done.")]);
    add_shell_server(&rig);
    let tested = rig.run(&["mcp", "test", "s", "--json"]);
    assert_eq!(tested.code(), 0, "{}{}", tested.stdout(), tested.stderr());
    assert_eq!(tested.json()[0]["tools"][0]["name"], "show");
    // Listing starts nothing either.
    insta::assert_snapshot!(list_screen(&rig), @"
    NAME  FROM  STATE  TOOLS  REACHED BY
    s  user  known  2  /bin/sh …
    ");
    rig.task(&["task"]);
    assert!(
        server_list(&seen_requests(&rig)[0])
            .contains("- `show`: Shows its environment.\n  arguments: {\"type\":\"object\"}")
    );
    assert_eq!(count_starts(&rig), 1, "only the test started it");
}

#[test]
fn mcp_test_lists_the_tools_of_a_server() {
    let there = McpServer::start(Revision::Current).unwrap();
    let rig = rig([]);
    add_web_server(&rig, &there);
    insta::assert_snapshot!(rig.screen(&["mcp", "list"]), @"
    NAME  FROM  STATE  TOOLS  REACHED BY
    web  user  not connected yet  -  http://127.0.0.1:PORT/mcp
    ");
    insta::assert_snapshot!(rig.screen(&["mcp", "test", "web"]), @"
    web: testkit 1, protocol 2026-07-28
      echo  Says what it was told.
      fail  Always fails.
      picture  Shows a picture.
      long  Says more than anybody reads.
      structured  Answers with data alone.
      slow  Takes its time and says so.
      stuck  Never answers.
      ask  Asks the user.
      grow  Gets a new tool.
      and 1 resource
      and 1 prompt
    ");
    insta::assert_snapshot!(rig.screen(&["mcp", "list"]), @"
    NAME  FROM  STATE  TOOLS  REACHED BY
    web  user  known  9  http://127.0.0.1:PORT/mcp
    ");
}

#[test]
fn use_mcp_tool_is_not_offered_without_servers() {
    let rig = rig([Reply::text("Done.")]);
    rig.task(&["task"]);
    let offered = &seen_requests(&rig)[0].tools;
    assert!(offered.iter().all(|tool| tool.name != "use_mcp_tool"));
}

#[test]
fn tool_calls_need_approval_and_match_rules_by_name() {
    let there = McpServer::start(Revision::Current).unwrap();
    let echo = || call("web", "echo", &json!({"text": "hello"}));
    let rig = rig([echo(), Reply::text("Denied."), echo(), Reply::text("Done.")]);
    append_config(
        &rig,
        &format!("[mcp_servers.web]\nurl = \"{}\"\n", there.url()),
    );
    let denied = rig.run(&["run", "--output-format", "stream-json", "first"]);
    assert_eq!(denied.code(), 3, "{}", denied.stdout());
    let told = tool_results(&denied)[0]["text"]
        .as_str()
        .unwrap()
        .to_owned();
    insta::assert_snapshot!(rig.mask_text(&told), @r#"`use_mcp_tool` needs the user's permission (`use_mcp_tool` calls `echo` of the MCP server `web`, and no rule allows it), and nobody can be asked in this run (permission mode `ask`). The user can allow it with `haft permissions add "mcp__web__echo"`."#);
    let explain = || {
        rig.run(&[
            "permissions",
            "explain",
            "--json",
            "--tool",
            "mcp__web__echo",
        ])
        .json()
    };
    assert_eq!(explain()["decision"], "ask");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "--tool", "mcp__web__echo"]), @"
    ask: not covered by any rule

    To allow exactly this: haft permissions add 'mcp__web__echo'
    ");
    assert!(!there.methods().contains(&"tools/call".to_owned()));
    assert_eq!(rig.run(&["permissions", "add", "mcp__web__echo"]).code(), 0);
    assert_eq!(
        (&explain()["decision"], &explain()["rule"]),
        (&json!("allow"), &json!("mcp__web__echo"))
    );
    let allowed = rig.run(&["run", "--output-format", "stream-json", "second"]);
    assert_eq!(allowed.code(), 0, "{}", allowed.stdout());
    assert_eq!(tool_results(&allowed)[0]["text"], r#"{"text":"hello"}"#);
}

#[test]
fn direct_tool_name_calls_the_server() {
    let there = McpServer::start(Revision::Current).unwrap();
    let direct =
        |server: &str| Reply::call(format!("mcp__{server}__echo"), json!({"text": "hello"}));
    let rig = rig([direct("web"), direct("other"), Reply::text("Done.")]);
    add_web_server(&rig, &there);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--set",
        "permissions.allow=[\"mcp__web__echo\"]",
        "task",
    ]);
    let results = tool_results(&ran);
    assert_eq!(
        results[0]["text"],
        r#"{"text":"hello"}"#,
        "permitted by the same name: {}",
        ran.stdout()
    );
    assert_eq!(
        results[1]["error"]["code"],
        "unknown_tool",
        "{}",
        ran.stdout()
    );
}

#[test]
fn server_permission_allows_or_denies_all_tools() {
    for (permission, status) in [("allow", "success"), ("deny", "error")] {
        let there = McpServer::start(Revision::Previous).unwrap();
        let rig = rig([call("web", "echo", &json!({})), Reply::text("Done.")]);
        append_config(
            &rig,
            &format!(
                "[mcp_servers.web]\nurl = \"{}\"\npermission = \"{permission}\"\n",
                there.url()
            ),
        );
        let ran = rig.run(&["run", "--output-format", "stream-json", "task"]);
        assert_eq!(tool_results(&ran)[0]["status"], status, "{}", ran.stdout());
        let explained = rig
            .run(&[
                "permissions",
                "explain",
                "--json",
                "--tool",
                "mcp__web__echo",
            ])
            .json();
        assert_eq!(
            (&explained["decision"], &explained["rule"]),
            (&json!(permission), &json!("mcp__web"))
        );
    }
}

#[test]
fn permissions_explain_rejects_incomplete_tool_names() {
    let rig = rig([]);
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "--tool", "mcp__web"]), @"
    -- errors
    haft: `mcp__web` does not name a tool of a server; write `mcp__SERVER__TOOL`
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["permissions", "explain", "--tool", "read_file"]), @"
    -- errors
    haft: `--tool` needs `--args`, a JSON object
    -- exit 2
    ");
}

#[test]
fn long_results_are_cut_and_saved_to_a_file() {
    let there = McpServer::start(Revision::Current).unwrap();
    let rig = rig([
        call("web", "long", &json!({})),
        call("web", "fail", &json!({})),
        Reply::text("Done."),
    ]);
    append_config(
        &rig,
        &format!("[mcp_servers.web]\nurl = \"{}\"\n", there.url()),
    );
    let ran = rig.task(&["task"]);
    let results = tool_results(&ran);
    let text = results[0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("line 0\n") && text.contains("line 4999"),
        "no control sequences, head and tail"
    );
    assert!(text.lines().count() <= 2_000 && text.len() <= 52_000);
    let file = text
        .rsplit_once("It is in `")
        .unwrap()
        .1
        .split_once('`')
        .unwrap()
        .0;
    assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 5_000);
    assert_eq!(
        (&results[1]["status"], &results[1]["text"]),
        (&json!("error"), &json!("it went wrong"))
    );
}

#[test]
fn tool_search_finds_tools_that_the_server_list_omits() {
    let there = McpServer::start(Revision::Current).unwrap();
    let search = Reply::call("tool_search", json!({"query": "picture"}));
    let rig = rig([
        search,
        call("web", "picture", &json!({})),
        Reply::text("Done."),
    ]);
    append_config(
        &rig,
        &format!("[mcp_servers.web]\nurl = \"{}\"\n", there.url()),
    );
    assert_eq!(rig.run(&["mcp", "test"]).code(), 0);
    let model = "models.\"mock/gemini-3-scripted\"";
    let window = format!("{model}.context_window=8000");
    let output = format!("{model}.max_output_tokens=1000");
    let small = [
        "--set",
        &window,
        "--set",
        &output,
        "--set",
        "tools.offer=[\"others\"]",
    ];
    let ran = rig.task(&[&small[..], &["task"]].concat());
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    let requests = seen_requests(&rig);
    let told = server_list(&requests[0]);
    assert!(
        told.contains("`echo`, `fail`") && !told.contains("arguments: {"),
        "{told}"
    );
    let found = tool_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(
        found.contains("1 of 9 tools fit:\n\nServer `web`\n- `picture`: Shows a picture."),
        "{found}"
    );
    assert!(found.contains(r#"arguments: {"type":"object""#), "{found}");
    let offered = |request: &Seen| {
        request
            .tools
            .iter()
            .map(|tool| tool.description.clone())
            .collect::<Vec<_>>()
    };
    assert!(
        requests
            .iter()
            .all(|request| offered(request) == offered(&requests[0])),
        "the tools never change"
    );
}

#[test]
fn project_servers_are_ignored_until_trusted() {
    let there = McpServer::start(Revision::Current).unwrap();
    let file =
        json!({"mcpServers": {"web": {"type": "http", "url": "${WEB_URL}"}, "bad": {"type": "sse"}}}).to_string();
    let script = Script::replies([
        Reply::text("One."),
        call("web", "echo", &json!({})),
        Reply::text("Two."),
    ])
    .unwrap();
    let rig = Rig::untrusted(Api::OpenaiChat, script);
    rig.write(".mcp.json", file);
    let task = || {
        let mut command = rig.command(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
            "task",
        ]);
        Ran(command.env("WEB_URL", there.url()).output().unwrap())
    };
    task();
    assert!(
        seen_requests(&rig)[0]
            .tools
            .iter()
            .all(|tool| tool.name != "use_mcp_tool")
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = task();
    assert_eq!(
        tool_results(&ran)[0]["status"],
        "success",
        "{}",
        ran.stdout()
    );
    let notices: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["code"] == "mcp_server")
        .collect();
    assert!(
        notices[0]["message"]
            .as_str()
            .unwrap()
            .contains("key `mcpServers.bad.type`"),
        "{notices:?}"
    );
}

/// Fifty servers, of which forty-five hang longer than any test. A run that waited for one of them
/// would not end, and each start is counted.
#[test]
fn hanging_servers_are_not_started_and_block_nothing() {
    let rig = rig([call("good4", "show", &json!({})), Reply::text("Done.")]);
    let script = rig.home().join("server.sh");
    let home = rig.home().display().to_string();
    fs::write(&script, SHELL_MCP_SERVER).unwrap();
    let declare = |name: &str, command: &str| {
        let long = "timeout = 100000\nstartup_timeout = 100000\nsandbox = false";
        let program = format!("command = \"/bin/sh\"\nargs = [{command}]\ncwd = \"{home}\"");
        append_config(&rig, &format!("[mcp_servers.{name}]\n{program}\n{long}\n"));
    };
    for number in 0..5 {
        declare(
            &format!("good{number}"),
            &format!("\"{}\"", script.display()),
        );
    }
    assert_eq!(rig.run(&["mcp", "test"]).code(), 0);
    assert_eq!(count_starts(&rig), 5, "the count works");
    for number in 0..45 {
        declare(
            &format!("hang{number}"),
            "\"-c\", \"echo start >> starts; exec sleep 100000\"",
        );
    }
    let ran = rig.task(&["task"]);
    assert_eq!(
        (ran.code(), count_starts(&rig)),
        (0, 6),
        "only the one that was called: {}",
        ran.stdout()
    );
    let told = server_list(&seen_requests(&rig)[0]);
    assert!(
        told.contains("## good4\n- `show`")
            && told.contains("## hang44\nIts tools are not known yet"),
        "{told}"
    );
}

/// The tools of a request are part of its prefix. Tools that become known, in the middle of a
/// conversation or between two runs, must not change the prefix; a change of the user's
/// configuration does, once and by name.
#[test]
fn server_list_is_stable_until_the_configuration_changes() {
    let replies = [
        call("s", "show", &json!({})),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
    ];
    let rig = rig(replies);
    add_shell_server(&rig);
    // Without compression, which would change older messages too.
    let task =
        |more: &[&str]| rig.task(&[&["--set", "context.compress=\"never\""][..], more].concat());
    assert_eq!(task(&["first"]).code(), 0);
    assert_eq!(
        rig.run(&["mcp", "test", "s"]).code(),
        0,
        "its tools are known now"
    );
    let second = task(&["-c", "second"]);
    assert_eq!(second.code(), 0, "{}", second.stderr());
    let bodies: Vec<Value> = rig
        .server
        .generation_requests()
        .iter()
        .map(|sent| sent.json().unwrap())
        .collect();
    assert_eq!(bodies.len(), 3);
    for pair in bodies.windows(2) {
        assert_eq!(pair[0]["tools"].to_string(), pair[1]["tools"].to_string());
        let before = pair[0]["messages"].as_array().unwrap();
        let after = pair[1]["messages"].as_array().unwrap();
        assert_eq!(
            before[..],
            after[..before.len()],
            "each request extends the one before"
        );
    }
    let broken = |ran: &Ran| {
        ran.events()
            .iter()
            .filter(|event| event["type"] == "prefix_break")
            .count()
    };
    assert_eq!(broken(&second), 0);
    assert!(server_list(&seen_requests(&rig)[2]).contains("Its tools are not known yet"));

    let file = rig.home().join("config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(file, format!("{text}tools.deny = [\"die\"]\n")).unwrap();
    let third = task(&["-c", "third"]);
    let told = server_list(&seen_requests(&rig)[3]);
    assert!(
        told.contains("- `show`") && !told.contains("`die`"),
        "{told}"
    );
    assert_eq!(broken(&third), 1, "{}", third.stdout());
}

#[test]
fn server_keys_are_not_stored_in_conversations() {
    let there = McpServer::start_guarded(Revision::Previous, "tok-0123456789abcdef").unwrap();
    let rig = rig([
        call("web", "echo", &json!({"text": "tok-0123456789abcdef"})),
        Reply::text("Done."),
    ]);
    append_config(
        &rig,
        &format!(
            "[mcp_servers.web]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer tok-0123456789abcdef\" }}\n",
            there.url()
        ),
    );
    rig.task(&["task"]);
    assert!(
        there.methods().contains(&"initialize".to_owned()),
        "the header was sent"
    );
    assert!(!rig.export().to_string().contains("tok-0123456789abcdef"));
    for command in [&["config", "show"][..], &["mcp", "list", "--json"]] {
        assert!(
            !rig.run(command).stdout().contains("tok-0123456789abcdef"),
            "{command:?}"
        );
    }
}

#[test]
fn mcp_add_list_and_remove_change_the_configuration() {
    let rig = rig([]);
    let script = rig.home().join("server.sh");
    fs::write(&script, SHELL_MCP_SERVER).unwrap();
    let added = rig.run(&[
        "mcp",
        "add",
        "mine",
        "--folder",
        &rig.home().display().to_string(),
        "--",
        "/bin/sh",
        script.to_str().unwrap(),
    ]);
    insta::assert_snapshot!(rig.mask(&added), @"
    Declared `mine` in `HOME/config.toml`.
    mine: shell 1, protocol 2025-11-25
      show  Shows its environment.
      die
    ");
    let listed = rig.run(&["mcp", "list", "--json"]).json();
    assert_eq!(
        (&listed[0]["name"], &listed[0]["tools"][0]["name"]),
        (&json!("mine"), &json!("show"))
    );
    insta::assert_snapshot!(list_screen(&rig), @"
    NAME  FROM  STATE  TOOLS  REACHED BY
    mine  user  known  2  /bin/sh …
    ");
    insta::assert_snapshot!(rig.screen(&["mcp", "remove", "mine"]), @"Removed `mine` from `HOME/config.toml`.");
    assert_eq!(rig.run(&["mcp", "list", "--json"]).json(), json!([]));
    insta::assert_snapshot!(rig.screen(&["mcp", "test", "mine"]), @"
    -- errors
    haft: there is no MCP server `mine`; there are none yet
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["mcp", "remove", "mine"]), @"
    -- errors
    haft: `HOME/config.toml` declares no MCP server `mine`; `haft mcp list` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["mcp", "list"]), @"There are no MCP servers. `haft mcp add NAME -- COMMAND` adds one.");
}

fn add_web_server(rig: &Rig, there: &McpServer) {
    append_config(
        rig,
        &format!("[mcp_servers.web]\nurl = \"{}\"\n", there.url()),
    );
}

fn last_message_text(rig: &Rig) -> String {
    match seen_requests(rig)
        .last()
        .unwrap()
        .messages
        .last()
        .unwrap()
        .parts
        .as_slice()
    {
        [SeenPart::Text { text, .. }] => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn server_prompts_become_slash_commands() {
    let there = McpServer::start(Revision::Current).unwrap();
    let rig = rig([Reply::text("Hello.")]);
    add_web_server(&rig, &there);
    let listed = |rig: &Rig| rig.run(&["commands", "list", "--json"]).json()["commands"].clone();
    assert_eq!(
        listed(&rig),
        json!([]),
        "nothing is known yet, and nobody is asked"
    );
    assert!(there.methods().is_empty());
    let ran = rig.task(&["/mcp__web__greet 'Ada Lovelace'"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(last_message_text(&rig), "Hello \"Ada Lovelace\".");
    let command = &listed(&rig)[0];
    assert_eq!(
        (&command["name"], &command["argument_hint"]),
        (&json!("mcp__web__greet"), &json!("<whom>"))
    );
    insta::assert_snapshot!(rig.screen(&["commands", "list"]), @"
    NAME  DESCRIPTION  FROM  FILE
    mcp__web__greet  Greets.  mcp  server web
    ");
    insta::assert_snapshot!(rig.screen(&["commands", "show", "mcp__web__greet"]), @"
    mcp__web__greet <whom>
    Greets.

    Its text is fetched from the server `web` when it is used.
    whom (needed):
    ");
    insta::assert_snapshot!(rig.screen(&["run", "/mcp__web__greet"]), @"
    -- errors
    haft: cannot use `/mcp__web__greet`: `whom` is missing; write `/mcp__web__greet <whom>`
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["run", "/mcp__web__part"]), @"
    -- errors
    haft: cannot use `/mcp__web__part`: the MCP server `web` has no such prompt; it has /mcp__web__greet
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["run", "/mcp__nowhere__x"]), @"
    -- errors
    haft: cannot use `/mcp__nowhere__x`: there is no MCP server `nowhere`; there is only `web`
    -- exit 2
    ");
}

#[test]
fn resources_are_attached_on_mention_and_readable_by_the_model() {
    let there = McpServer::start(Revision::Current).unwrap();
    let read = || call("web", "read_resource", &json!({"uri": "mem:a"}));
    let rig = rig([
        Reply::text("Seen."),
        read(),
        call("web", "read_resource", &json!({})),
        Reply::text("Done."),
    ]);
    add_web_server(&rig, &there);
    assert_eq!(rig.task(&["what is in @web:mem:a?"]).code(), 0);
    let attached = "what is in @web:mem:a?\n\n<resource server=\"web\" uri=\"mem:a\">\ncontent of a\n</resource>";
    assert_eq!(last_message_text(&rig), attached);
    let ran = rig.task(&["read it yourself"]);
    assert!(
        server_list(&seen_requests(&rig)[1])
            .contains("- `read_resource`: reads a resource: `mem:a` (a)")
    );
    assert_eq!(tool_results(&ran)[0]["text"], "content of a");
    assert_eq!(
        tool_results(&ran)[1]["text"],
        "`mem:a` (a): ",
        "without an address it lists them"
    );
    let missing = rig.task(&["-c", "@nowhere:mem:a stays what it is"]);
    assert_eq!(
        last_message_text(&rig),
        "@nowhere:mem:a stays what it is",
        "{}",
        missing.stdout()
    );
}

#[test]
fn mcp_login_opens_a_page_and_persists() {
    let there = McpServer::start_with_login(Revision::Current, 3_600).unwrap();
    let rig = rig([
        call("web", "echo", &json!({})),
        Reply::text("No."),
        call("web", "echo", &json!({})),
        Reply::text("Yes."),
    ]);
    add_web_server(&rig, &there);
    let before = tool_results(&rig.task(&["first"]))[0]["text"].to_string();
    assert!(before.contains("haft mcp login web"), "{before}");
    let mut login = rig
        .command(&["mcp", "login", "web"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(login.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut lines = lines.skip_while(|line| !line.starts_with("http://"));
    assert_eq!(
        visit_url(&lines.next().unwrap()).unwrap(),
        "haft has logged in. You can close this page."
    );
    assert!(login.wait().unwrap().success());
    assert_eq!(tool_results(&rig.task(&["second"]))[0]["status"], "success");
    assert_eq!(
        rig.run(&["mcp", "list", "--json"]).json()[0]["state"],
        "known, logged in"
    );
    let tokens = fs::read_dir(rig.home().join("state/mcp/tokens"))
        .unwrap()
        .flatten();
    assert!(
        tokens
            .map(|file| file.metadata().unwrap().permissions().mode())
            .all(|mode| mode & 0o777 == 0o600)
    );
    assert!(!rig.export().to_string().contains("access-1"));
}

#[test]
fn sandboxed_server_cannot_write_outside_its_folder() {
    let outside = tempfile::tempdir().unwrap();
    let planted = outside.path().join("planted");
    for (sandbox, written) in [(false, true), (true, false)] {
        let rig = rig([]);
        if rig.run(&["sandbox", "status", "--json"]).json()["layer"] == "none" {
            eprintln!("skipped: there is no sandbox here");
            return;
        }
        rig.write(
            "server.sh",
            format!("touch '{}' inside\n{SHELL_MCP_SERVER}", planted.display()),
        );
        let key = format!("command = \"/bin/sh\"\nargs = [\"server.sh\"]\nsandbox = {sandbox}\n");
        append_config(&rig, &format!("[mcp_servers.s]\n{key}"));
        let tested = rig.run(&["mcp", "test", "s"]);
        assert_eq!(tested.code(), 0, "{}{}", tested.stdout(), tested.stderr());
        assert_eq!(
            rig.project().join("inside").exists(),
            written,
            "it only reads the project"
        );
        assert_eq!(planted.exists(), written, "sandbox = {sandbox}");
        let _ = fs::remove_file(&planted);
        let off = rig.run(&["mcp", "test", "s", "--set", "sandbox.mode=\"off\""]);
        assert_eq!(
            off.code(),
            i32::from(sandbox),
            "confined or not at all: {}",
            off.stdout()
        );
        let _ = fs::remove_file(&planted);
    }
}

#[test]
fn mcp_add_saves_and_reports_an_unreachable_server() {
    let rig = rig([]);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{nobody}/mcp");
    let ran = rig.run(&["mcp", "add", "far", "--url", &url]);
    insta::assert_snapshot!(rig.mask(&ran), @"
    Declared `far` in `HOME/config.toml`.
    far: the MCP server `far` could not be started: `http://127.0.0.1:PORT/mcp`: it cannot be reached: Connection refused (os error 111)
    -- exit 1
    ");
    let told = ran.stdout();
    for name in ["::", "rmcp", "reqwest", "Client", "Transport", "Error("] {
        assert!(!told.contains(name), "{name}: {told}");
    }
}
