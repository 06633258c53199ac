//! Commands that run in the background.

use haft_sandbox::{
    Aftermath, AwaitedInput, Capture, CommandExit, CommandSpec, LiveCommand, SandboxError,
    SpillFrom,
};
use haft_text::CutLimits;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::{DAEMONS, mark, marked_processes, wait_until};
use crate::{WAYS, block_on, path, shell, supervisor};

#[test]
fn start_merges_both_streams_in_order() {
    for way in WAYS {
        block_on(async {
            let task = supervisor(way).start_background(
                shell("echo 1; echo 2 >&2; echo 3", "/".as_ref()),
                Capture::default(),
            );
            let ending = task.wait_for_end().await.unwrap();
            let finished = ending.as_ref().as_ref().unwrap();
            assert_eq!(
                (finished.exit, finished.stdout.head.as_slice()),
                (CommandExit::Code(0), b"1\n2\n3\n".as_slice())
            );
            assert_eq!(finished.stderr.bytes, 0);
        });
    }
}

#[test]
fn task_output_can_be_read_while_it_runs() {
    let folder = TempDir::new().unwrap();
    block_on(async {
        let limits = CutLimits::default();
        let capture = Capture {
            spill_from: SpillFrom::Start,
            ..Capture::with_spill(limits, folder.path().join("task"))
        };
        let line = "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo over";
        let task = supervisor(WAYS[0]).start_background(shell(line, folder.path()), capture);
        task.live().wait_for_more_bytes(5).await;
        assert!(task.ending().is_none());
        let so_far = task.live().stdout();
        assert_eq!(so_far.text(limits).text, "begun\n");
        let file = so_far.spill.unwrap();
        assert_eq!(file, folder.path().join("task.log"));
        tokio::task::spawn_blocking({
            let file = file.clone();
            move || {
                wait_until("file", || {
                    std::fs::read(&file).is_ok_and(|bytes| bytes == b"begun\n")
                });
            }
        })
        .await
        .unwrap();
        std::fs::write(folder.path().join("go"), "").unwrap();
        task.wait_for_end().await.unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"begun\nover\n");
        drop(task);
        assert!(file.exists(), "it stays");
    });
}

#[test]
fn task_leaves_no_processes_when_stopped_or_dropped() {
    for way in WAYS {
        for stop in [true, false] {
            let folder = TempDir::new().unwrap();
            block_on(async {
                let command = shell(&format!("{DAEMONS}\nsleep 1000"), folder.path());
                let command = command.with_env(vec![path(), mark(folder.path())]);
                let task = supervisor(way).start_background(command, Capture::default());
                let ready = folder.path().join("ready");
                tokio::task::spawn_blocking(move || wait_until("daemons", || ready.exists()))
                    .await
                    .unwrap();
                assert_ne!(marked_processes(folder.path()), [0; 0], "the mark works");
                if stop {
                    task.stop();
                    let ending = task.wait_for_end().await.unwrap();
                    let finished = ending.as_ref().as_ref().unwrap();
                    assert_eq!(
                        (finished.exit, finished.aftermath),
                        (CommandExit::Cancelled, Aftermath::AllGone)
                    );
                    assert_eq!(marked_processes(folder.path()), [0; 0], "{way:?}");
                }
            });
            wait_until("nobody", || marked_processes(folder.path()).is_empty());
        }
    }
}

#[test]
fn task_that_cannot_start_reports_the_error() {
    block_on(async {
        let task = supervisor(WAYS[0])
            .start_background(shell("true", "/nonexistent".as_ref()), Capture::default());
        assert!(matches!(
            task.wait_for_end().await.as_deref(),
            Some(Err(SandboxError::Folder { .. }))
        ));
    });
}

#[test]
fn awaits_input_finds_a_command_waiting_at_its_own_terminal() {
    let folder = TempDir::new().unwrap();
    block_on(async {
        let live = LiveCommand::default();
        let cancel = CancellationToken::new();
        // The parent holds the other end of the terminal and never writes.
        let program =
            "import os, pty\npid, fd = pty.fork()\nif pid == 0: input()\nos.waitpid(pid, 0)";
        let command = CommandSpec {
            argv: vec!["python3".into(), "-c".into(), program.into()],
            ..shell("", folder.path())
        };
        let supervisor = supervisor(WAYS[0]);
        let capture = Capture::default();
        let mut running = Box::pin(supervisor.run_watched(&command, &capture, &cancel, &live));
        loop {
            tokio::select! {
                finished = &mut running => {
                    assert!(matches!(finished, Err(SandboxError::Program { .. })), "it waits until it is ended");
                    return eprintln!("skipped: there is no python3");
                }
                () = tokio::time::sleep(std::time::Duration::from_millis(10)) => {}
            }
            if live.awaited_input().is_some() {
                break;
            }
        }
        assert_eq!(live.awaited_input(), Some(AwaitedInput::Line));
        cancel.cancel();
        assert_eq!(running.await.unwrap().exit, CommandExit::Cancelled);
        assert_eq!(live.awaited_input(), None);
    });
}
