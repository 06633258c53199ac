use haft_types::Envelope;
use proptest::prelude::*;

use super::*;
use crate::testing::{
    Quarter, at, calls, conversation, entry, id, model, result, system, text, tool_set,
};
use crate::{Assembly, Snapshot, assemble};

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input: input / 2,
        cached_input: input - input / 2,
        output,
        ..Usage::default()
    }
}

#[test]
fn compaction_is_due_at_a_share_of_the_usable_window() {
    // Of 200,000 tokens 10,000 are reserved for the reply: 85 % of the rest are 161,500.
    let policy = Policy::default();
    let model = model_with_window();
    let due =
        |usage, input: &str, messages| compaction_due(&policy, &model, usage, input, messages);
    assert_eq!(due(usage(150_000, 11_500), "", 3), Due::Now);
    assert_eq!(
        due(usage(150_000, 11_499), "ab", 3),
        Due::WhenFree,
        "two characters are no token"
    );
    assert_eq!(
        due(usage(150_000, 11_499), "äöü", 3),
        Due::Now,
        "characters, not bytes"
    );
    assert_eq!(
        due(usage(150_000, 11_500), "", 2),
        Due::No,
        "too few messages"
    );
    assert_eq!(due(usage(189_999, 0), "", 3), Due::Now);
    assert_eq!(due(usage(190_000, 0), "", 3), Due::Overflow);
    let of_window = Policy {
        compact_at: 0.8,
        compact_of: ShareOf::Window,
        ..Policy::default()
    };
    assert_eq!(
        compaction_due(&of_window, &model, usage(159_999, 0), "", 3),
        Due::WhenFree
    );
    assert_eq!(
        compaction_due(&of_window, &model, usage(160_000, 0), "", 3),
        Due::Now
    );
}

fn model_with_window() -> ModelSpec {
    ModelSpec {
        context_window: 200_000,
        max_output_tokens: Some(10_000),
        ..model()
    }
}

/// Plans a compaction, regardless of how little it frees.
fn plan_anything(history: &[Arc<Entry>]) -> Option<CompactionPlan> {
    let policy = Policy {
        compact_frees: f64::MIN_POSITIVE,
        ..Policy::default()
    };
    plan_compaction(history, ArchiveWish::Automatic, &policy, &model(), &Quarter)
}

#[test]
fn compaction_below_the_hard_threshold_waits_for_a_cold_prefix() {
    let due = |policy: &Policy, tokens| {
        compaction_due(policy, &model_with_window(), usage(tokens, 0), "", 3)
    };
    assert_eq!(
        [113_999, 114_000, 161_499, 161_500].map(|tokens| due(&Policy::default(), tokens)),
        [Due::No, Due::WhenFree, Due::WhenFree, Due::Now]
    );
    let never = Policy {
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    assert_eq!(due(&never, 161_499), Due::No, "unless nothing waits");
}

#[test]
fn compaction_keeps_the_newest_ten_rounds() {
    let history = conversation(&"UATTa".repeat(13));
    let plan = plan_anything(&history).unwrap();
    assert_eq!(
        (plan.rounds, plan.messages.len(), plan.first_kept),
        (3, 15, id(15))
    );
    assert_eq!((plan.from, plan.to), (at(0), at(14)));
    assert!(plan_anything(&conversation(&"UATTa".repeat(10))).is_none());
    assert!(plan_anything(&[]).is_none());
}

#[test]
fn summary_message_replaces_its_archive_and_is_never_compacted() {
    let mut history = conversation(&"UATa".repeat(13));
    let plan = plan_anything(&history).unwrap();
    history.push(entry(new_summary_message(id(900), at(900), "Σ one", &plan)));
    history.push(text(901, Role::User, "next"));
    let sent = |history: &[Arc<Entry>]| -> (Vec<MessageId>, Assembly) {
        let system = system();
        let model = model();
        let policy = Policy::default();
        let tools = tool_set(&[]);
        let built = assemble(&Snapshot::new(
            &model, &policy, &system, &tools, history, &Quarter,
        ))
        .unwrap();
        (
            built
                .request
                .segments
                .iter()
                .map(|segment| segment.entry.message.message_id)
                .skip(1)
                .collect(),
            built,
        )
    };
    let (ids, built) = sent(&history);
    let kept: Vec<_> = [900]
        .into_iter()
        .chain(12..52)
        .chain([901])
        .map(id)
        .collect();
    assert_eq!(ids, kept);
    assert_eq!(built.account.round, 14, "archived rounds still count");

    // With one more round than is kept, exactly one is planned next, and both summaries come first,
    // the older one before the newer.
    let plan = plan_anything(&history).unwrap();
    assert_eq!((plan.rounds, plan.first_kept), (1, id(16)));
    assert!(
        plan.messages
            .iter()
            .all(|entry| entry.message.role != Role::Summary)
    );
    history.push(entry(new_summary_message(id(902), at(902), "Σ two", &plan)));
    assert_eq!(sent(&history).0[..3], [900, 902, 16].map(id));
}

#[test]
fn drop_archived_ignores_a_summary_without_a_first_message() {
    let history = conversation("ΣUATaU");
    let mut line = Timeline::new(repair_blocks(&history, &Quarter));
    remove_archived(&mut line);
    assert_eq!(line.items.len(), 5);
}

#[test]
fn summary_request_matches_the_snapshot() {
    let history = conversation(&"UATa".repeat(11));
    let plan = plan_anything(&history).unwrap();
    let wish = SummaryWish {
        focus: Some("the parser"),
        refused: Some(&SummaryRefusal::Cut),
        session: &[],
    };
    let request =
        build_summary_request(&plan, wish, &model(), &Policy::default(), &Quarter).unwrap();
    let texts: Vec<_> = request
        .segments
        .iter()
        .map(|segment| segment.entry.message.joined_text())
        .collect();
    insta::assert_snapshot!(texts.join("\n\n--------\n\n"));
}

/// Returns `before` rounds of one answer each, followed by one round of `blocks` blocks with
/// results of about `size` tokens.
fn long_round(before: usize, blocks: usize, size: usize) -> Vec<Arc<Entry>> {
    let mut history = conversation(&"Ua".repeat(before));
    let first = history.len();
    for (index, one) in conversation(&format!("U{}", "AT".repeat(blocks)))
        .into_iter()
        .enumerate()
    {
        let mut message = one.message.clone();
        message.message_id = id(first + index);
        message.created_at = at(first + index);
        for part in &mut message.content {
            if let haft_types::Part::ToolResult(result) = part {
                result.envelope.text = "word ".repeat(size);
            }
        }
        history.push(entry(message));
    }
    history
}

#[test]
fn compaction_of_one_long_round_archives_its_oldest_blocks() {
    let mut history = long_round(2, 90, 1_000);
    let automatic = |history: &[Arc<Entry>]| {
        plan_compaction(
            history,
            ArchiveWish::Automatic,
            &Policy::default(),
            &model_with_window(),
            &Quarter,
        )
    };
    let plan = automatic(&history).unwrap();
    // A result has 1,250 tokens and its call some more; 57,000 tokens are three tenths of the
    // usable window.
    assert_eq!(
        (plan.rounds, plan.steps, plan.format_subject().as_str()),
        (0, 47, "47 older steps")
    );
    assert!(
        plan.messages
            .iter()
            .all(|one| one.message.role != Role::User)
    );
    history.push(entry(new_summary_message(id(900), at(900), "Σ", &plan)));
    let mut line = Timeline::new(repair_blocks(&history, &Quarter));
    remove_archived(&mut line);
    let roles: String = line
        .items
        .iter()
        .map(|item| format!("{:?}", item.role()).to_lowercase().remove(0))
        .collect();
    assert_eq!(
        roles,
        format!("uuu{}", "at".repeat(45)),
        "as many blocks stay as fit"
    );
    assert!(
        automatic(&history).is_none(),
        "what is left besides the newest blocks frees too little"
    );
    assert!(
        automatic(&long_round(2, 60, 300)).is_none(),
        "a fifth of the window, or it is not worth it"
    );
}

/// A cleared result occupies one line in every request: archiving it as if it had its whole size
/// freed nothing and broke the prefix.
#[test]
fn compaction_counts_cleared_results_as_lines() {
    let history = long_round(2, 90, 1_000);
    let plan = |cleared: &Cleared| {
        let wish = ArchiveWish::AfterClearing(cleared);
        plan_compaction(
            &history,
            wish,
            &Policy::default(),
            &model_with_window(),
            &Quarter,
        )
    };
    let results: Vec<_> = history
        .iter()
        .filter(|one| one.message.role == Role::Tool)
        .collect();
    let cleared = |count: usize| Cleared {
        ids: results[..count]
            .iter()
            .map(|one| one.message.message_id)
            .collect(),
        ..Cleared::default()
    };
    assert_eq!(plan(&cleared(0)).unwrap().steps, 47);
    assert!(plan(&cleared(84)).is_none(), "all but the newest are lines");
    assert!(
        (62..=70).contains(&plan(&cleared(20)).unwrap().steps),
        "more goes, so that as much is freed"
    );
}

#[test]
fn compaction_by_hand_keeps_only_the_newest_block() {
    let by_hand = |shape: &str| {
        plan_compaction(
            &conversation(shape),
            ArchiveWish::ByHand,
            &Policy::default(),
            &model(),
            &Quarter,
        )
    };
    let plan = by_hand("UATaUATATa").unwrap();
    assert_eq!(
        (plan.rounds, plan.first_kept, plan.users_from),
        (1, id(9), Some(id(4)))
    );
    assert_eq!(
        plan.messages.len(),
        8,
        "the input of the newest round stays"
    );
    assert!(by_hand("Ua").is_none());
}

#[test]
fn archives_keep_their_distance() {
    let early = |shape: &str| is_too_early(&conversation(shape), &Policy::default());
    assert!(early("UaUaUaUa") && !early("UaUaUaUaUa"));
    assert!(
        early(&"AT".repeat(19)) && !early(&"AT".repeat(20)),
        "inside a round that goes on by itself"
    );
    assert!(early(&format!("U{}", "AT".repeat(30))));
    // An archive before the first of these inputs, and one while the fifth is answered, would be
    // two within five inputs.
    assert!(early("UaUaUaUaU") && early("UaUaUaUaUAT") && !early("UaUaUaUaUaUAT"));
    let gone_on = |shape: &str| has_round_grown(&conversation(shape), &Policy::default());
    assert!(
        gone_on(&"AT".repeat(10))
            && !gone_on(&"AT".repeat(9))
            && !gone_on(&format!("{}UAT", "AT".repeat(30)))
    );
}

#[test]
fn archives_keep_the_configured_distance() {
    let policy = |keep_blocks, compact_min_blocks, compact_min_inputs| Policy {
        keep_blocks,
        compact_min_inputs,
        compact_min_blocks,
        ..Policy::default()
    };
    let round = |blocks: usize| conversation(&"AT".repeat(blocks));
    for (policy, blocks) in [
        (policy(20, Some(4), 5), 4),
        (policy(6, None, 5), 6),
        (policy(6, Some(0), 5), 0),
    ] {
        assert!(!is_too_early(&round(blocks), &policy));
        assert!(has_round_grown(&round(blocks / 2), &policy));
        if blocks > 0 {
            assert!(is_too_early(&round(blocks - 1), &policy));
            assert!(!has_round_grown(&round(blocks / 2 - 1), &policy));
        }
    }
    let inputs = |shape: &str, least| is_too_early(&conversation(shape), &policy(20, None, least));
    assert!(inputs("Ua", 2) && !inputs("UaUa", 2));
    assert!(inputs("UaUaUaUaUa", 6) && !inputs("Ua", 0));
}

#[test]
fn summary_request_fits_the_window_of_its_model() {
    let mut history = long_round(2, 90, 1_000);
    let said = "Never touch the parser. ".repeat(40);
    history[2] = text(2, Role::User, &said);
    let planned = plan_compaction(
        &history,
        ArchiveWish::ByHand,
        &Policy::default(),
        &model_with_window(),
        &Quarter,
    );
    let plan = planned.unwrap();
    let request = |context_window, tokenizer_factor| {
        let model = ModelSpec {
            context_window,
            max_output_tokens: Some(context_window / 4),
            tokenizer_factor,
            ..model()
        };
        let wish = SummaryWish::default();
        let request =
            build_summary_request(&plan, wish, &model, &Policy::default(), &Quarter).unwrap();
        let room = f64::from(Policy::default().usable_window(&model));
        let tokens = request.estimated_tokens() as f64 * tokenizer_factor;
        assert!(tokens <= room, "{tokens} of {room}");
        assert!(tokens > 0.7 * room, "{tokens} of {room}: as much as fits");
        request.segments[1].entry.message.joined_text()
    };
    for (window, factor) in [(96_000, 1.0), (32_000, 1.0), (96_000, 1.5)] {
        let asked = request(window, factor);
        assert!(
            asked.contains(said.trim()),
            "what the user said stays whole"
        );
        assert!(asked.contains("[tool "), "and a part of each result");
        assert!(!asked.contains("are left out here"));
    }
    assert!(request(8_000, 1.0).contains("messages are left out here"));
}

proptest! {
    /// Whatever the settings, the occasion and the place of the newest answer, an archive leaves
    /// out no result that the model has not seen.
    #[test]
    fn archives_never_take_unseen_results(
        before in "(UA[T]{1,3}a?){0,6}",
        late in any::<bool>(),
        inputs in 0usize..4,
        by_hand in any::<bool>(),
        keep_rounds in 1u32..4,
        keep_blocks in 1u32..4,
    ) {
        let mut history = conversation(&before);
        let next = history.len();
        let ids = ["one".to_owned(), "two".to_owned()];
        history.push(text(next, Role::User, "go"));
        history.push(calls(next + 1, &ids));
        history.push(result(next + 2, "one", Envelope::success("1")));
        if late {
            history.push(text(next + 3, Role::Assistant, "The other one is still running."));
        }
        history.push(result(next + 4, "two", Envelope::success("2")));
        for input in 0..inputs {
            history.push(text(next + 5 + input, Role::User, "go on"));
        }
        let policy = Policy {
            compact_frees: f64::MIN_POSITIVE,
            keep_rounds,
            keep_blocks,
            ..Policy::default()
        };
        let wish = if by_hand { ArchiveWish::ByHand } else { ArchiveWish::Automatic };
        if let Some(plan) = plan_compaction(&history, wish, &policy, &model(), &Quarter) {
            let archived = |number| plan.messages.iter().any(|entry| entry.message.message_id == id(number));
            prop_assert!(!archived(next + 4), "{plan:?}");
            prop_assert!(late || !archived(next + 2), "{plan:?}");
            // The archive itself leaves the result in the next request.
            let summary = new_summary_message(id(9_999), at(9_999), "Notes.", &plan);
            history.push(entry(summary));
            let mut line = Timeline::new(repair_blocks(&history, &Quarter));
            remove_archived(&mut line);
            prop_assert!(line.items.iter().any(|item| item.id() == id(next + 4)));
        }
    }
}
