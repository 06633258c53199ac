//! Modes of haft's own files: every command on a fresh home, under permissive umasks.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_testkit::{Reply, Script, ScriptedServer, When};
use haft_types::Api;
use serde_json::json;
use tempfile::TempDir;

use crate::rig::haft;

/// The layout of haft's folders.
#[derive(Clone, Copy, Debug)]
enum Layout {
    HaftHome,
    Xdg,
}

/// A user without any file of haft, and a project.
struct FreshUser {
    layout: Layout,
    umask: &'static str,
    top: TempDir,
}

impl FreshUser {
    fn new(layout: Layout, umask: &'static str) -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("user")).unwrap();
        fs::create_dir(top.path().join("a project")).unwrap();
        Self { layout, umask, top }
    }

    fn project(&self) -> PathBuf {
        self.top.path().join("a project")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let user = self.top.path().join("user");
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("umask {}; exec \"$0\" \"$@\"", self.umask)])
            .arg(haft())
            .args(arguments);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", &user)
            .env("EDITOR", "true")
            .stdin(Stdio::null());
        match self.layout {
            Layout::HaftHome => command.env("HAFT_HOME", user.join("home/of haft")),
            Layout::Xdg => command.env("XDG_CACHE_HOME", user.join("caches")),
        };
        command
    }

    /// Runs a command and checks every file of the user afterwards.
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output().unwrap();
        self.assert_private(arguments);
        output
    }

    /// Like [`Self::run`], for a command that must succeed.
    fn succeed(&self, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// Fails if others may read, write, or enter anything below the user's folder.
    fn assert_private(&self, arguments: &[&str]) {
        let mut loose = Vec::new();
        visit_files(&self.top.path().join("user"), &mut |path, mode| {
            if mode & 0o077 != 0 {
                loose.push(format!("{mode:04o} {}", path.display()));
            }
        });
        assert!(
            loose.is_empty(),
            "{:?}, umask {}, after {arguments:?}: {loose:#?}",
            self.layout,
            self.umask
        );
    }

    /// Returns the mode of a path below one of haft's own folders.
    fn file_mode(&self, of: &str) -> u32 {
        let mut found = None;
        visit_files(&self.top.path().join("user"), &mut |path, mode| {
            if path.ends_with(of) {
                found = Some(mode);
            }
        });
        found.unwrap_or_else(|| panic!("there is no `{of}`"))
    }
}

fn visit_files(folder: &Path, see: &mut dyn FnMut(&Path, u32)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // A file that another process removed meanwhile has no mode.
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if !metadata.is_symlink() {
            see(&path, metadata.mode() & 0o7777);
        }
        if metadata.is_dir() {
            visit_files(&path, see);
        }
    }
}

/// Returns the names in the command list of a help page.
fn listed_commands(help: &str) -> Vec<String> {
    let (commands, _) = help.split_once("\nOptions:").unwrap_or((help, ""));
    let commands = commands
        .split_once("Commands:")
        .map_or(commands, |(_, commands)| commands);
    let lines = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help" && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        .map(str::to_owned)
        .collect()
}

/// Returns every command that runs by itself, from the `--help` pages.
fn all_commands() -> Vec<Vec<String>> {
    let help = |words: &[String]| {
        let output = Command::new(haft())
            .args(words)
            .arg("--help")
            .env_clear()
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mut open: Vec<Vec<String>> = listed_commands(&help(&[]))
        .into_iter()
        .map(|name| vec![name])
        .collect();
    assert!(open.len() > 30, "{open:?}");
    let mut all = Vec::new();
    while let Some(words) = open.pop() {
        let page = help(&words);
        let below = if page.contains("\nCommands:") {
            listed_commands(&page)
        } else {
            Vec::new()
        };
        if below.is_empty() {
            all.push(words);
        } else {
            open.extend(
                below
                    .into_iter()
                    .map(|name| [words.clone(), vec![name]].concat()),
            );
        }
    }
    all.sort();
    all
}

/// Arguments with which a command starts to work on a fresh home after [`preparations_of`] it; a
/// command that is not listed gets none.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("agents add", &["helper", "agent.md", "--user"]),
    ("agents remove", &["helper"]),
    ("agents show", &["helper"]),
    ("chat", &["hello", "--model", "none/none"]),
    ("commands add", &["one", "text.md", "--user"]),
    ("commands remove", &["one"]),
    ("commands show", &["one"]),
    ("completions", &["bash"]),
    ("config get", &["retry.attempts"]),
    ("config set", &["retry.attempts", "3"]),
    ("config unset", &["retry.attempts"]),
    ("context edit drop", &["00000000"]),
    ("context edit mask", &["00000000"]),
    ("context edit pin", &["00000000"]),
    ("context edit restore", &["00000000"]),
    ("context edit summarise", &["00000000..00000001"]),
    ("context recall", &["00000000"]),
    ("conversations backup restore", &["newest"]),
    ("conversations delete", &["one"]),
    ("conversations export", &["--all", "exported"]),
    ("conversations import", &["export.json"]),
    ("conversations new", &["one"]),
    ("conversations purge", &["one", "--force"]),
    ("conversations rename", &["one", "two"]),
    ("conversations restore", &["one"]),
    ("conversations revise", &["00000000", "text"]),
    ("conversations search", &["one"]),
    ("conversations use", &["one"]),
    ("count", &["text.md"]),
    ("jobs attach", &["00000000"]),
    ("jobs kill", &["00000000"]),
    ("jobs logs", &["00000000"]),
    ("jobs show", &["00000000"]),
    ("lib add", &["flask"]),
    ("lib docs", &["flask"]),
    ("lib proxy", &["/nowhere"]),
    ("lib remove", &["flask"]),
    ("logs", &["--all"]),
    ("man", &["run"]),
    ("mcp add", &["files", "--no-test", "--", "true"]),
    ("mcp login", &["files"]),
    ("mcp remove", &["files"]),
    (
        "models add",
        &[
            "mine/model",
            "--api",
            "openai-chat",
            "--base-url",
            "http://127.0.0.1:9",
        ],
    ),
    ("models show", &["none/none"]),
    ("models test", &["none/none"]),
    ("notes add", &["text.md", "a note"]),
    ("notes remove", &["1"]),
    ("notes show", &["text.md"]),
    ("permissions add", &["execute_command(ls:*)"]),
    ("permissions explain", &["ls"]),
    ("permissions remove", &["execute_command(ls:*)"]),
    ("proxy", &["--", "true"]),
    ("queue add", &["hello"]),
    ("queue cancel", &["1"]),
    ("queue prune", &["--days", "90"]),
    ("queue retry", &["1"]),
    ("queue show", &["1"]),
    ("rag add", &["docs", "."]),
    ("rag query", &["docs", "what"]),
    ("rag remove", &["docs"]),
    ("review", &["hello", "--model", "none/none"]),
    ("rewind", &["00000000"]),
    ("rules add", &["one", "text.md", "--user"]),
    ("rules remove", &["one"]),
    ("rules show", &["one"]),
    ("run", &["hello", "--model", "none/none"]),
    ("skills add", &["skill", "skill", "--user"]),
    ("skills remove", &["skill"]),
    ("skills show", &["skill"]),
    ("tools add", &["tool.sh", "tool.sh", "--user"]),
    ("tools remove", &["tool.sh"]),
    ("tools show", &["tool.sh"]),
    ("useful add", &["text.md", "1-2", "how it begins"]),
    ("useful remove", &["1"]),
    ("useful show", &["1"]),
    ("workflows add", &["flow", "flow.yaml", "--user"]),
    ("workflows remove", &["flow"]),
    ("workflows run", &["flow", "--model", "none/none"]),
    ("workflows show", &["flow"]),
    ("worktrees remove", &["00000000"]),
];

fn arguments_of(command: &str) -> &'static [&'static str] {
    ARGUMENTS
        .iter()
        .find(|(name, _)| *name == command)
        .map_or(&[], |(_, arguments)| arguments)
}

/// Returns the commands to run before a command, so that there is something it works on.
fn preparations_of(command: &str) -> Vec<String> {
    let (group, action) = command.rsplit_once(' ').unwrap_or(("", command));
    let added = format!("{group} add");
    let conversation = "conversations new".to_owned();
    match (group, action) {
        ("conversations", "restore") => vec![conversation, "conversations delete".to_owned()],
        ("conversations", "delete" | "purge" | "rename" | "revise" | "use")
        | ("context", "recall")
        | ("context edit", _)
        | ("", "rewind")
        | ("useful", "add") => vec![conversation],
        ("useful", "remove" | "show") => vec![conversation, added],
        ("lib", "docs" | "refresh")
        | ("mcp", "login")
        | ("rag", "query")
        | ("workflows", "run") => {
            vec![added]
        }
        (_, "remove" | "show") if ARGUMENTS.iter().any(|(name, _)| *name == added) => vec![added],
        _ => Vec::new(),
    }
}

/// Commands that run until they are killed, and print a line once they serve.
const SERVING: [&str; 2] = ["serve", "rag serve"];

/// Writes the files that commands read.
fn write_sources(project: &Path) {
    let write = |name: &str, text: &str| {
        fs::create_dir_all(project.join(name).parent().unwrap()).unwrap();
        fs::write(project.join(name), text).unwrap();
    };
    write("text.md", "---\nalwaysApply: true\n---\nUse tabs.\n");
    write(
        "agent.md",
        "---\nname: helper\ndescription: Looks closely\n---\nYou look closely.\n",
    );
    write(
        "skill/SKILL.md",
        "---\nname: skill\ndescription: Shows how\n---\nDo it.\n",
    );
    write("skill/scripts/do.sh", "#!/bin/sh\ntrue\n");
    fs::set_permissions(
        project.join("skill/scripts/do.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    write(
        "tool.sh",
        "#!/bin/sh\n# description: does nothing\n# usage: tool.sh\ntrue\n",
    );
    write(
        "export.json",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hello\"}]}\n",
    );
    write(
        "flow.yaml",
        "steps:\n  - name: one\n    prompt: Say hello.\n",
    );
}

/// Waits for the first line of a server, and kills it.
fn end_once_it_serves(mut child: Child) {
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    // A server that refuses to start prints nothing here and has ended.
    drop(out.take(4096).read_line(&mut line));
    drop(child.kill());
    child.wait().unwrap();
}

#[test]
fn own_files_are_private_after_every_command_on_a_fresh_home() {
    let commands = all_commands();
    let documentation = tempfile::tempdir().unwrap();
    let has_git = Command::new("git").arg("--version").output().is_ok();
    let library = has_git.then(|| documentation.path().join("documentation"));
    match &library {
        Some(library) => make_library_repository(library),
        None => println!("skipped for `lib`: git is not installed"),
    }
    let library = library.as_deref();
    let cases: Vec<_> = [(Layout::HaftHome, "022"), (Layout::Xdg, "000")]
        .into_iter()
        .flat_map(|case| commands.iter().map(move |words| (case, words)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(((layout, umask), words)) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    run_command(&FreshUser::new(*layout, umask), words, library);
                }
            });
        }
    });
}

/// Runs a command with its preparations and arguments. `library` is the repository from which it
/// may clone documentation; without one, commands that clone are left out.
fn run_command(user: &FreshUser, words: &[String], library: Option<&Path>) {
    write_sources(&user.project());
    let name = words.join(" ");
    if name.starts_with("lib ") && name != "lib proxy" {
        let Some(library) = library else { return };
        user.succeed(&["lib", "proxy", library.to_str().unwrap()]);
    }
    for prepared in preparations_of(&name) {
        let all: Vec<&str> = prepared
            .split(' ')
            .chain(arguments_of(&prepared).iter().copied())
            .collect();
        assert_is_complete(&all, &user.run(&all));
    }
    let all: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .chain(arguments_of(&name).iter().copied())
        .collect();
    if SERVING.contains(&name.as_str()) {
        let mut command = user.command(&all);
        end_once_it_serves(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        user.assert_private(&all);
    } else {
        assert_is_complete(&all, &user.run(&all));
    }
}

/// Fails if a command ended because arguments were missing or unknown: it created no files then.
#[track_caller]
fn assert_is_complete(arguments: &[&str], output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_refused = ["required arguments", "unexpected argument"]
        .iter()
        .any(|text| said.contains(text));
    assert!(!is_refused, "{arguments:?}: {said}");
}

/// A model that writes a file, runs a command with a long output, starts a sub-agent, and answers.
fn start_model() -> ScriptedServer {
    let when = |results| When {
        tool_results: Some(results),
        ..When::default()
    };
    let command = "seq 1 100000";
    let replies = [
        Reply::call(
            "write_to_file",
            json!({"path": "made.txt", "content": "made\n"}),
        )
        .when(when(0))
        .times(2),
        Reply::call(
            "execute_command",
            json!({"command": command, "requires_approval": false}),
        )
        .when(when(1))
        .times(2),
        Reply::text("Done.").times(20),
    ];
    ScriptedServer::builder(Script::replies(replies).unwrap())
        .start_in_thread()
        .unwrap()
}

fn config_text(server: &ScriptedServer) -> String {
    let base_url = server.base_url(Api::OpenaiChat);
    format!(
        "model = \"mock/m\"\n[providers.mock]\napi = \"openai-chat\"\nbase_url = \"{base_url}\"\n\
         [models.\"mock/m\"]\ncontext_window = 200000\nmax_output_tokens = 8192\n[retry]\nbase_delay_ms = 20\n"
    )
}

/// Makes a git repository with the documentation of a library.
fn make_library_repository(folder: &Path) {
    fs::create_dir_all(folder.join("github.com/pallets/flask")).unwrap();
    fs::write(
        folder.join("github.com/pallets/flask/quick.md"),
        "Flask in brief.\n",
    )
    .unwrap();
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &["commit", "-qm", "one"],
    ] {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let ran = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(identity)
            .args(arguments)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
}

#[test]
fn own_files_are_private_when_everything_is_used() {
    for (layout, umask) in [
        (Layout::HaftHome, "000"),
        (Layout::Xdg, "022"),
        (Layout::Xdg, "000"),
    ] {
        let server = start_model();
        let user = FreshUser::new(layout, umask);
        write_sources(&user.project());
        let source = user.top.path().join("config.toml");
        fs::write(&source, config_text(&server)).unwrap();
        let mut edit = user.command(&["config", "edit"]);
        let edited = edit
            .env("EDITOR", format!("cp '{}'", source.display()))
            .output()
            .unwrap();
        assert!(edited.status.success(), "{edited:?}");
        user.assert_private(&["config", "edit"]);

        user.succeed(&["trust"]);
        let task = ["run", "--permission-mode", "yolo", "write and count"];
        user.succeed(&task);
        user.succeed(&["undo"]);
        user.succeed(&["redo"]);
        let job = user.succeed(&["run", "--bg", "--permission-mode", "yolo", "again"]);
        let job = String::from_utf8(job.stdout).unwrap();
        user.run(&["jobs", "attach", job.trim()]);
        for arguments in [
            &["conversations", "backup"][..],
            &["mcp", "add", "files", "--no-test", "--", "true"],
            &["rules", "add", "one", "text.md", "--user"],
            &["skills", "add", "skill", "skill", "--user"],
            &["agents", "add", "helper", "agent.md", "--user"],
            &["tools", "add", "tool.sh", "tool.sh", "--user"],
            &["notes", "add", "text.md", "a note"],
            &["rag", "add", "docs", "."],
            &["rag", "query", "docs", "tabs"],
            &["doctor"],
            &["logs"],
        ] {
            user.succeed(arguments);
        }
        if Command::new("git").arg("--version").output().is_ok() {
            let repository = user.top.path().join("documentation");
            make_library_repository(&repository);
            user.succeed(&["lib", "proxy", repository.to_str().unwrap()]);
            user.succeed(&["lib", "add", "flask"]);
            user.succeed(&["lib", "refresh"]);
            assert_eq!(user.file_mode("pallets/flask/quick.md"), 0o600);
        } else {
            println!("skipped: git is not installed");
        }
        // The files whose modes were checked above exist.
        for (path, mode) in [
            ("config.toml", 0o600),
            ("state/defaults", 0o600),
            ("conversations.db", 0o600),
            ("versions", 0o700),
            ("backups", 0o700),
            ("trust.toml", 0o600),
            ("jobs", 0o700),
            ("log", 0o700),
            ("spill", 0o700),
            ("rag/docs.db", 0o600),
            ("tools/tool.sh", 0o700),
            ("scripts/do.sh", 0o700),
        ] {
            let path = if matches!(layout, Layout::Xdg) {
                path.trim_start_matches("state/")
            } else {
                path
            };
            assert_eq!(user.file_mode(path), mode, "{path}");
        }
        assert_eq!(
            user.project().join("made.txt").metadata().unwrap().mode() & 0o777,
            if umask == "000" { 0o666 } else { 0o644 }
        );
    }
}

#[test]
fn own_folders_of_older_versions_are_made_private() {
    let server = start_model();
    let user = FreshUser::new(Layout::HaftHome, "022");
    let home = user.top.path().join("user/home/of haft");
    for folder in ["data", "state", "cache"] {
        fs::create_dir_all(home.join(folder)).unwrap();
        fs::set_permissions(home.join(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&home, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join("config.toml"), config_text(&server)).unwrap();
    fs::set_permissions(home.join("config.toml"), fs::Permissions::from_mode(0o640)).unwrap();
    let mode = |path: &str| home.join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert!(
        user.command(&["run", "--permission-mode", "yolo", "hello"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(["data", "state", "cache"].map(mode), [0o700; 3]);
    assert!(
        user.command(&["config", "set", "retry.attempts", "3"])
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!((mode(""), mode("config.toml")), (0o755, 0o640));
}
