//! Edits every kind of text file with every tool: all bytes outside the edit and all other
//! properties of the file stay.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use encoding_rs::{SHIFT_JIS, WINDOWS_1252};
use haft_tool::Tool;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};

use crate::files::edit_file;
use crate::files::multi_edit;
use crate::files::replace_in_file;
use crate::testing::Bench;

#[derive(Clone, Copy, Debug)]
enum Ends {
    Lf,
    Crlf,
    Cr,
    Mixed,
}

#[derive(Clone, Copy, Debug)]
enum Last {
    Ended,
    Open,
}

#[derive(Clone, Copy, Debug)]
enum Written {
    Utf8,
    Utf8Mark,
    Utf16Le,
    Utf16Be,
    Latin1,
    ShiftJis,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Link,
    HardLink,
}

/// The line that is edited.
#[derive(Clone, Copy, Debug)]
enum Place {
    Middle,
    LastLine,
}

const OLD: &str = "the old line";
const NEW: [&str; 2] = ["a new line", "and another"];

impl Ends {
    fn of(self, line: usize) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::Crlf => "\r\n",
            Self::Cr => "\r",
            Self::Mixed => ["\n", "\r\n", "\r\n"][line % 3],
        }
    }
}

impl Written {
    /// Returns lines that need the encoding.
    fn lines(self) -> [&'static str; 3] {
        match self {
            Self::Latin1 => [
                "Größe und Länge für Käse",
                "\tnaïve Prüfung",
                "être déjà là",
            ],
            Self::ShiftJis => [
                "これは設定ファイルです。",
                "変更しないでください",
                "名前 = 値",
            ],
            Self::Utf8 | Self::Utf8Mark | Self::Utf16Le | Self::Utf16Be => {
                ["plain and grün", "\t漢字 and 😀", "  the end"]
            }
        }
    }

    fn bytes(self, text: &str) -> Vec<u8> {
        let marked = format!("\u{FEFF}{text}");
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8Mark => marked.into_bytes(),
            Self::Utf16Le => marked.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => marked.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Self::Latin1 => WINDOWS_1252.encode(text).0.into_owned(),
            Self::ShiftJis => SHIFT_JIS.encode(text).0.into_owned(),
        }
    }
}

/// A file before and after the edit.
struct Case {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Case {
    fn new(ends: Ends, last: Last, written: Written, place: Place) -> Self {
        let [one, two, three] = written.lines();
        let lines = match place {
            Place::Middle => [one, OLD, two, three],
            Place::LastLine => [one, two, three, OLD],
        };
        let mut before = String::new();
        let mut after = String::new();
        for (index, line) in lines.into_iter().enumerate() {
            // A new line ends like the line it replaces; if that has no line break, like the line
            // before it.
            let end = ends.of(index);
            let is_last = index + 1 == lines.len();
            let own = if is_last && matches!(last, Last::Open) {
                ""
            } else {
                end
            };
            before.extend([line, own]);
            if line == OLD {
                let between = if own.is_empty() {
                    ends.of(index - 1)
                } else {
                    own
                };
                after.extend([NEW[0], between, NEW[1], own]);
            } else {
                after.extend([line, own]);
            }
        }
        Self {
            before: written.bytes(&before),
            after: written.bytes(&after),
        }
    }
}

fn calls() -> [(Arc<dyn Tool>, Value); 4] {
    let new = NEW.join("\n");
    let diff = format!("<<<<<<< SEARCH\n{OLD}\n=======\n{new}\n>>>>>>> REPLACE");
    let patch = format!(
        "*** Begin Patch\n*** Update File: file\n@@\n-{OLD}\n+{}\n+{}\n*** End Patch",
        NEW[0], NEW[1]
    );
    let edits = json!([{"path": "file", "old_string": OLD, "new_string": new}]);
    [
        (
            Arc::new(replace_in_file::define_tool()),
            json!({"path": "file", "diff": diff}),
        ),
        (
            Arc::new(haft_changes::apply_patch()),
            json!({"patch": patch}),
        ),
        (Arc::new(multi_edit::define_tool()), json!({"edits": edits})),
        (
            Arc::new(edit_file::define_tool()),
            json!({"path": "file", "old_text": OLD, "new_text": new}),
        ),
    ]
}

/// Writes the file; `file` may be a link to it.
fn write_file(bench: &Bench, kind: Kind, bytes: &[u8], mode: u32) -> PathBuf {
    let real = match kind {
        Kind::Plain => bench.write("file", bytes),
        Kind::Link => {
            let real = bench.write("elsewhere/real", bytes);
            symlink("elsewhere/real", bench.path("file")).unwrap();
            real
        }
        Kind::HardLink => {
            let real = bench.write("file", bytes);
            fs::hard_link(&real, bench.path("other")).unwrap();
            real
        }
    };
    let _ = setxattr(&real, "user.haft", b"kept", XattrFlags::empty());
    fs::set_permissions(&real, Permissions::from_mode(mode)).unwrap();
    real
}

fn read_attribute(path: &Path) -> Option<Vec<u8>> {
    let mut value = [0; 16];
    let length = getxattr(path, "user.haft", &mut value[..]).ok()?;
    Some(value[..length].to_vec())
}

async fn check_trial(trial: Trial) {
    let Trial {
        case,
        kind,
        mode,
        tool,
        call,
        what,
    } = trial;
    let bench = Bench::in_memory();
    let real = write_file(&bench, kind, &case.before, mode);
    let names = bench.files();
    let was = fs::metadata(&real).unwrap();
    let noted = read_attribute(&real);
    let output = bench.run(tool.as_ref(), call).await;
    let error = output.envelope.error.map(|error| error.code);
    let content = fs::read(&real).unwrap();
    let now = fs::metadata(&real).unwrap();

    assert_eq!(bench.files(), names, "{what}: something was left behind");
    assert_eq!(
        (now.mode(), now.uid(), now.gid()),
        (was.mode(), was.uid(), was.gid()),
        "{what}"
    );
    assert_eq!(read_attribute(&real), noted, "{what}");
    assert_eq!(
        bench.path("file").is_symlink(),
        kind == Kind::Link,
        "{what}"
    );
    if mode & 0o200 == 0 {
        assert_eq!(error.as_deref(), Some("read_only"), "{what}");
        assert_eq!(content, case.before, "{what}");
        assert_eq!(
            (now.ino(), now.mtime_nsec()),
            (was.ino(), was.mtime_nsec()),
            "{what}: touched"
        );
        return;
    }
    assert_eq!(error, None, "{what}: {}", output.envelope.text);
    assert_eq!(
        content.escape_ascii().to_string(),
        case.after.escape_ascii().to_string(),
        "{what}"
    );
    let note = output.envelope.data["note"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if kind == Kind::HardLink {
        assert_eq!(bench.read("other"), case.before, "{what}");
        assert!(
            note.contains("hard link") && output.envelope.text.contains(&note),
            "{what}: {note}"
        );
    } else {
        assert_eq!(note, "", "{what}");
    }
}

/// One file and one call.
struct Trial {
    case: Arc<Case>,
    kind: Kind,
    mode: u32,
    tool: Arc<dyn Tool>,
    call: Value,
    what: String,
}

fn trials() -> Vec<Trial> {
    use {Ends::*, Last::*, Place::*, Written::*};
    let calls = calls();
    let mut trials = Vec::new();
    for ends in [Lf, Crlf, Cr, Mixed] {
        for last in [Ended, Open] {
            for written in [Utf8, Utf8Mark, Utf16Le, Utf16Be, Latin1, ShiftJis] {
                for place in [Middle, LastLine] {
                    let case = Arc::new(Case::new(ends, last, written, place));
                    for mode in [0o644, 0o755, 0o400] {
                        for kind in [Kind::Plain, Kind::Link, Kind::HardLink] {
                            // The tools take turns, so that each is tried with every value of every
                            // property.
                            let (tool, call) =
                                &calls[(trials.len() + trials.len() / 9) % calls.len()];
                            let name = &tool.spec().name;
                            let what = format!(
                                "{name}: {ends:?} {last:?} {written:?} {place:?} {mode:o} {kind:?}"
                            );
                            let case = Arc::clone(&case);
                            let tool = Arc::clone(tool);
                            let call = call.clone();
                            trials.push(Trial {
                                case,
                                kind,
                                mode,
                                tool,
                                call,
                                what,
                            });
                        }
                    }
                }
            }
        }
    }
    trials
}

#[tokio::test]
async fn edits_keep_everything_else_of_every_kind_of_file() {
    let trials = trials();
    assert_eq!(trials.len(), 4 * 2 * 6 * 2 * 3 * 3);
    for trial in trials {
        check_trial(trial).await;
    }
}
