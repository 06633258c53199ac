//! Computes the result of a policy over several conversations.

use std::ops::ControlFlow;

use haft_types::{ModelSpec, Request, TokenCounter, Usage};

use crate::recorded::RecordedConversation;
use crate::replay::{Coverage, Recording, replay_recording};
use crate::variant::Variant;

/// The results of replaying conversations under one policy, added up over all conversations.
#[derive(Clone, Debug)]
pub struct PolicyOutcome {
    /// The name of the policy as the user wrote it.
    pub name: String,
    /// The requests of all conversations, in order.
    pub requests: Vec<RequestOutcome>,
    /// The number of requests that did not fit the model's context window.
    pub too_large: usize,
    /// The number of requests that did not extend the previous request, so that part of the cached
    /// prefix was lost; `None` if the sent requests are unknown.
    pub breaks: Option<usize>,
    /// The number of tool calls that requested content again because a request had left it out.
    pub regret: usize,
    /// The number of recorded tool calls that replace text.
    pub edits: usize,
    /// The number of edits that replace text which occurs only in messages left out of the request.
    pub blind_edits: usize,
    /// The number of tool results that were left out or shortened before the model could answer
    /// them.
    pub unseen_results: usize,
    /// The additional cost of sending omitted text again, in USD; `None` if the model has no
    /// prices.
    pub reread_cost: Option<f64>,
    /// The number of must-keep facts in the last request of each conversation, added up.
    pub kept: Coverage,
    /// The number of times that older rounds or steps were archived.
    pub archives: usize,
    /// The number of replayed requests that equal the originally sent requests byte for byte;
    /// `None` if the sent requests are unknown.
    pub same_bytes: Option<usize>,
}

/// The tokens and the cost of one replayed or sent request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestOutcome {
    /// The token counts by class, such as tokens read from the cache or written to it.
    pub usage: Usage,
    /// The cost of the input in USD; `None` if the model has no prices.
    pub cost: Option<f64>,
}

impl PolicyOutcome {
    /// Creates an outcome without requests. `name` is the name of the policy.
    pub fn new(name: &str) -> Self {
        let requests = Vec::new();
        let kept = Coverage::default();
        Self {
            name: name.to_owned(),
            requests,
            too_large: 0,
            breaks: None,
            regret: 0,
            edits: 0,
            blind_edits: 0,
            unseen_results: 0,
            reread_cost: None,
            kept,
            archives: 0,
            same_bytes: None,
        }
    }

    /// Replays the conversations one after another, each with its own cache.
    ///
    /// If the body that was originally sent is known, `matches_body` is called with the replayed
    /// request and that body. It returns true if the replayed request would be sent as exactly that
    /// body. `advance` is called for each request; if it returns false, the replay stops, and
    /// `None` is returned.
    pub fn from_replays(
        variant: &Variant,
        conversations: &[RecordedConversation],
        model: &ModelSpec,
        counter: &dyn TokenCounter,
        mut matches_body: impl FnMut(&Request, Option<&[u8]>) -> bool,
        advance: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let mut outcome = Self::new(&variant.name);
        for one in conversations {
            let beside = |step: usize| one.surroundings(step);
            let recording = Recording {
                history: &one.history,
                steps: &one.steps,
                beside: &beside,
            };
            let mut same = 0;
            let mut is_stopped = false;
            let replay = replay_recording(&recording, variant, model, counter, |step, request| {
                same += usize::from(matches_body(
                    request,
                    one.bodies.get(step).map(Vec::as_slice),
                ));
                is_stopped = !advance();
                if is_stopped {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            if is_stopped {
                return None;
            }
            if !one.bodies.is_empty() {
                outcome.same_bytes = Some(outcome.same_bytes.unwrap_or(0) + same);
            }
            outcome.too_large += replay.too_large;
            *outcome.breaks.get_or_insert(0) += replay.count_breaks();
            outcome.regret += replay.regret;
            outcome.edits += replay.edits;
            outcome.blind_edits += replay.blind_edits;
            outcome.unseen_results += replay.unseen_results;
            if let Some(cost) = replay.reread_cost {
                *outcome.reread_cost.get_or_insert(0.0) += cost;
            }
            outcome.archives += replay.archives;
            let kept = replay.final_coverage(&one.history);
            outcome.kept.kept += kept.kept;
            outcome.kept.all += kept.all;
            let requests = replay.requests.iter();
            outcome.requests.extend(requests.map(|one| RequestOutcome {
                usage: one.usage,
                cost: one.cost,
            }));
        }
        Some(outcome)
    }

    /// Creates an outcome from the provider's token counts for the requests that were actually
    /// sent. Compare it only with replays of conversations for which
    /// [`RecordedConversation::has_enough_counts`] is true.
    pub fn from_provider_counts(
        name: &str,
        conversations: &[RecordedConversation],
        model: &ModelSpec,
    ) -> Self {
        let mut outcome = Self::new(name);
        outcome.breaks = conversations.iter().map(|one| one.breaks).sum();
        let usages = conversations.iter().flat_map(|one| &one.counted);
        outcome.requests.extend(usages.map(|usage| RequestOutcome {
            usage: *usage,
            // The output is equal under every policy, so its cost is left out.
            cost: model.price.map(|price| {
                price
                    .request_cost(Usage {
                        output: 0,
                        reasoning: 0,
                        ..*usage
                    })
                    .total
            }),
        }));
        outcome
    }

    /// Returns the input tokens of all requests, by class.
    pub fn total_usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests.iter().for_each(|one| sum += one.usage);
        sum
    }

    /// Returns the cost of all input in USD, or `None` if there are no prices or no requests.
    pub fn total_cost(&self) -> Option<f64> {
        self.requests
            .iter()
            .map(|one| one.cost)
            .sum::<Option<f64>>()
            .filter(|_| !self.requests.is_empty())
    }

    /// Returns the cost of all input in USD, including the cost of sending omitted text again.
    /// Returns `None` if the model has no prices, or if the outcome describes requests that were
    /// actually sent.
    pub fn cost_with_rereads(&self) -> Option<f64> {
        Some(self.total_cost()? + self.reread_cost?)
    }

    /// Returns the input tokens of the largest request.
    pub fn peak_tokens(&self) -> u64 {
        self.requests
            .iter()
            .map(|one| one.usage.all_input())
            .max()
            .unwrap_or(0)
    }
}
