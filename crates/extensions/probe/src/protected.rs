//! Attempts to change protected files inside the project.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use crate::files::{create_file_in, open_to_write, rename_and_back};
use crate::links::attempt_through_link;
use crate::{
    Attempt, AttemptResult, ProbeTargets, attempt_for_anyone, attempt_for_some_machines, ensure,
    not_applicable,
};

/// The path of the repository's configuration, which can name programs for git to run.
const GIT_CONFIG: &str = ".git/config";

pub(crate) const ATTEMPTS: &[Attempt] = &[
    attempt_for_anyone("change git's settings", |g| {
        open_to_write(&g.in_project(GIT_CONFIG))
    }),
    attempt_for_anyone("change git's settings by a relative path", |_| {
        open_to_write(Path::new("./folder/.././.git//config"))
    }),
    attempt_for_anyone("change git's settings through /proc/self/cwd", |_| {
        open_to_write(&Path::new("/proc/self/cwd").join(GIT_CONFIG))
    }),
    attempt_for_anyone("change git's settings through a symbolic link", |g| {
        attempt_through_link(g, &g.in_project(GIT_CONFIG), open_to_write)
    }),
    attempt_for_anyone(
        "change git's settings through a link to their folder",
        |g| {
            attempt_through_link(g, &g.in_project(".git"), |link| {
                open_to_write(&link.join("config"))
            })
        },
    ),
    attempt_for_anyone("change git's settings through a hard link", |g| {
        let link = g.in_project("config-link");
        fs::hard_link(g.in_project(GIT_CONFIG), &link)?;
        let tried = open_to_write(&link);
        fs::remove_file(link)?;
        tried
    }),
    attempt_for_anyone(
        "change git's settings through a file open for reading",
        |g| {
            let file = File::open(g.in_project(GIT_CONFIG))?;
            open_to_write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
        },
    ),
    attempt_for_anyone("change git's settings from the folder itself", |g| {
        std::env::set_current_dir(g.in_project(".git"))?;
        open_to_write(Path::new("config"))
    }),
    attempt_for_anyone("rename over git's settings", |g| {
        let new = g.in_project("new-config");
        let config = g.in_project(GIT_CONFIG);
        fs::copy(&config, &new)?;
        fs::rename(&new, &config).inspect_err(|_| drop(fs::remove_file(&new)))?;
        Ok(())
    }),
    attempt_for_anyone("swap git's settings with another file", |g| {
        let own = g.in_project("own");
        let config = g.in_project(GIT_CONFIG);
        renameat_with(CWD, &own, CWD, &config, RenameFlags::EXCHANGE)?;
        Ok(renameat_with(
            CWD,
            &own,
            CWD,
            &config,
            RenameFlags::EXCHANGE,
        )?)
    }),
    attempt_for_anyone("delete git's settings", |g| {
        let text = fs::read(g.in_project(GIT_CONFIG))?;
        fs::remove_file(g.in_project(GIT_CONFIG))?;
        Ok(fs::write(g.in_project(GIT_CONFIG), text)?)
    }),
    attempt_for_anyone("make git's settings a link", |g| {
        let config = g.in_project(GIT_CONFIG);
        let kept = g.in_project(".git/kept");
        fs::rename(&config, &kept)?;
        symlink("/dev/null", &config)?;
        Ok(fs::rename(&kept, &config)?)
    }),
    attempt_for_anyone("add a hook", |g| {
        create_file_in(&g.in_project(".git/hooks"))
    }),
    attempt_for_anyone("make a hook executable", |g| {
        let hook = g.in_project(".git/hooks/sample");
        let before = fs::metadata(&hook)?.permissions();
        fs::set_permissions(&hook, Permissions::from_mode(0o755))?;
        Ok(fs::set_permissions(&hook, before)?)
    }),
    attempt_for_anyone("move the folder of git away", |g| {
        rename_and_back(&g.in_project(".git"), &g.in_project("was-git"))
    }),
    attempt_for_anyone(
        "move the folder of git away and put another in its place",
        |g| {
            let git = g.in_project(".git");
            let away = g.in_project("was-git-2");
            fs::rename(&git, &away)?;
            fs::create_dir(&git)?;
            fs::remove_dir(&git)?;
            Ok(fs::rename(&away, &git)?)
        },
    ),
    attempt_for_anyone("move the folder of git out of the project", |g| {
        rename_and_back(&g.in_project(".git"), &g.outside.join("git"))
    }),
    attempt_for_anyone("write what git has open by path only", |g| {
        let place = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(g.in_project(".git"))?;
        create_file_in(Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())))
    }),
    attempt_for_anyone("change an editor's tasks", |g| {
        open_to_write(&g.in_project(".vscode/tasks.json"))
    }),
    attempt_for_anyone("add to an editor's folder", |g| {
        create_file_in(&g.in_project(".vscode"))
    }),
    attempt_for_anyone("change the pipeline", |g| {
        open_to_write(&g.in_project(".github/workflows/ci.yml"))
    }),
    attempt_for_anyone("move the folder above the pipeline away", |g| {
        rename_and_back(&g.in_project(".github"), &g.in_project("was-github"))
    }),
    attempt_for_anyone("create haft's folder", |g| {
        create_and_remove_folder(&g.in_project(".haft"))
    }),
    attempt_for_anyone("create haft's settings", |g| {
        let folder = g.in_project(".haft");
        let was_there = folder.exists();
        fs::create_dir_all(&folder)?;
        let tried = create_file_in(&folder);
        if !was_there {
            fs::remove_dir(folder)?;
        }
        tried
    }),
    attempt_for_anyone("create a list of servers", |g| {
        create_and_remove_file(&g.in_project(".mcp.json"))
    }),
    attempt_for_anyone("create a list of servers by renaming", |g| {
        create_by_renaming(g, ".mcp.json")
    }),
    attempt_for_anyone("create a list of servers as a link", |g| {
        symlink("own", g.in_project(".mcp.json"))?;
        Ok(fs::remove_file(g.in_project(".mcp.json"))?)
    }),
    attempt_for_anyone("create a list of servers as a hard link", |g| {
        fs::hard_link(g.in_project("own"), g.in_project(".mcp.json"))?;
        Ok(fs::remove_file(g.in_project(".mcp.json"))?)
    }),
    attempt_for_anyone("create a list of servers as a named pipe", |g| {
        let path = g.in_project(".mcp.json");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0)?;
        Ok(fs::remove_file(path)?)
    }),
    attempt_for_anyone("create a list of servers as a socket", |g| {
        // By a relative path, because the path of a socket must be short.
        std::env::set_current_dir(&g.project)?;
        drop(UnixListener::bind(".mcp.json")?);
        Ok(fs::remove_file(".mcp.json")?)
    }),
    attempt_for_anyone("create a list of servers from a subfolder", |g| {
        std::env::set_current_dir(g.in_project("folder"))?;
        create_and_remove_file(Path::new("../folder/.././.mcp.json"))
    }),
    attempt_for_anyone("create haft's folder in capital letters", |g| {
        create_and_remove_folder(&g.in_project(".HAFT"))
    }),
    attempt_for_anyone("fill a list of servers that does not exist", |g| {
        let path = g.in_project(".mcp.json");
        let was_there = path.symlink_metadata().is_ok();
        fs::write(&path, "{}")?;
        if !was_there {
            fs::remove_file(path)?;
        }
        Ok(())
    }),
    attempt_for_anyone("create another agent's folder", |g| {
        create_and_remove_folder(&g.in_project(".claude"))
    }),
    attempt_for_anyone("create a shell's start-up file", |g| {
        create_and_remove_file(&g.in_project(".envrc"))
    }),
    attempt_for_anyone("create an editor's start-up file", |g| {
        create_and_remove_file(&g.in_project(".exrc"))
    }),
    attempt_for_anyone("create another editor's folder by renaming", |g| {
        fs::create_dir(g.in_project("arriving"))?;
        let renamed = fs::rename(g.in_project("arriving"), g.in_project(".idea"));
        let left = if renamed.is_ok() { ".idea" } else { "arriving" };
        fs::remove_dir(g.in_project(left))?;
        Ok(renamed?)
    }),
    attempt_for_anyone("create a pipeline", |g| {
        create_and_remove_file(&g.in_project(".gitlab-ci.yml"))
    }),
    attempt_for_anyone("create a pipeline of another kind", |g| {
        create_by_renaming(g, "Jenkinsfile")
    }),
    attempt_for_anyone("create an action beside the pipeline", |g| {
        create_and_remove_folder(&g.in_project(".github/actions"))
    }),
    attempt_for_some_machines("reach git's folder in capital letters", |g| {
        let shouted = g.in_project(".GIT/config");
        if !shouted.exists() {
            return not_applicable("this file system tells letters of different case apart");
        }
        open_to_write(&shouted)
    }),
    attempt_for_anyone("have git itself change its settings", |g| {
        let config = g.in_project(GIT_CONFIG);
        let before = fs::read(&config)?;
        let git = std::process::Command::new("git")
            .arg("-C")
            .arg(&g.project)
            .args(["config", "core.pager", "evil"])
            .output();
        let Ok(output) = git else {
            return not_applicable("git is not installed");
        };
        let changed = fs::read(&config)? != before;
        if changed {
            fs::write(&config, before)?;
        }
        ensure(changed, String::from_utf8_lossy(&output.stderr).trim())
    }),
];

fn create_and_remove_folder(path: &Path) -> AttemptResult {
    fs::create_dir(path)?;
    Ok(fs::remove_dir(path)?)
}

fn create_and_remove_file(path: &Path) -> AttemptResult {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(fs::remove_file(path)?)
}

/// Creates a file under another name and renames it to `name`.
fn create_by_renaming(targets: &ProbeTargets, name: &str) -> AttemptResult {
    let from = targets.in_project("arriving");
    let to = targets.in_project(name);
    File::create(&from)?;
    let renamed = fs::rename(&from, &to);
    fs::remove_file(if renamed.is_ok() { to } else { from })?;
    Ok(renamed?)
}
