use haft_types::{Envelope, ModelSpec, Origin, Thinking};

use super::*;
use crate::testing::{
    Quarter, at, call, conversation, entry, id, model, result, system, text, tool_set,
};
use crate::{
    Assembly, Document, DocumentKind, Documents, Need, PlanStep, Policy, Reminders, View, assemble,
};

fn build(history: &[Arc<Entry>], api: Api, execution: &ExecutionState) -> Assembly {
    build_with_policy(
        &Policy {
            dialogue: 4,
            ..Policy::default()
        },
        history,
        api,
        execution,
    )
}

fn build_with_policy(
    policy: &Policy,
    history: &[Arc<Entry>],
    api: Api,
    execution: &ExecutionState,
) -> Assembly {
    let policy = Policy {
        view: View::Execute,
        ..policy.clone()
    };
    let system = system();
    let model = ModelSpec { api, ..model() };
    let tools = tool_set(&["read_file", "write_to_file"]);
    let rules = Document {
        kind: DocumentKind::Rules,
        heading: "style.md".into(),
        text: "Be brief.".into(),
        need: Need::Always,
    };
    let documents = Documents::new(vec![rules], &Quarter);
    let reminders = Reminders {
        todo: Some("- [~] fix it".into()),
        ..Reminders::default()
    };
    assemble(&Snapshot {
        documents: Some(&documents),
        reminders: Some(&reminders),
        execution: Some(execution),
        ..Snapshot::new(&model, &policy, &system, &tools, history, &Quarter)
    })
    .unwrap()
}

fn texts(assembly: &Assembly) -> Vec<String> {
    assembly
        .request
        .segments
        .iter()
        .map(|segment| segment.entry.message.joined_text())
        .collect()
}

/// Returns older messages, then a running round with a thought, text beside a call, and two
/// results.
fn story() -> Vec<Arc<Entry>> {
    let mut history = conversation("UATaUa");
    let parts = vec![
        Part::Thinking(Thinking {
            text: "I must look.".into(),
            ..Thinking::default()
        }),
        Part::from_text("I will read both."),
        call("1", "read_file", r#"{"path":"a"}"#),
        call("2", "read_file", r#"{"path":"b"}"#),
    ];
    history.push(text(10, Role::User, "fix \"it\"\nnow"));
    history.push(entry(Message::new(id(11), Role::Assistant, parts, at(11))));
    history.push(result(12, "1", Envelope::success("1\tone")));
    history.push(result(
        13,
        "2",
        Envelope::failure("not_found", "`b` does not exist"),
    ));
    history
}

#[test]
fn execute_view_has_four_messages() {
    let state = ExecutionState {
        max_replies: Some(20),
        mode: "auto".into(),
        plan_step: Some(PlanStep {
            step: "read the files".into(),
            done_when: "both are known".into(),
        }),
        tasks: vec!["build (running)".into()],
        last_write: Some("src/a.rs".into()),
    };
    let built = build(&story(), Api::OpenaiChat, &state);
    let roles: Vec<_> = built
        .request
        .segments
        .iter()
        .map(|one| one.entry.message.role)
        .collect();
    assert_eq!(
        roles,
        [Role::System, Role::Assistant, Role::Assistant, Role::System]
    );
    let texts = texts(&built);
    assert!(
        texts[0].contains("Be brief.") && texts[0].contains("- read_file: Does something"),
        "{}",
        texts[0]
    );
    insta::assert_snapshot!(texts[1..].join("\n\n--------\n\n"));
}

/// Nudges, notices of background tasks and messages of other agents are not part of the dialogue,
/// and were once not sent at all.
#[test]
fn execute_window_shows_messages_of_haft_and_other_agents() {
    let mut history = story();
    for (number, origin, said) in [
        (14, Origin::Engine, "Task t1 has ended."),
        (15, Origin::Agent, "From bob: stop."),
    ] {
        history.push(entry(
            Message::from_text(id(number), Role::User, said, at(number)).with_origin(origin),
        ));
    }
    let texts = texts(&build(
        &history,
        Api::OpenaiChat,
        &ExecutionState::default(),
    ));
    assert!(
        texts[2]
            .ends_with("does not exist\n\nnotice: Task t1 has ended.\n\nnotice: From bob: stop."),
        "{}",
        texts[2]
    );
    assert!(
        !texts[1].contains("ended") && !texts[1].contains("bob"),
        "{}",
        texts[1]
    );
}

#[test]
fn execute_view_uses_tagged_user_messages_where_the_api_needs_it() {
    for api in [Api::Anthropic, Api::Gemini] {
        let built = build(&story(), api, &ExecutionState::default());
        assert!(
            built.request.segments[1..]
                .iter()
                .all(|one| one.entry.message.role == Role::User)
        );
        let texts = texts(&built);
        for (text, tag) in texts[1..].iter().zip(["dialogue", "window", "state"]) {
            assert!(
                text.starts_with(&format!("<{tag}>\n")) && text.ends_with(&format!("\n</{tag}>")),
                "{text}"
            );
        }
    }
}

#[test]
fn execute_view_of_a_bare_continue_shows_the_earlier_goal() {
    let history: Vec<_> = story()
        .into_iter()
        .chain([text(20, Role::User, "continue")])
        .collect();
    let built = build(&history, Api::OpenaiChat, &ExecutionState::default());
    let texts = texts(&built);
    let folded = "user: \"continue\"\n\n(3 older utterances and 1 older step are folded.)\n- read_file a: success";
    assert!(texts[1].ends_with(folded), "{}", texts[1]);
    assert!(
        texts[1].contains(r#"user: "fix \"it\"\nnow""#),
        "{}",
        texts[1]
    );
    assert!(
        texts[2].contains("1. observation: "),
        "the results that were not seen: {}",
        texts[2]
    );
    assert!(
        !texts[3].contains("fix") || texts[3].contains("[~] fix it"),
        "no goal is made up: {}",
        texts[3]
    );
}

#[test]
fn execute_view_puts_summaries_below_the_dialogue() {
    let built = build(
        &conversation("ΣU"),
        Api::OpenaiChat,
        &ExecutionState::default(),
    );
    assert!(
        texts(&built)[1].ends_with("user: \"input 1\"\n\nsummary 0"),
        "{}",
        texts(&built)[1]
    );
}

const APIS: [Api; 4] = [
    Api::OpenaiChat,
    Api::OpenaiResponses,
    Api::Anthropic,
    Api::Gemini,
];

/// Returns an assistant message with text and a call, and the call's result.
fn step(number: usize, said: &str, path: &str) -> Vec<Arc<Entry>> {
    let id_of_call = number.to_string();
    let parts = vec![
        Part::from_text(said),
        call(&id_of_call, "read_file", &format!(r#"{{"path":"{path}"}}"#)),
    ];
    let parts = if said.is_empty() {
        parts[1..].to_vec()
    } else {
        parts
    };
    vec![
        entry(Message::new(id(number), Role::Assistant, parts, at(number))),
        result(
            number + 1,
            &id_of_call,
            Envelope::success(format!("1\tcontent of {path}")),
        ),
    ]
}

fn known_state() -> ExecutionState {
    ExecutionState {
        max_replies: None,
        mode: "auto".into(),
        plan_step: Some(PlanStep {
            step: "move the first".into(),
            done_when: "the next item can begin: report".into(),
        }),
        tasks: vec![
            "background task t1 (make): running".into(),
            "session s1 (python): running".into(),
        ],
        last_write: Some("calendar.md".into()),
    }
}

/// Returns a goal, work on it, a lost connection, a bare "continue", and more work.
fn interrupted_and_continued_round() -> Vec<Arc<Entry>> {
    let mut history = vec![text(
        1,
        Role::User,
        "Find the double bookings, then move the second of each.",
    )];
    history.extend(step(2, "I look for them first.", "calendar.md"));
    history.push(text(4, Role::Assistant, "Two found."));
    let joined =
        Message::from_text(id(5), Role::User, "continue", at(5)).with_origin(Origin::Joined);
    history.push(entry(joined));
    history.extend(step(6, "Going on with the first.", "rooms.md"));
    history
}

#[test]
fn execute_view_shows_a_continued_round_in_order() {
    for api in APIS {
        let texts = texts(&build_with_policy(
            &Policy::default(),
            &interrupted_and_continued_round(),
            api,
            &known_state(),
        ));
        let five = "user: \"Find the double bookings, then move the second of each.\"\n\
                    assistant: \"I look for them first.\"\nassistant: \"Two found.\"\nuser: \"continue\"\n\
                    assistant: \"Going on with the first.\"";
        let lines: Vec<_> = texts[1]
            .lines()
            .filter(|line| line.starts_with("user: ") || line.starts_with("assistant: "))
            .collect();
        assert_eq!(lines.join("\n"), five, "{api:?}: {}", texts[1]);
        assert!(!texts[1].contains("folded"), "{api:?}: {}", texts[1]);
        for said in [
            "1. tool_call: read_file {\"path\":\"calendar.md\"}",
            "content of calendar.md",
            "2. tool_call",
            "content of rooms.md",
        ] {
            assert!(texts[2].contains(said), "{api:?}: {said}: {}", texts[2]);
        }
        let state = "round: 1 of no limit\nmode: auto\nplan step: move the first\ndone when: the next item can begin: report\n\
                     task: background task t1 (make): running\ntask: session s1 (python): running\nlast write: calendar.md\n";
        assert!(texts[3].contains(state), "{api:?}: {}", texts[3]);
        assert!(
            texts[3].contains("<system-reminder>\n## TODO List"),
            "{api:?}: reminders are part of it"
        );
    }
}

#[test]
fn execute_view_keeps_the_goal_and_all_user_text_after_a_long_round() {
    let mut history = interrupted_and_continued_round();
    for number in 0..40 {
        history.extend(step(
            10 + 2 * number,
            &format!("Utterance {number}."),
            &format!("f{number}.md"),
        ));
    }
    history.push(text(100, Role::User, "Now write the report."));
    for api in APIS {
        let texts = texts(&build_with_policy(
            &Policy::default(),
            &history,
            api,
            &known_state(),
        ));
        for said in [
            "Find the double bookings, then move the second of each.",
            "continue",
            "Now write the report.",
        ] {
            assert!(
                texts[1].contains(&format!("user: \"{said}\"")),
                "{api:?}: {said}: {}",
                texts[1]
            );
        }
        let shown = texts[1]
            .lines()
            .filter(|line| line.starts_with("assistant: "))
            .count();
        assert_eq!(
            shown, 27,
            "{api:?}: thirty in all, with what the user said: {}",
            texts[1]
        );
        assert!(
            texts[1].contains("(16 older utterances and 41 older steps are folded.)"),
            "{api:?}: {}",
            texts[1]
        );
        let digest = texts[1]
            .lines()
            .filter(|line| line.starts_with("- read_file ") && line.ends_with(": success"))
            .count();
        assert_eq!(digest, 41, "{api:?}: a line for each step: {}", texts[1]);
        assert!(
            texts[2].contains("1. observation: read_file (success)\n1\tcontent of f39.md"),
            "{api:?}: {}",
            texts[2]
        );
        assert!(
            texts[3].contains("round: 2 of no limit"),
            "{api:?}: {}",
            texts[3]
        );
    }
}

#[test]
fn execute_state_shows_the_limit_of_replies() {
    let state = ExecutionState {
        max_replies: Some(20),
        ..ExecutionState::default()
    };
    let texts = texts(&build_with_policy(
        &Policy::default(),
        &interrupted_and_continued_round(),
        Api::OpenaiChat,
        &state,
    ));
    assert!(
        texts[3].contains("round: 1, reply 4 of 20\n"),
        "{}",
        texts[3]
    );
}
