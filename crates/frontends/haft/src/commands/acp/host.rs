//! The parts of this program that sessions use which another program drives.

use async_trait::async_trait;
use haft_acp::{Host, HostConfig, OfferedCommand, Program, WrittenPrompt};
use haft_agent::config::Config;
use haft_agent::{Agent, Contribution, Places, SetupError, find_knowledge_and_trust};
use haft_types::{Decision, PermissionMode};

use crate::cli::options::Common;
use crate::commands::{init, permissions, run};
use crate::exit::format_failure;
use crate::haft::{Haft, Settings};
use crate::prompts::{self, InlineCommands};
use crate::wiring::ClientParts;

/// Loads the configuration with the flags of a command, and builds agents with the extensions of
/// this build.
struct DrivenProgram {
    haft: Haft,
    common: Common,
    model: Option<String>,
}

impl DrivenProgram {
    fn into_host(self, settings: Settings, mode: Option<PermissionMode>) -> Host {
        let Settings { places, config } = settings;
        let model = self.model.clone();
        Host::new(Box::new(self), HostConfig { places, config }, model, mode)
    }
}

/// Loads the configuration, with the model and the mode that the command line names.
pub(crate) fn build_host(
    haft: &Haft,
    common: Common,
    model: Option<String>,
    mode: Option<PermissionMode>,
) -> anyhow::Result<Host> {
    let settings = haft.load(&common)?;
    let program = DrivenProgram {
        haft: haft.clone(),
        common,
        model,
    };
    Ok(program.into_host(settings, mode))
}

/// Builds a host whose configuration cannot be loaded: it answers every request with the error,
/// until the user has corrected it.
pub(super) fn build_host_with_defaults(
    haft: &Haft,
    common: Common,
    model: Option<String>,
    mode: Option<PermissionMode>,
) -> anyhow::Result<Host> {
    let defaults = Settings::new(haft.places()?, Config::default());
    let program = DrivenProgram {
        haft: haft.clone(),
        common,
        model,
    };
    Ok(program.into_host(defaults, mode).with_default_config())
}

fn to_settings(loaded: &HostConfig) -> Settings {
    Settings {
        places: loaded.places.clone(),
        config: loaded.config.clone(),
    }
}

impl DrivenProgram {
    async fn expand_prompt(
        &self,
        settings: &Settings,
        prompt: WrittenPrompt<'_>,
    ) -> anyhow::Result<String> {
        let project = self.haft.project(Some(prompt.cwd))?;
        let sources = settings.open_prompt_sources(&project)?;
        let (paths, _) = find_knowledge_and_trust(&settings.places, &project)?;
        let text = if sources.calls_prompt(&prompt.text) {
            sources
                .expand_prompt(&prompt.text)
                .await
                .map_err(prompts::convert_extension_error)?
        } else if let Some(wishes) = init::parse_init_call(&prompt.text, &paths) {
            init::build_prompt(settings, self.model.as_deref(), &project, wishes).text
        } else {
            let inline = InlineCommands {
                settings,
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
impl Program for DrivenProgram {
    fn load_config(&self) -> Result<HostConfig, String> {
        let loaded = self.haft.load(&self.common);
        let Settings { places, config } = loaded.map_err(|error| format_failure(&error))?;
        Ok(HostConfig { places, config })
    }

    #[cfg_attr(not(feature = "mcp"), expect(unused_variables, reason = "no servers"))]
    fn build_agent(
        &self,
        loaded: &HostConfig,
        client: Contribution,
        servers: Vec<String>,
    ) -> Agent {
        to_settings(loaded).build_agent_for_client(ClientParts {
            contribution: client,
            #[cfg(feature = "mcp")]
            servers: haft_mcp::GivenServers {
                declared: servers,
                ..Default::default()
            },
            ..ClientParts::default()
        })
    }

    fn built_in_commands(&self) -> Vec<OfferedCommand> {
        vec![OfferedCommand {
            name: init::COMMAND_NAME.to_owned(),
            description: text!("init-help").to_owned(),
        }]
    }

    async fn expand_prompt(
        &self,
        loaded: &HostConfig,
        prompt: WrittenPrompt<'_>,
    ) -> Result<String, String> {
        self.expand_prompt(&to_settings(loaded), prompt)
            .await
            .map_err(|error| format_failure(&error))
    }

    fn save_rules(&self, places: &Places, rules: &[String]) -> Result<(), String> {
        permissions::add_rules(places, Decision::Allow, rules)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn no_model_text(&self) -> String {
        text!("run-no-model").to_owned()
    }

    fn describe_error(&self, error: SetupError) -> String {
        format!("{:#}", run::to_usage_error(error))
    }
}
