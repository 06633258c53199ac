//! Reads processes from `/proc`.

use std::fs;

use rustix::process::Pid;

/// Returns all processes below `root`, parents before children.
pub(crate) fn find_descendants(root: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes: Vec<(Pid, Pid)> = entries
        .filter_map(|entry| {
            let pid = entry
                .ok()?
                .file_name()
                .to_str()?
                .parse()
                .ok()
                .and_then(Pid::from_raw)?;
            // One short read suffices because the fields needed are at the beginning. This keeps
            // the scan fast on machines with many processes.
            let mut stat = [0; 512];
            let read =
                rustix::io::read(fs::File::open(format!("/proc/{pid}/stat")).ok()?, &mut stat)
                    .ok()?;
            Some((pid, parse_parent_pid(&stat[..read])?))
        })
        .collect();
    let mut found = Vec::new();
    let mut above = vec![root];
    while let Some(parent) = above.pop() {
        for (pid, _) in processes.iter().filter(|(_, its)| *its == parent) {
            found.push(*pid);
            above.push(*pid);
        }
    }
    found
}

/// Parses the parent's pid in `pid (name) state parent …`.
fn parse_parent_pid(stat: &[u8]) -> Option<Pid> {
    stat_field(stat, 1)?.parse().ok().and_then(Pid::from_raw)
}

/// Returns a field of a `stat` file. The state has index 0. The process name before it may contain
/// any byte, even parentheses.
pub(crate) fn stat_field(stat: &[u8], index: usize) -> Option<&str> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&stat[after_name..]).ok()?;
    rest.split_ascii_whitespace().nth(index)
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_parsed_after_any_process_name() {
        assert_eq!(
            parse_parent_pid(b"12 (a) b) (c) S 7 12 12 0"),
            Pid::from_raw(7)
        );
        assert_eq!(parse_parent_pid(b"12 (\xff\n) R 1 0"), Pid::from_raw(1));
        assert_eq!(parse_parent_pid(b"1 (init) S 0 1"), None);
        assert_eq!(parse_parent_pid(b"garbage"), None);
    }

    #[test]
    fn descendants_include_a_running_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        assert!(find_descendants(rustix::process::getpid()).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!find_descendants(rustix::process::getpid()).contains(&pid));
    }
}
