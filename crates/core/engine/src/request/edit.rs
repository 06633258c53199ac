//! The context editor: lists the messages of a conversation, quotes the cost of an edit, and stores
//! edits with the conversation.
//!
//! Invariant: an edit is stored before it takes effect, and stored messages are never changed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Assembly, CompactionPlan, ContextEdit, EditError, EditReach, EditTargets, Edited, Edits,
    PrefixCache, Quote, SummaryWish, accept_summary, block_ends, build_fallback_summary,
    check_edit, request_pieces, select_messages,
};
use haft_store::StoreError;
use haft_types::{Entry, Layer, Message, MessageId, Role, ShortId, Timestamp, Usage};
use tokio_util::sync::CancellationToken;

use super::quotes::prefix_cache_from_outlines;
use crate::error::EditContextError;
use crate::session::Session;
use crate::turn::turn_io::EventSink;

/// The expected state of a message in the provider's cache at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// The message will be read from the cache.
    Cached,
    /// The message will be written to the cache.
    Written,
    /// The message will be neither read from the cache nor written to it.
    Uncached,
}

/// A message, as listed by the context editor.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextLine {
    /// The id by which edits refer to the message.
    pub id: MessageId,
    pub role: Role,
    /// The tools that the message calls, or the tool whose result it is.
    pub tools: Vec<String>,
    /// The layer of the next request that contains the message; `None` if the message is not sent.
    pub layer: Option<Layer>,
    /// The estimated number of tokens of the message as sent, or as stored if the message is not
    /// sent.
    pub tokens: u32,
    /// The time when the message was created.
    pub at: Timestamp,
    /// The state of the message in the provider's cache at the next request; `None` if the message
    /// is not sent.
    pub cache: Option<CacheState>,
    /// The effect of edits on the message; `None` if no edit affects it.
    pub edited: Option<Edited>,
    /// The cost of removing the message now, together with its whole block; `None` if the message
    /// is not sent or cannot be removed.
    pub removal: Option<Quote>,
    /// The id of the first message in the block of messages that can be removed only together.
    pub block: ShortId,
    /// The beginning of the message's text.
    pub excerpt: String,
}

/// Some of a conversation's messages.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextPage {
    pub lines: Vec<ContextLine>,
    /// The number of messages in the conversation.
    pub all: usize,
}

/// The effect of an edit that was made or quoted.
#[derive(Clone, Debug, PartialEq)]
pub struct EditEffect {
    /// The cost of the edit in the next request.
    pub quote: Quote,
    /// The number of edits that are in effect, including the new one.
    pub in_force: usize,
}

/// A text that can replace a range of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSummary {
    pub text: String,
    /// The reason why the text was created without a model; `None` if a model wrote it.
    pub without_model: Option<String>,
}

impl Session {
    /// Returns the edits of this conversation.
    pub fn edits(&self) -> &Edits {
        self.sent.edits()
    }

    /// Returns the messages that the ids and ranges in `words` refer to.
    pub fn resolve_messages(
        &self,
        words: &[String],
        reach: EditReach,
    ) -> Result<EditTargets, EditError> {
        select_messages(
            words,
            reach,
            self.transcript.history(),
            self.services.shared.counter.as_ref(),
        )
    }

    /// Lists every message of the conversation with its effect on the next request.
    pub async fn list_context_lines(&mut self) -> Result<Vec<ContextLine>, EditContextError> {
        Ok(self.list_context_page(0, usize::MAX).await?.lines)
    }

    /// Lists at most `count` messages of the conversation, starting at position `from`, with their
    /// effect on the next request. The cost grows with `count` and with the length of the
    /// conversation.
    pub async fn list_context_page(
        &mut self,
        from: usize,
        count: usize,
    ) -> Result<ContextPage, EditContextError> {
        drop(self.refresh_prompt()?);
        let (cache, idle) = self.load_prefix_cache().await?;
        let Assembly { request, .. } =
            self.assemble_request(&self.history_with_input(), self.sent.edit_state())?;
        let sent = request_pieces(&request, 1.0);
        let states = estimate_cache_states(
            cache.predict_usage(idle, &sent),
            request.segments.iter().map(|one| one.entry.tokens),
            &sent,
        );
        let places: HashMap<_, _> = request
            .segments
            .iter()
            .enumerate()
            .map(|(at, one)| (one.entry.message.message_id, at))
            .collect();
        let blocks = block_ends(
            self.transcript.history(),
            self.services.shared.counter.as_ref(),
        );
        let quotes = cache.removal_quotes(idle, &sent, &self.config.model);
        let all = self.transcript.history().len();
        let shown = self.transcript.history().iter().skip(from).take(count);
        let mut lines = Vec::with_capacity(count.min(all));
        for entry in shown {
            let message = &entry.message;
            let id = message.message_id;
            let place = places.get(&id).copied();
            let segment = place.map(|at| &request.segments[at]);
            let block = blocks.get(&id);
            let ends =
                block.and_then(|(first, last)| Some((places.get(first)?, places.get(last)?)));
            let free =
                segment.is_some_and(|one| one.layer == Layer::History && one.owner != "summary");
            let removal = ends
                .filter(|(first, last)| free && first <= last)
                .map(|(first, last)| quotes.quote(*first..*last + 1));
            let tools = message
                .tool_calls()
                .map(|call| call.resolve_indirect().into_owned().name);
            lines.push(ContextLine {
                id,
                role: message.role,
                tools: tools
                    .chain(message.tool_results().map(|result| result.name.clone()))
                    .collect(),
                layer: segment.map(|segment| segment.layer),
                tokens: segment.map_or(entry.tokens, |segment| segment.entry.tokens),
                at: message.created_at,
                cache: place.map(|at| states[at]),
                edited: self.sent.edit_state().get(id),
                removal,
                block: block.map_or(id, |(first, _)| *first).short_id(),
                excerpt: first_words(message),
            });
        }
        Ok(ContextPage { lines, all })
    }

    /// Returns the cost of an edit in the next request. Changes nothing.
    pub async fn quote_edit(&mut self, edit: &ContextEdit) -> Result<EditEffect, EditContextError> {
        drop(self.refresh_prompt()?);
        let history = self.history_with_input();
        check_edit(
            edit,
            self.sent.edits(),
            &history,
            self.services.shared.counter.as_ref(),
        )?;
        let mut after = self.sent.edits().clone();
        after.push(edit.clone());
        let (cache, idle) = self.load_prefix_cache().await?;
        let as_it_is = self.assemble_request(&history, self.sent.edit_state())?;
        let edited = self.assemble_request(&history, &after.combined_state())?;
        let before = request_pieces(&as_it_is.request, 1.0);
        let now = request_pieces(&edited.request, 1.0);
        let quote = cache.quote_replacement(idle, &before, &now, &self.config.model);
        Ok(EditEffect {
            quote,
            in_force: after.edits_in_force().len(),
        })
    }

    /// Stores an edit, which takes effect with the next request.
    pub async fn edit_context(
        &mut self,
        mut edit: ContextEdit,
    ) -> Result<EditEffect, EditContextError> {
        if let ContextEdit::Summarise { text, .. } = &mut edit {
            *text = self.config.safety.masker.mask(text).into_owned();
        }
        let news = self.quote_edit(&edit).await?;
        self.sent
            .add_edit(edit, self.services.shared.store.as_ref(), &self.transcript)
            .await?;
        Ok(news)
    }

    /// Returns a text that can replace messages: a model's summary if it passes the check, else the
    /// content that must be kept, word for word.
    pub async fn summarize_messages(
        &mut self,
        ids: &[MessageId],
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> Result<RangeSummary, EditContextError> {
        let counter = Arc::clone(&self.services.shared.counter);
        let plan = self.plan_archive(ids)?;
        let ledger = self.build_ledger(&plan);
        let mut io = self.turn_io(sink, cancel);
        let session = self.transcript.history().to_vec();
        let wish = SummaryWish {
            session: &session,
            ..SummaryWish::default()
        };
        let made = self.request_summary(&plan, wish, &mut io).await;
        let accepted = match made {
            Ok(made) => {
                io.emit(made.usage_event());
                made.complete_text()
                    .and_then(|text| {
                        accept_summary(&text, &plan, &session, &ledger, counter.as_ref())
                    })
                    .map_err(|why| why.to_string())
            }
            Err(why) => Err(why),
        };
        self.seq = io.seq();
        match accepted {
            Ok(text) => Ok(RangeSummary {
                text,
                without_model: None,
            }),
            Err(why) => self.fallback_summary(&plan, why),
        }
    }

    /// Like [`Self::summarize_messages`], but sends no request to a model.
    pub fn summarize_without_model(
        &self,
        ids: &[MessageId],
    ) -> Result<RangeSummary, EditContextError> {
        let plan = self.plan_archive(ids)?;
        self.fallback_summary(&plan, "no model was asked".to_owned())
    }

    fn fallback_summary(
        &self,
        plan: &CompactionPlan,
        why: String,
    ) -> Result<RangeSummary, EditContextError> {
        let text = build_fallback_summary(
            plan,
            &self.build_ledger(plan),
            self.services.shared.counter.as_ref(),
        );
        let text = text.ok_or(EditContextError::NotWorthIt)?;
        Ok(RangeSummary {
            text,
            without_model: Some(why),
        })
    }

    /// Returns the plan that archives exactly the messages `ids`.
    fn plan_archive(&self, ids: &[MessageId]) -> Result<CompactionPlan, EditContextError> {
        let chosen = self
            .transcript
            .history()
            .iter()
            .filter(|entry| ids.contains(&entry.message.message_id))
            .cloned();
        let chosen: Vec<_> = chosen.collect();
        let times = || chosen.iter().map(|entry| entry.message.created_at);
        let (Some(from), Some(to), Some(first)) = (times().min(), times().max(), ids.first())
        else {
            return Err(EditError::EmptySummary.into());
        };
        let rounds = chosen
            .iter()
            .filter(|entry| entry.message.opens_round())
            .count() as u32;
        let messages = self
            .sent
            .edit_state()
            .visible_entries(&chosen, self.services.shared.counter.as_ref());
        let steps = messages
            .iter()
            .filter(|entry| entry.message.role == Role::Assistant)
            .count() as u32;
        Ok(CompactionPlan {
            messages,
            rounds,
            steps,
            first_kept: *first,
            users_from: None,
            from,
            to,
        })
    }

    /// Returns the expected content of the provider's cache, and the time since the last request.
    async fn load_prefix_cache(&self) -> Result<(PrefixCache, Duration), StoreError> {
        let outlines = self
            .services
            .shared
            .store
            .request_outlines(self.transcript.id())
            .await?;
        let idle = outlines.last().map(|outline| {
            self.services
                .shared
                .clock
                .now()
                .duration_since(outline.summary.sent_at)
        });
        let idle = idle
            .and_then(|idle| idle.try_into().ok())
            .unwrap_or_default();
        let sizes = self.transcript.block_counts();
        let blocks = |id: MessageId| sizes.get(&id).copied().unwrap_or(1);
        Ok((
            prefix_cache_from_outlines(&outlines, &self.config.model, blocks),
            idle,
        ))
    }

    /// Returns the messages for the next request, with a placeholder if the user's input is still
    /// missing.
    pub(crate) fn history_with_input(&self) -> Cow<'_, [Arc<Entry>]> {
        self.sent.history_with_input(
            self.transcript.history(),
            self.services.shared.counter.as_ref(),
        )
    }
}

/// Determines the cache state of each segment from the expected usage of the whole request. The
/// tools precede the first segment.
fn estimate_cache_states(
    usage: Usage,
    tokens: impl Iterator<Item = u32>,
    sent: &[haft_context::CachePiece],
) -> Vec<CacheState> {
    let counted: u64 = sent.iter().map(|piece| piece.tokens).sum();
    let scale = usage.all_input() as f64 / counted.max(1) as f64;
    let mut end = sent.first().map_or(0, |tools| tools.tokens);
    let mut state = |tokens: u32| {
        // Totals are rounded, so a message is classified by its middle.
        let middle = (end as f64 + f64::from(tokens) / 2.0) * scale;
        end += u64::from(tokens);
        if middle < usage.cached_input as f64 {
            CacheState::Cached
        } else if middle < (usage.cached_input + usage.cache_write) as f64 {
            CacheState::Written
        } else {
            CacheState::Uncached
        }
    };
    tokens.map(&mut state).collect()
}

fn first_words(message: &Message) -> String {
    const MAX_EXCERPT_CHARS: usize = 80;
    let mut text = message.joined_text();
    text.extend(
        message
            .tool_results()
            .map(|result| format!(" {}", result.envelope.text)),
    );
    text.extend(
        message
            .tool_calls()
            .map(|call| format!(" {} {}", call.name, call.arguments)),
    );
    let words: Vec<_> = text.split_whitespace().take(MAX_EXCERPT_CHARS).collect();
    words.join(" ").chars().take(MAX_EXCERPT_CHARS).collect()
}
