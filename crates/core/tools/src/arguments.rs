//! Translates the arguments of calls that use tool names of other agents.

use serde_json::{Map, Value};

/// The arguments, by name, of a call that is written for another agent's tool.
pub(crate) type Arguments = Map<String, Value>;

/// Renames an argument. If both names exist, the argument with the new name is kept and the other
/// is removed.
pub(crate) fn rename_argument(arguments: &mut Arguments, from: &str, to: &str) {
    if let Some(value) = arguments.shift_remove(from) {
        arguments.entry(to).or_insert(value);
    }
}

/// Removes arguments that haft's tool does not support.
pub(crate) fn remove_arguments(arguments: &mut Arguments, names: &[&str]) {
    for name in names {
        arguments.shift_remove(*name);
    }
}
