//! Where knowledge of a project is looked for, and whether its own files are obeyed.

use std::path::Path;

use haft_engine::Notice;
use haft_project::{Ground, Standing, TrustList};

use crate::error::SetupError;
use crate::places::Places;
use crate::project::Project;

/// Where knowledge of the project is looked for, and how the project stands.
pub fn knowledge(places: &Places, project: &Project) -> Result<(Ground, Standing), SetupError> {
    let standing = TrustList::at(places.trust_file()).standing(&project.root).map_err(SetupError::Trust)?;
    let ground = Ground {
        root: project.root.clone(),
        cwd: project.cwd.clone(),
        obeyed: standing.is_trusted(),
        user: places.config.clone(),
        home: places.environment.absolute_home(),
    };
    Ok((ground, standing))
}

/// One line where the project's own files are not obeyed.
pub(crate) fn untrusted(standing: &Standing, root: &Path) -> Option<Notice> {
    let why = match standing {
        Standing::Trusted => return None,
        Standing::Untrusted => "is not trusted".to_owned(),
        Standing::Changed { files } => format!("is no longer trusted, because {} changed", files.join(", ")),
    };
    let folder = root.display();
    let message = format!(
        "{folder} {why}: its instruction files (AGENTS.md and the like), configuration, tools and servers are ignored"
    );
    Some(Notice { code: "untrusted", message })
}
