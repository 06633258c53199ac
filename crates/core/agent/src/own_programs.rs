//! Starts haft's own helper programs outside the sandbox: programs that provide keys, open the
//! browser, read the clipboard or edit a text.
//!
//! Invariant: the model can write neither such a program, nor a file that the program loads because
//! of its working directory or its environment.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use haft_sandbox::{
    SandboxConfig, filter_search_path, find_program, is_inheritable, resolve_configured_path,
};

use crate::environment::HostEnvironment;
use crate::project::Project;

/// The working directory of haft's own helper programs. Interpreters and package managers load
/// modules and settings from their working directory.
const WORKING_FOLDER: &str = "/";

/// Prepares a program that runs with the user's environment, except for variables that name code or
/// a folder that the model can write. The program starts in `/`, without input. Neither this
/// program nor any program that it starts is looked up in the project or in
/// [`HostEnvironment::writable_folders`]. A `program` with a slash is a path.
pub fn own_command(environment: &HostEnvironment, program: &str) -> io::Result<Command> {
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
    let path = filter_search_path(&environment.variable("PATH").unwrap_or_default(), &writable);
    let found = if program.contains('/') {
        PathBuf::from(program)
    } else {
        find_program(program, &path, &writable).ok_or(io::ErrorKind::NotFound)?
    };
    let home = environment.absolute_home();
    let inherited = environment.variables().filter(|(name, value)| {
        is_inheritable(
            &name.to_string_lossy(),
            &value.to_string_lossy(),
            &writable,
            home.as_deref(),
        )
    });
    let mut command = Command::new(found);
    command
        .env_clear()
        .envs(inherited)
        .env("PATH", path)
        .env("PWD", WORKING_FOLDER)
        .env_remove("OLDPWD")
        .current_dir(WORKING_FOLDER)
        .stdin(Stdio::null());
    Ok(command)
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
