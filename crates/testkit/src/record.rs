//! Requests as they arrived at the server, with raw bytes and the outcome.

use std::sync::Arc;

use bytes::Bytes;
use haft_types::Api;
use serde_json::Value;

use crate::route::Route;
use crate::rules::Refusal;
use crate::seen::{FromPath, Seen, SeenError};

/// A request that the server received. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The position among all requests of the server, counted from 1.
    pub number: u64,
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The path with its query string.
    pub path: String,
    /// The names (in lower case) and values of the headers.
    pub headers: Arc<[(String, String)]>,
    /// The body as received.
    pub body: Bytes,
    pub handled: Handled,
    pub(crate) route: Route,
}

/// The server's handling of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Handled {
    /// The server sent a reply of the script.
    Replied {
        /// The index of the reply in the script, counted from 0.
        reply: usize,
    },
    /// A rule rejected the request, with the error that the real service returns.
    Refused(Refusal),
    /// The script had no reply left for the request.
    RanOut,
    /// The body of the request could not be decoded.
    Unreadable { reason: String },
    /// The request asked for a token count or a list of models, and was answered.
    Informed,
    /// The server serves nothing at the path.
    NotFound,
}

impl Recorded {
    /// Returns the API of a request that asks for a model reply; `None` for any other request.
    pub fn api(&self) -> Option<Api> {
        match self.route {
            Route::Generate { api, .. } => Some(api),
            Route::CountTokens { .. } | Route::Models { .. } | Route::Unknown { .. } => None,
        }
    }

    /// Returns the first value of the header `name`. Names are case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(have, _)| have.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON.
    pub fn json(&self) -> Result<Value, SeenError> {
        serde_json::from_slice(&self.body).map_err(|_| SeenError {
            path: "(body)".to_owned(),
            what: "expected JSON",
        })
    }

    /// Decodes the request into the API-neutral form. Returns an error if the request does not ask
    /// for a model reply.
    pub fn decode(&self) -> Result<Seen, SeenError> {
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
