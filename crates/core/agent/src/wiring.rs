//! Assembles the parts of a session: store, model, sandbox, permissions, tools, and the parts that
//! extensions contribute.

use std::mem;
use std::path::Path;
use std::sync::Arc;

use haft_engine::hub::Hub;
use haft_engine::{
    DecisionState, Delegation, HookHost, KnowledgeSettings, ModelServices, Notice, ProjectRules,
    PromptSettings, Roles, SafetySettings, Services, SessionConfig, SessionFolders, SharedBudget,
    StartGuard, TaskSettings, ToolHelp, ToolSettings,
};
use haft_model::{Client, Declared, O200k, Secret};
use haft_permission::{
    Confinement, PermissionRule, PermissionRules, Permissions, PermissionsConfig,
};
use haft_project::external::HelpCache;
use haft_project::hooks::Hook;
use haft_project::library::Libraries;
use haft_project::{TrustList, TrustState};
use haft_sandbox::{Sandbox, SandboxConfig};
use haft_store::Store;
use haft_text::Masker;
use haft_tool::{ToolSearch, Workspace};
use haft_tools::{RecoveryOutcome, Running};
use haft_types::{Decision, PermissionMode, TokenCounter};
use tracing::info;

use crate::agent::Agent;
use crate::config::{Config, ModelRole};
use crate::environment::HostEnvironment;
use crate::error::{ConfigError, SetupError};
use crate::extension::{Contribution, ExtensionContext};
use crate::places::Places;
use crate::plan::{RunPlan, RunStep};
use crate::{hooks, knowledge, machine, models, sandbox};

/// The suffix of the namespace for conversations of workflow steps, which keeps them apart from the
/// project's own conversations and from its current one.
const STEPS: &str = "#workflows";

/// The code of the notice about a variable that begins with `HAFT_` and has no effect.
pub const UNKNOWN_VARIABLE: &str = "unknown_variable";

/// Assembles the configuration and the services of a session.
pub(crate) fn prepare(
    agent: &Agent,
    plan: RunPlan,
    store: Arc<dyn Store>,
    sandbox: Sandbox,
    declared: Declared,
    key: Option<Secret>,
) -> Result<(SessionConfig, Services), SetupError> {
    let Agent { places, config, .. } = agent;
    let config = config.clone();
    let host = &places.environment;
    let model = declared.spec.clone();
    let workspace = workspace(places, &plan);
    let own = key.as_ref().map(|key| key.expose().to_owned());
    let (mut paths, mut trust_state) = knowledge(places, &plan.project)?;
    if plan.ignores_project {
        (paths.trusted, trust_state) = (false, TrustState::Untrusted);
    }
    let supervisor = Arc::new(host.supervisor());
    let child_environment = Arc::new(host.child_environment());
    let counter: Arc<dyn TokenCounter> = Arc::new(O200k);
    let (found, problems) = hooks::found(places, &config.hooks, &paths);
    log_loaded(&plan, &trust_state, &found);
    let record = TrustList::at(places.trust_file())
        .record(&plan.project.root)
        .map_err(SetupError::Trust)?;
    let shared = Arc::new(DecisionState::new(plan.mode));
    let guard = Arc::new(StartGuard::new(
        plan.approver.clone(),
        Arc::clone(&shared),
        record.runs.clone(),
    ));
    let given = contributions(
        agent,
        &ExtensionContext {
            places,
            config: &config,
            project: &plan.project,
            trust_state: &trust_state,
            record: &record,
            shared: &shared,
            guard: &guard,
            supervisor: &supervisor,
            child_environment: &child_environment,
            approver: plan.approver.as_ref(),
            model: &model,
            counter: &counter,
            money_limited: plan.limits.needs_price(),
        },
    );
    let masker = Masker::knowing(
        host.secret_values()
            .into_iter()
            .chain(own)
            .chain(given.secrets),
    );
    if let Some(tell) = &agent.on_masker {
        tell(&masker);
    }
    let mut permissions = permissions(
        host,
        &config.permissions,
        plan.mode,
        sandbox::confinement(&sandbox),
    )?;
    if !trust_state.is_trusted() {
        permissions.rules = mem::take(&mut permissions.rules).for_untrusted();
    }
    let permissions = with_rules(permissions, given.rules);
    let namespace = plan.project.namespace();
    let (name, budget, conversations) = match plan.step {
        Some(RunStep { name, budget }) => (name, budget, format!("{namespace}{STEPS}")),
        None => (
            haft_engine::MAIN.to_owned(),
            SharedBudget::default(),
            namespace.clone(),
        ),
    };
    let hook_host = HookHost {
        supervisor: Arc::clone(&supervisor),
        environment: Arc::clone(&child_environment),
        sandbox: sandbox.clone(),
        guard,
    };
    let services = Services {
        store,
        changes: Arc::clone(&agent.changes),
        copies: agent.copies.clone(),
        models: model_services(host, &config, &plan.model, declared, key)?,
        delegation: Delegation {
            hub: Arc::new(Hub::with_groups(config.groups)),
            budget,
        },
        counter,
        running: Arc::new(
            Running::new(Arc::clone(&supervisor), config.limits)
                .held_in(sandbox)
                .with_readers(given.readers),
        ),
        approver: plan.approver,
        clock: Arc::clone(&agent.clock),
        ids: Arc::clone(&agent.ids),
    };
    let callbacks = hooks::callbacks(found, hook_host);
    let variables = config.unknown_variables.iter().map(|variable| Notice {
        code: UNKNOWN_VARIABLE,
        message: variable.to_string(),
        failed: false,
    });
    let variables: Vec<_> = variables.collect();
    let untrusted =
        knowledge::untrusted(&trust_state, &plan.project.root).filter(|_| !plan.ignores_project);
    let focus_files = if plan.focus_files.is_empty() {
        haft_project::memory::load(&paths, &mut Vec::new()).focus_files
    } else {
        plan.focus_files
    };
    let session = SessionConfig {
        agent: name,
        model,
        policy: config.context,
        prompt: PromptSettings {
            roles: Roles {
                sections: config.prompt.read(&places.config, host.home().as_deref())?,
                ..plan.roles
            },
            environment: machine::described(host, &plan.project),
            rules: ProjectRules::Told,
            focus_files,
        },
        folders: SessionFolders {
            workspace,
            private: vec![
                places.data.clone(),
                places.state.clone(),
                places.cache.clone(),
            ],
            worktrees: places.worktrees(),
        },
        knowledge: KnowledgeSettings {
            paths,
            libraries: Libraries::at(places.libraries()),
            tool_help: ToolHelp::new(HelpCache::at(places.tool_help()), None),
            notes: namespace,
            agents: plan.agents,
        },
        tools: ToolSettings {
            further: given.tools,
            offered: plan.offered_tools,
            within: plan.tools_within,
            of_agent_file: plan.tools_of_agent_file,
            profiles: plan.tool_profiles,
            plugins: agent.plugins.iter().cloned().chain(given.plugins).collect(),
            child_environment,
        },
        safety: SafetySettings {
            masker,
            permissions,
            shared,
        },
        task: TaskSettings {
            limits: plan.limits,
            goal: plan.goal,
            answer: plan.answer,
            leftovers: plan.leftovers,
        },
        callbacks: callbacks.into_iter().chain(given.callbacks).collect(),
        namespace: conversations,
        notices: variables
            .into_iter()
            .chain(untrusted)
            .chain(given.notices)
            .chain(problems)
            .collect(),
    };
    Ok((session, services))
}

/// Logs the state in which a session starts. Skipped files are logged with the notices about them.
fn log_loaded(plan: &RunPlan, trust_state: &TrustState, hooks: &[Hook]) {
    let root = plan.project.root.display();
    let mode = plan.mode;
    let model = &plan.model;
    let ignored = plan.ignores_project || !trust_state.is_trusted();
    info!(project = %root, trusted = trust_state.is_trusted(), ignored, %mode, model, "session opened");
    for hook in hooks {
        let programs = haft_permission::program_names(&hook.command).join(", ");
        let path = hook.path.display();
        let sandboxed = hook.sandboxed;
        info!(point = %hook.point, programs, path = %path, sandboxed, "hook loaded");
    }
}

/// Opens the main model, and creates the standby models and the opener for sub-agents.
fn model_services(
    host: &HostEnvironment,
    config: &Config,
    main: &str,
    declared: Declared,
    key: Option<Secret>,
) -> Result<ModelServices, SetupError> {
    let code_models = config.models_of(ModelRole::Code);
    Ok(ModelServices {
        fallbacks: models::standby(
            host,
            config,
            code_models.iter().filter(|name| **name != main),
        )?,
        summarisers: models::standby(
            host,
            config,
            config.model_roles.own(ModelRole::Summary).iter(),
        )?,
        opener: models::models(host, config),
        client: Client::new(declared, key, config.retry.clone()).map_err(SetupError::Client)?,
    })
}

/// Returns the folders in which the tools of a run work.
fn workspace(places: &Places, plan: &RunPlan) -> Workspace {
    Workspace {
        root: plan.project.root.clone(),
        extra: plan.added_folders.clone(),
        cwd: plan.project.cwd.clone(),
        spill: places.spill(),
        journal: places.journal(),
    }
}

/// Collects the contributions of all extensions in the order of their registration, followed by the
/// agent's own tools and callbacks.
fn contributions(agent: &Agent, context: &ExtensionContext<'_>) -> Contribution {
    let mut all = Contribution::default();
    let mut search_at = None;
    for extension in &agent.extensions {
        let Contribution {
            tools,
            catalogues,
            callbacks,
            plugins,
            rules,
            readers,
            secrets,
            notices,
        } = extension.contribute(context);
        all.readers.documents = all.readers.documents.or(readers.documents);
        all.readers.buffers = all.readers.buffers.or(readers.buffers);
        all.readers.tools.extend(readers.tools);
        all.tools.extend(tools);
        if !catalogues.is_empty() {
            search_at.get_or_insert(all.tools.len());
        }
        all.catalogues.extend(catalogues);
        all.callbacks.extend(callbacks);
        all.plugins.extend(plugins);
        all.rules.extend(rules);
        all.secrets.extend(secrets);
        all.notices.extend(notices);
    }
    if let Some(at) = search_at {
        all.tools.insert(
            at,
            Arc::new(ToolSearch::new(mem::take(&mut all.catalogues))),
        );
    }
    all.tools.extend(agent.tools.iter().cloned());
    all.callbacks.extend(agent.callbacks.iter().cloned());
    all
}

/// Rolls back file changes that a killed process left incomplete, in any project. Returns a notice
/// for each.
pub(crate) fn recovered(journal: &Path) -> Vec<Notice> {
    let is_failed = |outcome: &RecoveryOutcome| matches!(outcome, RecoveryOutcome::Failed { .. });
    let code = |outcome: &RecoveryOutcome| {
        if is_failed(outcome) {
            "recovery_failed"
        } else {
            "recovered"
        }
    };
    match haft_tools::recover(journal) {
        Ok(found) => found
            .iter()
            .map(|one| Notice {
                code: code(&one.outcome),
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

/// Combines the rules of the configuration with the mode of the run.
pub fn permissions(
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

/// Returns the configuration of the sandbox. Paths that rules protect from being read are hidden as
/// well.
pub(crate) fn with_denied_reads(
    places: &Places,
    config: &Config,
    plan: &RunPlan,
) -> Result<SandboxConfig, ConfigError> {
    let permissions = permissions(
        &places.environment,
        &config.permissions,
        plan.mode,
        Confinement::None,
    )?;
    let mut confined = config.sandbox.clone();
    confined
        .hidden
        .extend(permissions.unreadable(&workspace(places, plan)));
    Ok(confined)
}

/// Adds rules to the permissions.
pub fn with_rules(
    mut permissions: Permissions,
    rules: impl IntoIterator<Item = (Decision, PermissionRule)>,
) -> Permissions {
    for (decision, rule) in rules {
        permissions.rules = mem::take(&mut permissions.rules).with(decision, rule);
    }
    permissions
}
