//! Prepares the user's input: adds notes on the files that it mentions and, for small models, the
//! content of the files that it names.
//!
//! Small models often change a file without reading it. A larger model reads what it needs, so its
//! input contains no content.

use std::path::Path;
use std::sync::Arc;

use haft_context::{AttachedText, MentionKind, MentionTools, append_mentions, user_text};
use haft_permission::ProjectFiles;
use haft_tool::{ATTACHED_FILES_KEY, NoChangeRecords};
use haft_tools::{AttachedFile, attach_files};
use haft_types::{Metadata, ModelProfile, ToolCall};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::calls::call_check::AdmittedCall;
use crate::calls::permit::Opinion;
use crate::calls::progress::ProgressRelay;
use crate::hooks::session_hooks::UnblockedCall;
use crate::names;
use crate::session::Session;
use crate::turn::change_request::{asks_for_change, asks_to_run};
use crate::turn::turn_io::TurnIo;

/// The maximum number of files that are attached to an input.
const MAX_ATTACHED_FILES: usize = 5;
/// The maximum number of words of an input that are looked up as paths.
const MAX_WORDS: usize = 500;

/// The user's input in the form in which it is stored and sent.
pub(crate) struct PreparedInput {
    pub(crate) text: String,
    /// The metadata of the message: the states of the files that are attached whole.
    pub(crate) metadata: Metadata,
}

impl Session {
    /// Returns the user's input with notes on the files that it mentions and, for a small model,
    /// with the files that it names.
    pub(crate) async fn prepare_input(&self, text: &str, io: &mut TurnIo<'_>) -> PreparedInput {
        let files = match self.config.model.profile {
            ModelProfile::Full => Vec::new(),
            ModelProfile::Small => self.attach_named_files(text, io).await,
        };
        let attached: Vec<_> = files.iter().map(to_attached_text).collect();
        let seen: Vec<Value> = files
            .iter()
            .filter_map(|file| self.record_attached(file))
            .collect();
        let mut metadata = Metadata::new();
        if !seen.is_empty() {
            metadata.insert(ATTACHED_FILES_KEY.to_owned(), seen.into());
        }
        PreparedInput {
            text: self.add_mention_notes(text, &attached),
            metadata,
        }
    }

    /// Returns the user's input with notes on the files that it mentions.
    fn add_mention_notes(&self, text: &str, attached: &[AttachedText]) -> String {
        let folder = &self.config.folders.workspace.cwd;
        let tools = self.prompt.registry().known_names();
        let reading = MentionTools {
            read_file: tools.contains(names::READ_TOOL),
            list_files: tools.contains("list_files"),
        };
        append_mentions(
            text,
            self.config.policy.mentions as usize,
            reading,
            attached,
            &|path| mention_kind(&folder.join(path)),
        )
    }

    async fn attach_named_files(&self, text: &str, io: &mut TurnIo<'_>) -> Vec<AttachedFile> {
        let prompt = user_text(text);
        let folder = &self.config.folders.workspace.cwd;
        // A model that sees the program that it should run changes it if it fails.
        if asks_to_run(prompt) && !asks_for_change(prompt, &|path| folder.join(path).is_file()) {
            return Vec::new();
        }
        let words = find_path_words(prompt);
        let files = self
            .attach_readable(words, MAX_ATTACHED_FILES, io.cancel)
            .await;
        let mut permitted = Vec::with_capacity(files.len());
        for file in files {
            if self.hooks_permit_reading(&file, io).await {
                permitted.push(file);
            }
        }
        permitted
    }

    /// Reads the files among `words` that the model could read itself without an approval.
    pub(crate) async fn attach_readable(
        &self,
        words: Vec<String>,
        max: usize,
        cancel: &CancellationToken,
    ) -> Vec<AttachedFile> {
        let Some(reading) = self.prompt.registry().get(names::READ_TOOL) else {
            return Vec::new();
        };
        let call = read_call("");
        let context = self.tool_context(&call, &NoChangeRecords, cancel, &ProgressRelay::new());
        let mut files = attach_files(&context, words, max).await;
        files.retain(|file| {
            let arguments = json!({ "path": file.name });
            self.permit
                .allows_unasked(reading.as_ref(), &arguments, ProjectFiles::Unchanging)
        });
        files
    }

    /// Returns false if a hook blocks the call that would read the file, wants the user to be
    /// asked, or changes the call.
    async fn hooks_permit_reading(&self, file: &AttachedFile, io: &mut TurnIo<'_>) -> bool {
        let Some(tool) = self.prompt.registry().get(names::READ_TOOL) else {
            return false;
        };
        let call = AdmittedCall {
            call: read_call(&file.name),
            tool: Arc::clone(tool),
            arguments: json!({ "path": file.name }),
        };
        match self.run_pre_call_hooks(call, io).await {
            Ok(UnblockedCall {
                opinion: Opinion::None | Opinion::Allow,
                changed: false,
                ..
            }) => true,
            Ok(_) | Err(_) => false,
        }
    }

    /// Records that the model has seen the file, and returns the state to store. Returns `None` if
    /// the model gets only a part of the content, or gets it with masked secrets.
    pub(crate) fn record_attached(&self, file: &AttachedFile) -> Option<Value> {
        let state = file.whole?;
        if self.config.safety.masker.mask(&file.text) != file.text {
            return None;
        }
        self.prompt.reads().record_seen(&file.path, state);
        file.ledger_entry()
    }
}

/// Determines whether `path` is a file or a folder, for mentions in the user's input; `None` if
/// nothing exists at `path`.
pub fn mention_kind(path: &Path) -> Option<MentionKind> {
    let found = std::fs::metadata(path).ok()?;
    Some(if found.is_dir() {
        MentionKind::Folder
    } else {
        MentionKind::File
    })
}

fn read_call(path: &str) -> ToolCall {
    ToolCall {
        id: "attached".to_owned(),
        name: names::READ_TOOL.to_owned(),
        arguments: json!({ "path": path }).to_string(),
        signature: None,
    }
}

fn to_attached_text(file: &AttachedFile) -> AttachedText {
    AttachedText {
        names: vec![file.name.clone()],
        text: file.format(),
    }
}

/// Returns the words of a text that may be paths, in order: words between white space, quotes and
/// punctuation, and the ASCII parts of words in scripts without spaces.
pub(crate) fn find_path_words(text: &str) -> Vec<String> {
    let separates = |c: char| {
        c.is_whitespace() || "\"'`()[]{}<>,;:!?，。；：！？、（）《》「」“”‘’…".contains(c)
    };
    let mut words = Vec::new();
    let mut add = |word: &str| {
        let word = word.trim_start_matches('@').trim_end_matches('.');
        if !word.is_empty() && words.iter().all(|earlier| earlier != word) {
            words.push(word.to_owned());
        }
    };
    for word in text.split(separates).filter(|word| !word.is_empty()) {
        add(word);
        if !word.is_ascii() {
            word.split(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c))
                .for_each(&mut add);
        }
    }
    words.truncate(MAX_WORDS);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_words_are_found_in_any_script() {
        for (text, wanted) in [
            ("Fix stats.py.", vec!["Fix", "stats.py"]),
            (
                "`a.py`'s bug, b/c.rs:12",
                vec!["a.py", "s", "bug", "b/c.rs", "12"],
            ),
            ("见@src/a.rs", vec!["见@src/a.rs", "src/a.rs"]),
            (
                "把jieshao.txt里的",
                vec!["把jieshao.txt里的", "jieshao.txt"],
            ),
            ("看文档.md。", vec!["看文档.md", ".md"]),
            ("@a.rs and a.rs...", vec!["a.rs", "and"]),
        ] {
            assert_eq!(find_path_words(text), wanted, "{text}");
        }
    }
}
