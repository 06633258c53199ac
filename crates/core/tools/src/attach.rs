//! Reads files that are attached to a message without a call of the model: files that the prompt
//! for a small model names, and files that an unknown tool should have worked on.
//!
//! Invariant: an attached file lies in the project, may be read by the rules, and is neither hidden
//! nor ignored.

use std::path::{Path, PathBuf};

use haft_tool::{FileState, ToolContext};
use ignore::WalkBuilder;
use serde_json::Value;

use crate::files::change::file_state_to_json;
use crate::files::disk::{self, MAX_LOADED};
use crate::files::documents;
use crate::files::encoding::{TextEncoding, decode_text};
use crate::on_files::run_off_thread;
use crate::paths;
use crate::scope::FileScope;

/// The maximum number of characters of a file that are attached.
const MAX_ATTACHED_CHARS: usize = 4_000;

/// A file that is attached to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    pub path: PathBuf,
    /// The path as the model may write it.
    pub name: String,
    /// The content, or its first lines.
    pub text: String,
    /// The number of lines of the content.
    pub lines: usize,
    /// The state of the file; `None` if only a part of the content is attached.
    pub whole: Option<FileState>,
}

impl AttachedFile {
    /// Formats the file for the model, without line numbers.
    pub fn format(&self) -> String {
        let Self {
            name, text, lines, ..
        } = self;
        if text.is_empty() && self.whole.is_some() {
            return format!("`{name}` is empty.");
        }
        // A fence in the file must not end the fence around it.
        let longest = text
            .lines()
            .map(|line| line.trim_start().bytes().take_while(|b| *b == b'`').count())
            .max()
            .unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let shown = text.lines().count();
        let more = if self.whole.is_some() {
            String::new()
        } else {
            format!(
                "\n[The first {shown} of {lines} lines. Read on with start_line {}.]",
                shown + 1
            )
        };
        format!("`{name}`:\n{fence}\n{text}{end}{fence}{more}")
    }

    /// Returns the state in the form in which a message stores it, from which the read ledger is
    /// rebuilt; `None` if only a part of the content is attached.
    pub fn ledger_entry(&self) -> Option<Value> {
        Some(file_state_to_json(&self.path, self.whole?))
    }
}

/// Reads the files among `words` that may be attached, at most `max` and each once.
pub async fn attach_files(
    context: &ToolContext,
    words: Vec<String>,
    max: usize,
) -> Vec<AttachedFile> {
    let attached = run_off_thread(context, move |scope| {
        let mut found: Vec<AttachedFile> = Vec::new();
        for word in words {
            if found.len() == max {
                break;
            }
            if let Some(file) = attach_file(scope, &word)
                && found.iter().all(|earlier| earlier.path != file.path)
            {
                found.push(file);
            }
        }
        Ok(found)
    });
    attached.await.unwrap_or_default()
}

fn attach_file(scope: &FileScope, word: &str) -> Option<AttachedFile> {
    let path = paths::resolve_path(&scope.workspace, word).ok()?;
    let name = paths::display_path(&scope.workspace, &path);
    let metadata = path.symlink_metadata().ok()?;
    let readable = scope
        .read_filter
        .as_ref()
        .is_none_or(|readable| readable(&path));
    if !metadata.is_file()
        || metadata.len() > MAX_LOADED
        || !readable
        || !is_visible(&scope.workspace.root, &path)
    {
        return None;
    }
    let loaded = scope.apply_unsaved(&path, disk::load_file(&path, &name).ok()?);
    if documents::detect_format(scope, &path, &loaded.bytes).is_some() {
        return None;
    }
    let decoded = decode_text(&loaded.bytes)?;
    if decoded.encoding != TextEncoding::Utf8 || decoded.text.as_bytes() != loaded.bytes {
        return None;
    }
    let lines = decoded.text.lines().count();
    let part = cut_at_line(&decoded.text, MAX_ATTACHED_CHARS);
    let whole = (part.len() == decoded.text.len()).then_some(loaded.state);
    Some(AttachedFile {
        text: part.to_owned(),
        path,
        name,
        lines,
        whole,
    })
}

/// Returns the first whole lines of a text, up to a number of characters.
fn cut_at_line(text: &str, max_chars: usize) -> &str {
    let Some((limit, _)) = text.char_indices().nth(max_chars) else {
        return text;
    };
    let end = text[..limit].rfind('\n').map_or(0, |at| at + 1);
    &text[..end]
}

/// True if a file lies below `root` and neither the file nor a folder above it is hidden or
/// ignored.
fn is_visible(root: &Path, path: &Path) -> bool {
    if !path.starts_with(root) {
        return false;
    }
    let target = path.to_owned();
    WalkBuilder::new(root)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(move |entry| target.starts_with(entry.path()))
        .build()
        .filter_map(Result::ok)
        .any(|entry| entry.path() == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    async fn attached(bench: &Bench, words: &[&str]) -> Vec<AttachedFile> {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        attach_files(&bench.context, words, 5).await
    }

    async fn names(bench: &Bench, words: &[&str]) -> Vec<String> {
        let files = attached(bench, words).await;
        files.into_iter().map(|file| file.name).collect()
    }

    #[tokio::test]
    async fn attach_reads_files_of_the_project_once_and_in_order() {
        let bench = Bench::new();
        bench.write("src/b.rs", "b\n");
        bench.write("a.rs", "a\n");
        assert_eq!(
            names(&bench, &["src/b.rs", "a.rs", "./a.rs", "src", "no.rs", ""]).await,
            ["src/b.rs", "a.rs"]
        );
        assert!(
            names(&bench, &["/etc/hostname", "../x", "/"])
                .await
                .is_empty()
        );
    }

    #[tokio::test]
    async fn attach_skips_hidden_ignored_denied_and_binary_files() {
        let mut bench = Bench::new();
        bench.write(".env", "KEY=1\n");
        bench.write(".hidden/a.txt", "a\n");
        bench.write("build/out.txt", "a\n");
        bench.write("secret.txt", "a\n");
        bench.write(".gitignore", "build/\nsecret.txt\n");
        bench.write("data.bin", "a\0b");
        bench.write("old.txt", "a\n");
        bench.write("denied.txt", "a\n");
        bench.context.read_filter = Some(std::sync::Arc::new(|path: &Path| {
            !path.ends_with("denied.txt")
        }));
        let words = [
            ".env",
            ".hidden/a.txt",
            "build/out.txt",
            "secret.txt",
            ".gitignore",
            "data.bin",
            "denied.txt",
            "old.txt",
        ];
        assert_eq!(names(&bench, &words).await, ["old.txt"]);
    }

    #[tokio::test]
    async fn attach_counts_only_whole_files_as_read() {
        let bench = Bench::new();
        bench.write("whole.txt", "äbcdefghi\n".repeat(400));
        bench.write("long.txt", "äbcdefghi\n".repeat(401));
        bench.write("line.txt", "x".repeat(4_001));
        bench.write("empty.txt", "");
        let files = attached(&bench, &["whole.txt", "long.txt", "line.txt", "empty.txt"]).await;
        let whole: Vec<_> = files.iter().map(|file| file.whole.is_some()).collect();
        assert_eq!(whole, [true, false, false, true]);
        assert!(
            files[1]
                .format()
                .ends_with("\n[The first 400 of 401 lines. Read on with start_line 401.]")
        );
        assert!(files[1].ledger_entry().is_none());
        assert_eq!(files[3].format(), "`empty.txt` is empty.");
    }

    #[tokio::test]
    async fn attach_puts_a_longer_fence_around_fences() {
        let bench = Bench::new();
        bench.write("a.md", "```\ncode\n```");
        let files = attached(&bench, &["a.md"]).await;
        assert_eq!(files[0].format(), "`a.md`:\n````\n```\ncode\n```\n````");
    }
}
