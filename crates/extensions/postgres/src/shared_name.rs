//! Derives the name that all copies of a project share: the address from which it is cloned.
//!
//! git is not run for this, because the folder may be untrusted. Invariant: no name contains a user
//! or a password.

use std::path::{Path, PathBuf};

/// Returns the name that a project has on all hosts: `haft.namespace` from the repository's
/// configuration, or else the address of the repository's remote, or else the name of its folder.
/// If the project is a subfolder of the repository, its path in the repository is appended.
pub(crate) fn shared_project_name(root: &Path) -> String {
    let folder = || {
        root.file_name().map_or_else(
            || root.display().to_string(),
            |name| name.to_string_lossy().into(),
        )
    };
    let Some((top, config)) = root
        .ancestors()
        .find_map(|top| Some((top, read_git_config(top)?)))
    else {
        return folder();
    };
    let name = find_config_value(&config, |section| section == "haft", "namespace")
        .or_else(|| find_remote_address(&config))
        .or_else(|| {
            top.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        });
    // A project below the top of its repository gets its own name.
    match (
        name,
        root.strip_prefix(top)
            .unwrap_or(Path::new(""))
            .display()
            .to_string(),
    ) {
        (Some(name), below) if below.is_empty() => name,
        (Some(name), below) => format!("{name}/{below}"),
        (None, _) => folder(),
    }
}

/// Reads the configuration of the repository at `top`, if there is one.
fn read_git_config(top: &Path) -> Option<String> {
    let link = top.join(".git");
    let git = match std::fs::read_to_string(&link) {
        // The file of a worktree contains the path of its git folder, which contains the path of
        // the shared one.
        Ok(text) => {
            let own = top.join(text.strip_prefix("gitdir:")?.trim());
            let common = std::fs::read_to_string(own.join("commondir"));
            common.map_or_else(
                |_| own.clone(),
                |common| own.join(PathBuf::from(common.trim())),
            )
        }
        Err(_) => link,
    };
    std::fs::read_to_string(git.join("config")).ok()
}

/// Returns the normalized address of the remote `origin`, or, if there is no `origin`, of another
/// remote in `config`.
fn find_remote_address(config: &str) -> Option<String> {
    let origin = find_config_value(config, |section| section == "remote \"origin\"", "url");
    origin
        .or_else(|| find_config_value(config, |section| section.starts_with("remote "), "url"))
        .and_then(|url| normalize_address(&url))
}

/// Returns the value of the key `wanted` in the sections for which `is_meant` returns true. If
/// there are several values, the last one counts.
fn find_config_value(
    config: &str,
    is_meant: impl Fn(&str) -> bool,
    wanted: &str,
) -> Option<String> {
    let mut inside = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            inside = is_meant(section.trim());
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside)
            && key.trim().eq_ignore_ascii_case(wanted)
        {
            found =
                Some(value.trim().trim_matches('"').to_owned()).filter(|value| !value.is_empty());
        }
    }
    found
}

/// Reduces a remote's URL, in any of git's notations, to its host and path. Returns `None` for a
/// local folder.
fn normalize_address(url: &str) -> Option<String> {
    let is_folder = url.starts_with("file://") || url.starts_with(['/', '.', '~']);
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // A password may contain any character; it ends at the last `@`.
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    // Handles ssh's `git@host:path`, `https://host:port/path`, and `https://host/path`.
    let (host, path) = rest.split_once([':', '/'])?;
    let has_port = url.contains("://") && rest[host.len()..].starts_with(':');
    let port = path
        .find('/')
        .filter(|end| has_port && path[..*end].bytes().all(|byte| byte.is_ascii_digit()));
    let path = port.map_or(path, |end| &path[end..]).trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!is_folder && !host.is_empty() && !path.is_empty())
        .then(|| format!("{}/{path}", host.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_the_same_in_every_notation() {
        for url in [
            "https://github.com/org/x.git",
            "https://GitHub.com/org/x/",
            "https://me:se/cr@et@github.com/org/x.git",
            "https://github.com:443/org/x",
            "ssh://git@github.com:22/org/x.git",
            "git@github.com:org/x.git",
            "github.com:org/x",
        ] {
            assert_eq!(
                normalize_address(url).as_deref(),
                Some("github.com/org/x"),
                "{url}"
            );
        }
        assert_eq!(
            normalize_address("https://host/2024/x").as_deref(),
            Some("host/2024/x"),
            "no port"
        );
        for folder in ["/srv/git/x.git", "../x", "file:///srv/x", "~/x", ""] {
            assert_eq!(normalize_address(folder), None, "{folder}");
        }
    }

    #[test]
    fn project_name_is_the_repository_or_the_folder() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("checkout");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        assert_eq!(shared_project_name(&root), "checkout");
        std::fs::create_dir(root.join(".git")).unwrap();
        let configure = |text: &str| std::fs::write(root.join(".git/config"), text).unwrap();
        configure("[core]\n\tbare = false\n");
        assert_eq!(
            (
                shared_project_name(&root),
                shared_project_name(&root.join("sub"))
            ),
            ("checkout".into(), "checkout/sub".into())
        );
        let remotes = "[remote \"fork\"]\n\turl = git@host:me/x\n[remote \"origin\"]\n\turl = https://host/org/x.git\n\tfetch = +a:b\n";
        configure(remotes);
        assert_eq!(
            (
                shared_project_name(&root),
                shared_project_name(&root.join("sub"))
            ),
            ("host/org/x".into(), "host/org/x/sub".into())
        );
        let tree = home.path().join("tree");
        std::fs::create_dir_all(root.join(".git/worktrees/tree")).unwrap();
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(root.join(".git/worktrees/tree/commondir"), "../..\n").unwrap();
        std::fs::write(
            tree.join(".git"),
            format!("gitdir: {}/.git/worktrees/tree\n", root.display()),
        )
        .unwrap();
        assert_eq!(shared_project_name(&tree), "host/org/x");
        configure(&format!("{remotes}[haft]\n\tnamespace = ours\n"));
        assert_eq!(shared_project_name(&root), "ours");
    }
}
