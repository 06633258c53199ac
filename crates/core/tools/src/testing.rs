//! A project in a temporary folder, and implementations of the ports in memory.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use haft_sandbox::Supervisor;
use haft_tool::{
    Added, CallProgress, ChangeUndo, ConversationMessages, DocumentReader, FileHistory, FileState,
    NewUseful, Note, OutputLimits, PortError, ProjectNotes, ReadLedger, Recalled, TodoItem,
    TodoList, TokenCount, Tool, ToolContext, ToolOutput, UndoReport, UndoTarget, UsefulInfo,
    UsefulItem, Workspace,
};
use haft_types::{MarkAction, MarkReport, Timestamp, ToolStatus, TranscriptLine};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{LimitsConfig, Readers, Running};

/// A workspace for running tools.
pub(crate) struct Bench {
    /// The folder to delete afterwards, unless the caller owns it.
    _folder: Option<TempDir>,
    pub(crate) context: ToolContext,
    pub(crate) todo: Arc<MemoryTodo>,
    pub(crate) transcript: Arc<MemoryTranscript>,
    pub(crate) history: Arc<MemoryHistory>,
    pub(crate) progress: Arc<MemoryProgress>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// Creates the project in a file system in memory, if there is one, so that many edits do not
    /// wait for a disk.
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

    /// Creates the project in a folder that is kept.
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
        let todo = Arc::new(MemoryTodo::default());
        let transcript = Arc::new(MemoryTranscript::default());
        let history = Arc::new(MemoryHistory::default());
        let progress = Arc::new(MemoryProgress::default());
        let context = ToolContext {
            workspace: Workspace {
                root: root.clone(),
                extra: Vec::new(),
                cwd: root,
                spill,
                journal,
            },
            readable: None,
            call_id: "call-1".to_owned(),
            cancel: CancellationToken::new(),
            limits: OutputLimits::default(),
            environment: Arc::new(vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            commits: false,
            tools: haft_tool::ALL_TOOL_NAMES
                .into_iter()
                .map(str::to_owned)
                .collect(),
            progress: Arc::<MemoryProgress>::clone(&progress),
            todo: Arc::<MemoryTodo>::clone(&todo),
            reads: Arc::new(MemoryLedger::default()),
            history: Arc::<MemoryHistory>::clone(&history),
            take_back: Arc::<MemoryHistory>::clone(&history),
            useful: Arc::<MemoryUseful>::default(),
            notes: Arc::<MemoryNotes>::default(),
            transcript: Arc::<MemoryTranscript>::clone(&transcript),
            tokens: Arc::new(Words),
            documents: Some(documents()),
            buffers: None,
        };
        Self {
            _folder: folder,
            context,
            todo,
            transcript,
            history,
            progress,
        }
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

    /// Lists every file of the project, so that a test can detect leftovers.
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

#[derive(Default)]
pub(crate) struct MemoryTodo {
    pub(crate) items: Mutex<Vec<TodoItem>>,
    pub(crate) broken: Mutex<bool>,
}

#[async_trait]
impl TodoList for MemoryTodo {
    async fn read(&self) -> Result<Vec<TodoItem>, String> {
        Ok(self.items.lock().unwrap().clone())
    }

    async fn write(&self, items: Vec<TodoItem>) -> Result<(), String> {
        if *self.broken.lock().unwrap() {
            return Err("the disk is full".to_owned());
        }
        *self.items.lock().unwrap() = items;
        Ok(())
    }
}

/// Useful information without merging, which is done by the engine.
#[derive(Default)]
struct MemoryUseful(Mutex<Vec<UsefulItem>>);

#[async_trait]
impl UsefulInfo for MemoryUseful {
    async fn list(&self) -> Result<Vec<UsefulItem>, PortError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn add(&self, new: NewUseful) -> Result<Added, PortError> {
        let NewUseful {
            path,
            start_line,
            end_line,
            description,
        } = new;
        let mut items = self.0.lock().unwrap();
        let item = UsefulItem {
            number: items.len() as u32 + 1,
            path,
            start_line,
            end_line,
            description,
        };
        items.push(item.clone());
        Ok(Added {
            item,
            merged: 0,
            dropped: Vec::new(),
        })
    }

    async fn delete(&self, number: u32) -> Result<UsefulItem, PortError> {
        let mut items = self.0.lock().unwrap();
        let at = items.iter().position(|item| item.number == number);
        at.map(|at| items.remove(at))
            .ok_or_else(|| PortError::Unknown {
                what: "useful information",
                id: number.to_string(),
            })
    }
}

#[derive(Default)]
struct MemoryNotes(Mutex<Vec<Note>>);

impl MemoryNotes {
    fn take(&self, id: &str) -> Result<Note, PortError> {
        let mut notes = self.0.lock().unwrap();
        let at = notes.iter().position(|note| note.id == id);
        at.map(|at| notes.remove(at))
            .ok_or_else(|| PortError::Unknown {
                what: "note",
                id: id.to_owned(),
            })
    }
}

#[async_trait]
impl ProjectNotes for MemoryNotes {
    async fn list(&self) -> Result<Vec<Note>, PortError> {
        Ok(self.0.lock().unwrap().clone())
    }

    async fn add(&self, path: &str, note: &str) -> Result<Note, PortError> {
        let mut notes = self.0.lock().unwrap();
        let id = format!("n{}", notes.len() + 1);
        let note = Note {
            id,
            path: path.to_owned(),
            note: note.to_owned(),
            updated_at: Timestamp::UNIX_EPOCH,
        };
        notes.push(note.clone());
        Ok(note)
    }

    async fn update(&self, id: &str, note: &str) -> Result<Note, PortError> {
        let note = Note {
            note: note.to_owned(),
            ..self.take(id)?
        };
        self.0.lock().unwrap().push(note.clone());
        Ok(note)
    }

    async fn delete(&self, id: &str) -> Result<Note, PortError> {
        self.take(id)
    }
}

/// The conversation of a test.
#[derive(Default)]
pub(crate) struct MemoryTranscript {
    pub(crate) lines: Mutex<Vec<TranscriptLine>>,
    pub(crate) report: Mutex<MarkReport>,
    pub(crate) message: Mutex<Option<Recalled>>,
    pub(crate) asked: Mutex<Vec<(MarkAction, String)>>,
}

#[async_trait]
impl ConversationMessages for MemoryTranscript {
    async fn list(&self) -> Result<Vec<TranscriptLine>, PortError> {
        Ok(self.lines.lock().unwrap().clone())
    }

    async fn mark(&self, action: MarkAction, ids: &str) -> Result<MarkReport, PortError> {
        self.asked.lock().unwrap().push((action, ids.to_owned()));
        Ok(self.report.lock().unwrap().clone())
    }

    async fn recall(&self, id: &str) -> Result<Recalled, PortError> {
        let message = self.message.lock().unwrap().clone();
        message.ok_or_else(|| PortError::Unknown {
            what: "message",
            id: id.to_owned(),
        })
    }
}

#[derive(Default)]
struct MemoryLedger(Mutex<HashMap<PathBuf, FileState>>, Mutex<Vec<PathBuf>>);

impl ReadLedger for MemoryLedger {
    fn last_seen(&self, path: &Path) -> Option<FileState> {
        self.0.lock().unwrap().get(path).copied()
    }

    fn saw(&self, path: &Path, state: FileState) {
        self.0.lock().unwrap().insert(path.to_owned(), state);
    }

    fn name_once(&self, path: &Path) -> bool {
        let mut named = self.1.lock().unwrap();
        let first = !named.iter().any(|one| one == path);
        named.push(path.to_owned());
        first
    }
}

/// Counts words as tokens.
struct Words;

impl TokenCount for Words {
    fn count(&self, text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    fn window(&self) -> u64 {
        1_000
    }
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
    Arc::new(haft_outline::tool())
}

/// Returns all built-in tools, with those of the extensions.
pub(crate) fn builtin() -> Vec<Arc<dyn Tool>> {
    crate::builtin(&running(LimitsConfig::default()))
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

impl CallProgress for MemoryProgress {
    fn show(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

/// Records the files that each call announced as about to change, and those that it reported as
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
    fn save(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.saved.lock().unwrap().extend(
            paths
                .iter()
                .map(|path| (call.to_owned(), path.to_path_buf())),
        );
        Ok(())
    }

    fn changed(&self, call: &str, paths: &[&Path]) -> Result<(), PortError> {
        self.changed.lock().unwrap().extend(
            paths
                .iter()
                .map(|path| (call.to_owned(), path.to_path_buf())),
        );
        Ok(())
    }
}

/// Runs every case in a tool's `fixtures`: with the files of `before`, the call must produce the
/// files of `after` byte for byte, or return `error` and leave the files untouched.
pub(crate) async fn fixtures(name: &str, least: usize, tool: &dyn Tool, call: fn(&Path) -> Value) {
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

/// Returns the name and the bytes of each file.
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
