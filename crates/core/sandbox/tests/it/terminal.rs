//! Commands with their own terminal.

use std::time::Duration;

use haft_sandbox::{
    Aftermath, AwaitedInput, Capture, CapturedOutput, CommandExit, CommandSpec, PidNamespace,
    SandboxError, TerminalSession, TerminalSize, TypingError, WaitEnd,
};
use haft_text::CutLimits;
use tempfile::TempDir;

use crate::processes::{DAEMONS, mark, marked_processes, wait_until};
use crate::{WAYS, block_on, path, shell, supervisor};

/// Longer than any command takes, so that no timing decides a test.
const LONG: Duration = Duration::from_mins(2);

fn open_terminal(way: PidNamespace, command: CommandSpec, capture: Capture) -> TerminalSession {
    supervisor(way)
        .open_terminal(
            command,
            TerminalSize {
                rows: 33,
                columns: 123,
            },
            capture,
        )
        .unwrap()
}

fn text(captured: &CapturedOutput) -> String {
    captured.text(CutLimits::default()).text
}

/// Returns the exit of a session that has ended.
fn exit_of(session: &TerminalSession) -> CommandExit {
    session.ending().unwrap().as_ref().as_ref().unwrap().exit
}

#[test]
fn open_terminal_provides_a_real_terminal() {
    let line =
        "tty; test -t 0 -a -t 1 -a -t 2 && echo terminal; stty size; echo tty > /dev/tty; exit 7";
    for way in WAYS {
        block_on(async {
            let session = open_terminal(way, shell(line, "/".as_ref()), Capture::default());
            assert_eq!(
                session.type_and_wait(b"", LONG).await.unwrap(),
                WaitEnd::Ended
            );
            assert_eq!(exit_of(&session), CommandExit::Code(7));
            let text = text(&session.take_new_output());
            assert!(text.starts_with("/dev/pts/"), "{text}");
            assert!(text.ends_with("\nterminal\n33 123\ntty\n"), "{text}");
        });
    }
}

#[test]
fn interact_sends_answers_and_returns_prompts() {
    let line = r#"printf 'name? '; read name; printf 'secret? '; stty -echo; read secret; stty echo; echo; echo "$name:$secret""#;
    for way in WAYS {
        block_on(async {
            let session = open_terminal(way, shell(line, "/".as_ref()), Capture::default());
            assert_eq!(
                session.type_and_wait(b"", LONG).await.unwrap(),
                WaitEnd::Awaits(AwaitedInput::Line)
            );
            assert_eq!(text(&session.take_new_output()), "name? ");
            assert_eq!(
                session.type_and_wait(b"", LONG).await.unwrap(),
                WaitEnd::Awaits(AwaitedInput::Line),
                "it still waits"
            );
            assert_eq!(text(&session.take_new_output()), "");
            assert_eq!(
                session.type_and_wait(b"ann\r", LONG).await.unwrap(),
                WaitEnd::Awaits(AwaitedInput::Hidden)
            );
            assert_eq!(text(&session.take_new_output()), "ann\nsecret? ");
            assert_eq!(
                session.type_and_wait(b"s3\r", LONG).await.unwrap(),
                WaitEnd::Ended
            );
            assert_eq!(text(&session.take_new_output()), "\nann:s3\n");
            assert_eq!(exit_of(&session), CommandExit::Code(0));
            assert_eq!(
                session.type_and_wait(b"more\r", LONG).await.unwrap(),
                WaitEnd::Ended,
                "nobody listens any more"
            );
        });
    }
}

#[test]
fn keys_are_sent_to_the_foreground_program() {
    block_on(async {
        let session = open_terminal(
            WAYS[0],
            shell("cat; echo after", "/".as_ref()),
            Capture::default(),
        );
        assert_eq!(
            session.type_and_wait(b"", LONG).await.unwrap(),
            WaitEnd::Awaits(AwaitedInput::Line)
        );
        assert_eq!(
            session.type_and_wait(b"one\r", LONG).await.unwrap(),
            WaitEnd::Awaits(AwaitedInput::Line)
        );
        assert_eq!(text(&session.take_new_output()), "one\none\n");
        // Ctrl-D, the end of input.
        assert_eq!(
            session.type_and_wait(b"\x04", LONG).await.unwrap(),
            WaitEnd::Ended
        );
        assert_eq!(text(&session.take_new_output()), "after\n");

        let session = open_terminal(
            WAYS[0],
            shell("echo up; exec sleep 1000", "/".as_ref()),
            Capture::default(),
        );
        assert_eq!(
            session.type_and_wait(b"", LONG).await.unwrap(),
            WaitEnd::Quiet
        );
        assert_eq!(
            session
                .type_and_wait(b"", Duration::from_millis(300))
                .await
                .unwrap(),
            WaitEnd::Busy
        );
        assert_eq!(
            session.type_and_wait(b"\x03", LONG).await.unwrap(),
            WaitEnd::Ended
        );
        assert_eq!(exit_of(&session), CommandExit::Signal(2));
    });
}

#[test]
fn interact_reports_a_program_that_waits_for_a_key() {
    // In cbreak mode, like editors and pagers: once blocked in a read, once in a poll.
    let poll = "import select,sys,termios,tty; tty.setcbreak(0); print('ready'); select.poll; p=select.poll(); p.register(0); p.poll(); print(sys.stdin.read(1))";
    let read = "import os,tty; tty.setcbreak(0); print('ready'); print(os.read(0, 1))";
    for program in [poll, read] {
        block_on(async {
            let command = CommandSpec {
                argv: vec!["python3".into(), "-c".into(), program.into()],
                ..shell("", "/".as_ref())
            };
            let session = open_terminal(WAYS[0], command, Capture::default());
            let pause = session.type_and_wait(b"", LONG).await.unwrap();
            if matches!(
                session.ending().as_deref(),
                Some(Err(SandboxError::Program { .. }))
            ) {
                return eprintln!("skipped: there is no python3");
            }
            assert_eq!(pause, WaitEnd::Awaits(AwaitedInput::Key));
            assert_eq!(
                session.type_and_wait(b"q", LONG).await.unwrap(),
                WaitEnd::Ended
            );
            assert!(text(&session.take_new_output()).contains('q'));
        });
    }
}

#[test]
fn interact_reports_quiet_or_busy_programs_as_not_waiting() {
    block_on(async {
        // The program reads from a pipe, not from the terminal.
        let session = open_terminal(
            WAYS[0],
            shell("echo up; sleep 1000 | cat", "/".as_ref()),
            Capture::default(),
        );
        assert_eq!(
            session.type_and_wait(b"", LONG).await.unwrap(),
            WaitEnd::Quiet
        );
        assert_eq!(text(&session.take_new_output()), "up\n");
        assert_eq!(
            session
                .type_and_wait(b"", Duration::from_millis(300))
                .await
                .unwrap(),
            WaitEnd::Busy
        );
    });
}

#[test]
fn interact_rejects_a_line_longer_than_the_terminal_accepts() {
    block_on(async {
        let session = open_terminal(
            WAYS[0],
            shell("read line; echo ${#line}", "/".as_ref()),
            Capture::default(),
        );
        session.type_and_wait(b"", LONG).await.unwrap();
        let long = [b"x".repeat(4_096), b"\r".to_vec()].concat();
        assert!(matches!(
            session.type_and_wait(&long, LONG).await,
            Err(TypingError::LongLine { bytes: 4_096 })
        ));
        assert_eq!(
            session.type_and_wait(&long[1..], LONG).await.unwrap(),
            WaitEnd::Ended
        );
        assert!(text(&session.take_new_output()).ends_with("4095\n"));
    });
}

#[test]
fn take_output_is_bounded_and_the_spill_file_is_whole() {
    let folder = TempDir::new().unwrap();
    let limits = CutLimits {
        lines: 100,
        bytes: 4_096,
    };
    block_on(async {
        let capture = Capture::with_spill(limits, folder.path().join("out"));
        let session = open_terminal(WAYS[0], shell("seq 1 200000", folder.path()), capture);
        assert_eq!(
            session.type_and_wait(b"", LONG).await.unwrap(),
            WaitEnd::Ended
        );
        let fresh = session.take_new_output();
        assert!(fresh.head.len() <= limits.bytes && fresh.tail.len() <= limits.bytes);
        assert_eq!(fresh.lines, 200_000);
        let all = session.full_output();
        let whole = std::fs::read_to_string(all.spill.unwrap()).unwrap();
        assert_eq!(whole.len() as u64, all.bytes);
        assert!(whole.starts_with("1\r\n2\r\n") && whole.ends_with("200000\r\n"));
        assert_eq!(session.take_new_output().bytes, 0);
    });
}

#[test]
fn session_leaves_no_processes_however_it_ends() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum End {
        Stop,
        Drop,
        Exit,
        Timeout,
    }
    for way in WAYS {
        for end in [End::Stop, End::Drop, End::Exit, End::Timeout] {
            let folder = TempDir::new().unwrap();
            let last = if end == End::Exit {
                "exit 4"
            } else {
                "read never"
            };
            let command = shell(&format!("{DAEMONS}\n{last}"), folder.path());
            let mut command = command.with_env(vec![path(), mark(folder.path())]);
            if end == End::Timeout {
                command = command.with_timeout(Duration::from_secs(2));
            }
            block_on(async {
                let session = open_terminal(way, command, Capture::default());
                match end {
                    End::Stop | End::Drop => {
                        assert_eq!(
                            session.type_and_wait(b"", LONG).await.unwrap(),
                            WaitEnd::Awaits(AwaitedInput::Line)
                        );
                        assert_ne!(marked_processes(folder.path()), [0; 0], "the mark works");
                    }
                    End::Exit | End::Timeout => {
                        while session.type_and_wait(b"", LONG).await.unwrap() != WaitEnd::Ended {}
                    }
                }
                let expected = match end {
                    End::Drop => return drop(session),
                    End::Stop => {
                        session.stop();
                        session.wait_for_end().await.unwrap();
                        CommandExit::Cancelled
                    }
                    End::Exit => CommandExit::Code(4),
                    End::Timeout => CommandExit::TimedOut,
                };
                let ending = session.ending().unwrap();
                let finished = ending.as_ref().as_ref().unwrap();
                assert_eq!(
                    (finished.exit, finished.aftermath),
                    (expected, Aftermath::AllGone)
                );
                assert_eq!(marked_processes(folder.path()), [0; 0], "{way:?} {end:?}");
            });
            wait_until("nobody", || marked_processes(folder.path()).is_empty());
        }
    }
}

#[test]
fn session_that_cannot_start_reports_the_error() {
    block_on(async {
        let session = open_terminal(
            WAYS[0],
            shell("true", "/nonexistent".as_ref()),
            Capture::default(),
        );
        assert_eq!(
            session.type_and_wait(b"", LONG).await.unwrap(),
            WaitEnd::Ended
        );
        assert!(matches!(
            session.ending().as_deref(),
            Some(Err(SandboxError::Folder { .. }))
        ));
    });
}
