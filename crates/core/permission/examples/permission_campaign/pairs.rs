//! Whether a path lies in a folder, against a reference by components.

use std::path::Path;

use haft_tool::Workspace;

use crate::random::Random;

/// Names that look alike, contain one another, or are special somewhere.
const NAMES: [&str; 16] = [
    "a",
    "ab",
    "a b",
    "a.",
    ".a",
    "..a",
    "a..",
    "...",
    "A",
    "é",
    "e\u{301}",
    "a\\b",
    "project",
    "project2",
    "a\nb",
    "\u{202e}a",
];

pub(crate) fn disagreements(random: &mut Random, pairs: u64) -> u64 {
    let mut wrong = 0;
    for _ in 0..pairs {
        let one = path(random);
        let other = path(random);
        let joined = |front: &str, back: &str| format!("{}{back}", front.trim_end_matches('/'));
        // Most pairs share a beginning: unrelated ones are all alike.
        let (path, root) = match random.below(5) {
            0 => (one, other),
            1 => (joined(&one, &other), one),
            2 => (format!("{one}x{other}"), one),
            3 => (joined(&one, &other), joined(&one, &path(random))),
            _ => (one.clone(), joined(&one, &other)),
        };
        let workspace = Workspace {
            root: root.clone().into(),
            extra: Vec::new(),
            cwd: root.clone().into(),
            spill: "/no/spill".into(),
            journal: "/no/journal".into(),
        };
        if workspace.contains(Path::new(&path)) != lies_in(&path, &root) {
            println!("DISAGREE {path:?} in {root:?}");
            wrong += 1;
        }
    }
    wrong
}

fn path(random: &mut Random) -> String {
    let mut path = String::new();
    for _ in 0..random.below(6) {
        path.push('/');
        // Two slashes are one.
        if random.percent(10) {
            path.push('/');
        }
        path.push_str(random.of(&NAMES));
    }
    if path.is_empty() {
        "/".to_owned()
    } else {
        path
    }
}

/// Written without the standard library's idea of a path.
fn lies_in(path: &str, root: &str) -> bool {
    fn parts(text: &str) -> Vec<&str> {
        text.split('/').filter(|part| !part.is_empty()).collect()
    }
    let path = parts(path);
    let root = parts(root);
    path.len() >= root.len() && path.iter().zip(&root).all(|(one, other)| one == other)
}
