//! Measures the cost of the sandbox: `/bin/sh -c true` through each layer and as a bare spawn,
//! alternating in one run. As in a session, there is a pause between two commands, in which the
//! helper for the next command is prepared.
//!
//! "Supervised" is the helper without a sandbox, a cost that every command has in every mode. The
//! policy resembles that of a real run: the user's secrets and haft's own folder are hidden,
//! protected files are sealed or covered. The namespace layer searches the files of the project for
//! protected names, so the project's size matters.
//!
//! Also measures how long an entry with a protected name exists that a command creates in spite of
//! the check of its calls: the window that docs/security.md states.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementMethod, ConfinementSpec, LiveCommand, Network,
    OwnProgram, SandboxError, SandboxPolicy, Supervisor,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::figures;
use crate::scan::write_tree;

const RUNS: usize = 150;
const COMMAND: &str = "true";
/// The pause between two commands, shorter than any model's response time.
const PAUSE: Duration = Duration::from_millis(40);
/// The goal for a sandboxed command's extra time over a bare spawn, in milliseconds.
const GOAL_MS: f64 = 8.0;
const REMOVALS: usize = 60;
/// The bound that docs/security.md states for the removal of a created entry, in milliseconds.
const REMOVAL_GOAL_MS: f64 = 100.0;
/// Creates an entry by a path that the check of the call resolves in another folder.
const CREATING_COMMAND: &str = "cd src && mkdir /proc/thread-self/cwd/../.vscode && sleep 60";

/// A way to run the command, and its measured times.
struct Layer {
    name: &'static str,
    confined: Option<Arc<ConfinementSpec>>,
    times: Vec<Duration>,
}

pub(crate) fn run_benchmark(haft: &Path) -> anyhow::Result<()> {
    for files in [0, 10_000] {
        measure_removals(haft, files)?;
    }
    for files in [0, 1_000, 10_000, 100_000] {
        measure_layers(haft, files)?;
    }
    Ok(())
}

/// Returns a folder outside `/tmp`: Landlock must list everything beside a hidden folder, and
/// `/tmp` may contain many files.
fn create_bench_folder() -> anyhow::Result<tempfile::TempDir> {
    let parent = std::env::var_os("HAFT_BENCH_FOLDER").unwrap_or_else(|| ".".into());
    Ok(tempfile::tempdir_in(parent)?)
}

fn create_runtime() -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}

fn measure_removals(haft: &Path, files: usize) -> anyhow::Result<()> {
    let folder = create_bench_folder()?;
    let base = folder.path().canonicalize()?;
    let project = base.join("project");
    std::fs::create_dir_all(project.join("src"))?;
    write_tree(&project, files)?;
    let confined = Arc::new(ConfinementSpec {
        method: ConfinementMethod::Namespace,
        policy: build_policy(&base, &project)?,
    });
    let runtime = create_runtime()?;
    let supervisor = Supervisor::new(OwnProgram::open(haft)?);
    let mut times = Vec::with_capacity(REMOVALS);
    for _ in 0..REMOVALS {
        match time_removal(&runtime, &supervisor, &project, Arc::clone(&confined)) {
            Ok(time) => times.extend(time),
            Err(error) => {
                figures::print_line(&format!("removal: cannot be had here: {error:#}"));
                return Ok(());
            }
        }
    }
    let name = |what: &str| format!("{files} files: created name until removed, {what}");
    let goal = Some(REMOVAL_GOAL_MS);
    let median = figures::median_ms(&mut times);
    let slowest = figures::quantile_ms(&mut times, 1.0);
    figures::print_figure(&name("median"), median, "ms", goal);
    figures::print_figure(&name("slowest"), slowest, "ms", goal);
    Ok(())
}

/// Returns the time for which an entry that a command creates can be seen outside, or `None` if the
/// entry was gone before it was seen.
fn time_removal(
    runtime: &Runtime,
    supervisor: &Supervisor,
    project: &Path,
    confined: Arc<ConfinementSpec>,
) -> anyhow::Result<Option<Duration>> {
    let entry = project.join(".vscode");
    let is_over = Arc::new(AtomicBool::new(false));
    let watch_end = Arc::clone(&is_over);
    let watcher = std::thread::spawn(move || {
        while entry.symlink_metadata().is_err() {
            if watch_end.load(Ordering::Relaxed) {
                return None;
            }
        }
        let created = Instant::now();
        while entry.symlink_metadata().is_ok() {}
        Some(created.elapsed())
    });
    let command = CommandSpec::shell(CREATING_COMMAND, project).with_confinement(Some(confined));
    let capture = Capture::default();
    let cancel = CancellationToken::new();
    let live = LiveCommand::default();
    let finished: Result<_, SandboxError> =
        runtime.block_on(supervisor.run_watched(&command, &capture, &cancel, &live));
    is_over.store(true, Ordering::Relaxed);
    let seen = watcher.join().ok().flatten();
    ensure!(finished?.undone.len() == 1, "no entry was removed");
    Ok(seen)
}

fn measure_layers(haft: &Path, files: usize) -> anyhow::Result<()> {
    let folder = create_bench_folder()?;
    let base = folder.path().canonicalize()?;
    let project = base.join("project");
    std::fs::create_dir_all(project.join(".git"))?;
    write_tree(&project, files)?;
    // Pending writes would slow down mounting covers.
    Command::new("sync").status()?;
    let policy = build_policy(&base, &project)?;
    let confined = |method| {
        Some(Arc::new(ConfinementSpec {
            method,
            policy: policy.clone(),
        }))
    };
    let runtime = create_runtime()?;
    let supervisor = Supervisor::new(OwnProgram::open(haft)?);
    let mut bare = Vec::with_capacity(RUNS);
    let mut layers = Vec::new();
    for (name, confined) in [
        ("supervised", None),
        ("Landlock", confined(ConfinementMethod::Landlock)),
        ("namespaces", confined(ConfinementMethod::Namespace)),
    ] {
        let layer = Layer {
            name,
            confined,
            times: Vec::with_capacity(RUNS),
        };
        match time_layer(&runtime, &supervisor, &project, layer.confined.clone()) {
            Ok(_) => layers.push(layer),
            Err(error) => figures::print_line(&format!("{name}: cannot be had here: {error:#}")),
        }
    }
    for _ in 0..RUNS {
        bare.push(time_bare_spawn(&project)?);
        for layer in &mut layers {
            layer.times.push(time_layer(
                &runtime,
                &supervisor,
                &project,
                layer.confined.clone(),
            )?);
        }
    }
    print_layers(files, &mut bare, &mut layers);
    Ok(())
}

fn print_layers(files: usize, bare: &mut [Duration], layers: &mut [Layer]) {
    let name = |what: &str| format!("{files} files: {what}");
    let median = figures::median_ms(bare);
    let tail = figures::quantile_ms(bare, 0.95);
    figures::print_figure(&name("bare spawn, median"), median, "ms", None);
    figures::print_figure(&name("bare spawn, p95"), tail, "ms", None);
    for Layer {
        name: layer,
        times: taken,
        ..
    } in layers
    {
        let own = figures::median_ms(taken);
        let own_tail = figures::quantile_ms(taken, 0.95);
        figures::print_figure(
            &name(&format!("{layer}, on top of it, median")),
            own - median,
            "ms",
            Some(GOAL_MS),
        );
        figures::print_figure(
            &name(&format!("{layer}, on top of it, p95")),
            own_tail - tail,
            "ms",
            None,
        );
    }
}

fn time_bare_spawn(project: &Path) -> anyhow::Result<Duration> {
    std::thread::sleep(PAUSE);
    let begin = Instant::now();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", COMMAND])
        .current_dir(project)
        .env_clear()
        .stdin(Stdio::null());
    ensure!(command.output()?.status.success(), "`{COMMAND}` failed");
    Ok(begin.elapsed())
}

fn time_layer(
    runtime: &Runtime,
    supervisor: &Supervisor,
    project: &Path,
    confined: Option<Arc<ConfinementSpec>>,
) -> anyhow::Result<Duration> {
    std::thread::sleep(PAUSE);
    let command = CommandSpec::shell(COMMAND, project).with_confinement(confined);
    let capture = Capture::default();
    let cancel = CancellationToken::new();
    let live = LiveCommand::default();
    let begin = Instant::now();
    let finished: Result<_, SandboxError> =
        runtime.block_on(supervisor.run_watched(&command, &capture, &cancel, &live));
    let taken = begin.elapsed();
    ensure!(finished?.exit == CommandExit::Code(0), "`{COMMAND}` failed");
    Ok(taken)
}

fn build_policy(base: &Path, project: &Path) -> anyhow::Result<SandboxPolicy> {
    for folder in ["own", "own/tmp", "own/notes"] {
        std::fs::create_dir(base.join(folder))?;
    }
    let home = std::env::var_os("HOME").context("`HOME` is not set")?;
    let mut hidden = haft_sandbox::secret_paths(Some(Path::new(&home)));
    hidden.push(base.join("own"));
    Ok(SandboxPolicy {
        projects: vec![project.to_owned()],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden,
        readable: Vec::new(),
        tmp: base.join("own/tmp"),
        notes: base.join("own/notes"),
        home: Some(home.into()),
        network: Network::None,
    })
}
