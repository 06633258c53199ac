//! Enforces a [`NameWatch`] while a command runs. Runs in the keeper, which the command can neither
//! signal nor inspect.
//!
//! Programs get an error from the calls that would create a protected name. A call that is allowed
//! can still create one, because its arguments may change after the check. It is therefore
//! remembered until it is known to be over. A protected name that appears while a remembered call
//! could have created it ends the command. If no such call is remembered, another program created
//! the entry, for example the user's editor: the entry is sealed like one that existed before.
//!
//! Invariant: events are read before a call is received and before one is forgotten, so an event
//! never outlives the memory of the call that caused it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, ReadFlags};

use super::call_paths::{may_be_in_creating_call, read_named_path};
use super::creating_calls::{CreatingCall, NameEffects, find_creating_call};
use super::mounts;
use super::name_watch::{NameNotice, NameRule, NameWatch, WatchedFolder};
use super::seccomp::{self, NotifiedCalls};
use super::sys::{self, CallAnswer, NotifiedCall};

/// The first and the longest interval between checks whether remembered calls are over.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(10);
const MAX_SWEEP_INTERVAL: Duration = Duration::from_millis(320);
/// The interval between checks of all names if the system has no inotify instance left.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a look at names and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Quiet,
    /// The command may have created a protected name. It must end.
    Intrusion,
}

/// Enforces the watch of one command.
pub(crate) struct NameMonitor<'watch> {
    watch: &'watch NameWatch,
    /// The descriptor on which the kernel asks about calls, or `None` if it cannot ask. Every
    /// protected name that appears is then attributed to the command.
    listener: Option<OwnedFd>,
    /// The effects of the last allowed call of each thread, unless the call is known to be over.
    allowed: HashMap<u32, NameEffects>,
    sweep_interval: Duration,
    next_sweep: Option<Instant>,
    notices: Vec<NameNotice>,
}

impl<'watch> NameMonitor<'watch> {
    /// Makes the kernel ask about calls of the future children of this process.
    pub(crate) fn start(watch: &'watch NameWatch) -> Self {
        let is_polled = watch.events.is_none() && watch.has_protected_names();
        let next_sweep = is_polled.then(|| Instant::now() + POLL_INTERVAL);
        let listener = if watch.has_protected_names() {
            start_listening(watch).ok()
        } else {
            None
        };
        Self {
            watch,
            listener,
            allowed: HashMap::new(),
            sweep_interval: MIN_SWEEP_INTERVAL,
            next_sweep,
            notices: Vec::new(),
        }
    }

    /// Returns the descriptors that are readable when [`NameMonitor::attend`] must be called.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let events = self.watch.events.as_ref().map(AsFd::as_fd);
        events
            .into_iter()
            .chain(self.listener.as_ref().map(AsFd::as_fd))
    }

    /// Returns the time at which [`NameMonitor::attend`] must be called even if nothing is readable.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next_sweep
    }

    /// Returns the notices since the last call, for the guard.
    pub(crate) fn take_notices(&mut self) -> Vec<NameNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Judges the names that appeared.
    pub(crate) fn judge_events(&mut self) -> Watched {
        let Some(events) = &self.watch.events else {
            return self.judge_all_names();
        };
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut reader = inotify::Reader::new(events, &mut buffer);
        let mut appeared = Vec::new();
        let mut has_lost_events = false;
        while let Ok(event) = reader.next() {
            has_lost_events |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let name = event
                .file_name()
                .map(|name| OsString::from_vec(name.to_bytes().to_vec()));
            appeared.extend(name.map(|name| (event.wd(), event.events(), name)));
        }
        let mut watched = Watched::Quiet;
        if has_lost_events {
            watched = self.judge_all_names();
        }
        for (watch, flags, name) in appeared {
            // One folder can be watched by two paths.
            for (index, folder) in self.watch.folders.iter().enumerate() {
                if folder.watch == Some(watch)
                    && self.judge_event(index, flags, &name) == Watched::Intrusion
                {
                    watched = Watched::Intrusion;
                }
            }
        }
        watched
    }

    fn judge_event(&mut self, folder_index: usize, flags: ReadFlags, name: &OsStr) -> Watched {
        let folder = &self.watch.folders[folder_index];
        let Some(name_index) = folder.find_name(name) else {
            return Watched::Quiet;
        };
        let appears = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let matters = match folder.names[name_index].rule {
            NameRule::Protected => appears,
            NameRule::Link { .. } => true,
            NameRule::Sealed => {
                if appears && !self.may_be_caused_by_command(effects_of_event(flags)) {
                    let _ = mounts::seal_path(&folder.path.join(name));
                }
                false
            }
            NameRule::Hidden => {
                if appears {
                    let _ = mounts::cover_hidden(&folder.path.join(name));
                }
                false
            }
        };
        if !matters {
            return Watched::Quiet;
        }
        let index = (to_index(folder_index), to_index(name_index));
        if self.may_be_caused_by_command(effects_of_event(flags)) {
            self.notices.push(NameNotice::Intruded(index));
            return Watched::Intrusion;
        }
        self.notices.push(NameNotice::Accepted(index));
        if !appears {
            return Watched::Quiet;
        }
        match mounts::seal_path(&folder.path.join(name)) {
            Ok(()) => Watched::Quiet,
            // The entry is gone again, or a link that leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Watched::Quiet,
            // The command must not run beside an entry that it could write.
            Err(_) => Watched::Intrusion,
        }
    }

    /// Attributes every protected name that has appeared to the command.
    fn judge_all_names(&mut self) -> Watched {
        let mut watched = Watched::Quiet;
        for (folder_index, folder) in self.watch.folders.iter().enumerate() {
            for (name, name_index) in folder.list_protected_entries() {
                let is_new = folder.names[name_index].rule == NameRule::Protected
                    && !folder.was_present(&name);
                if is_new {
                    let index = (to_index(folder_index), to_index(name_index));
                    self.notices.push(NameNotice::Intruded(index));
                    watched = Watched::Intrusion;
                }
            }
        }
        watched
    }

    fn may_be_caused_by_command(&self, effects: NameEffects) -> bool {
        self.listener.is_none() || self.allowed.values().any(|own| own.overlaps(effects))
    }

    /// Judges new names, answers calls that wait, and forgets calls that are over.
    pub(crate) fn attend(&mut self) -> Watched {
        if self.judge_events() == Watched::Intrusion {
            return Watched::Intrusion;
        }
        if self.listener.as_ref().is_some_and(is_readable)
            && self.answer_call() == Watched::Intrusion
        {
            return Watched::Intrusion;
        }
        if self.next_sweep.is_some_and(|sweep| sweep <= Instant::now()) {
            return self.forget_finished_calls();
        }
        Watched::Quiet
    }

    fn answer_call(&mut self) -> Watched {
        let Some(listener) = &self.listener else {
            return Watched::Quiet;
        };
        let Ok(call) = sys::receive_call(listener) else {
            return Watched::Quiet;
        };
        // The thread has left its previous call, whose event may just have arrived.
        if self.judge_events() == Watched::Intrusion {
            return Watched::Intrusion;
        }
        let known = find_creating_call(call.number);
        let is_refused = known.is_some_and(|known| self.names_protected_entry(known, &call));
        let answer = if is_refused {
            self.allowed.remove(&call.thread);
            CallAnswer::Fail(libc::EROFS)
        } else {
            if let Some(known) = known {
                self.allowed.insert(call.thread, known.effects);
                if self.watch.events.is_some() {
                    self.sweep_interval = MIN_SWEEP_INTERVAL;
                    self.next_sweep
                        .get_or_insert_with(|| Instant::now() + MIN_SWEEP_INTERVAL);
                }
            }
            CallAnswer::Continue
        };
        if let Some(listener) = &self.listener {
            // Fails if the calling process has been killed.
            let _ = sys::answer_call(listener, &call, answer);
        }
        Watched::Quiet
    }

    fn names_protected_entry(&self, known: &CreatingCall, call: &NotifiedCall) -> bool {
        let created = known
            .created
            .and_then(|argument| read_named_path(call, argument));
        let removed = known
            .removed
            .and_then(|argument| read_named_path(call, argument));
        let usage = if known.effects == NameEffects::MOVES {
            NameUse::Replacement
        } else {
            NameUse::Creation
        };
        created.is_some_and(|path| self.is_protected(&path, usage))
            || removed.is_some_and(|path| self.is_protected(&path, NameUse::Removal))
    }

    /// True if a call must not use the last component of `path` in this way.
    fn is_protected(&self, path: &Path, usage: NameUse) -> bool {
        let Some(name) = path.file_name() else {
            return false;
        };
        // Only a name that matches somewhere is worth looking up its folder.
        if self
            .watch
            .folders
            .iter()
            .all(|folder| folder.find_name(name).is_none())
        {
            return false;
        }
        let id = path.parent().and_then(|folder| folder.metadata().ok());
        let Some(id) = id.map(|folder| (folder.dev(), folder.ino())) else {
            return false;
        };
        let in_folder = |folder: &&WatchedFolder| folder.id == id;
        self.watch
            .folders
            .iter()
            .filter(in_folder)
            .any(|folder| match folder.find_name(name) {
                None => false,
                Some(index) => match (&folder.names[index].rule, usage) {
                    // The mount of an existing entry protects it, with the right error.
                    (NameRule::Protected, NameUse::Creation | NameUse::Replacement)
                    | (NameRule::Link { .. }, NameUse::Creation) => !folder.has_entry(name),
                    (NameRule::Link { .. }, NameUse::Replacement | NameUse::Removal) => true,
                    (NameRule::Protected, NameUse::Removal)
                    | (NameRule::Sealed | NameRule::Hidden, _) => false,
                },
            })
    }

    /// Forgets the allowed calls of threads that are in another call, or gone.
    fn forget_finished_calls(&mut self) -> Watched {
        let over: Vec<u32> = self
            .allowed
            .keys()
            .copied()
            .filter(|thread| !may_be_in_creating_call(*thread))
            .collect();
        if self.judge_events() == Watched::Intrusion {
            return Watched::Intrusion;
        }
        for thread in over {
            self.allowed.remove(&thread);
        }
        self.next_sweep = if self.watch.events.is_none() {
            Some(Instant::now() + POLL_INTERVAL)
        } else if self.allowed.is_empty() {
            None
        } else {
            self.sweep_interval = (self.sweep_interval * 2).min(MAX_SWEEP_INTERVAL);
            Some(Instant::now() + self.sweep_interval)
        };
        Watched::Quiet
    }
}

/// The use of a name by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameUse {
    /// The call creates the name if it is missing, and fails or opens it otherwise.
    Creation,
    /// The call moves another entry to the name.
    Replacement,
    Removal,
}

fn start_listening(watch: &NameWatch) -> io::Result<OwnedFd> {
    let calls = if watch.has_links() {
        NotifiedCalls::CreatingAndRemoving
    } else {
        NotifiedCalls::Creating
    };
    sys::install_listener(&seccomp::build_notifying_filter(calls)?)
}

fn to_index(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

fn is_readable(listener: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::IN)
}

/// Returns the effects of a call that can have caused an event.
fn effects_of_event(flags: ReadFlags) -> NameEffects {
    if flags.intersects(ReadFlags::MOVED_TO | ReadFlags::MOVED_FROM) {
        NameEffects::MOVES
    } else if flags.contains(ReadFlags::DELETE) {
        NameEffects::REMOVES | NameEffects::MOVES
    } else if flags.contains(ReadFlags::ISDIR) {
        NameEffects::CREATES_FOLDER
    } else {
        NameEffects::CREATES_FILE
    }
}
