//! A model that says what a script tells it to, over the four wire protocols, as strict as the real
//! services.
//!
//! Used by tests, by `haft demo` and by hand (`scripted-model script.yaml`). It decodes requests
//! with code of its own and must never use `haft-model`'s, so that a mistake made twice the same
//! way shows. It reads no clock and no environment: the same script and requests give the same
//! bytes. Behind the feature `test` are a fake clock, ids in sequence and a temporary home.
//!
//! Read first: [`Script`] and [`Reply`] (what is said), [`ScriptedServer`] (who says it), [`Seen`]
//! (what it was told).
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_testkit::{Reply, Script, ScriptedServer};
//! use haft_types::Api;
//!
//! let server = ScriptedServer::start(Script::replies([Reply::text("Hello.")])?).await?;
//! let base_url = server.base_url(Api::Anthropic);
//! // … send requests to `base_url`, then look at what arrived:
//! assert!(server.refusals().is_empty());
//! # Ok(())
//! # }
//! ```

mod body;
mod record;
mod render;
mod route;
mod scan;
mod script;
mod seen;
mod select;
mod server;
mod timing;
mod wire;

pub mod rules;
#[cfg(feature = "test")]
pub mod test;

pub use record::{Handled, Recorded};
pub use script::{
    Garbage, Gate, Hold, Replace, Reply, ReplyPart, Script, ScriptCall, ScriptError, ScriptedError,
    Stop, When,
};
pub use seen::{Seen, SeenError, SeenMessage, SeenPart, SeenRole, SeenTool};
pub use server::{Builder, ScriptedServer, ServerError};
pub use timing::Timing;
