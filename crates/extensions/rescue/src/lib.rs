//! Checks a store for damage ([`examine_store`]), recovers conversations from a damaged database
//! ([`salvage_conversations`]), and deletes conversations permanently ([`purge_conversations`]).
//!
//! A check must not repair anything that cannot be rebuilt from sound data, and salvage must not
//! write. Running an agent needs neither: the store itself rejects damaged data and keeps a copy.
//!
//! Read first: [`Check`] (one finding), [`StoreFiles`] (the paths of a store), [`Salvaged`].

mod doctor;
mod purge;
mod salvage;

pub use doctor::{Check, CheckHealth, StoreFiles, examine_store};
pub use purge::{RelatedConversations, find_related_conversations, purge_conversations};
pub use salvage::{SalvageReport, Salvaged, salvage_conversations};
