//! Loads the change to review from git.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haft_sandbox::{CommitScope, Git};

use crate::commands::review::ReviewTarget;
use crate::exit::usage_error;

/// The maximum size, in bytes, of a diff in the prompt. The reviewer reads the remaining files with
/// its tools.
const MAX_DIFF_BYTES: usize = 400_000;

/// A change to review, as text for the prompt.
pub(super) struct ReviewedChange {
    /// The description of the change.
    pub(super) what: String,
    /// The diff, with the names of files that it does not contain.
    pub(super) text: String,
}

/// Returns the change to review: uncommitted work, unless the options name something else.
pub(super) fn load_change(
    git: &Git,
    project: &Path,
    of: &ReviewTarget,
) -> anyhow::Result<ReviewedChange> {
    let (what, diff, new) = match (&of.base, &of.commit) {
        (Some(base), _) => {
            let from = run_git(git, ["merge-base", "--end-of-options", base, "HEAD"])?;
            let diff = diff_work_tree(git, from.trim(), |_| false)?;
            (
                format!("everything since this branch left `{base}`, committed or not"),
                diff,
                list_untracked_files(git, project)?,
            )
        }
        (None, Some(commit)) => {
            let show = ["show", "--format=%h %s%n%n%b", "--no-show-signature"];
            let show = show
                .iter()
                .chain(&PLAIN_DIFF_OPTIONS)
                .copied()
                .chain(["--end-of-options", commit]);
            (
                format!("the commit `{commit}`"),
                WorkTreeDiff {
                    text: run_git(git, show)?,
                    filtered: Vec::new(),
                },
                Vec::new(),
            )
        }
        (None, None) => {
            // Before the first commit there is no HEAD, so only staged changes can be compared.
            let born = git
                .run(["rev-parse", "--verify", "--quiet", "HEAD"])
                .is_ok();
            let diff = diff_work_tree(git, if born { "HEAD" } else { "--cached" }, |_| false)?;
            (
                "what is not committed yet".to_owned(),
                diff,
                list_untracked_files(git, project)?,
            )
        }
    };
    if diff.text.trim().is_empty() && new.is_empty() && diff.filtered.is_empty() {
        return Err(usage_error(text!(
            "review-nothing",
            what = crate::output::localize_text(what)
        )));
    }
    let mut text = fence_diff(&diff.text);
    if !new.is_empty() {
        text.extend([
            "\n\nNew files that git does not know yet; read them:\n",
            &new.join("\n"),
        ]);
    }
    if !diff.filtered.is_empty() {
        let names: Vec<_> = diff
            .filtered
            .iter()
            .map(|path| path.to_string_lossy())
            .collect();
        text.extend([
            "\n\nLeft out, because a git filter such as LFS goes over them:\n",
            &names.join("\n"),
        ]);
    }
    Ok(ReviewedChange { what, text })
}

/// Returns a diff of the changes that a commit would contain, or `None` if there are none. Hidden
/// files are only named.
pub(crate) fn diff_for_commit(
    git: &Git,
    scope: CommitScope,
    is_hidden: impl Fn(&Path) -> bool,
) -> anyhow::Result<Option<String>> {
    let born = git
        .run(["rev-parse", "--verify", "--quiet", "HEAD"])
        .is_ok();
    let from = match scope {
        CommitScope::Tracked if born => "HEAD",
        CommitScope::Tracked | CommitScope::Staged => "--cached",
    };
    let diff = diff_work_tree(git, from, is_hidden)?;
    if diff.text.trim().is_empty() && diff.filtered.is_empty() {
        return Ok(None);
    }
    let mut text = fence_diff(&diff.text);
    if !diff.filtered.is_empty() {
        let names: Vec<_> = diff
            .filtered
            .iter()
            .map(|path| path.to_string_lossy())
            .collect();
        text.extend(["\n\nAlso changed, and not shown:\n", &names.join("\n")]);
    }
    Ok(Some(text))
}

/// Options of git that keep configured programs and colors out of a diff.
const PLAIN_DIFF_OPTIONS: [&str; 3] = ["--no-ext-diff", "--no-textconv", "--no-color"];

/// Changes of the work tree or the index, as a diff.
struct WorkTreeDiff {
    text: String,
    /// Files that are named but not compared: hidden files, and files with a git filter, because
    /// git would compare their unfiltered content.
    filtered: Vec<OsString>,
}

fn diff_work_tree(
    git: &Git,
    from: &str,
    is_hidden: impl Fn(&Path) -> bool,
) -> anyhow::Result<WorkTreeDiff> {
    let diff = ["diff", "--ignore-submodules=all"]
        .iter()
        .chain(&PLAIN_DIFF_OPTIONS)
        .copied();
    let names = run_git_bytes(
        git,
        diff.clone()
            .chain(["--name-only", "--no-renames", "-z", from]),
    )?;
    let names: Vec<_> = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .collect();
    let names: Vec<_> = names
        .into_iter()
        .map(|name| OsStr::from_bytes(name).to_owned())
        .collect();
    let mut filtered = git
        .paths_with_filters(&names)
        .map_err(|error| usage_error(error.to_string()))?;
    filtered.extend(
        names
            .into_iter()
            .filter(|name| is_hidden(&git.top().join(name))),
    );
    let mut arguments: Vec<OsString> = diff
        .chain(["--find-renames", from, "--", "."])
        .map(OsString::from)
        .collect();
    for path in &filtered {
        let mut left_out = OsString::from(":(exclude,literal,top)");
        left_out.push(path);
        arguments.push(left_out);
    }
    Ok(WorkTreeDiff {
        text: run_git(git, arguments)?,
        filtered,
    })
}

/// Lists the untracked files of the project, relative to its root.
fn list_untracked_files(git: &Git, project: &Path) -> anyhow::Result<Vec<String>> {
    let prefix = project.strip_prefix(git.top()).unwrap_or(Path::new(""));
    let names = run_git_bytes(git, ["ls-files", "-z", "--others", "--exclude-standard"])?;
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(OsStr::from_bytes);
    Ok(names
        .filter_map(|name| {
            Some(
                Path::new(name)
                    .strip_prefix(prefix)
                    .ok()?
                    .display()
                    .to_string(),
            )
        })
        .collect())
}

fn run_git<S: Into<OsString>>(
    git: &Git,
    arguments: impl IntoIterator<Item = S>,
) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&run_git_bytes(git, arguments)?).into_owned())
}

fn run_git_bytes<S: Into<OsString>>(
    git: &Git,
    arguments: impl IntoIterator<Item = S>,
) -> anyhow::Result<Vec<u8>> {
    git.run(arguments)
        .map_err(|error| usage_error(error.to_string()))
}

/// Puts the diff into a code fence that nothing in the diff can close, and cuts the diff after
/// [`MAX_DIFF_BYTES`].
fn fence_diff(diff: &str) -> String {
    if diff.trim().is_empty() {
        return String::new();
    }
    let cut = diff.floor_char_boundary(MAX_DIFF_BYTES);
    let note = if cut < diff.len() {
        let names: Vec<_> = diff[cut..]
            .lines()
            .filter_map(|line| line.strip_prefix("+++ b/"))
            .collect();
        format!(
            "\n\nThe diff is longer than this; read what is changed in:\n{}",
            names.join("\n")
        )
    } else {
        String::new()
    };
    let runs = diff
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(runs.max(2) + 1);
    format!("{fence}diff\n{}\n{fence}{note}", diff[..cut].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_diff_uses_a_fence_longer_than_any_in_the_diff() {
        let text = fence_diff("+````\n+end\n");
        assert!(
            text.starts_with("`````diff\n") && text.ends_with("\n`````"),
            "{text}"
        );
    }

    #[test]
    fn fence_diff_names_files_cut_from_a_long_diff() {
        let long = format!(
            "+++ b/one\n{}\n+++ b/two\n+x\n",
            "+a\n".repeat(MAX_DIFF_BYTES / 3)
        );
        let text = fence_diff(&long);
        assert!(
            text.ends_with("read what is changed in:\ntwo"),
            "{}",
            &text[text.len() - 200..]
        );
    }
}
