//! Files that are open in the editor and not saved.

use haft_testkit::Reply;
use serde_json::{Value, json};

use super::{Editor, Swap, rig, stop_reason};

fn file_capabilities() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}})
}

#[test]
fn read_file_returns_unsaved_text_without_saving_it() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "on disk\n");
    let (mut editor, session) = Editor::in_session(&rig, file_capabilities());
    let path = rig.project().join("a.txt");
    editor
        .buffers
        .insert(path.display().to_string(), "in the editor\n".to_owned());
    assert_eq!(stop_reason(&editor.prompt(&session, "read")), "end_turn");
    let request = format!(
        "{:?}",
        rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .messages
            .last()
    );
    assert!(
        request.contains("in the editor") && !request.contains("on disk"),
        "{request}"
    );
    assert_eq!(
        std::fs::read_to_string(path).unwrap(),
        "on disk\n",
        "reading saves nothing"
    );
    assert!(editor.written.is_empty());
}

#[test]
fn replace_in_file_keeps_unsaved_text_and_undo_restores_it() {
    let edit =
        json!({"path": "a.txt", "diff": "<<<<<<< SEARCH\ntwo\n=======\nzwei\n>>>>>>> REPLACE\n"});
    let rig = rig([
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::call("replace_in_file", edit),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "two\n");
    let (mut editor, session) = Editor::in_session(&rig, file_capabilities());
    editor.permission = "allow_once";
    let path = rig.project().join("a.txt");
    editor
        .buffers
        .insert(path.display().to_string(), "one\ntwo\n".to_owned());
    assert_eq!(
        stop_reason(&editor.prompt(&session, "translate")),
        "end_turn"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nzwei\n");
    assert!(
        editor.written.is_empty(),
        "an editor writes by path, so haft writes itself"
    );
    assert_eq!(editor.finish(), 0);
    let undone = rig.run(&["undo"]);
    assert_eq!(undone.code(), 0, "{}", undone.stderr());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "one\ntwo\n",
        "what the user typed is a version"
    );
}

#[test]
fn replace_in_file_saves_nothing_when_refused() {
    let edit =
        json!({"path": "a.txt", "diff": "<<<<<<< SEARCH\ntwo\n=======\nzwei\n>>>>>>> REPLACE\n"});
    let rig = rig([
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::call("replace_in_file", edit),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "two\n");
    let (mut editor, session) = Editor::in_session(&rig, file_capabilities());
    let path = rig.project().join("a.txt");
    editor
        .buffers
        .insert(path.display().to_string(), "one\ntwo\n".to_owned());
    editor.prompt(&session, "translate");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    assert!(editor.written.is_empty());
}

#[test]
fn write_to_file_asks_a_read_only_editor_to_save_first() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "a.txt"})),
        Reply::call(
            "write_to_file",
            json!({"path": "a.txt", "content": "new\n"}),
        ),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "old\n");
    let (mut editor, session) = Editor::in_session(&rig, json!({"fs": {"readTextFile": true}}));
    editor.permission = "allow_once";
    let path = rig.project().join("a.txt");
    editor
        .buffers
        .insert(path.display().to_string(), "typed\n".to_owned());
    editor.prompt(&session, "write");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\n");
    let request = format!(
        "{:?}",
        rig.server.generation_requests()[2]
            .decode()
            .unwrap()
            .messages
            .last()
    );
    assert!(request.contains("not saved"), "{request}");
}

/// While the editor reads, a command lets the path lead out of the project, and back.
#[test]
fn read_file_ignores_a_text_that_came_from_outside_by_a_swapped_folder() {
    for swap in [Swap::Link, Swap::OuterLink, Swap::Exchange] {
        let rig = rig([
            Reply::call("read_file", json!({"path": "a/d/file.txt"})),
            Reply::text("Done."),
        ]);
        rig.write("a/d/file.txt", "in the project\n");
        let elsewhere = tempfile::tempdir().unwrap();
        let outside = elsewhere.path().join("outside");
        std::fs::create_dir_all(outside.join("d")).unwrap();
        for file in ["file.txt", "d/file.txt"] {
            std::fs::write(outside.join(file), "outside text\n").unwrap();
        }
        let (mut editor, session) = Editor::in_session(&rig, file_capabilities());
        editor.swap = Some((swap, rig.project(), outside));
        assert_eq!(stop_reason(&editor.prompt(&session, "read")), "end_turn");
        let request = format!(
            "{:?}",
            rig.server.generation_requests()[1]
                .decode()
                .unwrap()
                .messages
                .last()
        );
        assert!(
            request.contains("in the project") && !request.contains("outside text"),
            "{swap:?}: {request}"
        );
    }
}

#[test]
fn write_to_file_saves_and_writes_nothing_outside_by_a_swapped_folder() {
    for swap in [Swap::Link, Swap::OuterLink, Swap::Exchange] {
        let rig = rig([
            Reply::call("read_file", json!({"path": "a/d/file.txt"})),
            Reply::call(
                "write_to_file",
                json!({"path": "a/d/file.txt", "content": "new\n"}),
            ),
            Reply::text("Done."),
        ]);
        rig.write("a/d/file.txt", "in the project\n");
        let elsewhere = tempfile::tempdir().unwrap();
        let outside = elsewhere.path().join("outside");
        std::fs::create_dir_all(outside.join("d")).unwrap();
        for file in ["file.txt", "d/file.txt"] {
            std::fs::write(outside.join(file), "outside text\n").unwrap();
        }
        let (mut editor, session) = Editor::in_session(&rig, file_capabilities());
        editor.permission = "allow_once";
        editor.swap = Some((swap, rig.project(), outside.clone()));
        editor.prompt(&session, "write");
        for file in ["file.txt", "d/file.txt"] {
            assert_eq!(
                std::fs::read_to_string(outside.join(file)).unwrap(),
                "outside text\n",
                "{swap:?}"
            );
        }
        assert!(editor.written.is_empty(), "{swap:?}");
        assert_eq!(
            std::fs::read_to_string(rig.project().join("a/d/file.txt")).unwrap(),
            "new\n",
            "{swap:?}"
        );
    }
}
