//! Computes the cost of each policy on recorded conversations, for three price tables.
//!
//! Conversations are read, replayed and priced as by `haft context replay --model assumed`: with
//! reminders of 1,000 tokens that change in every twentieth request. Only input is priced, in
//! multiples of the input price. Prices influence the decisions of a policy, so every policy is
//! replayed with every table.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use haft_context::Policy;
use haft_imports::{ImportFormat, SourceText, read_conversations};
use haft_lab::{
    Coverage, ImaginedReminders, PRICE_TABLES, RecordedConversation, Recording, Variant,
    assumed_model, replay_recording,
};
use haft_model::O200k;
use haft_types::{ModelSpec, Timestamp, Usage};

use crate::figures;

/// The reminders of every conversation.
pub(super) const REMINDERS: ImaginedReminders = ImaginedReminders {
    tokens: 1_000,
    changes: 0.05,
    from_first: false,
};
/// Maximum cost of reminders, relative to the cost without them.
const REMINDERS_GOAL: f64 = 1.10;
/// The maximum cost of the default policy with re-reads, relative to the cheapest policy that keeps
/// the text in view.
const CHEAPEST_GOAL: f64 = 1.05;
/// The maximum share of blind edits.
const BLIND_GOAL: f64 = 0.01;
/// The minimum share of conversations in which compression costs no more than no compression.
/// Conversations without anything to compress do not count.
const COMPRESSION_GOAL: f64 = 0.95;
/// Maximum number of messages after a live reminder.
const MAX_REMINDER_DISTANCE: usize = 24;
/// The minimum number of requests of a long conversation.
const LONG_REQUESTS: usize = 60;

const DEFAULT_POLICY: &str = "default";
const NO_REMINDERS: &str = "none";
const NO_COMPRESSION: &str = "default+compress:never";
/// The previous default policy.
const FORMER_DEFAULT: &str = "after-tool-result:3+prune:0.8:1.0:6+compress:round-end";
/// The policies of other agents, and the default.
const AGENT_POLICIES: [(&str, &str); 7] = [
    (DEFAULT_POLICY, "haft's default"),
    (NO_REMINDERS, "the same without reminders"),
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
    (FORMER_DEFAULT, "haft's former default"),
];
const REMINDER_PLACES: [&str; 5] = [
    NO_REMINDERS,
    "front",
    "tail",
    "after-tool-result:3",
    "cache-aware",
];
const REDUCTION_POLICIES: [&str; 20] = [
    DEFAULT_POLICY,
    NO_COMPRESSION,
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

/// The models with which conversations are replayed, each with its policies. The order of the
/// policies is equal for all models.
pub(super) struct Experiments(Vec<(ModelSpec, Vec<Variant>)>);

/// Builds all experiments, with each policy once.
pub(super) fn build_experiments() -> anyhow::Result<Experiments> {
    let names = AGENT_POLICIES
        .iter()
        .map(|(name, _)| *name)
        .chain(REMINDER_PLACES)
        .chain(REDUCTION_POLICIES);
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
    with_rereads: f64,
    edits: usize,
    blind: usize,
    unseen: usize,
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
        self.with_rereads += other.with_rereads;
        self.edits += other.edits;
        self.blind += other.blind;
        self.unseen += other.unseen;
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
    /// The totals of the default policy for each price table, with a TODO list from the first
    /// request on.
    eager: Vec<Sum>,
}

#[derive(Default)]
pub(super) struct Costs(pub(super) Vec<Cost>);

/// Reads a conversation. Returns `None` if it contains no request.
pub(super) fn read_conversation(
    text: &str,
    format: ImportFormat,
    reminders: ImaginedReminders,
) -> anyhow::Result<Option<RecordedConversation>> {
    let source = SourceText {
        text,
        now: Timestamp::UNIX_EPOCH,
    };
    let Some(read) = read_conversations(source, Some(format))?.pop() else {
        return Ok(None);
    };
    let messages = read.document.messages;
    let name = read.document.name;
    Ok(RecordedConversation::from_messages(
        name, messages, reminders, &O200k,
    )?)
}

/// Replays a conversation under every policy. Returns `None` if the conversation contains no
/// request.
pub(super) fn measure_costs(
    text: &str,
    format: ImportFormat,
    experiments: &Experiments,
) -> anyhow::Result<Option<Cost>> {
    let eager = ImaginedReminders {
        from_first: true,
        ..REMINDERS
    };
    let (Some(eager), Some(recorded)) = (
        read_conversation(text, format, eager)?,
        read_conversation(text, format, REMINDERS)?,
    ) else {
        return Ok(None);
    };
    let sums = |(model, variants): &(ModelSpec, Vec<Variant>)| {
        variants
            .iter()
            .map(|variant| replay_policy(&recorded, variant, model))
            .collect()
    };
    let default = |(model, variants): &(ModelSpec, Vec<Variant>)| {
        let default = variants
            .iter()
            .find(|variant| variant.name == DEFAULT_POLICY);
        default.map_or_else(Sum::default, |variant| {
            replay_policy(&eager, variant, model)
        })
    };
    Ok(Some(Cost {
        requests: recorded.steps.len(),
        eager: experiments.0.iter().map(default).collect(),
        sums: experiments.0.iter().map(sums).collect(),
    }))
}

fn replay_policy(recorded: &RecordedConversation, variant: &Variant, model: &ModelSpec) -> Sum {
    let beside = |step: usize| recorded.surroundings(step);
    let recording = Recording {
        history: &recorded.history,
        steps: &recorded.steps,
        beside: &beside,
    };
    let replay = replay_recording(&recording, variant, model, &O200k, |_, _| {
        ControlFlow::Continue(())
    });
    let distances = || {
        replay
            .requests
            .iter()
            .filter_map(|one| one.reminder_distance)
    };
    Sum {
        requests: replay.requests.len(),
        usage: replay.total_usage(),
        cost: replay.total_cost().unwrap_or_default() * 1e6,
        breaks: replay.count_breaks(),
        archives: replay.archives,
        too_large: replay.too_large,
        regret: replay.regret,
        with_rereads: replay.cost_with_rereads().unwrap_or_default() * 1e6,
        edits: replay.edits,
        blind: replay.blind_edits,
        unseen: replay.unseen_results,
        peak: replay.peak_tokens(),
        kept: replay.final_coverage(&recorded.history),
        distance: distances().max().unwrap_or(0),
        far: distances()
            .filter(|distance| *distance > MAX_REMINDER_DISTANCE)
            .count(),
    }
}

impl Costs {
    pub(super) fn print_tables(&self, corpus: &str, experiments: &Experiments) {
        let long = self
            .0
            .iter()
            .filter(|one| one.requests >= LONG_REQUESTS)
            .count();
        for (number, prices) in PRICE_TABLES.iter().enumerate() {
            figures::print_line(&format!(
                "\n### Read {}, write {} ({:?}), {} conversations {corpus}, {long} of them with {LONG_REQUESTS} requests and more\n",
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
            table.print_agent_policies();
            figures::print_line("");
            table.print_reminder_places();
            figures::print_line("");
            table.print_reductions();
            figures::print_line("");
            table.print_goals();
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
    fn policy_index(&self, name: &str) -> usize {
        self.variants
            .iter()
            .position(|variant| variant.name == name)
            .unwrap_or(0)
    }

    /// Returns the totals of all conversations for a policy.
    fn total(&self, name: &str) -> Sum {
        let index = self.policy_index(name);
        let mut all = Sum::default();
        self.costs
            .iter()
            .for_each(|one| all.add(&one.sums[self.number][index]));
        all
    }

    /// Returns the sorted costs of a policy relative to another, for the conversations whose number
    /// of requests `wanted` accepts.
    fn cost_ratios(&self, name: &str, other: &str, wanted: impl Fn(usize) -> bool) -> Vec<f64> {
        let name = self.policy_index(name);
        let other = self.policy_index(other);
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
    fn ratios_to_no_reminders(&self, name: &str) -> [f64; 3] {
        let long = find_sorted_median(
            &self.cost_ratios(name, NO_REMINDERS, |requests| requests >= LONG_REQUESTS),
        );
        let short = find_sorted_median(
            &self.cost_ratios(name, NO_REMINDERS, |requests| requests < LONG_REQUESTS),
        );
        [
            self.total(name).cost / self.total(NO_REMINDERS).cost,
            long,
            short,
        ]
    }

    fn print_agent_policies(&self) {
        figures::print_line(
            "| policy | what it is | cost a request | times the default | with re-reads | median, long | times `none` | median, long | median, short | peak | breaks | archives | regret | blind edits | unseen | must-keep |",
        );
        figures::print_line(
            "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        );
        let default = self.total(DEFAULT_POLICY);
        for (name, what) in AGENT_POLICIES {
            let sum = self.total(name);
            let median = find_sorted_median(
                &self.cost_ratios(name, DEFAULT_POLICY, |requests| requests >= LONG_REQUESTS),
            );
            let [none, long, short] = self.ratios_to_no_reminders(name);
            figures::print_line(&format!(
                "| `{name}`{} | {what} | {:.0} | {:.3} | {:.3} | {} | {none:.3} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                format_too_large(&sum),
                average_per_request(sum.cost, &sum),
                sum.cost / default.cost,
                sum.with_rereads / default.with_rereads,
                format_ratio(median),
                format_ratio(long),
                format_ratio(short),
                sum.peak,
                format_percent(sum.breaks, sum.requests),
                sum.archives,
                sum.regret,
                sum.blind,
                sum.unseen,
                format_kept(&sum),
            ));
        }
    }

    fn print_reminder_places(&self) {
        figures::print_line(
            "| reminders | tokens a request | read | written | fresh | cost a request | times `none` | breaks | furthest reminder | further than 24 |",
        );
        figures::print_line("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
        let none = self.total(NO_REMINDERS).cost;
        for name in REMINDER_PLACES {
            let sum = self.total(name);
            let (distance, far) = if name == NO_REMINDERS {
                Default::default()
            } else {
                (sum.distance.to_string(), sum.far.to_string())
            };
            figures::print_line(&format!(
                "| `{name}` | {} | {distance} | {far} |",
                format_common_columns(&sum, none)
            ));
        }
    }

    fn print_reductions(&self) {
        figures::print_line(
            "| pruning and compression | tokens a request | read | written | fresh | cost a request | times the default | breaks | with re-reads | peak | archives | regret | blind edits | unseen | must-keep |",
        );
        figures::print_line(
            "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        );
        let default = self.total(DEFAULT_POLICY);
        for name in REDUCTION_POLICIES {
            let sum = self.total(name);
            figures::print_line(&format!(
                "| `{name}`{} | {} | {:.3} | {} | {} | {} | {} | {} | {} |",
                format_too_large(&sum),
                format_common_columns(&sum, default.cost),
                sum.with_rereads / default.with_rereads,
                sum.peak,
                sum.archives,
                sum.regret,
                sum.blind,
                sum.unseen,
                format_kept(&sum)
            ));
        }
    }

    fn print_goals(&self) {
        let default = self.total(DEFAULT_POLICY);
        let keeps = |sum: &Sum| sum.kept.kept == sum.kept.all && sum.too_large == 0;
        let named = self
            .variants
            .iter()
            .map(|variant| (variant, self.total(&variant.name)));
        let sees = |sum: &Sum| {
            sum.unseen == 0 && (sum.blind as f64) < BLIND_GOAL * sum.edits.max(1) as f64
        };
        let fair = named
            .filter(|(variant, sum)| variant.reminders && keeps(sum) && sees(sum) && sum.far == 0);
        if let Some((variant, sum)) =
            fair.min_by(|(_, one), (_, other)| one.with_rereads.total_cmp(&other.with_rereads))
        {
            let name = &variant.name;
            let median = find_sorted_median(
                &self.cost_ratios(DEFAULT_POLICY, name, |requests| requests >= LONG_REQUESTS),
            );
            let what = format!(
                "the default, with re-reads, in times of the cheapest that keeps the text in view, `{name}` (regret {} and {})",
                default.regret, sum.regret
            );
            let ratio = default.with_rereads / sum.with_rereads;
            print_ratio_goal(
                &what,
                &[("all", ratio), ("median, long", median)],
                CHEAPEST_GOAL,
            );
        }
        let [all, long, short] = self.ratios_to_no_reminders(DEFAULT_POLICY);
        let ratios = [
            ("all", all),
            ("median, long", long),
            ("median, short", short),
        ];
        print_ratio_goal(
            "the default in times of sending no reminders",
            &ratios,
            REMINDERS_GOAL,
        );
        let eager: f64 = self
            .costs
            .iter()
            .map(|one| one.eager[self.number].cost)
            .sum();
        figures::print_line(&format!(
            "- with a list from the first request on: {:.3} times the cost of sending no reminders",
            eager / self.total(NO_REMINDERS).cost
        ));
        let word = if sees(&default) { "reached" } else { "MISSED" };
        figures::print_line(&format!(
            "- blind edits of the default {} of {} (below {:.0} %), results never seen {}: {word}",
            default.blind,
            default.edits,
            100.0 * BLIND_GOAL,
            default.unseen
        ));
        let mut against = self.cost_ratios(DEFAULT_POLICY, NO_COMPRESSION, |_| true);
        // Conversations in which nothing was compressed say nothing.
        against.retain(|ratio| (ratio - 1.0).abs() > 1e-9);
        // Tolerates a rounding error in the last bit.
        let cheaper = against.iter().filter(|ratio| **ratio <= 1.0 + 1e-9).count();
        let share = cheaper as f64 / against.len().max(1) as f64;
        let all = default.cost / self.total(NO_COMPRESSION).cost;
        let word = if all <= 1.0 && share >= COMPRESSION_GOAL {
            "reached"
        } else {
            "MISSED"
        };
        figures::print_line(&format!(
            "- compression: {all:.3} times the cost without it, and not dearer in {cheaper} of the {} conversations it touches (at least {:.0} %): {word}",
            against.len(),
            100.0 * COMPRESSION_GOAL
        ));
        let word = if keeps(&default) { "reached" } else { "MISSED" };
        figures::print_line(&format!(
            "- must-keep of the default {}: {word}",
            format_kept(&default)
        ));
        let others = AGENT_POLICIES
            .iter()
            .map(|(name, _)| (*name, self.total(name)));
        let rivals = others.filter(|(name, sum)| !name.starts_with(NO_REMINDERS) && keeps(sum));
        let cheapest = rivals.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost));
        let name = cheapest.map_or("–", |(name, _)| name);
        let word = if name == DEFAULT_POLICY {
            "reached"
        } else {
            "MISSED"
        };
        figures::print_line(&format!(
            "- the default is the cheapest of the first table that sends the reminders and keeps every must-keep: {word} (`{name}`)"
        ));
    }
}

/// Prints whether every ratio is at most the goal. Ratios of empty groups of conversations are not
/// finite and are left out.
fn print_ratio_goal(what: &str, ratios: &[(&str, f64)], max: f64) {
    let ratios: Vec<_> = ratios
        .iter()
        .filter(|(_, ratio)| ratio.is_finite())
        .collect();
    let word = if ratios.iter().all(|(_, ratio)| *ratio <= max) {
        "reached"
    } else {
        "MISSED"
    };
    let ratios: Vec<_> = ratios
        .iter()
        .map(|(name, ratio)| format!("{ratio:.3} ({name})"))
        .collect();
    figures::print_line(&format!(
        "- {what}: {}; at most {max:.2}: {word}",
        ratios.join(", ")
    ));
}

/// Formats a median, or a dash if there is none.
fn format_ratio(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.3}")
    } else {
        "–".to_owned()
    }
}

fn find_sorted_median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
        odd => sorted[odd / 2],
    }
}

fn average_per_request(value: f64, sum: &Sum) -> f64 {
    value / sum.requests.max(1) as f64
}

fn format_percent(part: usize, all: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / all.max(1) as f64)
}

fn format_kept(sum: &Sum) -> String {
    format!("{} of {}", sum.kept.kept, sum.kept.all)
}

fn format_too_large(sum: &Sum) -> String {
    if sum.too_large > 0 {
        format!(" ({} too large)", sum.too_large)
    } else {
        String::new()
    }
}

/// Formats the columns that several tables share: tokens by class, cost and breaks.
fn format_common_columns(sum: &Sum, against: f64) -> String {
    let tokens = |tokens: u64| average_per_request(tokens as f64, sum);
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
        average_per_request(sum.cost, sum),
        sum.cost / against,
        format_percent(sum.breaks, sum.requests),
    )
}
