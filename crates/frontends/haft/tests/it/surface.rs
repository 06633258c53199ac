//! Commands other than `haft run`.

use std::process::Stdio;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{CLASSIC, Rig};

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    )
}

#[test]
fn demo_fixes_a_real_bug_on_every_protocol() {
    for api in Api::ALL {
        let ran = rig().run(&["demo", "--api", api.name()]);
        let out = ran.stdout();
        assert_eq!(ran.code(), 0, "{api}: {out}{}", ran.stderr());
        let (before, after) = out.split_once("The test now says").unwrap();
        assert!(before.contains("FAIL greet.sh Ada Lovelace"), "{out}");
        assert!(
            !after.contains("FAIL") && after.contains("ok   greet.sh Ada Lovelace"),
            "{out}"
        );
        for layer in ["system", "history", "current"] {
            assert!(
                after.contains(layer),
                "the budget table has a row for {layer}: {out}"
            );
        }
    }
}

#[test]
fn demo_writes_no_file_into_the_home() {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    std::fs::remove_file(rig.home().join("config.toml")).unwrap();
    assert_eq!(rig.run(&["demo"]).code(), 0);
    assert_eq!(std::fs::read_dir(rig.home()).unwrap().count(), 0);
}

#[test]
fn conversations_list_show_and_export_print_a_conversation() {
    let rig = rig();
    rig.task(&["say hello\nplease"]);
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(
        (&listed[0]["name"], &listed[0]["messages"]),
        (&json!("say hello"), &json!(2))
    );
    assert_eq!(
        listed[0]["namespace"],
        json!(rig.project().display().to_string())
    );
    let table = rig.run(&["conversations", "list"]).stdout();
    assert!(
        table.starts_with("ID") && table.contains("say hello"),
        "{table}"
    );
    let shown = rig.run(&["conversations", "show"]).stdout();
    assert!(
        shown.contains("    say hello\n    please\n") && shown.contains("    Hello.\n"),
        "{shown}"
    );
    let export = rig.export();
    let keys: Vec<_> = export.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "id",
            "name",
            "description",
            "created_at",
            "updated_at",
            "metadata",
            "messages"
        ]
    );
    assert_eq!(export["messages"][1]["content"], "Hello.");
}

#[test]
fn models_list_and_config_show_print_values_and_origins() {
    let rig = rig();
    let models = rig.run(&["models", "list", "--json"]).json();
    assert_eq!(
        (&models[0]["main"], &models[0]["context_window"]),
        (&json!(true), &json!(200_000))
    );
    assert!(rig.run(&["models"]).stdout().contains("(main)"));
    let shown = rig
        .run(&["config", "show", "--origin", "--set", "retry.attempts=7"])
        .stdout();
    let line = |key: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_else(|| panic!("{key}: {shown}"))
            .to_owned()
    };
    assert!(line("retry.attempts = 7").ends_with("# flag --set"));
    assert!(line("retry.max_delay_ms").ends_with("# built-in"));
    assert!(line("model = ").ends_with("config.toml"));
}

#[test]
fn completions_offer_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let rig = rig();
        let script = rig.run(&["completions", shell]).stdout();
        assert!(
            script.contains("HAFT_COMPLETE") && script.contains("haft"),
            "{shell}: {script}"
        );
        // The completions that the script requests, as the shell would run it.
        let mut asked = rig.command(&["--", "haft", ""]);
        asked
            .env("HAFT_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "1")
            .env("_CLAP_IFS", "\n");
        let offered = String::from_utf8(asked.output().unwrap().stdout).unwrap();
        assert!(
            offered
                .lines()
                .any(|line| line.starts_with("conversations")),
            "{shell}: {offered}"
        );
    }
}

#[test]
fn closed_standard_output_is_no_error() {
    let mut child = rig()
        .command(&["completions", "bash"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn data_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let rig = rig();
    rig.task(&["hi"]);
    let mode = |path: &str| {
        std::fs::metadata(rig.home().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("data"), mode("data/conversations.db")),
        (0o700, 0o600)
    );
}

#[test]
fn tools_list_reports_source_and_tokens() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("Hello.")]).unwrap(),
    );
    let listed = rig.run(&["tools", "list", "--json"]).json();
    let of = |name: &str| {
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone()
    };
    let read = of("read_file");
    assert_eq!(
        (&read["group"], &read["access"], &read["source"]),
        (&json!("files"), &json!("reads"), &json!("built-in"))
    );
    assert_eq!(
        (&read["aliases"], &read["offered"]),
        (&json!(["Read"]), &json!(true))
    );
    assert!(read["tokens"].as_u64().unwrap() > 100);
    let minimal = rig
        .run(&[
            "tools",
            "list",
            "--json",
            "--set",
            "tools.offer=[\"minimal\"]",
        ])
        .json();
    let offered = minimal
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["offered"] == true)
        .count();
    assert_eq!(offered, 7);
    let shown = rig.run(&["tools", "show", "Bash"]).stdout();
    assert!(
        shown.starts_with("execute_command (running, runs, built-in)\nAlso called Bash"),
        "{shown}"
    );
    let unknown = rig.run(&["tools", "show", "nothing"]);
    assert_eq!(unknown.code(), 2);
}

/// Models that were trained on other agents call tools by the names they know.
#[test]
fn classic_tool_names_work_and_results_are_compressed() {
    let content: String = (1..=1000).map(|line| format!("line {line}\n")).collect();
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([
            Reply::call("Write", json!({"file_path": "a.txt", "content": content})),
            Reply::call(
                "Read",
                json!({"file_path": "a.txt", "offset": 2, "limit": 900}),
            ),
            Reply::text("Done."),
            Reply::text("Still done."),
        ])
        .unwrap(),
    );
    let rig = rig.with(CLASSIC);
    assert_eq!(rig.task(&["write and read"]).code(), 0);
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        content
    );
    assert_eq!(rig.task(&["-c", "and now?"]).code(), 0);
    let last = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .json()
        .unwrap();
    let results: Vec<_> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["role"] == "tool")
        .collect();
    let compressed = results[1]["content"].as_str().unwrap();
    let read: Value = serde_json::from_str(compressed.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&read["data"]["path"], &read["data"]["start_line"]),
        (&json!("a.txt"), &json!(2)),
        "{read}"
    );
    let stats = rig.run(&["tools", "stats", "--json"]).json();
    assert_eq!(
        (
            &stats["read_file"]["calls"],
            &stats["write_to_file"]["errors"]
        ),
        (&json!(1), &json!(0)),
        "{stats}"
    );
}

#[test]
fn tool_profile_limits_the_offered_tools() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("Hello.")]).unwrap(),
    );
    let offered = |arguments: &[&str]| {
        assert_eq!(rig.task(arguments).code(), 0);
        let seen = rig
            .server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap();
        seen.tools
            .into_iter()
            .map(|tool| tool.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        offered(&["hi", "--allowed-tools", "Read,attempt_completion"]),
        ["read_file", "attempt_completion"]
    );
    assert!(offered(&["hi", "--allowed-tools", "none"]).is_empty());
    assert!(
        !offered(&["hi", "--allowed-tools", "read-only"]).contains(&"write_to_file".to_owned())
    );
    let own = [
        "--set",
        "tools.profiles={ mine = [\"dialogue\", \"read_file\"] }",
        "--set",
        "tools.offer=[\"mine\"]",
    ];
    let mine = offered(&[&["hi"][..], &own].concat());
    assert_eq!(mine, ["read_file", "attempt_completion"]);
    let unknown = rig.task(&["hi", "--allowed-tools", "files,nothing"]);
    assert_eq!(unknown.code(), 2);
    assert!(
        unknown
            .stderr()
            .contains("`nothing` is not a tool, a group or a profile"),
        "{}",
        unknown.stderr()
    );
}

#[test]
fn tools_page_is_up_to_date() {
    let page = rig().run(&["tools", "list", "--markdown"]).stdout();
    let committed = include_str!("../../../../../docs/tools.md");
    assert!(
        page == committed,
        "run `cargo run -p haft -- tools list --markdown > docs/tools.md`"
    );
}
