//! Damaged files: whatever is done to a database, nothing panics, what is whole is salvaged, and
//! nothing is made up.
//!
//! Which pages a message stands on is found without any knowledge of the format: its words carry a
//! mark in every part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use haft_rescue::{CheckHealth, StoreFiles, examine_store, salvage_conversations};
use haft_store::{
    ConversationScope, NewConversation, NewFork, Revision, SearchQuery, SqliteStore, Store,
    StoreError, find_damaged_copies,
};
use haft_testkit::support::Random;
use haft_types::Part;

use crate::Outcome;
use crate::texts::{self, clock, conversation, id, message, words};
use crate::worker::config;

const PAGE: usize = 4_096;

pub(crate) fn run(count: u64, seed: u64) -> Vec<(u64, Outcome)> {
    let sound = match Sound::make() {
        Ok(sound) => sound,
        Err(problem) => return vec![(seed, Err(problem))],
    };
    let mut tally: BTreeMap<&'static str, u64> = BTreeMap::new();
    // A panic is what is looked for; it is told with its case.
    std::panic::set_hook(Box::new(|_| {}));
    let outcomes = (0..count)
        .map(|index| {
            let seed = seed.wrapping_add(index);
            let case = catch_unwind(AssertUnwindSafe(|| case(&sound, seed, &mut tally)));
            (seed, case.unwrap_or_else(|_| Err("it panicked".into())))
        })
        .collect();
    let _ = std::panic::take_hook();
    for (what, count) in tally {
        println!("{count:>8} {what}");
    }
    outcomes
}

/// A sound database, closed and as a kill leaves it.
struct Sound {
    closed: Image,
    killed: Image,
}

/// The files of a database, and which places each message stands on.
struct Image {
    database: Vec<u8>,
    log: Vec<u8>,
    /// By number and revision: the pages of the database and of the log with its words.
    pages: BTreeMap<(u32, u32), BTreeSet<(Which, usize)>>,
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    Database,
    Log,
}

impl Sound {
    fn make() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("conversations.db");
        let store =
            SqliteStore::open(&path, &config(), clock()).map_err(|error| error.to_string())?;
        crate::block_on(fill(&store))?.map_err(|error| error.to_string())?;
        let killed = Image::read(&path)?;
        drop(store);
        Ok(Self {
            closed: Image::read(&path)?,
            killed,
        })
    }
}

async fn fill(store: &SqliteStore) -> Result<(), StoreError> {
    let mut number = 0;
    for name in ["a", "b", "c"] {
        store
            .create(NewConversation::new(conversation(name), "p"))
            .await?;
        for _ in 0..25 {
            number += 1;
            store
                .append_message(&conversation(name), &message(number))
                .await?;
        }
    }
    let content = Some(vec![Part::from_text(words(3, 1))]);
    store
        .revise_message(
            &conversation("a"),
            id(3),
            Revision {
                content,
                ..Revision::default()
            },
        )
        .await?;
    store
        .fork(&conversation("a"), NewFork::new(conversation("fork")))
        .await?;
    for number in 200..210 {
        store
            .append_message(&conversation("fork"), &message(number))
            .await?;
    }
    Ok(())
}

impl Image {
    fn read(path: &Path) -> Result<Self, String> {
        let database = std::fs::read(path).map_err(|error| error.to_string())?;
        let log = std::fs::read(log_of(path)).unwrap_or_default();
        let mut pages: BTreeMap<(u32, u32), BTreeSet<(Which, usize)>> = BTreeMap::new();
        for (one, at) in marks(&database) {
            pages
                .entry(one)
                .or_default()
                .insert((Which::Database, at / PAGE));
        }
        for (one, at) in marks(&log) {
            pages
                .entry(one)
                .or_default()
                .insert((Which::Log, frame_of(at)));
        }
        // 75 messages, ten of the fork, one revision.
        if pages.len() != 86 {
            return Err(format!("{} messages were found in the file", pages.len()));
        }
        Ok(Self {
            database,
            log,
            pages,
        })
    }
}

/// Every mark of a message, whose it is and where.
fn marks(bytes: &[u8]) -> impl Iterator<Item = ((u32, u32), usize)> + '_ {
    let starts = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'[')
        .map(|(at, _)| at);
    starts.filter_map(|at| {
        let text = &bytes[at + 1..bytes.len().min(at + 20)];
        let text = str::from_utf8(&text[..text.iter().position(|byte| *byte == b' ')?]).ok()?;
        let (number, revision) = text.split_once('.')?;
        Some(((number.parse().ok()?, revision.parse().ok()?), at))
    })
}

/// The frame of the log that holds this byte.
fn frame_of(at: usize) -> usize {
    at.saturating_sub(32) / (PAGE + 24)
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn case(sound: &Sound, seed: u64, tally: &mut BTreeMap<&'static str, u64>) -> Outcome {
    let mut random = Random::new(seed);
    let (image, kind) = if random.below(3) == 0 {
        (&sound.killed, "killed")
    } else {
        (&sound.closed, "closed")
    };
    let mut database = image.database.clone();
    let mut log = image.log.clone();
    let mut hit = BTreeSet::new();
    let what = damage(&mut database, &mut log, &mut random, &mut hit);
    *tally.entry(what).or_default() += 1;
    *tally
        .entry(if kind == "killed" {
            "with a log"
        } else {
            "without a log"
        })
        .or_default() += 1;

    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("conversations.db");
    std::fs::write(&path, &database).map_err(|error| error.to_string())?;
    if !log.is_empty() {
        std::fs::write(log_of(&path), &log).map_err(|error| error.to_string())?;
    }
    let whole: BTreeSet<(u32, u32)> = image
        .pages
        .iter()
        .filter(|(_, pages)| pages.is_disjoint(&hit))
        .map(|(one, _)| *one)
        .collect();
    let lost = image.pages.len() - whole.len();
    let log_hit = hit.iter().any(|(file, _)| *file == Which::Log);
    let certain = log_hit && shows_its_damage(&image.log, &log);
    if certain {
        *tally
            .entry("cases with a log that shows its damage")
            .or_default() += 1;
    }
    if lost > 0 {
        *tally.entry("cases with a message hit").or_default() += 1;
    }
    check_salvage(&path, &whole).map_err(|problem| format!("{what} ({kind}): {problem}"))?;
    use_everything(&path).map_err(|problem| format!("{what} ({kind}): {problem}"))?;
    if certain {
        // Opening it made SQLite forget what stands behind the damage; it must have been kept.
        let copies = find_damaged_copies(&path);
        let [copy] = copies.as_slice() else {
            return Err(format!("{what} ({kind}): {} copies are kept", copies.len()));
        };
        check_salvage(copy, &whole)
            .map_err(|problem| format!("{what} ({kind}), the copy: {problem}"))?;
    }
    // The end of a log that was hit looks like a kill in the middle of a write.
    let expected = if certain {
        Expected::Damage
    } else if lost > 0 && !log_hit {
        Expected::DamageOrAll
    } else {
        Expected::Anything
    };
    check_doctor(&path, expected).map_err(|problem| format!("{what} ({kind}): {problem}"))
}

/// Whether behind the first damaged frame of a log there is a whole end of a transaction, and
/// behind that another whole frame: the damaged one was on the disk before those were written.
fn shows_its_damage(before: &[u8], after: &[u8]) -> bool {
    const FRAME: usize = PAGE + 24;
    let frames = |bytes: &[u8]| {
        bytes
            .get(32..)
            .unwrap_or_default()
            .chunks_exact(FRAME)
            .map(<[u8]>::to_vec)
            .collect()
    };
    let (before_frames, after_frames): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
        (frames(before), frames(after));
    let whole = |at: usize| after_frames.get(at) == before_frames.get(at);
    // Frames of an earlier use of the file do not count.
    let current: Vec<usize> = (0..before_frames.len())
        .filter(|at| before_frames[*at][8..16] == before[16..24])
        .collect();
    let first = if before.get(..32) == after.get(..32) {
        current.iter().copied().find(|at| !whole(*at))
    } else {
        Some(0)
    };
    let Some(first) = first else { return false };
    let mut behind = current.into_iter().filter(|at| *at >= first && whole(*at));
    let ends = |at: usize| before_frames[at][4..8] != [0; 4];
    behind.by_ref().any(ends) && behind.next().is_some()
}

/// What the doctor is expected to find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Damage,
    /// Damage, unless every message can be read all the same.
    DamageOrAll,
    Anything,
}

/// Does one kind of damage, and says which pages it hit.
fn damage(
    database: &mut Vec<u8>,
    log: &mut Vec<u8>,
    random: &mut Random,
    hit: &mut BTreeSet<(Which, usize)>,
) -> &'static str {
    let in_log = !log.is_empty() && random.below(2) == 0;
    let (bytes, file) = if in_log {
        (log, Which::Log)
    } else {
        (database, Which::Database)
    };
    let length = bytes.len();
    let mut note = |from: usize, to: usize| {
        let place = |at: usize| {
            if file == Which::Log {
                frame_of(at)
            } else {
                at / PAGE
            }
        };
        hit.extend(
            (place(from)..=place(to.saturating_sub(1).max(from))).map(|place| (file, place)),
        );
    };
    match random.below(7) {
        0 => {
            let page = random.below(length.div_ceil(PAGE)) * PAGE;
            let end = length.min(page + PAGE);
            bytes[page..end].fill(0);
            note(page, end);
            "a page of zeros"
        }
        1 => {
            let start = random.below(length);
            let end = length.min(start + 1 + random.below(20_000));
            for byte in &mut bytes[start..end] {
                *byte = random.next_u64() as u8;
            }
            note(start, end);
            "noise"
        }
        2 => {
            for _ in 0..=random.below(30) {
                let at = random.below(length);
                bytes[at] ^= 1 << random.below(8);
                note(at, at + 1);
            }
            "flipped bits"
        }
        3 => {
            let end = random.below(length);
            bytes.truncate(end);
            note(end, length);
            "cut short"
        }
        4 => {
            let pages = length / PAGE;
            let one = random.below(pages) * PAGE;
            let other = random.below(pages) * PAGE;
            for at in 0..PAGE {
                bytes.swap(one + at, other + at);
            }
            note(one, one + PAGE);
            note(other, other + PAGE);
            "two pages swapped"
        }
        5 => {
            let end = length.min(100 + random.below(PAGE));
            bytes[..end].fill(0xa5);
            note(0, end);
            "the header gone"
        }
        _ => {
            // As a disk that lost what was behind a border.
            let start = random.below(length) / SECTORS * SECTORS;
            let end = length.min(start + SECTORS * (1 + random.below(64)));
            bytes[start..end].fill(0xff);
            note(start, end);
            "sectors gone"
        }
    }
}

const SECTORS: usize = 512;

/// Everything whole is given out, and nothing that was never said.
fn check_salvage(path: &Path, whole: &BTreeSet<(u32, u32)>) -> Outcome {
    let mut found = BTreeSet::new();
    let salvaged = salvage_conversations::<StoreError>(path, |one| {
        found.extend(
            one.document
                .messages
                .iter()
                .map(|message| (message.message_id, message.joined_text())),
        );
        Ok(())
    });
    salvaged.map_err(|error| format!("salvage: {error}"))?;
    let mut read = BTreeSet::new();
    for (message_id, text) in found {
        let said = texts::read(&text).ok_or_else(|| format!("message {message_id} was made up"))?;
        if id(said.0) != message_id {
            return Err(format!("message {message_id} has the words of {}", said.0));
        }
        read.insert(said);
    }
    // A revised message is given out in its newest revision, or in the one before where that is
    // lost.
    let given = |(number, revision): &(u32, u32)| {
        read.contains(&(*number, *revision)) || (*revision == 0 && read.contains(&(*number, 1)))
    };
    match whole.iter().find(|one| !given(one)) {
        Some((number, revision)) => Err(format!(
            "message {number}.{revision} is whole and was not salvaged"
        )),
        None => Ok(()),
    }
}

/// Uses the store as if nothing had happened: errors are fine, anything else is not.
fn use_everything(path: &Path) -> Outcome {
    let Ok(store) = SqliteStore::open(path, &config(), clock()) else {
        return Ok(());
    };
    let used: Result<(), StoreError> = crate::block_on(async {
        let _ = store.list(ConversationScope::Everywhere).await;
        for name in ["a", "b", "c", "fork"] {
            let _ = store.messages(&conversation(name)).await;
            let _ = store.export(&conversation(name)).await;
            let _ = store.logged_requests(&conversation(name)).await;
        }
        let _ = store
            .search(SearchQuery {
                text: "快",
                scope: ConversationScope::Everywhere,
                limit: 3,
            })
            .await;
        // A thread that died would say so here.
        match store
            .append_message(&conversation("a"), &message(9_999))
            .await
        {
            Err(StoreError::Closed) => Err(StoreError::Closed),
            Ok(()) | Err(_) => Ok(()),
        }
    })?;
    used.map_err(|error| format!("using it: {error}"))
}

/// The doctor never panics, and does not call a store sound that lost a message.
fn check_doctor(path: &Path, expected: Expected) -> Outcome {
    let patient = StoreFiles {
        database: path.to_path_buf(),
        backups: path.with_file_name("backups"),
        versions: path.with_file_name("versions"),
        config: config(),
        clock: clock(),
    };
    let checks = examine_store(&patient);
    let damaged = checks
        .iter()
        .any(|check| check.health == CheckHealth::Damaged);
    let readable = crate::block_on(async {
        let store = SqliteStore::open(path, &config(), clock()).ok()?;
        let mut there = BTreeSet::new();
        for name in ["a", "b", "c", "fork"] {
            let messages = store.messages(&conversation(name)).await.ok()?;
            there.extend(
                messages
                    .iter()
                    .filter_map(|message| texts::read(&message.joined_text())),
            );
        }
        Some(there.len())
    })?;
    // 75 messages, ten of the fork, the revision in one of them; and the one that was just
    // appended.
    let all_there = readable.is_some_and(|count| count >= 86);
    match expected {
        Expected::Anything => Ok(()),
        _ if damaged => Ok(()),
        Expected::DamageOrAll if all_there => Ok(()),
        Expected::Damage | Expected::DamageOrAll => Err(format!(
            "{readable:?} of 86 can be read, and the doctor finds nothing: {checks:?}"
        )),
    }
}
