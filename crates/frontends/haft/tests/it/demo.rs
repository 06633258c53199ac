//! `haft demo`: confined, with one approval, wherever it runs.

use std::process::{Command, Stdio};

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::{Ran, Rig, haft, has_strace};
use crate::terminal::Terminal;

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    )
}

/// Asserts that the bug was fixed in mode `ask`, with the sandbox and one approval shown.
#[track_caller]
fn assert_fixed(ran: &Ran) {
    let out = ran.stdout();
    assert_eq!(ran.code(), 0, "{out}{}", ran.stderr());
    let shown = |text: &str| out.matches(text).count();
    assert_eq!(
        (
            shown("\nsandbox: commands "),
            shown("Not covered by any rule.")
        ),
        (1, 1),
        "{out}"
    );
    let (before, after) = out.split_once("The test now says").unwrap();
    assert!(
        before.contains("+    for name in \"$@\"; do"),
        "the edit is shown: {out}"
    );
    assert!(before.contains("so the demo answers: yes"), "{out}");
    assert!(
        !after.contains("FAIL") && after.contains("ok   greet.sh Ada Lovelace"),
        "{out}"
    );
    assert!(
        !out.contains("yolo") && !ran.stderr().contains("yolo"),
        "{out}{}",
        ran.stderr()
    );
}

#[test]
fn demo_answers_itself_without_a_terminal() {
    let rig = rig();
    assert_fixed(&rig.run(&["demo"]));
    // A pipe is not a terminal, whatever comes through it.
    for input in [
        "haft demo </dev/null",
        "echo n | haft demo",
        "haft demo <&-",
        "haft demo </dev/null 2>&-",
    ] {
        let plain = rig.command(&[]);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &input.replace("haft", "\"$1\""), "sh"])
            .arg(haft())
            .current_dir(rig.project())
            .env_clear();
        command
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::null());
        assert_fixed(&Ran(command.output().unwrap()));
    }
}

#[test]
fn demo_needs_no_home() {
    let rig = rig();
    for (home, haft_home) in [
        (None, None),
        (Some("/nowhere"), None),
        (None, Some("/proc/nowhere")),
    ] {
        let mut command = rig.command(&["demo"]);
        command.env_remove("HOME").env_remove("HAFT_HOME");
        command
            .envs(home.map(|home| ("HOME", home)))
            .envs(haft_home.map(|home| ("HAFT_HOME", home)));
        assert_fixed(&Ran(command.output().unwrap()));
    }
}

#[test]
fn demo_names_the_folder_it_cannot_write_to() {
    let rig = rig();
    let ran = Ran(rig
        .command(&["demo"])
        .env("TMPDIR", "/proc/nowhere")
        .output()
        .unwrap());
    assert_eq!(ran.code(), 2, "{}", ran.stdout());
    let said = ran.stderr();
    assert!(
        said.contains("cannot create the sample project in `/proc/nowhere`")
            && said.contains("`TMPDIR`"),
        "{said}"
    );
}

#[test]
fn demo_asks_at_a_terminal() {
    for (keys, fixed) in [
        ("\r", true),
        ("y\r", true),
        ("n\r", false),
        ("why?\r", false),
    ] {
        let rig = rig();
        let mut terminal = Terminal::start(&rig, &["demo"], (120, 80));
        // Typed before the question is shown, so it is no answer.
        terminal.press("n\r");
        terminal.until_text("Enter = yes, n = no:");
        terminal.press(keys);
        terminal.until_text("at the demo's made-up prices");
        let (code, shown) = terminal.wait_for_exit();
        assert_eq!(code, 0, "{shown}");
        assert!(
            shown.contains("sandbox: commands ") && !shown.contains("the demo answers"),
            "{shown}"
        );
        let after = shown.split("The test now says").nth(1).unwrap();
        assert_eq!(!after.contains("FAIL"), fixed, "{keys:?}: {shown}");
        assert_eq!(
            after.contains("You refused the edit"),
            !fixed,
            "{keys:?}: {shown}"
        );
    }
}

/// Without namespaces, Landlock or nothing confines the demo; it reports that and continues.
#[test]
fn demo_continues_in_a_weaker_sandbox() {
    let rig = rig();
    // A user namespace that may create no others, as in many containers.
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" demo";
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "/bin/sh", "-c", limit])
        .arg(haft());
    let plain = rig.command(&[]);
    command
        .current_dir(rig.project())
        .env_clear()
        .stdin(Stdio::null());
    command.envs(
        plain
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    match command.output() {
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("unshare: ") => {
            assert_fixed(&Ran(output));
        }
        _ => eprintln!("skipped: no user namespace can be made here"),
    }
}

/// A kernel without namespaces and Landlock, as strace answers for it.
#[test]
#[cfg(target_os = "linux")]
fn demo_continues_without_a_sandbox() {
    if !has_strace() {
        eprintln!("skipped: strace cannot trace here");
        return;
    }
    let rig = rig();
    let refused = [
        "-e",
        "trace=clone3,unshare,landlock_create_ruleset",
        "-e",
        "inject=clone3:error=ENOSYS",
        "-e",
        "inject=unshare:error=EPERM",
        "-e",
        "inject=landlock_create_ruleset:error=EOPNOTSUPP",
        "-o",
        "/dev/null",
    ];
    let ran = Ran(rig
        .command_under_strace(&refused, &["demo"])
        .output()
        .unwrap());
    assert_fixed(&ran);
    let out = ran.stdout();
    assert!(
        out.contains("sandbox: commands run without a sandbox")
            && out.contains("The demo continues without one"),
        "{out}"
    );
}
