//! `haft rules`, `haft skills`, `haft commands` and `haft agents` as a user runs them.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

fn rig() -> Rig {
    Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.").times(2)]).unwrap(),
    )
}

fn listed_names(listed: &Value, kind: &str) -> Vec<String> {
    listed[kind]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn rules_add_list_show_and_remove_a_rule() {
    let rig = rig();
    rig.write(
        "new.md",
        "---\ndescription: Style\nalwaysApply: true\n---\nUse tabs.\n",
    );
    let added = rig.run(&["rules", "add", "style", "new.md"]);
    assert_eq!(
        (added.code(), added.stdout().as_str()),
        (0, "Added .haft/rules/style.md\n"),
        "{}",
        added.stderr()
    );
    assert_eq!(
        listed_names(&rig.run(&["rules", "list", "--json"]).json(), "rules"),
        ["style"]
    );
    let listed = rig.run(&["rules", "list"]).stdout();
    assert!(
        listed.contains("style  in every request  project  .haft/rules/style.md"),
        "{listed}"
    );
    assert!(
        rig.run(&["rules", "show", "style"])
            .stdout()
            .ends_with("\n\nUse tabs.\n")
    );
    assert_eq!(rig.task(&["hello"]).code(), 0);
    assert!(String::from_utf8_lossy(&rig.server.requests()[0].body).contains("Use tabs."));
    assert_eq!(
        rig.run(&["rules", "remove", "style"]).stdout(),
        "Removed .haft/rules/style.md\n"
    );
    assert_eq!(
        listed_names(&rig.run(&["rules", "list", "--json"]).json(), "rules"),
        Vec::<String>::new()
    );
}

#[test]
fn commands_add_keeps_the_folder_trusted() {
    let rig = rig();
    rig.write("r.md", "Review $1.\n");
    assert_eq!(rig.run(&["commands", "add", "review", "r.md"]).code(), 0);
    assert_eq!(
        rig.run(&["trust", "--show", "--json"]).json()["standing"],
        "trusted"
    );
    assert_eq!(rig.task(&["/review a.rs"]).code(), 0);
    assert!(String::from_utf8_lossy(&rig.server.requests()[0].body).contains("Review a.rs."));
    let unknown = rig.run(&["run", "/reviw a.rs"]);
    assert_eq!(unknown.code(), 2);
    assert!(
        unknown
            .stderr()
            .contains("unknown command `/reviw`: did you mean `/review`? /help lists the commands"),
        "{}",
        unknown.stderr()
    );
}

#[test]
fn prompt_with_a_leading_path_is_no_command() {
    let rig = rig();
    assert_eq!(rig.task(&["/etc is what?"]).code(), 0);
    assert_eq!(rig.task(&["/usr/bin is what?"]).code(), 0);
}

#[test]
fn prompt_with_a_path_of_the_project_is_no_command() {
    let rig = rig();
    rig.write("lib/main.dart", "");
    assert_eq!(rig.task(&["/lib/main.dart:3 is what?"]).code(), 0);
}

#[test]
fn prompt_that_begins_with_a_command_and_a_slash_is_rejected() {
    let rig = rig();
    for (prompt, advice) in [
        ("/rules/list", "did you mean `/rules`?"),
        ("/coding/next fix it", "did you mean `/coding`?"),
        // A command of another agent.
        ("/index/build", "works only in the terminal interface"),
    ] {
        let rejected = rig.run(&["run", prompt]);
        assert_eq!(rejected.code(), 2, "{prompt}: {}", rejected.stderr());
        assert!(
            rejected.stderr().contains(advice),
            "{prompt}: {}",
            rejected.stderr()
        );
    }
    assert_eq!(rig.server.requests().len(), 0);
}

#[test]
fn add_rejects_unusable_files_and_overwrites_nothing() {
    let rig = rig();
    rig.write("bad.md", "---\nname: x\n---\nNo description.\n");
    for kind in ["agents", "skills"] {
        let added = rig.run(&[kind, "add", "x", "bad.md"]);
        assert_eq!(added.code(), 2, "{kind}");
        assert!(
            added.stderr().contains("`description`")
                && added.stderr().contains("nothing was added"),
            "{}",
            added.stderr()
        );
        assert!(!rig.project().join(".haft").join(kind).exists(), "{kind}");
    }
    rig.write("good.md", "---\nname: x\ndescription: d\n---\nBody.\n");
    assert_eq!(rig.run(&["agents", "add", "x", "good.md"]).code(), 0);
    let again = rig.run(&["agents", "add", "x", "good.md"]);
    assert_eq!(again.code(), 2);
    assert!(again.stderr().contains("exists"), "{}", again.stderr());
    assert_eq!(rig.run(&["agents", "add", "../x", "good.md"]).code(), 2);
    assert_eq!(rig.run(&["agents", "show", "y"]).code(), 2);
}

#[test]
fn agents_list_uses_the_first_of_a_name_and_shows_others() {
    let rig = rig();
    let agent = |who: &str| {
        format!(
            "---\nname: tester\ndescription: {who}\ntools: Read, Grep\nmodel: inherit\n---\nTest.\n"
        )
    };
    for (folder, who) in [(".claude/agents", "claude"), (".haft/agents", "haft")] {
        std::fs::create_dir_all(rig.project().join(folder)).unwrap();
        rig.write(&format!("{folder}/t.md"), agent(who));
    }
    let untrusted = rig.run(&["agents", "list"]);
    assert!(
        untrusted.stderr().contains("is not trusted"),
        "new files that would run end the trust: {}",
        untrusted.stderr()
    );
    rig.run(&["trust"]);
    let listed = rig.run(&["agents", "list", "--json"]).json();
    assert_eq!(listed["agents"][0]["description"], "haft");
    assert_eq!(listed["agents"][0]["tools"], json!(["Read", "Grep"]));
    let verbose = rig.run(&["agents", "list", "--verbose"]).stdout();
    assert!(
        verbose.contains("not used: .claude/agents/t.md (`tester` is .haft/agents/t.md)"),
        "{verbose}"
    );
    let foreign = rig.run(&["agents", "remove", "tester"]);
    assert_eq!(foreign.code(), 0);
    let theirs = rig.run(&["agents", "remove", "tester"]);
    assert!(
        theirs.stderr().contains("belongs to another program"),
        "{}",
        theirs.stderr()
    );
}

#[test]
fn use_skill_reads_a_skill_that_the_prompt_lists() {
    let use_skill = |name: &str| Reply::call("use_skill", json!({"name": name}));
    let replies = [
        use_skill("release"),
        use_skill("relaese"),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    std::fs::create_dir_all(rig.project().join(".claude/skills/release/scripts")).unwrap();
    rig.write(
        ".claude/skills/release/SKILL.md",
        "---\nname: release\ndescription: Make a release.\n---\nTag first.\n",
    );
    rig.write(".claude/skills/release/scripts/tag.sh", "git tag");
    rig.run(&["trust"]);
    let events = rig.task(&["release it"]).events();
    let first = String::from_utf8_lossy(&rig.server.requests()[0].body).into_owned();
    assert!(
        first.contains("- `release`: Make a release.") && !first.contains("Tag first."),
        "{first}"
    );
    let results: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    assert_eq!(
        results[0]["text"],
        "Tag first.\n\nFiles of this skill:\n- .claude/skills/release/scripts/tag.sh",
        "{results:?}"
    );
    assert_eq!(results[1]["error"]["code"], "unknown_skill");
}

#[test]
fn use_skill_is_not_offered_without_skills() {
    let rig = rig();
    rig.task(&["hello"]);
    assert!(!String::from_utf8_lossy(&rig.server.requests()[0].body).contains("use_skill"));
}

#[test]
fn skills_add_copies_the_whole_folder() {
    let rig = rig();
    std::fs::create_dir_all(rig.project().join("given/scripts")).unwrap();
    rig.write(
        "given/SKILL.md",
        "---\nname: charts\ndescription: Draws charts\n---\nRun scripts/draw.sh.\n",
    );
    rig.write("given/scripts/draw.sh", "echo chart\n");
    let added = rig.run(&["skills", "add", "charts", "given"]);
    assert_eq!(added.code(), 0, "{}", added.stderr());
    let there = rig.project().join(".haft/skills/charts");
    assert_eq!(
        std::fs::read_to_string(there.join("scripts/draw.sh")).unwrap(),
        "echo chart\n"
    );
    assert!(
        rig.run(&["skill", "show", "charts"])
            .stdout()
            .contains("Draws charts")
    );
    // A folder without `SKILL.md` is rejected, and an unusable skill leaves nothing behind.
    std::fs::create_dir_all(rig.project().join("empty")).unwrap();
    assert_eq!(rig.run(&["skills", "add", "other", "empty"]).code(), 2);
    rig.write("given/SKILL.md", "---\nname: bad\n---\nNo description.\n");
    assert_eq!(rig.run(&["skills", "add", "bad", "given"]).code(), 2);
    assert!(
        !rig.project().join(".haft/skills/bad").exists()
            && !rig.project().join(".haft/skills/other").exists()
    );
}
