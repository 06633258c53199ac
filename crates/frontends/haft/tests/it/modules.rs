//! Module documents: their tools are offered if a project has one, and a read names the document
//! once per conversation, even after a restart.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

fn offers_module_tools(rig: &Rig, request: usize) -> bool {
    String::from_utf8_lossy(&rig.server.requests()[request].body)
        .contains("\"name\":\"ac_mod_read\"")
}

fn read_file_call(path: &str) -> Reply {
    Reply::call("read_file", json!({ "path": path }))
}

#[test]
fn ac_mod_tools_are_offered_if_a_module_document_exists() {
    let rig = Rig::untrusted(
        Api::OpenaiChat,
        Script::replies([Reply::text("Done.").times(4)]).unwrap(),
    );
    std::fs::create_dir_all(rig.project().join("src/pay")).unwrap();
    let ran = |arguments: &[&str]| assert_eq!(rig.task(arguments).code(), 0);
    rig.run(&["trust"]);
    ran(&["hi"]);
    rig.write("src/pay/.ac.mod.md", "# pay\n\nTakes money.\n");
    ran(&["hi"]);
    ran(&["--allowed-tools", "minimal", "hi"]);
    let listed = rig.run(&["tools", "list", "--json"]).json();
    let tool = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "ac_mod_write")
        .unwrap();
    assert_eq!(tool["offered"], true);
    rig.run(&["trust", "--revoke"]);
    ran(&["hi"]);
    assert_eq!(
        [0, 1, 2, 3].map(|request| offers_module_tools(&rig, request)),
        [false, true, false, false]
    );
}

#[test]
fn read_file_names_a_module_once_per_conversation() {
    let replies = [
        read_file_call("src/pay/a.rs"),
        read_file_call("src/pay/b.rs"),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    std::fs::create_dir_all(rig.project().join("src/pay")).unwrap();
    for name in ["a.rs", "b.rs", "c.rs"] {
        rig.write(&format!("src/pay/{name}"), "x\n");
    }
    rig.write("src/pay/.ac.mod.md", "Takes money.\n");
    let texts = |ran: &crate::rig::Ran| {
        let events = ran
            .events()
            .into_iter()
            .filter(|event| event["type"] == "tool_result");
        events
            .map(|event| event["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let named = "1\tx\n[It belongs to the module `src/pay`, which `src/pay/.ac.mod.md` describes.]";
    assert_eq!(texts(&rig.task(&["look"])), [named, "1\tx"]);
    let rig = rig.with_script(
        Script::replies([read_file_call("src/pay/c.rs"), Reply::text("Done.")]).unwrap(),
        Api::OpenaiChat,
    );
    assert_eq!(
        texts(&rig.task(&["-c", "look on"])),
        ["1\tx"],
        "another process knows it too"
    );
}
