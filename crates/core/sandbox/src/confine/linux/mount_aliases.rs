//! Finds the other paths of a file: those by which it is reached through another mount of its file
//! system.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The mounts of this process.
#[derive(Debug, Default)]
pub(super) struct MountTable(Vec<MountEntry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct MountEntry {
    device: String,
    /// The path inside the file system that is visible at `at`.
    root: PathBuf,
    at: PathBuf,
}

impl MountTable {
    /// Reads the current mounts. Without them, no other paths are found.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(table: &[u8]) -> Self {
        Self(
            table
                .split(|byte| *byte == b'\n')
                .filter_map(parse_line)
                .collect(),
        )
    }

    /// Returns the other paths by which `path`, which has no links, or a part of it can be reached.
    pub(super) fn aliases(&self, path: &Path) -> Vec<PathBuf> {
        let containing = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, mount)| path.starts_with(&mount.at))
            .max_by_key(|(index, mount)| (mount.at.components().count(), *index));
        let Some((own, mount)) = containing else {
            return Vec::new();
        };
        let Ok(below) = path.strip_prefix(&mount.at) else {
            return Vec::new();
        };
        let inner = mount.root.join(below);
        self.0
            .iter()
            .enumerate()
            .filter(|(index, other)| *index != own && other.device == mount.device)
            .filter_map(|(_, other)| alias_in(other, &inner, path))
            .filter(|alias| !alias.starts_with(path))
            .collect()
    }
}

/// Returns the path of `path`, which is `inner` in its file system, or of a part of it, in another
/// mount. Returns `None` if the mount does not show it, or another mount covers it there.
fn alias_in(mount: &MountEntry, inner: &Path, path: &Path) -> Option<PathBuf> {
    let (alias, expected) = if let Ok(below) = inner.strip_prefix(&mount.root) {
        (mount.at.join(below), path.to_owned())
    } else {
        let below = mount.root.strip_prefix(inner).ok()?;
        (mount.at.clone(), path.join(below))
    };
    let id = |path: &Path| {
        let seen = path.symlink_metadata().ok()?;
        Some((seen.dev(), seen.ino()))
    };
    let alias: PathBuf = alias.components().collect();
    (id(&alias)? == id(&expected)?).then_some(alias)
}

/// Parses the columns for the device, the root and the mount point.
fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut columns = line.split(|byte| *byte == b' ').skip(2);
    Some(MountEntry {
        device: String::from_utf8(columns.next()?.to_vec()).ok()?,
        root: unescape_path(columns.next()?),
        at: unescape_path(columns.next()?),
    })
}

/// Decodes the escapes for spaces and the like, such as `\040`.
fn unescape_path(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = octal {
            path.push(byte);
            rest = &after[3..];
        } else {
            path.push(*first);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_line_reads_device_root_and_mount_point() {
        let line = br"36 35 98:0 /a\040b /mnt/c\134d rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(
            parse_line(line),
            Some(MountEntry {
                device: "98:0".to_owned(),
                root: "/a b".into(),
                at: r"/mnt/c\d".into(),
            })
        );
    }

    #[test]
    fn aliases_are_paths_of_one_file_through_other_mounts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("disk/home/keys/inner")).unwrap();
        let mount = |inside: &str, at: &str| MountEntry {
            device: "1:1".to_owned(),
            root: inside.into(),
            at: root.join(at),
        };
        let table = MountTable(vec![
            mount("/", "disk"),
            mount("/home", "disk/home"),
            mount("/other", "disk/home/keys/none"),
        ]);
        assert_eq!(
            table.aliases(&root.join("disk/home/keys")),
            Vec::<PathBuf>::new(),
            "the path through the outer mount is the same path"
        );
        // A hard link stands in for a second mount, which would need privileges.
        fs::create_dir(root.join("again")).unwrap();
        fs::write(root.join("disk/file"), "").unwrap();
        fs::hard_link(root.join("disk/file"), root.join("again/file")).unwrap();
        let twice = MountTable(vec![mount("/", "disk"), mount("/", "again")]);
        assert_eq!(
            twice.aliases(&root.join("disk/file")),
            [root.join("again/file")]
        );
        fs::remove_file(root.join("again/file")).unwrap();
        fs::write(root.join("again/file"), "").unwrap();
        assert_eq!(
            twice.aliases(&root.join("disk/file")),
            Vec::<PathBuf>::new(),
            "another mount covers it"
        );
    }
}
