//! Pushes the change of a task to a branch of its repository.

use std::path::Path;

use haft_files::Durability;
use haft_postgres::{QueuedTask, hide_address_password};
use haft_sandbox::GitReach;

use crate::workspace::{
    TaskWorkspace, WorkspaceError, Workspaces, is_ssh, local_path, path_to_str, remove_path,
};

impl Workspaces {
    /// Commits a patch on top of the task's base commit, and pushes the commit to a branch of the
    /// repository. The commit is made in a new clone to which the task had no access.
    ///
    /// A branch that already has the change is left alone: a worker that was killed after the push
    /// did not report it. A branch whose newest commit an earlier run of the task has pushed is
    /// replaced. Any other branch that exists is an error.
    pub fn push_patch(
        &self,
        task: &QueuedTask,
        workspace: &TaskWorkspace,
        patch: &[u8],
        branch: &str,
    ) -> Result<(), WorkspaceError> {
        let (Some(url), Some(mirror)) = (&workspace.source, &workspace.mirror) else {
            return Ok(());
        };
        let above = workspace.folder.parent().unwrap_or(&workspace.folder);
        let folder = above.join("push");
        let change = above.join("push/.git/change.patch");
        remove_path(&folder)?;
        self.clone_without_checkout(above, mirror, &folder)?;
        haft_files::replace_file(&change, patch, Durability::Process).map_err(|source| {
            WorkspaceError::File {
                at: change.clone(),
                source,
            }
        })?;
        let clone = PushClone {
            workspaces: self,
            folder: &folder,
            url,
        };
        clone.run(&[
            "checkout",
            "--quiet",
            "--detach",
            "--end-of-options",
            &workspace.base,
            "--",
        ])?;
        clone.run(&["apply", "--index", "--binary", path_to_str(&change)])?;
        // The number of a task is unique only in its queue.
        let mark = format!("Haft-Task: {}-{}", task.id, task.created_at);
        let message = format!("Change made by haft\n\n{mark}");
        clone.run(&["commit", "--quiet", "--message", &message])?;
        let target = format!("HEAD:refs/heads/{branch}");
        let refused = match clone.push(&[&target]) {
            Ok(()) => return Ok(()),
            Err(error) if error.is_refused_push() => error,
            Err(error) => return Err(error),
        };
        let fetched = format!("+refs/heads/{branch}:refs/haft/pushed");
        if clone.reach_server("fetch", &[&fetched]).is_err() {
            return Err(refused);
        }
        let tree = |of: &str| clone.run(&["rev-parse", &format!("{of}^{{tree}}")]);
        if tree("HEAD")? == tree("refs/haft/pushed")? {
            return Ok(());
        }
        let newest = clone.run(&["log", "-1", "--format=%B", "refs/haft/pushed"])?;
        if !newest.lines().any(|line| line == mark) {
            return Err(refused);
        }
        let newest = clone.run(&["rev-parse", "refs/haft/pushed"])?;
        let lease = format!("--force-with-lease=refs/heads/{branch}:{}", newest.trim());
        clone.push(&[&lease, &target])
    }
}

/// The clone from which a change is pushed.
struct PushClone<'a> {
    workspaces: &'a Workspaces,
    folder: &'a Path,
    /// The address of the repository.
    url: &'a str,
}

impl PushClone<'_> {
    /// Runs git in the clone, without the network, and returns its output.
    fn run(&self, arguments: &[&str]) -> Result<String, WorkspaceError> {
        let dir = format!("--git-dir={}/.git", path_to_str(self.folder));
        let tree = format!("--work-tree={}", path_to_str(self.folder));
        let all: Vec<_> = [dir.as_str(), &tree]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let what = format!("git {}", arguments.first().unwrap_or(&""));
        self.workspaces
            .read_git(self.folder, GitReach::Local, &what, &all)
    }

    fn push(&self, arguments: &[&str]) -> Result<(), WorkspaceError> {
        let (options, refs): (Vec<_>, Vec<_>) = arguments
            .iter()
            .copied()
            .partition(|argument| argument.starts_with("--"));
        let dir = format!("--git-dir={}/.git", path_to_str(self.folder));
        let mut all = vec![dir.as_str(), "push", "--quiet"];
        all.extend(options);
        all.extend(["--", self.url]);
        all.extend(refs);
        let what = format!("git push {}", hide_address_password(self.url));
        match local_path(self.url) {
            // The push writes into the folder of the repository.
            Some(local) => {
                let reach = GitReach::Network {
                    source: path_to_str(self.folder),
                    agent: None,
                };
                self.workspaces.run_git(local, reach, &what, &all)
            }
            None => self.reach_with(&what, &all),
        }
    }

    /// Runs a git command that reads from the repository's server.
    fn reach_server(&self, command: &str, refs: &[&str]) -> Result<(), WorkspaceError> {
        let dir = format!("--git-dir={}/.git", path_to_str(self.folder));
        let mut all = vec![dir.as_str(), command, "--quiet", "--", self.url];
        all.extend(refs);
        self.reach_with(&format!("git {command}"), &all)
    }

    fn reach_with(&self, what: &str, arguments: &[&str]) -> Result<(), WorkspaceError> {
        let agent = self.workspaces.agent.as_deref();
        let reach = GitReach::Network {
            source: self.url,
            agent: agent.filter(|_| is_ssh(self.url)),
        };
        self.workspaces.run_git(self.folder, reach, what, arguments)
    }
}
