//! Models that repeat the message ids they are given: the ids are removed from their text, but not
//! from files they write.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

const HINT: &str = "[Hint: message_id: 0a1b2c3d]";

fn run_with_ids(api: Api, ids: &str, protocol: &str, replies: Vec<Reply>) -> (Rig, Ran) {
    let rig = Rig::new(api, Script::replies(replies).unwrap());
    let ids = format!("context.message_ids={ids}");
    let protocol = format!(
        "models.\"mock/{}\".tool_protocol={protocol}",
        crate::rig::MODEL
    );
    let ran = rig.task(&["--set", &ids, "--set", &protocol, "write the notes"]);
    assert_eq!(
        ran.code(),
        0,
        "{api} {ids} {protocol}: {}{}",
        ran.stdout(),
        ran.stderr()
    );
    (rig, ran)
}

/// Returns the joined text of the text events.
fn shown_text(ran: &Ran) -> String {
    let events = ran.events();
    let texts = events.iter().filter(|event| event["type"] == "text");
    texts.map(|event| event["text"].as_str().unwrap()).collect()
}

fn stream_in_pieces(reply: Reply) -> Reply {
    Reply {
        delta_chars: Some(5),
        ..reply
    }
}

/// Returns the stored text of the assistant.
fn stored_text(rig: &Rig) -> String {
    let text = |part: &Value| {
        part.as_str()
            .or(part["text"].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let export = rig.export();
    let messages = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["role"] == "assistant");
    let said = messages.map(|one| match &one["content"] {
        Value::Array(parts) => parts.iter().map(text).collect(),
        whole => text(whole),
    });
    said.collect()
}

#[test]
fn write_to_file_keeps_lines_that_resemble_a_hint() {
    let content = format!("alpha\n\n{HINT}\nomega\n");
    for api in Api::ALL {
        for ids in ["off", "results", "all"] {
            let call = Reply::call(
                "write_to_file",
                json!({"path": "notes.txt", "content": content}),
            );
            let (rig, _) = run_with_ids(api, ids, "native", vec![call, Reply::text("Written.")]);
            assert_eq!(
                std::fs::read_to_string(rig.project().join("notes.txt")).unwrap(),
                content,
                "{api} {ids}"
            );
        }
    }
}

#[test]
fn text_protocols_keep_hints_in_parameters_only() {
    let content = format!("alpha\n\n{HINT}\nomega\n");
    let xml = format!(
        "I write.\n\n{HINT}\n<write_to_file>\n<path>notes.txt</path>\n<content>\n{content}\n</content>\n</write_to_file>\n{HINT}\n"
    );
    let react = format!(
        "I write.\n\n{HINT}\nAction: write_to_file[{}]\n\n{HINT}\n",
        json!({"path": "notes.txt", "content": content})
    );
    let ends = [
        (
            "xml",
            xml,
            "<attempt_completion>\n<result>\nWritten.\n</result>\n</attempt_completion>",
        ),
        ("react", react, "Thought: Done.\nAction: Finish[Written.]"),
    ];
    for (protocol, written, end) in ends {
        let replies = vec![stream_in_pieces(Reply::text(written)), Reply::text(end)];
        let (rig, ran) = run_with_ids(Api::OpenaiChat, "all", protocol, replies);
        let file = std::fs::read_to_string(rig.project().join("notes.txt")).unwrap();
        assert_eq!(file.trim_end(), content.trim_end(), "{protocol}");
        assert!(
            shown_text(&ran).contains("I write.") && !shown_text(&ran).contains("Hint"),
            "{protocol}: {}",
            shown_text(&ran)
        );
        assert!(
            !stored_text(&rig).contains("Hint"),
            "{protocol}: {}",
            stored_text(&rig)
        );
    }
}

#[test]
fn streamed_text_equals_the_stored_text() {
    let said = format!("Done [so far]:\n\n- one\n\n{HINT}\n\n- two [Hin\n\n{HINT}");
    let clean = "Done [so far]:\n\n- one\n\n- two [Hin";
    for api in Api::ALL {
        let (rig, ran) = run_with_ids(
            api,
            "all",
            "native",
            vec![stream_in_pieces(Reply::text(&said))],
        );
        assert_eq!(
            (shown_text(&ran).as_str(), stored_text(&rig).as_str()),
            (clean, clean),
            "{api}"
        );
        assert_eq!(ran.result()["text"], Value::from(clean), "{api}");
        let (rig, ran) = run_with_ids(
            api,
            "off",
            "native",
            vec![stream_in_pieces(Reply::text(&said))],
        );
        assert_eq!(
            (shown_text(&ran), stored_text(&rig)),
            (said.clone(), said.clone()),
            "{api}: nobody told it ids"
        );
    }
}
