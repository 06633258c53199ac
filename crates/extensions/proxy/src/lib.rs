//! A recording proxy: any agent that can be pointed at a base URL runs through it unchanged, and
//! what it sends is recorded and explained.
//!
//! Traffic comes first: bodies and replies pass as they arrive, byte for byte, and nothing that
//! goes wrong with the record ever fails a request. This crate must not change what is sent, keep a
//! key, or print; the front end words what it says.
//!
//! Read first: [`serve`] (traffic), [`TrafficRecorder`] (what is kept of it, in the
//! [`Store`](haft_store::Store) and with the deltas of haft's own requests), [`RequestExplanation`]
//! (what is said of a request), [`RecordedBody`] (a stored request as the bytes it was).

mod encodings;
mod explain;
mod forward;
mod layout;
mod readable;
mod record;
mod reply;
mod route;
mod tee;

pub use explain::{RecordedBreak, RequestExplanation};
pub use forward::{ProxyError, Upstreams, serve};
pub use layout::BodyLayout;
pub use record::{
    NAMESPACE, ProxyEvent, RECORDED_BY, RecordedBody, RecordedExchange, RecorderSetup,
    TrafficRecorder, exchange_key, readable,
};
pub use route::UpstreamProxies;
pub use tee::Traffic;
