//! Every end of a command also ends all processes it started.

use std::time::Duration;

use haft_sandbox::{
    Aftermath, Capture, CommandExit, CommandSpec, OwnProgram, PidNamespace, SandboxError,
    Supervisor,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::{DAEMONS, mark, marked_processes, wait_until};
use crate::{WAYS, block_on, path, run, shell, supervisor};

/// Returns a command that starts daemons and then runs `line`.
fn command_with_daemons(line: &str, folder: &TempDir) -> CommandSpec {
    let command = shell(&format!("{DAEMONS}\n{line}"), folder.path());
    command.with_env(vec![path(), mark(folder.path())])
}

#[test]
fn run_leaves_no_processes_after_an_exit() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        let finished = run(
            way,
            &command_with_daemons("exit 4", &folder),
            &Capture::default(),
        )
        .unwrap();
        assert!(folder.path().join("ready").exists());
        assert_eq!(
            (finished.exit, finished.aftermath),
            (CommandExit::Code(4), Aftermath::AllGone)
        );
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way:?}");
    }
}

#[test]
fn run_leaves_no_processes_after_a_timeout() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        let command = command_with_daemons("sleep 1000; sleep 1000", &folder)
            .with_timeout(Duration::from_secs(2));
        let finished = run(way, &command, &Capture::default()).unwrap();
        assert_eq!(
            (finished.exit, finished.aftermath),
            (CommandExit::TimedOut, Aftermath::AllGone)
        );
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way:?}");
    }
}

#[test]
fn run_leaves_no_processes_after_a_cancel() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        let cancel = CancellationToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("daemons", || folder.path().join("ready").exists());
                assert_ne!(marked_processes(folder.path()), [0; 0], "the mark works");
                cancel.cancel();
            });
            let command = command_with_daemons("sleep 1000; sleep 1000", &folder);
            let finished =
                block_on(supervisor(way).run(&command, &Capture::default(), &cancel)).unwrap();
            assert_eq!(
                (finished.exit, finished.aftermath),
                (CommandExit::Cancelled, Aftermath::AllGone)
            );
        });
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way:?}");
    }
}

#[test]
fn run_leaves_no_processes_when_dropped() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        block_on(async {
            let folder_path = folder.path().to_owned();
            let command = command_with_daemons("sleep 1000", &folder);
            let running = tokio::spawn(async move {
                supervisor(way)
                    .run(&command, &Capture::default(), &CancellationToken::new())
                    .await
                    .map(|_| ())
            });
            tokio::task::spawn_blocking(move || {
                wait_until("daemons", || folder_path.join("ready").exists());
            })
            .await
            .unwrap();
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
        });
        wait_until("nobody", || marked_processes(folder.path()).is_empty());
    }
}

#[test]
fn run_starts_nothing_with_a_canceled_token() {
    let folder = TempDir::new().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let finished = block_on(supervisor(WAYS[0]).run(
        &shell("touch started", folder.path()),
        &Capture::default(),
        &cancel,
    ))
    .unwrap();
    assert_eq!(finished.exit, CommandExit::Cancelled);
    assert!(!folder.path().join("started").exists());
}

#[test]
fn run_sends_a_term_signal_first_on_cancel() {
    let folder = TempDir::new().unwrap();
    let line = "trap 'touch asked; exit' TERM; touch ready; while :; do sleep 0.01; done";
    for way in WAYS {
        let cancel = CancellationToken::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_until("trap", || folder.path().join("ready").exists());
                cancel.cancel();
            });
            let command = shell(line, folder.path());
            let finished =
                block_on(supervisor(way).run(&command, &Capture::default(), &cancel)).unwrap();
            assert_eq!(finished.exit, CommandExit::Cancelled);
        });
        std::fs::remove_file(folder.path().join("asked")).unwrap();
        std::fs::remove_file(folder.path().join("ready")).unwrap();
    }
}

#[test]
fn run_ends_stopped_processes() {
    for way in WAYS {
        let folder = TempDir::new().unwrap();
        let line = "sh -c 'kill -STOP $$' & exit 0";
        let command = shell(line, folder.path()).with_env(vec![path(), mark(folder.path())]);
        run(way, &command, &Capture::default()).unwrap();
        assert_eq!(marked_processes(folder.path()), [0; 0]);
    }
}

#[test]
fn keeper_that_is_killed_leaves_no_processes() {
    let folder = TempDir::new().unwrap();
    let command = command_with_daemons("kill -9 $PPID; sleep 1000", &folder);
    let error = run(PidNamespace::Never, &command, &Capture::default()).unwrap_err();
    assert!(matches!(error, SandboxError::HelperLost { .. }));
    assert_eq!(marked_processes(folder.path()), [0; 0]);
}

#[test]
fn guard_that_is_killed_leaves_no_processes() {
    let folder = TempDir::new().unwrap();
    let line = r#"read -r _ _ _ guard _ < /proc/$PPID/stat; kill -9 "$guard"; sleep 1000"#;
    let error = run(
        PidNamespace::Never,
        &command_with_daemons(line, &folder),
        &Capture::default(),
    )
    .unwrap_err();
    assert!(matches!(error, SandboxError::HelperLost { .. }));
    assert_eq!(marked_processes(folder.path()), [0; 0]);
}

#[test]
fn keeper_in_a_namespace_cannot_be_killed() {
    let folder = TempDir::new().unwrap();
    // Checked first: without a namespace, the line would kill another process.
    let first = shell("[ $PPID = 1 ]", folder.path());
    if run(PidNamespace::Privileged, &first, &Capture::default())
        .unwrap()
        .exit
        == CommandExit::Code(0)
    {
        let command = command_with_daemons("kill -9 $PPID; exit 5", &folder);
        let finished = run(PidNamespace::Privileged, &command, &Capture::default()).unwrap();
        assert_eq!(finished.exit, CommandExit::Code(5));
        assert_eq!(marked_processes(folder.path()), [0; 0]);
    }
}

/// A helper that frees the disk space of covers lingers for up to a tenth of a second.
#[test]
fn run_does_not_wait_for_the_helper() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join(haft_sandbox::LINGERING_HELPER);
    drop(Supervisor::for_tests().unwrap());
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let helper = Supervisor::new(OwnProgram::open(&program).unwrap());
    let command = shell("true", folder.path());
    let finished =
        block_on(helper.run(&command, &Capture::default(), &CancellationToken::new())).unwrap();
    assert_eq!(
        (finished.exit, finished.aftermath),
        (CommandExit::Code(0), Aftermath::AllGone)
    );
}
