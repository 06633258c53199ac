use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::follow_links;
use crate::Workspace;

/// What `contains` must say, component by component, written without the standard library's idea of
/// a prefix.
fn lies_in_by_components(path: &str, root: &str) -> bool {
    fn parts(text: &str) -> Vec<&str> {
        text.split('/').filter(|part| !part.is_empty()).collect()
    }
    let path = parts(path);
    let root = parts(root);
    path.len() >= root.len() && path.iter().zip(&root).all(|(one, other)| one == other)
}

/// Names that look alike, contain one another, or are special somewhere.
const NAMES: [&str; 14] = [
    "a", "ab", "a b", "a.", ".a", "..a", "a..", "...", "A", "é", "e\u{301}", "a\\b", "project",
    "project2",
];

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&NAMES[..]), 0..6)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn workspace_at(root: &str) -> Workspace {
    Workspace {
        root: root.into(),
        extra: Vec::new(),
        cwd: root.into(),
        spill: "/no/spill".into(),
        journal: "/no/journal".into(),
    }
}

/// How many pairs here; the campaign takes a million.
const PAIRS: u32 = 20_000;

#[test]
fn contains_agrees_with_a_reference_by_components() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: PAIRS,
        ..ProptestConfig::default()
    });
    let pairs = (path(), path(), 0_usize..4);
    let checked = runner.run(&pairs, |(one, other, kind)| {
        // Half of the pairs share a beginning: unrelated ones are all alike.
        let (path, root) = match kind {
            0 => (one, other),
            1 => (format!("{}{other}", one.trim_end_matches('/')), one),
            2 => (format!("{one}x{other}"), one),
            _ => (one.clone(), format!("{}{other}", one.trim_end_matches('/'))),
        };
        prop_assert_eq!(
            workspace_at(&root).contains(Path::new(&path)),
            lies_in_by_components(&path, &root),
            "{} in {}",
            path,
            root
        );
        Ok(())
    });
    checked.unwrap();
}

/// What a walk over links must give, by the kernel's own resolution.
fn resolve_with_kernel(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[test]
fn resolve_agrees_with_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    // So deep that no path leads to what others have in the folder for temporary files.
    let top = folder
        .path()
        .canonicalize()
        .unwrap()
        .join("1/2/3/4/5/6/7/8");
    let root = top.join("project");
    for inside in ["a/b/c", "ab", "outside", "a/.git"] {
        fs::create_dir_all(root.join(inside)).unwrap();
    }
    fs::create_dir_all(top.join("elsewhere/deep")).unwrap();
    for (target, link) in [
        ("..", "a/up"),
        ("../../elsewhere", "ab/out"),
        (".", "a/b/here"),
        ("up/up", "a/far"),
        ("a/b", "short"),
        ("loop2", "loop1"),
        ("loop1", "loop2"),
        ("nothing", "dangling"),
        ("../elsewhere/deep/../..", "back"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    let names = [
        "a",
        "b",
        "c",
        "up",
        "ab",
        "out",
        "here",
        "far",
        "short",
        "back",
        "..",
        ".",
        "deep",
        "elsewhere",
        "project",
        ".git",
    ];
    let strategy = proptest::collection::vec(proptest::sample::select(names.to_vec()), 1..7);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: PAIRS / 10,
        ..ProptestConfig::default()
    });
    let checked = runner.run(&strategy, |names| {
        let given = names.join("/");
        let resolved = follow_links(&root, &given).unwrap();
        if let Some(real) = resolve_with_kernel(&root.join(&given)) {
            prop_assert_eq!(&resolved, &real, "{}", given);
        }
        prop_assert!(
            resolved.is_absolute() && resolved.components().all(|part| part.as_os_str() != "..")
        );
        Ok(())
    });
    checked.unwrap();
    assert!(follow_links(&root, "loop1/x").is_err());
    assert_eq!(
        follow_links(&root, "dangling/x").unwrap(),
        root.join("nothing/x")
    );
}
