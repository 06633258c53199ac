//! Lists, forms, modes, and words that join a turn.

use haft_types::{Field, FieldKind, Filled, Form};

use super::*;
use crate::link::{Focus, ListRequest, RewindTarget};
use crate::picker::{PickerAction, PickerRow};

fn list(title: &str, rows: &[(&str, Operation)]) -> PickerList {
    let row = |(text, operation): &(&str, Operation)| PickerRow {
        text: (*text).into(),
        about: "about it".into(),
        then: PickerAction::Do(operation.clone()),
    };
    PickerList { title: title.into(), rows: rows.iter().map(row).collect(), ..PickerList::default() }
}

#[test]
fn a_list_takes_the_keys_until_something_is_chosen() {
    let mut seat = TestTerminal::new(60, 20);
    seat.write("a draft");
    seat.put(AppInput::Pick(list("Which?", &[("one", Operation::Undo), ("two", Operation::Redo)])));
    assert!(seat.live().contains("▸ one") && !seat.live().contains("a draft"), "{}", seat.live());
    seat.write("tw");
    seat.key(KeyCode::Enter);
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Redo)]);
    assert!(seat.live().contains("> a draft"), "what was typed is still there: {}", seat.live());
    seat.put(AppInput::Pick(list("Which?", &[("one", Operation::Undo)])));
    seat.key(KeyCode::Esc);
    assert!(seat.wanted().is_empty() && seat.live().contains("> a draft"));
}

#[test]
fn no_list_opens_over_a_turn_nor_stays_over_a_question() {
    let mut seat = TestTerminal::new(60, 20);
    seat.put(AppInput::Pick(list("Which?", &[("one", Operation::Undo)])));
    seat.put(approval("cargo test"));
    assert!(seat.live().contains("Allow this?") && !seat.live().contains("Which?"), "{}", seat.live());
    let mut seat = TestTerminal::new(60, 20);
    seat.say("go");
    seat.put(AppInput::Pick(list("Which?", &[("one", Operation::Undo)])));
    assert!(!seat.live().contains("Which?"));
}

#[test]
fn esc_twice_goes_back_only_when_nothing_is_typed_or_runs() {
    let mut seat = TestTerminal::new(60, 20);
    seat.key(KeyCode::Esc);
    assert!(seat.live().contains("Esc again goes back"));
    seat.key(KeyCode::Esc);
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Offer(ListRequest::Messages))]);
    seat.key(KeyCode::Esc);
    seat.write("x");
    seat.key(KeyCode::Esc);
    seat.key(KeyCode::Esc);
    assert!(seat.wanted().is_empty(), "a key between them, and something typed");
    let taken = Operation::Rewind { message: "m".into(), take_back: RewindTarget::Words };
    seat.put(AppInput::Pick(list("Back?", &[("one", taken.clone())])));
    seat.key(KeyCode::Enter);
    assert_eq!(seat.wanted(), [Effect::Do(taken)]);
    seat.put(AppInput::Edited("what I had said".into()));
    assert!(seat.live().contains("> what I had said"));
}

#[test]
fn shift_tab_goes_round_the_modes_without_the_one_that_asks_nothing() {
    let mut seat = TestTerminal::new(90, 20);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seat.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        seen.extend(seat.wanted());
    }
    let modes = [
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
        PermissionMode::Plan,
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
    ];
    assert_eq!(seen, modes.map(|mode| Effect::Do(Operation::Mode(mode))));
    assert!(seat.live().contains("accept-edits: changes files unasked"), "{}", seat.live());
    seat.write("x");
    assert!(seat.live().contains("accept-edits · mock/model"), "{}", seat.live());
    let setup = Setup { mode: PermissionMode::Yolo, ..Setup::default() };
    let (mut app, _) = App::new(setup, 80, 24);
    let shift_tab = || AppInput::Key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT));
    let round: Vec<_> = (0..5).flat_map(|_| app.update(shift_tab())).collect();
    assert_eq!(round.last(), Some(&Effect::Do(Operation::Mode(PermissionMode::Yolo))), "{round:?}");
}

#[test]
fn modes_and_focus_files_by_name() {
    let mut seat = TestTerminal::new(90, 20);
    seat.say("/mode plan");
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Mode(PermissionMode::Plan))]);
    seat.say("/mode yolo");
    seat.say("/mode whatever");
    assert!(seat.wanted().is_empty() && seat.all().contains("has no sandbox"), "{}", seat.all());
    seat.say("/files add a.rs @b.rs");
    let added = Focus::Add(vec!["a.rs".into(), "b.rs".into()]);
    assert_eq!(seat.wanted().pop(), Some(Effect::Do(Operation::Offer(ListRequest::Focus(added)))));
    seat.say("/files remove");
    assert!(seat.wanted().is_empty() && seat.all().contains("/files clear"));
}

#[test]
fn words_join_the_turn_in_order_and_commands_wait() {
    let mut seat = TestTerminal::new(60, 20);
    seat.say("first");
    seat.wanted();
    seat.say("second");
    seat.say("/review it");
    seat.say("third");
    let joined = |text: &str| Effect::Do(Operation::Join(text.into()));
    assert_eq!(seat.wanted(), [joined("second"), joined("third")]);
    seat.put(AppInput::Joined);
    assert!(seat.all().contains("\n> second\n") && !seat.live().contains("next: second"), "{}", seat.all());
    seat.put(AppInput::Joined);
    assert!(seat.all().contains("\n> third\n") && seat.live().contains("next: /review it"));
    seat.put(AppInput::Joined);
    seat.put(AppInput::Idle);
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Submit("/review it".into()))]);
}

#[test]
fn words_that_joined_after_all_do_not_come_back() {
    let mut seat = TestTerminal::new(60, 20);
    seat.say("first");
    seat.say("second");
    seat.say("third");
    seat.key(KeyCode::Esc);
    seat.put(AppInput::Joined);
    seat.put(AppInput::Idle);
    assert!(seat.all().contains("\n> second\n") && seat.live().contains("> third"), "{}", seat.all());
    assert!(!seat.live().contains("second"), "{}", seat.live());
}

#[test]
fn what_is_archived_can_be_interrupted() {
    let mut seat = TestTerminal::new(60, 20);
    seat.say("/compact the names");
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Compact("the names".into()))]);
    assert!(seat.live().contains("Esc interrupts"));
    seat.key(KeyCode::Esc);
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Interrupt)]);
    seat.put(AppInput::Idle);
    seat.say("/model other");
    assert_eq!(seat.wanted(), [Effect::Do(Operation::Offer(ListRequest::Models("other".into())))]);
}

fn form() -> AppInput {
    let field = |name: &str, kind| Field {
        name: name.into(),
        title: String::new(),
        description: String::new(),
        kind,
        required: true,
        default: None,
    };
    let fields = vec![field("name", FieldKind::Text), field("count", FieldKind::Integer)];
    AppInput::Form(Box::new(Form { from: "The MCP server `x`".into(), message: "Whose?".into(), fields }))
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let mut seat = TestTerminal::new(60, 20);
    seat.say("go");
    seat.write("half a sent");
    seat.wanted();
    seat.put(form());
    assert_eq!(seat.wanted(), [Effect::Arm]);
    assert!(seat.all().contains("give no password"), "{}", seat.all());
    seat.key(KeyCode::Enter);
    assert!(seat.wanted().is_empty(), "nobody can have read it yet");
    seat.put(AppInput::Armed);
    seat.say("Ada");
    seat.say("many");
    assert!(seat.all().contains("type a whole number"), "{}", seat.all());
    (0..4).for_each(|_| seat.key(KeyCode::Backspace));
    seat.wanted();
    seat.say("3");
    let Some(Effect::Fill(Filled::Accepted(answers))) = seat.wanted().pop() else { panic!("it was the last field") };
    assert_eq!(serde_json::Value::Object(answers), json!({"name": "Ada", "count": 3}));
    assert!(seat.live().contains("> half a sent"), "{}", seat.live());
}

#[test]
fn a_form_can_be_declined_and_taken_back() {
    let mut seat = TestTerminal::new(60, 20);
    seat.put(form());
    seat.wanted();
    seat.key(KeyCode::Esc);
    assert_eq!(seat.wanted(), [Effect::Fill(Filled::Declined)]);
    seat.put(form());
    seat.put(AppInput::Withdrawn);
    assert!(!seat.live().contains("Esc declines"));
}

#[test]
fn resources_are_mentioned_as_they_are() {
    let setup = Setup { resources: vec!["mem:note://one".into()], ..Setup::default() };
    let (app, effects) = App::new(setup, 80, 24);
    let mut seat = TestTerminal { app, printed: Vec::new(), wanted: Vec::new(), kept: Vec::new() };
    seat.note(effects);
    seat.write("see @mem");
    assert!(seat.live().contains("▸ @mem:note://one"), "{}", seat.live());
    seat.key(KeyCode::Tab);
    assert!(seat.live().contains("> see @mem:note://one"), "{}", seat.live());
}
