//! Power cuts: from the recorded writes and syncs of a worker, disks are made as a cut at any
//! moment can leave them.
//!
//! What was written before a sync began is on the disk once the sync ended. Of what was written
//! later, anything may be there: none, all, some, or torn at the borders of sectors. Names of a
//! folder are made and removed in order, and are kept once it was synced. Memory that processes
//! share (`-shm`) is gone.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use haft_testkit::support::Random;

use crate::Outcome;
use crate::kill::{Running, store};
use crate::story::Story;
use crate::strace::{self, Call};
use crate::worker::{CONVERSATIONS, Orders, Plan};

const SECTOR: usize = 512;
/// States made from one recording.
const STATES: u64 = 100;

pub(crate) fn run(count: u64, seed: u64) -> Vec<(u64, Outcome)> {
    if !strace::is_there() {
        println!("skipped: strace is not installed or may not be used here");
        return Vec::new();
    }
    let mut outcomes = Vec::new();
    let mut at = 0;
    let mut writes = 0;
    let mut syncs = 0;
    while at < count {
        let first = seed.wrapping_add(at);
        let states = STATES.min(count - at);
        match Recording::make(first) {
            Ok(recording) => {
                writes += recording.disk.writes();
                syncs += recording.disk.syncs();
                for state in 0..states {
                    outcomes.push((
                        first,
                        recording.cut(&mut Random::new(first.wrapping_add(state))),
                    ));
                }
            }
            Err(problem) => outcomes.push((first, Err(problem))),
        }
        at += states;
    }
    println!("{writes:>8} writes and {syncs} syncs recorded");
    outcomes
}

/// What a worker did to the disk, and when it was told what.
struct Recording {
    /// The disk before the worker began.
    before: BTreeMap<PathBuf, Vec<u8>>,
    root: PathBuf,
    disk: Disk,
    /// What the worker said, by when it began to say it.
    said: Vec<(usize, String)>,
    end: usize,
    _folder: tempfile::TempDir,
}

impl Recording {
    fn make(seed: u64) -> Result<Self, String> {
        let (folder, path) = store(&CONVERSATIONS)?;
        let root = path.parent().ok_or("no folder")?.to_path_buf();
        let before = files(&root)?;
        let log = folder.path().join("log");
        let calls = "trace=openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,rename,renameat,renameat2,mkdir";
        let options = [
            "-f",
            "-qq",
            "-y",
            "-xx",
            "-s",
            "1000000",
            "-e",
            calls,
            "-o",
            &log.display().to_string(),
        ];
        let mut command = strace::command(&options)?;
        let deeds = 40 + (seed % 40) as u32;
        let orders = Orders {
            path: path.clone(),
            seed,
            base: 1,
            deeds,
            plan: Plan::Everything,
        };
        let mut running =
            Running::start_program(command.args(orders.arguments()).stderr(Stdio::inherit()))?;
        let status = running.finish()?;
        if !status.success() {
            return Err(format!("the worker failed: {status}"));
        }
        let heard = running.said()?;
        let log = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        let calls = strace::read(&log);
        let (disk, said) = Disk::read(&calls, &root, &before)?;
        let told: String = said.iter().map(|(_, words)| words.as_str()).collect();
        if told != heard {
            return Err("the log does not hold what the worker said".into());
        }
        Ok(Self {
            before,
            root,
            disk,
            said,
            end: log.lines().count(),
            _folder: folder,
        })
    }

    /// Makes the disk of one cut and looks at the store on it.
    fn cut(&self, random: &mut Random) -> Outcome {
        let at = random.below(self.end + 1);
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (path, content) in self.disk.after_a_cut(at, &self.before, random) {
            let path = folder.path().join(
                path.strip_prefix(&self.root)
                    .map_err(|error| error.to_string())?,
            );
            let made = std::fs::create_dir_all(path.parent().unwrap_or(&path))
                .and_then(|()| std::fs::write(&path, content));
            made.map_err(|error| error.to_string())?;
        }
        let mut story = Story::of(&CONVERSATIONS);
        for (_, words) in self.said.iter().take_while(|(when, _)| *when < at) {
            story.hear(words)?;
        }
        // What was under way may have been announced a moment later than it was written.
        for (_, words) in self.said.iter().skip_while(|(when, _)| *when < at) {
            let announced: String = words
                .lines()
                .filter(|line| line.starts_with('+'))
                .fold(String::new(), |all, line| all + line + "\n");
            story.hear(&announced)?;
        }
        let checked = story.check(&folder.path().join("conversations.db"));
        checked.map_err(|problem| {
            format!(
                "cut at {at} of {}: {problem}; kept in {}",
                self.end,
                folder.keep().display()
            )
        })
    }
}

fn files(root: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(root).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            files.extend(self::files(&path)?);
        } else {
            let content = std::fs::read(&path).map_err(|error| error.to_string())?;
            files.insert(path, content);
        }
    }
    Ok(files)
}

/// Something that happened to the content of a file.
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Cut { length: usize },
}

/// A file from its making to its removal, whatever its name.
#[derive(Default)]
struct File {
    changes: Vec<(usize, usize, Change)>,
    /// When each sync began and ended.
    syncs: Vec<(usize, usize)>,
    /// Where the next plain write goes.
    end: usize,
}

/// Something that happened to a name.
#[derive(Clone)]
enum Naming {
    Given { path: PathBuf, file: usize },
    Taken { path: PathBuf },
    Moved { from: PathBuf, to: PathBuf },
}

/// Everything that happened below one folder.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    namings: Vec<(usize, usize, Naming)>,
    /// By folder, when each sync began and ended.
    folder_syncs: BTreeMap<PathBuf, Vec<(usize, usize)>>,
}

impl Disk {
    fn writes(&self) -> usize {
        self.files.iter().map(|file| file.changes.len()).sum()
    }

    fn syncs(&self) -> usize {
        let folders = self.folder_syncs.values().map(Vec::len).sum::<usize>();
        self.files
            .iter()
            .map(|file| file.syncs.len())
            .sum::<usize>()
            + folders
    }

    /// Reads the calls, and what was said on stdout meanwhile.
    fn read(
        calls: &[Call],
        root: &Path,
        before: &BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<(Self, Vec<(usize, String)>), String> {
        let mut disk = Self::default();
        let mut names: HashMap<PathBuf, usize> = HashMap::new();
        for path in before.keys() {
            names.insert(path.clone(), disk.files.len());
            disk.files.push(File::default());
        }
        let mut said = Vec::new();
        for call in calls.iter().filter(|call| call.result >= 0) {
            let arguments = Arguments::read(&call.arguments);
            let begun = call.begun;
            let ended = call.ended;
            match call.name.as_str() {
                "write" if arguments.descriptor() == Some(1) => {
                    said.push((
                        begun,
                        String::from_utf8_lossy(&arguments.bytes(1)).into_owned(),
                    ));
                }
                "write" | "pwrite64" => {
                    let Some(file) = arguments
                        .path_of(0)
                        .and_then(|path| names.get(&path))
                        .copied()
                    else {
                        continue;
                    };
                    let mut bytes = arguments.bytes(1);
                    let file = &mut disk.files[file];
                    bytes.truncate(call.result as usize);
                    let offset = if call.name == "write" {
                        file.end
                    } else {
                        arguments.number(3)?
                    };
                    file.end = file.end.max(offset + bytes.len());
                    file.changes
                        .push((begun, ended, Change::Write { offset, bytes }));
                }
                "ftruncate" => {
                    let Some(file) = arguments
                        .path_of(0)
                        .and_then(|path| names.get(&path))
                        .copied()
                    else {
                        continue;
                    };
                    let length = arguments.number(1)?;
                    disk.files[file].end = length;
                    disk.files[file]
                        .changes
                        .push((begun, ended, Change::Cut { length }));
                }
                "fsync" | "fdatasync" => match arguments.path_of(0) {
                    Some(path) if names.contains_key(&path) => {
                        disk.files[names[&path]].syncs.push((begun, ended));
                    }
                    Some(path) if path.starts_with(root) => {
                        disk.folder_syncs
                            .entry(path)
                            .or_default()
                            .push((begun, ended));
                    }
                    Some(_) | None => {}
                },
                "openat" if arguments.has("O_CREAT") => {
                    let path = arguments.path(1);
                    if path.starts_with(root) && !names.contains_key(&path) {
                        let file = disk.files.len();
                        disk.files.push(File::default());
                        names.insert(path.clone(), file);
                        disk.namings
                            .push((begun, ended, Naming::Given { path, file }));
                    }
                }
                "unlink" | "unlinkat" => {
                    let path = arguments.path(usize::from(call.name == "unlinkat"));
                    if names.remove(&path).is_some() {
                        disk.namings.push((begun, ended, Naming::Taken { path }));
                    }
                }
                "rename" => {
                    let from = arguments.path(0);
                    let to = arguments.path(1);
                    if let Some(file) = names.remove(&from) {
                        names.insert(to.clone(), file);
                        disk.namings
                            .push((begun, ended, Naming::Moved { from, to }));
                    }
                }
                _ => {}
            }
        }
        Ok((disk, said))
    }

    /// The files after a cut at this moment.
    fn after_a_cut(
        &self,
        at: usize,
        before: &BTreeMap<PathBuf, Vec<u8>>,
        random: &mut Random,
    ) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut names: BTreeMap<PathBuf, usize> = before
            .keys()
            .cloned()
            .enumerate()
            .map(|(file, path)| (path, file))
            .collect();
        for naming in self.namings_after_a_cut(at, random) {
            match naming {
                Naming::Given { path, file } => {
                    names.insert(path.clone(), *file);
                }
                Naming::Taken { path } => {
                    names.remove(path);
                }
                Naming::Moved { from, to } => {
                    if let Some(file) = names.remove(from) {
                        names.insert(to.clone(), file);
                    }
                }
            }
        }
        let originals: Vec<&Vec<u8>> = before.values().collect();
        let kept = names
            .into_iter()
            .filter(|(path, _)| !path.to_string_lossy().ends_with("-shm"));
        kept.map(|(path, file)| {
            let content = originals
                .get(file)
                .map_or_else(Vec::new, |content| (*content).clone());
            (path, self.files[file].after_a_cut(at, content, random))
        })
        .collect()
    }

    /// Names of one folder are kept in order: all up to a sync of the folder, and some of those
    /// after it.
    fn namings_after_a_cut(&self, at: usize, random: &mut Random) -> Vec<&Naming> {
        let mut folders: BTreeMap<&Path, Vec<&(usize, usize, Naming)>> = BTreeMap::new();
        for naming in self.namings.iter().filter(|(begun, _, _)| *begun < at) {
            folders.entry(naming.2.folder()).or_default().push(naming);
        }
        let mut kept = Vec::new();
        for (folder, namings) in folders {
            let syncs = self.folder_syncs.get(folder).into_iter().flatten();
            let synced = syncs
                .filter(|(_, ended)| *ended < at)
                .map(|(begun, _)| *begun)
                .max();
            let durable = namings
                .iter()
                .take_while(|(_, ended, _)| synced.is_some_and(|synced| *ended < synced))
                .count();
            let count = durable + random.below(namings.len() - durable + 1);
            kept.extend(namings[..count].iter().map(|(_, _, naming)| naming));
        }
        kept
    }
}

impl Naming {
    /// The folder it happened in; nothing is moved to another.
    fn folder(&self) -> &Path {
        let path = match self {
            Self::Given { path, .. } | Self::Taken { path } | Self::Moved { to: path, .. } => path,
        };
        path.parent().unwrap_or(path)
    }
}

impl File {
    fn after_a_cut(&self, at: usize, mut content: Vec<u8>, random: &mut Random) -> Vec<u8> {
        let synced = self
            .syncs
            .iter()
            .filter(|(_, ended)| *ended < at)
            .map(|(begun, _)| *begun)
            .max();
        // How much of what is not synced came through: nothing, all, or anything between.
        let luck = [0, 100, random.below(101)][random.below(3)];
        for (begun, ended, change) in &self.changes {
            if *begun >= at {
                continue;
            }
            if synced.is_some_and(|synced| *ended < synced) || random.below(100) < luck {
                change.apply(&mut content);
            } else if random.below(4) == 0 {
                change.tear(&mut content, random);
            }
        }
        content
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::Cut { length } => content.resize(*length, 0),
        }
    }

    /// Some sectors of a write came through, and not the others.
    fn tear(&self, content: &mut Vec<u8>, random: &mut Random) {
        let Self::Write { offset, bytes } = self else {
            return;
        };
        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
            if random.below(2) == 0 {
                let part = Self::Write {
                    offset: offset + index * SECTOR,
                    bytes: sector.to_vec(),
                };
                part.apply(content);
            }
        }
    }
}

/// The arguments of a call as strace shows them with `-y -xx`.
struct Arguments<'a>(Vec<&'a str>);

impl<'a> Arguments<'a> {
    /// Splits at commas outside of quotes and of the paths of descriptors.
    fn read(text: &'a str) -> Self {
        let mut start = 0;
        let mut quoted = false;
        let mut angled = false;
        let mut arguments = Vec::new();
        for (at, c) in text.char_indices() {
            match c {
                '"' => quoted = !quoted,
                '<' if !quoted => angled = true,
                '>' if !quoted => angled = false,
                ',' if !quoted && !angled => {
                    arguments.push(text[start..at].trim());
                    start = at + 1;
                }
                _ => {}
            }
        }
        arguments.push(text[start..].trim());
        Self(arguments)
    }

    fn has(&self, word: &str) -> bool {
        self.0
            .iter()
            .any(|argument| argument.split('|').any(|part| part == word))
    }

    fn number(&self, index: usize) -> Result<usize, String> {
        let text = self.0.get(index).copied().unwrap_or_default();
        text.parse()
            .map_err(|_| format!("strace shows `{text}` where a number should be"))
    }

    fn descriptor(&self) -> Option<u32> {
        self.0.first()?.split('<').next()?.parse().ok()
    }

    /// The path of a descriptor.
    fn path_of(&self, index: usize) -> Option<PathBuf> {
        let (_, path) = self.0.get(index)?.split_once('<')?;
        let path = path.strip_suffix('>')?;
        Some(PathBuf::from(String::from_utf8(unescape(path)).ok()?))
    }

    fn path(&self, index: usize) -> PathBuf {
        PathBuf::from(String::from_utf8_lossy(&self.bytes(index)).into_owned())
    }

    fn bytes(&self, index: usize) -> Vec<u8> {
        let quoted = self.0.get(index).copied().unwrap_or_default();
        quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .map_or_else(Vec::new, unescape)
    }
}

/// `\xNN` for every byte; anything else stands for itself.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"\\x")
            && let Some(hex) = text.get(at + 2..at + 4)
            && let Ok(byte) = u8::from_str_radix(hex, 16)
        {
            out.push(byte);
            at += 4;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}
