//! Programs that haft starts by itself, resolved before they are started.
//!
//! Invariant: no other code creates a process. A [`ProgramPath`] is absolute and lies outside the
//! folders that the model can write, unless the user named the program on haft's command line.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::find_program::{find_program, is_inside_any};

/// The absolute path of a program that haft may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPath(PathBuf);

impl ProgramPath {
    /// Finds the program `name` outside the folders `writable`. A name without a slash is looked up
    /// in `search_path`, like [`find_program`]. Returns `None` for a relative path, for a path in
    /// `writable`, and for a link to such a path.
    pub fn find(name: &str, search_path: &str, writable: &[PathBuf]) -> Option<Self> {
        if !name.contains('/') {
            return find_program(name, search_path, writable).map(Self);
        }
        let path = Path::new(name);
        let target = path.canonicalize().ok()?;
        let is_outside = !is_inside_any(path, writable) && !is_inside_any(&target, writable);
        (path.is_absolute() && is_outside).then(|| Self(path.to_owned()))
    }

    /// Returns a program that is part of the operating system, such as `/bin/sh`.
    pub fn for_system(path: &'static str) -> Self {
        Self(PathBuf::from(path))
    }

    /// Returns the program that the user named by its path on haft's command line.
    pub fn from_user(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the program, with links unresolved.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a command that runs the program.
    pub fn command(&self) -> Command {
        create_command(self.0.as_os_str())
    }
}

/// Creates a command for a program that has been resolved, or that is to run confined.
#[expect(
    clippy::disallowed_methods,
    reason = "every other module gets its commands here"
)]
pub(crate) fn create_command(program: &OsStr) -> Command {
    Command::new(program)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn find_accepts_only_absolute_paths_outside_writable_folders() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let project = top.join("my project");
        for folder in [project.clone(), top.join("own")] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("tool"), "#!/bin/sh\n").unwrap();
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.join("tool"), mode).unwrap();
        }
        symlink(project.join("tool"), top.join("own/linked")).unwrap();
        symlink(&project, top.join("alias")).unwrap();
        let writable = [project.clone()];
        let finds = |path: &Path| ProgramPath::find(&path.display().to_string(), "", &writable);
        assert!(finds(&top.join("own/tool")).is_some());
        for path in [
            project.join("tool"),
            top.join("alias/tool"),
            top.join("own/linked"),
            top.join("own/../my project/tool"),
            top.join("missing"),
            PathBuf::from("./tool"),
            PathBuf::from("own/tool"),
        ] {
            assert_eq!(finds(&path), None, "{}", path.display());
        }
        let search = format!("{}:own:{}", project.display(), top.join("own").display());
        let found = ProgramPath::find("tool", &search, &writable).unwrap();
        assert_eq!(found.path(), top.join("own/tool"));
        assert_eq!(ProgramPath::find("linked", &search, &writable), None);
    }
}
