//! `` !`command` `` in custom commands: its output replaces it, under the permission rules of the
//! model's commands.

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::terminal::Terminal;

fn rig(command: &str) -> Rig {
    with_look_command(
        Rig::new(
            Api::Anthropic,
            Script::replies([Reply::text("Seen.").times(3)]).unwrap(),
        ),
        command,
    )
}

fn with_look_command(rig: Rig, command: &str) -> Rig {
    rig.write("notes.txt", "WHAT THE NOTES SAY\n");
    rig.write(".haft/commands/look.md", command);
    rig
}

fn first_request_body(rig: &Rig) -> String {
    rig.server
        .generation_requests()
        .first()
        .map(|request| request.json().unwrap().to_string())
        .unwrap_or_default()
}

#[test]
fn inline_command_is_replaced_by_its_output() {
    let rig = rig("The notes: !`cat notes.txt` and !`ls $1 | wc -l` more. $ARGUMENTS");
    if !has_namespaces(&rig) {
        return;
    }
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&["run", "/look notes.txt"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let body = first_request_body(&rig);
    assert!(
        body.contains("The notes: WHAT THE NOTES SAY and 1 more. notes.txt"),
        "{body}"
    );
}

#[test]
fn inline_command_that_needs_approval_is_refused_headless() {
    for (line, allow) in [
        ("touch PWNED", ""),
        ("cat notes.txt > PWNED", ""),
        ("cat /etc/passwd", ""),
        ("ls", "deny = [\"execute_command(ls:*)\"]"),
    ] {
        let rig = rig(&format!("Look: !`{line}`"));
        let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!("{config}\n[permissions]\n{allow}\n"));
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let ran = rig.run(&["run", "/look"]);
        assert!(
            ran.code() == 2 && ran.stderr().contains("may not run"),
            "{line}: {}",
            ran.stderr()
        );
        assert!(
            !rig.project().join("PWNED").exists() && rig.server.generation_requests().is_empty(),
            "{line}"
        );
    }
}

#[test]
fn inline_command_allowed_by_a_rule_reports_its_failure() {
    let rig = rig("Made: !`touch made` !`cat missing`");
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}\n[permissions]\nallow = [\"execute_command(touch:*)\", \"execute_command(cat:*)\"]\n"
    ));
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&["run", "/look"]);
    assert!(
        ran.code() == 2 && ran.stderr().contains("`cat missing`, which failed"),
        "{}",
        ran.stderr()
    );
    assert!(rig.project().join("made").exists() && rig.server.generation_requests().is_empty());
}

#[test]
fn inline_commands_in_arguments_or_untrusted_files_do_not_run() {
    let place = rig("Say: $ARGUMENTS");
    assert_eq!(place.run(&["trust"]).code(), 0);
    let ran = place.run(&["run", "--permission-mode", "yolo", "/look !`touch PWNED`"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        !place.project().join("PWNED").exists()
            && first_request_body(&place).contains("!`touch PWNED`")
    );
    let place = with_look_command(
        Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Seen.")]).unwrap(),
        ),
        "!`touch PWNED`",
    );
    let ran = place.run(&["run", "--permission-mode", "yolo", "/look"]);
    assert!(
        ran.code() == 2 && !place.project().join("PWNED").exists(),
        "{}",
        ran.stderr()
    );
}

#[test]
fn inline_command_needs_approval_at_the_terminal() {
    for (key, made) in [("y", true), ("n", false)] {
        let rig = rig("Look: !`touch made`");
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let mut terminal = Terminal::start(&rig, &[], (100, 30));
        terminal.until_text("> ");
        terminal.press("/look\r");
        terminal.until_armed();
        assert!(
            terminal.text().contains("touch made") && !rig.project().join("made").exists(),
            "{}",
            terminal.text()
        );
        terminal.press(key);
        terminal.until_text(if made { "Seen." } else { "may not run" });
        assert_eq!(rig.project().join("made").exists(), made);
        assert_eq!(rig.server.generation_requests().len(), usize::from(made));
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}
