use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".haft/tools/deep")).unwrap();
    fs::write(folder.path().join(".haft/config.toml"), "a").unwrap();
    fs::write(folder.path().join(".haft/tools/deep/run.sh"), "b").unwrap();
    fs::write(folder.path().join("AGENTS.md"), "words").unwrap();
    fs::write(folder.path().join("main.rs"), "code").unwrap();
    folder
}

#[test]
fn it_is_what_would_run_and_nothing_else() {
    let folder = project();
    let names: Vec<_> = Footprint::of(folder.path())
        .files()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, [".haft/config.toml", ".haft/tools/deep/run.sh"]);
}

#[test]
fn what_other_programs_would_run_counts_too() {
    let folder = project();
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
    let found = Footprint::of(folder.path());
    assert!(
        names.iter().all(|name| found.files().contains_key(*name)),
        "{:?}",
        found.files().keys()
    );
}

#[test]
fn every_change_of_what_would_run_is_seen() {
    let folder = project();
    let before = Footprint::of(folder.path());
    assert!(before.changed_since(before.files()).is_empty());
    fs::write(folder.path().join(".haft/tools/deep/run.sh"), "c").unwrap();
    fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
    fs::remove_file(folder.path().join(".haft/config.toml")).unwrap();
    let changed = Footprint::of(folder.path()).changed_since(before.files());
    assert_eq!(
        changed,
        [".haft/config.toml", ".haft/tools/deep/run.sh", ".mcp.json"]
    );
}

#[test]
fn a_link_counts_by_where_it_leads_and_by_what_is_there() {
    let folder = project();
    let outside = tempfile::tempdir().unwrap();
    let real = outside.path().join("real.sh");
    fs::write(&real, "one").unwrap();
    symlink(&real, folder.path().join(".haft/tools/link.sh")).unwrap();
    let before = Footprint::of(folder.path());
    fs::write(&real, "two").unwrap();
    assert_eq!(
        Footprint::of(folder.path())
            .changed_since(before.files())
            .len(),
        1
    );
}

/// Opening a named pipe would block until a process writes to it.
#[test]
fn pipes_and_loops_are_not_waited_for() {
    let folder = project();
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
    let found = Footprint::of(folder.path());
    assert!(found.files().contains_key(".haft/tools/pipe"));
    assert!(!found.is_whole(), "a link to a folder is never trusted");
}
