//! Hidden places stay hidden when folders and links on the way to them are moved.

use std::os::unix::fs::symlink;

use super::*;

/// The lines with which a command could reach the key of the world of this module.
const WAYS: &[&str] = &[
    "mv .local .l2",
    "mv .local/share .s2",
    "mv .local/share .local/other",
    "mv .local/share/keyrings k2",
    "mv -T src .local",
    "rmdir .local/share",
    "rmdir .local/share/keyrings",
    "mkdir e && python3 -c 'import ctypes; r = ctypes.CDLL(None).renameat2(-100, b\"e\", -100, b\".local\", 2); exit(r != 0)'",
    "mv deny d2",
    "mv deny/inner i2",
    "ln deny/inner/.env hard",
    "mv deny/inner/.env env",
    "rm .ssh",
    "mv .ssh other",
    "ln -sfn src .ssh",
    "mv dotfiles dots",
    "mv dotfiles/ssh s",
];

/// Returns a world whose project holds hidden places, and the policy that hides them.
fn world_with_keys() -> (World, SandboxPolicy) {
    let world = World::new();
    let project = world.path("project");
    for name in [
        ".local/share/keyrings/key",
        "deny/inner/.env",
        "dotfiles/ssh/id",
    ] {
        fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
        fs::write(project.join(name), "the secret\n").unwrap();
    }
    fs::write(project.join(".local/share/open"), "open\n").unwrap();
    symlink("dotfiles/ssh", project.join(".ssh")).unwrap();
    let policy = SandboxPolicy {
        hidden: vec![
            project.join(".local/share/keyrings"),
            project.join("deny/inner/.env"),
            project.join(".ssh"),
            project.join("later/token"),
            project.join("token"),
        ],
        ..world.policy()
    };
    (world, policy)
}

fn run_line(policy: &SandboxPolicy, line: &str) -> (CommandExit, String) {
    let command = confined_command(policy, ConfinementMethod::Namespace, line);
    exit_and_output(&run(PidNamespace::Privileged, &command, &Capture::default()).unwrap())
}

#[test]
fn hidden_places_hold_when_a_parent_is_moved() {
    let (world, policy) = world_with_keys();
    if !can_confine(&world) {
        return;
    }
    let search = "grep -rsl 'the secret' . ; cat .ssh/id dotfiles/ssh/id 2>/dev/null; true";
    for way in WAYS {
        let (exit, text) = run_line(&policy, way);
        assert_ne!(exit, CommandExit::Code(0), "{way}: {text}");
        // The next command, too, has a policy made of the paths.
        assert_eq!(
            run_line(&policy, search),
            (CommandExit::Code(0), String::new()),
            "{way}"
        );
        let _ = fs::remove_dir(world.path("project/e"));
    }
    // `mv` has copied what it could, and removed the original.
    fs::write(world.path("project/.local/share/open"), "open\n").unwrap();
    let (exit, text) = run_line(
        &policy,
        "cat .local/share/open && touch .local/new deny/inner/new && mv .local/new . && mkdir -p deny/x && rmdir deny/x",
    );
    assert_eq!(
        (exit, text.as_str()),
        (CommandExit::Code(0), "open\n"),
        "the rest works"
    );
}

/// A moved link, or a link made by a path that the check resolves differently, ends the command.
#[test]
fn links_to_hidden_places_are_put_back() {
    let (world, policy) = world_with_keys();
    if !can_confine(&world) {
        return;
    }
    for line in [
        "rm /proc/thread-self/cwd/../.ssh",
        "mv /proc/thread-self/cwd/../.ssh other",
        "ln -sfn src /proc/thread-self/cwd/../.ssh",
    ] {
        let line = format!("cd src; {line}; sleep 1000");
        assert_eq!(run_line(&policy, &line).0, CommandExit::Signal(9), "{line}");
        let target = fs::read_link(world.path("project/.ssh")).unwrap();
        assert_eq!(target, Path::new("dotfiles/ssh"), "{line}");
    }
}

/// While a task runs, another program replaces and creates hidden files.
#[test]
fn hidden_files_are_covered_again_when_they_are_replaced() {
    let (world, policy) = world_with_keys();
    if !can_confine(&world) {
        return;
    }
    let project = world.path("project");
    let finished = block_on(async {
        // Nothing is covered in the first moment.
        let line = "touch ready; until [ -e go ]; do sleep 0.01; done; \
             for name in deny/inner/.env token .local/share/keyrings/key; do \
             while grep -qs secret $name; do sleep 0.01; done; done; touch tried; sleep 1000";
        let task = supervisor(PidNamespace::Privileged).start_background(
            confined_command(&policy, ConfinementMethod::Namespace, line),
            Capture::default(),
        );
        let wait = |name: &str| {
            let path = project.join(name);
            tokio::task::spawn_blocking(move || wait_until("file", || path.exists()))
        };
        wait("ready").await.unwrap();
        for name in ["deny/inner/.env", "token"] {
            fs::write(world.path("outside/new"), "the secret\n").unwrap();
            fs::rename(world.path("outside/new"), project.join(name)).unwrap();
        }
        fs::rename(
            project.join(".local/share/keyrings"),
            world.path("outside/k"),
        )
        .unwrap();
        fs::rename(
            world.path("outside/k"),
            project.join(".local/share/keyrings"),
        )
        .unwrap();
        fs::write(project.join("go"), "").unwrap();
        wait("tried").await.unwrap();
        task.stop();
        task.wait_for_end().await.unwrap()
    });
    let finished = finished.as_ref().as_ref().unwrap();
    assert_eq!(finished.exit, CommandExit::Cancelled);
}
