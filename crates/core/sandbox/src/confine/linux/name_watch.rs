//! Watches the names that a command must not create, and the links that it must not change.
//!
//! A mount can protect only what exists. A missing name is therefore protected in two other ways.
//! The keeper answers the system calls that create names, so that a program gets an error for a
//! protected name ([`super::name_monitor`]); as the arguments are in the memory of the program, it
//! can change them after the check. The guarantee is this watch, which the guard starts before the
//! command: the kernel reports every name that appears in a watched folder to the keeper, which ends
//! the command. When all of its processes are gone, the guard compares the folders with their state
//! before the command, and removes what must not be there.
//!
//! Invariant: everything is done in the folders that were opened at the start, wherever they are
//! by now, and on the entry that is found there, never through a link.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, fstat, inotify, openat, readlinkat, renameat, statat,
    symlinkat, unlinkat,
};

use super::link_steps::LinkStep;

/// A watched name: the index of its folder, and its index in that folder.
pub(crate) type NameIndex = (u16, u16);

/// A name that appeared or changed while the command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameNotice {
    /// Another program created the entry.
    Accepted(NameIndex),
    /// The command may have created the entry.
    Intruded(NameIndex),
}

impl NameNotice {
    pub(crate) const ENCODED_LEN: usize = 5;

    pub(crate) fn encode(self) -> [u8; Self::ENCODED_LEN] {
        let (tag, (folder, name)) = match self {
            Self::Accepted(index) => (b'A', index),
            Self::Intruded(index) => (b'I', index),
        };
        let [a, b] = folder.to_le_bytes();
        let [c, d] = name.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn decode([tag, a, b, c, d]: [u8; Self::ENCODED_LEN]) -> Option<Self> {
        let index = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        match tag {
            b'A' => Some(Self::Accepted(index)),
            b'I' => Some(Self::Intruded(index)),
            _ => None,
        }
    }
}

/// A name in a watched folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedName {
    pub(super) pattern: NamePattern,
    pub(super) rule: NameRule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NamePattern {
    /// A name in upper or lower case.
    AnyCase(&'static str),
    Exact(OsString),
}

impl NamePattern {
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::AnyCase(own) => name.as_bytes().eq_ignore_ascii_case(own.as_bytes()),
            Self::Exact(own) => own == name,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameRule {
    /// No command may create the name.
    Protected,
    /// A link that no command may remove or replace.
    Link { target: PathBuf },
    /// An existing protected entry, which is sealed again when another program replaces it. A
    /// command may create the name if it is missing.
    Sealed,
    /// An entry that is hidden when it appears.
    Hidden,
}

/// A folder with watched names.
#[derive(Debug)]
pub(super) struct WatchedFolder {
    pub(super) path: PathBuf,
    folder: OwnedFd,
    /// The device and the inode.
    pub(super) id: (u64, u64),
    /// The number of the folder in inotify events.
    pub(super) watch: Option<i32>,
    pub(super) names: Vec<WatchedName>,
    /// The entries with watched names that existed before the command started.
    present: BTreeSet<OsString>,
}

impl WatchedFolder {
    /// Opens a folder and begins to watch it. Returns `None` if the folder cannot be opened, because
    /// the command cannot create anything there either.
    fn open(path: PathBuf, names: Vec<WatchedName>, events: Option<&OwnedFd>) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, &path, flags, Mode::empty()).ok()?;
        let seen = fstat(&folder).ok()?;
        let mask = inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVED_FROM
            | inotify::WatchFlags::MOVED_TO
            | inotify::WatchFlags::ONLYDIR;
        let opened = format!("/proc/self/fd/{}", folder.as_raw_fd());
        let watch = events.and_then(|events| inotify::add_watch(events, &opened, mask).ok());
        let mut watched = Self {
            path,
            folder,
            id: (seen.st_dev, seen.st_ino),
            watch,
            names,
            present: BTreeSet::new(),
        };
        // Listed after the watch has begun, so that no entry is missed.
        watched.present = watched.list_protected_entries().into_keys().collect();
        Some(watched)
    }

    pub(super) fn find_name(&self, name: &OsStr) -> Option<usize> {
        self.names
            .iter()
            .position(|watched| watched.pattern.matches(name))
    }

    /// True if an entry with this name exists now.
    pub(super) fn has_entry(&self, name: &OsStr) -> bool {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns the entries that have a protected name or replace a link, each with the index of the
    /// name.
    pub(super) fn list_protected_entries(&self) -> BTreeMap<OsString, usize> {
        // Folders with other names only, such as the home folder, can be large.
        if !self.has_protected_names() {
            return BTreeMap::new();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let listed = openat(&self.folder, ".", flags, Mode::empty()).and_then(Dir::new);
        let names = listed
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_vec()));
        names
            .filter_map(|name| Some((name.clone(), self.find_name(&name)?)))
            .collect()
    }

    /// True if the folder has names that a command must not create or change.
    fn has_protected_names(&self) -> bool {
        self.names.iter().any(|name| match name.rule {
            NameRule::Protected | NameRule::Link { .. } => true,
            NameRule::Sealed | NameRule::Hidden => false,
        })
    }

    pub(super) fn was_present(&self, name: &OsStr) -> bool {
        self.present.contains(name)
    }

    /// Removes an entry under its name, which is free again when this returns.
    fn remove(&self, name: &OsStr) -> io::Result<()> {
        if unlinkat(&self.folder, name, AtFlags::empty()).is_ok() {
            return Ok(());
        }
        // A folder may be large, or hold files that this process cannot delete. It loses its name
        // first.
        let away = format!(".haft-removed-{:016x}", random_number()?);
        renameat(&self.folder, name, &self.folder, &away)?;
        let opened = Path::new("/proc/self/fd").join(self.folder.as_raw_fd().to_string());
        let _ = std::fs::remove_dir_all(opened.join(&away));
        Ok(())
    }

    /// Puts back a link that was removed or replaced. Returns true if there was something to do.
    fn restore_link(&self, name: &OsStr, target: &Path) -> bool {
        let is_intact = readlinkat(&self.folder, name, Vec::new())
            .is_ok_and(|found| found.to_bytes() == target.as_os_str().as_bytes());
        if is_intact {
            return false;
        }
        let _ = self.remove(name);
        let _ = symlinkat(target, &self.folder, name);
        true
    }
}

fn random_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}

/// The names to watch, by folder.
#[derive(Debug, Default)]
pub(super) struct NamesToWatch(BTreeMap<PathBuf, Vec<WatchedName>>);

impl NamesToWatch {
    /// Adds a name. Of several names that match an entry, the one that was added first counts.
    pub(super) fn add(&mut self, folder: &Path, pattern: NamePattern, rule: NameRule) {
        let names = self.0.entry(folder.to_owned()).or_default();
        let watched = WatchedName { pattern, rule };
        if !names.contains(&watched) {
            names.push(watched);
        }
    }

    pub(super) fn add_link(&mut self, link: &LinkStep) {
        let rule = NameRule::Link {
            target: link.target.clone(),
        };
        self.add(&link.folder, NamePattern::Exact(link.name.clone()), rule);
    }
}

/// The watched names of a command. An empty watch needs no resources.
#[derive(Debug, Default)]
pub(crate) struct NameWatch {
    pub(super) folders: Vec<WatchedFolder>,
    /// The inotify instance, or `None` if the system has none left.
    pub(super) events: Option<OwnedFd>,
}

impl NameWatch {
    pub(super) fn start(names: NamesToWatch) -> Self {
        if names.0.is_empty() {
            return Self::default();
        }
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).ok();
        let folders: Vec<_> = names
            .0
            .into_iter()
            .filter_map(|(path, names)| WatchedFolder::open(path, names, events.as_ref()))
            .collect();
        // Without a number, a folder would never be reported; all of them are polled then.
        let is_complete = folders
            .iter()
            .all(|folder| folder.watch.is_some() || !folder.has_protected_names());
        Self {
            folders,
            events: events.filter(|_| is_complete),
        }
    }

    /// True if there are names that a command must not create or change.
    pub(super) fn has_protected_names(&self) -> bool {
        self.folders.iter().any(WatchedFolder::has_protected_names)
    }

    /// True if a link is watched, so that calls that only remove names matter.
    pub(super) fn has_links(&self) -> bool {
        self.names()
            .any(|(_, name)| matches!(name.rule, NameRule::Link { .. }))
    }

    fn names(&self) -> impl Iterator<Item = (&WatchedFolder, &WatchedName)> {
        self.folders
            .iter()
            .flat_map(|folder| folder.names.iter().map(move |name| (folder, name)))
    }

    /// Removes the protected entries that the command created, and restores the links that it
    /// changed. Returns their paths. All processes of the command must have ended.
    pub(crate) fn undo_intrusions(&self, notices: &[NameNotice]) -> Vec<PathBuf> {
        let mut undone = Vec::new();
        for (folder_index, folder) in self.folders.iter().enumerate() {
            let last_notice = |name: usize| {
                notices.iter().rev().find(|notice| {
                    let (NameNotice::Accepted(index) | NameNotice::Intruded(index)) = notice;
                    usize::from(index.0) == folder_index && usize::from(index.1) == name
                })
            };
            for (name, index) in folder.list_protected_entries() {
                let is_intruder = match (&folder.names[index].rule, last_notice(index)) {
                    (NameRule::Protected, Some(NameNotice::Intruded(_))) => true,
                    (NameRule::Protected, Some(NameNotice::Accepted(_)))
                    | (NameRule::Link { .. } | NameRule::Sealed | NameRule::Hidden, _) => false,
                    (NameRule::Protected, None) => !folder.was_present(&name),
                };
                if is_intruder && folder.remove(&name).is_ok() {
                    undone.push(folder.path.join(&name));
                }
            }
            for (index, watched) in folder.names.iter().enumerate() {
                let NameRule::Link { target } = &watched.rule else {
                    continue;
                };
                let NamePattern::Exact(name) = &watched.pattern else {
                    continue;
                };
                let accepted = matches!(last_notice(index), Some(NameNotice::Accepted(_)));
                if !accepted && folder.restore_link(name, target) {
                    undone.push(folder.path.join(name));
                }
            }
        }
        undone
    }
}
