//! `haft lib` against a real git repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;
use crate::sandbox::has_namespaces;

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let ran = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(identity)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn write_file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn lib_add_refresh_and_remove_change_what_is_sent() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: git is not installed");
        return;
    }
    let source = tempfile::tempdir().unwrap();
    write_file(
        &source.path().join("github.com/pallets/flask/quick.md"),
        "Flask in brief.\n",
    );
    git(source.path(), &["init", "-q"]);
    git(source.path(), &["add", "."]);
    git(source.path(), &["commit", "-qm", "one"]);

    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.").times(3)]).unwrap(),
    );
    let address = source.path().display().to_string();
    assert_eq!(
        rig.run(&["lib", "proxy", &address]).stdout(),
        format!("{address}\n")
    );
    let added = rig.run(&["lib", "add", "flask"]);
    assert_eq!(added.code(), 0, "{}", added.stderr());
    assert!(
        rig.run(&["lib", "add", "pallets/flask"])
            .stdout()
            .contains("added already")
    );
    assert_eq!(
        rig.run(&["lib", "list", "--json"]).json()[0]["name"],
        "github.com/pallets/flask"
    );
    let sent = |rig: &Rig| {
        String::from_utf8_lossy(&rig.server.requests().last().unwrap().body).into_owned()
    };
    rig.task(&["hello"]);
    assert!(
        sent(&rig).contains("# pallets/flask/quick.md\\n\\nFlask in brief."),
        "{}",
        sent(&rig)
    );

    write_file(
        &source.path().join("github.com/pallets/flask/quick.md"),
        "Flask anew.\n",
    );
    git(source.path(), &["commit", "-qam", "two"]);
    let refreshed = rig.run(&["lib", "refresh"]);
    assert_eq!(refreshed.code(), 0, "{}", refreshed.stderr());
    rig.task(&["hello"]);
    assert!(sent(&rig).contains("Flask anew."));
    assert_eq!(rig.run(&["lib", "remove", "flask"]).code(), 0);
    rig.task(&["hello"]);
    assert!(!sent(&rig).contains("Flask"));
}

#[test]
fn lib_add_changes_nothing_if_the_fetch_fails() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    rig.run(&["lib", "proxy", "/nowhere/at/all"]);
    for wrong in ["", "--upload-pack=x"] {
        assert_eq!(rig.run(&["lib", "proxy", "--", wrong]).code(), 2, "{wrong}");
    }
    let added = rig.run(&["lib", "add", "flask"]);
    assert_eq!(added.code(), 2);
    assert!(
        added.stderr().contains("could not fetch the libraries"),
        "{}",
        added.stderr()
    );
    assert_eq!(
        rig.run(&["lib", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        0
    );
    let left: Vec<_> = fs::read_dir(rig.home().join("data/libraries"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["libraries.toml"]);
}

/// A source behind `ssh` is fetched in the sandbox like any other; it can use the user's key agent
/// and nothing more.
#[test]
fn lib_add_fetches_a_source_behind_ssh_confined() {
    let python = Command::new("python3").arg("--version").output().is_ok();
    if !python || Command::new("git").arg("--version").output().is_err() {
        println!("skipped: git or python3 is not installed");
        return;
    }
    for source_name in ["host:repo", "ssh://host/repo", "me@host:repo"] {
        let rig = Rig::new(
            Api::Anthropic,
            Script::replies([Reply::text("Done.")]).unwrap(),
        );
        if !has_namespaces(&rig) {
            return;
        }
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let folder = place.path().canonicalize().unwrap();
        let source = folder.join("source");
        write_file(
            &source.join("github.com/pallets/flask/quick.md"),
            "Flask in brief.\n",
        );
        for arguments in [
            &["init", "-q"][..],
            &["add", "."],
            &["commit", "-qm", "one"],
        ] {
            git(&source, arguments);
        }
        let agent = folder.join("agent");
        let ssh = folder.join("ssh");
        let planted = folder.join("planted");
        let socket = std::os::unix::net::UnixListener::bind(&agent).unwrap();
        let heard = std::thread::spawn(move || socket.accept().is_ok());
        let script = format!(
            "#!/bin/sh\necho x > '{planted}'\necho x > \"$HOME/.ssh/authorized_keys\"\n\
             python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect(os.environ[\"SSH_AUTH_SOCK\"])'\n\
             exec git-upload-pack '{source}'\n",
            planted = planted.display(),
            source = source.display()
        );
        write_file(&ssh, &script);
        fs::set_permissions(&ssh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let own = format!(
            "[core]\n\tsshCommand = \"'{}'\"\n[safe]\n\tdirectory = *\n",
            ssh.display()
        );
        write_file(&folder.join(".gitconfig"), &own);
        fs::create_dir_all(folder.join(".ssh")).unwrap();
        rig.run(&["lib", "proxy", source_name]);
        let mut command = rig.command(&["lib", "add", "flask"]);
        let added = command
            .env("HOME", &folder)
            .env("SSH_AUTH_SOCK", &agent)
            .output()
            .unwrap();
        assert!(
            added.status.success(),
            "{source_name}: {}",
            String::from_utf8_lossy(&added.stderr)
        );
        assert!(
            !planted.exists() && !folder.join(".ssh/authorized_keys").exists(),
            "{source_name}: it is confined"
        );
        assert!(heard.join().unwrap(), "{source_name}: the agent was asked");
    }
}
