//! 32 processes write to the same 8 conversations at once. Before that, another one has the right
//! to write to all of them: nobody else is let in, everybody is told who it is, and with its death
//! it is over.

use crate::Outcome;
use crate::kill::{Running, store, wait_until};
use crate::story::Story;
use crate::worker::{Orders, Plan};

const PROCESSES: u64 = 32;
/// Those who are refused first.
const INTRUDERS: u64 = 4;
const CONVERSATIONS: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// `count` is how many messages each process appends; it is one case.
pub(crate) fn run(count: u64, seed: u64) -> Vec<(u64, Outcome)> {
    vec![(seed, crowd(count, seed))]
}

fn crowd(each: u64, seed: u64) -> Outcome {
    let (folder, path) = store(&CONVERSATIONS)?;
    let mut story = Story::of(&CONVERSATIONS);
    let orders = |who: u64, plan: Plan| Orders {
        path: path.clone(),
        seed: seed.wrapping_add(who),
        base: 1 + (who * 100_000) as u32,
        deeds: each as u32,
        plan,
    };
    let told = refusals(&orders)?;
    let mut workers = (0..PROCESSES)
        .map(|who| Running::start(&orders(who, Plan::Crowd)))
        .collect::<Result<Vec<_>, _>>()?;
    for worker in &mut workers {
        let status = worker.finish()?;
        if !status.success() {
            return Err(format!("a process failed: {status}"));
        }
    }
    for worker in workers {
        story.hear(&worker.said()?)?;
    }
    println!(
        "{told:>8} refusals that name the holder\n{:>8} acknowledgements",
        story.acknowledged
    );
    if story.acknowledged != PROCESSES * each {
        return Err(format!(
            "{} of {} appends were acknowledged",
            story.acknowledged,
            PROCESSES * each
        ));
    }
    story
        .check(&path)
        .map_err(|problem| format!("{problem}; kept in {}", folder.keep().display()))
}

/// One process has every conversation, others try to write; gives how often they were told who has
/// it.
fn refusals(orders: &impl Fn(u64, Plan) -> Orders) -> Result<usize, String> {
    let mut holder = [Running::start(&orders(0, Plan::Hold))?];
    wait_until(&mut holder, 1)?;
    let [mut holder] = holder;
    let named = format!("process {} on ", holder.id());
    let start = |who| Running::start(&orders(PROCESSES + who, Plan::Intrude));
    let mut told = 0;
    for intruder in (0..INTRUDERS).map(start).collect::<Result<Vec<_>, _>>()? {
        let said = intruder.said()?;
        told += said.lines().filter(|line| line.contains(&named)).count();
        if said.lines().count() != CONVERSATIONS.len()
            || said.lines().any(|line| !line.contains(&named))
        {
            return Err(format!(
                "{named:?} held everything, and somebody else was told {said:?}"
            ));
        }
    }
    holder.kill()?;
    holder.finish()?;
    Ok(told)
}
