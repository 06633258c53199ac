use std::path::PathBuf;

use haft_project::Level;
use haft_project::agents::AgentTools;

use super::*;

fn agent(name: &str, description: &str, tools: AgentTools) -> AgentDefinition {
    AgentDefinition {
        name: name.into(),
        description: description.into(),
        tools,
        model: None,
        include_rules: false,
        worktree: false,
        fork: false,
        system_prompt: None,
        role: "A role.".into(),
        path: PathBuf::from("/p/a.md"),
        level: Level::Project,
    }
}

#[test]
fn listed_ends_in_an_example_of_each_mode() {
    let agents = [
        agent("alpha", "Finds\n  things", AgentTools::All),
        agent(
            "beta",
            "Says why.",
            AgentTools::Only(vec!["read_file".into(), "glob".into()]),
        ),
        agent("gamma", "Thinks.", AgentTools::Only(Vec::new())),
    ];
    insta::assert_snapshot!(listing::describe_agents(&agents, &Masker::default()).to_string());
}

#[test]
fn running_names_number_repeated_agents() {
    let work = ["a", "b", "a", "a"].map(|name| Assignment {
        name: name.into(),
        task: "x".into(),
        conversation: None,
        place: None,
    });
    assert_eq!(unique_names(&work, &[]), ["a", "b", "a-2", "a-3"]);
}

#[test]
fn child_id_is_stable_and_depends_on_each_argument() {
    let one = ConversationId::new("1");
    let other = ConversationId::new("2");
    let reply = |number: u32| {
        format!("{number:08x}-0000-4000-8000-000000000000")
            .parse::<MessageId>()
            .unwrap()
    };
    let id = child_conversation_id(&one, reply(1), "c", 0);
    assert_eq!(id, child_conversation_id(&one, reply(1), "c", 0));
    for different in [
        child_conversation_id(&other, reply(1), "c", 0),
        child_conversation_id(&one, reply(2), "c", 0),
        child_conversation_id(&one, reply(1), "d", 0),
        child_conversation_id(&one, reply(1), "c", 1),
    ] {
        assert_ne!(id, different);
    }
}
