//! Puts the parts together: store, model, session.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use haft_context::Environment;
use haft_engine::hub::Hub;
use haft_engine::turn::Limits;
use haft_engine::{
    AnswerSchema, Approver, Leftovers, Models, Notice, ProjectRules, Purse, Roles, Services, Session, SessionConfig,
    Standby, ToolHelp, Which,
};
use haft_model::{Catalogue, Client, Declared, O200k, RetryConfig, Secret};
use haft_permission::{Confinement, Permissions, PermissionsConfig, Rules};
use haft_project::external::HelpCache;
use haft_project::library::Libraries;
use haft_project::{Ground, Standing, TrustList};
use haft_sandbox::{Sandbox, Supervisor};
use haft_store::versions::Versions;
use haft_store::{Cached, Conversation, SqliteStore, Store};
use haft_text::Masker;
use haft_tool::Workspace;
use haft_tools::{Readers, RecoveryOutcome, Running};
use haft_types::{Message, PermissionMode};

use crate::clock::{RandomIds, WallClock};
use crate::config::{Config, ModelRole};
use crate::exit::mistake;
use crate::hooks;
use crate::log;
use crate::mcp::{self, Mcp};
use crate::network;
use crate::places::Places;
use crate::project::Project;
use crate::rag::Rag;
use crate::sandbox;
use crate::secrets;
use crate::spill;
use crate::tool_help;
use crate::web::Web;

/// One thread is enough to wait for a model, and quick to start.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(Runtime(tokio::runtime::Builder::new_current_thread().enable_all().build()?))
}

/// A runtime for one piece of work.
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    /// Does the work and waits for nothing else: the system's lookup of a host's name cannot be cancelled, and must not hold
    /// up the end.
    pub(crate) fn block_on<T>(self, work: impl Future<Output = T>) -> T {
        let done = self.0.block_on(work);
        self.0.shutdown_background();
        done
    }
}

/// Opens the user's conversations for one look or one change.
pub(crate) fn open_store(places: &Places, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match &config.store.url {
        Some(url) => open_server(url, config),
        None => Ok(Arc::new(Cached::new(open_database(places, config)?, &config.store))),
    }
}

/// Opens the user's conversations for a session, with backups.
fn open_store_with_backups(places: &Places, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(url) = &config.store.url {
        return open_server(url, config);
    }
    let mut database = open_database(places, config)?;
    database.keep_backups(&places.backups())?;
    Ok(Arc::new(Cached::new(database, &config.store)))
}

fn open_database(places: &Places, config: &Config) -> anyhow::Result<SqliteStore> {
    Ok(SqliteStore::open(&places.database(), &config.store, Arc::new(WallClock))?)
}

/// What files were before haft changed them.
pub(crate) fn versions(places: &Places, config: &Config) -> Arc<Versions> {
    Arc::new(Versions::at(&places.versions(), &config.store, Arc::new(WallClock)))
}

#[cfg(feature = "postgres")]
fn open_server(url: &str, config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let server = haft_postgres::PostgresStore::connect(url, &config.store, Arc::new(WallClock))?;
    Ok(Arc::new(Cached::new(server, &config.store)))
}

#[cfg(not(feature = "postgres"))]
fn open_server(_url: &str, _config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    Err(mistake("`store.url` names a server, but this haft was built without it; build it with `--features postgres`"))
}

/// What a run was told, after flags and configuration are one.
pub(crate) struct RunPlan {
    pub(crate) model: String,
    pub(crate) project: Project,
    pub(crate) added_folders: Vec<PathBuf>,
    pub(crate) roles: Roles,
    pub(crate) mode: PermissionMode,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) offered_tools: Vec<String>,
    pub(crate) tool_profiles: BTreeMap<String, Vec<String>>,
    pub(crate) focus_files: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) goal: bool,
    /// What becomes of what still runs when a turn is over.
    pub(crate) leftovers: Leftovers,
    pub(crate) answer: Option<AnswerSchema>,
    pub(crate) which: Which,
    pub(crate) part: Option<Part>,
}

/// A run that is one step of several.
pub(crate) struct Part {
    /// The name its events carry.
    pub(crate) name: String,
    /// What all of them have used.
    pub(crate) purse: Purse,
}

/// The namespace of the conversations of steps: beside those of the project, and never the current one.
const STEPS: &str = "#workflows";

/// Opens the session a run works in.
pub(crate) async fn open_session(places: &Places, config: Config, plan: RunPlan) -> anyhow::Result<Session> {
    spill::sweep(&places.spill(), SystemTime::now(), config.limits.spill_days);
    tool_help::sweep(places);
    let store = open_store_with_backups(places, &config)?;
    let which = plan.which.clone();
    let declared = declared(&config, &plan.model)?;
    let key = secrets::key_of(&declared.spec.provider, &declared.provider)?;
    let projects = std::iter::once(&plan.project.root).chain(&plan.added_folders).cloned().collect();
    let sandbox = sandbox::set_up(places, &config.sandbox, plan.mode, projects).await?;
    let asking = tool_help::asking(places, &config, &plan.project)?;
    let (mut session, services) = prepare(places, config, plan, store, sandbox, (declared, key))?;
    session.tool_help = ToolHelp::new(HelpCache::at(places.tool_help()), asking);
    session.notices.splice(0..0, recovered(&session.workspace.journal));
    Ok(Box::pin(Session::open(session, services, which)).await?)
}

/// One line where the project's own files are not obeyed.
fn untrusted(standing: &Standing, root: &Path) -> Option<Notice> {
    let why = match standing {
        Standing::Trusted => return None,
        Standing::Untrusted => "is not trusted".to_owned(),
        Standing::Changed { files } => format!("is no longer trusted, because {} changed", files.join(", ")),
    };
    let folder = root.display();
    let message = format!(
        "{folder} {why}: its instruction files (AGENTS.md and the like), configuration, tools and servers are ignored; `haft trust` trusts it"
    );
    Some(Notice { code: "untrusted", message })
}

/// Takes back what a process that died in the middle of changing files left, in whatever project, and says so.
fn recovered(journal: &Path) -> Vec<Notice> {
    let code = |outcome: &RecoveryOutcome| match outcome {
        RecoveryOutcome::NothingChanged
        | RecoveryOutcome::AllChanged
        | RecoveryOutcome::RolledBack
        | RecoveryOutcome::RolledBackExcept { .. } => "recovered",
        RecoveryOutcome::Failed { .. } => "recovery_failed",
    };
    match haft_tools::recover(journal) {
        Ok(found) => found.iter().map(|one| Notice { code: code(&one.outcome), message: one.to_string() }).collect(),
        Err(error) => {
            let message = format!("cannot look for interrupted changes in `{}`: {error}", journal.display());
            vec![Notice { code: "recovery_failed", message }]
        }
    }
}

/// Opens a conversation as these messages tell it, only to see what would be sent next. No key is asked for.
pub(crate) async fn look(
    places: &Places,
    config: Config,
    plan: RunPlan,
    store: Arc<dyn Store>,
    (conversation, messages): (Conversation, Vec<Message>),
) -> anyhow::Result<Session> {
    let declared = declared(&config, &plan.model)?;
    let sandbox = Sandbox::off("nothing is run");
    let (session, services) = prepare(places, config, plan, store, sandbox, (declared, None))?;
    Ok(Box::pin(Session::look(session, services, conversation, messages)).await?)
}

/// The same for a look at which a model may be asked. Without a key it is asked without one.
pub(crate) async fn look_and_ask(
    places: &Places,
    config: Config,
    plan: RunPlan,
    store: Arc<dyn Store>,
    (conversation, messages): (Conversation, Vec<Message>),
) -> anyhow::Result<Session> {
    let declared = declared(&config, &plan.model)?;
    let key = secrets::key_of(&declared.spec.provider, &declared.provider).unwrap_or_default();
    let sandbox = Sandbox::off("nothing is run");
    let (session, services) = prepare(places, config, plan, store, sandbox, (declared, key))?;
    Ok(Box::pin(Session::look(session, services, conversation, messages)).await?)
}

/// The model of that name, as it is declared or built in.
pub(crate) fn declared(config: &Config, model: &str) -> anyhow::Result<Declared> {
    let catalogue = Catalogue::with_built_in(config.providers.clone(), config.models.clone());
    let declared = catalogue.and_then(|catalogue| catalogue.resolve(model));
    declared.map(network::reached).map_err(|error| mistake(error.to_string()))
}

/// Models that wait until they are needed. Their names are checked now, their keys when they are asked.
fn standby<'a>(config: &Config, names: impl Iterator<Item = &'a String>) -> anyhow::Result<VecDeque<Standby>> {
    let one = |name: &String| {
        let (declared, retry) = (declared(config, name)?, config.retry.clone());
        Ok(Standby::new(name, move || client(declared, retry)))
    };
    names.map(one).collect()
}

/// The model with its key.
fn client(declared: Declared, retry: RetryConfig) -> Result<Client, String> {
    let key = secrets::key_of(&declared.spec.provider, &declared.provider).map_err(|error| error.to_string())?;
    Client::new(declared, key, retry).map_err(|error| error.to_string())
}

/// The models sub-agents ask, by name.
fn models(config: &Config) -> Models {
    let known = config.clone();
    let open = move |name: &str| {
        let declared = declared(&known, name).map_err(|error| error.to_string())?;
        client(declared, known.retry.clone())
    };
    Models::new(open).for_sub_agents(config.model_roles.own(ModelRole::SubAgent).first().cloned())
}

fn prepare(
    places: &Places,
    config: Config,
    plan: RunPlan,
    store: Arc<dyn Store>,
    sandbox: Sandbox,
    (declared, key): (Declared, Option<Secret>),
) -> anyhow::Result<(SessionConfig, Services)> {
    let model = declared.spec.clone();
    let own = key.as_ref().map(|key| key.expose().to_owned());
    let (ground, standing) = ground(places, &plan.project)?;
    let supervisor = Arc::new(Supervisor::new(std::env::current_exe()?));
    let (found, problems) = hooks::found(places, &config.hooks, &ground);
    let child_environment = Arc::new(haft_sandbox::child_environment(std::env::vars_os()));
    let gathered = mcp::gathered(places, &config, &plan.project.root, &standing);
    let (rag, web) = (Rag::of(places, &config), Web::of(&config));
    let own = own.into_iter().chain(mcp::secrets(&gathered.servers)).chain(rag.secrets()).chain(web.secret);
    let masker = Masker::knowing(haft_sandbox::secret_values(std::env::vars_os()).into_iter().chain(own));
    log::mask_with(masker.clone());
    let permissions = permissions(&config.permissions, plan.mode, sandbox::confinement(&sandbox))?;
    let permissions = mcp::permitted(permissions, &gathered.servers);
    let host = mcp::host(
        places,
        &config.sandbox,
        &plan.project.root,
        (Arc::clone(&supervisor), Arc::clone(&child_environment)),
        plan.approver.clone(),
    );
    let mcp = Mcp::new(gathered, host);
    let models = models(&config);
    let namespace = plan.project.namespace();
    let (agent, purse, conversations) = match plan.part {
        Some(Part { name, purse }) => (name, purse, format!("{namespace}{STEPS}")),
        None => (haft_engine::MAIN.to_owned(), Purse::default(), namespace.clone()),
    };
    let services = Services {
        store,
        versions: versions(places, &config),
        fallbacks: standby(&config, config.models_of(ModelRole::Code).iter().filter(|name| **name != plan.model))?,
        summarisers: standby(&config, config.model_roles.own(ModelRole::Summary).iter())?,
        client: Client::new(declared, key, config.retry).map_err(|error| mistake(error.to_string()))?,
        models,
        hub: Arc::new(Hub::with_groups(config.groups)),
        purse,
        counter: Arc::new(O200k),
        running: Arc::new(
            Running::new(Arc::clone(&supervisor), config.limits).held_in(sandbox).with_readers(readers(&supervisor)),
        ),
        approver: plan.approver,
        clock: Arc::new(WallClock),
        ids: Arc::new(RandomIds),
    };
    let spill = places.spill();
    let session = SessionConfig {
        agent,
        rules: ProjectRules::Told,
        environment: environment(&plan.project),
        policy: config.context,
        roles: plan.roles,
        workspace: Workspace {
            root: plan.project.root.clone(),
            extra: plan.added_folders,
            cwd: plan.project.cwd.clone(),
            spill,
            journal: places.journal(),
        },
        private: vec![places.data.clone(), places.state.clone(), places.cache.clone()],
        worktrees: places.worktrees(),
        child_environment: Arc::clone(&child_environment),
        masker,
        ground,
        tool_help: ToolHelp::new(HelpCache::at(places.tool_help()), None),
        libraries: Libraries::at(places.libraries()),
        permissions,
        further_tools: mcp.tools(&model, &services.counter).into_iter().chain(rag.tools()).chain(web.tools).collect(),
        offered_tools: plan.offered_tools,
        tool_profiles: plan.tool_profiles,
        plugins: Vec::new(),
        callbacks: hooks::callbacks(found, &supervisor, &child_environment),
        focus_files: plan.focus_files,
        limits: plan.limits,
        goal: plan.goal,
        answer: plan.answer,
        leftovers: plan.leftovers,
        namespace: conversations,
        notes: namespace,
        notices: untrusted(&standing, &plan.project.root)
            .into_iter()
            .chain(mcp.notices())
            .chain(rag.notices())
            .chain(web.notice)
            .chain(problems)
            .collect(),
        model,
    };
    Ok((session, services))
}

/// Where knowledge of the project is looked for, and how the project stands.
pub(crate) fn ground(places: &Places, project: &Project) -> anyhow::Result<(Ground, Standing)> {
    let standing =
        TrustList::at(places.trust_file()).standing(&project.root).map_err(|error| mistake(error.to_string()))?;
    let ground = Ground {
        root: project.root.clone(),
        cwd: project.cwd.clone(),
        obeyed: standing.is_trusted(),
        user: places.config.clone(),
        home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
    };
    Ok((ground, standing))
}

/// What may happen without asking, by the rules of the configuration and the mode of this run.
pub(crate) fn permissions(
    config: &PermissionsConfig,
    mode: PermissionMode,
    confinement: Confinement,
) -> anyhow::Result<Permissions> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let rules = Rules::load(config, home.as_deref()).map_err(|error| mistake(error.to_string()))?;
    Ok(Permissions { mode, rules, confinement })
}

/// The machine as the model is told of it. No clock: it would change the prefix of every request.
fn environment(project: &Project) -> Environment {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    Environment {
        os: operating_system(),
        shell: Some(variable("SHELL")).filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into()),
        encoding: encoding(&[variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG")]),
        user: variable("USER"),
        home: variable("HOME"),
        cwd: project.cwd.display().to_string(),
        safe_zone_tokens: None,
    }
}

fn encoding(locales: &[String]) -> String {
    let locale = locales.iter().find(|locale| !locale.is_empty()).map_or("", String::as_str);
    locale.split_once('.').map_or("UTF-8", |(_, encoding)| encoding).to_owned()
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name {
        Some(name) => format!("{} ({})", std::env::consts::OS, name.trim_matches('"')),
        None => std::env::consts::OS.to_owned(),
    }
}

/// What this build reads of files beside plain text.
pub(crate) fn readers(supervisor: &Arc<Supervisor>) -> Readers {
    Readers {
        documents: Some(Arc::new(haft_documents::Documents::new(Arc::clone(supervisor)))),
        outline: Some(Arc::new(haft_outline::TreeSitter)),
    }
}
