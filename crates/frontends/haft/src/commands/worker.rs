//! `haft worker`: takes tasks from the team's queue and runs them.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use haft_agent::config::Config;
use haft_agent::set_up_sandbox;
use haft_postgres::{TaskQueue, WorkerProfile};
use haft_sandbox::{GitProgram, SandboxMode};
use haft_store::Holder;
use haft_types::{Clock as _, PermissionMode};
use haft_worker::{TaskRunner, Worker, WorkerConfig, WorkerOptions, Workspaces, serve_metrics};
use tokio_util::sync::CancellationToken;

use crate::cli::options::{Common, parse_seconds};
use crate::commands::permissions;
#[cfg(feature = "workflows")]
use crate::commands::workflows;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::wiring::ClientParts;
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Run this many tasks at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) slots: u16,

    /// Take only tasks with this label; may be repeated. Any task when absent.
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,

    /// Leave tasks with this label to others; may be repeated.
    #[arg(long = "except-label", value_name = "LABEL")]
    pub(crate) except: Vec<String>,

    /// The model of tasks that name none, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// A worker that is silent for this many seconds loses its tasks to others. Must be equal for
    /// all workers.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub(crate) lease: Duration,

    /// Let tasks go on for this many seconds once the worker is told to end (SIGTERM), then hand
    /// them over.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    pub(crate) drain: Duration,

    /// End once no task is left.
    #[arg(long)]
    pub(crate) until_empty: bool,

    /// Keep mirrors and workspaces in this folder. The same path for all workers keeps the paths
    /// in a conversation right.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// Serve metrics for Prometheus at this address, a free port of 127.0.0.1 when absent.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    pub(crate) metrics: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Connects to the queue of the configured team store.
pub(crate) fn connect_queue(config: &Config) -> anyhow::Result<TaskQueue> {
    let url = config
        .store
        .url
        .as_deref()
        .ok_or_else(|| usage_error(text!("queue-no-server")))?;
    Ok(TaskQueue::connect(url, config.store.lock_timeout())?)
}

pub(crate) fn run(haft: &Haft, args: WorkerArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let config = &settings.config;
    if config.sandbox.mode == SandboxMode::Off {
        return Err(usage_error(text!("worker-sandbox-off")));
    }
    let queue = Arc::new(connect_queue(config)?);
    let heart = connect_queue(config)?;
    let limits = config.read_section(haft_worker::SECTION)?;
    let options = build_options(&args, &limits);
    if let Some(address) = args.metrics {
        start_metrics(address, config)?;
    }
    let folder = args
        .folder
        .clone()
        .unwrap_or_else(|| settings.places.cache.join("worker"));
    let workspaces = build_workspaces(&settings, &folder)?;
    output::print_to_stderr(&text!(
        "worker-starts",
        name = options.name,
        slots = args.slots
    ));
    let runner = build_runner(settings, args.model, limits);
    let worker = Worker {
        queue,
        heartbeat_queue: heart,
        workspaces,
        runner,
        options,
    };
    let runtime = wiring::build_runtime()?;
    runtime.block_on(async move {
        let stop = CancellationToken::new();
        let at_once = CancellationToken::new();
        handle_signals(&stop, &at_once);
        tokio::task::spawn_blocking(move || worker.run_until_stopped(&stop, &at_once)).await??;
        anyhow::Ok(())
    })?;
    Ok(ProcessExit::Completed)
}

/// Builds the runner of tasks, whose agents have the extensions of this build.
fn build_runner(settings: Settings, model: Option<String>, worker: WorkerConfig) -> TaskRunner {
    let Settings { places, config } = settings;
    let of_agents = places.clone();
    TaskRunner {
        places,
        config,
        model,
        worker,
        build_agent: Box::new(move |config, lease| {
            let settings = Settings {
                places: of_agents.clone(),
                config,
            };
            settings.build_agent_for_client(ClientParts {
                lease: Some(lease),
                ..ClientParts::default()
            })
        }),
        check_rule: |environment, rule| {
            permissions::check_rule(environment, rule).map_err(|error| format!("{error:#}"))
        },
        #[cfg(feature = "workflows")]
        describe_workflow: workflows::report::result_message,
        #[cfg(feature = "workflows")]
        report_problem: |problem| output::print_to_stderr(&format!("haft: {problem}")),
    }
}

fn build_options(args: &WorkerArgs, limits: &WorkerConfig) -> WorkerOptions {
    let holder = Holder::for_this_process(haft_agent::WallClock.now());
    WorkerOptions {
        name: format!("{}:{}", holder.host, holder.pid),
        slots: args.slots,
        drain: args.drain,
        until_empty: args.until_empty,
        taker: WorkerProfile {
            worker: 0,
            lease: args.lease,
            labels: args.labels.clone(),
            except: args.except.clone(),
            usd_limit: limits.task_usd,
            token_limit: limits.task_tokens,
            limits: limits.spending_limits(),
        },
    }
}

/// Serves metrics at `address` in a thread that ends with the process. The thread has its own
/// connection to the queue.
fn start_metrics(address: SocketAddr, config: &Config) -> anyhow::Result<()> {
    let cannot = |error: std::io::Error| usage_error(text!("worker-cannot-listen", address, error));
    let listener = TcpListener::bind(address).map_err(cannot)?;
    output::print_to_stderr(&text!(
        "worker-metrics",
        address = listener.local_addr().map_err(cannot)?
    ));
    let queue = connect_queue(config)?;
    std::thread::spawn(move || serve_metrics(&listener, &queue));
    Ok(())
}

fn build_workspaces(settings: &Settings, folder: &Path) -> anyhow::Result<Workspaces> {
    haft_files::create_folder(folder)?;
    let folder = folder.canonicalize()?;
    if folder.to_str().is_none() {
        return Err(usage_error(text!(
            "worker-folder-not-text",
            folder = folder.display()
        )));
    }
    let setup = set_up_sandbox(
        &settings.places,
        &settings.config.sandbox,
        PermissionMode::Plan,
        Vec::new(),
    );
    let host = settings.environment();
    let sandbox = wiring::build_runtime()?.block_on(setup)?;
    // git gets the whole environment, because it contains what git needs for the network, including
    // the socket of an SSH agent.
    let git = GitProgram::find(
        &host.supervisor(),
        &sandbox,
        &host.text_variables(),
        &[&folder],
    )
    .map_err(|error| usage_error(error.to_string()))?;
    let agent = host
        .variable("SSH_AUTH_SOCK")
        .and_then(|path| fs::canonicalize(path).ok());
    let is_socket = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|found| found.file_type().is_socket())
    };
    Ok(Workspaces {
        folder,
        git,
        agent: agent.filter(is_socket),
    })
}

/// Handles interrupts and termination signals: after the first signal, the worker takes no more
/// tasks; after the second, it hands over its running tasks.
fn handle_signals(stop: &CancellationToken, at_once: &CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let Ok(mut signals) = signal(kind) else {
            continue;
        };
        let stop = stop.clone();
        let at_once = at_once.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let (token, message) = if stop.is_cancelled() {
                    (&at_once, text!("worker-hands-over"))
                } else {
                    (&stop, text!("worker-drains"))
                };
                output::print_to_stderr(message);
                token.cancel();
            }
        });
    }
}
