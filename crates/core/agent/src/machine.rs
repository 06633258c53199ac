//! The machine as the model is told of it.

use haft_context::Environment;

use crate::environment::HostEnvironment;
use crate::project::Project;

/// What the model is told. No clock: it would change the prefix of every request.
pub(crate) fn described(host: &HostEnvironment, project: &Project) -> Environment {
    let variable = |name: &str| host.variable(name).unwrap_or_default();
    Environment {
        os: operating_system(),
        shell: Some(variable("SHELL")).filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into()),
        encoding: encoding(&[variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")]),
        user: variable("USER"),
        home: variable("HOME"),
        cwd: project.cwd.display().to_string(),
        safe_zone_tokens: None,
    }
}

fn encoding(locales: &[String]) -> String {
    let locale = locales.iter().find(|locale| !locale.is_empty()).map_or("", String::as_str);
    locale.split_once('.').map_or("UTF-8", |(_, encoding)| encoding).to_owned()
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name {
        Some(name) => format!("{} ({})", std::env::consts::OS, name.trim_matches('"')),
        None => std::env::consts::OS.to_owned(),
    }
}
