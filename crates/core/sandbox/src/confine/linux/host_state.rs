//! Finds out what must be sealed, hidden and watched for a command, before the namespaces exist.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::known_folders::KnownFolders;
use super::link_steps::{LinkStep, follow_links};
use super::mount_aliases::MountTable;
use super::name_watch::{NamePattern, NameRule, NameWatch, NamesToWatch};
use super::protected_names::{self, ProtectedEntry, SEALED_REPOSITORY_ENTRIES};
use super::sockets::list_bound_sockets;
use super::{AtStep, ConfinementFailure, ConfinementStep, SandboxPolicy};
use crate::wire::Console;

/// The extension of the file that stores the [`KnownFolders`].
const FOLDERS_EXTENSION: &str = "folders";
/// The extension of a file that is written to read the current time of its file system.
const CLOCK_EXTENSION: &str = "clock";

/// The state of the machine outside the sandbox, read before the namespaces were created.
#[derive(Debug)]
pub(crate) struct HostState {
    /// The protected files of the projects, without links.
    pub(crate) protected: Vec<ProtectedEntry>,
    /// The folders in writable folders that lead to a protected or hidden place, outermost first.
    /// They become mounts, so that no command can move them.
    pub(crate) anchors: Vec<PathBuf>,
    /// Every path that leads to an existing hidden place, with a flag that is true if the place is
    /// a folder.
    pub(crate) hidden: BTreeSet<(PathBuf, bool)>,
    /// The names that must not appear, and the links that must stay.
    pub(crate) names: NameWatch,
    /// The Unix sockets of other programs.
    pub(crate) sockets: Vec<PathBuf>,
    /// The standard input of the command.
    pub(crate) console: Console,
}

impl HostState {
    /// Returns the state for a command that is not confined in namespaces, which needs none of it.
    pub(crate) fn for_console(console: Console) -> Self {
        Self {
            protected: Vec::new(),
            anchors: Vec::new(),
            hidden: BTreeSet::new(),
            names: NameWatch::default(),
            sockets: Vec::new(),
            console,
        }
    }

    /// Searches the projects and the hidden places of a policy, and begins to watch names.
    pub(crate) fn survey(
        policy: &SandboxPolicy,
        console: Console,
    ) -> Result<Self, ConfinementFailure> {
        let mut survey = Survey {
            policy,
            mounts: MountTable::read(),
            names: NamesToWatch::default(),
            protected: Vec::new(),
            hidden: BTreeSet::new(),
            anchored: Vec::new(),
        };
        for project in &policy.projects {
            let found = search_project(policy, project).at_step(ConfinementStep::Search)?;
            for entry in found {
                survey.protect(entry);
            }
        }
        for given in &policy.hidden {
            survey.hide(given);
        }
        for project in &policy.projects {
            survey.protect_missing_names(project);
        }
        for repository in &policy.repositories {
            survey.forbid_repository_entries(repository);
        }
        for path in policy.protected.iter().filter(|path| path.is_symlink()) {
            survey.keep_links(&follow_links(path).links);
        }
        survey.keep_sealed();
        let folders = policy.projects.iter().chain(&policy.writable);
        survey.anchored.extend(folders.cloned());
        Ok(Self {
            anchors: survey.list_anchors(),
            protected: survey.protected,
            hidden: survey.hidden,
            names: NameWatch::start(survey.names),
            sockets: list_bound_sockets(),
            console,
        })
    }
}

struct Survey<'policy> {
    policy: &'policy SandboxPolicy,
    mounts: MountTable,
    names: NamesToWatch,
    protected: Vec<ProtectedEntry>,
    hidden: BTreeSet<(PathBuf, bool)>,
    /// The places to which the folders must not be moved.
    anchored: Vec<PathBuf>,
}

impl Survey<'_> {
    fn writable_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.policy.projects.iter().chain(&self.policy.writable)
    }

    fn is_in_writable_folder(&self, path: &Path) -> bool {
        self.writable_folders()
            .any(|folder| path.starts_with(folder))
    }

    fn protect(&mut self, entry: ProtectedEntry) {
        let path = match entry {
            anchor @ ProtectedEntry::Anchor(_) => {
                self.protected.push(anchor);
                return;
            }
            ProtectedEntry::Protected(path) if path.is_symlink() => {
                let followed = follow_links(&path);
                self.keep_links(&followed.links);
                if !self.is_in_writable_folder(&followed.end) {
                    return;
                }
                if followed.end.symlink_metadata().is_err() {
                    self.forbid_path(&followed.end);
                    return;
                }
                followed.end
            }
            ProtectedEntry::Protected(path) => path,
        };
        let aliases = self.mounts.aliases(&path);
        for place in std::iter::once(path).chain(aliases) {
            if self.is_in_writable_folder(&place) {
                self.anchored.push(place.clone());
                self.protected.push(ProtectedEntry::Protected(place));
            }
        }
    }

    /// Watches the names of the protected entries, so that an entry that another program replaces is
    /// sealed again. Must be called after all other names were added.
    fn keep_sealed(&mut self) {
        let found = self.protected.iter().filter_map(|entry| match entry {
            ProtectedEntry::Protected(path) => Some(path),
            ProtectedEntry::Anchor(_) => None,
        });
        for path in found.chain(&self.policy.protected) {
            if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
                let pattern = NamePattern::Exact(name.to_owned());
                self.names.add(folder, pattern, NameRule::Sealed);
            }
        }
    }

    /// Watches the links in writable folders: a command must not replace them.
    fn keep_links(&mut self, links: &[LinkStep]) {
        for link in links {
            if self.is_in_writable_folder(&link.folder) {
                self.anchored.push(link.folder.join(&link.name));
                self.names.add_link(link);
            }
        }
    }

    fn forbid_path(&mut self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let pattern = NamePattern::Exact(name.to_owned());
            self.names.add(folder, pattern, NameRule::Protected);
            self.anchored.push(path.to_owned());
        }
    }

    fn hide(&mut self, given: &Path) {
        // Most places don't exist, and resolving a path follows it link by link.
        if given.symlink_metadata().is_err() {
            self.hide_when_it_appears(given);
            return;
        }
        let Ok(real) = given.canonicalize() else {
            return;
        };
        if real != given {
            self.keep_links(&follow_links(given).links);
        }
        self.hide_when_it_appears(&real);
        for alias in self.mounts.aliases(&real) {
            // A folder that the user opened stays open.
            if !self.writable_folders().any(|folder| *folder == alias) {
                self.anchored.push(alias.clone());
                self.hidden.insert((alias.clone(), alias.is_dir()));
            }
        }
        self.anchored.push(real.clone());
        self.hidden.insert((real.clone(), real.is_dir()));
    }

    fn hide_when_it_appears(&mut self, path: &Path) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && folder.is_dir()
        {
            let pattern = NamePattern::Exact(name.to_owned());
            self.names.add(folder, pattern, NameRule::Hidden);
        }
    }

    /// Forbids the protected names in a project folder, and those in the folders of two-part names.
    fn protect_missing_names(&mut self, project: &Path) {
        let home = self.policy.home.as_deref();
        for first in protected_names::first_parts(project, home) {
            let pattern = NamePattern::AnyCase(first);
            self.names.add(project, pattern, NameRule::Protected);
        }
        for entry in std::fs::read_dir(project).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(text) = name.to_str() else {
                continue;
            };
            let second = protected_names::second_parts(text, project, home);
            if second.is_empty() || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            for rest in second {
                let pattern = NamePattern::AnyCase(rest);
                self.names.add(&entry.path(), pattern, NameRule::Protected);
            }
        }
    }

    /// Forbids creating the entries of a repository that decide which programs git runs. The rest
    /// of the repository stays writable, because commits write to it.
    fn forbid_repository_entries(&mut self, repository: &Path) {
        for name in SEALED_REPOSITORY_ENTRIES {
            let pattern = NamePattern::AnyCase(name);
            self.names.add(repository, pattern, NameRule::Protected);
        }
    }

    /// Returns the folders between each writable folder and the places in it.
    fn list_anchors(&self) -> Vec<PathBuf> {
        let mut anchors = BTreeSet::new();
        for place in &self.anchored {
            for folder in self.writable_folders() {
                if place != folder && place.starts_with(folder) {
                    let way = place.ancestors().skip(1);
                    anchors.extend(way.take_while(|step| *step != folder).map(Path::to_owned));
                }
            }
        }
        // A folder inside a hidden one must stay hidden, and a folder that the user opened is a
        // mount already.
        anchors.retain(|anchor| {
            let is_hidden = self.hidden.iter().any(|(path, _)| anchor.starts_with(path));
            !is_hidden && self.writable_folders().all(|folder| folder != anchor)
        });
        let mut anchors: Vec<_> = anchors.into_iter().collect();
        anchors.sort_by_key(|anchor| anchor.components().count());
        anchors
    }
}

/// Returns the existing protected files of a project.
fn search_project(policy: &SandboxPolicy, project: &Path) -> io::Result<Vec<ProtectedEntry>> {
    haft_files::create_folder(&policy.notes)?;
    let notes = policy.notes.join(hash_path(project));
    let clock = notes.with_extension(CLOCK_EXTENSION);
    let mut written = haft_files::open_or_create(&clock)?;
    written.write_all(b"now")?;
    let mut known = KnownFolders::read(
        notes.with_extension(FOLDERS_EXTENSION),
        protected_names::format_searched_names(),
        &written.metadata()?,
    );
    let found = protected_names::find_protected(project, &mut known)?;
    known.write();
    Ok(found)
}

/// Returns a short and stable file name for a path (FNV-1a).
fn hash_path(path: &Path) -> String {
    let bytes = OsStr::as_bytes(path.as_os_str()).iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
