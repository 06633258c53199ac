use std::sync::Arc;
use std::time::Duration;

use haft_types::{CacheKind, CacheRule, Entry, Envelope, Layer, ModelSpec, Role};
use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, conversation, model, named_result, system, tool_set, whole_conversation,
};
use crate::{
    Account, Assembly, Carried, Compress, Marks, Placement, Policy, assemble, repair_blocks,
};

/// A conversation with the state that the engine keeps between requests.
struct World {
    model: ModelSpec,
    policy: Policy,
    history: Vec<Arc<Entry>>,
    reminders: Reminders,
    marks: Marks,
    last: Option<Account>,
    carried: Carried,
    idle: Option<Duration>,
}

impl World {
    fn new(shape: &str) -> Self {
        let cache = CacheRule {
            rule: CacheKind::Anthropic,
            min: 1,
            ..CacheRule::default()
        };
        Self {
            model: ModelSpec { cache, ..model() },
            policy: Policy {
                reminders: Placement::CacheAware,
                compress: Some(Compress::Never),
                ..Policy::default()
            },
            history: conversation(shape),
            reminders: Reminders {
                role: Some("You are careful.".into()),
                todo: Some("- [ ] one".into()),
                ..Reminders::default()
            },
            marks: Marks::default(),
            last: None,
            carried: Carried::default(),
            idle: None,
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
            reminders: Some(&self.reminders),
            marks: Some(&self.marks),
            last: self.last.as_ref().map(|account| &account.sent),
            carried: Some(&self.carried),
            idle: self.idle,
            ..plain
        })
        .unwrap()
    }

    /// Builds the next request and keeps its state; returns the request with one letter per
    /// segment.
    fn send(&mut self) -> String {
        let assembly = self.build();
        let shape = segment_letters(&assembly);
        self.keep(assembly.account);
        shape
    }

    fn keep(&mut self, account: Account) {
        if let Some(carried) = &account.carried {
            // Round trip through JSON, as in the store.
            self.carried = serde_json::from_str(&serde_json::to_string(carried).unwrap()).unwrap();
        }
        self.last = Some(account);
    }

    fn then(&mut self, shape: &str) -> &mut Self {
        self.history = conversation(shape);
        self
    }
}

fn segment_letters(assembly: &Assembly) -> String {
    let letter = |segment: &Segment| match (segment.layer, segment.entry.message.role) {
        (Layer::Reminders, _) => segment
            .owner
            .strip_prefix("reminder:")
            .unwrap()
            .chars()
            .next()
            .unwrap(),
        (_, Role::System) => 'S',
        (_, Role::User) => 'U',
        (_, Role::Summary) => 'Σ',
        (_, Role::Tool) => 'T',
        (_, Role::Assistant) if segment.entry.message.tool_calls().next().is_some() => 'A',
        (_, Role::Assistant) => 'a',
    };
    assembly.request.segments.iter().map(letter).collect()
}

#[test]
fn copies_stay_and_changed_reminders_are_appended() {
    let mut world = World::new("U");
    assert_eq!(world.send(), "SUrt");
    assert_eq!(world.then("UAT").send(), "SUrtAT");
    world.reminders.todo = Some("- [x] one".into());
    assert_eq!(world.then("UATAT").send(), "SUrtATATt");
    assert_eq!(world.then("UATATATaU").send(), "SUrtATATtATaU");
    // The list equals an older copy again: only the newest copy counts.
    world.reminders.todo = Some("- [ ] one".into());
    assert_eq!(world.send(), "SUrtATATtATaUt");
    world.reminders.todo = None;
    assert_eq!(world.send(), "SUrtATATtATaUtt");
    assert!(
        world
            .carried
            .copies
            .last()
            .unwrap()
            .text
            .contains("no longer holds")
    );
    assert_eq!(
        world.send(),
        "SUrtATATtATaUtt",
        "that it is empty is said once"
    );
}

#[test]
fn copies_too_far_from_the_end_are_repeated() {
    let mut world = World::new("U");
    world.send();
    world.policy.max_distance = 6;
    assert_eq!(
        world.then("UATATU").build().request.segments.len(),
        9,
        "six messages lie behind the role"
    );
    world.policy.max_distance = 5;
    assert_eq!(world.send(), "SUrtATATUrt", "one pushes the other");
}

/// Returns the conversation with the message at `index` replaced by the result of a TODO tool.
fn conversation_with_list(
    shape: &str,
    index: usize,
    tool: &str,
    envelope: Envelope,
) -> Vec<Arc<Entry>> {
    let mut history = conversation(shape);
    let call = history[index]
        .message
        .tool_results()
        .next()
        .unwrap()
        .tool_call_id
        .clone();
    history[index] = named_result(index, &call, tool, envelope);
    history
}

/// Returns a conversation with a TODO list and no role.
fn world_with_list(shape: &str, index: usize, shown: &str) -> World {
    let mut world = World::new("");
    world.reminders = Reminders {
        todo: Some("Keep it.\n\n- [~] one\n- [ ] two".into()),
        ..Reminders::default()
    };
    world.history = conversation_with_list(shape, index, "todo_write", Envelope::success(shown));
    world
}

#[test]
fn reminder_repeats_a_list_shown_too_far_back() {
    const SHOWN: &str = "[~] one\n[ ] two\nMore than that.";
    let mut world = world_with_list("UAT", 2, SHOWN);
    world.policy.max_distance = 4;
    assert_eq!(world.send(), "SUAT");
    world.history = world_with_list("UATATAT", 2, SHOWN).history;
    assert_eq!(world.send(), "SUATATAT", "four messages lie behind it");
    world.history = world_with_list("UATATATAT", 2, SHOWN).history;
    assert_eq!(world.send(), "SUATATATATt");
    // A copy exists from here on, and a new list makes it outdated.
    world.reminders.todo = Some("- [x] one".into());
    let again = conversation_with_list(
        "UATATATATAT",
        10,
        "todo_write",
        Envelope::success("[x] one"),
    )
    .remove(10);
    world.history = world_with_list("UATATATATAT", 2, SHOWN).history;
    world.history[10] = again;
    assert_eq!(world.send(), "SUATATATATtATt");
}

#[test]
fn reminder_sends_a_list_that_no_result_shows() {
    for shown in [
        "[ ] one\n[ ] two",
        "[~] one",
        "[~] one\n[ ] two\n[ ] three",
        "[ ] two\n[~] one",
        "{\"status\":\"success\"}",
    ] {
        assert_eq!(world_with_list("UAT", 2, shown).send(), "SUATt", "{shown}");
    }
    let shown = "[~] one\n[ ] two";
    let mut world = world_with_list("UAT", 2, shown);
    world.history = conversation_with_list("UAT", 2, "read_file", Envelope::success(shown));
    assert_eq!(
        world.send(),
        "SUATt",
        "a file that holds the same is no list"
    );
    world = world_with_list("UATAT", 2, shown);
    world.history[4] =
        conversation_with_list("UATAT", 4, "todo_write", Envelope::success("[~] other")).remove(4);
    assert_eq!(world.send(), "SUATATt", "the newest result counts");
    world = world_with_list("UATAT", 2, shown);
    world.history[4] = conversation_with_list(
        "UATAT",
        4,
        "todo_write",
        Envelope::failure("store", "cannot"),
    )
    .remove(4);
    assert_eq!(world.send(), "SUATAT", "one that failed changed nothing");
}

#[test]
fn copies_collapse_on_a_cold_prefix() {
    let mut world = World::new("U");
    world.send();
    world.reminders.todo = Some("- [x] one".into());
    assert_eq!(world.then("UAT").send(), "SUrtATt");
    world.idle = Some(Duration::from_mins(5));
    assert_eq!(
        world.then("UATAT").send(),
        "SUrtATtAT",
        "an entry lives for five minutes"
    );
    world.idle = Some(Duration::from_secs(301));
    let cold = world.build();
    assert_eq!(segment_letters(&cold), "SUATATrt");
    let broken = cold
        .account
        .prefix
        .as_ref()
        .unwrap()
        .broken
        .as_ref()
        .unwrap();
    assert_eq!(
        (broken.price.tokens, broken.price.cost),
        (0, None),
        "nothing is lost that was not lost before"
    );
    assert_eq!(cold.account.expected.cached_input, 0);
    world.keep(cold.account);
    world.idle = None;
    assert_eq!(world.then("UATATAT").send(), "SUATATrtAT");
    world.model.name = "other".into();
    assert_eq!(world.then("UATATATAT").send(), "SUATATATATrt");
}

#[test]
fn break_removes_the_copies_behind_it_only() {
    let mut world = World::new("U");
    for (shape, todo) in [("U", "a"), ("UAT", "b"), ("UATAT", "c"), ("UATATAT", "d")] {
        world.reminders.todo = Some(todo.into());
        world.then(shape).send();
    }
    assert_eq!(world.send(), "SUrtATtATtATt");
    world.marks.deleted = [world.history[3].message.message_id].into();
    // The second block is removed: everything behind it is sent anew, once.
    assert_eq!(world.send(), "SUrtATtATt");
    assert_eq!(world.send(), "SUrtATtATt");
}

#[test]
fn copies_are_not_made_for_the_clock_alone() {
    let mut world = World::new("U");
    world.policy.clock = true;
    world.reminders.clock = Some("12:00".into());
    assert_eq!(world.send(), "SUrt");
    world.reminders.clock = Some("12:01".into());
    assert_eq!(world.then("UAT").send(), "SUrtAT");
    world.reminders.role = Some("You are bold.".into());
    assert_eq!(world.send(), "SUrtATr");
    assert!(
        world
            .carried
            .copies
            .last()
            .unwrap()
            .text
            .contains("Date and time: 12:01")
    );
}

#[test]
fn copies_are_dropped_when_the_placement_changes() {
    let mut world = World::new("U");
    world.send();
    world.policy.reminders = Placement::Tail;
    assert_eq!(world.then("UAT").send(), "SUATrt");
    assert!(world.carried.copies.is_empty());
}

/// Returns the current reminders by kind.
fn current_reminders(world: &World) -> Vec<(&'static str, String)> {
    let run = world.reminders.build_run(
        &world.policy,
        crate::memo::EntryMaker {
            counter: &Quarter,
            memo: None,
            recall: crate::memo::RecallTool::Missing,
        },
    );
    run.into_iter()
        .map(|(owner, entry)| (owner, entry.message.joined_text()))
        .collect()
}

fn check_invariants(world: &World, assembly: &Assembly) -> Result<(), TestCaseError> {
    let segments = &assembly.request.segments;
    for (owner, text) in current_reminders(world) {
        let newest = segments.iter().rposition(|segment| segment.owner == owner);
        prop_assert!(newest.is_some(), "{} is missing", owner);
        let newest = newest.unwrap();
        prop_assert_eq!(&segments[newest].entry.message.joined_text(), &text);
        prop_assert!(segments.len() - 1 - newest <= world.policy.max_distance as usize);
    }
    // An unchanged snapshot gives an equal request. (`assemble` checks that blocks are whole.)
    prop_assert_eq!(&world.build().request, &assembly.request);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn request_on_a_warm_prefix_only_appends(
        history in whole_conversation(60),
        todos in prop::collection::vec(0_u8..4, 120),
        distance in 4_u32..30,
    ) {
        let mut world = World::new("");
        world.policy.max_distance = distance;
        for (message, todo) in history.iter().zip(todos.iter().cycle()) {
            world.history.push(Arc::clone(message));
            if !repair_blocks(&world.history, &Quarter).repairs.is_empty() || message.message.role == Role::Assistant {
                continue;
            }
            world.reminders.todo = (*todo > 0).then(|| format!("- [ ] {todo}"));
            let assembly = world.build();
            check_invariants(&world, &assembly)?;
            let broken = assembly.account.prefix.as_ref().and_then(|prefix| prefix.broken.as_ref());
            prop_assert!(broken.is_none(), "{:?}", broken);
            world.keep(assembly.account);
        }
    }

    #[test]
    fn reminders_in_the_request_are_always_the_newest(
        history in whole_conversation(60),
        steps in prop::collection::vec((0_u8..4, 0_u8..12), 120),
    ) {
        let mut world = World::new("");
        world.policy.compress = Some(Compress::RoundEnd);
        world.policy.safe_zone = Some(crate::SafeZone::Tokens(1_500));
        world.policy.prune_keep = Some(2);
        for (message, (todo, event)) in history.iter().zip(steps.iter().cycle()) {
            world.history.push(Arc::clone(message));
            if !repair_blocks(&world.history, &Quarter).repairs.is_empty() || message.message.role == Role::Assistant {
                continue;
            }
            world.reminders.todo = (*todo > 0).then(|| format!("- [ ] {todo}"));
            world.idle = (*event == 0).then_some(Duration::from_hours(1));
            if *event == 1 && world.history.len() > 4 {
                world.marks.deleted.insert(world.history[1].message.message_id);
            }
            let assembly = world.build();
            check_invariants(&world, &assembly)?;
            if *event == 0 {
                let reminders = assembly.request.segments.iter().filter(|one| one.layer == Layer::Reminders).count();
                prop_assert_eq!(reminders, current_reminders(&world).len(), "cold: one copy a kind");
            }
            world.keep(assembly.account);
        }
    }
}
