//! Creates the sandboxes of servers and decides whether servers may start.
//!
//! Each server has its own sandbox, created when it starts: servers share no `/tmp` with the
//! model's commands, and no grants with each other.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use haft_agent::{
    Callback, DecisionState, Footprint, HookContext, HookEvent, HookOutcome, Level, Notice, Places,
    StartGuard, StartRequest, TrustRecord, set_up_sandbox,
};
use haft_files::Durability;
use haft_sandbox::{CommandPaths, ConfinementSpec, Sandbox, SandboxConfig};
use haft_types::{HookPoint, PermissionMode};
use tokio::sync::Mutex;

use super::launchers::loads_code_from;
use crate::config::{ALL_HOSTS, ServerReach};
use crate::server::{ServerConfinement, ServerDefinition, ServerEndpoint, ServerOrigin};
use crate::servers::{ServerConfiner, Servers};

/// The maximum size of the file that lists the servers of earlier confined starts, in bytes.
const MAX_SEEN_BYTES: u64 = 1 << 16;

/// Programs that run a package by its name, and prefer the copy of the package that is installed in
/// the project.
const PACKAGE_RUNNERS: [&str; 7] = ["bun", "bunx", "npm", "npx", "pnpm", "pnpx", "yarn"];

pub(super) struct ServerSandboxes {
    pub(super) places: Places,
    pub(super) config: SandboxConfig,
    pub(super) project: PathBuf,
    pub(super) record: TrustRecord,
    pub(super) trusted: bool,
    pub(super) shared: Arc<DecisionState>,
    /// The guard that decides whether servers may start. `None` if the user explicitly named the
    /// server to start, so that no decision is needed.
    pub(super) guard: Option<Arc<StartGuard>>,
    pub(super) notices: Arc<StartNotices>,
    pub(super) set_up: Mutex<HashMap<String, Sandbox>>,
    /// True once it is known that there is no sandbox on this machine.
    pub(super) lacks_sandbox: AtomicBool,
}

#[async_trait]
impl ServerConfiner for ServerSandboxes {
    async fn confine(
        &self,
        server: &ServerDefinition,
    ) -> Result<Option<Arc<ConfinementSpec>>, String> {
        if !self.must_be_confined(server) {
            return Ok(None);
        }
        let mut set_up = self.set_up.lock().await;
        let is_new = !set_up.contains_key(&server.name);
        if is_new {
            set_up.insert(server.name.clone(), self.create_sandbox(server).await?);
        }
        let Some(sandbox) = set_up.get(&server.name).cloned() else {
            return Ok(None);
        };
        drop(set_up);
        if sandbox.confinement().is_none() && self.may_run_without_sandbox(server) {
            self.lacks_sandbox.store(true, Ordering::Relaxed);
            let reasons = sandbox.status().reasons.join("; ");
            self.queue_notice(server, &format!("runs unconfined: {reasons}"));
            return Ok(None);
        }
        self.check_start(server, &sandbox)
            .await
            .inspect_err(|why| self.queue_notice(server, &format!("was not started: {why}")))?;
        if is_new {
            self.queue_limits_notice(server);
            self.queue_first_notice(server);
        }
        Ok(sandbox
            .confinement()
            .map(|confined| self.with_visible_program(server, &confined)))
    }

    fn must_be_confined(&self, server: &ServerDefinition) -> bool {
        let yolo = self.shared.mode() == PermissionMode::Yolo;
        match (server.confinement, server.origin) {
            (ServerConfinement::Never, _) => false,
            (ServerConfinement::Always, _) => true,
            (ServerConfinement::Default, ServerOrigin::Project) => !yolo,
            (ServerConfinement::Default, ServerOrigin::User) => {
                let lacks_sandbox = self.lacks_sandbox.load(Ordering::Relaxed);
                !(yolo || lacks_sandbox && self.may_run_without_sandbox(server))
            }
        }
    }
}

impl ServerSandboxes {
    /// True if a server may run unconfined where there is no sandbox: an own server that runs
    /// nothing that the model can write, in a trusted folder.
    fn may_run_without_sandbox(&self, server: &ServerDefinition) -> bool {
        let is_own =
            (server.origin, server.confinement) == (ServerOrigin::User, ServerConfinement::Default);
        is_own && self.trusted && !self.runs_project_code(server)
    }

    /// True if the model can write code that the server runs.
    fn runs_project_code(&self, server: &ServerDefinition) -> bool {
        self.starts_in_writable_folder(server) || self.runs_writable_files(server)
    }

    /// Returns the folders that the model can write: for each folder, its configured path and its
    /// resolved path.
    pub(super) fn writable_folders(&self) -> Vec<PathBuf> {
        let home = self.places.environment.absolute_home();
        let configured = self.config.writable.iter();
        let configured = configured
            .filter_map(|path| haft_sandbox::resolve_configured_path(path, home.as_deref()));
        let added = self.places.environment.writable_folders().iter().cloned();
        let mut folders = Vec::new();
        for folder in std::iter::once(self.project.clone())
            .chain(configured)
            .chain(added)
        {
            let resolved = folder.canonicalize().unwrap_or_else(|_| folder.clone());
            for path in [folder, resolved] {
                if !folders.contains(&path) {
                    folders.push(path);
                }
            }
        }
        folders
    }

    /// True if the server starts in a folder that the model can write. Programs such as `python3
    /// -m` and `npx` run code or read configuration from their working directory.
    fn starts_in_writable_folder(&self, server: &ServerDefinition) -> bool {
        let ServerEndpoint::Command {
            cwd, starts_apart, ..
        } = &server.endpoint
        else {
            return false;
        };
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.clone());
        !starts_apart
            && self
                .writable_folders()
                .iter()
                .any(|folder| cwd.starts_with(folder))
    }

    /// True if the server runs a file of the project or of another folder that the model can write:
    /// a file that the entry names, code from a folder that the entry names, or a package that a
    /// package runner finds there first.
    fn runs_writable_files(&self, server: &ServerDefinition) -> bool {
        let ServerEndpoint::Command {
            program,
            args,
            env,
            cwd,
            ..
        } = &server.endpoint
        else {
            return false;
        };
        let values = env.iter().map(|(_, value)| value);
        let lines: Vec<_> = std::iter::once(program)
            .chain(args)
            .chain(values)
            .cloned()
            .collect();
        let writable = self.writable_folders();
        let names_files = writable.iter().any(|folder| {
            let found = Footprint::read_files_named_by(folder, cwd, &lines);
            !found.files().is_empty() || !found.is_complete()
        });
        let runner = program.rsplit('/').next().unwrap_or_default();
        let is_installed = |word: &String| {
            // A version follows an `@`. An `@` at the beginning marks a scope.
            let package = word.split_at_checked(1).map_or(word.as_str(), |(_, rest)| {
                rest.find('@')
                    .map_or(word.as_str(), |version| &word[..=version])
            });
            let name = package.rsplit('/').next().unwrap_or_default();
            // The path of a file or folder is not the name of a package.
            let is_name = !name.is_empty() && !package.starts_with(['/', '.', '-', '~']);
            let modules = cwd
                .ancestors()
                .filter(|folder| writable.iter().any(|within| folder.starts_with(within)));
            modules
                .map(|folder| folder.join("node_modules"))
                .any(|modules| {
                    is_name
                        && (modules.join(package).exists()
                            || modules.join(".bin").join(name).exists())
                })
        };
        names_files
            || loads_code_from(&writable, program, args, env)
            || PACKAGE_RUNNERS.contains(&runner) && args.iter().any(is_installed)
    }

    /// Returns the hosts and folders that a server may reach in addition to those of commands: the
    /// ones that the user declared, or the ones that were granted when the project was trusted.
    fn granted_reach(&self, server: &ServerDefinition) -> ServerReach {
        match server.origin {
            ServerOrigin::User => {
                let mut reach = server.requested_reach.clone();
                if reach.uses_default_network && !self.runs_project_code(server) {
                    reach.network.push(ALL_HOSTS.to_owned());
                }
                reach
            }
            ServerOrigin::Project => {
                let granted = self
                    .record
                    .servers
                    .get(&server.name)
                    .cloned()
                    .unwrap_or_default();
                ServerReach {
                    network: granted.network,
                    writable: granted.writable,
                    uses_default_network: false,
                }
            }
        }
    }

    async fn create_sandbox(&self, server: &ServerDefinition) -> Result<Sandbox, String> {
        let ServerReach {
            network, writable, ..
        } = self.granted_reach(server);
        let mut config = self.config.clone();
        let projects = match server.origin {
            ServerOrigin::Project => vec![self.project.clone()],
            // An own server only reads the project and the folders of commands.
            ServerOrigin::User => {
                let private = self.places.mcp_work_folder().join(&server.name);
                haft_files::create_folder(&private).map_err(|error| {
                    format!(
                        "its folder `{}` cannot be created: {error}",
                        private.display()
                    )
                })?;
                config.writable = vec![private];
                if server.confinement == ServerConfinement::Default {
                    config.network = Vec::new();
                }
                Vec::new()
            }
        };
        config.network.extend(network);
        if config.network.iter().any(|host| host == ALL_HOSTS) {
            config.network = vec![ALL_HOSTS.to_owned()];
        }
        config.writable.extend(writable);
        // The mode matters only if it is `yolo`, which `must_be_confined` has handled.
        let set_up = set_up_sandbox(&self.places, &config, PermissionMode::Ask, projects);
        set_up.await.map_err(|error| error.to_string())
    }

    /// Returns the confinement, extended so that the server sees its program, scripts, working
    /// directory, and search paths even if they are below `/tmp`.
    fn with_visible_program(
        &self,
        server: &ServerDefinition,
        confined: &ConfinementSpec,
    ) -> Arc<ConfinementSpec> {
        let ServerEndpoint::Command {
            program,
            args,
            env,
            cwd,
            ..
        } = &server.endpoint
        else {
            return Arc::new(confined.clone());
        };
        let texts: Vec<_> = std::iter::once(program).chain(args).cloned().collect();
        let mut environment = self.places.environment.child_environment();
        environment.extend(env.iter().cloned());
        let searched = env.iter().filter(|(name, _)| name.ends_with("PATH"));
        let mut folders: Vec<_> = searched
            .flat_map(|(_, value)| std::env::split_paths(value))
            .collect();
        folders.push(cwd.clone());
        folders.extend(self.writable_folders());
        let shown = confined.with_programs_readable(CommandPaths {
            texts: &texts,
            cwd,
            env: &environment,
        });
        let mut shown = shown.with_paths_readable(&folders);
        if server.origin == ServerOrigin::User {
            // The user's own entry names these files, even in a hidden folder.
            let words = texts.iter().chain(env.iter().map(|(_, value)| value));
            let files = words
                .map(|word| cwd.join(word))
                .filter(|path| path.is_file());
            shown.policy.readable.extend(files);
            let hidden = &shown.policy.hidden;
            if hidden.iter().any(|hidden| cwd.starts_with(hidden)) {
                shown.policy.readable.push(cwd.clone());
            }
        }
        Arc::new(shown)
    }

    async fn check_start(
        &self,
        server: &ServerDefinition,
        sandbox: &Sandbox,
    ) -> Result<(), String> {
        let none = || {
            format!(
                "it is to run in a sandbox, and there is none: {}",
                sandbox.status().reasons.join("; ")
            )
        };
        let ServerEndpoint::Command {
            program,
            args,
            env,
            cwd,
            ..
        } = &server.endpoint
        else {
            return Ok(());
        };
        let guard = match (&self.guard, server.confinement) {
            (Some(guard), ServerConfinement::Default) => guard,
            (None, _) | (_, ServerConfinement::Always | ServerConfinement::Never) => {
                return sandbox.confinement().map(drop).ok_or_else(none);
            }
        };
        let values = env.iter().map(|(_, value)| value);
        let request = StartRequest {
            name: &format!("{}{}", super::PREFIX, server.name),
            lines: std::iter::once(program)
                .chain(args)
                .chain(values)
                .cloned()
                .collect(),
            level: match server.origin {
                ServerOrigin::Project => Level::Project,
                ServerOrigin::User => Level::User,
            },
            root: &self.project,
            cwd,
            layer: sandbox.status().layer,
            can_ask: true,
        };
        guard
            .check(&request)
            .await
            .map_err(|refusal| refusal.reason)
    }

    /// Queues a notice that a confined server has no network, unless the user chose its confinement
    /// or granted network access.
    fn queue_limits_notice(&self, server: &ServerDefinition) {
        let granted = self.granted_reach(server);
        let inherits_hosts = match (server.origin, server.confinement) {
            (ServerOrigin::User, ServerConfinement::Default) => false,
            (ServerOrigin::User | ServerOrigin::Project, _) => !self.config.network.is_empty(),
        };
        if !granted.network.is_empty() || inherits_hosts {
            return;
        }
        let asked = &server.requested_reach.network;
        match server.origin {
            ServerOrigin::User if granted.uses_default_network => {
                let why = if self.runs_writable_files(server) {
                    "it runs files that the model can write"
                } else {
                    "it starts in this project, where the model can write"
                };
                self.queue_notice(server, &format!("runs confined and without network, because {why}; `network = true` in its entry gives it the network, `sandbox = false` lets it run outside"));
            }
            ServerOrigin::User => {}
            ServerOrigin::Project if asked.is_empty() => {
                self.queue_notice(server, "of this project runs confined and without network; an entry of that name in your own configuration can give it more");
            }
            ServerOrigin::Project => {
                let asked = asked.join(", ");
                self.queue_notice(
                    server,
                    &format!("of this project runs without network: it asks for {asked}, which `haft trust` grants"),
                );
            }
        }
    }

    /// Queues a notice at the first confined start of an own server on this machine: earlier
    /// versions of haft started such servers outside the sandbox.
    fn queue_first_notice(&self, server: &ServerDefinition) {
        if (server.origin, server.confinement) != (ServerOrigin::User, ServerConfinement::Default) {
            return;
        }
        let file = self.places.mcp_confined_file();
        let seen = haft_files::read_text(&file, MAX_SEEN_BYTES).unwrap_or_default();
        if seen.lines().any(|name| name == server.name) {
            return;
        }
        let text = format!("{seen}{}\n", server.name);
        // If that cannot be recorded, the notice would be repeated, so it is not shown.
        if haft_files::replace_file(&file, text.as_bytes(), Durability::Process).is_ok() {
            self.queue_notice(server, "runs in a sandbox now: it reads the project, and writes only its private folder. `writable = [\"FOLDER\"]`, `network = false` and `sandbox = false` in its entry change that. This is said once");
        }
    }

    fn queue_notice(&self, server: &ServerDefinition, what: &str) {
        let message = format!("MCP server `{}` {what}", server.name);
        let mut all = self
            .notices
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !all.seen.contains(&message) {
            all.seen.push(message.clone());
            all.waiting.push(message);
        }
    }
}

/// Queued notices about server starts. They are shown after the call that started the server.
#[derive(Default)]
pub(super) struct StartNotices(std::sync::Mutex<NoticeQueue>);

#[derive(Default)]
struct NoticeQueue {
    seen: Vec<String>,
    waiting: Vec<String>,
}

/// A callback that shows the queued notices about server starts, and ends servers that may no
/// longer run unconfined after a change of the permission mode.
pub(super) struct ServerWatch {
    pub(super) servers: Arc<Servers>,
    pub(super) notices: Arc<StartNotices>,
}

#[async_trait]
impl Callback for ServerWatch {
    fn name(&self) -> &'static str {
        "MCP servers"
    }

    fn listens_to(&self, point: HookPoint) -> bool {
        matches!(point, HookPoint::PostToolCall | HookPoint::ApiRequestStart)
    }

    fn wants(&self, _event: &HookEvent) -> bool {
        let waiting = !self
            .notices
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .waiting
            .is_empty();
        waiting || self.servers.has_wrongly_unconfined_server()
    }

    async fn call(&self, _context: &HookContext<'_>) -> Result<HookOutcome, String> {
        self.servers.end_wrongly_unconfined_servers().await;
        let waiting = std::mem::take(
            &mut self
                .notices
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .waiting,
        );
        let notices = waiting.into_iter().map(|message| Notice {
            code: super::NOTICE_CODE,
            message,
            failed: true,
        });
        Ok(HookOutcome {
            notices: notices.collect(),
            ..HookOutcome::default()
        })
    }
}
