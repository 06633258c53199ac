//! What is known and offered: the tools, the system message, documents, skills, descriptions of folders, reminders, and the ports
//! through which tools reach them.
//!
//! Invariant: the system message is the one that the tools, documents and descriptions of now make; whoever changes one of them
//! renders it anew.

use std::path::PathBuf;
use std::sync::Arc;

use haft_context::{
    ContextError, Document, Documents, ExecutionState, ListOwner, Reminders, RoleParts, RoleText, SystemInput, Todo,
    TodoProgress, render_system, system_entry, todo_text,
};
use haft_tool::{FileChange, Registry, TodoState, Workspace};
use haft_tools::Running;
use haft_types::{Entry, PermissionMode, Timestamp, TokenCounter, ToolSet};
use tokio_util::sync::CancellationToken;

use super::active::Active;
use super::advertised::AdvertisedTools;
use super::hooked::Hooked;
use super::transcript::Transcript;
use super::{EngineError, SessionConfig, open};
use crate::documents::StandingDocuments;
use crate::external::{ExternalShelf, Late};
use crate::names;
use crate::ports::{Knowledge, Reads, SkillWatch, StoredTodo};
use crate::stored_state::{PlanModeNotice, StoredState, ToolDescriptions};
use crate::touched::{Mentions, Touched};

/// What requests are made of besides the messages.
pub(super) struct PromptContext {
    registry: Registry,
    /// The tools as the model is offered them.
    advertised: AdvertisedTools,
    /// Descriptions of declared tools that have to be kept before the next request.
    unkept_descriptions: Option<ToolDescriptions>,
    system: Arc<Entry>,
    todo: Arc<StoredTodo>,
    reads: Arc<Reads>,
    mentions: Mentions,
    knowledge: Knowledge,
    documents: StandingDocuments,
    /// Programs the model may run; none where it can run nothing.
    external: Option<ExternalShelf>,
    skills: SkillWatch,
    /// The descriptions of the project's folders.
    pub(super) active: Active,
    /// The file a tool changed last.
    last_write: Option<String>,
    /// Whether the model was told that plan mode is on.
    plan_mode_told: bool,
    counter: Arc<dyn TokenCounter>,
    running: Arc<Running>,
}

/// What is there before the project is looked at.
pub(super) struct OfferedContext {
    pub(super) registry: Registry,
    pub(super) unkept_descriptions: Option<ToolDescriptions>,
    pub(super) skills: SkillWatch,
    pub(super) todo: Arc<StoredTodo>,
    pub(super) knowledge: Knowledge,
}

impl PromptContext {
    /// Looks at the project for the first time, with those who want to know when its documents are read.
    pub(super) async fn open(
        offered: OfferedContext,
        config: &SessionConfig,
        (running, counter): (&Arc<Running>, &Arc<dyn TokenCounter>),
        history: &[Arc<Entry>],
        hooked: &Hooked,
        state: &mut StoredState,
    ) -> Result<Self, ContextError> {
        let OfferedContext { registry, unkept_descriptions, skills, todo, knowledge } = offered;
        let counter = Arc::clone(counter);
        let advertised = AdvertisedTools::of(&config.model, &registry, counter.as_ref());
        let (reads, mut mentions) = (Reads::from_history(history), Mentions::default());
        mentions.look(history, &config.knowledge.ground);
        let mut documents = StandingDocuments::new(
            config.knowledge.ground.clone(),
            config.knowledge.libraries.clone(),
            config.safety.masker.clone(),
            config.prompt.rules,
        );
        let external = registry.get(names::EXECUTE).map(|_| {
            let built_in = open::all_tools(running).iter().map(|tool| tool.spec().name.clone()).collect();
            ExternalShelf::new(config.knowledge.ground.clone(), config.knowledge.tool_help.clone(), built_in)
        });
        hooked.before_documents().await;
        documents.look(Touched { reads: &reads, mentions: &mentions }, external.as_ref(), counter.as_ref());
        hooked.after_documents(&documents).await;
        let active = Active::open(config, state);
        let system = system_of(config, &advertised, &documents, active.text(), counter.as_ref())?;
        // Where nothing was said since, the system message speaks.
        let planning = config.safety.permissions.mode == PermissionMode::Plan;
        Ok(Self {
            registry,
            advertised,
            unkept_descriptions,
            system,
            todo,
            reads: Arc::new(reads),
            mentions,
            knowledge,
            documents,
            external,
            skills,
            active,
            last_write: None,
            plan_mode_told: state.take().map_or(planning, |PlanModeNotice(told)| told),
            counter,
            running: Arc::clone(running),
        })
    }

    /// The tools the model is offered.
    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The same as the model is offered them.
    pub(super) fn tool_set(&self) -> &Arc<ToolSet> {
        &self.advertised.tools
    }

    /// A tool's own name, whatever the model called it.
    pub(super) fn own_name<'a>(&'a self, called: &'a str) -> &'a str {
        self.registry.resolve(called).map_or(called, |found| &found.tool.spec().name)
    }

    /// Whether the model can report that it is done.
    pub(super) fn completes(&self) -> bool {
        self.registry.offers(names::COMPLETE)
    }

    pub(super) fn todo(&self) -> &Arc<StoredTodo> {
        &self.todo
    }

    pub(super) fn reads(&self) -> &Arc<Reads> {
        &self.reads
    }

    pub(super) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// The documents that are sent with every request.
    pub(super) fn documents(&self) -> &[Document] {
        self.documents.documents()
    }

    /// The same as a layer of a request.
    pub(super) fn document_layer(&self) -> &Documents {
        self.documents.layer()
    }

    /// The whole of what is read of the project, for those who are told.
    pub(super) fn standing_documents(&self) -> &StandingDocuments {
        &self.documents
    }

    pub(super) fn system(&self) -> &Arc<Entry> {
        &self.system
    }

    /// Renders tools and system message anew, for the model there is now.
    pub(super) fn render(&mut self, config: &SessionConfig) -> Result<(), ContextError> {
        let counter = self.counter.as_ref();
        self.registry.set_protocol(config.model.tool_protocol);
        self.advertised = AdvertisedTools::of(&config.model, &self.registry, counter);
        self.system = system_of(config, &self.advertised, &self.documents, self.active.text(), counter)?;
        Ok(())
    }

    /// Whether the project's documents would be read anew now.
    pub(super) fn is_stale(&mut self, config: &SessionConfig, history: &[Arc<Entry>]) -> bool {
        self.mentions.look(history, &config.knowledge.ground);
        let touched = Touched { reads: &self.reads, mentions: &self.mentions };
        self.documents.is_stale(touched, self.external.as_ref())
    }

    /// Looks at the project's documents; what they change of the system message is rendered anew. Gives what is wrong with them.
    /// Descriptions of folders are taken over only where nothing is cached: `cold`.
    pub(super) fn refresh(
        &mut self,
        config: &SessionConfig,
        history: &[Arc<Entry>],
        cold: bool,
    ) -> Result<Vec<String>, ContextError> {
        self.refresh_skills(config)?;
        if cold && self.active.refresh(config) {
            self.render(config)?;
        }
        self.mentions.look(history, &config.knowledge.ground);
        let touched = Touched { reads: &self.reads, mentions: &self.mentions };
        if let Some(external) = &mut self.external {
            external.look();
        }
        let changed = self.documents.look(touched, self.external.as_ref(), self.counter.as_ref());
        if changed && config.prompt.roles.main.is_some() {
            self.render(config)?;
        }
        let mut problems = self.documents.take_problems();
        problems.extend(self.skills.take_problems());
        problems.extend(self.external.as_mut().into_iter().flat_map(ExternalShelf::take_problems));
        Ok(problems)
    }

    /// Looks whether skills were added, changed or removed, and lists them as they are now.
    fn refresh_skills(&mut self, config: &SessionConfig) -> Result<(), ContextError> {
        if !self.skills.changed(&config.knowledge.ground) {
            return Ok(());
        }
        let before: Vec<_> = self.registry.cases().cloned().collect();
        match open::skills_now(config, &self.running) {
            Some((tool, listed)) => {
                self.registry.register(tool);
                self.registry.set_case(listed);
            }
            None => drop(self.registry.remove(names::USE_SKILL)),
        }
        if !before.iter().eq(self.registry.cases()) {
            self.render(config)?;
        }
        Ok(())
    }

    /// Learns what programs of the project are for, as far as that can wait.
    pub(super) async fn learn_programs(&mut self, late: Late, cancel: &CancellationToken) {
        if let Some(external) = &mut self.external {
            external.learn(late, cancel).await;
        }
    }

    /// The reminders as they are now: afresh for every request.
    pub(super) fn reminders(&self, config: &SessionConfig, owner: ListOwner, now: Timestamp) -> Reminders {
        let items = self.todo.items();
        let progress = |state| match state {
            TodoState::Pending => TodoProgress::Pending,
            TodoState::InProgress => TodoProgress::InProgress,
            TodoState::Completed => TodoProgress::Completed,
        };
        let todo: Vec<_> =
            items.iter().map(|item| Todo { content: &item.content, progress: progress(item.status) }).collect();
        let masked = |text: String| config.safety.masker.mask(&text).into_owned();
        let notes = self.knowledge.notes.reminder(self.reads.paths().iter().map(PathBuf::as_path));
        Reminders {
            role: assembled_role(config, &self.documents),
            todo: Some(masked(todo_text(&todo, owner))),
            useful: Some(masked(self.knowledge.useful.useful_reminder(&config.folders.workspace.root))),
            folder_notes: Some(masked(notes)),
            clock: Some(now.to_string()),
        }
    }

    /// What the model is told of the run.
    pub(super) fn execution(&self, mode: PermissionMode) -> ExecutionState {
        ExecutionState { mode: mode.to_string(), last_write: self.last_write.clone(), ..ExecutionState::default() }
    }

    /// The role that is assembled for the system message; none when none is configured.
    pub(super) fn role(&self, config: &SessionConfig) -> Option<String> {
        assembled_role(config, &self.documents)
    }

    /// What the system message is made of.
    pub(super) fn system_input<'a>(&'a self, config: &'a SessionConfig, role: Option<&'a str>) -> SystemInput<'a> {
        system_input(config, &self.advertised, role, self.active.text())
    }

    /// Notes what a call changed.
    pub(super) fn note_change(&mut self, workspace: &Workspace, change: &FileChange) {
        self.active.note(&workspace.root, change);
        self.last_write = Some(workspace.display(&change.path));
    }

    /// Keeps with the conversation how declared tools are described, where that is not yet done.
    pub(super) async fn keep_tool_descriptions(&mut self, transcript: &Transcript) -> Result<(), EngineError> {
        match self.unkept_descriptions.take() {
            Some(descriptions) => transcript.keep_state(&descriptions).await,
            None => Ok(()),
        }
    }

    /// Whether the model was told that plan mode is on.
    pub(super) fn plan_mode_told(&self) -> bool {
        self.plan_mode_told
    }

    /// Remembers what the model believes, for this process and for those that resume the conversation.
    pub(super) async fn note_plan_mode(&mut self, planning: bool, transcript: &Transcript) -> Result<(), EngineError> {
        if self.plan_mode_told != planning {
            self.plan_mode_told = planning;
            transcript.keep_state(&PlanModeNotice(planning)).await?;
        }
        Ok(())
    }
}

/// The role of the agent with what belongs to it; none when none is configured.
fn assembled_role(config: &SessionConfig, documents: &StandingDocuments) -> Option<String> {
    let role = config.prompt.roles.main.as_deref()?;
    let environment = format!(
        "Working directory: {}\nOperating system: {}\nShell: {}",
        config.prompt.environment.cwd, config.prompt.environment.os, config.prompt.environment.shell
    );
    let parts = RoleParts {
        role: Some(role),
        agents_md: documents.agents_md(),
        environment: Some(&environment),
        completion: config.prompt.roles.completion.as_deref(),
        ..RoleParts::default()
    };
    Some(parts.join())
}

fn system_input<'a>(
    config: &'a SessionConfig,
    advertised: &'a AdvertisedTools,
    role: Option<&'a str>,
    descriptions: Option<&'a str>,
) -> SystemInput<'a> {
    let role = match (&config.prompt.roles.system_prompt, role) {
        (Some(prompt), _) => RoleText::Custom(prompt),
        (None, Some(role)) => RoleText::Role(role),
        (None, None) => RoleText::BuiltIn,
    };
    SystemInput {
        role,
        append: config.prompt.roles.append.as_deref(),
        tools: &advertised.tools.specs,
        protocol: config.model.tool_protocol,
        call_format: advertised.call_format.as_deref(),
        examples: &advertised.examples,
        guidelines: &advertised.guidelines,
        cases: &advertised.cases,
        environment: &config.prompt.environment,
        focus_files: &config.prompt.focus_files,
        package_context: descriptions,
    }
}

fn system_of(
    config: &SessionConfig,
    advertised: &AdvertisedTools,
    documents: &StandingDocuments,
    descriptions: Option<&str>,
    counter: &dyn TokenCounter,
) -> Result<Arc<Entry>, ContextError> {
    let role = assembled_role(config, documents);
    Ok(system_entry(render_system(&system_input(config, advertised, role.as_deref(), descriptions))?, counter))
}

#[cfg(test)]
mod tests;
