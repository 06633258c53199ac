//! Determines the reason of a failed exchange from the provider's error.
//!
//! Each API formats its errors differently; the shapes overlap enough for one reader.

use std::error::Error;
use std::time::Duration;

use haft_types::Api;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::error::ModelError;
use crate::retry;
use crate::wire::Fault;

/// A failed exchange: the error, and the server's instructions on retrying.
#[derive(Debug)]
pub(crate) struct ExchangeFailure {
    pub error: ModelError,
    /// The wait before the next attempt that the server asks for.
    pub hint: Option<Duration>,
    /// True if a retry is pointless: the server asked clients not to retry, or its answer would not
    /// change.
    pub is_final: bool,
    /// True if the error was reported inside a reply that had already begun. Only a server of the
    /// configured API sends such an error.
    pub in_reply: bool,
}

impl From<ModelError> for ExchangeFailure {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            hint: None,
            is_final: false,
            in_reply: false,
        }
    }
}

impl From<Fault> for ExchangeFailure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Bad(problem) => ModelError::BadReply { problem }.into(),
            Fault::Reported(body) => {
                let said = ProviderMessage::from_body(&body);
                let status = said.implied_status();
                Self {
                    in_reply: true,
                    ..said.into_failure(status, &HeaderMap::new())
                }
            }
        }
    }
}

/// An endpoint as shown in error messages.
pub(super) struct NamedEndpoint {
    /// The URL without user, password and query.
    pub(super) url: String,
    pub(super) api: Api,
}

impl ExchangeFailure {
    /// Creates the failure of a request that got no response.
    pub(super) fn from_send_error(endpoint: NamedEndpoint, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let reason = if error.is_connect() || error.is_timeout() {
            root_cause_message(&error)
        } else {
            format!("no answer in HTTP ({})", root_cause_message(&error))
        };
        ModelError::Unreachable {
            url: endpoint.url,
            reason,
        }
        .into()
    }

    /// Creates the failure of a request whose response does not come from the expected API.
    pub(super) fn not_an_api(
        endpoint: NamedEndpoint,
        content_type: Option<&str>,
        body: &[u8],
    ) -> Self {
        let kind = content_type.unwrap_or("an answer without content type");
        let start = shorten_to_line(&String::from_utf8_lossy(body));
        let found = if start.is_empty() {
            format!("an empty answer ({kind})")
        } else {
            format!("{kind}: {start}")
        };
        ModelError::NotAnApi {
            url: endpoint.url,
            api: endpoint.api.name(),
            found,
        }
        .into()
    }

    /// Creates the failure that a response with an error status reports.
    pub(super) fn from_status(
        endpoint: NamedEndpoint,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => ProviderMessage::from_body(&value).into_failure(status, headers),
            // With these statuses, a page instead of a JSON error means that the API does not exist
            // there. A gateway in trouble also answers with a page, but with a 5xx status.
            Err(_) if matches!(status, 300..=399 | 404 | 405 | 410) => Self {
                is_final: true,
                ..Self::not_an_api(endpoint, Some(&format!("status {status}")), body)
            },
            Err(_) => {
                let message = shorten_to_line(&String::from_utf8_lossy(body));
                ProviderMessage {
                    code: String::new(),
                    message,
                    number: None,
                    error: Value::Null,
                }
                .into_failure(status, headers)
            }
        }
    }

    /// True if repeating the request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        self.error.is_transient() && !self.is_final
    }
}

/// The contents of an error that a provider sent.
struct ProviderMessage {
    code: String,
    message: String,
    /// The HTTP status that the error's JSON contains, if any.
    number: Option<u16>,
    error: Value,
}

impl ProviderMessage {
    /// Parses `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, or a list that starts with one
    /// of these.
    fn from_body(body: &Value) -> Self {
        let body = body.get(0).unwrap_or(body);
        let error = body
            .get("error")
            .filter(|error| !error.is_null())
            .unwrap_or(body);
        let text = |key: &str| {
            error
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let code = text("code")
            .or_else(|| text("status"))
            .or_else(|| text("type"))
            .unwrap_or_default()
            .to_owned();
        let message = error
            .as_str()
            .or_else(|| text("message"))
            .or_else(|| text("detail"));
        let message = message.map_or_else(|| shorten_to_line(&error.to_string()), str::to_owned);
        let number = error
            .get("code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok());
        Self {
            code,
            message,
            number: number.filter(|code| (400..600).contains(code)),
            error: error.clone(),
        }
    }

    /// Returns the HTTP status that corresponds to an error inside a stream, or 500 for an unknown
    /// error code.
    fn implied_status(&self) -> u16 {
        if let Some(number) = self.number {
            return number;
        }
        let kind = self
            .error
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        [self.code.as_str(), kind]
            .into_iter()
            .find_map(|name| {
                Some(match name {
                    "overloaded_error" => 529,
                    "rate_limit_error"
                    | "rate_limit_exceeded"
                    | "insufficient_quota"
                    | "RESOURCE_EXHAUSTED" => 429,
                    "invalid_request_error"
                    | "invalid_prompt"
                    | "context_length_exceeded"
                    | "INVALID_ARGUMENT" => 400,
                    "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
                    "billing_error" => 402,
                    "permission_error" | "PERMISSION_DENIED" => 403,
                    "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
                    "request_too_large" => 413,
                    "timeout_error" | "DEADLINE_EXCEEDED" => 504,
                    "UNAVAILABLE" => 503,
                    _ => return None,
                })
            })
            .unwrap_or(500)
    }

    fn into_failure(self, status: u16, headers: &HeaderMap) -> ExchangeFailure {
        let hint = retry::parse_retry_hint(headers, &self.error);
        // The official clients of both OpenAI and Anthropic obey this header.
        let last_word = headers
            .get("x-should-retry")
            .is_some_and(|value| value == "false");
        let error = if self.is_spend_limit(status) {
            ModelError::SpendLimit {
                status,
                message: self.message,
            }
        } else if matches!(status, 401 | 403) || self.is_bad_key(status) {
            ModelError::Unauthorized {
                status,
                message: self.message,
            }
        } else {
            ModelError::Status {
                status,
                code: self.code,
                message: self.message,
            }
        };
        ExchangeFailure {
            error,
            hint,
            is_final: last_word,
            in_reply: false,
        }
    }

    /// True if the provider rejected the key with the status 400, as Gemini does for an unknown
    /// key.
    fn is_bad_key(&self, status: u16) -> bool {
        let mut details = self
            .error
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        status == 400
            && details.any(|detail| {
                detail
                    .get("reason")
                    .is_some_and(|reason| reason == "API_KEY_INVALID")
            })
    }

    /// True if the error is about money, so that waiting does not help. The word "billing" is no
    /// evidence by itself: the ordinary rate limit message of one provider asks users to check
    /// their billing.
    fn is_spend_limit(&self, status: u16) -> bool {
        const CODES: [&str; 5] = [
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_error",
            "billing_not_active",
            "spend_limit",
        ];
        const PHRASES: [&str; 9] = [
            "spend limit",
            "spending limit",
            "spend cap",
            "spending cap",
            "credit balance",
            "insufficient balance",
            "insufficient credit",
            "insufficient_quota",
            "billing hard limit",
        ];
        if !matches!(status, 400 | 402 | 403 | 429) {
            return false;
        }
        let kind = self
            .error
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let message = self.message.to_lowercase();
        status == 402
            || CODES.contains(&self.code.as_str())
            || CODES.contains(&kind)
            || PHRASES.iter().any(|phrase| message.contains(phrase))
    }
}

/// Returns the message of the innermost cause of an error. The outer messages only name parts of
/// the HTTP client.
pub(super) fn root_cause_message(mut error: &dyn Error) -> String {
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// Returns the beginning of a response, shortened to one line for an error message.
fn shorten_to_line(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
