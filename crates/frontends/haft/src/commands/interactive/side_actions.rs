//! Actions outside the conversation: output of other commands of haft and of the user's shell, and file names.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use haft_agent::Project;
use haft_text::{CutLimits, cut_lines, sanitise_bytes};
use haft_tools::LimitsConfig;
use haft_tui::{Operation, UiHandle, UiMessage};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::commands::side_editor;

/// Files that are offered at most.
const FILES: usize = 20_000;
/// What is shown of an output.
const SHOWN: CutLimits = CutLimits { lines: 200, bytes: 64 * 1024 };

/// What stands between a prompt and the output of commands the user ran.
pub(super) const OVERHEARD: &str = "\n\nThe user ran this in their own shell:\n\n";

/// Does things on threads of their own.
pub(super) struct SideActions {
    ui: UiHandle,
    project: Project,
    set: Vec<String>,
    /// Programs that run, each the first of its group.
    running: Arc<Mutex<Vec<Pid>>>,
    /// Output of the user's commands that was not sent to the model yet.
    overheard: Arc<Mutex<Vec<String>>>,
    /// How much of each is sent.
    told: CutLimits,
}

impl SideActions {
    pub(super) fn new(ui: UiHandle, project: Project, set: Vec<String>, limits: &LimitsConfig) -> Self {
        let told = CutLimits { lines: limits.output_lines, bytes: limits.output_bytes };
        Self { ui, project, set, running: Arc::default(), overheard: Arc::default(), told }
    }

    /// The prompt with the output of commands the user ran since the last one.
    pub(super) fn with_overheard(&self, prompt: String) -> String {
        let heard = std::mem::take(&mut *self.overheard.lock().unwrap_or_else(PoisonError::into_inner));
        if heard.is_empty() { prompt } else { format!("{prompt}{OVERHEARD}{}", heard.join("\n\n")) }
    }

    /// What a conversation changed in files.
    pub(super) fn diff(&self, conversation: Option<&str>) {
        match conversation {
            Some(id) => self.start(Operation::Haft(["changes", "--diff", id].map(str::to_owned).into())),
            None => self.ui.tell(UiMessage::Told { text: text!("interactive-no-diff").into() }),
        }
    }

    /// Starts an operation; its result is sent to the interface.
    pub(super) fn start(&self, operation: Operation) {
        match operation {
            Operation::Haft(arguments) => match std::env::current_exe() {
                Ok(haft) => {
                    let mut command = Command::new(haft);
                    command.args(arguments);
                    command.args(self.set.iter().flat_map(|set| ["--set", set]));
                    self.run(command, None);
                }
                Err(error) => self.ui.tell(UiMessage::Told { text: format!("haft: {error}") }),
            },
            Operation::Shell(line) => {
                let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
                let mut command = Command::new(shell);
                command.arg("-c").arg(&line);
                self.run(command, Some(line));
            }
            Operation::Files => {
                let (ui, root) = (self.ui.clone(), self.project.cwd.clone());
                std::thread::spawn(move || ui.tell(UiMessage::Files(files(&root))));
            }
            // These are the session's.
            Operation::Submit(_)
            | Operation::Join(_)
            | Operation::Interrupt
            | Operation::New
            | Operation::Resume(_)
            | Operation::Offer(_)
            | Operation::Rewind { .. }
            | Operation::Model(_)
            | Operation::Mode(_)
            | Operation::Compact(_)
            | Operation::EditContext(_)
            | Operation::Focus(_)
            | Operation::Undo
            | Operation::Redo
            | Operation::Diff
            | Operation::Quit => {}
        }
    }

    /// Runs it and shows what it says. The output of a line the user typed for their shell goes to the model, too.
    fn run(&self, mut command: Command, line: Option<String>) {
        command.current_dir(&self.project.cwd).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let (ui, running) = (self.ui.clone(), Arc::clone(&self.running));
        let (overheard, limits) = (Arc::clone(&self.overheard), self.told);
        std::thread::spawn(move || {
            let told = command.spawn().and_then(|child| {
                let id = Pid::from_child(&child);
                running.lock().unwrap_or_else(PoisonError::into_inner).push(id);
                let output = child.wait_with_output();
                running.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| *one != id);
                output
            });
            let text = match told {
                Ok(output) => {
                    let mut text = sanitise_bytes(&[output.stdout, output.stderr].concat());
                    if let Some(code) = output.status.code().filter(|code| *code != 0) {
                        text = format!("{}\n(exit code {code})", text.trim_end());
                    }
                    if let Some(line) = line {
                        let told = cut_lines(&text, limits).text;
                        let told = format!("<shell>\n$ {line}\n{}\n</shell>", told.trim_end());
                        overheard.lock().unwrap_or_else(PoisonError::into_inner).push(told);
                        text = text!("interactive-shell-output", output = text.trim_end());
                    }
                    cut_lines(&text, SHOWN).text
                }
                Err(error) => format!("haft: {error}"),
            };
            ui.tell(UiMessage::Told { text });
        });
    }

    /// Ends what still runs.
    pub(super) fn end(&self) {
        for id in self.running.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have ended by itself.
            kill_process_group(id, Signal::TERM).ok();
        }
    }
}

/// Opens the user's editor on a text.
pub(super) fn edit(text: &str) -> Result<String, String> {
    side_editor::edit(text, ".md")
}

/// Files under a folder, as paths from there, without what is ignored.
fn files(root: &std::path::Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root).hidden(true).require_git(false).build();
    let files = walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let relative = files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned()));
    relative.take(FILES).collect()
}
