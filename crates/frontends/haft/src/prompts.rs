//! Expands prompts that call custom commands by name: `/review src/main.rs` becomes the text of the
//! command `review`, including the output of its command lines.

use std::path::Path;
use std::sync::Arc;

use haft_agent::{
    Approval, ApprovalReply, Approver, MAIN_AGENT, Project, PromptError, SubjectKind,
    assess_confinement, find_knowledge_and_trust, set_up_sandbox,
};
use haft_permission::{PermissionRequest, Verdict};
use haft_project::commands::{self, CommandPrompt, PromptPiece};
use haft_project::{KnowledgePaths, NamedItems};
use haft_sandbox::{Capture, CommandExit, CommandSpec, Sandbox};
use haft_text::{CutLimits, Masker, NameRule, sanitize_bytes};
use haft_tui::{UiHandle, UiMessage};
use haft_types::{Decision, PermissionMode};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::{init, permissions};
use crate::exit::usage_error;
use crate::haft::Settings;
use crate::output;

/// The limits on the output of a command line that is inserted into a prompt.
const OUTPUT_LIMITS: CutLimits = CutLimits {
    lines: 400,
    bytes: 40_000,
};

/// Expands the custom command that `prompt` calls, such as `/review src/main.rs`. The returned
/// pieces may be command lines to run. Text that only looks like a command, such as a path, stays
/// unchanged; an unknown command is an error. Problems with the command's file are printed on
/// stderr.
pub(crate) fn expand_prompt(
    prompt: String,
    paths: &KnowledgePaths,
) -> anyhow::Result<Vec<PromptPiece>> {
    let (pieces, problems) = expand_with_problems(prompt, paths)?;
    for problem in problems {
        output::print_to_stderr(&haft_text::sanitize(&format!("haft: {problem}")));
    }
    Ok(pieces)
}

/// Like [`expand_prompt`], but returns the problems with the command's file instead of printing
/// them.
pub(crate) fn expand_with_problems(
    prompt: String,
    paths: &KnowledgePaths,
) -> anyhow::Result<(Vec<PromptPiece>, Vec<String>)> {
    let untouched = |prompt| Ok((vec![PromptPiece::Text(prompt)], Vec::new()));
    let Some(called) = prompt.trim_start().strip_prefix('/') else {
        return untouched(prompt);
    };
    let (name, arguments) = called
        .split_once(char::is_whitespace)
        .unwrap_or((called, ""));
    let first_part = name.split('/').next().unwrap_or_default();
    if !NameRule::Command.allows(first_part) {
        return untouched(prompt);
    }
    let mut problems = Vec::new();
    let found = commands::load_commands(paths, &mut problems);
    if let Some(command) = found.get(name) {
        let problems = problems
            .iter()
            .filter(|problem| problem.path == command.path);
        return Ok((
            command
                .expand_to_pieces(arguments)
                .map_err(|problem| usage_error(output::localize_text(problem)))?,
            problems.map(ToString::to_string).collect(),
        ));
    }
    let is_known = haft_tui::is_command(first_part)
        || first_part == init::COMMAND_NAME
        || found.get(first_part).is_some();
    let is_path = first_part != name;
    // `/lib` and `/run` are commands, although Linux has folders with these names.
    if haft_tui::is_command(name) {
        return Err(usage_error(text!("slash-terminal", name)));
    }
    if (is_path && !is_known) || names_existing_path(name, &paths.root) {
        return untouched(prompt);
    }
    let near = if is_known {
        Some(first_part.to_owned())
    } else {
        find_near_command(name, &found)
    };
    let there = match near {
        Some(near) => text!("slash-near", near),
        None => describe_own_commands(&found, paths.trusted),
    };
    Err(usage_error(text!("slash-unknown", name, there)))
}

/// Returns true if the first word of a prompt, without its slash, names an existing file or folder.
/// A word is searched in the root folder of the machine; a path of several parts, such as
/// `src/main.rs`, also in the project. A line number or punctuation may follow such a path.
fn names_existing_path(word: &str, root: &Path) -> bool {
    let machine = Path::new("/");
    if !word.contains('/') {
        return machine.join(word).exists();
    }
    let path = word.split(':').next().unwrap_or(word);
    let path = path.trim_end_matches([',', ';', '.', '?', '!']);
    machine.join(path).exists() || root.join(path).exists()
}

/// Finds the command whose name is most similar to an unknown one.
fn find_near_command(name: &str, found: &NamedItems<CommandPrompt>) -> Option<String> {
    let mut known: Vec<&str> = haft_tui::command_names().collect();
    known.push(init::COMMAND_NAME);
    known.extend(found.items.iter().map(|command| command.name.as_str()));
    // Any short word is similar to a name of two letters.
    known.retain(|known| known.len() > 2);
    haft_model::nearest_name(name, known.into_iter())
}

fn describe_own_commands(found: &NamedItems<CommandPrompt>, is_trusted: bool) -> String {
    let names: Vec<_> = found
        .items
        .iter()
        .map(|command| format!("/{}", command.name))
        .collect();
    match names.as_slice() {
        [] if is_trusted => text!("slash-none").to_owned(),
        [] => text!("slash-untrusted").to_owned(),
        names => text!("slash-there-are", names = output::join_names(names)),
    }
}

/// Converts the error of an extension's prompt or resource into a usage error in the user's
/// language.
pub(crate) fn convert_extension_error(error: PromptError) -> anyhow::Error {
    usage_error(output::localize_text(error))
}

/// Runs the command lines in custom commands (`` !`command` ``) and replaces them with their
/// output. The command lines need permission and run in the sandbox, like commands of the model.
pub(crate) struct InlineCommands<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) project: &'a Project,
    pub(crate) mode: PermissionMode,
    /// Asks the user for permission; `None` in a headless run.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// Displays the running command line; `None` in a headless run.
    pub(crate) ui: Option<&'a UiHandle>,
    /// Cancels the running command line.
    pub(crate) cancel: CancellationToken,
}

/// The id of the running command line in the interface.
pub(crate) const INLINE_COMMAND_ID: u64 = u64::MAX;

impl InlineCommands<'_> {
    /// Returns the prompt, with each command line replaced by its output.
    pub(crate) async fn replace_commands(
        &self,
        pieces: Vec<PromptPiece>,
    ) -> anyhow::Result<String> {
        let mut prompt = String::new();
        let mut sandbox = None;
        for piece in pieces {
            match piece {
                PromptPiece::Text(text) => prompt.push_str(&text),
                PromptPiece::Command(line) => {
                    let sandbox = match &sandbox {
                        Some(sandbox) => sandbox,
                        None => sandbox.insert(self.build_sandbox().await?),
                    };
                    prompt.push_str(self.run_command(&line, sandbox).await?.trim_end());
                }
            }
        }
        Ok(prompt)
    }

    async fn build_sandbox(&self) -> anyhow::Result<Sandbox> {
        let rules = self.build_permissions(haft_permission::Confinement::None)?;
        let mut config = self.settings.config.sandbox.clone();
        let unreadable = rules.unreadable_paths(&self.settings.workspace(self.project));
        config.hidden.extend(unreadable.paths);
        config.lacks_hidden |= !unreadable.is_complete;
        config
            .hidden
            .extend(self.settings.load_project_policy(self.project).hidden);
        Ok(set_up_sandbox(
            &self.settings.places,
            &config,
            self.mode,
            vec![self.project.root.clone()],
        )
        .await?)
    }

    fn build_permissions(
        &self,
        confined: haft_permission::Confinement,
    ) -> anyhow::Result<haft_permission::Permissions> {
        let rules = haft_agent::load_permissions(
            self.settings.environment(),
            &self.settings.config.permissions,
            self.mode,
            confined,
        )?;
        // An earlier command line may have changed which projects are trusted.
        let (_, trust_state) = find_knowledge_and_trust(&self.settings.places, self.project)?;
        permissions::restrict_to_project(rules, self.settings, self.project, &trust_state)
    }

    async fn run_command(&self, line: &str, sandbox: &Sandbox) -> anyhow::Result<String> {
        let workspace = self.settings.workspace(self.project);
        let verdict = self
            .build_permissions(assess_confinement(sandbox))?
            .decide(&PermissionRequest::for_command(line), &workspace);
        let cancelled = || usage_error(text!("slash-command-interrupted", line));
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(cancelled()),
            permitted = self.check_permission(line, &verdict) => permitted?,
        }
        let host = self.settings.environment();
        let command = CommandSpec {
            argv: vec![haft_tools::shell_path().into(), "-c".into(), line.into()],
            env: host.child_environment(),
            confined: sandbox.confinement(),
            ..CommandSpec::shell("", &self.project.cwd)
        };
        let capture = Capture {
            limits: OUTPUT_LIMITS,
            ..Capture::default()
        };
        self.show_message(UiMessage::Running {
            id: INLINE_COMMAND_ID,
            line: line.to_owned(),
        });
        let ran = host
            .supervisor()
            .run(&command, &capture, &self.cancel)
            .await;
        self.show_message(UiMessage::Ran {
            id: INLINE_COMMAND_ID,
            text: String::new(),
        });
        let ran = ran?;
        if ran.exit == CommandExit::Cancelled {
            return Err(cancelled());
        }
        if ran.exit != CommandExit::Code(0) {
            let said = sanitize_bytes(&ran.stderr.head);
            let said = match &ran.hidden {
                Some(hidden) => format!("{}\n{hidden}; {}", said.trim(), hidden.remedy()),
                None => said.trim().to_owned(),
            };
            return Err(usage_error(text!("slash-command-failed", line, said)));
        }
        let text = sanitize_bytes(&[ran.stdout.head, ran.stdout.tail].concat());
        Ok(Masker::with_values(host.secret_values())
            .mask(&text)
            .into_owned())
    }

    fn show_message(&self, message: UiMessage) {
        if let Some(ui) = self.ui {
            ui.send_message(message);
        }
    }

    /// Returns an error unless a rule or the user allows the command line.
    async fn check_permission(&self, line: &str, verdict: &Verdict) -> anyhow::Result<()> {
        let refused = || {
            Err(usage_error(text!(
                "slash-command-refused",
                line,
                reason = verdict.reason
            )))
        };
        match (verdict.decision, &self.approver) {
            (Decision::Allow, _) => Ok(()),
            (Decision::Deny, _) | (Decision::Ask, None) => refused(),
            (Decision::Ask, Some(approver)) => {
                let approval = Approval {
                    agent: MAIN_AGENT.to_owned(),
                    call_id: None,
                    tool: "execute_command".to_owned(),
                    arguments: json!({ "command": line }),
                    subject: line.to_owned(),
                    subject_kind: SubjectKind::Text,
                    reason: verdict.reason.clone(),
                    leaves_sandbox: false,
                    parts: verdict.parts.clone(),
                    remember: Vec::new(),
                };
                match approver.ask(&approval).await {
                    ApprovalReply::Once => Ok(()),
                    ApprovalReply::Always
                    | ApprovalReply::AlwaysBy { .. }
                    | ApprovalReply::Session
                    | ApprovalReply::Changed { .. }
                    | ApprovalReply::No { .. } => refused(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project with a command `review` and a file `lib/main.dart`.
    fn project() -> tempfile::TempDir {
        let project = tempfile::tempdir().unwrap();
        for (name, text) in [
            (".haft/commands/review.md", "Review it."),
            ("lib/main.dart", ""),
        ] {
            let path = project.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        project
    }

    /// Returns the text that is sent to the model, or the error message.
    fn expand(prompt: &str) -> Result<String, String> {
        let project = project();
        let root = project.path().to_owned();
        let paths = KnowledgePaths {
            cwd: root.clone(),
            trusted: true,
            user: root.join("user"),
            home: None,
            root,
        };
        match expand_with_problems(prompt.to_owned(), &paths) {
            Ok((pieces, _)) => match pieces.as_slice() {
                [PromptPiece::Text(text)] => Ok(text.clone()),
                pieces => panic!("{prompt}: {pieces:?}"),
            },
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn expand_keeps_paths_as_prompts() {
        for prompt in [
            "/etc is what?",
            "/usr/bin is what?",
            "/nowhere/at/all",
            "/lib/main.dart fails",
            "/lib/main.dart:12 fails",
            "/lib/main.dart, why?",
            "/ alone",
            "// a comment",
        ] {
            assert_eq!(expand(prompt), Ok(prompt.to_owned()), "{prompt}");
        }
    }

    #[test]
    fn expand_rejects_words_that_begin_with_a_command() {
        for (prompt, near) in [
            ("/rules/list now", "rules"),
            ("/coding/next", "coding"),
            ("/lib/missing.dart", "lib"),
            ("/review/all", "review"),
            ("/init/it", "init"),
        ] {
            let error = expand(prompt).unwrap_err();
            let advice = format!("did you mean `/{near}`?");
            assert!(error.contains(&advice), "{prompt}: {error}");
        }
    }

    #[test]
    fn expand_names_the_command_nearest_to_an_unknown_one() {
        for (prompt, near) in [
            ("/comit now", "commit"),
            ("/hlep", "help"),
            ("/reviw a.rs", "review"),
            ("/codign x", "coding"),
        ] {
            let error = expand(prompt).unwrap_err();
            let advice = format!("did you mean `/{near}`?");
            assert!(error.contains(&advice), "{prompt}: {error}");
        }
        assert_eq!(
            expand("/xylophone"),
            Err(
                "unknown command `/xylophone`: /help lists the commands; yours are /review"
                    .to_owned()
            )
        );
    }

    #[test]
    fn expand_rejects_commands_of_the_terminal() {
        for prompt in [
            "/coding fix it",
            " /coding fix it",
            "/rules /list",
            "/lib /add x",
            "/run ls",
            "/help",
            "/index/build",
        ] {
            let error = expand(prompt).unwrap_err();
            assert!(
                error.contains("works only in the terminal interface"),
                "{prompt}: {error}"
            );
        }
    }
}
