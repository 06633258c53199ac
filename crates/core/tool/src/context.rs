//! The context of a tool call: folders, limits, and the ports to the agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_text::CutLimits;
use tokio_util::sync::CancellationToken;

use crate::ports::{ChangeUndo, DocumentReader, EditorBuffers, FileHistory, NoChangeRecords};
use crate::{ReadLedger, SessionState, ToolNames};

/// The folders that a call may work in. All paths are absolute and free of symbolic links.
#[derive(Clone, Debug)]
pub struct Workspace {
    pub root: PathBuf,
    /// The folders that the user opened with `--add-dir` in addition to the project.
    pub extra: Vec<PathBuf>,
    /// The folder against which relative paths are resolved.
    pub cwd: PathBuf,
    /// A private folder for the full text of outputs of which the model gets only a part.
    pub spill: PathBuf,
    /// A private folder for journals of changes in progress. It must not lie in any of the other
    /// folders.
    pub journal: PathBuf,
}

impl Workspace {
    /// True if a resolved path is inside the project, the spill folder or an added folder.
    pub fn contains(&self, resolved: &Path) -> bool {
        resolved.starts_with(&self.root)
            || resolved.starts_with(&self.spill)
            || self.extra.iter().any(|extra| resolved.starts_with(extra))
    }

    /// Returns the path as people and models should read it: relative to the project if it lies
    /// inside, otherwise absolute.
    pub fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// The maximum size of an output that is sent to the model.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// The maximum number of lines, counting head and tail together.
    pub lines: usize,
    /// The maximum number of bytes, counting head and tail together.
    pub bytes: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            lines: 2_000,
            bytes: 50 * 1024,
        }
    }
}

impl From<OutputLimits> for CutLimits {
    fn from(OutputLimits { lines, bytes }: OutputLimits) -> Self {
        Self { lines, bytes }
    }
}

/// A function that returns true for files that the permission rules allow to be read.
pub type ReadFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A function that shows people a short text about the progress of a call. The model never reads
/// this text. A call should report rarely, because texts that cannot be shown in time are dropped.
pub type CallProgress = Arc<dyn Fn(String) + Send + Sync>;

/// Everything that a call receives in addition to its arguments.
#[derive(Clone)]
pub struct ToolContext {
    pub workspace: Workspace,
    /// The filter that rejects files whose reading is denied by rules; walks over folders skip
    /// these files. `None` if there are no such rules.
    pub read_filter: Option<ReadFilter>,
    pub call_id: String,
    /// The token that fires when the user cancels. The call should end soon afterwards.
    pub cancel: CancellationToken,
    /// The maximum size of an output that is sent to the model.
    pub limits: OutputLimits,
    /// The environment variables for child processes. Variables that child processes must not read,
    /// such as keys, are missing.
    pub environment: Arc<Vec<(String, String)>>,
    /// True if the command of this call may write the repository files that `git add` and `git
    /// commit` write.
    pub can_commit: bool,
    /// The tools that the model has read about. The result of a call must not mention any other
    /// tool.
    pub tools: ToolNames,
    /// The function that shows the call's progress messages to people.
    pub progress: CallProgress,
    /// The states of files when they were last read or written in this conversation.
    pub reads: Arc<ReadLedger>,
    /// The values of the session that its tools share, such as the TODO list.
    pub state: SessionState,
    /// The port that saves files before calls change them.
    pub history: Arc<dyn FileHistory>,
    /// The port that undoes changes of earlier calls.
    pub change_undo: Arc<dyn ChangeUndo>,
    /// The port that extracts the text of documents; `None` if this build has no reader for
    /// documents.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// The unsaved files and the terminals of the user's editor; `None` if no editor is connected.
    pub buffers: Option<Arc<dyn EditorBuffers>>,
}

impl ToolContext {
    /// Creates a context without a session: file changes are not recorded, child processes get no
    /// environment, and a tool that needs a value of the session fails.
    pub fn bare(
        folder: impl Into<PathBuf>,
        call_id: impl Into<String>,
        cancel: CancellationToken,
    ) -> Self {
        let folder = folder.into();
        Self {
            workspace: Workspace {
                spill: folder.clone(),
                journal: folder.clone(),
                cwd: folder.clone(),
                root: folder,
                extra: Vec::new(),
            },
            read_filter: None,
            call_id: call_id.into(),
            cancel,
            limits: OutputLimits::default(),
            environment: Arc::default(),
            can_commit: false,
            tools: ToolNames::default(),
            progress: Arc::new(|_| {}),
            reads: Arc::default(),
            state: SessionState::default(),
            history: Arc::new(NoChangeRecords),
            change_undo: Arc::new(NoChangeRecords),
            documents: None,
            buffers: None,
        }
    }
}
