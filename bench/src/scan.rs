//! Measures the scan for changes after a command, compared in one run with `find` on the same
//! files.
//!
//! The tree has small files, 40 per folder. "First" reads, packs and stores everything; "again"
//! finds nothing changed, which every command pays twice; "ten changed" finds and stores ten files;
//! "next process" starts from the stored state.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_changes::versions::SqliteVersions;
use haft_changes::{ScanLimits, ScanOutcome, Tree};
use haft_store::StoreConfig;
use haft_testkit::support::FakeClock;

use crate::figures;

const RUNS: usize = 7;
const FILES_PER_FOLDER: usize = 40;

pub(crate) fn run_benchmark() -> anyhow::Result<()> {
    for files in [1_000, 10_000, 100_000] {
        measure_tree(files)?;
    }
    Ok(())
}

fn measure_tree(files: usize) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let base = folder.path().canonicalize()?;
    let root = base.join("project");
    let bytes = write_tree(&root, files)?;
    let versions = SqliteVersions::new(
        &base.join("versions"),
        &StoreConfig::default(),
        Arc::new(FakeClock::default()),
    );
    let new_tree = || Tree::new(&root, ScanLimits::default(), Arc::default());
    let name = |what: &str| format!("{files} files: {what}");

    let mut tree = new_tree();
    let begin = Instant::now();
    let found = count_changed_paths(&mut tree, &versions)?;
    let first = begin.elapsed().as_secs_f64();
    ensure!(found >= files, "the first scan found {found} paths");
    figures::print_figure(&name("first scan"), first, "s", None);
    let stored = versions.used_bytes()? as f64 / 1e6;
    figures::print_figure(
        &name(&format!("stored of {:.0} MB", bytes as f64 / 1e6)),
        stored,
        "MB",
        None,
    );

    let mut again = Vec::new();
    let mut find = Vec::new();
    for _ in 0..RUNS {
        find.push(measure_time(|| run_find(&root))?);
        again.push(measure_time(|| {
            ensure!(
                count_changed_paths(&mut tree, &versions)? == 0,
                "nothing had changed"
            );
            Ok(())
        })?);
    }
    let again = figures::median_ms(&mut again);
    let find = figures::median_ms(&mut find);
    figures::print_figure(
        &name("`find` looking at every file, median of 7"),
        find,
        "ms",
        None,
    );
    figures::print_figure(&name("scan again, median of 7"), again, "ms", None);
    figures::print_figure(
        &name("scan again against `find`"),
        again / find,
        "×",
        Some(1.5),
    );

    for number in 0..10 {
        fs::write(
            root.join(format!("folder_0/file_{number}.rs")),
            format!("changed {number}\n"),
        )?;
    }
    let ten = measure_time(|| {
        ensure!(
            count_changed_paths(&mut tree, &versions)? == 10,
            "ten files had changed"
        );
        Ok(())
    })?;
    figures::print_figure(
        &name("scan with ten changed"),
        ten.as_secs_f64() * 1e3,
        "ms",
        None,
    );
    let mut tree = new_tree();
    let next = measure_time(|| count_changed_paths(&mut tree, &versions).map(drop))?;
    figures::print_figure(
        &name("first scan of the next process"),
        next.as_secs_f64() * 1e3,
        "ms",
        None,
    );
    Ok(())
}

fn measure_time(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

fn count_changed_paths(tree: &mut Tree, versions: &SqliteVersions) -> anyhow::Result<usize> {
    match tree.scan(versions)? {
        ScanOutcome::Changed(differences) => Ok(differences.len()),
        ScanOutcome::TooLarge => anyhow::bail!("the tree is too large"),
    }
}

fn run_find(root: &Path) -> anyhow::Result<()> {
    let status = Command::new("find")
        .arg(root)
        .args(["-printf", "%m %s %T@ %C@ %i\\n"])
        .stdout(Stdio::null())
        .status()
        .context("`find` is needed to compare with")?;
    ensure!(status.success(), "`find` failed");
    Ok(())
}

/// Writes the tree and returns its size in bytes.
pub(crate) fn write_tree(root: &Path, files: usize) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for folder in 0..files.div_ceil(FILES_PER_FOLDER) {
        let path = root.join(format!("folder_{folder}"));
        fs::create_dir_all(&path)?;
        for number in 0..FILES_PER_FOLDER {
            let line = format!(
                "    let value_{number} = read(&input[{folder}..], {number})?; // part {}\n",
                folder * number
            );
            let text = line.repeat(30 + (folder + number) % 40);
            bytes += text.len() as u64;
            fs::write(path.join(format!("file_{number}.rs")), text)?;
        }
    }
    Ok(bytes)
}
