//! What a file keeps when its content is replaced: owner, mode, and extended attributes, which hold
//! the access lists.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{
    Gid, Uid, XattrFlags, fchown, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query,
    fremovexattr, fsetxattr,
};
use rustix::io::Errno;

use crate::files::disk::Loaded;

/// Who may do what beyond owner, group and others.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// What a program may do when it is run. The kernel takes it off a file that is written to, and so
/// does haft.
const CAPABILITIES: &str = "security.capability";

/// A new file could not be made like the old one.
pub(super) enum KeepError {
    Owner {
        uid: u32,
        gid: u32,
        source: io::Error,
    },
    Mode(io::Error),
}

/// Makes a new file like the old one, and says which attributes it could not take over.
pub(super) fn take_after(new: &File, old: &Loaded) -> Result<Vec<String>, KeepError> {
    let uid = old.metadata.uid();
    let gid = old.metadata.gid();
    let made = new.metadata().map_err(KeepError::Mode)?;
    if (made.uid(), made.gid()) != (uid, gid) {
        let owner = fchown(new, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        owner.map_err(|error| KeepError::Owner {
            uid,
            gid,
            source: error.into(),
        })?;
    }
    let lost = take_attributes(new, &old.file).map_err(KeepError::Mode)?;
    // Last: a new owner and a new access list both take set-id bits away.
    let mode = Permissions::from_mode(old.metadata.mode() & 0o7777);
    new.set_permissions(mode).map_err(KeepError::Mode)?;
    Ok(lost)
}

fn take_attributes(new: &File, old: &File) -> io::Result<Vec<String>> {
    let names = match attributes(old) {
        Ok(names) => names,
        // A file system without them.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    if !names.iter().any(|name| name == ACCESS_LIST) {
        // The folder may have a default list that new files get and this one never had.
        match fremovexattr(new, ACCESS_LIST) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut lost = Vec::new();
    for name in names.iter().filter(|name| *name != CAPABILITIES) {
        let copied =
            value(old, name).and_then(|value| fsetxattr(new, name, &value, XattrFlags::empty()));
        if copied.is_err() {
            lost.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(lost)
}

fn attributes(file: &File) -> Result<Vec<OsString>, Errno> {
    let list = filled(|| flistxattr_query(file), |buffer| flistxattr(file, buffer))?;
    let names = list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect())
}

fn value(file: &File, name: &OsStr) -> Result<Vec<u8>, Errno> {
    filled(
        || fgetxattr_query(file, name),
        |buffer| fgetxattr(file, name, buffer),
    )
}

/// A list or value of unknown length: asked for its length first, and again should it grow in
/// between.
fn filled(
    length: impl Fn() -> Result<usize, Errno>,
    fill: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    loop {
        let mut buffer = vec![0; length()?];
        match fill(&mut buffer) {
            Err(Errno::RANGE) => {}
            Err(error) => return Err(error),
            Ok(filled) => {
                buffer.truncate(filled);
                return Ok(buffer);
            }
        }
    }
}
