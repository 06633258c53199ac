//! Tests of the helper that is started before its command.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haft_sandbox::{Capture, CommandExit, LiveCommand, OwnProgram, PidNamespace, Supervisor};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::{self, wait_until};
use crate::{block_on, shell};

/// Returns the living processes that were started under this name.
fn helpers(program: &Path) -> Vec<i32> {
    let name = program.as_os_str().as_encoded_bytes();
    let is_ours = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(name))
    };
    processes::all_processes()
        .into_iter()
        .filter(is_ours)
        .filter(|pid| processes::is_alive(*pid))
        .collect()
}

/// True if this process itself started `pid`. A command's keeper has the name of its helper but is
/// the helper's child.
fn is_child(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let parent = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_whitespace().nth(1))
        .and_then(|parent| parent.parse::<u32>().ok());
    parent == Some(std::process::id())
}

#[test]
fn helper_waits_for_the_next_command_and_ends_with_haft() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("helper");
    drop(Supervisor::for_tests().unwrap());
    symlink(std::env::current_exe().unwrap(), &program).unwrap();
    // A helper that ran a command, and its keeper, may still be ending.
    let waiting_besides = |used: i32| {
        let waiting = || {
            let mut all = helpers(&program);
            all.retain(|pid| *pid != used && is_child(*pid));
            all
        };
        wait_until("one helper waits", || waiting().len() == 1);
        waiting()[0]
    };
    block_on(async {
        let supervisor = Supervisor::new(OwnProgram::open(&program).unwrap())
            .with_pid_namespace(PidNamespace::Never);
        // Prints the pid of the helper: the parent of the keeper, which is the command's parent.
        let command = shell("cut -d ' ' -f 4 /proc/$PPID/stat", folder.path());
        let run = async || {
            let capture = Capture::default();
            let cancel = CancellationToken::new();
            let live = LiveCommand::default();
            let finished = supervisor
                .run_watched(&command, &capture, &cancel, &live)
                .await
                .unwrap();
            assert_eq!(finished.exit, CommandExit::Code(0));
            finished
                .stdout
                .text(capture.limits)
                .text
                .trim()
                .parse::<i32>()
                .unwrap()
        };
        let used = run().await;
        let first = waiting_besides(used);
        assert_eq!(
            run().await,
            first,
            "the one that waited runs the next command"
        );

        let second = waiting_besides(first);
        kill_process(Pid::from_raw(second).unwrap(), Signal::KILL).unwrap();
        wait_until("it is dead", || !processes::is_alive(second));
        let used = run().await;
        assert_ne!(used, second, "a dead one is not waited for");
        waiting_besides(used);
    });
    wait_until("the last one has gone with its supervisor", || {
        helpers(&program).is_empty()
    });
}
