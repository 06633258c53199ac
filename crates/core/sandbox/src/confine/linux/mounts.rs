//! The file system of a command in a mount namespace of its own.
//!
//! Everything that will be needed is opened first: folders the command may use, devices, one small
//! file system in memory for whatever is made up. Then all that is there becomes read-only, and the
//! pieces are put in place from the outside in, so that a folder of the project is found again
//! below a `/tmp` that is another one, and a secret is covered though it lies in the project. Last,
//! protected files are sealed.
//!
//! Invariant: nothing that was writable before stays so unless the policy names it, and nobody
//! inside can undo a mount.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount,
    mount_change, move_mount, open_tree, unmount,
};

use super::names::ProtectedEntry;
use super::sys::{Depth, NO_DEVICES, NO_SUID, READ_ONLY, restrict_mount};
use super::{AtStep, ConfinementFailure, ConfinementStep, Network, SandboxPolicy};
use crate::PRIVATE_FOLDERS;
use crate::wire::Console;

/// What was learnt of the world outside before the namespaces were made.
pub(crate) struct HostState {
    /// What stands in place of protected files that do not exist.
    pub(crate) covers: Vec<PathBuf>,
    /// The protected files of the projects, covers among them.
    pub(crate) protected: Vec<ProtectedEntry>,
    /// Sockets of other programs.
    pub(crate) sockets: Vec<PathBuf>,
    /// What the command has in front of it.
    pub(crate) console: Console,
}

/// Devices that every program may expect.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Of `/run`, where the sockets of all services are, only these are kept: programs of some systems,
/// and how names are found.
const RUN_KEPT: &[&str] = &["/run/current-system", "/run/opengl-driver", "/run/wrappers"];
/// Where the proxy's socket is found inside.
pub(crate) const PROXY_SOCKET: &str = "/run/haft-proxy";
/// What decides in a repository what git runs, or where it finds what does.
const REPOSITORY_KEPT: &[&str] = &[
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "info",
    "modules",
    "worktrees",
];
/// An empty file to cover others with.
const EMPTY: &str = "/dev/.empty";

/// Makes the file system of this process, which must be in a mount and a pid namespace of its own.
pub(crate) fn build(policy: &SandboxPolicy, around: &HostState) -> Result<(), ConfinementFailure> {
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .at(ConfinementStep::Root)?;
    own_proc().at(ConfinementStep::Proc)?;
    let mut pieces = folders(policy).at(ConfinementStep::Folders)?;
    pieces.extend(made_up(policy, around.console).at(ConfinementStep::Devices)?);
    let root = Mount::at(Path::new("/")).at(ConfinementStep::Root)?;
    root.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)
        .at(ConfinementStep::Root)?;
    put_in_place(pieces).at(ConfinementStep::Places)?;
    seal(policy, around).at(ConfinementStep::Protected)?;
    for project in policy.projects.iter().chain(&policy.writable) {
        let further = policy
            .protected
            .iter()
            .filter(|path| path.starts_with(project) && path.as_path() != project);
        for path in further {
            seal_further(project, path).at(ConfinementStep::Protected)?;
        }
    }
    cover_sockets(policy, &around.sockets).at(ConfinementStep::Places)
}

/// A mount that is or can be attached somewhere.
struct Mount(OwnedFd);

impl Mount {
    /// A copy of what is found there, links not followed, with everything mounted below.
    fn copy_of(path: &Path) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        Ok(Self(open_tree(CWD, path, flags)?))
    }

    /// A read-only view of a folder, in which named pipes are not those outside: an overlay gives
    /// each of them an inode of its own. `empty` is an empty folder, since an overlay without a
    /// writable layer needs two others.
    fn detached_view(folder: &Path, empty: &Path) -> io::Result<Self> {
        let mut layers = Vec::new();
        for byte in folder.as_os_str().as_bytes() {
            if matches!(byte, b':' | b'\\') {
                layers.push(b'\\');
            }
            layers.push(*byte);
        }
        layers.push(b':');
        layers.extend(empty.as_os_str().as_bytes());
        let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(overlay.as_fd(), "lowerdir", layers)?;
        fsconfig_create(overlay.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mounted = fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        Ok(Self(mounted))
    }

    /// The one that is there.
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self(open_tree(
            CWD,
            path,
            OpenTreeFlags::OPEN_TREE_CLOEXEC,
        )?))
    }

    /// Attaches it on top of what is there, a link itself included.
    fn attach(&self, at: &Path) -> io::Result<()> {
        Ok(move_mount(
            &self.0,
            "",
            CWD,
            at,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )?)
    }

    fn restrict(&self, rights: u64, depth: Depth) -> io::Result<()> {
        restrict_mount(&self.0, rights, depth)
    }
}

/// Something to be put in place.
struct MountPiece {
    at: PathBuf,
    mount: Mount,
    access: MountAccess,
}

/// What can be done with a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    /// Everything but devices and programs of other users.
    Writable,
    /// Reading, once it is in place with all that comes into it.
    ReadOnly,
    /// Like that, and devices in it are devices.
    Devices,
}

/// A `/proc` that shows the processes of the new namespace only. It will be read-only, so that root
/// is no one else in there.
fn own_proc() -> io::Result<()> {
    Ok(mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )?)
}

/// The folders of the policy.
fn folders(policy: &SandboxPolicy) -> io::Result<Vec<MountPiece>> {
    let mut pieces = Vec::new();
    for folder in policy.projects.iter().chain(&policy.writable) {
        pieces.push(MountPiece {
            at: folder.clone(),
            mount: Mount::copy_of(folder)?,
            access: MountAccess::Writable,
        });
    }
    // What can be written already would become read-only.
    for path in policy
        .readable
        .iter()
        .filter(|path| !policy.is_writable(path) && !lies_in_private_folder(policy, path))
    {
        if let Ok(real) = path.canonicalize() {
            let mount = Mount::copy_of(&real)?;
            mount.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
            pieces.push(MountPiece {
                at: path.clone(),
                mount,
                access: MountAccess::ReadOnly,
            });
        }
    }
    let resolver = fs::canonicalize("/etc/resolv.conf").ok();
    let kept = RUN_KEPT
        .iter()
        .map(PathBuf::from)
        .chain(resolver.filter(|path| path.starts_with("/run")));
    for path in kept.filter(|path| path.exists()) {
        let from = fs::canonicalize(&path)?;
        pieces.push(MountPiece {
            at: path,
            mount: Mount::copy_of(&from)?,
            access: MountAccess::ReadOnly,
        });
    }
    if let Network::Through(socket) = &policy.network {
        let mount = Mount::copy_of(socket)?;
        pieces.push(MountPiece {
            at: PROXY_SOCKET.into(),
            mount,
            access: MountAccess::ReadOnly,
        });
    }
    for at in policy.private_folders() {
        let mount = Mount::copy_of(&policy.tmp)?;
        pieces.push(MountPiece {
            at: at.into(),
            mount,
            access: MountAccess::Writable,
        });
    }
    Ok(pieces)
}

/// Whether a path lies below a folder that the command has of its own, such as `/tmp`.
fn lies_in_private_folder(policy: &SandboxPolicy, path: &Path) -> bool {
    policy
        .private_folders()
        .any(|folder| path.starts_with(folder))
}

/// The readable folders and files below private folders.
///
/// A command may write below `/tmp`, so Landlock does not keep it from named pipes there. Folders
/// are therefore shown as overlays. Where the kernel has none, they are copies of the mount.
fn shown_in_private_folders(policy: &SandboxPolicy, empty: &Path) -> io::Result<Vec<MountPiece>> {
    let mut pieces = Vec::new();
    for path in policy
        .readable
        .iter()
        .filter(|path| !policy.is_writable(path) && lies_in_private_folder(policy, path))
    {
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        let mount = if real.is_dir() {
            Mount::detached_view(&real, empty).or_else(|_| Mount::copy_of(&real))?
        } else if real.is_file() {
            Mount::copy_of(&real)?
        } else {
            continue;
        };
        mount.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
        pieces.push(MountPiece {
            at: path.clone(),
            mount,
            access: MountAccess::ReadOnly,
        });
    }
    Ok(pieces)
}

fn is_real_folder(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
}

/// What is not there outside: devices, `/run`, covers of secrets. All of it lies in one file system
/// in memory, which is mounted on `/dev` while it is filled.
fn made_up(policy: &SandboxPolicy, console: Console) -> io::Result<Vec<MountPiece>> {
    let devices = DEVICES
        .iter()
        .map(|name| Ok((*name, Mount::copy_of(&Path::new("/dev").join(name))?)));
    let devices: Vec<_> = devices.collect::<io::Result<_>>()?;
    let terminal = match console {
        Console::None | Console::Socket => None,
        Console::Terminal => fs::canonicalize("/proc/self/fd/1")
            .and_then(|path| Mount::copy_of(&path))
            .ok(),
    };
    let hidden = hidden(policy);

    mount(
        "tmpfs",
        "/dev",
        "tmpfs",
        MountFlags::NOSUID,
        Some(c"mode=0755"),
    )?;
    let stage = Path::new("/dev");
    let dev = stage.join("dev");
    let shm = stage.join("shm");
    let run = stage.join("run");
    let empty = stage.join("empty");
    for folder in [&dev, &shm, &run, &empty] {
        DirBuilder::new().mode(0o755).create(folder)?;
    }
    fs::set_permissions(&shm, fs::Permissions::from_mode(0o1777))?;
    fill_devices(&dev, devices, terminal)?;
    let mut pieces = vec![
        MountPiece {
            at: stage.to_owned(),
            mount: Mount::copy_of(&dev)?,
            access: MountAccess::Devices,
        },
        MountPiece {
            at: stage.join("shm"),
            mount: Mount::copy_of(&shm)?,
            access: MountAccess::Writable,
        },
    ];
    pieces.extend(shown_in_private_folders(policy, &empty)?);
    if is_real_folder(Path::new("/run")) {
        pieces.push(MountPiece {
            at: "/run".into(),
            mount: Mount::copy_of(&run)?,
            access: MountAccess::ReadOnly,
        });
    }
    for (number, (at, is_folder)) in hidden.into_iter().enumerate() {
        let cover = stage.join(number.to_string());
        if is_folder {
            DirBuilder::new().mode(0o755).create(&cover)?;
        } else {
            File::create(&cover)?;
        }
        pieces.push(MountPiece {
            at,
            mount: Mount::copy_of(&cover)?,
            access: MountAccess::ReadOnly,
        });
    }
    unmount(stage, UnmountFlags::DETACH)?;
    Ok(pieces)
}

/// What is to be hidden and there, links followed, and whether it is a folder.
fn hidden(policy: &SandboxPolicy) -> BTreeSet<(PathBuf, bool)> {
    policy
        .hidden_places()
        .map(|path| (path.is_dir(), path))
        .map(|(is_folder, path)| (path, is_folder))
        .collect()
}

fn fill_devices(
    dev: &Path,
    devices: Vec<(&str, Mount)>,
    terminal: Option<Mount>,
) -> io::Result<()> {
    for (name, device) in devices {
        File::create(dev.join(name))?;
        device.attach(&dev.join(name))?;
    }
    if let Some(terminal) = terminal {
        // By this programs find the name of the terminal they are at.
        File::create(dev.join("console"))?;
        terminal.attach(&dev.join("console"))?;
    }
    for (name, to) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        symlink(to, dev.join(name))?;
    }
    for folder in ["shm", "pts"] {
        DirBuilder::new().mode(0o755).create(dev.join(folder))?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(
        "devpts",
        dev.join("pts"),
        "devpts",
        flags,
        Some(c"newinstance,ptmxmode=0666,mode=0620"),
    )?;
    symlink("pts/ptmx", dev.join("ptmx"))?;
    let empty = dev.join(Path::new(EMPTY).file_name().unwrap_or_default());
    File::create(&empty)?;
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o444))
}

/// Puts the pieces in place, from the outside in, and makes read-only what shall be.
fn put_in_place(mut pieces: Vec<MountPiece>) -> io::Result<()> {
    // In the same place a cover comes last: what is hidden stays hidden.
    pieces.sort_by_key(|piece| piece.at.components().count());
    for piece in &pieces {
        if piece.access == MountAccess::Writable {
            piece.mount.restrict(NO_SUID | NO_DEVICES, Depth::All)?;
        }
        make_room(piece)?;
        piece.mount.attach(&piece.at)?;
    }
    for piece in &pieces {
        match piece.access {
            MountAccess::Writable => {}
            MountAccess::ReadOnly => piece
                .mount
                .restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::One)?,
            MountAccess::Devices => piece.mount.restrict(READ_ONLY | NO_SUID, Depth::One)?,
        }
    }
    Ok(())
}

/// Makes sure that there is something to attach a piece to: below something that was made up there
/// may be nothing.
fn make_room(piece: &MountPiece) -> io::Result<()> {
    if piece.at.symlink_metadata().is_ok() {
        return Ok(());
    }
    let is_folder = rustix::fs::fstat(&piece.mount.0)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let folder = if is_folder {
        Some(piece.at.as_path())
    } else {
        piece.at.parent()
    };
    if let Some(folder) = folder {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)?;
    }
    if !is_folder {
        File::create(&piece.at)?;
    }
    Ok(())
}

/// Makes the protected files of the projects unwritable. What leads to them becomes a mount of its
/// own: that cannot be renamed.
fn seal(policy: &SandboxPolicy, around: &HostState) -> io::Result<()> {
    for found in &around.protected {
        let sealed = match found {
            ProtectedEntry::Protected(path) if policy.repositories.contains(path) => {
                seal_repository(path)
            }
            ProtectedEntry::Protected(path) => seal_one(path),
            ProtectedEntry::Anchor(path) if around.covers.contains(path) => seal_one(path),
            ProtectedEntry::Anchor(path) => Mount::copy_of(path).and_then(|copy| copy.attach(path)),
        };
        match sealed {
            // Nothing is left of what lies in a folder that is hidden.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Makes what decides what git runs unwritable in a repository that a commit may write.
fn seal_repository(path: &Path) -> io::Result<()> {
    if !is_real_folder(path) {
        return seal_one(path);
    }
    Mount::copy_of(path)?.attach(path)?;
    for name in REPOSITORY_KEPT
        .iter()
        .map(|name| path.join(name))
        .filter(|name| name.symlink_metadata().is_ok())
    {
        seal_one(&name)?;
    }
    Ok(())
}

/// Makes one more file of a project unwritable, if it is there and is not in a folder that is
/// unwritable already.
fn seal_further(project: &Path, path: &Path) -> io::Result<()> {
    let mut way: Vec<_> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != project)
        .collect();
    way.reverse();
    if path.symlink_metadata().is_err() || way.iter().any(|folder| !is_real_folder(folder)) {
        return Ok(());
    }
    for folder in way {
        Mount::copy_of(folder)?.attach(folder)?;
    }
    seal_one(path)
}

fn seal_one(path: &Path) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    let target = if kind.is_symlink() {
        path.metadata().ok()
    } else {
        None
    };
    let copy = if kind.is_socket() {
        Mount::copy_of(Path::new(EMPTY))?
    } else if target.as_ref().is_some_and(fs::Metadata::is_file) {
        Mount::copy_of(&fs::canonicalize(path)?)?
    } else if kind.is_symlink() {
        // A folder cannot be put on a link; where the link leads is sealed, and the link hidden.
        if let Ok(folder) = fs::canonicalize(path) {
            let copy = Mount::copy_of(&folder)?;
            copy.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
            copy.attach(&folder)?;
        }
        Mount::copy_of(Path::new(EMPTY))?
    } else {
        Mount::copy_of(path)?
    };
    copy.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
    copy.attach(path)
}

/// Covers the sockets of other programs that are still within reach. Those of the project are its
/// own, unless the project is a folder such as `/tmp`, in which every program keeps its sockets.
fn cover_sockets(policy: &SandboxPolicy, sockets: &[PathBuf]) -> io::Result<()> {
    let is_shared = |folder: &Path| {
        PRIVATE_FOLDERS
            .iter()
            .any(|private| Path::new(private).starts_with(folder))
    };
    let own = |path: &Path| {
        let folders = policy
            .projects
            .iter()
            .chain(&policy.writable)
            .filter(|folder| !is_shared(folder));
        folders.into_iter().any(|folder| path.starts_with(folder))
    };
    for socket in sockets.iter().filter(|socket| !own(socket)) {
        let is_there = socket
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_there && socket.as_path() != Path::new(PROXY_SOCKET) {
            Mount::copy_of(Path::new(EMPTY))?.attach(socket)?;
        }
    }
    Ok(())
}
