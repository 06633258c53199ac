//! Finds programs that haft starts by name, outside the folders that the model can write to.
//!
//! A folder of the project may be in `PATH` (an activated `.venv`, `node_modules/.bin`). A program
//! found there could be one that the model wrote, so such folders are skipped.

use std::path::{Path, PathBuf};

use std::os::unix::fs::MetadataExt;

/// The folders to search if no folder in `PATH` may be searched.
const FALLBACK_FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// Variables that name code which interpreters, shells and linkers load by themselves. Tools such as
/// direnv set them to files of a project.
const CODE_VARIABLES: [&str; 30] = [
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "CLASSPATH",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIO_EXTRA_MODULES",
    "GIT_EXEC_PATH",
    "GTK_MODULES",
    "GTK_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "QT_PLUGIN_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "ZDOTDIR",
];

/// The prefixes of variables that the dynamic linkers read, such as `LD_PRELOAD`.
const LINKER_PREFIXES: [&str; 2] = ["LD_", "DYLD_"];

/// True if the variable `name` names code that programs load by themselves. Programs that haft
/// starts for itself outside the sandbox do not inherit such variables.
pub fn is_code_variable(name: &str) -> bool {
    CODE_VARIABLES.contains(&name)
        || LINKER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Returns the first program called `name` in the folders of `search_path` that is outside
/// `writable`. Returns its path with links unresolved: programs such as Python find their files
/// next to the link.
pub fn find_program(name: &str, search_path: &str, writable: &[PathBuf]) -> Option<PathBuf> {
    let mut folders: Vec<_> = search_folders_outside(search_path, writable).collect();
    if folders.is_empty() {
        folders.extend(FALLBACK_FOLDERS.map(PathBuf::from));
    }
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|program| {
            let target = program.canonicalize();
            let is_outside = target
                .as_ref()
                .is_ok_and(|target| !is_inside_any(target, writable));
            let is_executable = |path: &PathBuf| {
                path.metadata()
                    .is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
            };
            is_outside && target.as_ref().is_ok_and(is_executable)
        })
}

/// Returns `search_path` without relative folders and without folders inside any of `writable`.
pub fn filter_search_path(search_path: &str, writable: &[PathBuf]) -> String {
    let folders: Vec<_> = search_folders_outside(search_path, writable).collect();
    std::env::join_paths(folders)
        .ok()
        .and_then(|joined| joined.into_string().ok())
        .unwrap_or_default()
}

fn search_folders_outside(
    search_path: &str,
    writable: &[PathBuf],
) -> impl Iterator<Item = PathBuf> {
    let folders = std::env::split_paths(search_path).filter(|folder| folder.is_absolute());
    folders.filter(move |folder| {
        // A folder that is missing now could be created by a command.
        let resolved = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        !is_inside_any(&resolved, writable) && !is_inside_any(folder, writable)
    })
}

fn is_inside_any(path: &Path, writable: &[PathBuf]) -> bool {
    writable.iter().any(|folder| {
        let resolved = folder.canonicalize();
        path.starts_with(folder) || resolved.is_ok_and(|resolved| path.starts_with(resolved))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write_program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn code_variables_include_those_of_interpreters_and_linkers() {
        for name in [
            "NODE_OPTIONS",
            "PYTHONHOME",
            "RUBYOPT",
            "CLASSPATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
        ] {
            assert!(is_code_variable(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "DISPLAY", "GNUPGHOME"] {
            assert!(!is_code_variable(name), "{name}");
        }
    }

    #[test]
    fn find_program_skips_folders_that_the_model_can_write() {
        let top = tempfile::tempdir().unwrap();
        let project = top.path().join("project");
        let own = top.path().join("own");
        for folder in [project.join(".venv/bin"), own.clone()] {
            write_program(&folder.join("tool"));
        }
        symlink(&project, top.path().join("alias")).unwrap();
        symlink(project.join(".venv/bin/tool"), own.join("linked")).unwrap();
        let at = |folder: &Path| folder.display().to_string();
        let through_link = top.path().join("alias/.venv/bin");
        let path = format!(
            "{}:{}:.venv/bin:{}",
            at(&project.join(".venv/bin")),
            at(&through_link),
            at(&own)
        );
        let writable = [project.clone()];
        assert_eq!(
            find_program("tool", &path, &writable),
            Some(own.join("tool"))
        );
        assert_eq!(
            find_program("linked", &path, &writable),
            None,
            "a link into the project"
        );
        assert_eq!(filter_search_path(&path, &writable), at(&own));
        assert_eq!(
            find_program("tool", &at(&project.join(".venv/bin")), &writable),
            None
        );
    }
}
