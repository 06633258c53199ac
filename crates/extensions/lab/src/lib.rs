//! The laboratory of context policies: recorded conversations, built request by request as another
//! policy would have built them, and what that would have cost.
//!
//! Nothing here calls a model, reads a file or looks at a clock: a recording comes in, figures,
//! tables and pictures come out. The lab builds requests with `haft-context` and with nothing of
//! its own, so that under the policy a conversation was recorded with they are the recorded ones,
//! byte for byte.
//!
//! Read first: [`replay`] (a conversation under a policy), [`Variant`] (policies by name),
//! [`PolicyOutcome`] (what a policy came to over several conversations).
//!
//! ```text
//! RecordedConversation ─► replay under each Variant ─► PolicyOutcome ─► outcome_table, outcome_json, outcome_page, draw_plot
//! ```

mod assumption;
mod outcome;
mod plot;
mod recorded;
mod regret;
mod replay;
mod tables;
mod variant;

#[cfg(test)]
mod testing;

pub use assumption::{
    ASSUMED, ModelSource, PRICE_TABLES, PriceTable, assumed_model, model_line, usual_cache,
};
pub use outcome::{PolicyOutcome, RequestOutcome};
pub use plot::{PLOT_STYLE, Wording, draw_plot};
pub use recorded::{ImaginedReminders, RecordedAside, RecordedConversation};
pub use replay::{
    Coverage, RecordedStep, Recording, Replay, Replayed, RequestSurroundings, coverage, replay,
};
pub use tables::{OUTCOME_HEADINGS, outcome_json, outcome_page, outcome_rows, pricing_line};
pub use variant::{USUAL_POLICIES, UnknownVariant, VARIANTS, Variant};
