//! `haft trust`: whether the files of a folder are obeyed and run.

use std::fmt::Write as _;

use haft_project::{Footprint, Standing, TrustList, footprint};
use haft_types::Clock as _;
use serde_json::json;

use crate::cli::TrustArgs;
use crate::clock::WallClock;
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::project::Project;

pub(super) fn run(args: &TrustArgs) -> anyhow::Result<Exit> {
    let places = Places::from_environment()?;
    let project = Project::find(args.folder.as_deref())?;
    let list = TrustList::at(places.trust_file());
    if args.revoke {
        let had = list.revoke(&project.root)?;
        let said = if had { "is no longer trusted" } else { "was not trusted" };
        output::print(&format!("{} {said}.\n", project.root.display()))?;
    } else if args.show {
        show(&project, &list.standing(&project.root)?, args.json)?;
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
    Ok(Exit::Completed)
}

fn show(project: &Project, standing: &Standing, json: bool) -> anyhow::Result<()> {
    let runs: Vec<_> = Footprint::of(&project.root).files().keys().cloned().collect();
    let obeyed: Vec<_> = footprint::instructions().filter(|name| project.root.join(name).exists()).collect();
    let (word, changed) = match standing {
        Standing::Trusted => ("trusted", &[][..]),
        Standing::Untrusted => ("untrusted", &[][..]),
        Standing::Changed { files } => ("changed", files.as_slice()),
    };
    if json {
        return output::print_json(&json!({
            "path": project.root, "standing": word, "changed": changed, "would_run": runs, "would_obey": obeyed,
        }));
    }
    let mut text = format!("{}: {word}\n", project.root.display());
    for (heading, names) in [
        ("Changed since it was trusted", changed.to_vec()),
        ("Would run", runs),
        ("Would be obeyed", obeyed.into_iter().map(str::to_owned).collect()),
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
    output::print(&haft_text::sanitise(&text))
}
