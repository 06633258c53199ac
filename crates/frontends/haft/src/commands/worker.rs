//! `haft worker`: takes tasks from the team's queue and runs them.

mod webhook;

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
use haft_worker::{
    BuildGit, TaskRunner, Worker, WorkerConfig, WorkerOptions, WorkerStop, Workspaces,
    serve_metrics,
};
use tokio_util::sync::CancellationToken;

use crate::cli::options::{Common, parse_seconds};
use crate::commands::permissions;
use crate::commands::queue::show as queue_show;
#[cfg(feature = "workflows")]
use crate::commands::workflows;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::wiring::ClientParts;
use crate::{output, wiring};

/// The shortest time limit of an operation on the store of a task.
const MIN_STORE_TIMEOUT: Duration = Duration::from_secs(5);

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

    /// Take only this task, or the `next` one, wait for its end and exit with its outcome: for
    /// schedulers that start a worker for each task.
    #[arg(long, value_name = "TASK", value_parser = parse_task, conflicts_with_all = ["slots", "until_empty"])]
    pub(crate) task: Option<TaskChoice>,

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

/// The task of a worker that takes a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskChoice {
    Next,
    Number(i64),
}

impl TaskChoice {
    fn number(self) -> Option<i64> {
        match self {
            Self::Next => None,
            Self::Number(id) => Some(id),
        }
    }
}

fn parse_task(text: &str) -> Result<TaskChoice, String> {
    if text == "next" {
        return Ok(TaskChoice::Next);
    }
    let number = text.parse().map(TaskChoice::Number);
    number.map_err(|_| text!("worker-bad-task").into())
}

/// Returns the address of the configured team store.
pub(crate) fn server_address(config: &Config) -> anyhow::Result<&str> {
    let url = config.store.url.as_deref();
    url.ok_or_else(|| usage_error(text!("queue-no-server")))
}

/// Connects to the queue of the configured team store.
pub(crate) fn connect_queue(config: &Config) -> anyhow::Result<TaskQueue> {
    let url = server_address(config)?;
    Ok(TaskQueue::connect(url, config.store.lock_timeout())?)
}

/// Like [`connect_queue`], for heartbeats: an attempt must not take longer than the part of the
/// lease in which the next one is due.
fn connect_for_heartbeats(config: &Config, lease: Duration) -> anyhow::Result<TaskQueue> {
    let url = server_address(config)?;
    let timeout = lease / 3;
    let lock_timeout = config.store.lock_timeout().min(timeout);
    Ok(TaskQueue::connect_with_timeout(url, lock_timeout, timeout)?)
}

pub(crate) fn run(haft: &Haft, args: WorkerArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    let config = &settings.config;
    if config.sandbox.mode == SandboxMode::Off {
        return Err(usage_error(text!("worker-sandbox-off")));
    }
    let queue = Arc::new(connect_queue(config)?);
    if let Some(id) = args.task.and_then(TaskChoice::number)
        && queue.get_task(id)?.is_none()
    {
        return Err(usage_error(text!("queue-unknown", id)));
    }
    let heart = connect_for_heartbeats(config, args.lease)?;
    let server = server_address(config)?.to_owned();
    let limits: WorkerConfig = config.read_section(haft_worker::SECTION)?;
    let webhook = webhook::build_webhook(haft.environment(), &limits)?;
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
        name = options.taker.name.as_str(),
        slots = options.slots
    ));
    let keep = Duration::from_hours(24) * limits.keep_days;
    let runner = build_runner(settings, args.model, args.lease, limits);
    let worker = Worker {
        queue: Arc::clone(&queue),
        heartbeat_queue: heart,
        server,
        workspaces,
        runner,
        webhook,
        keep: Some(keep).filter(|keep| !keep.is_zero()),
        options,
    };
    match run_worker(worker)? {
        WorkerEnd::Abandoned => {
            output::print_to_stderr(text!("worker-abandons"));
            Ok(ProcessExit::Failed)
        }
        WorkerEnd::Done(taken) => {
            let named = args.task.and_then(TaskChoice::number);
            match named.or(taken) {
                Some(id) => exit_for_task(&queue, id),
                None => Ok(ProcessExit::Completed),
            }
        }
    }
}

/// The end of a worker.
enum WorkerEnd {
    /// All tasks have ended or were handed over. A worker for a single task has taken this one.
    Done(Option<i64>),
    /// Running tasks could neither end nor be handed over in time.
    Abandoned,
}

fn run_worker(worker: Worker) -> anyhow::Result<WorkerEnd> {
    // A thread that waits for a dead connection does not keep the process: the runtime is shut down
    // without waiting for it.
    wiring::build_runtime()?.block_on(async move {
        let requests = WorkerStop::default();
        handle_signals(&requests.stop, &requests.at_once);
        let abandoned = requests.abandoned.clone();
        let running = tokio::task::spawn_blocking(move || worker.run_until_stopped(&requests));
        tokio::select! {
            ended = running => Ok(WorkerEnd::Done(ended??)),
            () = abandoned.cancelled() => Ok(WorkerEnd::Abandoned),
        }
    })
}

/// Returns the exit code of a worker that was started for one task: that of the task's outcome. A
/// task that was handed over has none, so a scheduler starts it again.
fn exit_for_task(queue: &TaskQueue, id: i64) -> anyhow::Result<ProcessExit> {
    let task = queue
        .get_task(id)?
        .ok_or_else(|| usage_error(text!("queue-unknown", id)))?;
    if task.state.is_over() {
        Ok(queue_show::exit_for_task(&task))
    } else {
        output::print_to_stderr(&text!("worker-task-open", id, state = task.status.as_str()));
        Ok(ProcessExit::Failed)
    }
}

/// Builds the runner of tasks, whose agents have the extensions of this build.
fn build_runner(
    settings: Settings,
    model: Option<String>,
    task_lease: Duration,
    worker: WorkerConfig,
) -> TaskRunner {
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
                store_timeout: Some((task_lease / 2).max(MIN_STORE_TIMEOUT)),
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
        slots: args.slots,
        drain: args.drain,
        until_empty: args.until_empty,
        takes_one: args.task.is_some(),
        taker: WorkerProfile {
            worker: 0,
            name: format!("{}:{}", holder.host, holder.pid),
            slots: i64::from(args.slots),
            lease: args.lease,
            labels: args.labels.clone(),
            except: args.except.clone(),
            only: args.task.and_then(TaskChoice::number),
            holding: Vec::new(),
            usd_limit: limits.task_usd,
            token_limit: limits.task_tokens,
            limits: limits.spending_limits(),
            per_repository: limits.repository_tasks.map(i64::from),
            per_label: limits.concurrency_limits(),
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
    let host = settings.environment();
    let agent = host
        .variable("SSH_AUTH_SOCK")
        .and_then(|path| fs::canonicalize(path).ok());
    let is_socket = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|found| found.file_type().is_socket())
    };
    let build_git = make_git_builder(settings, folder.clone());
    Workspaces::new(folder, build_git, agent.filter(is_socket)).map_err(usage_error)
}

/// Returns a function that finds git and sets up the sandbox in which it runs.
fn make_git_builder(settings: &Settings, folder: PathBuf) -> BuildGit {
    let places = settings.places.clone();
    let config = settings.config.sandbox.clone();
    Box::new(move || {
        let setup = set_up_sandbox(&places, &config, PermissionMode::Plan, Vec::new());
        let runtime = wiring::build_runtime().map_err(|error| format!("{error:#}"))?;
        let sandbox = runtime.block_on(setup).map_err(|error| error.to_string())?;
        let host = &places.environment;
        // git gets the whole environment, because it contains what git needs for the network,
        // including the socket of an SSH agent.
        GitProgram::find(
            &host.supervisor(),
            &sandbox,
            &host.text_variables(),
            &[&folder],
        )
        .map_err(|error| error.to_string())
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
