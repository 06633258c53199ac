//! Actions outside the conversation: they run other commands of haft and commands of the user's
//! shell, and list files.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_agent::Project;
use haft_sandbox::OwnProgram;
use haft_text::{CutLimits, cut_lines, sanitise_bytes};
use haft_tools::LimitsConfig;
use haft_tui::{SideAction, UiHandle, UiMessage};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::output;

/// Maximum files offered.
const FILES: usize = 20_000;
/// The limits of the shown output.
const SHOWN: CutLimits = CutLimits {
    lines: 200,
    bytes: 64 * 1024,
};

/// Time that a program has to end before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// The text between a prompt and the output of commands the user ran.
pub(super) const OVERHEARD: &str = "\n\nThe user ran this in their own shell:\n\n";

/// The readers of a program's output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listeners {
    User,
    /// The model reads it with the next prompt.
    UserAndModel,
}

/// Runs actions on threads of their own.
pub(super) struct SideActions {
    ui: UiHandle,
    /// haft itself.
    program: OwnProgram,
    project: Project,
    set: Vec<String>,
    running: RunningPrograms,
    /// The number of the next command.
    next: AtomicU64,
    /// Output of the user's commands that was not sent to the model yet.
    overheard: Arc<Mutex<Vec<String>>>,
    /// The limits of each output that is sent to the model.
    told: CutLimits,
}

/// Running programs, each the leader of its process group, with the number of its command.
#[derive(Clone, Default)]
struct RunningPrograms(Arc<Mutex<Vec<(u64, Pid)>>>);

impl RunningPrograms {
    fn list(&self) -> MutexGuard<'_, Vec<(u64, Pid)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Terminates the matching programs and everything they started, and waits until they are gone.
    /// After [`STOP_TIMEOUT`] they are killed.
    fn end(&self, is_meant: impl Fn(u64) -> bool) {
        let signal = |signal| {
            for (_, group) in self.list().iter().filter(|(id, _)| is_meant(*id)) {
                // The program may have ended by itself.
                kill_process_group(*group, signal).ok();
            }
        };
        signal(Signal::TERM);
        let since = Instant::now();
        while self.list().iter().any(|(id, _)| is_meant(*id)) && since.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(Signal::KILL);
    }
}

impl SideActions {
    pub(super) fn new(
        ui: UiHandle,
        program: OwnProgram,
        project: Project,
        set: Vec<String>,
        limits: &LimitsConfig,
    ) -> Self {
        let told = CutLimits {
            lines: limits.output_lines,
            bytes: limits.output_bytes,
        };
        Self {
            ui,
            program,
            project,
            set,
            running: RunningPrograms::default(),
            next: AtomicU64::new(0),
            overheard: Arc::default(),
            told,
        }
    }

    /// Appends the output of commands the user ran since the last prompt.
    pub(super) fn with_overheard(&self, prompt: String) -> String {
        let heard = std::mem::take(
            &mut *self
                .overheard
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if heard.is_empty() {
            prompt
        } else {
            format!("{prompt}{OVERHEARD}{}", heard.join("\n\n"))
        }
    }

    /// Shows which files a conversation changed.
    pub(super) fn diff(&self, conversation: Option<&str>) {
        match conversation {
            Some(id) => self.start(SideAction::Haft(
                ["changes", "--net", id].map(str::to_owned).into(),
            )),
            None => self.ui.tell(UiMessage::Told {
                text: text!("interactive-no-diff").into(),
            }),
        }
    }

    /// Starts an action; its result is sent to the interface.
    pub(super) fn start(&self, action: SideAction) {
        match action {
            SideAction::Haft(arguments) => {
                let mut command = Command::new(self.program.executable());
                command.arg0(self.program.path()).args(&arguments);
                command.envs(output::columns().map(|columns| ("COLUMNS", columns.to_string())));
                command.args(self.set.iter().flat_map(|set| ["--set", set]));
                self.run(
                    command,
                    format!("haft {}", arguments.join(" ")),
                    Listeners::User,
                );
            }
            SideAction::Shell(line) => {
                let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
                let mut command = Command::new(shell);
                command.arg("-c").arg(&line);
                self.run(command, line, Listeners::UserAndModel);
            }
            SideAction::Stop(wanted) => {
                let running = self.running.clone();
                std::thread::spawn(move || running.end(|id| id == wanted));
            }
            SideAction::Files => {
                let ui = self.ui.clone();
                let root = self.project.cwd.clone();
                std::thread::spawn(move || ui.tell(UiMessage::Files(files(&root))));
            }
        }
    }

    /// Runs a command and shows its output.
    fn run(&self, mut command: Command, line: String, listeners: Listeners) {
        command
            .current_dir(&self.project.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return self.ui.tell(UiMessage::Told {
                    text: format!("haft: {error}"),
                });
            }
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ui = self.ui.clone();
        let running = self.running.clone();
        let overheard = Arc::clone(&self.overheard);
        let limits = self.told;
        running.list().push((id, Pid::from_child(&child)));
        ui.tell(UiMessage::Running {
            id,
            line: line.clone(),
        });
        std::thread::spawn(move || {
            let output = child.wait_with_output();
            running.list().retain(|one| one.0 != id);
            let mut text = said(&output);
            if listeners == Listeners::UserAndModel {
                let told = cut_lines(&haft_messages::in_english(|| said(&output)), limits).text;
                let told = format!("<shell>\n$ {line}\n{}\n</shell>", told.trim_end());
                overheard
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(told);
                text = text!("interactive-shell-output", output = text.trim_end());
            }
            ui.tell(UiMessage::Ran {
                id,
                text: cut_lines(&text, SHOWN).text,
            });
        });
    }

    /// Stops all running programs.
    pub(super) fn end(&self) {
        self.running.end(|_| true);
    }
}

/// Returns a program's output, and after a failure how it ended.
fn said(output: &std::io::Result<Output>) -> String {
    let output = match output {
        Ok(output) => output,
        Err(error) => return format!("haft: {error}"),
    };
    let text = sanitise_bytes(&[output.stdout.as_slice(), &output.stderr].concat());
    match ending(output.status) {
        Some(ended) => format!("{}\n({ended})", text.trim_end())
            .trim_start()
            .to_owned(),
        None => text,
    }
}

/// Describes how a program ended, or returns `None` if it succeeded.
fn ending(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) | (None, None) => None,
        (Some(code), _) => Some(text!("interactive-exit-code", code)),
        (None, Some(15)) => Some(text!("interactive-stopped").to_owned()),
        (None, Some(signal)) => Some(text!("interactive-signal", signal)),
    }
}

/// Lists the files below a folder as relative paths, without hidden and ignored files.
fn files(root: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(true)
        .require_git(false)
        .build();
    let files = walk
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let relative =
        files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned()));
    relative.take(FILES).collect()
}
