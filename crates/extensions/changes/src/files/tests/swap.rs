//! A folder of the project and a link out of the project are exchanged while changes are undone,
//! redone and merged. No file outside may change, whether its content is equal or different.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::{Adoption, MergeContent, Mode, Target, adopt_changes};
use super::desk::Desk;

/// A folder `folder` in the project, a folder outside, and a link to that in the project.
struct Place {
    desk: Desk,
    /// Contains the copy and the folder outside.
    around: tempfile::TempDir,
}

const FILES: [&str; 3] = ["file", "deep/file", "gone"];

impl Place {
    fn new() -> Self {
        let desk = Desk::new();
        let around = tempfile::tempdir().unwrap();
        for folder in [
            desk.path("folder"),
            around.path().join("outside"),
            around.path().join("copy/folder"),
        ] {
            fs::create_dir_all(folder.join("deep")).unwrap();
            for name in FILES {
                fs::write(folder.join(name), "old\n").unwrap();
            }
        }
        symlink(around.path().join("outside"), desk.path("link")).unwrap();
        Self { desk, around }
    }

    fn outside(&self) -> PathBuf {
        self.around.path().join("outside")
    }

    fn swap(&self) {
        swap(&self.desk.path("folder"), &self.desk.path("link"));
    }

    /// Changes, creates and removes files as a tool.
    fn edit(&self) {
        self.desk.edit(
            "1",
            &[
                "folder/file",
                "folder/deep/file",
                "folder/gone",
                "folder/new/made",
            ],
            |desk| {
                desk.write("folder/file", "new\n");
                desk.write("folder/deep/file", "new\n");
                fs::remove_file(desk.path("folder/gone")).unwrap();
                desk.write("folder/new/made", "new\n");
            },
        );
    }

    /// Merges a sub-agent's copy with different content in each file; returns true if it was
    /// merged.
    fn merge(&self, number: u64) -> bool {
        let change = |name: &str| {
            let copy = self.around.path().join("copy/folder").join(name);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(&copy, format!("merged {number}\n")).unwrap();
            let path = self.desk.path("folder").join(name);
            let base = fs::read(&path).map_or(MergeContent::Absent, |bytes| MergeContent::File {
                bytes,
                executable: false,
            });
            Adoption { path, copy, base }
        };
        let changes = [
            change("file"),
            change("deep/file"),
            change("made/here"),
            change(&format!("made/{number}/x")),
        ];
        let call = format!("m{number}");
        let recorder = self
            .desk
            .recorder(10_000 + u32::try_from(number).unwrap(), &call);
        adopt_changes(&self.desk.path(""), &recorder, &call, &changes).is_ok()
    }

    fn undo(&self) -> bool {
        let report = self
            .desk
            .record()
            .undo(&Target::LastCall, None, Mode::Apply);
        report.is_ok_and(|report| report.is_clean())
    }

    fn redo(&self) -> bool {
        self.desk
            .record()
            .redo(Mode::Apply)
            .is_ok_and(|report| report.is_clean())
    }
}

fn swap(folder: &Path, link: &Path) {
    renameat_with(CWD, folder, CWD, link, RenameFlags::EXCHANGE).unwrap();
}

/// Returns every file below a folder with its content.
fn files_with_content(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .build()
    {
        let path = entry.unwrap().into_path();
        let content = fs::read_to_string(&path).unwrap_or_default();
        found.push((path, content));
    }
    found.sort();
    found
}

#[test]
fn undo_redo_and_merge_change_no_file_behind_a_link() {
    for same in [true, false] {
        let place = Place::new();
        place.edit();
        // The files outside equal the state after the edit, or the state before it.
        if same {
            for name in ["file", "deep/file"] {
                fs::write(place.outside().join(name), "new\n").unwrap();
            }
            fs::remove_file(place.outside().join("gone")).unwrap();
            fs::create_dir(place.outside().join("new")).unwrap();
            fs::write(place.outside().join("new/made"), "new\n").unwrap();
        }
        let untouched = files_with_content(&place.outside());
        place.swap();
        // A file missing on both sides is no reason to refuse the rest.
        let undone = place.undo();
        let _ = place.redo();
        let merged = place.merge(1);
        assert_eq!((undone, merged), (false, false), "{same}");
        assert_eq!(files_with_content(&place.outside()), untouched, "{same}");
        if !same {
            continue;
        }

        // After the exchange is reverted, everything works.
        place.swap();
        assert!(place.undo());
        assert_eq!(place.desk.read("folder/gone"), "old\n");
        place.swap();
        assert!(!place.redo() && !place.merge(2));
        place.swap();
        assert!(place.redo() && place.merge(3) && place.undo());
        assert_eq!(files_with_content(&place.outside()), untouched, "{same}");
        assert_eq!(place.desk.read("folder/file"), "new\n");
    }
}

/// Makes `count` calls while another thread exchanges folder and link repeatedly; returns the
/// number of successful calls and of exchanges.
fn run_swap_campaign(count: u64) -> (u64, u64) {
    let place = Place::new();
    place.edit();
    let untouched = files_with_content(&place.outside());
    let over = AtomicBool::new(false);
    let swaps = AtomicU64::new(0);
    let mut done = 0;
    let folder = place.desk.path("folder");
    let link = place.desk.path("link");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap(&folder, &link);
                swaps.fetch_add(1, Ordering::Relaxed);
                thread::yield_now();
            }
        });
        for number in 0..count {
            done += u64::from(match number % 4 {
                0 | 2 => place.undo(),
                1 => place.redo(),
                _ => place.merge(number),
            });
            if number % 16 == 0 && files_with_content(&place.outside()) != untouched {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(files_with_content(&place.outside()), untouched);
    let real = [folder, link]
        .into_iter()
        .find(|path| !path.is_symlink())
        .unwrap();
    let left: Vec<_> = files_with_content(&real)
        .into_iter()
        .filter(|(path, _)| path.to_string_lossy().contains(".haft-"))
        .collect();
    assert_eq!(left, [], "nothing is left beside the files");
    (done, swaps.into_inner())
}

#[test]
fn undo_redo_and_merge_survive_constant_exchanges_with_a_link() {
    run_swap_campaign(100);
}

/// Run with `cargo test --release -p haft-changes --lib swap -- --ignored --nocapture`; the results
/// are in `bench/campaigns/edits.md`.
#[test]
#[ignore = "it takes minutes"]
fn swap_campaign_in_full() {
    let mut done = 0;
    let mut swaps = 0;
    let mut calls = 0;
    while calls < 10_000 || swaps < 10_000 {
        let (now, more) = run_swap_campaign(500);
        (done, swaps, calls) = (done + now, swaps + more, calls + 500);
    }
    println!("{calls} calls, {done} carried out, {swaps} swaps, nothing outside");
}
