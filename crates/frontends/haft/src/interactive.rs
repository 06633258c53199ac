//! `haft` without a command: an interactive session at the terminal.
//!
//! The interface runs on a thread of its own. The main thread holds the session, carries out the
//! user's operations, and sends the results back. Invariant: while a turn runs, an interrupt and
//! quitting take effect at once.

mod agent_switch;
pub(crate) mod attached;
mod commit_question;
mod context_edits;
mod context_parts;
mod history;
mod inspect_page;
mod knowledge_commands;
mod lists;
mod occupied;
mod pasted_images;
mod resumed;
mod rewind;
mod setup;
mod side_actions;
pub(crate) mod side_editor;
mod start_screen;
mod task_updates;
mod title_updates;
mod trust_prompt;
mod turns;
mod view_switch;

use std::path::Path;
use std::sync::Arc;

use haft_agent::{AttachPort, ExplicitChoices, Project, PromptSources, find_knowledge_and_trust};
use haft_engine::{ConversationChoice, Leftovers, Session};
use haft_project::{KnowledgePaths, commands};
use haft_tools::NewUsefulItem;
use haft_tui::{
    Ended, HostActions, ListRequest, Operation, Palette, Setup, TuiConfig, UiHandle, UiMessage,
};
use haft_types::{Decision, Image, PermissionMode};
use history::History;
pub(crate) use lists::format_age;
use setup::SetupOutcome;
use side_actions::SideActions;
use task_updates::TaskUpdates;
use title_updates::TitleUpdate;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;
use trust_prompt::TrustQuestion;

#[cfg(feature = "acp")]
use crate::cli::options::Common;
use crate::cli::options::{RunArgs, is_at_terminal};
use crate::commands::demo::{self, DemoArgs};
use crate::commands::run::{images, load_run_settings, lower_args, to_usage_error};
use crate::commands::{init, permissions};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::output;
use crate::wiring;

/// The style of the interface: as configured, or plain lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceStyle {
    /// The style that `[tui]` and the terminal determine.
    AsConfigured,
    /// Plain lines, for screen readers.
    Plain,
}

pub(crate) fn run(
    haft: &Haft,
    args: &RunArgs,
    looks: InterfaceStyle,
) -> anyhow::Result<ProcessExit> {
    if !is_at_terminal() {
        return Err(usage_error(text!("interactive-no-terminal")));
    }
    let mut settings = load_run_settings(haft, args)?;
    if args.model.is_none() && haft_agent::configured_model(&settings.config).is_none() {
        match setup::run(&settings)? {
            SetupOutcome::Model => settings = load_run_settings(haft, args)?,
            SetupOutcome::Demo => return demo::run(haft, &DemoArgs::default()),
            SetupOutcome::Left => return Ok(ProcessExit::Completed),
        }
    }
    settings.config.retry.is_attended = true;
    let Settings { places, config } = &settings;
    let tui: TuiConfig = config.read_section("tui")?;
    // Problems with flags and configuration are reported before the terminal is taken.
    let project = haft.project(args.cwd.as_deref())?;
    let plan = lower_args(&without_empty_resume(args), &settings, project, Some(""))?;
    let images = images::read_images(args)?;
    trust_prompt::ask_for_trust(places, &plan.project, &mut std::io::stdin().lock())?;
    let (paths, _) = find_knowledge_and_trust(places, &plan.project)?;
    let history = History::new(
        places.history_file(&plan.project.namespace()),
        haft.masker(),
        tui.history,
    );
    let sources = settings.open_prompt_sources(&plan.project)?;
    let mut setup = Setup {
        mode: plan.mode,
        model: plan.model,
        history: history.load(),
        editing: tui.editing,
        commands: list_commands(&paths, &sources),
        resources: sources.resources(),
        first: args
            .prompt
            .clone()
            .filter(|prompt| !prompt.trim().is_empty()),
        greeting: String::new(),
        bell: tui.notifications,
        notifies: tui.notifications && start_screen::accepts_escape_sequences(),
        links: start_screen::accepts_escape_sequences()
            .then(|| plan.project.cwd.display().to_string()),
        rules_file: places.config_file().display().to_string(),
        // A user who wants no colors may be disturbed by motion, too.
        animates: output::choose_palette() == Palette::Colour,
        is_attached: false,
    };
    let home = haft.environment().absolute_home();
    setup.greeting = start_screen::start_screen_text(&plan.project, home.as_deref(), &setup);
    let (ui, wanted, side) = haft_tui::create_link();
    let palette = output::choose_palette();
    let plain = looks == InterfaceStyle::Plain || tui.plain || palette == Palette::Plain;
    let folder = plan.project.cwd.clone();
    let environment = places.environment.clone().with_writable_folders(
        std::iter::once(plan.project.root.clone()).chain(plan.added_folders.clone()),
    );
    let editor_environment = environment.clone();
    let shell_environment = environment.clone();
    let images_of = pasted_images::PastedImages::new(environment, plan.project.cwd.clone());
    let host = HostActions {
        image: Box::new(move |source| images_of.find_image(source)),
        edit: Box::new(move |text, ending| {
            side_editor::edit_text(&editor_environment, text, ending)
        }),
        read: Box::new(move |path| std::fs::read_to_string(folder.join(path)).ok()),
        keep: Box::new(move |text| history.add(text)),
    };
    let side_actions = SideActions::new(
        ui.clone(),
        &shell_environment,
        plan.project.clone(),
        args.common.set.clone(),
        &config.limits,
    );
    let chosen = SessionChoices {
        mode: plan.mode,
        model: None,
        agent: args.agent.clone(),
        focus: plan.prompt.focus_files,
        useful: Vec::new(),
    };
    let project = plan.project;
    let mut session = TuiSession {
        #[cfg(feature = "serve")]
        haft,
        args,
        settings,
        project,
        paths,
        sources,
        ui,
        side_actions,
        chosen,
        images,
        session: None,
        task_updates: None,
        title_update: None,
        trust_question: None,
        page: None,
    };
    wiring::build_runtime()?.block_on(async {
        if let Err(error) = session.open_requested().await {
            let Some(list) = occupied::offer_choices(&error) else {
                return Err(error);
            };
            // The first prompt waits until it is clear which conversation it belongs to.
            if let Some(text) = setup.first.take() {
                session.ui.send_message(UiMessage::Typed { text });
            }
            session.ui.send_message(UiMessage::Pick(list));
        }
        start_screen::report_sandbox(
            &session.ui,
            &session.settings,
            session.chosen.mode,
            &session.project,
        )
        .await;
        let terminal = std::thread::spawn(move || {
            if plain {
                haft_tui::run_plain(setup, side, host)
            } else {
                haft_tui::run_screen(setup, palette, side, host)
            }
        });
        let quit = CancellationToken::new();
        session.run_operations(wanted, &quit).await;
        let ended = terminal.join();
        for message in session.shut_down(&quit).await {
            output::print_to_stderr(&haft_text::sanitize(&format!("haft: {message}")));
        }
        match ended {
            Ok(Ok(Ended::Left)) => Ok(ProcessExit::Completed),
            Ok(Ok(Ended::Signalled)) => Ok(ProcessExit::Aborted),
            Ok(Err(error)) => Err(error.into()),
            // The panic hook has printed the message.
            Ok(Ok(Ended::Panicked)) | Err(_) => Ok(ProcessExit::Failed),
        }
    })
}

/// Runs the setup that haft offers at its first start. Opens no session afterwards.
#[cfg(feature = "acp")]
pub(crate) fn run_setup(haft: &Haft, common: &Common) -> anyhow::Result<ProcessExit> {
    if !is_at_terminal() {
        return Err(usage_error(text!("interactive-no-terminal")));
    }
    match setup::run(&haft.load(common)?)? {
        SetupOutcome::Model => Ok(ProcessExit::Completed),
        SetupOutcome::Demo => demo::run(haft, &DemoArgs::default()),
        SetupOutcome::Left => Ok(ProcessExit::Failed),
    }
}

/// Returns the arguments without a `--resume` that has no value, because that option opens a list
/// of conversations instead of naming one.
fn without_empty_resume(args: &RunArgs) -> RunArgs {
    RunArgs {
        resume: args.resume.clone().filter(|id| !id.is_empty()),
        ..args.clone()
    }
}

/// Returns the names and descriptions of custom commands and of the known prompts of MCP servers.
/// Starts no server.
fn list_commands(paths: &KnowledgePaths, sources: &PromptSources) -> Vec<(String, String)> {
    // Problems with a file are reported when it is called, and by `haft commands list`.
    let found = commands::load_commands(paths, &mut Vec::new());
    let own = found
        .items
        .iter()
        .map(|command| (command.name.clone(), command.description.clone()));
    let init = (init::COMMAND_NAME.to_owned(), text!("init-help").to_owned());
    let init = Some(init).filter(|_| found.get(init::COMMAND_NAME).is_none());
    own.chain(init)
        .chain(
            sources
                .prompts()
                .into_iter()
                .map(|prompt| (prompt.name, prompt.description)),
        )
        .collect()
}

/// Waits for the next operation from the interface, or for a prompt of an attached front end, which
/// the interface then shows like a submitted one.
async fn receive_operation(
    wanted: &mut UnboundedReceiver<Operation>,
    port: Option<Arc<dyn AttachPort>>,
    ui: &UiHandle,
) -> Option<Operation> {
    let Some(port) = port else {
        return wanted.recv().await;
    };
    port.accept_prompts();
    tokio::select! {
        biased;
        operation = wanted.recv() => operation,
        text = port.next_prompt() => {
            ui.send_message(UiMessage::Begun);
            ui.send_message(UiMessage::Said { text: text.clone() });
            Some(Operation::Submit(text))
        }
    }
}

/// The decision whether the session continues or haft exits.
enum Continuation {
    Stay,
    Leave,
}

/// The user's latest choices for the sessions of this process. `model` is `None` until the user
/// switches the model.
struct SessionChoices {
    mode: PermissionMode,
    model: Option<String>,
    /// The main agent; `None` for haft's own.
    agent: Option<String>,
    focus: Vec<String>,
    /// The file ranges that wait for the next conversation.
    useful: Vec<NewUsefulItem>,
}

struct TuiSession<'a> {
    #[cfg(feature = "serve")]
    haft: &'a Haft,
    args: &'a RunArgs,
    settings: Settings,
    project: Project,
    paths: KnowledgePaths,
    /// Resolves prompts and resources of MCP servers that the user mentions. Its servers are
    /// separate from the servers of the session.
    sources: PromptSources,
    ui: UiHandle,
    side_actions: SideActions,
    chosen: SessionChoices,
    /// The images to send with the first prompt.
    images: Vec<Image>,
    /// The open session; `None` until the first prompt, because a conversation is named after it.
    session: Option<Session>,
    /// Informs the interface about the background tasks of the open session.
    task_updates: Option<TaskUpdates>,
    /// The running request for a title of the open conversation.
    title_update: Option<TitleUpdate>,
    /// The question of `/trust` that the user was asked last.
    trust_question: Option<TrustQuestion>,
    /// The inspector page of `/inspect`; `None` until the user opens it.
    page: Option<inspect_page::OpenPage>,
}

impl TuiSession<'_> {
    /// Opens the conversation that the flags name, or offers a list of conversations. Does nothing
    /// without such flags.
    async fn open_requested(&mut self) -> anyhow::Result<()> {
        if self.args.resume.as_deref() == Some("") {
            let list = self.conversation_list().await?;
            self.ui.send_message(UiMessage::Pick(list));
        } else if self.args.resume.is_some() || self.args.resume_current {
            // Without a prompt, there is nothing to name a new conversation after.
            let project = self.project.clone();
            let which = lower_args(self.args, &self.settings, project, None)?.which;
            self.open_session(which, "").await?;
            self.show_opened_conversation();
        }
        Ok(())
    }

    /// Returns the operation in `carried` and empties `carried`. If there is none, waits for the
    /// next one.
    async fn next_operation(
        &self,
        carried: &mut Option<Operation>,
        wanted: &mut UnboundedReceiver<Operation>,
    ) -> Option<Operation> {
        let port = self.session.as_ref().and_then(Session::attach_port);
        match carried.take() {
            Some(operation) => Some(operation),
            None => receive_operation(wanted, port.cloned(), &self.ui).await,
        }
    }

    async fn run_operations(
        &mut self,
        mut wanted: UnboundedReceiver<Operation>,
        quit: &CancellationToken,
    ) {
        let mut carried = None;
        while let Some(operation) = self.next_operation(&mut carried, &mut wanted).await {
            let done = match operation {
                Operation::Submit(text) => {
                    self.finish_title().await;
                    let next = self.run_turn(text, &mut wanted, quit).await;
                    self.send_completion_names();
                    self.send_plan_note();
                    self.ui.send_message(UiMessage::Idle);
                    if matches!(next, Continuation::Leave) {
                        return;
                    }
                    self.start_title(quit);
                    Ok(())
                }
                Operation::Compact(focus) => {
                    let next = self.compact_conversation(&focus, &mut wanted, quit).await;
                    self.ui.send_message(UiMessage::Idle);
                    if matches!(next, Continuation::Leave) {
                        return;
                    }
                    Ok(())
                }
                Operation::New => {
                    self.close_session().await;
                    self.ui.send_message(UiMessage::Opened {
                        text: text!("interactive-cleared").into(),
                    });
                    Ok(())
                }
                Operation::Resume(name) => {
                    self.close_session().await;
                    self.open_session(ConversationChoice::Named(name), "")
                        .await
                        .map(|()| self.show_opened_conversation())
                }
                Operation::Fork(name) => {
                    let copy = ConversationChoice::Fork(Box::new(ConversationChoice::Named(name)));
                    self.open_session(copy, "")
                        .await
                        .map(|()| self.show_opened_conversation())
                }
                Operation::Await(id) => self
                    .await_conversation(id, &mut wanted)
                    .await
                    .map(|next| carried = next),
                Operation::Offer(offer) => self.offer_list(offer).await,
                Operation::Rewind { message, take_back } => self.rewind(&message, take_back).await,
                Operation::Model(name) => self.use_model(name),
                Operation::View(name) => {
                    self.use_view(&name);
                    Ok(())
                }
                Operation::Agent(name) => self.use_agent(&name).await,
                Operation::Useful(arguments) => self.handle_useful(&arguments).await,
                Operation::Notes(arguments) => self.handle_notes(&arguments).await,
                Operation::Mode(mode) => {
                    self.chosen.mode = mode;
                    self.set_session_mode(mode)
                }
                Operation::Focus(focus) => self.change_focus_files(&focus),
                Operation::EditContext(edit) => self.edit_context(&edit).await,
                Operation::Undo => self.undo_changes().await,
                Operation::Redo => self.redo_changes().await,
                Operation::Diff => {
                    self.side_actions.show_diff(
                        self.session
                            .as_ref()
                            .map(|session| session.conversation().id.as_str()),
                    );
                    Ok(())
                }
                Operation::Inspect => self.show_page_address(quit).await,
                Operation::Trust => self.trust_project().await,
                Operation::Attach(path) => {
                    images::read_image(Path::new(&path)).map(|image| match &mut self.session {
                        Some(session) => session.attach_images(vec![image]),
                        None => self.images.push(image),
                    })
                }
                Operation::Context => {
                    self.ui
                        .send_message(UiMessage::Context(self.context_parts().map(Box::new)));
                    Ok(())
                }
                // No turn is running, so there is nothing to join or to interrupt. The interface
                // sends a joined prompt again as a turn of its own.
                Operation::Join(_) | Operation::Interrupt => Ok(()),
                Operation::Quit => return,
                Operation::Side(action) => {
                    self.side_actions.start(action);
                    Ok(())
                }
            };
            if let Err(error) = done {
                match occupied::offer_choices(&error) {
                    Some(list) => self.ui.send_message(UiMessage::Pick(list)),
                    None => self.show_error(&error),
                }
            }
        }
    }

    async fn offer_list(&mut self, offer: ListRequest) -> anyhow::Result<()> {
        let list = match offer {
            ListRequest::Conversations => Some(self.conversation_list().await?),
            ListRequest::Messages => self.message_list().await?,
            ListRequest::Models(filter) => Some(self.model_list(filter)?),
            ListRequest::Files => match self.file_list() {
                None => {
                    self.show_text(text!("interactive-no-files"));
                    return Ok(());
                }
                list => list,
            },
            ListRequest::Focus(focus) => return self.confirm_focus_change(focus),
            ListRequest::View(name) => {
                self.offer_view(&name);
                return Ok(());
            }
            ListRequest::Agent(name) => return self.offer_agent(&name).await,
            ListRequest::Undo => self.undo_list().await?,
            ListRequest::Redo => self.redo_list().await?,
            ListRequest::Trust => return self.ask_for_trust(),
            ListRequest::Context => self.context_edit_list().await?,
            ListRequest::ContextEdit(edit) => self.context_edit_question(edit).await?,
        };
        match list {
            Some(list) => self.ui.send_message(UiMessage::Pick(list)),
            None => self.show_text(text!("interactive-nothing-yet")),
        }
        Ok(())
    }

    /// Sends the names that completion offers. The session's servers may have listed prompts and
    /// resources for the first time.
    fn send_completion_names(&self) {
        // A problem with a server was reported when the session was opened.
        let Ok(sources) = self.settings.open_prompt_sources(&self.project) else {
            return;
        };
        self.ui.send_message(UiMessage::Names {
            commands: list_commands(&self.paths, &sources),
            resources: sources.resources(),
        });
    }

    fn use_model(&mut self, name: String) -> anyhow::Result<()> {
        if let Some(session) = &mut self.session {
            session.switch_model(&name)?;
        }
        self.show_text(&text!("interactive-model-switched", name));
        self.ui
            .send_message(UiMessage::Model { name: name.clone() });
        self.chosen.model = Some(name);
        Ok(())
    }

    /// Changes the mode of the open session. If another model answers in this mode, prints its name
    /// and the price of the change.
    fn set_session_mode(&mut self, mode: PermissionMode) -> anyhow::Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        if let Some(notice) = session.set_mode(mode)? {
            let name = session.model().full_name();
            self.show_text(&output::localize_text(notice.message));
            self.ui.send_message(UiMessage::Model { name });
        }
        Ok(())
    }

    /// Sends the price of going back to the model that carries out the plan, if another one plans.
    fn send_plan_note(&self) {
        let quoted = self.session.as_ref().and_then(Session::quote_plan_end);
        let note = quoted.and_then(|(name, quote)| {
            let quote = output::localize_text(quote?);
            Some(text!("interactive-plan-price", name, quote))
        });
        self.ui.send_message(UiMessage::PlanNote(note));
    }

    async fn open_session(
        &mut self,
        which: ConversationChoice,
        prompt: &str,
    ) -> anyhow::Result<()> {
        let project = self.project.clone();
        let args = without_empty_resume(self.args);
        let mut plan = lower_args(&args, &self.settings, project, Some(prompt))?;
        if let Some(agent) = &self.chosen.agent {
            let chosen = ExplicitChoices {
                model: self.args.model.is_some() || self.chosen.model.is_some(),
                tools: self.args.allowed_tools.is_some(),
            };
            plan.apply_agent_role(&self.settings.places, agent, chosen)?;
        }
        plan.which = which;
        plan.task.leftovers = Leftovers::Keep;
        plan.mode = self.chosen.mode;
        plan.prompt.focus_files.clone_from(&self.chosen.focus);
        if let Some(model) = &self.chosen.model {
            plan.model.clone_from(model);
        }
        let places = self.settings.places.clone();
        let remember = move |rules: &[String]| {
            permissions::add_rules(&places, Decision::Allow, rules)
                .map(drop)
                .map_err(|error| error.to_string())
        };
        plan.task.approver = Some(Arc::new(self.ui.create_approver(Box::new(remember))));
        let opened = self.settings.open_session(plan).await;
        let session = self.session.insert(opened.map_err(to_usage_error)?);
        // A title request for the previous conversation continues, but must not name this one.
        self.title_update = None;
        if let Some(port) = session.attach_port() {
            let ui = self.ui.clone();
            port.set_mode_listener(Box::new(move |mode| ui.send_message(UiMessage::Mode(mode))));
        }
        session.attach_images(std::mem::take(&mut self.images));
        self.task_updates = Some(TaskUpdates::start(session, self.ui.clone()));
        self.add_waiting_ranges().await
    }

    /// Shows the name of the open conversation, its last messages, and a note if its last turn was
    /// cut off.
    fn show_opened_conversation(&self) {
        let Some(session) = &self.session else { return };
        let conversation = session.conversation();
        let history = session.history();
        let text = text!(
            "interactive-resumed",
            name = conversation.name,
            count = history.len()
        );
        self.ui.send_message(UiMessage::Opened { text });
        self.ui
            .send_message(UiMessage::Earlier(resumed::collect_newest_results(history)));
        self.ui
            .send_message(UiMessage::Earlier(resumed::collect_last_rounds(history)));
        let totals = resumed::collect_totals(session);
        self.ui.send_message(UiMessage::Totals(Box::new(totals)));
        if haft_agent::is_cut_off(history) {
            self.show_text(text!("interactive-cut-off"));
        }
    }

    fn show_text(&self, text: &str) {
        self.ui.send_message(UiMessage::Told {
            text: text.to_owned(),
        });
    }

    fn show_error(&self, error: &anyhow::Error) {
        let text = crate::exit::format_failure(error);
        self.show_text(&haft_messages::capitalize(&text));
    }

    async fn close_session(&mut self) {
        for text in self.end_session().await {
            self.ui.send_message(UiMessage::Told { text });
        }
    }

    /// Closes the session and returns its last messages for the user.
    async fn end_session(&mut self) -> Vec<String> {
        // Closing the session ends its tasks.
        self.task_updates = None;
        self.ui.send_message(UiMessage::Tasks(Vec::new()));
        match self.session.take() {
            Some(mut session) => session.close().await,
            None => Vec::new(),
        }
    }

    /// Stops the turn, side actions and servers, closes the session, and returns its last messages
    /// for the user.
    async fn shut_down(&mut self, quit: &CancellationToken) -> Vec<String> {
        quit.cancel();
        self.side_actions.stop_all();
        self.sources.stop_servers().await;
        self.end_session().await
    }
}
