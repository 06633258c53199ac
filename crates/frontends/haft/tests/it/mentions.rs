//! Files and folders that the user's words mention, as the model is told of them.

use haft_testkit::{Reply, Script, SeenPart, SeenRole};
use haft_types::Api;

use crate::rig::Rig;

/// What the last user message of the request says.
fn told(words: &str) -> String {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(vec![Reply::text("Done.")]).unwrap());
    std::fs::create_dir_all(rig.project().join("src/文档")).unwrap();
    rig.write("src/a.rs", "fn main() {}\n");
    rig.write("to do.md", "nothing\n");
    assert_eq!(rig.task(&[words]).code(), 0);
    let seen = rig.server.generations()[0].seen().unwrap();
    let texts = seen.parts().filter_map(|(role, part)| match part {
        SeenPart::Text { text, .. } if role == SeenRole::User => Some(text.clone()),
        _ => None,
    });
    texts.last().unwrap()
}

#[test]
fn mentions_follow_letters_of_any_script() {
    let said = told("请看@src/a.rs，再看@src/文档里的内容 and @\"to do.md\". Not @types/node, me@example.com");
    let (_, reminder) = said.split_once("\n\n<system-reminder>\n").expect("a reminder");
    assert!(reminder.ends_with(":\n- src/a.rs\n- src/文档 (folder)\n- to do.md\n</system-reminder>"), "{reminder}");
    assert!(reminder.contains("list each folder with the `list_files` tool"), "{reminder}");
}

#[test]
fn files_alone_are_to_be_read() {
    let said = told("см.@src/a.rs.");
    assert!(said.contains("MUST read them with the `read_file` tool") && !said.contains("list_files"), "{said}");
}
