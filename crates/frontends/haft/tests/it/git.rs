//! git, as haft runs it for itself, on repositories that were built to run something: a marker must
//! never appear.
//!
//! The sandbox is switched off, so the protection holds without it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haft_testkit::Reply;

use crate::rig::Rig;
use crate::worktrees::{
    add_agent, command_call, file_text, main_result, reply_to, rig, run_git, start_agents_reply,
    worktree_folders,
};

const NO_SANDBOX: [(&str, &str); 1] = [("HAFT_SANDBOX__MODE", "off")];

/// A repository with uncommitted work, a model that reviews and then starts a sub-agent in a copy,
/// and a program that leaves a marker.
struct Trap {
    rig: Rig,
    outside: tempfile::TempDir,
}

impl Trap {
    fn new() -> Self {
        let rig = rig([
            reply_to("What is to be reviewed is", Reply::text("Fine.")),
            start_agents_reply("- {name: worker, task: TASK}"),
            reply_to(
                "TASK",
                command_call("sed -i s/one/ONE/ lines.txt && echo did it"),
            ),
            reply_to("did it", Reply::text("Worked.")),
            reply_to("## worker", Reply::text("All done.")),
            Reply::text("Fine.").times(9),
        ])
        .with(NO_SANDBOX);
        add_agent(&rig, "worker", "worktree: true");
        rig.write("lines.txt", "one\ntwo\nTHREE\nfour\nfive\n");
        let trap = Self {
            rig,
            outside: tempfile::tempdir().unwrap(),
        };
        trap.write_script(&trap.program());
        trap
    }

    fn write_script(&self, at: &Path) {
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(
            at,
            format!("#!/bin/sh\ntouch '{}'\nexit 0\n", self.marker().display()),
        )
        .unwrap();
        fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn program(&self) -> PathBuf {
        self.outside.path().join("evil")
    }

    fn marker(&self) -> PathBuf {
        self.outside.path().join("PWNED")
    }

    /// Appends to the repository's configuration; `EVIL` stands for the program.
    fn append_git_config(&self, text: &str) {
        let at = self.rig.project().join(".git/config");
        let text = text.replace("EVIL", self.program().to_str().unwrap());
        fs::write(&at, fs::read_to_string(&at).unwrap() + &text).unwrap();
    }

    fn run(&self, arguments: &[&str], changed: &[(&str, String)]) -> std::process::Output {
        let mut command = self.rig.command(arguments);
        command
            .envs(changed.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap()
    }

    /// Uses git in every way haft does, with these variables: every use must work, and none may run
    /// the program.
    fn assert_nothing_runs(&self, what: &str, variables: &[(&str, String)]) {
        assert_eq!(self.rig.run(&["trust"]).code(), 0);
        for of in [
            &["review"][..],
            &["review", "--commit", "HEAD"],
            &["review", "--base", "HEAD"],
        ] {
            let ran = self.run(of, variables);
            assert!(
                ran.status.success(),
                "{what}, {of:?}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
            assert!(!self.marker().exists(), "{what}: {of:?}");
        }
        let ran = self.run(&["run", "--permission-mode", "yolo", "begin"], variables);
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{what}: {told}");
        assert!(!self.marker().exists(), "{what}: a copy");
        assert_eq!(
            file_text(&self.rig, "lines.txt").unwrap(),
            "ONE\ntwo\nTHREE\nfour\nfive\n",
            "{what}: {told}"
        );
        assert!(worktree_folders(&self.rig).is_empty(), "{what}");
    }
}

/// Settings that name a program for git to run.
const CONFIGURATIONS: &[(&str, &str)] = &[
    ("a monitor", "[core]\n\tfsmonitor = EVIL\n"),
    (
        "a monitor in capitals",
        "[CORE]\n\tFSMonitor = EVIL\n\tuntrackedCache = true\n",
    ),
    (
        "hooks by name",
        "[hook \"x\"]\n\tcommand = EVIL\n\tevent = post-checkout\n\tevent = reference-transaction\n",
    ),
    (
        "an external diff",
        "[diff]\n\texternal = EVIL\n[core]\n\tpager = EVIL\n\teditor = EVIL\n",
    ),
    (
        "aliases",
        "[alias]\n\tdiff = !EVIL\n\tls-files = !EVIL\n\trev-parse = !EVIL\n\tworktree = !EVIL\n\tshow = !EVIL\n\tconfig = !EVIL\n",
    ),
    (
        "another work tree",
        "[core]\n\tworktree = /\n\tfsmonitor = EVIL\n",
    ),
    (
        "pagers",
        "[pager]\n\tdiff = EVIL\n\tshow = EVIL\n\tconfig = EVIL\n[core]\n\tpager = EVIL\n",
    ),
    (
        "helpers",
        "[credential]\n\thelper = !EVIL\n[core]\n\tsshCommand = EVIL\n\taskPass = EVIL\n\talternateRefsCommand = EVIL\n",
    ),
    (
        "an index in pieces",
        "[core]\n\tsplitIndex = true\n\tfsmonitor = EVIL\n[index]\n\tthreads = 2\n",
    ),
    (
        "its own settings per work tree",
        "[extensions]\n\tworktreeConfig = true\n[core]\n\tfsmonitor = EVIL\n",
    ),
];

#[test]
fn configuration_runs_nothing() {
    for (what, text) in CONFIGURATIONS {
        let trap = Trap::new();
        trap.append_git_config(text);
        trap.assert_nothing_runs(what, &[]);
    }
}

#[test]
fn included_configuration_runs_nothing() {
    for include in [
        "[include]\n\tpath = ../more\n",
        "[includeIf \"gitdir:**\"]\n\tpath = ../more\n",
    ] {
        let trap = Trap::new();
        trap.rig.write(
            "more",
            format!(
                "[core]\n\tfsmonitor = {0}\n\thooksPath = hooks\n",
                trap.program().display()
            ),
        );
        trap.write_script(&trap.rig.project().join("hooks/post-checkout"));
        trap.append_git_config(include);
        trap.assert_nothing_runs(include, &[]);
    }
}

#[test]
fn hooks_are_not_run() {
    for folder in [".git/hooks", "hooks"] {
        let trap = Trap::new();
        for name in [
            "post-checkout",
            "reference-transaction",
            "post-index-change",
            "pre-commit",
            "fsmonitor-watchman",
        ] {
            trap.write_script(&trap.rig.project().join(folder).join(name));
        }
        if folder == "hooks" {
            trap.append_git_config("[core]\n\thooksPath = hooks\n");
        }
        trap.assert_nothing_runs(folder, &[]);
    }
}

#[test]
fn drivers_are_not_run() {
    let drivers =
        "[diff \"x\"]\n\ttextconv = EVIL\n\tcommand = EVIL\n[merge \"x\"]\n\tdriver = EVIL\n";
    for at in [".gitattributes", ".git/info/attributes"] {
        let trap = Trap::new();
        trap.append_git_config(drivers);
        trap.rig.write(at, "* diff=x merge=x\n");
        trap.assert_nothing_runs(at, &[]);
    }
}

/// Files with a filter are named and left out: the filter does not run, and their unfiltered
/// content is not stored.
#[test]
fn filters_are_not_run_and_filtered_files_are_left_out() {
    let filter =
        "[filter \"x\"]\n\tclean = EVIL\n\tsmudge = EVIL\n\tprocess = EVIL\n\trequired = true\n";
    for (at, pattern) in [
        (".gitattributes", "*.bin filter=x\n"),
        (".git/info/attributes", "*.bin filter\n"),
    ] {
        let trap = Trap::new();
        trap.rig.write("big.bin", "pointer\n");
        run_git(&trap.rig, &["add", "big.bin"]);
        run_git(&trap.rig, &["commit", "--quiet", "-m", "pointer"]);
        trap.append_git_config(filter);
        trap.rig.write(at, pattern);
        trap.rig.write("big.bin", "raw content\n");
        trap.rig.write("new.bin", "other raw content\n");
        trap.assert_nothing_runs(at, &[]);
        for (name, text) in [
            ("big.bin", "raw content\n"),
            ("new.bin", "other raw content\n"),
        ] {
            assert_eq!(file_text(&trap.rig, name).as_deref(), Some(text), "{at}");
            let hash = run_git(&trap.rig, &["hash-object", "--no-filters", name]);
            let mut stored = Command::new("git");
            stored
                .args(["cat-file", "-e", hash.trim()])
                .current_dir(trap.rig.project());
            assert!(
                !stored.output().unwrap().status.success(),
                "{at}: `{name}` is stored raw"
            );
        }
        let asked: Vec<_> = trap
            .rig
            .server
            .generation_requests()
            .iter()
            .map(|request| request.decode().unwrap())
            .collect();
        let named = "Left out, because a git filter such as LFS goes over them:\nbig.bin";
        assert!(asked[0].last_message_contains(named), "{at}");
        assert!(!asked[0].last_message_contains("raw content"), "{at}");
    }
}

#[test]
fn worktree_keeps_and_names_new_files_of_a_filter() {
    let rig = rig([
        start_agents_reply("- {name: worker, task: TASK}"),
        reply_to(
            "TASK",
            command_call(
                "test ! -e big.bin && echo new > new.bin && echo more > more.txt && echo did it",
            ),
        ),
        reply_to("did it", Reply::text("Worked.")),
        reply_to("## worker", Reply::text("All done.")),
    ]);
    add_agent(&rig, "worker", "worktree: true");
    rig.write(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    rig.write("big.bin", "pointer\n");
    run_git(&rig, &["add", "--all"]);
    run_git(&rig, &["commit", "--quiet", "-m", "pointer"]);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.task(&["begin"]);
    let told = main_result(&ran);
    assert!(
        told.contains("Merged into the project: `more.txt`."),
        "{told}"
    );
    assert!(
        told.contains("NOT merged, because a git filter such as LFS goes over them: `new.bin`."),
        "{told}"
    );
    assert!(
        told.contains(
            "Not in its copy, because a git filter such as LFS goes over them: `big.bin`."
        ),
        "{told}"
    );
    assert_eq!(
        (
            file_text(&rig, "new.bin"),
            file_text(&rig, "big.bin").as_deref()
        ),
        (None, Some("pointer\n"))
    );
    assert_eq!(
        fs::read_to_string(worktree_folders(&rig)[0].join("new.bin")).unwrap(),
        "new\n"
    );
}

/// A nested repository, submodule or not, has a configuration of its own.
#[test]
fn nested_repositories_are_not_entered() {
    for how in ["gitlink", "gitlink with a file", "untracked"] {
        let trap = Trap::new();
        let nested = trap.rig.project().join("nested");
        fs::create_dir(&nested).unwrap();
        let inside = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
            let ran = Command::new("git")
                .args(identity)
                .args(arguments)
                .current_dir(&nested)
                .output()
                .unwrap();
            assert!(
                ran.status.success(),
                "{arguments:?}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
            String::from_utf8(ran.stdout).unwrap().trim().to_owned()
        };
        inside(&["init", "--quiet"]);
        fs::write(nested.join("file"), "one\n").unwrap();
        inside(&["add", "file"]);
        inside(&["commit", "--quiet", "-m", "one"]);
        let commit = inside(&["rev-parse", "HEAD"]);
        inside(&["config", "filter.x.clean", trap.program().to_str().unwrap()]);
        inside(&["config", "core.fsmonitor", trap.program().to_str().unwrap()]);
        fs::write(nested.join(".gitattributes"), "* filter=x\n").unwrap();
        fs::write(nested.join("file"), "two\n").unwrap();
        if how != "untracked" {
            run_git(
                &trap.rig,
                &[
                    "update-index",
                    "--add",
                    "--cacheinfo",
                    &format!("160000,{commit},nested"),
                ],
            );
            run_git(&trap.rig, &["commit", "--quiet", "-m", "nested"]);
        }
        if how == "gitlink with a file" {
            let hidden = trap.rig.project().join("modules");
            fs::rename(nested.join(".git"), &hidden).unwrap();
            fs::write(nested.join(".git"), "gitdir: ../modules\n").unwrap();
        }
        trap.append_git_config(
            "[submodule]\n\trecurse = true\n[diff]\n\tsubmodule = diff\n[status]\n\tsubmoduleSummary = true\n",
        );
        trap.assert_nothing_runs(how, &[]);
    }
}

/// A commit that claims to be signed is shown without asking the repository's program to verify it.
#[test]
fn signatures_are_not_checked_by_a_program_of_the_repository() {
    let trap = Trap::new();
    let commit = run_git(&trap.rig, &["cat-file", "commit", "HEAD"]);
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n";
    let signed = commit.replacen("\n\n", &format!("\n{signature}\n"), 1);
    let mut hash = Command::new("git");
    hash.args(["hash-object", "-t", "commit", "-w", "--stdin"])
        .current_dir(trap.rig.project());
    let mut hash = hash
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    hash.stdin
        .take()
        .unwrap()
        .write_all(signed.as_bytes())
        .unwrap();
    let hash = String::from_utf8(hash.wait_with_output().unwrap().stdout).unwrap();
    run_git(&trap.rig, &["update-ref", "HEAD", hash.trim()]);
    trap.append_git_config("[log]\n\tshowSignature = true\n[gpg]\n\tprogram = EVIL\n");
    trap.assert_nothing_runs("a signature", &[]);
}

/// Missing objects are not fetched: the address of a repository can be a program.
#[test]
fn missing_objects_are_not_fetched() {
    let trap = Trap::new();
    trap.append_git_config(
        "[remote \"origin\"]\n\turl = ext::EVIL\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\
         [extensions]\n\tpartialClone = origin\n[protocol \"ext\"]\n\tallow = always\n[protocol]\n\tallow = always\n",
    );
    let blob = run_git(&trap.rig, &["rev-parse", "HEAD:lines.txt"]);
    let (folder, name) = blob.trim().split_at(2);
    fs::remove_file(
        trap.rig
            .project()
            .join(".git/objects")
            .join(folder)
            .join(name),
    )
    .unwrap();
    assert_eq!(trap.rig.run(&["trust"]).code(), 0);
    for of in [
        &["review"][..],
        &["review", "--commit", "HEAD"],
        &["run", "--permission-mode", "yolo", "begin"],
    ] {
        trap.run(of, &[]);
        assert!(!trap.marker().exists(), "{of:?}");
    }
}

#[test]
fn git_program_is_not_taken_from_the_project() {
    let trap = Trap::new();
    let project = trap.rig.project();
    for at in ["bin/git", "node_modules/.bin/git", "git"] {
        trap.write_script(&project.join(at));
    }
    // A link from outside into the project, and a folder that anybody can write to.
    let open = trap.outside.path().join("open");
    trap.write_script(&open.join("git"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let modules = trap.outside.path().join("node_modules/.bin");
    trap.write_script(&modules.join("git"));
    symlink(project.join("bin"), trap.outside.path().join("link")).unwrap();
    let places = [
        "bin".into(),
        ".".into(),
        String::new(),
        project.join("bin").display().to_string(),
        project.join("node_modules/.bin").display().to_string(),
        open.display().to_string(),
        modules.display().to_string(),
        trap.outside.path().join("link").display().to_string(),
        std::env::var("PATH").unwrap(),
    ];
    trap.assert_nothing_runs("PATH", &[("PATH", places.join(":"))]);
}

#[test]
fn environment_variables_do_not_affect_git() {
    let trap = Trap::new();
    let evil = trap.program().display().to_string();
    let names = [
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "GIT_PAGER",
        "GIT_ASKPASS",
        "GIT_EDITOR",
        "GIT_PROXY_COMMAND",
    ];
    let mut variables: Vec<_> = names.iter().map(|name| (*name, evil.clone())).collect();
    let further = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
        ("GIT_DIR", "/nowhere"),
    ];
    variables.extend(further.map(|(name, value)| (name, value.to_owned())));
    variables.extend([
        ("GIT_CONFIG_VALUE_0", evil.clone()),
        ("GIT_EXEC_PATH", "/nowhere".into()),
    ]);
    trap.assert_nothing_runs("variables", &variables);
}

/// Asserts that review and sub-agents both reject the repository with this message.
fn assert_refused(trap: &Trap, what: &str, said: &str) {
    assert_eq!(trap.rig.run(&["trust"]).code(), 0);
    let ran = trap.run(&["review"], &[]);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        ran.status.code() == Some(2) && told.contains(said),
        "{what}: {told}"
    );
    let ran = trap.rig.task(&["begin"]);
    assert!(
        main_result(&ran).contains(said),
        "{what}: {}",
        main_result(&ran)
    );
    assert!(!trap.marker().exists(), "{what}");
    assert!(worktree_folders(&trap.rig).is_empty(), "{what}");
}

#[test]
fn bare_repository_in_the_project_is_ignored() {
    for config in [
        "[core]\n\tbare = true\n\tfsmonitor = EVIL\n",
        "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = EVIL\n",
    ] {
        let trap = Trap::new();
        let project = trap.rig.project();
        trap.append_git_config(config);
        // The content of `.git` moves to the root.
        for entry in fs::read_dir(project.join(".git")).unwrap() {
            let entry = entry.unwrap();
            fs::rename(entry.path(), project.join(entry.file_name())).unwrap();
        }
        fs::remove_dir(project.join(".git")).unwrap();
        assert_refused(&trap, config, "not a git repository");
    }
}

/// Makes a project point to the repository that was its own.
type Plant = fn(&Path, &Path);

#[test]
fn repository_elsewhere_must_name_the_project() {
    let plants: [(&str, Plant); 3] = [
        ("a file", |project, evil| {
            fs::write(
                project.join(".git"),
                format!("gitdir: {}\n", evil.display()),
            )
            .unwrap();
        }),
        ("a link", |project, evil| {
            symlink(evil, project.join(".git")).unwrap();
        }),
        ("a work tree of another", |project, evil| {
            let worktree = evil.join("worktrees/x");
            fs::create_dir_all(&worktree).unwrap();
            fs::copy(evil.join("HEAD"), worktree.join("HEAD")).unwrap();
            fs::write(worktree.join("gitdir"), "/somewhere/else/.git\n").unwrap();
            fs::write(worktree.join("commondir"), "../..\n").unwrap();
            fs::write(
                project.join(".git"),
                format!("gitdir: {}\n", worktree.display()),
            )
            .unwrap();
        }),
    ];
    for (what, plant) in plants {
        let trap = Trap::new();
        trap.append_git_config("[core]\n\tfsmonitor = EVIL\n");
        let project = trap.rig.project();
        let evil = trap.outside.path().join("repository");
        fs::rename(project.join(".git"), &evil).unwrap();
        plant(&project, &evil);
        assert_refused(&trap, what, "does not name this folder as one of its own");
    }
}

/// A linked work tree of the user, and a project that is a folder of its repository.
#[test]
fn review_works_in_linked_work_trees_and_subfolders() {
    let rig = rig([Reply::text("Fine.").times(2)]);
    fs::create_dir(rig.project().join("part")).unwrap();
    rig.write("part/file.txt", "one\n");
    run_git(&rig, &["add", "--all"]);
    run_git(&rig, &["commit", "--quiet", "-m", "part"]);
    let linked = tempfile::tempdir().unwrap();
    let linked = linked.path().canonicalize().unwrap().join("linked");
    run_git(
        &rig,
        &[
            "worktree",
            "add",
            "--quiet",
            "-b",
            "topic",
            linked.to_str().unwrap(),
        ],
    );
    for (number, (folder, change)) in [
        (linked.clone(), linked.join("lines.txt")),
        (linked.join("part"), linked.join("part/file.txt")),
    ]
    .iter()
    .enumerate()
    {
        fs::write(change, format!("changed {number}\n")).unwrap();
        fs::write(folder.join("new.txt"), "new\n").unwrap();
        for arguments in [&["trust"][..], &["review"]] {
            let ran = rig.command(arguments).current_dir(folder).output().unwrap();
            assert!(
                ran.status.success(),
                "{folder:?}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
        }
        let asked = rig.server.generation_requests()[number].decode().unwrap();
        assert!(
            asked.last_message_contains(&format!("+changed {number}")),
            "{folder:?}"
        );
        assert!(
            asked.last_message_contains("read them:\nnew.txt")
                || asked.last_message_contains("\nnew.txt"),
            "{folder:?}"
        );
    }
}

/// A linked work tree with refs in a table has a table of its own: haft reports that and guesses
/// nothing.
#[test]
fn reftable_is_refused_in_a_linked_work_tree_only() {
    let rig = rig([Reply::text("Fine.").times(3)]);
    let source = tempfile::tempdir().unwrap();
    let linked = tempfile::tempdir().unwrap();
    let at = |folder: &Path, arguments: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(identity)
            .args(arguments)
            .output()
            .unwrap()
    };
    let main = source.path().canonicalize().unwrap();
    if !at(
        &main,
        &["init", "--quiet", "--ref-format=reftable", "-b", "main"],
    )
    .status
    .success()
    {
        println!("skipped: this git has no tables of refs");
        return;
    }
    let linked = linked.path().canonicalize().unwrap().join("linked");
    fs::write(main.join("lines.txt"), "one\n").unwrap();
    let worktree = [
        "worktree",
        "add",
        "--quiet",
        "-b",
        "topic",
        linked.to_str().unwrap(),
    ];
    for arguments in [
        &["add", "--all"][..],
        &["commit", "--quiet", "-m", "one"],
        &worktree,
    ] {
        let ran = at(&main, arguments);
        assert!(
            ran.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    for (folder, works) in [(&main, true), (&linked, false)] {
        fs::write(folder.join("lines.txt"), "one\nchanged\n").unwrap();
        assert!(
            rig.command(&["trust"])
                .current_dir(folder)
                .output()
                .unwrap()
                .status
                .success()
        );
        let ran = rig
            .command(&["review"])
            .current_dir(folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.success(), works, "{told}");
        if !works {
            assert_eq!(ran.status.code(), Some(2), "{told}");
            assert!(
                told.contains("refs are not kept in files") && told.contains("linked work tree"),
                "{told}"
            );
        }
    }
    assert!(
        rig.server.generation_requests()[0]
            .decode()
            .unwrap()
            .last_message_contains("+changed")
    );
}

/// No other code starts git, neither by its name nor in a line for a shell. The sandbox's probes
/// do, like the commands they stand for.
#[test]
fn git_is_started_in_one_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(root).build() {
        let path = entry.unwrap().into_path();
        let shown = path.display().to_string();
        let is_source = path.extension().is_some_and(|ending| ending == "rs")
            && shown.contains("/src/")
            && !shown.contains("/tests");
        if !is_source || shown.contains("/extensions/probe/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\nmod tests {").next().unwrap_or_default();
        let starts = [
            "Command::new(\"git",
            "shell(\"git",
            "Command::new(GIT",
            "argv: vec![\"git",
            "/git\"",
            "\"git \"",
        ];
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        found.extend(
            lines
                .filter(|line| starts.iter().any(|start| line.contains(start)))
                .map(|line| format!("{shown}: {line}")),
        );
    }
    assert_eq!(found, Vec::<String>::new());
}
