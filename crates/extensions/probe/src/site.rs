//! Prepares files, sockets, and processes for attempts to reach.
//!
//! The site observes the attempts from outside: it detects a changed file, a connection, output on
//! the terminal, or a dead process, whatever an attempt reports about itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::FdFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::{ProbeTargets, sys};

/// Folders that are private to the sandbox: files that a command creates there must not appear
/// outside.
const PRIVATE_FOLDERS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// The number of probe sites that this process has created. Used to give each site unique names.
static SITE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// The files that each site contains at the beginning: path, content, and permissions.
const INITIAL_FILES: &[(&str, &str, u32)] = &[
    ("outside/file", "outside\n", 0o644),
    ("secrets/key", "", 0o600),
    ("project/own", "own\n", 0o644),
    ("project/folder/file", "", 0o644),
    ("project/.git/HEAD", "ref: refs/heads/main\n", 0o644),
    (
        "project/.git/config",
        "[core]\n\trepositoryformatversion = 0\n",
        0o644,
    ),
    ("project/.git/hooks/sample", "#!/bin/sh\n", 0o644),
    ("project/.vscode/tasks.json", "{}\n", 0o644),
    ("project/.github/workflows/ci.yml", "on: push\n", 0o644),
];
const INITIAL_FOLDERS: &[&str] = &[
    "outside/folder",
    "project/.git/objects",
    "project/.git/refs/heads",
];

/// The prepared targets of the attempts: files, processes and sockets that are observed from
/// outside the sandbox. Dropping the site ends its process and removes its shared memory; the
/// caller removes its files.
#[derive(Debug)]
pub struct ProbeSite {
    root: PathBuf,
    targets: ProbeTargets,
    before: BTreeMap<PathBuf, SiteFile>,
    process: Child,
    server: TcpListener,
    datagrams: UdpSocket,
    socket: UnixListener,
    abstract_socket: UnixListener,
    terminal: OwnedFd,
    pipe: File,
    _descriptor: File,
}

/// The permissions and the content of a file, for detecting changes.
#[derive(Debug, PartialEq, Eq)]
struct SiteFile {
    mode: u32,
    content: Vec<u8>,
}

impl ProbeSite {
    /// Prepares a site in `root`. This must be an empty folder that is private to the user and not
    /// in `/tmp`, because commands can write to `/tmp`.
    pub fn prepare(root: &Path) -> io::Result<Self> {
        let mark = format!(
            "haft-probe-{}-{}",
            std::process::id(),
            SITE_COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let secret_text = format!("secret of {mark}");
        for (path, content, mode) in INITIAL_FILES {
            let path = root.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&path, content)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
        }
        for folder in INITIAL_FOLDERS {
            fs::create_dir_all(root.join(folder))?;
        }
        fs::write(root.join("secrets/key"), &secret_text)?;
        fs::write(
            Path::new("/dev/shm").join(shared_memory_name(&mark)),
            &secret_text,
        )?;

        let server = TcpListener::bind("127.0.0.1:0")?;
        let port = server.local_addr()?.port();
        let datagrams = UdpSocket::bind(("127.0.0.1", port))?;
        let socket_path = root.join("outside/socket");
        let outside = root.join("outside");
        let socket = UnixListener::bind(&socket_path)?;
        let abstract_socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&mark)?)?;
        server.set_nonblocking(true)?;
        datagrams.set_nonblocking(true)?;
        socket.set_nonblocking(true)?;
        abstract_socket.set_nonblocking(true)?;
        let (terminal, terminal_path) = create_terminal()?;
        let pipe = create_pipe(&root.join("outside/pipe-there"))?;
        // This descriptor is inherited by the command, whose parents don't close it.
        let descriptor = File::open(&outside)?;
        rustix::io::fcntl_setfd(&descriptor, FdFlags::empty())?;
        let targets = ProbeTargets {
            project: root.join("project"),
            outside,
            secret: root.join("secrets/key"),
            process: 0,
            port,
            socket: socket_path,
            abstract_socket: mark.clone(),
            terminal: terminal_path,
            segment: sys::create_segment(secret_text.as_bytes())?,
            shared: shared_memory_name(&mark),
            descriptor: descriptor.as_raw_fd(),
            secret_text,
            mark,
        };
        let process = start_process(&targets)?;
        let targets = ProbeTargets {
            process: process.id().cast_signed(),
            ..targets
        };
        fs::write(root.join("ground.json"), serde_json::to_vec(&targets)?)?;
        let before = read_tree(root)?;
        Ok(Self {
            root: root.to_owned(),
            targets,
            before,
            process,
            server,
            datagrams,
            socket,
            abstract_socket,
            terminal,
            pipe,
            _descriptor: descriptor,
        })
    }

    pub fn targets(&self) -> &ProbeTargets {
        &self.targets
    }

    /// Returns the path of the file that lists the targets. It is passed to the probing program as
    /// an argument.
    pub fn targets_file(&self) -> PathBuf {
        self.root.join("ground.json")
    }

    /// Returns a message for each file that has changed since the site was prepared.
    pub fn describe_changed_files(&self) -> io::Result<Vec<String>> {
        let now = read_tree(&self.root)?;
        let paths = self
            .before
            .keys()
            .chain(now.keys().filter(|path| !self.before.contains_key(*path)));
        let changed = paths.filter(|path| self.before.get(*path) != now.get(*path));
        Ok(changed
            .map(|path| format!("{} was changed", path.display()))
            .collect())
    }

    /// Returns traces of the attempts, other than changed files, that appeared outside the sandbox
    /// since the last call: connections, output, dead processes, and files that were left behind.
    pub fn take_contacts(&mut self) -> io::Result<Vec<String>> {
        let mut contacts = Vec::new();
        let mut note = |what: &str| contacts.push(what.to_owned());
        while self.server.accept().is_ok() {
            note("somebody connected to the server");
        }
        while self.datagrams.recv(&mut [0; 64]).is_ok() {
            note("somebody sent a datagram");
        }
        while self.socket.accept().is_ok() {
            note("somebody spoke to the socket");
        }
        while self.abstract_socket.accept().is_ok() {
            note("somebody spoke to the socket without a place");
        }
        if File::from(self.terminal.try_clone()?)
            .read(&mut [0; 64])
            .is_ok_and(|length| length > 0)
        {
            note("somebody wrote to the terminal");
        }
        if self.pipe.read(&mut [0; 64]).is_ok_and(|length| length > 0) {
            note("somebody wrote to the named pipe");
        }
        if self.process.try_wait()?.is_some() {
            note("the process was ended");
        }
        for folder in PRIVATE_FOLDERS {
            let left = Path::new(folder).join(&self.targets.mark);
            if fs::remove_file(&left).is_ok() {
                note(&format!("{} was left", left.display()));
            }
        }
        Ok(contacts)
    }
}

impl Drop for ProbeSite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        sys::remove_segment(self.targets.segment);
        let _ = fs::remove_file(Path::new("/dev/shm").join(&self.targets.shared));
    }
}

fn shared_memory_name(mark: &str) -> String {
    format!("{mark}-shared")
}

/// Starts a process that waits for the end of its input, with the secret in its environment and the
/// mark in its command line.
fn start_process(targets: &ProbeTargets) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", "read line", &targets.mark])
        .env_clear()
        .env("SECRET", &targets.secret_text)
        .current_dir(&targets.outside)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Creates a named pipe and opens it for reading.
fn create_pipe(path: &Path) -> io::Result<File> {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )?;
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// Creates a pseudoterminal. Returns its master side and the path of the terminal device.
fn create_terminal() -> io::Result<(OwnedFd, PathBuf)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    rustix::io::ioctl_fionbio(master.as_fd(), true)?;
    let name = ptsname(&master, Vec::new())?;
    Ok((master, PathBuf::from(name.to_string_lossy().into_owned())))
}

/// Reads all files below the site's folders, to detect changes later.
fn read_tree(root: &Path) -> io::Result<BTreeMap<PathBuf, SiteFile>> {
    let mut seen = BTreeMap::new();
    let mut open = ["project", "outside", "secrets"]
        .map(|name| root.join(name))
        .to_vec();
    while let Some(path) = open.pop() {
        let metadata = path.symlink_metadata()?;
        let kind = metadata.file_type();
        let content = if kind.is_symlink() {
            fs::read_link(&path)?.into_os_string().into_encoded_bytes()
        } else if kind.is_file() {
            fs::read(&path)?
        } else {
            Vec::new()
        };
        if kind.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
        seen.insert(
            path,
            SiteFile {
                mode: metadata.permissions().mode(),
                content,
            },
        );
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn site_reports_changed_files_and_contacts() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = ProbeSite::prepare(folder.path()).unwrap();
        assert!(
            site.describe_changed_files().unwrap().is_empty()
                && site.take_contacts().unwrap().is_empty()
        );
        let targets = site.targets().clone();
        fs::write(targets.outside_file(), "other").unwrap();
        fs::remove_file(targets.in_project(".git/config")).unwrap();
        fs::write(targets.in_project("new"), "").unwrap();
        fs::set_permissions(&targets.secret, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            site.describe_changed_files().unwrap().len(),
            4,
            "{:?}",
            site.describe_changed_files()
        );
        drop(std::net::TcpStream::connect(("127.0.0.1", targets.port)).unwrap());
        drop(std::os::unix::net::UnixStream::connect(&targets.socket).unwrap());
        fs::write(Path::new("/tmp").join(&targets.mark), "").unwrap();
        fs::OpenOptions::new()
            .write(true)
            .open(&targets.terminal)
            .unwrap()
            .write_all(b"x")
            .unwrap();
        site.process.kill().unwrap();
        site.process.wait().unwrap();
        let contacts = site.take_contacts().unwrap();
        assert_eq!(contacts.len(), 5, "{contacts:?}");
    }
}
