//! Finds processes that outlive their case, in the process table.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::poll_until;
use super::workspace::Workspace;

/// The time in which haft's descendants must exit after haft was killed.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Returns an error that lists those processes of the case that are still running after the grace
/// period.
pub(crate) fn check_no_survivors(token: &str, place: &Workspace) -> Result<(), String> {
    if poll_until(GRACE_PERIOD, || Ok(find_processes(token, place).is_empty()))? {
        return Ok(());
    }
    match find_processes(token, place) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left running: {}", left.join("; "))),
    }
}

/// Returns descriptions of all processes that have the token in their command line or are working
/// in the case's folder.
fn find_processes(token: &str, place: &Workspace) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let found = processes.flatten().filter(|entry| {
        let name = entry.file_name();
        name.as_bytes().iter().all(u8::is_ascii_digit)
    });
    found
        .filter_map(|entry| describe_process(&entry.path(), token, place.root()))
        .collect()
}

/// Describes the process to which a folder of `/proc` belongs; `None` if it isn't part of the case
/// or has exited.
fn describe_process(process: &Path, token: &str, root: &Path) -> Option<String> {
    // The command line of an exited process is empty, also before the process is reaped.
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
