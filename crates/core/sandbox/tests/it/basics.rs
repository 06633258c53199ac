//! Exit codes, errors, and the surroundings of a command.

use std::fs;

use haft_sandbox::{
    Aftermath, Capture, CommandExit, CommandSpec, OwnProgram, SandboxError, Supervisor,
};
use haft_text::CutLimits;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{WAYS, block_on, run, shell};

fn output_in_both_ways(line: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    WAYS.map(|way| {
        let finished = run(way, &shell(line, folder.path()), &Capture::default()).unwrap();
        finished.stdout.text(CutLimits::default()).text
            + &finished.stderr.text(CutLimits::default()).text
    })
    .to_vec()
}

#[test]
fn run_reports_exit_codes_and_signals() {
    for way in WAYS {
        let exit = |line| {
            let finished = run(way, &shell(line, "/".as_ref()), &Capture::default()).unwrap();
            assert_eq!(finished.aftermath, Aftermath::AllGone);
            finished.exit
        };
        assert_eq!(exit("true"), CommandExit::Code(0));
        assert_eq!(exit("exit 3"), CommandExit::Code(3));
        assert_eq!(exit("exit 255"), CommandExit::Code(255));
        assert_eq!(exit("kill -9 $$"), CommandExit::Signal(9));
        assert_eq!(exit("kill -TERM $$"), CommandExit::Signal(15));
        assert_eq!(exit("no-such-program-here"), CommandExit::Code(127));
    }
}

#[test]
fn run_without_namespace_creates_none() {
    let command = shell("[ $PPID = 1 ]", "/".as_ref());
    let finished = run(
        haft_sandbox::PidNamespace::Never,
        &command,
        &Capture::default(),
    )
    .unwrap();
    assert_eq!(
        finished.exit,
        CommandExit::Code(1),
        "in one the keeper is the first process"
    );
}

#[test]
fn run_passes_exactly_the_given_environment() {
    for way in WAYS {
        let env = [("B", "2 = two"), ("A", ""), ("C", "é\n")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = CommandSpec {
            argv: vec!["/usr/bin/env".into(), "-0".into()],
            ..CommandSpec::shell("", "/")
        };
        let finished = run(way, &command.with_env(env.to_vec()), &Capture::default()).unwrap();
        let mut seen: Vec<_> = finished
            .stdout
            .head
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect();
        seen.sort();
        assert_eq!(
            seen,
            [
                b"".to_vec(),
                b"A=".to_vec(),
                b"B=2 = two".to_vec(),
                "C=é\n".into()
            ]
        );
    }
}

#[test]
fn run_finds_the_program_in_the_given_path() {
    let command = CommandSpec {
        argv: vec!["true".into()],
        ..shell("", "/".as_ref())
    };
    assert_eq!(
        run(WAYS[0], &command, &Capture::default()).unwrap().exit,
        CommandExit::Code(0)
    );
    let nowhere = command.with_env(vec![("PATH".into(), "/nonexistent".into())]);
    assert!(matches!(
        run(WAYS[0], &nowhere, &Capture::default()),
        Err(SandboxError::Program { .. })
    ));
}

#[test]
fn run_starts_commands_with_default_signals_and_descriptors() {
    let line = "grep -E 'Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0";
    for text in output_in_both_ways(line) {
        let lines: Vec<_> = text.lines().collect();
        let [blocked, ignored, descriptors] = lines[..] else {
            panic!("{text}")
        };
        let signals =
            |line: &str| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        // The C library reserves two signals above 31, which cannot be changed through it.
        assert_eq!(
            (signals(blocked), signals(ignored) & 0x7fff_ffff),
            (0, 0),
            "{text}"
        );
        assert_eq!(
            descriptors, "0 1 2 3 /dev/null",
            "none of ours, and nothing to read"
        );
    }
    for text in output_in_both_ways(
        "pwd -P; if (: < /dev/tty) 2> /dev/null; then echo terminal; fi; read answer || echo end of input",
    ) {
        let (folder, rest) = text.split_once('\n').unwrap();
        assert!(!folder.is_empty());
        assert_eq!(rest, "end of input\n");
    }
}

#[test]
fn run_shows_the_commands_own_pids_in_proc() {
    for text in
        output_in_both_ways("cat /proc/$$/comm; test -e /proc/$PPID/stat && echo parent; id -u")
    {
        let uid = rustix::process::getuid();
        assert_eq!(text, format!("sh\nparent\n{uid}\n"));
    }
}

#[test]
fn run_reports_a_missing_folder() {
    let folder = TempDir::new().unwrap();
    for way in WAYS {
        let missing = folder.path().join("missing");
        let error = run(way, &shell("true", &missing), &Capture::default()).unwrap_err();
        assert!(matches!(error, SandboxError::Folder { .. }));
        let message = error.to_string();
        assert!(
            message.contains(missing.to_str().unwrap()) && message.contains("No such file"),
            "{message}"
        );
    }
}

#[test]
fn run_reports_a_missing_program() {
    for way in WAYS {
        let command = CommandSpec {
            argv: vec!["/nonexistent/program".into()],
            ..CommandSpec::shell("", "/")
        };
        let error = run(way, &command, &Capture::default()).unwrap_err();
        assert!(matches!(error, SandboxError::Program { .. }));
        assert!(error.to_string().contains("/nonexistent/program"));
    }
}

#[test]
fn run_reports_arguments_that_are_too_long() {
    let line = format!(": {}", "x".repeat(4 << 20));
    let error = run(WAYS[0], &shell(&line, "/".as_ref()), &Capture::default()).unwrap_err();
    assert!(matches!(error, SandboxError::Program { .. }), "{error}");
}

#[test]
fn run_uses_the_opened_helper_even_if_its_file_is_replaced() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("haft");
    drop(Supervisor::for_tests().unwrap());
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let supervisor = Supervisor::new(OwnProgram::open(&program).unwrap());
    let planted = folder.path().join("planted");
    let replace = "mv haft old && printf '#!/bin/sh\\ntouch planted\\n' > haft && chmod 700 haft";
    for line in [replace, "true", "rm old haft", "true"] {
        let command = shell(line, folder.path());
        let finished =
            block_on(supervisor.run(&command, &Capture::default(), &CancellationToken::new()))
                .unwrap();
        assert_eq!(finished.exit, CommandExit::Code(0), "{line}");
        assert!(!planted.exists(), "{line}");
    }
}

#[test]
fn run_reports_a_program_that_is_no_helper() {
    let run = |helper: OwnProgram| {
        block_on(Supervisor::new(helper).run(
            &shell("true", "/".as_ref()),
            &Capture::default(),
            &CancellationToken::new(),
        ))
    };
    assert!(matches!(
        run(OwnProgram::default()),
        Err(SandboxError::Helper { .. })
    ));
    assert!(matches!(
        run(OwnProgram::open("/bin/true").unwrap()),
        Err(SandboxError::HelperLost { .. })
    ));
}

#[test]
fn helper_started_by_hand_exits_at_once() {
    let program = std::env::current_exe().unwrap();
    let output = std::process::Command::new(program)
        .arg(haft_sandbox::HELPER_ARG)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
}
