//! Measures collections: indexing, queries, and updates of the index, for two sizes in one run.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use haft_rag::Local;
use haft_testkit::support::Random;

use crate::figures;

/// The numbers of files in the two trees; the second tree is ten times as large as the first.
const SIZES: [usize; 2] = [100, 1_000];
const LINES: usize = 200;
const CHANGED: usize = 10;
const QUERIES: usize = 15;
/// The goal for indexing, in milliseconds per megabyte.
const INDEX_GOAL: f64 = 400.0;
/// The goal for the time of a query on ten times the text, relative to the small tree.
const GROWTH_GOAL: f64 = 10.0;
/// The goal for updating ten files, relative to indexing everything.
const UPDATE_GOAL: f64 = 0.1;

pub(crate) fn run_benchmark() -> anyhow::Result<()> {
    figures::print_line(&format!(
        "Files of {LINES} lines with names drawn from 2,000 words; medians of {QUERIES} questions."
    ));
    let mut questions = Vec::new();
    for files in SIZES {
        let place = tempfile::tempdir()?;
        let docs = place.path().join("docs");
        let bytes = write_files(&docs, files)?;
        let megabytes = bytes as f64 / 1e6;
        let collection = Local::new(vec![docs.clone()], place.path().join("index.db"));

        let started = Instant::now();
        let (update, _) = collection.update()?;
        let whole = started.elapsed();
        ensure!(
            update.indexed == files as u64,
            "{} of {files} files were indexed",
            update.indexed
        );
        let per_megabyte = whole.as_secs_f64() * 1e3 / megabytes;
        figures::print_figure(
            &format!("index {files} files, {megabytes:.1} MB"),
            per_megabyte,
            "ms/MB",
            Some(INDEX_GOAL),
        );
        let size = collection.status()?.bytes as f64 / bytes as f64;
        figures::print_figure(
            &format!("size of the index of {files} files against the text"),
            size,
            "x",
            None,
        );

        let mut times = Vec::new();
        for question in 0..QUERIES {
            let started = Instant::now();
            let found = collection.query(
                &format!("where does word{question} read word{} ?", question * 7),
                10,
            )?;
            times.push(started.elapsed());
            ensure!(!found.passages.is_empty(), "nothing was found");
        }
        let median = figures::median_ms(&mut times);
        figures::print_figure(
            &format!("a question over {files} files, looking for changes included"),
            median,
            "ms",
            None,
        );
        questions.push(median);

        for file in 0..CHANGED {
            fs::write(
                docs.join(format!("{file}.rs")),
                format!("fn changed_{file}() {{}}\n"),
            )?;
        }
        let started = Instant::now();
        let (update, _) = collection.update()?;
        ensure!(
            update.indexed == CHANGED as u64,
            "{} files were indexed again",
            update.indexed
        );
        let share = started.elapsed().as_secs_f64() / whole.as_secs_f64();
        let goal = (files >= 1_000).then_some(UPDATE_GOAL);
        figures::print_figure(
            &format!("update after {CHANGED} of {files} files changed, against indexing all"),
            share,
            "x",
            goal,
        );
    }
    if let [small, large] = questions[..] {
        figures::print_figure(
            "a question over ten times the text",
            large / small,
            "x",
            Some(GROWTH_GOAL),
        );
    }
    Ok(())
}

/// Writes the files and returns their total size in bytes.
fn write_files(folder: &Path, files: usize) -> anyhow::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut random = Random::new(7);
    let mut word = || random.below(2_000);
    let mut bytes = 0;
    for file in 0..files {
        let mut text = String::new();
        for line in 0..LINES {
            let one = word();
            let two = word();
            let three = word();
            if line % 20 == 0 {
                writeln!(
                    text,
                    "\n/// Reads the word{one} of a word{two}.\nfn read_word{three}() {{"
                )?;
            } else {
                writeln!(text, "    let word{one} = word{two}.find(word{three});")?;
            }
        }
        bytes += text.len();
        fs::write(folder.join(format!("{file}.rs")), text)?;
    }
    Ok(bytes)
}
