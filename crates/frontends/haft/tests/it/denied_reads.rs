//! A file that may not be read stays unread through the tools that change files.

use std::process::Command;

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

const SECRET: &str = "first line\nthe password is hunter2\nlast line\n";

fn changing_calls() -> Vec<(&'static str, Value)> {
    let blocks = "<<<<<<< SEARCH\nfirst line\n=======\nother line\n>>>>>>> REPLACE";
    let moved = "*** Begin Patch\n*** Update File: secrets/key\n*** Move to: open.txt\n@@\n+added\n*** End Patch";
    let deleted = "*** Begin Patch\n*** Delete File: secrets/key\n*** End Patch";
    let edit = json!({"path": "secrets/key", "old_text": "first line", "new_text": "other line"});
    vec![
        ("edit_file", edit.clone()),
        (
            "edit_file",
            json!({"path": "alias", "old_text": "no such line", "new_text": "other line"}),
        ),
        (
            "replace_in_file",
            json!({"path": "secrets/key", "diff": blocks}),
        ),
        ("multi_edit", json!({"edits": [edit]})),
        ("apply_patch", json!({"patch": moved})),
        ("apply_patch", json!({"patch": deleted})),
        (
            "write_to_file",
            json!({"path": "secrets/key", "content": "x"}),
        ),
    ]
}

#[test]
fn edit_tools_neither_show_nor_move_a_denied_file() {
    for mode in ["accept-edits", "auto", "yolo"] {
        let calls = changing_calls();
        let replies = calls
            .iter()
            .map(|(tool, arguments)| Reply::calls([ScriptCall::new(*tool, arguments.clone())]));
        let rig = Rig::new(
            Api::Anthropic,
            Script::replies(replies.chain([Reply::text("Done.")])).unwrap(),
        );
        rig.write("secrets/key", SECRET);
        std::os::unix::fs::symlink(
            rig.project().join("secrets/key"),
            rig.project().join("alias"),
        )
        .unwrap();
        let ran = rig.run(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            mode,
            "--deny",
            "read_file(secrets/**)",
            "change it",
        ]);
        let sent = rig
            .server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap()
            .to_string();
        assert_eq!(
            rig.server.generation_requests().len(),
            calls.len() + 1,
            "{mode}: {}",
            ran.stderr()
        );
        assert!(!sent.contains("hunter2"), "{mode}: {sent}");
        assert_eq!(
            std::fs::read_to_string(rig.project().join("secrets/key")).unwrap(),
            SECRET,
            "{mode}"
        );
        assert!(!rig.project().join("open.txt").exists(), "{mode}");
    }
}

/// The sandbox hides the file, and not the versions that the repository keeps of it.
#[test]
fn git_asks_before_it_prints_denied_files_of_older_commits() {
    let lines = [
        "git log -p",
        "git log --oneline",
        "git show HEAD~1",
        "git status",
        "git diff HEAD~1 HEAD",
        "git diff --stat HEAD~1",
        "sh look.sh",
        "git log -p src/a.rs",
    ];
    let calls = lines.map(|line| {
        Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        )
    });
    let replies = calls.into_iter().chain([Reply::text("Done.")]);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    if !crate::sandbox::has_namespaces(&rig) {
        return;
    }
    rig.write("secrets/key", SECRET);
    rig.write("src/a.rs", "fn a() {}\n");
    rig.write("look.sh", "git show HEAD~1\n");
    let script = "git init -q && git add . && git commit -qm one && \
                  git rm -rq --cached secrets && git commit -qm two && git gc -q";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(rig.project())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "t")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "t@t")))
        .output()
        .unwrap();
    if !made.status.success() {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr));
    }
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "--deny",
        "read_file(secrets/**)",
        "look",
    ]);
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    let statuses: Vec<_> = results.iter().map(|result| &result["status"]).collect();
    let expected = [
        "error", "success", "error", "success", "error", "success", "error", "success",
    ];
    assert_eq!(statuses, expected, "{results:#?}");
    assert!(!ran.stdout().contains("hunter2"), "{}", ran.stdout());
}

#[test]
fn pattern_is_looked_up_only_while_no_task_can_change_files() {
    let search = || {
        Reply::call(
            "execute_command",
            json!({"command": "grep -r open *.txt", "requires_approval": false}),
        )
    };
    let start = Reply::call(
        "background_task",
        json!({"action": "start", "command": "sleep 600"}),
    );
    let replies = [search(), start, search(), Reply::text("Done.")];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    rig.write("secret.key", SECRET);
    rig.write("a.txt", "open text\n");
    let ran = rig.run(&[
        "run",
        "--permission-mode",
        "auto",
        "--deny",
        "read_file(secret.*)",
        "search it",
    ]);
    let results: Vec<_> = rig.server.generation_requests()[1..]
        .iter()
        .map(|request| request.decode().unwrap().messages.last().unwrap().clone())
        .map(|message| format!("{message:?}"))
        .collect();
    assert_eq!(results.len(), 3, "{}", ran.stderr());
    if !results[0].contains("open text") {
        // Only the namespace sandbox hides denied files.
        assert!(
            results[0].contains("needs the user's permission"),
            "{results:?}"
        );
        eprintln!("skipped: there is no namespace sandbox");
        return;
    }
    assert!(results[1].contains("was started"), "{results:?}");
    assert!(
        results[2].contains("needs the user's permission"),
        "{results:?}"
    );
}

/// The project is a folder of haft's settings, such as the one of agent files.
#[test]
fn project_among_settings_of_haft_is_not_changed_unasked() {
    let call = |name: &str, arguments| Reply::calls([ScriptCall::new(name, arguments)]);
    let calls = [
        call(
            "write_to_file",
            json!({"path": "new.md", "content": "planted"}),
        ),
        call("read_file", json!({"path": "mine.md"})),
        call("execute_command", json!({"command": "echo x >other.md"})),
        call(
            "execute_command",
            json!({"command": "touch t.md; rm -f mine.md"}),
        ),
        call(
            "execute_command",
            json!({"command": "python3 -c \"open('py.md','w').write('x')\""}),
        ),
        call("execute_command", json!({"command": "mv mine.md moved.md"})),
        call(
            "session_start",
            json!({"command": "cp mine.md copy.md; cat mine.md"}),
        ),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(calls).unwrap());
    let agents = rig.home().join("agents");
    std::fs::create_dir(&agents).unwrap();
    std::fs::write(agents.join("mine.md"), "my own agent").unwrap();
    let ran = rig
        .command(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "auto",
            "hello",
        ])
        .current_dir(&agents)
        .output()
        .unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(stdout.contains("Done."), "{stdout}");
    assert!(!stdout.contains("my own agent"), "{stdout}");
    let names: Vec<_> = std::fs::read_dir(&agents)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["mine.md"]);
}

/// The settings of haft lie in an added folder, and in the project behind a link. A hook that the
/// model adds there would run outside the sandbox.
#[test]
fn settings_of_haft_in_the_project_are_not_changed_unasked() {
    for mode in ["accept-edits", "auto"] {
        let settings = "[[hooks.SessionStart]]\nhooks = [{ command = \"touch PWNED\" }]\n";
        let call = |path: &str| {
            let arguments = json!({"path": path, "content": settings});
            Reply::calls([ScriptCall::new("write_to_file", arguments)])
        };
        let rig = Rig::new(Api::Anthropic, Script::replies([]).unwrap());
        let calls = [
            call(&rig.home().join("config.toml").display().to_string()),
            call("config.toml"),
            call(&rig.home().join("agents/z.md").display().to_string()),
            Reply::calls([ScriptCall::new(
                "execute_command",
                json!({"command": "cat config.toml; echo x >>config.toml"}),
            )]),
            Reply::text("Done."),
        ];
        let rig = rig.with_script(Script::replies(calls).unwrap(), Api::Anthropic);
        let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        // As with a program that keeps the settings of other programs in one folder.
        rig.write("config.toml", &config);
        std::fs::remove_file(rig.home().join("config.toml")).unwrap();
        std::os::unix::fs::symlink(
            rig.project().join("config.toml"),
            rig.home().join("config.toml"),
        )
        .unwrap();
        let home = rig.home().display().to_string();
        let ran = rig.run(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            mode,
            "--add-dir",
            &home,
            "hello",
        ]);
        assert!(ran.stdout().contains("Done."), "{}", ran.stdout());
        let kept = std::fs::read_to_string(rig.project().join("config.toml")).unwrap();
        assert_eq!(kept, config, "{mode}: {}", ran.stdout());
        assert!(!rig.home().join("agents/z.md").exists());
        assert!(!ran.stdout().contains("[providers"), "{}", ran.stdout());
    }
}
