//! What each policy costs on recorded conversations, at three tables of prices.
//!
//! Every conversation gets reminders of 1,000 tokens that change in every twentieth request. Only input is priced, in
//! times of the input price. Prices of another table change what is bought, so every policy is replayed under every table.

use std::time::Duration;

use haft_context::{Policy, Reminders, RoleText, SystemInput, render_system, system_entry};
use haft_lab::{Coverage, RecordedStep, Recording, RequestSurroundings, Variant, coverage, replay};
use haft_model::O200k;
use haft_types::{CacheKind, CacheRule, ModelSpec, Price, Usage};

use crate::recorded::Conversation;
use crate::{figures, model};

/// Requests between two changes of the reminders: 5 % of them change.
const CHANGES: usize = 20;
/// What `cache-aware` may cost, in times of no reminders.
const GOAL: f64 = 1.10;
/// How many messages may lie behind a live reminder.
const DISTANCE: usize = 24;
/// The window of the model that is imagined.
const WINDOW: u32 = 200_000;

/// Read and write price in times of the input price, and the cache they belong to.
const TABLES: [(f64, f64, CacheKind, &str); 3] = [
    (0.1, 1.25, CacheKind::Anthropic, "5m"),
    (0.1, 1.0, CacheKind::Openai, "5m"),
    (0.02, 1.0, CacheKind::Deepseek, "1h"),
];

const PLACES: [&str; 6] =
    ["none", "front", "tail", "after-tool-result:3", "cache-aware", "cache-aware+compress:when-free"];
const PRUNING: [&str; 9] = [
    "none",
    "none+compress:never",
    "none+compress:when-free",
    "none+prune:off+compress:never",
    "none+prune:64k+compress:never",
    "none+prune:64k:0.5+compress:never",
    "none+prune:32k+compress:never",
    "none+prune:32k:0.5+compress:never",
    "none+prune:32k:0.5+compress:when-free",
];

/// One policy at one table of prices.
pub(super) struct Experiment {
    variant: Variant,
    model: ModelSpec,
    /// The table of prices, by number.
    table: usize,
    question: Question,
}

/// What an experiment is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    Places,
    Pruning,
}

/// All of them.
pub(super) fn experiments() -> anyhow::Result<Vec<Experiment>> {
    let mut all = Vec::new();
    for (table, (read, write, rule, ttl)) in TABLES.into_iter().enumerate() {
        let mut model = model::spec(rule, WINDOW)?;
        let look_back = (rule == CacheKind::Anthropic).then_some(20);
        model.cache = CacheRule { rule, ttl: ttl.into(), look_back, ..CacheRule::default() };
        model.price =
            Some(Price { input: 1.0, cached_input: Some(read), cache_write: Some(write), output: 0.0, long: None });
        let names = PLACES.map(|name| (Question::Places, name)).into_iter();
        for (question, name) in names.chain(PRUNING.map(|name| (Question::Pruning, name))) {
            let variant = Variant::parse(name, &Policy::default())?;
            all.push(Experiment { variant, model: model.clone(), table, question });
        }
    }
    Ok(all)
}

/// What an experiment came to.
#[derive(Clone, Copy, Default)]
struct Sum {
    requests: u64,
    usage: Usage,
    cost: f64,
    breaks: usize,
    too_large: usize,
    regret: usize,
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
        self.too_large += other.too_large;
        self.regret += other.regret;
        self.peak = self.peak.max(other.peak);
        self.kept.kept += other.kept.kept;
        self.kept.all += other.kept.all;
        self.distance = self.distance.max(other.distance);
        self.far += other.far;
    }
}

/// The sums of all conversations, by experiment.
#[derive(Default)]
pub(super) struct Costs {
    conversations: usize,
    sums: Vec<Sum>,
}

/// The sums of one conversation, by experiment; none where only one request was made.
pub(super) struct Cost(Option<Vec<Sum>>);

impl Costs {
    pub(super) fn add(&mut self, one: Cost) {
        let Some(sums) = one.0 else { return };
        self.conversations += 1;
        self.sums.resize(sums.len(), Sum::default());
        self.sums.iter_mut().zip(&sums).for_each(|(all, one)| all.add(one));
    }

    pub(super) fn tell(&self, experiments: &[Experiment]) {
        for (table, (read, write, rule, _)) in TABLES.iter().enumerate() {
            let of = |question: Question| {
                let pairs = experiments.iter().zip(&self.sums);
                pairs.filter(move |(one, _)| one.table == table && one.question == question).collect::<Vec<_>>()
            };
            figures::line(&format!("\nread {read}, write {write} ({rule:?}), {} conversations\n", self.conversations));
            tell_places(&of(Question::Places));
            figures::line("");
            tell_pruning(&of(Question::Pruning));
        }
    }
}

/// Replays a conversation under every policy.
pub(super) fn costs(conversation: &Conversation, experiments: &[Experiment]) -> anyhow::Result<Cost> {
    let mut clock = Duration::ZERO;
    let step = |messages: usize| {
        let at = conversation.time(conversation.message(messages) - 1);
        clock = at.unwrap_or(clock + Duration::from_secs(7)).max(clock);
        RecordedStep { messages, at: clock }
    };
    let steps: Vec<_> = conversation.requests().map(step).collect();
    if steps.len() < 2 {
        return Ok(Cost(None));
    }
    let role =
        if conversation.prompt.trim().is_empty() { RoleText::BuiltIn } else { RoleText::Custom(&conversation.prompt) };
    let input = SystemInput { role, tools: &conversation.tools.specs, ..SystemInput::default() };
    let system = system_entry(render_system(&input)?, &O200k);
    let said: Vec<_> = (0..=steps.len() / CHANGES).map(reminders).collect();
    let sum = |experiment: &Experiment| {
        let beside = |step: usize| RequestSurroundings {
            system: &system,
            system_input: Some(&input),
            tools: &conversation.tools,
            documents: None,
            reminders: said.get(step / CHANGES).filter(|_| experiment.variant.reminders).cloned(),
            cache_key: None,
        };
        let recording = Recording { history: &conversation.history, steps: &steps, beside: &beside };
        let replay = replay(&recording, &experiment.variant.policy, &experiment.model, &O200k, |_, _| ());
        let distances = || replay.requests.iter().filter_map(|one| one.reminder_distance);
        // What must be kept is looked for once: prices change little of what is sent.
        let wanted = experiment.question == Question::Pruning && experiment.table == 0;
        let kept = replay.last.as_ref().filter(|_| wanted).map(|last| coverage(&conversation.history, last));
        Sum {
            requests: replay.requests.len() as u64,
            usage: replay.usage(),
            cost: replay.cost().unwrap_or_default() * 1e6,
            breaks: replay.breaks(),
            too_large: replay.too_large,
            regret: replay.regret,
            peak: replay.peak(),
            kept: kept.unwrap_or_default(),
            distance: distances().max().unwrap_or(0),
            far: distances().filter(|distance| *distance > DISTANCE).count(),
        }
    };
    Ok(Cost(Some(experiments.iter().map(sum).collect())))
}

/// Reminders of 1,000 tokens, in this version.
fn reminders(version: usize) -> Reminders {
    const LINES: usize = 45;
    let text = "- [ ] a step of the plan, described in a line of the usual length for such a thing\n".repeat(LINES);
    Reminders { todo: Some(format!("{text}- [x] {version} steps are done\n")), ..Reminders::default() }
}

fn tell_places(rows: &[(&Experiment, &Sum)]) {
    figures::line(
        "| reminders | tokens a request | read | written | fresh | cost a request | times `none` | breaks | furthest reminder | further than 24 |",
    );
    figures::line("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    let none = rows.first().map_or(f64::NAN, |(_, sum)| sum.cost);
    for (experiment, sum) in rows {
        let name = &experiment.variant.name;
        let (distance, far) = if experiment.variant.reminders {
            (sum.distance.to_string(), sum.far.to_string())
        } else {
            Default::default()
        };
        figures::line(&format!("| `{name}` | {} | {distance} | {far} |", told(sum, none)));
    }
    let aware = rows.iter().find(|(experiment, _)| experiment.variant.name == "cache-aware");
    if let Some((_, sum)) = aware {
        let reached = sum.cost <= GOAL * none && sum.far == 0;
        let word = if reached { "reached" } else { "MISSED" };
        figures::line(&format!(
            "\n`cache-aware` at most {GOAL:.2} times `none`, no reminder further than {DISTANCE}: {word}"
        ));
    }
}

fn tell_pruning(rows: &[(&Experiment, &Sum)]) {
    figures::line(
        "| pruning and compression | tokens a request | read | written | fresh | cost a request | times `none` | breaks | peak | regret | must-keep |",
    );
    figures::line("| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    let none = rows.first().map_or(f64::NAN, |(_, sum)| sum.cost);
    for (experiment, sum) in rows {
        let Coverage { kept, all } = sum.kept;
        let kept = if all > 0 { format!("{:.1} %", 100.0 * kept as f64 / all as f64) } else { "–".to_owned() };
        let refused = if sum.too_large > 0 { format!(" ({} too large)", sum.too_large) } else { String::new() };
        let name = &experiment.variant.name;
        figures::line(&format!("| `{name}`{refused} | {} | {} | {} | {kept} |", told(sum, none), sum.peak, sum.regret));
    }
}

/// What both tables have: tokens by class, cost and breaks.
fn told(sum: &Sum, none: f64) -> String {
    let requests = sum.requests.max(1) as f64;
    let each = |tokens: u64| tokens as f64 / requests;
    let Usage { input, cached_input, cache_write, .. } = sum.usage;
    format!(
        "{:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.3} | {:.1} %",
        each(sum.usage.all_input()),
        each(cached_input),
        each(cache_write),
        each(input),
        sum.cost / requests,
        sum.cost / none,
        100.0 * sum.breaks as f64 / requests,
    )
}
