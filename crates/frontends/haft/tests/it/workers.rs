//! Workers on a real PostgreSQL server: several processes, each with its own home as on separate
//! hosts, and killed workers.
//!
//! Tests share a database and are kept apart by labels. Without a server, which `HAFT_POSTGRES`
//! names, each test prints that it is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use haft_testkit::{Reply, When};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::rig::{Ran, Rig};
use crate::serve::ServedPage;
use crate::worktrees::{command_call, rig, run_git};

/// A repository, a model, a server and a folder that commands of all workers may write.
pub(crate) struct Team {
    pub(crate) rig: Rig,
    pub(crate) label: String,
    pub(crate) shared: TempDir,
}

impl Team {
    pub(crate) fn new(name: &str, replies: impl IntoIterator<Item = Reply>) -> Option<Self> {
        Self::with_shared_folder(name, |_| replies)
    }

    /// Like [`Self::new`], with replies that name the shared folder.
    #[expect(clippy::print_stdout, reason = "a skip is told")]
    pub(crate) fn with_shared_folder<R: IntoIterator<Item = Reply>>(
        name: &str,
        replies: impl FnOnce(&Path) -> R,
    ) -> Option<Self> {
        let Ok(url) = std::env::var("HAFT_POSTGRES") else {
            println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
            return None;
        };
        let shared = tempfile::tempdir().unwrap();
        let writable = shared.path().canonicalize().unwrap();
        let rig = rig(replies(&writable));
        let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!(
            "{config}[store]\nurl = \"{url}\"\n[sandbox]\nwritable = [\"{}\"]\n",
            writable.display()
        ));
        let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        Some(Self {
            rig,
            label: format!("{name}-{}-{nanos}", std::process::id()),
            shared,
        })
    }

    /// Adds a task of the repository to the queue, and returns its number.
    pub(crate) fn add_task(&self, prompt: &str, more: &[&str]) -> i64 {
        let project = self.rig.project();
        let all = [
            "queue",
            "add",
            prompt,
            "--repository",
            project.to_str().unwrap(),
            "--label",
            &self.label,
            "--json",
        ];
        let ran = self
            .rig
            .run(&[&all[..], &["--permission-mode", "auto"], more].concat());
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        ran.json()[0]["id"].as_i64().unwrap()
    }

    pub(crate) fn show_task(&self, id: i64) -> Value {
        self.rig
            .run(&["queue", "show", &id.to_string(), "--json"])
            .json()
    }

    fn task_patch(&self, id: i64) -> String {
        self.rig
            .run(&["queue", "show", &id.to_string(), "--patch"])
            .stdout()
    }

    /// Returns a home for a worker on its own host.
    pub(crate) fn new_host(&self) -> TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::copy(
            self.rig.home().join("config.toml"),
            home.path().join("config.toml"),
        )
        .unwrap();
        home
    }

    pub(crate) fn worker_command(&self, home: &Path, more: &[&str]) -> Command {
        let all = [&["worker", "--label", &self.label, "--lease", "2"], more].concat();
        let mut command = self.rig.command(&all);
        command.env("HAFT_HOME", home);
        command
    }

    /// Runs a worker until the queue is empty.
    fn run_worker_until_empty(&self, more: &[&str]) -> Ran {
        let home = self.new_host();
        Ran(self
            .worker_command(home.path(), &[&["--until-empty"], more].concat())
            .output()
            .unwrap())
    }

    fn count_states(&self) -> BTreeMap<String, usize> {
        let listed = self
            .rig
            .run(&[
                "queue",
                "list",
                "--label",
                &self.label,
                "--limit",
                "1000",
                "--json",
            ])
            .json();
        let mut states = BTreeMap::new();
        for task in listed.as_array().unwrap() {
            *states
                .entry(task["state"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        states
    }

    /// Waits until `done` is true.
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !done(self) {
            assert!(
                started.elapsed() < Duration::from_mins(2),
                "{what}: {:?}",
                self.count_states()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A reply to requests with this many tool results.
pub(crate) fn reply_after(results: usize, reply: Reply) -> Reply {
    reply
        .when(When {
            tool_results: Some(results),
            ..When::default()
        })
        .times(1_000)
}

pub(crate) fn write_file_call(path: &str) -> Reply {
    Reply::call(
        "write_to_file",
        json!({"path": path, "content": "written\n"}),
    )
}

pub(crate) fn spawn_silently(command: &mut Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn send_signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn postgres_worker_runs_a_task_in_a_clone_and_keeps_its_result() {
    let replies = [
        reply_after(0, write_file_call("new.txt")),
        reply_after(1, command_call("echo ONE > lines.txt; rm old.txt")),
        reply_after(2, Reply::text("Done.")),
    ];
    let Some(team) = Team::new("plain", replies) else {
        return;
    };
    let head = run_git(&team.rig, &["rev-parse", "HEAD"]);
    let key = team.label.clone();
    let id = team.add_task("do it", &["--push", "haft/made", "--key", &key]);
    assert_eq!(
        team.add_task("do it", &["--key", &key]),
        id,
        "the key is taken"
    );
    let ran = team.run_worker_until_empty(&[]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let task = team.show_task(id);
    assert_eq!(
        (task["state"].as_str(), task["result"]["outcome"].as_str()),
        (Some("ended"), Some("completed")),
        "{task}"
    );
    assert_eq!(
        (task["base"].as_str(), task["result"]["text"].as_str()),
        (Some(head.trim()), Some("Done."))
    );
    assert!(
        task["spent_usd"].as_f64().unwrap() > 0.0 && task["spent_tokens"].as_i64().unwrap() > 0,
        "{task}"
    );
    // The project itself is unchanged; the change is a patch that applies, and a branch.
    assert_eq!(run_git(&team.rig, &["status", "--porcelain"]), "");
    assert_eq!(
        run_git(&team.rig, &["show", "haft/made:new.txt"]),
        "written\n",
        "{task}"
    );
    fs::write(team.shared.path().join("p"), team.task_patch(id)).unwrap();
    run_git(
        &team.rig,
        &["apply", team.shared.path().join("p").to_str().unwrap()],
    );
    assert_eq!(
        run_git(
            &team.rig,
            &["diff", "--stat", "haft/made", "--", "lines.txt", "old.txt"]
        ),
        ""
    );
    // The conversation and the log can be read from the store.
    let conversation = task["conversation"].as_str().unwrap();
    let exported = team
        .rig
        .run(&["conversations", "export", conversation])
        .json();
    assert_eq!(exported["messages"].as_array().unwrap().len(), 6);
    let log = team
        .rig
        .run(&["queue", "show", &id.to_string(), "--log"])
        .stdout();
    assert!(
        log.lines()
            .any(|line| line.contains("\"type\":\"tool_result\"")),
        "{log}"
    );
    let watched = team.rig.run(&["queue", "watch", &id.to_string()]);
    assert!(
        watched.code() == 0 && watched.stdout().contains("Done."),
        "{}",
        watched.stdout()
    );
    let stats = team.rig.run(&["queue", "stats", "--json"]).json();
    let label = stats["labels"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["label"] == team.label.as_str())
        .unwrap();
    assert_eq!(label["tasks"], 1);
}

/// Instructions of a repository are obeyed only if the worker's own configuration trusts it.
#[test]
fn postgres_worker_obeys_only_trusted_repositories() {
    for (pattern, obeyed) in [("PROJECT", true), ("/nowhere/*", false)] {
        let Some(team) = Team::new("trust", [Reply::text("Done.")]) else {
            return;
        };
        let project = team.rig.project();
        team.rig
            .write("AGENTS.md", "The word of the house is MAGPIE.");
        run_git(&team.rig, &["add", "--all"]);
        run_git(&team.rig, &["commit", "--quiet", "-m", "instructions"]);
        let config = fs::read_to_string(team.rig.home().join("config.toml")).unwrap();
        let pattern = pattern.replace("PROJECT", project.to_str().unwrap());
        team.rig
            .configure(&format!("{config}[worker]\ntrust = [\"{pattern}\"]\n"));
        let id = team.add_task("go", &[]);
        let host = team.new_host();
        let ran = Ran(team
            .worker_command(host.path(), &["--until-empty"])
            .output()
            .unwrap());
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        assert_eq!(team.show_task(id)["result"]["outcome"], "completed");
        let body = team.rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string();
        assert_eq!(body.contains("MAGPIE"), obeyed, "{pattern}");
        let list = fs::read_to_string(host.path().join("state/trust.toml")).unwrap_or_default();
        assert!(!list.contains("[[folder]]"), "{list}");
    }
}

/// Workers of a team are killed while they work; commands count their runs in a folder that no
/// worker resets.
#[test]
fn postgres_queue_of_forty_tasks_survives_ten_killed_workers() {
    let replies = |shared: &Path| {
        let count = format!(
            "echo ran >> '{}'/$(basename $(dirname $PWD)); sleep 0.3; echo first > first.txt",
            shared.display()
        );
        [
            reply_after(0, command_call(&count)),
            reply_after(1, write_file_call("second.txt")),
            reply_after(2, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("kills", replies) else {
        return;
    };
    let counted = team.shared.path();
    let count_commands = || fs::read_dir(counted).unwrap().count();
    let ids: Vec<_> = (0..40)
        .map(|n| team.add_task(&format!("task {n}"), &["--max-total-tokens", "1000000"]))
        .collect();
    let hosts: Vec<_> = (0..4).map(|_| team.new_host()).collect();
    let start =
        |host: &TempDir| spawn_silently(&mut team.worker_command(host.path(), &["--slots", "3"]));
    let mut workers: Vec<_> = hosts.iter().map(start).collect();
    for kill in 0..10_usize {
        let before = count_commands();
        team.wait_until("more commands have begun", |_| {
            count_commands() > before + kill % 3
        });
        let one = kill * 3 % workers.len();
        workers[one].kill().unwrap();
        workers[one].wait().unwrap();
        workers[one] = start(&hosts[one]);
    }
    team.wait_until("every task ends", |team| {
        team.count_states().get("ended") == Some(&40)
    });
    for worker in &mut workers {
        send_signal(worker, "-TERM");
        assert!(worker.wait().unwrap().success());
    }
    let mut uncertain = 0;
    for id in ids {
        let task = team.show_task(id);
        assert_eq!(task["result"]["outcome"], "completed", "{task}");
        let exported = team
            .rig
            .run(&[
                "conversations",
                "export",
                task["conversation"].as_str().unwrap(),
            ])
            .json();
        let messages = exported["messages"].as_array().unwrap();
        let roles: Vec<_> = messages
            .iter()
            .map(|one| one["role"].as_str().unwrap())
            .collect();
        assert_eq!(
            roles,
            [
                "user",
                "assistant",
                "tool",
                "assistant",
                "tool",
                "assistant"
            ],
            "one turn, whole: {exported}"
        );
        // A call that was started and has no result is uncertain; a call that has a result took
        // effect.
        let unsure = |at: usize| messages[at].to_string().contains("\"interrupted\"");
        let runs = fs::read_to_string(counted.join(id.to_string()))
            .unwrap_or_default()
            .lines()
            .count();
        assert!(
            runs == 1 || unsure(2) && runs == 0,
            "task {id} ran its command {runs} times: {exported}"
        );
        let patch = team.task_patch(id);
        assert!(
            unsure(2) || patch.contains("b/first.txt"),
            "{patch}\n{exported}"
        );
        assert!(
            unsure(4) || patch.contains("b/second.txt"),
            "{patch}\n{exported}"
        );
        uncertain += usize::from(unsure(2)) + usize::from(unsure(4));
    }
    println!("calls that were under way when their worker was killed: {uncertain}");
}

/// Finished steps of a workflow are not run again, and an interrupted step is continued.
#[cfg(feature = "workflows")]
#[test]
fn postgres_workflow_resumes_after_its_worker_is_killed() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let on = |text: &str, line: String| {
            command_call(&line).when(When {
                last_contains: Some(text.into()),
                ..When::default()
            })
        };
        [
            on(
                "FIRST lib",
                format!("echo ran >> {at}/first; echo first > first.txt"),
            ),
            on(
                "SECOND",
                format!("echo ran >> {at}/second; while [ ! -e {at}/go ]; do sleep 0.1; done"),
            ),
            reply_after(1, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("workflow", replies) else {
        return;
    };
    let host = || {
        let home = team.new_host();
        let folder = home.path().join("workflows");
        fs::create_dir(&folder).unwrap();
        let first = "description: Two\ninputs: {area: src}\nsteps:\n  - name: first\n    prompt: FIRST {{ inputs.area }}.\n";
        let second = "  - name: second\n    needs: [first]\n    prompt: SECOND, after {{ steps.first.output }}\n";
        fs::write(folder.join("two.yaml"), format!("{first}{second}")).unwrap();
        fs::write(
            folder.join("copy.yaml"),
            format!("{first}    worktree: true\n"),
        )
        .unwrap();
        home
    };
    let page = ServedPage::start(&team.rig);
    let linked = |id: i64, step: &str| {
        let html = page.get_page(&format!("/queue/{id}"));
        let (before, _) = html.split_once(&format!("\">{step}</a>"))?;
        Some(before.rsplit_once("<a href=\"/c/")?.1.to_owned())
    };
    let add = |name: &str| {
        let project = team.rig.project();
        let all = [
            "queue",
            "add",
            "--workflow",
            name,
            "--input",
            "area=lib",
            "--repository",
            project.to_str().unwrap(),
        ];
        let ran = team.rig.run(
            &[
                &all[..],
                &[
                    "--permission-mode",
                    "auto",
                    "--label",
                    &team.label,
                    "--json",
                ],
            ]
            .concat(),
        );
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        ran.json()[0]["id"].as_i64().unwrap()
    };
    let id = add("two");
    let shared = team.shared.path();
    let one = host();
    let other = host();
    let mut worker = spawn_silently(&mut team.worker_command(one.path(), &[]));
    team.wait_until("the second step runs its command", |_| {
        shared.join("second").exists()
    });
    let first = linked(id, "first").unwrap();
    let second = linked(id, "second").unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let copies = add("copy");
    let mut worker = spawn_silently(&mut team.worker_command(other.path(), &[]));
    team.wait_until("both end", |team| {
        [id, copies]
            .iter()
            .all(|id| team.show_task(*id)["ended_at"].is_i64())
    });
    fs::write(shared.join("go"), "").unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let task = team.show_task(id);
    let result = &task["result"];
    assert_eq!(
        (&result["outcome"], &result["message"]),
        (&json!("completed"), &json!("All 2 steps are done.")),
        "{task}"
    );
    let steps: Vec<_> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["outcome"].as_str())
        .collect();
    assert_eq!(steps, [Some("completed"); 2], "{task}");
    for step in ["first", "second"] {
        assert_eq!(
            fs::read_to_string(shared.join(step)).unwrap(),
            "ran\n",
            "{step} ran once"
        );
    }
    let of_step = |step: usize| result["steps"][step]["conversation_id"].as_str().unwrap();
    assert_eq!(
        [of_step(0), of_step(1)],
        [&first, &second],
        "the page leads to them while they run"
    );
    assert_eq!(
        [linked(id, "first"), linked(id, "second")],
        [Some(first), Some(second.clone())],
        "and afterwards"
    );
    let exported = team.rig.run(&["conversations", "export", &second]).json();
    assert!(
        exported["messages"][2]
            .to_string()
            .contains("\"interrupted\""),
        "{exported}"
    );
    assert!(team.task_patch(id).contains("b/first.txt"), "{task}");
    assert!(task["spent_tokens"].as_i64().unwrap() > 0, "{task}");
    let refused = team.show_task(copies);
    assert!(
        refused["result"]["message"]
            .as_str()
            .unwrap()
            .contains("worktree: false"),
        "{refused}"
    );
}

#[test]
fn postgres_worker_shutdown_hands_tasks_over_and_cancel_ends_them() {
    let replies = |shared: &Path| {
        let wait = format!(
            "echo begun > first.txt; while [ ! -e {}/go ]; do sleep 0.1; done",
            shared.display()
        );
        [
            reply_after(0, write_file_call("before.txt")),
            reply_after(1, command_call(&wait)),
            reply_after(2, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("drain", replies) else {
        return;
    };
    let host = team.new_host();
    let handed = team.add_task("hand over", &[]);
    let cancelled = team.add_task("cancel", &[]);
    let mut worker =
        spawn_silently(&mut team.worker_command(host.path(), &["--slots", "2", "--drain", "0.2"]));
    let in_command = |id: i64| {
        move |team: &Team| {
            let log = team
                .rig
                .run(&["queue", "show", &id.to_string(), "--log"])
                .stdout();
            log.contains("\"name\":\"execute_command\"")
        }
    };
    team.wait_until("both run their command", |team| {
        in_command(handed)(team) && in_command(cancelled)(team)
    });
    assert_eq!(
        team.rig
            .run(&["queue", "retry", &handed.to_string()])
            .code(),
        2,
        "it has not ended"
    );
    assert_eq!(
        team.rig
            .run(&["queue", "cancel", &cancelled.to_string()])
            .code(),
        0
    );
    team.wait_until("it ends", |team| {
        team.show_task(cancelled)["state"] == "cancelled"
    });
    send_signal(&worker, "-TERM");
    assert!(worker.wait().unwrap().success());
    let task = team.show_task(handed);
    assert_eq!(
        (task["state"].as_str(), task["attempts"].as_i64()),
        (Some("queued"), Some(0)),
        "{task}"
    );
    fs::write(team.shared.path().join("go"), "").unwrap();
    assert_eq!(team.run_worker_until_empty(&[]).code(), 0);
    let task = team.show_task(handed);
    assert_eq!(task["result"]["outcome"], "completed", "{task}");
    assert!(
        team.task_patch(handed).contains("b/before.txt"),
        "what the first worker's calls changed: {task}"
    );
    // A task that is tried again is an ordinary task.
    assert_eq!(
        team.rig
            .run(&["queue", "retry", &cancelled.to_string()])
            .code(),
        0
    );
    assert_eq!(team.run_worker_until_empty(&[]).code(), 0);
    assert_eq!(team.show_task(cancelled)["state"], "ended");
}

/// A worker is stopped for longer than its lease and then continued: its task belongs to another
/// worker by then.
#[test]
fn postgres_stopped_worker_changes_nothing_after_its_lease() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let wait = format!(
            "echo begun >> {at}/begun; while [ ! -e {at}/go ]; do sleep 0.1; done; echo first > first.txt"
        );
        [
            reply_after(0, command_call(&wait)),
            reply_after(1, write_file_call("second.txt")),
            reply_after(2, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("still", replies) else {
        return;
    };
    let id = team.add_task("stand still", &[]);
    let host = team.new_host();
    let mut late = spawn_silently(&mut team.worker_command(host.path(), &["--slots", "1"]));
    team.wait_until("its command runs", |team| {
        team.shared.path().join("begun").exists()
    });
    send_signal(&late, "-STOP");
    team.wait_until("another one has it", |team| {
        team.run_worker_until_empty(&[]).code() == 0 && team.show_task(id)["state"] == "ended"
    });
    let before = team.show_task(id);
    let conversation = before["conversation"].as_str().unwrap();
    let export = || {
        team.rig
            .run(&["conversations", "export", conversation])
            .json()["messages"]
            .clone()
    };
    let told = export();
    fs::write(team.shared.path().join("go"), "").unwrap();
    send_signal(&late, "-CONT");
    // With one slot, it runs another task only after it has given up the lost one.
    let next = team.add_task("the next", &[]);
    team.wait_until("it has ended another task", |team| {
        team.show_task(next)["state"] == "ended"
    });
    assert_eq!(team.show_task(id), before);
    assert_eq!(export(), told);
    send_signal(&late, "-TERM");
    assert!(late.wait().unwrap().success());
}

#[test]
fn postgres_task_reports_why_it_cannot_run() {
    let Some(team) = Team::new("refused", [Reply::text("Done.").times(9)]) else {
        return;
    };
    let add = |more: &[&str]| {
        let all = ["queue", "add", "x", "--label", &team.label, "--json"];
        team.rig.run(&[&all[..], more].concat()).json()[0]["id"]
            .as_i64()
            .unwrap()
    };
    let gone = add(&["--repository", "/nowhere/at/all"]);
    let model = add(&["--model", "nobody/nothing"]);
    let commit = add(&[
        "--repository",
        team.rig.project().to_str().unwrap(),
        "--commit=--upload-pack=x",
    ]);
    let plain = add(&[]);
    let later = add(&["--not-before", "3600"]);
    assert_eq!(team.run_worker_until_empty(&[]).code(), 0);
    for (id, told) in [
        (gone, "/nowhere/at/all"),
        (model, "nobody"),
        (commit, "checkout"),
    ] {
        let task = team.show_task(id);
        assert_eq!(
            (task["state"].as_str(), task["result"]["code"].as_str()),
            (Some("failed"), Some("refused")),
            "{task}"
        );
        assert!(
            task["result"]["message"].as_str().unwrap().contains(told),
            "{task}"
        );
    }
    assert_eq!(
        (
            team.show_task(plain)["state"].as_str(),
            team.show_task(later)["state"].as_str()
        ),
        (Some("ended"), Some("queued"))
    );
    let refused = |arguments: &[&str], told: &str| {
        let ran = team.rig.run(arguments);
        assert!(
            ran.code() == 2 && ran.stderr().contains(told),
            "{arguments:?}: {} {}",
            ran.code(),
            ran.stderr()
        );
    };
    refused(
        &["queue", "add", "x", "--permission-mode", "yolo"],
        "sandbox",
    );
    refused(&["queue", "add", "x", "--push", "b"], "--repository");
    refused(&["queue", "add", " "], "empty");
    refused(&["queue", "add", "x", "--not-before", "soon"], "time");
    refused(&["queue", "show", "999999999"], "999999999");
    refused(&["queue", "cancel", &plain.to_string()], "ended");
    refused(&["queue", "list", "--state", "odd"], "queued");
    refused(&["worker", "--set", "sandbox.mode=off"], "sandbox");
    let alone = rig([]).run(&["queue"]);
    assert!(
        alone.code() == 2 && alone.stderr().contains("store.url"),
        "{}",
        alone.stderr()
    );
}

#[test]
fn postgres_queue_add_accepts_repository_lists_and_bundles() {
    let Some(team) = Team::new(
        "each",
        [
            reply_after(0, write_file_call("new.txt")),
            reply_after(1, Reply::text("Done.")),
        ],
    ) else {
        return;
    };
    let bundle = team.shared.path().join("repository.bundle");
    run_git(
        &team.rig,
        &[
            "bundle",
            "create",
            "--quiet",
            bundle.to_str().unwrap(),
            "HEAD",
            "--branches",
        ],
    );
    let list = team.shared.path().join("repos.txt");
    let project = team.rig.project();
    fs::write(
        &list,
        format!(
            "# two of them\n{}\n\n{}\n",
            project.display(),
            bundle.display()
        ),
    )
    .unwrap();
    let all = [
        "queue",
        "add",
        "x",
        "--each",
        list.to_str().unwrap(),
        "--label",
        &team.label,
        "--key",
        &team.label,
        "--json",
    ];
    let added = team
        .rig
        .run(&[&all[..], &["--permission-mode", "accept-edits"]].concat())
        .json();
    let again = team.rig.run(&all).json();
    assert!(
        added
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["added"] == true),
        "{added}"
    );
    assert!(
        again
            .as_array()
            .unwrap()
            .iter()
            .all(|one| one["added"] == false),
        "{again}"
    );
    // A bundle need not exist any more after its task was added.
    fs::remove_file(&bundle).unwrap();
    let host = team.new_host();
    let mut worker = team.worker_command(host.path(), &["--metrics"]);
    let mut worker = worker
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    team.wait_until("both end", |team| {
        team.count_states().get("ended") == Some(&2)
    });
    let mut told = worker.stderr.take().unwrap();
    let mut text = vec![0; 400];
    let length = told.read(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text[..length]).into_owned();
    let address = text
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .expect("an address")
        .to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(
        page.contains("haft_queue_tasks{state=\"completed\"}") && page.contains(&team.label),
        "{page}"
    );
    send_signal(&worker, "-TERM");
    assert!(worker.wait().unwrap().success());
    for one in added.as_array().unwrap() {
        let id = one["id"].as_i64().unwrap();
        assert!(
            team.task_patch(id).contains("b/new.txt"),
            "{}",
            team.show_task(id)
        );
    }
}

/// The budget of a task covers all its attempts together, including the spending of killed workers.
#[test]
fn postgres_max_budget_covers_all_attempts_of_a_task() {
    let replies = |shared: &Path| {
        let slow = format!("echo ran >> '{}'/ran; sleep 0.4", shared.display());
        (0..30)
            .map(|results| reply_after(results, command_call(&slow)))
            .collect::<Vec<_>>()
    };
    let Some(team) = Team::with_shared_folder("money", replies) else {
        return;
    };
    let id = team.add_task(
        "spend",
        &["--max-budget-usd", "0.9", "--max-attempts", "30"],
    );
    let count_runs = |team: &Team| {
        fs::read_to_string(team.shared.path().join("ran"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    let host = team.new_host();
    for _ in 0..4 {
        let before = count_runs(&team);
        let mut worker = spawn_silently(&mut team.worker_command(host.path(), &[]));
        team.wait_until("it has run two more commands", |team| {
            count_runs(team) >= before + 2
        });
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    team.wait_until("the lease ends", |team| {
        team.run_worker_until_empty(&[]);
        team.show_task(id)["state"] == "ended"
    });
    let task = team.show_task(id);
    assert!(task["spent_usd"].as_f64().unwrap() <= 0.9, "{task}");
    assert!(task["attempts"].as_i64().unwrap() >= 4, "{task}");
}

/// Returns the words of a line that starts a worker.
fn option_words(line: &str) -> Vec<String> {
    line.split(['[', ']', ',', ' ', '"'])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn deploy_files_name_existing_options_and_settings() {
    let rig = rig([]);
    let file = |name: &str| fs::read_to_string(Path::new("../../../deploy").join(name)).unwrap();
    let compose = file("compose.yaml");
    let unit = file("haft-worker.service");
    let of_compose = compose
        .lines()
        .find_map(|line| line.trim().strip_prefix("command: [\"worker\""))
        .unwrap();
    let of_unit = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/haft worker"))
        .unwrap();
    for line in [of_compose, of_unit] {
        let words = option_words(line);
        assert!(words.contains(&"--slots".to_owned()), "{words:?}");
        let words: Vec<_> = ["worker"]
            .into_iter()
            .chain(words.iter().map(String::as_str))
            .chain(["--help"])
            .collect();
        let ran = rig.run(&words);
        assert_eq!(ran.code(), 0, "{words:?}: {}", ran.stderr());
        // An unknown option would have been rejected.
        assert_ne!(
            rig.run(&[&["worker", "--slotz"], &words[1..]].concat())
                .code(),
            0
        );
    }
    let mut command = rig.command(&["config", "get", "store.url"]);
    let variables = compose
        .lines()
        .filter_map(|line| line.trim().split_once(": "));
    let set: Vec<_> = variables
        .filter(|(name, _)| name.starts_with("HAFT_") && *name != "HAFT_HOME")
        .collect();
    assert_eq!(
        set.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["HAFT_STORE__URL", "HAFT_MODEL"]
    );
    let ran = Ran(command.envs(set).output().unwrap());
    assert!(
        ran.code() == 0 && ran.stdout().contains("@database/haft"),
        "{}{}",
        ran.stdout(),
        ran.stderr()
    );

    let copy = rig.project().join("haft-worker.service");
    fs::write(
        &copy,
        unit.replace(
            "/usr/bin/haft",
            &format!("\"{}\"", crate::rig::haft().display()),
        ),
    )
    .unwrap();
    match Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .arg(&copy)
        .output()
    {
        Ok(verified) => {
            let said = String::from_utf8_lossy(&verified.stderr);
            assert!(
                verified.status.success() && !said.contains("haft-worker.service:"),
                "{said}"
            );
        }
        Err(error) => println!("skipped: systemd-analyze cannot be run ({error})"),
    }
}
