//! Rules, tools, skills and instructions of a project change while the model works: the next
//! request contains the changes, with one named prefix break.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn run_command(command: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": command, "requires_approval": false}),
    )
}

fn prefix_breaks(events: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = events
        .iter()
        .filter(|event| event["type"] == "prefix_break");
    found
        .map(|event| (text(&event["cause"]), text(&event["message"])))
        .collect()
}

fn request_body(rig: &Rig, request: usize) -> String {
    String::from_utf8_lossy(&rig.server.requests()[request].body).into_owned()
}

fn skill_text(name: &str, about: &str) -> String {
    format!("---\nname: {name}\ndescription: {about}\n---\nDo it.\n")
}

#[test]
fn changed_files_cause_one_prefix_break() {
    let change = "for n in 1 2 3 4; do printf -- '---\\nalwaysApply: true\\n---\\nNew rule %s.\\n' $n > .haft/rules/r$n.md; done
        for n in 1 2 3; do printf '// usage: new tool %s\\n' $n > .haft/tools/t$n.rs; done
        sed -i 's/About the first/About another/' .haft/skills/one/SKILL.md
        mkdir .haft/skills/two && printf -- '---\\nname: two\\ndescription: About the second.\\n---\\nDo.\\n' > .haft/skills/two/SKILL.md
        echo 'Prefer spaces.' > AGENTS.md";
    let remove = "rm -r .haft/skills .haft/tools/t1.rs .haft/rules/r1.md";
    let replies = [
        run_command("true"),
        run_command(change),
        run_command("true"),
        run_command(remove),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    for folder in [".haft/rules", ".haft/tools", ".haft/skills/one"] {
        std::fs::create_dir_all(rig.project().join(folder)).unwrap();
    }
    rig.write("AGENTS.md", "Prefer tabs.\n");
    rig.write(
        ".haft/skills/one/SKILL.md",
        skill_text("one", "About the first."),
    );
    rig.run(&["trust"]);
    // Moving reminders would add prefix breaks of their own.
    let ran = rig.task(&["--set", "context.reminders=\"front\"", "go"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let found = prefix_breaks(&ran.events());
    let causes: Vec<_> = found.iter().map(|(cause, _)| cause.as_str()).collect();
    assert_eq!(
        causes,
        ["system_changed", "tools_changed"],
        "one for ten changed files, one for what was removed"
    );
    assert!(
        request_body(&rig, 1).contains("About the first.")
            && request_body(&rig, 1).contains("Prefer tabs.")
    );
    for request in [2, 3] {
        let sent = request_body(&rig, request);
        for there in [
            "New rule 1.",
            "New rule 4.",
            "usage: new tool 3",
            "About another.",
            "`two`: About the second.",
            "Prefer spaces.",
        ] {
            assert!(sent.contains(there), "{request}: no {there:?} in {sent}");
        }
        assert!(
            !sent.contains("About the first.") && !sent.contains("Prefer tabs."),
            "{request}"
        );
    }
    let last = request_body(&rig, 4);
    assert!(
        !last.contains("use_skill") && !last.contains("About another."),
        "{last}"
    );
    assert!(
        !last.contains("New rule 1.") && !last.contains("usage: new tool 1"),
        "{last}"
    );
    assert!(
        last.contains("New rule 2.") && last.contains("usage: new tool 2"),
        "{last}"
    );
}

#[test]
fn use_skill_appears_with_the_first_skill_unless_not_allowed() {
    let add = "mkdir -p .haft/skills/one && printf -- '---\\nname: one\\ndescription: Late.\\n---\\nDo.\\n' > .haft/skills/one/SKILL.md";
    let replies = || {
        let used = Reply::call("use_skill", json!({"name": "one"}));
        Script::replies([run_command(add), used, Reply::text("Done.")]).unwrap()
    };
    let rig = Rig::new(Api::OpenaiChat, replies());
    let events = rig.task(&["go"]).events();
    assert_eq!(prefix_breaks(&events)[0].0, "tools_changed");
    assert!(
        !request_body(&rig, 0).contains("use_skill")
            && request_body(&rig, 1).contains("`one`: Late.")
    );
    let results: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    assert_eq!(
        (&results[1]["status"], &results[1]["text"]),
        (&json!("success"), &json!("Do."))
    );

    let rig = Rig::new(Api::OpenaiChat, replies());
    let events = rig
        .task(&["--allowed-tools", "execute_command", "go"])
        .events();
    assert_eq!(
        prefix_breaks(&events),
        [],
        "who chose one tool is not offered another"
    );
}
