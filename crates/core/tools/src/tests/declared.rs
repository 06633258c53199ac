//! Tests that a call writes only files that it declared before approval.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{Access, FileUse, Intent, Tool};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use serde_json::{Value, json};

use crate::files::read_file;
use crate::paths;
use crate::testing::{Bench, builtin};

const WRITES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO);

/// Records every write below some folders.
struct Watch {
    descriptor: OwnedFd,
    folders: Vec<(i32, PathBuf)>,
}

impl Watch {
    fn below(tops: &[&Path]) -> Self {
        let descriptor = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut folders = Vec::new();
        for entry in tops.iter().flat_map(|top| {
            ignore::WalkBuilder::new(top)
                .standard_filters(false)
                .build()
        }) {
            let path = entry.unwrap().into_path();
            if path.is_dir() && !path.is_symlink() {
                folders.push((
                    inotify::add_watch(&descriptor, &path, WRITES).unwrap(),
                    path,
                ));
            }
        }
        Self {
            descriptor,
            folders,
        }
    }

    /// Returns every path that was written, created, moved or removed.
    fn written(&self) -> BTreeSet<PathBuf> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(&self.descriptor, &mut buffer);
        let mut written = BTreeSet::new();
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            let folder = self
                .folders
                .iter()
                .find(|(descriptor, _)| *descriptor == event.wd())
                .map(|(_, path)| path);
            if let (Some(folder), Some(name)) = (folder, event.file_name()) {
                written.insert(folder.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
            }
        }
        written
    }
}

/// Returns valid calls of the tool for the project of [`project`].
fn example_calls(tool: &str) -> Vec<Value> {
    match tool {
        "read_file" => vec![
            json!({"path": "src/a.rs"}),
            json!({"path": "docs/paper.pdf"}),
        ],
        "write_to_file" => vec![
            json!({"path": "new/deep/file.txt", "content": "text"}),
            json!({"path": "src/b.rs", "content": "text"}),
            json!({"path": "link.txt", "content": "through a link"}),
        ],
        "replace_in_file" => {
            vec![
                json!({"path": "src/a.rs", "diff": "<<<<<<< SEARCH\nfn a() {}\n=======\nfn b() {}\n>>>>>>> REPLACE\n"}),
            ]
        }
        "edit_file" => vec![json!({"path": "src/a.rs", "old_text": "a()", "new_text": "b()"})],
        "multi_edit" => vec![json!({"edits": [
            {"path": "src/a.rs", "old_string": "a()", "new_string": "b()"},
            {"path": "src/b.rs", "old_string": "b()", "new_string": "c()"},
        ]})],
        "apply_patch" => vec![
            json!({"patch": "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/moved.rs\n@@\n-fn a() {}\n+fn b() {}\n*** Delete File: src/b.rs\n*** Add File: src/c.rs\n+fn c() {}\n*** End Patch\n"}),
        ],
        "list_files" => vec![json!({"path": ".", "recursive": true})],
        "search_files" => vec![json!({"path": ".", "regex": "fn"})],
        "undo_edit" | "useful_info_list" | "todo_read" | "conversation_message_ids_read" => {
            vec![json!({})]
        }
        "execute_command" => vec![json!({"command": "true", "requires_approval": false})],
        "session_start" => vec![json!({"command": "true"})],
        "session_interactive" | "session_stop" => vec![json!({"session_id": "s1"})],
        "background_task" => vec![
            json!({"action": "list"}),
            json!({"action": "start", "command": "true"}),
        ],
        "todo_write" => vec![json!({"todos": [{"content": "a", "status": "pending"}]})],
        "ask_followup_question" => vec![json!({"question": "Why?"})],
        "attempt_completion" => vec![json!({"result": "Done."})],
        "useful_info_add" => {
            vec![json!({"path": "src/a.rs", "start_line": 1, "end_line": 1, "description": "it"})]
        }
        "useful_info_delete" => vec![json!({"number": 1})],
        "note_add" => vec![json!({"path": "src/a.rs", "note": "it"})],
        "note_query" | "ac_mod_list" | "ac_mod_read" | "list_code_definition_names" => {
            vec![json!({"path": "src"})]
        }
        "note_update" => vec![json!({"note_id": "n1", "note": "it"})],
        "note_delete" => vec![json!({"note_id": "n1"})],
        "conversation_message_ids_write" => {
            vec![json!({"message_ids": "1a2b3c4d", "action": "append"})]
        }
        "recall" => vec![json!({"message_id": "1a2b3c4d"})],
        "extract_to_text" => vec![
            json!({"path": "docs/paper.pdf", "output": "notes/paper.txt"}),
            json!({"path": "docs/paper.pdf"}),
            json!({"path": "linked.ipynb"}),
            json!({"path": "docs/analysis.ipynb", "output": "into/analysis.txt"}),
        ],
        "glob" => vec![json!({"pattern": "**/*.rs"})],
        "count_tokens" => vec![json!({"path": "docs/paper.pdf"})],
        "ac_mod_write" => vec![json!({"path": "src/", "content": "# src\n"})],
        other => panic!("`{other}` has no call here: add one that does what the tool does"),
    }
}

async fn project() -> Bench {
    let bench = Bench::with_store().await;
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../extensions/documents/fixtures");
    for file in ["paper.pdf", "analysis.ipynb"] {
        bench.write(
            &format!("docs/{file}"),
            fs::read(fixtures.join(file)).unwrap(),
        );
    }
    bench.write("src/.ac.mod.md", "# src\n");
    for (file, text) in [
        ("src/a.rs", "fn a() {}\n"),
        ("src/b.rs", "fn b() {}\n"),
        ("hidden/target.txt", "t\n"),
    ] {
        bench.write(file, text);
        bench
            .ok(&read_file::define_tool(), json!({"path": file}))
            .await;
    }
    symlink("hidden/target.txt", bench.path("link.txt")).unwrap();
    symlink("docs/analysis.ipynb", bench.path("linked.ipynb")).unwrap();
    symlink("hidden", bench.path("into")).unwrap();
    bench
}

/// Returns the files that a call declares to write; none if it declares no files.
fn declared_writes(bench: &Bench, tool: &dyn Tool, arguments: &Value) -> BTreeSet<PathBuf> {
    let Intent::Files(files) = tool.intent(arguments) else {
        return BTreeSet::new();
    };
    let writes = files.iter().filter_map(|file| match file {
        FileUse::Write(path) => Some(paths::resolve_path(bench.workspace(), path).unwrap()),
        FileUse::Read(_) => None,
    });
    writes.collect()
}

async fn assert_writes_are_declared(tool: &Arc<dyn Tool>, arguments: Value) {
    let bench = project().await;
    let name = tool.spec().name.clone();
    let top = bench.path("").parent().unwrap().to_owned();
    let declared = declared_writes(&bench, tool.as_ref(), &arguments);
    if tool.access() != Access::Write {
        assert_eq!(
            declared,
            BTreeSet::new(),
            "`{name}` is not said to change files"
        );
    }
    let before: BTreeSet<_> = paths_below(&top);
    // Including files outside the project, which no call may touch.
    let watch = Watch::below(&[&top]);
    bench.run(tool.as_ref(), arguments.clone()).await;
    let appeared = paths_below(&top).difference(&before).cloned().collect();
    let written: BTreeSet<PathBuf> = watch.written().union(&appeared).cloned().collect();
    let workspace = bench.workspace();
    for path in &written {
        let private = path.starts_with(&workspace.spill) || path.starts_with(&workspace.journal);
        let leads_there = declared.iter().any(|file| file.starts_with(path));
        let gone = path.symlink_metadata().is_err();
        let beside = declared.iter().any(|file| file.parent() == path.parent());
        let temporary =
            gone && beside && path.file_name().unwrap().as_bytes().starts_with(b".haft-");
        assert!(
            private || leads_there || temporary,
            "`{name}` with {arguments} wrote {}, and declared {declared:?}",
            path.display()
        );
    }
}

fn paths_below(top: &Path) -> BTreeSet<PathBuf> {
    let entries = ignore::WalkBuilder::new(top)
        .standard_filters(false)
        .build();
    entries.map(|entry| entry.unwrap().into_path()).collect()
}

#[tokio::test]
async fn calls_write_only_declared_files() {
    for tool in builtin() {
        for arguments in example_calls(&tool.spec().name) {
            assert_writes_are_declared(&tool, arguments).await;
        }
    }
}

/// Guards against a watch that reports nothing.
#[tokio::test]
async fn watch_reports_a_write() {
    let bench = project().await;
    let watch = Watch::below(&[&bench.path("")]);
    let extract = builtin()
        .into_iter()
        .find(|tool| tool.spec().name == "extract_to_text")
        .unwrap();
    bench
        .ok(
            extract.as_ref(),
            json!({"path": "docs/analysis.ipynb", "output": "src/c.txt"}),
        )
        .await;
    assert!(watch.written().contains(&bench.path("src/c.txt")));
}
