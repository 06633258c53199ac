//! The context lab on recorded conversations: how well the simulated cache agrees with what providers counted, and what each
//! place of the reminders costs by that simulation. Nothing is sent.
//!
//! The prediction needs neither the recorded system prompt nor a tokenizer: what a request added is the difference of the totals
//! the provider counted, and a total that shrinks is taken as a prefix written anew. The first request of a session is left
//! out, because what the cache held before it is not recorded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use haft_context::{
    CacheSimulator, Piece, Place, Policy, Recording, Reminders, RoleText, Step, SystemInput, render_system, replay,
    system_entry,
};
use haft_model::O200k;
use haft_types::{CacheKind, CacheRule, ContentHash, Price, Usage};

use crate::recorded::{self, Conversation};
use crate::{figures, model};

/// Requests between two changes of the reminders: 5 % of them change.
const CHANGES: usize = 20;
/// What `cache-aware` may cost, in times of no reminders.
const GOAL: f64 = 1.10;

/// Read and write price in times of the input price, and the cache they belong to.
const TABLES: [(f64, f64, CacheKind); 3] =
    [(0.1, 1.25, CacheKind::Anthropic), (0.1, 1.0, CacheKind::Openai), (0.02, 1.0, CacheKind::Deepseek)];

/// Runs both measurements over the conversations of this file.
pub(crate) fn run(path: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        figures::line("skipped: set HAFT_TRAJECTORIES to a file of recorded conversations");
        return Ok(());
    };
    let places = places();
    let mut errors: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut sums = vec![vec![Sum::default(); places.len()]; TABLES.len()];
    let mut conversations = 0;
    for conversation in recorded::read(&path, &O200k)? {
        let conversation = conversation?;
        predict(&conversation, errors.entry(conversation.agent.clone()).or_default());
        if conversation.requests().count() < 2 {
            continue;
        }
        conversations += 1;
        for (table, sums) in TABLES.iter().zip(&mut sums) {
            for (place, sum) in places.iter().zip(sums) {
                place_cost(&conversation, *table, *place, sum)?;
            }
        }
    }
    ensure!(conversations > 0, "`{}` holds no conversation", path.display());
    errors.retain(|_, errors| !errors.is_empty());
    tell_errors(&mut errors);
    figures::line(&format!(
        "\n{conversations} conversations, reminders of about 1,000 tokens, 5 % of requests change them"
    ));
    for ((read, write, rule), sums) in TABLES.iter().zip(&sums) {
        tell_places(&format!("read {read}, write {write} ({rule:?})"), &places, sums);
    }
    Ok(())
}

/// `None` for no reminders at all.
fn places() -> Vec<Option<Place>> {
    let places = [Place::Front, Place::Tail, Place::AfterToolResult(3), Place::CacheAware];
    [None].into_iter().chain(places.into_iter().map(Some)).collect()
}

/// Predicts what each request of a session read, and notes by how much of its prompt that is wrong.
fn predict(conversation: &Conversation, errors: &mut Vec<f64>) {
    let gemini = conversation.agent.contains("mini-swe");
    let hour = conversation.billed.iter().any(|billed| billed.w1h > 0);
    let rule = CacheRule {
        rule: if gemini { CacheKind::Gemini } else { CacheKind::Anthropic },
        ttl: if hour { "1h" } else { "5m" }.into(),
        look_back: Some(20),
        ..CacheRule::default()
    };
    let mut cache = CacheSimulator::new(&rule);
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut total, mut clock) = (0, Duration::ZERO);
    for (number, billed) in conversation.billed.iter().enumerate() {
        let prompt = billed.input + billed.read + billed.write;
        if prompt < total {
            pieces.clear();
            total = 0;
        }
        // What was marked last time is not any more; the newest message always is.
        for piece in &mut pieces {
            piece.boundary = false;
        }
        let hash = ContentHash::of(&number.to_le_bytes());
        pieces.push(Piece { hash, tokens: prompt - total, blocks: 2, boundary: true });
        total = prompt;
        // A request is sent after the message before its answer.
        let sent = conversation.times.get(billed.at.saturating_sub(1)).copied().flatten();
        clock = sent.unwrap_or(clock + Duration::from_secs(1)).max(clock);
        let read = cache.send(clock, &pieces).cached_input;
        if number > 0 && prompt > 0 {
            errors.push(read.abs_diff(billed.read) as f64 / prompt as f64);
        }
    }
}

fn tell_errors(errors: &mut BTreeMap<String, Vec<f64>>) {
    figures::line("predicted against counted: |predicted − read| in % of the prompt");
    figures::line(&format!("{:<32} {:>9} {:>8} {:>8} {:>8}", "agent", "requests", "median", "p90", "mean"));
    for (agent, errors) in errors {
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| 100.0 * errors[((errors.len() - 1) as f64 * share).round() as usize];
        let mean = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
        figures::line(&format!("{agent:<32} {:>9} {:>7.2}% {:>7.2}% {mean:>7.2}%", errors.len(), at(0.5), at(0.9)));
    }
}

/// What a place came to.
#[derive(Clone, Copy, Default)]
struct Sum {
    requests: u64,
    usage: Usage,
    cost: f64,
    breaks: usize,
    too_large: usize,
    regret: usize,
    peak: u64,
}

fn reminders(request: usize) -> Reminders {
    let version = request / CHANGES;
    let text = "- [ ] a step of the plan, described in a line of the usual length for such a thing\n".repeat(48);
    Reminders { todo: Some(format!("{text}- [x] {version} steps are done\n")), ..Reminders::default() }
}

fn place_cost(
    conversation: &Conversation,
    (read, write, rule): (f64, f64, CacheKind),
    place: Option<Place>,
    sum: &mut Sum,
) -> anyhow::Result<()> {
    let mut spec = model::spec(rule, 200_000)?;
    spec.price =
        Some(Price { input: 1.0, cached_input: Some(read), cache_write: Some(write), output: 0.0, long: None });
    let role =
        if conversation.prompt.trim().is_empty() { RoleText::BuiltIn } else { RoleText::Custom(&conversation.prompt) };
    let input = SystemInput { role, tools: &conversation.tools.specs, ..SystemInput::default() };
    let system = system_entry(render_system(&input)?, &O200k);
    let mut clock = Duration::ZERO;
    let step = |messages: usize| {
        let at = conversation.times.get(messages - 1).copied().flatten();
        clock = at.unwrap_or(clock + Duration::from_secs(7)).max(clock);
        Step { messages, at: clock }
    };
    let steps: Vec<_> = conversation.requests().map(step).collect();
    let policy = Policy { reminders: place.unwrap_or_default(), ..Policy::default() };
    let recording = Recording {
        system: &system,
        system_input: Some(&input),
        tools: &conversation.tools,
        history: &conversation.history,
        steps: &steps,
        reminders: &|request| place.map(|_| reminders(request)),
    };
    let replay = replay(&recording, &policy, &spec, &O200k, |_| ());
    sum.requests += replay.requests.len() as u64;
    sum.usage += replay.usage();
    sum.cost += replay.cost().unwrap_or_default() * 1e6;
    sum.breaks += replay.breaks();
    sum.too_large += replay.too_large;
    sum.regret += replay.regret;
    sum.peak = sum.peak.max(replay.peak());
    Ok(())
}

fn tell_places(title: &str, places: &[Option<Place>], sums: &[Sum]) {
    figures::line(&format!(
        "\n{title:<34} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7}",
        "tokens", "read", "written", "fresh", "cost", "times", "breaks", "regret"
    ));
    let none = sums.first().map_or(f64::NAN, |sum| sum.cost);
    for (place, sum) in places.iter().zip(sums) {
        let each = |tokens: u64| tokens as f64 / sum.requests.max(1) as f64;
        let name = place.map_or_else(|| "no reminders".to_owned(), |place| place.to_string());
        let Usage { input, cached_input, cache_write, .. } = sum.usage;
        let goal = match place {
            Some(Place::CacheAware) if sum.cost <= GOAL * none => format!("  goal {GOAL}: reached"),
            Some(Place::CacheAware) => format!("  goal {GOAL}: MISSED"),
            _ => String::new(),
        };
        figures::line(&format!(
            "{name:<34} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>7.3} {:>6.1}% {:>7}{goal}",
            each(sum.usage.all_input()),
            each(cached_input),
            each(cache_write),
            each(input),
            sum.cost / sum.requests.max(1) as f64,
            sum.cost / none,
            100.0 * sum.breaks as f64 / sum.requests.max(1) as f64,
            sum.regret,
        ));
        if sum.too_large > 0 {
            figures::line(&format!("  {} requests were too large; the largest had {} tokens", sum.too_large, sum.peak));
        }
    }
}
