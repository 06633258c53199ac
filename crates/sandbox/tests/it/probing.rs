//! The attempts to leave the sandbox, outside of it: there they must succeed, or they would prove nothing inside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command as Process;

use haft_sandbox::{Finding, Outcome, Outside, PROBE_ARG, ProbeKind, Site};
use rustix::process::getuid;
use tempfile::TempDir;

const NOBODY: u32 = 65534;
/// The folder for the stand-in.
const FOLDER: &str = "HAFT_TEST_FOLDER";

/// A folder that is nobody's `/tmp`: what is outside must be there to be refused.
pub(crate) fn folder() -> TempDir {
    let parent = if getuid().is_root() { Path::new("/var/lib").to_owned() } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new().prefix("haft-test-").tempdir_in(parent).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

pub(crate) fn findings(output: &[u8]) -> Vec<Finding> {
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Makes all attempts with nothing around them, and looks at what they say and did.
fn unconfined(root: &Path) {
    let mut site = Site::prepare(root).unwrap();
    let output = Process::new(std::env::current_exe().unwrap())
        .arg(PROBE_ARG)
        .arg(site.ground_file())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let findings = findings(&output.stdout);
    let is_root = getuid().is_root();
    let could = |finding: &&Finding| match (finding.kind, finding.outside) {
        (ProbeKind::Control, _) | (ProbeKind::Escape, Outside::Anyone) => true,
        (ProbeKind::Escape, Outside::Root) => is_root,
        (ProbeKind::Escape, Outside::Depends) => false,
    };
    let failed: Vec<_> = findings.iter().filter(could).filter(|finding| finding.outcome == Outcome::Refused).collect();
    assert!(failed.is_empty(), "these should succeed outside: {failed:#?}");
    let done = findings.iter().filter(|finding| finding.outcome == Outcome::Succeeded).count();
    let least = if is_root { 150 } else { 100 };
    assert!(done >= least, "only {done} of {} succeeded", findings.len());
    assert_eq!(site.changed_files().unwrap(), [""; 0], "what succeeds is undone");
    let contacts = site.contacts().unwrap();
    for what in [
        "connected to the server",
        "datagram",
        "spoke to the socket",
        "without a place",
        "terminal",
        "/tmp",
        "/dev/shm",
    ] {
        assert!(contacts.iter().any(|contact| contact.contains(what)), "{what}: {contacts:?}");
    }
    assert!(!contacts.iter().any(|contact| contact.contains("ended")), "{contacts:?}");
}

#[test]
fn outside_the_attempts_succeed() {
    unconfined(folder().path());
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn probing_stand_in() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        unconfined(Path::new(&folder));
    }
}

/// As nobody, with a copy of this program that everyone can reach.
#[test]
fn outside_the_attempts_of_any_user_succeed() {
    if !getuid().is_root() {
        return;
    }
    let (shared, ground) = (folder(), folder());
    let program = shared.path().join("stand-in");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::os::unix::fs::chown(ground.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = Process::new(program)
        .args(["probing::probing_stand_in", "--exact", "--ignored"])
        .env(FOLDER, ground.path())
        .current_dir(ground.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
