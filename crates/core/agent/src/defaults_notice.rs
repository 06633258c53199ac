//! Notices about changed defaults, shown once to users of an older version.
//!
//! Invariant: a home folder whose conversations began with this version never gets a notice; any
//! other home folder gets each notice once.

use std::io;

use haft_engine::Notice;
use haft_files::Durability;

use crate::config::Config;
use crate::places::Places;

/// The current version of the defaults. A notice about a change is shown to users of all versions
/// before the change.
const EDITION: u32 = 7;

/// The maximum size of the file that records the version, in bytes.
const MAX_BYTES: u64 = 64;

const DEFAULTS_CHANGED: &str = "prompts and defaults have changed in this version: conversations cost less, and are shortened later and \
    by more at once. To have the old defaults back, set `context.reminders = \"after-tool-result:3\"`, \
    `context.compress = \"round-end\"`, `context.prune_to = 1.0`, and `context.compact_at = 0.8` with \
    `context.compact_of = \"window\"`. This is said once.";

const HOOKS_CONFINED: &str = "your hooks run in the sandbox of commands now: they write in the project and a private `/tmp` only, \
    and have no network. A hook that needs more is given it back by `sandbox = false` in its entry. This is said once.";

const DEFAULTS_BY_MODEL: &str = "how early old results are cleared, and whether they are compressed, now depends on the model's prices and \
    cache, because that costs less. `context.safe_zone = \"0.8\"` with `context.prune_to = 0.5` brings \
    the former defaults back. This is said once.";

const SERVERS_APART: &str = "your own MCP servers start in a private folder now, not in the project, and their programs are not looked \
    up in the project: the model could have put code there. A server that needs the project as its folder gets it with \
    `cwd = \"project\"` in its entry, and then runs in the sandbox. This is said once.";

const IN_VIEW: &str = "old results are cleared later now, and what the model is working on stays in view: results it has not \
    answered, and the newest reads of files being changed. Models with a long-lived cache clear from 100k tokens on instead of \
    48k, and each of `context.safe_zone`, `prune_to`, `prune_keep` and `compress` depends on the model unless it is set itself. \
    `haft config` shows the values in force. This is said once.";

const SMALL_WINDOWS: &str = "for models with a long-lived cache, old results are no longer compressed, because clearing alone \
    costs about as little there; for models with known prices and a small window, clearing stops at 0.7 of the safe zone \
    instead of 0.3. `context.compress` and `context.prune_to` set other values; `haft config` shows those in force. This is said \
    once.";

/// Returns the notices that are due, and records that they were shown.
pub(crate) fn take_due_notices(places: &Places, config: &Config) -> Vec<Notice> {
    let seen = haft_files::read_text(&places.seen_defaults_file(), MAX_BYTES)
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok());
    let seen = seen.unwrap_or_default();
    // If that cannot be recorded, the notices would be repeated at every start, so they are not
    // shown.
    if seen >= EDITION || !places.database_file().exists() || mark_defaults_as_seen(places).is_err()
    {
        return Vec::new();
    }
    let due = |edition, code, message: &str| {
        (seen < edition).then(|| Notice {
            code,
            message: message.to_owned(),
            failed: false,
        })
    };
    let hooks = due(3, "hooks_confined", HOOKS_CONFINED).filter(|_| !config.hooks.is_empty());
    // Users who restore the defaults of version 1 have thereby replaced those that depend on the
    // model.
    let by_model = due(4, "defaults_by_model", DEFAULTS_BY_MODEL).filter(|_| seen >= 2);
    let apart = due(5, "servers_apart", SERVERS_APART)
        .filter(|_| config.sections.contains_key("mcp_servers"));
    // Users of versions before 4 are told of these defaults by the notices above, and users of
    // versions before 6 of the newest ones by the notice of version 6.
    let in_view = due(6, "defaults_in_view", IN_VIEW).filter(|_| seen >= 4);
    let small_windows = due(7, "defaults_small_windows", SMALL_WINDOWS).filter(|_| seen >= 6);
    due(2, "defaults_changed", DEFAULTS_CHANGED)
        .into_iter()
        .chain(hooks)
        .chain(by_model)
        .chain(apart)
        .chain(in_view)
        .chain(small_windows)
        .collect()
}

/// Records that the user has seen all changes of the defaults up to the current version.
pub(crate) fn mark_defaults_as_seen(places: &Places) -> io::Result<()> {
    haft_files::replace_file(
        &places.seen_defaults_file(),
        format!("{EDITION}\n").as_bytes(),
        Durability::Process,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::environment::HostEnvironment;

    #[test]
    fn take_notifies_users_of_an_older_version_once() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::under_home(folder.path(), HostEnvironment::new([]));
        let taken = |places: &Places, config: &Config| -> Vec<&str> {
            take_due_notices(places, config)
                .into_iter()
                .map(|notice| notice.code)
                .collect()
        };
        let plain = Config::default();
        let mut hooked = Config::default();
        hooked.hooks.insert(haft_types::HookPoint::Stop, Vec::new());
        assert!(taken(&places, &plain).is_empty(), "nothing is there yet");
        drop(crate::store::open_store(&places, &Config::default(), &[]).unwrap());
        assert!(
            taken(&places, &hooked).is_empty(),
            "begun with this version"
        );
        std::fs::remove_file(places.seen_defaults_file()).unwrap();
        drop(crate::store::open_store(&places, &Config::default(), &[]).unwrap());
        assert_eq!(
            taken(&places, &plain),
            ["defaults_changed"],
            "an older version left it"
        );
        for key in [
            "context.reminders",
            "context.compress",
            "context.prune_to",
            "context.compact_at",
            "context.compact_of",
        ] {
            assert!(DEFAULTS_CHANGED.contains(key), "{key}");
        }
        assert!(taken(&places, &hooked).is_empty(), "once");
        for (left, codes) in [
            ("", vec!["defaults_changed", "hooks_confined"]),
            ("2\n", vec!["hooks_confined", "defaults_by_model"]),
            ("3\n", vec!["defaults_by_model"]),
            ("4\n", vec!["defaults_in_view"]),
            ("5\n", vec!["defaults_in_view"]),
            ("6\n", vec!["defaults_small_windows"]),
            ("7\n", vec![]),
        ] {
            std::fs::write(places.seen_defaults_file(), left).unwrap();
            assert_eq!(taken(&places, &hooked), codes, "{left:?}");
            assert!(taken(&places, &hooked).is_empty(), "once");
        }
        let mut served = Config::default();
        served
            .sections
            .insert("mcp_servers".into(), toml::Value::Table(toml::Table::new()));
        std::fs::write(places.seen_defaults_file(), "4\n").unwrap();
        assert_eq!(
            taken(&places, &served),
            ["servers_apart", "defaults_in_view"]
        );
    }
}
