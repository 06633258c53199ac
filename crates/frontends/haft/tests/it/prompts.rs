//! The whole first request, tool descriptions included, for every protocol, mode, view and tool
//! set: it names no tool that is not available. Contradictions between two statements are tested in
//! the crate that builds the prompt.

use std::collections::BTreeSet;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::Value;

use crate::rig::{MODEL, Rig};

/// A way to start haft that changes the request.
struct Profile {
    name: String,
    protocol: &'static str,
    arguments: Vec<&'static str>,
}

fn profiles() -> Vec<Profile> {
    let ways: [(&str, &[&str]); 7] = [
        ("ask", &["--permission-mode", "ask"]),
        ("plan", &["--permission-mode", "plan"]),
        ("yolo", &["--permission-mode", "yolo"]),
        ("execute view", &["--set", "context.view=execute"]),
        ("minimal tools", &["--allowed-tools", "minimal"]),
        ("read-only tools", &["--allowed-tools", "read-only"]),
        ("a goal", &["--goal", "all tests pass", "--max-turns", "1"]),
    ];
    let all = ["native", "xml", "react"].into_iter().flat_map(|protocol| {
        ways.iter().map(move |(name, arguments)| {
            let name = format!("{protocol}, {name}");
            Profile {
                name,
                protocol,
                arguments: arguments.to_vec(),
            }
        })
    });
    all.collect()
}

/// Returns the text of the first request of a run, and the names of the tools that are offered
/// through the API.
fn first_request(profile: &Profile) -> (String, BTreeSet<String>) {
    let answer = match profile.protocol {
        "xml" => "<attempt_completion><result>Done.</result></attempt_completion>",
        "react" => "Action: Finish[Done.]",
        _ => "Done.",
    };
    let rig = Rig::new(
        Api::OpenaiChat,
        Script::replies([Reply::text(answer), Reply::text(answer)]).unwrap(),
    );
    rig.configure(&format!(
        "model = \"mock/{MODEL}\"\n\
         [providers.mock]\napi = \"openai-chat\"\nbase_url = \"{}\"\n\
         [models.\"mock/{MODEL}\"]\ncontext_window = 200000\nmax_output_tokens = 8192\ntool_protocol = \"{}\"\n",
        rig.server.base_url(Api::OpenaiChat),
        profile.protocol
    ));
    rig.write("AGENTS.md", "Tests are run with `make check`.\n");
    let mut arguments = vec!["run", "--output-format", "stream-json"];
    arguments.extend(&profile.arguments);
    if !arguments.contains(&"--goal") {
        arguments.push("What is this?");
    }
    let ran = rig.run(&arguments);
    let generations = rig.server.generation_requests();
    let sent = generations
        .first()
        .unwrap_or_else(|| panic!("{}: nothing was sent: {}", profile.name, ran.stderr()));
    let body: Value = serde_json::from_slice(&sent.body).unwrap();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
    };
    let messages: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    let tools = body["tools"].as_array().into_iter().flatten();
    let names = tools
        .clone()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect();
    let descriptions: Vec<_> = tools.map(|tool| tool["function"].to_string()).collect();
    (
        format!(
            "{}\n{}",
            messages.join("\n"),
            descriptions.join("\n").replace("\\n", "\n")
        ),
        names,
    )
}

/// Returns the names in backticks.
fn names_in_backticks(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn first_request_names_only_callable_tools() {
    let listed = Rig::new(Api::OpenaiChat, Script::replies([]).unwrap())
        .run(&["tools", "list", "--json"])
        .json();
    let rows = listed
        .as_array()
        .or_else(|| listed["tools"].as_array())
        .expect("a list of tools")
        .clone();
    let known: BTreeSet<String> = rows
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(known.contains("undo_edit") && known.len() > 30, "{known:?}");
    let mut wrong = Vec::new();
    for profile in profiles() {
        let (text, mut offered) = first_request(&profile);
        if profile.protocol != "native" {
            offered = known
                .iter()
                .filter(|name| text.contains(&format!("## {name}\n")))
                .cloned()
                .collect();
        }
        assert!(!offered.is_empty(), "{}: no tool is offered", profile.name);
        // A deferred tool can be called, too; it is named in the description of the tool that calls
        // it.
        let indirect = offered.contains("use_tool");
        let named = names_in_backticks(&text);
        let absent = known
            .iter()
            .filter(|name| named.contains(name.as_str()) && !offered.contains(*name) && !indirect);
        wrong.extend(absent.map(|name| format!("{}: `{name}`", profile.name)));
    }
    assert!(wrong.is_empty(), "named and not offered: {wrong:#?}");
}

#[test]
fn system_prompt_names_the_shell_that_runs_commands() {
    let (text, _) = first_request(&profiles()[0]);
    let shell = ["/bin/bash", "/usr/bin/bash"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    let line = format!("Shell of commands: {}", shell.unwrap_or("/bin/sh"));
    assert!(text.contains(&line), "{line}: {text}");
}

#[test]
fn ask_followup_question_is_not_offered_headless() {
    for profile in profiles()
        .into_iter()
        .filter(|profile| profile.protocol == "native")
    {
        let (text, offered) = first_request(&profile);
        assert!(
            !offered.contains("ask_followup_question"),
            "{}: offered",
            profile.name
        );
        assert!(
            !names_in_backticks(&text).contains("ask_followup_question"),
            "{}: named",
            profile.name
        );
    }
}
