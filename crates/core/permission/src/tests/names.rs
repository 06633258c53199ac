//! Patterns beside rules on files: the names that the shell would put in are looked up where denied files are hidden.

use std::fs;

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions, ProjectFiles};

fn project() -> Project {
    let project = Project::new();
    for path in ["a.txt", "b.txt", "c1.log", "notes/n.md", "dashed/-rf.txt", "secrets/key.pem", "keys/key.txt", ".env"]
    {
        let at = project.root().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, "x").unwrap();
    }
    project
}

fn denying(confinement: Confinement) -> Permissions {
    let denied = ["read_file(**/.env)", "read_file(secrets/**)", "read_file(keys/*.txt)"];
    Permissions { confinement, ..permissions(PermissionMode::Ask, &["execute_command(sort:*)"], &[], &denied) }
}

fn decision(line: &str, confinement: Confinement, project_files: ProjectFiles) -> Decision {
    let call = PermissionRequest { project_files, ..PermissionRequest::command(line) };
    denying(confinement).decide(&call, &project().workspace).decision
}

#[test]
fn pattern_that_names_no_denied_file_is_allowed_in_the_sandbox() {
    for line in [
        "grep -r X *.txt", "grep -rn X *.txt notes/*.md", "grep X [ab].txt", "cat ?.txt", "cat c[0-9].log",
        "sort *.txt", "cat *.none", "cd notes && cat *.md", "grep -r --include=*.md X notes",
    ] {
        assert_eq!(decision(line, Confinement::Sandbox, ProjectFiles::Still), Decision::Allow, "{line}");
        for (confinement, files) in [
            (Confinement::None, ProjectFiles::Still),
            (Confinement::Folders, ProjectFiles::Still),
            (Confinement::Sandbox, ProjectFiles::Changing),
        ] {
            let stricter = decision(line, confinement, files);
            let may_differ = ["cd notes && cat *.md", "grep -r --include=*.md X notes"].contains(&line);
            assert!(stricter == Decision::Ask || may_differ, "{line}: {confinement:?} {files:?}");
        }
    }
}

#[test]
fn pattern_that_names_a_denied_file_is_not_allowed() {
    for line in [
        "cat keys/*.txt", "cat keys/*", "cat */*.pem", "cat .e*", "cat .*", "cat [.]env", "grep -r X *",
        "grep -r *.txt", "grep -r -f *.txt", "sort secrets/*",
    ] {
        assert_ne!(decision(line, Confinement::Sandbox, ProjectFiles::Still), Decision::Allow, "{line}");
    }
}

#[test]
fn pattern_that_is_not_known_still_asks() {
    let long = project();
    for number in 0..1_100 {
        fs::write(long.root().join(format!("{number}.many")), "").unwrap();
    }
    let decided = denying(Confinement::Sandbox).decide(&PermissionRequest::command("cat *.many"), &long.workspace);
    assert_eq!(decided.decision, Decision::Ask, "too many names");
    for line in ["cat dashed/*", "cd dashed && cat *", "cat \"$x\"*", "cat {a,.env}*", "cat *.t'x't", "cat \\.e*"] {
        let wanted = if line == "cat dashed/*" { Decision::Allow } else { Decision::Ask };
        assert_eq!(decision(line, Confinement::Sandbox, ProjectFiles::Still), wanted, "{line}");
    }
}
