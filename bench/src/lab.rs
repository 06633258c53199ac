//! Runs the context lab on recorded conversations and on conversations that haft has with a
//! scripted model: how well the simulated caches match the providers' counts, and what each policy
//! costs in the simulation. Sends nothing to a provider.
//!
//! The output is the tables of `docs/context-lab.md`. Conversations are independent: two threads
//! share them, and sums are added in file order, so that equal files give equal tables.

mod catalogue;
mod cost;
mod own_sessions;
mod plan;
mod predict;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use haft_imports::ImportFormat;
use haft_model::O200k;

use crate::figures;
use crate::recorded;

use catalogue::UnfairPolicies;
use cost::{Costs, Experiments};
use predict::CorpusErrors;

/// The number of replay threads: the cores of the smallest machine this runs on.
const THREADS: usize = 2;

/// Measures the recorded conversations in the file `path`, and conversations that haft has with a
/// scripted model. The exports of the latter are kept in the folder `own`.
pub(crate) fn run_benchmark(
    path: Option<PathBuf>,
    own: Option<PathBuf>,
    haft: &Path,
) -> anyhow::Result<()> {
    let experiments = cost::build_experiments()?;
    let mut unfair = UnfairPolicies::default();
    match path {
        Some(path) => measure_recorded(&path, &experiments, &mut unfair)?,
        None => figures::print_line(
            "recorded: skipped, set HAFT_TRAJECTORIES to a file of recorded conversations",
        ),
    }
    let folder = own_sessions::ExportFolder::new(own)?;
    let exports = map_parallel(
        own_sessions::find_source_trees()?
            .into_iter()
            .enumerate()
            .map(Ok),
        |(number, tree)| match folder.load_or_run(haft, *number, tree) {
            Ok(export) => Ok(Some(export)),
            Err(error) => {
                figures::print_line(&format!(
                    "the conversation about {} was not had: {error}",
                    tree.display()
                ));
                Ok(None)
            }
        },
    )?;
    let exports = || exports.iter().flatten().map(Ok);
    let measured = map_parallel(exports(), |export| {
        cost::measure_costs(export, ImportFormat::Document, &experiments)
    })?;
    Costs(measured.into_iter().flatten().collect())
        .print_tables("had by haft itself", &experiments);
    let conversations = map_parallel(exports(), |export| {
        cost::read_conversation(export, ImportFormat::Document, cost::REMINDERS)
    })?;
    let conversations: Vec<_> = conversations.into_iter().flatten().collect();
    catalogue::print_tables("had by haft itself", &conversations, THREADS, &mut unfair)
}

/// Prints the errors of the simulation and the costs of the recorded conversations.
fn measure_recorded(
    path: &Path,
    experiments: &Experiments,
    unfair: &mut UnfairPolicies,
) -> anyhow::Result<()> {
    let measured = map_parallel(
        recorded::read_lines(path)?.map(|line| Ok(line?)),
        |line: &String| {
            let errors = predict::predict_session(&recorded::parse_conversation(line, &O200k)?);
            Ok((
                errors,
                cost::measure_costs(line, ImportFormat::Trajectory, experiments)?,
            ))
        },
    )?;
    ensure!(
        !measured.is_empty(),
        "`{}` holds no conversation",
        path.display()
    );
    let mut errors = CorpusErrors::default();
    let mut costs = Costs::default();
    for (one, cost) in measured {
        errors.add(one);
        costs.0.extend(cost);
    }
    errors.print_table();
    costs.print_tables("recorded", experiments);
    let conversations = map_parallel(
        recorded::read_lines(path)?.map(|line| Ok(line?)),
        |line: &String| cost::read_conversation(line, ImportFormat::Trajectory, cost::REMINDERS),
    )?;
    let conversations: Vec<_> = conversations.into_iter().flatten().collect();
    catalogue::print_tables("recorded", &conversations, THREADS, unfair)
}

/// Calls `measure` for each conversation in parallel, and returns the results in order.
fn map_parallel<I, T: Send>(
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
