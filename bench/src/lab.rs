//! The context lab on recorded conversations: how well the simulated caches agree with what providers counted, and
//! what each policy costs by that simulation. Nothing is sent.
//!
//! What it prints are the tables of `docs/context-lab.md`. Conversations are independent: two threads share them, and sums are
//! made in the order of the file, so that the same file gives the same tables.

mod cost;
mod predict;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use haft_model::O200k;

use crate::figures;
use crate::recorded;

use cost::Costs;
use predict::Errors;

/// Threads that replay: as many as the smallest machine this runs on has cores.
const THREADS: usize = 2;

/// Runs both measurements over the conversations of this file.
pub(crate) fn run(path: Option<PathBuf>) -> anyhow::Result<()> {
    let Some(path) = path else {
        figures::line("skipped: set HAFT_TRAJECTORIES to a file of recorded conversations");
        return Ok(());
    };
    let experiments = cost::experiments()?;
    let measured = each(&path, |line| {
        let errors = predict::errors(&recorded::parse(line, &O200k)?);
        Ok((errors, cost::costs(line, &experiments)?))
    })?;
    ensure!(!measured.is_empty(), "`{}` holds no conversation", path.display());
    let mut errors = Errors::default();
    let mut costs = Costs::default();
    for (one, cost) in measured {
        errors.add(one);
        if let Some(cost) = cost {
            costs.add(cost);
        }
    }
    errors.tell();
    costs.tell(&experiments);
    Ok(())
}

/// What `measure` makes of each conversation, in the order of the file.
fn each<T: Send>(path: &Path, measure: impl Fn(&str) -> anyhow::Result<T> + Sync) -> anyhow::Result<Vec<T>> {
    let lines = Mutex::new(recorded::lines(path)?.enumerate());
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
