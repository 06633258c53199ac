//! Attempts to change protected files inside the project.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::files::{back_and_forth, create_in, open_to_write};
use crate::links::through;
use crate::{Attempt, ProbeTargets, Tried, anyone, depends, holds, not_applicable};

/// The configuration of the repository, which can name programs that git runs.
const CONFIG: &str = ".git/config";

pub(crate) const ATTEMPTS: &[Attempt] = &[
    anyone("change git's settings", |g| {
        open_to_write(&g.in_project(CONFIG))
    }),
    anyone("change git's settings by a relative path", |_| {
        open_to_write(Path::new("./folder/.././.git//config"))
    }),
    anyone("change git's settings through /proc/self/cwd", |_| {
        open_to_write(&Path::new("/proc/self/cwd").join(CONFIG))
    }),
    anyone("change git's settings through a symbolic link", |g| {
        through(g, &g.in_project(CONFIG), open_to_write)
    }),
    anyone(
        "change git's settings through a link to their folder",
        |g| {
            through(g, &g.in_project(".git"), |link| {
                open_to_write(&link.join("config"))
            })
        },
    ),
    anyone("change git's settings through a hard link", |g| {
        let link = g.in_project("config-link");
        fs::hard_link(g.in_project(CONFIG), &link)?;
        let tried = open_to_write(&link);
        fs::remove_file(link)?;
        tried
    }),
    anyone(
        "change git's settings through a file open for reading",
        |g| {
            let file = File::open(g.in_project(CONFIG))?;
            open_to_write(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
        },
    ),
    anyone("change git's settings from the folder itself", |g| {
        std::env::set_current_dir(g.in_project(".git"))?;
        open_to_write(Path::new("config"))
    }),
    anyone("rename over git's settings", |g| {
        let new = g.in_project("new-config");
        let config = g.in_project(CONFIG);
        fs::copy(&config, &new)?;
        fs::rename(&new, &config).inspect_err(|_| drop(fs::remove_file(&new)))?;
        Ok(())
    }),
    anyone("swap git's settings with another file", |g| {
        let own = g.in_project("own");
        let config = g.in_project(CONFIG);
        renameat_with(CWD, &own, CWD, &config, RenameFlags::EXCHANGE)?;
        Ok(renameat_with(
            CWD,
            &own,
            CWD,
            &config,
            RenameFlags::EXCHANGE,
        )?)
    }),
    anyone("delete git's settings", |g| {
        let text = fs::read(g.in_project(CONFIG))?;
        fs::remove_file(g.in_project(CONFIG))?;
        Ok(fs::write(g.in_project(CONFIG), text)?)
    }),
    anyone("make git's settings a link", |g| {
        let config = g.in_project(CONFIG);
        let kept = g.in_project(".git/kept");
        fs::rename(&config, &kept)?;
        symlink("/dev/null", &config)?;
        Ok(fs::rename(&kept, &config)?)
    }),
    anyone("add a hook", |g| create_in(&g.in_project(".git/hooks"))),
    anyone("make a hook executable", |g| {
        let hook = g.in_project(".git/hooks/sample");
        let before = fs::metadata(&hook)?.permissions();
        fs::set_permissions(&hook, Permissions::from_mode(0o755))?;
        Ok(fs::set_permissions(&hook, before)?)
    }),
    anyone("move the folder of git away", |g| {
        back_and_forth(&g.in_project(".git"), &g.in_project("was-git"))
    }),
    anyone(
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
    anyone("move the folder of git out of the project", |g| {
        back_and_forth(&g.in_project(".git"), &g.outside.join("git"))
    }),
    anyone("write what git has open by path only", |g| {
        let place = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(g.in_project(".git"))?;
        create_in(Path::new(&format!("/proc/self/fd/{}", place.as_raw_fd())))
    }),
    anyone("change an editor's tasks", |g| {
        open_to_write(&g.in_project(".vscode/tasks.json"))
    }),
    anyone("add to an editor's folder", |g| {
        create_in(&g.in_project(".vscode"))
    }),
    anyone("change the pipeline", |g| {
        open_to_write(&g.in_project(".github/workflows/ci.yml"))
    }),
    anyone("move the folder above the pipeline away", |g| {
        back_and_forth(&g.in_project(".github"), &g.in_project("was-github"))
    }),
    anyone("create haft's folder", |g| {
        make_folder(&g.in_project(".haft"))
    }),
    anyone("create haft's settings", |g| {
        let folder = g.in_project(".haft");
        let was_there = folder.exists();
        fs::create_dir_all(&folder)?;
        let tried = create_in(&folder);
        if !was_there {
            fs::remove_dir(folder)?;
        }
        tried
    }),
    anyone("create a list of servers", |g| {
        make_file(&g.in_project(".mcp.json"))
    }),
    anyone("create a list of servers by renaming", |g| {
        arrive(g, ".mcp.json")
    }),
    anyone("create a list of servers as a link", |g| {
        symlink("own", g.in_project(".mcp.json"))?;
        Ok(fs::remove_file(g.in_project(".mcp.json"))?)
    }),
    anyone("create a list of servers as a hard link", |g| {
        fs::hard_link(g.in_project("own"), g.in_project(".mcp.json"))?;
        Ok(fs::remove_file(g.in_project(".mcp.json"))?)
    }),
    anyone("fill a list of servers that does not exist", |g| {
        let path = g.in_project(".mcp.json");
        let was_there = path.symlink_metadata().is_ok();
        fs::write(&path, "{}")?;
        if !was_there {
            fs::remove_file(path)?;
        }
        Ok(())
    }),
    anyone("create another agent's folder", |g| {
        make_folder(&g.in_project(".claude"))
    }),
    anyone("create a shell's start-up file", |g| {
        make_file(&g.in_project(".envrc"))
    }),
    anyone("create an editor's start-up file", |g| {
        make_file(&g.in_project(".exrc"))
    }),
    anyone("create another editor's folder by renaming", |g| {
        fs::create_dir(g.in_project("arriving"))?;
        let renamed = fs::rename(g.in_project("arriving"), g.in_project(".idea"));
        let left = if renamed.is_ok() { ".idea" } else { "arriving" };
        fs::remove_dir(g.in_project(left))?;
        Ok(renamed?)
    }),
    anyone("create a pipeline", |g| {
        make_file(&g.in_project(".gitlab-ci.yml"))
    }),
    anyone("create a pipeline of another kind", |g| {
        arrive(g, "Jenkinsfile")
    }),
    anyone("create an action beside the pipeline", |g| {
        make_folder(&g.in_project(".github/actions"))
    }),
    depends("reach git's folder in capital letters", |g| {
        let shouted = g.in_project(".GIT/config");
        if !shouted.exists() {
            return not_applicable("this file system tells letters of different case apart");
        }
        open_to_write(&shouted)
    }),
    anyone("have git itself change its settings", |g| {
        let config = g.in_project(CONFIG);
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
        holds(changed, String::from_utf8_lossy(&output.stderr).trim())
    }),
];

fn make_folder(path: &Path) -> Tried {
    fs::create_dir(path)?;
    Ok(fs::remove_dir(path)?)
}

fn make_file(path: &Path) -> Tried {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    Ok(fs::remove_file(path)?)
}

/// Creates a file under another name and renames it to `name`.
fn arrive(targets: &ProbeTargets, name: &str) -> Tried {
    let from = targets.in_project("arriving");
    let to = targets.in_project(name);
    File::create(&from)?;
    let renamed = fs::rename(&from, &to);
    fs::remove_file(if renamed.is_ok() { to } else { from })?;
    Ok(renamed?)
}
