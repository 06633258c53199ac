//! Circles of imports. A reader of one file must read all of them, so circles stay small.
//!
//! An edge leads from a file to the file that defines the name it uses, through any number of
//! re-exports. A module's use of its own submodules counts; `mod` items and re-exports don't.

use std::collections::{BTreeMap, BTreeSet};

use crate::budgets::sources;

/// Returns the maximum number of files in one circle: 3 in core and 5 elsewhere.
fn largest_circle(crate_folder: &str) -> usize {
    if crate_folder.starts_with("crates/core/") {
        3
    } else {
        5
    }
}

type ModulePath = Vec<String>;

fn split_path(text: &str) -> ModulePath {
    text.split("::")
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Collects the names and the paths that a `use` tree imports.
fn expand_use_tree(before: &[String], tree: &str, found: &mut Vec<(String, ModulePath)>) {
    let Some((head, inside)) = tree.split_once('{') else {
        let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
        let mut path: ModulePath = before.iter().cloned().chain(split_path(path)).collect();
        path.pop_if(|last| last == "self");
        let name = split_path(alias).pop().or_else(|| path.last().cloned());
        found.push((name.unwrap_or_default(), path));
        return;
    };
    let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
    let before: ModulePath = before.iter().cloned().chain(split_path(head)).collect();
    let mut depth = 0;
    let mut start = 0;
    for (at, one) in inside.char_indices() {
        match one {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand_use_tree(&before, &inside[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inside[start..].trim().is_empty() {
        expand_use_tree(&before, &inside[start..], found);
    }
}

/// A name in a file, and the path it stands for.
struct Import {
    name: String,
    path: ModulePath,
    /// True for re-exports.
    is_public: bool,
}

/// The names of its own crate that a file uses: its imports, and paths written out in the code.
#[derive(Default)]
struct Named {
    imports: Vec<Import>,
    written_out: Vec<ModulePath>,
}

/// Returns a path from the root of the crate, or `None` for a path into another crate.
fn absolute_path(
    module: &ModulePath,
    path: &[String],
    modules: &BTreeSet<ModulePath>,
) -> Option<ModulePath> {
    let up = path.iter().take_while(|name| *name == "super").count();
    let inside = |rest: &[String]| module.iter().chain(rest).cloned().collect::<ModulePath>();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some(inside(&path[1..])),
        "super" => Some(
            module[..module.len().saturating_sub(up)]
                .iter()
                .chain(&path[up..])
                .cloned()
                .collect(),
        ),
        _ => modules.contains(&inside(&path[..1])).then(|| inside(path)),
    }
}

/// Returns the tree of the `use` at the end of a piece of code, and true if the `use` is public.
fn parse_use(statement: &str) -> Option<(&str, bool)> {
    let at = statement.rfind("use ")?;
    let before = statement[..at]
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .trim();
    (before.is_empty() || before.starts_with("pub"))
        .then(|| (&statement[at + 4..], !before.is_empty()))
}

fn named_paths(module: &ModulePath, text: &str, modules: &BTreeSet<ModulePath>) -> Named {
    let mut named = Named::default();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    for statement in code.split(';') {
        if let Some((tree, is_public)) = parse_use(statement) {
            let mut found = Vec::new();
            expand_use_tree(&[], tree, &mut found);
            let own = found
                .into_iter()
                .filter_map(|(name, path)| Some((name, absolute_path(module, &path, modules)?)));
            named.imports.extend(own.map(|(name, path)| Import {
                name,
                path,
                is_public,
            }));
        } else {
            let starts = statement
                .match_indices("crate::")
                .chain(statement.match_indices("super::"));
            let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
            let paths = starts
                .map(|(at, _)| split_path(statement[at..].split(end).next().unwrap_or_default()));
            named
                .written_out
                .extend(paths.filter_map(|path| absolute_path(module, &path, modules)));
        }
    }
    named
}

/// Returns the file that defines what `path` names.
fn defining_file(
    path: &[String],
    files: &BTreeMap<ModulePath, Named>,
    depth: u32,
) -> Option<ModulePath> {
    let length = (0..=path.len())
        .rev()
        .find(|length| files.contains_key(&path[..*length]))?;
    let (module, rest) = path.split_at(length);
    let imported = rest.first().and_then(|name| {
        files[module]
            .imports
            .iter()
            .find(|import| import.name == *name)
    });
    match imported {
        Some(import) if depth < 8 => {
            let path: ModulePath = import.path.iter().chain(&rest[1..]).cloned().collect();
            defining_file(&path, files, depth + 1)
        }
        Some(_) | None => Some(module.to_vec()),
    }
}

/// Returns the modules of the same crate that a file needs.
fn needed_modules(
    module: &ModulePath,
    files: &BTreeMap<ModulePath, Named>,
) -> BTreeSet<ModulePath> {
    let Named {
        imports,
        written_out,
    } = &files[module];
    let own = imports
        .iter()
        .filter(|import| !import.is_public)
        .map(|import| &import.path);
    let needed = own
        .chain(written_out)
        .filter_map(|path| defining_file(path, files, 0));
    needed.filter(|file| file != module).collect()
}

/// Returns all modules that can be reached from a module.
fn reachable_modules(
    from: &ModulePath,
    edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>,
) -> BTreeSet<ModulePath> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.clone()];
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
        let Some((folder, file)) = source.path.split_once("/src/") else {
            continue;
        };
        let file = file.trim_end_matches(".rs");
        if file.starts_with("bin/") || file == "main" {
            continue;
        }
        let module = if file == "lib" {
            ModulePath::new()
        } else {
            file.split('/').map(str::to_owned).collect()
        };
        crates
            .entry(folder.to_owned())
            .or_default()
            .insert(module, source.text);
    }
    for (name, files) in crates {
        let modules: BTreeSet<_> = files.keys().cloned().collect();
        let files: BTreeMap<_, _> = files
            .iter()
            .map(|(module, text)| (module.clone(), named_paths(module, text, &modules)))
            .collect();
        let edges: BTreeMap<_, _> = modules
            .iter()
            .map(|module| (module.clone(), needed_modules(module, &files)))
            .collect();
        let all: BTreeMap<_, _> = modules
            .iter()
            .map(|module| (module, reachable_modules(module, &edges)))
            .collect();
        for (module, reach) in &all {
            let circle: Vec<_> = reach
                .iter()
                .filter(|other| all[*other].contains(*module))
                .collect();
            assert!(
                circle.len() <= largest_circle(&name),
                "{name}: {} files need each other: {circle:?}",
                circle.len()
            );
        }
    }
}

#[test]
fn expand_use_tree_resolves_braces() {
    let mut found = Vec::new();
    expand_use_tree(&[], "crate::a::{self, b::{C, D as E}, f}", &mut found);
    let found: Vec<_> = found
        .iter()
        .map(|(name, path)| format!("{name} = {}", path.join("::")))
        .collect();
    assert_eq!(
        found,
        [
            "a = crate::a",
            "C = crate::a::b::C",
            "E = crate::a::b::D",
            "f = crate::a::f"
        ]
    );
}

#[test]
fn needed_modules_follow_reexports_to_the_definition() {
    let files = [
        ("", "pub use a::A;"),
        ("a", "pub use b::A;\nuse crate::c;"),
        ("a/b", "struct A;"),
        ("c", "fn c(a: crate::A) {}"),
        ("d", "mod e;\nuse e::E;"),
        ("d/e", "struct E;"),
    ];
    let files: BTreeMap<ModulePath, &str> = files
        .iter()
        .map(|(file, text)| (split_path(&file.replace('/', "::")), *text))
        .collect();
    let modules: BTreeSet<_> = files.keys().cloned().collect();
    let files: BTreeMap<_, _> = files
        .iter()
        .map(|(module, text)| (module.clone(), named_paths(module, text, &modules)))
        .collect();
    assert_eq!(
        needed_modules(&split_path("c"), &files),
        BTreeSet::from([split_path("a::b")])
    );
    assert_eq!(
        needed_modules(&split_path("a"), &files),
        BTreeSet::from([split_path("c")])
    );
    assert_eq!(
        needed_modules(&split_path("d"), &files),
        BTreeSet::from([split_path("d::e")])
    );
    assert_eq!(needed_modules(&ModulePath::new(), &files), BTreeSet::new());
}
