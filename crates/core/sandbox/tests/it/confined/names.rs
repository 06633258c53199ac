//! Names that a command must not create, and listings that are true.
//!
//! Programs get an error when they create a protected name. The lines with `thread-self` get past
//! this check: the helper resolves the path for itself, in another folder than the program. They
//! test the watch that ends the command.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use haft_sandbox::{Aftermath, Background};

use super::*;

/// Changes to a folder from which `thread-self` leads to the project.
const ENTER: &str = "cd src";

fn exists(world: &World, name: &str) -> bool {
    world.path("project").join(name).symlink_metadata().is_ok()
}

fn start(supervisor: &haft_sandbox::Supervisor, world: &World, line: &str) -> Background {
    supervisor.start_background(world.command(line), Capture::default())
}

async fn wait_for_file(path: PathBuf) {
    tokio::task::spawn_blocking(move || wait_until("file", || path.exists()))
        .await
        .unwrap();
}

#[test]
fn missing_names_are_refused_with_an_error_and_the_command_goes_on() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::write(world.path("project/file"), "x").unwrap();
    fs::create_dir(world.path("project/.github")).unwrap();
    for (line, name) in [
        ("mkdir .vscode", ".vscode"),
        ("mkdir -p .claude/agents", ".claude"),
        ("cd src && mkdir ../.husky", ".husky"),
        ("touch .mcp.json", ".mcp.json"),
        ("sh -c 'echo x > .gitlab-ci.yml'", ".gitlab-ci.yml"),
        ("cp file Jenkinsfile", "Jenkinsfile"),
        ("mkdir .GITHOOKS", ".GITHOOKS"),
        ("ln -s src .idea", ".idea"),
        ("ln file .travis.yml", ".travis.yml"),
        ("mv file .exrc", ".exrc"),
        ("mv src .circleci", ".circleci"),
        ("mknod .drone.yml p", ".drone.yml"),
        ("mkdir .github/workflows", ".github/workflows"),
        ("mv src .github/actions", ".github/actions"),
        ("mkdir \"$PWD/.zed\"", ".zed"),
        ("mkdir /proc/self/cwd/.fleet", ".fleet"),
    ] {
        let line = format!("({line}) 2>error; echo code $?; cat error; rm error; touch on");
        let finished = run(
            PidNamespace::Privileged,
            &world.command(&line),
            &Capture::default(),
        )
        .unwrap();
        let (exit, text) = exit_and_output(&finished);
        assert_eq!(exit, CommandExit::Code(0), "{line}: {text}");
        assert!(
            !text.contains("code 0") && text.contains("Read-only file system"),
            "{line}: {text}"
        );
        assert!(finished.undone.is_empty(), "{line}: {:?}", finished.undone);
        assert!(exists(&world, "on") && !exists(&world, name), "{line}");
        fs::remove_file(world.path("project/on")).unwrap();
    }
}

#[test]
fn created_names_end_the_command_and_are_removed() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::create_dir(world.path("project/.github")).unwrap();
    for (line, name) in [
        ("mkdir /proc/thread-self/cwd/../.vscode", ".vscode"),
        ("echo x > /proc/thread-self/cwd/../.mcp.json", ".mcp.json"),
        ("mkdir /proc/thread-self/cwd/../.HUSKY", ".HUSKY"),
        ("ln -s . /proc/thread-self/cwd/../.idea", ".idea"),
        (
            "touch a; ln a /proc/thread-self/cwd/../.travis.yml",
            ".travis.yml",
        ),
        ("touch a; mv a /proc/thread-self/cwd/../.exrc", ".exrc"),
        (
            "mkdir d; mv -T d /proc/thread-self/cwd/../.circleci",
            ".circleci",
        ),
        ("mknod /proc/thread-self/cwd/../.drone.yml p", ".drone.yml"),
        (
            "mkdir /proc/thread-self/cwd/../.github/workflows",
            ".github/workflows",
        ),
        (
            "mkdir d; mv -T d /proc/thread-self/cwd/../.github/actions",
            ".github/actions",
        ),
    ] {
        // Also a process that has left the session.
        let line = format!("setsid sleep 1000 & {ENTER}; {line}; sleep 1000");
        let finished = run(
            PidNamespace::Privileged,
            &world.command(&line),
            &Capture::default(),
        )
        .unwrap();
        assert_eq!(finished.exit, CommandExit::Signal(9), "{line}");
        assert_eq!(finished.aftermath, Aftermath::AllGone, "{line}");
        assert_eq!(
            finished.undone,
            [world.path("project").join(name)],
            "{line}"
        );
        assert!(!exists(&world, name), "{line}");
    }
    // A command that ends at once is checked as well.
    for line in [
        "mkdir /proc/thread-self/cwd/../.vscode",
        "exec mkdir /proc/thread-self/cwd/../.vscode",
    ] {
        let finished = run(
            PidNamespace::Privileged,
            &world.command(&format!("{ENTER}; {line}")),
            &Capture::default(),
        )
        .unwrap();
        assert_eq!(finished.undone, [world.path("project/.vscode")], "{line}");
        assert!(!exists(&world, ".vscode"), "{line}");
    }
}

/// Runs threads that change the path of a call while the call is being checked.
#[test]
fn created_names_are_removed_if_the_check_is_raced() {
    let world = World::new();
    if !can_confine(&world) || world.run("python3 -c 1").0 != CommandExit::Code(0) {
        return;
    }
    let script = "import ctypes, os, threading\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        path = ctypes.create_string_buffer(b'.mcp.jsox')\n\
        def flip():\n    while True: path.value = b'.mcp.json'; path.value = b'.mcp.jsox'\n\
        threading.Thread(target=flip, daemon=True).start()\n\
        for n in range(20000):\n\
        \x20   fd = libc.open(path, os.O_CREAT | os.O_WRONLY, 0o600)\n\
        \x20   if fd >= 0: libc.close(fd)\n";
    fs::write(world.path("project/race.py"), script).unwrap();
    let finished = run(
        PidNamespace::Privileged,
        &world.command("python3 race.py"),
        &Capture::default(),
    )
    .unwrap();
    assert!(!exists(&world, ".mcp.json"));
    let removed = [world.path("project/.mcp.json")];
    assert!(
        finished.exit == CommandExit::Code(0) && finished.undone.is_empty()
            || finished.exit == CommandExit::Signal(9) && finished.undone == removed,
        "{:?} {:?}",
        finished.exit,
        finished.undone
    );
}

/// While a task runs, the user cleans the project: the task must not take over the names.
#[test]
fn background_task_cannot_create_names_that_were_removed_outside() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    for (line, killed) in [
        ("mkdir .vscode || touch refused; sleep 1000", false),
        (
            "cd src; mkdir /proc/thread-self/cwd/../.vscode; sleep 1000",
            true,
        ),
        (
            "cd src; mkdir d; mv -T d /proc/thread-self/cwd/../.git; sleep 1000",
            true,
        ),
    ] {
        fs::create_dir_all(world.path("project/.vscode")).unwrap();
        fs::write(world.path("project/.vscode/tasks.json"), "{}").unwrap();
        let finished = block_on(async {
            let supervisor = supervisor(PidNamespace::Privileged);
            let line = format!("touch ready; until [ -e go ]; do sleep 0.01; done; {line}");
            let task = start(&supervisor, &world, &line);
            wait_for_file(world.path("project/ready")).await;
            fs::remove_dir_all(world.path("project/.vscode")).unwrap();
            fs::remove_dir_all(world.path("project/.git")).unwrap();
            fs::write(world.path("project/go"), "").unwrap();
            if !killed {
                wait_for_file(world.path("project/refused")).await;
                task.stop();
            }
            task.wait_for_end().await.unwrap()
        });
        let finished = finished.as_ref().as_ref().unwrap();
        assert!(
            !exists(&world, ".vscode") && !exists(&world, ".git"),
            "{line}"
        );
        assert_eq!(finished.undone.len(), usize::from(killed), "{line}");
        assert_eq!(finished.exit == CommandExit::Signal(9), killed, "{line}");
        fs::create_dir_all(world.path("project/.git/hooks")).unwrap();
        for name in ["ready", "go", "refused"] {
            let _ = fs::remove_file(world.path("project").join(name));
        }
    }
}

/// The names that other programs create meanwhile belong to them, and are protected from then on.
#[test]
fn names_that_another_program_creates_stay_and_are_sealed() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let finished = block_on(async {
        let supervisor = supervisor(PidNamespace::Privileged);
        // Nothing is sealed in the first moment.
        let line = "touch ready; until [ -e go ]; do sleep 0.01; done; \
             until ! (: > .vscode/x) 2>/dev/null; do rm -f .vscode/x; sleep 0.01; done; \
             for name in .mcp.json .envrc sub/module/.git; do until ! (: >> $name) 2>/dev/null; do sleep 0.01; done; done; \
             cat .mcp.json .envrc sub/module/.git; touch tried; sleep 1000";
        let task = start(&supervisor, &world, line);
        wait_for_file(world.path("project/ready")).await;
        fs::create_dir(world.path("project/.vscode")).unwrap();
        for (text, name) in [
            ("mine\n", ".mcp.json"),
            ("saved\n", ".envrc"),
            ("gitdir: y\n", "sub/module/.git"),
        ] {
            fs::write(world.path("outside/new"), text).unwrap();
            // As an editor saves.
            fs::rename(world.path("outside/new"), world.path("project").join(name)).unwrap();
        }
        fs::write(world.path("project/go"), "").unwrap();
        wait_for_file(world.path("project/tried")).await;
        task.stop();
        task.wait_for_end().await.unwrap()
    });
    let finished = finished.as_ref().as_ref().unwrap();
    assert!(finished.undone.is_empty(), "{:?}", finished.undone);
    let text = |name: &str| fs::read_to_string(world.path("project").join(name)).unwrap();
    assert_eq!(
        (text(".mcp.json"), text(".envrc")),
        ("mine\n".into(), "saved\n".into())
    );
    assert!(exists(&world, ".vscode"));
    assert!(
        exit_and_output(finished)
            .1
            .contains("mine\nsaved\ngitdir: y\n")
    );
}

#[test]
fn links_stay_links_and_cannot_be_replaced() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let project = world.path("project");
    fs::write(project.join("AGENTS.md"), "rules\n").unwrap();
    symlink("AGENTS.md", project.join("CLAUDE.md")).unwrap();
    fs::create_dir_all(project.join("shared/editor")).unwrap();
    symlink("shared/editor", project.join(".vscode")).unwrap();
    symlink("later", project.join(".mcp.json")).unwrap();
    let (_, text) = world.run("readlink CLAUDE.md .vscode .mcp.json; cat CLAUDE.md");
    assert_eq!(text, "AGENTS.md\nshared/editor\nlater\nrules\n");
    for line in [
        "rm CLAUDE.md",
        "mv CLAUDE.md other",
        "ln -sfn src .vscode",
        "echo x > file; mv file CLAUDE.md",
        "echo x > CLAUDE.md",
        "echo x > .vscode/tasks.json",
        "mv shared moved",
        "mv shared/editor moved",
        "echo x > later",
        "echo x > .mcp.json",
    ] {
        let finished = run(
            PidNamespace::Privileged,
            &world.command(line),
            &Capture::default(),
        )
        .unwrap();
        assert!(
            !matches!(finished.exit, CommandExit::Code(0)),
            "{line}: {:?}",
            exit_and_output(&finished)
        );
    }
    for line in [
        "rm /proc/thread-self/cwd/../CLAUDE.md; sleep 1000",
        "echo x > file; mv file /proc/thread-self/cwd/../CLAUDE.md; sleep 1000",
        "mv /proc/thread-self/cwd/../CLAUDE.md other; echo x > ../CLAUDE.md; sleep 1000",
    ] {
        let finished = run(
            PidNamespace::Privileged,
            &world.command(&format!("{ENTER}; {line}")),
            &Capture::default(),
        )
        .unwrap();
        assert_eq!(finished.exit, CommandExit::Signal(9), "{line}");
        assert_eq!(finished.undone, [project.join("CLAUDE.md")], "{line}");
    }
    let target = |name: &str| fs::read_link(project.join(name)).unwrap();
    assert_eq!(target("CLAUDE.md"), Path::new("AGENTS.md"));
    assert_eq!(target(".vscode"), Path::new("shared/editor"));
    assert_eq!(
        fs::read_to_string(project.join("AGENTS.md")).unwrap(),
        "rules\n"
    );
    assert!(!project.join("later").exists());
}

/// Twenty projects, each with other files of the kinds that the sandbox treats specially.
fn write_sample_project(project: &Path, number: usize) {
    let write = |name: &str| {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    };
    for name in ["README.md", "src/main.rs", "docs/a b/ü.md", ".hidden"] {
        write(name);
    }
    let lists: [&[&str]; 10] = [
        &[".vscode/settings.json", ".envrc"],
        &[".github/workflows/ci.yml", ".github/CODEOWNERS"],
        &[".github/ISSUE_TEMPLATE/bug.md", "AGENTS.md"],
        &[".mcp.json", "Jenkinsfile", ".gitlab-ci.yml"],
        &[
            "package.json",
            ".npmrc",
            ".husky/pre-commit",
            "node_modules/x/.git/config",
        ],
        &["vendor/x/AGENTS.md", "vendor/y/.vscode/tasks.json"],
        &["Cargo.toml", "rust-toolchain.toml", ".cargo/config.toml"],
        &[
            ".devcontainer/devcontainer.json",
            ".idea/x.xml",
            ".claude/settings.json",
        ],
        &["pyproject.toml", ".python-version", "x.code-workspace"],
        &["Makefile", ".gitignore", ".gitattributes", ".gitmodules"],
    ];
    lists[number % 10].iter().for_each(|name| write(name));
    if number >= 10 {
        write("AGENTS.md");
        let _ = symlink("AGENTS.md", project.join("CLAUDE.md"));
        let _ = symlink("docs", project.join(".zed"));
        let _ = symlink("nowhere", project.join(".exrc"));
        let _ = symlink("../outside", project.join("link"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            project.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
    }
}

#[test]
fn listings_agree_inside_and_outside() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let has_git = Process::new("git").arg("--version").output().is_ok();
    for number in 0..20 {
        let project = world.path(&format!("sample {number}"));
        fs::create_dir(&project).unwrap();
        if has_git && number % 3 != 0 {
            let made = Process::new("git")
                .arg("init")
                .arg(&project)
                .output()
                .unwrap();
            assert!(made.status.success());
        }
        write_sample_project(&project, number);
        let policy = SandboxPolicy {
            projects: vec![project.clone()],
            ..world.policy()
        };
        let names = "ls -A; find . -printf '%y %p %l\\n' | sort; stat -c '%F %n' .* *; \
             for name in .git .vscode .mcp.json .husky .haft .zed Jenkinsfile; do test -e $name && echo there $name; done; \
             git -c safe.directory='*' status --porcelain=v2 --untracked-files=all --ignored 2>&1";
        let inside = exit_and_output(
            &run(
                PidNamespace::Privileged,
                &confined_command(&policy, ConfinementMethod::Namespace, names),
                &Capture::default(),
            )
            .unwrap(),
        );
        let outside = Process::new("/bin/sh")
            .args(["-c", names])
            .current_dir(&project)
            .env_clear()
            .envs([path()])
            .output()
            .unwrap();
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(
            lines(&inside.1),
            lines(&String::from_utf8_lossy(&outside.stdout)),
            "sample {number}"
        );
    }
}

#[test]
fn ordinary_programs_that_meet_protected_names_go_on() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::remove_dir_all(world.path("project/.git")).unwrap();
    let is_there =
        |program: &str| world.run(&format!("command -v {program}")).0 == CommandExit::Code(0);
    if is_there("git") {
        let (exit, text) = world.run("git init 2>&1; echo on");
        assert_eq!(exit, CommandExit::Code(0));
        assert!(
            text.contains("Read-only file system") && text.ends_with("on\n"),
            "{text}"
        );
        // A repository in a subfolder is not protected until it exists.
        let (exit, text) = world.run("git init sub/new 2>&1 && test -d sub/new/.git");
        assert_eq!(exit, CommandExit::Code(0), "{text}");
    }
    if is_there("npm") {
        let (exit, text) = world.run("npm init -y 2>&1 && cat package.json");
        assert_eq!(exit, CommandExit::Code(0), "{text}");
    }
    // Many files, as builds and archives create them.
    let (exit, text) = world.run(
        "mkdir -p out && for n in $(seq 300); do echo $n > out/$n; mv out/$n out/x$n; done && \
         tar cf out.tar out && rm -r out && tar xf out.tar && ls out | wc -l && ln -s out link && rm -r out link out.tar",
    );
    assert_eq!((exit, text.as_str()), (CommandExit::Code(0), "300\n"));
}

/// `cargo new` looks for a repository and for a workspace above the new package.
#[test]
fn cargo_new_succeeds_in_a_repository() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    let cargo = env!("CARGO");
    let has_programs = format!("'{cargo}' --version && git --version");
    if world.run(&has_programs).0 != CommandExit::Code(0) {
        return eprintln!("skipped: this user has no cargo or no git");
    }
    let project = world.path("project");
    fs::remove_dir_all(project.join(".git")).unwrap();
    let made = Process::new("git").arg("init").arg(&project).output();
    assert!(made.unwrap().status.success());
    fs::write(project.join("Cargo.toml"), "[workspace]\nmembers = []\n").unwrap();
    let (exit, text) = world.run(&format!(
        "CARGO_HOME=/tmp/cargo '{cargo}' new --edition 2021 app 2>&1"
    ));
    assert_eq!(exit, CommandExit::Code(0), "{text}");
    assert!(exists(&world, "app/src/main.rs"), "{text}");
    assert!(
        !exists(&world, "app/.git"),
        "the repository is found: {text}"
    );
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\"app\""), "{manifest}");
}

#[test]
fn many_folders_do_not_crowd_out_protected_files() {
    let world = World::new();
    if !can_confine(&world) {
        return;
    }
    fs::create_dir_all(world.path("project/vendor/x/.git")).unwrap();
    fs::write(world.path("project/vendor/x/.git/config"), "[core]\n").unwrap();
    let (exit, text) = world.run("mkdir $(seq 2500)");
    assert_eq!(exit, CommandExit::Code(0), "{text}");
    for line in [
        "echo x > vendor/x/.git/config",
        "mv vendor other",
        "mv vendor/x vendor/y",
        "rm -r vendor/x/.git",
    ] {
        assert_ne!(world.run(line).0, CommandExit::Code(0), "{line}");
    }
    assert_eq!(
        fs::read_to_string(world.path("project/vendor/x/.git/config")).unwrap(),
        "[core]\n"
    );
}
