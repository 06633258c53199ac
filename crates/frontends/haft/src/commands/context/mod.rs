//! `haft context`: what was sent, request by request, and what would be sent next.
//!
//! Past requests come from the log and are never guessed: bodies are encoded again with the settings they were sent with.
//! Looking writes nothing; `edit` keeps a list of edits beside the conversation.

mod compact;
mod diff;
mod edit;
mod from_file;
mod logged;
mod next;
mod picture;
#[cfg(feature = "mcp")]
mod quoted;
mod recall;
mod render;
mod replay;
mod report;
mod segments;
mod show;
mod why;
mod words;

#[cfg(feature = "mcp")]
pub(super) use quoted::other_tools;

use crate::cli::ContextCommand;
use crate::exit::Exit;
use crate::wiring;

pub(super) fn run(command: ContextCommand) -> anyhow::Result<Exit> {
    wiring::runtime()?.block_on(async {
        match command {
            ContextCommand::Show(args) => show::run(&args).await,
            ContextCommand::Report(args) => report::run(&args).await,
            ContextCommand::Diff(args) => diff::run(&args).await,
            ContextCommand::Why(args) => why::run(&args).await,
            ContextCommand::Render(args) => render::run(&args).await,
            ContextCommand::Recall(args) => recall::run(&args).await,
            ContextCommand::Compact(args) => compact::run(&args).await,
            ContextCommand::Replay(args) => replay::run(&args).await,
            ContextCommand::Edit(args) => edit::run(&args).await,
        }
    })?;
    Ok(Exit::Completed)
}
