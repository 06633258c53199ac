//! Tests in which haft is killed or runs without privilege: a separate process acts as haft.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{Capture, PidNamespace, TerminalSize};
use haft_text::CutLimits;
use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::{DAEMONS, is_alive, mark, marked_processes, process_family, wait_until};
use crate::{block_on, path, shell, supervisor};

const WAY: &str = "HAFT_TEST_WAY";
const LINE: &str = "HAFT_TEST_LINE";
const FOLDER: &str = "HAFT_TEST_FOLDER";
const KIND: &str = "HAFT_TEST_KIND";
const TIMEOUT: &str = "HAFT_TEST_TIMEOUT";
const NOBODY: u32 = 65534;
/// The ways to run a command.
const KINDS: [&str; 3] = ["plain", "background", "terminal"];

/// Acts as haft: runs one command as the environment variables request.
#[test]
#[ignore = "started by the other tests as a process of its own"]
fn stand_in() {
    let (Ok(way), Ok(line), Ok(folder)) = (
        std::env::var(WAY),
        std::env::var(LINE),
        std::env::var(FOLDER),
    ) else {
        return;
    };
    let way = match way.as_str() {
        "privileged" => PidNamespace::Privileged,
        "never" => PidNamespace::Never,
        other => panic!("{other} is no way"),
    };
    let folder = Path::new(&folder);
    let mut command = shell(&line, folder).with_env(vec![path(), mark(folder)]);
    if let Ok(millis) = std::env::var(TIMEOUT) {
        command = command.with_timeout(Duration::from_millis(millis.parse().unwrap()));
    }
    let supervisor = supervisor(way);
    let capture = Capture::default();
    let told_to_stop = async {
        while !folder.join("stop").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ending = block_on(async {
        match std::env::var(KIND).unwrap().as_str() {
            "plain" => {
                let cancel = CancellationToken::new();
                let mut run = std::pin::pin!(supervisor.run(&command, &capture, &cancel));
                tokio::select! {
                    finished = &mut run => Arc::new(finished),
                    () = told_to_stop => {
                        cancel.cancel();
                        Arc::new(run.await)
                    }
                }
            }
            "background" => {
                let task = supervisor.start_background(command, capture);
                tokio::select! {
                    ending = task.wait_for_end() => return ending.unwrap(),
                    () = told_to_stop => task.stop(),
                }
                task.wait_for_end().await.unwrap()
            }
            "terminal" => {
                let session = supervisor
                    .open_terminal(command, TerminalSize::default(), capture)
                    .unwrap();
                tokio::select! {
                    ending = session.wait_for_end() => return ending.unwrap(),
                    () = told_to_stop => session.stop(),
                }
                session.wait_for_end().await.unwrap()
            }
            other => panic!("{other} is no kind"),
        }
    });
    let finished = ending.as_ref().as_ref().unwrap();
    let text = finished.stdout.text(CutLimits::default()).text;
    fs::write(
        folder.join("told"),
        format!("{:?} {:?}\n{text}", finished.exit, finished.aftermath),
    )
    .unwrap();
}

fn start_stand_in(program: &Path, (way, kind): (&str, &str), line: &str, folder: &Path) -> Process {
    let mut stand_in = Process::new(program);
    stand_in
        .args([
            "stand_in::stand_in",
            "--exact",
            "--ignored",
            "--test-threads=1",
        ])
        .env(WAY, way)
        .env(KIND, kind)
        .env(LINE, line)
        .env(FOLDER, folder)
        .current_dir(folder)
        .stdout(Stdio::null());
    stand_in
}

fn kill_and_expect_no_processes(mut stand_in: Child, folder: &Path) {
    wait_until("daemons", || folder.join("ready").exists());
    let pid = Pid::from_child(&stand_in);
    let family = process_family(pid.as_raw_nonzero().get());
    assert!(
        family.len() > 4,
        "guard, keeper, command and daemons belong to it: {family:?}"
    );
    kill_process(pid, Signal::KILL).unwrap();
    stand_in.wait().unwrap();
    wait_until("nobody", || marked_processes(folder).is_empty());
    wait_until("helpers", || !family.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn helper_ends_all_processes_when_haft_is_killed() {
    let program = std::env::current_exe().unwrap();
    for way in ["privileged", "never"] {
        for kind in KINDS {
            let folder = TempDir::new().unwrap();
            let line = format!("{DAEMONS}\nsleep 1000");
            kill_and_expect_no_processes(
                start_stand_in(&program, (way, kind), &line, folder.path())
                    .spawn()
                    .unwrap(),
                folder.path(),
            );
        }
    }
}

#[test]
fn helper_is_not_reached_by_signals_to_the_process_group() {
    let program = std::env::current_exe().unwrap();
    for way in ["privileged", "never"] {
        let folder = TempDir::new().unwrap();
        let line = format!("{DAEMONS}\nsleep 1000");
        let mut stand_in = start_stand_in(&program, (way, "plain"), &line, folder.path())
            .process_group(0)
            .spawn()
            .unwrap();
        wait_until("daemons", || folder.path().join("ready").exists());
        let pid = Pid::from_child(&stand_in);
        let family = process_family(pid.as_raw_nonzero().get());
        // As a terminal sends one: haft dies, and the helper notices only its death. Not an
        // interrupt, which background processes of a script, such as these tests, ignore.
        rustix::process::kill_process_group(pid, Signal::TERM).unwrap();
        wait_until("its end", || stand_in.try_wait().unwrap().is_some());
        wait_until("nobody", || marked_processes(folder.path()).is_empty());
        wait_until("helpers", || !family.iter().any(|pid| is_alive(*pid)));
    }
}

/// Runs as nobody, in a user namespace if the system allows it, with a copy of this program that
/// every user can read.
#[test]
fn helper_ends_all_processes_without_privilege() {
    let shared = TempDir::new().unwrap();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = shared.path().join("stand-in");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let ways = ["privileged", "never"].map(|way| (way, "plain"));
    for (way, kind) in ways
        .into_iter()
        .chain([("never", "background"), ("never", "terminal")])
    {
        let folder = TempDir::new().unwrap();
        let nobody = |mut process: Process| {
            if getuid().is_root() {
                std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
                process.uid(NOBODY).gid(NOBODY);
            }
            process.spawn().unwrap()
        };
        let line = format!("{DAEMONS}\nid -u; exit 6");
        let mut stand_in = nobody(start_stand_in(&program, (way, kind), &line, folder.path()));
        assert!(stand_in.wait().unwrap().success());
        let uid = if getuid().is_root() {
            NOBODY
        } else {
            getuid().as_raw()
        };
        assert_eq!(
            fs::read_to_string(folder.path().join("told")).unwrap(),
            format!("Code(6) AllGone\n{uid}\n")
        );
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way} {kind}");

        // The command times out, is canceled, and haft is killed.
        let line = format!("{DAEMONS}\nsleep 1000");
        let again = || {
            ["ready", "told", "stop"].map(|name| fs::remove_file(folder.path().join(name)).is_ok())
        };
        let told = || fs::read_to_string(folder.path().join("told")).unwrap();
        again();
        let mut late = start_stand_in(&program, (way, kind), &line, folder.path());
        late.env(TIMEOUT, "2000");
        assert!(nobody(late).wait().unwrap().success());
        assert!(
            told().starts_with("TimedOut AllGone"),
            "{way} {kind}: {}",
            told()
        );
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way} {kind}");

        again();
        let mut cancelled = nobody(start_stand_in(&program, (way, kind), &line, folder.path()));
        wait_until("daemons", || folder.path().join("ready").exists());
        fs::write(folder.path().join("stop"), "").unwrap();
        assert!(cancelled.wait().unwrap().success());
        assert!(
            told().starts_with("Cancelled AllGone"),
            "{way} {kind}: {}",
            told()
        );
        assert_eq!(marked_processes(folder.path()), [0; 0], "{way} {kind}");

        again();
        kill_and_expect_no_processes(
            nobody(start_stand_in(&program, (way, kind), &line, folder.path())),
            folder.path(),
        );
    }
}
