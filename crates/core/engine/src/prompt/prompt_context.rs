//! Holds everything that a request is built from besides messages: tools, the system message,
//! documents, skills, descriptions of folders, reminders, and the ports through which tools access
//! them.
//!
//! Invariant: the system message always matches the current tools, documents and descriptions. Code
//! that changes one of them renders the system message again.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use haft_context::{
    CHANGED_FILES_KEY, ContextError, Document, DocumentKind, Documents, ExecutionState, ListOwner,
    Need, PlanStep, Reminders, RoleParts, RoleText, StatedPlace, SystemInput, Todo, TodoProgress,
    format_todo_list, render_small_system, render_system, system_entry,
};
use haft_tool::{FileChange, ReadLedger, Registry, Workspace};
use haft_tools::{Running, StoredTodo, TodoItem, TodoState};
use haft_types::{
    Entry, ModelProfile, PermissionMode, Prompt, Timestamp, TokenCounter, ToolProtocol, ToolSet,
    prompt,
};
use tokio_util::sync::CancellationToken;

use super::active_context::ActiveContext;
use super::advertised::{AdvertisedTools, PEER_LISTS};
use super::documents::StandingDocuments;
use super::external::{ExternalTools, LateAnswers};
use super::offered_tools::{all_tool_names, current_skills};
use super::prompt_copy::PromptCopy;
use super::redescribed_tool::translate_tool;
use super::touched_files::{Mentions, TouchedFiles};
use crate::error::EngineError;
use crate::hooks::HookRunner;
use crate::names;
use crate::ports::{Knowledge, SkillWatch};
use crate::session::config::SessionConfig;
use crate::session::transcript::Transcript;
use crate::stored_state::{PlanModeNotice, SentPlace, StoredState, ToolDescriptions};

/// The parts of a session's requests other than messages.
pub(crate) struct PromptContext {
    /// The tools that may be called.
    registry: Registry,
    /// In a fork, the tools that are described to the model: those of the session that the fork
    /// copies.
    copied: Option<Registry>,
    /// The tools, as they are described to the model.
    advertised: AdvertisedTools,
    /// Descriptions of declared tools that must be stored before the next request.
    unkept_descriptions: Option<ToolDescriptions>,
    system: Arc<Entry>,
    todo: Arc<StoredTodo>,
    reads: Arc<ReadLedger>,
    /// The files that the starting agent has read; `None` in the main session.
    starter_reads: Option<Arc<ReadLedger>>,
    mentions: Mentions,
    knowledge: Knowledge,
    documents: StandingDocuments,
    /// The user's external tools, which the model may run; `None` if the model cannot run commands.
    external: Option<ExternalTools>,
    /// The part of requests that states the working folder.
    place: StatedPlace,
    /// True if `place` must be stored before the next request.
    unkept_place: bool,
    skills: SkillWatch,
    pub(crate) active: ActiveContext,
    /// The file that a tool changed last.
    last_write: Option<String>,
    /// True if the last notice to the model said that plan mode is on.
    plan_mode_announced: bool,
    counter: Arc<dyn TokenCounter>,
    running: Arc<Running>,
}

/// The parts of a [`PromptContext`] that are created before the project's documents are read.
pub(crate) struct OfferedContext {
    pub(crate) registry: Registry,
    pub(crate) unkept_descriptions: Option<ToolDescriptions>,
    pub(crate) skills: SkillWatch,
    pub(crate) todo: Arc<StoredTodo>,
    /// The files that the starting agent has read; `None` in the main session.
    pub(crate) starter_reads: Option<Arc<ReadLedger>>,
    pub(crate) knowledge: Knowledge,
    pub(crate) running: Arc<Running>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    /// The prompt that a fork copies; `None` for other sessions.
    pub(crate) copied: Option<Arc<PromptCopy>>,
}

impl PromptContext {
    /// Reads the project's documents for the first time, and calls the hooks for the beginning and
    /// the end of the reading.
    pub(crate) async fn open(
        offered: OfferedContext,
        config: &SessionConfig,
        history: &[Arc<Entry>],
        hooks: &HookRunner,
        state: &mut StoredState,
    ) -> Result<Self, ContextError> {
        let OfferedContext {
            registry,
            unkept_descriptions,
            skills,
            todo,
            starter_reads,
            knowledge,
            running,
            counter,
            copied,
        } = offered;
        // A conversation keeps the bytes that its first request had.
        let stored: Option<SentPlace> = state.take();
        let place = match (&copied, stored) {
            (Some(copied), _) => copied.place,
            (None, Some(SentPlace(place))) => place,
            (None, None) if history.is_empty() => StatedPlace::AfterDocuments,
            (None, None) => StatedPlace::System,
        };
        let advertised = match &copied {
            Some(copied) => copied.advertised.clone(),
            None => AdvertisedTools::new(
                &config.model,
                config.policy.prompt_language,
                &registry,
                place,
                counter.as_ref(),
            ),
        };
        let reads = ReadLedger::from_history(history);
        let mut mentions = Mentions::default();
        let mut documents = if let Some(copied) = &copied {
            let mut documents = copied.documents.copy_for_fork();
            if config.prompt.environment.cwd != copied.settings.environment.cwd {
                // The copied system message or documents state another working folder.
                documents.set_place(describe_place(config, &registry), counter.as_ref());
            }
            documents
        } else {
            mentions.scan(history, &config.knowledge.paths);
            let mut documents = StandingDocuments::new(
                config.knowledge.paths.clone(),
                config.knowledge.libraries.clone(),
                config.safety.masker.clone(),
                config.prompt.rules,
            );
            match place {
                StatedPlace::System => {}
                StatedPlace::AfterDocuments => {
                    documents.set_place(describe_place(config, &registry), counter.as_ref());
                }
            }
            documents
        };
        let external = registry
            .known_names()
            .contains(names::EXECUTE_TOOL)
            .then(|| {
                let running = Arc::clone(&running);
                let language = config.policy.prompt_language;
                let built_in = LazyLock::new(move || all_tool_names(&running, language));
                let is_built_in =
                    Box::new(move |name: &str| built_in.iter().any(|one| one == name));
                ExternalTools::new(
                    config.knowledge.paths.clone(),
                    config.knowledge.tool_help.clone(),
                    is_built_in,
                )
            });
        hooks.run_before_documents().await;
        documents.refresh(
            TouchedFiles {
                reads: &reads,
                mentions: &mentions,
            },
            external.as_ref(),
            counter.as_ref(),
        );
        hooks.run_after_documents(&documents).await;
        let active = ActiveContext::open(config, state);
        let texts = SystemTexts {
            advertised: &advertised,
            descriptions: active.text(),
            place,
        };
        let system = match &copied {
            Some(copied) => Arc::clone(&copied.system),
            None => texts.build_message(config, counter.as_ref())?,
        };
        // Until a notice is sent, the system message determines the mode the model assumes.
        let planning = config.safety.permissions.mode == PermissionMode::Plan;
        Ok(Self {
            registry,
            copied: copied.map(|copied| copied.registry.clone()),
            advertised,
            unkept_descriptions,
            system,
            todo,
            reads: Arc::new(reads),
            starter_reads,
            mentions,
            knowledge,
            documents,
            external,
            place,
            unkept_place: stored.is_none(),
            skills,
            active,
            last_write: find_last_write(history),
            plan_mode_announced: state.take().map_or(planning, |PlanModeNotice(told)| told),
            counter,
            running,
        })
    }

    /// Returns the offered tools.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the tools that are described to the model although this session may not call all of
    /// them; `None` unless the session is a fork.
    pub(crate) fn copied_registry(&self) -> Option<&Registry> {
        self.copied.as_ref()
    }

    /// Returns true if sessions in other places may send the same first bytes.
    pub(crate) fn shares_first_bytes(&self) -> bool {
        match self.place {
            StatedPlace::System => self.copied.is_some(),
            StatedPlace::AfterDocuments => true,
        }
    }

    /// Returns the first bytes of the session's requests, for a fork.
    pub(crate) fn copy_for_fork(&self, config: &SessionConfig) -> PromptCopy {
        PromptCopy {
            registry: self.copied.as_ref().unwrap_or(&self.registry).clone(),
            advertised: self.advertised.clone(),
            system: Arc::clone(&self.system),
            documents: self.documents.clone(),
            place: self.place,
            settings: config.prompt.clone(),
        }
    }

    /// Returns the offered tools in the form in which requests contain them.
    pub(crate) fn tool_set(&self) -> &Arc<ToolSet> {
        &self.advertised.tools
    }

    /// Returns the canonical name of a tool that may have been called by an alias.
    pub(crate) fn canonical_name<'a>(&'a self, called: &'a str) -> &'a str {
        self.registry
            .resolve(called)
            .map_or(called, |found| &found.tool.spec().name)
    }

    /// Returns true if the model can report that the task is done.
    pub(crate) fn offers_completion(&self) -> bool {
        self.registry.offers_tool(names::COMPLETE_TOOL)
    }

    pub(crate) fn todo(&self) -> &Arc<StoredTodo> {
        &self.todo
    }

    pub(crate) fn reads(&self) -> &Arc<ReadLedger> {
        &self.reads
    }

    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Returns the documents that are sent with every request.
    pub(crate) fn documents(&self) -> &[Document] {
        self.documents.documents()
    }

    /// Returns the documents in the form in which requests contain them.
    pub(crate) fn document_layer(&self) -> &Documents {
        self.documents.layer()
    }

    /// Returns the documents with their headings, for hooks.
    pub(crate) fn standing_documents(&self) -> &StandingDocuments {
        &self.documents
    }

    pub(crate) fn system_message(&self) -> &Arc<Entry> {
        &self.system
    }

    /// Renders the tools and the system message again, for the current model.
    pub(crate) fn render(&mut self, config: &SessionConfig) -> Result<(), ContextError> {
        let counter = self.counter.as_ref();
        self.registry.set_protocol(config.model.tool_protocol);
        if let Some(copied) = &mut self.copied {
            copied.set_protocol(config.model.tool_protocol);
        }
        self.advertised = AdvertisedTools::new(
            &config.model,
            config.policy.prompt_language,
            self.copied.as_ref().unwrap_or(&self.registry),
            self.place,
            counter,
        );
        self.system = self.system_texts().build_message(config, counter)?;
        Ok(())
    }

    /// Returns true if the project's documents must be read again.
    pub(crate) fn has_stale_documents(
        &mut self,
        config: &SessionConfig,
        history: &[Arc<Entry>],
    ) -> bool {
        self.scan_mentions(config, history);
        let touched = TouchedFiles {
            reads: &self.reads,
            mentions: &self.mentions,
        };
        self.documents.is_stale(touched, self.external.as_ref())
    }

    /// Reads the project's documents again if they have changed, and returns the problems found in
    /// them. Descriptions of folders are updated only if `cold` is true: no cached prefix can be
    /// lost then.
    pub(crate) fn refresh(
        &mut self,
        config: &SessionConfig,
        history: &[Arc<Entry>],
        cold: bool,
    ) -> Result<Vec<String>, ContextError> {
        if self.copied.is_none() {
            self.refresh_skills(config)?;
            if cold && self.active.refresh(config) {
                self.render(config)?;
            }
        }
        self.scan_mentions(config, history);
        let touched = TouchedFiles {
            reads: &self.reads,
            mentions: &self.mentions,
        };
        if let Some(external) = &mut self.external {
            external.refresh();
        }
        self.documents
            .refresh(touched, self.external.as_ref(), self.counter.as_ref());
        let mut problems = self.documents.take_problems();
        problems.extend(self.skills.take_problems());
        problems.extend(
            self.external
                .as_mut()
                .into_iter()
                .flat_map(ExternalTools::take_problems),
        );
        Ok(problems)
    }

    /// Scans new messages for mentioned files. The task of a fork mentions nothing, because a
    /// document that it would add is not among those that the fork copies.
    fn scan_mentions(&mut self, config: &SessionConfig, history: &[Arc<Entry>]) {
        if self.copied.is_none() {
            self.mentions.scan(history, &config.knowledge.paths);
        }
    }

    /// Lists the skills again if a skill was added, changed or removed.
    fn refresh_skills(&mut self, config: &SessionConfig) -> Result<(), ContextError> {
        if !self.skills.refresh_if_changed(&config.knowledge.paths) {
            return Ok(());
        }
        let before: Vec<_> = self.registry.case_documents().cloned().collect();
        match current_skills(config, &self.running) {
            Some((tool, listed)) => {
                self.registry
                    .register(translate_tool(tool, config.policy.prompt_language));
                self.registry.replace_case(listed);
            }
            None => drop(self.registry.remove(names::USE_SKILL)),
        }
        if !before.iter().eq(self.registry.case_documents()) {
            self.render(config)?;
        }
        Ok(())
    }

    /// Finds the external tools again, and runs tools without known help to get it. Waits only for
    /// tools whose help was never requested before.
    pub(crate) async fn refresh_program_help(
        &mut self,
        late: LateAnswers,
        cancel: &CancellationToken,
    ) {
        if let Some(external) = &mut self.external {
            external.refresh_help(late, cancel).await;
        }
    }

    /// Builds the reminders, which are new in every request.
    pub(crate) fn build_reminders(
        &self,
        config: &SessionConfig,
        owner: ListOwner,
        now: Timestamp,
    ) -> Reminders {
        let items = self.todo.items();
        let todo: Vec<_> = items
            .iter()
            .map(|item| Todo {
                content: &item.content,
                progress: match item.status {
                    TodoState::Pending => TodoProgress::Pending,
                    TodoState::InProgress => TodoProgress::InProgress,
                    TodoState::Completed => TodoProgress::Completed,
                },
            })
            .collect();
        let masked = |text: String| config.safety.masker.mask(&text).into_owned();
        let notes = self
            .knowledge
            .notes_reminder(&config.folders.workspace.root, &self.known_files());
        Reminders {
            // Reminders follow the documents, so they may contain the working folder. The
            // configured role of a fork is that of another agent.
            role: assemble_role(config, self.documents.agents_md(), StatedPlace::System)
                .filter(|_| self.copied.is_none()),
            todo: Some(masked(format_todo_list(
                &todo,
                owner,
                config.policy.prompt_language,
            ))),
            useful: Some(masked(
                self.knowledge
                    .useful_reminder(&config.folders.workspace.root),
            )),
            folder_notes: Some(masked(notes)),
            clock: Some(now.to_string()),
        }
    }

    /// Returns the files that were read in this session or in the session that started it.
    fn known_files(&self) -> Vec<PathBuf> {
        let starter = self.starter_reads.iter().flat_map(|reads| reads.paths());
        starter.chain(self.reads.paths()).collect()
    }

    /// Describes the state of the run to the model. `agents` are the names of the running agents.
    pub(crate) fn build_execution_state(
        &self,
        config: &SessionConfig,
        mode: PermissionMode,
        owner: ListOwner,
        agents: &[String],
    ) -> ExecutionState {
        let plan_step = match owner {
            ListOwner::Reader => current_plan_step(&self.todo.items()),
            // The list belongs to another agent.
            ListOwner::MainAgent => None,
        };
        let masked = |text: String| config.safety.masker.mask(&text).into_owned();
        let mut tasks = self.running.describe_processes();
        let children = self.knowledge.children.all();
        let newest = &children[children.len().saturating_sub(MAX_LISTED_CHILDREN)..];
        tasks.extend(newest.iter().map(|child| {
            let state = if agents.contains(&child.agent) {
                "running"
            } else {
                "ended"
            };
            format!(
                "sub-agent {} (conversation {}): {state}",
                child.agent,
                child.conversation.short_prefix()
            )
        }));
        ExecutionState {
            max_replies: config.task.limits.turns,
            mode: mode.to_string(),
            plan_step: plan_step.map(|PlanStep { step, done_when }| PlanStep {
                step: masked(step),
                done_when: masked(done_when),
            }),
            tasks: tasks.into_iter().map(masked).collect(),
            last_write: self.last_write.clone(),
        }
    }

    /// Returns the role for the system message; `None` if no role is configured.
    pub(crate) fn configured_role(&self, config: &SessionConfig) -> Option<String> {
        self.system_texts().build_role(config)
    }

    fn system_texts(&self) -> SystemTexts<'_> {
        SystemTexts {
            advertised: &self.advertised,
            descriptions: self.active.text(),
            place: self.place,
        }
    }

    /// Returns the parts from which the system message is built.
    pub(crate) fn system_input<'a>(
        &'a self,
        config: &'a SessionConfig,
        role: Option<&'a str>,
    ) -> SystemInput<'a> {
        self.system_texts().build_input(config, role)
    }

    /// Records a file that a call changed.
    pub(crate) fn record_change(&mut self, workspace: &Workspace, change: &FileChange) {
        self.active.record_change(&workspace.root, change);
        self.last_write = Some(workspace.display_path(&change.path));
    }

    /// Stores the parts of the prompt that stay as the first request contains them, unless they are
    /// already stored: the place of the working folder, and the descriptions of declared tools.
    pub(crate) async fn store_first_prompt(
        &mut self,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        if self.unkept_place {
            transcript.store_state(&SentPlace(self.place)).await?;
            self.unkept_place = false;
        }
        match self.unkept_descriptions.take() {
            Some(descriptions) => transcript.store_state(&descriptions).await,
            None => Ok(()),
        }
    }

    /// Returns true if the model was last informed that plan mode is on.
    pub(crate) fn plan_mode_announced(&self) -> bool {
        self.plan_mode_announced
    }

    /// Records whether the model was informed that plan mode is on, and stores it for processes
    /// that resume the conversation.
    pub(crate) async fn set_plan_mode_announced(
        &mut self,
        planning: bool,
        transcript: &Transcript,
    ) -> Result<(), EngineError> {
        if self.plan_mode_announced != planning {
            self.plan_mode_announced = planning;
            transcript.store_state(&PlanModeNotice(planning)).await?;
        }
        Ok(())
    }
}

/// The maximum number of sub-agents in the execution state; the newest are kept.
const MAX_LISTED_CHILDREN: usize = 8;

/// Returns the step of the plan that is in progress, and the condition under which the step is
/// done. The condition is the one stated in the item, or else that the next item can begin.
fn current_plan_step(items: &[TodoItem]) -> Option<PlanStep> {
    const CLAUSE: &str = "done when";
    let at = items
        .iter()
        .position(|item| item.status == TodoState::InProgress)?;
    let text = items[at]
        .content
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let clause = text.to_ascii_lowercase().find(CLAUSE);
    if let Some(clause) = clause {
        let done_when = text[clause + CLAUSE.len()..].trim_matches([':', ' ', ')', '.']);
        if !done_when.is_empty() {
            let step = text[..clause].trim_end_matches(['(', ',', ';', ':', '-', '–', '.', ' ']);
            return Some(PlanStep {
                step: step.to_owned(),
                done_when: done_when.to_owned(),
            });
        }
    }
    let next = items[at + 1..]
        .iter()
        .find(|item| item.status == TodoState::Pending);
    let done_when = next.map_or_else(
        || text.clone(),
        |next| format!("the next item can begin: {}", next.content),
    );
    Some(PlanStep {
        step: text,
        done_when,
    })
}

/// Returns the file that was changed last by a call in this history.
fn find_last_write(history: &[Arc<Entry>]) -> Option<String> {
    let changed = |entry: &Arc<Entry>| {
        let paths = entry.message.metadata.get(CHANGED_FILES_KEY)?.as_array()?;
        paths.last()?.as_str().map(str::to_owned)
    };
    history.iter().rev().find_map(changed)
}

/// Returns the hints for an operating system, or `None` if there are no hints for it.
fn platform_prompt(os: &str) -> Option<Prompt> {
    match os.split_whitespace().next()? {
        "linux" => Some(prompt!("../../prompts/platform_linux")),
        "macos" => Some(prompt!("../../prompts/platform_macos")),
        _ => None,
    }
}

/// Returns the documents about the place of a session: the working folder, the user, and the agents
/// that run at the same time.
fn describe_place(config: &SessionConfig, registry: &Registry) -> Vec<Document> {
    let document = |heading: &str, text: String| Document {
        kind: DocumentKind::Place,
        heading: heading.to_owned(),
        text,
        need: Need::Always,
    };
    let place = &config.prompt.environment;
    let template = prompt!("../../prompts/place").text(config.policy.prompt_language);
    let lines = match config.model.profile {
        ModelProfile::Full => template.lines().count(),
        // Small models get only the working folder.
        ModelProfile::Small => 1,
    };
    let lines: Vec<_> = template.lines().take(lines).collect();
    let text = lines
        .join("\n")
        .replace("{cwd}", &place.cwd)
        .replace("{user}", &place.user)
        .replace("{home}", &place.home);
    let peers = PEER_LISTS
        .into_iter()
        .filter_map(|name| registry.case_documents().find(|case| case.name == name))
        .map(|case| document(&case.name, case.text.clone()));
    [document("Place", text)].into_iter().chain(peers).collect()
}

/// Returns the text about the agent's role and environment; `None` if no role is configured. The
/// text contains the working folder only for [`StatedPlace::System`].
fn assemble_role(
    config: &SessionConfig,
    agents_md: Option<&str>,
    stated: StatedPlace,
) -> Option<String> {
    let role = config.prompt.roles.main.as_deref()?;
    let place = &config.prompt.environment;
    let language = config.policy.prompt_language;
    let environment = prompt!("../../prompts/environment").text(language);
    let environment: Vec<_> = environment
        .lines()
        .filter(|line| match stated {
            StatedPlace::System => true,
            StatedPlace::AfterDocuments => !line.contains("{cwd}"),
        })
        .collect();
    let environment = environment
        .join("\n")
        .replace("{cwd}", &place.cwd)
        .replace("{os}", &place.os)
        .replace("{shell}", &place.shell);
    let parts = RoleParts {
        role: Some(role),
        agents_md,
        environment: Some(&environment),
        platform: platform_prompt(&place.os).map(|platform| platform.text(language)),
        completion: config.prompt.roles.completion.as_deref(),
    };
    Some(parts.join())
}

/// The texts from which the system message is built, besides the configuration.
#[derive(Clone, Copy)]
struct SystemTexts<'a> {
    advertised: &'a AdvertisedTools,
    /// The descriptions of the project's folders.
    descriptions: Option<&'a str>,
    place: StatedPlace,
}

impl<'a> SystemTexts<'a> {
    /// Returns the role for the system message. `AGENTS.md` is left out, because it is one of the
    /// documents.
    fn build_role(&self, config: &SessionConfig) -> Option<String> {
        assemble_role(config, None, self.place)
    }

    fn build_input(&self, config: &'a SessionConfig, role: Option<&'a str>) -> SystemInput<'a> {
        let role = match (&config.prompt.roles.system_prompt, role) {
            (Some(prompt), _) => RoleText::Custom(prompt),
            (None, Some(role)) => RoleText::Role(role),
            (None, None) => RoleText::BuiltIn,
        };
        let model = &config.model;
        let advertised = self.advertised;
        SystemInput {
            role,
            append: config.prompt.roles.append.as_deref(),
            tools: &advertised.tools.specs,
            deferred: &advertised.tools.deferred,
            protocol: model.tool_protocol,
            // The text protocols send results as user messages, after which a reminder is allowed.
            reminders_in_results: model.tool_protocol == ToolProtocol::Native
                && !model.capabilities.user_after_tool,
            call_format: advertised.call_format.as_deref(),
            lists: &advertised.lists,
            examples: &advertised.examples,
            guidelines: &advertised.guidelines,
            cases: &advertised.cases,
            environment: &config.prompt.environment,
            place: self.place,
            focus_files: &config.prompt.focus_files,
            package_context: self.descriptions,
            sections: &config.prompt.roles.sections,
            language: config.policy.prompt_language,
        }
    }

    fn build_message(
        &self,
        config: &SessionConfig,
        counter: &dyn TokenCounter,
    ) -> Result<Arc<Entry>, ContextError> {
        let role = self.build_role(config);
        let texts: SystemTexts<'_> = *self;
        let input = texts.build_input(config, role.as_deref());
        let text = match config.model.profile {
            ModelProfile::Full => render_system(&input),
            ModelProfile::Small => render_small_system(&input),
        };
        Ok(system_entry(text?, counter))
    }
}

#[cfg(test)]
mod tests;
