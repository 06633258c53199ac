//! `haft rag`: collections of documents a model can ask.

mod change;
mod list;
mod query;
mod serve;

use haft_rag::Collection;

use crate::cli::{RagCommand, RagListArgs};
use crate::exit::{Exit, mistake};
use crate::wiring::rag::Rag;

pub(super) fn run(command: Option<RagCommand>) -> anyhow::Result<Exit> {
    match command.unwrap_or_else(|| RagCommand::List(RagListArgs::default())) {
        RagCommand::List(args) => list::run(&args)?,
        RagCommand::Add(args) => change::add(&args)?,
        RagCommand::Remove { name, common } => change::remove(&name, &common)?,
        RagCommand::Query(args) => query::run(&args)?,
        RagCommand::Serve(args) => serve::run(&args)?,
    }
    Ok(Exit::Completed)
}

/// The collection of a name, or which there are.
fn named<'a>(rag: &'a Rag, name: &str) -> anyhow::Result<&'a Collection> {
    rag.collections.iter().find(|one| one.name == name).ok_or_else(|| {
        // What is wrong with it is of more use than that it is not there.
        if let Some(problem) = rag.problems.iter().find(|problem| problem.contains(&format!("`{name}`"))) {
            return mistake(problem.clone());
        }
        let names: Vec<_> = rag.collections.iter().map(|one| format!("`{}`", one.name)).collect();
        let there =
            if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
        mistake(format!("there is no collection `{name}`; {there}; `haft rag add` makes one"))
    })
}
