//! Asks fifty questions about the sources of eight libraries, and counts how often the file with
//! the answer is among the first three.
//!
//! The libraries are dependencies at the versions in the lock file, so the sources are identical on
//! every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use haft_rag::Local;

const QUESTIONS: &str = include_str!("questions.txt");
const PACKAGES: [&str; 8] = [
    "clap_builder",
    "globset",
    "grep-regex",
    "grep-searcher",
    "hyper",
    "ignore",
    "minijinja",
    "rusqlite",
];
/// Of fifty questions.
const GOAL: usize = 45;

struct Question {
    file: PathBuf,
    asked: &'static str,
}

/// Returns the folder of each package's sources, or `None` if one of them is missing.
fn package_sources() -> Option<BTreeMap<String, PathBuf>> {
    // Packages for other platforms are not fetched, so they are filtered out.
    let about = std::process::Command::new(env!("CARGO"))
        .arg("-vV")
        .output()
        .ok()?
        .stdout;
    let about = String::from_utf8(about).ok()?;
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))?
        .to_owned();
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../Cargo.toml"))
        .other_options(vec![
            "--offline".into(),
            "--locked".into(),
            "--filter-platform".into(),
            host,
        ])
        .exec()
        .inspect_err(|error| println!("cargo metadata: {error}"))
        .ok()?;
    let mut found = BTreeMap::new();
    for package in metadata
        .packages
        .iter()
        .filter(|package| PACKAGES.contains(&package.name.as_str()))
    {
        let folder = package.manifest_path.parent()?.as_std_path().to_owned();
        found.insert(package.name.to_string(), folder);
    }
    (found.len() == PACKAGES.len() && found.values().all(|folder| folder.is_dir())).then_some(found)
}

fn read_questions(sources: &BTreeMap<String, PathBuf>) -> Vec<Question> {
    let lines = QUESTIONS.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (file, asked) = line.split_once(" | ").unwrap();
            let (package, inside) = file.split_once('/').unwrap();
            let path = sources[package].join(inside);
            assert!(
                path.is_file(),
                "{file} is not in the locked version of {package}"
            );
            Question { file: path, asked }
        })
        .collect()
}

/// Ranks files by the number of occurrences of the question's words: a search without an index.
fn rank_by_counting(files: &[(PathBuf, String)], question: &str) -> Vec<PathBuf> {
    let words: Vec<String> = question
        .split(|one: char| !one.is_alphanumeric())
        .filter(|word| word.len() > 2)
        .map(str::to_lowercase)
        .collect();
    let count = |text: &str| {
        words
            .iter()
            .map(|word| text.matches(word.as_str()).count())
            .sum::<usize>()
    };
    let mut counted: Vec<_> = files
        .iter()
        .map(|(path, text)| (count(text), path))
        .collect();
    counted.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    counted.into_iter().map(|(_, path)| path.clone()).collect()
}

fn rank_of(found: &[PathBuf], wanted: &Path) -> Option<usize> {
    let mut files: Vec<&PathBuf> = Vec::new();
    for path in found {
        if !files.contains(&path) {
            files.push(path);
        }
    }
    files
        .iter()
        .position(|path| *path == wanted)
        .map(|place| place + 1)
}

#[test]
fn questions_do_not_name_their_file() {
    let mut count = 0;
    for line in QUESTIONS.lines().filter(|line| !line.starts_with('#')) {
        let (file, asked) = line.split_once(" | ").unwrap();
        count += 1;
        let stem = match file.rsplit_once('/').unwrap() {
            (folder, "mod.rs") => folder.rsplit('/').next().unwrap(),
            (_, name) => name.strip_suffix(".rs").unwrap(),
        };
        let plain = |text: &str| {
            format!(
                " {} ",
                text.to_lowercase()
                    .replace(|one: char| !one.is_alphanumeric(), " ")
            )
        };
        let asked = plain(asked);
        let stem = plain(stem);
        let plural = format!("{}s ", stem.trim_end());
        assert!(!asked.contains(&stem) && !asked.contains(&plural), "{line}");
    }
    assert_eq!(count, 50);
}

#[test]
fn query_ranks_the_answering_file_among_the_first_three() {
    let Some(sources) = package_sources() else {
        println!(
            "skipped: the sources of the dependencies are not on this machine (vendored or fetched elsewhere)"
        );
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let collection = Local::new(
        sources.values().cloned().collect(),
        home.path().join("index.db"),
    );
    let questions = read_questions(&sources);
    let (update, notes) = collection.update().unwrap();
    assert!(
        notes.is_empty() && update.indexed > 250,
        "{update:?} {notes:?}"
    );
    let files: Vec<(PathBuf, String)> = sources
        .values()
        .flat_map(|folder| rust_and_markdown_files(folder))
        .filter_map(|path| {
            Some((
                path.clone(),
                std::fs::read_to_string(path).ok()?.to_lowercase(),
            ))
        })
        .collect();

    let mut right = 0;
    let mut first = 0;
    let mut counting = 0;
    for Question { file, asked } in &questions {
        let found: Vec<_> = collection
            .query(asked, 20)
            .unwrap()
            .passages
            .into_iter()
            .map(|one| one.path)
            .collect();
        let at = rank_of(&found, file);
        first += usize::from(at == Some(1));
        right += usize::from(at.is_some_and(|at| at <= 3));
        counting +=
            usize::from(rank_of(&rank_by_counting(&files, asked), file).is_some_and(|at| at <= 3));
        if at.is_none_or(|at| at > 3) {
            let shown: Vec<_> = found
                .iter()
                .take(6)
                .map(|path| path.display().to_string())
                .collect();
            println!(
                "missed ({at:?}): {asked}\n    {}\n    found {}",
                file.display(),
                shown.join("\n          ")
            );
        }
    }
    println!(
        "among the first three: {right} of 50 ({first} first); by counting words: {counting} of 50"
    );
    assert!(right >= GOAL, "{right} of 50");
}

/// Returns every Rust and Markdown file below a folder.
fn rust_and_markdown_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_and_markdown_files(&path));
        } else if path
            .extension()
            .is_some_and(|ending| ending == "rs" || ending == "md")
        {
            found.push(path);
        }
    }
    found
}
