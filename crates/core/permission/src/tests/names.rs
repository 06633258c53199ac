//! Tests of patterns with file rules: where denied files are hidden, the names to which the shell
//! would expand a pattern are looked up.

use std::fs;

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions, ProjectFiles};

fn project() -> Project {
    let project = Project::new();
    for path in [
        "a.txt",
        "b.txt",
        "c1.log",
        "notes/n.md",
        "dashed/-rf.txt",
        "secrets/key.pem",
        "keys/key.txt",
        ".env",
    ] {
        let at = project.root().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, "x").unwrap();
    }
    project
}

fn denying(confinement: Confinement) -> Permissions {
    let denied = [
        "read_file(**/.env)",
        "read_file(secrets/**)",
        "read_file(keys/*.txt)",
    ];
    Permissions {
        confinement,
        ..permissions(
            PermissionMode::Ask,
            &["execute_command(sort:*)"],
            &[],
            &denied,
        )
    }
}

fn decision(line: &str, confinement: Confinement, project_files: ProjectFiles) -> Decision {
    let call = PermissionRequest {
        project_files,
        ..PermissionRequest::command(line)
    };
    denying(confinement)
        .decide(&call, &project().workspace)
        .decision
}

#[test]
fn pattern_that_could_name_a_denied_file_is_looked_up_in_the_sandbox() {
    for line in [
        "grep -r X *.txt",
        "grep -rn X *.txt notes/*.md",
        "sort ./*s/n*",
    ] {
        assert_eq!(
            decision(line, Confinement::Sandbox, ProjectFiles::Still),
            Decision::Allow,
            "{line}"
        );
        for (confinement, files) in [
            (Confinement::None, ProjectFiles::Still),
            (Confinement::Folders, ProjectFiles::Still),
            (Confinement::Sandbox, ProjectFiles::Changing),
        ] {
            assert_eq!(
                decision(line, confinement, files),
                Decision::Ask,
                "{line}: {confinement:?} {files:?}"
            );
        }
    }
}

#[test]
fn pattern_that_can_name_no_denied_file_is_allowed() {
    for line in [
        "grep X [ab].txt",
        "cat ?.txt",
        "cat c[0-9].log",
        "sort *.txt",
        "cat *.none",
        "cd notes && cat *.md",
    ] {
        assert_eq!(
            decision(line, Confinement::Sandbox, ProjectFiles::Still),
            Decision::Allow,
            "{line}"
        );
    }
}

#[test]
fn pattern_that_names_a_denied_file_is_not_allowed() {
    for line in [
        "cat keys/*.txt",
        "cat keys/*",
        "cat */*.pem",
        "cat .e*",
        "cat .*",
        "cat [.]env",
        "grep -r X *",
        "grep -r *.txt",
        "grep -r -f *.txt",
        "sort secrets/*",
    ] {
        assert_ne!(
            decision(line, Confinement::Sandbox, ProjectFiles::Still),
            Decision::Allow,
            "{line}"
        );
    }
}

#[test]
fn pattern_with_too_many_names_asks() {
    let decided_with = |files: u32| {
        let project = project();
        for number in 0..files {
            fs::write(project.root().join(format!("notes/n{number}")), "").unwrap();
        }
        let call = PermissionRequest::command("sort ./*s/n*");
        denying(Confinement::Sandbox)
            .decide(&call, &project.workspace)
            .decision
    };
    assert_eq!(decided_with(900), Decision::Allow);
    assert_eq!(decided_with(1_100), Decision::Ask);
}

#[test]
fn pattern_that_is_not_known_still_asks() {
    for line in [
        "cd dashed && cat *",
        "cat \"$x\"*",
        "cat {a,.env}*",
        "cat \\.e*",
        "cat s'ecret's/*",
    ] {
        assert_eq!(
            decision(line, Confinement::Sandbox, ProjectFiles::Still),
            Decision::Ask,
            "{line}"
        );
    }
    // With a folder before it, the name cannot be an option.
    assert_eq!(
        decision("cat dashed/*", Confinement::Sandbox, ProjectFiles::Still),
        Decision::Allow
    );
}
