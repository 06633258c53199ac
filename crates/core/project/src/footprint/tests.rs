use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn project_with_tools() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".haft/tools/deep")).unwrap();
    fs::write(folder.path().join(".haft/config.toml"), "a").unwrap();
    fs::write(folder.path().join(".haft/tools/deep/run.sh"), "b").unwrap();
    fs::write(folder.path().join("AGENTS.md"), "words").unwrap();
    fs::write(folder.path().join("main.rs"), "code").unwrap();
    folder
}

#[test]
fn footprint_lists_only_files_that_would_run() {
    let folder = project_with_tools();
    let names: Vec<_> = Footprint::read_project(folder.path())
        .files()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, [".haft/config.toml", ".haft/tools/deep/run.sh"]);
}

#[test]
fn footprint_includes_files_other_programs_would_run() {
    let folder = project_with_tools();
    let names = [
        ".autocodertools/x.sh",
        ".agents/skills/a/run.py",
        ".claude/agents/a.md",
        ".auto-coder/autocoderagents/b.md",
    ];
    for name in names {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let found = Footprint::read_project(folder.path());
    assert!(
        names.iter().all(|name| found.files().contains_key(*name)),
        "{:?}",
        found.files().keys()
    );
}

#[test]
fn changed_since_reports_every_change() {
    let folder = project_with_tools();
    let before = Footprint::read_project(folder.path());
    assert!(before.changed_paths_since(before.files()).is_empty());
    fs::write(folder.path().join(".haft/tools/deep/run.sh"), "c").unwrap();
    fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
    fs::remove_file(folder.path().join(".haft/config.toml")).unwrap();
    let changed = Footprint::read_project(folder.path()).changed_paths_since(before.files());
    assert_eq!(
        changed,
        [".haft/config.toml", ".haft/tools/deep/run.sh", ".mcp.json"]
    );
}

#[test]
fn footprint_includes_the_target_of_a_link_and_its_content() {
    let folder = project_with_tools();
    let outside = tempfile::tempdir().unwrap();
    let real = outside.path().join("real.sh");
    fs::write(&real, "one").unwrap();
    symlink(&real, folder.path().join(".haft/tools/link.sh")).unwrap();
    let before = Footprint::read_project(folder.path());
    fs::write(&real, "two").unwrap();
    assert_eq!(
        Footprint::read_project(folder.path())
            .changed_paths_since(before.files())
            .len(),
        1
    );
}

/// Opening a named pipe would block until a process writes to it.
#[test]
fn footprint_does_not_wait_for_pipes_or_follow_loops() {
    let folder = project_with_tools();
    let pipe = folder.path().join(".haft/tools/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    symlink(".", folder.path().join(".haft/tools/loop")).unwrap();
    let found = Footprint::read_project(folder.path());
    assert!(found.files().contains_key(".haft/tools/pipe"));
    assert!(!found.is_complete(), "a link to a folder is never trusted");
}
