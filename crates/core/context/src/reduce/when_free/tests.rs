use std::sync::Arc;
use std::time::Duration;

use haft_types::{CacheKind, CacheRule, Entry, Envelope, Price, Segment};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::{Quarter, conversation, model, system, tool_set, whole_conversation};
use crate::{
    Account, Assembly, Carried, Cause, Cleared, Compress, Policy, SafeZone, assemble, repair_blocks,
};

const PRICE: Price = Price {
    input: 3.0,
    cached_input: Some(0.3),
    cache_write: Some(3.75),
    output: 15.0,
    long: None,
};

fn priced(rule: CacheKind) -> ModelSpec {
    ModelSpec {
        price: Some(PRICE),
        cache: CacheRule {
            rule,
            min: 1,
            ..CacheRule::default()
        },
        ..model()
    }
}

/// `(w − r)/r · R/X`: 11.5 requests if an edit rewrites as many tokens as it saves.
#[test]
fn pays_from_the_break_even_on() {
    let edit = PrefixEdit {
        saved: 1_000,
        rewritten: 1_000,
    };
    let markers = priced(CacheKind::Anthropic);
    assert!(!edit.pays_off(11, &markers) && edit.pays_off(12, &markers));
    // Writing costs no more than input here: 9 requests.
    let prefix = priced(CacheKind::Automatic);
    assert!(!edit.pays_off(9, &prefix) && edit.pays_off(10, &prefix));
    assert!(!PrefixEdit { saved: 0, ..edit }.pays_off(u64::MAX, &markers));
    assert!(
        PrefixEdit {
            rewritten: 0,
            ..edit
        }
        .pays_off(1, &markers)
    );
    assert!(edit.pays_off(1, &priced(CacheKind::None)));
    assert!(
        !edit.pays_off(
            u64::MAX,
            &ModelSpec {
                price: None,
                ..markers
            }
        ),
        "no price is guessed"
    );
}

/// A conversation with results of 100 lines, with the state that the engine keeps.
struct World {
    model: ModelSpec,
    policy: Policy,
    history: Vec<Arc<Entry>>,
    last: Option<Account>,
    carried: Carried,
    cleared: Cleared,
    idle: Duration,
}

impl World {
    fn new() -> Self {
        Self {
            model: ModelSpec {
                price: None,
                ..priced(CacheKind::Anthropic)
            },
            policy: Policy {
                compress: Some(Compress::WhenFree),
                ..Policy::default()
            },
            history: Vec::new(),
            last: None,
            carried: Carried::default(),
            cleared: Cleared::default(),
            idle: Duration::ZERO,
        }
    }

    fn build(&self) -> Assembly {
        let system = system();
        let tools = tool_set(&["read_file"]);
        let plain = Snapshot::new(
            &self.model,
            &self.policy,
            &system,
            &tools,
            &self.history,
            &Quarter,
        );
        assemble(&Snapshot {
            last: self.last.as_ref().map(|account| &account.sent),
            carried: Some(&self.carried),
            cleared: Some(&self.cleared),
            idle: Some(self.idle),
            ..plain
        })
        .unwrap()
    }

    /// Sends the next request; returns its letters, with `t` for a compressed and `.` for a cleared
    /// result, and the cause of a break.
    fn send(&mut self, shape: &str) -> (String, Option<Cause>) {
        self.history = long_results(&conversation(shape));
        let assembly = self.build();
        let letter = |segment: &Segment| match (segment.owner, segment.entry.message.role) {
            ("history:compressed", _) => 't',
            ("history:cleared", _) => '.',
            (_, Role::Tool) => 'T',
            (_, Role::Assistant) => 'A',
            (_, Role::System) => 'S',
            (_, Role::User | Role::Summary) => 'U',
        };
        let shape = assembly.request.segments.iter().map(letter).collect();
        let cause = assembly
            .account
            .prefix
            .as_ref()
            .and_then(|prefix| prefix.broken.as_ref())
            .map(|one| one.cause);
        self.keep(assembly.account);
        (shape, cause)
    }

    fn keep(&mut self, account: Account) {
        self.carried = account
            .carried
            .clone()
            .unwrap_or_else(|| self.carried.clone());
        self.cleared = account
            .cleared
            .clone()
            .unwrap_or_else(|| self.cleared.clone());
        self.last = Some(account);
    }
}

/// Returns the conversation with every result a listing of 100 entries, of which compression keeps
/// 20.
fn long_results(history: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
    let long = |entry: &Arc<Entry>| {
        let mut message = entry.message.clone();
        for part in &mut message.content {
            if let haft_types::Part::ToolResult(result) = part {
                let id = message.message_id.short_id();
                let entries: Vec<_> = (0..100)
                    .map(|number| format!("{id}/file-{number}"))
                    .collect();
                let text = entries.join("\n");
                result.name = "list_files".into();
                result.envelope = Envelope::success(text).with_data(json!({"entries": entries}));
            }
        }
        Entry::new(message, &Quarter)
    };
    history.iter().map(long).collect()
}

#[test]
fn compression_of_finished_rounds_waits_for_a_cold_cache() {
    let mut world = World::new();
    assert_eq!(world.send("UAT"), ("SUAT".into(), None));
    assert_eq!(
        world.send("UATaU"),
        ("SUATAU".into(), None),
        "warm, and no price to weigh: it waits"
    );
    assert_eq!(world.send("UATaUAT"), ("SUATAUAT".into(), None));
    world.idle = Duration::from_hours(1);
    assert_eq!(
        world.send("UATaUATaU"),
        ("SUAtAUAtAU".into(), Some(Cause::Compression)),
        "everything that waits"
    );
    world.idle = Duration::ZERO;
    assert_eq!(
        world.send("UATaUATaUAT"),
        ("SUAtAUAtAUAT".into(), None),
        "what was compressed stays so"
    );
    assert_eq!(
        world.send("UATaUATaUATaU"),
        ("SUAtAUAtAUATAU".into(), None),
        "and the next round waits again"
    );
    world.model.name = "other".into();
    assert_eq!(
        world.send("UATaUATaUATaU"),
        ("SUAtAUAtAUAtAU".into(), Some(Cause::ModelSwitched))
    );
}

#[test]
fn compression_on_a_warm_cache_depends_on_the_price() {
    let mut world = World {
        model: priced(CacheKind::Anthropic),
        ..World::new()
    };
    assert_eq!(world.send("UAT").1, None);
    assert_eq!(
        world.send("UATaU").1,
        None,
        "two requests do not pay for writing the round again"
    );
    let rounds = |count: usize| format!("{}U", "UATa".repeat(count));
    world.send(&rounds(20));
    assert_eq!(
        world.carried.compressed_rounds, 0,
        "after forty requests too few more are expected"
    );
    world.send(&rounds(60));
    assert_eq!(world.carried.compressed_rounds, 61, "sixty requests do");
}

/// Returns a conversation whose safe zone holds three whole results.
fn world_with_narrow_zone() -> World {
    let mut world = World::new();
    world.policy.compress = Some(Compress::Never);
    world.send("UATaUATAT");
    let room = world.last.take().unwrap().budget.used_tokens();
    let mut world = World::new();
    world.policy.safe_zone = Some(SafeZone::Tokens(room + 200));
    world.policy.prune_keep = Some(1);
    world
}

#[test]
fn request_above_the_safe_zone_compresses_before_it_clears() {
    let mut world = world_with_narrow_zone();
    world.policy.prune_to = Some(1.0);
    assert_eq!(world.send("UAT").0, "SUAT");
    assert_eq!(world.send("UATaUAT"), ("SUATAUAT".into(), None));
    assert_eq!(
        world.send("UATaUATATAT"),
        ("SUAtAUATATAT".into(), Some(Cause::Compression)),
        "no longer fits"
    );
}

#[test]
fn pruning_frees_enough_with_one_break() {
    let mut world = world_with_narrow_zone();
    world.send("UAT");
    world.send("UATaUAT");
    // Compression alone would keep the request below the zone only until the next steps.
    assert_eq!(
        world.send("UATaUATATAT"),
        ("SUA.AUA.A.AT".into(), Some(Cause::Pruning))
    );
    // Cleared results are not counted again: the request is below the zone, so nothing is
    // compressed for lack of room.
    assert_eq!(world.send("UATaUATATATaU"), ("SUA.AUA.A.ATAU".into(), None));
    assert_eq!(
        world.send("UATaUATATATaUAT"),
        ("SUA.AUA.A.ATAUAT".into(), None)
    );
}

#[test]
fn pruning_on_a_cold_cache_clears_obsolete_results() {
    let mut world = World::new();
    world.policy.prune_keep = Some(1);
    // Every call of these conversations reads one file.
    assert_eq!(
        world.send("UATATAT"),
        ("SUA.A.AT".into(), None),
        "nothing was sent before"
    );
    assert_eq!(world.send("UATATATAT"), ("SUA.A.ATAT".into(), None), "warm");
    world.idle = Duration::from_hours(1);
    assert_eq!(world.send("UATATATATAT").0, "SUA.A.A.A.AT");
    world.idle = Duration::ZERO;
    assert_eq!(world.send("UATATATATATAT"), ("SUA.A.A.A.ATAT".into(), None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn without_price_only_a_cold_cache_changes_the_prefix(
        history in whole_conversation(50),
        cold in prop::collection::vec(0_u8..8, 60),
    ) {
        let history = long_results(&history);
        let mut world = World::new();
        for (message, cold) in history.iter().zip(cold.iter().cycle()) {
            world.history.push(Arc::clone(message));
            if !repair_blocks(&world.history, &Quarter).repairs.is_empty() || message.message.role == Role::Assistant {
                continue;
            }
            world.idle = Duration::from_secs(if *cold == 0 { 3_600 } else { 1 });
            let assembly = world.build();
            let broken = assembly.account.prefix.as_ref().and_then(|prefix| prefix.broken.as_ref());
            prop_assert!(*cold == 0 || broken.is_none(), "{:?}", broken);
            let waiting = assembly.request.segments.iter().filter(|one| one.owner == "history" && one.entry.message.role == Role::Tool);
            if *cold == 0 {
                // Only results of the running round are whole, and unseen results of an interrupted
                // round.
                let opens = |entry: &Arc<Entry>| entry.message.opens_round();
                let start = world.history.iter().rposition(opens).unwrap_or(0);
                let replies = |entry: &Arc<Entry>| entry.message.role == Role::Assistant;
                let reply = world.history.iter().rposition(replies).unwrap_or(start);
                let interrupted = world.history[..reply].iter().rposition(opens).unwrap_or(0);
                let is_unseen = world.history[reply..].iter().any(|entry| entry.message.role == Role::Tool);
                let start = if is_unseen { start.min(interrupted) } else { start };
                let running: Vec<_> = world.history[start..].iter().map(|entry| entry.message.message_id).collect();
                for segment in waiting {
                    prop_assert!(running.contains(&segment.entry.message.message_id));
                }
            }
            prop_assert_eq!(&world.build().request, &assembly.request);
            world.keep(assembly.account);
        }
    }
}
