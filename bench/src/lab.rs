//! The context lab on recorded conversations and on conversations haft has here: how well the
//! simulated caches agree with what providers counted, and what each policy costs by that
//! simulation. Nothing is sent to anybody.
//!
//! What it prints are the tables of `docs/context-lab.md`. Conversations are independent: two
//! threads share them, and sums are made in the order of the file, so that the same file gives the
//! same tables.

mod catalogue;
mod cost;
mod own;
mod plan;
mod predict;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use haft_imports::ImportFormat;
use haft_model::O200k;

use crate::figures;
use crate::recorded;

use cost::{Costs, Experiments};
use predict::Errors;

/// Threads that replay: as many as the smallest machine this runs on has cores.
const THREADS: usize = 2;

/// Measures the recorded conversations of a file, and those that haft has here, whose exports are
/// kept in the folder.
pub(crate) fn run(path: Option<PathBuf>, own: Option<PathBuf>, haft: &Path) -> anyhow::Result<()> {
    let experiments = cost::experiments()?;
    match path {
        Some(path) => recorded(&path, &experiments)?,
        None => figures::line(
            "recorded: skipped, set HAFT_TRAJECTORIES to a file of recorded conversations",
        ),
    }
    let folder = own::ExportFolder::new(own)?;
    let exports = each(
        own::trees()?.into_iter().enumerate().map(Ok),
        |(number, tree)| match folder.export(haft, *number, tree) {
            Ok(export) => Ok(Some(export)),
            Err(error) => {
                figures::line(&format!(
                    "the conversation about {} was not had: {error}",
                    tree.display()
                ));
                Ok(None)
            }
        },
    )?;
    let exports = || exports.iter().flatten().map(Ok);
    let measured = each(exports(), |export| {
        cost::costs(export, ImportFormat::Document, &experiments)
    })?;
    Costs(measured.into_iter().flatten().collect()).tell("had by haft itself", &experiments);
    let conversations = each(exports(), |export| {
        cost::conversation(export, ImportFormat::Document, cost::REMINDERS)
    })?;
    let conversations: Vec<_> = conversations.into_iter().flatten().collect();
    catalogue::tell("had by haft itself", &conversations, THREADS)
}

/// How good the simulation is, and what the recorded conversations cost.
fn recorded(path: &Path, experiments: &Experiments) -> anyhow::Result<()> {
    let measured = each(
        recorded::lines(path)?.map(|line| Ok(line?)),
        |line: &String| {
            let errors = predict::errors(&recorded::parse(line, &O200k)?);
            Ok((
                errors,
                cost::costs(line, ImportFormat::Trajectory, experiments)?,
            ))
        },
    )?;
    ensure!(
        !measured.is_empty(),
        "`{}` holds no conversation",
        path.display()
    );
    let mut errors = Errors::default();
    let mut costs = Costs::default();
    for (one, cost) in measured {
        errors.add(one);
        costs.0.extend(cost);
    }
    errors.tell();
    costs.tell("recorded", experiments);
    let conversations = each(
        recorded::lines(path)?.map(|line| Ok(line?)),
        |line: &String| cost::conversation(line, ImportFormat::Trajectory, cost::REMINDERS),
    )?;
    let conversations: Vec<_> = conversations.into_iter().flatten().collect();
    catalogue::tell("recorded", &conversations, THREADS)
}

/// What `measure` makes of each conversation, in their order.
fn each<I, T: Send>(
    conversations: impl Iterator<Item = anyhow::Result<I>> + Send,
    measure: impl Fn(&I) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let lines = Mutex::new(conversations.enumerate());
    let next = || lines.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> anyhow::Result<Vec<(usize, T)>> {
        let mut done = Vec::new();
        while let Some((number, line)) = next() {
            done.push((number, measure(&line?)?));
        }
        Ok(done)
    };
    let mut all = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(done) => all.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        anyhow::Ok(all)
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, one)| one).collect())
}
