//! Measures haft and its context engine, and prints each figure with its goal.
//!
//! `haft-bench pictures PATH-TO-HAFT` draws the documentation's pictures of the terminal interface.
//! `haft-bench startup|turns|tui|sandbox|search|mcp|agents|peers|lab|proxy|pages|acp PATH-TO-HAFT`
//! runs a built `haft` against the scripted model server; `haft-bench
//! assemble|outline|policies|rag|scan|store` need neither. `bench/run` builds both in the `dist`
//! profile and runs everything. No test depends on a figure: a missed goal is printed as missed.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark starts programs of its own"
)]

mod acp;
mod agents;
mod assemble;
mod figures;
mod lab;
mod mcp;
mod model;
mod outline;
mod pages;
mod peers;
mod picture;
mod policies;
mod proxy;
mod rag;
mod recorded;
mod sandbox;
mod scan;
mod search;
mod startup;
mod store;
mod subject;
mod terminal;
mod tui;
mod turns;

use std::path::PathBuf;

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().context(
        "usage: haft-bench startup|turns|tui|sandbox|search|mcp|agents|peers|lab|proxy|pages|acp PATH-TO-HAFT, haft-bench assemble|outline|policies|rag|scan|store",
    )?;
    let mut haft = || -> anyhow::Result<PathBuf> {
        let haft = PathBuf::from(
            arguments
                .next()
                .context("the path of the haft binary is missing")?,
        );
        haft.canonicalize()
            .with_context(|| format!("no haft binary at `{}`", haft.display()))
    };
    match name.as_str() {
        "acp" => acp::run_benchmark(&haft()?),
        "agents" => agents::run_benchmark(&haft()?),
        "startup" => startup::run_benchmark(&haft()?),
        "mcp" => mcp::run_benchmark(&haft()?),
        "turns" => turns::run_benchmark(&haft()?),
        "peers" => peers::run_benchmark(&haft()?),
        "tui" => tui::run_benchmark(&haft()?),
        "pictures" => picture::draw_pictures(
            &haft()?,
            &PathBuf::from(arguments.next().unwrap_or_else(|| "docs".into())),
        ),
        "assemble" => assemble::run_benchmark(),
        "outline" => outline::run_benchmark(),
        "sandbox" => sandbox::run_benchmark(&haft()?),
        "scan" => scan::run_benchmark(),
        "search" => search::run_benchmark(&haft()?),
        "rag" => rag::run_benchmark(),
        "store" => store::run_benchmark(),
        "pages" => pages::run_benchmark(&haft()?),
        "proxy" => proxy::run_benchmark(&haft()?),
        "policies" => {
            policies::run_benchmark(std::env::var_os("HAFT_TRAJECTORIES").map(PathBuf::from))
        }
        "lab" => lab::run_benchmark(
            std::env::var_os("HAFT_TRAJECTORIES").map(PathBuf::from),
            std::env::var_os("HAFT_OWN_SESSIONS").map(PathBuf::from),
            &haft()?,
        ),
        other => {
            bail!(
                "there is no benchmark `{other}`; use startup, turns, tui, mcp, acp, agents, peers, assemble, outline, policies, lab, proxy, pages, rag, sandbox, scan, search or store"
            )
        }
    }
}
