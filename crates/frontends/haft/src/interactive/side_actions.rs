//! Runs actions outside the conversation: other commands of haft, commands of the user's shell, and
//! the listing of files.

use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_agent::{HostEnvironment, Project, find_own_program};
use haft_sandbox::{OwnProgram, ProgramPath};
use haft_text::{CutLimits, cut_lines, sanitize_bytes};
use haft_tools::LimitsConfig;
use haft_tui::{SideAction, UiHandle, UiMessage};
use rustix::process::{Pid, Signal, kill_process_group};

use super::commit_question;
use crate::cli::options::accepts_set;
use crate::output;

/// The maximum number of listed files.
const MAX_FILES: usize = 20_000;
/// The limits of the shown output.
const SHOWN_LIMITS: CutLimits = CutLimits {
    lines: 200,
    bytes: 64 * 1024,
};

/// The time that a program has to end before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// The text between a prompt and the output of commands the user ran.
pub(super) const SHELL_OUTPUT_HEADING: &str = "\n\nThe user ran this in their own shell:\n\n";

/// Runs actions on threads of their own.
pub(super) struct SideActions {
    ui: UiHandle,
    /// The executable of haft, which runs as a separate process.
    program: OwnProgram,
    /// The shell of the user's commands.
    shell: ProgramPath,
    project: Project,
    set: Vec<String>,
    running: RunningPrograms,
    /// The number that the next command gets.
    next: AtomicU64,
    /// Output of the user's commands that has not been sent to the model.
    unsent_output: Arc<Mutex<Vec<String>>>,
    /// The limits of each output that is sent to the model.
    model_limits: CutLimits,
}

/// Running programs, each the leader of its process group, with the number of its command.
#[derive(Clone, Default)]
struct RunningPrograms(Arc<Mutex<Vec<(u64, Pid)>>>);

impl RunningPrograms {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Pid)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Terminates the matching programs and everything they started, and waits until they are gone.
    /// After [`STOP_TIMEOUT`] they are killed.
    fn stop(&self, matches: impl Fn(u64) -> bool) {
        let signal = |signal| {
            for (_, group) in self.lock().iter().filter(|(id, _)| matches(*id)) {
                // The program may have ended by itself.
                kill_process_group(*group, signal).ok();
            }
        };
        signal(Signal::TERM);
        let since = Instant::now();
        while self.lock().iter().any(|(id, _)| matches(*id)) && since.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(Signal::KILL);
    }
}

impl SideActions {
    pub(super) fn new(
        ui: UiHandle,
        environment: &HostEnvironment,
        project: Project,
        set: Vec<String>,
        limits: &LimitsConfig,
    ) -> Self {
        let shell = environment.variable("SHELL");
        let shell = shell.and_then(|shell| find_own_program(environment, &shell));
        let model_limits = CutLimits {
            lines: limits.output_lines,
            bytes: limits.output_bytes,
        };
        Self {
            ui,
            program: environment.helper_program().clone(),
            shell: shell.unwrap_or_else(|| ProgramPath::for_system("/bin/sh")),
            project,
            set,
            running: RunningPrograms::default(),
            next: AtomicU64::new(0),
            unsent_output: Arc::default(),
            model_limits,
        }
    }

    /// Appends to `prompt` the output of the commands that the user ran since the previous prompt.
    pub(super) fn append_shell_output(&self, prompt: String) -> String {
        let heard = std::mem::take(
            &mut *self
                .unsent_output
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if heard.is_empty() {
            prompt
        } else {
            format!("{prompt}{SHELL_OUTPUT_HEADING}{}", heard.join("\n\n"))
        }
    }

    /// Puts text back into the input line.
    pub(super) fn show_typed(&self, text: String) {
        self.ui.send_message(UiMessage::Typed { text });
    }

    /// Shows which files a conversation changed.
    pub(super) fn show_diff(&self, conversation: Option<&str>) {
        match conversation {
            Some(id) => self.start(SideAction::Haft(
                ["changes", "--net", id].map(str::to_owned).into(),
            )),
            None => self.ui.send_message(UiMessage::Told {
                text: text!("interactive-no-diff").into(),
            }),
        }
    }

    /// Starts an action; its result is sent to the interface.
    pub(super) fn start(&self, action: SideAction) {
        match action {
            SideAction::Haft(arguments) if commit_question::asks_first(&arguments) => {
                let line = format!("haft {}", arguments.join(" "));
                let command = self.haft_command(&commit_question::proposal_arguments(&arguments));
                let ui = self.ui.clone();
                let then = move |output: &std::io::Result<Output>| {
                    commit_question::ask_to_commit(output, &arguments, &ui)
                };
                self.run_command(command, line, then);
            }
            SideAction::Haft(arguments) => {
                let line = commit_question::shown_line(&arguments);
                let command = self.haft_command(&arguments);
                self.run_command(command, line, describe_own_output);
            }
            SideAction::Shell(line) => {
                let mut command = self.shell.command();
                command.arg("-c").arg(&line);
                let unsent_output = Arc::clone(&self.unsent_output);
                let limits = self.model_limits;
                let asked = line.clone();
                let then = move |output: &std::io::Result<Output>| {
                    let model_text = cut_lines(
                        &haft_messages::run_in_english(|| describe_output(output)),
                        limits,
                    )
                    .text;
                    unsent_output
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(format!(
                            "<shell>\n$ {asked}\n{}\n</shell>",
                            model_text.trim_end()
                        ));
                    let text = describe_output(output);
                    text!("interactive-shell-output", output = text.trim_end())
                };
                self.run_command(command, line, then);
            }
            SideAction::Stop(wanted) => {
                let running = self.running.clone();
                std::thread::spawn(move || running.stop(|id| id == wanted));
            }
            SideAction::Files => {
                let ui = self.ui.clone();
                let root = self.project.cwd.clone();
                std::thread::spawn(move || ui.send_message(UiMessage::Files(list_files(&root))));
            }
        }
    }

    /// Returns a command that runs haft with these arguments.
    fn haft_command(&self, arguments: &[String]) -> Command {
        let mut command = self.program.command();
        command.envs(output::available_columns().map(|columns| ("COLUMNS", columns.to_string())));
        // The words after `--` belong to another program.
        let end = arguments.iter().position(|argument| argument == "--");
        let (own, rest) = arguments.split_at(end.unwrap_or(arguments.len()));
        command.args(own);
        if accepts_set(arguments) {
            command.args(self.set.iter().flat_map(|set| ["--set", set]));
        }
        command.args(rest);
        command
    }

    /// Runs a command and shows the text that `then` makes of its output.
    fn run_command(
        &self,
        mut command: Command,
        line: String,
        then: impl FnOnce(&std::io::Result<Output>) -> String + Send + 'static,
    ) {
        command
            .current_dir(&self.project.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                return self.ui.send_message(UiMessage::Told {
                    text: text!("interactive-cannot-start", line, error),
                });
            }
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ui = self.ui.clone();
        let running = self.running.clone();
        running.lock().push((id, Pid::from_child(&child)));
        ui.send_message(UiMessage::Running { id, line });
        std::thread::spawn(move || {
            let output = child.wait_with_output();
            running.lock().retain(|one| one.0 != id);
            let text = then(&output);
            ui.send_message(UiMessage::Ran {
                id,
                text: cut_lines(&text, SHOWN_LIMITS).text,
            });
        });
    }

    /// Stops all running programs.
    pub(super) fn stop_all(&self) {
        self.running.stop(|_| true);
    }
}

/// Returns the output of haft itself, as part of the interface: without its name before a message,
/// and without an exit code, which the message explains.
fn describe_own_output(output: &std::io::Result<Output>) -> String {
    let Ok(output) = output else {
        return describe_output(output);
    };
    let text = sanitize_bytes(&[output.stdout.as_slice(), &output.stderr].concat());
    let message = |line: &str| match line.strip_prefix("haft: ") {
        Some(message) => haft_messages::capitalize(message),
        None => line.to_owned(),
    };
    text.lines().map(message).collect::<Vec<_>>().join("\n")
}

/// Returns a program's output, followed by a description of the failure if the program failed.
pub(super) fn describe_output(output: &std::io::Result<Output>) -> String {
    let output = match output {
        Ok(output) => output,
        Err(error) => return format!("cannot run it: {error}"),
    };
    let text = sanitize_bytes(&[output.stdout.as_slice(), &output.stderr].concat());
    match describe_exit(output.status) {
        Some(ended) => format!("{}\n({ended})", text.trim_end())
            .trim_start()
            .to_owned(),
        None => text,
    }
}

/// Describes how a program ended, or returns `None` if it succeeded.
pub(super) fn describe_exit(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) | (None, None) => None,
        (Some(code), _) => Some(text!("interactive-exit-code", code)),
        (None, Some(15)) => Some(text!("interactive-stopped").to_owned()),
        (None, Some(signal)) => Some(text!("interactive-signal", signal)),
    }
}

/// Lists the files and folders below a folder as relative paths, without hidden and ignored ones.
/// The path of a folder ends with a slash.
fn list_files(root: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root)
        .hidden(true)
        .require_git(false)
        .build();
    let relative = walk.filter_map(Result::ok).filter_map(|entry| {
        let kind = entry.file_type()?;
        let path = entry.path().strip_prefix(root).ok()?.to_str()?;
        match (kind.is_dir(), kind.is_file()) {
            (true, _) if !path.is_empty() => Some(format!("{path}/")),
            (false, true) => Some(path.to_owned()),
            (true | false, _) => None,
        }
    });
    relative.take(MAX_FILES).collect()
}
