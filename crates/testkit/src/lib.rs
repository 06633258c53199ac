//! A scripted model server: it replies over the four wire protocols as a script specifies, and
//! rejects what the real services reject.
//!
//! The server is used by tests, by `haft demo` and by hand (`scripted-model script.yaml`). It must
//! never use `haft-model`: requests are decoded by separate code, so that a mistake in the encoder
//! can't hide behind an equal mistake in the decoder. It reads no clock and no environment: equal
//! scripts and requests give equal bytes. The feature `test` adds a fake clock, sequential ids and
//! a temporary home.
//!
//! Read first: [`Script`] and [`Reply`] (what the model replies), [`ScriptedServer`] (serves a
//! script), [`Seen`] (a decoded request).
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_testkit::{Reply, Script, ScriptedServer};
//! use haft_types::Api;
//!
//! let server = ScriptedServer::start(Script::replies([Reply::text("Hello.")])?).await?;
//! let base_url = server.base_url(Api::Anthropic);
//! // … send requests to `base_url`, then inspect what arrived:
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
pub mod support;

pub use record::{Handled, Recorded};
pub use script::{
    Garbage, Gate, Hold, Replace, Reply, ReplyPart, Script, ScriptCall, ScriptError, ScriptedError,
    Stop, When,
};
pub use seen::{Seen, SeenError, SeenMessage, SeenPart, SeenRole, SeenTool};
pub use server::{Builder, ScriptedServer, ServerError};
pub use timing::Timing;
