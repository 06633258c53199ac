//! Projects of auto-coder: its commands, workflows, memory and conversations, as haft's users see
//! them.

use std::fs;
use std::os::unix::fs::symlink;

use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

fn trust(rig: &Rig) {
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

/// Returns the last message of a request that is not a reminder.
fn last_message(rig: &Rig, request: usize) -> String {
    let body: Value = rig.server.generation_requests()[request].json().unwrap();
    let messages = body["messages"].as_array().unwrap();
    let contents = messages.iter().rev().map(|message| &message["content"]);
    let mut texts = contents.map(|content| content.as_str().unwrap());
    let last = texts.find(|text| !text.starts_with("<system-reminder>"));
    last.unwrap().to_owned()
}

/// A reply to prompts that contain these words.
fn reply_to(words: &str, text: &str) -> Reply {
    Reply::text(text).when(When {
        last_contains: Some(words.into()),
        ..When::default()
    })
}

#[test]
fn commands_are_templates_and_run_nothing() {
    let rig = rig([Reply::text("Done.").times(2)]);
    rig.write(
        ".autocodercommands/run_it.md",
        "{# @var: tool, default: make, description: what runs #}\n\
         {% if path %}Run {{ tool }} {{ path }}.{% else %}Run {{ tool }}.{% endif %}\n\
         {% if query %}<query>{{ query }}</query>{% endif %}\n!`touch pwned`\n",
    );
    rig.write(".autocodercommands/tdd/plan.md", "# Plan\n\n{{ query }}\n");
    rig.write(
        ".autocodercommands/secret.md",
        "{% include '/etc/passwd' %}\n",
    );
    rig.write(
        ".autocodercommands/loop.md",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}\n",
    );
    symlink(
        "/etc/passwd",
        rig.project().join(".autocodercommands/link.md"),
    )
    .unwrap();
    assert_eq!(
        rig.run(&["commands", "list", "--json"]).json()["commands"],
        json!([]),
        "the folder is not trusted with these files"
    );
    trust(&rig);
    let listed = rig.screen(&["commands", "list"]);
    for text in [
        "run_it",
        "tdd:plan",
        "secret.md",
        "template not found",
        "loop.md",
        "takes too long",
    ] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    assert!(!listed.contains("root:"), "{listed}");
    let ran = rig.task(&["/run_it path='a b.sh' say {{ 1 }} !`touch pwned`"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(
        last_message(&rig, 0),
        "Run make a b.sh.\n<query>say {{ 1 }} !`touch pwned`</query>\n!`touch pwned`"
    );
    assert_eq!(rig.task(&["/tdd:plan the `parser`, it's slow"]).code(), 0);
    assert_eq!(last_message(&rig, 1), "# Plan\n\nthe `parser`, it's slow");
    assert!(!rig.project().join("pwned").exists());
    assert_eq!(rig.run(&["run", "/secret now"]).code(), 2);
}

const WORKFLOW: &str = "\
apiVersion: autocoder/v1
kind: SubagentWorkflow
metadata:
  name: other
  description: Find, then change
spec:
  globals:
    model: v3_chat
    product_mode: lite
  vars:
    area: src
  conversation:
    default_action: resume
  agents:
    - id: find
      path: finder.md
      runner: terminal
    - id: change
      path: ./.autocoderagents/coder.md
  steps:
    - id: find-files
      agent: find
      replicas: 2
      conversation:
        action: new
      with:
        user_input: FIND ${vars.query} in ${vars.area}, {{ as it is }}.
      outputs:
        found: \"${attempt_result}\"
    - id: change-files
      agent: change
      needs: [find-files]
      with:
        user_input: CHANGE what was found.
";

fn add_agent(rig: &Rig, file: &str, name: &str, role: &str) {
    let text = format!("---\nname: {name}\ndescription: Works\nmodel: v3_chat\n---\n{role}\n");
    rig.write(&format!(".autocoderagents/{file}.md"), text);
}

#[test]
fn workflow_runs_with_replicas_and_names_what_is_left_out() {
    let rig = rig([
        reply_to("FIND bees in lib, {{ as it is }}.", "a.py and {{ b.py }}").times(2),
        reply_to("CHANGE", "Changed."),
    ]);
    add_agent(&rig, "finder", "finder", "You find files.");
    add_agent(&rig, "coder", "programmer", "You write code.");
    rig.write(".autocoderworkflow/fix.yaml", WORKFLOW);
    trust(&rig);
    let ran = rig.run(&[
        "workflow",
        "run",
        "fix",
        "--input",
        "query=bees",
        "--input",
        "area=lib",
    ]);
    let shown = rig.mask(&ran);
    assert_eq!(ran.code(), 0, "{shown}");
    for text in [
        "Changed.",
        "`spec.agents.find.runner`, `spec.globals.product_mode` have no counterpart in haft and are left out",
        "haft does not know the model `v3_chat`; the steps `find_files`, `find_files_2`, `change_files` use `mock/gemini-3-scripted`",
        "the steps `change-files` continue a conversation in auto-coder",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let requests = rig.server.generation_requests();
    assert_eq!(requests.len(), 3);
    let systems: Vec<_> = requests
        .iter()
        .map(|request| format!("{}", request.decode().unwrap()))
        .collect();
    assert!(systems[0].contains("You find files.") && systems[1].contains("You find files."));
    assert!(systems[2].contains("You write code."), "{}", systems[2]);
    assert_eq!(
        last_message(&rig, 2),
        "CHANGE what was found.\n\n<step_output name=\"find_files\">\na.py and {{ b.py }}\n\na.py and {{ b.py }}\n</step_output>"
    );
}

#[test]
fn workflow_that_would_mean_something_else_is_refused() {
    let rig = rig([Reply::text("Never.")]);
    add_agent(&rig, "finder", "finder", "You find files.");
    add_agent(&rig, "coder", "coder", "You write code.");
    let files = [
        (
            "when",
            WORKFLOW.replace(
                "      needs: [find-files]\n",
                "      needs: [find-files]\n      when:\n        regex: \"\\e[31mred\"\n",
            ),
        ),
        (
            "path",
            WORKFLOW.replace("finder.md", "../../outside/finder.md"),
        ),
        ("gone", WORKFLOW.replace("agent: change", "agent: nobody")),
        (
            "many",
            WORKFLOW.replace("replicas: 2", "replicas: 1000000000"),
        ),
    ];
    for (name, text) in &files {
        rig.write(&format!(".autocoderworkflow/{name}.yaml"), text);
    }
    let untrusted = rig.run(&["workflow", "run", "when"]);
    assert_eq!(untrusted.code(), 2);
    assert!(
        untrusted.stderr().contains("haft trust"),
        "{}",
        untrusted.stderr()
    );
    trust(&rig);
    let mut told = String::new();
    for (name, _) in &files {
        told.push_str(&rig.screen(&["workflow", "run", name, "--input", "query=x"]));
    }
    for text in [
        "`when` of the step `change-files` has no counterpart",
        "`../../outside/finder.md` of the agent `find` is not a file of a folder for agents",
        "`spec.agents` has no agent with the id `nobody`",
        "`replicas` of the step `find-files` is 1000000000, which is not from 1 to 8",
    ] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(told.matches("-- exit 2").count(), files.len(), "{told}");
    assert!(rig.server.generation_requests().is_empty());
}

#[test]
fn libraries_of_every_memory_file_are_listed_as_they_are_sent() {
    let rig = rig([Reply::text("Done.")]);
    let packages = ".auto-coder/libs/llm_friendly_packages/github.com";
    for (library, text) in [
        ("a/flask", "Routes."),
        ("b/requests", "Sessions."),
        ("c/attrs", "Fields."),
    ] {
        rig.write(&format!("{packages}/{library}/README.md"), text);
    }
    rig.write(
        ".auto-coder/memory.json",
        r#"{"libs": {"flask": {}}, "current_files": {"files": []}}"#,
    );
    rig.write(
        ".auto-coder/memory/libs.json",
        r#"{"requests": {}, "../../../../etc": {}, "gone": {}}"#,
    );
    rig.write(
        ".auto-coder/plugins/chat-auto-coder/memory.json",
        r#"{"libs": ["c/attrs"]}"#,
    );
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.md"), "secret").unwrap();
    symlink(
        outside.path(),
        rig.project().join(packages).join("c/linked"),
    )
    .unwrap();
    let listed = rig.screen(&["lib", "list"]);
    for text in [
        "github.com/a/flask",
        "github.com/b/requests",
        "github.com/c/attrs",
        "auto-coder",
        "no library `gone`",
    ] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    assert!(!listed.contains("secret"), "{listed}");
    let docs = rig.run(&["lib", "docs", "requests"]).stdout();
    assert_eq!(docs, "# b/requests/README.md\n\nSessions.\n");
    let removed = rig.run(&["lib", "remove", "requests"]);
    assert_eq!(removed.code(), 2);
    assert!(
        removed.stderr().contains("auto-coder's memory"),
        "{}",
        removed.stderr()
    );
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let body: Value = rig.server.generation_requests()[0].json().unwrap();
    let sent = body.to_string();
    for text in ["Routes.", "Sessions.", "Fields."] {
        assert!(sent.contains(text), "{sent}");
    }

    let untrusted = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("x")]).unwrap(),
    );
    untrusted.write(&format!("{packages}/a/flask/README.md"), "Routes.");
    untrusted.write(".auto-coder/memory.json", r#"{"libs": {"flask": {}}}"#);
    assert_eq!(untrusted.run(&["lib", "list", "--json"]).json(), json!([]));
}

/// A conversation whose calls and results are XML in the text.
fn xml_conversation() -> Value {
    let messages = [
        ("user", "Fix it"),
        (
            "assistant",
            "I read it.\n<read_file>\n<path>a.py</path>\n</read_file>",
        ),
        (
            "user",
            "<tool_result tool_name='read_file' success='true'><message>Read.</message><content>print(1)</content></tool_result>",
        ),
        ("assistant", "It prints 1."),
        ("user", "And `<read_file>`?"),
        (
            "assistant",
            "<execute_command>\n<command>ls</command>\n<requires_approval>false</requires_approval>\n</execute_command>",
        ),
    ];
    let message = |(number, (role, content)): (usize, (&str, &str))| {
        json!({"role": role, "content": content, "timestamp": 1_794_884_721.0 + number as f64,
            "message_id": format!("{number}"), "metadata": {}})
    };
    let messages: Vec<_> = messages.into_iter().enumerate().map(message).collect();
    json!({"conversation_id": "c0ffee00-0000-4000-8000-000000000000", "name": "Fix it",
        "messages": messages, "metadata": {}, "version": 1})
}

#[test]
fn xml_conversation_is_imported_with_calls_and_rounds() {
    let rig = rig([Reply::text("Nothing runs again.")]);
    rig.write("talk.json", xml_conversation().to_string());
    let imported = rig.run(&["conversations", "import", "talk.json"]);
    assert_eq!(imported.code(), 0, "{}", imported.stderr());
    let again = rig.run(&["conversations", "import", "talk.json"]);
    assert_eq!(again.code(), 0, "{}", again.stderr());
    let exported = rig.run(&["conversations", "export", "c0ffee00"]).json();
    let messages = exported["messages"].as_array().unwrap();
    let kinds: Vec<_> = messages
        .iter()
        .map(|message| {
            let parts = message["content"].as_array();
            let kinds = parts
                .into_iter()
                .flatten()
                .map(|part| part["type"].as_str().unwrap());
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                kinds.collect::<Vec<_>>().join(" ")
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "user: ",
            "assistant: text tool_call",
            "tool: tool_result",
            "assistant: ",
            "user: ",
            "assistant: tool_call",
        ]
    );
    assert_eq!(
        messages[1]["content"][1]["arguments"],
        json!({"path": "a.py"})
    );
    assert_eq!(messages[2]["content"][0]["text"], "print(1)");
    let ran = rig.task(&["-r", "c0ffee00", "go on"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let body: Value = rig.server.generation_requests()[0].json().unwrap();
    let roles: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system")
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "assistant",
            "tool",
            "user"
        ]
    );
}
