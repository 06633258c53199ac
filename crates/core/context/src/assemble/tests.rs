use haft_types::{Entry, MessageId, ModelSpec, Role, ToolSet};
use proptest::prelude::*;

use Layer::{Current, History, System};

use super::*;
use crate::error::IntegrityError;
use crate::system_entry;
use crate::testing::{Quarter, any_conversation, conversation, model, system, text, tool_set};

fn build(
    history: &[Arc<Entry>],
    model: &ModelSpec,
    policy: &Policy,
) -> Result<Assembly, ContextError> {
    assemble(&Snapshot::new(
        model,
        policy,
        &system(),
        &tool_set(&["read_file"]),
        history,
        &Quarter,
    ))
}

#[test]
fn assemble_orders_layers_rounds_and_boundaries() {
    let history = conversation("UATaUATAT");
    let policy = Policy {
        compress: Some(Compress::Never),
        ..Policy::default()
    };
    let Assembly { request, account } = build(&history, &model(), &policy).unwrap();
    let layers: Vec<_> = request
        .segments
        .iter()
        .map(|segment| segment.layer)
        .collect();
    let expected = [
        System, History, History, History, History, Current, History, History, History, History,
    ];
    assert_eq!(layers, expected);
    assert_eq!(account.round, 2);
    let marked: Vec<_> = request
        .segments
        .iter()
        .map(|segment| segment.boundary)
        .collect();
    assert_eq!(marked.iter().filter(|marked| **marked).count(), 2);
    assert!(marked[0] && marked[9]);
    assert!(
        history
            .iter()
            .zip(&request.segments[1..])
            .all(|(stored, sent)| Arc::ptr_eq(stored, &sent.entry))
    );
}

#[test]
fn budget_of_an_assembly_adds_up() {
    let Assembly { request, account } =
        build(&conversation("UATaU"), &model(), &Policy::default()).unwrap();
    let budget = &account.budget;
    assert_eq!(budget.used_tokens(), request.estimated_tokens());
    assert_eq!(
        budget.remaining,
        200_000 - 8_192 - request.estimated_tokens().cast_signed()
    );
    assert_eq!(
        budget
            .layers
            .iter()
            .map(|layer| layer.layer)
            .collect::<Vec<_>>(),
        Layer::ALL
    );
}

#[test]
fn assemble_reserves_a_share_of_the_window_for_unknown_output() {
    let model = ModelSpec {
        max_output_tokens: None,
        ..model()
    };
    let account = build(&conversation("U"), &model, &Policy::default())
        .unwrap()
        .account;
    assert_eq!(account.budget.output_reserve, 60_000);
}

#[test]
fn assemble_rejects_a_request_that_is_too_large_and_lists_the_layers() {
    let history = [text(0, Role::User, &"x".repeat(40_000))];
    let model = ModelSpec {
        context_window: 12_000,
        max_output_tokens: Some(4_000),
        ..model()
    };
    let error = build(&history, &model, &Policy::default()).unwrap_err();
    assert!(
        matches!(error, ContextError::TooLarge { room: 8_000, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("current             10,004"),
        "{error}"
    );
}

#[test]
fn assemble_rejects_a_history_without_input() {
    assert!(matches!(
        build(&[], &model(), &Policy::default()),
        Err(ContextError::NoInput)
    ));
    let history = conversation("Ua");
    let error = build(&history, &model(), &Policy::default()).unwrap_err();
    let id: MessageId = history[1].message.message_id;
    assert!(
        matches!(error, ContextError::Integrity(IntegrityError::LastNotAnswerable { id: named, role: Role::Assistant }) if named == id)
    );
}

#[test]
fn warnings_name_the_tool_the_layer_and_the_window() {
    let mut specs = tool_set(&["read_file", "mystery"]).specs.clone();
    specs[1].description.clear();
    let tools = ToolSet::new(specs, &Quarter);
    let policy = Policy {
        system_warn: 100,
        warn_at: 0.01,
        ..Policy::default()
    };
    let system = system();
    let history = conversation("U");
    let model = ModelSpec {
        context_window: 20_000,
        ..model()
    };
    let warnings = assemble(&Snapshot::new(
        &model, &policy, &system, &tools, &history, &Quarter,
    ))
    .unwrap()
    .account
    .warnings;
    assert!(
        matches!(
            warnings.as_slice(),
            [
                Warning::ToolWithoutDescription { .. },
                Warning::LargeSystem { .. },
                Warning::WindowFilling { .. }
            ]
        ),
        "{warnings:?}"
    );
    assert_eq!(
        warnings[0].to_string(),
        "tool `mystery` is offered without a description"
    );
}

#[test]
fn assemble_rejects_a_system_message_without_a_required_section() {
    let bare = system_entry("You are haft.", &Quarter);
    let model = model();
    let policy = Policy::default();
    let history = conversation("U");
    let tools = tool_set(&[]);
    let error = assemble(&Snapshot::new(
        &model, &policy, &bare, &tools, &history, &Quarter,
    ))
    .unwrap_err();
    assert!(matches!(
        error,
        ContextError::Integrity(IntegrityError::MissingSection {
            section: "CAPABILITIES",
            ..
        })
    ));
}

proptest! {
    #[test]
    fn assemble_accepts_any_conversation_that_ends_with_an_input(mut history in any_conversation(120)) {
        history.push(text(1_000, Role::User, "go on"));
        let built = build(&history, &model(), &Policy::default());
        prop_assert!(built.is_ok(), "{:?}", built.unwrap_err());
        let again = build(&history, &model(), &Policy::default()).unwrap();
        prop_assert_eq!(built.unwrap().request, again.request);
    }
}

#[test]
fn assemble_fits_less_text_with_a_larger_tokenizer_factor() {
    let history = conversation(&"UAT".repeat(60));
    let build = |context_window, tokenizer_factor| {
        let model = ModelSpec {
            context_window,
            max_output_tokens: Some(500),
            tokenizer_factor,
            ..model()
        };
        build(&history, &model, &Policy::default()).unwrap()
    };
    let whole = build(1_000_000, 1.0);
    let window = (whole.request.estimated_tokens() as f64 * 1.4) as u32 + 500;
    assert_eq!(
        build(window, 1.0).request,
        whole.request,
        "it fits as it is counted"
    );
    let dense = build(window, 1.5);
    assert!(
        dense.request.estimated_tokens() < whole.request.estimated_tokens(),
        "but not in the model's own tokens"
    );
    let budget = &dense.account.budget;
    assert!(
        budget.used_tokens() <= budget.max_input_tokens() && budget.remaining >= 0,
        "{budget:?}"
    );
    assert!(budget.used_tokens() > dense.request.estimated_tokens());
}

/// Records how often each text was counted.
#[derive(Default)]
struct Recording(std::sync::Mutex<std::collections::BTreeMap<String, u32>>);

impl haft_types::TokenCounter for Recording {
    fn count_text(&self, text: &str) -> u32 {
        *self.0.lock().unwrap().entry(text.to_owned()).or_default() += 1;
        Quarter.count_text(text)
    }
}

#[test]
fn assemble_counts_each_message_once() {
    let counter = Recording::default();
    let memo = crate::Memo::default();
    let policy = Policy::default();
    let system = system();
    let tools = tool_set(&["read_file"]);
    let reminders = crate::Reminders {
        todo: Some("- [ ] a".into()),
        ..crate::Reminders::default()
    };
    let history: Vec<_> = (0..40)
        .map(|number| {
            let role = if number % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            Entry::new(
                text(number, role, &format!("message {number}"))
                    .message
                    .clone(),
                &counter,
            )
        })
        .collect();
    for end in (1..=history.len()).step_by(2) {
        // The factor is corrected after each reply, and the window is so small that rounds are
        // omitted.
        let model = ModelSpec {
            context_window: 4_000,
            max_output_tokens: Some(500),
            tokenizer_factor: 1.0 + end as f64 / 100.0,
            ..model()
        };
        let plain = Snapshot::new(&model, &policy, &system, &tools, &history[..end], &counter);
        assemble(&Snapshot {
            reminders: Some(&reminders),
            memo: Some(&memo),
            ..plain
        })
        .unwrap();
    }
    let counted = counter.0.into_inner().unwrap();
    let again: Vec<_> = counted.iter().filter(|(_, times)| **times > 1).collect();
    assert!(again.is_empty(), "{again:?}");
    assert!((0..40).all(|number| counted.contains_key(&format!("message {number}"))));
}
