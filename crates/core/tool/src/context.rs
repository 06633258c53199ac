//! What a tool call is given.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_text::CutLimits;
use tokio_util::sync::CancellationToken;

use crate::ports::{ChangeUndo, DocumentReader, EditorBuffers, FileHistory, Unrecorded};
use crate::{ReadLedger, SessionState, ToolNames};

/// The folders a call may work in. All paths are absolute and free of links.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The project's root.
    pub root: PathBuf,
    /// Further folders the user opened with `--add-dir`.
    pub extra: Vec<PathBuf>,
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// A private folder for whole outputs that were too long for the model.
    pub spill: PathBuf,
    /// A private folder, outside of all of these, for notes on changes under way.
    pub journal: PathBuf,
}

impl Workspace {
    /// Whether a resolved path lies in the project or an added folder.
    pub fn contains(&self, resolved: &Path) -> bool {
        resolved.starts_with(&self.root)
            || resolved.starts_with(&self.spill)
            || self.extra.iter().any(|extra| resolved.starts_with(extra))
    }

    /// The path as shown to people and models: relative to the project where it lies inside.
    pub fn display(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

/// How much of an output reaches the model.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// Lines, head and tail together.
    pub lines: usize,
    /// Bytes, head and tail together.
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

/// Whether a file below a folder that is walked through may be read.
pub type ReadFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// Shows people a short text about what a call is doing; the model never reads it. A call shows
/// little and not often, and texts are dropped if they cannot be shown in time.
pub type CallProgress = Arc<dyn Fn(String) + Send + Sync>;

/// Everything a call is given besides its arguments.
#[derive(Clone)]
pub struct ToolContext {
    /// The folders it may work in.
    pub workspace: Workspace,
    /// What rules keep from being read, where there are such rules: who walks through a folder
    /// leaves it out.
    pub readable: Option<ReadFilter>,
    /// The id of the call.
    pub call_id: String,
    /// Fires when the user cancels: the call should end soon.
    pub cancel: CancellationToken,
    /// How much of an output reaches the model.
    pub limits: OutputLimits,
    /// The environment a child process gets, already reduced to what it may see.
    pub environment: Arc<Vec<(String, String)>>,
    /// Whether its command may write what `git add` and `git commit` write of the project's
    /// repository.
    pub commits: bool,
    /// The tools that the model has been told of. A result names no other.
    pub tools: ToolNames,
    /// Where the call shows what it is doing.
    pub progress: CallProgress,
    /// The states of files when they were last read or written in the conversation.
    pub reads: Arc<ReadLedger>,
    /// The other values of the session that its tools share.
    pub state: SessionState,
    /// What files were before calls changed them.
    pub history: Arc<dyn FileHistory>,
    /// Takes back what calls changed.
    pub take_back: Arc<dyn ChangeUndo>,
    /// Takes the text out of documents, where this build reads any.
    pub documents: Option<Arc<dyn DocumentReader>>,
    /// What the user has open and not saved, where an editor says so.
    pub buffers: Option<Arc<dyn EditorBuffers>>,
}

impl ToolContext {
    /// Creates a context without a session: changes of files are not recorded, child processes get
    /// no environment, and a tool that needs a value of the session fails.
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
            readable: None,
            call_id: call_id.into(),
            cancel,
            limits: OutputLimits::default(),
            environment: Arc::default(),
            commits: false,
            tools: ToolNames::default(),
            progress: Arc::new(|_| {}),
            reads: Arc::default(),
            state: SessionState::default(),
            history: Arc::new(Unrecorded),
            take_back: Arc::new(Unrecorded),
            documents: None,
            buffers: None,
        }
    }
}
