//! Measures a built `haft` against the scripted model server and prints every figure beside its goal.
//!
//! `haft-bench startup|turns PATH-TO-HAFT`. `bench/run` builds both in the `dist` profile and runs everything. Nothing here
//! decides a test: a goal that is missed is printed as missed.

mod figures;
mod startup;
mod subject;
mod turns;

use std::path::PathBuf;

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().context("usage: haft-bench startup|turns PATH-TO-HAFT")?;
    let haft = PathBuf::from(arguments.next().context("the path of the haft binary is missing")?);
    let haft = haft.canonicalize().with_context(|| format!("no haft binary at `{}`", haft.display()))?;
    match name.as_str() {
        "startup" => startup::run(&haft),
        "turns" => turns::run(&haft),
        other => bail!("there is no benchmark `{other}`; use startup or turns"),
    }
}
