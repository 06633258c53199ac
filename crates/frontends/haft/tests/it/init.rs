//! `/init`: has an AGENTS.md written or improved, and quotes the cost first.

use std::fs;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::Terminal;

fn rig() -> Rig {
    let write = Reply::call(
        "write_to_file",
        json!({"path": "AGENTS.md", "content": "# A library\n"}),
    );
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([write, Reply::text("Written.").times(3)]).unwrap(),
    );
    rig.write("README.md", "WHAT THE README SAYS\n");
    rig.write("Cargo.toml", "[package]\n");
    rig.write("src/lib.rs", "pub fn x() {}\n");
    rig
}

#[test]
fn cost_is_quoted_and_approval_asked_before_writing() {
    let rig = rig();
    let mut terminal = Terminal::start(&rig, &[], (100, 40));
    terminal.until_text("> ");
    terminal.press("/init keep it short\r");
    terminal.until_armed();
    let text = terminal.text();
    assert!(
        text.contains("tokens, $0.") && text.contains("+# A library"),
        "{text}"
    );
    assert!(!rig.project().join("AGENTS.md").exists());
    terminal.press("y");
    terminal.until_text("Written.");
    terminal.until_idle();
    assert_eq!(
        fs::read_to_string(rig.project().join("AGENTS.md")).unwrap(),
        "# A library\n"
    );
    let body = rig.server.generation_requests()[0]
        .json()
        .unwrap()
        .to_string();
    for part in [
        "keep it short",
        "README.md\\nsrc/lib.rs",
        "Files to read:\\nCargo.toml\\nREADME.md",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    assert!(
        !body.contains("WHAT THE README SAYS"),
        "files are read by tools, under their rules"
    );
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn existing_agents_md_is_to_be_improved() {
    let rig = rig();
    rig.write("AGENTS.md", "# Mine\n");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&["run", "/init"]);
    assert!(
        ran.stderr().contains("`/init` reads the project"),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        fs::read_to_string(rig.project().join("AGENTS.md")).unwrap(),
        "# Mine\n",
        "nobody was there to be asked"
    );
    let body = rig.server.generation_requests()[0]
        .json()
        .unwrap()
        .to_string();
    assert!(body.contains("There is an `AGENTS.md` already."), "{body}");
}

#[test]
fn user_command_named_init_takes_precedence() {
    let rig = rig();
    rig.write(".haft/commands/init.md", "Say hello.");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.run(&["run", "--permission-mode", "plan", "/init"]);
    assert!(
        !ran.stderr().contains("reads the project"),
        "{}",
        ran.stderr()
    );
    let body = rig.server.generation_requests()[0]
        .json()
        .unwrap()
        .to_string();
    assert!(
        body.contains("Say hello.") && !body.contains("Files of the project"),
        "{body}"
    );
}
