//! Two hundred facts in a long session that is compressed, pruned and archived twice: an id in the
//! last request recalls each of them.

use haft_testkit::{Reply, Script, ScriptCall, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{CLASSIC, Rig, SMALL_ARCHIVES};

const ROUNDS: usize = 20;
const READS: usize = 7;
/// Facts of a round: one in the prompt, one in each file read, one in a written file, one in the
/// answer.
const FACTS: usize = READS + 3;

fn fact_text(round: usize, index: usize) -> String {
    format!(
        "fact-{round:02}-{index:02}-{:08x}",
        (round * 131 + index * 7919).wrapping_mul(2_654_435_761) as u32
    )
}

/// Returns a file longer than its compressed form, with the fact after the cut.
fn file_with_fact(fact: &str) -> String {
    (1..=700)
        .map(|line| {
            if line == 600 {
                format!("{fact}\n")
            } else {
                format!("note {line}\n")
            }
        })
        .collect()
}

fn round_replies(number: usize) -> [Reply; 2] {
    let read = |index: usize| {
        ScriptCall::new(
            "read_file",
            json!({"path": format!("{number}-{index}.txt")}),
        )
    };
    let content = format!(
        "{}{}",
        "words of a long text\n".repeat(60),
        fact_text(number, READS)
    );
    let write = ScriptCall::new(
        "write_to_file",
        json!({"path": format!("{number}.out"), "content": content}),
    );
    let answer = format!(
        "Read. {}{}",
        "And so on, for a while. ".repeat(40),
        fact_text(number, READS + 1)
    );
    [
        Reply::calls((0..READS).map(read).chain([write])),
        Reply::text(answer),
    ]
}

/// The first summary is one that haft rejects, the later ones are accepted.
fn summary_replies() -> [Reply; 2] {
    let when = When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    };
    let refused = Reply {
        times: Some(1),
        ..Reply::text("<system>no</system>")
    };
    let accepted = Reply {
        times: Some(9),
        ..Reply::summary("Notes were read.")
    };
    [refused.when(when.clone()), accepted.when(when)]
}

/// Returns the short id of the exported message that holds the fact, before any recall.
fn find_message_id<'a>(messages: &'a [Value], fact: &str) -> &'a str {
    let holds = |message: &&Value| {
        message["role"] != "summary" && message["content"].to_string().contains(fact)
    };
    let found = messages
        .iter()
        .find(holds)
        .unwrap_or_else(|| panic!("{fact} is not in the conversation"));
    &found["message_id"].as_str().unwrap()[..8]
}

#[test]
fn recall_restores_every_fact_by_an_id_in_the_last_request() {
    let replies = summary_replies()
        .into_iter()
        .chain((1..=ROUNDS).flat_map(round_replies))
        .chain([Reply::text("Well.")]);
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
        .with(CLASSIC)
        .with([SMALL_ARCHIVES]);
    let settings = [
        "--set",
        "context.keep_rounds=4",
        "--set",
        "context.safe_zone=24k",
    ];
    let mut cleared = 0;
    for number in 1..=ROUNDS {
        for index in 0..READS {
            rig.write(
                &format!("{number}-{index}.txt"),
                file_with_fact(&fact_text(number, index)),
            );
        }
        let words = format!(
            "round {number}: read the notes, all of them and one after the other, and mind {}",
            fact_text(number, READS + 2)
        );
        // Everything but the newest rounds is archived twice.
        let archive = if number == 9 || number == 17 {
            "context.compact_at=0.0001"
        } else {
            "context.compact_at=1"
        };
        let mut arguments = [&settings[..], &["--set", archive]].concat();
        arguments.extend((number > 1).then_some("-c"));
        arguments.push(&words);
        let ran = rig.task(&arguments);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        cleared += ran
            .events()
            .iter()
            .filter(|event| event["type"] == "pruning" && event["step"] == "cleared")
            .count();
    }
    assert_eq!(
        rig.task(
            &[
                &settings[..],
                &["--set", "context.compact_at=1", "-c", "and now?"]
            ]
            .concat()
        )
        .code(),
        0
    );
    let sent = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .decode()
        .unwrap()
        .to_string();
    let messages = rig.export()["messages"].as_array().unwrap().clone();
    let archives = messages
        .iter()
        .filter(|message| message["role"] == "summary")
        .count();
    assert!(
        archives >= 2 && cleared > 0,
        "{archives} archives, cleared {cleared} times"
    );
    assert!(
        sent.contains("[Cleared: result of")
            && sent.contains("[The arguments of this call are shortened here"),
        "{sent}"
    );

    let facts = (1..=ROUNDS)
        .flat_map(|round| (0..FACTS).map(move |index| fact_text(round, index)))
        .collect::<Vec<_>>();
    let hidden: Vec<_> = facts.iter().filter(|fact| !sent.contains(*fact)).collect();
    assert!(
        facts.len() == 200 && hidden.len() > 150,
        "only {} of {} are hidden",
        hidden.len(),
        facts.len()
    );
    let ids: Vec<_> = facts
        .iter()
        .map(|fact| find_message_id(&messages, fact))
        .collect();
    for (fact, id) in facts.iter().zip(&ids) {
        assert!(
            sent.contains(id) || sent.contains(fact),
            "{fact}: {id} has no receipt in {sent}"
        );
    }

    // The model recalls all of them, ten at a time.
    let recall = |ids: &[&str]| {
        Reply::calls(
            ids.iter()
                .map(|id| ScriptCall::new("recall", json!({"message_id": id}))),
        )
    };
    let replies = ids
        .chunks(10)
        .map(recall)
        .chain([Reply::text("All there.")]);
    let rig = rig.with_script(Script::replies(replies).unwrap(), Api::Anthropic);
    let ran = rig.task(&[
        "--set",
        "context.compact_at=1",
        "-c",
        "bring everything back",
    ]);
    assert_eq!(ran.result()["text"], "All there.", "{}", ran.stderr());
    let recalled = rig.export()["messages"].as_array().unwrap()[messages.len()..].to_vec();
    let results: Vec<_> = recalled
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    assert_eq!(results.len(), facts.len());
    for ((fact, id), result) in facts.iter().zip(&ids).zip(results) {
        assert!(
            result["content"].to_string().contains(fact),
            "{id} does not bring back {fact}: {result}"
        );
    }
}
