//! Predicts how a provider's prefix cache treats a request, and the resulting cost.
//!
//! ```text
//! prefix       compares a request with the previous one, and finds the cause if it is no extension
//! boundaries   sets the marks at which the provider is asked to store the prefix
//! pricing      computes the cost of a break
//! attribution  divides the reported usage of a request among its parts
//! simulate     a provider's cache, request by request      quote: the cost of an action before it is done
//! idle         the time without requests: keep-alive requests, lifetimes of entries
//! ```

pub(crate) mod attribution;
pub(crate) mod boundaries;
pub(crate) mod idle;
pub(crate) mod prefix;
pub(crate) mod pricing;
pub(crate) mod quote;
pub(crate) mod simulate;
