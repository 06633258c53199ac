//! The text on the screen before the first prompt: the folder, the model, the mode, and one hint.

use std::path::{Path, PathBuf};

use haft_agent::{Project, set_up_sandbox};
use haft_tui::{Setup, UiHandle, UiMessage};
use haft_types::PermissionMode;

use crate::haft::Settings;

/// Returns the text of the start screen. Unknown parts are omitted.
pub(super) fn start_screen_text(project: &Project, home: Option<&Path>, setup: &Setup) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let folder = abbreviate_home(&project.cwd, home);
    let place = match read_branch(&project.root) {
        Some(branch) => text!("interactive-start-branch", folder, branch),
        None => folder,
    };
    let model = &setup.model;
    let mode = setup.mode.name();
    format!(
        "haft {version} · {place} · /help\n{}\n{}",
        text!("interactive-start-model", model, mode),
        choose_hint(setup)
    )
}

/// Returns a hint for the start screen. The hint depends on the number of prompts in the history.
fn choose_hint(setup: &Setup) -> &'static str {
    match setup.history.len() % 5 {
        0 => text!("interactive-hint-files"),
        1 => text!("interactive-hint-mode"),
        2 => text!("interactive-hint-shell"),
        3 => text!("interactive-hint-rewind"),
        _ => text!("interactive-hint-context"),
    }
}

/// Shows which sandbox layer confines commands. The session sets up its own sandbox later. This
/// check must end before the interface starts: if the user suspended haft during the check, a
/// program that the check started would be stopped halfway.
pub(super) async fn report_sandbox(
    ui: &UiHandle,
    settings: &Settings,
    mode: PermissionMode,
    project: &Project,
) {
    // Problems with the sandbox are reported when it is needed.
    let set_up = set_up_sandbox(
        &settings.places,
        &settings.config.sandbox,
        mode,
        vec![project.root.clone()],
    );
    if let Ok(sandbox) = set_up.await {
        ui.send_message(UiMessage::Sandbox(sandbox.status().layer));
    }
}

/// Returns true if the terminal is known to support or ignore the escape sequences of titles,
/// notifications and links.
pub(super) fn accepts_escape_sequences() -> bool {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    let set = |name: &str| !value(name).is_empty();
    let known = [
        "kitty",
        "ghostty",
        "alacritty",
        "foot",
        "wezterm",
        "rio",
        "contour",
        "tmux",
    ];
    let term = value("TERM");
    let program = value("TERM_PROGRAM").to_lowercase();
    let programs = [
        "iterm.app",
        "wezterm",
        "ghostty",
        "vscode",
        "warpterminal",
        "tmux",
        "rio",
    ];
    known.iter().any(|name| term.contains(name))
        || programs.contains(&program.as_str())
        || [
            "VTE_VERSION",
            "KONSOLE_VERSION",
            "WT_SESSION",
            "KITTY_WINDOW_ID",
        ]
        .into_iter()
        .any(set)
}

/// Returns the branch that is checked out, or the commit if there is no branch.
fn read_branch(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let git = match std::fs::read_to_string(&git) {
        // In a worktree, `.git` is a file that names the git folder.
        Ok(text) => root.join(PathBuf::from(text.strip_prefix("gitdir:")?.trim())),
        Err(_) => git,
    };
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.get(..8)?.to_owned(),
    })
}

/// Abbreviates the home folder to `~`.
fn abbreviate_home(folder: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_branch_reads_branches_commits_and_worktrees() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let git = folder.path().join(".git");
        assert_eq!(read_branch(root), None);
        std::fs::create_dir_all(git.join("worktrees/x")).unwrap();
        std::fs::write(git.join("HEAD"), "ref: refs/heads/feature/a\n").unwrap();
        assert_eq!(read_branch(root).as_deref(), Some("feature/a"));
        std::fs::write(git.join("HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(read_branch(root).as_deref(), Some("01234567"));
        std::fs::write(git.join("worktrees/x/HEAD"), "ref: refs/heads/x\n").unwrap();
        let tree = root.join("tree");
        std::fs::create_dir(&tree).unwrap();
        std::fs::write(tree.join(".git"), "gitdir: ../.git/worktrees/x\n").unwrap();
        assert_eq!(read_branch(&tree).as_deref(), Some("x"));
    }
}
