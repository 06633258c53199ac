//! Files in `/tmp`, which is private inside the sandbox: they are readable if the policy names
//! them, and errors name them if they are hidden.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, FinishedCommand,
    HiddenCause, HiddenPath, Network, PidNamespace, SandboxError, SandboxPolicy,
};
use haft_text::CutLimits;
use tempfile::TempDir;

use crate::{run, shell};

/// A project and a folder with a program, both below `/tmp`.
struct World {
    project: TempDir,
    programs: TempDir,
    own: TempDir,
}

impl World {
    fn new() -> Self {
        let below = |prefix: &str| {
            tempfile::Builder::new()
                .prefix(prefix)
                .tempdir_in("/tmp")
                .unwrap()
        };
        let world = Self {
            project: below("project-"),
            programs: below("programs-"),
            own: below("own-"),
        };
        for folder in ["tmp", "notes"] {
            fs::create_dir(world.own.path().join(folder)).unwrap();
        }
        let tool = world.programs.path().join("tool");
        fs::write(&tool, "#!/bin/sh\necho it works\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        world
    }

    fn policy(&self) -> SandboxPolicy {
        SandboxPolicy {
            projects: vec![self.project.path().to_owned()],
            writable: Vec::new(),
            protected: Vec::new(),
            repositories: Vec::new(),
            hidden: vec![self.own.path().to_owned()],
            readable: Vec::new(),
            tmp: self.own.path().join("tmp"),
            notes: self.own.path().join("notes"),
            home: None,
            network: Network::None,
        }
    }

    fn command(&self, policy: SandboxPolicy, line: &str) -> CommandSpec {
        let confined = ConfinementSpec {
            method: ConfinementMethod::Namespace,
            policy,
        };
        shell(line, self.project.path()).with_confinement(Some(Arc::new(confined)))
    }
}

/// Runs a confined command; `None` if the machine cannot confine it.
fn run_if_confinable(command: &CommandSpec) -> Option<Result<FinishedCommand, SandboxError>> {
    match run(PidNamespace::Privileged, command, &Capture::default()) {
        Err(error @ SandboxError::Confinement { .. }) => {
            crate::print_skipped(&error);
            None
        }
        other => Some(other),
    }
}

fn combined_output(finished: &FinishedCommand) -> String {
    finished.stdout.text(CutLimits::default()).text
        + &finished.stderr.text(CutLimits::default()).text
}

#[test]
fn hidden_programs_and_folders_have_their_own_errors() {
    let world = World::new();
    let tool = world.programs.path().join("tool");
    let hidden = |path: &Path| HiddenPath {
        path: path.to_owned(),
        cause: HiddenCause::PrivateFolder("/tmp"),
    };
    let program = CommandSpec {
        argv: vec![tool.clone().into()],
        ..world.command(world.policy(), "")
    };
    let Some(ran) = run_if_confinable(&program) else {
        return;
    };
    let error = ran.unwrap_err();
    assert!(
        matches!(&error, SandboxError::HiddenProgram { path } if *path == hidden(&tool)),
        "{error:?}"
    );
    let said = format!(
        "cannot run the program: `{}` is hidden by the sandbox, in which `/tmp` is a private folder; move it to another folder, or add that path to `[sandbox] readable`",
        tool.display()
    );
    assert_eq!(error.to_string(), said);

    let elsewhere = CommandSpec {
        cwd: world.programs.path().to_owned(),
        ..world.command(world.policy(), "true")
    };
    let error = run_if_confinable(&elsewhere).unwrap().unwrap_err();
    assert!(
        matches!(&error, SandboxError::HiddenFolder { .. }),
        "{error:?}"
    );

    let missing = CommandSpec {
        argv: vec!["/tmp/there is none".into()],
        ..world.command(world.policy(), "")
    };
    let error = run_if_confinable(&missing).unwrap().unwrap_err();
    assert!(matches!(error, SandboxError::Program { .. }), "{error:?}");
}

#[test]
fn hidden_files_are_reported_only_for_failed_lines_that_name_them() {
    let world = World::new();
    let tool = world.programs.path().join("tool");
    fs::write(
        world.project.path().join("calls.sh"),
        format!("exec {}\n", tool.display()),
    )
    .unwrap();
    let named = tool.display().to_string();
    for (line, is_found) in [
        (named.as_str(), true),
        ("sh ./calls.sh", true),
        ("exit 3", false),
        ("cat /tmp/there-is-none", false),
        (&format!("test -e {named} || true"), false),
    ] {
        let Some(ran) = run_if_confinable(&world.command(world.policy(), line)) else {
            return;
        };
        let finished = ran.unwrap();
        let found = finished.hidden.as_ref().map(|hidden| hidden.path.clone());
        assert_eq!(
            found,
            is_found.then(|| tool.clone()),
            "{line}: {}",
            combined_output(&finished)
        );
    }
}

#[test]
fn readable_paths_can_be_read_but_not_written() {
    let world = World::new();
    let tool = world.programs.path().join("tool");
    let write = format!(
        "{0} && echo x > {0}; touch {1}/new",
        tool.display(),
        world.programs.path().display()
    );
    for readable in [world.programs.path().to_owned(), tool.clone()] {
        let policy = SandboxPolicy {
            readable: vec![readable],
            ..world.policy()
        };
        let Some(ran) = run_if_confinable(&world.command(policy, &write)) else {
            return;
        };
        assert!(combined_output(&ran.unwrap()).starts_with("it works\n"));
        assert_eq!(
            fs::read_to_string(&tool).unwrap(),
            "#!/bin/sh\necho it works\n"
        );
        assert!(!world.programs.path().join("new").exists());
    }
}

#[test]
fn readable_paths_inside_a_writable_folder_stay_writable() {
    let world = World::new();
    let inside = world.project.path().join("bin");
    fs::create_dir(&inside).unwrap();
    let readable = vec![world.project.path().to_owned(), inside.clone()];
    let policy = SandboxPolicy {
        readable,
        ..world.policy()
    };
    let Some(ran) = run_if_confinable(&world.command(policy, "touch made bin/made")) else {
        return;
    };
    let finished = ran.unwrap();
    assert_eq!(
        finished.exit,
        CommandExit::Code(0),
        "{}",
        combined_output(&finished)
    );
    assert!(inside.join("made").exists());
}

#[test]
fn tmp_that_is_writable_is_the_real_one_without_its_sockets() {
    let world = World::new();
    let socket = world.programs.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let policy = SandboxPolicy {
        writable: vec!["/tmp".into()],
        ..world.policy()
    };
    let made = world.programs.path().join("made");
    let line = format!(
        "touch '{}'; test -S '{}' && echo reached",
        made.display(),
        socket.display()
    );
    let Some(ran) = run_if_confinable(&world.command(policy, &line)) else {
        return;
    };
    assert_eq!(combined_output(&ran.unwrap()), "");
    assert!(made.exists());
}

/// `/tmp` is writable, so with Landlock alone a command could write to pipes in a readable folder.
#[test]
fn readable_folders_have_no_connected_pipes() {
    let world = World::new();
    let pipe = world.programs.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    // Opened for reading and writing, so that neither side waits for the other.
    let mut reader = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&pipe)
        .unwrap();
    let policy = SandboxPolicy {
        readable: vec![world.programs.path().to_owned()],
        ..world.policy()
    };
    let line = format!(
        "echo written 1<>'{}'; ls '{}'",
        pipe.display(),
        world.programs.path().display()
    );
    let Some(ran) = run_if_confinable(&world.command(policy, &line)) else {
        return;
    };
    let shown = combined_output(&ran.unwrap());
    assert!(shown.contains("tool") && shown.contains("pipe"), "{shown}");
    let mut received = [0; 16];
    let read = std::io::Read::read(&mut reader, &mut received);
    assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
