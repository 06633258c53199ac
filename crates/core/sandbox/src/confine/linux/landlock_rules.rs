//! Confinement by Landlock, for machines without namespaces.
//!
//! A Landlock rule allows actions below a folder, without exceptions. A path is therefore hidden by
//! allowing all of its siblings, and a protected file inside a writable folder stays writable.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};

use super::{ConfinementFailure, ConfinementStep, SandboxPolicy};

/// The devices that every program may expect to write to.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
];
/// The minimum Landlock version: before version 3, a file could be truncated without permission to
/// write.
const MIN_ABI: ABI = ABI::V3;

/// Permanently restricts the calling process and all of its future children to the policy.
pub(crate) fn restrict_with_landlock(policy: &SandboxPolicy) -> Result<(), ConfinementFailure> {
    let unsupported = |_| ConfinementFailure {
        step: ConfinementStep::Landlock,
        errno: libc::EOPNOTSUPP,
    };
    let status = build_rules(policy)
        .and_then(RulesetCreated::restrict_self)
        .map_err(unsupported)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(ConfinementFailure {
            step: ConfinementStep::Landlock,
            errno: libc::EOPNOTSUPP,
        }),
    }
}

/// Returns rules that prevent a command in a namespace from writing to named pipes; a read-only
/// mount does not prevent that. Returns `None` if Landlock is not available; named pipes then stay
/// writable.
pub(super) fn build_pipe_rules(policy: &SandboxPolicy) -> Option<RulesetCreated> {
    let rules = || {
        // Moving files between folders must be handled to be allowed at all.
        let write = AccessFs::WriteFile | AccessFs::Refer;
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(write)?
            .create()?;
        // All of `/dev` is private to the command, and a terminal in it can be found by other names
        // too. The private folder for `/tmp` is most likely hidden by now, so it is not listed.
        let own = ["/tmp", "/var/tmp", "/dev", "/dev/console"].map(PathBuf::from);
        for path in policy.projects.iter().chain(&policy.writable).chain(&own) {
            rules = allow_below(rules, path, write)?;
        }
        Ok::<_, RulesetError>(rules)
    };
    rules().ok()
}

fn build_rules(policy: &SandboxPolicy) -> Result<RulesetCreated, RulesetError> {
    let all = AccessFs::from_all(MIN_ABI);
    let read = AccessFs::ReadFile | AccessFs::Execute;
    let write = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)?
        // Further restrictions of newer kernels.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    // The names of all files can be listed, even those of hidden files.
    rules = allow_below(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    let hidden = collect_hidden_paths(policy);
    // A hidden path inside a readable folder stays hidden.
    let readable = policy
        .readable
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok());
    for path in paths_except_hidden(Path::new("/"), &hidden)
        .into_iter()
        .chain(readable.flat_map(|path| paths_except_hidden(&path, &hidden)))
    {
        rules = allow_below(rules, &path, read)?;
    }
    for path in policy
        .projects
        .iter()
        .chain(&policy.writable)
        .chain([&policy.tmp])
    {
        rules = allow_below(rules, path, write)?;
    }
    for path in DEVICES {
        let device =
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        rules = allow_below(rules, Path::new(path), device)?;
    }
    Ok(rules)
}

/// Allows `access` to `path` and everything below it, if it exists. For a file, only the rights
/// that apply to files are added.
fn allow_below(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(place) = PathFd::new(path) else {
        return Ok(rules);
    };
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(ABI::V6)
    };
    if access.is_empty() {
        Ok(rules)
    } else {
        rules.add_rule(PathBeneath::new(place, access))
    }
}

fn collect_hidden_paths(policy: &SandboxPolicy) -> BTreeSet<PathBuf> {
    // Devices are allowed one by one, so that neither disks nor the user's terminal can be read.
    let devices = PathBuf::from("/dev");
    policy.existing_hidden_paths().chain([devices]).collect()
}

/// Returns paths whose contents together are everything below `below`, except the paths in
/// `hidden`.
fn paths_except_hidden(below: &Path, hidden: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut open = vec![below.to_owned()];
    while let Some(folder) = open.pop() {
        if hidden.contains(&folder) {
            continue;
        }
        // In path order, all entries below a folder directly follow it.
        if !hidden
            .range::<PathBuf, _>(&folder..)
            .next()
            .is_some_and(|next| next.starts_with(&folder))
        {
            all.push(folder);
            continue;
        }
        // A folder that cannot be listed here cannot be read by the command either.
        open.extend(list_without_links(&folder).unwrap_or_default());
    }
    all
}

/// Lists the entries of a folder except links: a link's target is allowed or hidden at its own
/// path.
fn list_without_links(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.filter_map(|entry| {
        let entry = entry.ok()?;
        (!entry.file_type().ok()?.is_symlink()).then(|| entry.path())
    });
    Ok(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_lists_everything_but_hidden_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["a/x", "a/secret/y", "b"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        std::os::unix::fs::symlink("secret", root.join("a/link")).unwrap();
        let hidden = BTreeSet::from([root.join("a/secret")]);
        let all = paths_except_hidden(Path::new("/"), &hidden);
        let mut below: Vec<_> = all
            .iter()
            .filter_map(|path| path.strip_prefix(&root).ok())
            .collect();
        below.sort();
        assert_eq!(below, [Path::new("a/x"), Path::new("b")]);
        assert!(all.contains(&PathBuf::from("/usr")) && !all.contains(&PathBuf::from("/")));
        assert_eq!(
            paths_except_hidden(Path::new("/"), &BTreeSet::new()),
            [PathBuf::from("/")]
        );
        assert_eq!(
            paths_except_hidden(&root.join("a"), &hidden),
            [root.join("a/x")]
        );
    }
}
