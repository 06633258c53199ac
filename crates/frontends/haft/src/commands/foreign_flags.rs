//! Flags that users of other agents type out of habit, and what does the same here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The flag, and what to write for it.
const FLAGS: [(&str, &str); 20] = [
    ("--full-auto", "--permission-mode auto"),
    ("--yes", "--permission-mode auto"),
    ("--yes-always", "--permission-mode auto"),
    ("--yolo", "--permission-mode yolo"),
    ("--dangerously-bypass-approvals-and-sandbox", "--permission-mode yolo"),
    ("--dangerously-skip-permissions", "--permission-mode yolo"),
    ("--ask-for-approval", "--permission-mode MODE"),
    ("--approval-mode", "--permission-mode MODE"),
    ("-a", "--permission-mode MODE"),
    ("--sandbox", "--permission-mode plan"),
    ("-s", "--permission-mode plan"),
    ("--allowedTools", "--allow RULE"),
    ("--disallowedTools", "--deny RULE"),
    ("--message", "haft -p \"PROMPT\""),
    ("--message-file", "haft run <FILE"),
    ("--text", "haft run \"PROMPT\""),
    ("-t", "haft run \"PROMPT\""),
    ("--recipe", "haft run \"/NAME\""),
    ("--format", "--output-format FORMAT"),
    ("--cd", "-C FOLDER"),
];

/// What to say of a flag that nobody knows here, where a task could have stood.
pub(crate) fn advice(haft: &clap::Command, args: &[OsString], error: &clap::Error) -> Option<String> {
    let command = args.first().and_then(|first| haft.find_subcommand(first)).map(clap::Command::get_name);
    let is_task = command.is_none_or(|name| name == "run" || name == "chat");
    let ContextValue::String(given) = error.get(ContextKind::InvalidArg)? else { return None };
    let flag = given.split('=').next().unwrap_or_default();
    let (_, here) = FLAGS.into_iter().find(|(name, _)| *name == flag)?;
    (is_task && error.kind() == ErrorKind::UnknownArgument).then(|| format!("{}\n", text!("cli-flag", flag, here)))
}
