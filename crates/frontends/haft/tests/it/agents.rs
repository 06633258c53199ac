//! Sub-agents as seen from outside: their requests, events, conversations and ends.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use haft_testkit::{Gate, Reply, Script, Seen, SeenRole, When};
use haft_types::{Api, Usage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::terminal::WAIT_TIMEOUT;

/// One model for the main agent and one for each of three sub-agents, each behind a different
/// protocol.
const MODELS: [(&str, Api); 4] = [
    ("main", Api::Anthropic),
    ("alpha", Api::OpenaiChat),
    ("beta", Api::OpenaiResponses),
    ("gamma", Api::Gemini),
];

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    configure(&rig);
    rig
}

fn configure(rig: &Rig) {
    let model = |(name, api): (&str, Api)| {
        let base_url = rig.server.base_url(api);
        format!(
            "[providers.{name}]\napi = \"{api}\"\nbase_url = \"{base_url}\"\n[models.\"{name}/{name}\"]\n\
             context_window = 200000\nmax_output_tokens = 8192\n\
             price = {{ input = 1.0, cached_input = 0.1, cache_write = 1.0, output = 1.0 }}\n"
        )
    };
    let models = MODELS.map(model).concat();
    rig.configure(&format!(
        "model = \"main/main\"\n[retry]\nbase_delay_ms = 20\n{models}"
    ));
}

/// Writes an agent's file and trusts the project again.
fn write_agent(rig: &Rig, name: &str, head: &str, role: &str) {
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    let text = format!(
        "---\nname: {name}\ndescription: Looks closely\nmodel: {name}/{name}\n{head}\n---\n{role}\n"
    );
    rig.write(&format!(".haft/agents/{name}.md"), text);
    assert_eq!(rig.run(&["trust"]).code(), 0);
}

/// Restricts a reply to requests of `model` with this number of tool results.
fn reply_for(model: &str, results: usize, reply: Reply) -> Reply {
    let when = When {
        model: Some(model.into()),
        tool_results: Some(results),
        ..When::default()
    };
    reply.when(when)
}

fn start_agents(agents: &[&str]) -> Reply {
    let entries: String = agents
        .iter()
        .map(|name| format!("  - name: {name}\n    task: Look at notes.txt.\n"))
        .collect();
    Reply::call(
        "run_named_subagents",
        json!({"subagents": format!("mode: parallel\nsubagents:\n{entries}")}),
    )
}

fn requests_of(rig: &Rig, model: &str) -> Vec<Seen> {
    let all = rig.server.generation_requests();
    all.iter()
        .map(|request| request.decode().unwrap())
        .filter(|seen| seen.model == model)
        .collect()
}

fn main_results(ran: &Ran) -> Vec<Value> {
    let of_main = |event: &Value| event["type"] == "tool_result" && event["agent"] == "main";
    ran.events().into_iter().filter(of_main).collect()
}

#[test]
fn run_named_subagents_works_over_three_protocols_at_once() {
    let million = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let todo = |status: &str| {
        Reply::call(
            "todo_write",
            json!({"todos": [{"content": "Ship it", "status": status}]}),
        )
    };
    let mut replies = vec![
        reply_for("main", 0, todo("in_progress")),
        reply_for("main", 1, start_agents(&["gamma", "alpha", "beta"])),
        reply_for("main", 2, todo("completed")),
        reply_for("main", 3, Reply::text("All done.")),
    ];
    for (name, _) in &MODELS[1..] {
        replies.push(reply_for(
            name,
            0,
            Reply::call("read_file", json!({"path": "notes.txt"})),
        ));
        replies.push(
            reply_for(name, 1, Reply::text(format!("The word of {name}."))).with_usage(million),
        );
    }
    let rig = rig(replies);
    rig.write("notes.txt", "the secret of notes\n");
    rig.write("AGENTS.md", "Use tabs.\n");
    for (name, _) in &MODELS[1..] {
        write_agent(
            &rig,
            name,
            "tools: Read, attempt_completion",
            "You look very closely.",
        );
    }
    let ran = rig.task(&["do it"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("All done.")),
        "{}",
        ran.stderr()
    );
    assert!(
        rig.server.refusals().is_empty(),
        "{:?}",
        rig.server.refusals()
    );

    // The requests of the three agents are equal on every protocol.
    let [alpha, beta, gamma] = ["alpha", "beta", "gamma"].map(|name| requests_of(&rig, name));
    assert_eq!((alpha.len(), beta.len(), gamma.len()), (2, 2, 2));
    for (one, others) in alpha.iter().zip(beta.iter().zip(&gamma)) {
        for other in [others.0, others.1] {
            assert_eq!(one.difference(other), None, "{} and {}", one.api, other.api);
        }
    }
    assert!(
        alpha[0]
            .system
            .starts_with("You look very closely.\n\nOperating system: "),
        "{}",
        alpha[0].system
    );
    insta::assert_snapshot!(
        "messages_of_a_sub_agent",
        portable_messages(&rig, &alpha[1])
    );

    // The main agent's history holds the answers and nothing else of the sub-agents' work.
    let main = requests_of(&rig, "main");
    let last = main.last().unwrap();
    assert_eq!(
        (last.count_tool_results(), last.count_assistant_turns()),
        (3, 4)
    );
    let whole = format!("{last}");
    assert!(
        !whole.contains("the secret of notes") && !whole.contains("You look very closely"),
        "{whole}"
    );
    let result = main_results(&ran)[1]["text"].as_str().unwrap().to_owned();
    let order: Vec<_> = result
        .lines()
        .filter(|line| line.starts_with("## "))
        .collect();
    assert_eq!(
        order,
        [
            "## gamma: completed",
            "## alpha: completed",
            "## beta: completed"
        ]
    );
    assert!(result.contains("The word of beta."), "{result}");
    let messages = rig.export()["messages"].as_array().unwrap().len();
    assert_eq!(messages, 8, "the task, four replies, three results");

    // Events carry the agent and its conversation, sequence numbers have no gaps, and usage is
    // added up.
    let events = ran.events();
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1));
        let own = event["conversation_id"] == events[0]["conversation_id"];
        assert_eq!(own, event["agent"] == "main", "{event}");
    }
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (
            of("conversation").len(),
            of("result").len(),
            of("subagent").len()
        ),
        (1, 1, 6)
    );
    let finished = of("subagent")
        .into_iter()
        .find(|event| event["phase"] == "finished")
        .unwrap();
    assert_eq!(finished["result"]["outcome"], "completed", "{finished}");
    assert_eq!(finished["parent"], events[0]["conversation_id"]);
    let used = of("usage")
        .iter()
        .map(|event| event["usage"]["input"].as_u64().unwrap())
        .sum::<u64>();
    let spent = of("usage")
        .iter()
        .map(|event| event["cost"]["total"].as_f64().unwrap())
        .sum::<f64>();
    assert!(used >= 3_000_000);
    assert_eq!(ran.result()["usage"]["input"], used);
    assert!((ran.result()["cost"]["total"].as_f64().unwrap() - spent).abs() < 1e-6);

    // Each sub-agent has a conversation of its own, which the project's list omits.
    let listed = rig
        .run(&["conversations", "list", "--all", "--json"])
        .json();
    let children: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["name"] != "do it")
        .collect();
    assert_eq!((children.len(), listed.as_array().unwrap().len()), (3, 4));
    assert_eq!(
        rig.run(&["conversations", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let child = rig
        .run(&[
            "conversations",
            "export",
            children[0]["id"].as_str().unwrap(),
        ])
        .json();
    assert_eq!(child["metadata"]["parent"], events[0]["conversation_id"]);
    assert_eq!(child["metadata"]["call_id"], main_results(&ran)[1]["id"]);
}

/// Returns the messages of a request as text, without the parts that differ between machines.
fn portable_messages(rig: &Rig, seen: &Seen) -> String {
    let whole = format!("{seen}").replace(&rig.project().display().to_string(), "PROJECT");
    let messages = &whole[whole.find("\nuser: ").unwrap() + 1..];
    let same = |line: &&str| {
        !["Operating system:", "Shell:", "User:", "Home folder:"]
            .iter()
            .any(|word| line.starts_with(word))
    };
    messages.lines().filter(same).collect::<Vec<_>>().join("\n")
}

#[test]
fn run_named_subagents_rejects_unknown_names_and_empty_roles() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha", "nobody"])),
        reply_for("main", 1, start_agents(&["alpha", "beta"])),
        reply_for("main", 2, Reply::text("Done.")),
        reply_for("beta", 0, Reply::text("Here I am.")),
    ]);
    write_agent(&rig, "alpha", "", "");
    write_agent(&rig, "beta", "", "You are there.");
    let ran = rig.task(&["do it"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let results = main_results(&ran);
    assert_eq!(results[0]["error"]["code"], "unknown_agent");
    assert!(
        results[0]["text"]
            .as_str()
            .unwrap()
            .contains("There are: alpha, beta"),
        "{results:?}"
    );
    assert_eq!(results[1]["status"], "partial");
    let text = results[1]["text"].as_str().unwrap();
    assert!(
        text.contains("## alpha: failed")
            && text.contains(".haft/agents/alpha.md")
            && text.contains("Here I am."),
        "{text}"
    );
    assert!(requests_of(&rig, "alpha").is_empty());
    assert_eq!(
        requests_of(&rig, "beta").len(),
        1,
        "not for the call with the unknown name"
    );
}

#[test]
fn run_named_subagents_is_offered_to_the_main_agent_only() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for("alpha", 0, Reply::text("Nothing to do.")),
    ]);
    let offered = |seen: &Seen, name: &str| seen.tools.iter().any(|tool| tool.name == name);
    rig.task(&["look"]);
    assert!(!offered(
        &requests_of(&rig, "main")[0],
        "run_named_subagents"
    ));
    write_agent(&rig, "alpha", "", "You are there.");
    rig.task(&["look"]);
    let main = requests_of(&rig, "main");
    assert!(offered(main.last().unwrap(), "run_named_subagents"));
    assert!(
        main.last()
            .unwrap()
            .system
            .contains("- `alpha`: Looks closely. Tools: all."),
        "{}",
        main.last().unwrap().system
    );
    let alpha = &requests_of(&rig, "alpha")[0];
    assert!(offered(alpha, "read_file") && offered(alpha, "count_tokens"));
    for not in [
        "run_named_subagents",
        "todo_write",
        "talk_to",
        "talk_to_group",
    ] {
        assert!(!offered(alpha, not), "{not}");
    }
}

/// Runs a task, and opens the gate once `model` has received this number of requests.
fn task_with_gate(rig: &Rig, prompt: &str, gate: &Gate, (model, requests): (&str, usize)) -> Ran {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("the request that opens the gate", || {
                requests_of(rig, model).len() >= requests
            });
            gate.open();
        });
        rig.task(&[prompt])
    })
}

/// Waits until a condition holds.
#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WAIT_TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn talk_to_delivers_messages_between_parallel_agents() {
    let gate = Gate::default();
    let talk = |to: &str| Reply::call("talk_to", json!({"agent": to, "message": "Look left."}));
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha", "beta"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for("alpha", 0, talk("beta")),
        reply_for("alpha", 1, Reply::text("Said.")),
        // Held until the message to `beta` was delivered.
        reply_for(
            "beta",
            0,
            Reply::call("list_files", json!({"path": "."})).held_by(&gate),
        ),
        reply_for(
            "beta",
            1,
            Reply::call(
                "talk_to_group",
                json!({"group": "all", "message": "Heard."}),
            ),
        ),
        reply_for("beta", 2, Reply::text("Looked.")),
    ]);
    let path = rig.home().join("config.toml");
    let groups = "[groups.all]\nmembers = [\"alpha\", \"beta\", \"ghost\"]\n";
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + groups).unwrap();
    write_agent(&rig, "alpha", "tools: talk_to", "You are the first.");
    write_agent(&rig, "beta", "", "You are the second.");
    let ran = task_with_gate(&rig, "talk", &gate, ("alpha", 2));
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let requests = requests_of(&rig, "beta");
    let place = requests[0].texts(SeenRole::User)[0];
    assert!(
        place.contains(
            "# AVAILABLE_AGENTS\n\n- `alpha`: You are the first.\n- `beta` (you): You are the second.\n- `main`: "
        ),
        "{place}"
    );
    assert!(
        place.contains("# AVAILABLE_GROUPS\n\n- `all`: 3 members: alpha, beta, ghost"),
        "{place}"
    );
    let heard = requests_of(&rig, "beta")[1]
        .texts(SeenRole::User)
        .join("\n");
    assert!(
        heard.contains("Message from the agent `alpha`:\n\nLook left."),
        "{heard}"
    );
    let of_beta = |event: &Value| event["type"] == "tool_result" && event["agent"] == "beta";
    let told = ran.events().into_iter().filter(of_beta).nth(1).unwrap();
    assert!(
        told["text"]
            .as_str()
            .unwrap()
            .contains("no agent `ghost` is running"),
        "{told}"
    );
}

#[test]
fn subagent_refusal_is_reported_to_it_and_the_main_agent() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("It could not.")),
        reply_for(
            "alpha",
            0,
            Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"})),
        ),
        reply_for("alpha", 1, Reply::text("I may not.")),
    ]);
    write_agent(&rig, "alpha", "", "You write.");
    let ran = rig.run(&["run", "--output-format", "stream-json", "write"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(!rig.project().join("a.txt").exists());
    assert!(requests_of(&rig, "alpha")[1].last_message_contains("nobody can be asked"));
    assert!(
        main_results(&ran)[0]["text"]
            .as_str()
            .unwrap()
            .contains("## alpha: waits for an answer")
    );
}

#[test]
fn budget_of_a_run_includes_its_agents() {
    let dear = Usage {
        input: 3_000_000,
        ..Usage::default()
    };
    let look = |model: &str, turn| {
        reply_for(
            model,
            turn,
            Reply::call("list_files", json!({"path": "."})).with_usage(dear),
        )
    };
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        look("alpha", 0),
        look("alpha", 1),
        look("alpha", 2),
        reply_for("main", 1, Reply::text("Done.")),
    ]);
    write_agent(&rig, "alpha", "", "You spend.");
    let ran = rig.task(&["--max-budget-usd", "5", "spend"]);
    assert_eq!(
        (ran.code(), ran.result()["code"].clone()),
        (4, json!("max_budget")),
        "{}",
        ran.stderr()
    );
    assert_eq!(
        (
            requests_of(&rig, "alpha").len(),
            requests_of(&rig, "main").len()
        ),
        (2, 1)
    );
}

#[test]
fn undo_reverts_changes_of_agents() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for(
            "alpha",
            0,
            Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"})),
        ),
        reply_for("alpha", 1, Reply::text("Written.")),
    ]);
    write_agent(&rig, "alpha", "", "You write.");
    assert_eq!(rig.task(&["write"]).code(), 0);
    assert!(rig.project().join("a.txt").exists());
    assert_eq!(rig.run(&["undo"]).code(), 0);
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn recall_returns_evidence_of_agents() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for(
            "alpha",
            0,
            Reply::call("read_file", json!({"path": "notes.txt"})),
        ),
        reply_for("alpha", 1, Reply::text("Read.")),
    ]);
    rig.write("notes.txt", "word for word\n");
    write_agent(&rig, "alpha", "", "You read.");
    let ran = rig.task(&["read"]);
    let text = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    let id = text.split("Evidence: ").nth(1).unwrap()[..8].to_owned();
    assert!(
        text.contains(&format!("Evidence: {id} (read_file notes.txt)")),
        "{text}"
    );
    let script = Script::replies([
        Reply::call("recall", json!({"message_id": id})),
        Reply::text("I see."),
    ]);
    let rig = rig.with_script(script.unwrap(), Api::Anthropic);
    configure(&rig);
    let ran = rig.task(&["-c", "what did it say?"]);
    assert!(
        main_results(&ran)[0]["text"]
            .as_str()
            .unwrap()
            .contains("word for word"),
        "{}",
        ran.stdout()
    );
}

/// Returns the number of processes that work in a folder.
fn count_processes_in(folder: &Path) -> usize {
    let works_there = |pid: &str| {
        let alive = std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "));
        alive
            && std::fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|cwd| cwd.starts_with(folder))
    };
    let entries = std::fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    entries
        .filter(|name| works_there(&name.to_string_lossy()))
        .count()
}

/// A run that hangs: `alpha` in a command that has created the file `there`, `beta` in a request.
struct Hanging {
    rig: Rig,
    child: Child,
    printed: PathBuf,
}

fn start_hanging_run(replies: impl IntoIterator<Item = Reply>) -> Hanging {
    let line = "touch there; sleep 1000";
    let command = Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    );
    let mut all = vec![reply_for("alpha", 0, command)];
    all.extend(replies);
    let rig = rig(all);
    for name in ["alpha", "beta", "gamma"] {
        write_agent(&rig, name, "", "You wait.");
    }
    let printed = rig.home().join("printed");
    let mut command = rig.command(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "wait",
    ]);
    let child = command
        .stdout(File::create(&printed).unwrap())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let hanging = Hanging {
        rig,
        child,
        printed,
    };
    hanging.wait_until("the command runs", Hanging::command_runs);
    hanging
}

impl Hanging {
    fn command_runs(&self) -> bool {
        self.rig.project().join("there").exists()
    }

    fn printed(&self) -> String {
        std::fs::read_to_string(&self.printed).unwrap()
    }

    fn wait_until(&self, what: &str, there: impl Fn(&Self) -> bool) {
        wait_until(what, || there(self));
    }

    fn signal(&self, signal: Signal) {
        kill_process(
            Pid::from_raw(self.child.id().cast_signed()).unwrap(),
            signal,
        )
        .unwrap();
    }
}

#[test]
fn cancel_stops_all_agents_and_their_processes() {
    let slow = Reply::text("Too late.").held_by(&Gate::default());
    let mut hanging = start_hanging_run([
        reply_for("main", 0, start_agents(&["alpha", "beta"])),
        reply_for("main", 1, Reply::text("They were cancelled.")),
        reply_for("beta", 0, slow),
    ]);
    hanging.wait_until("beta asks", |hanging| {
        !requests_of(&hanging.rig, "beta").is_empty()
    });
    assert!(count_processes_in(&hanging.rig.project()) > 0);
    hanging.signal(Signal::INT);
    assert_eq!(
        hanging.child.wait().unwrap().code(),
        Some(130),
        "{}",
        hanging.printed()
    );
    assert_eq!(
        count_processes_in(&hanging.rig.project()),
        0,
        "no process is left"
    );
    hanging.wait_until("no request is open", |hanging| {
        hanging.rig.server.open_connections() == 0
    });
    let rig = &hanging.rig;
    let ran = rig.task(&["-c"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("They were cancelled.")),
        "{}",
        ran.stderr()
    );
    let last = requests_of(rig, "main").pop().unwrap();
    assert!(
        last.last_message_contains("## alpha: cancelled")
            && last.last_message_contains("## beta: cancelled"),
        "{last}"
    );
    assert_eq!(
        requests_of(rig, "alpha").len(),
        1,
        "nothing was started again"
    );
}

#[test]
fn resume_after_kill_keeps_answers_and_reports_the_rest() {
    let mut hanging = start_hanging_run([
        reply_for("main", 0, start_agents(&["alpha", "beta"])),
        reply_for("main", 1, Reply::text("I know where they are.")),
        reply_for("beta", 0, Reply::text("The answer of beta.")),
    ]);
    hanging.wait_until("beta is done", |hanging| {
        hanging
            .printed()
            .contains("\"phase\":\"finished\",\"name\":\"beta\"")
    });
    hanging.signal(Signal::KILL);
    hanging.child.wait().unwrap();
    let rig = &hanging.rig;
    let ran = rig.task(&["-c"]);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("I know where they are.")),
        "{}",
        ran.stderr()
    );
    let last = requests_of(rig, "main").pop().unwrap();
    for said in [
        "## beta: completed\n\nThe answer of beta.",
        "## alpha: interrupted",
        "uncertain whether its `execute_command` took effect",
    ] {
        assert!(last.last_message_contains(said), "{said}: {last}");
    }
    assert_eq!(
        (
            requests_of(rig, "alpha").len(),
            requests_of(rig, "beta").len()
        ),
        (1, 1),
        "nothing was started again"
    );
}

#[test]
fn subagent_resumes_in_its_own_conversation() {
    let ask = Reply::call(
        "ask_followup_question",
        json!({"question": "Left or right?"}),
    );
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Ask me.")),
        reply_for("alpha", 0, ask),
    ]);
    write_agent(&rig, "alpha", "", "You ask.");
    let ran = rig.task(&["go"]);
    let text = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("## alpha: waits for an answer") && text.contains("Left or right?"),
        "{text}"
    );
    let id = text.split("Conversation: ").nth(1).unwrap().trim();
    let work = format!("subagents: [{{name: alpha, task: Left., conversation: {id}}}]");
    let script = Script::replies([
        reply_for(
            "main",
            1,
            Reply::call("run_named_subagents", json!({"subagents": work})),
        ),
        reply_for("main", 2, Reply::text("It went.")),
        reply_for("alpha", 1, Reply::text("I went left.")),
    ]);
    let rig = rig.with_script(script.unwrap(), Api::Anthropic);
    configure(&rig);
    let ran = rig.task(&["-c", "left"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert!(
        main_results(&ran)[0]["text"]
            .as_str()
            .unwrap()
            .contains("I went left.")
    );
    assert!(requests_of(&rig, "alpha")[0].last_message_contains("The user answered: Left."));
}

#[test]
fn user_message_reaches_a_running_agent() {
    let gate = Gate::default();
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for(
            "alpha",
            0,
            Reply::call("list_files", json!({"path": "."})).held_by(&gate),
        ),
        reply_for("alpha", 1, Reply::text("Heard.")),
    ]);
    write_agent(&rig, "alpha", "", "You listen.");
    let arguments = [
        "run",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "go",
    ];
    let mut child = rig
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("alpha asks", || !requests_of(&rig, "alpha").is_empty());
    let mut input = child.stdin.take().unwrap();
    // Lines are read in order: the answer to the last one shows that the previous one was
    // delivered.
    for (to, text) in [
        ("alpha", "Only the Rust files."),
        ("nobody", "Are you there?"),
    ] {
        writeln!(
            input,
            "{}",
            json!({"type": "user", "agent": to, "text": text})
        )
        .unwrap();
    }
    let mut printed = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    while !printed.contains("no agent `nobody` is running") {
        assert_ne!(output.read_line(&mut printed).unwrap(), 0, "{printed}");
    }
    gate.open();
    drop(input);
    output.read_to_string(&mut printed).unwrap();
    let ran = child.wait_with_output().unwrap();
    let ran = Ran(Output {
        stdout: printed.into_bytes(),
        ..ran
    });
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let heard = requests_of(&rig, "alpha")
        .pop()
        .unwrap()
        .texts(SeenRole::User)
        .join("\n");
    assert!(heard.contains("Only the Rust files."), "{heard}");
    assert!(
        !format!("{}", requests_of(&rig, "main").pop().unwrap()).contains("Only the Rust files.")
    );
    assert!(
        ran.stdout().contains("no agent `nobody` is running"),
        "{}",
        ran.stdout()
    );
}

#[test]
fn read_file_of_an_agent_omits_unchanged_content() {
    let read = |model: &str, results| {
        reply_for(
            model,
            results,
            Reply::call("read_file", json!({"path": "notes.txt"})),
        )
    };
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        read("alpha", 0),
        read("alpha", 1),
        reply_for(
            "alpha",
            2,
            Reply::call(
                "write_to_file",
                json!({"path": "notes.txt", "content": "new words\n"}),
            ),
        ),
        read("alpha", 3),
        reply_for("alpha", 4, Reply::text("Read.")),
    ]);
    rig.write("notes.txt", "the same words\n".repeat(50));
    write_agent(&rig, "alpha", "", "You read.");
    let ran = rig.task(&["read"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let requests = requests_of(&rig, "alpha");
    let again = format!("{}", requests[2]);
    assert!(
        again.contains("`notes.txt` has not changed since you read lines 1-50"),
        "{again}"
    );
    assert_eq!(again.matches("the same words").count(), 50);
    assert!(
        requests[4].last_message_contains("new words"),
        "what changed is shown"
    );
    let saved = |event: &Value| {
        event["type"] == "usage"
            && event["saved_tokens"]
                .as_u64()
                .is_some_and(|saved| saved > 100)
    };
    assert_eq!(
        ran.events().iter().filter(|event| saved(event)).count(),
        1,
        "{}",
        ran.stdout()
    );
}

#[test]
fn agent_flag_sets_role_tools_and_model() {
    let rig = rig([Reply::text("Here.").when(When {
        model: Some("beta".into()),
        ..When::default()
    })]);
    write_agent(&rig, "beta", "tools: Read, Grep", "You are beta.");
    write_agent(&rig, "gamma", "", "");
    assert_eq!(rig.task(&["--agent", "beta", "who are you?"]).code(), 0);
    let seen = &requests_of(&rig, "beta")[0];
    assert!(
        seen.system
            .starts_with("You are beta.\n\nOperating system:"),
        "{}",
        seen.system
    );
    let tools: Vec<_> = seen.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["read_file", "search_files"]);
    assert!(
        seen.texts(SeenRole::User)
            .join("\n")
            .contains("## Agent Role Definition\n\nYou are beta.")
    );
    for (name, says) in [
        ("gama", "there are: beta, gamma"),
        ("gamma", ".haft/agents/gamma.md"),
    ] {
        let ran = rig.task(&["--agent", name, "who are you?"]);
        assert_eq!(ran.code(), 2);
        assert!(ran.stderr().contains(says), "{}", ran.stderr());
    }
}

#[test]
fn agent_timeout_stops_it_and_allows_resuming() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha", "beta"])),
        reply_for("main", 1, Reply::text("One was slow.")),
        reply_for(
            "alpha",
            0,
            Reply::text("Too late.").held_by(&Gate::default()),
        ),
        reply_for("beta", 0, Reply::text("In time.")),
    ]);
    write_agent(&rig, "alpha", "", "You are slow.");
    write_agent(&rig, "beta", "", "You are quick.");
    // On a busy machine the quick agent may need longer than a short limit.
    let limits = [5, 20, 80].into_iter();
    let (seconds, ran) = limits
        .map(|seconds| {
            (
                seconds,
                rig.task(&["--set", &format!("limits.agent_seconds={seconds}"), "hurry"]),
            )
        })
        .find(|(seconds, ran)| *seconds == 80 || ran.stdout().contains("In time."))
        .unwrap();
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("One was slow.")),
        "{}",
        ran.stderr()
    );
    let text = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains(&format!(
            "## alpha: reached a limit\n\nStopped after {seconds} s; name it again"
        )),
        "{text}"
    );
    assert!(
        text.contains("In time.") && text.contains("Conversation: "),
        "{text}"
    );
    let events = ran.events();
    let ended = events.iter().find(|event| {
        event["type"] == "subagent" && event["phase"] == "finished" && event["agent"] == "alpha"
    });
    let result = &ended.unwrap()["result"];
    assert_eq!(
        (&result["outcome"], &result["code"]),
        (&json!("exhausted"), &json!("timeout")),
        "{result}"
    );
}

#[test]
fn talk_to_an_ending_agent_is_read_or_reported_lost() {
    let gate = Gate::default();
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha", "beta"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for(
            "alpha",
            0,
            Reply::call("talk_to", json!({"agent": "beta", "message": "Look left."})),
        ),
        reply_for("alpha", 1, Reply::text("Said.")),
        // The message arrives while this reply, the agent's only one, is under way.
        reply_for("beta", 0, Reply::text("Nothing to do.").held_by(&gate)).times(1),
        reply_for("beta", 0, Reply::text("I looked left.")),
    ]);
    write_agent(&rig, "alpha", "tools: talk_to", "You write.");
    write_agent(&rig, "beta", "", "You answer.");
    let ran = task_with_gate(&rig, "talk", &gate, ("alpha", 2));
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let beta = requests_of(&rig, "beta");
    let read = beta
        .last()
        .unwrap()
        .texts(SeenRole::User)
        .join("\n")
        .contains("Look left.");
    let of_alpha = |event: &&Value| event["type"] == "tool_result" && event["agent"] == "alpha";
    let events = ran.events();
    let sent = events.iter().find(of_alpha).unwrap()["status"] == "success";
    assert_eq!(sent, read, "said to be delivered, and read");
    let answer = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert_eq!(answer.contains("I looked left."), read, "{answer}");
}

#[test]
fn hooks_see_agents_and_can_keep_them_from_ending() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for("alpha", 0, Reply::call("list_files", json!({"path": "."}))),
        reply_for("alpha", 1, Reply::text("Half.")).times(1),
        reply_for("alpha", 1, Reply::text("Whole.")),
    ]);
    write_agent(&rig, "alpha", "", "You work.");
    let log = rig.home().join("log");
    let once = rig.home().join("once");
    let stop = format!(
        "cat >> '{0}'; echo >> '{0}'; test -e '{1}' && exit 0; touch '{1}'; echo the other half >&2; exit 2",
        log.display(),
        once.display()
    );
    let write = format!("cat >> '{0}'; echo >> '{0}'", log.display());
    let hooks: String = [
        ("subagent_stop", "alpha", &stop),
        ("subagent_stop", "nobody", &stop),
        ("stop", "*", &write),
        ("pre_tool_call", "list_files", &write),
    ]
    .map(|(point, matcher, command)| {
        format!("[[hooks.{point}]]\nmatcher = \"{matcher}\"\nhooks = [{{ command = '''{command}''', timeout = 60 }}]\n")
    })
    .concat();
    let config = rig.home().join("config.toml");
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &hooks).unwrap();
    let ran = rig.task(&["work"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let answer = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    assert!(answer.contains("Whole."), "{answer}");
    assert!(
        requests_of(&rig, "alpha")[2]
            .texts(SeenRole::User)
            .join("\n")
            .contains("the other half")
    );
    let lines = std::fs::read_to_string(&log).unwrap();
    let heard: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = heard
        .iter()
        .map(|one| one["hook_event_name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["pre_tool_call", "subagent_stop", "subagent_stop", "stop"],
        "a sub-agent's end is not the main agent's"
    );
    assert_eq!(
        (&heard[1]["agent_type"], &heard[1]["stop_hook_active"]),
        (&json!("alpha"), &json!(false))
    );
    assert_eq!(
        (
            &heard[2]["last_assistant_message"],
            &heard[2]["stop_hook_active"]
        ),
        (&json!("Whole."), &json!(true))
    );
}

/// Agent files as people share them for Claude Code: their models and some of their tools are not
/// available.
#[test]
fn agent_files_of_other_programs_run_unchanged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/claude-agents");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 10);
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    let rig = rig([
        start_agents(&all).when(When {
            last_contains: Some("ask them all".into()),
            tool_results: Some(0),
            ..When::default()
        }),
        reply_for("main", 1, Reply::text("Done.")),
        Reply::text("Looked.").times(10),
    ]);
    std::fs::create_dir_all(rig.project().join(".claude/agents")).unwrap();
    for name in &names {
        let file = format!("{name}.md");
        std::fs::copy(
            folder.join(&file),
            rig.project().join(".claude/agents").join(&file),
        )
        .unwrap();
    }
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let listed = rig.run(&["agents", "list", "--json"]).json();
    assert_eq!(listed["problems"], json!([]), "{listed}");
    let found: Vec<_> = listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| &agent["name"])
        .collect();
    assert_eq!(
        found,
        names
            .iter()
            .map(|name| json!(name))
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
    assert!(
        listed["agents"]
            .as_array()
            .unwrap()
            .iter()
            .all(|agent| agent["uses"] == "main/main"),
        "{listed}"
    );
    let ran = rig.task(&["ask them all"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let text = main_results(&ran)[0]["text"].as_str().unwrap().to_owned();
    for name in &names {
        assert!(
            text.contains(&format!("## {name}: completed")),
            "{name}: {text}"
        );
    }
    let told: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["code"] == "agent_model")
        .collect();
    assert_eq!(
        told.len(),
        7,
        "one for each file whose model is not here: {told:?}"
    );
    assert!(
        rig.run(&["agents", "list"])
            .stdout()
            .contains("main/main (file: sonnet)")
    );
}

#[test]
fn agent_flag_accepts_a_role_with_unknown_model_and_tools() {
    let rig = rig([Reply::text("Looked.")]);
    std::fs::create_dir_all(rig.project().join(".claude/agents")).unwrap();
    let file =
        "---\nname: r\ndescription: d\nmodel: opus\ntools: Read, KillShell\n---\nYou look.\n";
    rig.write(".claude/agents/r.md", file);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let ran = rig.task(&["--agent", "r", "look"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let codes: Vec<_> = ran
        .events()
        .iter()
        .filter_map(|event| event["code"].as_str().map(str::to_owned))
        .collect();
    assert!(
        codes.contains(&"agent_model".to_owned()) && codes.contains(&"agent_tools".to_owned()),
        "{codes:?}"
    );
    assert_eq!(requests_of(&rig, "main").len(), 1);
}

#[test]
fn group_tool_causes_no_warning_without_groups() {
    let rig = rig([
        reply_for("main", 0, start_agents(&["alpha"])),
        reply_for("main", 1, Reply::text("Done.")),
        reply_for("alpha", 0, Reply::text("Alone.")),
    ]);
    write_agent(
        &rig,
        "alpha",
        "tools: read_file, talk_to_group, use_skill",
        "You work alone.",
    );
    let ran = rig.task(&["work"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let told: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["code"] == "agent_tools")
        .collect();
    assert_eq!(told, Vec::<Value>::new());
}

fn start_in_background(agent: &str) -> Reply {
    let work = format!("mode: background\nsubagents: [{{name: {agent}, task: Look.}}]");
    Reply::call("run_named_subagents", json!({"subagents": work}))
}

#[test]
fn background_agent_gets_messages_and_reports_its_end() {
    let talk = |text: &str| Reply::call("talk_to", json!({"agent": "alpha", "message": text}));
    let gate = Gate::default();
    let rig = rig([
        reply_for("main", 0, start_in_background("alpha")),
        reply_for("main", 1, talk("Look left.")),
        // The turn waits for the agent and continues with its result.
        reply_for("main", 2, Reply::text("It works.")).times(1),
        reply_for("main", 2, talk("Thank you.")),
        reply_for("main", 3, Reply::text("All done.")),
        reply_for(
            "alpha",
            0,
            Reply::call("talk_to", json!({"agent": "main", "message": "Which?"})).held_by(&gate),
        ),
        reply_for("alpha", 1, Reply::text("I looked left.")),
    ]);
    write_agent(&rig, "alpha", "", "You look.");
    let ran = task_with_gate(&rig, "go", &gate, ("main", 3));
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("All done.")),
        "{}",
        ran.stderr()
    );
    let main = requests_of(&rig, "main");
    let told: Vec<_> = main_results(&ran)
        .iter()
        .map(|result| result["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        told[0].contains("Started:\n- `alpha`\n  Conversation: "),
        "{}",
        told[0]
    );
    assert_eq!(told[1], "Delivered to `alpha`.");
    assert!(
        told[2].contains("the agent `alpha` has ended and reads nothing more"),
        "{}",
        told[2]
    );
    assert_eq!(main_results(&ran)[2]["error"]["code"], "agent_ended");
    let heard = requests_of(&rig, "alpha")
        .pop()
        .unwrap()
        .texts(SeenRole::User)
        .join("\n");
    assert!(
        heard.contains("Message from the agent `main`:\n\nLook left."),
        "{heard}"
    );
    let read = main[3].texts(SeenRole::User).join("\n");
    assert_eq!(
        (
            main.len(),
            read.matches("## alpha: completed\n\nI looked left.")
                .count()
        ),
        (5, 1),
        "{read}"
    );
    assert!(
        read.contains("Message from the agent `alpha`:\n\nWhich?"),
        "{read}"
    );
    let last = main[4].texts(SeenRole::User).join("\n");
    assert_eq!(
        last.matches("## alpha: completed").count(),
        1,
        "told once: {last}"
    );
    for (before, after) in main.iter().zip(&main[1..]) {
        assert_eq!(
            after.messages[..before.messages.len() - 1],
            before.messages[..before.messages.len() - 1]
        );
    }
}

#[test]
fn background_agent_ends_with_a_canceled_turn() {
    let mut hanging = start_hanging_run([
        reply_for("main", 0, start_in_background("alpha")),
        reply_for("main", 1, Reply::text("Waiting.")),
    ]);
    hanging.signal(Signal::INT);
    assert_eq!(hanging.child.wait().unwrap().code(), Some(130));
    assert_eq!(count_processes_in(&hanging.rig.project()), 0);
    let script = Script::replies([reply_for("main", 1, Reply::text("I know."))]).unwrap();
    let Hanging { rig, .. } = hanging;
    let rig = rig.with_script(script, Api::Anthropic);
    configure(&rig);
    let ran = rig.task(&["-c", "and?"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let read = requests_of(&rig, "main")
        .pop()
        .unwrap()
        .texts(SeenRole::User)
        .join("\n");
    assert_eq!(read.matches("## alpha: interrupted").count(), 1, "{read}");
}

#[test]
fn background_agent_is_reported_interrupted_once_after_kill() {
    let mut hanging = start_hanging_run([
        reply_for("main", 0, start_in_background("alpha")),
        reply_for("main", 1, Reply::text("Waiting.")).times(1),
        reply_for("main", 1, Reply::text("I know where it is.")),
    ]);
    hanging.wait_until("main waits", |hanging| {
        hanging.printed().contains("Waiting.")
    });
    hanging.signal(Signal::KILL);
    hanging.child.wait().unwrap();
    let rig = &hanging.rig;
    for prompt in ["and?", "and now?"] {
        assert_eq!(rig.task(&["-c", prompt]).code(), 0);
        let read = requests_of(rig, "main")
            .pop()
            .unwrap()
            .texts(SeenRole::User)
            .join("\n");
        assert_eq!(read.matches("## alpha: interrupted").count(), 1, "{read}");
    }
    assert_eq!(
        requests_of(rig, "alpha").len(),
        1,
        "nothing was started again"
    );
}
