//! Catalogues of deferred tools, which `tool_search` searches.

use std::sync::Arc;

use async_trait::async_trait;
use haft_types::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::deferred::describe_tool;

/// A catalogue of deferred tools. The model sees few or none of the tools before it searches the
/// catalogue. The tools come from sources, such as servers.
#[async_trait]
pub trait ToolCatalogue: Send + Sync {
    /// Returns the part of the description of `tool_search` that explains how to search this
    /// catalogue.
    fn guide(&self) -> &str;

    /// Returns the word for a source in messages, such as `server`.
    fn source_noun(&self) -> &str;

    /// Returns the names of the sources without starting any of them.
    fn sources(&self) -> Vec<String>;

    /// Returns the heading for tools of this source in search results.
    fn heading(&self, source: &str) -> String;

    /// Formats the name, description and arguments of a found tool.
    fn describe(&self, tool: &ToolSpec) -> String {
        describe_tool(tool)
    }

    /// Lists the tools of a source. The error is the reason why the tools are not available at the
    /// moment.
    async fn list_tools(
        &self,
        source: &str,
        patience: SourceWait,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String>;

    /// Returns the name of the tool with which the model calls found tools, if that tool can be
    /// narrowed. The catalogue is narrowed together with that tool.
    fn calling_tool(&self) -> Option<&str> {
        None
    }

    /// Returns the catalogue limited to the parts with these names. Returns `None` if one of the
    /// names stands for no part of the catalogue. Called only if
    /// [`calling_tool`](Self::calling_tool) names a tool.
    fn narrow_to(&self, _names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
        None
    }
}

/// The time that a source of tools may take to list its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceWait {
    /// The source may take as long as its own limits allow, because the model asked for the source
    /// by name.
    Full,
    /// The source may take only a few seconds, because all sources are searched.
    Short,
}
