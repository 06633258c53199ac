//! Tests pruning on a long conversation.

use std::collections::HashMap;
use std::sync::Arc;

use haft_context::{Assembly, Cleared, Compress, Policy, SafeZone, Snapshot, assemble};
use haft_types::{Entry, Envelope, LongPrice, ModelSpec, Price, Role, ToolStatus};

use super::{Words, call, id, model, result, system, text, tools, words};

/// Returns `length` messages: an input, then blocks. Every fifth result is a failure, every third
/// call has a large argument.
fn long_conversation(length: usize) -> Vec<Arc<Entry>> {
    let large = serde_json::json!({"content": words(200)}).to_string();
    let mut history = vec![text(0, Role::User, "go")];
    for number in (1..length).step_by(2) {
        history.push(call(number, if number % 3 == 0 { &large } else { "{}" }));
        let envelope = if number % 5 == 0 {
            Envelope::failure("broken", words(60))
        } else {
            Envelope::success(words(60))
        };
        history.push(result(number + 1, (number, 0), envelope));
    }
    history.truncate(length);
    history
}

fn build(history: &[Arc<Entry>], zone: u64, cleared: Option<&Cleared>) -> Assembly {
    let policy = Policy {
        safe_zone: Some(SafeZone::Tokens(zone)),
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let model = model(100_000_000);
    let system = system(2_000);
    let tools = tools(&["read_file"]);
    let plain = Snapshot::new(&model, &policy, &system, &tools, history, &Words);
    assemble(&Snapshot { cleared, ..plain }).unwrap()
}

fn is_cleared(owner: &str) -> bool {
    owner == "history:cleared"
}

#[test]
fn pruning_takes_linear_time() {
    for length in [101, 1_001, 10_001] {
        let history = long_conversation(length);
        // Clearing nothing, everything, or half: never more than one step per message to count and
        // one to clear.
        let whole = build(&history, 50_000_000, None);
        assert!(
            whole.account.pruning_steps <= length,
            "{length}: {}",
            whole.account.pruning_steps
        );
        for zone in [1_000, whole.request.estimated_tokens() / 2] {
            let pruned = build(&history, zone, None);
            assert!(
                pruned.account.pruning_steps <= 2 * length,
                "{length}: {}",
                pruned.account.pruning_steps
            );
            assert!(pruned.account.pruned_tokens > 0);
            assert_eq!(
                pruned.request.estimated_tokens() + pruned.account.pruned_tokens,
                whole.request.estimated_tokens()
            );
            // Earlier decisions are applied in the same pass.
            let again = build(&history, zone, pruned.account.cleared.as_ref());
            assert!(again.account.pruning_steps <= 2 * length);
            assert_eq!(again.request, pruned.request);
        }
    }
}

/// Clearing little breaks the prefix for little, unless the request then costs the lower prices.
#[test]
fn pruning_clears_little_only_to_get_below_a_price_rise() {
    let mut history = vec![text(0, Role::User, words(20_000))];
    for number in (1..21).step_by(2) {
        history.push(call(number, "{}"));
        history.push(result(
            number + 1,
            (number, 0),
            Envelope::success(words(400)),
        ));
    }
    let policy = Policy {
        safe_zone: Some(SafeZone::Tokens(20_000)),
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let (system, tools) = (system(2_000), tools(&["read_file"]));
    let build = |rises_above: Option<u64>| {
        let price = Price {
            input: 1.0,
            cached_input: Some(0.1),
            cache_write: None,
            output: 5.0,
            long: rises_above.map(|above| LongPrice {
                above,
                input: 5.0,
                cached_input: None,
                cache_write: None,
                output: 25.0,
            }),
        };
        let model = ModelSpec {
            price: Some(price),
            ..model(100_000_000)
        };
        let snapshot = Snapshot::new(&model, &policy, &system, &tools, &history, &Words);
        let built = assemble(&snapshot).unwrap();
        (
            built.request.estimated_tokens(),
            built.account.pruned_tokens,
        )
    };
    let (whole, pruned) = build(None);
    assert_eq!(pruned, 0, "less than a tenth of the zone would be saved");
    let (tokens, pruned) = build(Some(whole - 100));
    assert!(pruned > 1_000 && tokens + pruned == whole, "{pruned}");
    assert_eq!(build(Some(whole)), (whole, 0), "the prices have not risen");
    let (tokens, _) = build(Some(whole - pruned - 100));
    assert_eq!(tokens, whole, "clearing does not reach the lower prices");
}

#[test]
fn pruning_keeps_the_stored_newest_six_results() {
    let history = long_conversation(10_001);
    let built = build(&history, 1_000, None);
    let is_result = |entry: &Entry| entry.message.role == Role::Tool;
    let mut stored = history.iter().rev().filter(|entry| is_result(entry));
    let segments = built.request.segments.iter().rev();
    let mut sent = segments.filter(|segment| is_result(&segment.entry));
    for (stored, segment) in stored.by_ref().zip(sent.by_ref()).take(6) {
        assert!(!is_cleared(segment.owner));
        assert!(Arc::ptr_eq(stored, &segment.entry), "not even copied");
    }
    assert!(is_cleared(sent.next().unwrap().owner), "six, not seven");
    let newest_calls = built.request.segments.iter().rev().take(12);
    assert!(
        newest_calls
            .filter(|segment| is_cleared(segment.owner))
            .count()
            == 0
    );
}

#[test]
fn pruning_keeps_the_status_of_a_failure() {
    let history = long_conversation(10_001);
    let built = build(&history, 1_000, None);
    let stored: HashMap<_, _> = history
        .iter()
        .map(|entry| (entry.message.message_id, &entry.message))
        .collect();
    let mut failures = 0;
    for segment in built
        .request
        .segments
        .iter()
        .filter(|segment| segment.entry.message.role == Role::Tool)
    {
        let message = &segment.entry.message;
        let stored = stored[&message.message_id].tool_results().next().unwrap();
        let sent = message.tool_results().next().unwrap();
        assert_eq!(sent.envelope.status, stored.envelope.status);
        assert_eq!(sent.tool_call_id, stored.tool_call_id);
        if is_cleared(segment.owner) && sent.envelope.status == ToolStatus::Error {
            failures += 1;
            assert!(
                sent.envelope.text.contains("`read_file` (error)"),
                "{}",
                sent.envelope.text
            );
            let short = message.message_id.short_id().to_string();
            assert!(
                sent.envelope.text.contains(&short),
                "{}",
                sent.envelope.text
            );
        }
    }
    assert!(failures > 900, "{failures}");
    assert_eq!(built.request.segments[1].entry.message.message_id, id(0));
}
