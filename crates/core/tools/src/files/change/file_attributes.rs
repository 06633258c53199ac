//! Copies the attributes of a file to the file that replaces it: owner, mode, and extended
//! attributes, which contain access control lists.

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

use crate::files::disk::LoadedFile;

/// The name of the extended attribute that contains the access control list.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The name of the extended attribute that contains the capabilities of a program. The kernel
/// removes capabilities when the file is written to, and haft does not copy them.
const CAPABILITIES: &str = "security.capability";

/// A failure to copy the owner or the mode of the old file.
pub(super) enum AttributeError {
    Owner {
        uid: u32,
        gid: u32,
        source: io::Error,
    },
    Mode(io::Error),
}

/// Copies owner, mode and extended attributes of the old file to the new file. Returns the names of
/// extended attributes that could not be copied.
pub(super) fn copy_attributes(new: &File, old: &LoadedFile) -> Result<Vec<String>, AttributeError> {
    let uid = old.metadata.uid();
    let gid = old.metadata.gid();
    let made = new.metadata().map_err(AttributeError::Mode)?;
    if (made.uid(), made.gid()) != (uid, gid) {
        let owner = fchown(new, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        owner.map_err(|error| AttributeError::Owner {
            uid,
            gid,
            source: error.into(),
        })?;
    }
    let lost = copy_extended_attributes(new, &old.file).map_err(AttributeError::Mode)?;
    // The mode comes last: changing the owner or the access control list clears set-id bits.
    let mode = Permissions::from_mode(old.metadata.mode() & 0o7777);
    new.set_permissions(mode).map_err(AttributeError::Mode)?;
    Ok(lost)
}

fn copy_extended_attributes(new: &File, old: &File) -> io::Result<Vec<String>> {
    let names = match list_extended_attributes(old) {
        Ok(names) => names,
        // The file system has no extended attributes.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    if !names.iter().any(|name| name == ACCESS_LIST) {
        // A default list of the folder applies to new files, but the old file has none.
        match fremovexattr(new, ACCESS_LIST) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut lost = Vec::new();
    for name in names.iter().filter(|name| *name != CAPABILITIES) {
        let copied = read_extended_attribute(old, name)
            .and_then(|value| fsetxattr(new, name, &value, XattrFlags::empty()));
        if copied.is_err() {
            lost.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(lost)
}

fn list_extended_attributes(file: &File) -> Result<Vec<OsString>, Errno> {
    let list = read_variable_length(|| flistxattr_query(file), |buffer| flistxattr(file, buffer))?;
    let names = list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect())
}

fn read_extended_attribute(file: &File, name: &OsStr) -> Result<Vec<u8>, Errno> {
    read_variable_length(
        || fgetxattr_query(file, name),
        |buffer| fgetxattr(file, name, buffer),
    )
}

/// Reads an attribute or a list of unknown length. Queries the length first, and starts again if
/// the content has grown before it is read.
fn read_variable_length(
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
