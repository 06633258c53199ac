use haft_types::{Envelope, ModelSpec, Thinking};

use super::*;
use crate::testing::{Quarter, at, call, conversation, entry, id, model, result, system, text, tool_set};
use crate::{Assembly, Document, DocumentKind, Documents, Need, PlanStep, Policy, Reminders, View, assemble};

fn build(history: &[Arc<Entry>], api: Api, execution: &ExecutionState) -> Assembly {
    let policy = Policy { view: View::Execute, dialogue: 4, ..Policy::default() };
    let (system, model, tools) = (system(), ModelSpec { api, ..model() }, tool_set(&["read_file", "write_to_file"]));
    let rules = Document {
        kind: DocumentKind::Rules,
        heading: "style.md".into(),
        text: "Be brief.".into(),
        need: Need::Always,
    };
    let documents = Documents::new(vec![rules], &Quarter);
    let reminders = Reminders { todo: Some("- [~] fix it".into()), ..Reminders::default() };
    assemble(&Snapshot {
        documents: Some(&documents),
        reminders: Some(&reminders),
        execution: Some(execution),
        ..Snapshot::new(&model, &policy, &system, &tools, history, &Quarter)
    })
    .unwrap()
}

fn texts(assembly: &Assembly) -> Vec<String> {
    assembly.request.segments.iter().map(|segment| segment.entry.message.joined_text()).collect()
}

/// Older talk, then a running round with a thought, speech beside a call, and two results.
fn story() -> Vec<Arc<Entry>> {
    let mut history = conversation("UATaUa");
    let parts = vec![
        Part::Thinking(Thinking { text: "I must look.".into(), ..Thinking::default() }),
        Part::text("I will read both."),
        call("1", "read_file", r#"{"path":"a"}"#),
        call("2", "read_file", r#"{"path":"b"}"#),
    ];
    history.push(text(10, Role::User, "fix \"it\"\nnow"));
    history.push(entry(Message::new(id(11), Role::Assistant, parts, at(11))));
    history.push(result(12, "1", Envelope::success("1\tone")));
    history.push(result(13, "2", Envelope::failure("not_found", "`b` does not exist")));
    history
}

#[test]
fn four_messages() {
    let state = ExecutionState {
        max_rounds: Some(20),
        mode: "auto".into(),
        plan_step: Some(PlanStep { step: "read the files".into(), done_when: "both are known".into() }),
        tasks: vec!["build (running)".into()],
        last_write: Some("src/a.rs".into()),
    };
    let built = build(&story(), Api::OpenaiChat, &state);
    let roles: Vec<_> = built.request.segments.iter().map(|one| one.entry.message.role).collect();
    assert_eq!(roles, [Role::System, Role::Assistant, Role::Assistant, Role::System]);
    let texts = texts(&built);
    assert!(texts[0].contains("Be brief.") && texts[0].contains("- read_file: Does something"), "{}", texts[0]);
    insta::assert_snapshot!(texts[1..].join("\n\n--------\n\n"));
}

#[test]
fn tagged_user_messages_where_the_shape_is_not_taken() {
    for api in [Api::Anthropic, Api::Gemini] {
        let built = build(&story(), api, &ExecutionState::default());
        assert!(built.request.segments[1..].iter().all(|one| one.entry.message.role == Role::User));
        let texts = texts(&built);
        for (text, tag) in texts[1..].iter().zip(["dialogue", "window", "state"]) {
            assert!(text.starts_with(&format!("<{tag}>\n")) && text.ends_with(&format!("\n</{tag}>")), "{text}");
        }
    }
}

#[test]
fn a_bare_continue_sees_the_chain_of_intent() {
    let history: Vec<_> = story().into_iter().chain([text(20, Role::User, "continue")]).collect();
    let built = build(&history, Api::OpenaiChat, &ExecutionState::default());
    let texts = texts(&built);
    let folded = "user: \"continue\"\n\n(3 older utterances and 3 older steps are folded.)\n- read_file a: success\n";
    assert!(texts[1].contains(folded), "{}", texts[1]);
    assert!(texts[1].contains(r#"user: "fix \"it\"\nnow""#), "{}", texts[1]);
    assert!(texts[2].ends_with("No step has been taken yet."), "{}", texts[2]);
    assert!(!texts[3].contains("fix") || texts[3].contains("[~] fix it"), "no goal is made up: {}", texts[3]);
}

#[test]
fn summaries_stand_below_the_dialogue() {
    let built = build(&conversation("ΣU"), Api::OpenaiChat, &ExecutionState::default());
    assert!(texts(&built)[1].ends_with("user: \"input 1\"\n\nsummary 0"), "{}", texts(&built)[1]);
}
