//! Sends requests to one model and retries transient failures.
//!
//! Invariant: a retry repeats one request and nothing else, except that it leaves out a field that
//! the provider rejected ([`Delta::FieldOmitted`]). No delta of a failed attempt is part of
//! the reply; a [`Delta::Retry`] announces the new attempt before the wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haft_types::{ModelSpec, Request, Usage};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::catalogue::Declared;
use crate::config::RetryConfig;
use crate::encoding::BodyEncoding;
use crate::error::ModelError;
use crate::protocol::{decode_stray_calls, decode_text_calls};
use crate::reply::{Delta, Reply};
use crate::retry::Backoff;
use crate::secret::Secret;
use crate::transport::{ExchangeFailure, HttpTransport};
use crate::wire::{self, CallIds, Decode, Encoder, Sink};

/// The maximum number of retries until the server has proved that it exists. With the first
/// attempt, three attempts must fit into [`PROBE_TIME_LIMIT`].
const MAX_PROBE_RETRIES: u32 = 2;
const PROBE_TIME_LIMIT: Duration = Duration::from_secs(5);
const PROBE_DELAYS: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(500)];

/// The replies of a recorded run: returns the reply to each request, in the order of the run.
pub type RecordedReplies = Arc<dyn Fn(&Request) -> Result<Reply, ModelError> + Send + Sync>;

/// The source of a client's replies.
enum ReplySource {
    /// The model's server.
    Server(Box<HttpTransport>),
    /// The record of an earlier run. Nothing is sent.
    Record(RecordedReplies),
}

/// A client that sends requests to one model and reuses its connections.
pub struct Client {
    spec: ModelSpec,
    encoder: Encoder,
    /// The encoding shared by all requests of this client; `encoding_json` is its serialized form.
    encoding: Box<BodyEncoding>,
    encoding_json: Arc<str>,
    source: ReplySource,
    retry: RetryConfig,
    /// True once the server has sent a reply or failure that only a server of the declared API can
    /// send.
    proven: bool,
    /// True once the server has answered any request, even with an error.
    answered: bool,
}

impl Client {
    /// Creates a client without sending anything. Fast for `http://` addresses, because no
    /// certificates are loaded.
    pub fn new(
        declared: Declared,
        key: Option<Secret>,
        retry: RetryConfig,
    ) -> Result<Self, ModelError> {
        let transport = HttpTransport::new(&declared, key, &retry)?;
        let source = ReplySource::Server(Box::new(transport));
        let encoding = declared.body_encoding();
        Ok(Self::with_source(declared.spec, encoding, source, retry))
    }

    /// Creates a client for the replay of a recorded run. The client sends nothing and repeats no
    /// request: each request gets the reply or the error that `replies` returns.
    pub fn with_recorded_replies(encoding: BodyEncoding, replies: RecordedReplies) -> Self {
        Self::with_source(
            encoding.spec.clone(),
            encoding,
            ReplySource::Record(replies),
            RetryConfig::default(),
        )
    }

    fn with_source(
        spec: ModelSpec,
        encoding: BodyEncoding,
        source: ReplySource,
        retry: RetryConfig,
    ) -> Self {
        Self {
            spec,
            encoder: Encoder::new(encoding.encoder_settings()),
            encoding_json: serialize_encoding(&encoding),
            encoding: Box::new(encoding),
            source,
            retry,
            proven: false,
            answered: false,
        }
    }

    /// Returns the model that this client sends requests to.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Returns the output limit that the configuration fixes for every request, in tokens, or
    /// `None` if each request may set its own limit.
    pub fn fixed_output_limit(&self) -> Option<u64> {
        self.encoding.fixed_output_limit()
    }

    /// Returns the number of output tokens that the configuration reserves for thinking.
    pub fn thinking_budget(&self) -> u64 {
        self.encoding.thinking_budget()
    }

    /// Returns the [`BodyEncoding`] as JSON, to be stored with each request.
    pub fn encoding_json(&self) -> Arc<str> {
        Arc::clone(&self.encoding_json)
    }

    /// Sets the ratio of the model's own token count to haft's token count, as learned from
    /// replies. Request bodies do not depend on the ratio.
    pub fn set_tokenizer_factor(&mut self, factor: f64) {
        self.spec.tokenizer_factor = factor;
        self.encoding.spec.tokenizer_factor = factor;
        self.encoding_json = serialize_encoding(&self.encoding);
    }

    /// Returns the exact bytes that [`Client::stream_reply`] would post.
    pub fn encode_request(&mut self, request: &Request) -> Bytes {
        self.encoder.encode_body(request)
    }

    /// Sends the request and reads the reply, passing each piece to `sink` as it arrives.
    ///
    /// Transient failures are retried. Cancellation takes effect at once, also during a wait.
    pub async fn stream_reply(
        &mut self,
        request: &Request,
        cancel: &CancellationToken,
        sink: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let started = Instant::now();
        let mut retries = 0;
        let ended = self
            .exchange_with_retries(request, cancel, sink, started, &mut retries)
            .await;
        let model = self.spec.full_name();
        let ms = started.elapsed().as_millis() as u64;
        match &ended {
            Ok(Reply { usage, .. }) => {
                let Usage {
                    input,
                    cached_input,
                    cache_write,
                    output,
                    ..
                } = usage;
                info!(
                    model,
                    ms, retries, input, cached_input, cache_write, output, "request answered"
                );
            }
            Err(ModelError::Cancelled) => info!(model, ms, retries, "request canceled"),
            Err(error) => {
                error!(
                    model,
                    ms,
                    retries,
                    code = error.code(),
                    status = error.status(),
                    "request failed"
                );
            }
        }
        ended
    }

    /// Sends the request repeatedly until a reply arrives or no retries are left. Increments
    /// `retries` with each retry, for the log.
    async fn exchange_with_retries(
        &mut self,
        request: &Request,
        cancel: &CancellationToken,
        sink: &mut (dyn FnMut(Delta) + Send),
        started: Instant,
        retries: &mut u32,
    ) -> Result<Reply, ModelError> {
        if let ReplySource::Record(replies) = &self.source {
            return replies(request);
        }
        let mut body = self.encode_request(request);
        let ids = CallIds::for_reply_to(request);
        let mut backoff = Backoff::new(&self.retry);
        let mut long_waits = 0;
        loop {
            let decoder = wire::create_decoder(self.spec.api, ids.clone());
            let decoder = decode_text_calls(
                decoder,
                self.spec.tool_protocol,
                &request.tools,
                ids.clone(),
            );
            let decoder = decode_stray_calls(decoder, &self.spec, request, ids.clone());
            let tried = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                tried = self.source.exchange(request, body.clone(), decoder, sink) => tried,
            };
            let failure = match tried {
                Ok(reply) => {
                    self.proven = true;
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            if let Some(field) = self.omit_rejected_field(&failure.error) {
                let model = self.spec.full_name();
                warn!(
                    model,
                    field, "request rejected and repeated without a field"
                );
                sink(Delta::FieldOmitted {
                    field,
                    reason: failure.error.to_string(),
                });
                body = self.encode_request(request);
                continue;
            }
            let is_long = self.retry.outlasts_wait(failure.hint);
            let counted = (!is_long).then(|| *retries - long_waits);
            let Some(delay) = self.next_delay(&failure, counted, started.elapsed(), &mut backoff)
            else {
                return Err(self.final_error(failure.error, *retries));
            };
            long_waits += u32::from(is_long);
            *retries += 1;
            let model = self.spec.full_name();
            let delay_ms = delay.as_millis() as u64;
            let attempt = *retries;
            let code = failure.error.code();
            let status = failure.error.status();
            // The provider's message may quote the request, so it is not logged.
            warn!(
                model,
                attempt, code, status, delay_ms, "request failed and is retried"
            );
            sink(Delta::Retry {
                attempt,
                limit: self.retry_limit(&failure).filter(|_| !is_long),
                delay_ms,
                reason: failure.error.to_string(),
                billed: failure.error.may_be_billed(),
            });
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    /// Leaves the field that the provider rejected with `error` out of this and all further
    /// requests. Each field is left out once, so a request is repeated a few times at most.
    fn omit_rejected_field(&mut self, error: &ModelError) -> Option<&'static str> {
        let field = self.encoding.omit_rejected_field(error)?;
        self.encoder = Encoder::new(self.encoding.encoder_settings());
        self.encoding_json = serialize_encoding(&self.encoding);
        Some(field)
    }

    /// Fetches the provider's own list of models. A failed request is not retried.
    pub async fn list_models(&self, cancel: &CancellationToken) -> Result<Vec<String>, ModelError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ModelError::Cancelled),
            listed = self.source.list_models() => listed.map_err(|failure| failure.error),
        }
    }

    /// Returns the wait before the next attempt, or `None` to give up. `retries` is the number of
    /// earlier retries that count, or `None` if this one does not count.
    fn next_delay(
        &mut self,
        failure: &ExchangeFailure,
        retries: Option<u32>,
        elapsed: Duration,
        backoff: &mut Backoff,
    ) -> Option<Duration> {
        self.answered = self.answered || !matches!(failure.error, ModelError::Unreachable { .. });
        let doubtful = self.leaves_server_in_doubt(failure);
        self.proven = self.proven || failure.in_reply || failure.error.proves_server_exists();
        if self.proven && matches!(failure.error, ModelError::Unreachable { .. }) {
            self.source.use_full_connect_timeout();
        }
        if !failure.is_transient()
            || self
                .retry_limit(failure)
                .zip(retries)
                .is_some_and(|(limit, retries)| retries >= limit)
        {
            return None;
        }
        if !doubtful {
            return Some(backoff.next_delay(failure.hint));
        }
        let longest = Duration::from_millis(self.retry.max_delay_ms);
        let own = || {
            PROBE_DELAYS
                .get(retries.unwrap_or_default() as usize)
                .map(|wait| (*wait).min(longest))
        };
        let wait = failure.hint.or_else(own)?;
        (elapsed + wait < PROBE_TIME_LIMIT).then_some(wait)
    }

    /// Returns the maximum number of retries after this failure, or `None` if there is no limit.
    fn retry_limit(&self, failure: &ExchangeFailure) -> Option<u32> {
        let limit = self.retry.max_retries();
        if self.leaves_server_in_doubt(failure) {
            Some(limit.map_or(MAX_PROBE_RETRIES, |limit| limit.min(MAX_PROBE_RETRIES)))
        } else {
            limit
        }
    }

    /// True if, after the failure, it is unclear whether a server of the declared API exists at the
    /// address.
    fn leaves_server_in_doubt(&self, failure: &ExchangeFailure) -> bool {
        // The full number of retries applies if the server said when to come back, or if it has
        // answered before and the user configured more retries than the default.
        let patient = self
            .retry
            .max_retries()
            .is_none_or(|limit| Some(limit) > RetryConfig::default().max_retries());
        let busy = failure.hint.is_some() || patient;
        let lost = failure.error.leaves_server_unproven() && !(patient && self.answered);
        let is_unproven = !self.proven && !self.retry.is_attended;
        is_unproven && (lost || failure.error.is_error_status() && !failure.in_reply && !busy)
    }

    /// Returns the error to report for the whole exchange, in which `error` is the error of the
    /// last attempt.
    fn final_error(&self, error: ModelError, retries: u32) -> ModelError {
        let error = if retries > 0 && (self.proven || error.is_error_status()) {
            ModelError::Exhausted {
                retries,
                last: Box::new(error),
            }
        } else {
            error
        };
        if self.proven {
            error
        } else {
            ModelError::NeverValid {
                last: Box::new(error),
            }
        }
    }
}

impl ReplySource {
    async fn exchange(
        &self,
        request: &Request,
        body: Bytes,
        decoder: Box<dyn Decode>,
        sink: Sink<'_>,
    ) -> Result<Reply, ExchangeFailure> {
        match self {
            Self::Server(transport) => transport.exchange(body, decoder, sink).await,
            Self::Record(replies) => Ok(replies(request)?),
        }
    }

    async fn list_models(&self) -> Result<Vec<String>, ExchangeFailure> {
        match self {
            Self::Server(transport) => transport.list_models().await,
            Self::Record(_) => Ok(Vec::new()),
        }
    }

    fn use_full_connect_timeout(&mut self) {
        match self {
            Self::Server(transport) => transport.use_full_connect_timeout(),
            Self::Record(_) => {}
        }
    }
}

fn serialize_encoding(encoding: &BodyEncoding) -> Arc<str> {
    // Plain names and numbers always serialize. An empty string would later be rejected as an
    // encoding.
    serde_json::to_string(encoding).unwrap_or_default().into()
}
