//! Finds the knowledge folders of a project, and the user's trust in the project.

use std::path::Path;

use haft_engine::Notice;
use haft_project::{KnowledgePaths, TrustList, TrustState};

use crate::error::SetupError;
use crate::places::Places;
use crate::project::Project;

/// Returns the knowledge folders of the project, and the user's trust in it.
pub fn find_knowledge_and_trust(
    places: &Places,
    project: &Project,
) -> Result<(KnowledgePaths, TrustState), SetupError> {
    let trust_state = TrustList::at_path(places.trust_file())
        .trust_state(&project.root)
        .map_err(SetupError::Trust)?;
    let paths = KnowledgePaths {
        root: project.root.clone(),
        cwd: project.cwd.clone(),
        trusted: trust_state.is_trusted(),
        user: places.config.clone(),
        home: places.environment.absolute_home(),
    };
    Ok((paths, trust_state))
}

/// Returns a notice if the project is not trusted and its files are ignored.
pub(crate) fn notice_if_untrusted(trust_state: &TrustState, root: &Path) -> Option<Notice> {
    let why = match trust_state {
        TrustState::Trusted => return None,
        TrustState::Untrusted => "is not trusted".to_owned(),
        TrustState::Changed { files } => {
            format!("is no longer trusted, because {} changed", files.join(", "))
        }
        TrustState::Outdated { files } => {
            let files = files.join(", ");
            format!(
                "has to be trusted again, because trust covers the files that hooks and servers run now ({files})"
            )
        }
    };
    let folder = root.display();
    let message = format!(
        "{folder} {why}: its instruction files (AGENTS.md and the like), configuration, tools and servers are ignored"
    );
    Some(Notice {
        code: "untrusted",
        message,
        failed: false,
    })
}
