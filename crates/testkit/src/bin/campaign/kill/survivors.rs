//! Processes of a case that outlive it, found in the process table.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::place::Place;
use super::poll_until;

/// How long the end of haft may take to reach its descendants.
const GRACE: Duration = Duration::from_secs(2);

/// Fails with a list when processes of the case are still there after the grace.
pub(crate) fn none(token: &str, place: &Place) -> Result<(), String> {
    if poll_until(GRACE, || Ok(find(token, place).is_empty()))? {
        return Ok(());
    }
    match find(token, place) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left running: {}", left.join("; "))),
    }
}

/// Every process whose command line holds the token or that works in the case's folder.
fn find(token: &str, place: &Place) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let found = processes
        .flatten()
        .filter(|entry| number(&entry.file_name()));
    found
        .filter_map(|entry| describe(&entry.path(), token, place.root()))
        .collect()
}

/// The process in this folder of `/proc`, if it is one of ours and alive.
fn describe(process: &Path, token: &str, root: &Path) -> Option<String> {
    // A process that has just ended reads as empty, and so does one that only waits to be reaped.
    let command = fs::read(process.join("cmdline"))
        .ok()
        .filter(|bytes| !bytes.is_empty())?;
    let command = String::from_utf8_lossy(&command).replace('\0', " ");
    let works_here = fs::read_link(process.join("cwd")).is_ok_and(|cwd| {
        cwd.as_os_str()
            .as_bytes()
            .starts_with(root.as_os_str().as_bytes())
    });
    let id = process
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())?;
    (command.contains(token) || works_here).then(|| format!("{id} ({})", command.trim_end()))
}
