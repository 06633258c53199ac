//! `haft` at a terminal: real keys, and the content of the screen.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use crate::rig::Rig;

/// Limit of every wait, after which a test fails; no wait needs this long.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(1);

/// Returns the length of the output without a frame that is not complete yet. As in a terminal that
/// supports synchronized updates, a frame is shown only when it is complete.
fn complete_frames(output: &[u8]) -> usize {
    const BEGIN: &[u8] = b"\x1b[?2026h";
    const END: &[u8] = b"\x1b[?2026l";
    let last = |sequence: &[u8]| output.windows(8).rposition(|window| window == sequence);
    match (last(BEGIN), last(END)) {
        (Some(begin), None) => begin,
        (Some(begin), Some(end)) if begin > end => begin,
        (Some(_) | None, _) => {
            let is_cut = |length: &usize| output.ends_with(&BEGIN[..*length]);
            let cut = (1..BEGIN.len()).rev().find(is_cut).unwrap_or(0);
            output.len() - cut
        }
    }
}

#[test]
fn complete_frames_excludes_an_incomplete_frame() {
    let frame = b"\x1b[?2026hone\x1b[?2026l";
    assert_eq!(complete_frames(frame), frame.len());
    assert_eq!(complete_frames(&frame[..frame.len() - 1]), 0);
    assert_eq!(complete_frames(b"plain \x1b[?20"), 6);
    assert_eq!(complete_frames(b"\x1b[?2026l\x1b[?2026hnext"), 8);
    assert_eq!(complete_frames(b"plain"), 5);
}

/// A terminal with haft in it.
pub(crate) struct Terminal {
    child: Child,
    pub(crate) master: File,
    /// The other end of the terminal, kept open to read its settings.
    slave: File,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Everything that was written to the terminal.
    written: Arc<Mutex<Vec<u8>>>,
    /// The content of the screen after each write.
    screens: Arc<Mutex<Vec<String>>>,
}

/// Returns the row of the keys of a question that can be answered.
fn armed_keys_row(screen: &vt100::Screen) -> Option<usize> {
    let (_, columns) = screen.size();
    // Rows with other text before the keys hold no wide characters there.
    let key = |row: String| ["y yes", "y 是"].iter().find_map(|key| row.find(key));
    let (row, column) = screen
        .rows(0, columns)
        .enumerate()
        .find_map(|(row, text)| Some((row, key(text)?)))?;
    let cell = screen.cell(row as u16, column as u16)?;
    (cell.fgcolor() == vt100::Color::Idx(5)).then_some(row)
}

impl Terminal {
    pub(crate) fn start(rig: &Rig, arguments: &[&str], size: (u16, u16)) -> Self {
        Self::start_with(rig, arguments, size, &[])
    }

    pub(crate) fn start_with(
        rig: &Rig,
        arguments: &[&str],
        size: (u16, u16),
        environment: &[(&str, &str)],
    ) -> Self {
        Self::start_command(
            rig.command(arguments).envs(environment.iter().copied()),
            size,
        )
    }

    /// Starts a command in a terminal.
    pub(crate) fn start_command(plain: &Command, (columns, rows): (u16, u16)) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = || {
            File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap())
                .unwrap()
        };
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        // Usually done by a shell: the process leads its own session, whose terminal this is.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(plain.get_program())
            .args(plain.get_args())
            .env_clear();
        command
            .current_dir(plain.get_current_dir().unwrap())
            .env("TERM", "xterm-256color")
            .env("EDITOR", "false");
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
            .stdin(Stdio::from(slave()))
            .stdout(Stdio::from(slave()))
            .stderr(Stdio::from(slave()));
        let child = command.spawn().unwrap();
        let master = File::from(master);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 10_000)));
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let screens = Arc::<Mutex<Vec<String>>>::default();
        let mut reader = master.try_clone().unwrap();
        let shown = Arc::clone(&screen);
        let all = Arc::clone(&written);
        let history = Arc::clone(&screens);
        std::thread::spawn(move || {
            let mut bytes = [0; 8_192];
            let mut unshown = Vec::new();
            while let Ok(count) = reader.read(&mut bytes)
                && count > 0
            {
                all.lock().unwrap().extend(&bytes[..count]);
                unshown.extend(&bytes[..count]);
                let complete: Vec<u8> = unshown.drain(..complete_frames(&unshown)).collect();
                let mut screen = shown.lock().unwrap();
                screen.process(&complete);
                history.lock().unwrap().push(screen.screen().contents());
            }
        });
        Self {
            child,
            master,
            slave: slave(),
            screen,
            written,
            screens,
        }
    }

    pub(crate) fn screen(&self) -> MutexGuard<'_, vt100::Parser> {
        self.screen.lock().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        self.screen().screen().contents()
    }

    /// Returns the contents of the screen so far, in order, including those that a poll misses.
    pub(crate) fn shown_screens(&self) -> Vec<String> {
        self.screens.lock().unwrap().clone()
    }

    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
        // An Esc that is read together with the next key is that key with Alt.
        let since = Instant::now();
        while keys.ends_with('\u{1b}') && ioctl_fionread(&self.slave).unwrap() > 0 {
            assert!(
                since.elapsed() < WAIT_TIMEOUT,
                "Esc was never read:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, fits: impl Fn(&vt100::Screen) -> bool) {
        let since = Instant::now();
        while !fits(self.screen().screen()) {
            assert!(
                since.elapsed() < WAIT_TIMEOUT,
                "never saw {what}:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub(crate) fn until_text(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the question on the screen can be answered: the keys are no longer grey.
    #[track_caller]
    pub(crate) fn until_armed(&self) {
        self.until("a question that can be answered", |screen| {
            armed_keys_row(screen).is_some()
        });
    }

    /// Waits until the question whose headline contains `headline` can be answered. After an answer,
    /// the keys of the previous question are still shown for a moment.
    pub(crate) fn until_armed_for(&self, headline: &str) {
        self.until(&format!("the question `{headline}`"), |screen| {
            let (_, columns) = screen.size();
            armed_keys_row(screen).is_some_and(|keys| {
                screen
                    .rows(0, columns)
                    .take(keys)
                    .any(|row| row.starts_with("? ") && row.contains(headline))
            })
        });
    }

    /// Answers a question of the plain interface. A line that comes before the question may be
    /// answered is typed again.
    #[track_caller]
    pub(crate) fn answer_plain(&mut self, line: &str) {
        loop {
            // The pause avoids most of the lines that are ignored; the reaction decides.
            std::thread::sleep(haft_tui::READING_DELAY);
            let before = self.written.lock().unwrap().len();
            self.press(&format!("{line}\r"));
            let reaction = || {
                let written =
                    String::from_utf8_lossy(&self.written.lock().unwrap()[before..]).into_owned();
                // The terminal itself echoes the line.
                written
                    .split_once(&format!("{line}\r\n"))
                    .map(|(_, reaction)| reaction.to_owned())
                    .unwrap_or_default()
            };
            self.until("a reaction to the answer", |_| {
                reaction().contains('\n') || reaction().ends_with(": ")
            });
            if !reaction().contains("ignored: this was typed before the question was shown") {
                return;
            }
        }
    }

    #[track_caller]
    pub(crate) fn until_idle(&self) {
        self.until("the end of the turn", |screen| {
            let (_, columns) = screen.size();
            let works = |row: String| {
                // Narrow windows cut the hint of the key; the moving sign is at the start.
                row.starts_with(|sign| ('\u{2800}'..='\u{28ff}').contains(&sign))
                    || row.contains("Esc to interrupt")
                    || row.contains("Esc 中断")
            };
            !screen.rows(0, columns).any(works)
        });
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// True if the terminal has the settings of a shell: it echoes, and passes whole lines.
    pub(crate) fn is_restored(&self) -> bool {
        tcgetattr(&self.slave)
            .unwrap()
            .local_modes
            .contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    /// Waits for the exit; returns the exit code and the screen. The terminal must have its former
    /// settings.
    pub(crate) fn wait_for_exit(mut self) -> (i32, String) {
        let since = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                since.elapsed() < WAIT_TIMEOUT,
                "never ended:\n{}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let code = status.code().unwrap_or(-1);
        assert!(self.is_restored());
        // The last output may not have been read yet.
        self.until("a terminal as it was", |screen| {
            !screen.bracketed_paste() && !screen.hide_cursor()
        });
        (code, self.text())
    }
}

/// Kills the process of a test that ends early.
impl Drop for Terminal {
    fn drop(&mut self) {
        drop((self.child.kill(), self.child.wait()));
    }
}

pub(crate) fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

pub(crate) fn write_a() -> Reply {
    Reply::call(
        "write_to_file",
        json!({"path": "a.txt", "content": "one\ntwo\n"}),
    )
}

/// A reply that arrives slowly enough to be interrupted.
pub(crate) fn slow_reply(text: &str) -> Reply {
    Reply {
        delta_chars: Some(4),
        delta_delay_ms: 20,
        ..Reply::text(text)
    }
}

#[test]
fn task_with_approval_runs_from_first_key_to_exit() {
    let rig = rig([
        write_a().with_text("I will **write** it."),
        Reply::text("# Done\n\nIt is `there`."),
    ]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("write a file\r");
    terminal.until_armed();
    let asked = terminal.text();
    assert!(
        asked.contains("I will write it.") && asked.contains("? Write a.txt (+2 −0)?"),
        "{asked}"
    );
    assert!(asked.contains("+one") && asked.contains("+two"), "{asked}");
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("y");
    terminal.until_text("It is there.");
    terminal.until_idle();
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    terminal.press("\u{4}");
    let (code, left) = terminal.wait_for_exit();
    assert_eq!(code, 0);
    assert!(
        left.contains("> write a file") && left.contains("# Done") && !left.contains("sandbox"),
        "{left}"
    );
}

#[test]
fn approval_denied_with_reason_reaches_the_model() {
    let rig = rig([write_a(), Reply::text("I will not.")]);
    let mut terminal = Terminal::start(&rig, &["write a file"], (60, 20));
    terminal.until_armed();
    terminal.press("w");
    terminal.until_text("Enter to refuse");
    terminal.press("not in this folder\r");
    terminal.until_text("not allowed: not in this folder");
    terminal.until_text("I will not.");
    terminal.until_idle();
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("\u{3}");
    terminal.until_text("Press Ctrl-C again to quit");
    terminal.press("\u{3}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn esc_interrupts_the_turn_but_not_the_session() {
    let replies = [
        slow_reply(&"many words and more of them ".repeat(400)),
        Reply::text("As you like."),
    ];
    // In order, so that the interrupted reply is not given again.
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    let mut terminal = Terminal::start(&rig, &["--", "talk"], (80, 24));
    terminal.until_text("many words");
    terminal.press("\u{1b}");
    terminal.until_text("Interrupted. Tell haft what to do instead.");
    terminal.press("never mind\r");
    terminal.until_text("As you like.");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn resize_during_a_reply_keeps_one_input_and_all_text() {
    let text: String = (0..60)
        .map(|number| format!("Paragraph {number} has some words.\n\n"))
        .collect();
    let rig = rig([slow_reply(&text)]);
    let mut terminal = Terminal::start(&rig, &["--", "talk"], (80, 24));
    terminal.until_text("Paragraph 3");
    for (columns, rows) in [(40, 12), (120, 30), (60, 20)] {
        terminal.screen().screen_mut().set_size(rows, columns);
        tcsetwinsize(
            &terminal.master,
            Winsize {
                ws_row: rows,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
    }
    terminal.until_text("Paragraph 59");
    terminal.until_idle();
    let shown = terminal.text();
    assert_eq!(shown.matches("\n> ").count(), 1, "one input: {shown}");
    assert_eq!(shown.matches("Paragraph 59").count(), 1, "{shown}");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn paste_of_5000_lines_is_shown_short_and_sent_whole() {
    let rig = rig([Reply::text("Long.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    let lines: String = (0..5_000)
        .map(|number| format!("line {number}\r"))
        .collect();
    terminal.press(&format!("\u{1b}[200~{lines}\u{1b}[201~"));
    terminal.until_text("[pasted 5,000 lines]");
    terminal.press("\r");
    terminal.until_text("Long.");
    let body = rig.server.generation_requests()[0].json().unwrap();
    assert!(
        body.to_string().contains("line 0\\nline 1\\n") && body.to_string().contains("line 4999")
    );
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// Some terminals send a paste as typed keys: many keys at once, none of which may get lost.
#[test]
fn keys_that_arrive_at_once_are_not_lost() {
    let rig = rig([Reply::text("Fast.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    let typed: String = (0..150).map(|number| format!("{number:05} ")).collect();
    terminal.press(&format!("{}\r", typed.trim()));
    terminal.until_text("Fast.");
    let body = rig.server.generation_requests()[0].json().unwrap();
    assert!(body.to_string().contains(typed.trim()));
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn ctrl_d_during_a_reply_keeps_its_text() {
    let rig = rig([slow_reply(&"unfinished words ".repeat(500))]);
    let mut terminal = Terminal::start(&rig, &["--", "talk"], (80, 24));
    terminal.until_text("unfinished words");
    terminal.press("\u{4}");
    let (code, left) = terminal.wait_for_exit();
    assert!(
        code == 0 && left.contains("unfinished words") && !left.contains("Esc to interrupt"),
        "{left}"
    );
}

#[test]
fn hostile_output_is_shown_escaped() {
    let hostile = "before\u{1b}[2J\u{1b}[H\u{1b}]0;owned\u{7}\rafter \u{202e}txt";
    let call = Reply::call(
        "execute_command",
        json!({"command": format!("echo '{hostile}'"), "requires_approval": true}),
    );
    let rig = rig([call.with_text(hostile), Reply::text("fine")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    let shown = terminal.text();
    assert!(
        shown.contains("> go") && shown.contains("␛[2J␛[H"),
        "{shown}"
    );
    assert!(
        shown.contains("<U+202E>") && !shown.contains('\u{202e}'),
        "{shown}"
    );
    terminal.press("n");
    terminal.until_text("not allowed");
    terminal.press("\u{4}");
    terminal.wait_for_exit();
}

#[test]
fn signals_restore_the_terminal_before_exit() {
    for signal in [Signal::TERM, Signal::HUP] {
        let rig = rig([slow_reply(&"words ".repeat(2_000))]);
        let terminal = Terminal::start(&rig, &["--", "talk"], (80, 24));
        terminal.until_text("words words");
        assert!(!terminal.is_restored());
        kill_process(terminal.pid(), signal).unwrap();
        assert_eq!(terminal.wait_for_exit().0, 130);
    }
}

#[test]
fn suspend_restores_the_terminal_for_the_shell() {
    let rig = rig([Reply::text("Hello.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    for by_key in [true, false] {
        if by_key {
            terminal.press("\u{1a}");
        } else {
            kill_process(terminal.pid(), Signal::TSTP).unwrap();
        }
        let (_, status) = waitpid(Some(terminal.pid()), WaitOptions::UNTRACED)
            .unwrap()
            .unwrap();
        assert!(status.stopped() && terminal.is_restored());
        kill_process(terminal.pid(), Signal::CONT).unwrap();
        terminal.until("keys one by one", |_| !terminal.is_restored());
    }
    terminal.press("hi\r");
    terminal.until_text("Hello.");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn slash_and_shell_commands_run_beside_the_conversation() {
    let rig = rig([Reply::text("Hello.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 30));
    terminal.until_text("> ");
    terminal.press("!echo $((6 * 7)) from the shell\r");
    terminal.until_text("42 from the shell");
    terminal.press("/rules\r");
    terminal.until_text("No rules yet");
    terminal.press("hi\r");
    terminal.until_text("Hello.");
    terminal.press("/context\r");
    terminal.until_text("No cache breaks.");
    assert!(terminal.text().contains("█ system"), "{}", terminal.text());
    terminal.press("/quit\r");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn continue_flag_resumes_the_conversation() {
    let rig = rig([Reply::text("The first answer."), Reply::text("The second.")]);
    assert_eq!(rig.task(&["begin"]).code(), 0);
    let mut terminal = Terminal::start(&rig, &["-c"], (80, 24));
    terminal.until_text("The first answer.");
    terminal.press("go on\r");
    terminal.until_text("The second.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(rig.export()["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn trust_question_comes_before_everything_else() {
    for (answer, said) in [("\r", "untrusted"), ("y\r", "trusted")] {
        let rig = Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Hello.")]).unwrap(),
        );
        rig.write("AGENTS.md", "Always say Moo.");
        std::fs::create_dir(rig.project().join(".claude")).unwrap();
        let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch owned"}]}]}});
        rig.write(".claude/settings.json", hook.to_string());
        let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
        terminal.until_text("Trust the folder?");
        let asked = terminal.text();
        assert!(
            asked.contains("AGENTS.md") && asked.contains(".claude/settings.json"),
            "{asked}"
        );
        assert!(!rig.project().join("owned").exists() && rig.server.requests().is_empty());
        terminal.press(answer);
        terminal.until_text("Hello.");
        terminal.until_idle();
        let body = rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string();
        assert_eq!(
            body.contains("Always say Moo."),
            said == "trusted",
            "{body}"
        );
        let shown = rig.run(&["trust", "--show", "--json"]).json();
        assert_eq!(shown["standing"], said);
        assert!(said == "trusted" || !rig.project().join("owned").exists());
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

/// Input typed before the question does not answer it, in one piece or key by key.
#[test]
fn trust_question_ignores_input_typed_before_it() {
    for ahead in ["y\r", "y\ry\ryes\r", "yes\n", "yy"] {
        let rig = Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Hello.")]).unwrap(),
        );
        rig.write("AGENTS.md", "Always say Moo.");
        let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
        terminal.press(ahead);
        terminal.until_text("Trust the folder?");
        assert!(rig.server.requests().is_empty(), "{ahead:?}");
        terminal.press("\r");
        terminal.until_text("Hello.");
        assert_eq!(
            rig.run(&["trust", "--show", "--json"]).json()["standing"],
            "untrusted",
            "{ahead:?}"
        );
    }
}

#[test]
fn ctrl_g_opens_the_editor_with_the_typed_text() {
    let rig = rig([Reply::text("Hello.")]);
    let editor = rig.home().join("editor");
    // The editor reads a line itself, so no other process may take its keys.
    std::fs::write(
        &editor,
        "echo editing; read line; printf '%s and %s\\n' \"$(cat \"$1\")\" \"$line\" > \"$1\"\n",
    )
    .unwrap();
    let editor = format!("/bin/sh {}", editor.display());
    let mut terminal = Terminal::start_with(&rig, &[], (80, 24), &[("EDITOR", &editor)]);
    terminal.until_text("> ");
    terminal.press("typed\u{7}");
    terminal.until_text("editing");
    assert!(terminal.is_restored());
    terminal.press("added there\r");
    terminal.until_text("> typed and added there");
    terminal.press(" and here\r");
    terminal.until_text("Hello.");
    assert!(
        rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string()
            .contains("typed and added there and here")
    );
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}
