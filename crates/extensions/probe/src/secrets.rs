//! Attempts to read hidden secrets.

use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::links::attempt_through_link;
use crate::{
    Attempt, AttemptResult, ProbeTargets, attempt_for_anyone, attempt_for_root,
    attempt_for_some_machines, ensure,
};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("read a secret", |g| check_reveals_secret(g, &g.secret)),
    attempt_for_anyone("read a secret through a symbolic link", |g| {
        attempt_through_link(g, &g.secret, |link| check_reveals_secret(g, link))
    }),
    attempt_for_anyone("read a secret through a link to its folder", |g| {
        let name = g.secret.file_name().unwrap_or_default().to_owned();
        attempt_through_link(g, g.secret_folder(), |link| {
            check_reveals_secret(g, &link.join(name))
        })
    }),
    attempt_for_anyone("read a secret by a relative path", |g| {
        let up: PathBuf = g.project.components().skip(1).map(|_| "..").collect();
        check_reveals_secret(g, &up.join(g.secret.strip_prefix("/").unwrap_or(&g.secret)))
    }),
    attempt_for_anyone("read a secret below /proc/self/root", |g| {
        check_reveals_secret(g, &path_below("/proc/self/root", &g.secret))
    }),
    attempt_for_anyone("read a secret below /proc/self/cwd", |g| {
        std::env::set_current_dir(g.secret_folder())?;
        check_reveals_secret(
            g,
            &Path::new("/proc/self/cwd").join(g.secret.file_name().unwrap_or_default()),
        )
    }),
    attempt_for_anyone("read a secret below its parent's root", |g| {
        check_reveals_secret(
            g,
            &path_below(
                &format!("/proc/{}/root", std::os::unix::process::parent_id()),
                &g.secret,
            ),
        )
    }),
    attempt_for_some_machines("read a secret below the first process's root", |g| {
        check_reveals_secret(g, &path_below("/proc/1/root", &g.secret))
    }),
    attempt_for_anyone("read a secret through a hard link", |g| {
        let link = g.in_project("secret-link");
        fs::hard_link(&g.secret, &link)?;
        let tried = check_reveals_secret(g, &link);
        fs::remove_file(link)?;
        tried
    }),
    attempt_for_anyone("move a secret into the project", |g| {
        super::files::rename_and_back(&g.secret, &g.in_project("secret"))
    }),
    attempt_for_anyone("uncover a secret by renaming its folder", |g| {
        let moved = g.secret_folder().with_extension("moved");
        fs::rename(g.secret_folder(), &moved)?;
        let tried = check_reveals_secret(g, &moved.join(g.secret.file_name().unwrap_or_default()));
        fs::rename(&moved, g.secret_folder())?;
        tried
    }),
    attempt_for_anyone("read a secret that was opened by path only", |g| {
        use std::os::unix::fs::OpenOptionsExt;
        let place = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(&g.secret)?;
        check_reveals_secret(
            g,
            Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())),
        )
    }),
    attempt_for_anyone("let another program read a secret", |g| {
        let output = Command::new("/bin/cat").arg(&g.secret).output()?;
        ensure(
            String::from_utf8_lossy(&output.stdout).contains(&g.secret_text),
            "it shows something else",
        )
    }),
    attempt_for_anyone("list a secret folder", |g| {
        ensure(fs::read_dir(g.secret_folder())?.count() > 0, "it is empty")
    }),
    attempt_for_anyone("add to a secret folder", |g| {
        super::files::create_file_in(g.secret_folder())
    }),
    attempt_for_anyone("overwrite a secret", |g| {
        super::files::open_to_write(&g.secret)?;
        check_reveals_secret(g, &g.secret)
    }),
    attempt_for_anyone(
        "find a secret in the environment of a process outside",
        |g| check_reveals_secret(g, Path::new(&format!("/proc/{}/environ", g.process))),
    ),
    attempt_for_root("read the passwords of the machine", |_| {
        let mut text = String::new();
        fs::File::open("/etc/shadow")?.read_to_string(&mut text)?;
        ensure(!text.is_empty(), "it is empty")
    }),
];

fn path_below(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

/// Succeeds if the file at `path` can be read and contains the secret text.
fn check_reveals_secret(targets: &ProbeTargets, path: &Path) -> AttemptResult {
    let text = fs::read(path)?;
    ensure(
        String::from_utf8_lossy(&text).contains(&targets.secret_text),
        "it holds something else",
    )
}
