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

fn permissions_denying_secrets(confinement: Confinement) -> Permissions {
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

fn decide_with_secrets_denied(
    line: &str,
    confinement: Confinement,
    project_files: ProjectFiles,
) -> Decision {
    let call = PermissionRequest {
        project_files,
        ..PermissionRequest::for_command(line)
    };
    permissions_denying_secrets(confinement)
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
            decide_with_secrets_denied(line, Confinement::Sandbox, ProjectFiles::Unchanging),
            Decision::Allow,
            "{line}"
        );
        for (confinement, files) in [
            (Confinement::None, ProjectFiles::Unchanging),
            (Confinement::Folders, ProjectFiles::Unchanging),
            (Confinement::Sandbox, ProjectFiles::Changing),
        ] {
            assert_eq!(
                decide_with_secrets_denied(line, confinement, files),
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
            decide_with_secrets_denied(line, Confinement::Sandbox, ProjectFiles::Unchanging),
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
            decide_with_secrets_denied(line, Confinement::Sandbox, ProjectFiles::Unchanging),
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
        let call = PermissionRequest::for_command("sort ./*s/n*");
        permissions_denying_secrets(Confinement::Sandbox)
            .decide(&call, &project.workspace)
            .decision
    };
    assert_eq!(decided_with(900), Decision::Allow);
    assert_eq!(decided_with(1_100), Decision::Ask);
}

#[test]
fn pattern_of_unknown_meaning_needs_approval() {
    for line in [
        "cd dashed && cat *",
        "cat \"$x\"*",
        "cat {a,.env}*",
        "cat \\.e*",
        "cat s'ecret's/*",
    ] {
        assert_eq!(
            decide_with_secrets_denied(line, Confinement::Sandbox, ProjectFiles::Unchanging),
            Decision::Ask,
            "{line}"
        );
    }
    // With a folder before it, the name cannot be an option.
    assert_eq!(
        decide_with_secrets_denied(
            "cat dashed/*",
            Confinement::Sandbox,
            ProjectFiles::Unchanging
        ),
        Decision::Allow
    );
}
