//! Finds programs that haft starts by name, outside the folders that the model can write to.
//!
//! A folder of the project may be in `PATH` (an activated `.venv`, `node_modules/.bin`). A program
//! found there could be one that the model wrote, so such folders are skipped.

use std::path::{Path, PathBuf};

use std::os::unix::fs::MetadataExt;

/// The folders to search if no folder in `PATH` may be searched.
const FALLBACK_FOLDERS: [&str; 3] = ["/usr/bin", "/usr/local/bin", "/bin"];

/// Variables that name code which interpreters, shells and linkers load by themselves. Tools such
/// as direnv set them to files of a project.
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

/// Variables that name a folder of data. Programs that haft starts for itself inherit them even if
/// the model can write the folder.
const DATA_VARIABLES: [&str; 4] = ["HOME", "SSH_AUTH_SOCK", "TMPDIR", "XAUTHORITY"];

/// Paths are at most this long, so a longer text is not resolved as a path.
const MAX_PATH_BYTES: usize = 4096;

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

/// True if a program that haft starts for itself outside the sandbox may inherit this variable: the
/// variable neither names code that programs load by themselves, nor contains a path in a folder
/// that the model can write, such as `VIRTUAL_ENV` or `XDG_CONFIG_HOME` set by direnv. Folders that
/// contain `home` are not considered, because such programs read files in the home folder anyway.
/// Remove folders from `PATH` with [`filter_search_path`].
pub fn is_inheritable(name: &str, value: &str, writable: &[PathBuf], home: Option<&Path>) -> bool {
    if name == "PATH" || DATA_VARIABLES.contains(&name) {
        return true;
    }
    let considered: Vec<_> = writable
        .iter()
        .filter(|folder| !home.is_some_and(|home| is_inside_any(home, &[folder.into()])))
        .cloned()
        .collect();
    !is_code_variable(name) && !names_path_inside(value, &considered)
}

/// True if `text` contains a path in one of `folders`: as a whole, in a list, or after an option.
pub fn names_path_inside(text: &str, folders: &[PathBuf]) -> bool {
    let items = text.split([':', ';', ',', '\n']);
    let words = text.split(|c: char| c.is_whitespace() || ":;,='\"".contains(c));
    let paths = items
        .chain(words)
        .filter_map(|part| part.find('/').map(|start| &part[start..]))
        .filter(|path| path.len() <= MAX_PATH_BYTES);
    let mut paths = paths.map(Path::new);
    paths.any(|path| is_inside_any(path, folders) || is_inside_any(&resolve_start(path), folders))
}

/// Resolves the links in the part of a path that exists.
fn resolve_start(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|start| {
        let resolved = start.canonicalize().ok()?;
        Some(resolved.join(path.strip_prefix(start).ok()?))
    });
    resolved.unwrap_or_else(|| path.to_owned())
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

/// Returns the first word of a command line for a shell that names a program which the model can
/// write: by its path, or through a link in a folder of `search_path`.
pub fn find_writable_word<'a>(
    line: &'a str,
    search_path: &str,
    writable: &[PathBuf],
) -> Option<&'a str> {
    let separates = |c: char| c.is_whitespace() || "'\"`;&|()<>{}$=".contains(c);
    let is_program = |path: &Path| {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
    };
    let leads_inside = |path: &Path| {
        let target = path.canonicalize();
        is_program(path)
            && (is_inside_any(path, writable)
                || target.is_ok_and(|target| is_inside_any(&target, writable)))
    };
    line.split(separates).find(|word| {
        if word.is_empty() {
            return false;
        }
        if word.contains('/') {
            return word.starts_with('/') && leads_inside(Path::new(word));
        }
        let mut places = std::env::split_paths(search_path).map(|folder| folder.join(word));
        let found = places.find(|path| is_program(path));
        found.is_some_and(|path| leads_inside(&path))
    })
}

pub(crate) fn is_inside_any(path: &Path, writable: &[PathBuf]) -> bool {
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
    fn inheritable_variables_name_nothing_that_the_model_can_write() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let project = top.join("home/my project");
        fs::create_dir_all(&project).unwrap();
        symlink(&project, top.join("alias")).unwrap();
        let writable = [project.clone()];
        let home = top.join("home");
        let inherits = |value: &str| {
            let value = value
                .replace("PROJECT", &project.display().to_string())
                .replace("TOP", &top.display().to_string());
            is_inheritable("ANY_NAME", &value, &writable, Some(&home))
        };
        for value in [
            "PROJECT",
            "PROJECT/.venv",
            "/usr/share:PROJECT/share",
            "--require=PROJECT/x.js",
            "-IPROJECT/lib",
            "file://PROJECT/x",
            "TOP/alias/later/x",
        ] {
            assert!(!inherits(value), "{value}");
        }
        for value in [
            "",
            "1",
            "/usr/lib/jvm",
            "TOP/home",
            "PROJECT-other",
            "https://example.com/a",
        ] {
            assert!(inherits(value), "{value}");
        }
        let project = project.display().to_string();
        assert!(is_inheritable("TMPDIR", &project, &writable, Some(&home)));
        assert!(!is_inheritable("NODE_OPTIONS", "", &writable, Some(&home)));
        // With the home folder as the project, programs read its files in any case.
        let config = home.join(".config").display().to_string();
        assert!(is_inheritable(
            "XDG_CONFIG_HOME",
            &config,
            std::slice::from_ref(&home),
            Some(&home)
        ));
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
        for line in ["linked", "env A=1 linked x", "true; 'linked'", "x | linked"] {
            assert_eq!(
                find_writable_word(line, &at(&own), &writable),
                Some("linked"),
                "{line}"
            );
        }
        let inside = at(&project.join(".venv/bin/tool"));
        let line = format!("sh {inside} x");
        assert_eq!(
            find_writable_word(&line, &at(&own), &writable),
            Some(inside.as_str())
        );
        for line in ["tool linked.txt", "cat /etc/passwd", "tool ./linked"] {
            assert_eq!(
                find_writable_word(line, &at(&own), &writable),
                None,
                "{line}"
            );
        }
        assert_eq!(
            find_program("tool", &at(&project.join(".venv/bin")), &writable),
            None
        );
    }
}
