//! Adds and removes entries in haft's own folders. Folders of other programs are never changed.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use haft_agent::WallClock;
use haft_project::{KnowledgeKind, KnowledgePaths, Shadowed, ShadowedBy, TrustList};
use haft_text::NameRule;
use haft_types::Clock;

use super::items::CatalogueListing;
use super::{CatalogueContext, items};
use crate::exit::usage_error;
use crate::output;

/// The maximum size of a text file or of standard input, in bytes.
const MAX_TEXT_BYTES: u64 = 256 * 1024;

/// The maximum number of files in a skill, without `SKILL.md`.
const MAX_SKILL_FILES: usize = 500;

/// The maximum size of a program, and of all files of a skill together, in bytes.
const MAX_PROGRAM_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn add_item(
    kind: KnowledgeKind,
    name: &str,
    file: Option<&Path>,
    user: bool,
    place: &CatalogueContext,
) -> anyhow::Result<()> {
    if !is_valid_name(kind, name) {
        return Err(usage_error(text!("catalogue-bad-name", name)));
    }
    let whole = file.filter(|file| kind == KnowledgeKind::Skills && file.is_dir());
    let described = whole.map(|folder| folder.join("SKILL.md"));
    let content = read_content(kind, described.as_deref().or(file))?;
    let further = whole.map(list_skill_files).transpose()?.unwrap_or_default();
    let folder = if user {
        place.paths.user_folder(kind)
    } else {
        place.paths.project_folder(kind)
    };
    let path = item_path(kind, &folder, name);
    let was_trusted = place.trust_state.is_trusted();
    let existed = folder.is_dir();
    let failed = |error: std::io::Error| {
        usage_error(text!(
            "catalogue-cannot-write",
            path = path.display(),
            error
        ))
    };
    let owner = if user {
        CatalogueOwner::User
    } else {
        CatalogueOwner::Project
    };
    let mut out = owner.create(&path).map_err(failed)?;
    out.write_all(&content)
        .and_then(|()| out.sync_all())
        .map_err(failed)?;
    if kind == KnowledgeKind::Tools && (content.starts_with(b"#!") || path.extension().is_none()) {
        out.set_permissions(fs::Permissions::from_mode(owner.program_mode()))
            .map_err(failed)?;
    }
    drop(out);
    if let (Some(whole), Some(target)) = (whole, path.parent()) {
        copy_files(owner, whole, target, &further).map_err(failed)?;
    }

    // An entry that cannot be used is removed again.
    let checked = items::load_items(
        kind,
        &KnowledgePaths {
            trusted: true,
            ..place.paths.clone()
        },
        place,
    );
    if let Some(what) = find_problem(&checked, &path) {
        if let (false, Some(target)) = (further.is_empty(), path.parent()) {
            // The folder was created above. If it cannot be removed, it stays, and later commands
            // report it.
            let _ = fs::remove_dir_all(target);
        }
        undo_creation(kind, &path, existed);
        let given = file.unwrap_or(Path::new(text!("catalogue-standard-input")));
        return Err(usage_error(text!(
            "catalogue-refused",
            given = given.display(),
            what
        )));
    }
    if !user && was_trusted {
        renew_trust(place)?;
    }
    output::print_text_line(&text!(
        "catalogue-added",
        file = haft_text::sanitize(&place.paths.display_path(&path))
    ))?;
    if !user && !was_trusted {
        output::print_to_stderr(text!("catalogue-added-untrusted"));
    }
    if let Some(Shadowed {
        by: ShadowedBy::File(first),
        ..
    }) = checked.shadowed.iter().find(|one| one.path == path)
    {
        output::print_to_stderr(&text!(
            "catalogue-shadowed",
            shown = place.paths.display_path(first)
        ));
    }
    Ok(())
}

/// Lists the files of a skill except `SKILL.md`, as paths relative to its folder. Links are not
/// followed.
fn list_skill_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    let mut size = 0;
    while let Some(below) = open.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let metadata = entry.path().symlink_metadata()?;
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_file() && path != Path::new("SKILL.md") {
                size += metadata.len();
                found.push(path);
            }
        }
        if found.len() > MAX_SKILL_FILES || size > MAX_PROGRAM_BYTES {
            let most = MAX_PROGRAM_BYTES / 1024 / 1024;
            return Err(usage_error(text!(
                "catalogue-skill-too-large",
                most_files = MAX_SKILL_FILES,
                most
            )));
        }
    }
    found.sort();
    Ok(found)
}

/// The owner of an entry, which determines the permissions of its files.
#[derive(Clone, Copy)]
enum CatalogueOwner {
    /// The user: the file is in haft's own folder, which is private.
    User,
    /// The project: the umask decides, as for every file of a repository.
    Project,
}

impl CatalogueOwner {
    /// Creates a file and its folder. Returns an error if the file exists.
    fn create(self, path: &Path) -> std::io::Result<fs::File> {
        let folder = haft_files::containing_folder(path);
        match self {
            Self::User => {
                haft_files::create_folder(folder)?;
                haft_files::create_new(path)
            }
            Self::Project => {
                fs::create_dir_all(folder)?;
                OpenOptions::new().write(true).create_new(true).open(path)
            }
        }
    }

    fn program_mode(self) -> u32 {
        match self {
            Self::User => 0o700,
            Self::Project => 0o755,
        }
    }
}

fn copy_files(
    owner: CatalogueOwner,
    from: &Path,
    to: &Path,
    files: &[PathBuf],
) -> std::io::Result<()> {
    for file in files {
        let source = from.join(file);
        let target = to.join(file);
        std::io::copy(&mut fs::File::open(&source)?, &mut owner.create(&target)?)?;
        if source.metadata()?.permissions().mode() & 0o100 != 0 {
            fs::set_permissions(&target, fs::Permissions::from_mode(owner.program_mode()))?;
        }
    }
    Ok(())
}

/// Returns the reason why a file that was just written cannot be used, or `None` if it can be used.
fn find_problem(checked: &CatalogueListing, path: &Path) -> Option<String> {
    if let Some(problem) = checked.problems.iter().find(|problem| problem.path == path) {
        return Some(problem.what.clone());
    }
    let shadowed = checked.shadowed.iter().find(|one| one.path == path);
    match shadowed {
        Some(Shadowed {
            by: ShadowedBy::BuiltIn,
            name,
            ..
        }) => Some(text!("catalogue-built-in-name", name)),
        Some(Shadowed {
            by: ShadowedBy::File(_),
            ..
        }) => None,
        None if checked.list.iter().any(|item| item.path == path) => None,
        None => Some(text!("catalogue-bad-ending").to_owned()),
    }
}

pub(super) fn remove_item(
    kind: KnowledgeKind,
    name: &str,
    place: &CatalogueContext,
) -> anyhow::Result<()> {
    let found = items::load_items(kind, &place.paths, place);
    let item = found.find_item(kind, name)?;
    let own = [
        place.paths.project_folder(kind),
        place.paths.user_folder(kind),
    ];
    let shown = place.paths.display_path(&item.path);
    if !own.iter().any(|folder| item.path.starts_with(folder)) {
        return Err(usage_error(text!("catalogue-foreign", name, shown)));
    }
    if kind == KnowledgeKind::Skills {
        let folder = item.path.parent().unwrap_or(&item.path);
        if fs::read_dir(folder)?.count() > 1 {
            let folder = place.paths.display_path(folder);
            return Err(usage_error(text!("catalogue-folder", name, folder)));
        }
    }
    fs::remove_file(&item.path)
        .map_err(|error| usage_error(text!("catalogue-cannot-remove", shown, error)))?;
    if kind == KnowledgeKind::Skills {
        // The folder is empty by now.
        let _ = fs::remove_dir(item.path.parent().unwrap_or(&item.path));
    }
    if item.path.starts_with(&place.paths.root) && place.trust_state.is_trusted() {
        renew_trust(place)?;
    }
    output::print_text_line(&text!(
        "catalogue-removed",
        file = haft_text::sanitize(&shown)
    ))
}

/// Trusts the changed project again, because the user made the change.
fn renew_trust(place: &CatalogueContext) -> anyhow::Result<()> {
    TrustList::at_path(place.settings.places.trust_file())
        .trust_folder(&place.project.root, WallClock.now())?;
    Ok(())
}

fn item_path(kind: KnowledgeKind, folder: &Path, name: &str) -> PathBuf {
    match kind {
        KnowledgeKind::Skills => folder.join(name).join("SKILL.md"),
        KnowledgeKind::Tools => folder.join(name),
        KnowledgeKind::Rules | KnowledgeKind::Agents | KnowledgeKind::Commands => {
            folder.join(format!("{name}.md"))
        }
        KnowledgeKind::Workflows => folder.join(format!("{name}.yaml")),
    }
}

fn undo_creation(kind: KnowledgeKind, path: &Path, folder_existed: bool) {
    // A file that cannot be removed stays, and later commands report it.
    let _ = fs::remove_file(path);
    let above = path.parent().into_iter().flat_map(Path::ancestors);
    let made = usize::from(kind == KnowledgeKind::Skills) + usize::from(!folder_existed);
    for folder in above.take(made) {
        let _ = fs::remove_dir(folder);
    }
}

fn is_valid_name(kind: KnowledgeKind, name: &str) -> bool {
    // A tool is called by its name with the extension.
    let stem = match (kind, name.rsplit_once('.')) {
        (KnowledgeKind::Tools, Some((stem, ending)))
            if ending.chars().all(|c| NameRule::FileStem.allows_char(c)) =>
        {
            stem
        }
        (
            KnowledgeKind::Tools
            | KnowledgeKind::Rules
            | KnowledgeKind::Agents
            | KnowledgeKind::Skills
            | KnowledgeKind::Commands
            | KnowledgeKind::Workflows,
            _,
        ) => name,
    };
    NameRule::FileStem.allows(stem)
}

fn read_content(kind: KnowledgeKind, file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let largest = if kind == KnowledgeKind::Tools {
        MAX_PROGRAM_BYTES
    } else {
        MAX_TEXT_BYTES
    };
    let mut bytes = Vec::new();
    match file {
        Some(path) => {
            let failed =
                |error| usage_error(text!("catalogue-cannot-read", path = path.display(), error));
            fs::File::open(path)
                .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
                .map_err(failed)?;
        }
        None => {
            std::io::stdin().take(largest + 1).read_to_end(&mut bytes)?;
        }
    }
    if bytes.len() as u64 > largest {
        return Err(usage_error(text!(
            "catalogue-too-large",
            largest = largest / 1024
        )));
    }
    if kind != KnowledgeKind::Tools && std::str::from_utf8(&bytes).is_err() {
        return Err(usage_error(text!("catalogue-not-text")));
    }
    if bytes.trim_ascii().is_empty() {
        return Err(usage_error(text!("catalogue-no-text")));
    }
    Ok(bytes)
}
