//! haft as an MCP server: other agents delegate tasks to it, watch them, answer their questions and
//! approvals, and read their results.
//!
//! Sessions are not `Send`, so they run as local tasks ([`tasks`]). The protocol ([`handler`])
//! reads the state of each task through a watch channel ([`task_view`]).
//!
//! Invariant: a waiting call never holds a session, so it can end at any moment.

mod attached_tasks;
mod elicitation;
mod handler;
mod http_server;
mod line_transport;
mod task_view;
mod tasks;
mod tools;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::service::{ServerInitializeError, serve_server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::LocalSet;

use crate::host::Host;
pub use attached_tasks::{AttachedTask, AttachedTasks, FollowedState};
use handler::TaskHandler;
pub use http_server::HttpAccess;
use line_transport::LineTransport;
pub use task_view::{TaskApproval, TaskQuestion, TaskState, TaskStatus, TaskView};
pub use tasks::{DelegatedTask, DelegatedTasks, RunRequest, TaskCaller, TaskError, TaskRuns};

/// The MCP server to which other agents delegate tasks.
pub struct TaskServer {
    /// Opens the sessions.
    pub host: Arc<Host>,
    /// The folder for tasks whose call names none.
    pub cwd: PathBuf,
}

impl TaskServer {
    /// Serves one client over `input` and `output`, until the input ends or `end` resolves. At the
    /// end, running tasks are canceled; they can be continued later.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        end: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.run_with_tasks(async |tasks: Arc<DelegatedTasks>| {
            let transport = LineTransport::new(input, output, tasks.shutdown.clone());
            let serving = async {
                match serve_server(TaskHandler::new(Arc::clone(&tasks)), transport).await {
                    Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
                    Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                    Err(error) => Err(io::Error::other(error)),
                }
            };
            tokio::select! { spoken = serving => spoken, () = end => Ok(()) }
        })
        .await
    }

    /// Serves clients over HTTP until `end` resolves. Only clients that send the token are served.
    pub async fn serve_http(
        self,
        access: HttpAccess,
        end: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.run_with_tasks(async |tasks: Arc<DelegatedTasks>| {
            tokio::select! { () = http_server::serve_connections(access, tasks) => {}, () = end => {} }
            Ok(())
        })
        .await
    }

    /// Calls `serve` while tasks run on the current thread, and shuts the tasks down afterwards.
    async fn run_with_tasks(
        self,
        serve: impl AsyncFnOnce(Arc<DelegatedTasks>) -> io::Result<()>,
    ) -> io::Result<()> {
        let local = LocalSet::new();
        let served = local.run_until(async {
            let (tasks, runs) = DelegatedTasks::new(self.host, self.cwd, TaskCaller::Program);
            tokio::task::spawn_local(runs.run_until_closed());
            let served = serve(Arc::clone(&tasks)).await;
            tasks.shut_down().await;
            served
        });
        served.await
    }
}
