//! What the manuals of tools are written with: the classic names other agents gave them, and their
//! parameters.

use serde_json::{Map, Value};

/// The arguments of a call by a classic name.
pub(crate) type Arguments = Map<String, Value>;

/// Gives a parameter the name it has here. What is there already under that name stays.
pub(crate) fn rename(arguments: &mut Arguments, from: &str, to: &str) {
    if let Some(value) = arguments.shift_remove(from) {
        arguments.entry(to).or_insert(value);
    }
}

/// Takes parameters away that have no meaning here.
pub(crate) fn forget(arguments: &mut Arguments, names: &[&str]) {
    for name in names {
        arguments.shift_remove(*name);
    }
}
