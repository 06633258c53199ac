//! Checks `haft conversations replay`: a stored run replays byte for byte, also from a file in
//! another folder, and a seeded regression is found.
//!
//! Each case makes a run with the real binary and the scripted model. The seed selects the API, the
//! kind of run and the regression: a changed setting, prompt, rule or project file, or another
//! content of the record.

use std::fs;
use std::path::Path;
use std::process::Output;

use haft_testkit::support::{Campaign, HaftCase, Random, Trial};
use haft_testkit::{Reply, Script, ScriptCall, ScriptedServer, Stop};
use haft_types::Api;
use serde_json::{Value, json};

use crate::kill::workspace::Workspace;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "replays",
    about: "A stored run replays byte for byte, and a regression is found.",
    trial: Trial::WithHaft(run_case),
};

/// An image of one pixel.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0,
    0x1f, 0x00, 0x05, 0x00, 0x01, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
const FILE: &str = "run.json";

/// A kind of run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answers,
    Reads,
    Edits,
    Commands,
    Failures,
    Todos,
    Plan,
    Archive,
    Images,
    SubAgents,
    Rewind,
    Clearing,
    Faults,
    BackgroundTask,
}

const KINDS: [Kind; 14] = [
    Kind::Answers,
    Kind::Reads,
    Kind::Edits,
    Kind::Commands,
    Kind::Failures,
    Kind::Todos,
    Kind::Plan,
    Kind::Archive,
    Kind::Images,
    Kind::SubAgents,
    Kind::Rewind,
    Kind::Clearing,
    Kind::Faults,
    Kind::BackgroundTask,
];

/// A command of a run: the arguments of haft.
type Step = Vec<String>;

/// The steps of a run, and the replies to them.
struct Plan {
    steps: Vec<Step>,
    replies: Vec<Reply>,
    /// The options of the runs that the replay needs, too.
    options: Vec<String>,
}

/// A change between a run and its replay that must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Regression {
    AppendedPrompt,
    Role,
    SystemPrompt,
    Language,
    View,
    MessageIds,
    Clock,
    OfferedTools,
    FocusFile,
    Instructions,
    Rule,
    AgentFile,
    Skill,
    DeniedCall,
    PermissionMode,
    ClearingPolicy,
    ReminderPlacement,
    RecordedPrompt,
    RecordedTool,
    RecordedInput,
    RecordedResult,
    RecordedVerdict,
    RecordedEncoding,
    RecordedLastRequest,
    LiveResult,
}

const REGRESSIONS: [Regression; 25] = [
    Regression::AppendedPrompt,
    Regression::Role,
    Regression::SystemPrompt,
    Regression::Language,
    Regression::View,
    Regression::MessageIds,
    Regression::Clock,
    Regression::OfferedTools,
    Regression::FocusFile,
    Regression::Instructions,
    Regression::Rule,
    Regression::AgentFile,
    Regression::Skill,
    Regression::DeniedCall,
    Regression::PermissionMode,
    Regression::ClearingPolicy,
    Regression::ReminderPlacement,
    Regression::RecordedPrompt,
    Regression::RecordedTool,
    Regression::RecordedInput,
    Regression::RecordedResult,
    Regression::RecordedVerdict,
    Regression::RecordedEncoding,
    Regression::RecordedLastRequest,
    Regression::LiveResult,
];

impl Regression {
    /// True if a run of this kind shows the regression.
    fn applies_to(self, kind: Kind) -> bool {
        match self {
            Self::DeniedCall => kind == Kind::Commands,
            Self::PermissionMode => matches!(kind, Kind::Commands | Kind::Edits),
            Self::ClearingPolicy => kind == Kind::Clearing,
            Self::ReminderPlacement => kind == Kind::Todos,
            // The file with the result is read in the first round.
            Self::RecordedResult | Self::LiveResult => kind == Kind::Reads,
            Self::RecordedVerdict => kind == Kind::Failures,
            // Ids are sent with results.
            Self::MessageIds => matches!(kind, Kind::Reads | Kind::Commands | Kind::Edits),
            Self::AppendedPrompt
            | Self::Role
            | Self::SystemPrompt
            | Self::Language
            | Self::View
            | Self::Clock
            | Self::OfferedTools
            | Self::FocusFile
            | Self::Instructions
            | Self::Rule
            | Self::AgentFile
            | Self::Skill
            | Self::RecordedPrompt
            | Self::RecordedTool
            | Self::RecordedInput
            | Self::RecordedEncoding
            | Self::RecordedLastRequest => true,
        }
    }
}

fn run_case(case: &mut HaftCase<'_>) -> Result<(), String> {
    let api = Api::ALL[case.seed as usize % Api::ALL.len()];
    let kind = KINDS[(case.seed as usize / Api::ALL.len()) % KINDS.len()];
    let regression = choose_regression(case.seed as usize, kind).ok_or("no regression applies")?;
    let plan = plan_run(kind, &mut case.random);
    let script = Script::replies(plan.replies).map_err(|error| error.to_string())?;
    let server = ScriptedServer::builder(script)
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let mut place = Workspace::new(case.haft, api, &server)?;
    let checked = prepare_project(&place, kind)
        .and_then(|()| check_case(&place, kind, &plan.steps, &plan.options, regression));
    match checked {
        Ok(requests) => {
            case.tally.count(format!("runs of the kind {kind:?}"));
            case.tally.count(format!("found: {regression:?}"));
            case.tally.add("requests equal, byte for byte", requests);
            Ok(())
        }
        Err(what) => Err(format!(
            "{kind:?} over {api}, {regression:?}: {what}\n        kept in {}",
            place.keep_folders()
        )),
    }
}

/// Returns a regression that the kind of run shows: for even seeds one that only few kinds show, if
/// there is one.
fn choose_regression(seed: usize, kind: Kind) -> Option<Regression> {
    let rare: Vec<_> = REGRESSIONS
        .into_iter()
        .filter(|one| one.applies_to(kind) && !one.applies_to(Kind::Answers))
        .collect();
    if seed.is_multiple_of(2) && !rare.is_empty() {
        return Some(rare[seed / 2 % rare.len()]);
    }
    (0..REGRESSIONS.len())
        .map(|offset| REGRESSIONS[(seed + offset) % REGRESSIONS.len()])
        .find(|one| one.applies_to(kind))
}

/// Makes the run, replays it, and replays it again with a regression. Returns the number of equal
/// requests.
fn check_case(
    place: &Workspace,
    kind: Kind,
    steps: &[Step],
    options: &[String],
    regression: Regression,
) -> Result<u64, String> {
    for step in steps {
        run_step(place, step)?;
    }
    let saved = place.root().join(FILE).display().to_string();
    let mut arguments = vec!["--save".to_owned(), saved.clone()];
    arguments.extend_from_slice(options);
    let report = expect_equal(&replay(place, &arguments)?, "the stored run")?;
    let requests = report["requests"].as_array().map_or(0, Vec::len) as u64;
    if requests == 0 {
        return Err("no request was compared".to_owned());
    }
    // These runs do not change the files that they read.
    if matches!(kind, Kind::Reads | Kind::Commands) {
        let mut live = vec!["--live-tools".to_owned()];
        live.extend_from_slice(options);
        expect_equal(&replay(place, &live)?, "the run with live tools")?;
    }
    // The file is checked in another checkout of the project.
    let checkout = place.root().join("another checkout");
    copy_folder(&place.project(), &checkout)?;
    let from_file = replay(
        place,
        &[
            saved.clone(),
            "-C".to_owned(),
            checkout.display().to_string(),
        ],
    )?;
    expect_equal(&from_file, "the saved run")?;
    let changed = apply_regression(place, regression, &saved, options)?;
    let report = replay(place, &changed)?;
    if report.status.code() == Some(1) && parse_report(&report)?["equal"] == false {
        return Ok(requests);
    }
    Err(format!("not found: {}", show_output(&report)))
}

fn replay(place: &Workspace, arguments: &[String]) -> Result<Output, String> {
    let mut all = vec!["conversations", "replay", "--json"];
    all.extend(arguments.iter().map(String::as_str));
    place
        .command(&all)
        .output()
        .map_err(|error| error.to_string())
}

fn expect_equal(output: &Output, what: &str) -> Result<Value, String> {
    let report = parse_report(output)?;
    if output.status.code() == Some(0) && report["equal"] == true {
        Ok(report)
    } else {
        Err(format!("{what} differs: {}", show_output(output)))
    }
}

fn parse_report(output: &Output) -> Result<Value, String> {
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", show_output(output)))
}

fn show_output(output: &Output) -> String {
    format!(
        "exit code {:?}\n{}{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs a step. `{{prompt}}` stands for the id of the newest prompt.
fn run_step(place: &Workspace, step: &Step) -> Result<(), String> {
    let mut arguments = Vec::with_capacity(step.len());
    for argument in step {
        arguments.push(if argument == "{{prompt}}" {
            newest_prompt(place)?
        } else {
            argument.clone()
        });
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let output = place
        .command(&arguments)
        .output()
        .map_err(|error| error.to_string())?;
    // A run that waits for an answer or an approval ends with 3.
    match output.status.code() {
        Some(0 | 3) => Ok(()),
        _ => Err(format!("{arguments:?}: {}", show_output(&output))),
    }
}

fn newest_prompt(place: &Workspace) -> Result<String, String> {
    let output = place
        .command(&["conversations", "show", "--json"])
        .output()
        .map_err(|error| error.to_string())?;
    let document = parse_report(&output)?;
    let messages = document["messages"].as_array().cloned().unwrap_or_default();
    let prompt = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "user" && message["metadata"]["origin"] == "user");
    let id = prompt.and_then(|prompt| prompt["message_id"].as_str());
    id.map(|id| id[..8].to_owned())
        .ok_or_else(|| "no prompt is stored".to_owned())
}

fn prepare_project(place: &Workspace, kind: Kind) -> Result<(), String> {
    let project = place.project();
    let write = |name: &str, content: &[u8]| {
        let path = project.join(name);
        let folder = path.parent().unwrap_or(&project);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    write("notes.txt", b"alpha\nbeta\ngamma\n")?;
    write("src/lib.rs", b"pub fn one() -> u32 {\n    1\n}\n")?;
    write(
        "long.txt",
        "A line of a long file.\n".repeat(400).as_bytes(),
    )?;
    write("dot.png", PIXEL)?;
    if kind == Kind::SubAgents {
        write(
            ".haft/agents/helper.md",
            b"---\nname: helper\ndescription: Reads files.\ntools: read_file\n---\nYou read files.\n",
        )?;
    }
    write("AGENTS.md", b"Use short sentences.\n")?;
    run_step(place, &vec!["trust".to_owned()])
}

fn plan_run(kind: Kind, random: &mut Random) -> Plan {
    let word = format!("number {}", random.below(10_000));
    let call = |name: &str, arguments: Value| Reply::call(name, arguments);
    let execute = |command: &str| {
        call(
            "execute_command",
            json!({"command": command, "requires_approval": false}),
        )
    };
    let write = |path: &str, content: &str| {
        call("write_to_file", json!({"path": path, "content": content}))
    };
    let read = |path: &str| call("read_file", json!({"path": path}));
    let answer = |text: &str| Reply::text(format!("{text} ({word})"));
    let mut options: Vec<&str> = Vec::new();
    let mut prompts: Vec<Vec<String>> = vec![vec![format!("Begin with {word}.")]];
    let more = |prompts: &mut Vec<Vec<String>>, text: &str| {
        prompts.push(vec!["-c".to_owned(), text.to_owned()]);
    };
    let replies = match kind {
        Kind::Answers => {
            let rounds = 1 + random.below(4);
            for round in 1..rounds {
                more(&mut prompts, &format!("And then? {round}"));
            }
            (0..rounds)
                .map(|round| answer(&format!("Answer {round}")).with_thinking("Let me think."))
                .collect()
        }
        Kind::Reads => {
            more(&mut prompts, "And the other one, @src/lib.rs?");
            vec![
                Reply::calls([
                    ScriptCall::new("list_files", json!({"path": "."})),
                    ScriptCall::new("read_file", json!({"path": "notes.txt"})),
                    ScriptCall::new("search_files", json!({"path": ".", "regex": "a"})),
                ])
                .with_text("Looking."),
                answer("Three words."),
                read("src/lib.rs"),
                answer("A function."),
            ]
        }
        Kind::Edits => {
            options = vec!["--permission-mode", "accept-edits"];
            vec![
                read("notes.txt"),
                write("out/new.txt", &format!("{word}\nnew\n")),
                call(
                    "edit_file",
                    json!({"path": "notes.txt", "old_text": "beta", "new_text": "BETA"}),
                ),
                call(
                    "edit_file",
                    json!({"path": "notes.txt", "old_text": "not there", "new_text": "x"}),
                ),
                answer("Changed."),
            ]
        }
        Kind::Commands => {
            options = vec!["--permission-mode", "yolo"];
            vec![
                execute("echo one && wc -l notes.txt"),
                execute("ls missing; exit 3"),
                execute(&format!("echo {} > made.txt; date", random.below(1_000))),
                answer("Ran."),
            ]
        }
        Kind::Failures => vec![
            call("no_such_tool", json!({"x": 1})),
            read("missing.txt"),
            execute("touch made.txt"),
            read("missing.txt"),
            call("read_file", json!({"wrong": true})),
            answer("It did not work."),
        ],
        Kind::Todos => {
            let todo = |status: &str| {
                call(
                    "todo_write",
                    json!({"todos": [{"content": format!("Do {word}"), "status": status}]}),
                )
            };
            more(&mut prompts, "Is anything left?");
            vec![
                todo("in_progress"),
                answer("I am done."),
                read("notes.txt"),
                todo("completed"),
                answer("Now I am."),
                answer("Nothing."),
            ]
        }
        Kind::Plan => {
            options = vec!["--permission-mode", "plan"];
            more(&mut prompts, "Do it in this way.");
            vec![
                read("notes.txt"),
                write("notes.txt", "never\n"),
                call(
                    "plan_mode_respond",
                    json!({"response": format!("The plan: {word}.")}),
                ),
                answer("Agreed."),
            ]
        }
        Kind::Archive => {
            for round in 0..3 {
                more(&mut prompts, &format!("Read it again, round {round}."));
            }
            let mut replies = Vec::new();
            for round in 0..4 {
                replies.push(read("long.txt"));
                replies.push(answer(&format!("Read {round}.")));
                if round == 2 {
                    replies.push(Reply::summary(&format!("Files were read, {word}.")));
                }
            }
            replies
        }
        Kind::Images => {
            prompts[0].extend(["-i".to_owned(), "dot.png".to_owned()]);
            vec![read("dot.png"), answer("One pixel.")]
        }
        Kind::SubAgents => {
            let started = json!({"subagents": "mode: serial\nsubagents:\n  - name: helper\n    task: Read notes.txt.\n"});
            vec![
                call("run_named_subagents", started),
                read("notes.txt"),
                Reply::text("Three words."),
                answer("The helper read three words."),
            ]
        }
        Kind::Rewind => {
            more(&mut prompts, "Not like this.");
            vec![
                read("notes.txt"),
                answer("First."),
                answer("Second."),
                read("src/lib.rs"),
                answer("Another way."),
            ]
        }
        Kind::Clearing => {
            options = vec![
                "--set",
                "context.safe_zone=9000",
                "--set",
                "context.prune_keep=1",
            ];
            let mut replies: Vec<_> = (0..6)
                .map(|step| {
                    let lines = json!({"path": "long.txt", "start_line": 1 + step * 50, "end_line": 300 + step});
                    call("read_file", lines)
                })
                .collect();
            replies.push(answer("All read."));
            replies
        }
        Kind::Faults => vec![
            Reply::error(503, "busy"),
            read("notes.txt"),
            Reply {
                stop: Some(Stop::Length),
                ..Reply::text("A long answer that is ")
            },
            Reply::text("continued."),
        ],
        Kind::BackgroundTask => {
            options = vec!["--permission-mode", "yolo"];
            vec![
                call(
                    "background_task",
                    json!({"action": "start", "command": "echo background"}),
                ),
                call(
                    "background_task",
                    json!({"action": "monitor", "task_id": "t1", "timeout": 60}),
                ),
                answer("It ended."),
            ]
        }
    };
    let options: Vec<_> = options.into_iter().map(str::to_owned).collect();
    let count = prompts.len();
    let mut steps = Vec::new();
    for (index, prompt) in prompts.into_iter().enumerate() {
        let mut step = vec!["run".to_owned()];
        step.extend(options.iter().cloned());
        step.extend(prompt);
        if kind == Kind::Archive && index + 1 == count {
            steps.push(["context", "compact"].map(str::to_owned).to_vec());
        }
        steps.push(step);
    }
    if kind == Kind::Rewind {
        steps.push(["rewind", "{{prompt}}"].map(str::to_owned).to_vec());
        steps.push(
            ["run", "-c", "Then another way."]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    Plan {
        steps,
        replies,
        options,
    }
}

/// Applies a regression, and returns the arguments of the replay that must find it.
fn apply_regression(
    place: &Workspace,
    regression: Regression,
    saved: &str,
    options: &[String],
) -> Result<Vec<String>, String> {
    let with = |further: &[&str]| {
        let mut all = options.to_vec();
        all.extend(further.iter().map(|one| (*one).to_owned()));
        Ok(all)
    };
    let with_file = |name: &str, content: &str| {
        let path = place.project().join(name);
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, content))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        // The trust is bound to these files.
        run_step(place, &vec!["trust".to_owned()])?;
        Ok(options.to_vec())
    };
    let with_record = |change: &dyn Fn(&mut Value) -> Option<()>| {
        let text = fs::read_to_string(saved).map_err(|error| error.to_string())?;
        let mut record: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        change(&mut record).ok_or("the record has nothing to change")?;
        fs::write(saved, record.to_string()).map_err(|error| error.to_string())?;
        Ok(vec![saved.to_owned()])
    };
    match regression {
        Regression::AppendedPrompt => with(&["--append-system-prompt", "Answer in verse."]),
        Regression::Role => with(&["--set", "roles.main=You are a gardener."]),
        Regression::SystemPrompt => with(&["--system-prompt", "You are a gardener."]),
        Regression::Language => with(&["--set", "context.prompt_language=zh-CN"]),
        Regression::View => with(&["--set", "context.view=execute"]),
        Regression::MessageIds => with(&["--set", "context.message_ids=all"]),
        Regression::Clock => with(&["--set", "context.clock=true"]),
        Regression::OfferedTools => with(&["--allowed-tools", "read_file,todo_read"]),
        Regression::FocusFile => with(&["--file", "notes.txt"]),
        Regression::Instructions => with_file("AGENTS.md", "Use long sentences.\n"),
        Regression::Rule => with_file(
            ".haft/rules/new.md",
            "---\nalwaysApply: true\n---\nNo unwrap.\n",
        ),
        Regression::AgentFile => with_file(
            ".haft/agents/newcomer.md",
            "---\nname: newcomer\ndescription: Is new.\n---\nYou are new.\n",
        ),
        Regression::Skill => with_file(
            ".haft/skills/fresh/SKILL.md",
            "---\nname: fresh\ndescription: A fresh skill.\n---\nDo it.\n",
        ),
        Regression::DeniedCall => with(&["--deny", "execute_command(ls:*)"]),
        Regression::PermissionMode => Ok(vec!["--permission-mode".into(), "ask".into()]),
        Regression::ClearingPolicy => with(&["--set", "context.prune_keep=5"]),
        Regression::ReminderPlacement => with(&["--set", "context.reminders=after-tool-result:1"]),
        Regression::RecordedPrompt => with_record(&|record| {
            let text = &mut record["requests"][0]["text"];
            *text = text.as_str()?.replacen("haft", "hoft", 1).into();
            Some(())
        }),
        Regression::RecordedTool => with_record(&|record| {
            let text = &mut record["requests"][0]["text"];
            *text = text
                .as_str()?
                .replacen("description\":\"", "description\":\"Old. ", 1)
                .into();
            Some(())
        }),
        Regression::RecordedInput => with_record(&|record| {
            let first = record["conversation"]["messages"].get_mut(0)?;
            first["content"] = "Something else.".into();
            Some(())
        }),
        Regression::RecordedResult => with_record(&|record| {
            let messages = record["conversation"]["messages"].as_array_mut()?;
            let result = messages.iter_mut().find(|one| one["role"] == "tool")?;
            let envelope = find_envelope(result)?;
            envelope["text"] = "Something else.".into();
            Some(())
        }),
        Regression::RecordedVerdict => with_record(&|record| {
            let messages = record["conversation"]["messages"].as_array_mut()?;
            let mut envelopes = messages.iter_mut().filter_map(find_envelope);
            let denied =
                envelopes.find(|envelope| envelope["error"]["code"] == "permission_denied")?;
            denied.as_object_mut()?.remove("error");
            Some(())
        }),
        Regression::RecordedEncoding => with_record(&|record| {
            let encoding = record["encodings"].get_mut(0)?.as_object_mut()?;
            encoding.insert("extra_body".into(), json!({"temperature": 0.5}));
            Some(())
        }),
        Regression::RecordedLastRequest => with_record(&|record| {
            let requests = record["requests"].as_array_mut()?;
            let mut last = requests.last()?.clone();
            last["number"] = (requests.len() + 1).into();
            last["position"] = (last["position"].as_u64()? + 1).into();
            requests.push(last);
            Some(())
        }),
        Regression::LiveResult => {
            let notes = place.project().join("notes.txt");
            fs::write(&notes, "other\n").map_err(|error| error.to_string())?;
            with(&["--live-tools"])
        }
    }
}

/// Returns the envelope of the result in a stored message.
fn find_envelope(message: &mut Value) -> Option<&mut Value> {
    let parts = message["content"].as_array_mut()?;
    parts.iter_mut().find_map(|part| {
        if part.get("envelope").is_some() {
            part.get_mut("envelope")
        } else if part.get("text").is_some() && part.get("tool_call_id").is_some() {
            Some(part)
        } else {
            None
        }
    })
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| error.to_string();
    fs::create_dir_all(to).map_err(wrong)?;
    for entry in fs::read_dir(from).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(wrong)?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).map_err(wrong)?;
        }
    }
    Ok(())
}
