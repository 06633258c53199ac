//! The planner: the model that answers while plan mode is on (`[model_roles] planner`).
//!
//! Invariant: while the planner answers, [`PlannerState::Active`] holds the models that it
//! replaces, so that they answer again when plan mode is over.

use std::collections::VecDeque;
use std::mem;

use haft_context::{ContextError, Quote};
use haft_model::Client;
use haft_types::{ModelSpec, PermissionMode};

use super::Session;
use super::model_opener::Standby;
use crate::agents::parent::Rank;
use crate::error::Notice;

/// The planner's part in a session.
#[derive(Default)]
pub(crate) enum PlannerState {
    /// The session's own models answer.
    #[default]
    Idle,
    /// The planner answers in place of these models.
    Active(Box<ReplacedModels>),
    /// The session's own models answer in plan mode too: there is no other planner that can be used,
    /// or the user has chosen a model.
    Skipped,
}

/// The models that answer again after plan mode.
pub(crate) struct ReplacedModels {
    client: Client,
    fallbacks: VecDeque<Standby>,
}

impl Session {
    /// Changes the permission mode between two turns. Returns a notice if another model answers in
    /// this mode, with the price of the change.
    pub fn set_mode(&mut self, mode: PermissionMode) -> Result<Option<Notice>, ContextError> {
        self.permit.set_mode(mode);
        self.follow_plan_mode()
    }

    /// Switches to the planner if plan mode is on, and back if it is over. Returns a notice about
    /// the switch.
    pub(crate) fn follow_plan_mode(&mut self) -> Result<Option<Notice>, ContextError> {
        let planning = self.mode() == PermissionMode::Plan && self.agents.rank != Rank::Sub;
        match (planning, mem::take(&mut self.planner)) {
            (true, PlannerState::Idle) => Ok(self.start_planner()),
            (false, PlannerState::Active(replaced)) => self.end_planner(*replaced),
            (_, state) => {
                self.planner = state;
                Ok(None)
            }
        }
    }

    /// Keeps the model that the user has chosen, in every mode.
    pub(crate) fn skip_planner(&mut self) {
        let before = mem::replace(&mut self.planner, PlannerState::Skipped);
        if let PlannerState::Active(replaced) = before {
            self.services.models.fallbacks = replaced.fallbacks;
        }
    }

    /// Returns the model that answers again after plan mode, and the price of going back to it.
    /// Returns `None` if the planner does not answer.
    pub fn quote_plan_end(&self) -> Option<(String, Option<Quote>)> {
        let PlannerState::Active(replaced) = &self.planner else {
            return None;
        };
        let model = replaced.client.spec();
        Some((model.full_name(), self.quote_other_model(model)))
    }

    /// Quotes the cost of a switch to the model `to`, unless the last request was sent to it: its
    /// cache then holds the conversation.
    fn quote_other_model(&self, to: &ModelSpec) -> Option<Quote> {
        let name = to.full_name();
        let differs = self.sent.last().is_some_and(|sent| sent.model != name);
        self.quote_model_switch(to).filter(|_| differs)
    }

    fn start_planner(&mut self) -> Option<Notice> {
        let mut models = self.services.shared.opener.planning_models();
        let own = self.config.model.full_name();
        let mut problems = Vec::new();
        while let Some(next) = models.pop_front() {
            let (name, opened) = next.open();
            let client = match opened.and_then(|client| self.require_price(client)) {
                Ok(client) => client,
                Err(problem) => {
                    problems.push(format!("`{name}`: {problem}"));
                    continue;
                }
            };
            let planner = client.spec().full_name();
            if planner == own {
                break;
            }
            let quote = self.quote_other_model(client.spec());
            let replaced = match self.use_client(client) {
                Ok(replaced) => replaced,
                Err(problem) => {
                    problems.push(format!("`{name}`: {problem}"));
                    continue;
                }
            };
            self.planner = PlannerState::Active(Box::new(ReplacedModels {
                client: replaced,
                fallbacks: mem::replace(&mut self.services.models.fallbacks, models),
            }));
            let message = match quote {
                Some(quote) => {
                    format!("`{planner}` answers in plan mode: {quote} to resend")
                }
                None => format!("`{planner}` answers in plan mode"),
            };
            return Some(planner_notice(message, false));
        }
        self.planner = PlannerState::Skipped;
        if problems.is_empty() {
            return None;
        }
        let problems = problems.join("; ");
        let message = format!("`{own}` answers in plan mode, because no planner can: {problems}");
        Some(planner_notice(message, true))
    }

    fn end_planner(&mut self, replaced: ReplacedModels) -> Result<Option<Notice>, ContextError> {
        let ReplacedModels { client, fallbacks } = replaced;
        let name = client.spec().full_name();
        let quote = self.quote_other_model(client.spec());
        self.use_client(client)?;
        self.services.models.fallbacks = fallbacks;
        let message = match quote {
            Some(quote) => format!("`{name}` answers again: up to {quote} to resend"),
            None => format!("`{name}` answers again"),
        };
        Ok(Some(planner_notice(message, false)))
    }
}

fn planner_notice(message: String, failed: bool) -> Notice {
    Notice {
        code: "planner",
        message,
        failed,
    }
}
