//! Commits from inside the sandbox under a rule: they succeed without approval, while hooks,
//! configuration and programs stay blocked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;
use crate::terminal::Terminal;

fn run_command(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": line, "requires_approval": false }),
    )
}

fn git(rig: &Rig, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let ran = Command::new("git")
        .args(identity)
        .args(arguments)
        .current_dir(rig.project())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap()
}

/// A repository with a commit and uncommitted work, a model that runs `lines`, and a rule that
/// allows commits.
fn rig(lines: &[&str]) -> Rig {
    let replies = lines
        .iter()
        .map(|line| run_command(line))
        .chain([Reply::text("Done.").times(2)]);
    let rig = Rig::untrusted(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}\n[permissions]\nallow = [\"execute_command(git commit:*)\"]\n"
    ));
    rig.write("a.txt", "one\n");
    git(&rig, &["init", "--quiet"]);
    // The home of a test is also haft's own folder, which is hidden inside the sandbox.
    append_git_config(
        &rig,
        "[user]\n\tname = Someone\n\temail = someone@example.com\n",
    );
    git(&rig, &["add", "."]);
    git(&rig, &["commit", "--quiet", "-m", "first"]);
    rig.write("a.txt", "two\n");
    rig.write("new.txt", "new\n");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    rig
}

fn results(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result");
    events
        .map(|event| (text(&event["status"]), text(&event["text"])))
        .collect()
}

fn run_commit_task(rig: &Rig) -> Vec<(String, String)> {
    results(&rig.run(&["run", "--output-format", "stream-json", "commit it"]))
}

fn subjects(rig: &Rig) -> Vec<String> {
    git(rig, &["log", "--format=%s"])
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Writes a program that leaves a marker in the project.
fn write_marker_script(rig: &Rig, at: &str) {
    rig.write(at, "#!/bin/sh\ntouch PWNED\ncat\n");
    fs::set_permissions(rig.project().join(at), fs::Permissions::from_mode(0o755)).unwrap();
}

fn append_git_config(rig: &Rig, text: &str) {
    let at = rig.project().join(".git/config");
    fs::write(&at, fs::read_to_string(&at).unwrap() + text).unwrap();
}

#[test]
fn git_commit_succeeds_unattended_under_its_rule() {
    for lines in [
        &["git add -A && git commit -m 'second'"][..],
        &["git add .", "git commit -q -m second", "git status --short"],
        &["git add -A; git commit -F - <<'EOF'\nsecond\n\nBecause.\nEOF\ngit log -1 --oneline"],
    ] {
        let rig = rig(lines);
        if !has_namespaces(&rig) {
            return;
        }
        let results = run_commit_task(&rig);
        assert!(
            results.iter().all(|(status, _)| status == "success"),
            "{lines:?}: {results:?}"
        );
        assert_eq!(subjects(&rig), ["second", "first"], "{results:?}");
        assert_eq!(git(&rig, &["log", "-1", "--format=%an"]), "Someone\n");
        assert_eq!(
            git(&rig, &["status", "--short"]),
            "",
            "nothing is left of the covers, and all is committed"
        );
    }
}

#[test]
fn git_commit_fails_without_the_rule() {
    let rig = rig(&["git add -A && git commit -m second"]);
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(config.split("[permissions]").next().unwrap());
    assert_eq!(run_commit_task(&rig)[0].0, "error");
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "again",
    ]);
    assert_eq!(subjects(&rig), ["first"], "{:?}", results(&ran));
}

/// Programs that git would run for a commit, each through another setting or hook. The commit
/// succeeds without running them.
#[test]
fn git_commit_runs_no_hooks_or_programs() {
    let hooks = [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "prepare-commit-msg",
        "reference-transaction",
        "post-index-change",
    ];
    let settings = [
        "[core]\n\thooksPath = hooks\n",
        "[core]\n\tfsmonitor = ./evil\n",
        "[core]\n\teditor = ./evil\n[commit]\n\tverbose = true\n",
        "[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = ./evil\n",
        "[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n\tprogram = ./evil\n\tdefaultKeyCommand = ./evil\n",
        "[core]\n\tpager = ./evil\n[pager]\n\tlog = ./evil\n\tcommit = ./evil\n",
        "[gc]\n\tauto = 1\n[maintenance]\n\tauto = true\n",
        "[core]\n\tsshCommand = ./evil\n[alias]\n\tcommit = !./evil\n\tadd = !./evil\n",
        "",
    ];
    for setting in settings {
        let rig = rig(&["git add -A && git commit -m second && git log -1"]);
        if !has_namespaces(&rig) {
            return;
        }
        write_marker_script(&rig, "evil");
        for hook in hooks {
            write_marker_script(&rig, &format!(".git/hooks/{hook}"));
            write_marker_script(&rig, &format!("hooks/{hook}"));
        }
        append_git_config(&rig, setting);
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let results = run_commit_task(&rig);
        assert_eq!(
            subjects(&rig).first().map(String::as_str),
            Some("second"),
            "{setting}: {results:?}"
        );
        assert!(
            !rig.project().join("PWNED").exists(),
            "{setting}: {results:?}"
        );
    }
}

/// Programs that a configuration runs on the content of files cannot be switched off, so the
/// repository stays closed.
#[test]
fn repository_with_its_own_filters_stays_closed() {
    for setting in [
        "[filter \"x\"]\n\tclean = ./evil\n",
        "[filter \"x\"]\n\tprocess = sh evil\n",
        "[include]\n\tpath = ../more\n",
        "[hook \"x\"]\n\tcommand = ./evil\n\tevent = pre-commit\n",
        "[diff \"x\"]\n\ttextconv = ./evil\n",
    ] {
        let rig = rig(&["git add -A && git commit -m second"]);
        if !has_namespaces(&rig) {
            return;
        }
        write_marker_script(&rig, "evil");
        rig.write("more", "[filter \"x\"]\n\tclean = ./evil\n");
        rig.write(".gitattributes", "*.txt filter=x diff=x\n");
        append_git_config(&rig, setting);
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let results = run_commit_task(&rig);
        assert_eq!(
            (results[0].0.as_str(), subjects(&rig)),
            ("error", vec!["first".to_owned()]),
            "{setting}: {results:?}"
        );
    }
}

/// Lines that try to use the open repository for more than a commit: none changes a file that
/// decides which programs git runs.
#[test]
fn git_commit_cannot_change_hooks_or_configuration() {
    for line in [
        "git commit --allow-empty -m x; echo evil > .git/hooks/pre-commit",
        "git commit --allow-empty -m x && cp a.txt .git/config",
        "git -c core.hooksPath=hooks commit --allow-empty -m x",
        "git -c core.editor='touch PWNED' commit --allow-empty",
        "GIT_EDITOR='touch PWNED' git commit --allow-empty",
        "git commit --allow-empty -m x > .git/info/attributes",
        "git commit --allow-empty --template=/etc/passwd",
        "git commit --allow-empty -m \"$(touch PWNED)\"",
        "git commit --allow-empty -m x | tee .git/config",
        "git config core.hooksPath hooks; git commit --allow-empty -m x",
        "git commit --allow-empty -S -m x",
        "git commit --allow-empty --trailer 'x: y' -m x",
        "git init --template=hooks . && git commit --allow-empty -m x",
        "git worktree add ../elsewhere; git commit --allow-empty -m x",
        "git update-ref refs/heads/evil HEAD; git commit --allow-empty -m x",
    ] {
        for mode in ["ask", "auto"] {
            let rig = rig(&[line]);
            if !has_namespaces(&rig) {
                return;
            }
            let kept = |name: &str| fs::read(rig.project().join(".git").join(name)).ok();
            let before = [
                "config",
                "hooks/pre-commit",
                "info/attributes",
                "refs/heads/evil",
            ]
            .map(kept);
            let ran = rig.run(&[
                "run",
                "--output-format",
                "stream-json",
                "--permission-mode",
                mode,
                "go",
            ]);
            let after = [
                "config",
                "hooks/pre-commit",
                "info/attributes",
                "refs/heads/evil",
            ]
            .map(kept);
            assert!(before == after, "{mode} {line}: {:?}", results(&ran));
            assert_eq!(
                subjects(&rig),
                ["first"],
                "{mode} {line}: {:?}",
                results(&ran)
            );
            // In `auto` mode the command itself may create the file; git did not run it.
            assert!(
                mode == "auto" || !rig.project().join("PWNED").exists(),
                "{line}: {:?}",
                results(&ran)
            );
        }
    }
}

/// A program of the project with the name of a system program, in a folder of `PATH`, does not run
/// while a command may write to the repository.
#[test]
fn git_commit_runs_no_programs_of_the_project() {
    for (name, line) in [
        ("git", "git commit -a -m second"),
        ("git", "git add . && git commit -m second"),
        ("cat", "cat a.txt && git commit -a -m second"),
        ("head", "git commit -a -m second && head a.txt"),
    ] {
        for link in [false, true] {
            let rig = rig(&[line]);
            if !has_namespaces(&rig) {
                return;
            }
            let program = format!(".venv/bin/{name}");
            let evil =
                "#!/bin/sh\necho .. > .git/commondir\ntouch PWNED\nexec /usr/bin/git \"$@\"\n";
            rig.write(&program, evil);
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(rig.project().join(&program), mode).unwrap();
            let alias = rig.home().join("alias");
            std::os::unix::fs::symlink(rig.project().join(".venv"), &alias).unwrap();
            let folder = if link {
                alias.join("bin")
            } else {
                rig.project().join(".venv/bin")
            };
            let ran = rig
                .command(&["run", "--output-format", "stream-json", "commit it"])
                .env(
                    "PATH",
                    format!("{}:.venv/bin:/usr/bin:/bin", folder.display()),
                )
                .output()
                .unwrap();
            let results = results(&Ran(ran));
            assert_eq!(subjects(&rig), ["second", "first"], "{line}: {results:?}");
            assert!(!rig.project().join("PWNED").exists(), "{line}: {results:?}");
            assert!(!rig.project().join(".git/commondir").exists(), "{line}");
        }
    }
}

#[test]
fn sealed_folders_of_a_repository_are_made_before_a_commit() {
    let rig = rig(&["git commit -a -m second"]);
    if !has_namespaces(&rig) {
        return;
    }
    run_commit_task(&rig);
    assert_eq!(subjects(&rig), ["second", "first"]);
    for name in ["hooks", "info", "modules", "worktrees"] {
        assert!(rig.project().join(".git").join(name).is_dir(), "{name}");
    }
    assert_eq!(git(&rig, &["status", "--short"]), "?? new.txt\n");
    git(&rig, &["fsck"]);
}

#[test]
fn git_commit_fails_in_an_untrusted_folder() {
    let rig = rig(&["git add -A && git commit -m second"]);
    assert_eq!(rig.run(&["trust", "--revoke"]).code(), 0);
    run_commit_task(&rig);
    assert_eq!(subjects(&rig), ["first"]);
}

/// A rig for `haft commit`: a change is staged, and the model of the commit role replies with
/// `reply`.
fn rig_with_staged_change(reply: &str) -> Rig {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text(reply).times(3)]).unwrap(),
    );
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let role = "[model_roles]\ncommit = \"mock/wording\"\n[models.\"mock/wording\"]\ncontext_window = 100000\nmax_output_tokens = 1000\nprice = { input = 1.0, output = 2.0 }\n";
    rig.configure(&format!("{config}\n{role}"));
    rig.write("a.txt", "one\n");
    rig.write("b.txt", "one\n");
    git(&rig, &["init", "--quiet"]);
    // The home of a test is also haft's own folder, which is hidden inside the sandbox.
    append_git_config(
        &rig,
        "[user]\n\tname = Someone\n\temail = someone@example.com\n",
    );
    git(&rig, &["add", "."]);
    git(&rig, &["commit", "--quiet", "-m", "first"]);
    rig.write("a.txt", "two staged\n");
    git(&rig, &["add", "a.txt"]);
    rig.write("b.txt", "two not staged\n");
    rig
}

#[test]
fn haft_commit_words_a_message_for_staged_changes() {
    let rig = rig_with_staged_change("```\nSay two\n\nBecause one is not enough.\n```");
    let ran = rig.run(&["commit", "--yes", "-m", "be brief"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(ran.stdout(), "Say two\n\nBecause one is not enough.\n");
    assert!(ran.stderr().contains("tokens, $0."), "{}", ran.stderr());
    assert_eq!(
        git(&rig, &["log", "-1", "--format=%B"]).trim(),
        "Say two\n\nBecause one is not enough."
    );
    assert_eq!(git(&rig, &["status", "--short"]), " M b.txt\n");
    let body = rig.server.generation_requests()[0].json().unwrap();
    assert_eq!(body["model"], "wording");
    let text = body.to_string();
    assert!(
        text.contains("two staged") && text.contains("be brief") && text.contains("first"),
        "{text}"
    );
    assert!(
        !text.contains("not staged") && body.get("tools").is_none_or(Value::is_null),
        "{text}"
    );
    assert_eq!(
        rig.run(&["conversations", "list", "--json"]).json(),
        json!([]),
        "it is no conversation of the project"
    );
}

/// A yes that was typed before the question appears does not count.
#[test]
fn haft_commit_waits_for_a_yes_to_its_message() {
    for (answer, code, last) in [("\r", 3, "first"), ("y\r", 0, "Say two")] {
        let rig = rig_with_staged_change("Say two");
        let mut terminal = Terminal::start(&rig, &["commit"], (80, 24));
        terminal.press("y\r");
        terminal.until_text("Commit with this message?");
        assert_eq!(git(&rig, &["log", "-1", "--format=%s"]).trim(), "first");
        terminal.press(answer);
        let (ended, shown) = terminal.wait_for_exit();
        assert_eq!(ended, code, "{shown}");
        assert_eq!(git(&rig, &["log", "-1", "--format=%s"]).trim(), last);
    }
}

#[test]
fn slash_commit_asks_with_the_message_and_counts_the_cost() {
    for (command, keys, last, status) in [
        ("/commit -a", "\r", "Say two", ""),
        ("/commit", "1\r", "Say two", " M b.txt\n"),
        ("/commit -a", "2\r", "first", "M  a.txt\n M b.txt\n"),
        ("/commit --all", "\u{1b}", "first", "M  a.txt\n M b.txt\n"),
    ] {
        let rig = rig_with_staged_change("Say two");
        let mut terminal = Terminal::start(&rig, &[], (80, 30));
        terminal.until_text("> ");
        terminal.press(&format!("{command}\r"));
        terminal.until("the question", |screen| {
            let shown = screen.contents();
            shown.contains("Commit with this message?") && shown.contains('▸')
        });
        let shown = terminal.text();
        assert!(shown.contains("\nSay two\n"), "{shown}");
        assert!(
            shown.lines().last().unwrap_or_default().contains('$'),
            "{shown}"
        );
        assert_eq!(
            git(&rig, &["log", "-1", "--format=%s"]).trim(),
            "first",
            "{shown}"
        );
        terminal.press(keys);
        terminal.until("no question", |screen| {
            !screen.contents().contains("Commit with this message?")
        });
        if last == "first" {
            terminal.press("/cost\r");
            terminal.until_text("1 request");
        } else {
            terminal.until("the commit", |_| {
                git(&rig, &["log", "-1", "--format=%s"]).trim() == last
            });
        }
        assert_eq!(git(&rig, &["log", "-1", "--format=%s"]).trim(), last);
        assert_eq!(git(&rig, &["status", "--short"]), status, "{command}");
    }
}

#[test]
fn slash_commit_of_a_dry_run_or_with_yes_asks_nothing() {
    for (command, last) in [
        ("/commit --dry-run", "first"),
        ("/commit -a --yes", "Say two"),
    ] {
        let rig = rig_with_staged_change("Say two");
        let mut terminal = Terminal::start(&rig, &[], (80, 30));
        terminal.until_text("> ");
        terminal.press(&format!("{command}\r"));
        terminal.until("the cost", |screen| {
            let shown = screen.contents();
            shown.contains("the message took")
                && shown.lines().last().is_some_and(|row| row.contains('$'))
        });
        let shown = terminal.text();
        assert!(!shown.contains("Commit with this message?"), "{shown}");
        assert_eq!(git(&rig, &["log", "-1", "--format=%s"]).trim(), last);
    }
}

#[test]
fn haft_commit_needs_yes_without_a_terminal() {
    let rig = rig_with_staged_change("Say two");
    let ran = rig.run(&["commit"]);
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (3, "Say two\n"),
        "{}",
        ran.stderr()
    );
    assert!(ran.stderr().contains("--yes"), "{}", ran.stderr());
    let ran = rig.run(&["commit", "--dry-run", "--yes"]);
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (0, "Say two\n"),
        "{}",
        ran.stderr()
    );
    assert_eq!(subjects(&rig), ["first"]);
}

#[test]
fn haft_commit_all_flag_commits_changed_files() {
    let rig = rig_with_staged_change("Say two twice");
    rig.write("untracked.txt", "new\n");
    assert_eq!(rig.run(&["commit", "-a", "-y"]).code(), 0);
    assert_eq!(git(&rig, &["status", "--short"]), "?? untracked.txt\n");
    let ran = rig.run(&["commit", "-y"]);
    assert_eq!(ran.code(), 2, "{}", ran.stderr());
    assert!(
        ran.stderr().contains("nothing is staged") && ran.stderr().contains("haft commit -a"),
        "{}",
        ran.stderr()
    );
    assert_eq!(rig.run(&["commit", "-a"]).code(), 2);
    assert_eq!(rig.server.generation_requests().len(), 1);
}

/// Files hidden from commands, files that look secret and masked values are not sent; the files are
/// committed anyway.
#[test]
fn haft_commit_sends_no_secrets() {
    let rig = rig_with_staged_change("Add settings")
        .with([("API_KEY_OF_MINE", "sk-live-0123456789abcdef0123456789")]);
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}\n[permissions]\ndeny = [\"read_file(private/**)\"]\n"
    ));
    rig.write(".env", "PASSWORD=hunter2\n");
    rig.write("private/notes", "PASSWORD=hunter2\n");
    rig.write("server.pem", "PASSWORD=hunter2\n");
    rig.write("a.txt", "key = sk-live-0123456789abcdef0123456789\n");
    git(&rig, &["add", "--all"]);
    let ran = rig.run(&["commit", "--yes"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let text = rig.server.generation_requests()[0]
        .json()
        .unwrap()
        .to_string();
    assert!(
        !text.contains("hunter2") && !text.contains("sk-live-0123456789abcdef0123456789"),
        "{text}"
    );
    assert!(
        text.contains("private/notes") && text.contains("server.pem"),
        "{text}"
    );
    assert_eq!(git(&rig, &["status", "--short"]), "");
}

#[test]
fn haft_commit_runs_no_hooks_and_needs_trust() {
    let rig = rig_with_staged_change("Say two");
    write_marker_script(&rig, ".git/hooks/pre-commit");
    write_marker_script(&rig, ".git/hooks/post-commit");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    assert_eq!(rig.run(&["commit", "--yes"]).code(), 0);
    assert!(!rig.project().join("PWNED").exists());
    assert_eq!(rig.run(&["trust", "--revoke"]).code(), 0);
    let ran = rig.run(&["commit", "-a", "--yes"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("not trusted"),
        "{}",
        ran.stderr()
    );
}
