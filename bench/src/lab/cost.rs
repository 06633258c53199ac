//! Computes the cost of each policy on recorded conversations, for three price tables.
//!
//! Conversations are read, replayed and priced as by `haft context replay --model assumed`: with
//! reminders of 1,000 tokens that change in every twentieth request. Only input is priced, in
//! multiples of the input price. Prices influence the decisions of a policy, so every policy is
//! replayed with every table.

use std::collections::BTreeSet;

use haft_context::Policy;
use haft_imports::{ImportFormat, SourceText, read_conversations};
use haft_lab::{
    Coverage, ImaginedReminders, PRICE_TABLES, RecordedConversation, Recording, Variant,
    assumed_model, replay,
};
use haft_model::O200k;
use haft_types::{ModelSpec, Timestamp, Usage};

use crate::figures;

/// The reminders of every conversation.
const REMINDERS: ImaginedReminders = ImaginedReminders {
    tokens: 1_000,
    changes: 0.05,
};
/// Maximum cost of reminders, relative to the cost without them.
const REMINDERS_GOAL: f64 = 1.10;
/// Maximum cost of the default policy, relative to the cheapest policy with at most twice its
/// regret.
const CHEAPEST_GOAL: f64 = 1.05;
/// Minimum share of conversations in which compression costs no more than no compression.
const COMPRESSION_GOAL: f64 = 0.95;
/// Maximum number of messages after a live reminder.
const DISTANCE: usize = 24;
/// Minimum requests of a long conversation.
const LONG: usize = 20;

const DEFAULT: &str = "default";
const NONE: &str = "none";
const NEVER: &str = "default+compress:never";
/// The previous default policy.
const FORMER: &str = "after-tool-result:3+prune:0.8:1.0:6+compress:round-end";
/// The policies of other agents, and the default.
const OTHERS: [(&str, &str); 7] = [
    (DEFAULT, "haft's default"),
    (NONE, "the same without reminders"),
    (
        "none+prune:off+compress:never+archive:off",
        "append only, no reminders, nothing reduced",
    ),
    (
        "cache-aware+prune:off+compress:never+archive:off",
        "append only, nothing reduced",
    ),
    (
        "cache-aware+prune:100k:0.1:3+compress:never+archive:off",
        "masking above 100k, newest 3 results kept",
    ),
    (
        "cache-aware+prune:off+compress:never+archive:0.8",
        "summarising at 80 %",
    ),
    (FORMER, "haft's former default"),
];
const PLACES: [&str; 5] = [NONE, "front", "tail", "after-tool-result:3", "cache-aware"];
const REDUCTIONS: [&str; 20] = [
    DEFAULT,
    NEVER,
    "default+compress:when-free",
    "default+compress:round-end",
    "cache-aware+prune:0.8:1.0:6+compress:when-free",
    "cache-aware+prune:0.8:0.5:6+compress:when-free",
    "cache-aware+prune:128k:0.5:6+compress:when-free",
    "cache-aware+prune:128k:0.3:6+compress:when-free",
    "cache-aware+prune:128k:0.1:6+compress:when-free",
    "cache-aware+prune:128k:0.1:3+compress:when-free",
    "cache-aware+prune:100k:0.1:3+compress:when-free",
    "cache-aware+prune:80k:0.1:3+compress:when-free",
    "cache-aware+prune:64k:0.5:6+compress:when-free",
    "cache-aware+prune:64k:0.1:3+compress:when-free",
    "cache-aware+prune:64k:0.1:3+compress:never",
    "cache-aware+prune:48k:0.5:6+compress:when-free",
    "cache-aware+prune:48k:0.1:3+compress:when-free",
    "cache-aware+prune:48k:0.1:3+compress:never",
    "cache-aware+prune:32k:0.5:6+compress:when-free",
    "cache-aware+prune:32k:0.1:3+compress:never",
];

/// The models with which conversations are replayed, and the policies for each, in equal order.
pub(super) struct Experiments(Vec<(ModelSpec, Vec<Variant>)>);

/// Builds all experiments, with each policy once.
pub(super) fn experiments() -> anyhow::Result<Experiments> {
    let names = OTHERS
        .iter()
        .map(|(name, _)| *name)
        .chain(PLACES)
        .chain(REDUCTIONS);
    let names: BTreeSet<&str> = names.collect();
    let with = |model: ModelSpec| {
        let parse = |name: &&str| Variant::parse(name, &Policy::default(), &model);
        let variants = names.iter().map(parse).collect::<Result<_, _>>()?;
        Ok((model, variants))
    };
    PRICE_TABLES
        .map(assumed_model)
        .into_iter()
        .map(with)
        .collect::<anyhow::Result<_>>()
        .map(Experiments)
}

/// The totals of a policy.
#[derive(Clone, Copy, Default)]
struct Sum {
    requests: usize,
    usage: Usage,
    cost: f64,
    breaks: usize,
    archives: usize,
    too_large: usize,
    regret: usize,
    peak: u64,
    kept: Coverage,
    /// Maximum number of messages after a live reminder.
    distance: usize,
    /// Requests that exceed [`MAX_REMINDER_DISTANCE`].
    far: usize,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.usage += other.usage;
        self.cost += other.cost;
        self.breaks += other.breaks;
        self.archives += other.archives;
        self.too_large += other.too_large;
        self.regret += other.regret;
        self.peak = self.peak.max(other.peak);
        self.kept.kept += other.kept.kept;
        self.kept.all += other.kept.all;
        self.distance = self.distance.max(other.distance);
        self.far += other.far;
    }
}

/// The totals of one conversation for each price table and policy.
pub(super) struct Cost {
    requests: usize,
    sums: Vec<Vec<Sum>>,
}

#[derive(Default)]
pub(super) struct Costs(pub(super) Vec<Cost>);

/// Replays a conversation with every policy; `None` if it has no request.
pub(super) fn costs(
    text: &str,
    format: ImportFormat,
    experiments: &Experiments,
) -> anyhow::Result<Option<Cost>> {
    let source = SourceText {
        text,
        now: Timestamp::UNIX_EPOCH,
    };
    let Some(read) = read_conversations(source, Some(format))?.pop() else {
        return Ok(None);
    };
    let messages = read.document.messages;
    let Some(recorded) =
        RecordedConversation::of_messages(read.document.name, messages, REMINDERS, &O200k)?
    else {
        return Ok(None);
    };
    let sums = |(model, variants): &(ModelSpec, Vec<Variant>)| {
        variants
            .iter()
            .map(|variant| sum(&recorded, variant, model))
            .collect()
    };
    Ok(Some(Cost {
        requests: recorded.steps.len(),
        sums: experiments.0.iter().map(sums).collect(),
    }))
}

fn sum(recorded: &RecordedConversation, variant: &Variant, model: &ModelSpec) -> Sum {
    let beside = |step: usize| recorded.surroundings(step);
    let recording = Recording {
        history: &recorded.history,
        steps: &recorded.steps,
        beside: &beside,
    };
    let replay = replay(&recording, variant, model, &O200k, |_, _| ());
    let distances = || {
        replay
            .requests
            .iter()
            .filter_map(|one| one.reminder_distance)
    };
    Sum {
        requests: replay.requests.len(),
        usage: replay.usage(),
        cost: replay.cost().unwrap_or_default() * 1e6,
        breaks: replay.breaks(),
        archives: replay.archives,
        too_large: replay.too_large,
        regret: replay.regret,
        peak: replay.peak(),
        kept: replay.coverage(&recorded.history),
        distance: distances().max().unwrap_or(0),
        far: distances().filter(|distance| *distance > DISTANCE).count(),
    }
}

impl Costs {
    pub(super) fn tell(&self, corpus: &str, experiments: &Experiments) {
        let long = self.0.iter().filter(|one| one.requests >= LONG).count();
        for (number, prices) in PRICE_TABLES.iter().enumerate() {
            figures::line(&format!(
                "\n### Read {}, write {} ({:?}), {} conversations {corpus}, {long} of them with {LONG} requests and more\n",
                prices.read,
                prices.write,
                prices.rule,
                self.0.len()
            ));
            let table = Table {
                costs: &self.0,
                variants: &experiments.0[number].1,
                number,
            };
            table.tell_others();
            figures::line("");
            table.tell_places();
            figures::line("");
            table.tell_reductions();
            figures::line("");
            table.tell_goals();
        }
    }
}

/// The results for one price table.
struct Table<'a> {
    costs: &'a [Cost],
    variants: &'a [Variant],
    number: usize,
}

impl Table<'_> {
    fn index(&self, name: &str) -> usize {
        self.variants
            .iter()
            .position(|variant| variant.name == name)
            .unwrap_or(0)
    }

    /// Returns the totals of all conversations for a policy.
    fn all(&self, name: &str) -> Sum {
        let index = self.index(name);
        let mut all = Sum::default();
        self.costs
            .iter()
            .for_each(|one| all.add(&one.sums[self.number][index]));
        all
    }

    /// Returns the sorted costs of a policy relative to another, for the conversations whose number
    /// of requests `wanted` accepts.
    fn ratios(&self, name: &str, other: &str, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let name = self.index(name);
        let other = self.index(other);
        let ratio =
            |one: &Cost| one.sums[self.number][name].cost / one.sums[self.number][other].cost;
        let mut ratios: Vec<f64> = self
            .costs
            .iter()
            .filter(|one| wanted(one.requests))
            .map(ratio)
            .collect();
        ratios.retain(|ratio| ratio.is_finite());
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    /// Returns the cost relative to no reminders: overall, median of long conversations, median of
    /// short ones.
    fn against_none(&self, name: &str) -> [f64; 3] {
        let long = middle(&self.ratios(name, NONE, |requests| requests >= LONG));
        let short = middle(&self.ratios(name, NONE, |requests| requests < LONG));
        [self.all(name).cost / self.all(NONE).cost, long, short]
    }

    fn tell_others(&self) {
        figures::line(
            "| policy | what it is | cost a request | times the default | median, long | times `none` | median, long | median, short | peak | breaks | archives | regret | must-keep |",
        );
        figures::line(
            "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        );
        let default = self.all(DEFAULT).cost;
        for (name, what) in OTHERS {
            let sum = self.all(name);
            let median = middle(&self.ratios(name, DEFAULT, |requests| requests >= LONG));
            let [none, long, short] = self.against_none(name);
            figures::line(&format!(
                "| `{name}`{} | {what} | {:.0} | {:.3} | {} | {none:.3} | {} | {} | {} | {} | {} | {} | {} |",
                refused(&sum),
                each(sum.cost, &sum),
                sum.cost / default,
                ratio(median),
                ratio(long),
                ratio(short),
                sum.peak,
                percent(sum.breaks, sum.requests),
                sum.archives,
                sum.regret,
                kept(&sum),
            ));
        }
    }

    fn tell_places(&self) {
        figures::line(
            "| reminders | tokens a request | read | written | fresh | cost a request | times `none` | breaks | furthest reminder | further than 24 |",
        );
        figures::line("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
        let none = self.all(NONE).cost;
        for name in PLACES {
            let sum = self.all(name);
            let (distance, far) = if name == NONE {
                Default::default()
            } else {
                (sum.distance.to_string(), sum.far.to_string())
            };
            figures::line(&format!(
                "| `{name}` | {} | {distance} | {far} |",
                told(&sum, none)
            ));
        }
    }

    fn tell_reductions(&self) {
        figures::line(
            "| pruning and compression | tokens a request | read | written | fresh | cost a request | times the default | breaks | peak | archives | regret | must-keep |",
        );
        figures::line("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
        let default = self.all(DEFAULT).cost;
        for name in REDUCTIONS {
            let sum = self.all(name);
            figures::line(&format!(
                "| `{name}`{} | {} | {} | {} | {} | {} |",
                refused(&sum),
                told(&sum, default),
                sum.peak,
                sum.archives,
                sum.regret,
                kept(&sum)
            ));
        }
    }

    fn tell_goals(&self) {
        let default = self.all(DEFAULT);
        let keeps = |sum: &Sum| sum.kept.kept == sum.kept.all && sum.too_large == 0;
        let named = self
            .variants
            .iter()
            .map(|variant| (variant, self.all(&variant.name)));
        let fair = named.filter(|(variant, sum)| {
            let is_fair = sum.kept.kept >= default.kept.kept && sum.regret <= 2 * default.regret;
            variant.reminders && is_fair && sum.far == 0 && sum.too_large == 0
        });
        if let Some((variant, sum)) =
            fair.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
        {
            let name = &variant.name;
            let median = middle(&self.ratios(DEFAULT, name, |requests| requests >= LONG));
            let what = format!(
                "the default in times of the cheapest that keeps as much and has at most twice its regret, `{name}` (regret {} and {})",
                default.regret, sum.regret
            );
            goal(
                &what,
                &[("all", default.cost / sum.cost), ("median, long", median)],
                CHEAPEST_GOAL,
            );
        }
        let [all, long, short] = self.against_none(DEFAULT);
        let ratios = [
            ("all", all),
            ("median, long", long),
            ("median, short", short),
        ];
        goal(
            "the default in times of sending no reminders",
            &ratios,
            REMINDERS_GOAL,
        );
        let against = self.ratios(DEFAULT, NEVER, |_| true);
        // Tolerates a rounding error in the last bit.
        let cheaper = against.iter().filter(|ratio| **ratio <= 1.0 + 1e-9).count();
        let share = cheaper as f64 / against.len().max(1) as f64;
        let all = default.cost / self.all(NEVER).cost;
        let word = if all <= 1.0 && share >= COMPRESSION_GOAL {
            "reached"
        } else {
            "MISSED"
        };
        figures::line(&format!(
            "- compression: {all:.3} times the cost without it, and not dearer in {cheaper} of {} conversations (at least {:.0} %): {word}",
            against.len(),
            100.0 * COMPRESSION_GOAL
        ));
        let word = if keeps(&default) { "reached" } else { "MISSED" };
        figures::line(&format!(
            "- must-keep of the default {}: {word}",
            kept(&default)
        ));
        let others = OTHERS.iter().map(|(name, _)| (*name, self.all(name)));
        let rivals = others.filter(|(name, sum)| !name.starts_with(NONE) && keeps(sum));
        let cheapest = rivals.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost));
        let name = cheapest.map_or("–", |(name, _)| name);
        let word = if name == DEFAULT { "reached" } else { "MISSED" };
        figures::line(&format!(
            "- the default is the cheapest of the first table that sends the reminders and keeps every must-keep: {word} (`{name}`)"
        ));
    }
}

/// Prints whether every ratio is at most the goal. Ratios of empty groups of conversations are not
/// finite and are left out.
fn goal(what: &str, ratios: &[(&str, f64)], most: f64) {
    let ratios: Vec<_> = ratios
        .iter()
        .filter(|(_, ratio)| ratio.is_finite())
        .collect();
    let word = if ratios.iter().all(|(_, ratio)| *ratio <= most) {
        "reached"
    } else {
        "MISSED"
    };
    let ratios: Vec<_> = ratios
        .iter()
        .map(|(name, ratio)| format!("{ratio:.3} ({name})"))
        .collect();
    figures::line(&format!(
        "- {what}: {}; at most {most:.2}: {word}",
        ratios.join(", ")
    ));
}

/// Formats a median, or a dash if there is none.
fn ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.3}")
    } else {
        "–".to_owned()
    }
}

fn middle(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
        odd => sorted[odd / 2],
    }
}

fn each(value: f64, sum: &Sum) -> f64 {
    value / sum.requests.max(1) as f64
}

fn percent(part: usize, all: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64)
}

fn kept(sum: &Sum) -> String {
    format!("{} of {}", sum.kept.kept, sum.kept.all)
}

fn refused(sum: &Sum) -> String {
    if sum.too_large > 0 {
        format!(" ({} too large)", sum.too_large)
    } else {
        String::new()
    }
}

/// Formats the columns that several tables share: tokens by class, cost and breaks.
fn told(sum: &Sum, against: f64) -> String {
    let tokens = |tokens: u64| each(tokens as f64, sum);
    let Usage {
        input,
        cached_input,
        cache_write,
        ..
    } = sum.usage;
    format!(
        "{:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.3} | {}",
        tokens(sum.usage.all_input()),
        tokens(cached_input),
        tokens(cache_write),
        tokens(input),
        each(sum.cost, sum),
        sum.cost / against,
        percent(sum.breaks, sum.requests),
    )
}
