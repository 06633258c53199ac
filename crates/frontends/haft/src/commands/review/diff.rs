//! The change to review, as git reports it.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use haft_agent::Project;

use crate::commands::review::ReviewOf;
use crate::exit::usage_error;

/// More of a diff is not sent: the reviewer reads the files instead.
const LONGEST: usize = 400_000;

/// A change, for a reviewer.
pub(super) struct ReviewedChange {
    /// As a description.
    pub(super) what: String,
    /// As a diff.
    pub(super) text: String,
}

/// What is to be looked at: the work that is not committed, unless something else is named.
pub(super) fn change(project: &Project, of: &ReviewOf) -> anyhow::Result<ReviewedChange> {
    let (what, diff, new) = match (&of.base, &of.commit) {
        (Some(base), _) => {
            let from = git(project, ["merge-base", "--end-of-options", base, "HEAD"])?;
            let diff = diff(project, &[from.trim()])?;
            (format!("everything since this branch left `{base}`, committed or not"), diff, untracked(project)?)
        }
        (None, Some(commit)) => {
            let show = [
                "show", "--format=%h %s%n%n%b", "--no-ext-diff", "--no-textconv", "--no-color", "--end-of-options",
                commit,
            ];
            (format!("the commit `{commit}`"), git(project, show)?, Vec::new())
        }
        (None, None) => {
            // Before the first commit there is no HEAD; what is staged is all there is.
            let born = git(project, ["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok();
            let diff = if born { diff(project, &["HEAD"])? } else { diff(project, &["--cached"])? };
            ("what is not committed yet".to_owned(), diff, untracked(project)?)
        }
    };
    if diff.trim().is_empty() && new.is_empty() {
        return Err(usage_error(format!("there is nothing to review: {what} is empty")));
    }
    let mut text = fenced(&diff);
    if !new.is_empty() {
        text.extend(["\n\nNew files that git does not know yet; read them:\n", &new.join("\n")]);
    }
    Ok(ReviewedChange { what, text })
}

fn diff(project: &Project, of: &[&str]) -> anyhow::Result<String> {
    let fixed = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"];
    git(project, fixed.iter().chain(of))
}

fn untracked(project: &Project) -> anyhow::Result<Vec<String>> {
    let names = git(project, ["ls-files", "--others", "--exclude-standard"])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// The diff in a fence that nothing in it can close.
fn fenced(diff: &str) -> String {
    if diff.trim().is_empty() {
        return String::new();
    }
    let cut = diff.floor_char_boundary(LONGEST);
    let note = if cut < diff.len() {
        let names: Vec<_> = diff[cut..].lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
        format!("\n\nThe diff is longer than this; read what is changed in:\n{}", names.join("\n"))
    } else {
        String::new()
    };
    let runs = diff.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(runs.max(2) + 1);
    format!("{fence}diff\n{}\n{fence}{note}", diff[..cut].trim_end())
}

/// Runs git without what a repository could make it run or wait for.
fn git<S: AsRef<OsStr>>(project: &Project, arguments: impl IntoIterator<Item = S>) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"])
        .args(arguments)
        .current_dir(&project.root)
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| usage_error(format!("git cannot be run: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(usage_error(format!("git: {}", stderr.trim().trim_start_matches("fatal: "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_diff_closes_its_fence() {
        let text = fenced("+````\n+end\n");
        assert!(text.starts_with("`````diff\n") && text.ends_with("\n`````"), "{text}");
    }

    #[test]
    fn what_is_cut_from_a_long_diff_is_named() {
        let long = format!("+++ b/one\n{}\n+++ b/two\n+x\n", "+a\n".repeat(LONGEST / 3));
        let text = fenced(&long);
        assert!(text.ends_with("read what is changed in:\ntwo"), "{}", &text[text.len() - 200..]);
    }
}
