//! Test helpers: a project in a temporary folder, the values of a session, and implementations of
//! the ports in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_sandbox::Supervisor;
use haft_store::{NewConversation, SqliteStore, Store, StoreConfig};
use haft_testkit::support::FakeClock;
use haft_tool::{
    ChangeUndo, DocumentReader, FileHistory, OutputLimits, PortError, SessionState, Tool,
    ToolContext, ToolOutput, UndoReport, UndoTarget, Workspace,
};
use haft_types::{
    ConversationId, MarkAction, MarkReport, TokenCounter, ToolStatus, TranscriptLine,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    KeptDocument, LimitsConfig, ModelTokens, Readers, Running, StoredNotes, StoredTodo,
    StoredTranscript, StoredUseful, TodoItems,
};

/// A project and a tool context for running tools in tests.
pub(crate) struct Bench {
    /// The folder to delete at the end; `None` if the caller owns it.
    _folder: Option<TempDir>,
    pub(crate) context: ToolContext,
    pub(crate) marking: Arc<MemoryMarking>,
    pub(crate) history: Arc<MemoryHistory>,
    pub(crate) progress: Arc<MemoryProgress>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// Creates the project in memory if the machine has such a file system, so that many edits do
    /// not wait for a disk.
    pub(crate) fn in_memory() -> Self {
        Self::in_folder(
            tempfile::tempdir_in("/dev/shm")
                .or_else(|_| tempfile::tempdir())
                .unwrap(),
        )
    }

    fn in_folder(folder: TempDir) -> Self {
        Self::build(&folder.path().canonicalize().unwrap(), Some(folder))
    }

    /// Creates the project in `base`, which is not deleted.
    #[cfg_attr(test, expect(dead_code, reason = "only the campaigns need it"))]
    pub(crate) fn at(base: &Path) -> Self {
        Self::build(base, None)
    }

    fn build(base: &Path, folder: Option<TempDir>) -> Self {
        let root = base.join("project");
        let spill = base.join("spill");
        let journal = base.join("journal");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&spill).unwrap();
        let history = Arc::new(MemoryHistory::default());
        let progress = Arc::new(MemoryProgress::default());
        let shown = Arc::clone(&progress);
        let context = ToolContext {
            workspace: Workspace {
                root: root.clone(),
                extra: Vec::new(),
                cwd: root,
                spill,
                journal,
            },
            read_filter: None,
            call_id: "call-1".to_owned(),
            cancel: CancellationToken::new(),
            limits: OutputLimits::default(),
            environment: Arc::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            can_commit: false,
            tools: haft_tool::ALL_TOOL_NAMES
                .into_iter()
                .map(str::to_owned)
                .collect(),
            progress: Arc::new(move |text| shown.0.lock().unwrap().push(text)),
            reads: Arc::default(),
            state: SessionState::default().with(Arc::new(words_as_tokens())),
            history: Arc::<MemoryHistory>::clone(&history),
            change_undo: Arc::<MemoryHistory>::clone(&history),
            documents: Some(documents()),
            buffers: None,
        };
        Self {
            _folder: folder,
            context,
            marking: Arc::default(),
            history,
            progress,
        }
    }

    /// Creates a project whose calls belong to a conversation in a store, so that tools can use the
    /// values stored there.
    pub(crate) async fn with_store() -> Self {
        let mut bench = Self::new();
        let clock = Arc::new(FakeClock::default());
        let path = bench.workspace().journal.join("conversations.db");
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&path, &StoreConfig::default(), clock.clone()).unwrap());
        let conversation = ConversationId::new("a");
        store
            .create(NewConversation::new(conversation.clone(), "p"))
            .await
            .unwrap();
        let root = bench.path("");
        let notes = StoredNotes::open(Arc::clone(&store), "p", root, clock);
        let key = TodoItems::KEY;
        let todo = KeptDocument::from_stored(Arc::clone(&store), conversation.clone(), key, None).0;
        let useful = StoredUseful::open(Arc::clone(&store), conversation.clone());
        let (described, edited) = (Arc::clone(&bench.marking), Arc::clone(&bench.marking));
        let transcript = StoredTranscript {
            store: Arc::clone(&store),
            conversation,
            children: Box::new(Vec::new),
            describe: Box::new(move |_| described.lines.lock().unwrap().clone()),
            edit_marks: Box::new(move |action, ids, _| {
                edited.asked.lock().unwrap().push((action, ids));
                let report = edited.report.lock().unwrap().clone();
                Box::pin(async { Ok(report) })
            }),
        };
        bench.context.state = bench
            .context
            .state
            .with(Arc::new(StoredTodo::new(todo)))
            .with(Arc::new(useful.await.unwrap()))
            .with(Arc::new(notes.await.unwrap()))
            .with(Arc::new(transcript));
        bench
    }

    /// Returns a value that the session shares with its tools.
    pub(crate) fn shared<T: std::any::Any + Send + Sync>(&self) -> Arc<T> {
        self.context.state.get().unwrap()
    }

    pub(crate) fn with_limits(mut self, lines: usize, bytes: usize) -> Self {
        self.context.limits = OutputLimits { lines, bytes };
        self
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.context.workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.workspace().root.clone()
        } else {
            self.workspace().root.join(name)
        }
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Lists all files of the project, so that a test can detect leftover files.
    pub(crate) fn files(&self) -> Vec<String> {
        let root = self.path("");
        let mut names: Vec<String> = ignore::WalkBuilder::new(&root)
            .standard_filters(false)
            .build()
            .map(|entry| {
                entry
                    .unwrap()
                    .into_path()
                    .strip_prefix(&root)
                    .unwrap()
                    .display()
                    .to_string()
            })
            .filter(|name| !name.is_empty())
            .collect();
        names.sort();
        names
    }

    pub(crate) async fn run(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        tool.call(&self.context, arguments).await
    }

    /// Runs a call that must succeed.
    pub(crate) async fn ok(&self, tool: &dyn Tool, arguments: Value) -> ToolOutput {
        let output = self.run(tool, arguments).await;
        assert_eq!(
            output.envelope.status,
            ToolStatus::Success,
            "{}",
            output.envelope.text
        );
        output
    }

    /// Runs a call that must fail, and returns its code and message.
    pub(crate) async fn err(&self, tool: &dyn Tool, arguments: Value) -> (String, String) {
        let output = self.run(tool, arguments).await;
        assert_eq!(
            output.envelope.status,
            ToolStatus::Error,
            "{}",
            output.envelope.text
        );
        assert_eq!(output.changes, []);
        let error = output.envelope.error.unwrap();
        (error.code, error.message)
    }
}

/// Prepared answers to questions about the marks of a conversation, and the recorded edits of its
/// marks.
#[derive(Default)]
pub(crate) struct MemoryMarking {
    pub(crate) lines: Mutex<Vec<TranscriptLine>>,
    pub(crate) report: Mutex<MarkReport>,
    pub(crate) asked: Mutex<Vec<(MarkAction, String)>>,
}

/// Returns a counter that counts words as tokens, with a context window of 1,000 tokens.
fn words_as_tokens() -> ModelTokens {
    struct Words;

    impl TokenCounter for Words {
        fn count_text(&self, text: &str) -> u32 {
            text.split_whitespace().count() as u32
        }
    }

    ModelTokens::new(Arc::new(Words), 1.0, 1_000)
}

/// Asserts that a document is stored as `json` and can be read from it, because documents of
/// earlier versions must remain readable.
pub(crate) fn pinned<T>(document: &T, json: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(serde_json::to_value(document).unwrap().to_string(), json);
    assert_eq!(&serde_json::from_str::<T>(json).unwrap(), document);
}

/// Returns a supervisor whose helper is the test program itself.
pub(crate) fn supervisor() -> Arc<Supervisor> {
    Arc::new(Supervisor::for_tests().unwrap())
}

/// Returns the readers of documents. The test program starts itself again to read a PDF file.
pub(crate) fn documents() -> Arc<dyn DocumentReader> {
    Arc::new(haft_documents::FormatReaders::new(supervisor()))
}

pub(crate) fn outline() -> Arc<dyn Tool> {
    Arc::new(haft_outline::define_tool())
}

/// Returns all built-in tools, including those of the extensions.
pub(crate) fn builtin() -> Vec<Arc<dyn Tool>> {
    crate::builtin_tools(&running(LimitsConfig::default()))
}

/// Returns a fresh [`Running`] with the readers of the extensions.
pub(crate) fn running(limits: LimitsConfig) -> Arc<Running> {
    let readers = Readers {
        buffers: None,
        documents: Some(documents()),
        tools: vec![
            Arc::new(haft_changes::apply_patch()),
            Arc::new(haft_changes::undo_edit()),
            outline(),
        ],
    };
    Arc::new(Running::new(supervisor(), limits).with_readers(readers))
}

/// The progress texts that calls reported.
#[derive(Default)]
pub(crate) struct MemoryProgress(pub(crate) Mutex<Vec<String>>);

/// Records the files that each call announced as about to change, and the files that it reported as
/// changed.
#[derive(Default)]
pub(crate) struct MemoryHistory {
    /// The result of the next undo; `None` if there is nothing to undo.
    undoes: Mutex<Option<UndoReport>>,
    pub(crate) asked: Mutex<Vec<(String, UndoTarget)>>,
    pub(crate) saved: Mutex<Vec<(String, PathBuf)>>,
    pub(crate) changed: Mutex<Vec<(String, PathBuf)>>,
}

impl MemoryHistory {
    pub(crate) fn will_undo(&self, report: UndoReport) {
        *self.undoes.lock().unwrap() = Some(report);
    }
}

impl ChangeUndo for MemoryHistory {
    fn undo(&self, call: &str, target: &UndoTarget) -> Result<UndoReport, PortError> {
        self.asked
            .lock()
            .unwrap()
            .push((call.to_owned(), target.clone()));
        let report = self.undoes.lock().unwrap().take();
        report.ok_or_else(|| PortError::Unknown {
            what: "change",
            id: call.to_owned(),
        })
    }
}

impl FileHistory for MemoryHistory {
    fn save_files(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.saved.lock().unwrap().extend(
            paths
                .iter()
                .map(|path| (call.to_owned(), path.to_path_buf())),
        );
        Ok(())
    }

    fn record_changed(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.changed.lock().unwrap().extend(
            paths
                .iter()
                .map(|path| (call.to_owned(), path.to_path_buf())),
        );
        Ok(())
    }
}

/// Runs all cases in a tool's `fixtures` folder: with the files of `before`, the call must produce
/// the files of `after` byte for byte, or return `error` and leave the files untouched.
pub(crate) async fn check_fixtures(
    name: &str,
    least: usize,
    tool: &dyn Tool,
    call: fn(&Path) -> Value,
) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/files")
        .join(name)
        .join("fixtures");
    let mut cases: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(
        cases.len() >= least,
        "only {} fixtures were found",
        cases.len()
    );
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let bench = Bench::new();
        let before = files_below(&case.join("before"));
        for (file, content) in &before {
            bench.write(file, content);
        }
        let output = bench.run(tool, call(&case)).await;
        let after = if case.join("after").exists() {
            assert!(
                output.envelope.error.is_none(),
                "{name}: {}",
                output.envelope.text
            );
            assert_eq!(
                output.envelope.text.contains("white space ignored"),
                name.starts_with("whitespace-fallback"),
                "{name}"
            );
            files_below(&case.join("after"))
        } else {
            let expected = fs::read_to_string(case.join("error")).unwrap_or_default();
            let error = output
                .envelope
                .error
                .unwrap_or_else(|| panic!("{name}: {}", output.envelope.text));
            let message = error
                .message
                .replace(bench.workspace().root.to_str().unwrap(), "/project");
            let message = message.replace(
                bench.workspace().root.parent().unwrap().to_str().unwrap(),
                "/base",
            );
            let told = format!("{}: {message}\n", error.code);
            assert_eq!(told, expected, "{name}");
            before
        };
        assert_eq!(files_below(&bench.path("")), after, "{name}");
    }
}

/// Returns the name and the bytes of each file in a folder.
fn files_below(root: &Path) -> Vec<(String, BString)> {
    let mut files = Vec::new();
    for entry in ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .build()
    {
        let path = entry.unwrap().into_path();
        if !path.is_dir() {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.push((name, BString(fs::read(&path).unwrap())));
        }
    }
    files.sort();
    files
}

/// Bytes that a failed test prints as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BString(Vec<u8>);

impl std::fmt::Debug for BString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl AsRef<[u8]> for BString {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
