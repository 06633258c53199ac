//! The failures of a request to a model.

use std::time::Duration;

/// The reason why a request got no reply.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The provider's declaration cannot be used.
    #[error("provider `{provider}`: {problem}")]
    Config {
        /// The name of the provider in the configuration.
        provider: String,
        /// The invalid field, its problem, and how to fix it.
        problem: String,
    },
    /// The server could not be reached.
    #[error("cannot reach {url}: {reason}; check `base_url` and the network")]
    Unreachable {
        /// The URL that was requested.
        url: String,
        /// The error message of the network layer.
        reason: String,
    },
    /// The server answered, but not in the way the configured API would.
    #[error("{url} did not answer like {api}: {found}; check `base_url` and `api`")]
    NotAnApi {
        /// The URL that was requested.
        url: String,
        /// The configured API.
        api: &'static str,
        /// The content type and the beginning of the answer.
        found: String,
    },
    /// The provider rejected the key.
    #[error(
        "the provider refused the key (status {status}): {message}; check the provider's key source"
    )]
    Unauthorized {
        /// The HTTP status, mostly 401 or 403.
        status: u16,
        /// The provider's error message.
        message: String,
    },
    /// A limit on money or quota has been reached; waiting does not help.
    #[error("the provider refuses to spend more (status {status}): {message}")]
    SpendLimit {
        /// The HTTP status of the answer.
        status: u16,
        /// The provider's error message.
        message: String,
    },
    /// The provider rejected the request, or failed to process it.
    #[error("the provider answered status {status}{}: {message}", parenthesize_code(.code))]
    Status {
        /// The HTTP status, or for an error inside a stream, the status that corresponds to the
        /// error.
        status: u16,
        /// The provider's error code; may be empty.
        code: String,
        /// The provider's error message.
        message: String,
    },
    /// The reply violates the wire protocol.
    #[error("the reply cannot be read: {problem}")]
    BadReply {
        /// The violation, and its position in the reply.
        problem: String,
    },
    /// The connection was lost before the end of the message.
    #[error("the connection was lost before the end of the reply")]
    Dropped {
        /// The error message of the network layer, for the log.
        reason: String,
    },
    /// No data arrived within the time limit.
    #[error("no answer for {} s while waiting for {awaited}", .waited.as_secs())]
    Timeout {
        /// The time limit that was exceeded.
        waited: Duration,
        /// The event that did not happen in time, such as the first byte.
        awaited: &'static str,
    },
    /// The caller canceled the request.
    #[error("cancelled")]
    Cancelled,
    /// The request was not sent, because its cost would exceed the caller's spending limit.
    #[error("{0}")]
    OverBudget(String),
    /// A spending limit is set, and the cost of the request cannot be computed because the model
    /// has no price.
    #[error(
        "`{0}` has no price in USD, so a limit of money cannot hold; set `price` in `[models.\"{0}\"]`, or the rate of its currency in `[currency_rates]`, or give a limit of tokens, too (`--max-total-tokens`)"
    )]
    NoPrice(String),
    /// The last retry failed as well.
    #[error("gave up after {retries} retries: {last}")]
    Exhausted {
        /// The number of retries made.
        retries: u32,
        /// The last failure.
        #[source]
        last: Box<ModelError>,
    },
    /// No request of this client ever got a valid reply: the configuration is wrong, or the server
    /// does not exist.
    #[error("{last}")]
    NeverValid {
        /// The failure of the last attempt.
        #[source]
        last: Box<ModelError>,
    },
}

/// Returns the code in parentheses for an error message, or an empty text if the code is empty.
fn parenthesize_code(code: &str) -> String {
    if code.is_empty() {
        String::new()
    } else {
        format!(" ({code})")
    }
}

impl ModelError {
    /// Returns a stable identifier of the failure for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "provider_config",
            Self::Unreachable { .. } => "unreachable",
            Self::NotAnApi { .. } => "not_an_api",
            Self::Unauthorized { .. } => "unauthorized",
            Self::SpendLimit { .. } => "spend_limit",
            Self::Status {
                status: 400..=499, ..
            } => "request_refused",
            Self::Status { .. } => "provider_error",
            Self::BadReply { .. } => "bad_reply",
            Self::Dropped { .. } => "connection_lost",
            Self::Timeout { .. } => "timeout",
            Self::Cancelled => "cancelled",
            Self::OverBudget(_) => "max_budget",
            Self::NoPrice(_) => "no_price",
            Self::Exhausted { last, .. } | Self::NeverValid { last } => last.code(),
        }
    }

    /// Returns the HTTP status of the provider's answer, if the provider answered.
    pub fn status(&self) -> Option<u16> {
        match self.root_cause() {
            Self::Unauthorized { status, .. }
            | Self::SpendLimit { status, .. }
            | Self::Status { status, .. } => Some(*status),
            Self::Config { .. }
            | Self::Unreachable { .. }
            | Self::NotAnApi { .. }
            | Self::BadReply { .. }
            | Self::Dropped { .. }
            | Self::Timeout { .. }
            | Self::Cancelled
            | Self::OverBudget(_)
            | Self::NoPrice(_)
            | Self::Exhausted { .. }
            | Self::NeverValid { .. } => None,
        }
    }

    /// True if the configuration or the server is at fault, because no request of the client ever
    /// got a valid reply.
    pub fn is_setup_failure(&self) -> bool {
        matches!(self, Self::NeverValid { .. } | Self::Config { .. })
    }

    /// True if the caller canceled the request.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// True if the provider may bill the failed request, because the provider had begun to process
    /// it.
    pub fn may_be_billed(&self) -> bool {
        match self.root_cause() {
            Self::BadReply { .. }
            | Self::Dropped { .. }
            | Self::Timeout { .. }
            | Self::Cancelled => true,
            Self::Config { .. }
            | Self::Unreachable { .. }
            | Self::NotAnApi { .. }
            | Self::Unauthorized { .. }
            | Self::SpendLimit { .. }
            | Self::Status { .. }
            | Self::OverBudget(_)
            | Self::NoPrice(_)
            | Self::Exhausted { .. }
            | Self::NeverValid { .. } => false,
        }
    }

    /// Returns the failure of the last attempt.
    fn root_cause(&self) -> &Self {
        if let Self::Exhausted { last, .. } | Self::NeverValid { last } = self {
            last.root_cause()
        } else {
            self
        }
    }

    /// True if the provider is overloaded or broken, so that it makes sense to try another
    /// provider.
    pub fn is_overload(&self) -> bool {
        matches!(
            self.root_cause(),
            Self::Status {
                status: 429 | 500..=599,
                ..
            }
        )
    }

    /// True if the provider rejected the request because the request exceeds the model's context
    /// window.
    pub fn is_too_long(&self) -> bool {
        const CODES: [&str; 3] = [
            "context_length_exceeded",
            "request_too_large",
            "exceed_context_size_error",
        ];
        const PHRASES: [&str; 9] = [
            "context length",
            "context window",
            "context size",
            "prompt is too long",
            "input is too long",
            "too many tokens",
            "maximum number of tokens",
            "input token count",
            "reduce the length",
        ];
        let Self::Status {
            status: 400 | 413 | 422,
            code,
            message,
        } = self.root_cause()
        else {
            return false;
        };
        let message = message.to_lowercase();
        CODES.contains(&code.as_str()) || PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// True if repeating the request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::NotAnApi { .. }
            | Self::BadReply { .. }
            | Self::Dropped { .. }
            | Self::Timeout { .. } => true,
            // 425 (too early) only asks for another attempt.
            Self::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 500..=599),
            Self::Config { .. }
            | Self::Unauthorized { .. }
            | Self::SpendLimit { .. }
            | Self::Cancelled
            | Self::OverBudget(_)
            | Self::NoPrice(_)
            | Self::Exhausted { .. }
            | Self::NeverValid { .. } => false,
        }
    }

    /// True if, after this failure, it is unclear whether the address serves the configured API, or
    /// serves it for this key.
    pub(crate) fn leaves_server_unproven(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NotAnApi { .. }
                | Self::Unauthorized { .. }
                | Self::BadReply { .. }
        )
    }

    /// True if a server answered with an error status.
    pub(crate) fn is_error_status(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::SpendLimit { .. })
    }

    /// True if a server answered the last attempt with an error status.
    pub fn ended_with_error_status(&self) -> bool {
        self.root_cause().is_error_status()
    }

    /// True if the failure shows that a server of the configured API exists, because part of a
    /// reply had already arrived.
    pub(crate) fn proves_server_exists(&self) -> bool {
        matches!(self, Self::Dropped { .. })
    }
}
