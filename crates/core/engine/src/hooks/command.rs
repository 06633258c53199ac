//! Hooks that are commands: a hook reads JSON from standard input, and answers by its exit code and
//! output.
//!
//! A hook runs in the sandbox for commands unless its configuration turns the sandbox off.
//! Invariant: a hook gets no API keys, no process that it starts outlives it, and neither its
//! output nor its duration can block haft.

use std::sync::Arc;

use async_trait::async_trait;
use haft_project::Level;
use haft_project::hooks::{Hook, HookDialect};
use haft_sandbox::{
    Capture, CapturedOutput, CommandExit, CommandPaths, CommandSpec, ConfinementSpec,
    FinishedCommand, Sandbox, Stdin, Supervisor, filter_search_path,
};
use haft_text::CutLimits;
use haft_types::{Decision, HookPoint, PermissionMode};
use serde_json::{Value, json};

use super::event::HookEvent;
use super::start_guard::{StartGuard, StartRefusal, StartRequest};
use super::{Callback, HookContext, HookOutcome, output};

/// The limits on the output of a hook. Longer output counts as an error.
const OUTPUT_LIMITS: CutLimits = CutLimits {
    lines: 20_000,
    bytes: 256 * 1024,
};

/// The points at which the user can be asked whether a hook may start: all points within a turn at
/// which no other question is open.
const PROMPTABLE_POINTS: [HookPoint; 9] = [
    HookPoint::ConversationStart,
    HookPoint::UserPromptSubmit,
    HookPoint::ApiRequestStart,
    HookPoint::ApiRequestEnd,
    HookPoint::PreToolCall,
    HookPoint::PostToolCall,
    HookPoint::PreCompact,
    HookPoint::Stop,
    HookPoint::SubagentStop,
];

/// A configured command that runs at one hook point.
pub struct CommandHook {
    hook: Hook,
    host: Arc<HookHost>,
}

/// The services with which a session's hooks run.
pub struct HookHost {
    /// Starts and ends the commands.
    pub supervisor: Arc<Supervisor>,
    /// The environment variables of the commands.
    pub environment: Arc<Vec<(String, String)>>,
    pub sandbox: Sandbox,
    /// Decides whether a hook may start if the sandbox can't confine it or if its files have
    /// changed.
    pub guard: Arc<StartGuard>,
}

impl CommandHook {
    /// Creates the callback that runs a hook's command.
    pub fn new(hook: Hook, host: Arc<HookHost>) -> Self {
        Self { hook, host }
    }

    /// Returns the sandbox policy for one run of the hook, or `None` if the hook runs unconfined.
    /// Fails if the hook may not start.
    async fn confinement(
        &self,
        context: &HookContext<'_>,
    ) -> Result<Option<Arc<ConfinementSpec>>, StartRefusal> {
        if !self.hook.sandboxed || context.mode == PermissionMode::Yolo {
            return Ok(None);
        }
        let sandbox = &self.host.sandbox;
        let request = StartRequest {
            name: "hook",
            lines: vec![self.hook.command.clone()],
            level: self.hook.level,
            root: context.root,
            cwd: context.cwd,
            layer: sandbox.status().layer,
            can_ask: PROMPTABLE_POINTS.contains(&self.hook.point),
        };
        self.host.guard.check(&request).await?;
        let confined = sandbox.confinement();
        let is_elsewhere = confined.as_ref().is_some_and(|confined| {
            let projects = &confined.policy.projects;
            projects.iter().all(|root| root != context.root)
        });
        Ok(if is_elsewhere {
            // A sub-agent may work in a copy of the project.
            sandbox
                .with_projects(vec![context.root.to_owned()])
                .confinement()
        } else {
            confined
        })
    }

    /// Returns the command of one run of the hook. The programs of an unconfined hook are not looked
    /// up in the folders that the model can write.
    fn command_spec(
        &self,
        context: &HookContext<'_>,
        confined: Option<&ConfinementSpec>,
    ) -> CommandSpec {
        let mut env = self.host.environment.as_ref().clone();
        if confined.is_none() {
            let mut writable = self.host.sandbox.writable_folders().to_vec();
            writable.push(context.root.to_owned());
            for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
                *path = filter_search_path(path, &writable);
            }
        }
        let root = context.root.display().to_string();
        env.extend([
            ("HAFT_PROJECT_DIR".to_owned(), root.clone()),
            ("CLAUDE_PROJECT_DIR".to_owned(), root),
        ]);
        let told = build_input_json(context, self.hook.dialect).to_string();
        CommandSpec {
            stdin: Stdin::Text(told),
            ..CommandSpec::shell(&self.hook.command, context.cwd)
                .with_env(env)
                .with_timeout(self.hook.timeout)
        }
    }

    /// Removes the parts of an outcome that a hook of this configuration level may not request.
    fn restrict_outcome(&self, mut outcome: HookOutcome) -> HookOutcome {
        match self.hook.level {
            // Hooks of a project can only tighten permissions.
            Level::Project => {
                outcome.permission = outcome
                    .permission
                    .filter(|decision| *decision != Decision::Allow);
            }
            Level::User | Level::Repository => {}
        }
        if let (HookDialect::Claude, Some(Value::Object(input))) =
            (self.hook.dialect, &mut outcome.input)
            && let Some(path) = input.remove("file_path")
        {
            input.insert("path".to_owned(), path);
        }
        outcome
    }
}

#[async_trait]
impl Callback for CommandHook {
    fn name(&self) -> &str {
        &self.hook.command
    }

    fn is_command(&self) -> bool {
        true
    }

    fn listens_to(&self, point: HookPoint) -> bool {
        self.hook.point == point
    }

    fn wants(&self, event: &HookEvent) -> bool {
        self.hook.matcher.matches(&event.matcher_names())
    }

    async fn call(&self, context: &HookContext<'_>) -> Result<HookOutcome, String> {
        let confined = match self.confinement(context).await {
            Ok(confined) => confined,
            // Only the first refusal is reported.
            Err(StartRefusal { again: true, .. }) => return Ok(HookOutcome::default()),
            Err(StartRefusal { reason, .. }) => {
                let hint = match self.hook.level {
                    Level::Project => "",
                    Level::User | Level::Repository => {
                        "; with `sandbox = false` it runs outside of one"
                    }
                };
                return Err(format!("it was not started: {reason}{hint}"));
            }
        };
        let capture = Capture {
            limits: OUTPUT_LIMITS,
            ..Capture::default()
        };
        let command = self.command_spec(context, confined.as_deref());
        let paths = CommandPaths {
            texts: std::slice::from_ref(&self.hook.command),
            cwd: &command.cwd,
            env: &command.env,
        };
        let confined = confined.map(|confined| Arc::new(confined.with_programs_readable(paths)));
        let command = command.with_confinement(confined);
        let ran = self
            .host
            .supervisor
            .run(&command, &capture, context.cancel)
            .await;
        let finished = ran.map_err(|error| error.to_string())?;
        let point = self.hook.point;
        match finished.exit {
            CommandExit::Code(0) => {
                output::parse_hook_output(point, &read_output(&finished.stdout)?)
                    .map(|outcome| self.restrict_outcome(outcome))
            }
            CommandExit::Code(2) => {
                let said = finished.stderr.text(CutLimits::default()).text;
                Ok(output::outcome_of_blocking_exit(
                    point,
                    &(said + &describe_hidden_file(&finished)),
                ))
            }
            CommandExit::Code(code) => {
                let said = finished
                    .stderr
                    .text(CutLimits {
                        lines: 5,
                        bytes: 1_000,
                    })
                    .text;
                let said = said.trim();
                let note = describe_hidden_file(&finished);
                Err(if said.is_empty() {
                    format!("exit code {code}{note}")
                } else {
                    format!("exit code {code}: {said}{note}")
                })
            }
            CommandExit::Signal(signal) => Err(format!("it was ended by signal {signal}")),
            CommandExit::TimedOut => Err(format!(
                "it took longer than {} s and was ended",
                self.hook.timeout.as_secs()
            )),
            CommandExit::Cancelled => Ok(HookOutcome::default()),
        }
    }
}

/// Returns a clause about a file that the sandbox hid from the hook; empty if there is none.
fn describe_hidden_file(finished: &FinishedCommand) -> String {
    let Some(hidden) = &finished.hidden else {
        return String::new();
    };
    format!(
        "; {hidden}; {}, or set `sandbox = false` for the hook",
        hidden.remedy()
    )
}

fn read_output(output: &CapturedOutput) -> Result<String, String> {
    if output.bytes > OUTPUT_LIMITS.bytes as u64 {
        let most = OUTPUT_LIMITS.bytes / 1024;
        return Err(format!(
            "it printed {} bytes; more than {most} KB are not read",
            output.bytes
        ));
    }
    Ok(output.text(OUTPUT_LIMITS).text)
}

/// Returns the JSON that the hook reads from standard input.
fn build_input_json(context: &HookContext<'_>, words: HookDialect) -> Value {
    let event = context.event;
    let mut told = json!({
        "session_id": context.conversation_id,
        "cwd": context.cwd,
        "permission_mode": context.mode.name(),
        "hook_event_name": match words {
            HookDialect::Haft => event.point().name().to_owned(),
            HookDialect::Claude => event.point().claude_name(),
        },
    });
    if let (Value::Object(told), Ok(Value::Object(event))) =
        (&mut told, serde_json::to_value(event))
    {
        told.extend(event);
    }
    match words {
        HookDialect::Haft => {}
        HookDialect::Claude => add_claude_names(&mut told, context),
    }
    told
}

/// Adds the tool name and file path in the form that hooks for Claude Code expect.
fn add_claude_names(told: &mut Value, context: &HookContext<'_>) {
    let (HookEvent::PreToolCall { tool, .. }
    | HookEvent::PostToolCall { tool, .. }
    | HookEvent::ToolGenerationStart { tool, .. }
    | HookEvent::ToolGenerationEnd { tool, .. }) = context.event
    else {
        return;
    };
    if let Some(alias) = tool.also.first() {
        told["tool_name"] = json!(alias);
    }
    if let Some(path) = told["tool_input"]["path"].as_str() {
        told["tool_input"]["file_path"] = json!(context.cwd.join(path));
    }
}
