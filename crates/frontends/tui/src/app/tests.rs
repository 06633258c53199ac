mod answering;
mod choosing;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft_types::{
    BudgetLayer, CallPhase, ConversationId, Cost, Event, EventBody, Layer, Outcome, SandboxLayer,
    SandboxStatus, ToolStatus, TurnResult, Usage,
};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::Editing;
use crate::link::{ListRequest, Operation, SideAction};
use crate::picker::{PickerAction, PickerList, PickerRow};

/// An interface with everything it ever printed.
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
        terminal.note(effects);
        terminal
    }

    fn note(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Print(lines) => self.printed.extend(lines),
                Effect::Keep(text) => self.kept.push(text),
                other => self.wanted.push(other),
            }
        }
    }

    fn put(&mut self, input: impl Into<AppInput>) {
        let effects = self.app.update(input);
        self.note(effects);
    }

    fn tell(&mut self, body: EventBody) {
        self.tell_as("main", body);
    }

    fn tell_as(&mut self, agent: &str, body: EventBody) {
        let conversation_id = ConversationId::new("c");
        self.put(UiMessage::Event(Box::new(Event {
            body,
            conversation_id,
            seq: 1,
            agent: agent.into(),
        })));
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.put(AppInput::Key(KeyEvent::new(code, modifiers)));
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

    fn wanted(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    fn live(&self) -> String {
        self.app
            .frame()
            .rows
            .iter()
            .map(|row| row.plain() + "\n")
            .collect()
    }

    /// Everything there is to see: what was printed, a line, and the live region.
    fn all(&self) -> String {
        let printed: String = self.printed.iter().map(|row| row.plain() + "\n").collect();
        format!("{printed}--------\n{}", self.live())
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

fn done(id: &str, name: &str, status: ToolStatus, text: &str) -> EventBody {
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

fn over(outcome: Outcome, message: &str) -> EventBody {
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
        tool: "execute_command".into(),
        arguments: json!({"command": subject}),
        subject: subject.into(),
        reason: "no rule allows `cargo`".into(),
        leaves_sandbox: false,
        parts: Vec::new(),
        remember: vec!["execute_command(cargo test:*)".into()],
    }))
}

/// A task with thoughts, calls, a change and a question, up to the question.
fn a_task(columns: usize) -> TestTerminal {
    let mut terminal = TestTerminal::new(columns, 24);
    terminal.say("Fix the bug in src/lib.rs, please: the sum of an empty list must be zero");
    let status = SandboxStatus {
        layer: SandboxLayer::Namespace,
        reasons: Vec::new(),
    };
    terminal.tell(EventBody::Conversation {
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
    terminal.tell(EventBody::Budget {
        layers: vec![
            layer(Layer::System, 12_000),
            layer(Layer::Documents, 3_000),
            layer(Layer::History, 60_000),
        ],
        output_reserve: 0,
        remaining: 0,
        window: 200_000,
    });
    terminal.tell(EventBody::Window {
        tokens: 75_000,
        window: 200_000,
        pruned_tokens: 0,
        round: 1,
    });
    terminal.tell(EventBody::Thinking {
        text: "The user wants the sum of an empty list to be zero. ".into(),
    });
    terminal.tell(text("I will **look** at the file"));
    terminal.tell(text(" first.\n"));
    terminal.tell(call("1", "read_file", json!({"path": "src/lib.rs"})));
    terminal.tell(call("2", "search_files", json!({"regex": "sum\\("})));
    terminal.tell(done(
        "1",
        "read_file",
        ToolStatus::Success,
        "1\tfn sum() {}",
    ));
    terminal.tell(done(
        "2",
        "search_files",
        ToolStatus::Error,
        "the pattern is not closed at `(`",
    ));
    terminal.tell(EventBody::Usage {
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
    });
    terminal.tell(call(
        "3",
        "todo_write",
        json!({"todos": [
            {"content": "Change `sum`", "status": "completed"},
            {"content": "Run the tests", "status": "in_progress"},
            {"content": "Tell the user", "status": "pending"},
        ]}),
    ));
    terminal.tell(done("3", "todo_write", ToolStatus::Success, "ok"));
    terminal.tell(call(
        "4",
        "replace_in_file",
        json!({"path": "src/lib.rs", "diff": "…"}),
    ));
    let change = "Changed src/lib.rs.\n\n--- src/lib.rs\n+++ src/lib.rs\n@@ -1,2 +1,2 @@\n pub fn sum(of: &[i64]) -> i64 {\n-    of.iter().copied().reduce(|a, b| a + b).expect(\"not empty\")\n+    of.iter().sum()\n";
    terminal.tell(done("4", "replace_in_file", ToolStatus::Success, change));
    terminal.tell(call(
        "5",
        "execute_command",
        json!({"command": "cargo test"}),
    ));
    terminal.put(approval("cargo test"));
    terminal
}

#[test]
fn a_task_up_to_its_question_at_three_widths() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("task_{columns}"), a_task(columns).all());
    }
}

#[test]
fn a_question_is_answered_by_a_key_once_it_could_be_read() {
    let mut terminal = a_task(80);
    assert!(terminal.wanted().contains(&Effect::Arm));
    terminal.write("yes");
    assert_eq!(
        terminal.wanted(),
        vec![Effect::Arm; 3],
        "whoever is typing goes on typing"
    );
    assert!(terminal.live().contains("> yes"));
    terminal.key(KeyCode::Enter);
    assert!(
        terminal
            .wanted()
            .iter()
            .all(|effect| *effect == Effect::Arm),
        "nor does Enter answer"
    );
    terminal.put(AppInput::Armed);
    terminal.key(KeyCode::Char('y'));
    assert_eq!(terminal.wanted(), [Effect::Answer(ApprovalReply::Once)]);
    assert!(
        terminal.live().contains("> yes") && !terminal.live().contains("Allow this?"),
        "{}",
        terminal.live()
    );
}

#[test]
fn what_is_asked_can_be_changed_and_refused_with_words() {
    let mut terminal = a_task(80);
    terminal.write("draft");
    terminal.put(AppInput::Armed);
    terminal.wanted();
    terminal.key(KeyCode::Char('e'));
    assert!(
        terminal.live().contains("> cargo test\n"),
        "{}",
        terminal.live()
    );
    terminal.write(" --lib");
    terminal.key(KeyCode::Enter);
    let arguments = json!({"command": "cargo test --lib"});
    assert_eq!(
        terminal.wanted(),
        [
            Effect::Arm,
            Effect::Answer(ApprovalReply::Changed { arguments })
        ]
    );
    assert!(
        terminal.live().contains("> draft"),
        "what was typed before is back"
    );

    terminal.put(approval("cargo publish"));
    terminal.put(AppInput::Armed);
    terminal.wanted();
    terminal.key(KeyCode::Char('w'));
    terminal.say("not today");
    assert_eq!(
        terminal.wanted(),
        [Effect::Answer(ApprovalReply::No {
            reason: "not today".into()
        })]
    );
}

#[test]
fn a_question_that_is_withdrawn_goes() {
    let mut terminal = a_task(80);
    terminal.put(AppInput::Withdrawn);
    assert!(!terminal.live().contains("Allow this?"));
    terminal.put(AppInput::Armed);
    terminal.wanted();
    terminal.key(KeyCode::Char('y'));
    assert!(terminal.wanted().is_empty() && terminal.live().contains("> y"));
}

#[test]
fn esc_interrupts_and_gives_back_what_waited() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Submit("first".into()))]
    );
    terminal.say("second");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Join("second".into()))]
    );
    assert!(terminal.live().contains("next: second"));
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.wanted(), [Effect::Do(Operation::Interrupt)]);
    terminal.tell(over(Outcome::Aborted, "cancelled"));
    terminal.put(UiMessage::Idle);
    assert!(terminal.live().contains("> second") && terminal.wanted().is_empty());
    assert!(
        terminal
            .all()
            .contains("Interrupted. Tell haft what to do instead.")
    );
    terminal.key(KeyCode::Esc);
    assert!(terminal.wanted().is_empty(), "nothing runs");
}

#[test]
fn what_was_typed_during_a_turn_begins_the_next() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("first");
    terminal.say("second");
    terminal.wanted();
    terminal.tell(over(Outcome::Completed, ""));
    terminal.put(UiMessage::Idle);
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Submit("second".into()))]
    );
}

#[test]
fn leaving_takes_two_keys_or_one_that_means_it() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("half");
    terminal.control('c');
    assert!(terminal.wanted().is_empty() && terminal.live().contains("> \n"));
    terminal.control('c');
    terminal.key(KeyCode::Char('x'));
    terminal.key(KeyCode::Backspace);
    terminal.control('c');
    assert!(terminal.wanted().is_empty(), "another key came between");
    terminal.control('c');
    assert_eq!(terminal.wanted(), [Effect::Quit]);
    terminal.control('d');
    assert_eq!(terminal.wanted(), [Effect::Quit]);
}

#[test]
fn commands_are_completed_and_run() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("/co");
    assert!(
        terminal.live().contains("/context") && terminal.live().contains("/cost"),
        "{}",
        terminal.live()
    );
    terminal.key(KeyCode::Enter);
    assert!(
        terminal.all().contains("> /cost\n0 requests: "),
        "{}",
        terminal.all()
    );
    terminal.say("/rev");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Submit("/review".into()))],
        "the user's own is expanded elsewhere"
    );
    terminal.put(UiMessage::Idle);
    terminal.say("/diff");
    assert_eq!(terminal.wanted(), [Effect::Do(Operation::Diff)]);
    terminal.say("!ls -l");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Side(SideAction::Shell(
            "ls -l".into()
        )))]
    );
    terminal.say("/help");
    assert!(terminal.all().contains("/review") && terminal.all().contains("Ctrl-R"));
}

#[test]
fn a_name_of_another_agent_is_taken_as_typed() {
    let mut terminal = TestTerminal::new(80, 24);
    // Offered while it is typed: /models, /tools and whatever else has these letters.
    terminal.say("/ls");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Offer(ListRequest::Files))]
    );
    assert!(
        terminal.all().contains("> /ls\nin haft: /files\n"),
        "{}",
        terminal.all()
    );
    terminal.say("/run cargo test");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Side(SideAction::Shell(
            "cargo test".into()
        )))]
    );
    terminal.say("/hooks");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Side(SideAction::Haft(vec![
            "hooks".into(),
            "list".into()
        ])))]
    );
    terminal.say("/theme");
    assert_eq!(terminal.wanted(), [], "it only says what there is");
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
fn the_first_words_may_be_a_command() {
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
fn files_are_offered_and_named() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.write("look at @");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Side(SideAction::Files))]
    );
    terminal.put(UiMessage::Files(vec![
        "src/lib.rs".into(),
        "src/my file.rs".into(),
        "README.md".into(),
    ]));
    terminal.write("my");
    terminal.key(KeyCode::Tab);
    assert!(
        terminal.live().contains("> look at @\"src/my file.rs\" \n"),
        "{}",
        terminal.live()
    );
}

#[test]
fn keys_of_vi_move_and_esc_still_interrupts() {
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
    assert!(terminal.live().contains("INSERT"), "{}", terminal.live());
    terminal.key(KeyCode::Esc);
    terminal.write("bcwthree");
    assert!(
        terminal.live().contains("> one three"),
        "{}",
        terminal.live()
    );
    terminal.key(KeyCode::Esc);
    assert!(terminal.live().contains("NORMAL"), "{}", terminal.live());
    terminal.key(KeyCode::Enter);
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Submit("one three".into()))]
    );
    assert_eq!(terminal.kept, ["one three"]);
    terminal.key(KeyCode::Esc);
    assert!(terminal.wanted().is_empty(), "the first leaves typing");
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.wanted(), [Effect::Do(Operation::Interrupt)]);
}

#[test]
fn history_is_searched() {
    let mut terminal = TestTerminal::new(80, 24);
    for query in ["run the tests", "write the docs", "run the linter"] {
        terminal.say(query);
        terminal.put(UiMessage::Idle);
    }
    terminal.control('r');
    terminal.write("run");
    assert!(
        terminal.live().contains("search: run  run the linter"),
        "{}",
        terminal.live()
    );
    terminal.control('r');
    terminal.key(KeyCode::Right);
    assert!(
        terminal.live().contains("> run the tests"),
        "{}",
        terminal.live()
    );
}

#[test]
fn a_question_of_the_model_is_answered_by_number() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.say("go");
    terminal.tell(EventBody::Question {
        question: "Which one?".into(),
        options: vec!["the red".into(), "the blue".into()],
    });
    terminal.tell(over(Outcome::Waiting, "a question"));
    terminal.put(UiMessage::Idle);
    terminal.wanted();
    assert!(terminal.all().contains(" 2 the blue"));
    terminal.say("2");
    assert_eq!(
        terminal.wanted(),
        [Effect::Do(Operation::Submit("the blue".into()))]
    );
}

#[test]
fn results_and_thoughts_open() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.control('o');
    assert!(terminal.live().contains("nothing to open"));
    terminal.tell(EventBody::Thinking {
        text: "Deep thoughts.".into(),
    });
    assert!(terminal.live().contains("∴ Deep thoughts."));
    terminal.tell(text("Words."));
    assert!(
        !terminal.live().contains("Deep thoughts") && terminal.all().contains("thought 2 words")
    );
    terminal.control('o');
    assert!(terminal.all().contains("  Deep thoughts."));
    terminal.tell(done("1", "read_file", ToolStatus::Success, "1\tall of it"));
    terminal.control('o');
    assert!(terminal.all().contains("  1    all of it"));
}

#[test]
fn those_who_work_beside_are_followed() {
    let mut terminal = TestTerminal::new(80, 24);
    terminal.tell_as(
        "tester",
        call("1", "execute_command", json!({"command": "make check"})),
    );
    assert!(
        terminal
            .live()
            .contains("↳ tester execute_command make check")
    );
    terminal.tell_as("tester", text("words of its own"));
    assert!(!terminal.all().contains("words of its own"));
}

#[test]
fn a_paste_of_many_lines_is_one_word_and_is_sent_whole() {
    let mut terminal = TestTerminal::new(80, 24);
    let lines = "a line\n".repeat(5_000);
    terminal.put(AppInput::Paste(lines.clone()));
    assert!(
        terminal.live().contains("[pasted 5,000 lines]") && terminal.wanted().is_empty(),
        "{}",
        terminal.live()
    );
    terminal.key(KeyCode::Enter);
    assert_eq!(terminal.wanted(), [Effect::Do(Operation::Submit(lines))]);
    assert!(terminal.printed.len() < 20, "it is not printed whole again");
}

fn hostile() -> impl Strategy<Value = String> {
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

    /// Whatever models, tools and files say, wherever it is shown, it stays in its cells, and the live region in the terminal.
    #[test]
    fn hostile_text_stays_in_its_cells(said in hostile(), columns in 1usize..100, rows in 1usize..30) {
        let mut terminal = TestTerminal::new(columns, rows);
        let half = said.floor_char_boundary(said.len() / 2);
        terminal.tell(EventBody::Thinking { text: said.clone() });
        terminal.tell(text(&said[..half]));
        terminal.tell(text(&said[half..]));
        check(&terminal)?;
        terminal.tell(call("1", &said, json!({"command": said})));
        terminal.tell(EventBody::ToolProgress { id: "1".into(), name: said.clone(), text: said.clone() });
        terminal.tell(call("2", "todo_write", json!({"todos": [{"content": said, "status": "pending"}]})));
        terminal.tell_as(&said, call("3", &said, json!({"path": said})));
        check(&terminal)?;
        let row = || PickerRow { text: said.clone(), about: said.clone(), then: PickerAction::Leave };
        let rows = vec![row(), row(), row()];
        terminal.put(UiMessage::Pick(PickerList { title: said.clone(), notes: vec![said.clone()], rows, ..PickerList::default() }));
        check(&terminal)?;
        let form = Form { from: said.clone(), message: said.clone(), fields: Vec::new() };
        terminal.put(AppInput::Form(Box::new(form)));
        check(&terminal)?;
        terminal.put(AppInput::Withdrawn);
        terminal.put(approval(&said));
        terminal.put(AppInput::Armed);
        check(&terminal)?;
        terminal.tell(done("1", &said, ToolStatus::Error, &said));
        terminal.tell(EventBody::Question { question: said.clone(), options: vec![said.clone()] });
        terminal.tell(EventBody::Error { code: String::new(), message: said.clone() });
        terminal.tell(over(Outcome::Failed, &said));
        terminal.put(UiMessage::Idle);
        terminal.put(AppInput::Paste(said.clone()));
        terminal.put(UiMessage::Files(vec![said.clone()]));
        terminal.put(UiMessage::Told { text: said.clone() });
        terminal.put(UiMessage::Opened { text: said });
        terminal.control('o');
        check(&terminal)?;
    }
}

fn check(terminal: &TestTerminal) -> Result<(), TestCaseError> {
    let frame = terminal.app.frame();
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
