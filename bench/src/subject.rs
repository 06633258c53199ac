//! Runs the binary under measurement in a home of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_testkit::ScriptedServer;
use haft_types::Api;
use tempfile::TempDir;

/// A home and a project for one run.
pub(crate) struct Place {
    home: TempDir,
    project: TempDir,
}

/// Lines of the file `notes.txt`.
const NOTES: usize = 1_100;

impl Place {
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
            "one line\n".repeat(NOTES),
        )?;
        Ok(place)
    }

    /// The folder of the configuration.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Adds text to the configuration.
    pub(crate) fn add_configuration(&self, text: &str) -> anyhow::Result<()> {
        let file = self.home.path().join("config.toml");
        let before = std::fs::read_to_string(&file)?;
        Ok(std::fs::write(file, before + text)?)
    }

    /// `haft` with these arguments, ready to be started.
    pub(crate) fn haft(&self, haft: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(haft);
        command
            .args(arguments)
            .current_dir(self.project.path())
            .env("HAFT_HOME", self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Another agent, in the same project and home and with nothing else of the user's.
    pub(crate) fn other(&self, program: &Path) -> Command {
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

    /// The folder that is worked in.
    pub(crate) fn project(&self) -> &Path {
        self.project.path()
    }

    /// A run of `haft` with this task, ready to be started.
    pub(crate) fn command(&self, haft: &Path, task: &str) -> Command {
        self.command_with(haft, &[], task)
    }

    /// The same with more options.
    pub(crate) fn command_with(&self, haft: &Path, options: &[&str], task: &str) -> Command {
        let usual = [
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
        ];
        let mut command = self.haft(haft, &[&usual, options, &[task]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }
}

/// What one run used.
pub(crate) struct Ran {
    /// When the process was started.
    pub(crate) started: Instant,
    /// Its peak memory in megabytes.
    pub(crate) peak_mb: f64,
    /// The processor time it used, with the processes it waited for.
    pub(crate) processor: Duration,
}

/// Runs to the end and checks that the run succeeded.
pub(crate) fn run(mut command: Command) -> anyhow::Result<Ran> {
    let started = Instant::now();
    let mut child = command.spawn().context("cannot start it")?;
    let mut peak = 0.0_f64;
    let mut processor = Duration::ZERO;
    // The kernel forgets both with the process, so they are read while the process lives.
    let status = loop {
        peak = peak.max(peak_memory(child.id()).unwrap_or_default());
        processor = processor.max(processor_time(child.id()).unwrap_or_default());
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
    Ok(Ran {
        started,
        peak_mb: peak,
        processor,
    })
}

/// The most memory a process has used so far, in megabytes.
pub(crate) fn peak_memory(process: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb: f64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .context("no peak")?;
    Ok(kb / 1024.0)
}

/// The processor time of a process so far, with those it waited for; the kernel counts it in
/// hundredths of a second.
fn processor_time(process: u32) -> anyhow::Result<Duration> {
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
