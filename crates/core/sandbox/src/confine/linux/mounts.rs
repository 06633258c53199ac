//! Builds the file system of a command in its own mount namespace.
//!
//! Everything needed is opened first: folders the command may use, devices, and one small file
//! system in memory for synthetic files. Then all existing mounts become read-only, and the pieces
//! are attached from the outside in, so that a project folder is visible again below a replaced
//! `/tmp`, and a secret is covered even if it lies in the project. Finally, protected files are
//! sealed.
//!
//! Invariant: no path stays writable unless the policy names it, and no process inside can undo a
//! mount.

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

use super::host_state::HostState;
use super::protected_names::{ProtectedEntry, SEALED_REPOSITORY_ENTRIES};
use super::sys::{Depth, NO_DEVICES, NO_SUID, READ_ONLY, restrict_mount};
use super::{AtStep, ConfinementFailure, ConfinementStep, Network, SandboxPolicy};
use crate::PRIVATE_FOLDERS;
use crate::wire::Console;

/// The devices that every program may expect.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// The only entries of `/run` that stay visible, in addition to the DNS resolver's configuration:
/// the folders in which some distributions keep programs. The rest of `/run` contains the sockets
/// of services.
const KEPT_RUN_ENTRIES: &[&str] = &["/run/current-system", "/run/opengl-driver", "/run/wrappers"];
/// The path of the proxy's socket inside the sandbox.
pub(crate) const PROXY_SOCKET: &str = "/run/haft-proxy";
/// An empty file, mounted over files to cover them.
const EMPTY_FILE: &str = "/dev/.empty";
/// An empty folder, mounted over folders that must be hidden.
const EMPTY_FOLDER: &str = "/dev/.empty-folder";

/// Builds the file system of this process, which must have its own mount and pid namespaces.
pub(crate) fn build_file_system(
    policy: &SandboxPolicy,
    host: &HostState,
) -> Result<(), ConfinementFailure> {
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .at_step(ConfinementStep::Root)?;
    mount_own_proc().at_step(ConfinementStep::Proc)?;
    let mut pieces = open_policy_folders(policy).at_step(ConfinementStep::Folders)?;
    pieces.extend(open_anchors(host));
    pieces.extend(create_synthetic_pieces(policy, host).at_step(ConfinementStep::Devices)?);
    let root = Mount::open(Path::new("/")).at_step(ConfinementStep::Root)?;
    root.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)
        .at_step(ConfinementStep::Root)?;
    attach_pieces(pieces).at_step(ConfinementStep::Places)?;
    seal_protected(policy, host).at_step(ConfinementStep::Protected)?;
    for project in policy.projects.iter().chain(&policy.writable) {
        let further = policy
            .protected
            .iter()
            .filter(|path| path.starts_with(project) && path.as_path() != project);
        for path in further {
            seal_extra_file(project, path).at_step(ConfinementStep::Protected)?;
        }
    }
    cover_sockets(policy, &host.sockets).at_step(ConfinementStep::Places)
}

/// A mount that is attached or can be attached to a path.
struct Mount(OwnedFd);

impl Mount {
    /// Copies the mount at `path` together with everything mounted below it. Does not follow a
    /// link.
    fn copy_from_path(path: &Path) -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        Ok(Self(open_tree(CWD, path, flags)?))
    }

    /// Creates a read-only view of a folder. A named pipe in the view is not connected to the pipe
    /// outside, because an overlay gives it a separate inode. `empty` is an empty folder, which
    /// serves as the second layer: an overlay without a writable layer needs two others.
    fn create_overlay_view(folder: &Path, empty: &Path) -> io::Result<Self> {
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

    /// Opens the existing mount at `path`.
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open_tree(
            CWD,
            path,
            OpenTreeFlags::OPEN_TREE_CLOEXEC,
        )?))
    }

    /// Attaches the mount on top of `at`, even if `at` is a link.
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

/// A mount, its access, and the path to which it is attached.
struct MountPiece {
    at: PathBuf,
    mount: Mount,
    access: MountAccess,
}

/// The access that a mount allows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    /// Reading and writing, but no devices and no set-user-ID programs.
    Writable,
    /// Reading only. The restriction is applied after all mounts are attached.
    ReadOnly,
    /// Like `ReadOnly`, but devices work.
    Devices,
}

/// Mounts a `/proc` that shows only the processes of the new namespace. It becomes read-only later,
/// so that root gets no special access through it.
fn mount_own_proc() -> io::Result<()> {
    Ok(mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )?)
}

/// Opens the project, writable and readable folders of the policy as mounts.
fn open_policy_folders(policy: &SandboxPolicy) -> io::Result<Vec<MountPiece>> {
    let mut pieces = Vec::new();
    for folder in policy.projects.iter().chain(&policy.writable) {
        pieces.push(MountPiece {
            at: folder.clone(),
            mount: Mount::copy_from_path(folder)?,
            access: MountAccess::Writable,
        });
    }
    // A path that is already writable would become read-only.
    for path in policy
        .readable
        .iter()
        .filter(|path| !policy.is_writable(path) && !is_in_private_folder(policy, path))
    {
        if let Ok(real) = path.canonicalize() {
            let mount = Mount::copy_from_path(&real)?;
            mount.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
            pieces.push(MountPiece {
                at: path.clone(),
                mount,
                access: MountAccess::ReadOnly,
            });
        }
    }
    let resolver = fs::canonicalize("/etc/resolv.conf").ok();
    let kept = KEPT_RUN_ENTRIES
        .iter()
        .map(PathBuf::from)
        .chain(resolver.filter(|path| path.starts_with("/run")));
    for path in kept.filter(|path| path.exists()) {
        let from = fs::canonicalize(&path)?;
        pieces.push(MountPiece {
            at: path,
            mount: Mount::copy_from_path(&from)?,
            access: MountAccess::ReadOnly,
        });
    }
    if let Network::Through(socket) = &policy.network {
        let mount = Mount::copy_from_path(socket)?;
        pieces.push(MountPiece {
            at: PROXY_SOCKET.into(),
            mount,
            access: MountAccess::ReadOnly,
        });
    }
    for at in policy.private_folders() {
        let mount = Mount::copy_from_path(&policy.tmp)?;
        pieces.push(MountPiece {
            at: at.into(),
            mount,
            access: MountAccess::Writable,
        });
    }
    Ok(pieces)
}

/// Opens the folders that lead to protected and hidden places in writable folders. As mounts, they
/// cannot be moved, removed, or exchanged.
fn open_anchors(host: &HostState) -> impl Iterator<Item = MountPiece> {
    // A folder that has vanished leads nowhere.
    host.anchors.iter().filter_map(|path| {
        Some(MountPiece {
            at: path.clone(),
            mount: Mount::copy_from_path(path).ok()?,
            access: MountAccess::Writable,
        })
    })
}

/// True if the path is below a folder, such as `/tmp`, that the command sees only as its private
/// version.
fn is_in_private_folder(policy: &SandboxPolicy, path: &Path) -> bool {
    policy
        .private_folders()
        .any(|folder| path.starts_with(folder))
}

/// Opens the readable folders and files below private folders.
///
/// A command may write below `/tmp`, so Landlock does not keep it from named pipes there. Folders
/// are therefore shown as overlays, or as copies of the mount if the kernel has no overlays.
fn open_readable_in_private_folders(
    policy: &SandboxPolicy,
    empty: &Path,
) -> io::Result<Vec<MountPiece>> {
    let mut pieces = Vec::new();
    for path in policy
        .readable
        .iter()
        .filter(|path| !policy.is_writable(path) && is_in_private_folder(policy, path))
    {
        let Ok(real) = path.canonicalize() else {
            continue;
        };
        let mount = if real.is_dir() {
            Mount::create_overlay_view(&real, empty).or_else(|_| Mount::copy_from_path(&real))?
        } else if real.is_file() {
            Mount::copy_from_path(&real)?
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

/// Creates the mounts that have no source outside the sandbox: devices, `/run`, and covers of
/// secrets. All of them are in one file system in memory, which is mounted on `/dev` while it is
/// filled.
fn create_synthetic_pieces(
    policy: &SandboxPolicy,
    host: &HostState,
) -> io::Result<Vec<MountPiece>> {
    let devices = DEVICES
        .iter()
        .map(|name| Ok((*name, Mount::copy_from_path(&Path::new("/dev").join(name))?)));
    let devices: Vec<_> = devices.collect::<io::Result<_>>()?;
    let terminal = match host.console {
        Console::None | Console::Socket => None,
        Console::Terminal => fs::canonicalize("/proc/self/fd/1")
            .and_then(|path| Mount::copy_from_path(&path))
            .ok(),
    };

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
            mount: Mount::copy_from_path(&dev)?,
            access: MountAccess::Devices,
        },
        MountPiece {
            at: stage.join("shm"),
            mount: Mount::copy_from_path(&shm)?,
            access: MountAccess::Writable,
        },
    ];
    pieces.extend(open_readable_in_private_folders(policy, &empty)?);
    if is_real_folder(Path::new("/run")) {
        pieces.push(MountPiece {
            at: "/run".into(),
            mount: Mount::copy_from_path(&run)?,
            access: MountAccess::ReadOnly,
        });
    }
    for (number, (at, is_folder)) in host.hidden.iter().enumerate() {
        let cover = stage.join(number.to_string());
        if *is_folder {
            DirBuilder::new().mode(0o755).create(&cover)?;
        } else {
            File::create(&cover)?;
        }
        pieces.push(MountPiece {
            at: at.clone(),
            mount: Mount::copy_from_path(&cover)?,
            access: MountAccess::ReadOnly,
        });
    }
    unmount(stage, UnmountFlags::DETACH)?;
    Ok(pieces)
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
        // Programs use this to find the name of their terminal.
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
    let in_dev = |path: &str| dev.join(Path::new(path).file_name().unwrap_or_default());
    DirBuilder::new().mode(0o555).create(in_dev(EMPTY_FOLDER))?;
    let empty = in_dev(EMPTY_FILE);
    File::create(&empty)?;
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o444))
}

/// Attaches the mounts from the outside in, then makes the read-only ones read-only.
fn attach_pieces(mut pieces: Vec<MountPiece>) -> io::Result<()> {
    // At equal depth a cover comes last, so hidden paths stay hidden.
    pieces.sort_by_key(|piece| piece.at.components().count());
    for piece in &pieces {
        if piece.access == MountAccess::Writable {
            piece.mount.restrict(NO_SUID | NO_DEVICES, Depth::All)?;
        }
        create_mount_point(piece)?;
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

/// Creates the mount point of a mount if it is missing, which happens below a synthetic folder.
fn create_mount_point(piece: &MountPiece) -> io::Result<()> {
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

/// Makes the protected files of the projects read-only. A folder that could contain a protected
/// file becomes a mount, so it cannot be renamed.
fn seal_protected(policy: &SandboxPolicy, host: &HostState) -> io::Result<()> {
    for found in &host.protected {
        let sealed = match found {
            ProtectedEntry::Protected(path) if policy.repositories.contains(path) => {
                seal_repository(path)
            }
            ProtectedEntry::Protected(path) => seal_path(path),
            ProtectedEntry::Anchor(path) if host.anchors.contains(path) => Ok(()),
            ProtectedEntry::Anchor(path) => {
                Mount::copy_from_path(path).and_then(|copy| copy.attach(path))
            }
        };
        match sealed {
            // The path lies in a hidden folder and is no longer visible.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// Seals the entries that decide which programs git runs in a repository that a commit may write
/// to.
fn seal_repository(path: &Path) -> io::Result<()> {
    if !is_real_folder(path) {
        return seal_path(path);
    }
    Mount::copy_from_path(path)?.attach(path)?;
    for name in SEALED_REPOSITORY_ENTRIES
        .iter()
        .map(|name| path.join(name))
        .filter(|name| name.symlink_metadata().is_ok())
    {
        seal_path(&name)?;
    }
    Ok(())
}

/// Makes an additional protected file of a project read-only, if it exists and all folders between
/// it and the project are real folders, not links.
fn seal_extra_file(project: &Path, path: &Path) -> io::Result<()> {
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
        Mount::copy_from_path(folder)?.attach(folder)?;
    }
    seal_path(path)
}

/// Makes a file or folder read-only. Of a link, the target is sealed: the link itself is watched,
/// because a mount in its place would look like a file.
pub(super) fn seal_path(path: &Path) -> io::Result<()> {
    let place = if path.is_symlink() {
        fs::canonicalize(path)?
    } else {
        path.to_owned()
    };
    let copy = Mount::copy_from_path(&place)?;
    copy.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
    copy.attach(&place)
}

/// Mounts an empty file or folder on a place that must be hidden.
pub(super) fn cover_hidden(path: &Path) -> io::Result<()> {
    let place = fs::canonicalize(path)?;
    let empty = if place.is_dir() {
        EMPTY_FOLDER
    } else {
        EMPTY_FILE
    };
    let cover = Mount::copy_from_path(Path::new(empty))?;
    cover.restrict(READ_ONLY | NO_SUID | NO_DEVICES, Depth::All)?;
    cover.attach(&place)
}

/// Covers the sockets of other programs that are still reachable. Sockets in a project are left
/// alone, because they belong to it, unless the project contains a folder such as `/tmp`, where all
/// programs keep their sockets.
fn cover_sockets(policy: &SandboxPolicy, sockets: &[PathBuf]) -> io::Result<()> {
    let own_folders: Vec<_> = policy
        .projects
        .iter()
        .chain(&policy.writable)
        .filter(|folder| {
            !PRIVATE_FOLDERS
                .iter()
                .any(|private| Path::new(private).starts_with(folder))
        })
        .collect();
    for socket in sockets {
        if own_folders.iter().any(|folder| socket.starts_with(folder)) {
            continue;
        }
        let is_there = socket
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_there && socket.as_path() != Path::new(PROXY_SOCKET) {
            Mount::copy_from_path(Path::new(EMPTY_FILE))?.attach(socket)?;
        }
    }
    Ok(())
}
