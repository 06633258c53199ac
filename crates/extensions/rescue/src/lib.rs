//! Checks and rescues a store: what of it is sound ([`examine`]), and what can be read of a damaged
//! database ([`salvage`]). It also takes conversations out of a store for good ([`purge`]).
//!
//! A check repairs only what can be made again from what is left; salvage writes nothing. Neither
//! is needed to run an agent: the store itself refuses what is damaged and keeps a copy.
//!
//! Read first: [`Check`] (what was found), [`Patient`] (where a store lies), [`Salvaged`].

mod doctor;
mod purge;
mod salvage;

pub use doctor::{Check, CheckHealth, Patient, examine};
pub use purge::{PurgeFamily, family, purge};
pub use salvage::{SalvageReport, Salvaged, salvage};
