//! Swaps a folder of the project with a link to a folder outside the project, again and again,
//! while haft undoes changes, redoes them, or merges the copy of a sub-agent. Nothing outside the
//! project may change, whether it has equal or different content.
//!
//! Each case runs the real binary: three of four alternate `haft undo` and `haft redo`, the fourth
//! runs a sub-agent whose last reply arrives when the swapping begins. The tally counts the swaps
//! and the calls that were carried out.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use haft_testkit::support::{Campaign, HaftCase, Tally, Trial};
use haft_testkit::{Reply, Script, ScriptedServer, When};
use haft_types::Api;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::kill::poll_until;
use crate::kill::process::Running;
use crate::kill::workspace::Workspace;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "swaps",
    about: "A folder is swapped for a link during undo, redo and merge: nothing outside is touched.",
    trial: Trial::WithHaft(run_case),
};

/// The number of calls that undo or redo in one case.
const CALLS: usize = 12;
const FILES: [&str; 3] = ["file", "deep/file", "gone"];
/// The command that edits the files. It leaves the file `kept` alone, so that git always tracks
/// something in the folder.
const EDIT: &str = "cd folder && echo new > file && echo new > deep/file && rm gone && mkdir new && echo new > new/made";
/// The pauses between two swaps. Different pauses hit a call at different points.
const PAUSES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(8),
];
/// The time limit for a run. It is far above the usual duration, so a run that exceeds it is considered hung.
const RUN_TIMEOUT: Duration = Duration::from_mins(2);

type CaseResult = Result<(), String>;

fn run_case(case: &mut HaftCase<'_>) -> CaseResult {
    let merges = case.seed % 4 == 3;
    let script = if merges {
        Script::replies(build_merge_script())
    } else {
        Script::replies(build_edit_script())
    };
    let server = ScriptedServer::builder(script.map_err(|error| error.to_string())?)
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let mut place = Workspace::new(case.haft, Api::OpenaiChat, &server)?;
    let folder = place.project().join("folder");
    let outside = place.root().join("outside");
    for made in [&folder, &outside] {
        fs::create_dir_all(made.join("deep")).map_err(|error| error.to_string())?;
        for name in FILES.iter().chain(&["kept"]) {
            fs::write(made.join(name), "old\n").map_err(|error| error.to_string())?;
        }
    }
    if case.seed.is_multiple_of(2) {
        // The folder outside has the content that the edit produces in the project.
        run_shell(&outside, &EDIT.replace("cd folder && ", ""))?;
    }
    symlink(&outside, place.project().join("link")).map_err(|error| error.to_string())?;
    let pause = PAUSES[case.random.below(PAUSES.len())];
    let tried = if merges {
        run_merge(&place, pause, &server, case.tally)
    } else {
        run_undo_redo(&place, pause, case.tally)
    };
    tried.map_err(|what| format!("{what}\n        kept in {}", place.keep_folders()))
}

fn build_edit_script() -> Vec<Reply> {
    vec![command_reply(EDIT), Reply::text("Edited.")]
}

fn build_merge_script() -> Vec<Reply> {
    let on = |text: &str, reply: Reply| {
        reply.when(When {
            last_contains: Some(text.into()),
            ..When::default()
        })
    };
    let start = Reply::call(
        "run_named_subagents",
        json!({"subagents": "- {name: worker, task: TASK, worktree: true}"}),
    );
    // The last reply is delayed until the swapping has begun.
    let last = Reply {
        delay_ms: 150,
        ..Reply::text("Worked.")
    };
    vec![
        on("begin", start),
        on(
            "TASK",
            command_reply(&format!("{EDIT}; echo the work is done")),
        ),
        on("the work is done", last),
        on("## worker", Reply::text("All done.")),
    ]
}

fn command_reply(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

/// Alternates undo and redo while the folder and the link are swapped.
fn run_undo_redo(place: &Workspace, pause: Duration, tally: &mut Tally) -> CaseResult {
    let ended = Running::start(place, &run_arguments("edit"), 1)?.finish(RUN_TIMEOUT)?;
    if ended.code != Some(0) {
        return Err(format!("the edit failed: {}", ended.stderr));
    }
    let swapping = Swapper::new(place, pause)?;
    for number in 0..CALLS {
        let what = if number % 2 == 0 { "undo" } else { "redo" };
        let ended = swapping.swap_during(|| {
            Running::start(place, &[what, "--json"], 2 + number)?.wait_ignoring_output()
        })?;
        tally.count(format!(
            "{what}: {}",
            if ended == Some(0) {
                "carried out"
            } else {
                "refused, whole or in part"
            }
        ));
    }
    swapping.check_untouched(tally)
}

/// Merges the copy of a sub-agent while the folder and the link are swapped.
fn run_merge(
    place: &Workspace,
    pause: Duration,
    server: &ScriptedServer,
    tally: &mut Tally,
) -> CaseResult {
    let project = place.project();
    let agent = "---\nname: worker\ndescription: Works\n---\nYou are worker.\n";
    fs::create_dir_all(project.join(".haft/agents")).map_err(|error| error.to_string())?;
    fs::write(project.join(".haft/agents/worker.md"), agent).map_err(|error| error.to_string())?;
    fs::write(project.join(".gitignore"), "link\n").map_err(|error| error.to_string())?;
    run_shell(
        &project,
        "git init -q && git add -A && git -c user.name=t -c user.email=t@t -c commit.gpgsign=false commit -qm begin",
    )?;
    if Running::start(place, &["trust"], 1)?.wait_ignoring_output()? != Some(0) {
        return Err("the project could not be trusted".to_owned());
    }
    let swapping = Swapper::new(place, pause)?;
    let mut running = Running::start(place, &run_arguments("begin"), 2)?;
    let asked = poll_until(RUN_TIMEOUT, || {
        Ok(server.generation_requests().len() >= 3 || running.is_over()?)
    })?;
    if !asked || running.is_over()? {
        return Err(format!(
            "the sub-agent never asked for its last reply: {}",
            running.finish(RUN_TIMEOUT)?.stderr
        ));
    }
    let ended = swapping.swap_during(|| running.finish(RUN_TIMEOUT))?;
    let merged = ended
        .events
        .iter()
        .any(|event| event.to_string().contains("Merged into the project"));
    tally.count(format!(
        "merge: {}",
        if merged { "carried out" } else { "refused" }
    ));
    swapping.check_untouched(tally)
}

fn run_arguments(task: &str) -> [&str; 6] {
    [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        task,
    ]
}

fn run_shell(folder: &Path, line: &str) -> CaseResult {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "`{line}`: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Swaps a folder with a link, and checks that the folder to which the link leads stays unchanged.
struct Swapper {
    folder: PathBuf,
    link: PathBuf,
    outside: PathBuf,
    pause: Duration,
    untouched: BTreeMap<PathBuf, Option<Vec<u8>>>,
    swaps: AtomicU64,
}

impl Swapper {
    fn new(place: &Workspace, pause: Duration) -> Result<Self, String> {
        let project = place.project();
        let outside = place.root().join("outside");
        let untouched = snapshot_folder(&outside)?;
        Ok(Self {
            folder: project.join("folder"),
            link: project.join("link"),
            outside,
            pause,
            untouched,
            swaps: AtomicU64::new(0),
        })
    }

    /// Runs `act`, and swaps the folder and the link repeatedly in the meantime.
    fn swap_during<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if renameat_with(CWD, &self.folder, CWD, &self.link, RenameFlags::EXCHANGE)
                        .is_ok()
                    {
                        self.swaps.fetch_add(1, Ordering::Relaxed);
                    }
                    if self.pause.is_zero() {
                        thread::yield_now();
                    } else {
                        thread::sleep(self.pause);
                    }
                }
            });
            let done = act();
            over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Checks that nothing outside the project changed and that haft left no temporary files.
    fn check_untouched(&self, tally: &mut Tally) -> CaseResult {
        let swaps = self.swaps.load(Ordering::Relaxed);
        if swaps == 0 {
            return Err("the two never changed places: nothing was tried".to_owned());
        }
        tally.add("swaps", swaps);
        let now = snapshot_folder(&self.outside)?;
        if now != self.untouched {
            return Err(format!(
                "outside was touched: {:?} became {:?}",
                self.untouched, now
            ));
        }
        let real = if self.folder.is_symlink() {
            &self.link
        } else {
            &self.folder
        };
        let left = snapshot_folder(real)?
            .into_keys()
            .find(|path| path.to_string_lossy().contains(".haft-"));
        left.map_or(Ok(()), |path| Err(format!("{} was left", path.display())))
    }
}

/// Returns the paths of everything below a folder, with the contents of files.
fn snapshot_folder(folder: &Path) -> Result<BTreeMap<PathBuf, Option<Vec<u8>>>, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(snapshot_folder(&path)?);
        }
        let held = fs::read(&path).ok();
        found.insert(path, held);
    }
    Ok(found)
}
