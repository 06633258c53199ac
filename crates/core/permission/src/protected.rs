//! Files that decide which programs other programs run: no allow rule covers writing to them.

use std::path::Path;

use haft_tool::Workspace;
use haft_types::{PROTECTED_PATHS, STEERING_FILES, matches_listed_name};
use icu_normalizer::ComposingNormalizerBorrowed;

/// Returns the first protected name that occurs in a path whose links are resolved. For a path
/// inside the workspace, the folders above the workspace are ignored.
pub(super) fn find_protected_name_in_workspace(
    workspace: &Workspace,
    path: &Path,
) -> Option<&'static str> {
    let bases = std::iter::once(&workspace.root).chain(&workspace.extra);
    let inside = bases
        .filter_map(|base| path.strip_prefix(base).ok())
        .min_by_key(|inside| inside.as_os_str().len());
    find_protected_name(inside.unwrap_or(path))
}

/// Returns the first protected name that occurs in a path.
pub(super) fn find_protected_name(path: &Path) -> Option<&'static str> {
    let parts: Vec<String> = path
        .components()
        .map(|part| {
            fold_name(&part.as_os_str().to_string_lossy())
                .trim_end_matches(['.', ' '])
                .to_owned()
        })
        .collect();
    PROTECTED_PATHS
        .iter()
        .chain(STEERING_FILES)
        .copied()
        .find(|name| {
            let wanted: Vec<&str> = name.split('/').collect();
            parts.windows(wanted.len()).any(|window| {
                window
                    .iter()
                    .zip(&wanted)
                    .all(|(part, wanted)| matches_listed_name(part, wanted))
            })
        })
}

/// Converts a name to a canonical form, so that two names are equal if any file system treats them
/// as equal: without case, normalized, and without invisible characters.
pub(super) fn fold_name(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let normalised = ComposingNormalizerBorrowed::new_nfkc().normalize(text);
    let visible = normalised.chars().filter(|c| !is_ignored(*c));
    // Upper case first: some letters share an upper-case form but not a lower-case form.
    visible
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// True for characters that some file systems ignore when they compare names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_matches_every_spelling_of_a_name() {
        for path in [
            ".git",
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".GIT/config",
            ".Git",
            ".g\u{200c}it/x",
            ".gi\u{fe0f}t",
            "．git",
            ".ｇｉｔ/config",
            ".git./x",
            ".git /x",
            ".HAFT/config.toml",
            ".mcp.json",
            "a/.MCP.JSON",
            ".BASHRC",
            ".ba\u{17f}hrc",
            ".github/workflows/ci.yml",
            "x/.GitHub/Workflows/y",
            ".vscode/settings.json",
            "Jenkinsfile",
            ".\u{212a}shrc",
            "AGENTS.md",
            "sub/Agents.MD",
            "CLAUDE.md",
            "haft.code-workspace",
            "sub/My.Code-Workspace",
            ".cargo/config.toml",
            "x/.npmrc",
            "rust-toolchain.toml",
            "CODE_LAW.md",
        ] {
            assert!(find_protected_name(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            ".gitignore",
            ".github/CODEOWNERS",
            "git",
            "src/.gitkeep",
            "workflows/ci.yml",
            ".github",
            "src/main.rs",
            "agents/x",
            "docs/agents.mdx",
            ".cargo/registry",
            "cargo/config.toml",
        ] {
            assert_eq!(find_protected_name(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn protected_finds_each_listed_name() {
        for name in PROTECTED_PATHS.iter().chain(STEERING_FILES) {
            let plain = name.replace('*', "x");
            for path in [
                plain.clone(),
                format!("sub/{}", plain.to_uppercase()),
                format!("a/b/{plain}/inside"),
            ] {
                assert!(find_protected_name(Path::new(&path)).is_some(), "{path}");
            }
        }
    }

    /// The names that a review wrote without an approval, and their relatives.
    #[test]
    fn protected_finds_the_names_of_the_review() {
        for path in [
            "lefthook.yaml",
            "lefthook.toml",
            ".lefthook.yml",
            ".devcontainer.json",
            ".gitpod.yml",
            "opencode.json",
            ".opencode/plugin/x.ts",
            ".kiro/hooks/x.json",
            ".qwen/settings.json",
            ".roo/mcp.json",
            "mise.local.toml",
            ".config/mise/config.toml",
            "simple-git-hooks.json",
            ".github/hooks/x.json",
            ".lefthook/pre-commit/x.sh",
            ".lefthook-local.json",
            ".config/lefthook.jsonc",
            "opencode.jsonc",
            ".simple-git-hooks.mjs",
            ".mise/config.toml",
            ".overcommit.yml",
            ".yarn/releases/yarn-4.cjs",
            ".config/systemd/user/x.service",
        ] {
            assert!(find_protected_name(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "src/mise/main.rs",
            ".config/nextest.toml",
            ".yarn/cache/x.zip",
            ".github/dependabot.yml",
            "package.json",
        ] {
            assert_eq!(find_protected_name(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn protected_ignores_folders_above_the_project() {
        let workspace = Workspace {
            root: "/home/me/.claude/work".into(),
            extra: vec!["/srv/.git/tree".into()],
            cwd: "/home/me/.claude/work".into(),
            spill: "/tmp/spill".into(),
            journal: "/tmp/journal".into(),
        };
        assert_eq!(
            find_protected_name_in_workspace(
                &workspace,
                Path::new("/home/me/.claude/work/src/a.rs")
            ),
            None
        );
        assert_eq!(
            find_protected_name_in_workspace(&workspace, Path::new("/srv/.git/tree/a")),
            None
        );
        assert_eq!(
            find_protected_name_in_workspace(
                &workspace,
                Path::new("/home/me/.claude/work/.git/config")
            ),
            Some(".git")
        );
        assert_eq!(
            find_protected_name_in_workspace(&workspace, Path::new("/home/me/.bashrc")),
            Some(".bashrc")
        );
    }
}
