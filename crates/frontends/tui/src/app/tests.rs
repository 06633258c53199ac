mod answering;
mod choosing;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft_agent::SubjectKind;
use haft_types::{
    BudgetLayer, CallPhase, ConversationId, Cost, Event, EventBody, Layer, Outcome, SandboxLayer,
    SandboxStatus, ToolStatus, TurnResult, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::Editing;
use crate::link::{Focus, ListRequest, Operation, SideAction};
use crate::picker::{PickerAction, PickerList, PickerRow};

/// An interface, and everything it has printed or requested.
struct TestTerminal {
    app: App,
    printed: Vec<StyledLine>,
    wanted: Vec<Effect>,
    kept: Vec<String>,
}

impl TestTerminal {
    fn new(columns: usize, rows: usize) -> Self {
        let setup = Setup {
            model: "mock/model".into(),
            commands: vec![("review".into(), "look at a change".into())],
            ..Setup::default()
        };
        let (app, effects) = App::new(setup, columns, rows);
        let mut terminal = Self {
            app,
            printed: Vec::new(),
            wanted: Vec::new(),
            kept: Vec::new(),
        };
        terminal.record(effects);
        terminal
    }

    fn record(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Print(lines) => self.printed.extend(lines),
                Effect::Keep(text) => self.kept.push(text),
                other => self.wanted.push(other),
            }
        }
    }

    fn update(&mut self, input: impl Into<AppInput>) {
        let effects = self.app.update(input);
        self.record(effects);
    }

    fn event(&mut self, body: EventBody) {
        self.agent_event("main", body);
    }

    fn agent_event(&mut self, agent: &str, body: EventBody) {
        let conversation_id = ConversationId::new("c");
        self.update(UiMessage::Event(Box::new(Event {
            body,
            conversation_id,
            seq: 1,
            agent: agent.into(),
        })));
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.update(AppInput::Key(KeyEvent::new(code, modifiers)));
    }

    fn key(&mut self, code: KeyCode) {
        self.press(code, KeyModifiers::NONE);
    }

    fn control(&mut self, c: char) {
        self.press(KeyCode::Char(c), KeyModifiers::CONTROL);
    }

    fn write(&mut self, text: &str) {
        text.chars().for_each(|c| self.key(KeyCode::Char(c)));
    }

    fn say(&mut self, text: &str) {
        self.write(text);
        self.key(KeyCode::Enter);
    }

    fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn live_region(&self) -> String {
        self.app
            .draw_frame()
            .rows
            .iter()
            .map(|row| row.plain() + "\n")
            .collect()
    }

    /// Returns the printed rows, a separator, and the live region.
    fn full_screen(&self) -> String {
        let printed: String = self.printed.iter().map(|row| row.plain() + "\n").collect();
        format!("{printed}--------\n{}", self.live_region())
    }
}

fn call(id: &str, name: &str, arguments: Value) -> EventBody {
    EventBody::ToolCall {
        id: id.into(),
        name: name.into(),
        phase: CallPhase::Finished,
        arguments: Some(arguments),
        raw: None,
    }
}

fn running(id: &str, name: &str) -> EventBody {
    EventBody::ToolCall {
        id: id.into(),
        name: name.into(),
        phase: CallPhase::Running,
        arguments: None,
        raw: None,
    }
}

fn tool_result(id: &str, name: &str, status: ToolStatus, text: &str) -> EventBody {
    EventBody::ToolResult {
        id: id.into(),
        name: name.into(),
        status,
        text: text.into(),
        error: None,
    }
}

fn text(text: &str) -> EventBody {
    EventBody::Text { text: text.into() }
}

fn turn_result(outcome: Outcome, message: &str) -> EventBody {
    EventBody::Result(TurnResult {
        outcome,
        code: String::new(),
        message: message.into(),
        text: String::new(),
        turns: 1,
        duration_ms: 1,
        usage: Usage::default(),
        cost: None,
        structured_output: None,
        nothing_changed: false,
    })
}

fn approval(subject: &str) -> AppInput {
    AppInput::Ask(Box::new(Approval {
        agent: "main".into(),
        call_id: None,
        tool: "execute_command".into(),
        arguments: json!({"command": subject}),
        subject: subject.into(),
        subject_kind: if subject.contains("@@ -") {
            SubjectKind::Diff
        } else {
            SubjectKind::Text
        },
        reason: "no rule allows `cargo`".into(),
        leaves_sandbox: false,
        parts: Vec::new(),
        remember: vec!["execute_command(cargo test:*)".into()],
    }))
}

/// Runs a task with reasoning, calls, a diff and an approval, up to the approval.
fn run_task(columns: usize) -> TestTerminal {
    let mut terminal = TestTerminal::new(columns, 24);
    terminal.say("Fix the bug in src/lib.rs, please: the sum of an empty list must be zero");
    let status = SandboxStatus {
        layer: SandboxLayer::Namespace,
        reasons: Vec::new(),
    };
    terminal.event(EventBody::Conversation {
        resumed: false,
        name: "Fix".into(),
        model: "mock/model".into(),
        cwd: "/p".into(),
        sandbox: Some(status),
    });
    let layer = |layer, tokens: u64| BudgetLayer {
        layer,
        tokens,
        share: tokens as f64 / 200_000.0,
    };
    terminal.event(EventBody::Budget {
        layers: vec![
            layer(Layer::System, 12_000),
            layer(Layer::Documents, 3_000),
            layer(Layer::History, 60_000),
        ],
        output_reserve: 0,
        remaining: 0,
        window: 200_000,
    });
    terminal.event(EventBody::Window {
        tokens: 75_000,
        window: 200_000,
        pruned_tokens: 0,
        round: 1,
    });
    terminal.event(EventBody::Thinking {
        text: "The user wants the sum of an empty list to be zero. ".into(),
    });
    terminal.event(text("I will **look** at the file"));
    terminal.event(text(" first.\n"));
    terminal.event(call("1", "read_file", json!({"path": "src/lib.rs"})));
    terminal.event(call("2", "search_files", json!({"regex": "sum\\("})));
    terminal.event(tool_result(
        "1",
        "read_file",
        ToolStatus::Success,
        "1\tfn sum() {}",
    ));
    terminal.event(tool_result(
        "2",
        "search_files",
        ToolStatus::Error,
        "the pattern is not closed at `(`",
    ));
    terminal.event(EventBody::Usage {
        model: "mock/model".into(),
        usage: Usage {
            input: 1_000,
            cached_input: 74_000,
            output: 40,
            ..Usage::default()
        },
        cost: Some(Cost {
            total: 0.0312,
            ..Cost::default()
        }),
        saved_tokens: 0,
        tools: Vec::new(),
    });
    terminal.event(call(
        "3",
        "todo_write",
        json!({"todos": [
            {"content": "Change `sum`", "status": "completed"},
            {"content": "Run the tests", "status": "in_progress"},
            {"content": "Tell the user", "status": "pending"},
        ]}),
    ));
    terminal.event(tool_result("3", "todo_write", ToolStatus::Success, "ok"));
    terminal.event(call(
        "4",
        "replace_in_file",
        json!({"path": "src/lib.rs", "diff": "…"}),
    ));
    let change = "Changed src/lib.rs.\n\n--- src/lib.rs\n+++ src/lib.rs\n@@ -1,2 +1,2 @@\n pub fn sum(of: &[i64]) -> i64 {\n-    of.iter().copied().reduce(|a, b| a + b).expect(\"not empty\")\n+    of.iter().sum()\n";
    terminal.event(tool_result(
        "4",
        "replace_in_file",
        ToolStatus::Success,
        change,
    ));
    terminal.event(call(
        "5",
        "execute_command",
        json!({"command": "cargo test"}),
    ));
    terminal.update(approval("cargo test"));
    terminal
}

#[test]
fn task_up_to_its_question_at_three_widths() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("task_{columns}"), run_task(columns).full_screen());
    }
}

#[test]
fn approval_is_answered_only_once_armed() {
    let mut terminal = run_task(80);
    assert!(terminal.take_effects().contains(&Effect::Arm));
    terminal.write("yes");
    assert_eq!(
        terminal.take_effects(),
        vec![Effect::Arm; 3],
        "whoever is typing goes on typing"
    );
    assert!(terminal.live_region().contains("> yes"));
    terminal.key(KeyCode::Enter);
    assert!(
        terminal
            .take_effects()
            .iter()
            .all(|effect| *effect == Effect::Arm),
        "nor does Enter answer"
    );
    terminal.update(AppInput::Armed);
    terminal.key(KeyCode::Char('y'));
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::Once)]
    );
    assert!(
        terminal.live_region().contains("> yes")
            && !terminal.live_region().contains("Not covered by any rule"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn approval_can_be_edited_and_refused_with_reason() {
    let mut terminal = run_task(80);
    terminal.write("draft");
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.key(KeyCode::Char('e'));
    assert!(
        terminal.live_region().contains("> cargo test\n"),
        "{}",
        terminal.live_region()
    );
    terminal.write(" --lib");
    terminal.key(KeyCode::Enter);
    let arguments = json!({"command": "cargo test --lib"});
    assert_eq!(
        terminal.take_effects(),
        [
            Effect::Arm,
            Effect::Answer(ApprovalReply::Changed { arguments })
        ]
    );
    assert!(
        terminal.live_region().contains("> draft"),
        "what was typed before is back"
    );

    terminal.update(approval("cargo publish"));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.key(KeyCode::Char('w'));
    terminal.say("not today");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::No {
            reason: "not today".into()
        })]
    );
}

#[test]
fn approval_closes_when_withdrawn() {
    let mut terminal = run_task(80);
    terminal.update(AppInput::Withdrawn);
    assert!(!terminal.live_region().contains("Not covered by any rule"));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.key(KeyCode::Char('y'));
    assert!(terminal.take_effects().is_empty() && terminal.live_region().contains("> y"));
}

#[test]
fn control_c_interrupts_and_recalls_queued_input() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("first".into()))]
    );
    terminal.say("second");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Join("second".into()))]
    );
    assert!(terminal.live_region().contains("next: second"));
    terminal.control('c');
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Interrupt)]);
    terminal.event(turn_result(Outcome::Aborted, "cancelled"));
    terminal.update(UiMessage::Idle);
    assert!(terminal.live_region().contains("> second") && terminal.take_effects().is_empty());
    assert!(
        terminal
            .full_screen()
            .contains("Interrupted. Tell haft what to do instead.")
    );
    terminal.key(KeyCode::Esc);
    assert!(terminal.take_effects().is_empty(), "nothing runs");
}

#[test]
fn esc_interrupts_and_sends_queued_input() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    terminal.say("second");
    terminal.take_effects();
    assert!(terminal.live_region().contains("Esc to interrupt and send"));
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Interrupt)]);
    terminal.event(turn_result(Outcome::Aborted, "cancelled"));
    terminal.update(UiMessage::Idle);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("second".into()))]
    );
}

#[test]
fn queued_input_starts_the_next_turn() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    terminal.say("second");
    terminal.take_effects();
    terminal.event(turn_result(Outcome::Completed, ""));
    terminal.update(UiMessage::Idle);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("second".into()))]
    );
}

#[test]
fn quit_takes_ctrl_c_twice_or_ctrl_d() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("half");
    terminal.control('c');
    assert!(terminal.take_effects().is_empty() && terminal.live_region().contains("> \n"));
    terminal.control('c');
    terminal.key(KeyCode::Char('x'));
    terminal.key(KeyCode::Backspace);
    terminal.control('c');
    assert!(
        terminal.take_effects().is_empty(),
        "another key came between"
    );
    terminal.control('c');
    assert_eq!(terminal.take_effects(), [Effect::Quit]);
    terminal.control('d');
    assert_eq!(terminal.take_effects(), [Effect::Quit]);
}

#[test]
fn slash_commands_are_completed_and_run() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("/co");
    assert!(
        terminal.live_region().contains("/context") && terminal.live_region().contains("/cost"),
        "{}",
        terminal.live_region()
    );
    terminal.write("s");
    terminal.key(KeyCode::Enter);
    assert!(
        terminal
            .full_screen()
            .contains("> /cost\nNo request sent yet."),
        "{}",
        terminal.full_screen()
    );
    terminal.say("/rev");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("/review".into()))],
        "the user's own is expanded elsewhere"
    );
    terminal.update(UiMessage::Idle);
    terminal.say("/diff");
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Diff)]);
    terminal.say("!ls -l");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Side(SideAction::Shell(
            "ls -l".into()
        )))]
    );
    terminal.say("/help");
    assert!(
        terminal.full_screen().contains("/review") && terminal.full_screen().contains("Ctrl-R")
    );
}

#[test]
fn slash_commands_of_other_agents_are_translated() {
    let mut terminal = TestTerminal::new(80, 24);
    // Offered while it is typed: /models, /tools and whatever else has these letters.
    terminal.say("/ls");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Offer(ListRequest::Files))]
    );
    assert!(
        terminal.full_screen().contains("> /ls\nin haft: /files\n"),
        "{}",
        terminal.full_screen()
    );
    terminal.say("/run cargo test");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Side(SideAction::Shell(
            "cargo test".into()
        )))]
    );
    terminal.say("/hooks");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Side(SideAction::Haft(vec![
            "hooks".into()
        ])))]
    );
    terminal.say("/theme");
    assert_eq!(terminal.take_effects(), [], "it only says what there is");
    // The user's own command of that name comes first.
    let setup = Setup {
        commands: vec![("theme".into(), "mine".into())],
        ..Setup::default()
    };
    let mut app = App::new(setup, 80, 24).0;
    let mut effects = Vec::new();
    app.dispatch_input("/theme".into(), &mut effects);
    assert!(
        effects.contains(&Effect::Do(Operation::Submit("/theme".into()))),
        "{effects:?}"
    );
}

#[test]
fn text_after_a_mode_command_is_a_prompt_in_that_mode() {
    for (typed, mode) in [
        ("/coding fix the bug", PermissionMode::Ask),
        ("/code fix the bug", PermissionMode::Ask),
        ("/mode plan fix the bug", PermissionMode::Plan),
        ("/plan fix the bug", PermissionMode::Plan),
        ("/ask  fix the bug", PermissionMode::Plan),
        ("/architect\nfix the bug", PermissionMode::Plan),
        ("/chat fix the bug", PermissionMode::Plan),
        ("/auto fix the bug", PermissionMode::Auto),
    ] {
        let mut terminal = TestTerminal::new(80, 24);
        let mut effects = Vec::new();
        terminal.app.dispatch_input(typed.into(), &mut effects);
        assert_eq!(
            effects,
            [
                Effect::Do(Operation::Mode(mode)),
                Effect::Do(Operation::Submit("fix the bug".into()))
            ],
            "{typed}"
        );
    }
}

#[test]
fn mode_command_with_a_prompt_is_echoed_once() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("/architect how?");
    let screen = terminal.full_screen();
    assert!(
        screen.contains("> /architect how?\nin haft: /mode plan how?\nplan: "),
        "{screen}"
    );
    assert!(
        screen.contains("\n\n> how?\n") && !screen.contains("> /mode"),
        "{screen}"
    );
}

#[test]
fn prompt_after_a_mode_command_joins_the_running_turn() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    terminal.take_effects();
    terminal.say("/coding go on");
    assert_eq!(
        terminal.take_effects(),
        [
            Effect::Do(Operation::Mode(PermissionMode::Ask)),
            Effect::Do(Operation::Join("go on".into()))
        ]
    );
}

#[test]
fn mode_command_refuses_its_prompt_with_the_mode() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("/mode yolo delete it");
    terminal.say("/mode whatever delete it");
    assert_eq!(terminal.take_effects(), []);
}

#[test]
fn noun_and_verb_run_a_command_of_haft() {
    for (typed, arguments) in [
        ("/rules /list", "rules list"),
        ("/mcp /list", "mcp list"),
        ("/models /list", "models list"),
        ("/model /list", "models list"),
        ("/lib /add x", "lib add x"),
        ("/conf model:a/b", "config set model a/b"),
        ("/context /show", "context show"),
        ("/jobs", "jobs"),
        ("  /rules /list ", "rules list"),
    ] {
        let mut terminal = TestTerminal::new(80, 24);
        terminal.say(typed);
        let arguments = arguments.split(' ').map(str::to_owned).collect();
        assert_eq!(
            terminal.take_effects(),
            [Effect::Do(Operation::Side(SideAction::Haft(arguments)))],
            "{typed}"
        );
    }
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("/files /add a.rs");
    let added = Focus::Add(vec!["a.rs".into()]);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Offer(ListRequest::Focus(added)))]
    );
}

#[test]
fn first_input_may_be_a_slash_command() {
    let setup = Setup {
        first: Some("/help".into()),
        ..Setup::default()
    };
    let (_, effects) = App::new(setup, 80, 24);
    assert!(
        matches!(effects.as_slice(), [Effect::Print(rows)] if rows.len() > 20),
        "{effects:?}"
    );
}

#[test]
fn file_mentions_are_completed() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("look at @");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Side(SideAction::Files))]
    );
    terminal.update(UiMessage::Files(vec![
        "src/lib.rs".into(),
        "src/my file.rs".into(),
        "README.md".into(),
    ]));
    terminal.write("my");
    terminal.key(KeyCode::Tab);
    assert!(
        terminal
            .live_region()
            .contains("> look at @\"src/my file.rs\" \n"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn vim_keys_move_and_esc_still_interrupts() {
    let setup = Setup {
        editing: Editing::Vim,
        ..Setup::default()
    };
    let (app, _) = App::new(setup, 80, 24);
    let mut terminal = TestTerminal {
        app,
        printed: Vec::new(),
        wanted: Vec::new(),
        kept: Vec::new(),
    };
    terminal.write("one two");
    assert!(
        terminal.live_region().contains("INSERT"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Esc);
    terminal.write("bcwthree");
    assert!(
        terminal.live_region().contains("> one three"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Esc);
    assert!(
        terminal.live_region().contains("NORMAL"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Enter);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("one three".into()))]
    );
    assert_eq!(terminal.kept, ["one three"]);
    terminal.key(KeyCode::Esc);
    assert!(
        terminal.take_effects().is_empty(),
        "the first leaves typing"
    );
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.take_effects(), [Effect::Do(Operation::Interrupt)]);
}

#[test]
fn history_is_searched() {
    let mut terminal = TestTerminal::new(80, 24);
    for query in ["run the tests", "write the docs", "run the linter"] {
        terminal.say(query);
        terminal.update(UiMessage::Idle);
    }
    terminal.control('r');
    terminal.write("run");
    assert!(
        terminal
            .live_region()
            .contains("search: run  run the linter"),
        "{}",
        terminal.live_region()
    );
    terminal.control('r');
    terminal.key(KeyCode::Right);
    assert!(
        terminal.live_region().contains("> run the tests"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn model_question_is_answered_by_number() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("go");
    terminal.take_effects();
    terminal.event(EventBody::Question {
        question: "Which one?".into(),
        options: vec!["the red".into(), "the blue".into()],
    });
    terminal.event(turn_result(Outcome::Waiting, "a question"));
    terminal.update(UiMessage::Idle);
    let offered = terminal.take_effects();
    let [Effect::Offer(list)] = &offered[..] else {
        panic!("{offered:?}");
    };
    terminal.update(UiMessage::Pick(list.clone()));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    assert!(
        terminal.live_region().contains("▸ 1 the red"),
        "{}",
        terminal.live_region()
    );
    terminal.say("2");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit("the blue".into()))]
    );
}

#[test]
fn results_and_reasoning_can_be_opened() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.control('o');
    assert!(terminal.live_region().contains("Nothing to show yet"));
    terminal.event(EventBody::Thinking {
        text: "Deep thoughts.".into(),
    });
    assert!(terminal.live_region().contains("∴ Deep thoughts."));
    terminal.event(text("Words."));
    assert!(
        !terminal.live_region().contains("Deep thoughts")
            && terminal.full_screen().contains("Thoughts: 2 words")
    );
    terminal.control('o');
    assert!(terminal.live_region().contains("  Deep thoughts."));
    terminal.key(KeyCode::Esc);
    terminal.event(tool_result(
        "1",
        "read_file",
        ToolStatus::Success,
        "1\tall of it",
    ));
    terminal.control('o');
    assert!(terminal.live_region().contains("  1    all of it"));
}

#[test]
fn subagents_and_tasks_are_shown() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.agent_event(
        "tester",
        call("1", "execute_command", json!({"command": "make check"})),
    );
    assert!(
        !terminal.live_region().contains("make check"),
        "it waits for an approval"
    );
    terminal.agent_event("tester", running("1", "execute_command"));
    assert!(terminal.live_region().contains("↳ tester Run make check"));
    terminal.agent_event("tester", text("words of its own"));
    assert!(terminal.live_region().contains("  words of its own"));
    let is_printed = |row: &StyledLine| row.plain().contains("words of its own");
    assert!(!terminal.printed.iter().any(is_printed));
}

#[test]
fn long_paste_is_shown_short_and_sent_whole() {
    let mut terminal = TestTerminal::new(80, 24);
    let lines = "a line\n".repeat(5_000);
    terminal.update(AppInput::Paste(lines.clone()));
    assert!(
        terminal.live_region().contains("[pasted 5,000 lines]")
            && terminal.take_effects().is_empty(),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Enter);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Do(Operation::Submit(lines))]
    );
    assert!(terminal.printed.len() < 20, "it is not printed whole again");
}

fn hostile_text() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            Just("\u{1b}[2J".to_owned()),
            Just("\u{1b}[1A\u{1b}[2K".to_owned()),
            Just("\u{1b}]0;title\u{7}".to_owned()),
            Just("\r\u{8}\u{8}\u{b}\u{c}".to_owned()),
            Just("\u{202e}\u{2066}\u{200b}\u{feff}".to_owned()),
            Just("a\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}".to_owned()),
            Just("\u{9b}5A\u{85}\u{2028}".to_owned()),
            Just("日本👨‍👩‍👧".to_owned()),
            Just("```\n| a |\n|---|\n".to_owned()),
            Just("x".repeat(300)),
            any::<String>(),
        ],
        0..12,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Text of models, tools and files stays in its cells wherever it is shown, and the live region stays in the terminal.
    #[test]
    fn hostile_text_stays_in_its_cells(said in hostile_text(), columns in 1usize..100, rows in 1usize..30) {
        let mut terminal = TestTerminal::new(columns, rows);
        let half = said.floor_char_boundary(said.len() / 2);
        terminal.event(EventBody::Thinking { text: said.clone() });
        terminal.event(text(&said[..half]));
        terminal.event(text(&said[half..]));
        check_screen(&terminal)?;
        terminal.event(call("1", &said, json!({"command": said})));
        terminal.event(EventBody::ToolProgress { id: "1".into(), name: said.clone(), text: said.clone() });
        terminal.event(call("2", "todo_write", json!({"todos": [{"content": said, "status": "pending"}]})));
        terminal.agent_event(&said, call("3", &said, json!({"path": said})));
        check_screen(&terminal)?;
        let row = || PickerRow { text: said.clone(), about: said.clone(), then: PickerAction::Leave };
        let rows = vec![row(), row(), row()];
        terminal.update(UiMessage::Pick(PickerList { title: said.clone(), notes: vec![said.clone()], rows, ..PickerList::default() }));
        check_screen(&terminal)?;
        let form = Form { requester: said.clone(), message: said.clone(), fields: Vec::new() };
        terminal.update(AppInput::Form(Box::new(form)));
        check_screen(&terminal)?;
        terminal.update(AppInput::Withdrawn);
        terminal.update(approval(&said));
        terminal.update(AppInput::Armed);
        check_screen(&terminal)?;
        terminal.event(tool_result("1", &said, ToolStatus::Error, &said));
        terminal.event(EventBody::Question { question: said.clone(), options: vec![said.clone()] });
        terminal.event(EventBody::Error { code: String::new(), message: said.clone() });
        terminal.event(turn_result(Outcome::Failed, &said));
        terminal.update(UiMessage::Idle);
        terminal.update(AppInput::Paste(said.clone()));
        terminal.update(UiMessage::Files(vec![said.clone()]));
        terminal.update(UiMessage::Told { text: said.clone() });
        terminal.update(UiMessage::Opened { text: said });
        terminal.control('o');
        check_screen(&terminal)?;
    }
}

fn check_screen(terminal: &TestTerminal) -> Result<(), TestCaseError> {
    let frame = terminal.app.draw_frame();
    prop_assert!(
        frame.rows.len() < terminal.app.rows.max(4),
        "{} rows",
        frame.rows.len()
    );
    prop_assert!(
        frame.cursor.0 < frame.rows.len() && frame.cursor.1 < terminal.app.scrollback.columns()
    );
    for row in frame.rows.iter().chain(&terminal.printed) {
        prop_assert!(
            row.width() <= terminal.app.scrollback.columns(),
            "{} columns: {:?}",
            row.width(),
            row.plain()
        );
        let control = row
            .plain()
            .chars()
            .any(|c| c.is_control() || c == '\u{202e}');
        prop_assert!(!control);
    }
    Ok(())
}
