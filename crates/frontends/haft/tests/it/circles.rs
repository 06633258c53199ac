//! Files that need each other: a reader of one must read them all, so a circle of imports stays small.
//!
//! An edge is a `use` of a module of the same crate. What a module takes from the modules inside it is no edge: that is what they
//! are for.

use std::collections::{BTreeMap, BTreeSet};

use crate::budgets::sources;

/// Files in one circle.
const LARGEST: usize = 4;

type ModulePath = Vec<String>;

/// The paths a `use` names, its braces resolved.
fn expand(before: &[String], tree: &str, found: &mut Vec<ModulePath>) {
    let names =
        |text: &str| text.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let Some((head, inside)) = tree.split_once('{') else {
        let plain: ModulePath = names(tree.split(" as ").next().unwrap_or_default());
        found.push(before.iter().cloned().chain(plain).collect());
        return;
    };
    let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
    let head: ModulePath = names(head);
    let before: ModulePath = before.iter().cloned().chain(head).collect();
    let (mut depth, mut start) = (0, 0);
    for (at, one) in inside.char_indices() {
        match one {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&before, &inside[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        expand(&before, &inside[start..], found);
    }
}

/// The modules of the same crate that a file uses.
fn used(module: &ModulePath, text: &str, modules: &BTreeSet<ModulePath>) -> BTreeSet<ModulePath> {
    let mut paths = Vec::new();
    for statement in text.split("use ").skip(1) {
        let tree = statement.split(';').next().unwrap_or_default();
        if ["crate::", "super::", "self::"].iter().any(|start| tree.starts_with(start)) {
            expand(&[], tree, &mut paths);
        }
    }
    let whole = |path: ModulePath| -> ModulePath {
        let up = path.iter().take_while(|name| *name == "super").count();
        match path.first().map(String::as_str) {
            Some("crate") => path[1..].to_vec(),
            Some("self") => module.iter().chain(&path[1..]).cloned().collect(),
            _ => module[..module.len().saturating_sub(up)].iter().chain(&path[up..]).cloned().collect(),
        }
    };
    let file_of = |path: ModulePath| {
        let lengths = (1..=path.len()).rev();
        lengths.map(|length| path[..length].to_vec()).find(|start| modules.contains(start))
    };
    let files = paths.into_iter().map(whole).filter_map(file_of);
    files.filter(|file| file != module && !file.starts_with(module)).collect()
}

/// What can be reached from a module.
fn reached(from: &ModulePath, edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> BTreeSet<ModulePath> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = open.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

#[test]
fn circles_of_imports_are_small() {
    let mut crates: BTreeMap<String, BTreeMap<ModulePath, String>> = BTreeMap::new();
    for source in sources() {
        let Some((folder, file)) = source.path.split_once("/src/") else { continue };
        let file = file.trim_end_matches(".rs");
        if file.starts_with("bin/") || file == "main" {
            continue;
        }
        let module = if file == "lib" { ModulePath::new() } else { file.split('/').map(str::to_owned).collect() };
        crates.entry(folder.to_owned()).or_default().insert(module, source.text);
    }
    for (name, files) in crates {
        let modules: BTreeSet<_> = files.keys().cloned().collect();
        let edges: BTreeMap<_, _> =
            files.iter().map(|(module, text)| (module.clone(), used(module, text, &modules))).collect();
        let all: BTreeMap<_, _> = modules.iter().map(|module| (module, reached(module, &edges))).collect();
        for (module, reach) in &all {
            let circle: Vec<_> = reach.iter().filter(|other| all[*other].contains(*module)).collect();
            assert!(circle.len() <= LARGEST, "{name}: {} files need each other: {circle:?}", circle.len());
        }
    }
}

#[test]
fn a_use_is_read_with_its_braces() {
    let mut found = Vec::new();
    expand(&[], "crate::a::{self, b::{C, D as E}, f}", &mut found);
    let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::a::self", "crate::a::b::C", "crate::a::b::D", "crate::a::f"]);
}
