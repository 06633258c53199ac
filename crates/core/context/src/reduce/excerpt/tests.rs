use std::collections::BTreeSet;

use haft_types::{ModelSpec, Role, ToolProtocol};
use proptest::prelude::*;

use super::*;
use crate::build::rounds::{CLEARED_OWNER, COMPRESSED_OWNER};
use crate::policy::View;
use crate::testing::{Quarter, calls, id, lengthy, model, result, system, text, tool_set};
use crate::{Assembly, Carried, Cleared, Compress, LadderStep, Policy, SafeZone, assemble};

/// Returns an input and one step with a result of each of these sizes in bytes.
fn one_step(sizes: &[usize]) -> Vec<Arc<Entry>> {
    let ids: Vec<_> = (0..sizes.len())
        .map(|number| format!("call-{number}"))
        .collect();
    let mut history = vec![text(0, Role::User, "go"), calls(1, &ids)];
    for (number, (size, call)) in sizes.iter().zip(&ids).enumerate() {
        let line = format!("{number}: word word word\n");
        history.push(result(
            2 + number,
            call,
            Envelope::success(line.repeat(size / line.len())),
        ));
    }
    history
}

fn build(
    history: &[Arc<Entry>],
    window: u32,
    cleared: Option<&Cleared>,
    spill: Option<&Path>,
) -> Assembly {
    let model = ModelSpec {
        context_window: window,
        max_output_tokens: Some(1_000),
        ..model()
    };
    let policy = Policy {
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let system = system();
    let tools = tool_set(&["read_file"]);
    let plain = Snapshot::new(&model, &policy, &system, &tools, history, &Quarter);
    assemble(&Snapshot {
        cleared,
        spill,
        ..plain
    })
    .unwrap()
}

fn result_owners(assembly: &Assembly) -> Vec<&'static str> {
    let results = assembly
        .request
        .segments
        .iter()
        .filter(|segment| segment.entry.message.role == Role::Tool);
    results.map(|segment| segment.owner).collect()
}

#[test]
fn excerpts_are_not_made_while_the_newest_step_fits() {
    let built = build(&one_step(&[8_000; 6]), 20_000, None, None);
    assert_eq!(result_owners(&built), ["history"; 6]);
    assert_eq!(built.account.excerpts, []);
}

#[test]
fn excerpts_take_the_largest_results_and_leave_small_ones_whole() {
    let history = one_step(&[60_000, 800, 30_000, 400]);
    let built = build(&history, 12_000, None, Some(Path::new("/spill")));
    assert_eq!(
        result_owners(&built),
        [EXCERPT_OWNER, "history", EXCERPT_OWNER, "history"]
    );
    let excerpts: BTreeSet<_> = built.account.excerpts.iter().copied().collect();
    assert_eq!(excerpts, BTreeSet::from([id(2), id(4)]));
    assert!(
        built
            .account
            .ladder
            .iter()
            .any(|step| matches!(step, LadderStep::Excerpts { messages: 2, .. }))
    );
    let sent = built
        .request
        .segments
        .iter()
        .find(|segment| segment.entry.message.message_id == id(2))
        .unwrap();
    let text = &sent
        .entry
        .message
        .tool_results()
        .next()
        .unwrap()
        .envelope
        .text;
    assert!(
        text.starts_with("0: word word word\n") && text.len() > 4_000,
        "{text}"
    );
    let end = format!(
        "0: word word word\n[This result did not fit the window: {} of 59994 bytes are omitted. The whole text is in \
         `/spill/result-{}.txt`: read it by range, or search it.]",
        text.split(" of 59994")
            .next()
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap(),
        id(2)
    );
    assert!(text.ends_with(&end), "{text}");
}

#[test]
fn excerpts_are_remembered_and_undone_by_a_larger_window() {
    let mut history = one_step(&[60_000, 800]);
    let first = build(&history, 12_000, None, None);
    assert_eq!(result_owners(&first), [EXCERPT_OWNER, "history"]);
    history.extend([
        text(10, Role::Assistant, "Read."),
        text(11, Role::User, "thanks"),
    ]);
    let cleared = first.account.cleared.clone();
    let later = build(&history, 12_000, cleared.as_ref(), None);
    let sent = |assembly: &Assembly| {
        let segments = assembly.request.segments.iter();
        segments
            .map(|segment| segment.entry.hash)
            .take(first.request.segments.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(sent(&later), sent(&first));
    assert_eq!(
        result_owners(&build(&history, 200_000, cleared.as_ref(), None)),
        ["history"; 2]
    );
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let compress = prop_oneof![
        Just(Compress::Never),
        Just(Compress::RoundEnd),
        Just(Compress::WhenFree)
    ];
    let view = prop_oneof![Just(View::Layered), Just(View::Execute)];
    (compress, view, 0u32..4, 0.1f64..1.0).prop_map(|(compress, view, keep, to)| Policy {
        safe_zone: Some(SafeZone::Tokens(1_000)),
        compress: Some(compress),
        prune_keep: Some(keep),
        prune_to: Some(to),
        keep_rounds: 1,
        view,
        ..Policy::default()
    })
}

proptest! {
    /// With any policy, a result that no assistant message follows is sent whole as long as it
    /// fits, even one of an interrupted round that the user has continued.
    #[test]
    fn excerpts_never_replace_unseen_results_that_fit(
        before in "(UA[T]{1,3}){0,4}",
        unseen in 1usize..6,
        interrupted in any::<bool>(),
        policy in any_policy(),
    ) {
        let mut history = lengthy(&before);
        let first = history.len();
        let ids: Vec<_> = (0..unseen).map(|number| format!("new-{number}")).collect();
        history.push(text(first, Role::User, "go"));
        history.push(calls(first + 1, &ids));
        let mut whole = Vec::new();
        for (number, call) in ids.iter().enumerate() {
            let body = format!("unseen {number} ").repeat(400);
            history.push(result(first + 2 + number, call, Envelope::success(body.clone())));
            whole.push(body);
        }
        if interrupted {
            history.push(text(first + 2 + unseen, Role::User, "continue"));
        }
        let model = ModelSpec { context_window: 1_000_000, ..model() };
        let system = system();
        let tools = tool_set(&["read_file"]);
        let built = assemble(&Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter)).unwrap();
        for segment in &built.request.segments {
            let is_new = (first + 2..first + 2 + unseen).any(|number| id(number) == segment.entry.message.message_id);
            prop_assert!(!is_new || ![CLEARED_OWNER, COMPRESSED_OWNER, EXCERPT_OWNER].contains(&segment.owner));
        }
        let mut sent = String::new();
        for segment in &built.request.segments {
            for part in &segment.entry.message.content {
                match part {
                    Part::Text { text, .. } => sent.push_str(text),
                    Part::ToolResult(result) => sent.push_str(&result.envelope.text),
                    Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => {}
                }
            }
        }
        for body in &whole {
            prop_assert!(sent.contains(body.trim_end()));
        }
    }
}

/// One step with results that the model has not seen, in all the forms in which results arrive.
#[derive(Clone, Debug)]
struct UnseenStep {
    results: usize,
    /// All results arrive in one message, as with `xml`.
    in_one_message: bool,
    /// The last result arrives after the model has answered to the others.
    late: bool,
    /// The user's inputs after the results.
    inputs: usize,
}

impl UnseenStep {
    /// Appends the step and returns the texts that the model has not seen.
    fn append_to(&self, history: &mut Vec<Arc<Entry>>) -> Vec<String> {
        let first = history.len();
        let ids: Vec<_> = (0..self.results)
            .map(|number| format!("new-{number}"))
            .collect();
        history.push(text(first, Role::User, "go"));
        history.push(calls(first + 1, &ids));
        let body = |number: usize| format!("unseen {number} ").repeat(400);
        let made = |number: usize| {
            result(
                first + 2 + number,
                &ids[number],
                Envelope::success(body(number)),
            )
        };
        if self.in_one_message {
            let mut together = made(0).message.clone();
            for number in 1..self.results {
                together
                    .content
                    .extend(made(number).message.content.clone());
            }
            history.push(Entry::new(together, &Quarter));
        } else {
            history.extend((0..self.results).map(made));
        }
        let mut unseen: Vec<_> = (0..self.results).map(body).collect();
        if self.late && !self.in_one_message {
            let answer = text(first + 20, Role::Assistant, "One is still running.");
            history.insert(history.len() - 1, answer);
            unseen.drain(..self.results - 1);
        }
        // The model answers again only once the user has said something.
        let inputs = self.inputs.max(usize::from(self.late));
        history.extend((0..inputs).map(|number| text(first + 30 + number, Role::User, "continue")));
        unseen
    }
}

fn any_unseen_step() -> impl Strategy<Value = UnseenStep> {
    (1usize..6, any::<bool>(), any::<bool>(), 0usize..3).prop_map(
        |(results, in_one_message, late, inputs)| UnseenStep {
            results,
            in_one_message,
            late,
            inputs,
        },
    )
}

proptest! {
    /// A result that no assistant message follows is sent whole while it fits: with every protocol
    /// and view, several results in a message, an answer between results, and decisions of earlier
    /// requests that a rewind has made untrue.
    #[test]
    fn unseen_results_are_sent_whole_in_every_form(
        before in "(UA[T]{1,3}a?){0,5}",
        step in any_unseen_step(),
        policy in any_policy(),
        protocol in prop_oneof![Just(ToolProtocol::Native), Just(ToolProtocol::Xml), Just(ToolProtocol::React)],
        rewound in any::<bool>(),
        window in prop_oneof![Just(30_000_u32), Just(1_000_000)],
    ) {
        let mut history = lengthy(&before);
        let unseen = step.append_to(&mut history);
        let model = ModelSpec {
            context_window: window,
            max_output_tokens: Some(1_000),
            tool_protocol: protocol,
            ..model()
        };
        // As if the model had answered and a later request had left everything out.
        let cleared = Cleared {
            target: u64::MAX,
            ids: history.iter().map(|entry| entry.message.message_id).collect(),
            first_kept: history.last().map(|entry| entry.message.message_id),
            ..Cleared::default()
        };
        let carried = Carried {
            compressed_rounds: u32::MAX,
            ..Carried::default()
        };
        let system = system();
        let tools = tool_set(&["read_file"]);
        let plain = Snapshot::new(&model, &policy, &system, &tools, &history, &Quarter);
        let built = assemble(&Snapshot {
            cleared: rewound.then_some(&cleared),
            carried: rewound.then_some(&carried),
            ..plain
        }).unwrap();
        let mut sent = String::new();
        for part in built.request.segments.iter().flat_map(|segment| &segment.entry.message.content) {
            match part {
                Part::Text { text, .. } => sent.push_str(text),
                Part::ToolResult(result) => sent.push_str(&result.envelope.text),
                Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => {}
            }
        }
        for body in &unseen {
            prop_assert!(sent.contains(body.trim_end()), "{body:.20} is missing: {built:?}");
        }
    }
}
