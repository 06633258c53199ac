//! Kills clients and sessions while questions are answered and messages are sent: no confirmed
//! message may be lost, no message stored twice, and no call run twice.
//!
//! Each case plays a task with two commands and a file, which need approvals, and a question of the
//! model. Two clients are attached and answer everything, so that every question has two answers.
//! One to three times, a client is killed in the middle of an answer, or the session is killed with
//! SIGKILL and continued. The seed selects the kind of kill. Afterwards, the lines that the clients
//! received are compared with the exported conversation and with the files.

use std::time::Duration;

use haft_testkit::support::{Campaign, HaftCase, Random, Tally, Trial};
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::Api;
use serde_json::{Value, json};

use self::client::AttachedClient;
use self::record::CaseRecord;
use crate::kill::process::Running;
use crate::kill::workspace::Workspace;

mod client;
mod record;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "attach",
    about: "Clients and sessions are killed: no answer or message is lost, stored twice or run twice.",
    trial: Trial::WithHaft(run_case),
};

const TASK: &str = "Do the four steps.";
/// The time limit for a run. It is far above the usual duration, so a run that exceeds it hangs.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);
/// The time limit for the next line of a session.
const LINE_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of lines between an answer and the kill of the session.
const MAX_LINES_BEFORE_KILL: u64 = 6;
/// The maximum time between an answer and the kill of the session, in milliseconds.
const MAX_MS_BEFORE_KILL: u64 = 30;

/// The number of the command that appends a line to its file.
const COMMANDS: [usize; 2] = [1, 2];

fn effect_file(command: usize) -> String {
    format!("effects-{command}")
}

fn build_script() -> Result<Script, String> {
    let command = |number| {
        let line = format!("echo x >> {}", effect_file(number));
        Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        )
    };
    let question = json!({"question": "Which color?", "options": ["red", "blue"]});
    let file = json!({"path": "new.txt", "content": "new\n"});
    Script::turns([
        command(COMMANDS[0]),
        Reply::call("ask_followup_question", question),
        command(COMMANDS[1]),
        Reply::call("write_to_file", file),
        Reply::text("All four steps are done."),
    ])
    .map_err(|error| error.to_string())
}

/// A kill, which follows the answers to a question.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// The first client is disconnected in the middle of its answer.
    Client,
    /// The session is killed after some time.
    SessionAfter(Duration),
    /// The session is killed after it has sent some lines.
    SessionAfterLines(u64),
}

fn choose_kills(seed: u64, random: &mut Random) -> Vec<Kill> {
    (0..=random.below(3) as u64)
        .map(|index| match (seed + index) % 3 {
            0 => Kill::Client,
            1 => Kill::SessionAfter(Duration::from_millis(
                random.below(MAX_MS_BEFORE_KILL as usize) as u64,
            )),
            _ => Kill::SessionAfterLines(random.below(MAX_LINES_BEFORE_KILL as usize) as u64),
        })
        .collect()
}

fn run_case(case: &mut HaftCase<'_>) -> Result<(), String> {
    let api = Api::ALL[(case.seed / 3) as usize % Api::ALL.len()];
    let server = ScriptedServer::builder(build_script()?)
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let place = Workspace::new(case.haft, api, &server)?;
    let kills = choose_kills(case.seed, &mut case.random);
    let mut game = AttachCase {
        place,
        random: case.random.clone(),
        record: CaseRecord::default(),
        runs: 0,
        messages: 0,
        answered: None,
    };
    game.run(&kills, case.tally).map_err(|what| {
        format!(
            "{api}, {kills:?}: {what}\n        kept in {}",
            game.place.keep_folders()
        )
    })
}

struct AttachCase {
    place: Workspace,
    random: Random,
    record: CaseRecord,
    runs: usize,
    messages: usize,
    /// The last question of the session that was answered. A client that attaches meanwhile may
    /// still receive it.
    answered: Option<Value>,
}

/// The reason why a session is no longer attended.
enum SessionEnd {
    Ended,
    Killed,
}

impl AttachCase {
    fn run(&mut self, kills: &[Kill], tally: &mut Tally) -> Result<(), String> {
        let mut left: Vec<Kill> = kills.iter().rev().copied().collect();
        let mut arguments = vec![TASK];
        loop {
            self.runs += 1;
            let mut all = vec!["run", "--stay", "--output-format", "stream-json"];
            all.extend(&arguments);
            let mut session = Running::start(&self.place, &all, self.runs)?;
            match self.attend(&mut session, &mut left, tally)? {
                SessionEnd::Killed => drop(session.kill()?),
                SessionEnd::Ended => {
                    let ended = session.finish(RUN_TIMEOUT)?;
                    if ended.code == Some(0) {
                        break;
                    }
                    return Err(format!(
                        "run {} ended with {:?}: {}",
                        self.runs, ended.code, ended.stderr
                    ));
                }
            }
            arguments = vec!["-c"];
        }
        self.record.check(&self.place, &COMMANDS.map(effect_file))?;
        self.record.count(tally);
        Ok(())
    }

    /// Answers everything that a session asks, with two clients, until the session ends or is
    /// killed.
    fn attend(
        &mut self,
        session: &mut Running,
        kills: &mut Vec<Kill>,
        tally: &mut Tally,
    ) -> Result<SessionEnd, String> {
        let Some(mut clients) = self.connect_two(session)? else {
            return Ok(SessionEnd::Ended);
        };
        self.record.begin_session();
        self.answered = None;
        loop {
            let Some((asked, by_first)) = self.next_question(&mut clients)? else {
                return Ok(SessionEnd::Ended);
            };
            let kill = kills.pop();
            let first = usize::from(!by_first);
            let lines = [0, 1].map(|_| self.answer_line(&asked));
            match kill {
                Some(Kill::Client) => {
                    tally.count("kills of a client in the middle of an answer");
                    let text = lines[0].to_string();
                    let cut = self.random.below(text.len());
                    clients[first].send_cut_off(&text[..cut]);
                    clients[first] = AttachedClient::connect(&self.place)?;
                    self.record.replace_client(first);
                    self.record.send(&lines[1]);
                    clients[1 - first].send(&lines[1]);
                }
                Some(Kill::SessionAfter(_) | Kill::SessionAfterLines(_)) | None => {
                    for (client, line) in clients.iter_mut().zip(&lines) {
                        self.record.send(line);
                        client.send(line);
                    }
                }
            }
            match kill {
                Some(Kill::SessionAfter(time)) => {
                    tally.count("kills of a session some time after an answer");
                    std::thread::sleep(time);
                    session.stop()?;
                    self.read_rest(&mut clients);
                    return Ok(SessionEnd::Killed);
                }
                Some(Kill::SessionAfterLines(count)) => {
                    tally.count("kills of a session some lines after an answer");
                    for _ in 0..count {
                        if let Some(line) = clients[0].next_line(LINE_TIMEOUT)? {
                            self.record.receive(0, &line);
                        }
                    }
                    session.stop()?;
                    self.read_rest(&mut clients);
                    return Ok(SessionEnd::Killed);
                }
                Some(Kill::Client) | None => {}
            }
        }
    }

    /// Attaches two clients. Returns `None` if the session ends before.
    fn connect_two(&self, session: &mut Running) -> Result<Option<[AttachedClient; 2]>, String> {
        let begun = std::time::Instant::now();
        loop {
            let connected = [
                AttachedClient::connect(&self.place),
                AttachedClient::connect(&self.place),
            ];
            if let [Ok(one), Ok(other)] = connected {
                return Ok(Some([one, other]));
            }
            if session.is_over()? {
                return Ok(None);
            }
            if begun.elapsed() > RUN_TIMEOUT {
                return Err("no client could attach".to_owned());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reads until a question was received by both clients. The flag is true if the first client
    /// received it first. Returns `None` at the end of the session.
    fn next_question(
        &mut self,
        clients: &mut [AttachedClient; 2],
    ) -> Result<Option<(Value, bool)>, String> {
        let by_first = self.random.below(2) == 0;
        let order = if by_first { [0, 1] } else { [1, 0] };
        let mut asked = None;
        for index in order {
            loop {
                let Some(line) = clients[index].next_line(LINE_TIMEOUT)? else {
                    return Ok(None);
                };
                self.record.receive(index, &line);
                let is_old = self
                    .answered
                    .as_ref()
                    .is_some_and(|answered| line.is_same_question(answered));
                if !line.is_question() || is_old {
                    continue;
                }
                // Clients that were replaced see an answered question no more.
                let is_other = asked
                    .as_ref()
                    .is_some_and(|asked: &Value| !line.is_same_question(asked));
                if is_other {
                    continue;
                }
                asked = Some(line.value);
                break;
            }
        }
        self.answered.clone_from(&asked);
        Ok(asked.map(|asked| (asked, by_first)))
    }

    /// Returns a client's answer to a question. Each message has a text of its own.
    fn answer_line(&mut self, asked: &Value) -> Value {
        if asked["type"] == "approval_request" {
            return json!({"type": "approval", "id": asked["id"], "decision": "allow"});
        }
        self.messages += 1;
        let text = format!("message-{}-end", self.messages);
        json!({"type": "user", "text": text, "id": text, "answers": asked["prompt"]})
    }

    /// Reads the lines that a killed session sent before its end.
    fn read_rest(&mut self, clients: &mut [AttachedClient; 2]) {
        for (index, client) in clients.iter_mut().enumerate() {
            while let Ok(Some(line)) = client.next_line(LINE_TIMEOUT) {
                self.record.receive(index, &line);
            }
        }
    }
}
