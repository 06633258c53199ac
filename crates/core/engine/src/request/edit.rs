//! The context editor: lists what is sent, tells what an edit would cost, and keeps edits with the
//! conversation.
//!
//! Invariant: an edit is stored before it applies, and stored messages are never touched.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Assembly, CompactionPlan, ContextEdit, EditError, EditReach, EditTargets, Edited, Edits,
    PrefixCache, Quote, SummaryWish, accept, check_edit, choose, fallback, pieces,
};
use haft_store::StoreError;
use haft_types::{Entry, Layer, Message, MessageId, Role, ShortId, Timestamp, Usage};
use tokio_util::sync::CancellationToken;

use super::quoted::prefix_cache_of;
use crate::error::EditContextError;
use crate::session::Session;
use crate::turn::turn_io::EventSink;

/// What the cache does with a message in the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Read.
    Cached,
    /// Written.
    Written,
    /// Neither.
    Not,
}

/// A message as the editor lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextLine {
    /// By which it is edited.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls or whose result it is.
    pub tools: Vec<String>,
    /// Its layer in the next request; absent when it is not sent.
    pub layer: Option<Layer>,
    /// Its estimated tokens, as it is sent, or stored where it is not.
    pub tokens: u32,
    /// When it was made.
    pub at: Timestamp,
    /// What the cache does with it in the next request.
    pub cache: Option<CacheState>,
    /// What became of it by edits.
    pub edited: Option<Edited>,
    /// What it would cost to leave it out now, its block whole; absent when it is not sent or has
    /// to be.
    pub removal: Option<Quote>,
    /// The first message of its block.
    pub block: ShortId,
    /// How it begins.
    pub words: String,
}

/// What came of an edit, or would.
#[derive(Clone, Debug, PartialEq)]
pub struct EditNews {
    /// What the next request costs for it.
    pub quote: Quote,
    /// How many edits are in force afterwards.
    pub in_force: usize,
}

/// A text that can stand for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSummary {
    /// The text.
    pub text: String,
    /// Why no model's text is in it, where that is so.
    pub without_model: Option<String>,
}

impl Session {
    /// The edits of this conversation.
    pub fn edits(&self) -> &Edits {
        self.sent.edits()
    }

    /// The messages that these ids and ranges name.
    pub fn choose_messages(
        &self,
        words: &[String],
        reach: EditReach,
    ) -> Result<EditTargets, EditError> {
        choose(
            words,
            reach,
            self.transcript.history(),
            self.services.shared.counter.as_ref(),
        )
    }

    /// Every message of the conversation, and what would become of it in the next request.
    pub async fn context_lines(&mut self) -> Result<Vec<ContextLine>, EditContextError> {
        drop(self.refresh_prompt()?);
        let (cache, idle) = self.known_to_cache().await?;
        let Assembly { request, .. } =
            self.assembly_of(&self.history_with_input(), self.sent.edited())?;
        let sent = pieces(&request, 1.0);
        let states = states(
            cache.usage(idle, &sent),
            request.segments.iter().map(|one| one.entry.tokens),
            &sent,
        );
        let places: HashMap<_, _> = request
            .segments
            .iter()
            .enumerate()
            .map(|(at, one)| (one.entry.message.message_id, at))
            .collect();
        let mut lines = Vec::with_capacity(self.transcript.history().len());
        for entry in self.transcript.history() {
            let message = &entry.message;
            let id = message.message_id;
            let place = places.get(&id).copied();
            let segment = place.map(|at| &request.segments[at]);
            let block = self
                .choose_messages(&[id.to_string()], EditReach::Block)
                .map(|chosen| chosen.ids)
                .ok();
            let ends = block
                .as_ref()
                .and_then(|ids| Some((places.get(ids.first()?)?, places.get(ids.last()?)?)));
            let free =
                segment.is_some_and(|one| one.layer == Layer::History && one.owner != "summary");
            let removal =
                ends.filter(|(first, last)| free && first <= last)
                    .map(|(first, last)| {
                        cache.removal(idle, &sent, *first..*last + 1, &self.config.model)
                    });
            let tools = message
                .tool_calls()
                .map(|call| call.meant().into_owned().name);
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
                edited: self.sent.edited().of(id),
                removal,
                block: block
                    .and_then(|ids| ids.first().copied())
                    .unwrap_or(id)
                    .short(),
                words: first_words(message),
            });
        }
        Ok(lines)
    }

    /// What an edit would cost with the next request. Nothing is changed.
    pub async fn quote_edit(&mut self, edit: &ContextEdit) -> Result<EditNews, EditContextError> {
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
        let (cache, idle) = self.known_to_cache().await?;
        let as_it_is = self.assembly_of(&history, self.sent.edited())?;
        let edited = self.assembly_of(&history, &after.state())?;
        let before = pieces(&as_it_is.request, 1.0);
        let now = pieces(&edited.request, 1.0);
        let quote = cache.compare(idle, &before, &now, &self.config.model);
        Ok(EditNews {
            quote,
            in_force: after.in_force().len(),
        })
    }

    /// Makes an edit: from the next request on it applies.
    pub async fn edit_context(
        &mut self,
        mut edit: ContextEdit,
    ) -> Result<EditNews, EditContextError> {
        if let ContextEdit::Summarise { text, .. } = &mut edit {
            *text = self.config.safety.masker.mask(text).into_owned();
        }
        let news = self.quote_edit(&edit).await?;
        self.sent
            .edit(edit, self.services.shared.store.as_ref(), &self.transcript)
            .await?;
        Ok(news)
    }

    /// A text to stand for these messages: a model's, if it passes the gate, else what must be kept
    /// of them, word for word.
    pub async fn summary_of(
        &mut self,
        ids: &[MessageId],
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> Result<RangeSummary, EditContextError> {
        let counter = Arc::clone(&self.services.shared.counter);
        let plan = self.plan_of(ids)?;
        let ledger = self.ledger_of(&plan);
        let mut io = self.turn_io(sink, cancel);
        let session = self.transcript.history().to_vec();
        let wish = SummaryWish {
            session: &session,
            ..SummaryWish::default()
        };
        let made = self.summarise(&plan, wish, &mut io).await;
        let accepted = match made {
            Ok(made) => {
                io.emit(made.usage_event());
                made.written()
                    .and_then(|text| accept(&text, &plan, &session, &ledger, counter.as_ref()))
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
            Err(why) => self.plain_summary(&plan, why),
        }
    }

    /// The same without asking a model.
    pub fn summary_without_model(
        &self,
        ids: &[MessageId],
    ) -> Result<RangeSummary, EditContextError> {
        let plan = self.plan_of(ids)?;
        self.plain_summary(&plan, "no model was asked".to_owned())
    }

    fn plain_summary(
        &self,
        plan: &CompactionPlan,
        why: String,
    ) -> Result<RangeSummary, EditContextError> {
        let text = fallback(
            plan,
            &self.ledger_of(plan),
            self.services.shared.counter.as_ref(),
        );
        let text = text.ok_or(EditContextError::NotWorthIt)?;
        Ok(RangeSummary {
            text,
            without_model: Some(why),
        })
    }

    /// These messages as an archive of their own.
    fn plan_of(&self, ids: &[MessageId]) -> Result<CompactionPlan, EditContextError> {
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
            return Err(EditError::NoWords.into());
        };
        let rounds = chosen
            .iter()
            .filter(|entry| entry.message.opens_round())
            .count() as u32;
        let messages = self
            .sent
            .edited()
            .seen(&chosen, self.services.shared.counter.as_ref());
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

    /// What the cache should hold, and how long ago it was asked last.
    async fn known_to_cache(&self) -> Result<(PrefixCache, Duration), StoreError> {
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
        let sizes = self.transcript.blocks();
        let blocks = |id: MessageId| sizes.get(&id).copied().unwrap_or(1);
        Ok((prefix_cache_of(&outlines, &self.config.model, blocks), idle))
    }

    /// The messages the next request is made from, with a stand-in for input that is still to be
    /// given.
    pub(crate) fn history_with_input(&self) -> Cow<'_, [Arc<Entry>]> {
        self.sent.history_with_input(
            self.transcript.history(),
            self.services.shared.counter.as_ref(),
        )
    }
}

/// What the cache does with each segment, from what it does with all of them. The tools stand
/// before the first.
fn states(
    usage: Usage,
    tokens: impl Iterator<Item = u32>,
    sent: &[haft_context::CachePiece],
) -> Vec<CacheState> {
    let counted: u64 = sent.iter().map(|piece| piece.tokens).sum();
    let scale = usage.all_input() as f64 / counted.max(1) as f64;
    let mut end = sent.first().map_or(0, |tools| tools.tokens);
    let mut state = |tokens: u32| {
        // Totals are rounded: a message belongs where its middle lies.
        let middle = (end as f64 + f64::from(tokens) / 2.0) * scale;
        end += u64::from(tokens);
        if middle < usage.cached_input as f64 {
            CacheState::Cached
        } else if middle < (usage.cached_input + usage.cache_write) as f64 {
            CacheState::Written
        } else {
            CacheState::Not
        }
    };
    tokens.map(&mut state).collect()
}

fn first_words(message: &Message) -> String {
    const MOST_MESSAGES: usize = 80;
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
    let words: Vec<_> = text.split_whitespace().take(MOST_MESSAGES).collect();
    words.join(" ").chars().take(MOST_MESSAGES).collect()
}
