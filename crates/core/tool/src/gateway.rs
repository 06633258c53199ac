//! Tools that stand for other tools: those of MCP servers, collections, and deferred tools.

use std::sync::Arc;

use haft_types::Envelope;
use serde_json::Value;

use crate::{CaseDocument, Tool};

/// The effect of a new set of deferred tools on a tool.
pub enum DeferralUpdate {
    /// The tool stays unchanged.
    Same,
    /// The tool is replaced by the contained tool.
    Replaced(Arc<dyn Tool>),
    /// The tool has nothing to describe or call, so it is not offered.
    Useless,
}

/// The interface of a tool that stands for other tools or describes them. The default methods fit a
/// tool that does neither.
pub trait Gateway: Send + Sync {
    /// Returns the list of everything that can be reached through the tool, such as servers or
    /// collections. The list is a section of its own after the tools.
    fn reachable(&self) -> Option<&CaseDocument> {
        None
    }

    /// Returns the user's declaration of the tool, for a tool whose description is learned while it
    /// is used. While the declaration stays the same, a conversation keeps the description it read
    /// first.
    fn declared_by(&self) -> Option<&str> {
        None
    }

    /// Returns the tool's own arguments for a call that the model made by `name`, or `None` if the
    /// tool does not stand for that name.
    fn stand_in_arguments(&self, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }

    /// Returns the tool limited to the parts that `names` stand for, or `None` if a name stands for
    /// no part of the tool. An existing limit of the tool stays in force.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Returns the name of the tool whose calls this tool describes. Narrowing that tool narrows
    /// this tool as well, even if this tool was selected whole.
    fn narrowed_with(&self) -> Option<&str> {
        None
    }

    /// Returns the effect of the deferred tools on a tool that describes or calls them.
    fn with_deferred(&self, _deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        DeferralUpdate::Same
    }

    /// Returns the error result of a call whose arguments are outside the limits of a narrowed
    /// tool. The check precedes permission, so no mode, rule or person can allow such a call.
    fn refusal(&self, _arguments: &Value) -> Option<Envelope> {
        None
    }
}
