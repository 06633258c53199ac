//! What each policy costs on recorded conversations, at three tables of prices.
//!
//! Conversations are read, replayed and priced as `haft context replay --model assumed` does it:
//! with reminders of 1,000 tokens that change in every twentieth request. Only input is priced, in
//! times of the input price. Prices of another table change what is bought, so every policy is
//! replayed under every table.

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
pub(super) const REMINDERS: ImaginedReminders = ImaginedReminders {
    tokens: 1_000,
    changes: 0.05,
    from_first: false,
};
/// What sending reminders may cost, in times of sending none.
const REMINDERS_GOAL: f64 = 1.10;
/// What the default may cost with re-reads, in times of the cheapest policy that keeps the text in
/// view.
const CHEAPEST_GOAL: f64 = 1.05;
/// The share of edits that may be blind.
const BLIND_GOAL: f64 = 0.01;
/// The share of the conversations it touches in which compression may not cost more than none.
const COMPRESSION_GOAL: f64 = 0.95;
/// How many messages may lie behind a live reminder.
const DISTANCE: usize = 24;
/// Requests from which a conversation is a long one.
const LONG: usize = 60;

const DEFAULT: &str = "default";
const NONE: &str = "none";
const NEVER: &str = "default+compress:never";
/// The policy haft had by default before.
const FORMER: &str = "after-tool-result:3+prune:0.8:1.0:6+compress:round-end";
/// What other agents do, and the default.
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

/// The models that conversations are replayed with, and the policies for each, in one order.
pub(super) struct Experiments(Vec<(ModelSpec, Vec<Variant>)>);

/// All of them, each once.
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

/// What a policy came to.
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
    /// The most messages behind a live reminder, and how many requests had more than are allowed.
    distance: usize,
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

/// One conversation under every policy, table after table.
pub(super) struct Cost {
    requests: usize,
    sums: Vec<Vec<Sum>>,
    /// The default at each table, with a list from the first request on.
    eager: Vec<Sum>,
}

/// All conversations.
#[derive(Default)]
pub(super) struct Costs(pub(super) Vec<Cost>);

/// Reads a conversation; none where it has no request.
pub(super) fn conversation(
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
    Ok(RecordedConversation::of_messages(
        name, messages, reminders, &O200k,
    )?)
}

/// Replays a conversation under every policy; none where it has no request.
pub(super) fn costs(
    text: &str,
    format: ImportFormat,
    experiments: &Experiments,
) -> anyhow::Result<Option<Cost>> {
    let eager = ImaginedReminders {
        from_first: true,
        ..REMINDERS
    };
    let (Some(eager), Some(recorded)) = (
        conversation(text, format, eager)?,
        conversation(text, format, REMINDERS)?,
    ) else {
        return Ok(None);
    };
    let sums = |(model, variants): &(ModelSpec, Vec<Variant>)| {
        variants
            .iter()
            .map(|variant| sum(&recorded, variant, model))
            .collect()
    };
    let default = |(model, variants): &(ModelSpec, Vec<Variant>)| {
        let default = variants.iter().find(|variant| variant.name == DEFAULT);
        default.map_or_else(Sum::default, |variant| sum(&eager, variant, model))
    };
    Ok(Some(Cost {
        requests: recorded.steps.len(),
        eager: experiments.0.iter().map(default).collect(),
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
        with_rereads: replay.cost_with_rereads().unwrap_or_default() * 1e6,
        edits: replay.edits,
        blind: replay.blind_edits,
        unseen: replay.unseen_results,
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

/// The figures at one table of prices.
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

    /// All conversations under this policy.
    fn all(&self, name: &str) -> Sum {
        let index = self.index(name);
        let mut all = Sum::default();
        self.costs
            .iter()
            .for_each(|one| all.add(&one.sums[self.number][index]));
        all
    }

    /// What conversations of so many requests cost under one policy in times of another, in order.
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

    /// The cost against sending no reminders: of all, and the median over long conversations and
    /// over short ones.
    fn against_none(&self, name: &str) -> [f64; 3] {
        let long = middle(&self.ratios(name, NONE, |requests| requests >= LONG));
        let short = middle(&self.ratios(name, NONE, |requests| requests < LONG));
        [self.all(name).cost / self.all(NONE).cost, long, short]
    }

    fn tell_others(&self) {
        figures::line(
            "| policy | what it is | cost a request | times the default | with re-reads | median, long | times `none` | median, long | median, short | peak | breaks | archives | regret | blind edits | unseen | must-keep |",
        );
        figures::line(
            "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        );
        let default = self.all(DEFAULT);
        for (name, what) in OTHERS {
            let sum = self.all(name);
            let median = middle(&self.ratios(name, DEFAULT, |requests| requests >= LONG));
            let [none, long, short] = self.against_none(name);
            figures::line(&format!(
                "| `{name}`{} | {what} | {:.0} | {:.3} | {:.3} | {} | {none:.3} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                refused(&sum),
                each(sum.cost, &sum),
                sum.cost / default.cost,
                sum.with_rereads / default.with_rereads,
                ratio(median),
                ratio(long),
                ratio(short),
                sum.peak,
                percent(sum.breaks, sum.requests),
                sum.archives,
                sum.regret,
                sum.blind,
                sum.unseen,
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
            "| pruning and compression | tokens a request | read | written | fresh | cost a request | times the default | breaks | with re-reads | peak | archives | regret | blind edits | unseen | must-keep |",
        );
        figures::line(
            "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
        );
        let default = self.all(DEFAULT);
        for name in REDUCTIONS {
            let sum = self.all(name);
            figures::line(&format!(
                "| `{name}`{} | {} | {:.3} | {} | {} | {} | {} | {} | {} |",
                refused(&sum),
                told(&sum, default.cost),
                sum.with_rereads / default.with_rereads,
                sum.peak,
                sum.archives,
                sum.regret,
                sum.blind,
                sum.unseen,
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
        let sees = |sum: &Sum| {
            sum.unseen == 0 && (sum.blind as f64) < BLIND_GOAL * sum.edits.max(1) as f64
        };
        let fair = named
            .filter(|(variant, sum)| variant.reminders && keeps(sum) && sees(sum) && sum.far == 0);
        if let Some((variant, sum)) =
            fair.min_by(|(_, one), (_, other)| one.with_rereads.total_cmp(&other.with_rereads))
        {
            let name = &variant.name;
            let median = middle(&self.ratios(DEFAULT, name, |requests| requests >= LONG));
            let what = format!(
                "the default, with re-reads, in times of the cheapest that keeps the text in view, `{name}` (regret {} and {})",
                default.regret, sum.regret
            );
            let ratio = default.with_rereads / sum.with_rereads;
            goal(
                &what,
                &[("all", ratio), ("median, long", median)],
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
        let eager: f64 = self
            .costs
            .iter()
            .map(|one| one.eager[self.number].cost)
            .sum();
        figures::line(&format!(
            "- with a list from the first request on: {:.3} times the cost of sending no reminders",
            eager / self.all(NONE).cost
        ));
        let word = if sees(&default) { "reached" } else { "MISSED" };
        figures::line(&format!(
            "- blind edits of the default {} of {} (below {:.0} %), results never seen {}: {word}",
            default.blind,
            default.edits,
            100.0 * BLIND_GOAL,
            default.unseen
        ));
        let mut against = self.ratios(DEFAULT, NEVER, |_| true);
        // Conversations in which nothing was compressed say nothing.
        against.retain(|ratio| (ratio - 1.0).abs() > 1e-9);
        // A rounding of the last bit is not a cost.
        let cheaper = against.iter().filter(|ratio| **ratio <= 1.0 + 1e-9).count();
        let share = cheaper as f64 / against.len().max(1) as f64;
        let all = default.cost / self.all(NEVER).cost;
        let word = if all <= 1.0 && share >= COMPRESSION_GOAL {
            "reached"
        } else {
            "MISSED"
        };
        figures::line(&format!(
            "- compression: {all:.3} times the cost without it, and not dearer in {cheaper} of the {} conversations it touches (at least {:.0} %): {word}",
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

/// Says whether every ratio is at most the goal. There is none where there are no such
/// conversations.
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

/// A median as it is printed, where there is one.
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

/// What the tables have in common: tokens by class, cost and breaks.
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
