//! Helpers that translate the arguments of calls by tool names of other agents.

use serde_json::{Map, Value};

/// The arguments of a call that uses another agent's tool name.
pub(crate) type Arguments = Map<String, Value>;

/// Renames an argument. An argument that already has the new name wins.
pub(crate) fn rename_argument(arguments: &mut Arguments, from: &str, to: &str) {
    if let Some(value) = arguments.shift_remove(from) {
        arguments.entry(to).or_insert(value);
    }
}

/// Removes arguments that haft's tool does not have.
pub(crate) fn remove_arguments(arguments: &mut Arguments, names: &[&str]) {
    for name in names {
        arguments.shift_remove(*name);
    }
}
