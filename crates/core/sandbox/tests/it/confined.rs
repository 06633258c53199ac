//! Confined commands can do what the policy allows, and nothing else. Runs as root and, through a
//! copy of the test program, as nobody.

mod hidden;
mod names;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, FinishedCommand, Hosts,
    Network, PidNamespace, Proxy, Sandbox, SandboxError, SandboxMode, SandboxPolicy,
};
use haft_text::CutLimits;
use haft_types::SandboxLayer;
use rustix::process::getuid;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::processes::wait_until;
use crate::{block_on, path, run, supervisor};

const NOBODY: u32 = 65534;
/// A folder outside `/tmp` that a program run as nobody may write.
const GROUND: &str = "HAFT_TEST_GROUND";

/// A project, a folder beside it, a secret, and a folder used as `/tmp`.
struct World {
    root: TempDir,
}

impl World {
    fn new() -> Self {
        // Not in `/tmp`, which is private inside: the outside files must exist for their refusal to
        // be tested.
        if let Some(targets) = std::env::var_os(GROUND) {
            return Self::at(Path::new(&targets));
        }
        let beside = std::env::current_exe().unwrap();
        Self::at(if getuid().is_root() {
            Path::new("/var/lib")
        } else {
            beside.parent().unwrap()
        })
    }

    fn at(parent: &Path) -> Self {
        let root = tempfile::Builder::new()
            .prefix("haft-test-")
            .tempdir_in(parent)
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let world = Self { root };
        for folder in [
            "project/.git/hooks",
            "project/src",
            "outside",
            "home/.ssh",
            "tmp",
            "notes",
        ] {
            fs::create_dir_all(world.path(folder)).unwrap();
        }
        fs::write(world.path("project/.git/config"), "[core]\n").unwrap();
        fs::write(world.path("project/.envrc"), "export A=1\n").unwrap();
        fs::create_dir_all(world.path("project/sub/module")).unwrap();
        fs::write(world.path("project/sub/module/.git"), "gitdir: x\n").unwrap();
        fs::write(world.path("outside/file"), "outside\n").unwrap();
        fs::write(world.path("home/.ssh/id"), "secret\n").unwrap();
        fs::write(world.path("home/.netrc"), "secret\n").unwrap();
        world
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.root.path().join(inside)
    }

    fn policy(&self) -> SandboxPolicy {
        SandboxPolicy {
            projects: vec![self.path("project")],
            writable: Vec::new(),
            protected: Vec::new(),
            repositories: Vec::new(),
            hidden: haft_sandbox::secret_paths(Some(&self.path("home"))),
            // If the tests run in `/tmp`, the outside files must exist for their refusal to be
            // tested, too.
            readable: haft_sandbox::private_folder_entry(self.root.path())
                .map(|_| self.root.path().to_owned())
                .into_iter()
                .collect(),
            tmp: self.path("tmp"),
            notes: self.path("notes"),
            home: Some(self.path("home")),
            network: Network::None,
        }
    }

    fn command(&self, line: &str) -> CommandSpec {
        confined_command(&self.policy(), ConfinementMethod::Namespace, line)
    }

    /// Returns the exit code and the output of a command in the project.
    fn run(&self, line: &str) -> (CommandExit, String) {
        exit_and_output(
            &run(
                PidNamespace::Privileged,
                &self.command(line),
                &Capture::default(),
            )
            .unwrap(),
        )
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("project")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn confined_command(policy: &SandboxPolicy, method: ConfinementMethod, line: &str) -> CommandSpec {
    let cwd = policy.projects[0].clone();
    let confined = ConfinementSpec {
        method,
        policy: policy.clone(),
    };
    CommandSpec::shell(line, cwd)
        .with_env(vec![path()])
        .with_timeout(Duration::from_mins(5))
        .with_confinement(Some(Arc::new(confined)))
}

fn exit_and_output(finished: &FinishedCommand) -> (CommandExit, String) {
    let text = |stream: &haft_sandbox::CapturedOutput| stream.text(CutLimits::default()).text;
    (
        finished.exit,
        text(&finished.stdout) + &text(&finished.stderr),
    )
}

/// True if the machine allows namespaces.
fn can_confine(world: &World) -> bool {
    match run(
        PidNamespace::Privileged,
        &world.command("true"),
        &Capture::default(),
    ) {
        Ok(_) => true,
        Err(error @ SandboxError::Confinement { .. }) => {
            crate::print_skipped(&error);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// Command lines that must fail. Some end in a check that succeeds only if the forbidden step did.
const REFUSED: &[&str] = &[
    // Outside
    "echo x > ../outside/file",
    "echo x > ../outside/new",
    "ln ../outside/file hard",
    "mv ../outside/file .",
    "rm ../outside/file",
    "mkdir ../new",
    "mv ../project ../moved",
    "touch /etc/new /usr/new /var/new",
    "cat ../home/.ssh/id",
    "grep . ../home/.netrc",
    // Protected, existing
    "echo x > .git/config",
    "echo x > .git/hooks/pre-commit",
    "rm -r .git",
    "mv .git other",
    "ln .git/config config",
    "echo x > .envrc",
    "mv .envrc x",
    "rm .envrc",
    "cp src/../.envrc /tmp/x && mv /tmp/x .envrc",
    "ln -sf /etc/passwd .envrc",
    "echo x > sub/module/.git",
    "mv sub other",
    "mv sub/module sub/other",
    "rm -r sub/module",
    // Protected, missing
    "mkdir .vscode",
    "mkdir -p .vscode/x",
    "echo x > .vscode/settings.json",
    "echo x > .mcp.json",
    "echo x >> ./src/../.mcp.json",
    "ln -s src .haft/x",
    "mkdir -p .github/workflows/x",
    "rmdir .vscode",
    "mv src .idea",
    "ln -sfn src .claude && test -e .claude/x",
    "touch x; mv -T x .travis.yml",
    "mkdir w; mv -T w .github",
    // Privileges and the kernel
    "mount -t tmpfs none /tmp",
    "umount /tmp",
    "unshare -m true",
    "unshare -Ur true",
    "chroot / true",
    "mknod node c 1 3",
    "cp /bin/true t && chmod u+s t",
    "echo core > /proc/sys/kernel/core_pattern",
    "echo 1 > /proc/self/oom_score_adj",
    "cat /proc/1/environ /proc/1/maps",
    "ls /proc/1/root/",
    "echo x > /sys/kernel/uevent_helper",
    "echo x > /dev/sda",
    "ls /dev/vda",
    "kill -0 $OUTSIDE",
];

#[test]
fn run_refuses_what_the_policy_does_not_name() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let before = world.names();
    let mut wrong = Vec::new();
    for line in REFUSED {
        let line = line.replace("$OUTSIDE", &std::process::id().to_string());
        let (exit, text) = world.run(&line);
        if exit == CommandExit::Code(0) {
            wrong.push((line, text));
        }
        // Removes files that the allowed first part of a line may have created.
        for left in ["x", "t", "file"] {
            fs::remove_file(world.path("project").join(left)).ok();
        }
        fs::remove_dir(world.path("project/w")).ok();
        assert_eq!(world.names(), before, "after the last line");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(
        fs::read_to_string(world.path("outside/file")).unwrap(),
        "outside\n"
    );
    assert_eq!(
        fs::read_to_string(world.path("project/.git/config")).unwrap(),
        "[core]\n"
    );
}

#[test]
fn run_allows_what_the_policy_names() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    for line in [
        "echo new > src/new && mv src/new src/newer && rm src/newer",
        "echo x > README && ln README second && rm second README",
        "mkdir -p deep/er && rmdir deep/er deep",
        "echo x > /tmp/file && cat /tmp/file && test -w /var/tmp",
        "echo x > /dev/null && head -c 4 /dev/urandom | wc -c",
        "echo x > /dev/shm/x && rm /dev/shm/x",
        "cat .git/config .envrc ../outside/file",
        "test -s .envrc && ! test -s .mcp.json",
        "ps aux > /dev/null || ls /proc/self/fd",
        "sh -c 'sleep 0.01 & wait'",
        "chmod 755 src && cp -p .envrc src/copy && rm -f src/copy",
        "exec 3<>/dev/ptmx",
        "printf x > /dev/stdout",
    ] {
        let (exit, text) = world.run(line);
        assert_eq!(exit, CommandExit::Code(0), "{line}: {text}");
    }
    // The private folder is kept between commands, and other users do not see it.
    assert_eq!(world.run("cat /tmp/file").1, "x\n");
    assert!(!Path::new("/tmp/file").exists());
}

#[test]
fn every_secret_place_is_unreadable() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let home = world.path("home");
    let places: Vec<_> = haft_sandbox::secret_paths(Some(&home))
        .into_iter()
        .filter(|path| path.starts_with(&home))
        .collect();
    for place in &places {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if !place.exists() {
            fs::write(place, "top secret\n").unwrap();
        }
    }
    assert!(places.len() > 500, "{}", places.len());
    // What is beside the places stays readable.
    fs::write(home.join(".config/plain"), "no secret\n").unwrap();
    let line = format!("grep -rhs secret '{}'", home.display());
    let (exit, output) = world.run(&line);
    assert_eq!(
        (exit, output.as_str()),
        (CommandExit::Code(0), "no secret\n")
    );
}

#[test]
fn run_allows_a_project_below_hidden_or_private_folders() {
    let world = World::at(Path::new("/tmp"));
    if !can_confine(&world) {
        return;
    }
    let line = format!(
        "echo x > new && rm new && ! ls {}",
        world.path("outside").display()
    );
    let policy = SandboxPolicy {
        readable: Vec::new(),
        ..world.policy()
    };
    let command = confined_command(&policy, ConfinementMethod::Namespace, &line);
    let (exit, text) =
        exit_and_output(&run(PidNamespace::Privileged, &command, &Capture::default()).unwrap());
    assert_eq!(exit, CommandExit::Code(0), "{text}");
    // The project is in a hidden folder, and a hidden folder is in the project.
    fs::create_dir(world.path("project/keys")).unwrap();
    fs::write(world.path("project/keys/key"), "secret").unwrap();
    let hidden = vec![world.root.path().to_owned(), world.path("project/keys")];
    let policy = SandboxPolicy {
        hidden,
        readable: vec![world.path("outside")],
        ..world.policy()
    };
    let lines = format!(
        "echo x > new && rm new && test -z \"$(ls -A keys)\" && cat {out}/file && ! echo x > {out}/file && ! ls {home}",
        out = world.path("outside").display(),
        home = world.path("home").display(),
    );
    let command = confined_command(&policy, ConfinementMethod::Namespace, &lines);
    let (exit, text) =
        exit_and_output(&run(PidNamespace::Privileged, &command, &Capture::default()).unwrap());
    assert_eq!(exit, CommandExit::Code(0), "{text}");
}

#[test]
fn links_in_place_of_protected_files_are_protected() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::create_dir(world.path("project/shared")).unwrap();
    fs::write(world.path("project/shared/mcp"), "{}\n").unwrap();
    std::os::unix::fs::symlink("shared/mcp", world.path("project/.mcp.json")).unwrap();
    std::os::unix::fs::symlink("shared", world.path("project/.vscode")).unwrap();
    assert_eq!(
        world.run("cat .mcp.json"),
        (CommandExit::Code(0), "{}\n".to_owned())
    );
    for line in [
        "echo x > .mcp.json",
        "rm .mcp.json",
        "mv .mcp.json x",
        "ln -sfn src .vscode",
        "echo x > shared/tasks.json",
    ] {
        assert_ne!(world.run(line).0, CommandExit::Code(0), "{line}");
    }
    assert_eq!(
        fs::read_link(world.path("project/.vscode")).unwrap(),
        Path::new("shared")
    );
}

#[test]
fn network_none_blocks_the_network_and_foreign_sockets() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _socket = UnixListener::bind(world.path("outside/socket")).unwrap();
    if run(
        PidNamespace::Privileged,
        &world.command("python3 -c 1"),
        &Capture::default(),
    )
    .unwrap()
    .exit
        != CommandExit::Code(0)
    {
        return eprintln!("skipped: there is no python3");
    }
    let script = format!(
        "import socket, sys\n\
         def refused(make):\n    try: make()\n    except OSError: return True\n    print('not refused', make); return False\n\
         s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname())\n\
         ok = refused(lambda: socket.create_connection(('127.0.0.1', {port}), 2))\n\
         ok &= refused(lambda: socket.socket(socket.AF_UNIX).connect('../outside/socket'))\n\
         ok &= refused(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))\n\
         ok &= refused(lambda: socket.socket(40, socket.SOCK_STREAM))\n\
         ok &= refused(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9))\n\
         a = socket.socket(socket.AF_UNIX); a.bind('own'); a.listen(); socket.socket(socket.AF_UNIX).connect('own')\n\
         sys.exit(0 if ok else 1)\n"
    );
    fs::write(world.path("project/net.py"), script).unwrap();
    let (exit, text) = world.run("python3 net.py");
    assert_eq!(exit, CommandExit::Code(0), "{text}");
}

#[test]
fn network_all_opens_only_the_network() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let policy = SandboxPolicy {
        network: Network::All,
        ..world.policy()
    };
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && ! echo x > ../outside/new");
    let mut command = confined_command(&policy, ConfinementMethod::Namespace, &line);
    command.argv[0] = "/bin/bash".into();
    let (exit, text) =
        exit_and_output(&run(PidNamespace::Privileged, &command, &Capture::default()).unwrap());
    assert_eq!(exit, CommandExit::Code(0), "{text}");
}

#[test]
fn proxy_connects_to_listed_hosts_only() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"hello from outside\n").unwrap();
    });
    let policy = SandboxPolicy {
        network: Network::Through(world.path("proxy")),
        ..world.policy()
    };
    let line = format!(
        "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n' >&3; timeout 20 cat <&3; \
         exec 4<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT 127.0.0.1:1 HTTP/1.1\\r\\n\\r\\n' >&4; timeout 20 head -1 <&4; \
         echo \"$https_proxy\"; ! echo > /dev/tcp/127.0.0.1/{port}"
    );
    let mut command = confined_command(&policy, ConfinementMethod::Namespace, &line);
    command.argv[0] = "/bin/bash".into();
    let finished = block_on(async {
        let hosts = Hosts::parse([format!("127.0.0.1:{port}")]).unwrap();
        let _proxy = Proxy::start(world.path("proxy"), hosts).unwrap();
        supervisor(PidNamespace::Privileged)
            .run(&command, &Capture::default(), &CancellationToken::new())
            .await
            .unwrap()
    });
    let (exit, text) = exit_and_output(&finished);
    assert_eq!(exit, CommandExit::Code(0), "{text}");
    assert!(
        text.contains("200") && text.contains("hello from outside"),
        "{text}"
    );
    assert!(
        text.contains("403") && text.contains("http://127.0.0.1:3128"),
        "{text}"
    );
    server.join().unwrap();
}

#[test]
fn run_fails_if_the_command_cannot_be_confined() {
    let world = World::new();
    let policy = SandboxPolicy {
        tmp: world.path("nowhere"),
        ..world.policy()
    };
    let command = confined_command(&policy, ConfinementMethod::Namespace, "touch ran");
    let error = run(PidNamespace::Privileged, &command, &Capture::default()).unwrap_err();
    assert!(matches!(error, SandboxError::Confinement { .. }), "{error}");
    assert!(error.to_string().contains("was not run"), "{error}");
    assert_eq!(world.names(), [".envrc", ".git", "src", "sub"]);
}

#[test]
fn terminal_works_inside_the_sandbox() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    block_on(async {
        let supervisor = supervisor(PidNamespace::Privileged);
        let command = world.command("tty; read -r line < /dev/tty; echo \"got $line\"");
        let session = supervisor
            .open_terminal(
                command,
                haft_sandbox::TerminalSize::default(),
                Capture::default(),
            )
            .unwrap();
        let pause = session
            .type_and_wait(b"", Duration::from_mins(1))
            .await
            .unwrap();
        assert_eq!(
            pause,
            haft_sandbox::WaitEnd::Awaits(haft_sandbox::AwaitedInput::Line)
        );
        session
            .type_and_wait(b"hello\n", Duration::from_mins(1))
            .await
            .unwrap();
        session.wait_for_end().await.unwrap();
        let text = session.full_output().text(CutLimits::default()).text;
        assert!(
            text.contains("got hello") && text.contains("/dev/"),
            "{text}"
        );
    });
}

/// Tests what Landlock alone refuses and what it does not.
#[test]
fn landlock_confines_writes_to_the_project() {
    let world = World::new();
    let policy = world.policy();
    let told_by = |line: &str| {
        run(
            PidNamespace::Privileged,
            &confined_command(&policy, ConfinementMethod::Landlock, line),
            &Capture::default(),
        )
    };
    match told_by("true") {
        Ok(finished) => assert_eq!(
            finished.exit,
            CommandExit::Code(0),
            "{:?}",
            exit_and_output(&finished)
        ),
        Err(error @ SandboxError::Confinement { .. }) => return eprintln!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    }
    for line in [
        "echo x > ../outside/file",
        "echo x > ../outside/new",
        "mv ../project ../moved",
        "rm ../outside/file",
        "echo x > /tmp/haft-landlock-test",
        "cat ../home/.ssh/id",
        "grep . ../home/.netrc",
        "mount -t tmpfs none /tmp",
        "unshare -Ur true",
        "cp /bin/true t && chmod u+s t",
        "echo core > /proc/sys/kernel/core_pattern",
        "python3 -c 'import socket; socket.socket()'",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        &format!("cat /proc/{}/environ", std::process::id()),
    ] {
        let finished = told_by(line).unwrap();
        assert_ne!(
            finished.exit,
            CommandExit::Code(0),
            "{line}: {:?}",
            exit_and_output(&finished)
        );
    }
    for line in [
        "echo x > new && mv new src/new && rm src/new",
        "echo x > \"$TMPDIR/x\" && cat \"$TMPDIR/x\"",
        "cat ../outside/file .git/config > /dev/null",
        // Landlock cannot protect a file inside the project.
        "echo x >> .git/config",
    ] {
        let finished = told_by(line).unwrap();
        assert_eq!(
            finished.exit,
            CommandExit::Code(0),
            "{line}: {:?}",
            exit_and_output(&finished)
        );
    }
    assert_eq!(
        fs::read_to_string(world.path("outside/file")).unwrap(),
        "outside\n"
    );
}

/// The sandbox is never weaker than requested without a reported reason.
#[test]
fn status_reports_missing_layers() {
    let world = World::new();
    let supervisor = supervisor(PidNamespace::Privileged);
    let set_up = |policy: SandboxPolicy, mode| block_on(Sandbox::set_up(&supervisor, policy, mode));
    if !can_confine(&world) {
        return;
    }
    let best = set_up(world.policy(), SandboxMode::Auto);
    assert_eq!(
        (best.status().layer, best.status().reasons.len()),
        (SandboxLayer::Namespace, 0)
    );
    assert_eq!(
        best.confinement().unwrap().method,
        ConfinementMethod::Namespace
    );

    // Namespaces require the private folder; Landlock does not.
    let broken = SandboxPolicy {
        tmp: world.path("nowhere"),
        ..world.policy()
    };
    let second = set_up(broken.clone(), SandboxMode::Auto);
    assert_eq!(
        second.status().layer,
        SandboxLayer::Landlock,
        "{:?}",
        second.status()
    );
    let reasons = second.status().reasons.join("\n");
    assert!(
        reasons.contains("namespaces cannot be had")
            && reasons.contains("commands that write are asked"),
        "{reasons}"
    );

    let asked = set_up(broken, SandboxMode::Namespace);
    assert_eq!(
        (asked.status().layer, asked.confinement()),
        (SandboxLayer::None, None)
    );
    assert!(
        asked.status().reasons[0].contains("namespaces cannot be had"),
        "{:?}",
        asked.status()
    );

    let landlock = set_up(world.policy(), SandboxMode::Landlock);
    assert_eq!(
        landlock.confinement().unwrap().method,
        ConfinementMethod::Landlock
    );
    let off = set_up(world.policy(), SandboxMode::Off);
    assert_eq!(
        (off.status().layer, off.confinement()),
        (SandboxLayer::None, None)
    );
    assert!(off.status().reasons[0].contains("switched off"));
}

/// Runs the tests above again in a copy of this program that runs as nobody.
#[test]
fn confined_tests_pass_without_privilege() {
    if !getuid().is_root() {
        return;
    }
    let shared = TempDir::new_in("/var/lib").unwrap();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let program = shared.path().join("as-nobody");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Process::new(&program)
        .args(["confined::", "--test-threads=2"])
        .env(GROUND, shared.path())
        .current_dir(shared.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    eprintln!("{text}");
}

#[test]
fn protected_files_of_the_policy_cannot_be_changed() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::create_dir_all(world.path("project/tools/deep")).unwrap();
    for name in [
        "run.sh",
        "tools/deep/server.py",
        "tools/deep/other.py",
        "real.sh",
    ] {
        fs::write(world.path("project").join(name), "as it was").unwrap();
    }
    std::os::unix::fs::symlink("real.sh", world.path("project/link.sh")).unwrap();
    let named = [
        "run.sh",
        "tools/deep/server.py",
        "tools/deep/gone.py",
        "link.sh",
        "real.sh",
        ".git/config",
    ];
    let protected = named.map(|name| world.path("project").join(name)).to_vec();
    let policy = SandboxPolicy {
        protected,
        ..world.policy()
    };
    let line = |line: &str| {
        exit_and_output(
            &run(
                PidNamespace::Privileged,
                &confined_command(&policy, ConfinementMethod::Namespace, line),
                &Capture::default(),
            )
            .unwrap(),
        )
    };
    for refused in [
        "echo x > run.sh",
        "echo x >> tools/deep/server.py",
        "rm -f run.sh",
        "mv run.sh away",
        "cp tools/deep/other.py tools/deep/server.py",
        "mv tools/deep/other.py tools/deep/server.py",
        "ln -f tools/deep/other.py run.sh",
        "mv tools tools.old",
        "mv tools/deep tools/deeper",
        "rm -rf tools",
        "echo x > link.sh",
        "ln -sf other link.sh",
        "echo x > real.sh",
        "chmod 777 run.sh",
        "truncate -s 0 tools/deep/server.py",
        "sed -i s/as/is/ tools/deep/server.py",
        "umount run.sh",
    ] {
        let (exit, text) = line(refused);
        assert_ne!(exit, CommandExit::Code(0), "{refused}: {text}");
        for name in ["run.sh", "tools/deep/server.py", "link.sh", "real.sh"] {
            let path = world.path("project").join(name);
            assert_eq!(
                fs::read_to_string(&path).unwrap(),
                "as it was",
                "{refused}: {name}"
            );
        }
    }
    let (exit, text) =
        line("cat run.sh link.sh && touch tools/new.py && echo y > new && mkdir tools/more");
    assert_eq!(
        (exit, text.as_str()),
        (CommandExit::Code(0), "as it wasas it was"),
        "everything else goes on"
    );
}

/// A command that may commit writes index, objects and refs. It changes nothing that decides which
/// programs git runs.
#[test]
fn repositories_of_the_policy_are_sealed() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let repository = world.path("project/.git");
    for folder in ["info", "modules", "worktrees/own/logs"] {
        fs::create_dir_all(repository.join(folder)).unwrap();
    }
    let policy = SandboxPolicy {
        repositories: vec![repository.clone()],
        ..world.policy()
    };
    let run_line = |line: &str| {
        let command = confined_command(&policy, ConfinementMethod::Namespace, line);
        let finished = run(PidNamespace::Privileged, &command, &Capture::default());
        exit_and_output(&finished.unwrap())
    };
    for line in [
        "mkdir .git/modules/x",
        "mkdir .git/worktrees/x",
        "echo .. > .git/worktrees/own/commondir",
        "echo x > .git/worktrees/own/config.worktree",
        "echo x > .git/worktrees/own/gitdir",
        "echo x > .git/hooks/pre-commit",
        "echo x > .git/info/attributes",
        "echo x >> .git/config",
        "mv .git/worktrees .git/old",
        "rmdir .git/modules",
        "mv .git old",
    ] {
        let (exit, output) = run_line(line);
        assert_ne!(exit, CommandExit::Code(0), "{line}: {output}");
    }
    for line in [
        "echo .. > .git/commondir",
        "mkdir .git/commondir",
        "ln -s ../evil .git/commondir",
        "(echo .. > .git/commondir) & wait",
        "echo x > .git/config.worktree",
        "echo .. > x && mv x .git/commondir; exit 3",
    ] {
        let (_, output) = run_line(line);
        assert!(output.contains("Read-only file system"), "{line}: {output}");
        for name in [
            "commondir",
            "config.worktree",
            "commondir.refused",
            "config.worktree.refused",
        ] {
            let entry = repository.join(name);
            assert!(entry.symlink_metadata().is_err(), "{line}: {name}");
        }
    }
    let commit = "mkdir -p .git/objects/aa .git/refs/heads && echo x > .git/index.lock && mv .git/index.lock .git/index && echo x > .git/COMMIT_EDITMSG && echo x > .git/refs/heads/main";
    assert_eq!(run_line(commit), (CommandExit::Code(0), String::new()));
}
