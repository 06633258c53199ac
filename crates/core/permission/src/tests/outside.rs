//! Without a sandbox, a rule for the beginning of a command covers no file outside the project.

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions};

const ALLOW: [&str; 13] = [
    "execute_command(cd:*)",
    "execute_command(cp:*)",
    "execute_command(mv:*)",
    "execute_command(ln:*)",
    "execute_command(rm:*)",
    "execute_command(tee -a:*)",
    "execute_command(tar:*)",
    "execute_command(sed -i:*)",
    "execute_command(cat:*)",
    "execute_command(sudo cp:*)",
    "execute_command(xargs:*)",
    "execute_command(cp a /etc/exact)",
    "execute_command(cp /opt/known:*)",
];

fn decide(permissions: &Permissions, line: &str) -> Decision {
    let project = Project::new();
    permissions
        .decide(&PermissionRequest::for_command(line), &project.workspace)
        .decision
}

#[test]
fn rules_cover_no_files_outside_the_project_without_a_sandbox() {
    let permissions = permissions(PermissionMode::Ask, &ALLOW, &[], &[]);
    let outside = [
        "cp a /etc/x",
        "cp a ../x",
        "cp a ~/x",
        "cp a away/x",
        "cp a sub/up/../x",
        "cp -t/etc a",
        "cp -ft/etc a",
        "cp --target-directory=/etc a",
        "cp a \"$HOME/x\"",
        "cp a $x",
        "cp a /e?c/x",
        "mv src/a /tmp/a",
        "ln -s a /usr/local/bin/a",
        "ln /etc/passwd a",
        "rm -rf /var/x",
        "rm ../*",
        "tee -a /etc/x",
        "tar xf a.tar -C /",
        "tar -xf a.tar -C/opt",
        "sed -i s/a/b/ /etc/hosts",
        "sudo cp a /etc/x",
        "xargs rm",
        "cd sub && cp a ../../x",
    ];
    for line in outside {
        assert_eq!(decide(&permissions, line), Decision::Ask, "{line}");
    }
    for line in [
        "cp src/a out/b",
        "cp a ./sub/../b",
        "cp src/*.rs out",
        "rm -f out/*.log",
        "mv a b",
        "ln -s ../a sub/a",
        "cat /etc/hosts",
        "tar xf a.tar -C out",
        "sed -i s/a/b/ src/a",
        "cp /dev/null a",
        "cp a /etc/exact",
        "cp /opt/known a",
        "cd sub && cp a ../b",
    ] {
        assert_eq!(decide(&permissions, line), Decision::Allow, "{line}");
    }
    // A sandbox prevents such writes by itself.
    for confinement in [Confinement::Folders, Confinement::Sandbox] {
        let confined = Permissions {
            confinement,
            ..permissions.clone()
        };
        assert_eq!(decide(&confined, "cp a /etc/x"), Decision::Allow);
    }
    let yolo = Permissions {
        mode: PermissionMode::Yolo,
        ..permissions
    };
    assert_eq!(decide(&yolo, "cp a /etc/x"), Decision::Allow);
}
