//! A project in a temporary folder, with decoys all around, and bash running lines in it under
//! strace.

use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use haft_tool::Workspace;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tempfile::TempDir;

use crate::trace::{self, Event};

/// The argument with which this program runs lines itself, under strace.
pub(crate) const DRIVE: &str = "--drive";
/// What the driver tries to open before each line, so that the trace tells them apart.
pub(crate) const MARK: &str = "/haft-campaign-line/";
/// Programs with verbs are not at hand; this runs what such a verb is given, behind options it
/// knows.
const STAND_IN: &str = "#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -n|-s|-l|-H|--namespace|--context|--server|--log-level|--host) shift; shift;;
    -*) shift;;
    exec|run) shift; while [ \"${1#-}\" != \"$1\" ]; do shift; done; exec \"$@\";;
    *) exit 0;;
  esac
done
";
/// Somebody who may do little.
const NOBODY: &str = "65534";

pub(crate) struct Jail {
    folder: TempDir,
}

pub(crate) fn can_trace() -> bool {
    Command::new("strace")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Jail {
    pub(crate) fn new() -> std::io::Result<Self> {
        let jail = Self {
            folder: TempDir::with_prefix("haft-permissions-")?,
        };
        let top = jail.top();
        let project = jail.project();
        for folder in [
            "bin",
            "home",
            "elsewhere",
            "project/src",
            "project/sub",
            "project/out",
        ] {
            fs::create_dir_all(top.join(folder))?;
        }
        for (file, text) in [
            ("project/f", "a b\nc d\n"),
            ("project/g", "x\n"),
            ("project/src/a", "a\n"),
            ("project/sub/b", "b\n"),
            ("project/x.txt", "x\n"),
            ("project/secret", "inside\n"),
            ("project/.env", "KEY=1\n"),
            ("project/src/.env", "KEY=2\n"),
            ("project/.gitignore", ".env\n"),
            ("secret", "s\n"),
            ("elsewhere/secret", "s\n"),
        ] {
            fs::write(top.join(file), text)?;
        }
        symlink(top.join("elsewhere"), project.join("away"))?;
        symlink("..", project.join("sub/up"))?;
        // Programs by the names that rules cover, where none of them should ever be found.
        for decoy in [
            "bin/evil",
            "evil",
            "project/evil",
            "project/ls",
            "project/cat",
            "project/timeout",
            "project/src/ls",
            "home/evil",
        ] {
            fs::write(top.join(decoy), "#!/bin/sh\nexit 0\n")?;
            fs::set_permissions(top.join(decoy), Permissions::from_mode(0o755))?;
        }
        for name in ["kubectl", "docker"] {
            fs::write(top.join("bin").join(name), STAND_IN)?;
            fs::set_permissions(top.join("bin").join(name), Permissions::from_mode(0o755))?;
        }
        jail.commit()?;
        // Whoever runs the lines must be able to start this program, wherever it was built.
        fs::copy(std::env::current_exe()?, top.join("driver"))?;
        fs::set_permissions(top.join("driver"), Permissions::from_mode(0o755))?;
        Ok(jail)
    }

    /// Makes a repository of the project, in the middle of a bisection.
    fn commit(&self) -> std::io::Result<()> {
        let git = |arguments: &[&str]| {
            let identity = [
                "-c",
                "user.name=x",
                "-c",
                "user.email=x@x",
                "-c",
                "commit.gpgsign=false",
            ];
            let mut command = Command::new("git");
            command
                .args(identity)
                .args(arguments)
                .current_dir(self.project());
            command.stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        git(&["init", "-q"])?;
        git(&["add", "."])?;
        for text in ["1", "2", "3", "4"] {
            fs::write(self.project().join("src/a"), text)?;
            git(&["commit", "-qam", text])?;
        }
        git(&["bisect", "start", "HEAD", "HEAD~3"]).map(drop)
    }

    fn top(&self) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .unwrap_or_else(|_| self.folder.path().to_owned())
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.top().join("project")
    }

    pub(crate) fn workspace(&self) -> Workspace {
        let top = self.top();
        let root = self.project();
        Workspace {
            cwd: root.clone(),
            root,
            extra: Vec::new(),
            spill: top.join("spill"),
            journal: top.join("journal"),
        }
    }

    /// Runs the lines, one after another, and gives back what each of them did.
    pub(crate) fn run(&self, lines: &[String]) -> Result<Vec<Vec<Event>>, Box<dyn Error>> {
        let top = self.top();
        fs::write(top.join("lines.json"), serde_json::to_vec(lines)?)?;
        let root = rustix::process::getuid().is_root();
        if root {
            let handed = Command::new("chown")
                .args(["-R", &format!("{NOBODY}:{NOBODY}")])
                .arg(&top)
                .status()?;
            if !handed.success() {
                return Err("the jail could not be handed over".into());
            }
        }
        let mut command = if root {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
                "--inh-caps=-all",
                "strace",
            ]);
            command
        } else {
            Command::new("strace")
        };
        let calls = "execve,execveat,open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,truncate,mknod,mknodat";
        command
            .args([
                "-f",
                "--seccomp-bpf",
                "-y",
                "-s",
                "65536",
                "-e",
                &format!("trace={calls}"),
                "-e",
                "signal=none",
                "-o",
            ])
            .arg(top.join("trace"));
        command
            .arg(top.join("driver"))
            .arg(DRIVE)
            .arg(&top)
            .current_dir(&top)
            .stdin(Stdio::null());
        let status = command.status()?;
        if !status.success() {
            return Err(format!("strace ended with {status}").into());
        }
        // What a program wrote need not be text.
        let trace = fs::read(top.join("trace"))?;
        Ok(trace::read(&String::from_utf8_lossy(&trace)))
    }
}

/// The driver: runs each line of `lines.json` as the tool would, and waits until nothing of it is
/// left.
pub(crate) fn drive(top: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let lines: Vec<String> = serde_json::from_slice(&fs::read(top.join("lines.json"))?)?;
    for (number, line) in lines.iter().enumerate() {
        // It does not exist; that it was asked for is in the trace.
        drop(fs::File::open(format!("{MARK}{number}")));
        let child = Command::new("/bin/bash")
            .args(["-c", line])
            .current_dir(top.join("project"))
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/local/bin:/usr/bin:/bin", top.join("bin").display()),
            )
            .env("HOME", top.join("home"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        end(child)?;
    }
    drop(fs::File::open(format!("{MARK}{}", lines.len())));
    Ok(ExitCode::SUCCESS)
}

/// Waits for a line and what it left running, then ends it.
fn end(mut child: Child) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() && begun.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(1));
    }
    let group = Pid::from_child(&child);
    let ended = Instant::now();
    while test_kill_process_group(group).is_ok() {
        if ended.elapsed() > Duration::from_millis(300) {
            // It may be gone by now.
            let _ = kill_process_group(group, Signal::KILL);
        }
        child.try_wait()?;
        sleep(Duration::from_millis(1));
    }
    child.wait()?;
    Ok(())
}
