//! Attempts to read hidden secrets.

use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::links::through;
use crate::{Attempt, ProbeTargets, Tried, anyone, depends, holds, root};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("read a secret", |g| reveals(g, &g.secret)),
    anyone("read a secret through a symbolic link", |g| {
        through(g, &g.secret, |link| reveals(g, link))
    }),
    anyone("read a secret through a link to its folder", |g| {
        let name = g.secret.file_name().unwrap_or_default().to_owned();
        through(g, g.secret_folder(), |link| reveals(g, &link.join(name)))
    }),
    anyone("read a secret by a relative path", |g| {
        let up: PathBuf = g.project.components().skip(1).map(|_| "..").collect();
        reveals(g, &up.join(g.secret.strip_prefix("/").unwrap_or(&g.secret)))
    }),
    anyone("read a secret below /proc/self/root", |g| {
        reveals(g, &below("/proc/self/root", &g.secret))
    }),
    anyone("read a secret below /proc/self/cwd", |g| {
        std::env::set_current_dir(g.secret_folder())?;
        reveals(
            g,
            &Path::new("/proc/self/cwd").join(g.secret.file_name().unwrap_or_default()),
        )
    }),
    anyone("read a secret below its parent's root", |g| {
        reveals(
            g,
            &below(
                &format!("/proc/{}/root", std::os::unix::process::parent_id()),
                &g.secret,
            ),
        )
    }),
    depends("read a secret below the first process's root", |g| {
        reveals(g, &below("/proc/1/root", &g.secret))
    }),
    anyone("read a secret through a hard link", |g| {
        let link = g.in_project("secret-link");
        fs::hard_link(&g.secret, &link)?;
        let tried = reveals(g, &link);
        fs::remove_file(link)?;
        tried
    }),
    anyone("move a secret into the project", |g| {
        super::files::back_and_forth(&g.secret, &g.in_project("secret"))
    }),
    anyone("uncover a secret by renaming its folder", |g| {
        let moved = g.secret_folder().with_extension("moved");
        fs::rename(g.secret_folder(), &moved)?;
        let tried = reveals(g, &moved.join(g.secret.file_name().unwrap_or_default()));
        fs::rename(&moved, g.secret_folder())?;
        tried
    }),
    anyone("read a secret that was opened by path only", |g| {
        use std::os::unix::fs::OpenOptionsExt;
        let place = fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(&g.secret)?;
        reveals(
            g,
            Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())),
        )
    }),
    anyone("let another program read a secret", |g| {
        let output = Command::new("/bin/cat").arg(&g.secret).output()?;
        holds(
            String::from_utf8_lossy(&output.stdout).contains(&g.secret_text),
            "it shows something else",
        )
    }),
    anyone("list a secret folder", |g| {
        holds(fs::read_dir(g.secret_folder())?.count() > 0, "it is empty")
    }),
    anyone("add to a secret folder", |g| {
        super::files::create_in(g.secret_folder())
    }),
    anyone("overwrite a secret", |g| {
        super::files::open_to_write(&g.secret)?;
        reveals(g, &g.secret)
    }),
    anyone(
        "find a secret in the environment of a process outside",
        |g| reveals(g, Path::new(&format!("/proc/{}/environ", g.process))),
    ),
    root("read the passwords of the machine", |_| {
        let mut text = String::new();
        fs::File::open("/etc/shadow")?.read_to_string(&mut text)?;
        holds(!text.is_empty(), "it is empty")
    }),
];

fn below(root: &str, path: &Path) -> PathBuf {
    Path::new(root).join(path.strip_prefix("/").unwrap_or(path))
}

/// Succeeds if the file contains the secret text.
fn reveals(targets: &ProbeTargets, path: &Path) -> Tried {
    let text = fs::read(path)?;
    holds(
        String::from_utf8_lossy(&text).contains(&targets.secret_text),
        "it holds something else",
    )
}
