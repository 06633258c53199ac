//! The laboratory for context policies: rebuilds recorded conversations request by request under
//! another policy, and computes the cost.
//!
//! This crate must not call a model, read a file or read a clock: it turns recordings into figures,
//! tables and plots. It builds requests with `haft-context` alone, so that under the policy of the
//! recording they equal the recorded requests, byte for byte.
//!
//! Read first: [`replay_recording`] (a conversation under a policy), [`Variant`] (policies by
//! name), [`PolicyOutcome`] (the result of a policy over several conversations).
//!
//! ```text
//! RecordedConversation ─► replay under each Variant ─► PolicyOutcome ─► format_outcome_rows, outcomes_to_json, render_outcome_page, draw_plot
//! ```

mod assumption;
mod idle;
mod outcome;
mod plot;
mod recorded;
mod regret;
mod replay;
mod tables;
mod variant;
mod visibility;

#[cfg(test)]
mod testing;

pub use assumption::{
    ASSUMED_MODEL_NAME, ModelSource, PRICE_TABLES, PriceTable, assumed_model, documented_cache,
    format_model_line,
};
pub use idle::{
    IdleOutcome, IdleRule, TimedPrices, TimedRequest, oracle_idle_cost, price_idle_rule,
};
pub use outcome::{PolicyOutcome, RequestOutcome};
pub use plot::{PLOT_STYLE, Wording, draw_plot};
pub use recorded::{ImaginedReminders, RecordedConversation, RecordedSurroundings};
pub use replay::{
    Coverage, RecordedStep, Recording, Replay, Replayed, RequestSurroundings, measure_coverage,
    replay_recording,
};
pub use tables::{
    OUTCOME_HEADINGS, format_outcome_rows, format_pricing_line, outcomes_to_json,
    render_outcome_page,
};
pub use variant::{DEFAULT_POLICIES, UnknownVariant, VARIANTS, Variant};
