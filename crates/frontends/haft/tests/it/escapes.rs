//! Every attempt to leave the sandbox, made from every place where a project can make haft start a
//! program: commands in each form, hooks, MCP servers, external tools and their help. Also a
//! repository whose configuration would make git start programs, which must not happen at all. The
//! tests run as the current user and, if that is root, also as nobody.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_probe::{Finding, PROBE_ARG, ProbeOutcome, ProbeSite};
use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use rustix::process::getuid;
use serde_json::json;
use tempfile::TempDir;

use crate::rig::{HAFT_BINARY, NOBODY, Ran, Rig, haft};
use crate::sandbox::has_namespaces;

/// The variable with the folder in which the tests of another user work.
const FOLDER: &str = "HAFT_TEST_FOLDER";

/// A folder outside `/tmp`, which is private in the sandbox: targets outside must exist to be
/// refused.
fn folder_outside_tmp() -> TempDir {
    let parent = std::env::var_os(FOLDER).map(PathBuf::from);
    let machine = || {
        if getuid().is_root() {
            "/var/lib".into()
        } else {
            env!("CARGO_TARGET_TMPDIR").into()
        }
    };
    let folder = tempfile::Builder::new()
        .prefix("haft-test-")
        .tempdir_in(parent.unwrap_or_else(machine))
        .unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A site for escape attempts, and a rig that works in its project.
struct Place {
    _folder: TempDir,
    site: ProbeSite,
    rig: Rig,
}

impl Place {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let folder = folder_outside_tmp();
        let root = folder.path().canonicalize().unwrap();
        let site = ProbeSite::prepare(&root).unwrap();
        let rig = Rig::untrusted(Api::OpenaiChat, Script::replies(replies).unwrap());
        let place = Self {
            _folder: folder,
            site,
            rig,
        };
        // Files below `/tmp` must be as visible as they are elsewhere.
        let programs = haft().parent().unwrap().to_owned();
        let readable: Vec<_> = [root.clone(), programs]
            .into_iter()
            .filter(|path| haft_sandbox::private_folder_entry(path).is_some())
            .collect();
        place.add(&format!(
            "[permissions]\nallow = [\"mcp__s\"]\n[tools]\nhelp_timeout = 60\nhelp_wait = 60\n\
             [sandbox]\nhidden = [\"{}\"]\nreadable = {readable:?}\n",
            root.join("secrets").display()
        ));
        let line = format!(
            "'{}' {PROBE_ARG} '{}'",
            haft().display(),
            place.site.targets_file().display()
        );
        place.write(
            "attempts.sh",
            &format!("#!/bin/sh\nexec {line} > findings < /dev/null\n"),
        );
        place
    }

    fn project(&self) -> PathBuf {
        self.site.targets().project.clone()
    }

    fn add(&self, text: &str) {
        let file = self.rig.home().join("config.toml");
        fs::write(&file, fs::read_to_string(&file).unwrap() + text).unwrap();
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn haft(&self, arguments: &[&str]) -> Ran {
        Ran(self
            .rig
            .command(arguments)
            .current_dir(self.project())
            .output()
            .unwrap())
    }

    /// Runs haft without approvals in a trusted project.
    fn run(&self) -> Ran {
        assert_eq!(self.haft(&["trust"]).code(), 0);
        self.haft(&[
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "auto",
            "begin",
        ])
    }

    /// Asserts that all attempts were made, every escape was refused, permitted actions worked, and
    /// nothing was noticed outside.
    fn assert_held(&mut self, what: &str, ran: &Ran) {
        let said = fs::read_to_string(self.project().join("findings"))
            .unwrap_or_else(|error| panic!("{what}: {error}: {}{}", ran.stdout(), ran.stderr()));
        let findings: Vec<Finding> = said
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // A session has its own terminal.
        let own = |finding: &Finding| what == "a session" && finding.name == "open the console";
        let wrong: Vec<_> = findings
            .iter()
            .filter(|finding| !finding.is_expected() && !own(finding))
            .collect();
        assert!(wrong.is_empty(), "{what}: {wrong:#?}");
        self.assert_unnoticed(what);
        let refused = findings
            .iter()
            .filter(|finding| finding.outcome == ProbeOutcome::Refused)
            .count();
        assert!(
            refused >= 200,
            "{what}: only {refused} of {} were refused",
            findings.len()
        );
    }

    /// True if the test itself made this change to the project.
    fn is_own(&self, line: &str) -> bool {
        let own = [
            "attempts.sh",
            "findings",
            "server.sh",
            "starts",
            ".claude",
            ".mcp.json",
            ".haft",
        ];
        own.iter()
            .any(|name| line.starts_with(&self.project().join(name).display().to_string()))
            || line == format!("{} was changed", self.project().display())
    }

    /// Asserts that nothing was noticed outside except files that the test itself put into the
    /// project.
    fn assert_unnoticed(&mut self, what: &str) {
        // Placeholders of missing files may still be disappearing.
        let mut changed = self.site.describe_changed_files();
        for _ in 0..500 {
            if changed
                .as_ref()
                .is_ok_and(|changed| changed.iter().all(|line| self.is_own(line)))
            {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            changed = self.site.describe_changed_files();
        }
        let mut noticed = changed.unwrap();
        noticed.retain(|line| !self.is_own(line));
        noticed.extend(self.site.take_contacts().unwrap());
        assert_eq!(noticed, [""; 0], "{what}");
    }
}

fn run_command(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false, "timeout": 300}),
    )
}

/// The ways to start a program of a project, except the help of external tools.
const STARTS: [&str; 7] = [
    "a command",
    "a session",
    "a background task",
    "a user's hook",
    "a project's hook",
    "a server",
    "an external tool",
];

fn replies_for(start: &str) -> Vec<Reply> {
    let mut calls = match start {
        "a command" => vec![run_command("sh ./attempts.sh")],
        "a session" => {
            vec![Reply::call(
                "session_start",
                json!({"command": "sh ./attempts.sh; echo over", "timeout": 300}),
            )]
        }
        "a background task" => vec![
            Reply::call(
                "background_task",
                json!({"action": "start", "command": "sh ./attempts.sh"}),
            ),
            Reply::call(
                "background_task",
                json!({"action": "monitor", "task_id": "t1", "timeout": 300}),
            ),
        ],
        "a server" => {
            vec![Reply::call(
                "use_mcp_tool",
                json!({"server_name": "s", "tool_name": "show", "arguments": {}}),
            )]
        }
        "an external tool" => vec![run_command(".haft/tools/attempts now")],
        _ => Vec::new(),
    };
    calls.push(Reply::text("Done."));
    calls
}

fn write_start(place: &Place, start: &str) {
    let hook = json!({"type": "command", "command": "sh ./attempts.sh", "timeout": 300});
    match start {
        "a user's hook" => {
            place.add(
                "[[hooks.stop]]\nhooks = [{ command = \"sh ./attempts.sh\", timeout = 300 }]\n",
            );
        }
        "a project's hook" => {
            place.write(
                ".claude/settings.json",
                &json!({"hooks": {"Stop": [{"hooks": [hook]}]}}).to_string(),
            );
        }
        "a server" => {
            let entry = json!({"command": "/bin/sh", "args": ["server.sh"]});
            place.write(
                ".mcp.json",
                &json!({"mcpServers": {"s": entry}}).to_string(),
            );
            let call = "*'\"name\":\"show\"'*)";
            assert!(SHELL_MCP_SERVER.contains(call));
            place.write(
                "server.sh",
                &SHELL_MCP_SERVER.replace(call, &format!("{call}\n        sh ./attempts.sh")),
            );
        }
        "an external tool" => {
            place.write(
                ".haft/tools/attempts",
                "#!/bin/sh\n[ \"$1\" = now ] && exec sh ./attempts.sh\necho Usage: now\n",
            );
        }
        _ => {}
    }
}

/// Makes all attempts from each start.
fn assert_all_starts_hold() {
    for start in STARTS {
        let mut place = Place::new(replies_for(start));
        if !has_namespaces(&place.rig) {
            return;
        }
        write_start(&place, start);
        let ran = place.run();
        place.assert_held(start, &ran);
    }
}

#[test]
fn sandbox_confines_every_program_a_project_starts() {
    assert_all_starts_hold();
}

/// The help of an external tool cannot write anything, so the tool prints its findings.
fn assert_help_holds() {
    let mut place = Place::new([Reply::text("Done.")]);
    if !has_namespaces(&place.rig) {
        return;
    }
    let line = format!(
        "'{}' {PROBE_ARG} '{}'",
        haft().display(),
        place.site.targets_file().display()
    );
    place.write(
        ".haft/tools/attempts",
        &format!(
            "#!/bin/sh\n{line} > /tmp/said < /dev/null\necho \"Usage: attempts, $(grep -c refused /tmp/said) refused\"\n\
             grep '\"escape\"' /tmp/said | grep '\"succeeded\"' | cut -c1-80\necho x > '{}/findings'\nexit 0\n",
            place.project().display()
        ),
    );
    place.run();
    let shown = place.haft(&["tools", "show", "attempts"]).stdout();
    let refused = shown
        .split("attempts, ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
    assert!(refused.is_some_and(|refused| refused >= 200), "{shown}");
    assert!(!shown.contains("succeeded"), "{shown}");
    assert!(
        !place.project().join("findings").exists(),
        "help wrote into the project"
    );
    place.assert_unnoticed("help");
}

#[test]
fn sandbox_confines_the_help_of_external_tools() {
    assert_help_holds();
}

/// Everything that a repository can be made to start; `EVIL` is a program.
const CONFIGURATION: &str = "[core]\n\tfsmonitor = EVIL\n\thooksPath = ../hooks\n\tsshCommand = EVIL\n\tpager = EVIL\n\
    \teditor = EVIL\n\talternateRefsCommand = EVIL\n\taskPass = PROGRAM\n[include]\n\tpath = ../more\n\
    [includeIf \"gitdir:**\"]\n\tpath = ../more\n[filter \"x\"]\n\tclean = EVIL\n\tsmudge = EVIL\n\tprocess = EVIL\n\
    [diff \"x\"]\n\ttextconv = EVIL\n\tcommand = EVIL\n[merge \"x\"]\n\tdriver = EVIL\n[diff]\n\texternal = EVIL\n\
    \tsubmodule = diff\n[submodule]\n\trecurse = true\n[gpg]\n\tprogram = PROGRAM\n[credential]\n\thelper = !EVIL\n\
    [remote \"origin\"]\n\turl = ext::PROGRAM\n\tpromisor = true\n\tpartialCloneFilter = blob:none\n";

/// Writes a repository with this configuration, and with filters, hooks, an alternate and a nested
/// repository behind a gitlink.
fn write_hostile_repository(place: &Place) {
    let project = place.project();
    let evil = project.join("evil");
    place.write(
        "evil",
        "#!/bin/sh\necho x >> \"$(dirname \"$0\")/started\"\n[ -n \"$PLANT_ONLY\" ] || exec sh ./attempts.sh\n",
    );
    let in_folder = |folder: &Path, line: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-ec", line])
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let ran = sh.output().unwrap();
        assert!(
            ran.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    };
    let commit = "git add -A && git -c user.name=t -c user.email=t@t commit -qm begin";
    in_folder(
        &project,
        "rm -rf .git && printf 'one\\ntwo\\nthree\\nfour\\n' > lines.txt && echo raw > big.bin && git init -q",
    );
    place.write(
        ".haft/agents/worker.md",
        "---\nname: worker\ndescription: Works\nworktree: true\n---\nYou are worker.\n",
    );
    in_folder(
        &project,
        &format!("mkdir nested && cd nested && git init -q && echo 1 > f && {commit}"),
    );
    in_folder(&project, commit);
    in_folder(
        &project,
        "git -C nested config filter.x.clean ../evil; git -C nested config core.fsmonitor ../evil; \
                         echo '* filter=x' > nested/.gitattributes; echo 2 > nested/f",
    );
    fs::create_dir_all(project.join(".git/objects/info")).unwrap();
    fs::write(
        project.join(".git/objects/info/alternates"),
        format!("{}\n", place.site.targets().outside.display()),
    )
    .unwrap();
    for name in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-commit",
    ] {
        place.write(
            &format!("hooks/{name}"),
            &format!("#!/bin/sh\nexec '{}'\n", evil.display()),
        );
    }
    // Git hands most values to a shell, which would split a path with spaces.
    let path = evil.to_str().unwrap();
    let text = |text: &str| {
        text.replace("EVIL", &format!("'{path}'"))
            .replace("PROGRAM", path)
    };
    place.write(
        "more",
        &text("[core]\n\tfsmonitor = EVIL\n[alias]\n\tdiff = !EVIL\n\tls-files = !EVIL\n"),
    );
    place.write(".gitattributes", "*.bin filter=x\n*.txt diff=x merge=x\n");
    let config = project.join(".git/config");
    fs::write(
        &config,
        fs::read_to_string(&config).unwrap() + &text(CONFIGURATION),
    )
    .unwrap();
    fs::write(project.join("lines.txt"), "one\ntwo\nthree\nFOUR\n").unwrap();
}

fn assert_git_starts_nothing() {
    let on = |text: &str, reply: Reply| {
        reply.when(When {
            last_contains: Some(text.into()),
            ..When::default()
        })
    };
    let start = Reply::call(
        "run_named_subagents",
        json!({"subagents": "- {name: worker, task: TASK}"}),
    );
    let place = Place::new([
        on("begin", start),
        on(
            "TASK",
            run_command("sed -i s/one/ONE/ lines.txt && echo did it"),
        ),
        on("did it", Reply::text("Worked.")),
        on("## worker", Reply::text("All done.")),
        Reply::text("Fine.").times(9),
    ]);
    write_hostile_repository(&place);
    let started = place.project().join("started");
    assert_eq!(place.haft(&["trust"]).code(), 0);
    for of in [
        &["review"][..],
        &["review", "--commit", "HEAD"],
        &["review", "--base", "HEAD"],
    ] {
        let ran = place.haft(of);
        assert_eq!(ran.code(), 0, "{of:?}: {}", ran.stderr());
        assert!(!started.exists(), "{of:?}");
    }
    let ran = place.run();
    let merged = ran.events().iter().any(|event| {
        event["text"]
            .as_str()
            .unwrap_or_default()
            .contains("Merged into")
    });
    assert!(merged, "{}{}", ran.stdout(), ran.stderr());
    assert!(!started.exists() && !place.project().join("findings").exists());

    // Without this check, a test that plants nothing would pass, too.
    let mut git = Command::new("git");
    git.arg("status")
        .env("PLANT_ONLY", "1")
        .current_dir(place.project())
        .output()
        .unwrap();
    assert!(started.exists(), "git itself starts what is planted");
}

#[test]
fn git_starts_nothing_in_a_hostile_repository() {
    assert_git_starts_nothing();
}

#[test]
#[ignore = "started by another test as a process of its own"]
fn escapes_stand_in() {
    if std::env::var_os(FOLDER).is_some() {
        assert_all_starts_hold();
        assert_help_holds();
        assert_git_starts_nothing();
    }
}

/// Runs as nobody, with copies of both programs that every user can reach.
#[test]
fn sandbox_confines_any_user() {
    if !getuid().is_root() {
        return;
    }
    let shared = folder_outside_tmp();
    let own = folder_outside_tmp();
    let copy = |program: &Path| {
        let target = shared.path().join(program.file_name().unwrap());
        assert!(
            Command::new("cp")
                .arg(program)
                .arg(&target)
                .status()
                .unwrap()
                .success()
        );
        target
    };
    let tests = copy(&std::env::current_exe().unwrap());
    let program = copy(haft());
    chown(own.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let output = Command::new(tests)
        .args([
            "escapes::escapes_stand_in",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env(FOLDER, own.path())
        .env(HAFT_BINARY, program)
        .env("HOME", own.path())
        .current_dir(own.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{complaints}"
    );
    println!("{said}");
}
