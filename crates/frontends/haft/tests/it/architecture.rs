//! Compares ARCHITECTURE.md and CONTRIBUTING.md with the code: the table of crates with the real
//! dependencies, and every path and identifier that the two pages name with the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// A row of the table.
struct Row {
    folder: String,
    charter: String,
    uses: BTreeSet<String>,
}

/// Returns the row of each crate, by its name.
fn crate_table() -> BTreeMap<String, Row> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(page).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| folder | crate |"))
        .skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let uses = cells[3]
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| name != "–");
            (
                cells[1].trim_matches('`').to_owned(),
                Row {
                    folder: cells[0].to_owned(),
                    charter: cells[2].to_owned(),
                    uses: uses.collect(),
                },
            )
        })
        .collect()
}

/// Returns the allowed dependencies of each crate, from the table.
fn allowed_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    crate_table()
        .into_iter()
        .map(|(name, row)| (name, row.uses))
        .collect()
}

fn short_name(name: &str) -> &str {
    name.strip_prefix("haft-").unwrap_or(name)
}

fn crates() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let in_crates = |package: &Package| {
        package
            .manifest_path
            .components()
            .any(|part| part.as_str() == "crates")
    };
    metadata.packages.into_iter().filter(in_crates).collect()
}

fn workspace_dependencies(
    package: &Package,
    wanted: impl Fn(DependencyKind) -> bool,
) -> BTreeSet<String> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.path.is_some() && wanted(dependency.kind))
        .map(|dependency| short_name(&dependency.name).to_owned())
        .collect()
}

#[test]
fn dependencies_keep_to_the_table() {
    let allowed = allowed_dependencies();
    let names: BTreeSet<_> = crates()
        .iter()
        .map(|package| short_name(&package.name).to_owned())
        .collect();
    assert_eq!(
        names,
        allowed.keys().cloned().collect(),
        "crates, and rows of the table"
    );
    for package in crates() {
        let name = short_name(&package.name);
        let real = workspace_dependencies(&package, |kind| kind != DependencyKind::Development);
        let extra: Vec<_> = real.difference(&allowed[name]).collect();
        assert!(
            extra.is_empty(),
            "`{name}` uses {extra:?}, which the table does not allow"
        );
    }
}

#[test]
fn crates_lie_in_the_folders_of_the_table() {
    for package in crates() {
        let row = &crate_table()[short_name(&package.name)];
        let mut folders = package
            .manifest_path
            .components()
            .rev()
            .skip(2)
            .map(|part| part.as_str().to_owned());
        let folder = folders
            .next()
            .filter(|name| name != "crates")
            .unwrap_or_else(|| "–".to_owned());
        assert_eq!(folder, row.folder, "{}", package.name);
    }
}

/// Front ends may use extensions and the core, and extensions the core, but not the reverse.
#[test]
fn core_uses_no_extension_and_no_front_end() {
    let table = crate_table();
    let height = |name: &str| match table[name].folder.as_str() {
        "core" | "–" => 0,
        "extensions" => 1,
        _ => 2,
    };
    for (name, row) in &table {
        for used in &row.uses {
            assert!(
                height(used) <= height(name),
                "`{name}` may not use `{used}`"
            );
        }
    }
}

#[test]
fn dependencies_have_no_cycle() {
    let mut left = allowed_dependencies();
    while !left.is_empty() {
        let free: Vec<_> = left
            .iter()
            .filter(|(_, uses)| uses.iter().all(|used| !left.contains_key(used)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(
            !free.is_empty(),
            "these use each other in a circle: {:?}",
            left.keys()
        );
        left.retain(|name, _| !free.contains(name));
    }
}

#[test]
fn types_and_context_are_tested_without_the_testkit() {
    for package in crates()
        .iter()
        .filter(|package| ["types", "context"].contains(&short_name(&package.name)))
    {
        assert!(
            !workspace_dependencies(package, |_| true).contains("testkit"),
            "{}",
            package.name
        );
    }
}

#[test]
fn context_is_not_async_and_only_the_binary_uses_anyhow() {
    for package in crates() {
        let has = |name: &str| {
            package.dependencies.iter().any(|dependency| {
                dependency.name == name && dependency.kind == DependencyKind::Normal
            })
        };
        assert!(
            !(["types", "context"].contains(&short_name(&package.name)) && has("tokio")),
            "{} uses tokio",
            package.name
        );
        assert!(
            package.name.as_str() == "haft" || !has("anyhow"),
            "{} uses anyhow",
            package.name
        );
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .unwrap()
}

fn read_page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Returns the texts between backticks, outside code blocks.
fn quoted_names(page: &str) -> Vec<String> {
    let prose: Vec<_> = page.split("\n```").step_by(2).collect();
    let names = prose
        .iter()
        .flat_map(|prose| prose.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// The files of the repository, by their paths from its root.
fn files() -> Vec<String> {
    let root = root();
    let entries = ignore::WalkBuilder::new(&root)
        .hidden(false)
        .build()
        .map(|entry| entry.unwrap().into_path());
    entries
        .filter_map(|path| Some(path.strip_prefix(&root).ok()?.display().to_string()))
        .collect()
}

const PAGES: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

#[test]
fn pages_link_to_files_that_exist() {
    for name in PAGES {
        let text = read_page(name);
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        let missing: Vec<_> = targets
            .filter(|target| !target.starts_with("http"))
            .map(|target| target.split('#').next().unwrap_or_default())
            .filter(|target| !root().join(target).exists())
            .collect();
        assert!(missing.is_empty(), "{name} links to {missing:?}");
    }
}

/// The endings of quoted names that are paths of files.
const FILE_ENDINGS: [&str; 6] = [".rs", ".toml", ".txt", ".md", ".ftl", ".sql"];

/// Files of the projects that haft works in.
const PROJECT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// True for quoted names that are the path of a file of the repository, or the end of such a path.
fn is_file_path(quoted: &str) -> bool {
    let has_file_ending = FILE_ENDINGS.iter().any(|ending| quoted.ends_with(ending));
    let is_path = has_file_ending && !quoted.contains([' ', '(']) || quoted.starts_with("crates/");
    let is_bare_ending = quoted.starts_with('.') && !quoted.contains('/');
    is_path && !is_bare_ending && !quoted.starts_with('/') && !PROJECT_FILES.contains(&quoted)
}

/// True for parts of a path in capitals, which stand for any name.
fn is_placeholder(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or_default();
    stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase())
}

/// True if consecutive parts of `file` match the parts of `path`. A placeholder in `path` matches
/// any name with an equal extension.
fn contains_path(file: &str, path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    let names: Vec<_> = file.split('/').collect();
    names.windows(parts.len()).any(|window| {
        window.iter().zip(&parts).all(|(name, part)| {
            name == part
                || is_placeholder(part)
                    && Path::new(name).extension() == Path::new(part).extension()
        })
    })
}

#[test]
fn pages_name_files_that_exist() {
    let files = files();
    for name in PAGES {
        for path in quoted_names(&read_page(name)) {
            assert!(
                !is_file_path(&path) || files.iter().any(|file| contains_path(file, &path)),
                "{name} names `{path}`"
            );
        }
    }
}

/// A charter names files and folders of its own crate. Files of other crates may have equal names,
/// so a search of the whole repository would accept a name that is outdated.
#[test]
fn charters_name_files_of_their_crate() {
    let files = files();
    let mut checked = 0;
    for (name, row) in crate_table() {
        let folder = match row.folder.as_str() {
            "–" => format!("crates/{name}/"),
            folder => format!("crates/{folder}/{name}/"),
        };
        let own_files: Vec<&str> = files
            .iter()
            .filter_map(|file| file.strip_prefix(folder.as_str()))
            .collect();
        for quoted in quoted_names(&row.charter) {
            if !is_file_path(&quoted) && !quoted.ends_with('/') {
                continue;
            }
            let path = quoted.trim_end_matches('/');
            assert!(
                own_files.iter().any(|file| contains_path(file, path)),
                "the charter of `{name}` names `{quoted}`"
            );
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked} paths");
}

#[test]
fn pages_name_identifiers_that_exist() {
    let package = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../sdk/python/haft"
    ));
    let modules = std::fs::read_dir(package)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| std::fs::read_to_string(path).unwrap());
    let sources: String = crate::budgets::sources()
        .into_iter()
        .map(|source| source.text)
        .chain(modules)
        .collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = sources.split(|c: char| !is_word(c)).collect();
    for name in PAGES {
        for quoted in quoted_names(&read_page(name)) {
            let bare = quoted.trim_end_matches("()").trim_end_matches('!');
            let parts: Vec<_> = bare.split("::").collect();
            let is_type = |part: &&str| {
                part.starts_with(|c: char| c.is_ascii_uppercase())
                    && part.chars().all(is_word)
                    && part.contains(|c: char| c.is_ascii_lowercase())
            };
            let is_constant = |part: &&str| {
                part.contains('_') && part.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            };
            let is_function =
                quoted.ends_with("()") || quoted.contains('_') && bare.chars().all(is_word);
            let names_code =
                parts.iter().any(|part| is_type(part) || is_constant(part)) || is_function;
            if !names_code || !bare.chars().all(|c| is_word(c) || c == ':') {
                continue;
            }
            for part in parts {
                assert!(words.contains(part), "{name} names `{quoted}`");
            }
        }
    }
}

/// The row about commands names the file of each command.
#[test]
fn commands_are_in_the_files_that_the_page_names() {
    let text = read_page("ARCHITECTURE.md");
    let row = text
        .lines()
        .find(|line| line.starts_with("| Where is a command of the command line?"))
        .unwrap();
    let cli = read_page("crates/frontends/haft/src/cli.rs");
    let variants = cli
        .split("enum CliCommand {")
        .nth(1)
        .unwrap()
        .split("\n}\n")
        .next()
        .unwrap();
    let mut checked = 0;
    for line in variants.lines().map(str::trim) {
        let Some((variant, rest)) = line.split_once('(') else {
            continue;
        };
        let module = rest
            .trim_start_matches("Box<")
            .strip_prefix("commands::")
            .and_then(|rest| rest.split("::").next());
        let (Some(module), true) = (module, variant.chars().all(char::is_alphanumeric)) else {
            continue;
        };
        let name = variant.to_lowercase();
        let shared = row
            .split_once(&format!("`{name}`"))
            .is_some_and(|(_, rest)| {
                rest.split("](")
                    .next()
                    .is_some_and(|file| file.ends_with(&format!("[`{module}.rs`")))
            });
        assert!(
            module == name || shared,
            "`haft {name}` is in `{module}.rs`, which the page does not say"
        );
        checked += 1;
    }
    assert!(checked > 30, "{checked} commands");
}

/// Beside the trait, the drawing names the extensions that implement it, and those whose tools and
/// readers the binary registers through it.
#[test]
fn drawing_names_the_extensions_of_the_trait() {
    let text = read_page("ARCHITECTURE.md");
    let drawing = text.split("```").nth(1).unwrap();
    let words: Vec<_> = drawing
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let part = |from: &str, to: &str| {
        let start = words.iter().position(|word| *word == from).unwrap() + 1;
        let length = words[start..].iter().position(|word| *word == to).unwrap();
        words[start..start + length]
            .iter()
            .copied()
            .collect::<BTreeSet<_>>()
    };
    let implementing: Vec<_> = crate::budgets::sources()
        .into_iter()
        .filter(|source| source.text.contains("impl Extension for"))
        .collect();
    let is_registered = |name: &&str| {
        implementing.iter().any(|source| {
            source
                .path
                .starts_with(&format!("crates/extensions/{name}/src/"))
                || source.path.starts_with("crates/frontends/haft/src/wiring/")
                    && source.text.contains(&format!("haft_{name}::"))
        })
    };
    let table = crate_table();
    let extensions = table
        .iter()
        .filter(|(_, row)| row.folder == "extensions")
        .map(|(name, _)| name.as_str());
    let (by_trait, called): (BTreeSet<_>, BTreeSet<_>) = extensions.partition(is_registered);
    assert!(
        by_trait.is_subset(&part("Extension", "called")),
        "registered are {by_trait:?}"
    );
    assert!(
        called.is_subset(&part("binary", "engine")),
        "called are {called:?}"
    );
}

#[test]
fn questions_lead_to_the_definition_they_name() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with("Where is it?"))
        .unwrap();
    // Each area of the section has a table of its own.
    let rows: Vec<_> = section
        .lines()
        .filter(|line| line.starts_with('|'))
        .filter(|line| !line.starts_with("| question |") && !line.starts_with("| ---"))
        .collect();
    assert!(rows.len() >= 200, "{} rows", rows.len());
    for row in rows {
        let cell = row.split(" | ").nth(1).unwrap();
        let name = cell.split('`').nth(1).unwrap();
        let path = cell.split(['(', ')']).nth(1).unwrap();
        let source = std::fs::read_to_string(root.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        let ends_name = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_defined = ["fn", "struct", "enum", "trait", "macro_rules!", "class"]
            .iter()
            .any(|kind| {
                let definition = format!("{kind} {name}");
                source.split(&definition).skip(1).any(ends_name)
            });
        assert!(
            !name.is_empty() && is_defined,
            "{path} has no `{name}`: {row}"
        );
    }
}
