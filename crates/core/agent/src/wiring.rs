//! Assembles a session: its store, model, sandbox, permissions and tools, and the contributions of
//! extensions.

use crate::find_knowledge_and_trust;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use haft_engine::hub::Hub;
use haft_engine::{
    DecisionState, HookHost, KnowledgeSettings, ModelServices, Notice, PromptSettings,
    SafetySettings, Services, SessionConfig, SessionFolders, SharedBudget, SharedServices,
    SideModels, StartGuard, ToolHelp,
};
use haft_model::{Client, Declared, ModelError, O200k, Secret};
use haft_permission::{
    Confinement, PermissionRule, PermissionRules, Permissions, PermissionsConfig,
};
use haft_project::external::HelpCache;
use haft_project::hooks::Hook;
use haft_project::library::Libraries;
use haft_project::{KnowledgePaths, TrustList, TrustState};
use haft_sandbox::{Sandbox, SandboxConfig};
use haft_store::Store;
use haft_text::Masker;
use haft_tool::{ToolSearch, Workspace};
use haft_tools::{RecoveryOutcome, Running};
use haft_types::{Decision, PermissionMode, TokenCounter};
use tracing::info;

use crate::agent::Agent;
use crate::config::{Config, ModelRole};
use crate::designer::find_designer;
use crate::environment::HostEnvironment;
use crate::error::{ConfigError, SetupError};
use crate::extension::{Contribution, ExtensionContext};
use crate::places::Places;
use crate::plan::{RunPlan, RunStep};
use crate::project::Project;
use crate::{hooks, knowledge, machine, models, sandbox};

/// The suffix of the namespace for the conversations of workflow steps. This namespace separates
/// them from the project's other conversations and from its current conversation.
const STEPS_SUFFIX: &str = "#workflows";

/// The code of the notice about a variable that begins with `HAFT_` and has no effect.
pub const UNKNOWN_VARIABLE_CODE: &str = "unknown_variable";

/// Assembles the configuration and the services of a session.
pub(crate) fn prepare_session(
    agent: &Agent,
    plan: RunPlan,
    store: Arc<dyn Store>,
    sandbox: Sandbox,
    declared: Declared,
    key: Option<Secret>,
) -> Result<(SessionConfig, Services), SetupError> {
    let Agent { places, config, .. } = agent;
    let host = &places.environment;
    let model = declared.spec.clone();
    let workspace = build_workspace(places, &plan);
    let key_text = key.as_ref().map(|key| key.expose().to_owned());
    let (mut paths, mut trust_state) = find_knowledge_and_trust(places, &plan.project)?;
    if plan.ignores_project {
        (paths.trusted, trust_state) = (false, TrustState::Untrusted);
    }
    let supervisor = Arc::new(host.supervisor());
    let child_environment = Arc::new(host.child_environment());
    let counter: Arc<dyn TokenCounter> = Arc::new(O200k);
    let (found, problems) = hooks::load_hooks_with_notices(places, &config.hooks, &paths);
    log_session_opening(&plan, &trust_state, &found);
    let record = TrustList::at_path(places.trust_file())
        .find_record(&plan.project.root)
        .map_err(SetupError::Trust)?;
    let decisions = Arc::new(DecisionState::new(plan.mode));
    let guard = Arc::new(StartGuard::new(
        plan.task.approver.clone(),
        Arc::clone(&decisions),
        record.runs.clone(),
    ));
    let contribution = collect_contributions(
        agent,
        &ExtensionContext {
            places,
            config,
            project: &plan.project,
            trust_state: &trust_state,
            record: &record,
            shared: &decisions,
            guard: &guard,
            supervisor: &supervisor,
            child_environment: &child_environment,
            approver: plan.task.approver.as_ref(),
            model: &model,
            counter: &counter,
            money_limited: plan.task.limits.needs_price(),
        },
    );
    let masker = Masker::with_values(
        host.secret_values()
            .into_iter()
            .chain(key_text)
            .chain(contribution.secrets),
    );
    if let Some(tell) = &agent.masker_listener {
        tell(&masker);
    }
    let mut permissions = load_permissions(
        host,
        &config.permissions,
        plan.mode,
        sandbox::assess_confinement(&sandbox),
    )?;
    // All files of a project inside haft's configuration folder count as settings.
    let folders = std::iter::once(&workspace.root).chain(&workspace.extra);
    let settings = folders.filter(|folder| places.is_among_settings(folder));
    let own = settings
        .cloned()
        .chain(places.own_folders())
        .chain(places.linked_paths());
    permissions.rules = permissions.rules.with_own_paths(own);
    if !trust_state.is_trusted() {
        permissions.rules = permissions.rules.without_git_rules();
    }
    let notices = collect_opening_notices(
        config,
        &plan,
        &trust_state,
        contribution.notices.into_iter().chain(problems),
    );
    let hook_host = HookHost {
        supervisor: Arc::clone(&supervisor),
        environment: Arc::clone(&child_environment),
        sandbox: sandbox.clone(),
        guard,
    };
    let hooks = hooks::create_hook_callbacks(found, hook_host);
    let namespace = plan.project.namespace();
    let (name, budget, conversations) = match plan.step {
        Some(RunStep { name, budget }) => (name, budget, format!("{namespace}{STEPS_SUFFIX}")),
        None => (
            haft_engine::MAIN_AGENT.to_owned(),
            SharedBudget::default(),
            namespace.clone(),
        ),
    };
    let services = Services {
        models: create_model_services(agent, &plan.model, declared, key)?,
        shared: Arc::new(build_shared_services(
            agent,
            &plan.model,
            store,
            counter,
            budget,
        )),
        running: Arc::new(
            Running::new(supervisor, config.limits)
                .with_sandbox(sandbox)
                .with_readers(contribution.readers),
        ),
    };
    let designer = find_designer(config, &paths)
        .filter(|designer| plan.agents.iter().all(|agent| agent.name != designer.name));
    let prompt = complete_prompt(plan.prompt, places, config, &plan.project, &paths)?;
    let mut tools = plan.tools;
    tools.further.splice(0..0, contribution.tools);
    tools.observers.splice(0..0, contribution.observers);
    tools.child_environment = child_environment;
    let session = SessionConfig {
        agent: name,
        model,
        policy: config.context.clone(),
        prompt,
        folders: SessionFolders {
            workspace,
            private: vec![
                places.data.clone(),
                places.state.clone(),
                places.cache.clone(),
            ],
            worktrees: places.worktrees_folder(),
        },
        knowledge: KnowledgeSettings {
            paths,
            libraries: Libraries::in_folder(places.libraries_folder()),
            tool_help: ToolHelp::new(HelpCache::in_folder(places.tool_help_folder()), None),
            notes: namespace,
            agents: plan.agents.into_iter().chain(designer).collect(),
        },
        tools,
        safety: SafetySettings {
            masker,
            permissions: add_rules(permissions, contribution.rules),
            shared: decisions,
        },
        task: plan.task,
        callbacks: hooks.into_iter().chain(contribution.callbacks).collect(),
        namespace: conversations,
        notices,
    };
    Ok((session, services))
}

/// Completes the prompt settings of a plan from the configuration, the machine and the project.
fn complete_prompt(
    mut prompt: PromptSettings,
    places: &Places,
    config: &Config,
    project: &Project,
    paths: &KnowledgePaths,
) -> Result<PromptSettings, SetupError> {
    let host = &places.environment;
    prompt.roles.sections = config
        .prompt
        .read_sections(&places.config, host.home().as_deref())?;
    prompt.environment = machine::describe_machine(host, project);
    if prompt.focus_files.is_empty() {
        prompt.focus_files =
            haft_project::chat_memory::load_memory(paths, &mut Vec::new()).focus_files;
    }
    Ok(prompt)
}

/// Returns the notices to show at the beginning of a session.
fn collect_opening_notices(
    config: &Config,
    plan: &RunPlan,
    trust_state: &TrustState,
    further: impl IntoIterator<Item = Notice>,
) -> Vec<Notice> {
    let variables = config.unknown_variables.iter().map(|variable| Notice {
        code: UNKNOWN_VARIABLE_CODE,
        message: variable.to_string(),
        failed: false,
    });
    let untrusted = knowledge::notice_if_untrusted(trust_state, &plan.project.root)
        .filter(|_| !plan.ignores_project);
    variables.chain(untrusted).chain(further).collect()
}

/// Creates the services that a session shares with the agents that it starts.
fn build_shared_services(
    agent: &Agent,
    model: &str,
    store: Arc<dyn Store>,
    counter: Arc<dyn TokenCounter>,
    budget: SharedBudget,
) -> SharedServices {
    let config = &agent.config;
    let source = agent.model_source.clone();
    let mut opener = models::create_model_opener(&agent.places.environment, config, source);
    // A model that was chosen for this run answers in plan mode too.
    if models::configured_model(config).as_deref() == Some(model) {
        let planners = config.model_roles.configured_models(ModelRole::Planner);
        opener = opener.with_planning_models(planners.to_vec());
    }
    SharedServices {
        store,
        changes: Arc::clone(&agent.changes),
        copies: agent.copies.clone(),
        counter,
        clock: Arc::clone(&agent.clock),
        ids: Arc::clone(&agent.ids),
        opener,
        hub: Arc::new(Hub::with_groups(config.groups.clone())),
        budget,
    }
}

/// Logs the settings and the trust state with which a session starts. Skipped files are logged with
/// the notices about them.
fn log_session_opening(plan: &RunPlan, trust_state: &TrustState, hooks: &[Hook]) {
    let root = plan.project.root.display();
    let mode = plan.mode;
    let model = &plan.model;
    let ignored = plan.ignores_project || !trust_state.is_trusted();
    info!(project = %root, trusted = trust_state.is_trusted(), ignored, %mode, model, "session opened");
    for hook in hooks {
        let programs = haft_permission::find_program_names(&hook.command).join(", ");
        let path = hook.path.display();
        let sandboxed = hook.sandboxed;
        info!(point = %hook.point, programs, path = %path, sandboxed, "hook loaded");
    }
}

/// Opens the main model, and creates the standby models and the opener for sub-agents.
fn create_model_services(
    agent: &Agent,
    main: &str,
    declared: Declared,
    key: Option<Secret>,
) -> Result<ModelServices, SetupError> {
    let config = &agent.config;
    let host = &agent.places.environment;
    let source = agent.model_source.as_ref();
    let code_models = config.models_for_role(ModelRole::Code);
    let side_models = |role: ModelRole| {
        let names = config.model_roles.configured_models(role).iter();
        match models::create_standby_models(host, config, source, names) {
            Ok(models) => Ok(SideModels::from(models)),
            Err(SetupError::Model(error)) => Err(SetupError::RoleModel {
                role: role.name(),
                error,
            }),
            Err(error) => Err(error),
        }
    };
    Ok(ModelServices {
        fallbacks: models::create_standby_models(
            host,
            config,
            source,
            code_models.iter().filter(|name| **name != main),
        )?,
        summarizers: side_models(ModelRole::Summary)?,
        describers: side_models(ModelRole::Index)?,
        titlers: side_models(ModelRole::Title)?,
        client: match source {
            Some(open) => open(&declared.spec.full_name()).map_err(|problem| {
                let provider = declared.spec.provider.clone();
                SetupError::Client(ModelError::Config { provider, problem })
            })?,
            None => Client::new(declared, key, config.retry.clone()).map_err(SetupError::Client)?,
        },
    })
}

/// Returns the folders in which the tools of a run work.
fn build_workspace(places: &Places, plan: &RunPlan) -> Workspace {
    Workspace {
        root: plan.project.root.clone(),
        extra: plan.added_folders.clone(),
        cwd: plan.project.cwd.clone(),
        spill: places.spill_folder(),
        journal: places.journal_folder(),
    }
}

/// Combines the contributions of all extensions, in the order of registration, followed by the
/// agent's own contribution. The agent's own observers come first.
fn collect_contributions(agent: &Agent, context: &ExtensionContext<'_>) -> Contribution {
    let mut own = agent.own.clone();
    let mut all = Contribution {
        observers: mem::take(&mut own.observers),
        ..Contribution::default()
    };
    let mut search_at = None;
    let of_extensions = agent
        .extensions
        .iter()
        .map(|extension| extension.contribute(context));
    for given in of_extensions.chain([own]) {
        if !given.catalogues.is_empty() {
            search_at.get_or_insert(all.tools.len() + given.tools.len());
        }
        all.append(given);
    }
    if let Some(at) = search_at {
        all.tools.insert(
            at,
            Arc::new(ToolSearch::new(mem::take(&mut all.catalogues))),
        );
    }
    all
}

/// Rolls back file changes that a killed process left incomplete, in any project. Returns a notice
/// for each such change.
pub(crate) fn recover_interrupted_changes(journal: &Path) -> Vec<Notice> {
    match haft_tools::recover_changes(journal) {
        Ok(found) => found
            .iter()
            .map(|one| Notice {
                code: if matches!(one.outcome, RecoveryOutcome::Failed { .. }) {
                    "recovery_failed"
                } else {
                    "recovered"
                },
                message: one.to_string(),
                failed: false,
            })
            .collect(),
        Err(error) => {
            let message = format!(
                "cannot look for interrupted changes in `{}`: {error}",
                journal.display()
            );
            vec![Notice {
                code: "recovery_failed",
                message,
                failed: true,
            }]
        }
    }
}

/// Creates the permissions from the rules of the configuration and the mode of the run.
pub fn load_permissions(
    environment: &HostEnvironment,
    config: &PermissionsConfig,
    mode: PermissionMode,
    confinement: Confinement,
) -> Result<Permissions, ConfigError> {
    let rules =
        PermissionRules::load(config, environment.home().as_deref()).map_err(ConfigError::Rules)?;
    Ok(Permissions {
        mode,
        rules,
        confinement,
    })
}

/// Returns the configuration of the sandbox, to which the paths that rules protect from being read
/// have been added as hidden paths.
pub(crate) fn hide_denied_reads(
    places: &Places,
    config: &Config,
    plan: &RunPlan,
) -> Result<SandboxConfig, ConfigError> {
    let permissions = load_permissions(
        &places.environment,
        &config.permissions,
        plan.mode,
        Confinement::None,
    )?;
    let mut confined = config.sandbox.clone();
    let unreadable = permissions.unreadable_paths(&build_workspace(places, plan));
    confined.hidden.extend(unreadable.paths);
    confined.lacks_hidden |= !unreadable.is_complete;
    Ok(confined)
}

/// Adds rules to the permissions.
pub fn add_rules(
    mut permissions: Permissions,
    rules: impl IntoIterator<Item = (Decision, PermissionRule)>,
) -> Permissions {
    for (decision, rule) in rules {
        permissions.rules = mem::take(&mut permissions.rules).with_rule(decision, rule);
    }
    permissions
}
