//! What a policy came to over several conversations.

use haft_types::{ModelSpec, Request, TokenCounter, Usage};

use crate::recorded::RecordedConversation;
use crate::replay::{Coverage, Recording, replay};
use crate::variant::Variant;

/// What a policy came to.
#[derive(Clone, Debug)]
pub struct PolicyOutcome {
    /// The policy, as it was named.
    pub name: String,
    /// Its requests, conversation after conversation.
    pub requests: Vec<RequestOutcome>,
    /// Requests that would not have fitted.
    pub too_large: usize,
    /// Requests that broke the cached prefix.
    pub breaks: usize,
    /// How often something was asked for again while its text was left out.
    pub regret: usize,
    /// How much of what must be kept the last requests held.
    pub kept: Coverage,
    /// How often older rounds or steps were archived.
    pub archives: usize,
    /// Requests that are, byte for byte, what was sent; absent where that is not known.
    pub same_bytes: Option<usize>,
}

/// One request of an outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestOutcome {
    /// Its tokens by class.
    pub usage: Usage,
    /// What its input costs in USD; absent without prices.
    pub cost: Option<f64>,
}

impl PolicyOutcome {
    /// A policy of which nothing is known yet.
    pub fn new(name: &str) -> Self {
        let requests = Vec::new();
        let kept = Coverage::default();
        Self {
            name: name.to_owned(),
            requests,
            too_large: 0,
            breaks: 0,
            regret: 0,
            kept,
            archives: 0,
            same_bytes: None,
        }
    }

    /// The conversations under a policy, one after another, each with a cache of its own.
    ///
    /// `sees` is shown every request with the body that was really sent in its place, where one is
    /// known, and tells whether the request would be sent as that very body.
    pub fn replayed(
        variant: &Variant,
        conversations: &[RecordedConversation],
        model: &ModelSpec,
        counter: &dyn TokenCounter,
        mut sees: impl FnMut(&Request, Option<&[u8]>) -> bool,
    ) -> Self {
        let mut outcome = Self::new(&variant.name);
        for one in conversations {
            let beside = |step: usize| one.surroundings(step);
            let recording = Recording {
                history: &one.history,
                steps: &one.steps,
                beside: &beside,
            };
            let mut same = 0;
            let replay = replay(&recording, variant, model, counter, |step, request| {
                same += usize::from(sees(request, one.bodies.get(step).map(Vec::as_slice)));
            });
            if !one.bodies.is_empty() {
                outcome.same_bytes = Some(outcome.same_bytes.unwrap_or(0) + same);
            }
            outcome.too_large += replay.too_large;
            outcome.breaks += replay.breaks();
            outcome.regret += replay.regret;
            outcome.archives += replay.archives;
            let kept = replay.coverage(&one.history);
            outcome.kept.kept += kept.kept;
            outcome.kept.all += kept.all;
            let requests = replay.requests.iter();
            outcome.requests.extend(requests.map(|one| RequestOutcome {
                usage: one.usage,
                cost: one.cost,
            }));
        }
        outcome
    }

    /// What the provider counted of the requests that were really sent. Compare it with replays of
    /// the same conversations only: [`RecordedConversation::is_counted`] tells which have
    /// counts.
    pub fn counted(name: &str, conversations: &[RecordedConversation], model: &ModelSpec) -> Self {
        let mut outcome = Self::new(name);
        let usages = conversations.iter().flat_map(|one| &one.counted);
        outcome.requests.extend(usages.map(|usage| RequestOutcome {
            usage: *usage,
            // What was answered is the same under every policy.
            cost: model.price.map(|price| {
                price
                    .cost(Usage {
                        output: 0,
                        reasoning: 0,
                        ..*usage
                    })
                    .total
            }),
        }));
        outcome
    }

    /// All input, by class.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.requests.iter().for_each(|one| sum += one.usage);
        sum
    }

    /// What all input costs in USD; absent without prices or requests.
    pub fn cost(&self) -> Option<f64> {
        self.requests
            .iter()
            .map(|one| one.cost)
            .sum::<Option<f64>>()
            .filter(|_| !self.requests.is_empty())
    }

    /// The tokens of the largest request.
    pub fn peak(&self) -> u64 {
        self.requests
            .iter()
            .map(|one| one.usage.all_input())
            .max()
            .unwrap_or(0)
    }
}
