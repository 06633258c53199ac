//! Holds ARCHITECTURE.md's table of crates against the real dependencies.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// A row of the table.
struct Row {
    folder: String,
    uses: BTreeSet<String>,
}

/// Where each crate lies and what it may use, from the table.
fn table() -> BTreeMap<String, Row> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| folder | crate |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let uses = cells[3].split(',').map(|name| name.trim().to_owned()).filter(|name| name != "–");
            (cells[1].trim_matches('`').to_owned(), Row { folder: cells[0].to_owned(), uses: uses.collect() })
        })
        .collect()
}

/// What each crate may use, from the table.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    table().into_iter().map(|(name, row)| (name, row.uses)).collect()
}

fn short(name: &str) -> &str {
    name.strip_prefix("haft-").unwrap_or(name)
}

fn crates() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let in_crates = |package: &Package| package.manifest_path.components().any(|part| part.as_str() == "crates");
    metadata.packages.into_iter().filter(in_crates).collect()
}

fn uses(package: &Package, wanted: impl Fn(DependencyKind) -> bool) -> BTreeSet<String> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.path.is_some() && wanted(dependency.kind))
        .map(|dependency| short(&dependency.name).to_owned())
        .collect()
}

#[test]
fn dependencies_keep_to_the_table() {
    let allowed = allowed();
    let names: BTreeSet<_> = crates().iter().map(|package| short(&package.name).to_owned()).collect();
    assert_eq!(names, allowed.keys().cloned().collect(), "crates, and rows of the table");
    for package in crates() {
        let name = short(&package.name);
        let real = uses(&package, |kind| kind != DependencyKind::Development);
        let extra: Vec<_> = real.difference(&allowed[name]).collect();
        assert!(extra.is_empty(), "`{name}` uses {extra:?}, which the table does not allow");
    }
}

#[test]
fn crates_lie_in_the_folders_of_the_table() {
    for package in crates() {
        let row = &table()[short(&package.name)];
        let mut folders = package.manifest_path.components().rev().skip(2).map(|part| part.as_str().to_owned());
        let folder = folders.next().filter(|name| name != "crates").unwrap_or_else(|| "–".to_owned());
        assert_eq!(folder, row.folder, "{}", package.name);
    }
}

/// An arrow points from a front end to an extension to the core, never back.
#[test]
fn the_core_knows_no_extension_and_no_front_end() {
    let table = table();
    let height = |name: &str| match table[name].folder.as_str() {
        "core" | "–" => 0,
        "extensions" => 1,
        _ => 2,
    };
    for (name, row) in &table {
        for used in &row.uses {
            assert!(height(used) <= height(name), "`{name}` may not use `{used}`");
        }
    }
}

#[test]
fn the_table_has_no_circle() {
    let mut left = allowed();
    while !left.is_empty() {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, uses)| uses.iter().all(|used| !left.contains_key(used)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!free.is_empty(), "these use each other in a circle: {:?}", left.keys());
        left.retain(|name, _| !free.contains(name));
    }
}

#[test]
fn types_and_context_are_tested_without_the_testkit() {
    for package in crates().iter().filter(|package| ["types", "context"].contains(&short(&package.name))) {
        assert!(!uses(package, |_| true).contains("testkit"), "{}", package.name);
    }
}

#[test]
fn context_is_not_async_and_only_the_binary_uses_anyhow() {
    for package in crates() {
        let has = |name: &str| {
            package
                .dependencies
                .iter()
                .any(|dependency| dependency.name == name && dependency.kind == DependencyKind::Normal)
        };
        assert!(!(["types", "context"].contains(&short(&package.name)) && has("tokio")), "{} uses tokio", package.name);
        assert!(package.name.as_str() == "haft" || !has("anyhow"), "{} uses anyhow", package.name);
    }
}
