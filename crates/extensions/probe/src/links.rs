//! Attempts to reach files outside through links in the project.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with};

use crate::files::{create_file_in, open_to_write};
use crate::{Attempt, AttemptResult, ProbeTargets, attempt_for_anyone, attempt_for_root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("write through a symbolic link", |g| {
        attempt_through_link(g, &g.outside_file(), open_to_write)
    }),
    attempt_for_anyone("create through a symbolic link to a folder", |g| {
        attempt_through_link(g, &g.outside, create_file_in)
    }),
    attempt_for_anyone("create through a link to a link", |g| {
        attempt_through_link(g, &g.outside, |link| {
            let second = link.with_extension("second");
            symlink(link, &second)?;
            let tried = create_file_in(&second);
            fs::remove_file(second)?;
            tried
        })
    }),
    attempt_for_anyone("write through a relative symbolic link", |g| {
        let up: std::path::PathBuf = g.project.components().skip(1).map(|_| "..").collect();
        let target = up.join(g.outside_file().strip_prefix("/").unwrap_or(&g.outside));
        attempt_through_link(g, &target, open_to_write)
    }),
    attempt_for_anyone("write through a link to /proc/self/root", |g| {
        let target = Path::new("/proc/self/root")
            .join(g.outside_file().strip_prefix("/").unwrap_or(&g.outside));
        attempt_through_link(g, &target, open_to_write)
    }),
    attempt_for_anyone("write through a hard link", |g| {
        let link = g.in_project("hard-link");
        fs::hard_link(g.outside_file(), &link)?;
        let tried = open_to_write(&link);
        fs::remove_file(link)?;
        tried
    }),
    attempt_for_anyone("hard link a file that is open for reading", |g| {
        let file = fs::File::open(g.outside_file())?;
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        let link = g.in_project("hard-link-2");
        linkat(CWD, from, CWD, &link, AtFlags::SYMLINK_FOLLOW)?;
        let tried = open_to_write(&link);
        fs::remove_file(link)?;
        tried
    }),
    attempt_for_anyone("hard link a file of the project to the outside", |g| {
        let link = g.outside.join("hard-link");
        fs::hard_link(g.in_project("own"), &link)?;
        Ok(fs::remove_file(link)?)
    }),
    attempt_for_anyone("make a symbolic link outside", |g| {
        let link = g.outside.join("link");
        symlink("/", &link)?;
        Ok(fs::remove_file(link)?)
    }),
    attempt_for_anyone("swap a file of the project with one outside", |g| {
        let own = g.in_project("own");
        let other = g.outside_file();
        renameat_with(CWD, &own, CWD, &other, RenameFlags::EXCHANGE)?;
        Ok(renameat_with(
            CWD,
            &own,
            CWD,
            &other,
            RenameFlags::EXCHANGE,
        )?)
    }),
    attempt_for_anyone(
        "replace a folder of the project by a link and write through it",
        |g| {
            let folder = g.in_project("replaced");
            fs::create_dir(&folder)?;
            std::env::set_current_dir(&folder)?;
            fs::remove_dir(&folder)?;
            symlink(&g.outside, &folder)?;
            let tried = create_file_in(&folder);
            fs::remove_file(folder)?;
            tried
        },
    ),
    attempt_for_root("hard link the list of users", |g| {
        // Hard links are possible only within one file system, and the project may be in another
        // one than the root folder.
        let link = g.in_project("users");
        match fs::hard_link("/etc/passwd", &link) {
            Err(error)
                if error.kind() == std::io::ErrorKind::CrossesDevices
                    && !is_on_root_file_system(g) =>
            {
                super::not_applicable("the project lies in another file system")
            }
            linked => {
                linked?;
                Ok(fs::remove_file(link)?)
            }
        }
    }),
];

fn is_on_root_file_system(targets: &ProbeTargets) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).map(|of| of.dev()).ok();
    device(&targets.project) == device(Path::new("/etc"))
}

/// Runs `attempt` on a symbolic link in the project that points to `target`.
pub(crate) fn attempt_through_link(
    targets: &ProbeTargets,
    target: &Path,
    attempt: impl FnOnce(&Path) -> AttemptResult,
) -> AttemptResult {
    let link = targets.in_project("symbolic-link");
    symlink(target, &link)?;
    let tried = attempt(&link);
    fs::remove_file(link)?;
    tried
}
