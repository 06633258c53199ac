use std::sync::Mutex;

use async_trait::async_trait;
use haft_tool::{AgentReport, Evidence, StartedAgent, WorkPlace};
use haft_types::{Outcome, ToolStatus, Usage};
use serde_json::{Value, json};

use super::*;
use crate::testing::Bench;

/// Sub-agents that only record their assignments.
#[derive(Default)]
struct Asked(Mutex<Vec<(WorkOrder, Vec<Assignment>)>>);

#[async_trait]
impl SubAgents for Asked {
    fn agent_names(&self) -> Vec<String> {
        vec!["reviewer".into(), "tester".into()]
    }

    async fn run_assignments(
        &self,
        _context: &ToolContext,
        order: WorkOrder,
        work: Vec<Assignment>,
    ) -> Result<Vec<AgentReport>, UnknownAgent> {
        if let Some(unknown) = work
            .iter()
            .find(|one| !self.agent_names().contains(&one.name))
        {
            return Err(UnknownAgent {
                name: unknown.name.clone(),
                names: self.agent_names(),
            });
        }
        let report = |one: &Assignment| AgentReport {
            name: one.name.clone(),
            outcome: if one.task == "fail" {
                Outcome::Failed
            } else {
                Outcome::Completed
            },
            code: "x".into(),
            message: "It broke.".into(),
            answer: format!("did {}", one.task),
            conversation: Some("c-1".into()),
            evidence: vec![Evidence {
                id: "1a2b3c4d".into(),
                what: "read_file a.rs".into(),
            }],
            merged: if one.place == Some(WorkPlace::Worktree) {
                "Merged into the project: `a`.".into()
            } else {
                String::new()
            },
            changes: Vec::new(),
            turns: 2,
            usage: Usage::default(),
            cost: None,
        };
        let reports = work.iter().map(report).collect();
        self.0.lock().unwrap().push((order, work));
        Ok(reports)
    }

    async fn start_assignments(
        &self,
        _context: &ToolContext,
        work: Vec<Assignment>,
    ) -> Result<Vec<StartedAgent>, UnknownAgent> {
        let started = |one: &Assignment| StartedAgent {
            name: one.name.clone(),
            conversation: "c-1".into(),
        };
        let agents = work.iter().map(started).collect();
        self.0.lock().unwrap().push((WorkOrder::Background, work));
        Ok(agents)
    }
}

async fn call_tool(arguments: Value) -> (ToolOutput, Vec<(WorkOrder, Vec<Assignment>)>) {
    let asked = Arc::new(Asked::default());
    let tool = define_tool(Arc::<Asked>::clone(&asked) as _);
    let output = Bench::new().run(&tool, arguments).await;
    let given = asked.0.lock().unwrap().clone();
    (output, given)
}

fn task(name: &str, task: &str) -> Assignment {
    Assignment {
        name: name.into(),
        task: task.into(),
        conversation: None,
        place: None,
    }
}

#[tokio::test]
async fn run_named_subagents_accepts_yaml_text_and_objects() {
    let yaml = "mode: serial\nsubagents:\n  - name: reviewer\n    task: |\n      look: here\n  - {name: tester, task: try}\n";
    let object = json!({"mode": "serial", "subagents": [{"name": "reviewer", "task": "look: here"}, {"name": "tester", "task": "try"}]});
    for written in [json!(yaml), object] {
        let (output, given) = call_tool(json!({ "subagents": written })).await;
        assert_eq!(
            output.envelope.status,
            ToolStatus::Success,
            "{}",
            output.envelope.text
        );
        assert_eq!(
            given,
            [(
                WorkOrder::Serial,
                vec![task("reviewer", "look: here"), task("tester", "try")]
            )]
        );
    }
    let written =
        "- {name: tester, task: try, worktree: true}\n- {name: tester, task: try, worktree: false}";
    let (output, given) = call_tool(json!({ "subagents": written })).await;
    let places: Vec<_> = given[0].1.iter().map(|one| one.place).collect();
    assert_eq!(
        places,
        [Some(WorkPlace::Worktree), Some(WorkPlace::Project)]
    );
    assert!(
        output
            .envelope
            .text
            .contains("\n\nMerged into the project: `a`.\n\nEvidence"),
        "{}",
        output.envelope.text
    );
    let (_, given) =
        call_tool(json!({"subagents": "- {name: tester, task: try, conversation: c-9}"})).await;
    let full = Assignment {
        conversation: Some("c-9".into()),
        ..task("tester", "try")
    };
    assert_eq!(
        given,
        [(WorkOrder::Parallel, vec![full])],
        "parallel is the default"
    );
}

#[tokio::test]
async fn run_named_subagents_rejects_invalid_input_without_starting_any() {
    for (written, says) in [
        (
            "mode: both\nsubagents: [{name: tester, task: x}]",
            "not `both`",
        ),
        ("subagents: []", "empty"),
        ("subagents: [{name: tester}]", "task"),
        ("subagents: [{name: tester, task: ' '}]", "entry 1"),
        ("subagents: [{name: tester, task: x, tasc: y}]", "tasc"),
        ("subagents: [", "YAML"),
        ("just words", "YAML"),
        ("subagents: [{name: teter, task: x}]", "no agent `teter`"),
    ] {
        let (output, given) = call_tool(json!({ "subagents": written })).await;
        let text = &output.envelope.text;
        assert_eq!(
            (output.envelope.status, given.len()),
            (ToolStatus::Error, 0),
            "{written}"
        );
        assert!(
            text.contains(says) && text.contains("reviewer, tester"),
            "{written}: {text}"
        );
    }
}

#[tokio::test]
async fn run_named_subagents_reports_failures_beside_the_answers() {
    let (output, _) = call_tool(
        json!({"subagents": "- {name: tester, task: fail}\n- {name: reviewer, task: look}"}),
    )
    .await;
    assert_eq!(output.envelope.status, ToolStatus::Partial);
    assert_eq!(
        output.envelope.text,
        "## tester: failed\n\nIt broke.\n\ndid fail\n\nEvidence: 1a2b3c4d (read_file a.rs)\nConversation: c-1\n\n\
         ## reviewer: completed\n\ndid look\n\nEvidence: 1a2b3c4d (read_file a.rs)\nConversation: c-1"
    );
    let (output, _) = call_tool(json!({"subagents": "- {name: tester, task: fail}"})).await;
    assert_eq!(output.envelope.status, ToolStatus::Error);
}

#[tokio::test]
async fn run_named_subagents_names_background_agents_in_the_result() {
    let (output, given) = call_tool(json!({"subagents": "mode: background
subagents: [{name: tester, task: x}]"}))
    .await;
    assert_eq!(given[0].0, WorkOrder::Background);
    assert!(
        output.envelope.text.contains(
            "- `tester`
  Conversation: c-1"
        ),
        "{}",
        output.envelope.text
    );
    let started = StartedAgent {
        name: "tester".into(),
        conversation: "c-1".into(),
    };
    assert_eq!(parse_background_agents(&output.envelope), [started]);
    let (waited, _) = call_tool(json!({"subagents": "subagents: [{name: tester, task: x}]"})).await;
    assert_eq!(parse_background_agents(&waited.envelope), []);
}
