//! Tells those who come from an older version, once, that prompts and defaults have changed.
//!
//! Invariant: a home whose conversations this version began never gets the notice; any other gets it once.

use std::io;

use haft_engine::Notice;

use crate::places::Places;

/// The edition of prompts and defaults. Another one is told of again.
const EDITION: &str = "2";

const CHANGED: &str = "prompts and defaults have changed in this version: conversations cost less, and are shortened later and \
    by more at once. To have the old defaults back, set `context.reminders = \"after-tool-result:3\"`, \
    `context.compress = \"round-end\"`, `context.prune_to = 1.0`, and `context.compact_at = 0.8` with \
    `context.compact_of = \"window\"`. This is said once.";

/// The notice, where it is due. From now on it is not.
pub(crate) fn take(places: &Places) -> Option<Notice> {
    let told = std::fs::read_to_string(places.defaults_file()).is_ok_and(|told| told.trim() == EDITION);
    if told || !places.database().exists() {
        return None;
    }
    // Where that cannot be kept, it would be said again and again.
    keep(places).ok()?;
    Some(Notice { code: "defaults_changed", message: CHANGED.to_owned() })
}

/// Notes that there is nothing to tell: the conversations begin with this version.
pub(crate) fn keep(places: &Places) -> io::Result<()> {
    std::fs::create_dir_all(&places.state)?;
    std::fs::write(places.defaults_file(), format!("{EDITION}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::environment::HostEnvironment;

    #[test]
    fn an_older_home_is_told_once_and_a_new_one_never() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::under(folder.path(), HostEnvironment::new([]));
        assert_eq!(take(&places), None, "nothing is there yet");
        drop(crate::store::open_store(&places, &Config::default(), &[]).unwrap());
        assert_eq!(take(&places), None, "begun with this version");
        std::fs::remove_file(places.defaults_file()).unwrap();
        drop(crate::store::open_store(&places, &Config::default(), &[]).unwrap());
        let told = take(&places).expect("an older version left it");
        for key in
            ["context.reminders", "context.compress", "context.prune_to", "context.compact_at", "context.compact_of"]
        {
            assert!(told.message.contains(key), "{}", told.message);
        }
        assert_eq!(take(&places), None, "once");
    }
}
