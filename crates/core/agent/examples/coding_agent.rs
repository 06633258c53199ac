//! A coding agent with a store and a sandbox: it works in a folder, and its conversation can be
//! taken up again.
//!
//! `cargo run -p haft-agent --example coding_agent -- http://127.0.0.1:8080 FOLDER "Fix the greeting"` asks a model that speaks
//! Anthropic's protocol there, such as the scripted one.

#![expect(clippy::print_stdout, reason = "a program says what it found")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use haft_agent::config::Config;
use haft_agent::{Agent, HostEnvironment, Places};
use haft_model::ProviderConfig;
use haft_sandbox::OwnProgram;
use haft_types::{Api, Event, PermissionMode, TurnResult};
use tokio_util::sync::CancellationToken;

/// Does the task in the project; everything that lasts is kept under `home`.
pub(crate) async fn work(
    url: &str,
    (home, project): (&Path, &Path),
    task: &str,
    tell: &mut (dyn FnMut(&Event) + Send),
) -> Result<TurnResult, Box<dyn Error>> {
    let environment =
        HostEnvironment::new(std::env::vars_os()).with_helper_program(OwnProgram::open_running()?);
    let agent = Agent::new(Places::under_home(home, environment), Config::default())
        .project(project)
        .with_provider("mock", ProviderConfig::new(Api::Anthropic, url))
        .model("mock/any")
        .permission_mode(PermissionMode::AcceptEdits);
    let mut session = agent.start(task).await?;
    let report = session
        .run(
            Some(task.to_owned()),
            &mut |event: &Event| tell(event),
            &CancellationToken::new(),
        )
        .await;
    session.close().await;
    Ok(report.result)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // First of all: the same executable supervises the commands it runs.
    if let Some(code) = haft_sandbox::helper_entry(std::env::args_os()) {
        return Ok(code);
    }
    let [_, url, project, task] = <[String; 4]>::try_from(std::env::args().collect::<Vec<_>>())
        .map_err(|_| "give an address, a folder and a task")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let folders = (Path::new(".haft-example"), Path::new(&project));
    println!(
        "{}",
        runtime
            .block_on(work(&url, folders, &task, &mut |_| {}))?
            .text
    );
    Ok(ExitCode::SUCCESS)
}
