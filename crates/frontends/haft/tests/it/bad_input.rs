//! Each mistake produces one clear error line, its exit code, and no panic.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use haft_testkit::{Garbage, Reply, Script};
use haft_types::Api;

use crate::rig::{MODEL, Ran, Rig};

fn rig() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    )
}

fn config(provider: &str) -> String {
    format!("model = \"mock/{MODEL}\"\n[providers.mock]\napi = \"openai-chat\"\n{provider}\n")
}

/// Asserts that standard error is one line that contains all words.
#[track_caller]
fn assert_one_error_line(ran: &Ran, code: i32, words: &[&str]) {
    let stderr = ran.stderr();
    assert_eq!(ran.code(), code, "{stderr}");
    let lines: Vec<_> = stderr
        .lines()
        .filter(|line| !line.starts_with("retry "))
        .collect();
    assert_eq!(lines.len(), 1, "one line: {stderr}");
    assert!(lines[0].starts_with("haft: "), "{stderr}");
    for word in words {
        assert!(lines[0].contains(word), "`{word}` is missing: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn run_names_the_variable_of_a_missing_key() {
    let rig = rig();
    rig.configure(&config(
        "base_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"MOCK_API_KEY\"",
    ));
    assert_one_error_line(
        &rig.run(&["run", "hi"]),
        2,
        &["MOCK_API_KEY", "`mock`", "not set"],
    );
}

#[test]
fn run_names_an_unreachable_base_url() {
    let rig = rig();
    rig.configure(&config("base_url = \"http://127.0.0.1:9/v1\""));
    assert_one_error_line(&rig.run(&["run", "hi"]), 2, &["127.0.0.1:9", "base_url"]);
}

#[test]
fn run_names_a_base_url_that_returns_html() {
    let page = Garbage {
        body: b"<html><body>It works!</body></html>".to_vec(),
        content_type: "text/html".into(),
    };
    let html = Reply {
        garbage: Some(page),
        times: Some(10),
        ..Reply::default()
    };
    let rig = Rig::new(Api::OpenaiChat, Script::replies([html]).unwrap());
    let ran = rig.run(&["run", "hi"]);
    assert_one_error_line(&ran, 2, &["text/html", "base_url"]);
    assert!(rig.server.requests().len() <= 3, "at most three tries");
}

#[test]
fn run_rejects_unknown_models() {
    assert_one_error_line(
        &rig().run(&["run", "-m", "mokc/x", "hi"]),
        2,
        &["mokc", "mistral, mock, ollama"],
    );
    assert_one_error_line(
        &rig().run(&["run", "-m", "gpt", "hi"]),
        2,
        &["provider/model"],
    );
}

#[test]
fn run_without_a_model_names_flag_and_file() {
    let rig = rig();
    rig.configure("");
    assert_one_error_line(
        &rig.run(&["run", "hi"]),
        2,
        &["-m provider/model", "config.toml"],
    );
}

#[test]
fn config_errors_have_line_and_column() {
    let rig = rig();
    rig.configure("model = \"a/b\"\n[providers.mock\n");
    assert_one_error_line(&rig.run(&["run", "hi"]), 2, &["config.toml:2:"]);
}

#[test]
fn config_suggests_a_name_for_unknown_keys() {
    let rig = rig();
    rig.configure("[retry]\natempts = 3\n");
    assert_one_error_line(
        &rig.run(&["run", "hi"]),
        2,
        &["config.toml:2:1", "`atempts`", "did you mean `attempts`?"],
    );
}

#[test]
fn cwd_rejects_missing_folders_and_files() {
    let rig = rig();
    assert_one_error_line(
        &rig.run(&["run", "--cwd", "nowhere", "hi"]),
        2,
        &["project folder", "nowhere"],
    );
    rig.write("file", "");
    assert_one_error_line(
        &rig.run(&["run", "--cwd", "file", "hi"]),
        2,
        &["project folder", "file"],
    );
}

#[test]
fn cwd_rejects_unreadable_folders() {
    if !rustix::process::getuid().is_root() {
        println!("skipped: needs root, to run haft as another user");
        return;
    }
    let rig = rig();
    let locked = tempfile::tempdir().unwrap();
    std::fs::set_permissions(locked.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(
        rig.home().join("config.toml"),
        home.path().join("config.toml"),
    )
    .unwrap();
    std::os::unix::fs::chown(home.path(), Some(65534), Some(65534)).unwrap();
    std::os::unix::fs::chown(home.path().join("config.toml"), Some(65534), Some(65534)).unwrap();
    // The build may lie in a folder only root can enter.
    let haft = home.path().join("haft");
    std::fs::copy(crate::rig::haft(), &haft).unwrap();
    let mut command = std::process::Command::new(haft);
    command
        .args(["run", "--cwd"])
        .arg(locked.path())
        .arg("hi")
        .env_clear()
        .env("HAFT_HOME", home.path());
    command
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .uid(65534)
        .gid(65534);
    let ran = Ran(command.output().unwrap());
    assert_one_error_line(&ran, 2, &["project folder", "ermission denied"]);
}

#[test]
fn run_rejects_empty_and_missing_prompts() {
    assert_one_error_line(&rig().run(&["run", " "]), 2, &["prompt is empty"]);
    assert_one_error_line(&rig().run(&["run"]), 2, &["Give a prompt"]);
    assert_one_error_line(
        &rig().run(&["fix it"]),
        2,
        &["needs a terminal", "haft run"],
    );
}

#[test]
fn continue_and_resume_reject_unknown_conversations() {
    assert_one_error_line(
        &rig().run(&["run", "-c"]),
        2,
        &["no conversation to continue"],
    );
    assert_one_error_line(
        &rig().run(&["run", "-r", "deadbeef", "x"]),
        2,
        &["no conversation `deadbeef`"],
    );
    assert_one_error_line(
        &rig().run(&["conversations", "export", "deadbeef"]),
        2,
        &["no conversation `deadbeef`"],
    );
}

#[test]
fn allowed_tools_rejects_unknown_names() {
    assert_one_error_line(
        &rig().run(&["run", "--allowed-tools", "read_file,nope", "hi"]),
        2,
        &["`nope`", "read_file"],
    );
}

#[test]
fn run_does_not_retry_a_refused_key() {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::error(401, "bad key")]).unwrap(),
    );
    assert_one_error_line(&rig.run(&["run", "hi"]), 2, &["401", "bad key"]);
    assert_eq!(rig.server.requests().len(), 1);
}

#[test]
fn run_rejects_a_database_of_another_program() {
    let rig = rig();
    std::fs::create_dir_all(rig.home().join("data")).unwrap();
    std::fs::write(
        rig.home().join("data/conversations.db"),
        "this is no database, but long enough to look like a file".repeat(40),
    )
    .unwrap();
    assert_one_error_line(&rig.run(&["run", "hi"]), 1, &["conversations.db"]);
}
