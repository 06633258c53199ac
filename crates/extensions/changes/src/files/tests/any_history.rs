//! Property tests: after any sequence of changes by tools, commands and others, undo reverts
//! exactly haft's changes, byte for byte, and redo restores them.
//!
//! The expected state is computed from snapshots of the tree, independently of the tested code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::desk::Desk;
use crate::files::{Mode, Target};

/// Few names, so that operations collide: `d` is a file, a link and a folder in turn.
const NAMES: [&str; 4] = ["a", "d", "d/x", "d/y"];
/// Number of contents: three lines that change independently, separated by unchanged lines, so that
/// merges are possible.
const CONTENTS: u8 = 8;

fn content(number: u8) -> String {
    let line = |bit: u8| if number & bit == 0 { "off" } else { "on" };
    format!("{}\n-\n-\n{}\n-\n-\n{}\n", line(1), line(2), line(4))
}

#[derive(Clone, Debug)]
enum Deed {
    Write(usize, u8),
    Delete(usize),
    Mode(usize, bool),
    Link(usize, u8),
    Move(usize, usize),
    Folder(usize),
}

#[derive(Clone, Debug)]
enum Event {
    /// A tool writes or deletes one file.
    Tool(Deed),
    /// A command performs several operations.
    Command(Vec<Deed>),
    /// Another program performs an operation.
    Other(Deed),
}

fn deed() -> impl Strategy<Value = Deed> {
    let name = 0..NAMES.len();
    prop_oneof![
        4 => (name.clone(), 0..CONTENTS).prop_map(|(name, content)| Deed::Write(name, content)),
        2 => name.clone().prop_map(Deed::Delete),
        1 => (name.clone(), any::<bool>()).prop_map(|(name, narrow)| Deed::Mode(name, narrow)),
        1 => (name.clone(), 0..2u8).prop_map(|(name, target)| Deed::Link(name, target)),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Deed::Move(from, to)),
        1 => name.prop_map(Deed::Folder),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let name = 0..NAMES.len();
    let edit = prop_oneof![
        3 => (name.clone(), 0..CONTENTS).prop_map(|(name, content)| Deed::Write(name, content)),
        1 => name.prop_map(Deed::Delete),
    ];
    prop_oneof![
        3 => edit.prop_map(Event::Tool),
        3 => prop::collection::vec(deed(), 1..4).prop_map(Event::Command),
        2 => deed().prop_map(Event::Other),
    ]
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
}

/// True if every existing ancestor is a folder and no link, so that a write does not follow a link.
fn is_reachable(desk: &Desk, name: &str) -> bool {
    let parts: Vec<_> = Path::new(name)
        .ancestors()
        .skip(1)
        .filter(|part| !part.as_os_str().is_empty())
        .collect();
    parts.iter().all(|part| {
        let path = desk.path(&part.display().to_string());
        is_folder(&path) || path.symlink_metadata().is_err()
    })
}

/// Performs the operation if it is possible.
fn perform(desk: &Desk, deed: &Deed) {
    let path = |name: usize| desk.path(NAMES[name]);
    match *deed {
        Deed::Write(name, number) => {
            let is_free = path(name)
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_file())
                || path(name).symlink_metadata().is_err();
            if is_free && is_reachable(desk, NAMES[name]) {
                desk.write(NAMES[name], &content(number));
            }
        }
        Deed::Delete(name) if is_folder(&path(name)) => drop(fs::remove_dir_all(path(name))),
        Deed::Delete(name) => drop(fs::remove_file(path(name))),
        Deed::Mode(name, narrow) => {
            if let Ok(metadata) = path(name).symlink_metadata()
                && !metadata.is_symlink()
                && is_reachable(desk, NAMES[name])
            {
                let mode = match (metadata.is_dir(), narrow) {
                    (true, true) => 0o700,
                    (false, true) => 0o600,
                    (true | false, false) => 0o755,
                };
                desk.set_mode(NAMES[name], mode);
            }
        }
        Deed::Link(name, target) => {
            if is_reachable(desk, NAMES[name])
                && is_folder(path(name).parent().unwrap())
                && !is_folder(&path(name))
            {
                let _ = fs::remove_file(path(name));
                symlink(format!("target {target}"), path(name)).unwrap();
            }
        }
        Deed::Move(from, to) => {
            let inside = path(to).starts_with(path(from));
            if !inside && is_reachable(desk, NAMES[from]) && is_reachable(desk, NAMES[to]) {
                drop(fs::rename(path(from), path(to)));
            }
        }
        Deed::Folder(name) => {
            if is_reachable(desk, NAMES[name]) && path(name).symlink_metadata().is_err() {
                drop(fs::create_dir(path(name)).map(|()| desk.set_mode(NAMES[name], 0o755)));
            }
        }
    }
}

type Snapshot = BTreeMap<String, String>;

/// One change of a path.
#[derive(Clone, Debug)]
struct Happened {
    by_haft: bool,
    before: Option<String>,
    after: Option<String>,
}

/// The changes of each path, and the tree before and after all of them.
struct History {
    desk: Desk,
    beginning: Snapshot,
    end: Snapshot,
    by_path: BTreeMap<String, Vec<Happened>>,
}

fn play_history(beginning: &[Deed], events: &[Event]) -> History {
    let desk = Desk::new();
    for deed in beginning {
        perform(&desk, deed);
    }
    let beginning = desk.snapshot();
    let mut history = History {
        desk,
        end: beginning.clone(),
        beginning,
        by_path: BTreeMap::new(),
    };
    for (number, event) in events.iter().enumerate() {
        let desk = &history.desk;
        let call = number.to_string();
        let by_haft = match event {
            Event::Tool(deed) => {
                let (Deed::Write(name, _) | Deed::Delete(name)) = *deed else {
                    continue;
                };
                // Tools change files at paths without links.
                if is_folder(&desk.path(NAMES[name])) || !is_reachable(desk, NAMES[name]) {
                    continue;
                }
                desk.edit(&call, &[NAMES[name]], |desk| perform(desk, deed));
                true
            }
            Event::Command(deeds) => {
                desk.command(&call, |desk| {
                    for deed in deeds {
                        perform(desk, deed);
                    }
                });
                true
            }
            Event::Other(deed) => {
                perform(desk, deed);
                false
            }
        };
        let now = desk.snapshot();
        let names: BTreeSet<_> = history.end.keys().chain(now.keys()).cloned().collect();
        for name in names {
            if history.end.get(&name) != now.get(&name) {
                let before = history.end.get(&name).cloned();
                let after = now.get(&name).cloned();
                history.by_path.entry(name).or_default().push(Happened {
                    by_haft,
                    before,
                    after,
                });
            }
        }
        history.end = now;
    }
    history
}

fn parent(name: &str) -> Option<String> {
    Path::new(name)
        .parent()
        .map(|parent| parent.display().to_string())
        .filter(|parent| !parent.is_empty())
}

fn is_folder_text(held: Option<&String>) -> bool {
    held.is_some_and(|held| held.starts_with("folder"))
}

/// Returns the tree after an undo of everything, and the paths that it must report as conflicts.
fn expected_after_undo(history: &History) -> (Snapshot, BTreeSet<String>) {
    let now = &history.end;
    let mut wanted: BTreeMap<String, Option<String>> = now
        .iter()
        .map(|(name, held)| (name.clone(), Some(held.clone())))
        .collect();
    let mut conflicts = BTreeSet::new();
    for (name, happened) in &history.by_path {
        let by_haft: Vec<_> = happened.iter().filter(|one| one.by_haft).collect();
        let Some(first) = by_haft.first() else {
            continue;
        };
        let original = &first.before;
        if now.get(name) == original.as_ref() {
            continue;
        }
        // A change by others that was reverted cannot be detected.
        let found = by_haft
            .iter()
            .skip(1)
            .map(|one| one.before.as_ref())
            .chain([now.get(name)]);
        if by_haft
            .iter()
            .zip(found)
            .any(|(one, found)| one.after.as_ref() != found)
        {
            conflicts.insert(name.clone());
        } else {
            wanted.insert(name.clone(), original.clone());
        }
    }
    // Folders with remaining entries stay, and files without a parent folder cannot be restored.
    loop {
        let stuck = wanted.iter().find_map(|(name, held)| {
            let current = now.get(name);
            if held.as_ref() == current {
                return None;
            }
            let holds = wanted
                .iter()
                .any(|(other, held)| held.is_some() && parent(other).as_ref() == Some(name));
            if is_folder_text(current) && !is_folder_text(held.as_ref()) && holds {
                // A folder that should have been removed is not reported.
                return Some((name.clone(), held.is_some()));
            }
            let homeless = parent(name).is_some_and(|parent| {
                !is_folder_text(wanted.get(&parent).and_then(Option::as_ref))
            });
            (held.is_some() && homeless).then(|| (name.clone(), true))
        });
        let Some((name, is_conflict)) = stuck else {
            break;
        };
        wanted.insert(name.clone(), now.get(&name).cloned());
        if is_conflict {
            conflicts.insert(name);
        }
    }
    (
        wanted
            .into_iter()
            .filter_map(|(name, held)| Some((name, held?)))
            .collect(),
        conflicts,
    )
}

/// Every case syncs the disk dozens of times: a few fixed cases by default, and thousands with
/// `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    const USUAL: u32 = 256;
    let given = ProptestConfig::default();
    if given.cases == USUAL {
        ProptestConfig {
            cases: 30,
            rng_seed: RngSeed::Fixed(7),
            failure_persistence: None,
            ..given
        }
    } else {
        given
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn undo_of_everything_reverts_haft_and_redo_restores_it(
        beginning in prop::collection::vec(deed(), 0..6), events in prop::collection::vec(event(), 1..10)
    ) {
        let history = play_history(&beginning, &events);
        let desk = &history.desk;
        let (wanted, conflicts) = expected_after_undo(&history);
        let Ok(report) = desk.record().undo(&Target::Session, None, Mode::Apply) else {
            prop_assert_eq!(wanted, history.end, "there was nothing to undo");
            return Ok(());
        };
        let named: BTreeSet<_> = desk.conflicts(&report).into_iter().map(|(name, _)| name).collect();
        prop_assert_eq!(desk.snapshot(), wanted);
        prop_assert_eq!(named, conflicts);
        if desk.record().redo(Mode::Apply).is_ok() {
            prop_assert_eq!(desk.snapshot(), history.end);
        }
    }

    #[test]
    fn undo_of_one_call_after_another_restores_every_earlier_state(
        beginning in prop::collection::vec(deed(), 0..6), events in prop::collection::vec(event(), 1..8)
    ) {
        let events: Vec<_> = events.into_iter().filter(|event| !matches!(event, Event::Other(_))).collect();
        let history = play_history(&beginning, &events);
        let desk = &history.desk;
        let mut stations = vec![history.end.clone()];
        while let Ok(report) = desk.record().undo(&Target::LastCall, None, Mode::Apply) {
            prop_assert!(report.is_clean(), "{:?}", report);
            stations.push(desk.snapshot());
        }
        prop_assert_eq!(&desk.snapshot(), &history.beginning);
        while stations.pop().is_some() {
            prop_assert_eq!(stations.is_empty(), desk.record().redo(Mode::Apply).is_err());
            if let Some(station) = stations.last() {
                prop_assert_eq!(&desk.snapshot(), station);
            }
        }
    }

    #[test]
    fn undo_of_one_call_changes_only_its_own_paths(
        beginning in prop::collection::vec(deed(), 0..6), events in prop::collection::vec(event(), 1..10), which in any::<prop::sample::Index>()
    ) {
        let history = play_history(&beginning, &events);
        let desk = &history.desk;
        let call = which.index(events.len()).to_string();
        let own: BTreeSet<_> = desk.record().steps().unwrap().iter()
            .filter(|step| step.call.as_ref().is_some_and(|name| name.call_id == call))
            .flat_map(|step| step.changes.iter().map(|change| desk.name(&change.path)).collect::<Vec<_>>())
            .collect();
        let Ok(report) = desk.record().undo(&Target::Call(call), None, Mode::Apply) else { return Ok(()) };
        let after = desk.snapshot();
        let left: BTreeSet<_> = desk.conflicts(&report).into_iter().map(|(name, _)| name).collect();
        let names: BTreeSet<_> = after.keys().chain(history.end.keys()).collect();
        for name in names {
            if !own.contains(name) || left.contains(name) {
                prop_assert_eq!(after.get(name), history.end.get(name), "{}", name);
            }
        }
        if desk.record().redo(Mode::Apply).is_ok() {
            prop_assert_eq!(desk.snapshot(), history.end);
        }
    }
}
