//! The advice in refusals of headless runs: every way it names allows the call, and none is the
//! mode without a sandbox.

use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig, haft};
use crate::sandbox::has_namespaces;

const ALLOWED_WITH: &str = "The user can allow it with ";

fn rig_for(tool: &str, arguments: &Value) -> Rig {
    let replies = [
        Reply::call(tool, arguments.clone()),
        Reply::text("So be it."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::turns(replies).unwrap());
    rig.write("a.txt", "one\n");
    rig
}

/// Returns the result of the only call of a run.
fn only_tool_result(ran: &Ran) -> Value {
    let events = ran.events();
    events
        .into_iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap_or_else(|| panic!("{}", ran.stderr()))
}

fn is_refused(result: &Value) -> bool {
    ["permission_denied", "outside_workspace"]
        .iter()
        .any(|code| result["error"]["code"] == *code)
}

/// Returns the ways to allow the call that a refusal names, each without its backticks.
fn advised_ways(result: &Value) -> Vec<String> {
    let text = result["text"].as_str().unwrap();
    assert!(!text.contains("yolo"), "{text}");
    let ways = text
        .split(ALLOWED_WITH)
        .nth(1)
        .unwrap_or_else(|| panic!("{text}"));
    // A rule may contain backticks, but none of these does.
    ways.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Runs the task with the flags of `way`, or after its command, as a shell parses them.
fn run_with_advice(rig: &Rig, way: &str) -> Ran {
    let plain = rig.command(&[]);
    let shell = |line: String| {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &line, "sh"])
            .arg(haft())
            .current_dir(rig.project())
            .env_clear();
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        Ran(command.output().unwrap())
    };
    let flags = match way.strip_prefix("haft ") {
        Some(line) => {
            let added = shell(format!("\"$1\" {line}"));
            assert_eq!(added.code(), 0, "{way}: {}", added.stderr());
            ""
        }
        None => way,
    };
    shell(format!("\"$1\" run --output-format stream-json {flags} go"))
}

#[test]
fn refusals_name_ways_that_allow_the_call() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap().join("with space");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("b.txt"), "two\n").unwrap();
    let out = |name: &str| outside.join(name).display().to_string();
    let command = |line: &str| json!({"command": line, "requires_approval": false});
    let edits = "--permission-mode accept-edits";
    let auto = "--permission-mode auto";
    let added = format!("--add-dir '{}'", outside.display());
    let calls: [(&str, Value, Vec<String>); 8] = [
        (
            "write_to_file",
            json!({"path": "new.txt", "content": "x\n"}),
            vec![
                "haft permissions add \"write_to_file(new.txt)\"".into(),
                edits.into(),
            ],
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "one", "new_text": "eins"}),
            vec![
                "haft permissions add \"edit_file(a.txt)\"".into(),
                edits.into(),
            ],
        ),
        (
            "execute_command",
            command("touch made"),
            vec![
                "haft permissions add \"execute_command(touch made)\"".into(),
                auto.into(),
            ],
        ),
        (
            "execute_command",
            command("touch 'it is $HOME'"),
            vec![
                r"haft permissions add 'execute_command(touch '\''it is $HOME'\'')'".into(),
                auto.into(),
            ],
        ),
        (
            "execute_command",
            command("python3 -m compileall -q ."),
            vec![
                "haft permissions add \"execute_command(python3 -m compileall -q .)\"".into(),
                auto.into(),
            ],
        ),
        (
            "execute_command",
            command("echo x > made"),
            vec![auto.into()],
        ),
        (
            "read_file",
            json!({"path": out("b.txt")}),
            vec![
                format!("haft permissions add \"read_file({})\"", out("b.txt")),
                added.clone(),
            ],
        ),
        (
            "write_to_file",
            json!({"path": out("c.txt"), "content": "x\n"}),
            vec![
                format!("haft permissions add \"write_to_file({})\"", out("c.txt")),
                format!("{added} {edits}"),
            ],
        ),
    ];
    for (tool, arguments, expected) in calls {
        let rig = rig_for(tool, &arguments);
        if !has_namespaces(&rig) {
            return;
        }
        let refused = only_tool_result(&rig.run(&["run", "--output-format", "stream-json", "go"]));
        assert!(is_refused(&refused), "{refused}");
        assert_eq!(advised_ways(&refused), expected, "{refused}");
        for way in expected {
            let rig = rig_for(tool, &arguments);
            let ran = only_tool_result(&run_with_advice(&rig, &way));
            assert!(!is_refused(&ran), "{way}: {ran}");
        }
    }
}

#[test]
fn refusals_in_mode_plan_name_ways_that_allow_the_call() {
    let command = |line: &str| json!({"command": line, "requires_approval": false});
    let edits = "--permission-mode accept-edits";
    let auto = "--permission-mode auto";
    let calls: [(&str, Value, &str, &[&str]); 4] = [
        (
            "write_to_file",
            json!({"path": "new.txt", "content": "x\n"}),
            "`write_to_file` changes files, and this run may only read",
            &[
                "--allow \"write_to_file(new.txt)\" --permission-mode ask",
                edits,
            ],
        ),
        (
            "execute_command",
            command("touch made"),
            "`execute_command` runs commands, and this run may only read",
            &[
                "--allow \"execute_command(touch made)\" --permission-mode ask",
                auto,
            ],
        ),
        (
            "execute_command",
            command("echo x > made"),
            "`execute_command` runs commands, and this run may only read",
            &[auto],
        ),
        (
            "execute_command",
            command("ls"),
            "`execute_command` runs commands, and this run may only read",
            &["--permission-mode ask"],
        ),
    ];
    let plan = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "plan",
        "go",
    ];
    for (tool, arguments, reason, expected) in calls {
        let rig = rig_for(tool, &arguments);
        if !has_namespaces(&rig) {
            return;
        }
        let refused = only_tool_result(&rig.run(&plan));
        assert!(is_refused(&refused), "{refused}");
        let text = refused["text"].as_str().unwrap();
        assert!(text.contains(reason), "{text}");
        assert_eq!(advised_ways(&refused), expected, "{refused}");
        for way in expected {
            let rig = rig_for(tool, &arguments);
            let ran = only_tool_result(&run_with_advice(&rig, way));
            assert!(!is_refused(&ran), "{way}: {ran}");
        }
    }
}

#[test]
fn refusals_name_the_terminal_if_no_rule_allows_the_call() {
    let calls = [
        (
            "write_to_file",
            json!({"path": ".git/hooks/pre-commit", "content": "x\n"}),
        ),
        (
            "execute_command",
            json!({"command": "touch made", "requires_approval": true}),
        ),
        (
            "execute_command",
            json!({"command": "touch made", "sandbox": "outside"}),
        ),
    ];
    for (tool, arguments) in calls {
        let rig = rig_for(tool, &arguments);
        if !has_namespaces(&rig) {
            return;
        }
        let refused = only_tool_result(&rig.run(&["run", "--output-format", "stream-json", "go"]));
        assert_eq!(
            advised_ways(&refused),
            ["haft", "haft run --ask"],
            "{refused}"
        );
    }
}

#[cfg(feature = "mcp")]
#[test]
fn refusals_of_server_tools_name_their_rule() {
    let arguments = json!({"server_name": "s", "tool_name": "show", "arguments": {}});
    let rig = rig_for("use_mcp_tool", &arguments);
    crate::mcp::add_shell_server(&rig);
    let refused = only_tool_result(&rig.run(&["run", "--output-format", "stream-json", "go"]));
    let way = "haft permissions add \"mcp__s__show\"";
    assert_eq!(advised_ways(&refused), [way], "{refused}");
    let rig = rig_for("use_mcp_tool", &arguments);
    crate::mcp::add_shell_server(&rig);
    let ran = only_tool_result(&run_with_advice(&rig, way));
    assert!(!is_refused(&ran), "{ran}");
}

#[test]
fn refusals_omit_modes_that_do_not_help() {
    let arguments = json!({"command": "touch made", "requires_approval": false});
    let rig = rig_for("execute_command", &arguments).with([("HAFT_SANDBOX__MODE", "off")]);
    let refused = only_tool_result(&rig.run(&["run", "--output-format", "stream-json", "go"]));
    assert_eq!(
        advised_ways(&refused),
        ["haft permissions add \"execute_command(touch made)\""],
        "{refused}"
    );
}

/// Returns all values in message files and in the text files of sources that contain `yolo`.
fn messages_naming_yolo() -> Vec<String> {
    let frontends = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut look = |path: &std::path::Path| {
        let text = std::fs::read_to_string(path).unwrap();
        // Keys may contain the word.
        let value = |line: &&str| {
            line.split_once(" = ")
                .map_or(*line, |(_, value)| value)
                .contains("yolo")
        };
        found.extend(text.lines().filter(value).map(str::to_owned));
    };
    for folder in [
        "messages/messages/en",
        "messages/messages/zh-CN",
        "haft/messages/en",
        "haft/messages/zh-CN",
        "inspect/messages/en",
        "inspect/messages/zh-CN",
        "serve/messages/en",
        "serve/messages/zh-CN",
        "tui/messages/en",
        "tui/messages/zh-CN",
        "worker/messages/en",
        "worker/messages/zh-CN",
    ] {
        for file in std::fs::read_dir(frontends.join(folder))
            .unwrap()
            .map(|file| file.unwrap().path())
        {
            look(&file);
        }
    }
    for file in text_files_of_sources() {
        look(&file);
    }
    found
}

/// Returns the `.txt` files in the `src` folders of all crates.
fn text_files_of_sources() -> Vec<std::path::PathBuf> {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(&crates).build() {
        let path = entry.unwrap().into_path();
        let inside = path.strip_prefix(&crates).unwrap();
        if path.extension().is_some_and(|ending| ending == "txt")
            && inside.components().any(|part| part.as_os_str() == "src")
        {
            found.push(path);
        }
    }
    let names_flags = |path: &std::path::PathBuf| path.ends_with("cli/foreign_flags.txt");
    assert!(found.iter().any(names_flags), "{found:?}");
    found
}

#[test]
fn messages_do_not_recommend_yolo() {
    let found: Vec<_> = messages_naming_yolo();
    // This message refuses the mode.
    assert!(
        found.iter().all(|line| line.starts_with("task-yolo = ")),
        "{found:#?}"
    );
    assert_eq!(found.len(), 2, "in both languages: {found:#?}");
    let describes = [
        "(permission mode `yolo`)",
        "in permission mode `yolo`",
        "\"yolo\"",
        "-yolo\"",
        "-yolo-refused\"",
        "unless_yolo(",
    ];
    for source in crate::budgets::sources()
        .into_iter()
        .filter(|source| !source.path.contains("test"))
    {
        // Unit tests are at the end of a file.
        let text = source
            .text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for line in text
            .lines()
            .filter(|line| line.contains("yolo") && line.contains('"'))
        {
            let is_comment = line.trim_start().starts_with("//");
            assert!(
                is_comment || describes.iter().any(|text| line.contains(text)),
                "{}: {line}",
                source.path
            );
        }
    }
}
