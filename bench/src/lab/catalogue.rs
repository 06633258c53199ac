//! Computes the cost of the default policy for every priced model of the built-in catalogue, with
//! the model's own prices, window, cache and tokenizer factor, and measures how much of the needed
//! text the model can see.
//!
//! A policy is fair if it keeps the text in view: no result is cleared unseen, fewer than 1 in 100
//! edits are blind, every required fact is kept and every request fits. Costs are with re-reads. A
//! policy that is not fair in one corpus does not count in the ones measured after it: haft's own
//! sessions read every text just before they edit it, so no edit can be blind there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_context::Policy;
use haft_lab::{RecordedConversation, Recording, Replay, Variant, replay_recording};
use haft_model::{Catalogue, O200k};
use haft_types::ModelSpec;

use crate::figures;

const DEFAULT: &str = "default";
const NEVER: &str = "default+compress:never";
const MASKING: &str = "cache-aware+prune:100k:0.1:3+compress:never+archive:off";
/// The policies that each model is tried with.
const POLICIES: [&str; 10] = [
    DEFAULT,
    NEVER,
    MASKING,
    "cache-aware+prune:0.8:0.3:6+compress:when-free",
    "cache-aware+prune:128k:0.3:6+compress:when-free",
    "cache-aware+prune:100k:0.1:6+compress:when-free",
    "cache-aware+prune:80k:0.1:6+compress:when-free",
    "cache-aware+prune:64k:0.1:6+compress:when-free",
    "cache-aware+prune:48k:0.1:3+compress:never",
    "cache-aware+prune:off+compress:never+archive:off",
];
/// The maximum cost of the default policy, relative to the cheapest fair policy.
const CHEAPEST_GOAL: f64 = 1.05;
/// The maximum share of blind edits.
const BLIND_GOAL: f64 = 0.01;
/// The minimum share of conversations in which compression costs no more than no compression.
/// Conversations without anything to compress do not count.
const COMPRESSION_GOAL: f64 = 0.95;
/// The minimum number of requests of a conversation that counts for the medians.
const LONG: usize = 60;

/// The policies that are not fair in a corpus measured before, each with the first of the models.
#[derive(Default)]
pub(super) struct UnfairPolicies(BTreeSet<(String, &'static str)>);

/// The figures of one conversation under one policy.
#[derive(Clone, Copy, Default)]
struct Figures {
    requests: usize,
    cost: f64,
    with_rereads: f64,
    regret: usize,
    edits: usize,
    blind: usize,
    unseen: usize,
    kept: usize,
    facts: usize,
    too_large: usize,
    tokens: u64,
}

impl Figures {
    fn from_replay(replay: &Replay, conversation: &RecordedConversation) -> Self {
        let kept = replay.final_coverage(&conversation.history);
        Self {
            requests: replay.requests.len(),
            cost: replay.total_cost().unwrap_or_default(),
            with_rereads: replay.cost_with_rereads().unwrap_or_default(),
            regret: replay.regret,
            edits: replay.edits,
            blind: replay.blind_edits,
            unseen: replay.unseen_results,
            kept: kept.kept,
            facts: kept.all,
            too_large: replay.too_large,
            tokens: replay.total_usage().all_input(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.cost += other.cost;
        self.with_rereads += other.with_rereads;
        self.regret += other.regret;
        self.edits += other.edits;
        self.blind += other.blind;
        self.unseen += other.unseen;
        self.kept += other.kept;
        self.facts += other.facts;
        self.too_large += other.too_large;
        self.tokens += other.tokens;
    }

    fn meets_all_limits(&self) -> bool {
        let sees = self.unseen == 0 && (self.blind as f64) < BLIND_GOAL * self.edits.max(1) as f64;
        sees && self.kept == self.facts && self.too_large == 0
    }
}

/// Groups the priced models by their window, prices, cache and tokenizer factor. A replay depends
/// on nothing else, so each group needs only one replay.
fn group_equal_models() -> anyhow::Result<Vec<(Vec<String>, ModelSpec)>> {
    let catalogue = Catalogue::with_built_in(BTreeMap::new(), BTreeMap::new())?;
    let mut groups: Vec<(Vec<String>, ModelSpec)> = Vec::new();
    for model in catalogue
        .list_models()
        .filter(|model| model.price.is_some())
    {
        let is_equal = |other: &ModelSpec| {
            let facts = |model: &ModelSpec| {
                (
                    model.context_window,
                    model.max_output_tokens,
                    model.price,
                    model.cache.clone(),
                )
            };
            facts(other) == facts(&model)
                && (other.tokenizer_factor - model.tokenizer_factor).abs() < 1e-9
        };
        let name = model.name.clone();
        match groups.iter_mut().find(|(_, other)| is_equal(other)) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], model)),
        }
    }
    Ok(groups)
}

/// Replays the conversations with every priced model, on `threads` threads, and prints a row for
/// each group of equal models. Adds the policies that are not fair to `unfair`.
pub(super) fn print_tables(
    corpus: &str,
    conversations: &[RecordedConversation],
    threads: usize,
    unfair: &mut UnfairPolicies,
) -> anyhow::Result<()> {
    let groups = group_equal_models()?;
    let priced: usize = groups.iter().map(|(names, _)| names.len()).sum();
    figures::print_line(&format!(
        "\n### Every priced model of the catalog ({priced}), {} conversations {corpus}\n",
        conversations.len()
    ));
    figures::print_line(
        "| model | default / cheapest fair policy | the cheapest fair policy | median, from 60 requests | masking / default | blind edits | unseen | regret in 100 requests | re-reads | must-keep | compression: dearer in | cost |",
    );
    figures::print_line(
        "| --- | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    );
    let (mut reached, mut sees) = (0, 0);
    for (names, model) in &groups {
        let parse = |name: &&str| Variant::parse(name, &Policy::default(), model);
        let variants = POLICIES.iter().map(parse).collect::<Result<Vec<_>, _>>();
        // A zone that is larger than the window is no policy for this model.
        let variants = match variants {
            Ok(variants) => variants,
            Err(error) => {
                figures::print_line(&format!("| {} | {error} |", names.join(", ")));
                continue;
            }
        };
        let figures_of = replay_all(conversations, &variants, model, threads);
        let all = |policy: usize| {
            let mut all = Figures::default();
            for one in &figures_of {
                all.add(&one[policy]);
            }
            all
        };
        let sums: Vec<Figures> = (0..variants.len()).map(all).collect();
        let default = sums[0];
        let hidden = sums
            .iter()
            .zip(POLICIES)
            .filter(|(sum, _)| !sum.meets_all_limits());
        let found = hidden.map(|(_, policy)| (names[0].clone(), policy));
        unfair.0.extend(found);
        let is_eligible = |policy: usize| !unfair.0.contains(&(names[0].clone(), POLICIES[policy]));
        let fair = sums
            .iter()
            .enumerate()
            .filter(|(policy, _)| is_eligible(*policy));
        let cheapest =
            fair.min_by(|(_, one), (_, other)| one.with_rereads.total_cmp(&other.with_rereads));
        let (best, name) =
            cheapest.map_or((default, "–"), |(index, sum)| (*sum, POLICIES[index]));
        let best_index = cheapest.map_or(0, |(index, _)| index);
        let ratio = default.with_rereads / best.with_rereads;
        let mut ratios: Vec<f64> = figures_of
            .iter()
            .filter(|one| one[0].requests >= LONG)
            .map(|one| one[0].with_rereads / one[best_index].with_rereads)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
        let touched: Vec<_> = figures_of
            .iter()
            .filter(|one| one[0].tokens != one[1].tokens)
            .collect();
        let dearer = touched
            .iter()
            .filter(|one| one[0].with_rereads > one[1].with_rereads * (1.0 + 1e-9))
            .count();
        reached += if ratio <= CHEAPEST_GOAL {
            names.len()
        } else {
            0
        };
        sees += if default.meets_all_limits() {
            names.len()
        } else {
            0
        };
        let too_often = dearer as f64 > (1.0 - COMPRESSION_GOAL) * touched.len() as f64;
        let (compression, masking) = (sums[0].with_rereads / sums[1].with_rereads, sums[2]);
        figures::print_line(&format!(
            "| {} | {ratio:.3} | `{name}` | {median:.3} | {:.3} | {} of {}, {:.2} % | {} | {:.2} | {:+.1} % | {} of {} | {dearer} of {}{}, {compression:.3} | {:.2} |",
            names.join(", "),
            masking.with_rereads / default.with_rereads,
            default.blind,
            default.edits,
            100.0 * default.blind as f64 / default.edits.max(1) as f64,
            default.unseen,
            100.0 * default.regret as f64 / default.requests.max(1) as f64,
            100.0 * (default.with_rereads / default.cost - 1.0),
            default.kept,
            default.facts,
            touched.len(),
            if too_often { " (missed)" } else { "" },
            default.with_rereads,
        ));
        for (policy, sum) in POLICIES.iter().zip(&sums) {
            figures::print_line(&format!(
                "  - `{policy}`: {:.3}, with re-reads {:.3}; blind {}, unseen {}, regret {}, kept {} of {}, too large {}",
                sum.cost / default.cost,
                sum.with_rereads / default.with_rereads,
                sum.blind,
                sum.unseen,
                sum.regret,
                sum.kept,
                sum.facts,
                sum.too_large
            ));
        }
    }
    let word = |reached: bool| if reached { "reached" } else { "MISSED" };
    figures::print_line(&format!(
        "\n- the default costs at most {CHEAPEST_GOAL:.2} times the cheapest fair policy for {reached} of {priced} models (at least all but 2): {}",
        word(reached + 2 >= priced)
    ));
    figures::print_line(&format!(
        "- the default is fair for {sees} of {priced} models: {}",
        word(sees == priced)
    ));
    Ok(())
}

/// Replays every conversation under every policy and returns the figures.
fn replay_all(
    conversations: &[RecordedConversation],
    variants: &[Variant],
    model: &ModelSpec,
    threads: usize,
) -> Vec<Vec<Figures>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = conversations.get(number) else {
                break;
            };
            let beside = |step: usize| one.surroundings(step);
            let recording = Recording {
                history: &one.history,
                steps: &one.steps,
                beside: &beside,
            };
            let replayed = variants.iter().map(|variant| {
                Figures::from_replay(
                    &replay_recording(&recording, variant, model, &O200k, |_, _| {
                        ControlFlow::Continue(())
                    }),
                    one,
                )
            });
            done.push((number, replayed.collect::<Vec<_>>()));
        }
        done
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, figures)| figures).collect()
}
