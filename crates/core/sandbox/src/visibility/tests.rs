use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::{Network, SandboxPolicy};

/// A folder below `/tmp` with programs, and a policy that does not open it.
struct World {
    tmp: TempDir,
    private: TempDir,
}

impl World {
    fn new() -> Self {
        let below = |prefix: &str| {
            tempfile::Builder::new()
                .prefix(prefix)
                .tempdir_in("/tmp")
                .unwrap()
        };
        let world = Self {
            tmp: below("programs-"),
            private: below("private-"),
        };
        world.program("bin/tool", "#!/bin/sh\n");
        world.program("with space/tool", "#!/bin/sh\n");
        world
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().join(name)
    }

    fn confined(&self, method: ConfinementMethod) -> ConfinementSpec {
        let policy = SandboxPolicy {
            projects: vec!["/nonexistent/project".into()],
            writable: Vec::new(),
            protected: Vec::new(),
            repositories: Vec::new(),
            hidden: Vec::new(),
            readable: Vec::new(),
            tmp: self.private.path().to_owned(),
            notes: "/nonexistent/notes".into(),
            home: None,
            network: Network::None,
        };
        ConfinementSpec { method, policy }
    }

    fn in_namespace(&self) -> ConfinementSpec {
        self.confined(ConfinementMethod::Namespace)
    }

    /// Returns the hidden path that `line` names.
    fn hidden_in_line(&self, line: &str, env: &[(String, String)]) -> Option<PathBuf> {
        let texts = [line.to_owned()];
        let command = CommandPaths {
            texts: &texts,
            cwd: self.tmp.path(),
            env,
        };
        self.in_namespace()
            .first_hidden_path(command, "")
            .map(|hidden| hidden.path)
    }
}

fn variable(name: &str, value: impl Into<PathBuf>) -> (String, String) {
    (name.to_owned(), value.into().display().to_string())
}

#[test]
fn hides_names_programs_below_tmp_unless_their_folder_is_open() {
    let world = World::new();
    let tool = world.path("bin/tool");
    let hidden = HiddenPath {
        path: tool.clone(),
        cause: HiddenCause::PrivateFolder("/tmp"),
    };
    assert_eq!(
        world.in_namespace().hidden_path(&tool),
        Some(hidden.clone())
    );
    assert_eq!(
        world
            .in_namespace()
            .hidden_path(&world.path("bin/../bin/./tool")),
        Some(hidden)
    );
    assert_eq!(
        world.in_namespace().hidden_path(&world.path("none")),
        None,
        "a path that does not exist is not hidden"
    );
    assert_eq!(
        world
            .confined(ConfinementMethod::Landlock)
            .hidden_path(&tool),
        None
    );

    let mut open = world.in_namespace();
    open.policy.readable.push(world.path("bin"));
    assert_eq!(open.hidden_path(&tool), None);
    let mut project = world.in_namespace();
    project.policy.projects = vec!["/tmp".into()];
    assert_eq!(
        project.hidden_path(&tool),
        None,
        "a project that is `/tmp` is not replaced"
    );
}

#[test]
fn hides_follows_links_and_interpreter_lines() {
    let world = World::new();
    let elsewhere = tempfile::tempdir_in("/var/tmp").unwrap();
    let link = elsewhere.path().join("link");
    symlink(world.path("bin/tool"), &link).unwrap();
    let mut confined = world.in_namespace();
    confined.policy.readable.push(elsewhere.path().to_owned());
    assert_eq!(
        confined.hidden_path(&link).unwrap().path,
        world.path("bin/tool").canonicalize().unwrap()
    );

    let script = elsewhere.path().join("script");
    fs::write(
        &script,
        format!("#!{} -x\n", world.path("bin/tool").display()),
    )
    .unwrap();
    let texts = [script.display().to_string()];
    let command = CommandPaths {
        texts: &texts,
        cwd: Path::new("/"),
        env: &[],
    };
    assert_eq!(
        confined.first_hidden_path(command, "").unwrap().path,
        world.path("bin/tool")
    );
}

#[test]
fn hides_distinguishes_hidden_folders_from_private_ones() {
    let world = World::new();
    let mut confined = world.in_namespace();
    confined
        .policy
        .hidden
        .push(world.path("bin").canonicalize().unwrap());
    let hidden = confined.hidden_path(&world.path("bin/tool")).unwrap();
    assert_eq!(hidden.cause, HiddenCause::HiddenFolder);
    let texts = [world.path("bin/tool").display().to_string()];
    let shown = confined.with_programs_readable(CommandPaths {
        texts: &texts,
        cwd: Path::new("/"),
        env: &[],
    });
    assert_eq!(shown, confined, "a hidden folder is not opened");
}

#[test]
fn hides_ignores_files_made_in_the_private_tmp() {
    let world = World::new();
    let name = world.tmp.path().file_name().unwrap();
    fs::create_dir(world.private.path().join(name)).unwrap();
    fs::write(world.private.path().join(name).join("made"), "").unwrap();
    fs::write(world.path("made"), "").unwrap();
    assert_eq!(world.in_namespace().hidden_path(&world.path("made")), None);
    assert!(
        world
            .in_namespace()
            .hidden_path(&world.path("bin/tool"))
            .is_some()
    );
}

#[test]
fn hidden_in_finds_paths_in_every_form_of_a_line() {
    let world = World::new();
    let tool = world.path("bin/tool");
    let spaced = world.path("with space/tool");
    let folder = world.tmp.path().display().to_string();
    let home = [variable("HOME", world.tmp.path())];
    let search = [variable("PATH", world.path("bin"))];
    for (line, env, found) in [
        (format!("{} --version", tool.display()), &[][..], &tool),
        (format!("cd / && '{}'", spaced.display()), &[], &spaced),
        (format!("\"{folder}/with space\"/tool"), &[], &spaced),
        (format!("{folder}/with\\ space/tool"), &[], &spaced),
        (format!("X=1 run --program={}", tool.display()), &[], &tool),
        (format!("LD=a:{}", tool.display()), &[], &tool),
        ("./bin/tool".to_owned(), &[], &tool),
        ("~/bin/tool".to_owned(), &home, &tool),
        ("exec $HOME/bin/tool".to_owned(), &home, &tool),
        (
            "exec \"${HOME}/with space/tool\"".to_owned(),
            &home,
            &spaced,
        ),
        ("echo | tool".to_owned(), &search, &tool),
    ] {
        assert_eq!(
            world.hidden_in_line(&line, env).as_ref(),
            Some(found),
            "{line}"
        );
    }
    for line in ["true", "$UNKNOWN/bin/tool", "/bin/sh -c true", "tool"] {
        assert_eq!(world.hidden_in_line(line, &[]), None, "{line}");
    }
}

#[test]
fn hidden_in_finds_paths_in_printed_errors() {
    let world = World::new();
    let tool = world.path("bin/tool");
    let spaced = world.path("with space/tool");
    let none = CommandPaths {
        texts: &[],
        cwd: Path::new("/"),
        env: &[],
    };
    for (printed, found) in [
        (format!("sh: 1: {}: not found\n", tool.display()), &tool),
        (
            format!(
                "it can't run\npython3: can't open file '{}': [Errno 2]\n",
                spaced.display()
            ),
            &spaced,
        ),
        (
            format!(
                "error: cannot run {}: No such file or directory",
                tool.display()
            ),
            &tool,
        ),
        (format!("cannot open ‘{}’", tool.display()), &tool),
    ] {
        assert_eq!(
            world
                .in_namespace()
                .first_hidden_path(none, &printed)
                .map(|hidden| hidden.path)
                .as_ref(),
            Some(found)
        );
    }
}

#[test]
fn showing_opens_only_the_entry_below_tmp() {
    let world = World::new();
    let shown = |line: &str| {
        let texts = [line.to_owned()];
        let command = CommandPaths {
            texts: &texts,
            cwd: Path::new("/"),
            env: &[],
        };
        world
            .in_namespace()
            .with_programs_readable(command)
            .policy
            .readable
    };
    let tool = world.path("bin/tool");
    assert_eq!(
        shown(&format!("{} /etc/passwd", tool.display())),
        [world.tmp.path()]
    );
    let script = world.path("script.py");
    fs::write(&script, "print()\n").unwrap();
    assert_eq!(
        shown(&format!("python3 '{}'", script.display())),
        [world.tmp.path()]
    );
    // Files that are no programs stay hidden: the command may create its own.
    fs::write(world.path("log"), "").unwrap();
    let written = format!(
        "fmt --cache {} > {}",
        world.path("bin").display(),
        world.path("log").display()
    );
    assert_eq!(shown(&written), Vec::<PathBuf>::new());
    let folder = world
        .in_namespace()
        .with_paths_readable(&[world.path("bin")]);
    assert_eq!(folder.hidden_path(&world.path("with space/tool")), None);
}
