//! The permission mode of an open session. The user can change it at any time, also during a turn.
//!
//! Tools and system message are not rendered again, so that the cached prefix remains valid.
//! Instead, a message at the end of the conversation announces the change of plan mode to the
//! model. Invariant: before every request, the model is informed whether plan mode is on.

use std::sync::Arc;

use haft_types::PermissionMode;

use super::Session;
use crate::agents::parent::Rank;
use crate::calls::permit::ModeSwitch;
use crate::error::EngineError;
use crate::names::{PLAN_ON_NOTE, PLAN_OVER_NOTE};

impl Session {
    /// Returns a handle to change the permission mode.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch::new(Arc::clone(&self.permit))
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
