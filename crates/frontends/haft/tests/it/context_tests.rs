//! `haft context test`: files of checks that pass, that fail, and that are invalid.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

/// An untrusted project with a rule for Rust files and this file of checks.
fn rig(checks: &str) -> Rig {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies(vec![Reply::text("Nobody asks.")]).unwrap(),
    );
    for folder in [".haft/rules", ".haft/context-tests", "src"] {
        std::fs::create_dir_all(rig.project().join(folder)).unwrap();
    }
    rig.write(
        ".haft/rules/rust.md",
        "---\nglobs: [\"**/*.rs\"]\n---\nNo unwrap.\n",
    );
    rig.write(
        ".haft/rules/always.md",
        "---\nalwaysApply: true\n---\nShort sentences.\n",
    );
    rig.write("src/a.rs", "fn main() {}\n");
    rig.write(".haft/context-tests/checks.toml", checks);
    rig
}

#[test]
fn rule_checks_pass_for_sent_and_unsent_rules() {
    let rig = rig(
        "[[rule]]\ntouched = \"src/a.rs\"\nsends = \".haft/rules/rust.md\"\n\
         [[rule]]\ntouched = \"Makefile\"\nsends = \".haft/rules/always.md\"\nnot_sends = \".haft/rules/rust.md\"\n",
    );
    let ran = rig.run(&["context", "test"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert_eq!(
        ran.stdout(),
        "ok   checks.toml: src/a.rs sends .haft/rules/rust.md: it is sent\n\
         ok   checks.toml: Makefile sends .haft/rules/always.md: it is sent\n\
         ok   checks.toml: Makefile does not send .haft/rules/rust.md: it is not sent\n"
    );
    assert!(
        rig.server.generation_requests().is_empty(),
        "no model is asked"
    );
}

#[test]
fn failed_checks_report_what_was_found() {
    let rig = rig(
        "[[rule]]\ntouched = \"README.md\"\nsends = \".haft/rules/rust.md\"\n\
         [[rule]]\ntouched = \"src/a.rs\"\nsends = \".haft/rules/none.md\"\nnot_sends = \".haft/rules/rust.md\"\n\
         [prefix]\nmax_tokens = 10\nprotocol = \"xml\"\n",
    );
    let ran = rig.run(&["context", "test", "--json"]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    let told = ran.json();
    assert_eq!(told["failed"], json!(4), "{told}");
    let found: Vec<_> = told["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["found"].as_str().unwrap())
        .collect();
    assert_eq!(
        found[..3],
        ["it is not sent", "there is no such file", "it is sent"]
    );
    assert!(
        found[3].contains(" 0 tools, "),
        "with xml the system text tells of them: {}",
        found[3]
    );
}

#[test]
fn prefix_check_counts_project_documents() {
    let rig = rig("[prefix]\nmax_tokens = 100000\n");
    let before = rig.run(&["context", "test", "--json"]).json();
    rig.write("AGENTS.md", "word ".repeat(2_000));
    let after = rig.run(&["context", "test", "--json"]);
    assert_eq!((after.code(), &before["failed"]), (0, &json!(0)));
    assert_ne!(
        after.json()["checks"][0]["found"],
        before["checks"][0]["found"],
        "documents count"
    );
}

#[cfg(feature = "lab")]
#[test]
fn replay_check_counts_prefix_breaks() {
    let conversation = json!({"messages": [
        {"role": "user", "content": "What is in a.rs?"},
        {"role": "assistant", "content": "A main function."},
        {"role": "user", "content": "And in b.rs?"},
        {"role": "assistant", "content": "Nothing."},
    ]});
    let rig = rig("[[replay]]\nconversation = \"talk.json\"\n\
         [[replay]]\nconversation = \"talk.json\"\nbreaks = 3\ncauses = [\"pruning\"]\n");
    rig.write("talk.json", conversation.to_string());
    let ran = rig.run(&["context", "test"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert!(
        ran.stdout().starts_with(
            "ok   checks.toml: talk.json breaks the prefix at most 0 times: no break\n"
        )
    );
    // The execute view is rewritten for every request.
    let ran = rig.run(&["context", "test", "--set", "context.view=execute"]);
    assert_eq!(ran.code(), 1, "{}", ran.stdout());
    assert_eq!(ran.stdout().matches("FAIL").count(), 2, "{}", ran.stdout());
}

#[test]
fn invalid_files_are_named_with_a_suggestion() {
    let cases = [
        (
            "[[rule]]\ntouchd = \"a\"\nsends = \"b\"\n",
            "checks.toml:2:1: unknown key `touchd`; did you mean `touched`?",
        ),
        (
            "# nothing yet\n",
            "checks.toml` states nothing: it needs a `[[rule]]`, a `[prefix]`, a `[[replay]]` or a `[[run]]`",
        ),
        ("[prefix]\nmax_token = 1\n", "did you mean `max_tokens`?"),
        ("[prefx]\nmax_tokens = 1\n", "did you mean `prefix`?"),
        ("[prefix]\nmax_tokens = 1\nprotocol = \"soap\"\n", "soap"),
        (
            "[[rule]]\ntouched = \"a\"\n",
            "neither `sends` nor `not_sends`",
        ),
        ("[[replay]]\nconversation = \"none.json\"\n", "none.json"),
    ];
    for (checks, expected) in cases {
        let ran = rig(checks).run(&["context", "test"]);
        assert_eq!(ran.code(), 2, "{checks}: {}", ran.stdout());
        assert!(
            ran.stderr().contains(expected),
            "{checks}: {}",
            ran.stderr()
        );
    }
    let rig = rig("");
    std::fs::remove_file(rig.project().join(".haft/context-tests/checks.toml")).unwrap();
    assert_eq!(
        rig.run(&["context", "test"]).code(),
        2,
        "a project without tests has not passed them"
    );
}
