//! The commands around a run.

use std::process::Stdio;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

fn rig() -> Rig {
    Rig::new(Api::OpenaiChat, Script::replies([Reply::text("Hello.")]).unwrap())
}

#[test]
fn the_demo_fixes_a_real_bug_on_every_protocol() {
    for api in Api::ALL {
        let ran = rig().run(&["demo", "--api", api.name()]);
        let out = ran.stdout();
        assert_eq!(ran.code(), 0, "{api}: {out}{}", ran.stderr());
        let (before, after) = out.split_once("The test now says").unwrap();
        assert!(before.contains("FAIL greet.sh Ada Lovelace"), "{out}");
        assert!(!after.contains("FAIL") && after.contains("ok   greet.sh Ada Lovelace"), "{out}");
        for layer in ["system", "history", "current"] {
            assert!(after.contains(layer), "the budget table has a row for {layer}: {out}");
        }
    }
}

#[test]
fn the_demo_leaves_the_users_home_alone() {
    let rig = rig();
    std::fs::remove_file(rig.home().join("config.toml")).unwrap();
    assert_eq!(rig.run(&["demo"]).code(), 0);
    assert_eq!(std::fs::read_dir(rig.home()).unwrap().count(), 0);
}

#[test]
fn conversations_are_listed_shown_and_exported() {
    let rig = rig();
    rig.task(&["say hello\nplease"]);
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&listed[0]["name"], &listed[0]["messages"]), (&json!("say hello"), &json!(2)));
    assert_eq!(listed[0]["namespace"], json!(rig.project().display().to_string()));
    let table = rig.run(&["conversations", "list"]).stdout();
    assert!(table.starts_with("ID") && table.contains("say hello"), "{table}");
    let shown = rig.run(&["conversations", "show"]).stdout();
    assert!(shown.contains("    say hello\n    please\n") && shown.contains("    Hello.\n"), "{shown}");
    let export = rig.export();
    let keys: Vec<_> = export.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name", "description", "created_at", "updated_at", "metadata", "messages"]);
    assert_eq!(export["messages"][1]["content"], "Hello.");
}

#[test]
fn models_and_configuration_are_shown() {
    let rig = rig();
    let models = rig.run(&["models", "list", "--json"]).json();
    assert_eq!((&models[0]["main"], &models[0]["context_window"]), (&json!(true), &json!(200_000)));
    assert!(rig.run(&["models"]).stdout().contains("(main)"));
    let shown = rig.run(&["config", "show", "--origin", "--set", "retry.attempts=7"]).stdout();
    let line = |key: &str| {
        shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}: {shown}")).to_owned()
    };
    assert!(line("retry.attempts = 7").ends_with("# flag --set"));
    assert!(line("retry.max_delay_ms").ends_with("# built-in"));
    assert!(line("model = ").ends_with("config.toml"));
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = rig().run(&["completions", shell]).stdout();
        assert!(script.contains("conversations"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = rig().command(&["completions", "bash"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn files_of_the_user_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let rig = rig();
    rig.task(&["hi"]);
    let mode = |path: &str| std::fs::metadata(rig.home().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/conversations.db")), (0o700, 0o600));
}
