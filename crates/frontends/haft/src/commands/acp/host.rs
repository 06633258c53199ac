//! Opens sessions that another program drives over a protocol, such as an editor.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use haft_acp::{Host, HostError, ListedConversation, OfferedCommand, OpenRequest, WrittenPrompt};
use haft_agent::{Project, RandomIds, RunPlan, Session, SetupError, find_knowledge_and_trust};
use haft_engine::{OpenError, PromptSettings};
use haft_store::{ConversationScope, StoreError};
use haft_types::{ConversationId, Decision, IdSource as _, Message, PermissionMode};

use crate::cli::options::Common;
use crate::commands::{init, models, permissions, run};
use crate::exit::format_failure;
use crate::haft::{Haft, Settings};
use crate::interactive::is_cut_off;
use crate::prompts::{self, InlineCommands};
use crate::wiring::ClientParts;

/// Opens sessions that another program drives, with this user's configuration.
pub(crate) struct DrivenHost {
    haft: Haft,
    common: Common,
    settings: RwLock<Arc<Settings>>,
    model: Option<String>,
    mode: Option<PermissionMode>,
}

impl DrivenHost {
    /// Loads the configuration, with the model and the mode that the command line names.
    pub(crate) fn new(
        haft: &Haft,
        common: Common,
        model: Option<String>,
        mode: Option<PermissionMode>,
    ) -> anyhow::Result<Self> {
        let settings = haft.load(&common)?;
        Ok(Self {
            haft: haft.clone(),
            common,
            settings: RwLock::new(Arc::new(settings)),
            model,
            mode,
        })
    }

    /// Returns the most recently loaded configuration.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn project(&self, cwd: &Path) -> Result<Project, HostError> {
        self.haft.project(Some(cwd)).map_err(to_host_error)
    }

    fn build_plan(&self, request: &OpenRequest) -> Result<RunPlan, HostError> {
        let settings = self.settings();
        let project = self.project(&request.cwd)?;
        let model = request
            .model
            .clone()
            .map_or_else(|| self.default_model(), Ok)?;
        let roles = settings.config.roles.read().map_err(to_host_error)?;
        Ok(RunPlan {
            prompt: PromptSettings {
                roles,
                ..PromptSettings::default()
            },
            mode: request.mode.unwrap_or_else(|| self.default_mode()),
            added_folders: request.added_folders.clone(),
            task: request.task.clone(),
            ..RunPlan::from_config(&settings.config, model, project, request.which.clone())
        })
    }

    async fn expand_prompt(&self, prompt: WrittenPrompt<'_>) -> anyhow::Result<String> {
        let settings = self.settings();
        let project = self.haft.project(Some(prompt.cwd))?;
        let sources = settings.open_prompt_sources(&project)?;
        let (paths, _) = find_knowledge_and_trust(&settings.places, &project)?;
        let text = if sources.calls_prompt(&prompt.text) {
            sources
                .expand_prompt(&prompt.text)
                .await
                .map_err(prompts::convert_extension_error)?
        } else if let Some(wishes) = init::parse_init_call(&prompt.text, &paths) {
            init::build_prompt(&settings, self.model.as_deref(), &project, wishes).text
        } else {
            let inline = InlineCommands {
                settings: &settings,
                project: &project,
                mode: prompt.mode,
                approver: prompt.approver,
                ui: None,
                cancel: prompt.cancel,
            };
            inline
                .replace_commands(prompts::expand_with_problems(prompt.text, &paths)?.0)
                .await?
        };
        let text = sources.attach_resources(text).await;
        sources.stop_servers().await;
        text.map_err(prompts::convert_extension_error)
    }
}

#[async_trait(?Send)]
impl Host for DrivenHost {
    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn reload_config(&self) -> Result<(), HostError> {
        let loaded = self.haft.load(&self.common);
        let settings = loaded.map_err(|error| HostError::Failed(format_failure(&error)))?;
        *self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
        Ok(())
    }

    fn default_model(&self) -> Result<String, HostError> {
        let model = self
            .model
            .clone()
            .or_else(|| haft_agent::configured_model(&self.settings().config));
        model.ok_or_else(|| HostError::NoModel(text!("run-no-model").to_owned()))
    }

    fn default_mode(&self) -> PermissionMode {
        self.mode
            .unwrap_or_else(|| self.settings().config.permissions.mode)
    }

    fn available_models(&self) -> Vec<String> {
        let usable = models::list_usable_models(&self.settings()).unwrap_or_default();
        usable.into_iter().map(|spec| spec.full_name()).collect()
    }

    fn new_conversation_id(&self) -> ConversationId {
        ConversationId::from(RandomIds.new_uuid())
    }

    async fn open_session(&self, request: OpenRequest) -> Result<Session, HostError> {
        let plan = self.build_plan(&request)?;
        let client = ClientParts {
            contribution: request.client,
            #[cfg(feature = "mcp")]
            servers: haft_mcp::GivenServers {
                declared: request.servers,
                ..Default::default()
            },
            ..ClientParts::default()
        };
        let opened = self.settings().open_driven_session(plan, client).await;
        opened.map_err(|error| match error {
            SetupError::Open(OpenError::Unknown(_)) => HostError::NotFound(error.to_string()),
            other => HostError::Failed(format!("{:#}", run::to_usage_error(other))),
        })
    }

    async fn list_conversations(
        &self,
        cwd: Option<&Path>,
    ) -> Result<Vec<ListedConversation>, HostError> {
        let namespace = cwd
            .map(|cwd| self.project(cwd))
            .transpose()?
            .map(|project| project.namespace());
        let scope = namespace
            .as_deref()
            .map_or(ConversationScope::Everywhere, ConversationScope::Namespace);
        let store = self.settings().open_store().map_err(to_host_error)?;
        let mut listed = store.list(scope).await.map_err(to_host_error)?;
        listed.sort_by_key(|one| std::cmp::Reverse(one.updated_at));
        let row = |one: haft_store::ConversationRow| ListedConversation {
            id: one.id,
            folder: one.namespace.into(),
            name: one.name,
            updated_at: one.updated_at,
            messages: one.messages,
        };
        Ok(listed.into_iter().map(row).collect())
    }

    async fn read_conversation(
        &self,
        id: &ConversationId,
    ) -> Result<(PathBuf, Vec<Message>), HostError> {
        let store = self.settings().open_store().map_err(to_host_error)?;
        let listed = store
            .list(ConversationScope::Everywhere)
            .await
            .map_err(to_host_error)?;
        let row = listed.into_iter().find(|one| one.id == *id);
        let row = row.ok_or_else(|| {
            HostError::NotFound(OpenError::Unknown(id.as_str().to_owned()).to_string())
        })?;
        Ok((
            row.namespace.into(),
            store.messages(id).await.map_err(to_host_error)?,
        ))
    }

    async fn delete_conversation(&self, id: &ConversationId) -> Result<(), HostError> {
        let store = self.settings().open_store().map_err(to_host_error)?;
        match store.delete(id).await {
            Ok(()) | Err(StoreError::UnknownConversation { .. }) => Ok(()),
            Err(error) => Err(to_host_error(error)),
        }
    }

    fn shell(&self) -> &'static str {
        haft_tools::shell_path()
    }

    fn withheld_variables(&self, given: &[(String, String)]) -> Vec<String> {
        let is_given = |name: &String| given.iter().any(|(known, _)| known == name);
        std::env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| !is_given(name))
            .collect()
    }

    fn list_commands(&self, cwd: &Path) -> Vec<OfferedCommand> {
        let Ok(project) = self.project(cwd) else {
            return Vec::new();
        };
        let settings = self.settings();
        let Ok((paths, _)) = find_knowledge_and_trust(&settings.places, &project) else {
            return Vec::new();
        };
        // Problems with a file are reported when it is called, and by `haft commands list`.
        let own = haft_project::commands::load_commands(&paths, &mut Vec::new());
        let of_servers = settings
            .open_prompt_sources(&project)
            .map(|sources| sources.prompts())
            .unwrap_or_default();
        let init = own
            .get(init::COMMAND_NAME)
            .is_none()
            .then(|| OfferedCommand {
                name: init::COMMAND_NAME.to_owned(),
                description: text!("init-help").to_owned(),
            });
        let own = own.items.into_iter().map(|one| OfferedCommand {
            name: one.name,
            description: one.description,
        });
        let of_servers = of_servers.into_iter().map(|one| OfferedCommand {
            name: one.name,
            description: one.description,
        });
        own.chain(init).chain(of_servers).collect()
    }

    async fn expand_prompt(&self, prompt: WrittenPrompt<'_>) -> Result<String, HostError> {
        let called = prompt.text.starts_with('/');
        let mentions = prompt.text.contains('@');
        if !called && !mentions {
            return Ok(prompt.text);
        }
        self.expand_prompt(prompt)
            .await
            .map_err(|error| HostError::Failed(format_failure(&error)))
    }

    fn was_interrupted(&self, session: &Session) -> bool {
        is_cut_off(session.history())
    }

    fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        permissions::add_rules(&self.settings().places, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

fn to_host_error(error: impl std::fmt::Display) -> HostError {
    HostError::Failed(error.to_string())
}
