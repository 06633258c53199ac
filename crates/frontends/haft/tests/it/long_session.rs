//! Two hundred requests with everything that may rewrite the prefix: every prefix break has a
//! cause, and nothing else changes.

use haft_testkit::{Reply, Script, Seen, When};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{CLASSIC, Rig, SMALL_ARCHIVES};

const ROUNDS: usize = 14;
const STEPS: usize = 14;

/// The model's replies in one round: reads, with the TODO list changed twice, then an answer.
fn round_replies(number: usize) -> Vec<Reply> {
    let todo = |status: &str| {
        Reply::call(
            "todo_write",
            json!({"todos": [{"content": format!("round {number}"), "status": status}]}),
        )
    };
    let step = |step: usize| match step {
        3 => todo("in_progress"),
        10 => todo("completed"),
        12 => Reply::call(
            "execute_command",
            json!({"command": format!("seq {number} 400"), "requires_approval": false}),
        ),
        _ => Reply::call(
            "read_file",
            json!({"path": "notes.txt", "start_line": step + 1, "end_line": step + 40}),
        ),
    };
    let mut replies: Vec<_> = (0..STEPS).map(step).collect();
    // The provider reports at the end of the twelfth round that the window is nearly full, so the
    // next round begins with a compaction.
    let usage = if number == 12 {
        Usage {
            input: 170_000,
            ..Usage::default()
        }
    } else {
        Usage::default()
    };
    replies.push(Reply::text(format!("Round {number} is done.")).with_usage(usage));
    replies
}

fn part_texts(seen: &Seen) -> Vec<String> {
    seen.parts()
        .map(|(role, part)| format!("{role:?} {part:?}"))
        .collect()
}

#[test]
fn prefix_breaks_of_200_requests_all_have_a_cause() {
    let summary = Reply::summary("Two rounds of reading.").when(When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    });
    let replies = (1..=ROUNDS).flat_map(round_replies);
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies(std::iter::once(summary).chain(replies)).unwrap(),
    );
    let rig = rig.with(CLASSIC).with([SMALL_ARCHIVES]);
    rig.write(
        "notes.txt",
        (1..=200)
            .map(|n| format!("note {n}: something worth keeping in mind\n"))
            .collect::<String>(),
    );
    rig.write("AGENTS.md", "Read everything twice.\n");

    let mut breaks: Vec<Option<String>> = Vec::new();
    for number in 1..=ROUNDS {
        if number == 6 {
            rig.write("AGENTS.md", "Read everything three times.\n");
        }
        let task = format!("round {number}");
        // Small enough for the later rounds to be pruned, a large part at a time.
        let mut arguments = vec![
            "--set",
            "context.safe_zone=60k",
            "--set",
            "context.prune_to=0.7",
        ];
        if number > 1 {
            arguments.push("-c");
        }
        arguments.push(&task);
        let ran = rig.task(&arguments);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        breaks.extend(breaks_by_request(&ran.events()));
    }
    assert!(
        rig.server.refusals().is_empty(),
        "{:?}",
        rig.server.refusals()
    );

    // The request for the summary is not part of the conversation.
    let requests: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    let requests: Vec<_> = requests
        .iter()
        .filter(|seen| !seen.tools.is_empty())
        .collect();
    assert_eq!(requests.len(), ROUNDS * (STEPS + 1));
    assert_eq!(breaks.len(), requests.len());
    for (index, pair) in requests.windows(2).enumerate() {
        let before = part_texts(pair[0]);
        let after = part_texts(pair[1]);
        let extends = pair[0].system == pair[1].system && after.starts_with(&before);
        let told = &breaks[index + 1];
        assert_eq!(
            told.is_none(),
            extends,
            "request {}: {told:?}, but the requests say otherwise",
            index + 2
        );
    }

    let count = |cause: &str| {
        breaks
            .iter()
            .flatten()
            .filter(|told| *told == cause)
            .count()
    };
    assert_eq!(count("documents_changed"), 1, "{breaks:?}");
    assert_eq!(count("compaction"), 1, "{breaks:?}");
    assert!(
        count("reminders_moved") > 100 && count("compression") >= 8,
        "{breaks:?}"
    );
    assert!(
        (1..=8).contains(&count("pruning")),
        "one break an episode, not one a turn: {breaks:?}"
    );
    let known = [
        "documents_changed",
        "compaction",
        "pruning",
        "pruning_undone",
        "compression",
        "reminders_moved",
        "reminders_changed",
        "policy_changed",
    ];
    let stray: Vec<_> = breaks
        .iter()
        .flatten()
        .filter(|cause| !known.contains(&cause.as_str()))
        .collect();
    assert!(
        stray.is_empty(),
        "breaks without a cause of this session: {stray:?}"
    );
}

/// Returns the prefix break reported before each request, if any.
fn breaks_by_request(events: &[Value]) -> Vec<Option<String>> {
    let mut pending = None;
    let mut breaks = Vec::new();
    for event in events {
        if event["type"] == "prefix_break" {
            pending = event["cause"].as_str().map(str::to_owned);
        }
        if event["type"] == "window" {
            breaks.push(pending.take());
        }
    }
    breaks
}

#[test]
fn requests_only_append_if_nothing_rewrites_the_prefix() {
    // Each call reads another line, because a repeated call with an equal result would add a
    // notice.
    let read = |line: u32| {
        Reply::call(
            "read_file",
            json!({"path": "notes.txt", "start_line": line, "end_line": line}),
        )
    };
    let replies = (1..=60).map(read).chain([Reply::text("Done.")]);
    let rig = Rig::new(Api::OpenaiResponses, Script::replies(replies).unwrap());
    rig.write(
        "notes.txt",
        (1..=60)
            .map(|line| format!("line {line}\n"))
            .collect::<String>(),
    );
    let ran = rig.task(&["read on"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        ran.events()
            .iter()
            .all(|event| event["type"] != "prefix_break")
    );
    let bodies: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.body.clone())
        .collect();
    for pair in bodies.windows(2) {
        // Everything except the brackets that close the body.
        let open = pair[0].len() - 2;
        assert!(
            pair[1].starts_with(&pair[0][..open]),
            "the bytes before are the same"
        );
    }
}
