//! Where tools are found by name.

use std::sync::Arc;

use haft_types::ToolSpec;

use crate::Tool;

/// The tools of one agent, in the order they are offered.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

impl Registry {
    /// Adds a tool; one of the same name is replaced in its place.
    pub fn register(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.spec().name;
        match self.tools.iter_mut().find(|known| known.spec().name == *name) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Takes a tool away and says whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.tools.len();
        self.tools.retain(|tool| tool.spec().name != name);
        self.tools.len() != before
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// All specifications, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Keeps only the tools named, in the registry's own order.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.tools.retain(|tool| keep(&tool.spec().name));
    }
}
