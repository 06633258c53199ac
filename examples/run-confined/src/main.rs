//! Runs a command line that can write only to one folder and reach no network:
//! `cargo run -p run-confined -- FOLDER 'touch here; touch /etc/there'`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use haft_sandbox::{
    CancellationToken, Capture, CommandExit, CommandSpec, CutLimits, Network, OwnProgram, Sandbox,
    SandboxMode, SandboxPolicy, Supervisor, helper_entry,
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // This program is also the supervisor of its commands: first thing in `main`.
    if let Some(code) = helper_entry(std::env::args_os()) {
        return Ok(code);
    }
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(line)) = (arguments.next(), arguments.next()) else {
        return Err("usage: run-confined FOLDER COMMAND-LINE".into());
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(run(PathBuf::from(folder).canonicalize()?, line))
}

async fn run(folder: PathBuf, line: String) -> Result<ExitCode, Box<dyn Error>> {
    let private = std::env::temp_dir().join(format!("run-confined-{}", std::process::id()));
    std::fs::create_dir_all(private.join("tmp"))?;
    std::fs::create_dir_all(private.join("covers"))?;
    let policy = SandboxPolicy {
        projects: vec![folder.clone()],
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden: Vec::new(),
        readable: Vec::new(),
        tmp: private.join("tmp"),
        notes: private.join("covers"),
        home: None,
        network: Network::None,
    };
    let supervisor = Supervisor::new(OwnProgram::open_running()?);
    let sandbox = Sandbox::set_up(&supervisor, policy, SandboxMode::Auto).await;
    println!("sandbox: {}", sandbox.status().layer);
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let command = CommandSpec::shell(line, folder)
        .with_env(environment)
        .with_confinement(sandbox.confinement());
    let finished = supervisor
        .run(&command, &Capture::default(), &CancellationToken::new())
        .await;
    std::fs::remove_dir_all(&private)?;
    let finished = finished?;
    for output in [finished.stdout, finished.stderr] {
        print!("{}", output.text(CutLimits::default()).text);
    }
    Ok(match finished.exit {
        CommandExit::Code(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        CommandExit::Signal(_) | CommandExit::TimedOut | CommandExit::Cancelled => ExitCode::FAILURE,
    })
}
