//! Tests the guard of systems other than Linux; the environment variable selects it here.

use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{
    Aftermath, Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec,
    ConfinementStep, Network, PidNamespace, SandboxError, SandboxPolicy,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::{mark, marked_processes, wait_until};
use crate::{block_on, path, run, shell, supervisor};

/// Returns a command that starts one background process, one that ignores the TERM signal and one
/// in its own session, and then runs `line`.
fn command_with_children(line: &str, folder: &TempDir) -> CommandSpec {
    let children =
        "sleep 1000 & (trap '' TERM; sleep 1000; sleep 1000) & setsid sleep 1000 & : > ready";
    let portable = ("HAFT_TEST_PORTABLE_GUARD".to_owned(), "1".to_owned());
    shell(&format!("{children}\n{line}"), folder.path()).with_env(vec![
        path(),
        mark(folder.path()),
        portable,
    ])
}

#[test]
fn portable_guard_ends_the_session_of_a_finished_command() {
    let folder = TempDir::new().unwrap();
    let command =
        command_with_children("kill $!; wait $!; echo out; echo err >&2; exit 4", &folder);
    let finished = run(PidNamespace::Never, &command, &Capture::default()).unwrap();
    assert_eq!(
        (finished.exit, finished.aftermath),
        (CommandExit::Code(4), Aftermath::AllGone)
    );
    assert_eq!(finished.stdout.head, b"out\n");
    assert!(
        finished.stderr.head.ends_with(b"err\n"),
        "some shells say before it what became of the child"
    );
    assert_eq!(marked_processes(folder.path()), [0; 0]);
}

#[test]
fn portable_guard_ends_descendants_of_a_command_after_a_timeout() {
    let folder = TempDir::new().unwrap();
    let command = command_with_children("sleep 1000; sleep 1000", &folder)
        .with_timeout(Duration::from_secs(2));
    let finished = run(PidNamespace::Never, &command, &Capture::default()).unwrap();
    assert_eq!(
        (finished.exit, finished.aftermath),
        (CommandExit::TimedOut, Aftermath::AllGone)
    );
    assert_eq!(
        marked_processes(folder.path()),
        [0; 0],
        "also what has left the session, while its parent lives"
    );
}

#[test]
fn portable_guard_ends_descendants_of_a_canceled_command() {
    let folder = TempDir::new().unwrap();
    let cancel = CancellationToken::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("children", || folder.path().join("ready").exists());
            cancel.cancel();
        });
        let command = command_with_children("sleep 1000; sleep 1000", &folder);
        let finished =
            block_on(supervisor(PidNamespace::Never).run(&command, &Capture::default(), &cancel))
                .unwrap();
        assert_eq!(
            (finished.exit, finished.aftermath),
            (CommandExit::Cancelled, Aftermath::AllGone)
        );
    });
    assert_eq!(marked_processes(folder.path()), [0; 0]);
}

#[test]
fn portable_guard_refuses_confined_commands() {
    let folder = TempDir::new().unwrap();
    let policy = SandboxPolicy {
        projects: vec![folder.path().to_owned()],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden: Vec::new(),
        readable: Vec::new(),
        tmp: folder.path().to_owned(),
        notes: folder.path().to_owned(),
        home: None,
        network: Network::None,
    };
    let confined = Arc::new(ConfinementSpec {
        method: ConfinementMethod::Namespace,
        policy,
    });
    let command = command_with_children("true", &folder).with_confinement(Some(confined));
    let refused = run(PidNamespace::Never, &command, &Capture::default());
    assert!(
        matches!(
            refused,
            Err(SandboxError::Confinement {
                step: ConfinementStep::Namespaces,
                ..
            })
        ),
        "{refused:?}"
    );
    assert!(!folder.path().join("ready").exists());
}
