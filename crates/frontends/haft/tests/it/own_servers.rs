//! MCP servers of the user in a trusted project run no code that the model wrote.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_testkit::support::SHELL_MCP_SERVER;
use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Ran, Rig};

/// A trusted project whose user has the server `s` with this entry, and whose model writes
/// `planted` and then calls the server.
fn rig_with_server(entry: &str, planted: &[(&str, &str)]) -> Rig {
    let writes = planted
        .iter()
        .map(|(path, content)| {
            Reply::call("write_to_file", json!({"path": path, "content": content}))
        })
        .collect::<Vec<_>>();
    let arguments = json!({"server_name": "s", "tool_name": "show", "arguments": {}});
    let replies = writes
        .into_iter()
        .chain([Reply::call("use_mcp_tool", arguments), Reply::text("Done.")]);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[permissions]\nallow = [\"mcp__s\"]\n[mcp_servers.s]\n{entry}"
    ));
    rig
}

fn run_with_path(rig: &Rig, folders: &[&Path]) -> Ran {
    run_with_path_and(rig, folders, &[])
}

/// Like [`run_with_path`], with further arguments.
fn run_with_path_and(rig: &Rig, folders: &[&Path], further: &[&str]) -> Ran {
    let path: Vec<_> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "accept-edits",
        "use the server",
    ];
    let mut command = rig.command(&[&arguments, further].concat());
    command.env(
        "PATH",
        format!("{}:/usr/local/bin:/usr/bin:/bin", path.join(":")),
    );
    Ran(command.output().unwrap())
}

fn last_result(ran: &Ran) -> Value {
    let mut events = ran.events().into_iter().rev();
    events
        .find(|event| event["type"] == "tool_result")
        .unwrap_or_else(|| panic!("{} {}", ran.stdout(), ran.stderr()))
}

fn make_program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns the folder that only the server `s` writes.
fn private_folder(rig: &Rig) -> PathBuf {
    rig.home().canonicalize().unwrap().join("cache/mcp/s")
}

#[test]
fn own_server_is_not_looked_up_in_the_project() {
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    let rig = rig_with_server("command = \"mytool\"\n", &[]);
    let venv = rig.project().join(".venv/bin");
    make_program(
        &venv.join("mytool"),
        &format!("touch '{}'\n{SHELL_MCP_SERVER}", mark.display()),
    );
    let ran = run_with_path(&rig, &[&venv]);
    let refused = last_result(&ran);
    assert_eq!(refused["status"], "error", "{refused}");
    assert!(
        refused["text"]
            .to_string()
            .contains("no program `mytool` in `PATH` outside the project"),
        "{refused}"
    );
    assert!(!mark.exists());

    let rig = rig_with_server("command = \"mytool\"\n", &[]);
    let venv = rig.project().join(".venv/bin");
    make_program(
        &venv.join("mytool"),
        &format!("touch '{}'\n{SHELL_MCP_SERVER}", mark.display()),
    );
    make_program(&outside.path().join("bin/mytool"), SHELL_MCP_SERVER);
    let ran = run_with_path(&rig, &[&venv, &outside.path().join("bin")]);
    assert_eq!(last_result(&ran)["status"], "success", "{}", ran.stdout());
    assert!(!mark.exists());
}

#[test]
fn own_server_does_not_start_in_the_project() {
    let outside = TempDir::new().unwrap();
    let at = |name: &str| outside.path().join(name).display().to_string();
    fs::write(at("server.sh"), SHELL_MCP_SERVER).unwrap();
    let script = format!(
        "ls -A | grep -q npmrc && touch planted; pwd > cwd; exec sh '{}'",
        at("server.sh")
    );
    let entry = format!("command = \"sh\"\nargs = [\"-c\", \"{script}\"]\n");
    let rig = rig_with_server(&entry, &[("notes.txt", "x\n")]);
    rig.write(".npmrc", "script-shell=./evil.sh\n");
    let ran = run_with_path(&rig, &[]);
    assert_eq!(
        last_result(&ran)["status"],
        "success",
        "{} {}",
        ran.stdout(),
        ran.stderr()
    );
    let private = private_folder(&rig);
    assert!(!private.join("planted").exists());
    let cwd = fs::read_to_string(private.join("cwd")).unwrap();
    assert_eq!(Path::new(cwd.trim()), private);
    let mode = fs::metadata(cwd.trim()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn own_python_module_imports_nothing_that_the_model_wrote() {
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: there is no python3");
        return;
    }
    let outside = TempDir::new().unwrap();
    let at = |name: &str| outside.path().join(name).display().to_string();
    fs::write(at("server.sh"), SHELL_MCP_SERVER).unwrap();
    fs::write(
        at("weather.py"),
        format!(
            "import ast, os\nos.execv('/bin/sh', ['sh', '{}'])\n",
            at("server.sh")
        ),
    )
    .unwrap();
    let entry = format!(
        "command = \"python3\"\nargs = [\"-m\", \"weather\"]\nenv = {{ PYTHONPATH = \"{}\" }}\n",
        at("")
    );
    let rig = rig_with_server(&entry, &[("ast.py", "open('planted', 'w')\n")]);
    let ran = run_with_path(&rig, &[]);
    assert_eq!(
        last_result(&ran)["status"],
        "success",
        "{} {}",
        ran.stdout(),
        ran.stderr()
    );
    assert!(rig.project().join("ast.py").exists());
    assert!(!private_folder(&rig).join("planted").exists());
}

/// Makes further folders writable for the model in rig's configuration.
fn allow_writing(rig: &Rig, folder: &Path) {
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[sandbox]\nwritable = [\"{}\"]\n",
        folder.display()
    ));
}

#[test]
fn own_server_is_not_looked_up_in_folders_that_the_model_can_write() {
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    for is_configured in [false, true] {
        let writable = TempDir::new().unwrap();
        let folder = writable.path().display().to_string();
        make_program(
            &writable.path().join("bin/mytool"),
            &format!("touch '{}'\n{SHELL_MCP_SERVER}", mark.display()),
        );
        let rig = rig_with_server("command = \"mytool\"\n", &[]);
        let mut further = vec!["--add-dir", &folder];
        if is_configured {
            allow_writing(&rig, writable.path());
            further.clear();
        }
        let ran = run_with_path_and(&rig, &[&writable.path().join("bin")], &further);
        let refused = last_result(&ran);
        assert!(
            refused["text"].to_string().contains("no program `mytool`"),
            "{refused}"
        );
        assert!(!mark.exists());
    }
}

#[test]
fn own_server_file_in_a_folder_that_the_model_can_write_is_confined() {
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    for is_configured in [false, true] {
        let writable = TempDir::new().unwrap();
        let folder = writable.path().display().to_string();
        let server = writable.path().join("server.sh");
        fs::write(
            &server,
            format!("touch '{}'\n{SHELL_MCP_SERVER}", mark.display()),
        )
        .unwrap();
        let entry = format!("command = \"sh\"\nargs = [\"{}\"]\n", server.display());
        let rig = rig_with_server(&entry, &[]);
        let mut further = vec!["--add-dir", &folder];
        if is_configured {
            allow_writing(&rig, writable.path());
            further.clear();
        }
        let ran = run_with_path_and(&rig, &[], &further);
        let result = last_result(&ran);
        assert_eq!(result["status"], "success", "{result} {}", ran.stderr());
        assert!(!mark.exists());
    }
}

/// A server that leaves a mark if it runs outside the sandbox, in a folder that the model can
/// write.
fn marking_server(mark: &Path) -> String {
    format!("touch '{}'\n{SHELL_MCP_SERVER}", mark.display())
}

/// The server's entry names a folder and not the file in it that runs.
#[test]
fn own_server_with_code_in_a_folder_that_the_model_can_write_is_confined() {
    let outside = TempDir::new().unwrap();
    let mark = outside.path().join("planted");
    // Stands for a runner that starts the project's own program.
    let runner = "while [ $# -gt 1 ]; do shift; done; exec sh \"$1/start\"";
    make_program(&outside.path().join("uv"), runner);
    make_program(&outside.path().join("node"), runner);
    make_program(
        &outside.path().join("by-variable"),
        "exec sh \"${VIRTUAL_ENV:-$PYTHONPATH}/start\"",
    );
    for entry in [
        "command = \"uv\"\nargs = [\"run\", \"--project\", \"FOLDER\"]\n",
        "command = \"node\"\nargs = [\"FOLDER\"]\n",
        "command = \"by-variable\"\nenv = { PYTHONPATH = \"FOLDER\" }\n",
        "command = \"by-variable\"\nenv = { VIRTUAL_ENV = \"FOLDER\" }\n",
    ] {
        for is_in_project in [true, false] {
            let writable = TempDir::new().unwrap();
            let rig = rig_with_server("", &[]);
            let folder = if is_in_project {
                rig.project().join("server")
            } else {
                writable.path().join("server")
            };
            let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
            let entry = entry.replace("FOLDER", &folder.display().to_string());
            rig.configure(&format!("{config}{entry}"));
            allow_writing(&rig, writable.path());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("start"), marking_server(&mark)).unwrap();
            let ran = run_with_path(&rig, &[outside.path()]);
            let result = last_result(&ran);
            assert_eq!(result["status"], "success", "{entry}: {result}");
            assert!(!mark.exists(), "{entry}");
            assert!(
                ran.stdout()
                    .contains("it runs files that the model can write"),
                "{entry}: {}",
                ran.stdout()
            );
        }
    }
}

#[test]
fn own_server_inherits_no_variable_that_names_a_writable_folder() {
    let outside = TempDir::new().unwrap();
    make_program(
        &outside.path().join("mytool"),
        &format!("env > environment\n{SHELL_MCP_SERVER}"),
    );
    let writable = TempDir::new().unwrap();
    let rig = rig_with_server("command = \"mytool\"\n", &[]);
    allow_writing(&rig, writable.path());
    let project = rig.project().display().to_string();
    let path = format!(
        "{project}/bin:bin:{}:/usr/bin:/bin",
        outside.path().display()
    );
    let arguments = ["run", "--permission-mode", "accept-edits", "use the server"];
    let mut command = rig.command(&arguments);
    command
        .env("PATH", path)
        .env("PYTHONPATH", "/opt/python")
        .env("NODE_PATH", "lib/node")
        .env("VIRTUAL_ENV", rig.project().join(".venv"))
        .env("JAVA_HOME", writable.path().join("jdk"))
        .env("XDG_CONFIG_HOME", rig.project().join("config"))
        .env("GOPATH", "/opt/go");
    assert!(command.output().unwrap().status.success());
    let noted = fs::read_to_string(private_folder(&rig).join("environment")).unwrap();
    let value = |name: &str| {
        let mut lines = noted.lines().filter_map(|line| line.split_once('='));
        lines
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value)
    };
    assert_eq!(value("GOPATH"), Some("/opt/go"), "{noted}");
    for name in [
        "PYTHONPATH",
        "NODE_PATH",
        "VIRTUAL_ENV",
        "JAVA_HOME",
        "XDG_CONFIG_HOME",
    ] {
        assert_eq!(value(name), None, "{name}: {noted}");
    }
    let searched = value("PATH").unwrap();
    assert!(
        searched.split(':').all(|folder| folder.starts_with('/')) && !searched.contains(&project),
        "{searched}"
    );
    let private = private_folder(&rig).display().to_string();
    for name in ["npm_config_cache", "UV_CACHE_DIR", "PIP_CACHE_DIR"] {
        assert!(
            value(name).unwrap().starts_with(&private),
            "{name}: {noted}"
        );
    }
}

/// The abilities of a server that tries everything: the network, and writing outside, in the
/// project, and in `extra`.
struct Abilities {
    found: String,
    said: String,
    _folders: [TempDir; 2],
}

/// Runs the server `s` with further keys in its entry; `EXTRA` in them stands for a folder.
#[expect(clippy::print_stderr, reason = "a skip is told")]
fn try_abilities(keys: &str, mode: &str) -> Option<Abilities> {
    let [outside, extra] = [(); 2].map(|()| TempDir::new().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let rig = rig_with_server("", &[]);
    if rig.run(&["sandbox", "status", "--json"]).json()["layer"] != "namespace" {
        eprintln!("skipped: there is no namespace sandbox");
        return None;
    }
    rig.write("data.txt", "x\n");
    let program = outside.path().join("bin/mytool");
    make_program(
        &program,
        &format!(
            "touch '{outside}/mark' && echo outside >> \"$REPORT\"\n\
             touch '{project}/mark' && echo project >> \"$REPORT\"\n\
             touch '{extra}/mark' && echo extra >> \"$REPORT\"\n\
             cat '{project}/data.txt' && echo reads >> \"$REPORT\"\n\
             bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo network >> \"$REPORT\"\n\
             echo ended >> \"$REPORT\"\n{SHELL_MCP_SERVER}",
            outside = outside.path().display(),
            project = rig.project().display(),
            extra = extra.path().display(),
        )
        .replace("&& echo", ">/dev/null 2>&1 && echo"),
    );
    let report = private_folder(&rig).join("report");
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let keys = keys.replace("EXTRA", &extra.path().display().to_string());
    rig.configure(&format!(
        "{config}command = \"mytool\"\nenv = {{ REPORT = \"{}\" }}\n{keys}",
        report.display()
    ));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let arguments = ["run", "--permission-mode", mode, "use the server"];
    let mut said = String::new();
    for _ in 0..2 {
        let ran = rig.command(&arguments).env("PATH", &path).output().unwrap();
        said += &String::from_utf8_lossy(&ran.stderr);
    }
    let found = fs::read_to_string(report).unwrap_or_default();
    let found = found.split("ended\n").next().unwrap_or_default();
    Some(Abilities {
        found: found.split_whitespace().collect::<Vec<_>>().join(" "),
        said,
        _folders: [outside, extra],
    })
}

#[test]
fn own_server_has_only_the_abilities_of_its_entry() {
    for (keys, mode, abilities) in [
        ("", "accept-edits", "reads network"),
        ("", "auto", "reads network"),
        ("network = false\n", "auto", "reads"),
        ("network = [\"example.com\"]\n", "auto", "reads"),
        ("writable = [\"EXTRA\"]\n", "auto", "extra reads network"),
        (
            "writable = [\"project\"]\n",
            "auto",
            "project reads network",
        ),
        ("cwd = \"project\"\n", "auto", "reads"),
        (
            "cwd = \"project\"\nnetwork = true\n",
            "auto",
            "reads network",
        ),
        ("sandbox = true\n", "yolo", "reads"),
        (
            "sandbox = false\n",
            "auto",
            "outside project extra reads network",
        ),
        ("", "yolo", "outside project extra reads network"),
    ] {
        let Some(found) = try_abilities(keys, mode) else {
            return;
        };
        assert_eq!(found.found, abilities, "{keys} {mode}: {}", found.said);
    }
}

#[test]
fn own_server_is_announced_once_as_confined() {
    let Some(Abilities { said, .. }) = try_abilities("", "auto") else {
        return;
    };
    let notices = said.matches("MCP server `s` runs in a sandbox now").count();
    assert_eq!(notices, 1, "{said}");
}
