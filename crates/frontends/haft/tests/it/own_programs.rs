//! Programs that haft starts for itself are not those that the model wrote: key commands, keyrings,
//! the browser, editors, and programs that read the clipboard.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;
use tempfile::TempDir;

use crate::rig::{Rig, haft};
use crate::terminal::{Terminal, WAIT_TIMEOUT};

fn make_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// An untrusted project whose provider has this line as the source of its key.
fn rig_with_key_source(line: &str) -> Rig {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&config.replace("[providers.mock]\n", &format!("[providers.mock]\n{line}\n")));
    rig
}

/// A program planted in the project and in two other folders that the model can write, and the
/// user's own program.
struct PlantedPrograms {
    outside: TempDir,
    /// A folder for `--add-dir`, and one of the configuration.
    writable: [TempDir; 2],
    path: String,
}

impl PlantedPrograms {
    /// Plants `name`, and makes the user's own program with `text`, last in the path.
    fn new(rig: &Rig, name: &str, text: &str) -> Self {
        let outside = TempDir::new().unwrap();
        let writable = [(); 2].map(|()| TempDir::new().unwrap());
        let planted = [
            rig.project().join(".venv/bin"),
            writable[0].path().join("bin"),
            writable[1].path().join("bin"),
        ];
        let mark = outside.path().join("planted");
        for folder in &planted {
            make_program(&folder.join(name), &format!("touch '{}'", mark.display()));
        }
        let own = outside.path().join("bin");
        make_program(&own.join(name), text);
        let folders = planted.iter().chain([&own]);
        let folders: Vec<_> = folders.map(|one| one.display().to_string()).collect();
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!(
            "{config}[sandbox]\nwritable = [\"{}\"]\n",
            writable[1].path().display()
        ));
        Self {
            outside,
            writable,
            path: format!("{}:/usr/bin:/bin", folders.join(":")),
        }
    }

    fn added(&self) -> String {
        self.writable[0].path().display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.outside.path().join("planted")
    }
}

#[test]
fn key_command_starts_outside_the_project_without_variables_that_name_code() {
    let outside = TempDir::new().unwrap();
    let noted = outside.path().join("environment");
    let rig = rig_with_key_source(&format!(
        "api_key_command = \"(pwd; env) > '{}'; echo key\"",
        noted.display()
    ));
    let project = rig.project().display().to_string();
    let names = [
        "NODE_OPTIONS",
        "PYTHONPATH",
        "RUBYOPT",
        "CLASSPATH",
        "PERL5LIB",
    ];
    let mut command = rig.command(&["run", "hello"]);
    command.envs(names.map(|name| (name, &project)));
    command.env("PATH", format!("{project}/.venv/bin:/usr/bin:/bin"));
    command.env("KEYRING_SESSION", "kept");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let noted = fs::read_to_string(noted).unwrap();
    assert_eq!(noted.lines().next(), Some("/"));
    assert!(noted.contains("KEYRING_SESSION=kept"), "{noted}");
    assert!(!noted.contains(&project), "{noted}");
}

/// Whatever its name, a variable that leads to a folder that the model can write is not inherited.
#[test]
fn key_command_inherits_no_variable_that_names_a_writable_folder() {
    let outside = TempDir::new().unwrap();
    let noted = outside.path().join("environment");
    let line = format!(
        "api_key_command = \"env > '{}'; echo key\"",
        noted.display()
    );
    let rig = rig_with_key_source(&line);
    let programs = PlantedPrograms::new(&rig, "unused", "true");
    let project = rig.project().display().to_string();
    let added = programs.added();
    let configured = programs.writable[1].path().display().to_string();
    let variables = [
        ("VIRTUAL_ENV", format!("{project}/.venv")),
        ("XDG_CONFIG_HOME", format!("{added}/config")),
        ("XDG_DATA_DIRS", format!("/usr/share:{configured}/share")),
        ("GIT_SSH_COMMAND", format!("ssh -F {project}/ssh")),
        ("npm_config_script_shell", format!("{added}/sh")),
        ("OPENSSL_CONF", format!("file://{configured}/openssl.cnf")),
        ("LATER", format!("-I{project}/not/there/yet")),
    ];
    let mut command = rig.command(&["run", "--add-dir", &added, "hello"]);
    command.envs(variables);
    command.env("JAVA_HOME", "/usr/lib/jvm");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let noted = fs::read_to_string(noted).unwrap();
    assert!(noted.contains("JAVA_HOME=/usr/lib/jvm"), "{noted}");
    for folder in [project, added, configured] {
        assert!(!noted.contains(&folder), "{folder}: {noted}");
    }
}

#[test]
fn key_command_imports_no_module_of_the_project() {
    if !std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: there is no python3");
        return;
    }
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    let rig = rig_with_key_source("api_key_command = \"python3 -m mykeys || echo key\"");
    rig.write(
        "mykeys.py",
        format!("open('{}', 'w')\nprint('key')\n", mark.display()),
    );
    let ran = rig
        .command(&["run", "hello"])
        .env("PYTHONPATH", rig.project())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(!mark.exists());
}

#[test]
fn key_command_with_a_relative_path_is_an_error_that_names_the_remedy() {
    let rig = rig_with_key_source("api_key_command = \"./key.sh\"");
    make_program(&rig.project().join("key.sh"), "echo key");
    let ran = rig.command(&["run", "hello"]).output().unwrap();
    assert!(!ran.status.success(), "{ran:?}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("it starts in `/`, so name files by absolute paths or `~`"),
        "{said}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn key_programs_are_not_looked_up_in_folders_that_the_model_can_write() {
    for (line, name) in [
        ("api_key_keyring = \"haft/mock\"", "secret-tool"),
        ("api_key_command = \"mykey\"", "mykey"),
        ("api_key_command = \"env mykey\"", "mykey"),
        ("api_key_command = \"sh -c 'exec mykey'\"", "mykey"),
    ] {
        let rig = rig_with_key_source(line);
        let programs = PlantedPrograms::new(&rig, name, "echo key");
        let ran = rig
            .command(&["run", "--add-dir", &programs.added(), "hello"])
            .env("PATH", &programs.path)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{line}: {ran:?}");
        assert!(!programs.mark().exists(), "{line}");
    }
}

#[test]
fn editor_is_not_looked_up_in_folders_that_the_model_can_write() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let programs = PlantedPrograms::new(&rig, "myeditor", "pwd > \"$1\"");
    let mut terminal = Terminal::start_with(
        &rig,
        &["--add-dir", &programs.added()],
        (110, 30),
        &[("PATH", &programs.path), ("EDITOR", "myeditor")],
    );
    terminal.until_text("> ");
    terminal.press("typed\u{7}");
    terminal.until("what the editor wrote, and not what was typed", |screen| {
        let shown = screen.contents();
        shown.lines().any(|line| line.trim_end() == "> /")
    });
    assert!(!programs.mark().exists());
    let edited = rig
        .command(&["config", "edit"])
        .env(
            "PATH",
            programs.path.replacen(&programs.added(), "/nowhere", 1),
        )
        .env("EDITOR", "myeditor")
        .output()
        .unwrap();
    // The text is a path now, which is no configuration.
    assert_eq!(edited.status.code(), Some(2), "{edited:?}");
    assert!(!programs.mark().exists());
}

#[test]
fn clipboard_program_is_not_looked_up_in_folders_that_the_model_can_write() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let picture = rig.home().join("picture");
    fs::write(
        &picture,
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x30\x08\x06\0\0\0",
    )
    .unwrap();
    let programs = PlantedPrograms::new(&rig, "wl-paste", &format!("cat '{}'", picture.display()));
    let mut terminal = Terminal::start_with(
        &rig,
        &["--add-dir", &programs.added()],
        (110, 30),
        &[("PATH", &programs.path)],
    );
    terminal.until_text("> ");
    terminal.press("\u{16}");
    terminal.until_text("> [image clipboard-1.png 64×48]");
    assert!(!programs.mark().exists());
}

#[test]
fn browser_is_not_looked_up_in_folders_that_the_model_can_write() {
    let name = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let opened = rig.home().join("opened");
    let programs = PlantedPrograms::new(&rig, name, &format!("touch '{}'", opened.display()));
    // `serve` has no `--add-dir`.
    fs::remove_dir_all(programs.writable[0].path().join("bin")).unwrap();
    let mut child = rig
        .command(&["serve", "--open"])
        .env("PATH", &programs.path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let since = Instant::now();
    while !opened.exists() && !programs.mark().exists() && since.elapsed() < WAIT_TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(opened.exists());
    assert!(!programs.mark().exists());
}

/// haft in a folder that commands can write. Neither a replaced program nor a replaced parent
/// folder may run as haft's helper.
#[test]
#[cfg(target_os = "linux")]
fn haft_in_the_project_is_not_replaced_by_commands() {
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    let plant = format!(
        "printf '#!/bin/sh\\ntouch \"{}\"\\n' > new; chmod +x new;",
        mark.display()
    );
    let lines = [
        format!("{plant} mv new node_modules/.bin/haft; echo $?"),
        format!("{plant} cp new node_modules/.bin/haft; echo $?"),
        "mv node_modules gone; mkdir -p node_modules/.bin; cp new node_modules/.bin/haft; echo $?"
            .to_owned(),
        "echo still confined".to_owned(),
    ];
    let replies = lines
        .iter()
        .map(|line| {
            Reply::call(
                "execute_command",
                json!({"command": line, "requires_approval": false}),
            )
        })
        .chain([Reply::text("Done.")]);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let program = rig.project().join("node_modules/.bin/haft");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(haft(), &program).unwrap();
    let plain = rig.command(&[]);
    let mut command = std::process::Command::new(&program);
    command
        .args(["run", "--permission-mode", "auto", "go"])
        .current_dir(rig.project())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(!mark.exists());
    assert_eq!(
        fs::read(&program).unwrap().len(),
        fs::metadata(haft()).unwrap().len() as usize
    );
    let last = rig.server.generation_requests().pop().unwrap();
    assert!(format!("{last:?}").contains("still confined"));
}

/// A hook that runs outside the sandbox finds its programs outside the project, in every mode.
#[test]
fn unconfined_hook_is_not_looked_up_in_folders_that_the_model_can_write() {
    for (mode, sandbox) in [("auto", "sandbox = false"), ("yolo", "timeout = 60")] {
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::replies([Reply::text("Done.")]).unwrap(),
        );
        let noted = rig.home().join("noted");
        let programs =
            PlantedPrograms::new(&rig, "myhook", &format!("touch '{}'", noted.display()));
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!(
            "{config}[[hooks.Stop]]\nhooks = [{{ command = \"myhook\", {sandbox} }}]\n"
        ));
        let added = programs.added();
        let ran = rig
            .command(&["run", "--permission-mode", mode, "--add-dir", &added, "go"])
            .env("PATH", &programs.path)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
        assert!(noted.exists(), "{mode}: {ran:?}");
        assert!(!programs.mark().exists(), "{mode}");
    }
}

/// A link in a clean folder of `PATH` to a program of the project.
#[test]
fn key_command_runs_no_link_to_a_program_that_the_model_can_write() {
    for line in ["mykey", "env mykey", "mykey || true", "PLANTED"] {
        let outside = TempDir::new().unwrap();
        let mark = outside.path().join("planted");
        let rig = rig_with_key_source("api_key_env = \"UNUSED\"");
        let planted = rig.project().join("tools/mykey");
        make_program(&planted, &format!("touch '{}'; echo key", mark.display()));
        fs::create_dir_all(outside.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(&planted, outside.path().join("bin/mykey")).unwrap();
        let line = line.replace("PLANTED", &planted.display().to_string());
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        let command = format!("api_key_command = \"{line}\"");
        rig.configure(&config.replace("api_key_env = \"UNUSED\"", &command));
        let path = format!("{}:/usr/bin:/bin", outside.path().join("bin").display());
        let ran = rig.command(&["run", "hello"]).env("PATH", path).output();
        let ran = ran.unwrap();
        assert!(!ran.status.success(), "{line}: {ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(
            said.contains("is a program that the model can write"),
            "{line}: {said}"
        );
        assert!(!mark.exists(), "{line}");
    }
}

#[test]
fn proxy_starts_no_agent_that_the_model_can_write() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Unused.")]).unwrap(),
    );
    let opened = rig.home().join("opened");
    let programs = PlantedPrograms::new(&rig, "myagent", &format!("touch '{}'", opened.display()));
    let path = programs.path.replacen(&programs.added(), "/nowhere", 1);
    let ran = rig
        .command(&["proxy", "--", "myagent"])
        .env("PATH", path)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(opened.exists() && !programs.mark().exists());
}

/// Runs haft as `program`, and returns the codes of the notices at the start.
#[cfg(target_os = "linux")]
fn run_as(rig: &Rig, program: &Path, sandbox: &str) -> String {
    let plain = rig.command(&[]);
    let mut command = std::process::Command::new(program);
    command
        .args(["run", "--output-format", "stream-json", "--set"])
        .args([&format!("sandbox.mode=\"{sandbox}\""), "hello"])
        .current_dir(rig.project())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn haft_in_the_project_warns_where_it_cannot_be_sealed() {
    let replies = std::iter::repeat_n(Reply::text("Done."), 6);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let status = rig.run(&["sandbox", "status", "--json"]).json();
    let outside = TempDir::new().unwrap();
    let installed = outside.path().join("haft");
    fs::copy(haft(), &installed).unwrap();
    let copied = rig.project().join("node_modules/.bin/haft");
    let linked = rig.project().join("bin/haft");
    for path in [&copied, &linked] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
    }
    fs::copy(haft(), &copied).unwrap();
    std::os::unix::fs::symlink(&installed, &linked).unwrap();
    let warns =
        |program: &Path, sandbox: &str| run_as(&rig, program, sandbox).contains("own_program");
    assert!(warns(&copied, "off"));
    assert!(!warns(&installed, "off"));
    assert!(warns(&linked, "off"));
    assert!(warns(&linked, "auto"), "no sandbox can seal a link");
    if status["layer"] == "namespace" {
        assert!(!warns(&copied, "auto"));
    }
}
