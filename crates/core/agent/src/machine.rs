//! The description of the machine in the system prompt.

use std::os::unix::fs::MetadataExt as _;

use haft_context::Environment;

use crate::environment::HostEnvironment;
use crate::project::Project;

/// Describes the machine for the system prompt. The description contains no time, which would
/// change the prefix of every request.
pub(crate) fn describe_machine(host: &HostEnvironment, project: &Project) -> Environment {
    let variable = |name: &str| host.variable(name).unwrap_or_default();
    Environment {
        os: describe_operating_system(),
        shell: haft_tools::shell_path().into(),
        encoding: locale_encoding(&[variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")]),
        user: user_name(&[variable("USER"), variable("LOGNAME")]),
        home: variable("HOME"),
        cwd: project.cwd.display().to_string(),
        safe_zone_tokens: None,
    }
}

fn locale_encoding(locales: &[String]) -> String {
    let locale = locales
        .iter()
        .find(|locale| !locale.is_empty())
        .map_or("", String::as_str);
    locale
        .split_once('.')
        .map_or("UTF-8", |(_, encoding)| encoding)
        .to_owned()
}

/// Returns the user's name from the environment variables or, because containers often set none of
/// them, from `/etc/passwd`.
fn user_name(names: &[String]) -> String {
    if let Some(name) = names.iter().find(|name| !name.is_empty()) {
        return name.clone();
    }
    let Ok(process) = std::fs::metadata("/proc/self") else {
        return "unknown".to_owned();
    };
    let uid = process.uid();
    let passwords = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    find_user_name(&passwords, uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// Finds the name of a user id in the text of `/etc/passwd`.
fn find_user_name(users: &str, uid: u32) -> Option<String> {
    let mut fields = users.lines().map(|line| line.split(':'));
    let user = fields.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    });
    user.map(str::to_owned)
}

fn describe_operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name {
        Some(name) => format!("{} ({})", std::env::consts::OS, name.trim_matches('"')),
        None => std::env::consts::OS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_found_without_variables() {
        assert_eq!(user_name(&[String::new(), "ada".into()]), "ada");
        assert!(!user_name(&[String::new()]).is_empty());
        let users = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/zsh\n";
        assert_eq!(
            (
                find_user_name(users, 1000).as_deref(),
                find_user_name(users, 7)
            ),
            (Some("ada"), None)
        );
    }
}
