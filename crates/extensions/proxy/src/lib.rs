//! A recording proxy: an agent that sends its requests to this proxy's URL works unchanged, while
//! each request and reply is recorded and explained.
//!
//! Traffic comes first: requests and replies are forwarded byte for byte as they arrive, and a
//! failure of the recorder never fails a request. This crate must not change what is sent, store
//! keys, or print. The front end formats the events for users.
//!
//! Read first: [`serve`] (forwarding), [`TrafficRecorder`] (the stored record, in the
//! [`Store`](haft_store::Store) and in the format of haft's own requests), [`RequestExplanation`]
//! (the analysis of a request), [`RecordedBody`] (restores the exact bytes of a stored request).

mod capture;
mod encodings;
mod explanation;
mod forward;
mod guard;
mod layout;
mod message_parts;
mod record;
mod reply;
mod secrets;
mod stream_mask;
mod upstream_route;

pub use capture::Traffic;
pub use explanation::{CostInUnits, RecordedBreak, RequestExplanation};
pub use forward::{ProxyError, Upstreams, serve};
pub use layout::BodyLayout;
pub use record::{
    NAMESPACE, ProxyEvent, RECORDED_BY_KEY, RecordedBody, RecordedExchange, RecorderSetup,
    TrafficRecorder, exchange_key, to_readable_message,
};
pub use upstream_route::UpstreamProxies;
