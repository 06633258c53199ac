//! What can go wrong between a request and its reply.

use std::time::Duration;

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The provider's declaration cannot be used.
    #[error("provider `{provider}`: {problem}")]
    Config {
        /// The provider's name in the configuration.
        provider: String,
        /// What is wrong with which field, and what to do.
        problem: String,
    },
    /// Nobody answers there.
    #[error("cannot reach {url}: {reason}; check `base_url` and the network")]
    Unreachable {
        /// The address that was tried.
        url: String,
        /// What the network said.
        reason: String,
    },
    /// Somebody answers, but not with what the API promises.
    #[error("{url} did not answer like {api}: {found}; check `base_url` and `api`")]
    NotAnApi {
        /// The address that was tried.
        url: String,
        /// The API that was expected.
        api: &'static str,
        /// What came instead.
        found: String,
    },
    /// The key was refused.
    #[error(
        "the provider refused the key (status {status}): {message}; check the provider's key source"
    )]
    Unauthorized {
        /// The HTTP status, mostly 401 or 403.
        status: u16,
        /// What the provider said.
        message: String,
    },
    /// A limit on money or quota is reached; waiting does not help.
    #[error("the provider refuses to spend more (status {status}): {message}")]
    SpendLimit {
        /// The HTTP status.
        status: u16,
        /// What the provider said.
        message: String,
    },
    /// The provider refused the request, or failed.
    #[error("the provider answered status {status}{}: {message}", named(.code))]
    Status {
        /// The HTTP status, or the one an error inside the stream stands for.
        status: u16,
        /// The provider's name for the error; may be empty.
        code: String,
        /// What the provider said.
        message: String,
    },
    /// The reply broke the protocol.
    #[error("the reply cannot be read: {problem}")]
    BadReply {
        /// What was wrong, and where.
        problem: String,
    },
    /// The connection ended before the message did.
    #[error("the connection was lost before the end of the reply")]
    Dropped {
        /// What the network said, for the log.
        reason: String,
    },
    /// Nothing came for too long.
    #[error("no answer for {} s while waiting for {awaited}", .waited.as_secs())]
    Timeout {
        /// How long it was waited.
        waited: Duration,
        /// What was waited for.
        awaited: &'static str,
    },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The caller's limit of money has no room for the request.
    #[error("{0}")]
    OverBudget(String),
    /// There is a limit of money, and nobody knows what the request would cost.
    #[error(
        "`{0}` has no price in USD, so a limit of money cannot hold; set `price` in `[models.\"{0}\"]`, or the rate of its currency in `[currency_rates]`, or give a limit of tokens, too (`--max-total-tokens`)"
    )]
    NoPrice(String),
    /// The last retry failed too.
    #[error("gave up after {retries} retries: {last}")]
    Exhausted {
        /// How many retries were made.
        retries: u32,
        /// The last failure.
        #[source]
        last: Box<ModelError>,
    },
    /// No request of this client ever got a valid reply: the declaration is wrong, or the server is
    /// not there.
    #[error("{last}")]
    NeverValid {
        /// The last failure.
        #[source]
        last: Box<ModelError>,
    },
}

fn named(code: &str) -> String {
    if code.is_empty() {
        String::new()
    } else {
        format!(" ({code})")
    }
}

impl ModelError {
    /// A stable name for programs.
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

    /// The HTTP status of the provider's answer, if there was one.
    pub fn status(&self) -> Option<u16> {
        match self.cause() {
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

    /// Whether no request of the client ever got a valid reply, so that the fault is in the
    /// configuration or the server.
    pub fn never_valid(&self) -> bool {
        matches!(self, Self::NeverValid { .. } | Self::Config { .. })
    }

    /// Whether the caller cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// Whether the provider may bill a request that ended so: it had begun to work on it.
    pub fn may_be_billed(&self) -> bool {
        match self.cause() {
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

    /// The failure itself, however often it was tried.
    fn cause(&self) -> &Self {
        if let Self::Exhausted { last, .. } | Self::NeverValid { last } = self {
            last.cause()
        } else {
            self
        }
    }

    /// Whether the provider has too much to do or is out of order, so that another one may answer
    /// instead.
    pub fn is_overload(&self) -> bool {
        matches!(
            self.cause(),
            Self::Status {
                status: 429 | 500..=599,
                ..
            }
        )
    }

    /// Whether the provider refused the request because it is longer than the model's window.
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
        } = self.cause()
        else {
            return false;
        };
        let message = message.to_lowercase();
        CODES.contains(&code.as_str()) || PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::NotAnApi { .. }
            | Self::BadReply { .. }
            | Self::Dropped { .. }
            | Self::Timeout { .. } => true,
            // 425: too early, which only ever asks for another try.
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

    /// Whether the failure leaves open that there is no such API at that address, or none for this
    /// key.
    pub(crate) fn doubts_the_server(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NotAnApi { .. }
                | Self::Unauthorized { .. }
                | Self::BadReply { .. }
        )
    }

    /// Whether a server answered with an error of its own.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self, Self::Status { .. } | Self::SpendLimit { .. })
    }

    /// The same, however often it was asked.
    pub fn is_refusal(&self) -> bool {
        self.cause().is_status()
    }

    /// Whether only a server of the API can have failed this way.
    pub(crate) fn proves_the_server(&self) -> bool {
        matches!(self, Self::Dropped { .. })
    }
}
