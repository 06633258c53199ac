//! Starts haft's own helper programs outside the sandbox: programs that provide keys, open the
//! browser, read the clipboard or edit a text.
//!
//! Invariant: the model can write neither such a program, nor a file that the program loads because
//! of its working directory or its environment.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_engine::Notice;
use haft_sandbox::{
    ProgramPath, Sandbox, SandboxConfig, filter_search_path, find_writable_word, is_inheritable,
    resolve_configured_path,
};
use haft_types::SandboxLayer;

use crate::environment::HostEnvironment;
use crate::project::Project;

/// The working directory of haft's own helper programs. Interpreters and package managers load
/// modules and settings from their working directory.
const WORKING_FOLDER: &str = "/";

/// The shell that runs command lines of the user's configuration.
const SHELL: &str = "/bin/sh";

/// The code of the notices about haft's own program.
const NOTICE_CODE: &str = "own_program";

/// Returns the folders in which no program is looked up: the project, the working directory, and
/// [`HostEnvironment::writable_folders`].
fn list_writable_folders(environment: &HostEnvironment) -> Vec<PathBuf> {
    let mut writable = environment.writable_folders().to_vec();
    writable.push(environment.cwd().to_owned());
    writable.extend(
        Project::find(environment, None)
            .ok()
            .map(|project| project.root),
    );
    // Every path starts with the empty path, which is the working directory of a default
    // environment.
    writable.retain(|folder| folder.is_absolute());
    writable
}

/// Finds a program for haft itself in `PATH`, or by its absolute path, outside the project and
/// [`HostEnvironment::writable_folders`].
pub fn find_own_program(environment: &HostEnvironment, name: &str) -> Option<ProgramPath> {
    let path = environment.variable("PATH").unwrap_or_default();
    ProgramPath::find(name, &path, &list_writable_folders(environment))
}

/// Prepares a program that runs with the user's environment, except for variables that name code or
/// a folder that the model can write. The program starts in `/`, without input. Neither this
/// program nor any program that it starts is looked up in the project or in
/// [`HostEnvironment::writable_folders`].
pub fn own_command(environment: &HostEnvironment, program: &str) -> io::Result<Command> {
    let found = find_own_program(environment, program).ok_or(io::ErrorKind::NotFound)?;
    Ok(prepare_command(environment, &found))
}

/// Like [`own_command`], but runs a line of the user's configuration in a shell. Fails if the line
/// names a program that the model can write, by its path or through a link.
pub fn own_shell_command(environment: &HostEnvironment, line: &str) -> io::Result<Command> {
    let writable = list_writable_folders(environment);
    let path = filter_search_path(&environment.variable("PATH").unwrap_or_default(), &writable);
    if let Some(word) = find_writable_word(line, &path, &writable) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "`{word}` is a program that the model can write; install it outside the project"
            ),
        ));
    }
    let mut command = prepare_command(environment, &ProgramPath::for_system(SHELL));
    command.args(["-c", line]);
    Ok(command)
}

fn prepare_command(environment: &HostEnvironment, program: &ProgramPath) -> Command {
    let writable = list_writable_folders(environment);
    let path = filter_search_path(&environment.variable("PATH").unwrap_or_default(), &writable);
    let home = environment.absolute_home();
    let inherited = environment.variables().filter(|(name, value)| {
        is_inheritable(
            &name.to_string_lossy(),
            &value.to_string_lossy(),
            &writable,
            home.as_deref(),
        )
    });
    let mut command = program.command();
    command
        .env_clear()
        .envs(inherited)
        .env("PATH", path)
        .env("PWD", WORKING_FOLDER)
        .env_remove("OLDPWD")
        .current_dir(WORKING_FOLDER)
        .stdin(Stdio::null());
    command
}

/// Returns a warning if a command could replace haft's own program or the link to it, so that the
/// user would start the replacement. The namespace sandbox seals the program, but no link.
pub(crate) fn warn_of_replaceable_program(
    environment: &HostEnvironment,
    sandbox: &Sandbox,
) -> Option<Notice> {
    let own = environment.helper_program();
    let program = own.path().canonicalize().ok()?;
    let in_writable = |path: &Path| {
        let mut folders = environment.writable_folders().iter();
        folders.any(|folder| {
            let resolved = folder.canonicalize();
            path.starts_with(folder) || resolved.is_ok_and(|folder| path.starts_with(folder))
        })
    };
    let is_sealed = match sandbox.status().layer {
        SandboxLayer::Namespace => true,
        SandboxLayer::Landlock | SandboxLayer::None => false,
    };
    let link = own.start_path().filter(|path| {
        let is_link = path.canonicalize().is_ok_and(|target| target != *path);
        is_link && in_writable(path)
    });
    let message = match link {
        Some(link) => format!(
            "haft was started through `{}`, in a folder that commands can write: a command can replace this link, and the \
             replacement would run when you start it next. Start haft from a folder outside the project",
            link.display()
        ),
        None if !is_sealed && in_writable(&program) => format!(
            "haft's program `{}` is in a folder that commands can write, and without the namespace sandbox it cannot be \
             protected: a command can replace it, and the replacement would run when you start it next. Install haft outside the \
             project",
            program.display()
        ),
        None => return None,
    };
    Some(Notice {
        code: NOTICE_CODE,
        message,
        failed: true,
    })
}

/// Returns the folders that `[sandbox] writable` lists.
pub fn configured_writable_folders(
    environment: &HostEnvironment,
    config: &SandboxConfig,
) -> Vec<PathBuf> {
    let home = environment.absolute_home();
    config
        .writable
        .iter()
        .filter_map(|path| resolve_configured_path(path, home.as_deref()))
        .collect()
}
