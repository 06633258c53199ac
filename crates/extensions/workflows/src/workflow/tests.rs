use std::path::PathBuf;

use super::*;
use haft_project::agents::AgentTools;

fn read_workflow(text: &str) -> Result<Workflow, Vec<String>> {
    let wrong = |problems: Vec<FileProblem>| problems.iter().map(FileProblem::to_string).collect();
    parse_workflow(Path::new("w.yaml"), Level::Project, text.to_owned()).map_err(wrong)
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const GOOD: &str = "\
description: Look, then mend
inputs:
  area: src
  ticket:
steps:
  - name: look
    agent: reviewer
    prompt: Look at {{ inputs.area }}.
  - name: count
    model: mock/small
    prompt: |
      Count.
  - name: mend
    needs: [look, count]
    prompt: |
      {{ inputs.ticket }}
      {% for name, step in steps|items %}{{ name }}: {{ step.output }}
      {% endfor %}{{ steps.look.output }}
";

#[test]
fn workflow_is_read_whole_and_its_prompts_are_rendered() {
    let workflow = read_workflow(GOOD).unwrap();
    assert_eq!(
        (workflow.name.as_str(), workflow.description.as_str()),
        ("w", "Look, then mend")
    );
    assert_eq!(
        workflow.inputs,
        BTreeMap::from([("area".into(), Some("src".into())), ("ticket".into(), None)])
    );
    let last: Vec<_> = workflow
        .last_steps()
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(last, ["mend"]);
    let inputs = values(&[("area", "lib"), ("ticket", "T-1")]);
    let prompt = |name: &str, outputs: &[(&str, &str)]| {
        workflow
            .render_prompt(workflow.find_step(name).unwrap(), &inputs, &values(outputs))
            .unwrap()
    };
    assert_eq!(prompt("look", &[]), "Look at lib.");
    let outputs = [("count", "3"), ("look", "<{{ not a template }}>")];
    assert_eq!(
        prompt("mend", &outputs),
        "T-1\ncount: 3\nlook: <{{ not a template }}>\n<{{ not a template }}>"
    );
}

#[test]
fn workflow_errors_name_the_line() {
    let steps =
        |rest: &str| format!("steps:\n  - name: a\n    prompt: x\n  - name: b\n    {rest}\n");
    for (text, told) in [
        (
            "steps: [".to_owned(),
            &["w.yaml, line 1: it cannot be read"][..],
        ),
        (
            "stepz: []".to_owned(),
            &["w.yaml, line 1: it cannot be read: unknown field `stepz`"],
        ),
        ("steps: []".to_owned(), &["w.yaml, line 1: it has no steps"]),
        (steps("needs: [a]"), &["missing field `prompt`"]),
        (
            steps("needs:\n      - a\n      - nowhere\n    prompt: y"),
            &["line 7: `b` needs `nowhere`, which is no step; there are: a, b"],
        ),
        (
            steps("needs: [b]\n    prompt: y"),
            &["line 5: `b` needs itself"],
        ),
        (
            steps("prompt: y\n  - name: a\n    prompt: z"),
            &["line 6: there is a step `a` already, in line 2"],
        ),
        (
            steps("prompt: ' '\n  - name: c-d\n    prompt: z"),
            &[
                "line 5: the prompt of `b` is empty",
                "line 6: `c-d` is not a name",
            ],
        ),
        (
            steps("prompt: '{{ steps.a.output }}'"),
            &["line 5: the prompt mentions `steps.a.output`, but `b` does not need `a`"],
        ),
        (
            steps("prompt: |\n      one\n      two {{ inputs.x }}"),
            &["line 7: the prompt mentions `inputs.x`, which is not among"],
        ),
        (
            steps("prompt: '{{ nothing }}'"),
            &["line 5: the prompt mentions `nothing`"],
        ),
        (
            steps("prompt: |\n      one\n      {% if %}"),
            &["line 7: the template cannot be used: syntax error"],
        ),
        (
            "steps:\n  - name: main\n    prompt: x\n".to_owned(),
            &["line 2: a step cannot be called `main`"],
        ),
    ] {
        let problems = read_workflow(&text).unwrap_err();
        assert_eq!(problems.len(), told.len(), "{text}\n{problems:?}");
        for (problem, told) in problems.iter().zip(told) {
            assert!(problem.contains(told), "{text}\n{problem}");
        }
    }
}

#[test]
fn workflow_cycle_is_reported_as_a_path() {
    let text = "\
steps:
  - {name: start, prompt: x}
  - {name: a, prompt: x, needs: [start, c]}
  - {name: b, prompt: x, needs: [a]}
  - {name: c, prompt: x, needs: [b]}
  - {name: after, prompt: x, needs: [c]}
";
    let problems = read_workflow(text).unwrap_err();
    assert_eq!(
        problems,
        ["w.yaml, line 3: steps wait for each other: `a` needs `c` needs `b` needs `a`"]
    );
}

#[test]
fn prompt_may_mention_indirectly_needed_steps() {
    let text = "\
steps:
  - {name: a, prompt: x}
  - {name: b, prompt: x, needs: [a]}
  - {name: c, prompt: '{{ steps.a.output }}', needs: [b]}
";
    assert!(read_workflow(text).is_ok(), "{:?}", read_workflow(text));
}

#[test]
fn prompt_stops_an_endless_template() {
    let text = "\
steps:
  - name: a
    prompt: |
      one
      {% for i in range(9999) %}{% for j in range(9999) %}{{ j }}{% endfor %}{% endfor %}
";
    let workflow = read_workflow(text).unwrap();
    let problem = workflow
        .render_prompt(&workflow.steps[0], &BTreeMap::new(), &BTreeMap::new())
        .unwrap_err();
    assert_eq!(
        problem.to_string(),
        "w.yaml, line 5: the template takes too long; loop over less"
    );
}

#[test]
fn agents_that_are_missing_or_have_no_role_are_reported() {
    let agent = |name: &str, role: &str| AgentDefinition {
        name: name.into(),
        description: String::new(),
        tools: AgentTools::All,
        model: None,
        include_rules: false,
        worktree: false,
        fork: false,
        system_prompt: None,
        role: role.into(),
        path: PathBuf::from("/p/mute.md"),
        level: Level::Project,
    };
    let workflow = read_workflow("steps:\n  - {name: a, prompt: x, agent: mute}\n  - name: b\n    prompt: x\n    agent: gone\n  - {name: c, prompt: x, agent: good}\n").unwrap();
    let agents = NamedItems {
        items: vec![agent("good", "A role."), agent("mute", "")],
        shadowed: Vec::new(),
    };
    let told: Vec<_> = workflow
        .find_agent_problems(&agents)
        .iter()
        .map(FileProblem::to_string)
        .collect();
    assert_eq!(
        told,
        [
            "w.yaml, line 2: the agent `mute` has no role definition; write one in `/p/mute.md`",
            "w.yaml, line 5: there is no agent `gone`; there are: good, mute",
        ]
    );
}
