//! `haft attach` and `haft run --stay`: running sessions are followed, answered and steered by other
//! processes.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::jobs::wait_until;
use crate::rig::{NOBODY, Ran, Rig};
use crate::stream::DrivenRun;
use crate::terminal::{Terminal, write_a};

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

pub(crate) fn question() -> Reply {
    Reply::call(
        "ask_followup_question",
        json!({"question": "Which color?", "options": ["red", "blue"]}),
    )
}

/// A headless run that stays alive at questions.
pub(crate) struct StayingRun(Option<Child>);

impl StayingRun {
    pub(crate) fn start(rig: &Rig, arguments: &[&str]) -> Self {
        let mut all = vec!["run", "--stay"];
        all.extend(arguments);
        let child = rig
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(Some(child))
    }

    /// Waits until the run has ended by itself.
    pub(crate) fn finish(mut self) -> Ran {
        let output: Output = self.0.take().unwrap().wait_with_output().unwrap();
        Ran(output)
    }

    pub(crate) fn kill(&mut self) {
        let child = self.0.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for StayingRun {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop((child.kill(), child.wait()));
        }
    }
}

fn list_sessions(rig: &Rig) -> Value {
    rig.run(&["attach", "--list", "--json"]).json()
}

/// Waits until the only running session has a state, and returns the id of its conversation.
pub(crate) fn wait_for_state(rig: &Rig, state: &str) -> String {
    let mut id = String::new();
    wait_until(state, || {
        let listed = list_sessions(rig);
        listed[0]["conversation_id"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut id);
        listed[0]["state"] == state
    });
    id
}

/// Attaches to the only running session of the project.
pub(crate) fn attach(rig: &Rig) -> DrivenRun {
    DrivenRun::spawn(rig.command(&["attach", "--json"]))
}

pub(crate) fn allow(request: &Value) -> Value {
    json!({"type": "approval", "id": request["id"], "decision": "allow"})
}

/// Returns the path of the only socket.
fn socket_path(rig: &Rig) -> PathBuf {
    let folder = rig.home().join("state/attach");
    let mut entries = folder.read_dir().unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    path
}

fn attach_line(version: u32) -> String {
    format!("{}\n", json!({"type": "attach", "version": version}))
}

/// Returns the texts of the user's messages in the newest conversation.
pub(crate) fn stored_inputs(rig: &Rig) -> Vec<String> {
    let exported = rig.export();
    let messages = exported["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn run_that_stays_is_followed_answered_and_steered() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let run = StayingRun::start(&rig, &["make a.txt"]);
    let id = wait_for_state(&rig, "asking");
    assert!(!rig.project().join("a.txt").exists());
    let mut client = attach(&rig);
    let hello = client.read_until_type("attach");
    assert_eq!(
        (&hello["version"], &hello["conversation_id"], &hello["name"]),
        (&json!(1), &json!(id), &json!("make a.txt"))
    );
    // The turn so far is repeated: its prompt, and the call.
    let prompt = client.read_until_type("user");
    assert_eq!(
        (&prompt["text"], &prompt["begins_turn"], &prompt["client"]),
        (&json!("make a.txt"), &json!(true), &Value::Null)
    );
    client.read_until_type("live");
    let request = client.read_until_type("approval_request");
    assert_eq!(
        (&request["tool"], &request["arguments"]["path"]),
        (&json!("write_to_file"), &json!("a.txt"))
    );
    client.send_line(&json!({"type": "user", "id": "m1", "text": "with two lines"}));
    // It has no effect: the message is known.
    client.send_line(&json!({"type": "user", "id": "m1", "text": "with two lines"}));
    client.send_line(&allow(&request));
    let answered = client.read_until_type("approval_answered");
    assert_eq!(
        (&answered["id"], &answered["decision"], &answered["client"]),
        (&request["id"], &json!("allow"), &hello["client"])
    );
    let joined = client.read_until_type("user");
    assert_eq!(
        (&joined["text"], &joined["id"], &joined["begins_turn"]),
        (&json!("with two lines"), &json!("m1"), &json!(false))
    );
    assert_eq!(client.read_until_type("result")["text"], "Done.");
    let (code, lines) = client.finish();
    assert_eq!(
        (code, &lines.last().unwrap()["type"]),
        (0, &json!("detached"))
    );
    let ran = run.finish();
    assert_eq!((ran.code(), ran.stdout().as_str()), (0, "Done.\n"));
    assert!(
        ran.stderr().contains("waits for the approval of")
            && ran
                .stderr()
                .contains("Allowed in another terminal.\n› with two lines\n")
            && ran.stderr().contains(&format!("haft attach {}", &id[..8])),
        "{}",
        ran.stderr()
    );
    assert!(rig.project().join("a.txt").exists());
    assert_eq!(stored_inputs(&rig), ["make a.txt", "with two lines"]);
    assert!(
        rig.home()
            .join("state/attach")
            .read_dir()
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn run_without_stay_still_ends_at_a_question() {
    for (reply, code) in [(write_a(), 3), (question(), 3)] {
        let rig = rig([reply, Reply::text("Not done.")]);
        assert_eq!(rig.run(&["run", "go"]).code(), code);
    }
}

#[test]
fn first_of_two_answers_to_an_approval_wins() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let run = StayingRun::start(&rig, &["make a.txt"]);
    wait_for_state(&rig, "asking");
    let mut clients = [attach(&rig), attach(&rig)];
    let requests: Vec<_> = clients
        .iter_mut()
        .map(|client| client.read_until_type("approval_request"))
        .collect();
    assert_eq!(requests[0]["id"], requests[1]["id"]);
    clients[0].send_line(&allow(&requests[0]));
    clients[1].send_line(
        &json!({"type": "approval", "id": requests[0]["id"], "decision": "deny", "message": "no"}),
    );
    let ends = clients.map(DrivenRun::finish_reading);
    let answers: Vec<_> = ends
        .iter()
        .map(|(code, lines)| {
            assert_eq!(*code, 0);
            let answers: Vec<_> = lines
                .iter()
                .filter(|line| line["type"] == "approval_answered")
                .collect();
            assert_eq!(answers.len(), 1);
            (answers[0]["decision"].clone(), answers[0]["client"].clone())
        })
        .collect();
    assert_eq!(answers[0], answers[1], "both see the answer that won");
    let refused = ends
        .iter()
        .flat_map(|(_, lines)| lines)
        .filter(|line| line["type"] == "refused")
        .count();
    assert_eq!(refused, 1);
    assert_eq!(
        rig.project().join("a.txt").exists(),
        answers[0].0 == "allow"
    );
    assert_eq!(run.finish().code(), 0);
}

#[test]
fn first_of_two_answers_to_a_question_of_the_model_wins() {
    let rig = rig([question(), Reply::text("A fine color.")]);
    let run = StayingRun::start(&rig, &["--output-format", "json", "paint it"]);
    let mut clients = [attach_when_idle(&rig), attach_when_idle(&rig)];
    let waits: Vec<_> = clients
        .iter_mut()
        .map(|client| client.read_until_type("idle")["prompt"].clone())
        .collect();
    for ((client, color), wait) in clients.iter_mut().zip(["red", "blue"]).zip(&waits) {
        client.send_line(&json!({"type": "user", "id": color, "text": color, "answers": wait}));
    }
    let ends = clients.map(DrivenRun::finish_reading);
    let refused: Vec<_> = ends
        .iter()
        .flat_map(|(_, lines)| lines)
        .filter(|line| line["type"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["message"], "another answer came first");
    let winner = if refused[0]["id"] == "red" {
        "blue"
    } else {
        "red"
    };
    for (code, lines) in &ends {
        assert_eq!(*code, 0);
        let said = lines
            .iter()
            .filter(|line| line["type"] == "user" && line["text"] == winner);
        assert_eq!(said.count(), 1, "everybody sees the answer once");
    }
    let ran = run.finish();
    // The result of the turn that asked is not printed.
    assert_eq!(
        (ran.code(), &ran.json()["text"]),
        (0, &json!("A fine color."))
    );
    let told = rig.server.generation_requests()[1].decode().unwrap();
    assert!(told.last_message_contains(winner));
}

fn attach_when_idle(rig: &Rig) -> DrivenRun {
    wait_for_state(rig, "idle");
    attach(rig)
}

#[test]
fn interrupted_run_that_stays_waits_for_a_message() {
    let rig = rig([
        Reply::call(
            "execute_command",
            json!({"command": "touch begun; sleep 600", "requires_approval": false}),
        ),
        Reply::text("Something else."),
    ]);
    let run = StayingRun::start(&rig, &["--permission-mode", "yolo", "go"]);
    wait_until("the command", || rig.project().join("begun").exists());
    let mut client = attach(&rig);
    client.read_until_type("live");
    client.send_line(&json!({"type": "interrupt"}));
    assert_eq!(client.read_until_type("result")["outcome"], "aborted");
    client.read_until_type("idle");
    client.send_line(&json!({"type": "user", "text": "do something else"}));
    assert_eq!(client.read_until_type("result")["outcome"], "completed");
    assert_eq!(run.finish().code(), 0);
}

#[test]
fn killed_client_answers_nothing() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let run = StayingRun::start(&rig, &["make a.txt"]);
    wait_for_state(&rig, "asking");
    // The answer is cut off in the middle.
    let mut stream = UnixStream::connect(socket_path(&rig)).unwrap();
    stream.write_all(attach_line(1).as_bytes()).unwrap();
    stream
        .write_all(br#"{"type":"approval","id":"1","decision":"allow"}"#)
        .unwrap();
    drop(stream);
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    assert!(!rig.project().join("a.txt").exists());
    client.send_line(&json!({"type": "approval", "id": request["id"], "decision": "deny"}));
    client.read_until_type("approval_answered");
    assert_eq!(run.finish().code(), 0);
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn killed_session_is_explained_and_can_be_resumed() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let mut run = StayingRun::start(&rig, &["make a.txt"]);
    let id = wait_for_state(&rig, "asking");
    let mut client = attach(&rig);
    client.read_until_type("approval_request");
    run.kill();
    assert_eq!(client.finish().0, 1);
    insta::assert_snapshot!(rig.screen(&["attach", &id]), @"
    -- errors
    haft: session ID was killed; its socket was removed, and `haft run -r ID` resumes the conversation
    haft: no running session matches `ID`; `haft attach --list` shows them, `haft run -r ID` resumes a conversation
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["attach"]), @"
    -- errors
    haft: no session is running; `haft`, `haft run` and `haft run --bg --stay` start one
    -- exit 2
    ");
    let resumed = StayingRun::start(&rig, &["-c"]);
    wait_for_state(&rig, "asking");
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    client.send_line(&allow(&request));
    assert_eq!(client.read_until_type("result")["text"], "Done.");
    assert_eq!(resumed.finish().code(), 0);
    assert!(rig.project().join("a.txt").exists());
}

#[test]
fn list_shows_the_sessions_of_other_projects_too() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let mut run = StayingRun::start(&rig, &["make a.txt"]);
    wait_for_state(&rig, "asking");
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = rig.command(&["attach"]);
    let ran = Ran(command.current_dir(elsewhere.path()).output().unwrap());
    insta::assert_snapshot!(crate::screen::without_numbers(&rig.mask(&ran)), @"
    ID  STATE  PROCESS  FOLDER  NAME
    ID  asking  N  TEMPORARY  make a.txt
    -- errors
    haft: several sessions are running, or none in this project; name one: `haft attach ID`
    -- exit N
    ");
    run.kill();
}

#[test]
fn lines_of_the_socket_are_checked() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let mut run = StayingRun::start(&rig, &["make a.txt"]);
    wait_for_state(&rig, "asking");
    let path = socket_path(&rig);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let farewell = |first: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        // Fails if the session has already closed the connection.
        drop(stream.write_all(first));
        let lines: Vec<String> = BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .collect();
        let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        assert_eq!(last["type"], "detached", "{last}");
        last["message"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(farewell(attach_line(7).as_bytes()), @"the session speaks version 1 of the protocol, the client version 7; use one version of haft for both");
    insta::assert_snapshot!(farewell(b"GET / HTTP/1.1\r\n"), @"the first line cannot be read: expected value at line 1 column 1");
    insta::assert_snapshot!(farewell(b"{\"type\":\"interrupt\"}\n"), @"the first line must be of type `attach`");
    insta::assert_snapshot!(farewell(&vec![b'x'; (1 << 20) + 1]), @"a line is longer than 1048576 bytes");
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    let refusals = [
        json!({"type": "user"}),
        json!({"type": "user", "text": " "}),
        json!({"type": "approval", "id": "99", "decision": "allow"}),
        json!({"type": "form", "id": request["id"], "decision": "decline"}),
        json!({"type": "mode", "mode": "yolo"}),
        json!({"type": "user", "text": "x", "answers": 1}),
    ]
    .map(|line| {
        client.send_line(&line);
        let refused = client.read_until_type("refused");
        refused["message"].as_str().unwrap().to_owned()
    });
    insta::assert_snapshot!(refusals.join("\n"), @"
    a line cannot be read: missing field `text`
    the message is empty
    it has been answered, or is no longer asked
    it has been answered, or is no longer asked
    mode `yolo` can only be set where the session was started
    another answer came first
    ");
    run.kill();
}

/// A client in Python, because a command in the sandbox must connect without help of haft.
fn python_client(path: &std::path::Path) -> String {
    let path = path.to_str().unwrap();
    format!(
        "import socket\ntry:\n s = socket.socket(socket.AF_UNIX)\n s.connect({path:?})\n print('connected:', s.makefile().readline())\nexcept OSError as error:\n print('refused:', error.errno)\n"
    )
}

/// True if Python can be run here.
#[expect(
    clippy::print_stderr,
    reason = "whoever runs the tests should know what was not tested"
)]
fn has_python() -> bool {
    let there = Command::new("python3").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no python3");
    }
    there
}

#[test]
fn other_users_are_refused() {
    if !has_python() {
        return;
    }
    let rig = rig([write_a(), Reply::text("Done.")]);
    let mut run = StayingRun::start(&rig, &["make a.txt"]);
    wait_for_state(&rig, "asking");
    let path = socket_path(&rig);
    let connect = |as_nobody: bool| {
        let mut command = Command::new("python3");
        command.args(["-c", &python_client(&path)]);
        if as_nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output()
    };
    let shown = |output: Output| String::from_utf8(output.stdout).unwrap();
    assert!(shown(connect(false).unwrap()).contains("\"type\":\"attach\""));
    let Ok(denied) = connect(true) else {
        return eprintln!("skipped: only root can start a program as another user");
    };
    insta::assert_snapshot!(shown(denied), @"refused: 13");
    // The session refuses them even if the permissions let them in.
    let mut folder = path.parent();
    while let Some(open) = folder.filter(|folder| folder.starts_with(rig.home())) {
        std::fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
        folder = open.parent();
    }
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    insta::assert_snapshot!(shown(connect(true).unwrap()), @r#"connected: {"type":"detached","message":"only the user who runs the session can attach"}"#);
    run.kill();
}

#[test]
fn commands_in_the_sandbox_cannot_attach() {
    if !has_python() {
        return;
    }
    for layer in ["namespace", "landlock"] {
        let rig = rig([write_a()]);
        let mut held = StayingRun::start(&rig, &["make a.txt"]);
        wait_for_state(&rig, "asking");
        let path = socket_path(&rig);
        rig.write("connect.py", python_client(&path));
        let outside = Command::new("python3")
            .arg(rig.project().join("connect.py"))
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&outside.stdout).starts_with("connected:"));
        let call = Reply::call(
            "execute_command",
            json!({"command": "python3 connect.py", "requires_approval": false}),
        );
        let rig = rig.with_script(
            Script::turns([call, Reply::text("Done.")]).unwrap(),
            Api::Anthropic,
        );
        let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!("{config}\n[sandbox]\nmode = \"{layer}\"\n"));
        let status = rig.run(&["sandbox", "status", "--json"]).json();
        if status["layer"] == layer {
            let ran = StayingRun::start(
                &rig,
                &[
                    "--output-format",
                    "stream-json",
                    "--permission-mode",
                    "auto",
                    "go",
                ],
            );
            approve_all(&rig, "go");
            let ran = ran.finish();
            let result = ran
                .events()
                .into_iter()
                .find(|event| event["type"] == "tool_result")
                .unwrap();
            let text = result["text"].as_str().unwrap();
            assert!(
                text.contains("refused: ") && !text.contains("connected"),
                "{layer}: {text}"
            );
        } else {
            eprintln!("skipped: {layer}: {}", status["reasons"]);
        }
        held.kill();
    }
}

/// Allows every call of the session with this name, until the session ends.
fn approve_all(rig: &Rig, name: &str) {
    let mut is_over = false;
    wait_until("the session", || {
        let listed = list_sessions(rig);
        let of_name = |session: &&Value| session["name"] == name;
        let found = listed.as_array().unwrap().iter().find(of_name).cloned();
        if let Some(session) = found {
            let id = session["conversation_id"].as_str().unwrap();
            let mut client = DrivenRun::spawn(rig.command(&["attach", "--json", id]));
            while let Some(line) = client.read_next() {
                if line["type"] == "approval_request" {
                    client.send_line(&allow(&line));
                }
            }
            is_over = true;
        }
        is_over || rig.server.generation_requests().len() == 2
    });
}

#[test]
fn terminal_attaches_to_a_run_and_leaves_it() {
    let rig = rig([write_a(), question(), Reply::text("Blue it is.")]);
    let run = StayingRun::start(&rig, &["make a.txt"]);
    let id = wait_for_state(&rig, "asking");
    let mut terminal = Terminal::start(&rig, &["attach", &id[..6]], (90, 30));
    terminal.until_armed();
    let screen = terminal.text();
    assert!(
        screen.contains(&format!("attached to {}", &id[..8])) && screen.contains("make a.txt"),
        "{screen}"
    );
    terminal.press("y");
    // Before the list is open, Esc would interrupt the turn.
    terminal.until_text("Enter to select");
    assert!(rig.project().join("a.txt").exists());
    // The session goes on without this terminal.
    terminal.press("\u{1b}");
    terminal.until("the closed list", |screen| {
        !screen.contents().contains("Enter to select")
    });
    terminal.press("\u{4}");
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, 0);
    assert!(screen.contains("the session goes on"), "{screen}");
    wait_for_state(&rig, "idle");
    let mut terminal = Terminal::start(&rig, &["attach"], (90, 30));
    terminal.until_text("Enter to select");
    // The list is closed, so that the answer is typed.
    terminal.press("\u{1b}");
    terminal.until("the closed list", |screen| {
        !screen.contents().contains("Enter to select")
    });
    terminal.press("blue");
    terminal.press("\r");
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("Blue it is."), "{screen}");
    assert_eq!(run.finish().code(), 0);
}

#[test]
fn terminal_of_a_session_shows_what_an_attached_one_does() {
    let rig = rig([
        write_a(),
        Reply::text("First done."),
        Reply::text("Second done."),
    ]);
    let mut host = Terminal::start(&rig, &["--", "make a.txt"], (90, 30));
    host.until_armed();
    let mut guest = Terminal::start(&rig, &["attach"], (90, 30));
    guest.until_armed();
    guest.press("y");
    host.until_text("Allowed in another terminal.");
    host.until_text("First done.");
    guest.until_text("First done.");
    guest.until_idle();
    guest.press("go on");
    guest.press("\r");
    host.until_text("go on");
    host.until_text("Second done.");
    guest.until_text("Second done.");
    assert_eq!(stored_inputs(&rig), ["make a.txt", "go on"]);
    // The terminal of the session ends it.
    host.press("\u{4}");
    assert_eq!(host.wait_for_exit().0, 0);
    let (code, screen) = guest.wait_for_exit();
    assert!(
        code == 0 && screen.contains("the session has ended"),
        "{screen}"
    );
}

#[test]
fn jobs_attach_answers_the_questions_of_a_job() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let ran = rig.run(&["run", "--bg", "--stay", "make a.txt"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let id = ran.stdout().trim().to_owned();
    wait_for_state(&rig, "asking");
    let listed = rig.run(&["jobs", "list", "--json"]).json();
    assert_eq!(
        (&listed[0]["state"], &listed[0]["session"]),
        (&json!("running"), &json!("asking"))
    );
    let mut terminal = Terminal::start(&rig, &["jobs", "attach", &id], (90, 30));
    terminal.until_armed();
    terminal.press("y");
    let (code, screen) = terminal.wait_for_exit();
    assert!(code == 0 && screen.contains("Done."), "{screen}");
    assert!(rig.project().join("a.txt").exists());
}

#[test]
fn question_on_the_terminal_of_a_headless_run_can_be_answered_elsewhere() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let terminal = Terminal::start(&rig, &["run", "--ask", "make a.txt"], (90, 30));
    terminal.until_text("y = yes");
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    client.send_line(&allow(&request));
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("Allowed in another terminal.") && screen.contains("Done."),
        "{screen}"
    );
}
