//! The permission mode of an open session. The user can change it at any time, also during a turn.
//!
//! Tools and system message are not rendered again, so that the cached prefix remains valid.
//! Instead, a message at the end of the conversation announces the change of plan mode to the
//! model. Invariant: before every request, the model is informed whether plan mode is on.

use std::sync::Arc;

use haft_permission::PermissionRule;
use haft_types::{Decision, PermissionMode};

use super::Session;
use crate::agents::parent::Rank;
use crate::calls::permit::Permit;
use crate::error::EngineError;
use crate::names::{PLAN_ON_NOTE, PLAN_OVER_NOTE};

/// Changes the permission mode and adds rules, even while a turn runs. The change applies to
/// sub-agents too.
#[derive(Clone)]
pub struct ModeSwitch(Arc<Permit>);

impl ModeSwitch {
    /// Sets the mode, starting with the next tool call.
    pub fn set(&self, mode: PermissionMode) {
        self.0.set_mode(mode);
    }

    /// Returns the current mode.
    pub fn mode(&self) -> PermissionMode {
        self.0.mode()
    }

    /// Adds a rule for the rest of the session, starting with the next tool call. Nothing is
    /// written to a file.
    pub fn add_rule(&self, decision: Decision, rule: PermissionRule) {
        self.0.add_session_rule(decision, rule);
    }
}

impl Session {
    /// Returns a handle to change the permission mode.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch(Arc::clone(&self.permit))
    }

    /// Returns the current permission mode.
    pub fn mode(&self) -> PermissionMode {
        self.permit.mode()
    }

    /// Informs the model that plan mode has begun or ended, unless the model already has this
    /// information.
    pub(crate) async fn announce_plan_mode(&mut self) -> Result<(), EngineError> {
        let planning = self.mode() == PermissionMode::Plan;
        // A sub-agent lives for one task; a denied call reports the mode.
        if planning == self.prompt.plan_mode_announced() || self.agents.rank == Rank::Sub {
            return Ok(());
        }
        let text = if planning {
            PLAN_ON_NOTE
        } else {
            PLAN_OVER_NOTE
        };
        self.transcript
            .append_note(text.text(self.config.policy.prompt_language))
            .await?;
        self.prompt
            .set_plan_mode_announced(planning, &self.transcript)
            .await
    }
}
