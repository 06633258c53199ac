//! Finds the sockets of other programs, which stay usable even on a read-only mount.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns the paths of the Unix sockets in this process's network namespace.
pub(crate) fn list_bound_sockets() -> Vec<PathBuf> {
    parse_socket_paths(&fs::read("/proc/net/unix").unwrap_or_default())
}

/// Parses the socket paths in the contents of `/proc/net/unix`, which has eight columns per line.
/// Skips abstract sockets and sockets bound to a relative path.
fn parse_socket_paths(table: &[u8]) -> Vec<PathBuf> {
    let mut paths: Vec<_> = table
        .split(|byte| *byte == b'\n')
        .skip(1)
        .filter_map(parse_path_column)
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Parses the last column of a line as a path, which may contain spaces.
fn parse_path_column(line: &[u8]) -> Option<PathBuf> {
    let mut rest = line;
    for _ in 0..7 {
        let column = rest.iter().position(|byte| *byte != b' ')?;
        let end = rest[column..].iter().position(|byte| *byte == b' ')?;
        rest = &rest[column + end..];
    }
    let path = rest.strip_prefix(b" ")?;
    path.starts_with(b"/")
        .then(|| Path::new(OsStr::from_bytes(path)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_lists_sockets_with_a_path() {
        let table = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 20103 /run/a b.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 18903\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 19021 @/tmp/abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 20104 /run/a b.sock\n";
        assert_eq!(parse_socket_paths(table), [PathBuf::from("/run/a b.sock")]);
    }
}
