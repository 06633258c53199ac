//! Images pasted at a real terminal, and the page of `/inspect`.

use std::io::{Read, Write};

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;
use crate::terminal::Terminal;

/// The header of an image of 64 by 48 pixels.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x30\x08\x06\0\0\0";

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn pasted_image_path_attaches_the_image() {
    let rig = rig_in_order([
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
    ]);
    let folder = rig.project().canonicalize().unwrap();
    std::fs::write(folder.join("my shot.png"), PNG).unwrap();
    rig.write("fake.png", "no picture");
    let path = folder.join("my shot.png").display().to_string();
    let mut terminal = Terminal::start(&rig, &[], (100, 30));
    terminal.until_text("> ");
    let pasted = [
        path.replace(' ', "\\ "),
        format!("file://{}", path.replace(' ', "%20")),
    ];
    for (pasted, answer) in pasted.iter().zip(["One.", "Two."]) {
        terminal.press(&format!("look: \u{1b}[200~{pasted}\u{1b}[201~"));
        terminal.until_text("> look: [image my shot.png 64×48]");
        terminal.press("\r");
        terminal.until_text(answer);
        terminal.until_idle();
    }
    terminal.press("\u{1b}[200~fake.png\u{1b}[201~ is text\r");
    terminal.until_text("Three.");
    let bodies: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|one| one.json().unwrap()["messages"].to_string())
        .collect();
    let counts: Vec<_> = bodies
        .iter()
        .map(|body| body.matches("image/png").count())
        .collect();
    assert_eq!(counts, [1, 2, 2], "{}", bodies[2]);
    assert!(bodies[2].contains("fake.png is text"));
    quit(terminal);
}

#[test]
fn ctrl_v_attaches_the_clipboard_image_or_reports_none() {
    let rig = rig_in_order([Reply::text("Seen.")]);
    let tools = rig.home().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("picture"), PNG).unwrap();
    let program = tools.join("wl-paste");
    let gives = |command: &str| {
        std::fs::write(&program, format!("#!/bin/sh\n{command}\n")).unwrap();
        std::fs::set_permissions(
            &program,
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
    };
    gives("exit 1");
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let mut terminal = Terminal::start_with(&rig, &[], (110, 30), &[("PATH", &path)]);
    terminal.until_text("> ");
    terminal.press("\u{16}");
    terminal.until_text("The clipboard contains no image.");
    gives(&format!("cat {}", tools.join("picture").display()));
    terminal.press("\u{16}");
    terminal.until_text("> [image clipboard-1.png 64×48]");
    terminal.press(" what is it?\r");
    terminal.until_text("Seen.");
    assert!(
        rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string()
            .contains("image/png")
    );
    quit(terminal);
}

fn http_get(address: &str, path: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn inspect_command_serves_the_conversation() {
    let rig = rig_in_order([Reply::text("Hello there.")]);
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (200, 30));
    terminal.until_text("Hello there.");
    terminal.until_idle();
    terminal.press("/inspect\r");
    terminal.until_text("Works only on this machine, and only while haft runs.");
    let shown = terminal.text();
    let url = shown
        .lines()
        .find_map(|line| line.trim().strip_prefix("http://"))
        .unwrap_or_else(|| panic!("{shown}"));
    let (address, path) = url.split_once('/').unwrap();
    assert!(path.starts_with("c/") && path.contains("?token="), "{url}");
    let without = http_get(address, &format!("/{}", path.split('?').next().unwrap()));
    assert!(without.starts_with("HTTP/1.1 4"), "{without}");
    let logged_in = http_get(address, &format!("/{path}"));
    assert!(logged_in.starts_with("HTTP/1.1 303"), "{logged_in}");
    quit(terminal);
    assert!(
        std::net::TcpStream::connect(address).is_err(),
        "it ends with haft"
    );
}
