use std::path::Path;

use crate::workflow::{Workflow, parse_workflow};
use haft_project::{FileProblem, Level};

fn read_workflow(text: &str) -> Result<Workflow, Vec<String>> {
    let wrong = |problems: Vec<FileProblem>| problems.iter().map(FileProblem::to_string).collect();
    parse_workflow(Path::new("w.yaml"), Level::Project, text.to_owned()).map_err(wrong)
}

/// A file with one step `a` and these lines in the step, indented by six spaces.
fn one_step(lines: &str) -> String {
    format!(
        "kind: SubagentWorkflow\nspec:\n  agents:\n    - id: x\n      path: x.md\n  steps:\n    - id: a\n      agent: x\n{lines}"
    )
}

const WHOLE: &str = "\
apiVersion: autocoder/v1
kind: SubagentWorkflow
metadata:
  name: whole
  description: Find, then change
spec:
  globals:
    model: v3_chat
    product_mode: lite
    include_rules: false
  vars:
    area: src
    depth: 2
  conversation:
    default_action: resume
  attempt:
    format: text
  agents:
    - id: finder
      path: ./.autocoderagents/find-files.md
      runner: terminal
    - id: writer
      path: writer.md
      model: big
  steps:
    - id: find-files
      agent: finder
      replicas: 2
      conversation:
        action: new
      with:
        user_input: |
          ${vars.query} in ${vars.area}, {{ not a template }} {% raw %} ${HOME}
      outputs:
        found: \"${attempt_result}\"
        files: \"$.files\"
        talk: \"${conversation_id}\"
    - id: change
      needs: [find-files]
      agent: writer
      conversation:
        action: continue
      with:
        user_input: Change ${steps.find-files.outputs.found}
    - id: check
      needs: [change]
      agent: writer
      with:
        user_input: Check (${steps.find-files.outputs.files}) [${steps.find-files.outputs.talk}].
";

#[test]
fn file_becomes_a_workflow_with_replicas_and_outputs() {
    let workflow = read_workflow(WHOLE).unwrap();
    assert_eq!(workflow.description, "Find, then change");
    let inputs: Vec<_> = workflow.inputs.clone().into_iter().collect();
    assert_eq!(
        inputs,
        [
            ("area".to_owned(), Some("src".to_owned())),
            ("depth".to_owned(), Some("2".to_owned())),
            ("query".to_owned(), None),
        ]
    );
    let steps: Vec<_> = workflow
        .steps
        .iter()
        .map(|step| {
            let agent = step.agent.as_deref().unwrap();
            let model = step.model.as_deref().unwrap();
            format!("{} {agent} {model} {:?}", step.name, step.needs)
        })
        .collect();
    assert_eq!(
        steps,
        [
            "find_files find-files v3_chat []",
            "find_files_2 find-files v3_chat []",
            "change writer big [\"find_files\", \"find_files_2\"]",
            "check writer big [\"change\"]",
        ]
    );
    let values = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let inputs = values(&[("area", "lib"), ("query", "Fix {{ x }}"), ("depth", "2")]);
    let outputs = values(&[
        ("find_files", "a.py ${vars.area}"),
        ("find_files_2", "b.py"),
        ("change", "Changed."),
    ]);
    let prompt = |name: &str| {
        let step = workflow.find_step(name).unwrap();
        workflow.render_prompt(step, &inputs, &outputs).unwrap()
    };
    assert_eq!(
        prompt("find_files_2"),
        "Fix {{ x }} in lib, {{ not a template }} {% raw %} ${HOME}"
    );
    assert_eq!(prompt("change"), "Change a.py ${vars.area}\n\nb.py");
    assert_eq!(
        prompt("check"),
        "Check (a.py ${vars.area}\n\nb.py) [].\n\n<step_output name=\"change\">\nChanged.\n</step_output>"
    );
}

#[test]
fn notices_name_everything_that_is_left_out() {
    let workflow = read_workflow(WHOLE).unwrap();
    let notices: Vec<_> = workflow.notices.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(notices.join("\n"), @"
    w.yaml: `spec.agents.finder.runner`, `spec.globals.product_mode` have no counterpart in haft and are left out
    w.yaml: `steps.find-files.outputs.files` in the prompt of the step `check` is the whole answer of the step `find-files`: haft does not take an answer apart
    w.yaml: `steps.find-files.outputs.talk` in the prompt of the step `check` is left empty: prompts get no ids of conversations
    w.yaml: the steps `change`, `check` continue a conversation in auto-coder; in haft, each step has its own conversation and gets the answers of the steps it needs
    ");
    let plain = one_step("      with:\n        user_input: Go.\n");
    assert_eq!(read_workflow(&plain).unwrap().notices, []);
}

#[test]
fn files_that_would_mean_something_else_are_rejected() {
    let input = "      with:\n        user_input: Go.\n";
    let agent = |path: &str| one_step(input).replace("path: x.md", &format!("path: {path}"));
    let files = [
        one_step(&format!("{input}      when: {{regex: yes}}\n")),
        one_step(input).replace("agent: x", "agent: nobody"),
        agent("../../etc/passwd.md"),
        agent("/etc/agents/x.md"),
        agent("."),
        one_step(&format!("      replicas: 9\n{input}")),
        one_step(&format!("      replicas: 0\n{input}")),
        one_step("      with:\n        user_input: ${steps.gone.outputs.x}\n"),
        one_step("      needs: [gone]\n      with:\n        user_input: Go.\n"),
        one_step(input).replace("SubagentWorkflow", "Job"),
        one_step("      with: {}\n"),
        one_step("      with:\n        user_input: ${vars.a-b}\n"),
        "apiVersion: autocoder/v1\nkind: SubagentWorkflow\nspec:\n  steps: []\n".to_owned(),
        "apiVersion: autocoder/v1\n".to_owned(),
        format!(
            "{}    - id: b\n      agent: x\n      with:\n        user_input: ${{steps.a.outputs.x}}\n",
            one_step(input)
        ),
    ];
    let told: Vec<_> = files
        .iter()
        .map(|text| read_workflow(text).unwrap_err().join("\n"))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    w.yaml, line 7: `when` of the step `a` has no counterpart: the step would always run; remove it, or write the workflow anew in haft's format
    w.yaml, line 8: `spec.agents` has no agent with the id `nobody`
    w.yaml, line 8: the path `../../etc/passwd.md` of the agent `x` is not a file of a folder for agents
    w.yaml, line 8: the path `/etc/agents/x.md` of the agent `x` is not a file of a folder for agents
    w.yaml, line 8: the path `.` of the agent `x` is not a file of a folder for agents
    w.yaml, line 7: `replicas` of the step `a` is 9, which is not from 1 to 8
    w.yaml, line 7: `replicas` of the step `a` is 0, which is not from 1 to 8
    w.yaml, line 10: the prompt mentions `steps.gone.outputs.x`, but there is no step `gone`
    w.yaml, line 9: `a` needs `gone`, which is no step; there are: a
    w.yaml, line 1: its kind is `Job`; haft reads workflows of the kind `SubagentWorkflow`
    w.yaml, line 9: it cannot be read: missing field `user_input`
    w.yaml, line 1: `a-b` is not a name for an input: use letters, digits and `_`
    w.yaml, line 1: it has no steps
    w.yaml, line 1: it cannot be read: missing field `spec`
    w.yaml, line 14: the prompt mentions `steps.a.output`, but `b` does not need `a`
    ");
}
