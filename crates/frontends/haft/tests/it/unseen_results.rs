//! A result is sent whole until the model has seen it, whatever the policy clears.

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::json;

use crate::rig::{MODEL, Rig};

/// Returns a file of about 10,000 tokens whose lines differ from those of other files.
fn numbered_file(number: usize) -> String {
    (1..=1_400)
        .map(|line| format!("file {number} line {line} holds a few words\n"))
        .collect()
}

fn read_six() -> Reply {
    Reply::calls(
        (0..6).map(|number| ScriptCall::new("read_file", json!({"path": format!("{number}.txt")}))),
    )
}

fn rig_with_files(api: Api, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(api, Script::replies(replies).unwrap());
    for number in 0..6 {
        rig.write(&format!("{number}.txt"), numbered_file(number));
    }
    rig
}

#[test]
fn pruning_keeps_six_parallel_reads_until_the_reply() {
    let hour = format!("models.\"mock/{MODEL}\".cache.ttl=\"1h\"");
    for api in Api::ALL {
        let rig = rig_with_files(api, [read_six(), Reply::text("All six are read.")]);
        let ran = rig.task(&[
            "--set",
            &hour,
            "--set",
            "limits.output_bytes=200000",
            "read all files",
        ]);
        assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
        let sent = rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .to_string();
        for number in 0..6 {
            for line in [1, 700, 1_400] {
                assert!(
                    sent.contains(&format!("file {number} line {line} holds")),
                    "{api}: file {number} line {line}"
                );
            }
        }
        assert!(!sent.contains("[Cleared: result of"), "{api}");
    }
}

#[test]
fn newest_step_beyond_the_window_is_sent_as_excerpts() {
    let rig = rig_with_files(
        Api::Anthropic,
        [read_six(), Reply::text("All six are read.")],
    );
    let window = format!("models.\"mock/{MODEL}\".context_window=50000");
    let ran = rig.task(&[
        "--set",
        &window,
        "--set",
        "limits.output_bytes=200000",
        "read all files",
    ]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        ran.events()
            .iter()
            .any(|event| event["type"] == "pruning" && event["step"] == "excerpts")
    );
    let sent = rig.server.generation_requests()[1]
        .decode()
        .unwrap()
        .to_string();
    let paths: Vec<_> = sent
        .split("The whole text is in `")
        .skip(1)
        .map(|rest| rest.split('`').next().unwrap())
        .collect();
    assert_eq!(paths.len(), 6, "{sent}");
    for (number, path) in paths.iter().enumerate() {
        for line in [1, 1_400] {
            assert!(
                sent.contains(&format!("file {number} line {line} holds")),
                "file {number} line {line}"
            );
        }
        let whole = std::fs::read_to_string(path).unwrap();
        assert!(
            whole.contains(&format!("file {number} line 700 holds")),
            "{path}"
        );
    }
}
