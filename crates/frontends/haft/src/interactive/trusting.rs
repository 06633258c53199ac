//! Asks whether to trust the folder, before anything else is done there.

use std::io::BufRead;

use haft_agent::{Places, Project, WallClock};
use haft_project::{TrustList, TrustState};
use haft_text::reveal;
use haft_tui::fitted;
use haft_types::Clock as _;

use crate::commands::trust::TrustFootprint;
use crate::output;

/// Asks whether to trust the folder, if that would make a difference. Any answer but yes leaves it
/// untrusted.
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
    // Several lines at once were pasted, so none of them is an answer.
    if haft_messages::agreement(&answer) != Some(true) || haft_tui::has_more(std::io::stdin()) {
        return Ok(());
    }
    let trusted = list.trust_and_grant(&project.root, WallClock.now(), found.asked.clone())?;
    // The content that is trusted must be the content that was shown.
    if trusted.files() != found.footprint.files() {
        list.revoke(&project.root)?;
        output::say(text!("trust-changed-meanwhile"))?;
    }
    Ok(())
}
