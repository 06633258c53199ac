//! The permission mode of an open session. The user changes it at any moment; the model reads of it
//! where it has to know.
//!
//! Tools and system message stay as they were, so that no prefix is rewritten: what the model must
//! know of another mode is said once, in a message of its own behind everything that was sent.
//! Invariant: no request is built whose model believes in the other state of plan mode.

use std::sync::Arc;

use haft_types::{PermissionMode, prompt};

use super::Session;
use crate::agents::parent::Rank;
use crate::calls::permit::Permit;
use crate::error::EngineError;

/// Changes how much may happen without asking, while a turn runs too. It holds for sub-agents as
/// well.
#[derive(Clone)]
pub struct ModeSwitch(Arc<Permit>);

impl ModeSwitch {
    /// From the next call on this mode decides.
    pub fn set(&self, mode: PermissionMode) {
        self.0.set_mode(mode);
    }
}

impl Session {
    /// How the mode is changed.
    pub fn mode_switch(&self) -> ModeSwitch {
        ModeSwitch(Arc::clone(&self.permit))
    }

    /// How much may happen without asking now.
    pub fn mode(&self) -> PermissionMode {
        self.permit.mode()
    }

    /// Tells the model that plan mode has begun or is over, if it does not know.
    pub(crate) async fn tell_mode(&mut self) -> Result<(), EngineError> {
        let planning = self.mode() == PermissionMode::Plan;
        // Sub-agents live for one task; a call that is refused says why.
        if planning == self.prompt.plan_mode_told() || self.agents.rank == Rank::Sub {
            return Ok(());
        }
        let text = if planning {
            prompt!("../../prompts/plan_on")
        } else {
            prompt!("../../prompts/plan_over")
        };
        self.transcript
            .append_note(text.text(self.config.policy.prompt_language))
            .await?;
        self.prompt.note_plan_mode(planning, &self.transcript).await
    }
}
