//! Tests an index of a folder that changes, while it is interrupted, shared and damaged.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use haft_rag::{Local, PassageResults, RagError};
use tempfile::TempDir;

struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            root: tempfile::tempdir().unwrap(),
        };
        place.write(
            "parser.rs",
            "/// Reads a zebra out of a stream.\nfn read_zebra() {}\n",
        );
        place.write("guide/lions.md", "# Lions\n\nLions sleep all day.\n");
        place
    }

    fn docs(&self) -> PathBuf {
        self.root.path().join("docs")
    }

    fn index(&self) -> PathBuf {
        self.root.path().join("data/rag/docs.db")
    }

    fn collection(&self) -> Local {
        Local::new(vec![self.docs()], self.index())
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.docs().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn passage_names(found: &PassageResults) -> Vec<String> {
    found
        .passages
        .iter()
        .map(|one| one.path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn query_finds_a_passage_by_part_of_a_name_and_shows_its_lines() {
    let place = Place::new();
    let found = place
        .collection()
        .query("where are zebras read?", 5)
        .unwrap();
    assert_eq!(passage_names(&found), ["parser.rs"]);
    let passage = &found.passages[0];
    assert_eq!((passage.start_line, passage.end_line), (1, 2));
    assert_eq!(
        passage.text,
        "/// Reads a zebra out of a stream.\nfn read_zebra() {}"
    );
    assert_eq!(
        passage.source(),
        format!("{}:1-2", place.docs().join("parser.rs").display())
    );
    assert!(
        place
            .collection()
            .query("giraffe", 5)
            .unwrap()
            .passages
            .is_empty()
    );
    assert!(
        place
            .collection()
            .query("\" ) OR (* ^", 5)
            .unwrap()
            .passages
            .is_empty(),
        "signs are no words"
    );
}

#[test]
fn query_finds_words_of_a_path_and_chinese() {
    let place = Place::new();
    place.write("guide/文档.md", "# 配置\n\n请不要修改这个配置文件。\n");
    assert_eq!(
        passage_names(&place.collection().query("guide about lions", 5).unwrap())[0],
        "lions.md"
    );
    assert_eq!(
        passage_names(&place.collection().query("怎么修改配置", 5).unwrap()),
        ["文档.md"]
    );
}

#[test]
fn update_follows_changes_in_the_folder() {
    let place = Place::new();
    let collection = place.collection();
    assert_eq!(collection.update().unwrap().0.indexed, 2);
    assert_eq!(
        collection.update().unwrap().0,
        haft_rag::IndexUpdate::default(),
        "nothing changed"
    );

    place.write("parser.rs", "fn read_tiger() {}\n");
    place.write("new.md", "A panther.\n");
    fs::remove_file(place.docs().join("guide/lions.md")).unwrap();
    let (update, _) = collection.update().unwrap();
    assert_eq!((update.indexed, update.removed), (2, 1));
    for (question, wanted) in [
        ("zebra", None),
        ("lions", None),
        ("tiger", Some("parser.rs")),
        ("panther", Some("new.md")),
    ] {
        let found = passage_names(&collection.query(question, 5).unwrap());
        assert_eq!(found.first().map(String::as_str), wanted, "{question}");
    }
    assert_eq!(collection.status().unwrap().files, 2);
}

#[test]
fn update_indexes_changed_content_even_with_an_old_time() {
    let place = Place::new();
    let collection = place.collection();
    collection.update().unwrap();
    let file = place.docs().join("parser.rs");
    let text = fs::read_to_string(&file).unwrap();
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, &text).unwrap();
    let (update, _) = collection.update().unwrap();
    assert_eq!((update.indexed, update.unchanged), (0, 1));

    // Equal length and time: only the content differs.
    fs::write(&file, text.replace("zebra", "hyena")).unwrap();
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(collection.update().unwrap().0.indexed, 1);
    assert_eq!(
        passage_names(&collection.query("hyena", 5).unwrap()),
        ["parser.rs"]
    );
}

#[test]
fn update_keeps_passages_of_a_missing_folder() {
    let place = Place::new();
    let other = place.root.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("birds.md"), "An albatross.\n").unwrap();
    let collection = Local::new(vec![place.docs(), other.clone()], place.index());
    collection.update().unwrap();
    fs::rename(&other, place.root.path().join("away")).unwrap();
    let found = collection.query("zebra", 5).unwrap();
    assert_eq!(passage_names(&found), ["parser.rs"]);
    assert!(found.notes[0].contains("is not there"), "{:?}", found.notes);
    fs::rename(place.root.path().join("away"), &other).unwrap();
    // Size and times are known: only what the renaming changed is indexed again.
    assert_eq!(
        passage_names(&collection.query("albatross", 5).unwrap()),
        ["birds.md"]
    );

    fs::remove_dir_all(place.docs()).unwrap();
    fs::remove_dir_all(&other).unwrap();
    assert!(
        matches!(collection.query("zebra", 5), Err(RagError::NoFolder(folders)) if folders.len() == 2)
    );
}

#[test]
fn index_excludes_secrets_and_links_and_masks_keys() {
    let place = Place::new();
    place.write("server.pem", "zebra private\n");
    place.write("notes.md", "The walrus key is sk-ant-REDACTED now.\n");
    let outside = place.root.path().join("outside.md");
    fs::write(&outside, "A narwhal.\n").unwrap();
    std::os::unix::fs::symlink(&outside, place.docs().join("link.md")).unwrap();
    let collection = place.collection();
    assert_eq!(
        passage_names(&collection.query("zebra private", 5).unwrap()),
        ["parser.rs"]
    );
    assert!(collection.query("narwhal", 5).unwrap().passages.is_empty());
    let found = collection.query("walrus", 5).unwrap();
    assert!(
        !found.passages[0].text.contains("abcdefghijklmnop"),
        "{}",
        found.passages[0].text
    );
    // Replaced by a link after it was indexed: still not followed.
    fs::write(place.docs().join("late.md"), "An okapi.\n").unwrap();
    collection.update().unwrap();
    fs::remove_file(place.docs().join("late.md")).unwrap();
    std::os::unix::fs::symlink(&outside, place.docs().join("late.md")).unwrap();
    assert!(collection.query("okapi", 5).unwrap().passages.is_empty());
}

#[test]
fn index_is_rebuilt_and_reported_if_damaged() {
    let place = Place::new();
    for part in 0..40 {
        place.write(
            &format!("many/{part}.md"),
            &format!("# Part {part}\n\n{}\n", "word and sentence ".repeat(200)),
        );
    }
    let collection = place.collection();
    collection.update().unwrap();
    let sound = fs::read(place.index()).unwrap();
    let write = |bytes: &[u8]| {
        for beside in ["docs.db-wal", "docs.db-shm"] {
            let _ = fs::remove_file(place.index().with_file_name(beside));
        }
        fs::write(place.index(), bytes).unwrap();
    };
    let garbage: Vec<u8> = sound
        .iter()
        .enumerate()
        .map(|(at, byte)| if at < 4096 { *byte } else { !*byte })
        .collect();
    for (what, bytes) in [
        (
            "no database",
            &b"this is not a database, and never was one; it is text"[..],
        ),
        ("every page but the first", &garbage),
        ("a header of another program", &sound[..100]),
    ] {
        write(bytes);
        let found = collection.query("zebra", 5).unwrap();
        assert_eq!(passage_names(&found), ["parser.rs"], "{what}");
        assert!(
            found.notes.iter().any(|note| note.contains("made again")),
            "{what}: {:?}",
            found.notes
        );
        assert!(
            collection.query("zebra", 5).unwrap().notes.is_empty(),
            "{what}: said once"
        );
    }
    write(b"");
    assert_eq!(
        passage_names(&collection.query("zebra", 5).unwrap()),
        ["parser.rs"]
    );
}

#[test]
fn query_finds_everything_concurrently() {
    let place = Place::new();
    for part in 0..150 {
        place.write(
            &format!("many/{part}.md"),
            &format!("# Part {part}\n\nanimal{part} lives here.\n"),
        );
    }
    std::thread::scope(|scope| {
        let both: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| place.collection().query("animal149", 5).unwrap()))
            .collect();
        for one in both {
            assert_eq!(passage_names(&one.join().unwrap())[0], "149.md");
        }
    });
    let status = place.collection().status().unwrap();
    assert_eq!(
        (status.files, status.passages),
        (152, 152),
        "nothing is there twice"
    );
}

#[test]
fn index_is_private_and_can_be_deleted() {
    let place = Place::new();
    let collection = place.collection();
    collection.update().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&place.index()), mode(place.index().parent().unwrap())),
        (0o600, 0o700)
    );
    assert!(fs::metadata(place.index()).unwrap().size() > 0);
    collection.remove_index().unwrap();
    assert_eq!(
        fs::read_dir(place.index().parent().unwrap())
            .unwrap()
            .count(),
        0
    );
    collection.remove_index().unwrap();
    assert_eq!(
        passage_names(&collection.query("zebra", 5).unwrap()),
        ["parser.rs"]
    );
}
