//! Attempts to change files outside of the project.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timestamps, Uid, XattrFlags};

use crate::sys::make_syscall;
use crate::{
    Attempt, AttemptResult, ProbeTargets, attempt_for_anyone, attempt_for_root, not_applicable,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("create a file", |g| create_file_in(&g.outside)),
    attempt_for_anyone("create a file by a relative path", |g| {
        create_file_in(&relative_outside_path(g))
    }),
    attempt_for_anyone("append to a file", |g| open_to_write(&g.outside_file())),
    attempt_for_anyone("open a file for reading and writing", |g| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(g.outside_file())?;
        Ok(())
    }),
    attempt_for_anyone("cut a file to its own length", |g| {
        let length = fs::metadata(g.outside_file())?.len();
        Ok(OpenOptions::new()
            .write(true)
            .open(g.outside_file())?
            .set_len(length)?)
    }),
    attempt_for_anyone("delete a file", |g| {
        let text = fs::read(g.outside_file())?;
        fs::remove_file(g.outside_file())?;
        Ok(fs::write(g.outside_file(), text)?)
    }),
    attempt_for_anyone("rename a file", |g| {
        rename_and_back(&g.outside_file(), &g.outside.join("renamed"))
    }),
    attempt_for_anyone("rename a folder", |g| {
        rename_and_back(&g.outside.join("folder"), &g.outside.join("renamed"))
    }),
    attempt_for_anyone("rename the folder above", |g| {
        rename_and_back(&g.outside, &g.outside.with_extension("moved"))
    }),
    attempt_for_anyone("rename the project itself", |g| {
        rename_and_back(&g.project, &g.project.with_extension("moved"))
    }),
    attempt_for_anyone("create a folder", |g| {
        fs::create_dir(g.outside.join("new"))?;
        Ok(fs::remove_dir(g.outside.join("new"))?)
    }),
    attempt_for_anyone("remove a folder", |g| {
        fs::remove_dir(g.outside.join("folder"))?;
        Ok(fs::create_dir(g.outside.join("folder"))?)
    }),
    attempt_for_anyone("move a file into the project", |g| {
        rename_and_back(&g.outside_file(), &g.in_project("stolen"))
    }),
    attempt_for_anyone("move a file out of the project", |g| {
        rename_and_back(&g.in_project("own"), &g.outside.join("dropped"))
    }),
    attempt_for_anyone("change a file's permissions", |g| {
        let before = fs::metadata(g.outside_file())?.permissions();
        fs::set_permissions(g.outside_file(), Permissions::from_mode(0o640))?;
        Ok(fs::set_permissions(g.outside_file(), before)?)
    }),
    attempt_for_anyone("change permissions through a file open for reading", |g| {
        let file = File::open(g.outside_file())?;
        let before = file.metadata()?.permissions();
        file.set_permissions(Permissions::from_mode(0o640))?;
        Ok(file.set_permissions(before)?)
    }),
    attempt_for_anyone("change a file's owner to its owner", |g| {
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
    attempt_for_anyone("change a file's times", |g| {
        Ok(rustix::fs::utimensat(
            rustix::fs::CWD,
            g.outside_file(),
            &current_times(),
            AtFlags::empty(),
        )?)
    }),
    attempt_for_anyone("change times through a file open for reading", |g| {
        Ok(rustix::fs::futimens(
            File::open(g.outside_file())?,
            &current_times(),
        )?)
    }),
    attempt_for_anyone("set an extended attribute", |g| {
        check_attribute_result(rustix::fs::setxattr(
            g.outside_file(),
            "user.haft",
            b"x",
            XattrFlags::empty(),
        ))?;
        Ok(rustix::fs::removexattr(g.outside_file(), "user.haft")?)
    }),
    attempt_for_anyone(
        "set an extended attribute through a file open for reading",
        |g| {
            let file = File::open(g.outside_file())?;
            check_attribute_result(rustix::fs::fsetxattr(
                &file,
                "user.haft",
                b"x",
                XattrFlags::empty(),
            ))?;
            Ok(rustix::fs::fremovexattr(&file, "user.haft")?)
        },
    ),
    attempt_for_anyone("set a flag through a file open for reading", |g| {
        let file = File::open(g.outside_file())?;
        let Ok(flags) = rustix::fs::ioctl_getflags(&file) else {
            return not_applicable("this file system has no flags");
        };
        Ok(rustix::fs::ioctl_setflags(&file, flags)?)
    }),
    attempt_for_anyone("create a nameless file and name it", |g| {
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
    attempt_for_anyone("create a named pipe", |g| {
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
    attempt_for_anyone("write to a named pipe that is there", |g| {
        let pipe = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(g.outside.join("pipe-there"));
        Ok(pipe?.write_all(b"x")?)
    }),
    attempt_for_anyone(
        "open a file for writing that was opened by path only",
        |g| {
            let place = OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_PATH)
                .open(g.outside_file())?;
            open_to_write(Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())))
        },
    ),
    attempt_for_anyone("open a file for writing that was opened for reading", |g| {
        let file = File::open(g.outside_file())?;
        open_to_write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
    }),
    attempt_for_anyone("create a file from a working folder outside", |g| {
        std::env::set_current_dir(&g.outside)?;
        create_file_in(Path::new("."))
    }),
    attempt_for_anyone("lengthen a file with the call of its own", |g| {
        let length = fs::metadata(g.outside_file())?.len();
        let name = std::ffi::CString::new(g.outside_file().as_os_str().as_encoded_bytes())
            .unwrap_or_default();
        make_syscall(
            libc::SYS_truncate,
            [name.as_c_str().into(), length.cast_signed().into()],
        )?;
        Ok(())
    }),
    attempt_for_root("create a file in /", |_| create_file_in(Path::new("/"))),
    attempt_for_root("create a file in /etc", |_| {
        create_file_in(Path::new("/etc"))
    }),
    attempt_for_root("create a file in /usr/bin", |_| {
        create_file_in(Path::new("/usr/bin"))
    }),
    attempt_for_root("create a file in /var", |_| {
        create_file_in(Path::new("/var"))
    }),
    attempt_for_root("create a file in /root", |_| {
        create_file_in(Path::new("/root"))
    }),
    attempt_for_root("create a file beside the program", |_| {
        let program = fs::read_link("/proc/self/exe")?;
        create_file_in(program.parent().unwrap_or(Path::new("/")))
    }),
    attempt_for_root("open the list of users for writing", |_| {
        open_to_write(Path::new("/etc/passwd"))
    }),
];

/// Returns the path of the folder outside the project, relative to the project.
fn relative_outside_path(targets: &ProbeTargets) -> std::path::PathBuf {
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

/// Attempts to create a file in `folder`, and removes the file.
pub(crate) fn create_file_in(folder: &Path) -> AttemptResult {
    let path = folder.join(format!("haft-probe-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)?;
    Ok(fs::remove_file(path)?)
}

/// Attempts to open a file for appending, without writing anything.
pub(crate) fn open_to_write(path: &Path) -> AttemptResult {
    Ok(OpenOptions::new().append(true).open(path)?.write_all(b"")?)
}

/// Attempts to rename `from` to `to`, and reverses the renaming.
pub(crate) fn rename_and_back(from: &Path, to: &Path) -> AttemptResult {
    fs::rename(from, to)?;
    Ok(fs::rename(to, from)?)
}

fn check_attribute_result(set: rustix::io::Result<()>) -> AttemptResult {
    match set {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            not_applicable("this file system has no extended attributes")
        }
        set => Ok(set?),
    }
}

fn current_times() -> Timestamps {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
}
