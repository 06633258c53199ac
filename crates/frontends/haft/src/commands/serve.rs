//! `haft serve`: a local web page that shows conversations and the requests sent to the model.

mod opening;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use haft_acp::{DelegatedTasks, Host as _};
use haft_serve::{AccessToken, JobRow, PageRuns, serve};
use tokio::task::LocalSet;
use uuid::Uuid;

use self::opening::BrowserOpening;

use crate::cli::options::Common;
use crate::commands::acp::DrivenHost;
use crate::commands::context::inspector;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
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
    let host = Arc::new(DrivenHost::new(haft, args.common.clone(), None, None)?);
    let settings = host.settings();
    let store = settings.store()?;
    let token = secret();
    let access = AccessToken::new(token.clone());
    let form_token = access.for_forms();
    let models = host.models();
    let mode = host.mode();
    let cwd = std::env::current_dir()?;
    let (tasks, work) = DelegatedTasks::new(host, cwd.clone());
    let jobs = JobFolder::at(settings.places.jobs());
    let runs = Some(PageRuns {
        tasks: Arc::clone(&tasks),
        cwd,
        models,
        mode,
        jobs: Box::new(move || job_rows(&jobs)),
    });
    let site = Arc::new(inspector(
        haft,
        store,
        &settings,
        &args.common,
        form_token,
        runs,
    ));
    let local = LocalSet::new();
    local.spawn_local(work.work());
    wiring::runtime()?.block_on(local.run_until(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = tokio::net::TcpListener::bind(address).await;
        let listener =
            listener.map_err(|error| usage_error(text!("serve-cannot-listen", address, error)))?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}/?token={token}");
        output::print(&format!("{}\n", text!("serve-listening", url)))?;
        if args.open {
            let ticket = secret();
            access.issue_ticket(ticket.clone());
            match BrowserOpening::start(
                &settings.places.state,
                &format!("http://{address}/?ticket={ticket}"),
            ) {
                Ok(opening) => drop(tokio::task::spawn_local(opening.finish(access.clone()))),
                Err(why) => {
                    access.revoke_ticket();
                    output::tell(&format!("haft: {why}"));
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
fn job_rows(jobs: &JobFolder) -> Vec<JobRow> {
    let all = jobs.all().unwrap_or_default();
    let row = |job: BackgroundJob| JobRow {
        conversation: job.conversation(),
        state: job.state().word(),
        cwd: job.told.cwd.display().to_string(),
        task: job.told.task.unwrap_or(job.told.id),
    };
    all.into_iter().map(row).collect()
}

/// Returns 244 random bits as letters and digits.
fn secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
