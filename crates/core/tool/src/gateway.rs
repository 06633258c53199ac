//! Tools that stand for other tools: those of MCP servers, collections, and deferred tools.

use std::sync::Arc;

use haft_types::Envelope;
use serde_json::Value;

use crate::{CaseDocument, Tool};

/// The effect that a new set of deferred tools has on a tool that describes or calls them.
pub enum DeferralUpdate {
    /// The tool stays as it is.
    Same,
    /// The tool is replaced by this one.
    Replaced(Arc<dyn Tool>),
    /// There is nothing for the tool to describe or call, so it is not offered.
    Useless,
}

/// The interface of a tool that stands for other tools or describes them. The default methods fit a
/// tool that does neither.
pub trait Gateway: Send + Sync {
    /// Returns the list of everything that can be reached through the tool, such as servers or
    /// collections. The model reads the list in a separate section after the tools.
    fn reachable(&self) -> Option<&CaseDocument> {
        None
    }

    /// Returns the text with which the user configured the tool, for a tool whose description
    /// becomes known only while it is used. As long as this text is unchanged, a conversation keeps
    /// the description it read first.
    fn declared_by(&self) -> Option<&str> {
        None
    }

    /// Returns the tool's own arguments for a call that the model made by the name `_name`. Returns
    /// `None` if the tool does not stand for that name.
    fn stand_in_arguments(&self, _name: &str, _arguments: &Value) -> Option<Value> {
        None
    }

    /// Returns the tool limited to the parts with these names. Returns `None` if one of the names
    /// stands for no part of the tool. An existing limit of the tool stays in force.
    fn narrowed(&self, _names: &[String]) -> Option<Arc<dyn Tool>> {
        None
    }

    /// Returns the name of the tool whose calls this tool describes. If that tool is narrowed, this
    /// tool is narrowed as well, even if all of it was selected.
    fn narrowed_with(&self) -> Option<&str> {
        None
    }

    /// Returns the effect that a new set of deferred tools has on this tool.
    fn adapt_to_deferred(&self, _deferred: &[Arc<dyn Tool>]) -> DeferralUpdate {
        DeferralUpdate::Same
    }

    /// Returns the error result for a call that a narrowed tool does not allow; `None` if the call
    /// is allowed. The check precedes the permission check, so no mode, rule or person can allow a
    /// refused call.
    fn refusal(&self, _arguments: &Value) -> Option<Envelope> {
        None
    }
}
