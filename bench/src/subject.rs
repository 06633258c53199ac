//! Runs the measured binary in its own home.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_testkit::ScriptedServer;
use haft_types::Api;
use tempfile::TempDir;

/// A temporary haft home folder and a temporary project folder for one run.
pub(crate) struct Workspace {
    home: TempDir,
    project: TempDir,
}

/// The number of lines in `notes.txt`.
const NOTES_LINES: usize = 1_100;

impl Workspace {
    pub(crate) fn new(server: &ScriptedServer) -> anyhow::Result<Self> {
        let place = Self {
            home: tempfile::tempdir()?,
            project: tempfile::tempdir()?,
        };
        let base_url = server.base_url(Api::Anthropic);
        let config = format!(
            "model = \"mock/bench\"\n[providers.mock]\napi = \"anthropic\"\nbase_url = \"{base_url}\"\n\
             [models.\"mock/bench\"]\ncontext_window = 10000000\nmax_output_tokens = 8192\n"
        );
        std::fs::write(place.home.path().join("config.toml"), config)?;
        std::fs::write(
            place.project.path().join("notes.txt"),
            "one line\n".repeat(NOTES_LINES),
        )?;
        Ok(place)
    }

    /// Returns the folder of the configuration.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Appends text to `config.toml`.
    pub(crate) fn append_config(&self, text: &str) -> anyhow::Result<()> {
        let file = self.home.path().join("config.toml");
        let before = std::fs::read_to_string(&file)?;
        Ok(std::fs::write(file, before + text)?)
    }

    /// Returns the command `haft` with these arguments.
    pub(crate) fn haft_command(&self, haft: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(haft);
        command
            .args(arguments)
            .current_dir(self.project.path())
            .env("HAFT_HOME", self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Returns the command of another agent in the same project, with a clean environment.
    pub(crate) fn other_agent_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .current_dir(self.project.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Returns the working folder.
    pub(crate) fn project(&self) -> &Path {
        self.project.path()
    }

    /// Returns the command for a run of `haft` with this task.
    pub(crate) fn task_command(&self, haft: &Path, task: &str) -> Command {
        self.task_command_with(haft, &[], task)
    }

    /// Returns the command for a run of `haft` with this task and these options.
    pub(crate) fn task_command_with(&self, haft: &Path, options: &[&str], task: &str) -> Command {
        let usual = [
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
        ];
        let mut command = self.haft_command(haft, &[&usual, options, &[task]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// The resources that one run used.
pub(crate) struct RunUsage {
    /// The time at which the process was started.
    pub(crate) started: Instant,
    /// The peak memory in megabytes.
    pub(crate) peak_mb: f64,
    /// The processor time, including child processes that were waited for.
    pub(crate) processor: Duration,
}

/// Runs a command to its end, measures it, and checks that it succeeded.
pub(crate) fn run_measured(mut command: Command) -> anyhow::Result<RunUsage> {
    let started = Instant::now();
    let mut child = command.spawn().context("cannot start it")?;
    let mut peak = 0.0_f64;
    let mut processor = Duration::ZERO;
    // The kernel discards both values with the process, so they are polled while it lives.
    let status = loop {
        peak = peak.max(read_peak_memory_mb(child.id()).unwrap_or_default());
        processor = processor.max(read_processor_time(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut complaint)?;
    }
    ensure!(status.success(), "it ended with {status}: {complaint}");
    Ok(RunUsage {
        started,
        peak_mb: peak,
        processor,
    })
}

/// Returns the peak memory of a process so far, in megabytes.
pub(crate) fn read_peak_memory_mb(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb: f64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .context("no peak")?;
    Ok(kb / 1024.0)
}

/// Returns the processor time of a process so far, including child processes that it waited for.
/// The resolution is 10 ms.
fn read_processor_time(process: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').context("no name")?;
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(str::parse::<u64>)
        .sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}
