//! Attempts to change files outside of the project.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timestamps, Uid, XattrFlags};

use crate::sys::call;
use crate::{Attempt, ProbeTargets, Tried, anyone, not_applicable, root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("create a file", |g| create_in(&g.outside)),
    anyone("create a file by a relative path", |g| {
        create_in(&relative(g))
    }),
    anyone("append to a file", |g| open_to_write(&g.outside_file())),
    anyone("open a file for reading and writing", |g| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(g.outside_file())?;
        Ok(())
    }),
    anyone("cut a file to its own length", |g| {
        let length = fs::metadata(g.outside_file())?.len();
        Ok(OpenOptions::new()
            .write(true)
            .open(g.outside_file())?
            .set_len(length)?)
    }),
    anyone("delete a file", |g| {
        let text = fs::read(g.outside_file())?;
        fs::remove_file(g.outside_file())?;
        Ok(fs::write(g.outside_file(), text)?)
    }),
    anyone("rename a file", |g| {
        back_and_forth(&g.outside_file(), &g.outside.join("renamed"))
    }),
    anyone("rename a folder", |g| {
        back_and_forth(&g.outside.join("folder"), &g.outside.join("renamed"))
    }),
    anyone("rename the folder above", |g| {
        back_and_forth(&g.outside, &g.outside.with_extension("moved"))
    }),
    anyone("rename the project itself", |g| {
        back_and_forth(&g.project, &g.project.with_extension("moved"))
    }),
    anyone("create a folder", |g| {
        fs::create_dir(g.outside.join("new"))?;
        Ok(fs::remove_dir(g.outside.join("new"))?)
    }),
    anyone("remove a folder", |g| {
        fs::remove_dir(g.outside.join("folder"))?;
        Ok(fs::create_dir(g.outside.join("folder"))?)
    }),
    anyone("move a file into the project", |g| {
        back_and_forth(&g.outside_file(), &g.in_project("stolen"))
    }),
    anyone("move a file out of the project", |g| {
        back_and_forth(&g.in_project("own"), &g.outside.join("dropped"))
    }),
    anyone("change a file's permissions", |g| {
        let before = fs::metadata(g.outside_file())?.permissions();
        fs::set_permissions(g.outside_file(), Permissions::from_mode(0o640))?;
        Ok(fs::set_permissions(g.outside_file(), before)?)
    }),
    anyone("change permissions through a file open for reading", |g| {
        let file = File::open(g.outside_file())?;
        let before = file.metadata()?.permissions();
        file.set_permissions(Permissions::from_mode(0o640))?;
        Ok(file.set_permissions(before)?)
    }),
    anyone("change a file's owner to its owner", |g| {
        use std::os::unix::fs::MetadataExt;
        let (uid, gid) = fs::metadata(g.outside_file()).map(|of| (of.uid(), of.gid()))?;
        let uid = Some(Uid::from_raw(uid));
        let gid = Some(Gid::from_raw(gid));
        Ok(rustix::fs::chownat(
            rustix::fs::CWD,
            g.outside_file(),
            uid,
            gid,
            AtFlags::empty(),
        )?)
    }),
    anyone("change a file's times", |g| {
        Ok(rustix::fs::utimensat(
            rustix::fs::CWD,
            g.outside_file(),
            &now(),
            AtFlags::empty(),
        )?)
    }),
    anyone("change times through a file open for reading", |g| {
        Ok(rustix::fs::futimens(File::open(g.outside_file())?, &now())?)
    }),
    anyone("set an extended attribute", |g| {
        attribute(rustix::fs::setxattr(
            g.outside_file(),
            "user.haft",
            b"x",
            XattrFlags::empty(),
        ))?;
        Ok(rustix::fs::removexattr(g.outside_file(), "user.haft")?)
    }),
    anyone(
        "set an extended attribute through a file open for reading",
        |g| {
            let file = File::open(g.outside_file())?;
            attribute(rustix::fs::fsetxattr(
                &file,
                "user.haft",
                b"x",
                XattrFlags::empty(),
            ))?;
            Ok(rustix::fs::fremovexattr(&file, "user.haft")?)
        },
    ),
    anyone("set a flag through a file open for reading", |g| {
        let file = File::open(g.outside_file())?;
        let Ok(flags) = rustix::fs::ioctl_getflags(&file) else {
            return not_applicable("this file system has no flags");
        };
        Ok(rustix::fs::ioctl_setflags(&file, flags)?)
    }),
    anyone("create a nameless file and name it", |g| {
        let flags = OFlags::TMPFILE | OFlags::WRONLY;
        let file = match rustix::fs::openat(rustix::fs::CWD, &g.outside, flags, Mode::RUSR) {
            Err(rustix::io::Errno::OPNOTSUPP) => {
                return not_applicable("this file system has no nameless files");
            }
            opened => opened?,
        };
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let to = g.outside.join("named");
        let cwd = rustix::fs::CWD;
        rustix::fs::linkat(cwd, name, cwd, &to, AtFlags::SYMLINK_FOLLOW)?;
        Ok(fs::remove_file(to)?)
    }),
    anyone("create a named pipe", |g| {
        let pipe = g.outside.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR,
            0,
        )?;
        Ok(fs::remove_file(pipe)?)
    }),
    anyone("write to a named pipe that is there", |g| {
        let pipe = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(g.outside.join("pipe-there"));
        Ok(pipe?.write_all(b"x")?)
    }),
    anyone(
        "open a file for writing that was opened by path only",
        |g| {
            let place = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(g.outside_file())?;
            open_to_write(Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())))
        },
    ),
    anyone("open a file for writing that was opened for reading", |g| {
        let file = File::open(g.outside_file())?;
        open_to_write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    }),
    anyone("create a file from a working folder outside", |g| {
        std::env::set_current_dir(&g.outside)?;
        create_in(Path::new("."))
    }),
    anyone("lengthen a file with the call of its own", |g| {
        let length = fs::metadata(g.outside_file())?.len();
        let name = std::ffi::CString::new(g.outside_file().as_os_str().as_encoded_bytes())
            .unwrap_or_default();
        call(
            libc::SYS_truncate,
            [name.as_c_str().into(), length.cast_signed().into()],
        )?;
        Ok(())
    }),
    root("create a file in /", |_| create_in(Path::new("/"))),
    root("create a file in /etc", |_| create_in(Path::new("/etc"))),
    root("create a file in /usr/bin", |_| {
        create_in(Path::new("/usr/bin"))
    }),
    root("create a file in /var", |_| create_in(Path::new("/var"))),
    root("create a file in /root", |_| create_in(Path::new("/root"))),
    root("create a file beside the program", |_| {
        let program = fs::read_link("/proc/self/exe")?;
        create_in(program.parent().unwrap_or(Path::new("/")))
    }),
    root("open the list of users for writing", |_| {
        open_to_write(Path::new("/etc/passwd"))
    }),
];

/// Returns the path of the outside folder relative to the project.
fn relative(targets: &ProbeTargets) -> std::path::PathBuf {
    let up = targets
        .project
        .components()
        .skip(1)
        .map(|_| "..")
        .collect::<std::path::PathBuf>();
    up.join(
        targets
            .outside
            .strip_prefix("/")
            .unwrap_or(&targets.outside),
    )
}

/// Creates a file in `folder` and removes it.
pub(crate) fn create_in(folder: &Path) -> Tried {
    let path = folder.join(format!("haft-probe-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    Ok(fs::remove_file(path)?)
}

/// Opens a file for appending and writes nothing.
pub(crate) fn open_to_write(path: &Path) -> Tried {
    Ok(OpenOptions::new().append(true).open(path)?.write_all(b"")?)
}

/// Renames `from` to `to` and back.
pub(crate) fn back_and_forth(from: &Path, to: &Path) -> Tried {
    fs::rename(from, to)?;
    Ok(fs::rename(to, from)?)
}

fn attribute(set: rustix::io::Result<()>) -> Tried {
    match set {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            not_applicable("this file system has no extended attributes")
        }
        set => Ok(set?),
    }
}

fn now() -> Timestamps {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
}
