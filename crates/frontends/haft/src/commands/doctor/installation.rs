//! Checks how haft was installed, and only on request whether there is a newer release.

use std::path::Path;
use std::time::Duration;

use haft_rescue::{Check, CheckHealth};
use serde_json::Value;

use crate::exit::format_failure;

/// The URL that describes the newest release. The response is JSON with a `tag_name` field.
pub(super) const RELEASE_URL: &str = "https://api.github.com/repos/haft-agent/haft/releases/latest";

const VERSION: &str = env!("CARGO_PKG_VERSION");

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports the version, the path of the executable, and how it was installed.
pub(super) fn check_installation() -> Check {
    const NAME: &str = "installation";
    match std::env::current_exe().and_then(|path| path.canonicalize()) {
        Ok(path) => {
            let message = text!(
                "doctor-installed",
                by = detect_installation_method(&path),
                version = VERSION,
                path = path.display()
            );
            Check::new(NAME, CheckHealth::Ok, message)
        }
        Err(error) => Check::new(NAME, CheckHealth::Warning, error.to_string()),
    }
}

/// Returns how haft was installed, in one word. Packages write their kind to
/// `share/haft/installed-by` next to `bin`; cargo keeps a list of the programs it installed, and
/// marks its build folders.
fn detect_installation_method(binary: &Path) -> &'static str {
    let Some(root) = binary.parent().and_then(Path::parent) else {
        return "unknown";
    };
    let word = std::fs::read_to_string(root.join("share/haft/installed-by")).unwrap_or_default();
    if let Some(known) = ["archive", "deb", "make", "npm", "pypi"]
        .into_iter()
        .find(|known| *known == word.trim())
    {
        return known;
    }
    let marks = [
        (root.join(".crates.toml"), "cargo"),
        (binary.with_file_name(".cargo-lock"), "checkout"),
    ];
    marks
        .into_iter()
        .find(|(mark, _)| mark.is_file())
        .map_or("unknown", |(_, way)| way)
}

/// Checks whether there is a newer release than this one.
pub(super) async fn check_for_newer(address: &str) -> Check {
    const NAME: &str = "release";
    match fetch_newest(address).await {
        Ok(newest) if parse_version_numbers(&newest) > parse_version_numbers(VERSION) => {
            Check::new(
                NAME,
                CheckHealth::Ok,
                text!("doctor-newer", newest, version = VERSION),
            )
        }
        Ok(newest) => Check::new(NAME, CheckHealth::Ok, text!("doctor-newest", newest)),
        Err(error) => {
            let message = text!(
                "doctor-newer-failed",
                address,
                error = format_failure(&error)
            );
            Check::new(NAME, CheckHealth::Warning, message)
        }
    }
}

async fn fetch_newest(address: &str) -> anyhow::Result<String> {
    // Fails if a model's client has already installed a cryptography provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .user_agent("haft")
        .build()?;
    let text = client
        .get(address)
        .send()
        .await?
        .error_for_status()?
        .text()
        .await?;
    let release: Value = serde_json::from_str(&text)?;
    let name = release["tag_name"]
        .as_str()
        .ok_or_else(|| anyhow::anyhow!(text!("doctor-newer-no-name")))?;
    Ok(haft_text::sanitize(name.trim_start_matches('v')).into_owned())
}

/// Parses a version into its numbers. A part that is not a number counts as 0.
fn parse_version_numbers(version: &str) -> Vec<u64> {
    version
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installation_method_is_detected_from_surrounding_files() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("bin/haft");
        assert_eq!(detect_installation_method(&binary), "unknown");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/.cargo-lock"), "").unwrap();
        assert_eq!(detect_installation_method(&binary), "checkout");
        std::fs::write(folder.path().join(".crates.toml"), "").unwrap();
        assert_eq!(detect_installation_method(&binary), "cargo");
        std::fs::create_dir_all(folder.path().join("share/haft")).unwrap();
        for (word, expected) in [
            ("deb\n", "deb"),
            ("npm", "npm"),
            ("pypi\n", "pypi"),
            ("\u{1b}[31mother", "cargo"),
        ] {
            std::fs::write(folder.path().join("share/haft/installed-by"), word).unwrap();
            assert_eq!(detect_installation_method(&binary), expected, "{word:?}");
        }
        assert_eq!(detect_installation_method(Path::new("haft")), "unknown");
    }

    #[test]
    fn version_numbers_are_compared_as_numbers() {
        assert!(
            parse_version_numbers("0.10.0") > parse_version_numbers("0.9.9")
                && parse_version_numbers("1.0.0") > parse_version_numbers("0.99.0")
                && parse_version_numbers("0.1.0") == parse_version_numbers("0.1.0")
        );
    }
}
