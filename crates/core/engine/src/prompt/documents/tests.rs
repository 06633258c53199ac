use std::fs;

use haft_tool::{FileState, ReadLedger};
use haft_types::ContentHash;

use super::*;
use crate::prompt::touched_files::Mentions;

struct Letters;

impl TokenCounter for Letters {
    fn count_text(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

struct Place {
    _folder: tempfile::TempDir,
    documents: StandingDocuments,
    reads: ReadLedger,
    mentions: Mentions,
}

impl Place {
    fn new(trusted: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let user = root.join("user");
        let root = root.join("project");
        fs::create_dir(&root).unwrap();
        let libraries = Libraries::in_folder(user.join("libraries"));
        let paths = KnowledgePaths {
            cwd: root.clone(),
            user,
            root,
            trusted,
            home: None,
        };
        let documents =
            StandingDocuments::new(paths, libraries, Masker::default(), ProjectRules::Include);
        Self {
            _folder: folder,
            documents,
            reads: ReadLedger::default(),
            mentions: Mentions::default(),
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.documents.paths.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(&mut self) -> bool {
        self.documents.refresh(
            TouchedFiles {
                reads: &self.reads,
                mentions: &self.mentions,
            },
            None,
            &Letters,
        )
    }

    fn touch(&self, name: &str) {
        let state = FileState {
            size: 0,
            mtime_ns: 0,
            hash: ContentHash::from_content(b""),
        };
        self.reads
            .record_seen(&self.documents.paths.root.join(name), state);
    }

    fn headings(&self) -> Vec<String> {
        self.documents
            .documents
            .iter()
            .map(|document| document.heading.clone())
            .collect()
    }
}

#[test]
fn look_finds_new_changed_and_removed_files() {
    let mut place = Place::new(true);
    assert!(!place.look(), "nothing there");
    place.write("AGENTS.md", "Use tabs.");
    place.write("code_law.md", "lower");
    assert!(place.look());
    assert_eq!(place.headings(), ["AGENTS.md", "code_law.md"]);
    assert_eq!(place.documents.agents_md(), Some("Use tabs."));
    assert!(!place.look(), "a second look changes nothing");
    place.write("AGENTS.md", "Use spaces.");
    assert!(place.look());
    place.write("CODE_LAW.md", "UPPER");
    assert!(place.look());
    assert_eq!(place.headings(), ["AGENTS.md", "CODE_LAW.md"]);
    fs::remove_file(place.documents.paths.root.join("AGENTS.md")).unwrap();
    assert!(place.look());
    assert_eq!(place.headings(), ["CODE_LAW.md"]);
}

#[test]
fn look_ignores_a_changed_time_without_changed_content() {
    let mut place = Place::new(true);
    place.write("AGENTS.md", "same");
    place.look();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let path = place.documents.paths.root.join("AGENTS.md");
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(later)
        .unwrap();
    assert!(!place.look());
}

#[test]
fn look_sends_copies_and_links_once() {
    let mut place = Place::new(true);
    place.write("AGENTS.md", "same");
    std::os::unix::fs::symlink("AGENTS.md", place.documents.paths.root.join("CLAUDE.md")).unwrap();
    place.look();
    assert_eq!(place.headings(), ["AGENTS.md"]);
}

#[test]
fn look_skips_a_huge_file_and_reports_it_once() {
    let mut place = Place::new(true);
    place.write("AGENTS.md", &"x".repeat(300 * 1024));
    place.look();
    let problems = place.documents.take_problems();
    assert!(problems[0].contains("larger than 256 KB"), "{problems:?}");
    assert_eq!(place.documents.agents_md(), None);
    place.look();
    assert!(place.documents.take_problems().is_empty());
}

#[test]
fn look_loads_rules_when_they_apply_and_drops_deleted_ones() {
    let mut place = Place::new(true);
    place.write(
        ".haft/rules/always.md",
        "---\nalwaysApply: true\n---\nAlways.",
    );
    place.write(".haft/rules/python.md", "---\nglobs: '*.py'\n---\nPython.");
    place.write(
        ".haft/rules/rare.md",
        "---\ndescription: For releases.\n---\nRare.",
    );
    assert!(place.look());
    assert_eq!(place.headings(), [".haft/rules/always.md", "Further rules"]);
    let listed = &place.documents.documents[1].text;
    assert!(
        listed.ends_with("- `.haft/rules/rare.md`: For releases."),
        "{listed}"
    );
    place.touch("src/a.rs");
    assert!(!place.look(), "no rule is about that");
    place.touch("src/a.py");
    assert!(place.look());
    assert_eq!(
        place.headings(),
        [
            ".haft/rules/always.md",
            ".haft/rules/python.md",
            "Further rules"
        ]
    );
    fs::remove_file(place.documents.paths.root.join(".haft/rules/always.md")).unwrap();
    place.write(".haft/rules/index.md", "See rare.md.");
    assert!(place.look());
    assert_eq!(
        place.headings(),
        [".haft/rules/index.md", ".haft/rules/python.md"]
    );
    assert!(
        place.documents.documents[0]
            .text
            .starts_with("See rare.md.\n\nStart by reading")
    );
}

#[test]
fn look_loads_nested_instructions_once_a_file_below_is_touched() {
    let mut place = Place::new(true);
    place.write("AGENTS.md", "root");
    place.write("lib/AGENTS.md", "lib");
    place.look();
    assert_eq!(place.headings(), ["AGENTS.md"]);
    place.touch("lib/deep/x.rs");
    assert!(place.look());
    assert_eq!(place.headings(), ["AGENTS.md", "lib/AGENTS.md"]);
}

#[test]
fn look_skips_files_of_an_untrusted_project() {
    let mut place = Place::new(false);
    place.write("AGENTS.md", "theirs");
    place.write("CODE_LAW.md", "theirs");
    place.write(".haft/rules/a.md", "---\nalwaysApply: true\n---\ntheirs");
    place.write("../user/AGENTS.md", "mine");
    place.write("../user/rules/b.md", "---\nalwaysApply: true\n---\nmine");
    assert!(place.look());
    let user = place.documents.paths.user.display().to_string();
    assert_eq!(
        place.headings(),
        [format!("{user}/rules/b.md"), format!("{user}/AGENTS.md")]
    );
}

#[test]
fn look_puts_library_documentation_first_and_reloads_it() {
    let mut place = Place::new(true);
    place.write("AGENTS.md", "root");
    place.write(
        "../user/libraries/repository/github.com/a/flask/one.md",
        "One.",
    );
    place.look();
    assert_eq!(place.headings(), ["AGENTS.md"]);
    let root = place.documents.paths.root.clone();
    place
        .documents
        .libraries
        .add_library(&root, "github.com/a/flask")
        .unwrap();
    assert!(place.look());
    assert_eq!(place.headings(), ["a/flask/one.md", "AGENTS.md"]);
    place.write(
        "../user/libraries/repository/github.com/a/flask/one.md",
        "Two.",
    );
    assert!(place.look());
    assert_eq!(place.documents.documents[0].text, "Two.");
    assert_eq!(place.documents.documents[0].need, Need::IfRoom);
}
