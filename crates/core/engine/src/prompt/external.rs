//! Asks external tools how they are used, by running them.
//!
//! A tool is asked at most once for each state of its file, in a sandbox, each way for a few
//! seconds; what it said is remembered on disk. Invariant: a request waits for tools that were
//! never asked before, and never longer than [`Asking::wait`] for all of them together; what
//! answers later is remembered, and shown when the prefix is cold.

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

/// So many tools are asked at once.
const AT_ONCE: usize = 4;
/// So much is taken of what one says.
const LIMITS: CutLimits = CutLimits {
    lines: 120,
    bytes: 6 * 1024,
};
/// The ways to ask, in order.
const WAYS: [&str; 3] = ["help", "-h", "--help"];

/// Where tools are asked, and whether they may be.
#[async_trait]
pub trait HelpCell: Send + Sync {
    /// What holds them in; none when there is no sandbox to be had, and then nothing is run.
    async fn confined(&self) -> Option<Arc<ConfinementSpec>>;

    /// Whether what would run of the project is still what its user trusted.
    fn is_trusted(&self) -> bool;
}

/// How tools are asked.
pub struct Asking {
    /// Runs them.
    pub supervisor: Arc<Supervisor>,
    /// Where.
    pub cell: Arc<dyn HelpCell>,
    /// Their environment.
    pub environment: Arc<Vec<(String, String)>>,
    /// How long each way to ask may take.
    pub timeout: Duration,
    /// How long a request waits for all of them.
    pub wait: Duration,
}

/// How external tools are used, as far as that is known.
#[derive(Clone)]
pub struct ToolHelp {
    cache: HelpCache,
    asking: Option<Arc<Asking>>,
    /// Those that are asked now. Whoever drops it ends them.
    running: Arc<Mutex<JoinSet<()>>>,
}

impl ToolHelp {
    /// What is remembered there; without `asking` nothing is run.
    pub fn new(cache: HelpCache, asking: Option<Asking>) -> Self {
        Self {
            cache,
            asking: asking.map(Arc::new),
            running: Arc::default(),
        }
    }

    /// What is known of a tool without running it.
    pub fn known(&self, tool: &ExternalTool) -> Help {
        match self.cache.get(tool) {
            Some(HelpAnswer::Told(text)) => Help::Told(text),
            Some(HelpAnswer::Silent | HelpAnswer::Begun) | None => match tool.header() {
                Some(text) => Help::Header(cut(&text)),
                None => Help::Nothing,
            },
        }
    }

    /// Asks those that have not answered yet. Waits only for those that were never asked.
    pub async fn learn(&self, tools: &[ExternalTool], cancel: &CancellationToken) {
        let Some(asking) = &self.asking else { return };
        self.ask_within(asking, tools, asking.wait, cancel).await;
    }

    /// Asks one tool unless it has answered already, and waits until it has.
    pub async fn ask(&self, tool: &ExternalTool, cancel: &CancellationToken) {
        let Some(asking) = &self.asking else { return };
        // Three ways, and what ending it takes.
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

    /// Starts to ask these and waits so long; those that take longer go on.
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
                // What cannot be remembered is asked again: that costs time, nothing else.
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

/// Asks one tool in all ways; the first that ends well and says something counts.
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
