//! The first question in a folder that is not trusted. It is asked before anything else is done
//! there.

use std::io::BufRead;

use haft_agent::{Places, Project, WallClock};
use haft_project::{TrustList, TrustState};
use haft_text::reveal;
use haft_tui::fitted;
use haft_types::Clock as _;

use crate::commands::trust::TrustFootprint;
use crate::output;

/// Asks whether the folder is to be trusted, if that would make a difference. Anything but a yes
/// leaves it as it is.
pub(super) fn settle(
    places: &Places,
    project: &Project,
    answers: &mut impl BufRead,
) -> anyhow::Result<()> {
    let list = TrustList::at(places.trust_file());
    let trust_state = list.state(&project.root)?;
    if trust_state == TrustState::Trusted {
        return Ok(());
    }
    let found = TrustFootprint::of(places, project);
    if found.is_nothing() {
        return Ok(());
    }
    let text = found.described(project, &trust_state);
    output::print(&fitted(&reveal(&format!("{text}\n"))))?;
    haft_tui::discard_typed_ahead(std::io::stdin());
    output::print(&fitted(&reveal(&format!("{} ", text!("trust-question")))))?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    // Several lines at once were pasted: none of them answers.
    if haft_messages::agreement(&answer) != Some(true) || haft_tui::has_more(std::io::stdin()) {
        return Ok(());
    }
    let trusted = list.trust_and_grant(&project.root, WallClock.now(), found.asked.clone())?;
    // What is trusted must be what was shown.
    if trusted.files() != found.footprint.files() {
        list.revoke(&project.root)?;
        output::say(text!("trust-changed-meanwhile"))?;
    }
    Ok(())
}
