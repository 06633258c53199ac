//! Asks the user whether to trust the folder: once in every new folder, before haft does anything
//! else there, and with `/trust`.

use std::io::BufRead;

use haft_agent::{Places, Project, WallClock, find_knowledge_and_trust};
use haft_engine::ConversationChoice;
use haft_project::{TrustList, TrustState};
use haft_text::reveal_controls;
use haft_tui::{Operation, PickerAction, PickerList, PickerRow, UiMessage, wrap_to_terminal};
use haft_types::Clock as _;

use super::{TuiSession, list_commands};
use crate::commands::trust::TrustFootprint;
use crate::output;

/// A question about trust: the folder's content that was shown to the user.
pub(super) struct TrustQuestion {
    list: TrustList,
    trust_state: TrustState,
    found: TrustFootprint,
}

/// The effect of a yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustOutcome {
    Trusted,
    /// The files changed after they were shown, so the folder is not trusted.
    ChangedMeanwhile,
}

impl TrustQuestion {
    /// Reads what trust would mean for the project.
    pub(super) fn read(places: &Places, project: &Project) -> anyhow::Result<Self> {
        let list = TrustList::at_path(places.trust_file());
        let trust_state = list.trust_state(&project.root)?;
        Ok(Self {
            list,
            trust_state,
            found: TrustFootprint::for_project(places, project),
        })
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trust_state.is_trusted()
    }

    /// Describes what would be read and run. The text is not yet sanitized for a terminal.
    pub(super) fn describe(&self, project: &Project) -> String {
        self.found.describe(project, &self.trust_state)
    }

    /// Trusts the folder, if its content is still the content that was shown.
    pub(super) fn trust(&self, project: &Project) -> anyhow::Result<TrustOutcome> {
        let trusted = self.list.trust_and_grant(
            &project.root,
            WallClock.now(),
            self.found.requested_grants.clone(),
        )?;
        if trusted.files() == self.found.footprint.files() {
            return Ok(TrustOutcome::Trusted);
        }
        self.list.revoke_trust(&project.root)?;
        Ok(TrustOutcome::ChangedMeanwhile)
    }

    /// Records that the user does not trust the folder, so that haft does not ask again at the next
    /// start.
    fn decline(&self, project: &Project) -> anyhow::Result<()> {
        self.list
            .record_declined(&project.root, &self.found.footprint)?;
        Ok(())
    }

    /// Returns the list that asks the question in the interface.
    pub(super) fn choices() -> PickerList {
        let row = |text: &str, then| PickerRow {
            text: text.to_owned(),
            about: String::new(),
            then,
        };
        PickerList {
            title: text!("trust-choice-title").to_owned(),
            rows: vec![
                row(text!("trust-choice-no"), PickerAction::Leave),
                row(
                    text!("trust-choice-yes"),
                    PickerAction::Do(Operation::Trust),
                ),
            ],
            is_question: true,
            ..PickerList::default()
        }
    }
}

/// Asks whether to trust the folder, unless it is trusted or the user has declined before. Any
/// answer but yes leaves it untrusted.
pub(super) fn ask_for_trust(
    places: &Places,
    project: &Project,
    answers: &mut impl BufRead,
) -> anyhow::Result<()> {
    let list = TrustList::at_path(places.trust_file());
    if list.trust_state(&project.root)?.is_trusted() || list.was_declined(&project.root)? {
        return Ok(());
    }
    let question = TrustQuestion::read(places, project)?;
    let text = question.describe(project);
    output::print_text(&wrap_to_terminal(&reveal_controls(&format!("{text}\n"))))?;
    haft_tui::wait_and_discard_typed_ahead(std::io::stdin());
    output::print_text(&wrap_to_terminal(&reveal_controls(&format!(
        "{} ",
        text!("trust-question")
    ))))?;
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    // Several lines at once were pasted, so none of them is an answer.
    if haft_tui::has_pending_line(std::io::stdin()) {
        return Ok(());
    }
    match haft_messages::parse_yes_no(&answer) {
        Some(true) => {}
        // Without an answer, as at the end of the input, haft asks again at the next start.
        None if answer.is_empty() => return Ok(()),
        Some(false) | None => return question.decline(project),
    }
    match question.trust(project)? {
        TrustOutcome::Trusted => {}
        TrustOutcome::ChangedMeanwhile => {
            output::print_text_line(text!("trust-changed-meanwhile"))?;
        }
    }
    Ok(())
}

impl TuiSession<'_> {
    /// Shows what trust in the project would mean, and asks for it.
    pub(super) fn ask_for_trust(&mut self) -> anyhow::Result<()> {
        let question = TrustQuestion::read(&self.settings.places, &self.project)?;
        if question.is_trusted() {
            let folder = self.project.root.display();
            self.show_text(&text!("trust-already", folder));
            return Ok(());
        }
        self.show_text(&reveal_controls(&question.describe(&self.project)));
        self.trust_question = Some(question);
        self.ui
            .send_message(UiMessage::Pick(TrustQuestion::choices()));
        Ok(())
    }

    /// Trusts the project as it was shown, and opens the conversation again, so that the project's
    /// files apply.
    pub(super) async fn trust_project(&mut self) -> anyhow::Result<()> {
        let Some(question) = self.trust_question.take() else {
            return Ok(());
        };
        match question.trust(&self.project)? {
            TrustOutcome::Trusted => {}
            TrustOutcome::ChangedMeanwhile => {
                self.show_text(text!("trust-changed-meanwhile"));
                return Ok(());
            }
        }
        let open = self
            .session
            .as_ref()
            .map(|session| session.conversation().id.to_string());
        self.close_session().await;
        self.sources.stop_servers().await;
        self.paths = find_knowledge_and_trust(&self.settings.places, &self.project)?.0;
        self.sources = self.settings.open_prompt_sources(&self.project)?;
        self.ui.send_message(UiMessage::Names {
            commands: list_commands(&self.paths, &self.sources),
            resources: self.sources.resources(),
        });
        if let Some(id) = open {
            self.open_session(ConversationChoice::Named(id), "").await?;
        }
        let folder = self.project.root.display();
        self.show_text(&text!("trust-taken-up", folder));
        Ok(())
    }
}
