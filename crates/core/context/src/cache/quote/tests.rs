use std::sync::Arc;

use haft_types::{
    CacheKind, CacheRule, Entry, Layer, Message, Part, Price, Request, Role, ToolSet,
};
use proptest::prelude::*;

use super::*;
use crate::cache::simulate::request_pieces;
use crate::testing::{Quarter, conversation, entry, model, system, tool_set, whole_conversation};
use crate::{
    Account, Assembly, Compress, Placement, Policy, Reminders, Snapshot, assemble, system_entry,
};

const RULES: [CacheKind; 9] = [
    CacheKind::Anthropic,
    CacheKind::Automatic,
    CacheKind::Openai,
    CacheKind::OpenaiBreakpoints,
    CacheKind::Gemini,
    CacheKind::Deepseek,
    CacheKind::Vllm,
    CacheKind::LlamaCpp,
    CacheKind::None,
];

fn priced(rule: CacheKind, tokenizer_factor: f64) -> ModelSpec {
    let price = Price {
        input: 3.0,
        cached_input: Some(0.3),
        cache_write: Some(3.75),
        output: 15.0,
        long: None,
    };
    let cache = CacheRule {
        rule,
        min: 256,
        ..CacheRule::default()
    };
    ModelSpec {
        price: Some(price),
        cache,
        tokenizer_factor,
        ..model()
    }
}

/// The parts of a request, so that each one can be changed.
#[derive(Clone)]
struct Given {
    system: Arc<Entry>,
    tools: Arc<ToolSet>,
    history: Vec<Arc<Entry>>,
}

impl Given {
    fn new(history: &[Arc<Entry>]) -> Self {
        Self {
            system: system(),
            tools: tool_set(&["read_file"]),
            history: history.iter().map(longer).collect(),
        }
    }

    fn assemble(&self, model: &ModelSpec, last: Option<&Account>) -> Assembly {
        let reminders = Reminders {
            todo: Some("- [ ] make the build pass".into()),
            ..Reminders::default()
        };
        let policy = Policy {
            reminders: Placement::AfterToolResult(3),
            compress: Some(Compress::RoundEnd),
            ..Policy::default()
        };
        let plain = Snapshot::new(
            model,
            &policy,
            &self.system,
            &self.tools,
            &self.history,
            &Quarter,
        );
        let last = last.map(|account| &account.sent);
        assemble(&Snapshot {
            reminders: Some(&reminders),
            last,
            ..plain
        })
        .unwrap()
    }
}

/// Returns the message with a longer text, so that changes matter.
fn longer(one: &Arc<Entry>) -> Arc<Entry> {
    let mut message: Message = one.message.clone();
    for part in &mut message.content {
        match part {
            Part::Text { text, .. } => *text = text.repeat(30),
            Part::ToolResult(result) => result.envelope.text = result.envelope.text.repeat(60),
            Part::ToolCall(_) | Part::Thinking(_) | Part::Image(_) => {}
        }
    }
    entry(message)
}

/// Returns the message with other words of equal length.
fn other_words(one: &Arc<Entry>) -> Arc<Entry> {
    let mut message = one.message.clone();
    for part in &mut message.content {
        match part {
            Part::Text { text, .. } => *text = text.to_uppercase(),
            Part::ToolResult(result) => result.envelope.text = result.envelope.text.to_uppercase(),
            Part::ToolCall(call) => call.arguments = call.arguments.to_uppercase(),
            Part::Thinking(_) | Part::Image(_) => {}
        }
    }
    entry(message)
}

/// Returns the segments of a block that lies entirely before the reminders.
fn answered_block(request: &Request, place: f64) -> Option<(usize, usize)> {
    let run = request
        .segments
        .iter()
        .position(|segment| segment.layer == Layer::Reminders)?;
    let role = |index: usize| request.segments[index].entry.message.role;
    let starts: Vec<_> = (1..run)
        .filter(|index| role(*index) == Role::Assistant)
        .collect();
    let first = *starts.get((starts.len() as f64 * place) as usize)?;
    let end = (first + 1..run)
        .find(|index| role(*index) != Role::Tool)
        .unwrap_or(run);
    Some((first, end))
}

/// A conversation in progress: every request is recorded and sent to a simulated cache.
struct Driven {
    given: Given,
    model: ModelSpec,
    known: PrefixCache,
    cache: CacheSimulator,
    at: Duration,
    last: Option<Assembly>,
}

impl Driven {
    fn new(history: &[Arc<Entry>], model: ModelSpec, pause: Duration) -> Self {
        let known = PrefixCache::new(&model);
        let cache = CacheSimulator::new(&model.cache);
        let mut driven = Self {
            given: Given::new(history),
            model,
            known,
            cache,
            at: Duration::ZERO,
            last: None,
        };
        let whole = driven.given.clone();
        for end in 1..=history.len() {
            let is_asked = matches!(history[end - 1].message.role, Role::User | Role::Tool);
            let goes_on = history
                .get(end)
                .is_none_or(|next| next.message.role == Role::Assistant);
            if is_asked && goes_on {
                driven.given.history = whole.history[..end].to_vec();
                let next = driven.next(&driven.given);
                let layers = next.request.segments.iter().map(|segment| segment.layer);
                driven
                    .known
                    .record_pieces(pause, request_pieces(&next.request, 1.0), layers);
                driven.at += pause;
                driven.cache.send_request(
                    driven.at,
                    &request_pieces(&next.request, driven.model.tokenizer_factor),
                );
                driven.last = Some(next);
            }
        }
        driven
    }

    fn next(&self, given: &Given) -> Assembly {
        given.assemble(&self.model, self.last.as_ref().map(|last| &last.account))
    }

    /// Returns the simulated usage of a request made of these parts.
    fn simulated_usage(&self, given: &Given, idle: Duration) -> Usage {
        let next = self.next(given);
        self.cache.clone().send_request(
            self.at + idle,
            &request_pieces(&next.request, self.model.tokenizer_factor),
        )
    }
}

fn is_near(one: f64, other: f64, whole: f64) -> bool {
    (one - other).abs() <= whole / 100.0
}

/// True if tokens read and tokens billed anew differ by less than one percent of the request.
fn is_close_in_tokens(quoted: Usage, really: Usage) -> bool {
    let whole = really.all_input() as f64;
    let anew = |usage: Usage| (usage.input + usage.cache_write) as f64;
    is_near(
        quoted.cached_input as f64,
        really.cached_input as f64,
        whole,
    ) && is_near(anew(quoted), anew(really), whole)
}

/// True if the tokens and the cost are close.
fn is_close(quoted: Usage, really: Usage) -> bool {
    let price = priced(CacheKind::None, 1.0).price.unwrap();
    let cost = |usage| price.request_cost(usage).total;
    is_close_in_tokens(quoted, really) && is_near(cost(quoted), cost(really), cost(really))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn removal_quotes_equal_single_quotes(
        rule in prop::sample::select(&RULES),
        sizes in prop::collection::vec(1_u64..900, 2..30),
        sent in 1_usize..30,
        idle in 0_u64..4_000,
    ) {
        let model = priced(rule, 1.3);
        let piece = |(index, tokens): (usize, &u64)| CachePiece {
            hash: ContentHash::from_content(&index.to_le_bytes()),
            tokens: *tokens,
            blocks: 1,
            boundary: index % 4 == 3,
        };
        let pieces: Vec<_> = sizes.iter().enumerate().map(piece).collect();
        let mut cache = PrefixCache::new(&model);
        let earlier = &pieces[..sent.min(pieces.len())];
        let layers = earlier[1..].iter().map(|_| Layer::History);
        cache.record_pieces(Duration::ZERO, earlier.to_vec(), layers);
        let idle = Duration::from_secs(idle);
        let quotes = cache.removal_quotes(idle, &pieces, &model);
        for first in 0..pieces.len() - 1 {
            for end in first + 1..pieces.len() {
                let single = cache.quote_removal(idle, &pieces, first..end, &model);
                prop_assert_eq!(quotes.quote(first..end), single);
            }
        }
    }

    #[test]
    fn change_quotes_agree_with_the_simulator(
        history in whole_conversation(40),
        rule in prop::sample::select(&RULES),
        factor in prop::sample::select(&[1.0, 1.3]),
        pause in 1_u64..200,
        place in 0.0_f64..1.0,
    ) {
        let driven = Driven::new(&history, priced(rule, factor), Duration::from_secs(pause));
        let Some(last) = &driven.last else { return Ok(()) };
        let soon = Duration::from_secs(pause);
        let model = &driven.model;

        let quote = driven.known.quote_change(ContextChange::Everything, soon, model);
        let tools = tool_set(&["list_file"]);
        let really = driven.simulated_usage(&Given { tools, ..driven.given.clone() }, soon);
        prop_assert!(is_close(quote.usage, really), "other tools: {:?} but {really:?}", quote.usage);

        let quote = driven.known.quote_change(ContextChange::From(0), soon, model);
        let text = driven.given.system.message.joined_text().replace(" the ", " THE ");
        let given = Given { system: system_entry(text, &Quarter), ..driven.given.clone() };
        let really = driven.simulated_usage(&given, soon);
        prop_assert!(is_close(quote.usage, really), "other system text: {:?} but {really:?}", quote.usage);

        let index = ((driven.given.history.len() as f64 * place) as usize).min(driven.given.history.len() - 1);
        let mut given = driven.given.clone();
        given.history[index] = other_words(&given.history[index]);
        let id = given.history[index].message.message_id;
        let segment = last.request.segments.iter().position(|one| one.entry.message.message_id == id).unwrap();
        let quote = driven.known.quote_change(ContextChange::From(segment), soon, model);
        let really = driven.simulated_usage(&given, soon);
        prop_assert!(is_close(quote.usage, really), "message {index}: {:?} but {really:?}", quote.usage);

        if let Some((first, end)) = answered_block(&last.request, place) {
            let quote = driven.known.quote_change(ContextChange::Without { first, end }, soon, model);
            let mut given = driven.given.clone();
            let gone: Vec<_> =
                last.request.segments[first..end].iter().map(|one| one.entry.message.message_id).collect();
            given.history.retain(|entry| !gone.contains(&entry.message.message_id));
            let really = driven.simulated_usage(&given, soon);
            // If the reminders move or get other marks in addition, whole requests must be
            // compared, as the editor does.
            let run = |request: &Request| request.segments.iter().position(|one| one.layer == Layer::Reminders);
            let stays = run(&driven.next(&given).request) == run(&last.request).map(|at| at - (end - first));
            prop_assert!(
                !stays || is_close_in_tokens(quote.usage, really),
                "without {first}..{end}: {:?} but {really:?}",
                quote.usage
            );
        }

        let long = Duration::from_secs(301);
        let really = driven.simulated_usage(&driven.given, long);
        let waited = driven.known.quote_pause(long, model);
        if let Some(quote) = waited {
            prop_assert!(is_close(quote.usage, really), "waited: {:?} but {really:?}", quote.usage);
        }
        let warm = driven.simulated_usage(&driven.given, Duration::ZERO);
        prop_assert_eq!(waited.is_some(), warm.cached_input > really.cached_input);

        let another = priced(rule, 1.1);
        let quote = driven.known.quote_model_switch(&another);
        let request = driven.given.assemble(&another, None).request;
        let really = CacheSimulator::new(&another.cache).send_request(Duration::ZERO, &request_pieces(&request, 1.1));
        prop_assert!(is_close(quote.usage, really), "another model: {:?} but {really:?}", quote.usage);
    }

    /// If only the last request is known, as after a restart, rewrites of everything are quoted as
    /// accurately.
    #[test]
    fn change_quotes_of_everything_need_only_the_last_request(
        history in whole_conversation(30),
        rule in prop::sample::select(&RULES),
    ) {
        let driven = Driven::new(&history, priced(rule, 1.0), Duration::from_secs(1));
        let Some(last) = &driven.last else { return Ok(()) };
        let mut known = PrefixCache::new(&driven.model);
        known.record_request(Duration::ZERO, &last.account.sent, last.request.tools.tokens, |_| 1);
        let soon = Duration::from_secs(1);
        let long = Duration::from_secs(3_601);
        let everything = |cache: &PrefixCache| cache.quote_change(ContextChange::Everything, soon, &driven.model).usage;
        prop_assert_eq!(everything(&known), everything(&driven.known));
        prop_assert_eq!(known.quote_pause(long, &driven.model).is_some(), driven.known.quote_pause(long, &driven.model).is_some());
        prop_assert_eq!(known.tokens(), driven.known.tokens());
    }
}

#[test]
fn waited_quotes_the_price_of_what_is_billed_again() {
    let driven = Driven::new(
        &conversation("UATAT"),
        priced(CacheKind::Anthropic, 1.0),
        Duration::from_secs(1),
    );
    let quote = driven
        .known
        .quote_pause(Duration::from_secs(301), &driven.model)
        .unwrap();
    let again = quote.usage.cache_write + quote.usage.input;
    let read = quote.otherwise.cached_input;
    assert_eq!((quote.tokens, quote.usage.cached_input), (read, 0));
    assert_eq!(quote.saved_tokens(), 0);
    let cost = (quote.usage.cache_write - quote.otherwise.cache_write) as f64 * 3.75 / 1e6;
    assert!((quote.cost.unwrap() - cost).abs() < 1e-9, "{quote:?}");
    assert!(
        (quote.extra.unwrap() - (cost - read as f64 * 0.3 / 1e6)).abs() < 1e-9,
        "{quote:?}"
    );
    assert!(again >= read);
    let text = quote.to_string();
    assert!(
        text.starts_with('≈') && text.contains(" tokens, $0.0"),
        "{text}"
    );
}

#[test]
fn change_quotes_nothing_for_no_change() {
    let driven = Driven::new(
        &conversation("UATAT"),
        priced(CacheKind::Openai, 1.0),
        Duration::from_secs(1),
    );
    let quote = driven.known.quote_change(
        ContextChange::From(usize::MAX),
        Duration::ZERO,
        &driven.model,
    );
    assert_eq!(
        (quote.tokens, quote.cost, quote.extra),
        (0, Some(0.0), Some(0.0))
    );
    assert_eq!(
        driven
            .known
            .quote_pause(Duration::from_secs(10), &driven.model),
        None
    );
    let unpriced = ModelSpec {
        price: None,
        ..driven.model.clone()
    };
    let quote = driven
        .known
        .quote_change(ContextChange::Everything, Duration::ZERO, &unpriced);
    assert!(
        quote.tokens > 0 && quote.cost.is_none() && !quote.to_string().contains('$'),
        "{quote}"
    );
}

/// Changing a prefix that the cache has already lost costs nothing.
#[test]
fn change_of_a_cold_prefix_is_free() {
    let driven = Driven::new(
        &conversation("UATAT"),
        priced(CacheKind::Anthropic, 1.0),
        Duration::from_secs(1),
    );
    let quote = driven.known.quote_change(
        ContextChange::Everything,
        Duration::from_secs(301),
        &driven.model,
    );
    assert_eq!(quote.tokens, 0);
    assert!(quote.extra.unwrap() <= 0.0, "{quote:?}");
}
