//! Learns the usage of external tools by running them with arguments that print help.
//!
//! The help of a tool is requested at most once for each version of the tool's file, in a sandbox,
//! with a timeout of a few seconds for each help argument. The output is cached on disk. Invariant:
//! a request to the model waits only for tools whose help was never requested before, and at most
//! [`HelpSettings::wait`] for all of them together. Output that arrives later is cached, and is
//! shown when the provider's cache has expired.

mod external_tools;

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

pub(crate) use external_tools::{ExternalTools, LateAnswers};

/// The maximum number of tools that run at a time to print their help.
const MAX_CONCURRENT_QUERIES: usize = 4;
/// The limits on the part of a tool's output that is kept as its help text.
const HELP_LIMITS: CutLimits = CutLimits {
    lines: 120,
    bytes: 6 * 1024,
};
/// The help arguments to try with each tool, in order.
const HELP_ARGUMENTS: [&str; 3] = ["help", "-h", "--help"];

/// The sandbox in which tools run to print their help.
#[async_trait]
pub trait HelpSandbox: Send + Sync {
    /// Returns the confinement of the tools, or `None` if no sandbox is available. Tools are then
    /// not run.
    async fn confinement(&self) -> Option<Arc<ConfinementSpec>>;

    /// Returns true if the project's tools have not changed since the user trusted the project.
    fn is_trusted(&self) -> bool;
}

/// The services and limits for running tools to get their help.
pub struct HelpSettings {
    pub supervisor: Arc<Supervisor>,
    pub sandbox: Arc<dyn HelpSandbox>,
    /// The environment variables with which the tools run.
    pub environment: Arc<Vec<(String, String)>>,
    /// The time limit for running a tool with one help argument.
    pub timeout: Duration,
    /// The maximum time that a request waits for all tools together.
    pub wait: Duration,
}

/// The known help texts of external tools.
#[derive(Clone)]
pub struct ToolHelp {
    cache: HelpCache,
    settings: Option<Arc<HelpSettings>>,
    /// The tools that continue to run in the background. Dropping the set aborts them.
    running: Arc<Mutex<JoinSet<()>>>,
}

impl ToolHelp {
    /// Creates the help texts from a cache. Without settings, no tool is run.
    pub fn new(cache: HelpCache, asking: Option<HelpSettings>) -> Self {
        Self {
            cache,
            settings: asking.map(Arc::new),
            running: Arc::default(),
        }
    }

    /// Returns the cached help of a tool, or else the header of the tool's file. Does not run the
    /// tool.
    pub fn cached_help(&self, tool: &ExternalTool) -> Help {
        match self.cache.get(tool) {
            Some(HelpAnswer::Told(text)) => Help::Output(text),
            Some(HelpAnswer::Silent | HelpAnswer::Begun) | None => match tool.read_header() {
                Some(text) => Help::Header(shorten_help(&text)),
                None => Help::Missing,
            },
        }
    }

    /// Runs the tools without cached help. Waits only for tools whose help was never requested
    /// before.
    pub async fn query_tools(&self, tools: &[ExternalTool], cancel: &CancellationToken) {
        let Some(asking) = &self.settings else { return };
        self.query_uncached(asking, tools, asking.wait, cancel)
            .await;
    }

    /// Runs one tool and waits for its help, unless the help is cached.
    pub async fn query_tool(&self, tool: &ExternalTool, cancel: &CancellationToken) {
        let Some(asking) = &self.settings else { return };
        // The time for all help arguments, plus the time to end the process.
        let all = asking.timeout * (HELP_ARGUMENTS.len() as u32) + Duration::from_secs(5);
        if matches!(self.cache.get(tool), None | Some(HelpAnswer::Begun)) {
            self.run_queries(asking, vec![tool.clone()], all, cancel)
                .await;
        }
    }

    async fn query_uncached(
        &self,
        asking: &Arc<HelpSettings>,
        tools: &[ExternalTool],
        wait: Duration,
        cancel: &CancellationToken,
    ) {
        let mut fresh = Vec::new();
        let mut again = Vec::new();
        for tool in tools
            .iter()
            .filter(|tool| tool.command_to_start().is_some())
        {
            match self.cache.get(tool) {
                None => fresh.push(tool.clone()),
                Some(HelpAnswer::Begun) => again.push(tool.clone()),
                Some(HelpAnswer::Silent | HelpAnswer::Told(_)) => {}
            }
        }
        self.run_queries(asking, fresh, wait, cancel).await;
        self.run_queries(asking, again, Duration::ZERO, cancel)
            .await;
    }

    /// Runs tools to get their help, and waits at most `wait` for all of them. Tools that take
    /// longer continue in the background.
    async fn run_queries(
        &self,
        asking: &Arc<HelpSettings>,
        mut tools: Vec<ExternalTool>,
        wait: Duration,
        cancel: &CancellationToken,
    ) {
        if tools.iter().any(|tool| tool.level == Level::Project) && !asking.sandbox.is_trusted() {
            tools.retain(|tool| tool.level != Level::Project);
        }
        if tools.is_empty() {
            return;
        }
        let Some(confined) = asking.sandbox.confinement().await else {
            return;
        };
        let room = Arc::new(Semaphore::new(MAX_CONCURRENT_QUERIES));
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
                let answer = query_help(&asking, &tool, confined).await;
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

/// Runs a tool with each help argument until it succeeds with output.
async fn query_help(
    asking: &HelpSettings,
    tool: &ExternalTool,
    confined: Arc<ConfinementSpec>,
) -> HelpAnswer {
    let Some(command) = tool.command_to_start() else {
        return HelpAnswer::Silent;
    };
    for way in HELP_ARGUMENTS {
        let argv = command.iter().cloned().chain([way.into()]).collect();
        let command = CommandSpec {
            argv,
            ..CommandSpec::shell("", tool.folder())
        }
        .with_env(asking.environment.as_ref().clone())
        .with_timeout(asking.timeout)
        .with_confinement(Some(Arc::clone(&confined)));
        let capture = Capture {
            limits: HELP_LIMITS,
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
                .map(|stream| stream.text(HELP_LIMITS).text);
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

fn shorten_help(text: &str) -> String {
    haft_text::cut_lines(&haft_text::sanitize(text), HELP_LIMITS).text
}
