//! Maintains the list of a session's external tools, and the document about them.
//!
//! Invariant: while the provider's cache may hold the prefix, the description of a tool stays as it
//! was sent until the tool's file changes. Help that arrives late does not break the prefix.

use std::collections::HashMap;
use std::path::PathBuf;

use haft_project::external::{self, ExternalTool, Help, ToolFileVersion};
use haft_project::{FileProblem, KnowledgeKind, KnowledgePaths};
use tokio_util::sync::CancellationToken;

use super::ToolHelp;
use crate::prompt::file_stamps::Stamps;

/// Controls whether a help text is shown that arrives after its tool was described without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LateAnswers {
    /// Late help texts are shown now, because no cached prefix can be lost.
    Show,
    /// Late help texts are held back, to keep the cached prefix valid.
    HoldBack,
}

/// A predicate that returns true for the names of built-in tools. It is called only if a file could
/// be a tool, because listing the built-in names requires creating all tools.
pub(crate) type IsBuiltIn = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// The external tools as they were last found.
pub(crate) struct ExternalTools {
    paths: KnowledgePaths,
    help: ToolHelp,
    is_built_in: IsBuiltIn,
    stamps: Stamps,
    tools: Vec<ExternalTool>,
    /// The help texts that were sent to the model, by the path of the tool's file.
    described: HashMap<PathBuf, (ToolFileVersion, Help)>,
    /// Problems with the tools' files that have not been shown to the user yet.
    problems: Vec<FileProblem>,
    document: Option<(String, String)>,
}

impl ExternalTools {
    /// Finds the tools and their cached help. Runs no tool.
    pub(crate) fn new(paths: KnowledgePaths, help: ToolHelp, is_built_in: IsBuiltIn) -> Self {
        let mut shelf = Self {
            paths,
            help,
            is_built_in,
            stamps: Stamps::default(),
            tools: Vec::new(),
            described: HashMap::new(),
            problems: Vec::new(),
            document: None,
        };
        shelf.refresh();
        shelf
    }

    /// Returns the heading and the text of the document about the tools.
    pub(crate) fn document(&self) -> Option<&(String, String)> {
        self.document.as_ref()
    }

    /// Takes the problems that the user has not seen yet.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        self.problems
            .drain(..)
            .map(|problem| problem.to_string())
            .collect()
    }

    /// Finds the tools again if a folder or a tool's file has changed.
    pub(crate) fn refresh(&mut self) {
        if self.stamps.is_unchanged() {
            return;
        }
        let folders = self
            .paths
            .folders_of_kind(KnowledgeKind::Tools)
            .into_iter()
            .map(|folder| folder.path);
        self.stamps = Stamps::new(folders);
        let found = external::load_tools(&self.paths, &*self.is_built_in, &mut self.problems);
        self.tools = found.items;
        self.stamps
            .add(self.tools.iter().map(|tool| tool.path.clone()));
        self.rebuild_document();
    }

    /// Finds the tools again, and runs tools without known help to get it.
    pub(crate) async fn refresh_help(&mut self, late: LateAnswers, cancel: &CancellationToken) {
        self.refresh();
        match late {
            LateAnswers::Show => self.described.clear(),
            LateAnswers::HoldBack => {}
        }
        let new: Vec<_> = self
            .tools
            .iter()
            .filter(|tool| {
                !self
                    .described
                    .get(&tool.path)
                    .is_some_and(|(version, _)| *version == tool.version)
            })
            .cloned()
            .collect();
        if new.is_empty() {
            return;
        }
        self.help.query_tools(&new, cancel).await;
        for tool in new {
            let help = self.help.cached_help(&tool);
            self.described.insert(tool.path, (tool.version, help));
        }
        self.rebuild_document();
    }

    fn rebuild_document(&mut self) {
        let help = |tool: &ExternalTool| match self.described.get(&tool.path) {
            Some((version, help)) if *version == tool.version => help.clone(),
            Some(_) | None => self.help.cached_help(tool),
        };
        let tools: Vec<_> = self
            .tools
            .iter()
            .map(|tool| (tool.clone(), help(tool)))
            .collect();
        self.document = external::render_document(&self.paths, &tools);
    }
}
