//! The environment of commands: an allow-list, from which variables with secret names are always
//! removed.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Variables that child processes inherit unchanged.
const ALLOWED_VARIABLES: &[&str] = &[
    // User and locale
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    // Toolchains
    "ANDROID_HOME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CC",
    "CFLAGS",
    "CONDA_PREFIX",
    "CPATH",
    "CXX",
    "CXXFLAGS",
    "DENO_DIR",
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GOBIN",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "M2_HOME",
    "NODE_PATH",
    "NVM_DIR",
    "PKG_CONFIG_PATH",
    "PYENV_ROOT",
    "PYTHONPATH",
    "RBENV_ROOT",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "VIRTUAL_ENV",
    // Certificates
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    // Proxies
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Variables whose names start with one of these prefixes are inherited unchanged by child
/// processes.
const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// A variable whose name contains one of these parts is never inherited by child processes, even if
/// the allow-list contains the name.
const SECRET_NAME_PARTS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
];

/// Variables that are set for every child process, to turn off colors, pagers, and prompts.
const FIXED_VARIABLES: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Returns the environment for child processes, made from `all`: sorted by name, without duplicate
/// names and without entries that are not UTF-8.
///
/// ```
/// let all = [("HOME", "/home/me"), ("OPENAI_API_KEY", "…"), ("EDITOR", "vi")];
/// let child = haft_sandbox::child_environment(all);
/// assert!(child.contains(&("HOME".to_owned(), "/home/me".to_owned())));
/// assert!(!child.iter().any(|(name, _)| name == "OPENAI_API_KEY" || name == "EDITOR"));
/// ```
pub fn child_environment<Text: Into<OsString>>(
    all: impl IntoIterator<Item = (Text, Text)>,
) -> Vec<(String, String)> {
    let readable = |text: Text| text.into().into_string().ok();
    let mut child: BTreeMap<String, String> = all
        .into_iter()
        .filter_map(|(name, value)| Some((readable(name)?, readable(value)?)))
        .filter(|(name, value)| is_passed_on(name, value))
        .collect();
    child
        .entry("PATH".to_owned())
        .or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    for (name, value) in FIXED_VARIABLES {
        child.insert((*name).to_owned(), (*value).to_owned());
    }
    child.into_iter().collect()
}

fn is_passed_on(name: &str, value: &str) -> bool {
    let allowed = ALLOWED_VARIABLES.contains(&name)
        || ALLOWED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix));
    allowed && !is_secret_name(name) && !(is_proxy_variable(name) && value.contains('@'))
}

/// Returns the values of variables with secret names, which must never be stored or shown. Leaves
/// out paths, short or ordinary words, values with spaces, and variables such as `GIT_AUTHOR_NAME`,
/// which are named after an author.
pub fn secret_values<Text: Into<OsString>>(
    all: impl IntoIterator<Item = (Text, Text)>,
) -> Vec<String> {
    let readable = |text: Text| text.into().into_string().ok();
    let all = all
        .into_iter()
        .filter_map(|(name, value)| Some((readable(name)?, readable(value)?)));
    let all = all.filter(|(name, value)| {
        is_secret_name(name) && !name.contains("AUTHOR") && looks_secret(value)
    });
    all.map(|(_, value)| value).collect()
}

fn looks_secret(value: &str) -> bool {
    let random = value.len() >= 16 || value.bytes().any(|c| c.is_ascii_digit());
    value.len() >= 8 && random && !value.starts_with('/') && !value.contains(char::is_whitespace)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAME_PARTS.iter().any(|secret| name.contains(secret))
}

/// True if `name` is a proxy variable. The address in such a variable may contain a password before
/// an `@`.
fn is_proxy_variable(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_PROXY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(all: &[(&str, &str)]) -> Vec<(String, String)> {
        child_environment(all.iter().copied())
    }

    fn value<'a>(child: &'a [(String, String)], name: &str) -> Option<&'a str> {
        child
            .iter()
            .find(|(candidate, _)| candidate == name)
            .map(|(_, value)| value.as_str())
    }

    #[test]
    fn child_environment_keeps_variables_commands_need() {
        let child = child(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("XDG_CACHE_HOME", "/c"),
            ("CARGO_HOME", "/cargo"),
        ]);
        assert_eq!(value(&child, "PATH"), Some("/bin"));
        assert_eq!(value(&child, "LC_ALL"), Some("C"));
        assert_eq!(value(&child, "XDG_CACHE_HOME"), Some("/c"));
        assert_eq!(value(&child, "CARGO_HOME"), Some("/cargo"));
    }

    #[test]
    fn child_environment_removes_secrets() {
        let secrets = [
            "ANTHROPIC_API_KEY",
            "XDG_TOKEN",
            "LC_SECRET_X",
            "GITHUB_TOKEN",
            "lc_password",
            "LC_APIkeys",
        ];
        let all: Vec<_> = secrets.iter().map(|name| (*name, "s3cret")).collect();
        assert!(!child(&all).iter().any(|(_, value)| value == "s3cret"));
    }

    #[test]
    fn child_environment_removes_proxies_with_passwords() {
        let child = child(&[
            ("http_proxy", "http://me:pw@proxy:1"),
            ("HTTPS_PROXY", "http://proxy:1"),
        ]);
        assert_eq!(value(&child, "http_proxy"), None);
        assert_eq!(value(&child, "HTTPS_PROXY"), Some("http://proxy:1"));
    }

    #[test]
    fn child_environment_disables_pagers_prompts_and_colors() {
        let child = child(&[("TERM", "xterm-256color"), ("PAGER", "less")]);
        assert_eq!(value(&child, "TERM"), Some("dumb"));
        assert_eq!(value(&child, "PAGER"), Some("cat"));
        assert_eq!(value(&child, "GIT_TERMINAL_PROMPT"), Some("0"));
        assert!(value(&child, "PATH").is_some());
    }

    #[test]
    fn secret_values_are_those_of_secret_names() {
        let all = [
            ("OPENAI_API_KEY", "sk-123456789"),
            ("DB_PASSWORD", "correct-horse-battery"),
            ("SSH_AUTH_SOCK", "/tmp/ssh-1/agent.1"),
            ("GIT_AUTHOR_NAME", "Somebody1234 Else"),
            ("GIT_AUTHOR_EMAIL", "somebody1@example.com"),
            ("MY_TOKEN", "short"),
            ("KEYBOARD", "qwertzde"),
            ("HOME", "/home/me12345678"),
        ];
        assert_eq!(
            secret_values(all),
            ["sk-123456789", "correct-horse-battery"]
        );
    }
}
