//! Tests a few rounds that are larger than the window: nothing can be archived, but the request
//! fits.

use std::sync::Arc;

use haft_context::{
    Assembly, ContextError, Policy, Reminders, Snapshot, SystemInput, View, assemble,
};
use haft_context::{render_system, system_entry};
use haft_types::{Entry, Layer, Role};
use proptest::prelude::*;

use super::{Words, block, id, model, text, tools, words};

const WINDOW: u32 = 6_000;

/// One step of a round.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A call whose result has this number of words.
    Call(usize),
    /// Assistant text with this number of words.
    Say(usize),
}

fn history_of(rounds: &[Vec<Step>]) -> Vec<Arc<Entry>> {
    let mut history = Vec::new();
    for round in rounds {
        history.push(text(
            history.len(),
            Role::User,
            "Please go on with the next part.",
        ));
        for step in round {
            match step {
                Step::Call(size) => history.extend(block(history.len(), *size)),
                Step::Say(size) => history.push(text(history.len(), Role::Assistant, words(*size))),
            }
        }
    }
    history
}

fn build(history: &[Arc<Entry>], view: View) -> Result<Assembly, ContextError> {
    let model = model(WINDOW);
    let policy = Policy {
        view,
        ..Policy::default()
    };
    let tools = tools(&["read_file"]);
    let input = SystemInput::default();
    let system = system_entry(render_system(&input).unwrap(), &Words);
    let reminders = Reminders {
        todo: Some("- [ ] one".into()),
        ..Reminders::default()
    };
    let plain = Snapshot::new(&model, &policy, &system, &tools, history, &Words);
    assemble(&Snapshot {
        system_input: Some(&input),
        reminders: Some(&reminders),
        ..plain
    })
}

/// Generates rounds whose last step fits by itself, which is the last resort of the design.
fn any_rounds() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = prop_oneof![
        3 => (1_usize..4_500).prop_map(Step::Call),
        1 => (1_usize..4_500).prop_map(Step::Say),
    ];
    let round = prop::collection::vec(step, 1..12);
    (prop::collection::vec(round, 1..=10), 1_usize..3_000).prop_map(|(mut rounds, last)| {
        // The newest message is a result to be answered.
        rounds.last_mut().unwrap().push(Step::Call(last));
        rounds
    })
}

fn check_fits(rounds: &[Vec<Step>], view: View) -> Result<(), TestCaseError> {
    let history = history_of(rounds);
    let built = match build(&history, view) {
        Ok(built) => built,
        Err(error) => return Err(TestCaseError::fail(format!("{error}"))),
    };
    prop_assert!(built.account.budget.remaining >= 0);
    prop_assert!(built.request.estimated_tokens() + 1_000 <= u64::from(WINDOW));
    if view == View::Layered {
        let last = built
            .request
            .segments
            .iter()
            .rfind(|segment| segment.layer != Layer::Reminders)
            .unwrap();
        let newest = history.last().unwrap();
        prop_assert_eq!(
            last.entry.message.message_id,
            newest.message.message_id,
            "the newest result is answered"
        );
        prop_assert!(
            built
                .request
                .segments
                .iter()
                .any(|segment| segment.layer == Layer::Current)
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn assemble_fits_few_rounds_beyond_the_window(rounds in any_rounds()) {
        check_fits(&rounds, View::Layered)?;
    }

    #[test]
    fn assemble_fits_few_rounds_in_the_execute_view(rounds in any_rounds()) {
        check_fits(&rounds, View::Execute)?;
    }
}

#[test]
fn assemble_keeps_the_current_of_ten_window_sized_rounds() {
    let rounds: Vec<_> = (0..10)
        .map(|_| vec![Step::Call(2_700), Step::Say(2_700), Step::Call(900)])
        .collect();
    let built = build(&history_of(&rounds), View::Layered).unwrap();
    assert!(!built.account.ladder.is_empty());
    let current = built
        .request
        .segments
        .iter()
        .find(|segment| segment.layer == Layer::Current)
        .unwrap();
    assert_eq!(current.entry.message.message_id, id(9 * 6));
}

#[test]
fn assemble_keeps_the_newest_result_of_one_huge_round() {
    let mut round = vec![Step::Call(2_700); 20];
    round.push(Step::Call(2_400));
    let history = history_of(&[round]);
    let built = build(&history, View::Layered).unwrap();
    assert!(built.request.estimated_tokens() + 1_000 <= u64::from(WINDOW));
    // The result to be answered is there, whole.
    let last = &built
        .request
        .segments
        .iter()
        .rfind(|one| one.entry.message.role == Role::Tool)
        .unwrap()
        .entry;
    assert!(Arc::ptr_eq(last, history.last().unwrap()));
}

#[test]
fn assemble_sends_a_huge_newest_step_as_an_excerpt() {
    let history = history_of(&[vec![Step::Call(9_000)]]);
    let built = build(&history, View::Layered).unwrap();
    assert!(built.request.estimated_tokens() + 1_000 <= u64::from(WINDOW));
    assert_eq!(
        built.account.excerpts,
        [history.last().unwrap().message.message_id]
    );
}
