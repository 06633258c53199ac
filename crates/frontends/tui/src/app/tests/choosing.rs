//! Lists, forms, modes, and input that joins a turn.

use haft_types::{Field, FieldKind, Form, FormOutcome};

use super::*;
use crate::link::{Focus, ListRequest, RewindTarget, SideAction};
use crate::picker::{PickerAction, PickerRow};

fn list(title: &str, rows: &[(&str, Operation)]) -> PickerList {
    let row = |(text, operation): &(&str, Operation)| PickerRow {
        text: (*text).into(),
        about: "about it".into(),
        then: PickerAction::Do(operation.clone()),
    };
    PickerList {
        title: title.into(),
        rows: rows.iter().map(row).collect(),
        ..PickerList::default()
    }
}

#[test]
fn picker_takes_keys_until_a_choice() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.write("a draft");
    terminal.update(UiMessage::Pick(list(
        "Which?",
        &[("one", Operation::Undo), ("two", Operation::Redo)],
    )));
    assert!(
        terminal.live_region().contains("▸ one") && !terminal.live_region().contains("a draft"),
        "{}",
        terminal.live_region()
    );
    terminal.write("tw");
    terminal.key(KeyCode::Enter);
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Redo)]);
    assert!(
        terminal.live_region().contains("> a draft"),
        "what was typed is still there: {}",
        terminal.live_region()
    );
    terminal.update(UiMessage::Pick(list("Which?", &[("one", Operation::Undo)])));
    terminal.key(KeyCode::Esc);
    assert!(terminal.take_effects().is_empty() && terminal.live_region().contains("> a draft"));
}

#[test]
fn picker_gives_way_to_turns_and_questions() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.update(UiMessage::Pick(list("Which?", &[("one", Operation::Undo)])));
    terminal.update(approval("cargo test"));
    assert!(
        terminal.live_region().contains("Not covered by any rule")
            && !terminal.live_region().contains("Which?"),
        "{}",
        terminal.live_region()
    );
    let mut terminal = TestTerminal::new(60, 20);
    terminal.say("go");
    terminal.update(UiMessage::Pick(list("Which?", &[("one", Operation::Undo)])));
    assert!(!terminal.live_region().contains("Which?"));
}

#[test]
fn esc_twice_rewinds_only_when_idle() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.key(KeyCode::Esc);
    assert!(terminal.live_region().contains("Press Esc again"));
    terminal.key(KeyCode::Esc);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Offer(ListRequest::Messages))]
    );
    terminal.key(KeyCode::Esc);
    terminal.write("x");
    terminal.key(KeyCode::Esc);
    terminal.key(KeyCode::Esc);
    assert!(
        terminal.take_effects().is_empty(),
        "a key between them, and something typed"
    );
    let taken = Operation::Rewind {
        message: "m".into(),
        take_back: RewindTarget::Conversation,
    };
    terminal.update(UiMessage::Pick(list("Back?", &[("one", taken.clone())])));
    terminal.key(KeyCode::Enter);
    assert_eq!(terminal.take_effects(), [Effect::Do(taken)]);
    terminal.update(UiMessage::Typed {
        text: "what I had said".into(),
    });
    assert!(terminal.live_region().contains("> what I had said"));
}

#[test]
fn shift_tab_cycles_modes_without_auto_and_yolo() {
    let mut terminal = TestTerminal::new(90, 20);
    let mut seen = Vec::new();
    for _ in 0..4 {
        terminal.press(KeyCode::BackTab, KeyModifiers::SHIFT);
        seen.extend(terminal.take_effects());
    }
    let modes = [
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
    ];
    assert_eq!(seen, modes.map(|mode| Effect::Do(Operation::Mode(mode))));
    assert!(
        terminal
            .live_region()
            .contains("accept-edits: edits files without asking"),
        "{}",
        terminal.live_region()
    );
    terminal.write("x");
    assert!(
        terminal.live_region().contains("accept-edits · mock/model"),
        "{}",
        terminal.live_region()
    );
    let setup = Setup {
        mode: PermissionMode::Yolo,
        ..Setup::default()
    };
    let (mut app, _) = App::new(setup, 80, 24);
    let shift_tab = || AppInput::Key(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT));
    let round: Vec<_> = (0..5).flat_map(|_| app.update(shift_tab())).collect();
    assert_eq!(
        round.last(),
        Some(&Effect::Do(Operation::Mode(PermissionMode::Yolo))),
        "{round:?}"
    );
}

#[test]
fn modes_focus_files_and_views_are_set_by_name() {
    let mut terminal = TestTerminal::new(90, 20);
    terminal.say("/mode plan");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Mode(PermissionMode::Plan))]
    );
    terminal.say("/mode yolo");
    terminal.say("/mode whatever");
    assert!(
        terminal.take_effects().is_empty() && terminal.full_screen().contains("has no sandbox"),
        "{}",
        terminal.full_screen()
    );
    terminal.say("/files add a.rs @b.rs");
    let added = Focus::Add(vec!["a.rs".into(), "b.rs".into()]);
    assert_eq!(
        terminal.take_effects().pop(),
        Some(Effect::Do(Operation::Offer(ListRequest::Focus(added))))
    );
    for (typed, view) in [("/view", ""), ("/view execute", "execute")] {
        terminal.say(typed);
        assert_eq!(
            terminal.take_effects().pop(),
            Some(Effect::Do(Operation::Offer(ListRequest::View(view.into()))))
        );
    }
    for (typed, operation) in [
        (
            "/agent",
            Operation::Offer(ListRequest::Agent(String::new())),
        ),
        (
            "/agent /reviewer",
            Operation::Offer(ListRequest::Agent("reviewer".into())),
        ),
        (
            "/useful add a.rs 1-2 x",
            Operation::Useful("add a.rs 1-2 x".into()),
        ),
        ("/notes /list", Operation::Notes("/list".into())),
        (
            "/notes show src",
            Operation::Side(SideAction::Haft(
                ["notes", "show", "src"].map(str::to_owned).into(),
            )),
        ),
    ] {
        terminal.say(typed);
        assert_eq!(terminal.take_effects().pop(), Some(Effect::Do(operation)));
    }
    terminal.say("/files remove");
    assert!(terminal.take_effects().is_empty() && terminal.full_screen().contains("/files clear"));
}

#[test]
fn queued_prompts_join_in_order_and_commands_wait() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.say("first");
    terminal.take_effects();
    terminal.say("second");
    terminal.say("/review it");
    terminal.say("third");
    let joined = |text: &str| Effect::Do(Operation::Join(text.into()));
    assert_eq!(terminal.take_effects(), [joined("second"), joined("third")]);
    terminal.update(UiMessage::Joined);
    assert!(
        terminal.full_screen().contains("\n> second\n")
            && !terminal.live_region().contains("next: second"),
        "{}",
        terminal.full_screen()
    );
    terminal.update(UiMessage::Joined);
    assert!(
        terminal.full_screen().contains("\n> third\n")
            && terminal.live_region().contains("next: /review it")
    );
    terminal.update(UiMessage::Joined);
    terminal.update(UiMessage::Idle);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("/review it".into()))]
    );
}

#[test]
fn joined_prompts_are_not_recalled() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.say("first");
    terminal.say("second");
    terminal.say("third");
    terminal.control('c');
    terminal.update(UiMessage::Joined);
    terminal.update(UiMessage::Idle);
    assert!(
        terminal.full_screen().contains("\n> second\n")
            && terminal.live_region().contains("> third"),
        "{}",
        terminal.full_screen()
    );
    assert!(
        !terminal.live_region().contains("second"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn compaction_can_be_interrupted() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.say("/compact the names");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Compact("the names".into()))]
    );
    assert!(terminal.live_region().contains("Esc to interrupt"));
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Interrupt)]);
    terminal.update(UiMessage::Idle);
    terminal.say("/model other");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Offer(ListRequest::Models(
            "other".into()
        )))]
    );
}

fn sample_form() -> AppInput {
    let field = |name: &str, kind| Field {
        name: name.into(),
        title: String::new(),
        description: String::new(),
        kind,
        required: true,
        default: None,
    };
    let fields = vec![
        field("name", FieldKind::Text),
        field("count", FieldKind::Integer),
    ];
    AppInput::Form(Box::new(Form {
        requester: "The MCP server `x`".into(),
        message: "Whose?".into(),
        fields,
    }))
}

#[test]
fn form_is_filled_field_by_field() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.say("go");
    terminal.write("half a sent");
    terminal.take_effects();
    terminal.update(sample_form());
    assert_eq!(terminal.take_effects(), [Effect::Arm]);
    assert!(
        terminal.full_screen().contains("give no password"),
        "{}",
        terminal.full_screen()
    );
    terminal.key(KeyCode::Enter);
    assert!(
        terminal.take_effects().is_empty(),
        "nobody can have read it yet"
    );
    terminal.update(AppInput::Armed);
    terminal.say("Ada");
    terminal.say("many");
    assert!(
        terminal.full_screen().contains("type a whole number"),
        "{}",
        terminal.full_screen()
    );
    (0..4).for_each(|_| terminal.key(KeyCode::Backspace));
    terminal.take_effects();
    terminal.say("3");
    let Some(Effect::Fill(FormOutcome::Accepted(answers))) = terminal.take_effects().pop() else {
        panic!("it was the last field")
    };
    assert_eq!(Value::Object(answers), json!({"name": "Ada", "count": 3}));
    assert!(
        terminal.live_region().contains("> half a sent"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn form_can_be_declined_and_withdrawn() {
    let mut terminal = TestTerminal::new(60, 20);
    terminal.update(sample_form());
    terminal.take_effects();
    terminal.key(KeyCode::Esc);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Fill(FormOutcome::Declined)]
    );
    terminal.update(sample_form());
    terminal.update(AppInput::Withdrawn);
    assert!(!terminal.live_region().contains("Esc declines"));
}

#[test]
fn resource_mentions_are_not_quoted() {
    let setup = Setup {
        resources: vec!["mem:note://one".into()],
        ..Setup::default()
    };
    let (app, effects) = App::new(setup, 80, 24);
    let mut terminal = TestTerminal {
        app,
        printed: Vec::new(),
        wanted: Vec::new(),
        kept: Vec::new(),
    };
    terminal.record(effects);
    terminal.write("see @mem");
    assert!(
        terminal.live_region().contains("▸ @mem:note://one"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Tab);
    assert!(
        terminal.live_region().contains("> see @mem:note://one"),
        "{}",
        terminal.live_region()
    );
}
