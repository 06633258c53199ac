mod advisories;
mod clusters;
mod commands;
mod commits;
mod files;
mod hosts;
mod modes;
mod names;
mod ordinary;
mod outside;
mod program_options;
mod properties;
mod reading;
mod rules;
mod servers;
mod versions;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use haft_tool::Workspace;
use haft_types::PermissionMode;
use tempfile::TempDir;

use crate::{Confinement, PermissionRules, Permissions, PermissionsConfig};

/// A project with folders, and with links out of the project and within it.
struct Project {
    _folder: TempDir,
    workspace: Workspace,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let root = top.join("project");
        for inside in ["src", "sub", "out", ".git/hooks"] {
            fs::create_dir_all(root.join(inside)).unwrap();
        }
        fs::create_dir_all(top.join("elsewhere")).unwrap();
        symlink(top.join("elsewhere"), root.join("away")).unwrap();
        symlink("..", root.join("sub/up")).unwrap();
        let workspace = Workspace {
            cwd: root.clone(),
            root,
            extra: Vec::new(),
            spill: top.join("spill"),
            journal: top.join("journal"),
        };
        Self {
            _folder: folder,
            workspace,
        }
    }

    fn root(&self) -> &Path {
        &self.workspace.root
    }
}

fn permissions<Text: AsRef<str>>(
    mode: PermissionMode,
    allow: &[Text],
    ask: &[Text],
    deny: &[Text],
) -> Permissions {
    let config = PermissionsConfig {
        mode,
        ..config(allow, ask, deny)
    };
    Permissions {
        mode,
        rules: PermissionRules::load(&config, None).unwrap(),
        confinement: Confinement::None,
    }
}

fn config<Text: AsRef<str>>(allow: &[Text], ask: &[Text], deny: &[Text]) -> PermissionsConfig {
    let owned = |texts: &[Text]| texts.iter().map(|text| text.as_ref().to_owned()).collect();
    PermissionsConfig {
        allow: owned(allow),
        ask: owned(ask),
        deny: owned(deny),
        ..PermissionsConfig::default()
    }
}
