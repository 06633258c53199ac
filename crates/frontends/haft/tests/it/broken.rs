//! Broken rules, agents, skills and commands: each is reported with its file and, if known, its
//! line, and the others still work.

use std::fs;

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;

fn write_file(rig: &Rig, name: &str, content: &[u8]) {
    let path = rig.project().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// The kind, the path and the content of a broken file, and the expected message.
const CASES: &[(&str, &str, &[u8], &str)] = &[
    (
        "rules",
        ".haft/rules/bad.md",
        b"---\nglobs: {a: [}\n---\nText.\n",
        "bad.md, line 2: the front matter cannot be read",
    ),
    (
        "rules",
        ".haft/rules/bad.md",
        b"---\nalwaysApply: 7\n---\nText.\n",
        "bad.md, line 2: the front matter cannot be read",
    ),
    (
        "rules",
        ".haft/rules/bad.md",
        b"---\nglobs: 7\n---\nText.\n",
        "bad.md, line 2: ",
    ),
    (
        "rules",
        ".haft/rules/bad.md",
        b"---\nalwaysApply: true\n---\nA \xff byte.\n",
        "bad.md, line 4: it is not UTF-8",
    ),
    (
        "agents",
        ".haft/agents/bad.md",
        b"---\nname: [a, b]\ndescription: d\n---\nRole.\n",
        "bad.md, line 2: ",
    ),
    (
        "agents",
        ".haft/agents/bad.md",
        b"---\nname: x\n---\nRole.\n",
        "bad.md: ",
    ),
    (
        "agents",
        ".haft/agents/bad.md",
        b"---\nname: x\ndescription: d\n\xfe: 1\n---\nRole.\n",
        "bad.md, line 4: it is not UTF-8",
    ),
    (
        "skills",
        ".haft/skills/bad/SKILL.md",
        b"---\nname: {a: [}\ndescription: d\n---\nText.\n",
        "SKILL.md, line ",
    ),
    (
        "skills",
        ".haft/skills/bad/SKILL.md",
        b"---\nname: Not A Name\ndescription: d\n---\nText.\n",
        "is not a name",
    ),
    (
        "skills",
        ".haft/skills/bad/SKILL.md",
        b"No front matter.\n",
        "must give `name` and `description`",
    ),
    (
        "commands",
        ".haft/commands/bad.md",
        b"---\ndescription: d\nmodel: [x\n---\nDo $1.\n",
        "bad.md, line ",
    ),
];

fn write_valid_files(rig: &Rig) {
    write_file(
        rig,
        ".haft/rules/good.md",
        b"---\nalwaysApply: true\n---\nA good rule.\n",
    );
    write_file(
        rig,
        ".haft/agents/good.md",
        b"---\nname: good\ndescription: d\n---\nRole.\n",
    );
    write_file(
        rig,
        ".haft/skills/good/SKILL.md",
        b"---\nname: good\ndescription: A good skill.\n---\nText.\n",
    );
    write_file(rig, ".haft/commands/good.md", b"Do it well.\n");
}

#[test]
fn document_errors_name_the_file_and_spare_the_others() {
    for (kind, name, content, told) in CASES {
        let rig = Rig::untrusted(
            Api::OpenaiChat,
            Script::replies([Reply::text("Done.")]).unwrap(),
        );
        write_valid_files(&rig);
        write_file(&rig, name, content);
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let listed = rig.run(&[kind, "list", "--json"]);
        let shown = String::from_utf8_lossy(content);
        assert!(
            listed.stderr().contains(told),
            "{kind} {shown}: {}",
            listed.stderr()
        );
        let names = listed.json()[kind].to_string();
        assert!(names.contains("\"good\""), "{kind} {shown}: {names}");
        let ran = rig.task(&["/good"]);
        assert_eq!(ran.code(), 0, "{kind} {shown}: {}", ran.stderr());
        let sent = String::from_utf8_lossy(&rig.server.requests()[0].body).into_owned();
        for there in ["A good rule.", "A good skill.", "Do it well."] {
            assert!(sent.contains(there), "{kind} {shown}: no {there} in {sent}");
        }
        // A run warns about rules and skills. Broken agents and commands are reported by their
        // `list` commands.
        if ["rules", "skills"].contains(kind) {
            let events = ran.events();
            let mut warned = events.iter().filter(|event| event["code"] == "document");
            assert!(
                warned.any(|event| event["message"].as_str().unwrap().contains(told)),
                "{kind} {shown}: {events:?}"
            );
        }
    }
}

#[test]
fn document_over_256_kb_is_left_out_and_named() {
    let huge = [
        b"---\nalwaysApply: true\n---\n".as_slice(),
        "HUGE ".repeat(2_100_000).as_bytes(),
    ]
    .concat();
    for name in [
        ".haft/rules/huge.md",
        "AGENTS.md",
        "CODE_LAW.md",
        ".haft/skills/huge/SKILL.md",
    ] {
        let rig = Rig::untrusted(
            Api::OpenaiChat,
            Script::replies([Reply::text("Done.")]).unwrap(),
        );
        write_valid_files(&rig);
        write_file(&rig, name, &huge);
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let ran = rig.task(&["hi"]);
        assert_eq!(ran.code(), 0, "{name}: {}", ran.stderr());
        let warned = ran
            .events()
            .into_iter()
            .filter(|event| event["code"] == "document")
            .collect::<Vec<_>>();
        let told = warned.iter().filter(|event| {
            event["message"]
                .as_str()
                .unwrap()
                .contains("is larger than 256 KB")
        });
        assert_eq!(told.count(), 1, "{name}: {warned:?}");
        let sent = String::from_utf8_lossy(&rig.server.requests()[0].body).into_owned();
        assert!(
            !sent.contains("HUGE") && sent.contains("A good rule."),
            "{name}"
        );
    }
}

#[test]
fn imports_in_a_cycle_end_and_appear_once() {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    write_file(&rig, "AGENTS.md", b"@a.md @AGENTS.md\nTop.\n");
    write_file(&rig, "a.md", b"@b.md\nFirst.\n");
    write_file(&rig, "b.md", b"@a.md\nSecond.\n");
    rig.run(&["trust"]);
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let sent = String::from_utf8_lossy(&rig.server.requests()[0].body).into_owned();
    for text in ["Top.", "First.", "Second."] {
        assert_eq!(sent.matches(text).count(), 1, "{text}: {sent}");
    }
}
