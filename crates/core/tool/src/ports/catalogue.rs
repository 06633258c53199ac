//! Tools that are not offered one by one, as `tool_search` finds them.

use std::sync::Arc;

use async_trait::async_trait;
use haft_types::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::deferred::describe_tool;

/// Deferred tools: the model sees little or nothing of them until it searches. They come from
/// sources, such as servers.
#[async_trait]
pub trait ToolCatalogue: Send + Sync {
    /// How to search in it, as a part of the description of `tool_search`.
    fn guide(&self) -> &str;

    /// What one of its sources is called in a message.
    fn source_noun(&self) -> &str;

    /// The names of its sources. Asking for them starts nothing.
    fn sources(&self) -> Vec<String>;

    /// What stands above a tool of this source that was found.
    fn heading(&self, source: &str) -> String;

    /// A tool that was found: name, description, arguments.
    fn describe(&self, tool: &ToolSpec) -> String {
        describe_tool(tool)
    }

    /// The tools of a source; the error says why they cannot be known now.
    async fn tools(
        &self,
        source: &str,
        patience: Patience,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String>;

    /// The tool that calls what is found here, where it can be narrowed: then the catalogue is
    /// narrowed with it.
    fn called_by(&self) -> Option<&str> {
        None
    }

    /// The catalogue, limited to what these names stand for; none where one of them stands for
    /// nothing of it. It is asked only where [`called_by`](Self::called_by) names a tool.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
        None
    }
}

/// How long a source may take to say what its tools are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as its own limits allow: it was asked for by name.
    Full,
    /// A few seconds: others are waited for as well.
    Short,
}
