//! The attempts to leave the sandbox must be refused inside, and must succeed outside, or they
//! would prove nothing.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    reason = "the functions that tests share are tests too"
)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Arc;
use std::time::Duration;

use haft_probe::{Finding, Outside, PROBE_ARG, ProbeKind, ProbeOutcome, ProbeSite};
use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, Network, PidNamespace,
    SandboxError, SandboxPolicy, Supervisor,
};
use rustix::process::getuid;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const NOBODY: u32 = 65534;
/// The folder for the helper process, and a copy of the probe that it can run.
const FOLDER: &str = "HAFT_TEST_FOLDER";
const PROBE: &str = "HAFT_TEST_PROBE";

/// Returns a folder that every user can enter.
fn public_folder() -> TempDir {
    let parent = if getuid().is_root() {
        Path::new("/var/lib").to_owned()
    } else {
        std::env::temp_dir()
    };
    let folder = tempfile::Builder::new()
        .prefix("haft-test-")
        .tempdir_in(parent)
        .unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Copies with another process: a process forked meanwhile by this one would keep the copy open for
/// writing, so that it could not be run.
fn copy_program(program: &Path, folder: &Path) -> PathBuf {
    let target = folder.join(program.file_name().unwrap());
    let copied = Process::new("cp")
        .arg(program)
        .arg(&target)
        .status()
        .unwrap();
    assert!(copied.success());
    target
}

/// Returns the program that makes the attempts.
fn probe_program() -> PathBuf {
    std::env::var_os(PROBE).map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_haft-probe")),
        PathBuf::from,
    )
}

fn parse_findings(output: &[u8]) -> Vec<Finding> {
    let lines = output
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Makes all attempts without a sandbox, and checks their findings and effects.
fn assert_attempts_succeed_unconfined(root: &Path) {
    let mut site = ProbeSite::prepare(root).unwrap();
    let output = Process::new(probe_program())
        .arg(PROBE_ARG)
        .arg(site.targets_file())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let findings = parse_findings(&output.stdout);
    let is_root = getuid().is_root();
    let could = |finding: &&Finding| match (finding.kind, finding.outside) {
        (ProbeKind::Control, _) | (ProbeKind::Escape, Outside::Anyone) => true,
        (ProbeKind::Escape, Outside::Root) => is_root,
        (ProbeKind::Escape, Outside::Depends) => false,
    };
    let failed: Vec<_> = findings
        .iter()
        .filter(could)
        .filter(|finding| finding.outcome == ProbeOutcome::Refused)
        .collect();
    assert!(
        failed.is_empty(),
        "these should succeed outside: {failed:#?}"
    );
    let done = findings
        .iter()
        .filter(|finding| finding.outcome == ProbeOutcome::Succeeded)
        .count();
    let least = if is_root { 150 } else { 100 };
    assert!(done >= least, "only {done} of {} succeeded", findings.len());
    assert_eq!(
        site.describe_changed_files().unwrap(),
        [""; 0],
        "what succeeds is undone"
    );
    let contacts = site.take_contacts().unwrap();
    for what in [
        "connected to the server",
        "datagram",
        "spoke to the socket",
        "without a place",
        "terminal",
        "named pipe",
        "/tmp",
        "/dev/shm",
    ] {
        assert!(
            contacts.iter().any(|contact| contact.contains(what)),
            "{what}: {contacts:?}"
        );
    }
    assert!(
        !contacts.iter().any(|contact| contact.contains("ended")),
        "{contacts:?}"
    );
}

#[test]
fn attempts_succeed_outside_the_sandbox() {
    assert_attempts_succeed_unconfined(public_folder().path());
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn probing_stand_in() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    for part in ["outside", "inside", "landlock"] {
        fs::create_dir(folder.join(part)).unwrap();
    }
    assert_attempts_succeed_unconfined(&folder.join("outside"));
    assert_namespaces_hold(&folder.join("inside"));
    assert_landlock_holds(&folder.join("landlock"));
}

/// Where no user namespace can be made, commands run in Landlock or not at all.
#[test]
#[ignore = "started by another test as a process of its own"]
fn probing_stand_in_without_user_namespaces() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    for part in ["inside", "landlock"] {
        fs::create_dir(folder.join(part)).unwrap();
    }
    let confined = run_confined_attempts(&folder.join("inside"), ConfinementMethod::Namespace);
    assert!(confined.is_none(), "namespaces are available");
    assert_landlock_holds(&folder.join("landlock"));
}

/// Runs a test as nobody if this user is root, with a copy of this program that every user can run.
/// The words of `wrapper` start the program.
fn run_stand_in(test: &str, wrapper: &[&str]) {
    let shared = public_folder();
    let targets = public_folder();
    let program = copy_program(&std::env::current_exe().unwrap(), shared.path());
    let mut words = wrapper.iter().map(OsStr::new).chain([program.as_os_str()]);
    let mut command = Process::new(words.next().unwrap());
    command
        .args(words)
        .args([test, "--exact", "--ignored"])
        .env(FOLDER, targets.path())
        .env(PROBE, copy_program(&probe_program(), shared.path()))
        .current_dir(targets.path());
    if getuid().is_root() {
        std::os::unix::fs::chown(targets.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{complaints}"
    );
}

#[test]
fn attempts_of_an_unprivileged_user_fail_only_in_the_sandbox() {
    if getuid().is_root() {
        run_stand_in("probing_stand_in", &[]);
    }
}

/// Starts a program in a user namespace in which no other can be made, without capabilities.
const WITHOUT_USER_NAMESPACES: [&str; 7] = [
    "unshare",
    "--user",
    "--map-current-user",
    "--keep-caps",
    "sh",
    "-ec",
    "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" \"$@\"",
];

#[test]
fn attempts_without_user_namespaces_fail_in_landlock() {
    let mut wrapped = Process::new(WITHOUT_USER_NAMESPACES[0]);
    wrapped.args(&WITHOUT_USER_NAMESPACES[1..]).arg("true");
    if getuid().is_root() {
        wrapped.uid(NOBODY).gid(NOBODY);
    }
    match wrapped.output() {
        Ok(output) if output.status.success() => {}
        _ => return print_skipped("a user namespace cannot be made with `unshare`"),
    }
    run_stand_in(
        "probing_stand_in_without_user_namespaces",
        &WITHOUT_USER_NAMESPACES,
    );
}

#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests should know what was not tested"
)]
fn print_skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Makes all attempts inside a sandbox layer; returns the findings, and the effects detected
/// outside.
fn run_confined_attempts(
    root: &Path,
    method: ConfinementMethod,
) -> Option<(Vec<Finding>, Vec<String>)> {
    let mut site = ProbeSite::prepare(&root.join("site")).unwrap();
    let targets = site.targets();
    // haft's own folder, hidden like the real one.
    let own = root.join("own");
    for folder in ["tmp", "notes"] {
        fs::create_dir_all(own.join(folder)).unwrap();
    }
    let mut hidden = haft_sandbox::secret_paths(None);
    hidden.extend([targets.secret.parent().unwrap().to_owned(), own.clone()]);
    let policy = SandboxPolicy {
        projects: vec![targets.project.clone()],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden,
        // `/tmp` is private inside: the files there must exist for their refusal to be tested.
        readable: haft_sandbox::private_folder_entry(root)
            .map(|_| root.to_owned())
            .into_iter()
            .collect(),
        tmp: own.join("tmp"),
        notes: own.join("notes"),
        home: None,
        network: Network::None,
    };
    // In a folder where every user can run it.
    let program = copy_program(&probe_program(), root);
    let argv = vec![program.into(), PROBE_ARG.into(), site.targets_file().into()];
    let command = CommandSpec {
        argv,
        ..CommandSpec::shell("", &targets.project)
    };
    let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
    let command = command
        .with_env(vec![path])
        .with_timeout(Duration::from_mins(5));
    let command = command.with_confinement(Some(Arc::new(ConfinementSpec { method, policy })));
    let supervisor = Supervisor::for_tests()
        .unwrap()
        .with_pid_namespace(PidNamespace::Privileged);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let finished = match runtime.block_on(supervisor.run(
        &command,
        &Capture::default(),
        &CancellationToken::new(),
    )) {
        Ok(finished) => finished,
        Err(error @ SandboxError::Confinement { .. }) => {
            print_skipped(&error.to_string());
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let told = finished.stderr.text(haft_text::CutLimits::default()).text;
    assert_eq!(finished.exit, CommandExit::Code(0), "{told}");
    let mut output = finished.stdout.head.clone();
    output.extend_from_slice(&finished.stdout.tail);
    let mut noticed = site.describe_changed_files().unwrap();
    noticed.extend(site.take_contacts().unwrap());
    Some((parse_findings(&output), noticed))
}

/// Asserts that all escapes are refused, all controls succeed, and no effect was detected outside.
fn assert_namespaces_hold(root: &Path) {
    let Some((findings, noticed)) = run_confined_attempts(root, ConfinementMethod::Namespace)
    else {
        return;
    };
    let wrong: Vec<_> = findings
        .iter()
        .filter(|finding| !finding.is_expected())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(noticed, [""; 0]);
    let refused = findings
        .iter()
        .filter(|finding| finding.outcome == ProbeOutcome::Refused)
        .count();
    assert!(
        refused >= 200,
        "only {refused} of {} were refused, the others had nothing to be made on",
        findings.len()
    );
}

#[test]
fn attempts_fail_inside_namespaces() {
    assert_namespaces_hold(public_folder().path());
}

/// Asserts that only known limits of Landlock succeed, and that no effect was detected outside.
fn assert_landlock_holds(root: &Path) {
    let Some((findings, noticed)) = run_confined_attempts(root, ConfinementMethod::Landlock) else {
        return;
    };
    let wrong: Vec<_> = findings
        .iter()
        .filter(|finding| !finding.is_expected() && !finding.is_landlock_limit())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(noticed, [""; 0]);
}

#[test]
fn attempts_inside_landlock_fail_except_known_limits() {
    assert_landlock_holds(public_folder().path());
}
