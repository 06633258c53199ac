//! `haft run`: runs a prompt without the interactive interface.

pub(crate) mod approve;
mod context_usage;
mod drive;
pub(crate) mod images;
mod stay;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_agent::config::RolesConfig;
use haft_agent::{
    ExplicitChoices, Places, Project, PromptSources, RandomIds, RunPlan, SetupError,
    find_knowledge_and_trust, read_prompt_file,
};
use haft_claude::{
    ClaudeMessages, Introduction, PartialMessages, RunSettings, translate_model_name,
};
use haft_engine::turn::TurnLimits;
use haft_engine::{
    AnswerSchema, ConversationChoice, EventSink, PromptSettings, Roles, RunReport, Session,
    TaskSettings, ToolSettings,
};
#[cfg(feature = "mcp")]
use haft_mcp::GivenServers;
use haft_project::agents::{self, AgentDefinition};
use haft_project::{KnowledgePaths, NamedItems};
use haft_types::PermissionMode;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::approve::TerminalApprover;
use self::stay::{AbsentUser, AttendedTurns};
use crate::cli::options::{Compat, InputFormat, OutputFormat, RunArgs};
use crate::commands::claude::print_notice;
use crate::commands::{init, permissions};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::jobs::{self, JobFolder};
use crate::output::{self, Printer};
use crate::prompts::{self, InlineCommands};
use crate::wiring::{self, ClientParts};

/// The prompt that stands for standard input.
const STDIN_PROMPT: &str = "-";

pub(crate) fn run(haft: &Haft, args: &RunArgs) -> anyhow::Result<ProcessExit> {
    match args.input_format {
        InputFormat::Text => {}
        InputFormat::StreamJson => return drive::run(haft, args),
    }
    let (args, mut settings) = load_run_args(haft, args)?;
    if args.stay {
        settings.config.retry.is_attended = true;
        settings.config.retry.outlasts_long_waits = true;
    }
    let args = &args;
    let settings = &settings;
    let places = &settings.places;
    let piped = read_piped_input(args.prompt.as_deref())?;
    let prompt = read_prompt_arg(args)?;
    let project = haft.project(args.cwd.as_deref())?;
    let task = build_task(args, settings, &project, prompt, piped.as_deref())?;
    let mut plan = lower_args(args, settings, project.clone(), task.as_deref())?;
    apply_agent(&mut plan, args, places)?;
    let mode = plan.mode;
    let images = images::read_images(args)?;
    if args.bg {
        return start_background_job(args, places, task.as_deref(), piped.as_deref());
    }
    let _held = args
        .job
        .as_ref()
        .map(|id| jobs::become_job(&JobFolder::new(places.jobs_folder()), id))
        .transpose()?;
    let absent = args.stay.then(|| AbsentUser::new(args, places));
    if args.ask {
        plan.task.approver = Some(Arc::new(TerminalApprover::open(places)?));
    } else if let Some(absent) = &absent {
        plan.task.approver = Some(Arc::clone(absent) as _);
    }
    wiring::build_runtime()?.block_on(async {
        let opened = settings
            .open_driven_session(plan, build_client_parts(args)?)
            .await;
        let mut session = opened.map_err(to_usage_error)?;
        let cancel = CancellationToken::new();
        cancel_on_signals(&cancel);
        let mut printer = build_printer(args, places, &project, &session, mode).with_held_result();
        if args.stay {
            printer = printer.with_awaited_answers();
        }
        session.attach_images(images);
        let mut turns = AttendedTurns::new(&session, absent.as_deref(), &cancel);
        let mut input = task;
        let report = loop {
            printer = printer.with_live_view();
            let report = session
                .run(input, &mut printer, &cancel.child_token())
                .await;
            match turns.next_prompt(&report).await {
                Some(prompt) => {
                    printer.attached_input_joined(&prompt);
                    input = Some(prompt);
                }
                None => break report,
            }
        };
        printer.print_held_result();
        close_session(&mut session).await;
        Ok(exit_for_report(args, &report))
    })
}

/// Loads the configuration for a run, with the permission rules that its flags add.
pub(crate) fn load_run_settings(haft: &Haft, args: &RunArgs) -> anyhow::Result<Settings> {
    let mut settings = if args.job.is_some() {
        haft.load_quietly(&args.common)?
    } else {
        haft.load(&args.common)?
    };
    permissions::add_run_rules(&mut settings, args)?;
    Ok(settings)
}

/// Returns the arguments and the configuration of a run, with the options for Claude Code
/// compatibility applied.
pub(crate) fn load_run_args(haft: &Haft, args: &RunArgs) -> anyhow::Result<(RunArgs, Settings)> {
    let mut settings = load_run_settings(haft, args)?;
    let mut args = args.clone();
    args.claude.apply_to_run(RunSettings {
        config: &mut settings.config,
        added_folders: &mut args.add_dir,
        mode: &mut args.permission_mode,
        model: &mut args.model,
        ask: &mut args.ask,
        home: haft.environment().home().as_deref(),
        notify: &mut print_notice,
    })?;
    Ok((args, settings))
}

/// Returns the MCP servers that the command line declares.
#[cfg(feature = "mcp")]
pub(crate) fn servers_from_args(args: &RunArgs) -> anyhow::Result<GivenServers> {
    Ok(GivenServers {
        declared: args.claude.read_servers()?,
        alone: args.claude.strict_mcp_config,
        ..GivenServers::default()
    })
}

#[cfg(feature = "mcp")]
fn build_client_parts(args: &RunArgs) -> anyhow::Result<ClientParts> {
    Ok(ClientParts {
        servers: servers_from_args(args)?,
        ..ClientParts::default()
    })
}

/// Returns no parts: a build without MCP has no servers to add.
#[cfg(not(feature = "mcp"))]
fn build_client_parts(_: &RunArgs) -> anyhow::Result<ClientParts> {
    Ok(ClientParts::default())
}

/// Returns the exit code of a finished run. With `--compat claude` and JSON output, the code is
/// always 0, because programs that drive Claude Code treat any other code as a crash and read the
/// outcome from the result.
pub(crate) fn exit_for_report(args: &RunArgs, report: &RunReport) -> ProcessExit {
    match (args.compat, args.output_format) {
        (Some(Compat::Claude), OutputFormat::Json | OutputFormat::StreamJson) => {
            ProcessExit::Completed
        }
        _ if report.never_valid => ProcessExit::Usage,
        _ => report.result.outcome.into(),
    }
}

/// Starts the run as a background job. Prints the job's id on stdout: as plain text with a hint on
/// stderr, or in a JSON object.
fn start_background_job(
    args: &RunArgs,
    places: &Places,
    task: Option<&str>,
    piped: Option<&str>,
) -> anyhow::Result<ProcessExit> {
    let program = places.environment.helper_program();
    let job = jobs::start_job(program, &JobFolder::new(places.jobs_folder()), task, piped)?;
    let id = &job.request.id;
    match args.output_format {
        OutputFormat::Text => {
            output::print_text(&format!("{id}\n"))?;
            output::print_to_stderr(&format!("haft: {}", text!("run-in-background", id)));
        }
        OutputFormat::Json | OutputFormat::StreamJson => {
            // `job` is the former name of `id`, kept for one release.
            output::print_json(
                &json!({ "id": id, "job": id, "conversation_id": job.conversation_id() }),
            )?;
        }
    }
    Ok(ProcessExit::Completed)
}

/// Closes a session and prints the messages of its end hooks, which come too late to be events.
pub(crate) async fn close_session(session: &mut Session) {
    for message in session.close().await {
        output::print_to_stderr(&format!("haft: {message}"));
    }
}

/// Builds the printer of a session's events.
pub(crate) fn build_printer(
    args: &RunArgs,
    places: &Places,
    project: &Project,
    session: &Session,
    mode: PermissionMode,
) -> Printer {
    // haft parses the logs of jobs, so their format is fixed.
    let format = if args.job.is_some() {
        OutputFormat::StreamJson
    } else {
        args.output_format
    };
    let printer = Printer::new(format, args.verbose);
    #[cfg(feature = "otel")]
    let printer = printer.with_traces();
    match args.compat.filter(|_| args.job.is_none()) {
        None => printer,
        Some(Compat::Claude) => {
            let partial = if args.include_partial_messages {
                PartialMessages::Send
            } else {
                PartialMessages::Omit
            };
            let introduction = build_introduction(args, places, project, session, mode);
            printer.with_messages(ClaudeMessages::new(
                Box::new(RandomIds),
                introduction,
                partial,
            ))
        }
    }
}

/// Builds the first message to a Claude Code client. Agents, commands and skills that can't be read
/// are left out.
fn build_introduction(
    args: &RunArgs,
    places: &Places,
    project: &Project,
    session: &Session,
    mode: PermissionMode,
) -> Introduction {
    let basics = Introduction {
        tools: session.offered_tools(),
        mode,
        naming: args.claude.naming(),
        servers: args.claude.server_names(),
        ..Introduction::default()
    };
    let Some(paths) = find_knowledge(args, places, project) else {
        return basics;
    };
    let agents = load_agents(args, &paths);
    let commands = haft_project::commands::load_commands(&paths, &mut Vec::new());
    let skills = haft_project::skills::load_skills(&paths, &mut Vec::new());
    Introduction {
        agents: agents.items.into_iter().map(|agent| agent.name).collect(),
        commands: commands
            .items
            .into_iter()
            .map(|command| command.name)
            .collect(),
        skills: skills.items.into_iter().map(|skill| skill.name).collect(),
        ..basics
    }
}

/// Finds the files with knowledge that the run uses. Returns `None` if the list of trusted folders
/// can't be read.
fn find_knowledge(args: &RunArgs, places: &Places, project: &Project) -> Option<KnowledgePaths> {
    let (mut paths, _) = find_knowledge_and_trust(places, project).ok()?;
    paths.trusted &= !args.claude.ignores_project();
    Some(paths)
}

/// Loads the agents of the command line and of files. Agents that can't be read are left out.
fn load_agents(args: &RunArgs, paths: &KnowledgePaths) -> NamedItems<AgentDefinition> {
    let declared = args.claude.parse_agents().unwrap_or_default();
    agents::load_agents_after(&declared, paths, &mut Vec::new())
}

/// Lowers flags and configuration into a [`RunPlan`].
pub(crate) fn lower_args(
    args: &RunArgs,
    settings: &Settings,
    project: Project,
    task: Option<&str>,
) -> anyhow::Result<RunPlan> {
    let config = &settings.config;
    let which = select_conversation(args, task)?;
    let which = if args.fork_session {
        ConversationChoice::Fork(Box::new(which))
    } else {
        which
    };
    let model = resolve_main_model(args, settings)?;
    let added_folders = args
        .add_dir
        .iter()
        .map(|folder| resolve_added_folder(folder))
        .collect::<Result<_, _>>()?;
    let configured = RunPlan::from_config(config, model, project, which);
    // Programs written for Claude Code may name models of Claude that aren't configured here.
    let otherwise = args
        .compat
        .and(args.model.as_ref())
        .and_then(|_| haft_agent::configured_model(config));
    Ok(RunPlan {
        fallback_model: otherwise,
        agents: args.claude.parse_agents()?,
        ignores_project: args.claude.ignores_project(),
        added_folders,
        prompt: PromptSettings {
            roles: build_roles(args, &config.roles)?,
            focus_files: args.file.clone(),
            ..configured.prompt
        },
        mode: args.permission_mode.unwrap_or(configured.mode),
        tools: ToolSettings {
            offered: args
                .allowed_tools
                .clone()
                .or_else(|| args.claude.offered_tools())
                .unwrap_or(configured.tools.offered),
            // As in agent files, names of unknown tools are ignored.
            from_agent_file: args.claude.tools.is_some(),
            ..configured.tools
        },
        task: TaskSettings {
            goal: check_goal(args)?,
            answer: args
                .json_schema
                .as_deref()
                .map(load_answer_schema)
                .transpose()?,
            limits: TurnLimits {
                turns: args.max_turns,
                tokens: args.max_total_tokens,
                budget_usd: args.max_budget_usd,
                wall_time: args.max_wall_time,
            },
            ..configured.task
        },
        ..configured
    })
}

/// Returns the conversation that the arguments select.
fn select_conversation(args: &RunArgs, task: Option<&str>) -> anyhow::Result<ConversationChoice> {
    Ok(match (&args.resume, args.resume_current) {
        (Some(id), _) if id.is_empty() => {
            return Err(usage_error(text!("run-which-conversation")));
        }
        (Some(id), _) => ConversationChoice::Named(id.clone()),
        (None, true) => ConversationChoice::Current {
            or_new: task.map(str::to_owned),
        },
        (None, false) if args.fork_session => {
            return Err(usage_error(text!("run-fork-which")));
        }
        (None, false) => {
            let title = task
                .ok_or_else(|| usage_error(text!("run-no-prompt")))?
                .to_owned();
            match args.claude.conversation_id()? {
                Some(id) => ConversationChoice::NewAs { title, id },
                None => ConversationChoice::New { title },
            }
        }
    })
}

/// Applies the agent of `--agent NAME` to the plan. Flags take precedence over the agent's file.
pub(crate) fn apply_agent(
    plan: &mut RunPlan,
    args: &RunArgs,
    places: &Places,
) -> Result<(), SetupError> {
    let Some(name) = &args.agent else {
        return Ok(());
    };
    let chosen = ExplicitChoices {
        model: args.model.is_some(),
        tools: args.allowed_tools.is_some(),
    };
    plan.apply_agent_role(places, name, chosen)
}

/// Returns true if the task is a goal. A goal without a limit is a usage error, because nothing
/// else stops a model that never reaches the goal.
fn check_goal(args: &RunArgs) -> anyhow::Result<bool> {
    let limited = args.max_turns.is_some()
        || args.max_total_tokens.is_some()
        || args.max_budget_usd.is_some()
        || args.max_wall_time.is_some();
    if args.goal && !limited {
        return Err(usage_error(text!("run-goal-limit")));
    }
    if args.goal && args.permission_mode == Some(PermissionMode::Plan) {
        return Err(usage_error(text!("run-goal-plan")));
    }
    Ok(args.goal)
}

/// Parses the schema of the answer. `given` is JSON if it begins with `{` or `[`, else the path of
/// a file.
fn load_answer_schema(given: &str) -> anyhow::Result<AnswerSchema> {
    let text = if given.trim_start().starts_with(['{', '[']) {
        given.to_owned()
    } else {
        std::fs::read_to_string(given)
            .map_err(|error| usage_error(format!("`--json-schema {given}`: {error}")))?
    };
    let schema = serde_json::from_str(&text)
        .map_err(|error| usage_error(format!("`--json-schema`: {error}")))?;
    AnswerSchema::new(schema).map_err(|error| usage_error(format!("`--json-schema`: {error}")))
}

fn resolve_main_model(args: &RunArgs, settings: &Settings) -> anyhow::Result<String> {
    let named = args.model.as_ref().map(|name| match args.compat {
        Some(Compat::Claude) => {
            translate_model_name(settings.environment(), &settings.config, name)
        }
        None => name.clone(),
    });
    named
        .or_else(|| haft_agent::configured_model(&settings.config))
        .ok_or_else(|| usage_error(text!("run-no-model")))
}

fn resolve_added_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    folder
        .canonicalize()
        .map_err(|error| usage_error(format!("`--add-dir {}`: {error}", folder.display())))
}

/// Reads the configured prompts of the roles. Flags replace the configured system prompt.
fn build_roles(args: &RunArgs, config: &RolesConfig) -> anyhow::Result<Roles> {
    let system_prompt = match (&args.system_prompt, &args.system_prompt_file) {
        (Some(text), _) => Some(text.to_owned()).filter(|text| !text.is_empty()),
        (None, Some(path)) => Some(read_prompt_file(path)?),
        (None, None) => config.read_system_prompt()?,
    };
    Ok(Roles {
        main: config.read_main_role()?,
        system_prompt,
        append: args.append_system_prompt.clone(),
        ..Roles::default()
    })
}

/// Returns the prompt of the command line, or `None` if standard input is the task.
fn read_prompt_arg(args: &RunArgs) -> anyhow::Result<Option<String>> {
    let prompt = args.prompt.clone().filter(|prompt| prompt != STDIN_PROMPT);
    match &prompt {
        Some(prompt) if prompt.trim().is_empty() => Err(usage_error(text!("run-empty-prompt"))),
        _ => Ok(prompt),
    }
}

/// Returns the expanded prompt with piped standard input attached. Without a prompt, the input is
/// the task.
fn build_task(
    args: &RunArgs,
    settings: &Settings,
    project: &Project,
    prompt: Option<String>,
    piped: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let prompt = match prompt {
        Some(prompt) if prompt.starts_with('/') || prompt.contains('@') => {
            Some(expand_prompt(args, settings, project, prompt)?)
        }
        prompt => prompt,
    };
    Ok(match (prompt, piped) {
        (Some(prompt), Some(piped)) => Some(format!(
            "{prompt}\n\n<stdin>\n{}\n</stdin>",
            piped.trim_end_matches('\n')
        )),
        (prompt, piped) => prompt.or(piped.map(str::to_owned)),
    })
}

/// Expands the slash command or MCP prompt that `prompt` calls, and attaches the resources that it
/// mentions. Stops the MCP servers afterwards, because the session starts its own servers.
fn expand_prompt(
    args: &RunArgs,
    settings: &Settings,
    project: &Project,
    prompt: String,
) -> anyhow::Result<String> {
    let sources = settings.open_prompt_sources(project)?;
    wiring::build_runtime()?.block_on(async {
        let expanded = expand_with_sources(&sources, args, settings, project, prompt).await;
        sources.stop_servers().await;
        expanded
    })
}

async fn expand_with_sources(
    sources: &PromptSources,
    args: &RunArgs,
    settings: &Settings,
    project: &Project,
    mut prompt: String,
) -> anyhow::Result<String> {
    if prompt.starts_with('/') {
        let paths = find_knowledge_and_trust(&settings.places, project)?.0;
        prompt = if sources.calls_prompt(&prompt) {
            sources
                .expand_prompt(&prompt)
                .await
                .map_err(prompts::convert_extension_error)?
        } else if let Some(wishes) = init::parse_init_call(&prompt, &paths) {
            let guide = init::build_prompt(settings, args.model.as_deref(), project, wishes);
            output::print_to_stderr(&format!("haft: {}", guide.quote));
            guide.text
        } else {
            let inline = InlineCommands {
                settings,
                project,
                mode: args
                    .permission_mode
                    .unwrap_or(settings.config.permissions.mode),
                approver: None,
                ui: None,
                cancel: CancellationToken::new(),
            };
            inline
                .replace_commands(prompts::expand_prompt(prompt, &paths)?)
                .await?
        };
    }
    sources
        .attach_resources(prompt)
        .await
        .map_err(prompts::convert_extension_error)
}

/// Reads standard input unless it is a terminal. A prompt of `-` requests the input, so haft then
/// waits for it without a time limit.
fn read_piped_input(prompt: Option<&str>) -> anyhow::Result<Option<String>> {
    let stdin = std::io::stdin();
    let is_awaited = prompt == Some(STDIN_PROMPT);
    if stdin.is_terminal() || !(is_awaited || is_input_ready(&stdin)) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    stdin
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| usage_error(text!("run-stdin-unreadable", error)))?;
    let text = String::from_utf8(bytes).map_err(|_| usage_error(text!("run-stdin-not-text")))?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Returns false if the input has no byte within three seconds: a pipe that another process holds
/// open without writing must not hang the run.
fn is_input_ready(stdin: &std::io::Stdin) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(stdin, PollFlags::IN | PollFlags::HUP)];
    let timeout = Timespec {
        tv_sec: 3,
        tv_nsec: 0,
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(0) => {
            output::print_to_stderr(&format!("haft: {}", text!("run-stdin-silent")));
            false
        }
        // Reading reports any other problem.
        _ => true,
    }
}

/// Converts errors that the user can fix by choosing another conversation or other tools into usage
/// errors.
pub(crate) fn to_usage_error(error: SetupError) -> anyhow::Error {
    if !error.is_choice_error() {
        return error.into();
    }
    let hint = output::hints::find_error_hint(&error);
    let error = output::localize_text(format_args!("{:#}", anyhow::Error::from(error)));
    usage_error(match hint {
        Some(hint) => text!("hints-error", error, hint),
        None => error,
    })
}

/// Cancels `cancel` at the first interrupt or termination signal, and exits the process at the
/// second.
pub(crate) fn cancel_on_signals(cancel: &CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let Ok(mut signals) = signal(kind) else {
            continue;
        };
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if cancel.is_cancelled() {
                    haft_log::flush_log();
                    std::process::exit(130);
                }
                cancel.cancel();
            }
        });
    }
}
