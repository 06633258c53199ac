//! `haft trust`: whether the files of a folder are trusted.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use haft_agent::{Project, WallClock};
use haft_project::{Footprint, TrustList, TrustState, footprint};
use haft_types::Clock as _;
use serde_json::json;

use crate::exit::ProcessExit;
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The folder; the project around the current one when absent.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Only show whether it is trusted and what it would run.
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Revoke the trust.
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print JSON, with `--show`.
    #[arg(long, requires = "show")]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<ProcessExit> {
    let places = wiring::places()?;
    let project = wiring::project(args.folder.as_deref())?;
    let list = TrustList::at(places.trust_file());
    if args.revoke {
        let had = list.revoke(&project.root)?;
        let said = if had { "is no longer trusted" } else { "was not trusted" };
        output::print(&format!("{} {said}.\n", project.root.display()))?;
    } else if args.show {
        show(&project, &list.state(&project.root)?, args.json)?;
    } else {
        let footprint = list.trust(&project.root, WallClock.now())?;
        let files = footprint.files().len();
        output::print(&format!(
            "{} is trusted. {}\n",
            project.root.display(),
            match files {
                0 => "Nothing in it would run.".to_owned(),
                1 => "One file in it would run; when it changes, the trust ends.".to_owned(),
                files => format!("{files} files in it would run; when one of them changes, the trust ends."),
            }
        ))?;
    }
    Ok(ProcessExit::Completed)
}

fn show(project: &Project, standing: &TrustState, json: bool) -> anyhow::Result<()> {
    let found = TrustFootprint::of(project);
    if json {
        let (word, changed) = told(standing);
        return output::print_json(&json!({
            "path": project.root, "standing": word, "changed": changed, "would_run": found.runs(), "would_obey": found.obeyed,
        }));
    }
    output::print(&found.described(project, standing))
}

fn told(standing: &TrustState) -> (&'static str, &[String]) {
    match standing {
        TrustState::Trusted => ("trusted", &[]),
        TrustState::Untrusted => ("untrusted", &[]),
        TrustState::Changed { files } => ("changed", files),
    }
}

/// What of a folder would run, and which instruction files would be sent, once it is trusted.
pub(super) struct TrustFootprint {
    /// What would run.
    pub(super) footprint: Footprint,
    obeyed: Vec<&'static str>,
}

impl TrustFootprint {
    pub(super) fn of(project: &Project) -> Self {
        let obeyed = footprint::instructions().filter(|name| project.root.join(name).exists()).collect();
        Self { footprint: Footprint::of(&project.root), obeyed }
    }

    /// Whether trust would make no difference.
    pub(super) fn is_nothing(&self) -> bool {
        self.footprint.files().is_empty() && self.obeyed.is_empty()
    }

    fn runs(&self) -> Vec<String> {
        self.footprint.files().keys().cloned().collect()
    }

    /// It as text, not yet safe for a terminal.
    pub(super) fn described(&self, project: &Project, standing: &TrustState) -> String {
        let (word, changed) = told(standing);
        let mut text = format!("{}: {word}\n", project.root.display());
        for (heading, names) in [
            ("Changed since it was trusted", changed.to_vec()),
            ("Would run", self.runs()),
            ("Would be obeyed", self.obeyed.iter().map(|name| (*name).to_owned()).collect()),
        ] {
            if names.is_empty() {
                continue;
            }
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{heading}:");
            for name in names {
                let _ = writeln!(text, "  {name}");
            }
        }
        text
    }
}
