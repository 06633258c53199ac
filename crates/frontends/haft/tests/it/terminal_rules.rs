//! Approvals at a real terminal that offer no rule, with the reason, and the rule for a module of
//! Python.

use haft_testkit::{Reply, ScriptCall};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, rig};

fn command(line: &str) -> Value {
    json!({"command": line, "requires_approval": false})
}

fn saved_rules(rig: &Rig) -> String {
    rig.run(&["permissions", "list", "--json"])
        .json()
        .to_string()
}

#[test]
fn approval_without_always_says_why() {
    let long = format!("make {}", "x".repeat(2_000));
    for (call, why) in [
        (
            command("python3 -c 'print(1)'"),
            "no rule is offered, because",
        ),
        (
            command("echo $HOME > out"),
            "no rule is offered: rules do not cover such a call",
        ),
        (command("make $target"), "no rule can name `$target`"),
        (
            command("CI=1 make"),
            "no rule is offered for a command that sets variables",
        ),
        (command(&long), "the line is too long for a rule"),
        (
            json!({"command": "make", "requires_approval": true}),
            "no rule answers a request for approval by the model",
        ),
    ] {
        let rig = rig([
            Reply::call("execute_command", call.clone()),
            Reply::text("So be it."),
        ]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (160, 60));
        terminal.until_armed();
        let shown = terminal.text();
        assert!(shown.contains(why), "{call}: {shown}");
        assert!(
            !shown.contains(" a always") && !shown.contains(" r always"),
            "{shown}"
        );
        terminal.press("n");
        terminal.until_text("So be it.");
    }
}

#[test]
fn approval_outside_the_sandbox_says_why_it_has_no_rule() {
    let call = json!({"command": "make", "requires_approval": false, "sandbox": "outside"});
    let rig = rig([
        Reply::call("execute_command", call),
        Reply::text("So be it."),
    ]);
    if !has_namespaces(&rig) {
        return;
    }
    for arguments in [&["--", "go"][..], &["--set", "language=zh-CN", "--", "go"]] {
        let terminal = Terminal::start(&rig, arguments, (160, 40));
        terminal.until_armed();
        let shown = terminal.text();
        assert!(
            shown.contains("no rule can allow leaving the sandbox")
                || shown.contains("没有规则能允许离开沙箱"),
            "{shown}"
        );
    }
}

#[test]
fn plain_mode_says_why_there_is_no_rule() {
    let rig = rig([
        Reply::call("execute_command", command("python3 -c 'print(1)'")),
        Reply::text("So be it."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (200, 40));
    terminal.until_text("no rule is offered, because");
    terminal.until_text("answer: ");
    terminal.answer_plain("n");
    terminal.until_text("So be it.");
}

#[test]
fn python_module_is_allowed_by_a_rule_for_this_module_only() {
    let rig = rig([
        Reply::calls([ScriptCall::new(
            "execute_command",
            command("python3 -m pytest -q"),
        )]),
        Reply::call("execute_command", command("python3 -m pytest tests")),
        Reply::call("execute_command", command("python3 -m http.server")),
        Reply::call("execute_command", command("python3 -m pytest -p evil")),
        Reply::text("So be it."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (120, 40));
    terminal.until_armed();
    let shown = terminal.text();
    assert!(
        shown.contains("execute_command(python3 -m pytest -q)")
            && shown.contains("with a custom rule: execute_command(python3 -m pytest:*)"),
        "{shown}"
    );
    terminal.press("r");
    terminal.until_text("> execute_command(python3 -m pytest:*)");
    terminal.press("\r");
    // The second call runs; other modules and risky options are asked about.
    terminal.until_text("python3 -m http.server");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("-p evil");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("So be it.");
    assert!(saved_rules(&rig).contains("execute_command(python3 -m pytest:*)"));
    let asked = terminal
        .written()
        .matches("Not covered by any rule")
        .count();
    assert!(asked >= 2, "{}", terminal.text());
    assert_eq!(rig.server.generation_requests().len(), 5);
}

#[test]
fn rule_for_a_python_module_covers_no_other_module() {
    let rig = rig([]);
    let rule = "permissions.allow=[\"execute_command(python3 -m pytest:*)\"]";
    let explain = |line: &str| {
        rig.run(&["permissions", "explain", "--set", rule, line])
            .stdout()
    };
    for allowed in [
        "python3 -m pytest",
        "python3 -m pytest -q tests",
        "python3 -m pytest -k x",
    ] {
        assert!(
            explain(allowed).starts_with("allow"),
            "{allowed}: {}",
            explain(allowed)
        );
    }
    for asked in [
        "python3 -m http.server",
        "python3 -m pytest.evil",
        "python3 -m unittest",
        "python3 -m pytest -p evil",
        "python3 -m pytest -c x.ini",
        "python3 -m pytest --rootdir /x",
        "python3 -c x",
        "python3 x.py",
        "PYTHONPATH=x python3 -m pytest",
        "python3 -m pytest; rm x",
        "python3 -m $x",
        "python -m pytest",
    ] {
        assert!(
            explain(asked).starts_with("ask"),
            "{asked}: {}",
            explain(asked)
        );
    }
    let wide = "permissions.allow=[\"execute_command(python3 -m:*)\"]";
    let asked = rig.run(&["permissions", "explain", "--set", wide, "python3 -m pytest"]);
    assert!(asked.stdout().starts_with("ask"), "{}", asked.stdout());
}
