//! The names of backups, and the selection of the backups to keep. The store itself creates and
//! restores backups.
//!
//! A name begins with a sequence number that only increases, so the newest backup is known even if
//! the clock was set back.

use std::path::{Path, PathBuf};

use haft_types::Timestamp;
use serde::Serialize;

/// A backup copy of the database. Its JSON form is that of `conversations backup list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Backup {
    /// The name of the backup file, which contains its number and time.
    pub name: String,
    /// The time at which the backup was created.
    pub made_at: Timestamp,
    /// The size of the backup file in bytes.
    pub bytes: u64,
    /// The path of the backup file.
    pub path: PathBuf,
    /// The sequence number; newer backups have higher numbers.
    #[serde(skip)]
    pub(crate) number: u64,
    /// The fingerprint of the database at the time of the backup. It is [`REPLACED_MARK`] for a
    /// database that a restore replaced.
    #[serde(skip)]
    pub(crate) seen: String,
}

/// Marks a copy of the database that a restore replaced. The copy is kept like a backup but never
/// counts as a copy of the current database.
pub(crate) const REPLACED_MARK: &str = "replaced";

const PREFIX: &str = "haft-";
const SUFFIX: &str = ".db";
const TIME_FORMAT: &str = "%Y%m%dT%H%M%SZ";

impl Backup {
    /// Creates the entry of a new backup. The size is set to 0, because the file does not exist
    /// yet.
    pub(crate) fn new(folder: &Path, number: u64, made_at: Timestamp, seen: &str) -> Self {
        let name = format!(
            "{PREFIX}{number:06}-{}-{seen}{SUFFIX}",
            made_at.strftime(TIME_FORMAT)
        );
        Self {
            path: folder.join(&name),
            name,
            made_at,
            bytes: 0,
            number,
            seen: seen.to_owned(),
        }
    }

    /// True if the backup is the copy of a database that a restore replaced.
    pub fn is_replaced_database(&self) -> bool {
        self.seen == REPLACED_MARK
    }

    /// Parses the file name of a backup. Returns `None` if the name has another form.
    pub(crate) fn from_file_name(folder: &Path, name: &str, bytes: u64) -> Option<Self> {
        let middle = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        let mut pieces = middle.splitn(3, '-');
        let number = pieces.next()?;
        let time = pieces.next()?;
        let seen = pieces.next()?;
        // `strptime` requires an offset, but the text only contains `Z`.
        let made_at = jiff::civil::DateTime::strptime(TIME_FORMAT, time)
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()?;
        Some(Self {
            name: name.to_owned(),
            made_at: made_at.timestamp(),
            bytes,
            path: folder.join(name),
            number: number.parse().ok()?,
            seen: seen.to_owned(),
        })
    }
}

/// The limits on the number and size of the backups that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackupLimits {
    /// The maximum number of backups.
    pub(crate) max_count: usize,
    /// The maximum size of all backups together.
    pub(crate) max_bytes: u64,
}

/// Returns the backups that must be removed. `backups` must be sorted, oldest first.
///
/// All backups in the newer half are kept. In the older half, the backups closest in time to their
/// neighbors are removed first, so that the remaining backups reach far back instead of covering
/// only the last few runs. If the total size is too large, the oldest backups are removed. The
/// newest backup is never removed.
pub(crate) fn select_expired(mut backups: Vec<Backup>, keep: BackupLimits) -> Vec<Backup> {
    let mut removed = Vec::new();
    while backups.len() > keep.max_count.max(1) {
        let thinned = backups.len() - keep.max_count.max(1).div_ceil(2);
        let victim = (1..thinned).min_by_key(|index| {
            let before = backups[index - 1].made_at;
            let after = backups[index + 1].made_at;
            after.duration_since(before).abs()
        });
        removed.push(backups.remove(victim.unwrap_or(0)));
    }
    while backups.len() > 1
        && backups.iter().map(|backup| backup.bytes).sum::<u64>() > keep.max_bytes
    {
        removed.push(backups.remove(0));
    }
    removed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn backup(number: u64, minute: i64, bytes: u64) -> Backup {
        let made_at = Timestamp::from_second(1_794_736_800 + minute * 60).unwrap();
        let name = Backup::new(Path::new("/b"), number, made_at, "0011aabb").name;
        Backup::from_file_name(Path::new("/b"), &name, bytes).unwrap()
    }

    #[test]
    fn backup_name_holds_number_time_and_id() {
        let one = backup(7, 3, 9);
        assert_eq!(one.name, "haft-000007-20261115T100300Z-0011aabb.db");
        assert_eq!(
            (one.number, one.bytes, one.seen.as_str()),
            (7, 9, "0011aabb")
        );
        assert_eq!(
            one.path,
            Path::new("/b/haft-000007-20261115T100300Z-0011aabb.db")
        );
        for other in [
            "conversations.db",
            "haft-x-20261115T100300Z-a.db",
            "haft-000007-y-a.db",
            "notes",
        ] {
            assert_eq!(
                Backup::from_file_name(Path::new("/b"), other, 0),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn to_remove_keeps_ten_backups_that_reach_far_back() {
        let keep = BackupLimits {
            max_count: 10,
            max_bytes: u64::MAX,
        };
        let mut kept: Vec<Backup> = Vec::new();
        for n in 0..1_000 {
            kept.push(backup(n, n.cast_signed(), 1));
            let gone: BTreeSet<u64> = select_expired(kept.clone(), keep)
                .iter()
                .map(|backup| backup.number)
                .collect();
            assert!(!gone.contains(&n), "the newest was removed");
            kept.retain(|backup| !gone.contains(&backup.number));
            assert!(kept.len() <= 10);
        }
        let numbers: Vec<u64> = kept.iter().map(|backup| backup.number).collect();
        assert_eq!(numbers.len(), 10);
        assert_eq!(numbers[5..], [995, 996, 997, 998, 999], "{numbers:?}");
        let steps: Vec<u64> = numbers[..6]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert!(
            steps.iter().all(|step| *step >= 50),
            "spread out: {numbers:?}"
        );
    }

    #[test]
    fn to_remove_drops_the_oldest_above_the_size_limit() {
        let all: Vec<Backup> = (0..4).map(|n| backup(n, n.cast_signed(), 10)).collect();
        let gone = select_expired(
            all.clone(),
            BackupLimits {
                max_count: 10,
                max_bytes: 25,
            },
        );
        assert_eq!(
            gone.iter().map(|backup| backup.number).collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(
            select_expired(
                all,
                BackupLimits {
                    max_count: 10,
                    max_bytes: 1
                }
            )
            .len(),
            3,
            "the newest stays"
        );
    }

    #[test]
    fn to_remove_orders_by_number_despite_a_clock_set_back() {
        let all = vec![backup(1, 100, 1), backup(2, 50, 1), backup(3, 0, 1)];
        let gone = select_expired(
            all,
            BackupLimits {
                max_count: 1,
                max_bytes: u64::MAX,
            },
        );
        assert!(
            gone.iter().all(|backup| backup.number < 3),
            "the newest by number stays: {gone:?}"
        );
    }
}
