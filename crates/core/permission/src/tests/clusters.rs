//! Values attached to clusters of short options name files like words of their own.

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::PermissionRequest;

const PROGRAMS: [&str; 12] = [
    "cp", "mv", "ln", "install", "unzip", "csplit", "mktemp", "grep", "split", "rsync", "patch",
    "touch",
];

fn decide(line: &str, deny: &[&str]) -> Decision {
    let project = Project::new();
    let allow = PROGRAMS.map(|name| format!("execute_command({name}:*)"));
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    let permissions = permissions(PermissionMode::Ask, &allow, &[], deny);
    permissions
        .decide(&PermissionRequest::for_command(line), &project.workspace)
        .decision
}

#[test]
fn protected_files_behind_a_cluster_of_options_ask() {
    for line in [
        "cp -t.git/hooks a",
        "cp -ft.git/hooks a",
        "mv -ft.git/hooks a",
        "ln -st.git/hooks a",
        "ln -sfnt.git/hooks a",
        "install -Dt.git/hooks a",
        "unzip -qod.git/hooks a.zip",
        "csplit -sf.git/hooks/x a 1",
        "mktemp -qp.git/hooks",
        "split -dl5 a -x.git/hooks/x",
        "rsync -avT.git/hooks a b",
        "patch -sd.git/hooks",
        "touch -cr.git/config a",
        "cp -ft./.git/hooks a",
        "cp -ftsrc/../.git/hooks a",
        "cp -ft.GIT/hooks a",
        "cp '-ft.git/hooks' a",
        "cp -f\"t.git\"/hooks a",
        "cp -ft.g[i]t/hooks a",
        "mktemp -qpJenkinsfile",
        "cp -fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffft.git/hooks a",
    ] {
        assert_eq!(decide(line, &[]), Decision::Ask, "{line}");
    }
    for line in [
        "cp -ftout a",
        "cp -ft out a",
        "mv -f src/a src/b",
        "install -Dtout a",
        "unzip -qodout a.zip",
        "csplit -sfout/x a 1",
        "mktemp -qpout",
        "grep -rnwe'.gitignore' src",
        "cp -ftout/.gitkeep a",
    ] {
        assert_eq!(decide(line, &[]), Decision::Allow, "{line}");
    }
}

#[test]
fn denied_files_behind_a_cluster_of_options_are_denied() {
    let deny = ["read_file(**/.env)", "read_file(secrets/**)"];
    for line in [
        "grep -f.env a",
        "grep -hf.env a",
        "grep -rhnf.env src",
        "grep -hfsecrets/key a",
        "grep -hf./secrets/key a",
        "rsync -avesecrets/key a b",
        "tool -xyz.env",
    ] {
        assert_eq!(decide(line, &deny), Decision::Deny, "{line}");
    }
    for line in ["grep -hn.envx a", "grep -hfout/env a", "cp -ftout/x a"] {
        assert_eq!(decide(line, &deny), Decision::Allow, "{line}");
    }
}
