//! Asks the user whether to trust the folder, before haft does anything else there.

use std::io::BufRead;

use haft_agent::{Places, Project, WallClock};
use haft_project::{TrustList, TrustState};
use haft_text::reveal_controls;
use haft_tui::wrap_to_terminal;
use haft_types::Clock as _;

use crate::commands::trust::TrustFootprint;
use crate::output;

/// Asks whether to trust the folder, if that would make a difference. Any answer but yes leaves it
/// untrusted.
pub(super) fn ask_for_trust(
    places: &Places,
    project: &Project,
    answers: &mut impl BufRead,
) -> anyhow::Result<()> {
    let list = TrustList::at_path(places.trust_file());
    let trust_state = list.trust_state(&project.root)?;
    if trust_state == TrustState::Trusted {
        return Ok(());
    }
    let found = TrustFootprint::for_project(places, project);
    if found.is_empty() {
        return Ok(());
    }
    let text = found.describe(project, &trust_state);
    output::print_text(&wrap_to_terminal(&reveal_controls(&format!("{text}\n"))))?;
    haft_tui::wait_and_discard_typed_ahead(std::io::stdin());
    output::print_text(&wrap_to_terminal(&reveal_controls(&format!(
        "{} ",
        text!("trust-question")
    ))))?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    // Several lines at once were pasted, so none of them is an answer.
    if haft_messages::parse_yes_no(&answer) != Some(true)
        || haft_tui::has_pending_line(std::io::stdin())
    {
        return Ok(());
    }
    let trusted = list.trust_and_grant(
        &project.root,
        WallClock.now(),
        found.requested_grants.clone(),
    )?;
    // The content that is trusted must be the content that was shown.
    if trusted.files() != found.footprint.files() {
        list.revoke_trust(&project.root)?;
        output::print_text_line(text!("trust-changed-meanwhile"))?;
    }
    Ok(())
}
