//! How long a command that does nothing takes, with the supervisor and without: `cargo run
//! --release --example round_trip`.
#![expect(
    clippy::disallowed_methods,
    reason = "the example starts its own programs"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_sandbox::{
    Capture, CommandSpec, ConfinementMethod, ConfinementSpec, Network, OwnProgram, PidNamespace,
    SandboxError, SandboxPolicy, Supervisor, helper_entry, secret_paths,
};
use tokio_util::sync::CancellationToken;

const RUNS: u32 = 200;

fn main() -> ExitCode {
    if let Some(code) = helper_entry(std::env::args_os()) {
        return code;
    }
    match measure() {
        Ok(report) => {
            show(&report);
            ExitCode::SUCCESS
        }
        Err(error) => {
            show(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "an example is for reading")]
fn show(text: &str) {
    println!("{text}");
}

fn measure() -> Result<String, Box<dyn std::error::Error>> {
    let helper = OwnProgram::open_running()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = format!("{RUNS} runs of `sh -c true`, mean and slowest\n");
    for namespace in [PidNamespace::Privileged, PidNamespace::Never] {
        let supervisor = Supervisor::new(helper.clone()).with_pid_namespace(namespace);
        let (mean, slowest) = runtime.block_on(time(&supervisor, None))?;
        writeln!(report, "{namespace:?}: {mean:?}, {slowest:?}")?;
    }
    let folder = tempfile::tempdir()?;
    for method in [ConfinementMethod::Namespace, ConfinementMethod::Landlock] {
        let confined = Arc::new(ConfinementSpec {
            method,
            policy: policy(folder.path())?,
        });
        let (mean, slowest) =
            runtime.block_on(time(&Supervisor::new(helper.clone()), Some(confined)))?;
        writeln!(report, "confined, {method:?}: {mean:?}, {slowest:?}")?;
    }
    let started = Instant::now();
    for _ in 0..RUNS {
        std::process::Command::new("/bin/sh")
            .args(["-c", "true"])
            .env_clear()
            .status()?;
    }
    write!(report, "without: {:?}", started.elapsed() / RUNS)?;
    Ok(report)
}

fn policy(folder: &Path) -> std::io::Result<SandboxPolicy> {
    let inside = |name: &str| folder.join(name);
    for name in ["project", "tmp"] {
        std::fs::create_dir_all(inside(name))?;
    }
    Ok(SandboxPolicy {
        projects: vec![inside("project")],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden: secret_paths(Some(folder)),
        readable: Vec::new(),
        tmp: inside("tmp"),
        notes: inside("notes"),
        home: None,
        network: Network::None,
    })
}

async fn time(
    supervisor: &Supervisor,
    confined: Option<Arc<ConfinementSpec>>,
) -> Result<(Duration, Duration), SandboxError> {
    let mut slowest = Duration::ZERO;
    let started = Instant::now();
    for _ in 0..RUNS {
        let command = CommandSpec::shell("true", "/").with_confinement(confined.clone());
        let finished = supervisor
            .run(&command, &Capture::default(), &CancellationToken::new())
            .await?;
        slowest = slowest.max(finished.duration);
    }
    Ok((started.elapsed() / RUNS, slowest))
}
