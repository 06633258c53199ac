//! What arrived at the server: every request with its raw bytes, and what was done with it.

use std::sync::Arc;

use bytes::Bytes;
use haft_types::Api;
use serde_json::Value;

use crate::route::Route;
use crate::rules::Refusal;
use crate::seen::{FromPath, Seen, SeenError};

/// One request as it arrived. Cloning it is cheap.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Its place among all requests, from 1.
    pub number: u64,
    /// Such as `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Header names, in lower case, and values.
    pub headers: Arc<[(String, String)]>,
    /// The body as received.
    pub body: Bytes,
    /// What was done with it.
    pub handled: Handled,
    pub(crate) route: Route,
}

/// What the server did with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Handled {
    /// It gave a reply of the script.
    Replied {
        /// The reply's place in the script, from 0.
        reply: usize,
    },
    /// It refused the request as the service would.
    Refused(Refusal),
    /// No reply was left.
    RanOut,
    /// The body made no sense.
    Unreadable {
        /// Why.
        reason: String,
    },
    /// It counted tokens or listed models.
    Informed,
    /// There is nothing at that path.
    NotFound,
}

impl Recorded {
    /// The API it spoke, when it asked for a reply.
    pub fn api(&self) -> Option<Api> {
        match self.route {
            Route::Generate { api, .. } => Some(api),
            Route::CountTokens { .. } | Route::Models { .. } | Route::Unknown { .. } => None,
        }
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Result<Value, SeenError> {
        serde_json::from_slice(&self.body).map_err(|_| SeenError {
            path: "(body)".to_owned(),
            what: "expected JSON",
        })
    }

    /// The request in neutral form; an error for anything but a request for a reply.
    pub fn seen(&self) -> Result<Seen, SeenError> {
        match &self.route {
            Route::Generate { api, from_path } => {
                let from_path = from_path.as_ref();
                let said = FromPath {
                    model: from_path.map(|said| said.model.as_str()),
                    stream: from_path.is_some_and(|said| said.stream),
                };
                Seen::decode(*api, &self.json()?, said)
            }
            Route::CountTokens { .. } | Route::Models { .. } | Route::Unknown { .. } => {
                Err(SeenError {
                    path: self.path.clone(),
                    what: "this request asks for no reply of the model",
                })
            }
        }
    }
}
