//! The paths at which well-known programs keep keys, passwords and histories.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Paths of keys and passwords below a home folder, one per line, below comments with their
/// sources.
const HOME_SECRETS: &str = include_str!("secret_places.txt");

/// Paths at which the machine's keys and passwords are stored, which usually only root can read.
/// A comment names the source of the paths below it.
const MACHINE_SECRETS: &[&str] = &[
    // shadow(5), gshadow(5), pam_unix(8)
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    // sshd(8), krb5.conf(5)
    "/etc/krb5.keytab",
    "/etc/ssh",
    // https://kubernetes.io/docs/setup/best-practices/certificates/ https://docs.k3s.io/
    "/etc/kubernetes",
    "/etc/rancher",
    // update-ca-certificates(8), https://eff-certbot.readthedocs.io/
    "/etc/letsencrypt",
    "/etc/pki/tls/private",
    "/etc/ssl/private",
    // systemd-creds(1), pppd(8), wg-quick(8), openvpn(8), ipsec.secrets(5), nm-settings(5)
    "/etc/NetworkManager/system-connections",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/ipsec.d/private",
    "/etc/ipsec.secrets",
    "/etc/openvpn",
    "/etc/ppp/chap-secrets",
    "/etc/ppp/pap-secrets",
    "/etc/swanctl/private",
    "/etc/wireguard",
    // mount.davfs(8), https://docs.docker.com/engine/, https://developers.cloudflare.com/
    "/etc/cloudflared",
    "/etc/davfs2/secrets",
    "/etc/docker/key.json",
    // https://dev.mysql.com/doc/, https://www.exim.org/docs.html, munged(8), sssd.conf(5)
    "/etc/exim4/passwd.client",
    "/etc/munge/munge.key",
    "/etc/mysql/debian.cnf",
    "/etc/sssd",
];

/// Returns the paths at which well-known programs keep keys and passwords. Commands must not read
/// them.
pub fn secret_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let of_home = home
        .into_iter()
        .flat_map(|home| list_home_secrets().map(|name| home.join(name)));
    MACHINE_SECRETS
        .iter()
        .map(PathBuf::from)
        .chain(of_home)
        .collect()
}

fn list_home_secrets() -> impl Iterator<Item = &'static str> {
    HOME_SECRETS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The minimum number of wanted paths in a folder for which the folder is listed as a whole.
/// Listing takes fewer system calls than looking for each path.
const MIN_LISTED_PATHS: usize = 8;
/// The maximum number of entries of a folder that is listed as a whole.
const MAX_LISTED_ENTRIES: usize = 10_000;

/// Returns those of `paths` that exist, in their order. Links are not followed.
///
/// Most of the paths don't exist, and every command needs the answer.
pub(super) fn filter_existing(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut counts: HashMap<&Path, usize> = HashMap::new();
    for parent in paths.iter().filter_map(|path| path.parent()) {
        *counts.entry(parent).or_default() += 1;
    }
    let listed: HashMap<&Path, HashSet<OsString>> = counts
        .into_iter()
        .filter(|(_, count)| *count >= MIN_LISTED_PATHS)
        .filter_map(|(parent, _)| Some((parent, list_names(parent)?)))
        .collect();
    let exists = |path: &&PathBuf| {
        let names = path.parent().and_then(|parent| listed.get(parent));
        match (names, path.file_name()) {
            (Some(names), Some(name)) => names.contains(name),
            (None, _) | (_, None) => path.symlink_metadata().is_ok(),
        }
    };
    paths.iter().filter(exists).collect()
}

/// Returns the names in a folder: none if the folder does not exist, and `None` if the folder
/// cannot be listed completely.
fn list_names(folder: &Path) -> Option<HashSet<OsString>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(HashSet::new()),
        Err(_) => return None,
    };
    let mut names = HashSet::new();
    for entry in entries {
        if names.len() == MAX_LISTED_ENTRIES {
            return None;
        }
        names.insert(entry.ok()?.file_name());
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_places_have_sources() {
        let mut source = None;
        let mut previous = "";
        for line in HOME_SECRETS.lines() {
            if let Some(comment) = line.strip_prefix('#') {
                source = Some(comment);
                previous = "";
            } else if !line.is_empty() {
                let source = source.unwrap_or_default();
                assert!(
                    source.contains("https://") || source.contains("(1)"),
                    "no source for `{line}`"
                );
                assert!(
                    line == line.trim() && Path::new(line).is_relative(),
                    "{line:?}"
                );
                assert!(
                    !line.split('/').any(|part| ["", ".", ".."].contains(&part)),
                    "{line}"
                );
                assert!(previous < line, "`{previous}` must come after `{line}`");
                previous = line;
            }
        }
        let all: Vec<_> = list_home_secrets().collect();
        assert!(all.len() >= 500, "{}", all.len());
        for (at, one) in all.iter().enumerate() {
            let inside = |other: &&&str| Path::new(one).starts_with(other) && one != *other;
            assert_eq!(all.iter().find(inside), None, "`{one}` is hidden already");
            assert!(!all[..at].contains(one), "`{one}` is listed twice");
        }
    }

    /// The places that a review read from inside the sandbox, and their relatives.
    #[test]
    fn secret_paths_hold_the_places_of_the_review() {
        let home = Path::new("/home/me");
        let all = secret_paths(Some(home));
        for place in [
            ".config/openstack/clouds.yaml",
            ".ollama/id_ed25519",
            ".android/adbkey",
            ".local/share/mkcert/rootCA-key.pem",
            ".pki/nssdb/key4.db",
            ".tsh/keys/x",
            ".step/secrets/root_ca_key",
            ".local/share/uv/credentials/credentials.toml",
            ".cache/huggingface/stored_tokens",
            ".vnc/passwd",
            ".local/state/zsh/history",
            ".config/age/keys.txt",
            ".config/sops/age/keys.txt",
            ".config/gh/hosts.yml",
            ".config/glab-cli/config.yml",
            ".cargo/credentials.toml",
            ".pypirc",
            ".netrc",
            ".aws/credentials",
            ".azure/msal_token_cache.json",
            ".config/gcloud/credentials.db",
            ".bluemix/config.json",
            ".aliyun/config.json",
            ".config/exoscale/exoscale.toml",
            ".local/share/rbw/x",
            ".config/keepassxc/keepassxc.ini",
            ".config/google-chrome/Default/Login Data",
            ".config/mozilla/firefox/x/logins.json",
            ".var/app/org.mozilla.firefox/.mozilla/x",
            ".bash_history",
            ".local/share/fish/fish_history",
            ".mongodb/mongosh/mongosh_repl_history",
        ] {
            let path = home.join(place);
            assert!(all.iter().any(|hidden| path.starts_with(hidden)), "{place}");
        }
        for place in [
            ".cargo/registry/x",
            ".cargo/bin/rustc",
            ".rustup/x",
            ".config/nvim/init.lua",
            ".config/git/config",
            ".gitconfig",
            ".m2/repository/x",
            ".gradle/caches/x",
            ".npm/x",
            ".cache/pip/x",
            ".cache/huggingface/hub/x",
            ".ollama/models/x",
            ".android/debug.keystore",
            ".local/share/uv/python/x",
            ".claude/skills/x",
            ".local/bin/x",
            ".nvm/x",
            ".pyenv/x",
            ".julia/packages/x",
            ".pub-cache/hosted/x",
            ".terraform.d/plugins/x",
        ] {
            let path = home.join(place);
            assert!(
                !all.iter().any(|hidden| path.starts_with(hidden)),
                "builds need {place}"
            );
        }
    }

    #[test]
    fn filter_existing_finds_every_existing_path() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let all = secret_paths(Some(home));
        assert_eq!(
            filter_existing(&all).len(),
            all.iter()
                .filter(|path| path.symlink_metadata().is_ok())
                .count()
        );
        for place in list_home_secrets() {
            let path = home.join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if !path.exists() {
                fs::write(&path, "secret").unwrap();
            }
        }
        std::os::unix::fs::symlink("nowhere", home.join(".x")).unwrap();
        let mut wanted = all.clone();
        wanted.push(home.join(".x"));
        let found = filter_existing(&wanted);
        assert!(
            wanted[MACHINE_SECRETS.len()..]
                .iter()
                .all(|path| found.contains(&path))
        );
    }
}
