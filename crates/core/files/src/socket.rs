//! Private Unix sockets: files with mode 0600 in folders with mode 0700.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::folder::create_folder;
use crate::tighten::tighten_mode;

/// The mode of a socket: only the owner can connect.
const MODE: u32 = 0o600;
/// The maximum length of a path, in bytes, that every system accepts as the address of a socket.
const MAX_ADDRESS_BYTES: usize = 100;
/// The extension of a socket that does not yet accept connections.
const NEW_EXTENSION: &str = "new";

/// Listens at a new socket in `folder`, which is created if it is missing. Other users lose their
/// access to an existing folder. The socket appears under its name once it accepts connections, so
/// that a refused connection always means that the listener is gone.
pub fn bind_private_socket(folder: &Path, name: &str) -> io::Result<UnixListener> {
    create_folder(folder)?;
    tighten_mode(folder)?;
    let new = format!("{name}.{NEW_EXTENSION}");
    let listener = at_short_path(folder, &new, |path| UnixListener::bind(path))?;
    let path = folder.join(&new);
    fs::set_permissions(&path, Permissions::from_mode(MODE))?;
    fs::rename(&path, folder.join(name))?;
    Ok(listener)
}

/// Connects to a socket in `folder`.
pub fn connect_private_socket(folder: &Path, name: &str) -> io::Result<UnixStream> {
    at_short_path(folder, name, |path| UnixStream::connect(path))
}

/// Calls `use_path` with a path of `folder/name` that is short enough for the address of a socket.
fn at_short_path<T>(
    folder: &Path,
    name: &str,
    use_path: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let path = folder.join(name);
    if path.as_os_str().len() <= MAX_ADDRESS_BYTES || !Path::new("/proc/self/fd").is_dir() {
        return use_path(&path);
    }
    let opened = File::open(folder)?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    use_path(&short.join(name))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    fn exchange_byte(listener: &UnixListener, folder: &Path) {
        let mut client = connect_private_socket(folder, "s").unwrap();
        client.write_all(b"x").unwrap();
        let mut got = [0];
        listener.accept().unwrap().0.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"x");
    }

    #[test]
    fn private_socket_is_closed_to_others_and_named_when_ready() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sockets");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        let listener = bind_private_socket(&folder, "s").unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("s"))), (0o700, 0o600));
        let names: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["s"]);
        exchange_byte(&listener, &folder);
        drop(listener);
        let refused = connect_private_socket(&folder, "s").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn private_socket_can_lie_below_a_long_path() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("x".repeat(150)).join("sockets");
        let listener = bind_private_socket(&folder, "s").unwrap();
        exchange_byte(&listener, &folder);
    }
}
