//! `haft serve`: a local web page that shows conversations and the requests sent to the model.

mod browser;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use haft_acp::{AttachedTasks, DelegatedTasks, TaskCaller};
use haft_serve::{AccessToken, JobRow, PageRuns, serve};
use tokio::task::LocalSet;
use uuid::Uuid;

use self::browser::BrowserOpening;

use crate::cli::options::Common;
use crate::commands::acp::build_host;
use crate::commands::context::build_inspector;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::jobs::{BackgroundJob, JobFolder};
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The port on 127.0.0.1 to listen on; a free one when absent.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,

    /// Open the page in the browser.
    #[arg(long)]
    pub(crate) open: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, args: &ServeArgs) -> anyhow::Result<ProcessExit> {
    let host = Arc::new(build_host(haft, args.common.clone(), None, None)?);
    let loaded = host.loaded();
    let settings = Settings {
        places: loaded.places.clone(),
        config: loaded.config.clone(),
    };
    let store = settings.open_store()?;
    let token = generate_token();
    let access = AccessToken::new(token.clone());
    let form_token = access.form_token();
    let models = host.available_models();
    let mode = host.default_mode();
    let cwd = std::env::current_dir()?;
    let (tasks, work) = DelegatedTasks::new(host, cwd.clone(), TaskCaller::User);
    let jobs = JobFolder::new(settings.places.jobs_folder());
    let runs = Some(PageRuns {
        tasks: Arc::clone(&tasks),
        attached: AttachedTasks::new(settings.places.attach_folder()),
        cwd,
        models,
        mode,
        jobs: Box::new(move || list_job_rows(&jobs)),
    });
    let site = Arc::new(build_inspector(
        haft,
        store,
        &settings,
        &args.common,
        form_token,
        runs,
    ));
    let local = LocalSet::new();
    local.spawn_local(work.run_until_closed());
    wiring::build_runtime()?.block_on(local.run_until(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener =
            listener.map_err(|error| usage_error(text!("serve-cannot-listen", address, error)))?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}/?token={token}");
        output::print_text(&format!("{}\n", text!("serve-listening", url)))?;
        if args.open {
            let ticket = generate_token();
            access.issue_ticket(ticket.clone());
            match BrowserOpening::start(
                settings.environment(),
                &settings.places.state,
                &format!("http://{address}/?ticket={ticket}"),
            ) {
                Ok(opening) => drop(tokio::task::spawn_local(opening.finish(access.clone()))),
                Err(why) => {
                    access.revoke_ticket();
                    output::print_to_stderr(&format!("haft: {why}"));
                }
            }
        }
        let end = async {
            // If signals cannot be awaited, the process runs until the system ends it.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        serve(listener, site, access, end).await;
        tasks.shut_down().await;
        Ok(ProcessExit::Completed)
    }))
}

/// Lists background jobs for the page, newest first.
fn list_job_rows(jobs: &JobFolder) -> Vec<JobRow> {
    let all = jobs.list_jobs().unwrap_or_default();
    let row = |job: BackgroundJob| JobRow {
        conversation: job.conversation_id(),
        state: job.state().name(),
        cwd: job.request.cwd.display().to_string(),
        task: job.request.task.unwrap_or(job.request.id),
    };
    all.into_iter().map(row).collect()
}

/// Returns 244 random bits as letters and digits.
fn generate_token() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
