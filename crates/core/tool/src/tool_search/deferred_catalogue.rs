//! The deferred tools of a registry as a catalogue whose sources are the groups.

use std::fmt::Write as _;

use async_trait::async_trait;
use haft_types::ToolSpec;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::{Group, SourceWait, Tool, ToolCatalogue};

/// The catalogue of a registry's deferred tools.
pub(super) struct DeferredTools {
    guide: String,
    tools: Vec<(Group, ToolSpec)>,
}

impl DeferredTools {
    pub(super) fn new(tools: &[Arc<dyn Tool>]) -> Self {
        let tools: Vec<_> = tools
            .iter()
            .map(|tool| (tool.manual().group, tool.spec().clone()))
            .collect();
        let mut guide = "Built in, to be called through `use_tool`:".to_owned();
        for group in Group::ALL {
            let names: Vec<_> = tools
                .iter()
                .filter(|(of, _)| *of == group)
                .map(|(_, spec)| spec.name.as_str())
                .collect();
            if !names.is_empty() {
                // Writing to a String cannot fail.
                let _ = write!(guide, " {}: {};", group.name(), names.join(", "));
            }
        }
        guide.pop();
        guide.push('.');
        Self { guide, tools }
    }
}

#[async_trait]
impl ToolCatalogue for DeferredTools {
    fn guide(&self) -> &str {
        &self.guide
    }

    fn source_noun(&self) -> &'static str {
        "group"
    }

    fn sources(&self) -> Vec<String> {
        let has_some = |group: &Group| self.tools.iter().any(|(of, _)| of == group);
        Group::ALL
            .into_iter()
            .filter(has_some)
            .map(|group| group.name().to_owned())
            .collect()
    }

    fn heading(&self, _source: &str) -> String {
        "Through `use_tool`".to_owned()
    }

    /// Descriptions of built-in tools are trusted and never cut.
    fn describe(&self, tool: &ToolSpec) -> String {
        format!(
            "- `{}`: {}\n  arguments: {}",
            tool.name,
            tool.description.trim_end(),
            tool.parameters
        )
    }

    async fn list_tools(
        &self,
        source: &str,
        _patience: SourceWait,
        _cancel: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String> {
        Ok(self
            .tools
            .iter()
            .filter(|(group, _)| group.name() == source)
            .map(|(_, spec)| spec.clone())
            .collect())
    }
}
