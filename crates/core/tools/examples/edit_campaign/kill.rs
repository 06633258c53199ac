//! The process dies at one of its system calls, at any of them.
//!
//! `strace` is attached to a process that stands before its edit, and kills it as it enters the
//! n-th call of some name. What it leaves must be whole: each file old or new. Then the next start
//! recovers, and everything must be old, or everything new. Some processes are killed a second
//! time, while they recover.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use haft_testkit::support::Random;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::testing::Bench;
use crate::{Caller, Findings};

/// What the process does.
const SCENARIOS: [&str; 4] = ["multi_edit", "apply_patch", "replace_in_file", "recover"];

/// Whether the file system can exchange two files in one step.
#[derive(Clone, Copy, PartialEq)]
enum Renames {
    Best,
    /// It is made to look as if it could not.
    Plain,
}

impl Renames {
    fn name(self) -> &'static str {
        match self {
            Self::Best => "exchange",
            Self::Plain => "link and rename",
        }
    }
}

/// A process to kill: the `nth` time it enters this call.
struct Kill {
    scenario: &'static str,
    renames: Renames,
    call: String,
    nth: usize,
}

/// Runs the campaign; `None` when processes can't be traced here.
pub(crate) fn run(count: Option<u64>, random: &mut Random) -> Option<Findings> {
    let mut kills = Vec::new();
    for scenario in SCENARIOS {
        for renames in [Renames::Best, Renames::Plain] {
            for (call, most) in calls_of(scenario, renames)? {
                kills.extend((1..=most).map(|nth| Kill {
                    scenario,
                    renames,
                    call: call.clone(),
                    nth,
                }));
            }
        }
    }
    let mut findings = Findings::default();
    let all = kills.len();
    if let Some(count) = count {
        while kills.len() as u64 > count {
            kills.swap_remove(random.below(kills.len()));
        }
    }
    println!("{} of {all} system calls", kills.len());
    for kill in &kills {
        let name = format!(
            "{}, {}, {} {}",
            kill.scenario,
            kill.renames.name(),
            kill.call,
            kill.nth
        );
        findings.take(try_one(kill).map_err(|what| format!("{name}: {what}")));
    }
    Some(findings)
}

fn try_one(kill: &Kill) -> Result<String, String> {
    let place = Place::new(kill.scenario);
    let died = place
        .trace(
            kill.renames,
            &format!("inject={}:signal=SIGKILL:when={}", kill.call, kill.nth),
        )?
        .died;
    place.check_whole()?;
    let recovered = haft_tools::recover_changes(&place.bench.workspace().journal)
        .map_err(|error| error.to_string())?;
    let told: Vec<String> = recovered
        .iter()
        .map(|one| format!("{:?}", one.outcome))
        .collect();
    let state = place
        .state()
        .ok_or_else(|| format!("a mix was left: {:?}, after {told:?}", place.tree()))?;
    let journals = fs::read_dir(&place.bench.workspace().journal).map_or(0, Iterator::count);
    if journals > 0 {
        return Err(format!("{journals} journals were left"));
    }
    let told = told.first().map_or("nothing to recover", String::as_str);
    let fate = if died { "killed" } else { "lived" };
    Ok(format!(
        "{}, {}: {fate}, {told}, all {state}",
        kill.scenario,
        kill.renames.name()
    ))
}

/// The system calls of a whole run, each with the most times that one thread makes it.
fn calls_of(scenario: &'static str, renames: Renames) -> Option<BTreeMap<String, usize>> {
    let place = Place::new(scenario);
    let traced = place.trace(renames, "trace=all").ok()?;
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in traced.log.lines().filter(|line| !line.contains("resumed>")) {
        let (thread, rest) = line.split_once(' ')?;
        if let Some((call, _)) = rest.trim_start().split_once('(') {
            *counts
                .entry((call.to_owned(), thread.to_owned()))
                .or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((call, _), count) in counts {
        // These wait for other threads, as often as they happen to.
        if call
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || one == '_')
            && call != "futex"
        {
            let known = most.entry(call).or_insert(0);
            *known = count.max(*known);
        }
    }
    Some(most)
}

/// What tracing a process brought.
struct Traced {
    died: bool,
    log: String,
}

/// Where one process works.
struct Place {
    folder: TempDir,
    bench: Bench,
    scenario: &'static str,
}

type Tree = BTreeMap<String, (u32, String)>;

impl Place {
    fn new(scenario: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::at(&folder.path().canonicalize().unwrap());
        for (name, text) in [
            ("one", "old one\n"),
            ("dir/two", "old two\n"),
            ("three", "old three\n"),
        ] {
            let path = bench.write(name, text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let place = Self {
            folder,
            bench,
            scenario,
        };
        if scenario == "recover" {
            // What recovering has to do: a process that died after two of its four files were in
            // place.
            let first = Self {
                scenario: "apply_patch",
                folder: TempDir::new().unwrap(),
                bench: Bench::at(place.base()),
            };
            first
                .trace(Renames::Best, "inject=renameat2:signal=SIGKILL:when=3")
                .unwrap();
        }
        place
    }

    fn base(&self) -> &Path {
        self.bench.workspace().root.parent().unwrap()
    }

    /// Runs the process under `strace`, which is told this.
    fn trace(&self, renames: Renames, order: &str) -> Result<Traced, String> {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["victim", self.scenario])
            .arg(self.base())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut ready = [0];
        let _ = victim.stdout.as_mut().unwrap().read(&mut ready);

        let log = self.folder.path().join("log");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o"]).arg(&log).args(["-e", order]);
        if renames == Renames::Plain {
            strace.args(["-e", "inject=renameat2:error=EINVAL"]);
        }
        let strace = strace
            .args(["-p", &victim.id().to_string()])
            .stderr(Stdio::piped())
            .spawn();
        let mut strace = strace.map_err(|error| stop(&mut victim, &error.to_string()))?;
        let mut told = String::new();
        let mut listening = BufReader::new(strace.stderr.take().unwrap());
        let _ = listening.read_line(&mut told);
        if !told.contains("attached") {
            return Err(stop(&mut victim, &told));
        }
        // It may go on with its edit now.
        let _ = victim.stdin.take().unwrap().write_all(b"\n");
        let ended = victim.wait().map_err(|error| error.to_string())?;
        let _ = strace.wait();
        Ok(Traced {
            died: !ended.success(),
            log: fs::read_to_string(log).unwrap_or_default(),
        })
    }

    fn tree(&self) -> Tree {
        let root = self.bench.path("");
        let mut tree = Tree::new();
        for name in self.bench.files() {
            let path = root.join(&name);
            // What is made gets the mode every new file gets.
            let made = name.starts_with("made/");
            let mode = if made {
                0
            } else {
                fs::metadata(&path).unwrap().permissions().mode() & 0o7777
            };
            // A folder is known by its name alone.
            let entry = if path.is_dir() {
                (0, "folder".into())
            } else {
                (mode, fs::read_to_string(&path).unwrap())
            };
            tree.insert(name, entry);
        }
        tree
    }

    /// Before recovering: every file is old or new, or not there where that is one of both.
    fn check_whole(&self) -> Result<(), String> {
        let old = Self::old();
        let new = self.new_tree();
        let now = self.tree();
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let here = now.get(name);
            if here != old.get(name) && here != new.get(name) {
                return Err(format!("`{name}` is {here:?}"));
            }
        }
        Ok(())
    }

    /// `old` or `new`, if everything is.
    fn state(&self) -> Option<&'static str> {
        let now = self.tree();
        if now == Self::old() {
            Some("old")
        } else if now == self.new_tree() {
            Some("new")
        } else {
            None
        }
    }

    fn old() -> Tree {
        tree(
            &[
                ("one", "old one\n"),
                ("dir/two", "old two\n"),
                ("three", "old three\n"),
            ],
            &["dir"],
        )
    }

    fn new_tree(&self) -> Tree {
        let mut new = match self.scenario {
            "multi_edit" => tree(
                &[
                    ("one", "new one\n"),
                    ("dir/two", "new two\n"),
                    ("three", "old three\n"),
                ],
                &["dir", "made"],
            ),
            "replace_in_file" => {
                return tree(
                    &[
                        ("one", "new one\n"),
                        ("dir/two", "old two\n"),
                        ("three", "old three\n"),
                    ],
                    &["dir"],
                );
            }
            _ => tree(
                &[("one", "new one\n"), ("moved", "new two\n")],
                &["dir", "made"],
            ),
        };
        new.insert("made/four".into(), (0, "new four\n".into()));
        new
    }
}

fn tree(files: &[(&str, &str)], folders: &[&str]) -> Tree {
    let files = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (0o640, (*text).to_owned())));
    let folders = folders
        .iter()
        .map(|name| ((*name).to_owned(), (0, "folder".to_owned())));
    files.chain(folders).collect()
}

/// Ends a process that nobody traces.
fn stop(victim: &mut Child, why: &str) -> String {
    let _ = victim.kill();
    let _ = victim.wait();
    why.to_owned()
}

/// The process that is killed: says that it is ready, waits until someone traces it, and does its
/// part.
pub(crate) fn victim(scenario: &str, base: &Path) -> ExitCode {
    let caller = Caller::new();
    let bench = Bench::at(base);
    let mut line = String::new();
    let _ = std::io::stdout().write_all(b"\n");
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read_line(&mut line);
    let done = match scenario {
        "recover" => haft_tools::recover_changes(&bench.workspace().journal).is_ok(),
        tool => caller.outcome(&bench, tool, call(tool)) == "done",
    };
    if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn call(tool: &str) -> Value {
    match tool {
        "multi_edit" => json!({"edits": [
            {"path": "one", "old_string": "old one", "new_string": "new one"},
            {"path": "dir/two", "old_string": "old two", "new_string": "new two"},
            {"path": "made/four", "old_string": "", "new_string": "new four\n"},
        ]}),
        "replace_in_file" => {
            json!({"path": "one", "diff": "<<<<<<< SEARCH\nold one\n=======\nnew one\n>>>>>>> REPLACE"})
        }
        _ => {
            json!({"patch": "*** Begin Patch\n*** Update File: one\n@@\n-old one\n+new one\n*** Update File: dir/two\n\
                              *** Move to: moved\n@@\n-old two\n+new two\n*** Delete File: three\n\
                              *** Add File: made/four\n+new four\n*** End Patch"})
        }
    }
}
