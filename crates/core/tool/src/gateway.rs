//! Tools that stand for other tools: those of MCP servers, collections, and deferred tools.

use std::sync::Arc;

use haft_types::Envelope;
use serde_json::Value;

use crate::{CaseDocument, Tool};

/// The effect of a new set of deferred tools on a tool.
pub enum DeferralUpdate {
    /// The tool stays as it is.
    Same,
    /// This tool replaces it.
    Replaced(Arc<dyn Tool>),
    /// There is nothing to use the tool for, so it is not offered.
    Useless,
}

/// The side of a tool that stands for other tools or describes them. Every default is that of a
/// tool that does not.
pub trait Gateway: Send + Sync {
    /// Returns a list of what can be reached through the tool, such as servers or collections. It
    /// is a section of its own behind the tools.
    fn reachable(&self) -> Option<&CaseDocument> {
        None
    }

    /// Returns the user's declaration of the tool, for a tool whose description is learned while it
    /// is used. While the declaration stays the same, a conversation keeps the description it read
    /// first.
    fn declared_by(&self) -> Option<&str> {
        None
    }

    /// Returns the tool's own arguments for a call by the name `name`, which the model used, or
    /// `None` if the tool does not stand for that name.
    fn stand_in(&self, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }

    /// Returns the tool, limited to what `names` stand for, or `None` if one of them stands for
    /// nothing the tool has. A limit that the tool already has stays.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Returns the name of the tool whose calls this one describes. If that tool is narrowed, this
    /// one is narrowed, too, even if it was chosen itself.
    fn narrowed_with(&self) -> Option<&str> {
        None
    }

    /// Returns the effect of the deferred tools on a tool that describes or calls them.
    fn with_deferred(&self, _deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        DeferralUpdate::Same
    }

    /// Returns the error result of a call whose arguments are outside of what the tool was narrowed
    /// to. It is checked before permission, so no mode, rule or person can allow such a call.
    fn refusal(&self, _arguments: &Value) -> Option<Envelope> {
        None
    }
}
