//! Sends neutral requests to a model over four wire protocols and returns the replies as neutral
//! deltas.
//!
//! This crate owns the catalogue of providers and models, the codecs with their fragment caches,
//! the text tool protocols, the transport with its retries, and token counting. It must not decide
//! what is sent (that is the context engine), run a tool, store anything, or read the environment:
//! callers pass keys, addresses and limits.
//!
//! Read first: [`Catalogue`] (the available models), [`Client`] (sends requests to one model),
//! [`Delta`] and [`Reply`] (the parts of an answer), [`ModelError`] (the possible failures).
//!
//! ```
//! use haft_model::{Catalogue, Client, ProviderConfig, RetryConfig};
//! use haft_types::Api;
//!
//! let local = ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:8080/v1");
//! let catalogue = Catalogue::new([("local".to_owned(), local)].into(), [].into())?;
//! let client = Client::new(catalogue.resolve("local/llama")?, None, RetryConfig::default())?;
//! assert_eq!(client.spec().full_name(), "local/llama");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalogue;
mod client;
mod config;
mod encoding;
mod error;
mod protocol;
mod reply;
mod retry;
mod secret;
mod tokens;
mod transport;
mod wire;

pub use catalogue::{
    BuiltIn, Catalogue, CatalogueError, Declared, ProfileReason, Provenance, nearest_name,
};
pub use client::{Client, RecordedReplies};
pub use config::{ModelConfig, ProviderConfig, RetryConfig};
pub use encoding::BodyEncoding;
pub use error::ModelError;
pub use protocol::{
    NEXT_CALL_KEY, TextEvent, TextParser, describe_call_format, is_unclosed_call,
    was_converted_to_json, was_read_from_text, write_call,
};
pub use reply::{Delta, Reply};
pub use secret::Secret;
pub use tokens::O200k;
#[cfg(any(test, fuzzing))]
pub use wire::check_event_stream;
