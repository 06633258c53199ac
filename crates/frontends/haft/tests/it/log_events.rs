//! The events that the log has at each level, and the fields of each.

use std::collections::{BTreeMap, BTreeSet};

use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Rig};
use crate::terminal::Terminal;

/// Returns a run's log events: the level and message of each, with the names of its fields.
fn logged_events(rig: &Rig) -> String {
    let shown = rig.run(&["logs", "--json"]).stdout();
    let mut events: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for line in shown.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        // A library notices the end of a server sooner or later.
        if text("message") == "reported by a library" {
            continue;
        }
        let fields = line["fields"].as_object().into_iter().flatten();
        events
            .entry((text("level"), text("message")))
            .or_default()
            .extend(fields.map(|(name, _)| name.clone()));
    }
    let lines = events.into_iter().map(|((level, message), fields)| {
        let fields: Vec<_> = fields.into_iter().collect();
        format!("{level:5} {message}: {}", fields.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A run with everything that is logged but reductions and approvals. The key is refused in the
/// end.
fn run_at_level(level: &str) -> Rig {
    let agent = "mode: parallel\nsubagents:\n  - name: helper\n    task: Look.\n";
    let ask_server = |name: &str| {
        let arguments = json!({"server_name": name, "tool_name": "show", "arguments": {}});
        Reply::call("use_mcp_tool", arguments)
    };
    let replies = [
        Reply::call("write_to_file", json!({"path": "a.txt", "content": "text"})),
        Reply::call(
            "execute_command",
            json!({"command": "grep z a.txt", "requires_approval": false}),
        ),
        Reply::error(503, "Overloaded."),
        ask_server("good"),
        ask_server("gone"),
        Reply::call("run_named_subagents", json!({"subagents": agent})),
        Reply::text("Seen."),
        Reply::call(
            "background_task",
            json!({"action": "start", "command": "true"}),
        ),
        Reply::call(
            "background_task",
            json!({"action": "monitor", "task_id": "t1", "timeout": 600}),
        ),
        Reply::error(401, "Wrong key."),
    ];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    rig.write("AGENTS.md", "Be kind.\n");
    let helper = "---\nname: helper\ndescription: Looks\n---\nYou look.\n";
    rig.write(".haft/agents/helper.md", helper);
    rig.write(
        ".haft/agents/broken.md",
        "---\nname: [helper\n---\nYou look.\n",
    );
    let skill = "---\nname: skill\ndescription: Shows how\n---\nDo it.\n";
    rig.write(".haft/skills/skill/SKILL.md", skill);
    rig.write(".haft/skills/broken/SKILL.md", "Do it.\n");
    let servers = json!({"mcpServers": {"wrong": {"args": []}}});
    rig.write(".mcp.json", servers.to_string());
    let server = rig.home().join("server.sh");
    std::fs::write(&server, SHELL_MCP_SERVER).unwrap();
    let configured = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{configured}[mcp_servers.good]\ncommand = \"sh\"\nargs = [\"{}\"]\n\
         [mcp_servers.gone]\ncommand = \"/nowhere\"\n\
         [mcp_servers.off]\ncommand = \"true\"\nenabled = false\n\
         [[hooks.pre_tool_call]]\nmatcher = \"*\"\nhooks = [{{ command = \"true\" }}]\n\
         [[hooks.post_tool_call]]\nmatcher = \"write_to_file\"\nhooks = [{{ command = \"exit 1\" }}]\n",
        server.display()
    ));
    assert!(rig.command(&["trust"]).status().unwrap().success());
    let mut run = rig.command(&["run", "--permission-mode", "yolo", "go"]);
    let ran = run.env("HAFT_LOG_LEVEL", level).output().unwrap();
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
    rig
}

#[test]
fn log_events_at_level_error() {
    insta::assert_snapshot!(logged_events(&run_at_level("error")), @r"
    error error shown: agent code
    error request failed: code model ms retries status
    error turn ended: agent code conversation cost input ms outcome output turns
    ");
}

#[test]
fn log_events_at_level_warn() {
    insta::assert_snapshot!(logged_events(&run_at_level("warn")), @r"
    error error shown: agent code
    error request failed: code model ms retries status
    error turn ended: agent code conversation cost input ms outcome output turns
    warn  MCP server not started: code ms server
    warn  MCP server skipped: place reason server
    warn  agent skipped: line path reason
    warn  error shown: agent code reason
    warn  hook failed: ms point programs
    warn  request failed and is retried: attempt code delay_ms model status
    warn  tool call: agent call code ms outcome programs tool
    ");
}

#[test]
fn log_events_at_level_info() {
    insta::assert_snapshot!(logged_events(&run_at_level("info")), @r"
    error error shown: agent code
    error request failed: code model ms retries status
    error turn ended: agent code conversation cost input ms outcome output turns
    info  MCP server skipped: reason server
    info  MCP server started: ms server tools
    info  MCP servers declared: names
    info  agents loaded: names
    info  background task: agent exit_code phase programs task
    info  configuration loaded: exists file variables
    info  file changed: agent change path
    info  hook called: ms point programs
    info  hook loaded: path point programs sandboxed
    info  instructions loaded: bytes kind name
    info  request answered: cache_write cached_input input model ms output retries
    info  sandbox chosen: layer reasons
    info  session opened: ignored mode model project trusted
    info  skills loaded: names
    info  sub-agent finished: agent model name outcome
    info  sub-agent started: agent model name
    info  tool call: agent call ms outcome programs tool
    info  turn ended: agent code conversation cost input ms outcome output turns
    info  turn started: agent conversation cwd model resumed
    warn  MCP server not started: code ms server
    warn  MCP server skipped: place reason server
    warn  agent skipped: line path reason
    warn  error shown: agent code reason
    warn  hook failed: ms point programs
    warn  request failed and is retried: attempt code delay_ms model status
    warn  tool call: agent call code ms outcome programs tool
    ");
}

#[test]
fn log_events_at_level_debug() {
    insta::assert_snapshot!(logged_events(&run_at_level("debug")), @r"
    debug cache predicted: agent cache_write cached_input cost input kept
    debug permission decided: agent decision mode programs tool
    debug reminders placed: agent index kinds
    debug request measured: agent pruned_tokens round tokens window
    error error shown: agent code
    error request failed: code model ms retries status
    error turn ended: agent code conversation cost input ms outcome output turns
    info  MCP server skipped: reason server
    info  MCP server started: ms server tools
    info  MCP servers declared: names
    info  agents loaded: names
    info  background task: agent exit_code phase programs task
    info  configuration loaded: exists file variables
    info  file changed: agent change path
    info  hook called: ms point programs
    info  hook loaded: path point programs sandboxed
    info  instructions loaded: bytes kind name
    info  request answered: cache_write cached_input input model ms output retries
    info  sandbox chosen: layer reasons
    info  session opened: ignored mode model project trusted
    info  skills loaded: names
    info  sub-agent finished: agent model name outcome
    info  sub-agent started: agent model name
    info  tool call: agent call ms outcome programs tool
    info  turn ended: agent code conversation cost input ms outcome output turns
    info  turn started: agent conversation cwd model resumed
    warn  MCP server not started: code ms server
    warn  MCP server skipped: place reason server
    warn  agent skipped: line path reason
    warn  error shown: agent code reason
    warn  hook failed: ms point programs
    warn  request failed and is retried: attempt code delay_ms model status
    warn  tool call: agent call code ms outcome programs tool
    ");
}

/// A level has the events of the level above it, and no level below `debug` has others.
#[test]
fn log_levels_contain_each_other() {
    let [error, warn, info, debug, trace] = ["error", "warn", "info", "debug", "trace"]
        .map(|level| logged_events(&run_at_level(level)));
    let has_all = |wider: &str, narrower: &str| {
        let wider: BTreeSet<_> = wider.lines().collect();
        narrower.lines().all(|line| wider.contains(line))
    };
    assert!(has_all(&warn, &error) && has_all(&info, &warn), "{info}");
    assert!(has_all(&debug, &info) && has_all(&trace, &debug), "{trace}");
}

/// A long round in a small window: results are cleared, then messages archived.
#[test]
fn log_events_of_pruning_and_compaction() {
    let summary = Reply {
        times: Some(99),
        ..Reply::summary("The notes are being read.")
    };
    let summary = summary.when(When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    });
    let reads =
        (0..80).map(|number| Reply::call("read_file", json!({"path": format!("{number}.txt")})));
    let done = Reply {
        times: Some(9),
        ..Reply::text("Done.")
    };
    let replies = [summary].into_iter().chain(reads).chain([done]);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    for number in 0..80 {
        let lines = (0..40).map(|line| format!("note {number}.{line} is worth keeping\n"));
        rig.write(&format!("{number}.txt"), lines.collect::<String>());
    }
    let set = |key: &str| format!("models.\"mock/{MODEL}\".{key}");
    let window = set("context_window=16000");
    let output = set("max_output_tokens=4000");
    let ran = rig.task(&["--set", &window, "--set", &output, "read all of them"]);
    assert_eq!(ran.code(), 0, "{} {}", ran.result(), ran.stderr());
    let events = logged_events(&rig);
    let reductions: Vec<_> = events
        .lines()
        .filter(|line| {
            ["pruned", "compaction", "prefix"]
                .iter()
                .any(|part| line.contains(part))
        })
        .collect();
    insta::assert_snapshot!(reductions.join("\n"), @r"
    info  cached prefix broken: agent cause cost index tokens
    info  compaction finished: agent rounds
    info  compaction started: agent rounds
    info  context pruned: agent step tokens
    ");
}

#[test]
fn log_events_of_an_approval() {
    let command = "touch -d 2001-02-03 made";
    let arguments = json!({"command": command, "requires_approval": false});
    let replies = [
        Reply::call("execute_command", arguments),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed();
    terminal.press("y");
    terminal.until_text("Done.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    let shown = rig.run(&["logs", "--json"]).stdout();
    let lines = shown
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut asked = lines.filter(|line| line["message"] == "approval asked");
    let asked = asked.next().unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(asked["level"], "info");
    assert_eq!(
        (
            &asked["fields"]["tool"],
            &asked["fields"]["programs"],
            &asked["fields"]["answer"]
        ),
        (&json!("execute_command"), &json!("touch"), &json!("once")),
        "{asked}"
    );
    assert!(!shown.contains("2001-02-03"), "{shown}");
}
