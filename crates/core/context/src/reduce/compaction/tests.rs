use super::*;
use crate::testing::{Quarter, at, conversation, entry, id, model, system, tool_set};
use crate::{Assembly, Snapshot, assemble};

fn usage(input: u64, output: u64) -> Usage {
    Usage { input: input / 2, cached_input: input - input / 2, output, ..Usage::default() }
}

#[test]
fn due_at_eighty_percent_of_the_window() {
    let policy = Policy::default();
    let due = |usage, input: &str, messages| compaction_due(&policy, 200_000, usage, input, messages);
    assert_eq!(due(usage(150_000, 10_000), "", 3), Due::Now);
    assert_eq!(due(usage(150_000, 9_999), "ab", 3), Due::No, "two characters are no token");
    assert_eq!(due(usage(150_000, 9_999), "äöü", 3), Due::Now, "characters, not bytes");
    assert_eq!(due(usage(150_000, 10_000), "", 2), Due::No, "too few messages");
}

#[test]
fn below_that_it_waits_for_a_cold_prefix() {
    let when_free = Policy { compress: Compress::WhenFree, ..Policy::default() };
    let due = |policy: &Policy, tokens| compaction_due(policy, 200_000, usage(tokens, 0), "", 3);
    assert_eq!(
        [119_999, 120_000, 159_999, 160_000].map(|tokens| due(&when_free, tokens)),
        [Due::No, Due::WhenFree, Due::WhenFree, Due::Now]
    );
    assert_eq!(due(&Policy::default(), 159_999), Due::No, "unless nothing waits");
}

#[test]
fn the_newest_ten_rounds_stay() {
    let history = conversation(&"UATTa".repeat(13));
    let plan = plan_compaction(&history, &Policy::default(), &Quarter).unwrap();
    assert_eq!((plan.rounds, plan.messages.len(), plan.first_kept), (3, 15, id(15)));
    assert_eq!((plan.from, plan.to), (at(0), at(14)));
    assert!(plan_compaction(&conversation(&"UATTa".repeat(10)), &Policy::default(), &Quarter).is_none());
    assert!(plan_compaction(&[], &Policy::default(), &Quarter).is_none());
}

#[test]
fn a_summary_stands_for_what_it_archives_and_is_never_compacted_again() {
    let mut history = conversation(&"UATa".repeat(13));
    let plan = plan_compaction(&history, &Policy::default(), &Quarter).unwrap();
    history.push(entry(summary_message(id(900), at(900), "Σ one", &plan)));
    history.push(crate::testing::text(901, Role::User, "next"));
    let sent = |history: &[Arc<Entry>]| -> (Vec<MessageId>, Assembly) {
        let (system, model, policy, tools) = (system(), model(), Policy::default(), tool_set(&[]));
        let built = assemble(&Snapshot::new(&model, &policy, &system, &tools, history, &Quarter)).unwrap();
        (built.request.segments.iter().map(|segment| segment.entry.message.message_id).skip(1).collect(), built)
    };
    let (ids, built) = sent(&history);
    let kept: Vec<_> = [900].into_iter().chain(12..52).chain([901]).map(id).collect();
    assert_eq!(ids, kept);
    assert_eq!(built.account.round, 14, "archived rounds still count");

    // One round more than is kept: exactly that one is planned next, and both summaries stand first, oldest first.
    let plan = plan_compaction(&history, &Policy::default(), &Quarter).unwrap();
    assert_eq!((plan.rounds, plan.first_kept), (1, id(16)));
    assert!(plan.messages.iter().all(|entry| entry.message.role != Role::Summary));
    history.push(entry(summary_message(id(902), at(902), "Σ two", &plan)));
    assert_eq!(sent(&history).0[..3], [900, 902, 16].map(id));
}

#[test]
fn a_summary_that_names_no_message_archives_nothing() {
    let history = conversation("ΣUATaU");
    let mut line = Timeline::new(repair(&history, &Quarter));
    drop_archived(&mut line);
    assert_eq!(line.items.len(), 5);
}

#[test]
fn the_request_for_a_summary() {
    let history = conversation(&"UATa".repeat(11));
    let plan = plan_compaction(&history, &Policy::default(), &Quarter).unwrap();
    let request = summary_request(&plan, Some("the parser"), &model(), &Policy::default(), &Quarter).unwrap();
    let texts: Vec<_> = request.segments.iter().map(|segment| segment.entry.message.joined_text()).collect();
    insta::assert_snapshot!(texts.join("\n\n--------\n\n"));
}
