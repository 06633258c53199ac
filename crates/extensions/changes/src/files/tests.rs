mod any_history;
mod desk;
mod swap;

use std::fs;
use std::os::unix::fs::symlink;

use haft_types::ChangeKind::{Added, Deleted, Modified};

use super::*;
use desk::Desk;

#[test]
fn undo_and_redo_restore_an_edit() {
    let desk = Desk::new();
    desk.write("a", "old\n");
    let before = desk.snapshot();
    desk.edit("1", &["a", "made/for/it"], |desk| {
        desk.write("a", "new\n");
        desk.write("made/for/it", "it");
    });
    let after = desk.snapshot();
    let report = desk.undo(&Target::LastCall);
    assert!(
        report.is_clean() && report.calls[0].call_id == "1",
        "{report:?}"
    );
    assert_eq!(desk.snapshot(), before, "the folders went too");
    assert!(matches!(
        desk.record().undo(&Target::LastCall, None, Mode::Apply),
        Err(UndoError::NothingToUndo)
    ));
    let report = desk.redo();
    assert_eq!(
        (desk.snapshot(), report.calls[0].call_id.as_str()),
        (after.clone(), "1")
    );
    assert!(matches!(
        desk.record().redo(Mode::Apply),
        Err(UndoError::NothingToRedo)
    ));
    desk.undo(&Target::Session);
    assert_eq!(desk.snapshot(), before);
    desk.redo();
    assert_eq!(desk.snapshot(), after);
}

#[test]
fn undo_of_a_command_restores_modes_links_and_folders() {
    let desk = Desk::new();
    desk.write("script", "#!/bin/sh\n");
    desk.set_mode("script", 0o755);
    desk.write("folder/deep/file", "deep");
    desk.set_mode("folder/deep", 0o700);
    fs::create_dir(desk.path("empty")).unwrap();
    symlink("script", desk.path("link")).unwrap();
    let before = desk.snapshot();
    let found = desk.command("1", |desk| {
        desk.set_mode("script", 0o600);
        fs::remove_dir_all(desk.path("folder")).unwrap();
        fs::remove_dir(desk.path("empty")).unwrap();
        fs::remove_file(desk.path("link")).unwrap();
        desk.write("link/is/a/folder", "now");
        fs::write(desk.path("empty"), "a file now").unwrap();
    });
    let told: Vec<_> = found
        .changes
        .iter()
        .map(|change| (desk.name(&change.path), change.kind))
        .collect();
    assert_eq!(
        told,
        [
            ("empty".to_owned(), Added),
            ("folder/deep/file".to_owned(), Deleted),
            ("link".to_owned(), Deleted),
            ("link/is/a/folder".to_owned(), Added),
            ("script".to_owned(), Modified),
        ]
    );
    let after = desk.snapshot();
    assert!(desk.undo(&Target::LastCall).is_clean());
    assert_eq!(desk.snapshot(), before);
    assert!(desk.redo().is_clean());
    assert_eq!(desk.snapshot(), after);
}

#[test]
fn undo_leaves_and_names_what_others_changed_since() {
    let desk = Desk::new();
    desk.write("mine", "old");
    desk.write("theirs", "old");
    desk.edit("1", &["mine", "theirs", "created"], |desk| {
        for name in ["mine", "theirs", "created"] {
            desk.write(name, "new");
        }
    });
    desk.write("theirs", "theirs");
    desk.write("created", "theirs too");
    let report = desk.undo(&Target::LastCall);
    let conflicts = desk.conflicts(&report);
    assert_eq!(
        conflicts,
        [
            ("created".into(), Conflict::ChangedByOthers),
            ("theirs".into(), Conflict::ChangedByOthers)
        ]
    );
    assert_eq!(
        ["mine", "theirs", "created"].map(|name| desk.read(name)),
        ["old", "theirs", "theirs too"]
    );
    // After the file is back in the state that haft left, it can be undone, too.
    desk.write("theirs", "new");
    assert_eq!(desk.undo(&Target::LastCall).paths.len(), 2);
    assert_eq!(desk.read("theirs"), "old");
}

#[test]
fn undo_keeps_what_others_changed_before_or_between_calls() {
    let desk = Desk::new();
    desk.write("a", "one\n");
    desk.command("1", |desk| desk.write("b", "by the command"));
    desk.write("a", "two, by someone else\n");
    desk.write("c", "someone else's");
    desk.command("2", |desk| desk.write("a", "three\n"));
    assert!(desk.undo(&Target::Session).is_clean());
    assert_eq!(desk.read("a"), "two, by someone else\n");
    assert_eq!(desk.read("c"), "someone else's");
    assert!(!desk.path("b").exists());
}

#[test]
fn undo_of_an_earlier_call_keeps_later_changes() {
    let desk = Desk::new();
    let lines = |change: &[(usize, &str)]| {
        let mut lines: Vec<_> = (1..=9).map(|line| line.to_string()).collect();
        for (at, text) in change {
            lines[at - 1] = (*text).to_owned();
        }
        lines.join("\n") + "\n"
    };
    desk.write("a", &lines(&[]));
    desk.edit("first", &["a"], |desk| {
        desk.write("a", &lines(&[(2, "FIRST")]));
    });
    desk.edit("second", &["a"], |desk| {
        desk.write("a", &lines(&[(2, "FIRST"), (8, "SECOND")]));
    });
    let both = desk.snapshot();
    assert!(desk.undo(&Target::Call("first".into())).is_clean());
    assert_eq!(desk.read("a"), lines(&[(8, "SECOND")]));
    desk.edit("third", &["a"], |desk| {
        desk.write("a", &lines(&[(5, "THIRD"), (8, "SECOND")]));
    });
    assert!(desk.redo().is_clean(), "also under a later one");
    assert_eq!(
        desk.read("a"),
        lines(&[(2, "FIRST"), (5, "THIRD"), (8, "SECOND")])
    );
    assert!(desk.undo(&Target::Call("third".into())).is_clean());
    assert_eq!(desk.snapshot(), both);

    desk.edit("fourth", &["a"], |desk| {
        desk.write("a", &lines(&[(2, "FOURTH"), (8, "SECOND")]));
    });
    let report = desk.undo(&Target::Call("first".into()));
    let later = Conflict::ChangedLater {
        tool: "tool".into(),
        call_id: "fourth".into(),
    };
    assert_eq!(desk.conflicts(&report), [("a".into(), later)]);
    assert!(desk.undo(&Target::Session).is_clean());
    assert_eq!(desk.read("a"), lines(&[]));
}

#[test]
fn undo_merges_a_mode_and_a_content() {
    let desk = Desk::new();
    desk.write("a", "old");
    desk.command("mode", |desk| desk.set_mode("a", 0o755));
    desk.edit("content", &["a"], |desk| desk.write("a", "new"));
    desk.undo(&Target::Call("mode".into()));
    assert_eq!(desk.snapshot()["a"], "file 644 new");
    desk.redo();
    desk.undo(&Target::Call("content".into()));
    assert_eq!(desk.snapshot()["a"], "file 755 old");
}

#[test]
fn undo_can_target_one_message_or_one_file() {
    let desk = Desk::new();
    for (call, message) in [("1", 1), ("2", 2), ("3", 2), ("4", 3)] {
        desk.edit_in(message, call, &[&format!("dir{call}/f"), "all"], |desk| {
            desk.write(&format!("dir{call}/f"), call);
            desk.write("all", call);
        });
    }
    let everything = desk.snapshot();
    desk.undo(&Target::File(desk.path("dir2/f")));
    assert!(
        !desk.path("dir2").exists() && desk.read("all") == "4",
        "only that file, with its folder"
    );
    desk.redo();
    assert_eq!(desk.snapshot(), everything);
    desk.undo(&Target::File(desk.path("all")));
    assert_eq!(
        (desk.read("all"), desk.read("dir4/f")),
        ("3".to_owned(), "4".to_owned())
    );
    desk.undo(&Target::Messages(vec![Desk::message(2)]));
    assert_eq!(desk.read("all"), "1");
    assert!(
        desk.path("dir1/f").exists() && !desk.path("dir2").exists() && desk.path("dir4/f").exists()
    );
    let nobody = desk
        .record()
        .undo(&Target::File(desk.path("nobody")), None, Mode::Apply);
    assert!(matches!(nobody, Err(UndoError::UnchangedFile(_))));
}

#[test]
fn undo_distinguishes_unknown_and_already_undone_calls() {
    let desk = Desk::new();
    desk.edit("1", &["a"], |desk| desk.write("a", "a"));
    let undo = |id: &str| {
        desk.record()
            .undo(&Target::Call(id.into()), None, Mode::Apply)
    };
    assert!(matches!(undo("2"), Err(UndoError::UnknownCall(_))));
    undo("1").unwrap();
    assert!(matches!(undo("1"), Err(UndoError::AlreadyUndone(_))));
}

#[test]
fn undo_dry_run_reports_the_changes_without_making_them() {
    let desk = Desk::new();
    desk.edit("1", &["a"], |desk| desk.write("a", "a"));
    let before = desk.snapshot();
    let said = desk
        .record()
        .undo(&Target::LastCall, None, Mode::DryRun)
        .unwrap();
    assert_eq!(desk.snapshot(), before);
    assert_eq!(desk.undo(&Target::LastCall), said);
    assert!(!desk.path("a").exists());
}

#[test]
fn undo_does_not_follow_a_folder_replaced_by_a_link() {
    let desk = Desk::new();
    let outside = tempfile::tempdir().unwrap();
    desk.edit("1", &["folder/a"], |desk| desk.write("folder/a", "new"));
    // An identical file at the target: only the path differs.
    fs::rename(desk.path("folder"), outside.path().join("folder")).unwrap();
    symlink(outside.path().join("folder"), desk.path("folder")).unwrap();
    let report = desk.undo(&Target::LastCall);
    assert_eq!(desk.conflicts(&report).len(), 2, "{report:?}");
    assert_eq!(
        fs::read_to_string(outside.path().join("folder/a")).unwrap(),
        "new"
    );
}

#[test]
fn undo_leaves_files_of_a_killed_call_as_uncertain() {
    let desk = Desk::new();
    desk.write("a", "old");
    desk.write("b", "old");
    desk.killed_edit("1", &["a", "b"], |desk| desk.write("a", "half done"));
    let report = desk.undo(&Target::LastCall);
    assert_eq!(
        desk.conflicts(&report),
        [("a".into(), Conflict::Uncertain)],
        "`b` was never changed"
    );
    assert_eq!(desk.read("a"), "half done");
}

#[test]
fn undo_covers_files_whose_new_state_was_not_reported() {
    let desk = Desk::new();
    desk.write("a", "old");
    desk.silent_edit("1", &["a", "untouched"], |desk| desk.write("a", "new"));
    assert_eq!(desk.record().steps().unwrap()[0].changes.len(), 1);
    desk.undo(&Target::LastCall);
    assert_eq!(desk.read("a"), "old");
}

#[test]
fn undo_names_files_that_were_too_large_to_save() {
    let desk = Desk::new();
    let large = "x".repeat(5 * 1024 * 1024);
    desk.write("large", &large);
    desk.write("small", "old");
    let found = desk.command("1", |desk| {
        desk.write("large", "gone");
        desk.write("small", "new");
    });
    assert_eq!(
        found.notes,
        [
            "[Undo of commands does not cover files that are too large or unreadable: large (5.0 MB).]",
            "[Changed without having been saved, so that undo cannot bring back: large.]",
        ]
    );
    let report = desk.undo(&Target::LastCall);
    assert_eq!(
        desk.conflicts(&report),
        [("large".into(), Conflict::Unsaved)]
    );
    assert_eq!(
        (desk.read("large"), desk.read("small")),
        ("gone".to_owned(), "old".to_owned())
    );
    assert_eq!(desk.command("2", |_| {}).notes, [""; 0], "once is enough");
}

#[test]
fn undo_that_was_killed_is_finished_later() {
    for killed_after in 0..4 {
        let desk = Desk::new();
        desk.write("a", "old");
        desk.write("gone/b", "old");
        let before = desk.snapshot();
        desk.command("1", |desk| {
            desk.write("a", "new");
            fs::remove_dir_all(desk.path("gone")).unwrap();
            fs::write(desk.path("gone"), "a file in its place").unwrap();
        });
        desk.undo_killed_after(killed_after);
        let half = desk.snapshot();
        for (name, held) in &half {
            let old_or_new = [
                "file 644 old",
                "file 644 new",
                "folder 755",
                "file 644 a file in its place",
            ];
            assert!(old_or_new.contains(&held.as_str()), "{name}: {held}");
        }
        desk.record().finish_interrupted().unwrap();
        assert_eq!(desk.snapshot(), before, "killed after {killed_after}");
        assert!(desk.redo().is_clean());
        assert_eq!(desk.read("gone"), "a file in its place");
    }
}

#[test]
fn recover_leaves_what_others_changed_after_a_killed_undo() {
    let desk = Desk::new();
    desk.write("a", "old");
    desk.write("b", "old");
    desk.edit("1", &["a", "b"], |desk| {
        desk.write("a", "new");
        desk.write("b", "new");
    });
    desk.undo_killed_after(0);
    desk.write("b", "theirs");
    desk.record().finish_interrupted().unwrap();
    assert_eq!(
        (desk.read("a"), desk.read("b")),
        ("old".to_owned(), "theirs".to_owned())
    );
    let steps = desk.record().steps().unwrap();
    assert!(steps.iter().all(|step| step.done));
    let open: Vec<_> = find_active_changes(&steps, &steps[0])
        .iter()
        .map(|change| desk.name(&change.path))
        .collect();
    assert_eq!(open, ["b"], "only what was taken back counts as taken back");
}

#[test]
fn undo_keeps_a_created_folder_for_a_restored_file_of_others() {
    let desk = Desk::new();
    desk.edit("1", &["d/x"], |desk| desk.write("d/x", "haft's"));
    desk.write("d/y", "theirs");
    desk.command("2", |desk| fs::remove_file(desk.path("d/y")).unwrap());
    let before = desk.snapshot();
    assert!(desk.undo(&Target::Session).is_clean());
    assert!(!desk.path("d/x").exists() && desk.read("d/y") == "theirs");
    desk.redo();
    assert_eq!(desk.snapshot(), before);
}
