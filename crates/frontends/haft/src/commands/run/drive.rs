//! `haft run --input-format stream-json`: runs several turns in one process, driven by JSON lines
//! on standard input.

use std::collections::VecDeque;
use std::io::BufReader;
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{
    AttachPort, Contribution, HostEnvironment, MAIN_AGENT, Places, Project, RandomIds,
};
use haft_claude::{
    ClientOffer, ClientTerms, Dialect, RequestedModel, StreamControl, UserPrompt,
    parse_client_hooks, translate_model_name,
};
use haft_engine::{Approval, ApprovalReply, Approver, EventSink, Session};
use haft_types::{Decision, Event, EventBody, Form, FormOutcome};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::context_usage::build_context_usage;
use super::{
    apply_agent, build_printer, cancel_on_signals, close_session, exit_for_report, find_knowledge,
    load_agents, load_run_args, lower_args, to_usage_error,
};
use crate::cli::options::{Compat, OutputFormat, RunArgs};
use crate::commands::permissions;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output::{self, Printer};
use crate::wiring::{self, ClientParts};

pub(crate) fn run(haft: &Haft, args: &RunArgs) -> anyhow::Result<ProcessExit> {
    if args.output_format != OutputFormat::StreamJson {
        return Err(usage_error(text!("run-stream-formats")));
    }
    if args.stay {
        return Err(usage_error(text!("run-stream-stay")));
    }
    let (mut args, settings) = load_run_args(haft, args)?;
    let dialect = match args.compat {
        None => Dialect::Haft,
        Some(Compat::Claude) => Dialect::Claude,
    };
    wiring::build_runtime()?.block_on(async {
        let project = haft.project(args.cwd.as_deref())?;
        let terms = build_client_terms(&args, &settings, &project);
        let (control, mut prompts) =
            StreamControl::start(dialect, terms, BufReader::new(std::io::stdin()));
        let stop = CancellationToken::new();
        cancel_on_signals(&stop);
        // The conversation is named after its first prompt.
        let mut first = args.prompt.clone().map(UserPrompt::from);
        if first.is_none() {
            tokio::select! {
                heard = prompts.recv() => first = heard,
                () = stop.cancelled() => return Ok(ProcessExit::Aborted),
            }
        }
        let Some(first) = first else {
            return Err(usage_error(text!("run-stream-no-message")));
        };
        let (mut session, printer) =
            open_session(&mut args, &settings, &project, &first.text, &control).await?;
        let port = session.attach_port().cloned();
        if let Some(port) = &port {
            port.accept_prompts();
        }
        let input = DrivenInput {
            prompts: &mut prompts,
            later: VecDeque::from([first]),
            port,
        };
        let mut watch = DrivenTurn {
            printer,
            input,
            dialect,
            control: Arc::clone(&control),
        };
        let exit = run_turns(&args, &mut session, &mut watch, &control, &stop).await;
        close_session(&mut session).await;
        Ok(exit)
    })
}

/// Opens the session with the settings that the client has sent so far.
async fn open_session(
    args: &mut RunArgs,
    settings: &Settings,
    project: &Project,
    title: &str,
    control: &Arc<StreamControl>,
) -> anyhow::Result<(Session, Printer)> {
    let setup = control.take_setup();
    apply_client_request(args, &setup.request);
    args.permission_mode = setup.mode.or(args.permission_mode);
    let places = &settings.places;
    let mut plan = lower_args(args, settings, project.clone(), Some(title))?;
    apply_agent(&mut plan, args, places)?;
    let mode = plan.mode;
    if args.ask {
        plan.task.approver = Some(Arc::new(StreamApprover {
            control: Arc::clone(control),
            places: places.clone(),
        }));
    }
    let client = build_client_parts(args, &places.environment, &setup.request, control).await?;
    let session = settings
        .open_driven_session(plan, client)
        .await
        .map_err(to_usage_error)?;
    control.set_hub(Arc::clone(session.hub()));
    control.set_mode_switch(session.mode_switch());
    control.set_servers(&args.claude.server_names());
    control.set_context_usage(build_context_usage(&session));
    let printer = build_printer(args, places, project, &session, mode);
    Ok((session, printer))
}

/// Runs one turn per prompt until the input ends or `stop` is canceled.
async fn run_turns(
    args: &RunArgs,
    session: &mut Session,
    watch: &mut DrivenTurn<'_>,
    control: &StreamControl,
    stop: &CancellationToken,
) -> ProcessExit {
    let first_model = session.model().full_name();
    let mut exit = ProcessExit::Completed;
    loop {
        let next = tokio::select! { next = watch.input.next_prompt() => next, () = stop.cancelled() => None };
        let Some(UserPrompt {
            text,
            images,
            number,
        }) = next
        else {
            return exit;
        };
        switch_model(session, control, &first_model);
        session.attach_images(images);
        let turn = stop.child_token();
        control.begin_turn(turn.clone(), number);
        let report = session.run(Some(text), watch, &turn).await;
        control.end_turn();
        if watch.dialect == Dialect::Claude {
            control.set_context_usage(build_context_usage(session));
        }
        exit = exit_for_report(args, &report);
        if stop.is_cancelled() {
            return exit;
        }
    }
}

/// The prompts from standard input that no turn contains yet.
struct DrivenInput<'a> {
    prompts: &'a mut UnboundedReceiver<UserPrompt>,
    /// Received prompts that wait for a turn of their own.
    later: VecDeque<UserPrompt>,
    /// The port through which attached front ends send prompts.
    port: Option<Arc<dyn AttachPort>>,
}

impl DrivenInput<'_> {
    async fn next_prompt(&mut self) -> Option<UserPrompt> {
        let attached = async {
            match &self.port {
                Some(port) => port.next_prompt().await,
                None => std::future::pending().await,
            }
        };
        if let Some(prompt) = self.later.pop_front() {
            return Some(prompt);
        }
        tokio::select! {
            biased;
            prompt = self.prompts.recv() => prompt,
            text = attached => Some(UserPrompt::from(text)),
        }
    }

    /// Removes and returns the prompts that can join the running turn: texts up to the first prompt
    /// with an image.
    fn take_joining_texts(&mut self) -> Vec<String> {
        self.later
            .extend(std::iter::from_fn(|| self.prompts.try_recv().ok()));
        let texts = self
            .later
            .iter()
            .take_while(|prompt| prompt.images.is_empty())
            .count();
        self.later
            .drain(..texts)
            .map(|prompt| prompt.text)
            .collect()
    }
}

/// The event sink of a turn. Prints the events, and passes prompts that arrive while the turn runs
/// on to the turn.
struct DrivenTurn<'a> {
    printer: Printer,
    input: DrivenInput<'a>,
    dialect: Dialect,
    control: Arc<StreamControl>,
}

impl EventSink for DrivenTurn<'_> {
    fn event(&mut self, event: &Event) {
        if event.agent == MAIN_AGENT && matches!(event.body, EventBody::Result(_)) {
            self.control.delay_context_usage();
        }
        self.printer.event(event);
    }

    fn input_joined(&mut self, input: &str) {
        self.dialect
            .input_joined_line(input)
            .iter()
            .for_each(output::print_json_line);
    }

    fn attached_input_joined(&mut self, input: &str) {
        self.input_joined(input);
    }

    fn take_input(&mut self) -> Vec<String> {
        self.input.take_joining_texts()
    }
}

/// Requests approvals from the program that writes the input.
struct StreamApprover {
    control: Arc<StreamControl>,
    places: Places,
}

#[async_trait]
impl Approver for StreamApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        self.control.request_approval(approval).await
    }

    async fn fill_form(&self, form: &Form) -> FormOutcome {
        self.control.request_form(form).await
    }

    async fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        permissions::add_rules(&self.places, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// Returns the permissions of the program that writes the input, and the functions that serve its
/// requests.
fn build_client_terms(args: &RunArgs, settings: &Settings, project: &Project) -> ClientTerms {
    let offer = build_client_offer(args, settings, project);
    let settings = settings.clone();
    ClientTerms {
        offer,
        naming: args.claude.naming(),
        cwd: project.cwd.clone(),
        bypass_allowed: args.claude.bypass_allowed,
        find_model: Box::new(move |name| {
            let name = translate_model_name(settings.environment(), &settings.config, name);
            let declared = settings
                .resolve_model(&name)
                .map_err(|error| error.to_string())?;
            settings
                .read_key(&declared)
                .map_err(|error| error.to_string())?;
            Ok(name)
        }),
        print_line: Box::new(output::print_json_line),
        ids: Box::new(RandomIds),
    }
}

/// Lists the commands, agents and models that the client can show to its user.
fn build_client_offer(args: &RunArgs, settings: &Settings, project: &Project) -> ClientOffer {
    let mut offer = ClientOffer::default();
    let models = haft_agent::list_usable_models(settings.environment(), &settings.config);
    for declared in models.unwrap_or_default() {
        let name = declared.spec.full_name();
        offer.models.push(
            json!({"value": name, "displayName": declared.spec.name, "description": declared.spec.provider}),
        );
    }
    let Some(paths) = find_knowledge(args, &settings.places, project) else {
        return offer;
    };
    for command in haft_project::commands::load_commands(&paths, &mut Vec::new()).items {
        offer.commands.push(json!({
            "name": command.name,
            "description": command.description,
            "argumentHint": command.argument_hint.unwrap_or_default(),
        }));
    }
    for agent in load_agents(args, &paths).items {
        let mut shown = json!({"name": agent.name, "description": agent.description});
        if let Some(model) = agent.model {
            shown["model"] = model.into();
        }
        offer.agents.push(shown);
    }
    offer
}

/// Changes the arguments according to the settings that a client sent before its first prompt.
fn apply_client_request(args: &mut RunArgs, request: &Value) {
    let text = |key: &str| match &request[key] {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(
            parts
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join("\n\n"),
        ),
        _ => None,
    };
    args.system_prompt = text("systemPrompt").or(args.system_prompt.take());
    args.append_system_prompt = text("appendSystemPrompt").or(args.append_system_prompt.take());
    if request["jsonSchema"].is_object() && args.json_schema.is_none() {
        args.json_schema = Some(request["jsonSchema"].to_string());
    }
    if request["agents"].is_object() {
        args.claude.agents = Some(request["agents"].to_string());
    }
    let server_names = request["sdkMcpServers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let linked: Map<_, _> = server_names
        .map(|name| (name.to_owned(), json!({"type": "sdk"})))
        .collect();
    if !linked.is_empty() {
        args.claude
            .mcp_config
            .push(json!({ "mcpServers": linked }).to_string());
    }
}

/// Returns the hooks and MCP servers that the client provides.
async fn build_client_parts(
    args: &RunArgs,
    environment: &HostEnvironment,
    request: &Value,
    control: &Arc<StreamControl>,
) -> anyhow::Result<ClientParts> {
    let contribution = Contribution {
        callbacks: parse_client_hooks(&request["hooks"], args.claude.naming(), control)?,
        ..Contribution::default()
    };
    #[cfg(feature = "mcp")]
    {
        use haft_claude::ClientServers;
        let mut servers = super::servers_from_args(args)?;
        servers.link = Some(Arc::new(ClientServers::new(Arc::clone(control))));
        servers.fetch_listings(environment).await;
        Ok(ClientParts {
            contribution,
            servers,
            ..ClientParts::default()
        })
    }
    #[cfg(not(feature = "mcp"))]
    {
        let _ = environment;
        Ok(ClientParts {
            contribution,
            ..ClientParts::default()
        })
    }
}

/// Switches to the model that the client requested. If the model can't be used, prints the error
/// and keeps the current model.
fn switch_model(session: &mut Session, control: &StreamControl, first: &str) {
    let wanted = match control.take_model() {
        None => return,
        Some(RequestedModel::First) => first.to_owned(),
        Some(RequestedModel::Named(name)) => name,
    };
    if let Err(error) = session.switch_model(&wanted) {
        output::print_to_stderr(&format!("haft: {error}"));
    }
}
