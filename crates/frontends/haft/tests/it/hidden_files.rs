//! Programs below `/tmp`, which is private in the sandbox: those that a user configured are found,
//! and for every other one the error names the hidden file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;

/// A confined rig, and a folder below `/tmp` that is neither its project nor its home. `None` if no
/// sandbox is available.
fn confined_rig(replies: impl IntoIterator<Item = Reply>) -> Option<(Rig, TempDir)> {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let folder = tempfile::Builder::new()
        .prefix("programs ")
        .tempdir_in("/tmp")
        .unwrap();
    has_namespaces(&rig).then_some((rig, folder))
}

fn write_program(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_owned()
}

fn append_config(rig: &Rig, text: &str) {
    let file = rig.home().join("config.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + text).unwrap();
}

fn run_auto(rig: &Rig, further: &[&str]) -> Ran {
    let ran = rig.run(
        &[
            &[
                "run",
                "--output-format",
                "stream-json",
                "--permission-mode",
                "auto",
            ],
            further,
            &["go"],
        ]
        .concat(),
    );
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    ran
}

fn stop_hook(command: &str) -> String {
    format!("[[hooks.stop]]\nhooks = [{{ command = '''{command}''' }}]\n")
}

fn messages(ran: &Ran) -> String {
    let events = ran.events();
    let told = events
        .iter()
        .filter(|event| event["type"] == "error" || event["type"] == "notice");
    told.map(|event| event["message"].as_str().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

fn results(ran: &Ran) -> Vec<Value> {
    ran.events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect()
}

fn execute(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

#[test]
fn hook_below_tmp_is_found_with_its_neighbors() {
    let Some((rig, folder)) = confined_rig([Reply::text("Done.")]) else {
        return;
    };
    let hook = write_program(
        &folder.path().join("bin/hook.sh"),
        "#!/bin/sh\n. \"$(dirname \"$0\")/../lib/part.sh\"\n",
    );
    write_program(
        &folder.path().join("lib/part.sh"),
        "touch ran; touch \"$(dirname \"$0\")/written\"\n",
    );
    append_config(&rig, &stop_hook(&format!("'{}'", hook.display())));
    let ran = run_auto(&rig, &[]);
    assert!(rig.project().join("ran").exists(), "{}", messages(&ran));
    assert!(
        !folder.path().join("bin/written").exists(),
        "it cannot be written"
    );
}

#[test]
fn hook_whose_interpreter_or_target_is_below_tmp_is_found() {
    let Some((rig, folder)) = confined_rig([Reply::text("Done.")]) else {
        return;
    };
    // The kernel takes no spaces in the name of an interpreter.
    let plain = tempfile::Builder::new()
        .prefix("interpreter-")
        .tempdir_in("/tmp")
        .unwrap();
    let interpreter = plain.path().join("sh");
    symlink("/bin/sh", &interpreter).unwrap();
    write_program(
        &rig.project().join("hook.sh"),
        &format!("#!{}\ntouch ran\n", interpreter.display()),
    );
    symlink(
        write_program(
            &folder.path().join("target.sh"),
            "#!/bin/sh\ntouch followed\n",
        ),
        rig.project().join("link.sh"),
    )
    .unwrap();
    append_config(
        &rig,
        &format!("{}{}", stop_hook("./hook.sh"), stop_hook("./link.sh")),
    );
    let ran = run_auto(&rig, &[]);
    assert!(
        rig.project().join("ran").exists() && rig.project().join("followed").exists(),
        "{}",
        messages(&ran)
    );
}

#[test]
fn hook_in_a_hidden_folder_is_named_with_a_remedy() {
    let Some((rig, _folder)) = confined_rig([Reply::text("Done.")]) else {
        return;
    };
    let hook = write_program(
        &rig.home().canonicalize().unwrap().join("hooks/hook.sh"),
        "#!/bin/sh\ntouch ran\n",
    );
    append_config(&rig, &stop_hook(&hook.display().to_string()));
    let told = messages(&run_auto(&rig, &[]));
    let hidden = format!("`{}` is hidden by the sandbox", hook.display());
    assert!(
        told.contains(&hidden) && told.contains("`[sandbox] readable`"),
        "{told}"
    );
    assert!(told.contains("`sandbox = false`"), "{told}");
    assert!(!rig.project().join("ran").exists());
}

#[test]
fn server_below_tmp_is_started_confined() {
    let call = Reply::call(
        "use_mcp_tool",
        json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
    );
    let Some((rig, folder)) = confined_rig([call, Reply::text("Done.")]) else {
        return;
    };
    let server = write_program(&folder.path().join("server.sh"), SHELL_MCP_SERVER);
    let entry = json!({"mcpServers": {"s": {"command": "/bin/sh", "args": [server]}}});
    rig.write(".mcp.json", entry.to_string());
    append_config(&rig, "[permissions]\nallow = [\"mcp__s\"]\n");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = run_auto(&rig, &[]);
    assert_eq!(results(&ran)[0]["status"], "success", "{}", ran.stdout());
    assert!(
        messages(&ran).contains("runs confined"),
        "{}",
        messages(&ran)
    );
}

#[test]
fn server_in_a_hidden_folder_is_named() {
    let call = || {
        Reply::call(
            "use_mcp_tool",
            json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
        )
    };
    let Some((rig, _folder)) =
        confined_rig([call(), Reply::text("Done."), call(), Reply::text("Done.")])
    else {
        return;
    };
    let server = write_program(
        &rig.home().canonicalize().unwrap().join("servers/server"),
        "#!/bin/sh\n",
    );
    for entry in [
        json!({"command": server}),
        json!({"command": "/bin/sh", "args": [server]}),
    ] {
        rig.write(".mcp.json", json!({"mcpServers": {"s": entry}}).to_string());
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        if !config.contains("mcp__s") {
            append_config(&rig, "[permissions]\nallow = [\"mcp__s\"]\n");
        }
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let result = results(&run_auto(&rig, &[])).remove(0);
        let hidden = format!("`{}` is hidden by the sandbox", server.display());
        assert!(
            result["text"].as_str().unwrap().contains(&hidden),
            "{result}"
        );
    }
}

#[test]
fn command_that_names_a_hidden_program_gets_an_explanation() {
    let folder = tempfile::Builder::new()
        .prefix("programs-")
        .tempdir_in("/tmp")
        .unwrap();
    let tool = write_program(&folder.path().join("tool"), "#!/bin/sh\necho it works\n");
    let shown = tool.display().to_string();
    let wait = json!({"action": "monitor", "task_id": "t1", "timeout": 300});
    let Some((rig, _other)) = confined_rig([
        execute(&shown),
        execute(&format!("cd / && python3 {shown} || exit 3")),
        // The line names a script of the project; only the script names the program.
        execute("sh ./calls.sh"),
        Reply::call("session_start", json!({"command": shown, "timeout": 300})),
        Reply::call(
            "background_task",
            json!({"action": "start", "command": shown}),
        ),
        Reply::call("background_task", wait),
        execute("true; exit 5"),
        Reply::text("Done."),
    ]) else {
        return;
    };
    rig.write("calls.sh", format!("exec {shown}\n"));
    let ran = run_auto(&rig, &[]);
    let results = results(&ran);
    let texts: Vec<_> = results
        .iter()
        .map(|result| result["text"].as_str().unwrap())
        .collect();
    let hidden =
        format!("[`{shown}` is hidden by the sandbox, in which `/tmp` is a private folder. ");
    for at in [0, 1, 2, 3, 5] {
        assert!(
            texts[at].contains(&hidden) && texts[at].contains("`[sandbox] readable`"),
            "{at}: {}",
            texts[at]
        );
    }
    assert!(!texts[6].contains("hidden"), "{}", texts[6]);
}

#[test]
fn readable_paths_and_the_path_variable_show_programs_below_tmp() {
    let folder = tempfile::Builder::new()
        .prefix("programs-")
        .tempdir_in("/tmp")
        .unwrap();
    write_program(
        &folder.path().join("bin/tool-below-tmp"),
        "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/text\"\n",
    );
    write_program(&folder.path().join("lib/text"), "it works\n");
    let single = write_program(&folder.path().join("single"), "#!/bin/sh\necho it works\n");
    let write = format!("touch '{}'", folder.path().join("written").display());

    let Some((rig, _other)) = confined_rig([
        execute("tool-below-tmp"),
        execute(&write),
        Reply::text("Done."),
    ]) else {
        return;
    };
    let path = format!(
        "{}:{}",
        folder.path().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = rig.command(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ]);
    let found = results(&Ran(command.env("PATH", path).output().unwrap()));
    assert!(
        found[0]["text"].as_str().unwrap().contains("it works"),
        "{}",
        found[0]
    );
    assert_eq!(found[1]["status"], "error", "{}", found[1]);

    let Some((rig, _other)) =
        confined_rig([execute(&single.display().to_string()), Reply::text("Done.")])
    else {
        return;
    };
    append_config(
        &rig,
        &format!(
            "[sandbox]\nreadable = [\"{}\", \"/tmp/is not there\"]\n",
            single.display()
        ),
    );
    let found = results(&run_auto(&rig, &[]));
    assert!(
        found[0]["text"].as_str().unwrap().contains("it works"),
        "{}",
        found[0]
    );
    let status = rig.run(&["sandbox", "status"]).stdout();
    let line = status
        .lines()
        .find(|line| line.starts_with("also readable: "))
        .unwrap_or_else(|| panic!("{status}"));
    assert!(line.ends_with(&single.display().to_string()), "{line}");
}

#[test]
fn inline_command_error_names_a_hidden_program() {
    let Some((rig, folder)) = confined_rig([Reply::text("Done.")]) else {
        return;
    };
    let tool = write_program(&folder.path().join("tool"), "#!/bin/sh\n");
    rig.write(
        ".haft/commands/show.md",
        format!("Look: !`'{}'`\n", tool.display()),
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&["run", "--permission-mode", "auto", "/show"]);
    assert_eq!(ran.code(), 2, "{}", ran.stdout());
    assert!(
        ran.stderr()
            .contains(&format!("`{}` is hidden by the sandbox", tool.display())),
        "{}",
        ran.stderr()
    );
}
