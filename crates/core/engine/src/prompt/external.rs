//! Learns the usage of external tools by running them with help arguments.
//!
//! A tool is queried at most once for each version of its file, in a sandbox, with a timeout of a
//! few seconds for each help argument; its output is cached on disk. Invariant: a request waits
//! only for tools that were never queried before, and at most [`HelpSettings::wait`] for all of
//! them together. Output that arrives later is cached, and shown when the prefix is cold.

mod shelf;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use haft_project::Level;
use haft_project::external::{ExternalTool, Help, HelpAnswer, HelpCache};
use haft_sandbox::{
    Capture, CommandExit, CommandSpec, ConfinementSpec, FinishedCommand, Supervisor,
};
use haft_text::CutLimits;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use shelf::{ExternalShelf, Late};

/// The maximum number of tools that are queried at a time.
const AT_ONCE: usize = 4;
/// The part of a tool's output that is kept.
const LIMITS: CutLimits = CutLimits {
    lines: 120,
    bytes: 6 * 1024,
};
/// The help arguments to try, in order.
const WAYS: [&str; 3] = ["help", "-h", "--help"];

/// The sandbox in which tools are queried.
#[async_trait]
pub trait HelpCell: Send + Sync {
    /// Returns the confinement of the tools. If `None`, no sandbox is available and no tool is run.
    async fn confined(&self) -> Option<Arc<ConfinementSpec>>;

    /// Returns true if the project's tools have not changed since the user trusted the project.
    fn is_trusted(&self) -> bool;
}

/// The services and limits for querying tools.
pub struct Asking {
    pub supervisor: Arc<Supervisor>,
    pub cell: Arc<dyn HelpCell>,
    /// The environment variables of the tools.
    pub environment: Arc<Vec<(String, String)>>,
    /// The time limit for each help argument.
    pub timeout: Duration,
    /// The time that a request waits for all tools together.
    pub wait: Duration,
}

/// The known help texts of external tools.
#[derive(Clone)]
pub struct ToolHelp {
    cache: HelpCache,
    asking: Option<Arc<Asking>>,
    /// The queries that continue in the background. Dropping the set aborts them.
    running: Arc<Mutex<JoinSet<()>>>,
}

impl ToolHelp {
    /// Creates the help texts with a cache. Without settings, no tool is run.
    pub fn new(cache: HelpCache, asking: Option<Asking>) -> Self {
        Self {
            cache,
            asking: asking.map(Arc::new),
            running: Arc::default(),
        }
    }

    /// Returns the cached help of a tool, or the header of the tool's file, without running the
    /// tool.
    pub fn known(&self, tool: &ExternalTool) -> Help {
        match self.cache.get(tool) {
            Some(HelpAnswer::Told(text)) => Help::Told(text),
            Some(HelpAnswer::Silent | HelpAnswer::Begun) | None => match tool.header() {
                Some(text) => Help::Header(cut(&text)),
                None => Help::Nothing,
            },
        }
    }

    /// Queries the tools without a cached answer. Waits only for tools that were never queried
    /// before.
    pub async fn learn(&self, tools: &[ExternalTool], cancel: &CancellationToken) {
        let Some(asking) = &self.asking else { return };
        self.ask_within(asking, tools, asking.wait, cancel).await;
    }

    /// Queries one tool and waits for the answer, unless the answer is cached.
    pub async fn ask(&self, tool: &ExternalTool, cancel: &CancellationToken) {
        let Some(asking) = &self.asking else { return };
        // The time for all help arguments, plus the time to end the process.
        let all = asking.timeout * (WAYS.len() as u32) + Duration::from_secs(5);
        if matches!(self.cache.get(tool), None | Some(HelpAnswer::Begun)) {
            self.run(asking, vec![tool.clone()], all, cancel).await;
        }
    }

    async fn ask_within(
        &self,
        asking: &Arc<Asking>,
        tools: &[ExternalTool],
        wait: Duration,
        cancel: &CancellationToken,
    ) {
        let mut fresh = Vec::new();
        let mut again = Vec::new();
        for tool in tools.iter().filter(|tool| tool.command().is_some()) {
            match self.cache.get(tool) {
                None => fresh.push(tool.clone()),
                Some(HelpAnswer::Begun) => again.push(tool.clone()),
                Some(HelpAnswer::Silent | HelpAnswer::Told(_)) => {}
            }
        }
        self.run(asking, fresh, wait, cancel).await;
        self.run(asking, again, Duration::ZERO, cancel).await;
    }

    /// Starts queries and waits for them at most `wait`; queries that take longer continue in the
    /// background.
    async fn run(
        &self,
        asking: &Arc<Asking>,
        mut tools: Vec<ExternalTool>,
        wait: Duration,
        cancel: &CancellationToken,
    ) {
        if tools.iter().any(|tool| tool.level == Level::Project) && !asking.cell.is_trusted() {
            tools.retain(|tool| tool.level != Level::Project);
        }
        if tools.is_empty() {
            return;
        }
        let Some(confined) = asking.cell.confined().await else {
            return;
        };
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut asked = JoinSet::new();
        for tool in tools {
            let asking = Arc::clone(asking);
            let cache = self.cache.clone();
            let confined = Arc::clone(&confined);
            let room = Arc::clone(&room);
            asked.spawn(async move {
                let Ok(_room) = room.acquire().await else {
                    return;
                };
                // If the cache can't be written, the tool is queried again: this costs only time.
                let _ = cache.put(&tool, HelpAnswer::Begun);
                let answer = ask(&asking, &tool, confined).await;
                let _ = cache.put(&tool, answer);
            });
        }
        let all = async { while asked.join_next().await.is_some() {} };
        tokio::select! {
            _ = tokio::time::timeout(wait, all) => {}
            () = cancel.cancelled() => {}
        }
        if !asked.is_empty() {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.spawn(async move { while asked.join_next().await.is_some() {} });
        }
    }
}

/// Runs a tool with each help argument until one succeeds with output.
async fn ask(asking: &Asking, tool: &ExternalTool, confined: Arc<ConfinementSpec>) -> HelpAnswer {
    let Some(command) = tool.command() else {
        return HelpAnswer::Silent;
    };
    for way in WAYS {
        let argv = command.iter().cloned().chain([way.into()]).collect();
        let command = CommandSpec {
            argv,
            ..CommandSpec::shell("", tool.folder())
        }
        .env(asking.environment.as_ref().clone())
        .timeout(asking.timeout)
        .confined(Some(Arc::clone(&confined)));
        let capture = Capture {
            limits: LIMITS,
            ..Capture::default()
        };
        let ran = asking
            .supervisor
            .run(&command, &capture, &CancellationToken::new())
            .await;
        if let Ok(FinishedCommand {
            exit: CommandExit::Code(0),
            stdout,
            stderr,
            ..
        }) = ran
        {
            let said = [stdout, stderr]
                .into_iter()
                .map(|stream| stream.text(LIMITS).text);
            if let Some(text) = said
                .map(|text| text.trim().to_owned())
                .find(|text| !text.is_empty())
            {
                return HelpAnswer::Told(text);
            }
        }
    }
    HelpAnswer::Silent
}

fn cut(text: &str) -> String {
    haft_text::cut_lines(&haft_text::sanitise(text), LIMITS).text
}
