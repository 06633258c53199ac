//! The command line: mistyped words, nouns alone, and behavior that all commands share.

use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::{MODEL, Rig, haft};
use crate::terminal::Terminal;

const SIZE: (u16, u16) = (120, 40);

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    )
}

/// Returns the names of the commands in `haft --help`.
fn command_names(rig: &Rig) -> Vec<String> {
    let help = rig.run(&["--help"]).stdout();
    let (commands, _) = help.split_once("\nOptions:").unwrap();
    let lines = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// Returns the name without one character, with an extra one, with a different one, and with two
/// swapped.
fn mistyped(name: &str) -> [String; 4] {
    let chars: Vec<char> = name.chars().collect();
    let middle = chars.len() / 2;
    let before = &name[..middle];
    let after = &name[middle + 1..];
    let mut swapped = chars.clone();
    swapped.swap(middle - 1, middle);
    [
        format!("{before}{after}"),
        format!("{before}x{}", &name[middle..]),
        format!("{before}x{after}"),
        swapped.into_iter().collect(),
    ]
}

const ELSEWHERE: [&str; 8] = [
    "login",
    "logout",
    "auth",
    "init",
    "update",
    "upgrade",
    "resume",
    "frobnicate",
];

#[test]
fn mistyped_words_are_not_sent_without_a_terminal() {
    let rig = rig();
    let names = command_names(&rig);
    assert!(names.len() > 30, "{names:?}");
    for (name, word) in names
        .iter()
        .flat_map(|name| mistyped(name).map(|word| (name, word)))
    {
        // The swapped characters were equal.
        if names.contains(&word) {
            continue;
        }
        let ran = rig.run(&[&word]);
        assert_eq!(ran.code(), 2, "{word}: {}", ran.stderr());
        assert!(
            ran.stderr().contains("did you mean `haft "),
            "{word} for {name}: {}",
            ran.stderr()
        );
        assert!(
            ran.stderr().contains(&format!("haft -p {word}")),
            "{}",
            ran.stderr()
        );
    }
    for word in ELSEWHERE {
        let ran = rig.run(&[word]);
        assert_eq!(ran.code(), 2, "{word}: {}", ran.stderr());
        assert!(
            ran.stderr().contains("is not a command"),
            "{}",
            ran.stderr()
        );
    }
    for words in [
        ["help", "me"],
        ["modles", "list"],
        ["modles", "--json"],
        ["confg", "get"],
    ] {
        let ran = rig.run(&words);
        assert_eq!(ran.code(), 2, "{words:?}: {}", ran.stderr());
    }
    assert!(
        rig.run(&["modles", "list"])
            .stderr()
            .contains("did you mean `haft models`?")
    );
    assert_eq!(rig.server.requests().len(), 0);
}

#[test]
fn mistyped_words_need_confirmation_at_a_terminal() {
    let rig = rig();
    for word in [
        "modles",
        "cnfig",
        "undoo",
        "hlep",
        "login",
        "init",
        "update",
        "frobnicate",
    ] {
        let mut terminal = Terminal::start(&rig, &[word], SIZE);
        terminal.until_text("Enter leaves:");
        terminal.press("\r");
        assert_eq!(terminal.wait_for_exit().0, 2, "{word}");
    }
    let mut terminal = Terminal::start(&rig, &["modles"], SIZE);
    terminal.until_text("Did you mean `haft models`?");
    terminal.press("y\r");
    terminal.until_text("mock/");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(rig.server.requests().len(), 0);
    let mut terminal = Terminal::start(&rig, &["modles"], SIZE);
    terminal.until_text("Enter leaves:");
    terminal.press("p\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(rig.server.generation_requests().len(), 1);
}

#[test]
fn prompt_flag_run_and_dashes_send_a_single_word() {
    for arguments in [["-p", "modles"], ["run", "modles"], ["-p", "login"]] {
        let ran = rig().run(&arguments);
        assert_eq!(
            (ran.code(), ran.stdout().trim()),
            (0, "Hello."),
            "{arguments:?}: {}",
            ran.stderr()
        );
    }
    for arguments in [
        &["--", "modles"] as &[&str],
        &["modles "],
        &["fix it"],
        &["--", "login"],
    ] {
        let rig = rig();
        let mut terminal = Terminal::start(&rig, arguments, SIZE);
        terminal.until_text("Hello.");
        terminal.until_idle();
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0, "{arguments:?}");
    }
}

#[test]
fn noun_without_a_verb_lists_or_shows() {
    let rig = rig();
    rig.task(&["say hello"]);
    for noun in [
        "models",
        "mcp",
        "agents",
        "conversations",
        "permissions",
        "config",
        "jobs",
        "sandbox",
        "context",
        "hooks",
    ] {
        let ran = rig.run(&[noun]);
        assert_eq!(ran.code(), 0, "haft {noun}: {}", ran.stderr());
        assert!(!ran.stdout().is_empty(), "haft {noun}");
        let ran = rig.run(&[noun, "--json"]);
        assert_eq!(ran.code(), 0, "haft {noun} --json: {}", ran.stderr());
        ran.json();
    }
    assert_eq!(
        rig.run(&["conversations"]).stdout(),
        rig.run(&["conversations", "list"]).stdout()
    );
    assert!(
        rig.run(&["models", "--help"])
            .stdout()
            .contains("Usage: haft models")
    );
}

#[test]
fn config_get_reads_and_set_changes_settings() {
    let rig = rig();
    let file = rig.home().join("config.toml");
    let text = || std::fs::read_to_string(&file).unwrap();
    let before = format!(
        "# first\n{}",
        text().replace("[retry]", "# about retries\n[retry] # here")
    );
    rig.configure(&before);
    assert_eq!(
        rig.run(&["config", "path"]).stdout().trim(),
        file.display().to_string()
    );
    assert_eq!(
        rig.run(&["config", "get", "retry.base_delay_ms"]).stdout(),
        "20\n"
    );
    assert_eq!(
        rig.run(&["config", "get", "model"]).stdout().trim(),
        "mock/gemini-3-scripted"
    );
    assert!(
        rig.run(&["config", "get", "retry"])
            .stdout()
            .contains("retry.base_delay_ms = 20\n")
    );
    assert_eq!(rig.run(&["config", "get", "roles.main_file"]).code(), 1);
    let unknown = rig.run(&["config", "get", "retry.atempts"]);
    assert!(
        unknown.code() == 2 && unknown.stderr().contains("did you mean `retry.attempts`?"),
        "{}",
        unknown.stderr()
    );
    assert_eq!(
        rig.run(&["config", "set", "retry.base_delay_ms", "30"])
            .code(),
        0
    );
    let after = text();
    assert_eq!(
        after,
        before.replace("base_delay_ms = 20", "base_delay_ms = 30")
    );
    for (key, value) in [
        ("retry.attempts", "many"),
        ("nothing", "1"),
        ("permissions.deny", "[\"execute_command(a;b)\"]"),
    ] {
        let ran = rig.run(&["config", "set", key, value]);
        assert_eq!(ran.code(), 2, "{key}: {}", ran.stderr());
        assert_eq!(text(), after, "{key}");
    }
    assert_eq!(
        rig.run(&["config", "unset", "retry.base_delay_ms"]).code(),
        0
    );
    assert_eq!(text(), after.replace("base_delay_ms = 30\n", ""));
    assert_eq!(
        rig.run(&["config", "unset", "retry.base_delay_ms"]).code(),
        2
    );
    let schema = rig.run(&["config", "schema"]).json();
    assert_eq!(
        schema["properties"]["retry"]["properties"]["attempts"]["type"],
        "integer"
    );
}

#[test]
fn config_edit_rejects_invalid_changes() {
    let rig = rig();
    let file = rig.home().join("config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let edit = |editor: &str| {
        rig.command(&["config", "edit"])
            .env("EDITOR", editor)
            .output()
            .unwrap()
    };
    let refused = edit("f() { echo 'nothing = 1' >> \"$1\"; }; f");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("unknown key `nothing`"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(
        edit("f() { echo '# done' >> \"$1\"; }; f").status.code(),
        Some(0)
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        format!("{before}# done\n")
    );
    assert_eq!(edit("true").status.code(), Some(0));
}

#[test]
fn environment_variables_override_settings_and_bad_ones_fail() {
    let rig = rig();
    let get = |variable: &str, value: &str, key: &str| {
        let output = rig
            .command(&["config", "get", key])
            .env(variable, value)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(get("HAFT_RETRY__ATTEMPTS", "7", "retry.attempts").1, "7\n");
    assert_eq!(
        get("HAFT_PERMISSIONS__MODE", "plan", "permissions.mode").1,
        "plan\n"
    );
    for (variable, value) in [
        ("HAFT_RETRY__ATTEMPTS", "many"),
        ("HAFT_RETRY__ATEMPTS", "2"),
        ("HAFT_NOTHING__X", "1"),
        ("HAFT___X", "1"),
        ("HAFT_RETRY__", "1"),
    ] {
        let (code, _, stderr) = get(variable, value, "retry.attempts");
        assert!(
            code == Some(2) && stderr.contains(&format!("`{variable}`")),
            "{variable}: {stderr}"
        );
    }
    let set = rig
        .command(&["config", "set", "retry.attempts", "3"])
        .env("HAFT_RETRY__ATTEMPTS", "7")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&set.stderr).contains("HAFT_RETRY__ATTEMPTS"));
}

/// Returns the completions that a shell gets for the last of these words.
fn completions_for(rig: &Rig, words: &[&str]) -> String {
    let output = rig
        .command(&[&["--", "haft"], words].concat())
        .env("HAFT_COMPLETE", "fish")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Flags and commands that users of other agents type out of habit: the answer names haft's
/// equivalent, and nothing is sent.
#[test]
fn foreign_flags_are_answered_with_hafts_equivalent() {
    let rig = rig();
    for (arguments, here) in [
        (&["--full-auto", "do it"][..], "--permission-mode auto"),
        (
            &["exec", "--sandbox", "read-only", "do it"],
            "--permission-mode plan",
        ),
        (&["--yolo", "do it"], "--permission-mode auto"),
        (
            &["--dangerously-skip-permissions", "do it"],
            "--permission-mode auto",
        ),
        (&["-a", "never", "do it"], "--permission-mode MODE"),
        (&["--message=do it"], "haft -p"),
        (&["run", "-t", "do it"], "haft run"),
        (&["run", "--format", "json", "do it"], "--output-format"),
        (&["plugin", "list"], "haft mcp"),
        (&["stats"], "--cost"),
        (&["recipes"], "haft workflows"),
    ] {
        let ran = rig.run(arguments);
        assert_eq!(ran.code(), 2, "{arguments:?}: {}", ran.stderr());
        assert!(
            ran.stderr().contains(here),
            "{arguments:?}: {}",
            ran.stderr()
        );
    }
    let elsewhere = rig.run(&["jobs", "--yes"]);
    assert!(
        !elsewhere.stderr().contains("--permission-mode"),
        "{}",
        elsewhere.stderr()
    );
    assert!(rig.server.requests().is_empty());
}

/// Completion scripts in their real shells: Tab completes the start of an id, a model and an agent.
#[test]
fn completions_work_in_real_shells() {
    let rig = rig();
    rig.task(&["say it"]);
    let id = rig.export()["id"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    rig.write(
        ".haft/agents/quartermaster.md",
        "---\nname: quartermaster\ndescription: Counts\n---\nYou count.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let folder = haft().parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
    for (shell, arguments, setup) in [
        (
            "bash",
            &["--norc", "-i"][..],
            "source <(haft completions bash)",
        ),
        (
            "zsh",
            &["-f", "-i"],
            "autoload -U compinit; compinit -u -D; source <(haft completions zsh)",
        ),
        ("fish", &["--no-config"], "haft completions fish | source"),
    ] {
        if Command::new(shell).arg("--version").output().is_err() {
            println!("skipped: `{shell}` is not installed");
            continue;
        }
        let home = rig.command(&[]);
        let mut command = Command::new(shell);
        command.args(arguments).current_dir(rig.project());
        command
            .envs(
                home.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", &path);
        let mut terminal = Terminal::start_command(&command, (160, 40));
        terminal.press(&format!("{setup}; echo re''ady\r"));
        terminal.until_text("\nready");
        for (typed, whole) in [
            (
                format!("haft conversations show {}", &id[..8]),
                format!("haft conversations show {id}"),
            ),
            ("haft -m mock/".to_owned(), format!("haft -m mock/{MODEL}")),
            (
                "haft run --agent quarter".to_owned(),
                "haft run --agent quartermaster".to_owned(),
            ),
        ] {
            terminal.press(&format!("{typed}\t"));
            terminal.until(&whole, |screen| screen.contents().contains(&whole));
            terminal.press("\u{15}");
            terminal.until("an empty line", |screen| {
                !screen.contents().contains(&whole)
            });
        }
    }
}

#[test]
fn completions_include_ids_models_agents_and_rules() {
    let rig = rig();
    assert_eq!(
        completions_for(&rig, &["conversations", "show", ""])
            .lines()
            .filter(|line| !line.starts_with('-'))
            .count(),
        0
    );
    assert!(
        !rig.home().join("data").exists(),
        "a look makes no database"
    );
    rig.task(&["say hello"]);
    rig.write(
        ".haft/agents/tester.md",
        "---\nname: tester\ndescription: Tests.\n---\nTest.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    assert_eq!(
        rig.run(&["permissions", "add", "execute_command(ls:*)"])
            .code(),
        0
    );
    let id = rig.export()["id"].as_str().unwrap().to_owned();
    for (words, wanted) in [
        (&["conversations", "show", ""] as &[&str], id.as_str()),
        (&["conversations", "purge", &id[..4]], &id),
        (&["run", "-r", ""], &id),
        (&["-r", ""], &id),
        (&["undo", "--conversation", ""], &id),
        (&["run", "-m", "mock"], "mock/gemini-3-scripted"),
        (&["run", "--agent", ""], "tester"),
        (&["agents", "show", ""], "tester"),
        (&["permissions", "remove", "exec"], "execute_command(ls:*)"),
        (&["config", "set", "retry.a"], "retry.attempts"),
        (&["conv"], "conversations"),
        (&["permissions", "re"], "remove"),
    ] {
        let offered = completions_for(&rig, words);
        assert!(
            offered
                .lines()
                .any(|line| line.split('\t').next() == Some(wanted)),
            "{words:?}: {offered}"
        );
    }
    assert!(
        completions_for(&rig, &["conversations", "show", ""]).contains("say hello"),
        "its name is the description"
    );
}

#[test]
fn prompt_sections_can_come_from_files() {
    let rig = rig();
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let section = "\n[prompt]\norder = [\"role\", \"objective\"]\n[prompt.sections]\nobjective = \"prompts/objective.md\"\n";
    rig.configure(&format!("{config}{section}"));
    let missing = rig.run(&["run", "hello there"]);
    assert_eq!(missing.code(), 2, "{}", missing.stderr());
    assert!(
        missing.stderr().contains("prompts/objective.md"),
        "{}",
        missing.stderr()
    );
    std::fs::create_dir(rig.home().join("prompts")).unwrap();
    std::fs::write(
        rig.home().join("prompts/objective.md"),
        "Plant {{ environment.os }} trees.\n",
    )
    .unwrap();
    assert_eq!(rig.run(&["run", "hello there"]).code(), 0);
    let sent = format!("{:?}", rig.server.generation_requests()[0].body);
    assert!(
        sent.contains("OBJECTIVE") && sent.contains(" trees."),
        "{sent}"
    );
    let shown = rig.run(&["context"]).stdout();
    assert!(
        shown.contains("`objective`") && shown.contains("prompts/objective.md"),
        "{shown}"
    );
    for wrong in ["sections.nothing=\"x\"", "order=[\"nothing\"]"] {
        let ran = rig.run(&["run", "--set", &format!("prompt.{wrong}"), "hello there"]);
        assert!(
            ran.code() == 2 && ran.stderr().contains("nothing"),
            "{}",
            ran.stderr()
        );
    }
    // A project's configuration has no effect on the sections.
    rig.write(
        ".haft/config.toml",
        "[prompt.sections]\nrules = \"rules.md\"\n",
    );
    assert!(
        !rig.run(&["context", "--next", "--input", "x"])
            .stdout()
            .contains("`rules`")
    );
}
