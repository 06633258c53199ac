//! Files and folders mentioned in a prompt, and the reminder about them that the model receives.

use haft_testkit::{Reply, Script, SeenPart, SeenRole};
use haft_types::Api;

use crate::rig::Rig;

/// Returns the last user message of the request for this prompt.
fn sent_prompt(words: &str) -> String {
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies(vec![Reply::text("Done.")]).unwrap(),
    );
    std::fs::create_dir_all(rig.project().join("src/文档")).unwrap();
    rig.write("src/a.rs", "fn main() {}\n");
    rig.write("to do.md", "nothing\n");
    assert_eq!(rig.task(&[words]).code(), 0);
    let seen = rig.server.generation_requests()[0].decode().unwrap();
    let mut texts: Vec<String> = Vec::new();
    for (role, part) in seen.parts() {
        if let (SeenRole::User, SeenPart::Text { text, .. }) = (role, part) {
            texts.push(text.clone());
        }
    }
    texts.pop().unwrap()
}

#[test]
fn mentions_are_found_after_letters_of_any_script() {
    let said = sent_prompt(
        "请看@src/a.rs，再看@src/文档里的内容 and @\"to do.md\". Not @types/node, me@example.com",
    );
    let (_, reminder) = said
        .split_once("\n\n<system-reminder>\n")
        .expect("a reminder");
    assert!(
        reminder.ends_with(":\n- src/a.rs\n- src/文档 (folder)\n- to do.md\n</system-reminder>"),
        "{reminder}"
    );
    assert!(
        reminder.contains("list each folder with the `list_files` tool"),
        "{reminder}"
    );
}

#[test]
fn mentions_of_files_alone_ask_for_read_file_only() {
    let said = sent_prompt("см.@src/a.rs.");
    assert!(
        said.contains("MUST read them with the `read_file` tool") && !said.contains("list_files"),
        "{said}"
    );
}

/// Limit of CPU seconds for a prompt of 2 MB. Linear work takes a few seconds; quadratic work would
/// take hours.
const MAX_CPU_SECONDS: u32 = 300;

#[test]
fn large_prompts_are_parsed_in_linear_time() {
    for line in [
        "see src/a.rs:12 and @src/b.rs, 请看@src/文档 now\n",
        "====",
        "0a1b2c3d you must never\n",
    ] {
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::replies(vec![Reply::text("Done.")]).unwrap(),
        );
        let file = rig.home().join("prompt.txt");
        std::fs::write(&file, line.repeat(2_000_000 / line.len())).unwrap();
        let window = format!(
            "models.\"mock/{}\".context_window=20000000",
            crate::rig::MODEL
        );
        let plain = rig.command(&["run", "--set", &window]);
        let mut limited = std::process::Command::new("sh");
        limited.args([
            "-c",
            &format!("ulimit -t {MAX_CPU_SECONDS}; exec \"$0\" \"$@\""),
        ]);
        limited
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(rig.project())
            .env_clear();
        limited.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let ran = limited
            .stdin(std::fs::File::open(&file).unwrap())
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{line:?}: {}: {}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        );
        assert_eq!(rig.server.generation_requests().len(), 1);
    }
}
