//! Flags that users of other agents type out of habit, with their equivalents in haft.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns advice for an unknown flag that exists in another agent, if the command takes a task.
pub(crate) fn suggest_equivalent(
    haft: &clap::Command,
    args: &[OsString],
    error: &clap::Error,
) -> Option<String> {
    let command = args
        .first()
        .and_then(|first| haft.find_subcommand(first))
        .map(clap::Command::get_name);
    let is_task = command.is_none_or(|name| name == "run" || name == "chat");
    let ContextValue::String(given) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let flag = given.split('=').next().unwrap_or_default();
    let mut known = include_str!("foreign_flags.txt")
        .lines()
        .filter_map(|line| line.split_once(" = "));
    let (_, here) = known.find(|(name, _)| name.trim_end() == flag)?;
    (is_task && error.kind() == ErrorKind::UnknownArgument)
        .then(|| format!("{}\n", text!("cli-flag", flag, here)))
}
