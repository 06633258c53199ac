//! `/agent`: switches the main agent, after showing the price of the switch.

use haft_agent::MAIN_AGENT;
use haft_engine::{ConversationChoice, Session};
use haft_project::NamedItems;
use haft_project::agents::{self, AgentDefinition};
use haft_tui::{ListRequest, Operation, PickerAction, PickerList, PickerRow, UiMessage};

use super::TuiSession;
use crate::exit::usage_error;
use crate::output::{self, localize_text};

impl TuiSession<'_> {
    /// Asks whether the agent with this name continues the conversation, and shows the price of the
    /// switch. Before the first prompt the switch is free, so it is made at once. Without a name,
    /// lists the agents.
    pub(super) async fn offer_agent(&mut self, name: &str) -> anyhow::Result<()> {
        let found = agents::load_agents(&self.paths, &mut Vec::new());
        if name.is_empty() {
            let list = list_agents(&found, self.current_agent());
            self.ui.send_message(UiMessage::Pick(list));
            return Ok(());
        }
        check_agent(&found, name, self.paths.trusted)?;
        if name == self.current_agent() {
            self.show_text(&text!("interactive-agent-now", agent = name));
            return Ok(());
        }
        let Some(session) = &self.session else {
            return self.use_agent(name).await;
        };
        let model = self.agent_model(&found, name);
        let mut notes = Vec::new();
        if let Some(quote) = self.quote_agent(session, model.as_deref()) {
            notes.push(text!(
                "interactive-agent-price",
                quote = localize_text(quote)
            ));
        }
        if let Some(model) = model.filter(|model| *model != session.model().full_name()) {
            notes.push(text!("interactive-agent-model", model));
        }
        notes.push(text!("interactive-agent-reopens").to_owned());
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        let list = PickerList {
            title: text!("interactive-agent-switch-title", agent = name),
            notes,
            rows: vec![
                row(
                    text!("interactive-agent-switch"),
                    PickerAction::Do(Operation::Agent(name.to_owned())),
                ),
                row(text!("interactive-focus-cancel"), PickerAction::Leave),
            ],
            ..PickerList::default()
        };
        self.ui.send_message(UiMessage::Pick(list));
        Ok(())
    }

    /// Continues the conversation with the agent with this name: opens it again with the role, the
    /// tools and the model of the agent. After an error, the earlier agent continues.
    pub(super) async fn use_agent(&mut self, name: &str) -> anyhow::Result<()> {
        let found = agents::load_agents(&self.paths, &mut Vec::new());
        check_agent(&found, name, self.paths.trusted)?;
        let chosen = Some(name.to_owned()).filter(|name| *name != MAIN_AGENT);
        let before = std::mem::replace(&mut self.chosen.agent, chosen);
        if let Some(session) = &mut self.session
            && session.useful().is_none()
        {
            // The conversation of a prompt that a hook stopped is not stored, so it cannot be
            // opened again.
            self.chosen.useful = std::mem::take(session.waiting_ranges());
            self.close_session().await;
        }
        let open = self
            .session
            .as_ref()
            .map(|session| session.conversation().id.as_str().to_owned());
        if let Some(id) = open {
            self.close_session().await;
            let which = ConversationChoice::Named(id.clone());
            if let Err(error) = self.open_session(which, "").await {
                self.chosen.agent = before;
                self.open_session(ConversationChoice::Named(id), "").await?;
                return Err(error);
            }
        }
        let model = match &self.session {
            Some(session) => Some(session.model().full_name()),
            None => self.agent_model(&found, name),
        };
        if let Some(name) = model {
            self.ui.send_message(UiMessage::Model { name });
        }
        self.show_text(&text!("interactive-agent-now", agent = name));
        Ok(())
    }

    fn current_agent(&self) -> &str {
        self.chosen.agent.as_deref().unwrap_or(MAIN_AGENT)
    }

    /// Returns the model with which the agent would continue, or `None` if it cannot be determined.
    fn agent_model(&self, found: &NamedItems<AgentDefinition>, name: &str) -> Option<String> {
        let chosen = self.chosen.model.as_ref().or(self.args.model.as_ref());
        let named = found.get(name).and_then(|agent| agent.model.as_deref());
        match (chosen, named) {
            (Some(_), _) => self
                .session
                .as_ref()
                .map(|session| session.model().full_name()),
            (None, Some(named)) => {
                let environment = self.settings.environment();
                haft_agent::resolve_agent_model(environment, &self.settings.config, Some(named)).0
            }
            (None, None) => haft_agent::configured_model(&self.settings.config),
        }
    }

    /// Quotes the switch: the price of another model, or of another system message.
    fn quote_agent(&self, session: &Session, model: Option<&str>) -> Option<haft_context::Quote> {
        let other = model.filter(|model| *model != session.model().full_name());
        let usable =
            haft_agent::list_usable_models(self.settings.environment(), &self.settings.config);
        let spec = other.and_then(|other| {
            let mut specs = usable.ok()?.into_iter().map(|declared| declared.spec);
            specs.find(|spec| spec.full_name() == other)
        });
        match spec {
            Some(spec) => session.quote_model_switch(&spec),
            None => session.quote_system_change(),
        }
    }
}

/// Returns an error that lists the agents if there is no agent with this name, or if the agent has
/// no role.
fn check_agent(
    found: &NamedItems<AgentDefinition>,
    name: &str,
    is_trusted: bool,
) -> anyhow::Result<()> {
    match found.get(name) {
        Some(agent) if agent.role.is_empty() => {
            let file = agent.path.display();
            Err(usage_error(text!("interactive-agent-no-role", name, file)))
        }
        Some(_) => Ok(()),
        None if name == MAIN_AGENT => Ok(()),
        None => {
            let own = found.items.iter().map(|agent| agent.name.as_str());
            let names: Vec<_> = own.chain([MAIN_AGENT]).collect();
            let there = output::join_names(&names);
            let error = text!("interactive-agent-unknown", name, there);
            Err(usage_error(if is_trusted {
                error
            } else {
                format!("{error}; {}", text!("interactive-agent-untrusted"))
            }))
        }
    }
}

fn list_agents(found: &NamedItems<AgentDefinition>, current: &str) -> PickerList {
    let main = Some((MAIN_AGENT, text!("interactive-agent-main")))
        .filter(|(name, _)| found.get(name).is_none());
    let own = found
        .items
        .iter()
        .map(|agent| (agent.name.as_str(), agent.description.as_str()));
    let names: Vec<_> = main.into_iter().chain(own).collect();
    let row = |(name, about): &(&str, &str)| {
        let (text, then) = if *name == current {
            let text = text!("interactive-agent-current", agent = *name);
            (text, PickerAction::Leave)
        } else {
            let then = Operation::Offer(ListRequest::Agent((*name).to_owned()));
            ((*name).to_owned(), PickerAction::Do(then))
        };
        PickerRow {
            text,
            about: about.lines().next().unwrap_or_default().to_owned(),
            then,
        }
    };
    PickerList {
        title: text!("interactive-agent-title").to_owned(),
        selected: names
            .iter()
            .position(|(name, _)| *name == current)
            .unwrap_or(0),
        rows: names.iter().map(row).collect(),
        ..PickerList::default()
    }
}
