use std::fs;
use std::process::Command;

use haft_types::SandboxLayer;

use super::*;
use crate::SandboxMode;

#[test]
fn quoted_names_are_read_back_by_git() {
    let names = ["plain", "two words", "a\"b\\c", "tab\tnew\nline", "ü"].map(OsStr::new);
    let lines = [
        "\"plain\"",
        "\"two words\"",
        "\"a\\042b\\134c\"",
        "\"tab\\011new\\012line\"",
        "\"\\303\\274\"",
    ];
    assert_eq!(
        quote_paths(names),
        lines.map(|line| format!("{line}\n")).concat()
    );
}

/// Creates a repository in `project` with one commit of a file.
fn create_repository(folder: &Path) {
    fs::create_dir(folder.join("project")).unwrap();
    fs::write(folder.join("project/file"), "one\n").unwrap();
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "file"],
        &["commit", "--quiet", "-m", "one"],
    ] {
        let mut git = Command::new("git");
        let ran = git
            .args(identity)
            .args(arguments)
            .current_dir(folder.join("project"))
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
}

/// In the sandbox, git reads, and writes only to the given paths.
#[test]
fn git_reads_a_repository_it_cannot_write() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    create_repository(&at);
    let [tmp, notes] = ["tmp", "notes"].map(|name| at.join(name));
    fs::create_dir(&tmp).unwrap();
    let policy = SandboxPolicy {
        projects: Vec::new(),
        writable: Vec::new(),
        protected: Vec::new(),
        repositories: Vec::new(),
        hidden: vec![at.join("scratch")],
        readable: Vec::new(),
        tmp,
        notes,
        home: None,
        network: Network::None,
    };
    let supervisor = Supervisor::for_tests().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let sandbox = runtime.block_on(Sandbox::set_up(&supervisor, policy, SandboxMode::Auto));
    if sandbox.status().layer == SandboxLayer::None {
        println!("skipped: there is no sandbox here");
        return;
    }
    let project = at.join("project");
    let program = GitProgram::find(&supervisor, &sandbox, &[], &[&project]).unwrap();
    let git = Git::open(program, &project, &at.join("scratch")).unwrap();
    assert_eq!(
        git.run_for_line(["rev-parse", "--is-bare-repository"])
            .unwrap(),
        "false"
    );
    // A different size: git would not notice a change within one tick of the clock.
    fs::write(project.join("file"), "two, and more\n").unwrap();
    fs::write(project.join("new \"name\"\n"), "new\n").unwrap();
    let diff = git.run(["diff", "HEAD"]).unwrap();
    assert!(String::from_utf8_lossy(&diff).contains("-one\n+two"));
    for arguments in [
        &["hash-object", "-w", "file"][..],
        &["tag", "x"],
        &["add", "file"],
        &["config", "a.b", "c"],
    ] {
        assert!(git.run(arguments.iter().copied()).is_err(), "{arguments:?}");
    }
    fs::copy(git.index_path(), git.own_folder().join("index")).unwrap();
    let writing = git.for_writing(&project, "index").unwrap();
    let odd = OsStr::new("new \"name\"\n");
    writing
        .run_with_paths(["update-index", "--add", "--stdin"], [odd])
        .unwrap();
    assert!(
        writing
            .run_for_line(["ls-files", "-z"])
            .unwrap()
            .contains("new \"name\"\n")
    );
    assert!(
        writing.run(["checkout-index", "--force", "--all"]).is_err(),
        "the user's files are not written"
    );
    assert_eq!(
        fs::read_to_string(project.join("file")).unwrap(),
        "two, and more\n"
    );
    assert!(writing.run(["tag", "x"]).is_err());
}

#[test]
fn git_refuses_a_repository_of_another_user() {
    if rustix::process::geteuid().as_raw() != 0 {
        println!("skipped: only root can give files away");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    create_repository(&at);
    std::os::unix::fs::chown(at.join("project/.git"), Some(65534), None).unwrap();
    let below = at.join("project/below");
    fs::create_dir(&below).unwrap();
    let program = GitProgram::find(
        &Supervisor::for_tests().unwrap(),
        &Sandbox::disabled("a test"),
        &[],
        &[&below],
    )
    .unwrap();
    let error = Git::open(program, &below, &at.join("scratch")).unwrap_err();
    assert!(
        error.to_string().contains("belongs to another user"),
        "{error}"
    );
}
