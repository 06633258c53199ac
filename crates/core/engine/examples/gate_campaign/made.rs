//! Sessions with things planted in them that must survive an archive. What must is known from the
//! planting, not from the ledger.

use haft_context::LedgerKind;
use haft_testkit::support::Random;
use haft_types::{
    ContentHash, Envelope, LlmMetadata, Message, MessageId, Part, Role, Timestamp, ToolCall,
    ToolResult, Usage,
};
use serde_json::{Value, json};

/// A session.
pub(crate) struct Made {
    pub(crate) messages: Vec<Message>,
    /// What must survive when all but the newest round are archived.
    pub(crate) planted: Vec<(LedgerKind, String)>,
    pub(crate) todos: Vec<String>,
}

struct Maker<'a> {
    random: &'a mut Random,
    messages: Vec<Message>,
    planted: Vec<(LedgerKind, String)>,
}

/// Makes one, with so many long results in the round that stays. Its newest reply reports a window
/// that is nearly full.
pub(crate) fn session(random: &mut Random, long_results: usize) -> Made {
    let rounds = 2 + random.below(5);
    let mut maker = Maker {
        random,
        messages: Vec::new(),
        planted: Vec::new(),
    };
    for round in 0..rounds {
        maker.round(round);
    }
    // The round that stays.
    maker.say(Role::User, "What is next?");
    for _ in 0..long_results {
        let text = maker.words(3_000);
        maker.call(
            "read_file",
            &json!({"path": "long.txt"}),
            Envelope::success(text),
        );
    }
    maker.say(Role::Assistant, "The next part.");
    let usage = Usage {
        input: 190_000,
        output: 10,
        ..Usage::default()
    };
    if let Some(last) = maker.messages.last_mut() {
        last.llm_metadata = Some(LlmMetadata::new("mock/m", 1, usage, None).into());
    }
    let todos = (0..maker.random.below(3))
        .map(|n| format!("to be done: part {n} of {}", maker.word()))
        .collect::<Vec<_>>();
    let mut planted = maker.planted;
    planted.extend(
        todos
            .iter()
            .map(|todo| (LedgerKind::OpenTodo, todo.clone())),
    );
    Made {
        messages: maker.messages,
        planted,
        todos,
    }
}

impl Maker<'_> {
    fn round(&mut self, number: usize) {
        let mut words = format!("Please see to {} now. ", self.word());
        if self.random.below(2) == 0 {
            let rule = match self.random.below(5) {
                0 => format!("You must never touch {}", self.word()),
                1 => format!("always run {} before you \"commit\"", self.word()),
                2 => format!("don't print C:\\{}", self.word()),
                3 => format!("不要改动{}的测试", self.word()),
                _ => format!("Do not rename {} in src/{}.rs", self.word(), self.word()),
            };
            words.push_str(&rule);
            words.push_str(". Thank you.");
            self.planted.push((LedgerKind::Instruction, rule));
        }
        if number > 0 && self.random.below(3) == 0 {
            let id = self.messages[self.random.below(self.messages.len())]
                .message_id
                .short_id()
                .to_string();
            words.extend([" Look at ", &id, " again."]);
            self.planted.push((LedgerKind::Quoted, id));
        }
        self.say(Role::User, &words);
        for _ in 0..self.random.below(5) {
            self.step();
        }
        let length = 20 + self.random.below(300);
        let answer = self.words(length);
        self.say(Role::Assistant, &answer);
    }

    fn step(&mut self) {
        match self.random.below(5) {
            0 => {
                let path = format!("src/{}.rs", self.word());
                self.call(
                    "write_to_file",
                    &json!({"path": path, "content": "x"}),
                    Envelope::success("written"),
                );
                self.planted.push((LedgerKind::FileChanged, path));
            }
            1 => {
                // Refused: nothing was changed.
                let path = format!("gone/{}.rs", self.word());
                self.call(
                    "write_to_file",
                    &json!({"path": path}),
                    Envelope::failure("refused", "no"),
                );
            }
            2 => {
                let command = format!("make {}", self.word());
                let test = format!("test {} ... FAILED", self.word());
                let failed =
                    Envelope::success(format!("{test}\nmore")).with_data(json!({"exit_code": 2}));
                self.call("execute_command", &json!({"command": command}), failed);
                if self.random.below(3) == 0 {
                    let mended = Envelope::success("ok").with_data(json!({"exit_code": 0}));
                    self.call("execute_command", &json!({"command": command}), mended);
                } else {
                    self.planted
                        .extend([command, test].map(|literal| (LedgerKind::Failing, literal)));
                }
            }
            _ => {
                let length = 100 + self.random.below(2_000);
                let text = self.words(length);
                let path = format!("{}.txt", self.word());
                self.call("read_file", &json!({"path": path}), Envelope::success(text));
            }
        }
    }

    fn call(&mut self, name: &str, arguments: &Value, envelope: Envelope) {
        let id = format!("call_{}", self.messages.len());
        let call = ToolCall {
            id: id.clone(),
            name: name.into(),
            arguments: arguments.to_string(),
            signature: None,
        };
        self.push(Role::Assistant, Part::ToolCall(call));
        let result = ToolResult {
            tool_call_id: id,
            name: name.into(),
            envelope,
        };
        self.push(Role::Tool, Part::ToolResult(Box::new(result)));
    }

    fn say(&mut self, role: Role, text: &str) {
        self.push(role, Part::from_text(text));
    }

    fn push(&mut self, role: Role, part: Part) {
        let id = MessageId::from_hash(ContentHash::from_content(
            &self.random.next_u64().to_le_bytes(),
        ));
        let at = Timestamp::from_second(1_763_200_000 + self.messages.len().cast_signed() as i64)
            .unwrap_or(Timestamp::UNIX_EPOCH);
        self.messages.push(Message::new(id, role, vec![part], at));
    }

    /// A word that is not used twice.
    fn word(&mut self) -> String {
        format!("w{:010x}", self.random.next_u64() & 0xff_ffff_ffff)
    }

    fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 8] = [
            "the", "parser", "takes", "tabs", "and", "tests", "run", "slowly",
        ];
        (0..count)
            .map(|_| WORDS[self.random.below(WORDS.len())])
            .collect::<Vec<_>>()
            .join(" ")
    }
}
