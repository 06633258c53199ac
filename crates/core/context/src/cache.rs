//! What the provider's prefix cache makes of a request, and what that costs.
//!
//! ```text
//! prefix       how a request compares to the one before, and why it is no extension of it
//! boundaries   where the provider is asked to remember
//! pricing      what a break costs
//! simulate     a provider's cache, request by request      quote: what an action would cost before it is done
//! ```

pub(crate) mod boundaries;
pub(crate) mod prefix;
pub(crate) mod pricing;
pub(crate) mod quote;
pub(crate) mod simulate;
