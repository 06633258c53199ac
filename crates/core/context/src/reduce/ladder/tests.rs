use haft_types::{Entry, Envelope, Message};

use super::*;
use crate::testing::{Quarter, at, call, entry, id, model, result, text, tool_set, tools};
use crate::{
    Assembly, Document, DocumentKind, Need, Policy, Reminders, SafeZone, SystemInput, assemble,
    render_system,
};

/// Returns `rounds` rounds of one block with a result of about `size` tokens.
fn rounds(rounds: usize, size: usize) -> Vec<Arc<Entry>> {
    let mut history = Vec::new();
    for round in 0..rounds {
        let number = round * 4;
        let call_id = format!("call-{round}");
        history.push(text(number, Role::User, "go on"));
        let parts = vec![call(&call_id, "list", "{}")];
        history.push(entry(Message::new(
            id(number + 1),
            Role::Assistant,
            parts,
            at(number + 1),
        )));
        history.push(result(
            number + 2,
            &call_id,
            Envelope::success("abc ".repeat(size)),
        ));
        history.push(text(number + 3, Role::Assistant, &"said ".repeat(40)));
    }
    history.pop();
    history
}

struct Bench {
    history: Vec<Arc<Entry>>,
    policy: Policy,
    documents: Documents,
    reminders: Reminders,
    cleared: Cleared,
}

impl Bench {
    fn new(history: Vec<Arc<Entry>>) -> Self {
        let rule = |heading: &str, need| Document {
            kind: DocumentKind::Rules,
            heading: heading.into(),
            text: "Be good. ".repeat(40),
            need,
        };
        Self {
            history,
            // Pruning keeps everything: these tests are about the ladder.
            policy: Policy {
                safe_zone: Some(SafeZone::Share(0.9)),
                prune_keep: Some(1_000),
                ..Policy::default()
            },
            documents: Documents::new(
                vec![rule("must.md", Need::Always), rule("may.md", Need::IfRoom)],
                &Quarter,
            ),
            reminders: Reminders {
                todo: Some("- [ ] x".into()),
                ..Reminders::default()
            },
            cleared: Cleared::default(),
        }
    }

    fn build(&self, window: u32) -> Result<Assembly, ContextError> {
        let specs = tools(&["read_file", "list"]);
        let examples = ["An example. ".repeat(100)];
        let input = SystemInput {
            tools: &specs,
            examples: &examples,
            ..SystemInput::default()
        };
        let system = system_entry(render_system(&input).unwrap(), &Quarter);
        let tools = ToolSet::new(specs.clone(), &Quarter);
        let model = ModelSpec {
            context_window: window,
            max_output_tokens: Some(1_000),
            ..model()
        };
        let plain = Snapshot::new(
            &model,
            &self.policy,
            &system,
            &tools,
            &self.history,
            &Quarter,
        );
        assemble(&Snapshot {
            system_input: Some(&input),
            documents: Some(&self.documents),
            reminders: Some(&self.reminders),
            cleared: Some(&self.cleared),
            ..plain
        })
    }
}

fn history_ids(assembly: &Assembly) -> Vec<MessageId> {
    let line = assembly
        .request
        .segments
        .iter()
        .filter(|one| matches!(one.layer, Layer::History | Layer::Current));
    line.map(|segment| segment.entry.message.message_id)
        .collect()
}

#[test]
fn ladder_leaves_a_fitting_request_alone() {
    let built = Bench::new(rounds(3, 100)).build(50_000).unwrap();
    assert!(built.account.ladder.is_empty());
}

#[test]
fn ladder_omits_older_rounds_until_the_window_grows() {
    let bench = Bench::new(rounds(8, 700));
    let whole = bench.build(200_000).unwrap();
    let built = bench
        .build(whole.request.estimated_tokens() as u32 + 1_000)
        .unwrap();
    let [
        LadderStep::OlderRounds {
            rounds,
            steps: 0,
            tokens,
        },
    ] = built.account.ladder[..]
    else {
        panic!("{:?}", built.account.ladder)
    };
    assert!(rounds >= 1 && tokens > 0);
    let summary = built
        .request
        .segments
        .iter()
        .find(|one| one.owner == "ledger")
        .unwrap();
    assert!(
        summary
            .entry
            .message
            .joined_text()
            .contains("Made without a model")
    );
    assert_eq!(
        history_ids(&built)[1],
        id(rounds as usize * 4),
        "whole rounds"
    );
    assert_eq!(
        built.request.estimated_tokens() + tokens,
        whole.request.estimated_tokens()
    );
    assert_eq!(bench.build(200_000).unwrap().request, whole.request);
}

#[test]
fn ladder_keeps_rounds_omitted_in_later_requests() {
    let mut bench = Bench::new(rounds(8, 700));
    let window = bench.build(200_000).unwrap().request.estimated_tokens() as u32 + 1_000;
    let first = bench.build(window).unwrap();
    bench.cleared = first.account.cleared.clone().unwrap();
    assert_eq!(bench.cleared.first_kept, Some(history_ids(&first)[1]));
    bench.history.extend(rounds_from(100, 1, 10));
    let second = bench.build(window).unwrap();
    assert_eq!(
        history_ids(&second)[..history_ids(&first).len()],
        history_ids(&first)
    );
    assert!(second.account.ladder.is_empty() && second.account.cleared.is_none());
    assert_eq!(
        history_ids(&bench.build(200_000).unwrap()).len(),
        bench.history.len(),
        "all of it again"
    );
}

#[test]
fn ladder_shortens_the_system_layer_next() {
    let bench = Bench::new(rounds(1, 2_000));
    let built = bench.build(4_900).unwrap();
    assert!(
        matches!(built.account.ladder[..], [LadderStep::ShortSystem { .. }]),
        "{:?}",
        built.account.ladder
    );
    let texts: Vec<_> = built
        .request
        .segments
        .iter()
        .map(|one| one.entry.message.joined_text())
        .collect();
    assert!(!texts[0].contains("An example.") && texts[0].contains("OBJECTIVE"));
    assert!(texts[1].contains("must.md") && !texts[1].contains("may.md"));
}

#[test]
fn ladder_shortens_the_system_layer_before_it_cuts_unseen_results() {
    let bench = Bench::new(rounds_from(0, 1, 2_000));
    let whole = bench.build(20_000).unwrap().request.estimated_tokens() as u32;
    // Too small for everything by less than the examples take.
    let built = bench.build(whole + 1_000 - 100).unwrap();
    assert!(
        matches!(built.account.ladder[..], [LadderStep::ShortSystem { .. }]),
        "{:?}",
        built.account.ladder
    );
    assert_eq!(built.account.excerpts, []);
    let smaller = bench.build(whole + 1_000 - 1_500).unwrap();
    assert!(
        matches!(smaller.account.ladder[0], LadderStep::Excerpts { .. }),
        "{:?}",
        smaller.account.ladder
    );
}

#[test]
fn ladder_keeps_the_newest_step_and_the_input_as_last_resort() {
    // Arguments of the newest call are not results: they get no excerpt.
    let mut history: Vec<_> = rounds(1, 200)
        .into_iter()
        .chain(rounds_from(4, 3, 10))
        .collect();
    let arguments = serde_json::json!({ "path": "abc ".repeat(2_100) }).to_string();
    let parts = vec![call("long-2", "list", &arguments)];
    let newest = history.len() - 2;
    history[newest] = entry(Message::new(id(9), Role::Assistant, parts, at(9)));
    let mut bench = Bench::new(history);
    bench.policy.prune_argument_chars = 10_000;
    let built = bench.build(4_000).unwrap();
    let steps = &built.account.ladder;
    assert!(
        matches!(steps.last(), Some(LadderStep::BareMinimum { .. })),
        "{steps:?}"
    );
    assert_eq!(
        history_ids(&built)[1..],
        [4, 9, 10].map(id),
        "a ledger, the running round's request and its newest block"
    );
    let system = built.request.segments[0].entry.message.joined_text();
    assert!(system.contains("RULES") && !system.contains("OBJECTIVE"));
    let owners: Vec<_> = built.request.segments.iter().map(|one| one.owner).collect();
    assert!(
        owners.contains(&"reminder:todo") && owners.contains(&"ledger"),
        "{owners:?}"
    );
    assert!(
        built
            .request
            .segments
            .iter()
            .all(|one| one.layer != Layer::Documents)
    );
}

/// Returns one running round that starts with message `number` and has `blocks` blocks.
fn rounds_from(number: usize, blocks: usize, size: usize) -> Vec<Arc<Entry>> {
    let mut history = vec![text(number, Role::User, "a long one")];
    for block in 0..blocks {
        let number = number + 1 + block * 2;
        let call_id = format!("long-{block}");
        let parts = vec![call(&call_id, "list", "{}")];
        history.push(entry(Message::new(
            id(number),
            Role::Assistant,
            parts,
            at(number),
        )));
        history.push(result(
            number + 1,
            &call_id,
            Envelope::success("abc ".repeat(size)),
        ));
    }
    history
}

#[test]
fn ladder_fails_with_the_size_of_each_layer() {
    let mut history = rounds(1, 10);
    history[0] = text(0, Role::User, &"abc ".repeat(9_000));
    let error = Bench::new(history).build(4_000).unwrap_err();
    assert!(matches!(error, ContextError::TooLarge { .. }));
    assert!(error.to_string().contains("current"), "{error}");
}

#[test]
fn short_tools_keep_names_and_types() {
    let mut specs = tool_set(&["read_file"]).specs.clone();
    specs[0].description = "Reads.\n\nAt length.".into();
    specs[0].parameters = serde_json::json!({"type": "object", "description": "all", "properties": {
        "description": {"type": "string", "description": "a property of that name"}}});
    let short = shorten_tools(&ToolSet::new(specs, &Quarter), &Quarter);
    assert_eq!(short.specs[0].description, "Reads.");
    let expected =
        serde_json::json!({"type": "object", "properties": {"description": {"type": "string"}}});
    assert_eq!(short.specs[0].parameters, expected);
}

/// No cliff: of one long round the input stays, and as many of the newest steps as fit.
#[test]
fn ladder_keeps_as_many_newest_steps_of_a_long_round_as_fit() {
    let mut bench = Bench::new(rounds_from(0, 200, 60));
    let window = 16_000;
    let built = bench.build(window).unwrap();
    let [
        LadderStep::OlderRounds {
            rounds: 0, steps, ..
        },
    ] = built.account.ladder[..]
    else {
        panic!("{:?}", built.account.ladder)
    };
    assert!(steps > 0);
    let used = built.account.budget.used_tokens();
    let usable = u64::from(window) - 1_000;
    assert!(used * 2 > usable, "{used} of {usable}");
    assert!(
        history_ids(&built).contains(&id(0)),
        "what the user said stays"
    );
    let owners: Vec<_> = built.request.segments.iter().map(|one| one.owner).collect();
    assert!(
        owners.contains(&"ledger") && owners.contains(&"reminder:todo"),
        "{owners:?}"
    );
    // The next request extends this one.
    bench.cleared = built.account.cleared.clone().unwrap();
    let before = history_ids(&built);
    bench.history.extend(rounds_from(1_000, 1, 10).split_off(1));
    let after = bench.build(window).unwrap();
    assert_eq!(history_ids(&after)[..before.len()], before);
    assert!(after.account.ladder.is_empty());
}
