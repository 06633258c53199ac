use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;

use super::*;
use crate::files::{list_files, read_file};
use crate::testing::Bench;

#[tokio::test]
async fn write_to_file_creates_missing_folders() {
    let bench = Bench::new();
    let output = bench
        .ok(
            &define_tool(),
            json!({"path": "a/b/c.txt", "content": "one\ntwo\n"}),
        )
        .await;
    assert_eq!(
        output.envelope.text,
        "Created `a/b/c.txt`: 2 lines, 8 bytes."
    );
    let data = json!({"path": "a/b/c.txt", "change": "created", "lines": 2, "bytes": 8, "diff": "+one\n+two"});
    assert_eq!(output.envelope.data, data);
    assert_eq!(
        output.changes,
        [FileChange {
            path: bench.path("a/b/c.txt"),
            kind: ChangeKind::Added
        }]
    );
    assert_eq!(bench.read("a/b/c.txt"), b"one\ntwo\n");
    assert_eq!(bench.files(), ["a", "a/b", "a/b/c.txt"]);
}

#[tokio::test]
async fn write_to_file_data_contains_the_first_lines_of_a_new_file() {
    let bench = Bench::new();
    let content = (1..=60)
        .map(|line| line.to_string() + "\n")
        .collect::<String>();
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "content": content}))
        .await;
    let diff = output.envelope.data["diff"].as_str().unwrap();
    assert_eq!(diff.lines().count(), 50);
    assert!(
        diff.starts_with("+1\n+2\n") && diff.ends_with("\n+50"),
        "{diff}"
    );
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "content": "x\n"}))
        .await;
    assert_eq!(output.envelope.data["diff"], Value::Null);
    let output = bench
        .ok(&define_tool(), json!({"path": "empty", "content": ""}))
        .await;
    assert_eq!(output.envelope.data["diff"], Value::Null);
}

#[tokio::test]
async fn write_to_file_rejects_a_notice_in_place_of_text() {
    let bench = Bench::new();
    let notice =
        "[The arguments of this call are shortened here; `recall` 1d45e95d shows them whole.]";
    let copied = format!("fn main() {{\n{notice}\n}}\n");
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "content": copied}))
        .await;
    assert_eq!(code, "haft_notice");
    assert!(message.contains(notice), "{message}");
    assert!(bench.files().is_empty() && bench.history.saved.lock().unwrap().is_empty());
    bench.write("notes", &copied);
    bench
        .ok(&read_file::define_tool(), json!({"path": "notes"}))
        .await;
    let more = copied + "more\n";
    bench
        .ok(&define_tool(), json!({"path": "notes", "content": more}))
        .await;
    assert_eq!(bench.read("notes"), more.as_bytes(), "it was there before");
}

#[tokio::test]
async fn write_to_file_refuses_to_overwrite_an_unread_file() {
    let bench = Bench::new();
    bench.write("a", "old");
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "content": "new"}))
        .await;
    assert_eq!(code, "not_read");
    assert!(message.contains("read it first"), "{message}");
    assert_eq!(bench.read("a"), b"old");
}

#[tokio::test]
async fn write_to_file_overwrites_a_read_file_repeatedly() {
    let bench = Bench::new();
    bench.write("a", "old");
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    let output = bench
        .ok(&define_tool(), json!({"path": "a", "content": "new"}))
        .await;
    assert_eq!(output.envelope.data["change"], "overwritten");
    assert_eq!(output.changes[0].kind, ChangeKind::Modified);
    bench
        .ok(&define_tool(), json!({"path": "a", "content": "newer"}))
        .await;
    // The tool's own writes cause no note.
    let read = bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    assert_eq!(read.envelope.text, "1\tnewer");
    assert_eq!(bench.files(), ["a"]);
}

/// Regression test: a small model wrote a file with unchanged content three times, and then claimed
/// that the new function was there.
#[tokio::test]
async fn write_to_file_reports_unchanged_content() {
    let bench = Bench::new();
    bench.write("a.py", "x = 1\n");
    bench
        .ok(&read_file::define_tool(), json!({"path": "a.py"}))
        .await;
    let same = bench
        .ok(
            &define_tool(),
            json!({"path": "a.py", "content": "x = 1\n"}),
        )
        .await;
    assert_eq!(
        same.envelope.text,
        "`a.py` holds exactly this already: nothing was changed."
    );
    assert!(same.changes.is_empty() && same.envelope.data["change"] == "unchanged");
    bench
        .ok(
            &define_tool(),
            json!({"path": "a.py", "content": "x = 2\n"}),
        )
        .await;
}

#[tokio::test]
async fn write_to_file_refuses_a_file_changed_since_it_was_read() {
    let bench = Bench::new();
    bench.write("a", "old");
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    bench.write("a", "other");
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "content": "new"}))
        .await;
    assert_eq!(code, "changed_since_read");
    assert!(message.contains("3 bytes then, 5 bytes now"), "{message}");
    assert_eq!(bench.read("a"), b"other");
    // Equal size, different content: the hash differs.
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    bench.write("a", "OTHER");
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": "a", "content": "new"}))
            .await
            .0,
        "changed_since_read"
    );
}

#[tokio::test]
async fn write_to_file_refuses_a_read_only_file() {
    let bench = Bench::new();
    let path = bench.write("a", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    bench
        .ok(&read_file::define_tool(), json!({"path": "a"}))
        .await;
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "a", "content": "new"}))
        .await;
    assert_eq!(code, "read_only");
    assert!(message.contains("mode 444"), "{message}");
    assert_eq!(bench.read("a"), b"old");
}

#[tokio::test]
async fn write_to_file_keeps_mode_owner_and_links() {
    let bench = Bench::new();
    let path = bench.write("real/a.sh", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    symlink("real/a.sh", bench.path("link")).unwrap();
    // Only root can change the owner; for other users this tests mode and link.
    let _ = std::os::unix::fs::chown(&path, Some(65534), Some(65534));
    let before = fs::metadata(&path).unwrap();
    bench
        .ok(&read_file::define_tool(), json!({"path": "link"}))
        .await;
    bench
        .ok(&define_tool(), json!({"path": "link", "content": "new"}))
        .await;
    assert_eq!(bench.read("real/a.sh"), b"new");
    assert!(bench.path("link").is_symlink());
    let after = fs::metadata(&path).unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
}

#[tokio::test]
async fn write_to_file_accepts_folders_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let folder = bench
        .path("")
        .join(std::ffi::OsStr::from_bytes(b"odd-\xFF"));
    fs::create_dir(&folder).unwrap();
    symlink(&folder, bench.path("link")).unwrap();
    bench
        .ok(&define_tool(), json!({"path": "link/a", "content": "x"}))
        .await;
    bench
        .ok(&read_file::define_tool(), json!({"path": "link/a"}))
        .await;
    bench
        .ok(
            &list_files::define_tool(),
            json!({"path": ".", "recursive": true}),
        )
        .await;
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"x");
}

#[tokio::test]
async fn write_to_file_leaves_no_files_after_a_failure() {
    let bench = Bench::new();
    bench.write("file", "x");
    // The name exceeds the limit of file systems: the folder can be created, the file cannot.
    let name = format!("new/deep/{}", "n".repeat(300));
    let output = bench
        .run(&define_tool(), json!({"path": name, "content": "x"}))
        .await;
    assert_eq!(output.envelope.error.unwrap().code, "io");
    assert_eq!(
        bench
            .err(
                &define_tool(),
                json!({"path": "file/below", "content": "x"})
            )
            .await
            .0,
        "io"
    );
    assert_eq!(
        bench
            .err(&define_tool(), json!({"path": ".", "content": "x"}))
            .await
            .0,
        "is_folder"
    );
    assert_eq!(bench.files(), ["file"]);
}

#[tokio::test]
async fn write_to_file_refuses_a_dangling_link_to_the_outside() {
    let bench = Bench::new();
    let outside = bench.workspace().root.parent().unwrap().join("outside");
    symlink(&outside, bench.path("link")).unwrap();
    let (code, message) = bench
        .err(&define_tool(), json!({"path": "link", "content": "x"}))
        .await;
    assert_eq!(code, "outside_workspace");
    assert!(message.contains(outside.to_str().unwrap()), "{message}");
    assert!(!outside.exists());
}

#[tokio::test]
async fn write_to_file_saves_the_old_file_before_it_changes() {
    let bench = Bench::new();
    let path = bench.write("kept.txt", "old");
    bench
        .err(
            &define_tool(),
            json!({"path": "kept.txt", "content": "new"}),
        )
        .await;
    assert!(bench.history.saved.lock().unwrap().is_empty());

    bench
        .ok(
            &define_tool(),
            json!({"path": "made.txt", "content": "new"}),
        )
        .await;
    let made = vec![("call-1".to_owned(), path.with_file_name("made.txt"))];
    assert_eq!(*bench.history.saved.lock().unwrap(), made);
    assert_eq!(*bench.history.changed.lock().unwrap(), made);
}
