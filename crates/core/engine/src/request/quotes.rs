//! Quotes the cost of an action before it is carried out: switching the model, waiting too long,
//! archiving, changing the system message.

use haft_context::{CompactionPlan, ContextChange, PrefixCache, Quote, Sent};
use haft_store::RequestOutline;
use haft_types::{ContentHash, Layer, MessageId, ModelSpec, Request, SentSegment};

use crate::error::Notice;
use crate::session::Session;

/// The number of recent requests that the provider's cache may still hold.
const MAX_CACHED_REQUESTS: usize = 64;

impl Session {
    /// Quotes the cost of a switch to the model `to`, whose cache contains nothing of this
    /// conversation. Returns `None` before the first request.
    pub fn quote_model_switch(&self, to: &ModelSpec) -> Option<Quote> {
        Some(self.expected_prefix_cache()?.quote_model_switch(to))
    }

    /// Quotes the cost of a change of the system message. Returns `None` before the first request.
    pub fn quote_system_change(&self) -> Option<Quote> {
        Some(self.expected_prefix_cache()?.quote_change(
            ContextChange::From(0),
            self.transcript.idle_time().unwrap_or_default(),
            &self.config.model,
        ))
    }

    /// Quotes the cost of a cache that has expired since the last request. Returns `None` if the
    /// cache should still be valid.
    pub fn quote_expired_cache(&self) -> Option<Quote> {
        self.expected_prefix_cache()?
            .quote_pause(self.transcript.idle_time()?, &self.config.model)
    }

    /// Quotes the cost of archiving the rounds of `plan`, without the cost of the summary.
    pub(crate) fn quote_archive(&self, plan: &CompactionPlan) -> Option<Quote> {
        let segments = &self.sent.last()?.segments;
        let is_history = |one: &SentSegment| !matches!(one.layer, Layer::System | Layer::Documents);
        let first = segments.iter().position(is_history)?;
        let end = segments
            .iter()
            .position(|one| one.message == plan.first_kept)?;
        let idle = self.transcript.idle_time().unwrap_or_default();
        let quote = self.expected_prefix_cache()?.quote_change(
            ContextChange::Without { first, end },
            idle,
            &self.config.model,
        );
        (quote.tokens > 0).then_some(quote)
    }

    /// Adds a notice if a resumed conversation must be written to the cache again because the model
    /// has changed or the cache has expired.
    pub(crate) fn add_resumption_notice(&mut self) {
        let model = self.config.model.full_name();
        let message = match self.sent.last().map(|sent| sent.model.clone()) {
            Some(before) if before != model => self.quote_model_switch(&self.config.model).map(|quote| {
                format!("`{model}` has seen nothing of this conversation, which was with `{before}`: {quote} to write")
            }),
            Some(_) if !self.is_cache_cold() => None,
            Some(_) => self.quote_expired_cache().map(|quote| format!("the cache is cold: {quote} to write again")),
            None => None,
        };
        self.config.notices.extend(message.map(|message| Notice {
            code: "quote",
            message,
            failed: false,
        }));
    }

    /// True if the last request was sent to another model than the next one.
    pub(crate) fn has_changed_model(&self) -> bool {
        let model = self.config.model.full_name();
        self.sent.last().is_some_and(|sent| sent.model != model)
    }

    /// Returns the expected content of the provider's cache after the last request.
    fn expected_prefix_cache(&self) -> Option<PrefixCache> {
        let blocks = self.transcript.block_counts();
        let of = |message: MessageId| blocks.get(&message).copied().unwrap_or(1);
        self.sent
            .expected_cache(&self.config.model, self.prompt.tool_set().tokens, of)
    }
}

/// Converts a logged request to the form that the context engine compares, and returns the number
/// of tokens of its tools. The policy and the edits are not logged.
pub fn sent_from_outline(outline: &RequestOutline) -> (Sent, u32) {
    let sent = Sent {
        model: outline.summary.model.clone(),
        tools: outline.tools,
        policy: ContentHash::from_content(b""),
        edits: None,
        segments: outline.segments.to_vec(),
    };
    let segments: u64 = sent
        .segments
        .iter()
        .map(|segment| u64::from(segment.tokens))
        .sum();
    let tools = outline
        .summary
        .tokens
        .saturating_sub(segments + Request::FRAME_TOKENS);
    (sent, u32::try_from(tools).unwrap_or(u32::MAX))
}

/// Returns the expected content of the model's cache after the logged requests of a conversation.
/// `blocks` returns the number of content blocks of a message.
pub fn prefix_cache_from_outlines(
    outlines: &[RequestOutline],
    model: &ModelSpec,
    blocks: impl Fn(MessageId) -> usize,
) -> PrefixCache {
    let name = model.full_name();
    let mut cache = PrefixCache::new(model);
    let mut before = None;
    let recent = &outlines[outlines.len().saturating_sub(MAX_CACHED_REQUESTS)..];
    for outline in recent
        .iter()
        .filter(|outline| outline.summary.model == name)
    {
        let at = outline.summary.sent_at;
        let after = before
            .replace(at)
            .and_then(|before| at.duration_since(before).try_into().ok());
        let (sent, tools) = sent_from_outline(outline);
        cache.record_request(after.unwrap_or_default(), &sent, tools, |segment| {
            blocks(segment.message)
        });
    }
    cache
}
