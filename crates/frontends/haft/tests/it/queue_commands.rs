//! The commands of `haft queue` that act on many tasks or on the tables. Each test has a schema of
//! its own, in which no other worker runs.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use haft_testkit::Reply;
use serde_json::json;

use crate::rig::Ran;
use crate::workers::{Team, reply_after, spawn_silently, write_file_call};
use crate::worktrees::command_call;

/// A schema for one test, removed at its end.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    /// Returns `None` if there is no server or no `psql`.
    #[expect(clippy::print_stdout, reason = "a skip is told")]
    fn new(name: &str) -> Option<Self> {
        let Ok(server) = std::env::var("HAFT_POSTGRES") else {
            println!("skipped: HAFT_POSTGRES does not name a PostgreSQL server");
            return None;
        };
        if Command::new("psql").arg("--version").output().is_err() {
            println!("skipped: psql is not installed");
            return None;
        }
        let name = format!("commands_{name}_{}", std::process::id());
        let schema = Self { server, name };
        schema.change(&format!("CREATE SCHEMA {}", schema.name));
        Some(schema)
    }

    /// The address of the schema.
    fn url(&self) -> String {
        let mark = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{mark}options[search_path]={}", self.server, self.name)
    }

    /// The address of the schema for another role.
    fn url_of_role(&self, role: &str) -> String {
        let url = self.url();
        let (_, rest) = url.split_once("://").unwrap();
        let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
        format!("postgres://{role}@{rest}")
    }

    /// Runs statements in the schema, as an administrator would.
    fn change(&self, sql: &str) {
        let done = self.execute(sql);
        assert!(
            done.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn execute(&self, sql: &str) -> Output {
        let mut psql = Command::new("psql")
            .args(["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1"])
            .arg(&self.server)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = psql.stdin.take().unwrap();
        let text = format!("SET search_path = {};\n{sql};\n", self.name);
        input.write_all(text.as_bytes()).unwrap();
        drop(input);
        psql.wait_with_output().unwrap()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.execute(&format!("DROP SCHEMA {} CASCADE", self.name));
    }
}

/// A team whose queue is in a schema of its own.
fn new_team(name: &str, replies: impl IntoIterator<Item = Reply>) -> Option<(Team, Schema)> {
    let schema = Schema::new(name)?;
    let team = Team::new(name, replies)?;
    set_address(&team, &schema.url());
    Some((team, schema))
}

/// Changes the address of the store in the configuration.
fn set_address(team: &Team, url: &str) {
    let path = team.rig.home().join("config.toml");
    let config = std::fs::read_to_string(path).unwrap();
    let lines = config.lines().map(|line| {
        if line.starts_with("url = ") {
            format!("url = \"{url}\"\n")
        } else {
            format!("{line}\n")
        }
    });
    team.rig.configure(&lines.collect::<String>());
}

fn run(team: &Team, arguments: &[&str]) -> Ran {
    let ran = team.rig.run(arguments);
    assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
    ran
}

/// Returns the ids of the listed tasks.
fn list_ids(team: &Team, more: &[&str]) -> Vec<i64> {
    let listed = run(team, &[&["queue", "list", "--json"], more].concat()).json();
    let ids = listed.as_array().unwrap().iter().map(|task| &task["id"]);
    ids.map(|id| id.as_i64().unwrap()).collect()
}

fn run_worker(team: &Team, more: &[&str]) -> Ran {
    let host = team.new_host();
    Ran(team.worker_command(host.path(), more).output().unwrap())
}

fn write_and_end() -> [Reply; 2] {
    [
        reply_after(0, write_file_call("new.txt")),
        reply_after(1, Reply::text("Done.")),
    ]
}

/// The owner creates the tables and gives a role the rights for adding and running tasks. Without
/// them, the role is told what to do; it never gets the right to create tables.
#[test]
fn postgres_queue_migrate_lets_a_role_work_without_more_rights() {
    let Some((team, schema)) = new_team("migrate", write_and_end()) else {
        return;
    };
    let role = format!("commands_role_{}", std::process::id());
    schema.change(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {} TO {role}",
        schema.name
    ));
    set_address(&team, &schema.url_of_role(&role));
    let refused = team.rig.run(&["queue", "list"]);
    assert_ne!(refused.code(), 0);
    assert!(
        refused.stderr().contains("haft queue migrate"),
        "{}",
        refused.stderr()
    );
    set_address(&team, &schema.url());
    let unknown = team
        .rig
        .run(&["queue", "migrate", "--grant", "nobody-has-this"]);
    assert_ne!(unknown.code(), 0);
    assert!(
        unknown.stderr().contains("nobody-has-this"),
        "{}",
        unknown.stderr()
    );
    // Once more is harmless.
    for _ in 0..2 {
        let migrated = run(&team, &["queue", "migrate", "--grant", &role]);
        assert_eq!(migrated.stdout(), "The tables are up to date.\n");
    }
    set_address(&team, &schema.url_of_role(&role));
    let id = team.add_task("work", &[]);
    assert_eq!(list_ids(&team, &["--state", "ready"]), [id]);
    let ran = run_worker(&team, &["--until-empty"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(team.show_task(id)["status"], "completed");
    run(&team, &["queue", "retry", &id.to_string()]);
    run(&team, &["queue", "pause", "--label", "x"]);
    run(&team, &["queue", "resume", "--label", "x"]);
    run(&team, &["queue", "cancel", &id.to_string()]);
    run(&team, &["queue", "prune", "--days", "0"]);
    assert_eq!(list_ids(&team, &[]), [0_i64; 0]);
    schema.change(&format!(
        "DO $$ BEGIN ASSERT NOT has_schema_privilege('{role}', '{}', 'CREATE'); END $$",
        schema.name
    ));
    schema.change(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// The printed statements create tables that haft accepts as they are.
#[test]
fn postgres_queue_migrate_sql_creates_the_tables() {
    let Some((team, schema)) = new_team("sql", []) else {
        return;
    };
    let script = run(&team, &["queue", "migrate", "--sql"]).stdout();
    let conflict = team
        .rig
        .run(&["queue", "migrate", "--sql", "--grant", "someone"]);
    assert_eq!(conflict.code(), 2);
    schema.change(&script);
    let role = format!("commands_reader_{}", std::process::id());
    schema.change(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {role}",
        schema.name
    ));
    // This role could not create what is missing.
    set_address(&team, &schema.url_of_role(&role));
    assert_eq!(list_ids(&team, &["--state", "ready"]), [0_i64; 0]);
    set_address(&team, &schema.url());
    let migrated = run(&team, &["queue", "migrate"]);
    assert_eq!(migrated.stdout(), "The tables are up to date.\n");
    schema.change(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    // Without a server, there is nothing to print them for but review.
    team.rig.configure("");
    assert_eq!(run(&team, &["queue", "migrate", "--sql"]).stdout(), script);
}

/// `cancel` and `retry` with a selection change the selected tasks, and no others.
#[test]
fn postgres_queue_retry_and_cancel_accept_a_selection() {
    let Some((team, _schema)) = new_team("bulk", write_and_end()) else {
        return;
    };
    let night = ["--label", "night", "--model", "nobody/nothing"];
    let failed = [team.add_task("a", &night), team.add_task("b", &night)];
    let day = team.add_task("c", &["--label", "day", "--model", "nobody/nothing"]);
    let good = team.add_task("d", &["--label", "night"]);
    let ran = run_worker(&team, &["--until-empty"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(
        list_ids(&team, &["--state", "failed"]),
        [day, failed[1], failed[0]]
    );
    let before = failed.map(|id| team.show_task(id)["conversation"].clone());
    let selection = ["--state", "failed", "--label", "night"];
    let retried = run(
        &team,
        &[&["queue", "retry", "--json"], &selection[..]].concat(),
    )
    .json();
    assert_eq!(
        retried,
        json!([{"id": failed[0], "changed": true}, {"id": failed[1], "changed": true}])
    );
    assert_eq!(list_ids(&team, &["--state", "ready"]), failed);
    for (id, before) in failed.iter().zip(before) {
        assert_ne!(team.show_task(*id)["conversation"], before);
    }
    assert_eq!(team.show_task(good)["status"], "completed");
    assert_eq!(team.show_task(day)["status"], "failed");
    let nothing = run(&team, &[&["queue", "retry"], &selection[..]].concat());
    assert_eq!(nothing.stdout(), "No task was changed.\n");
    // A canceled selection leaves out what is over.
    let cancelled = run(&team, &["queue", "cancel", "--label", "night"]);
    assert_eq!(
        cancelled.stdout(),
        failed.map(|id| format!("{id}: cancelled\n")).concat()
    );
    assert_eq!(list_ids(&team, &["--state", "queued"]), [0_i64; 0]);
    let both = ["queue", "retry", "1", "--state", "failed"];
    assert_eq!(team.rig.run(&both).code(), 2);
    assert_eq!(team.rig.run(&["queue", "retry"]).code(), 2);
    assert_eq!(
        team.rig.run(&["queue", "cancel", "--state", "odd"]).code(),
        2
    );
}

/// A paused label keeps its tasks from workers until the pause ends, and `stats` shows it.
#[test]
fn postgres_queue_pause_keeps_tasks_from_workers() {
    let Some((team, _schema)) = new_team("pause", write_and_end()) else {
        return;
    };
    let held = team.add_task("held", &["--label", "p"]);
    let free = team.add_task("free", &[]);
    let pause = ["queue", "pause", "--label", "p"];
    let resume = ["queue", "resume", "--label", "p"];
    assert_eq!(run(&team, &pause).stdout(), "paused\n");
    assert_eq!(run(&team, &pause).stdout(), "already paused\n");
    let stats = run(&team, &["queue", "stats", "--json"]).json();
    assert_eq!(
        (&stats["paused"], &stats["ready"]),
        (&json!(["p"]), &json!(1))
    );
    let shown = run(&team, &["queue", "stats"]).stdout();
    assert!(
        shown.contains("Ready for a worker: 1\n")
            && shown.contains("Paused: tasks with the label p.\n"),
        "{shown}"
    );
    assert_eq!(run_worker(&team, &["--until-empty"]).code(), 0);
    let statuses = |team: &Team| [held, free].map(|id| team.show_task(id)["status"].clone());
    assert_eq!(statuses(&team), ["queued", "completed"]);
    assert_eq!(run(&team, &resume).stdout(), "resumed\n");
    assert_eq!(team.rig.run(&resume).code(), 2, "it is not paused");
    assert_eq!(run(&team, &["queue", "pause"]).stdout(), "paused\n");
    assert_eq!(run_worker(&team, &["--until-empty"]).code(), 0);
    assert_eq!(statuses(&team), ["queued", "completed"]);
    run(&team, &["queue", "resume"]);
    assert_eq!(run_worker(&team, &["--until-empty"]).code(), 0);
    assert_eq!(statuses(&team), ["completed", "completed"]);
}

/// `prune` removes ended tasks by age, with their logs. Conversations and younger tasks stay.
#[test]
fn postgres_queue_prune_removes_old_ended_tasks() {
    let Some((team, schema)) = new_team("prune", write_and_end()) else {
        return;
    };
    let [old, young] = ["old", "young"].map(|prompt| team.add_task(prompt, &[]));
    assert_eq!(run_worker(&team, &["--until-empty"]).code(), 0);
    let waiting = team.add_task("waiting", &[]);
    schema.change(&format!(
        "UPDATE queue_tasks SET ended_at = now() - interval '3 days' WHERE id = {old};
         UPDATE queue_tasks SET created_at = now() - interval '3 days'"
    ));
    let conversation = team.show_task(old)["conversation"].clone();
    let prune = |days: &str| run(&team, &["queue", "prune", "--days", days, "--json"]).json();
    assert_eq!(prune("4"), json!({"tasks": 0, "workers": 0}));
    let told = run(&team, &["queue", "prune", "--days", "2"]);
    assert_eq!(
        told.stdout(),
        "Removed tasks: 1. Removed lost workers: 0.\n"
    );
    assert_eq!(list_ids(&team, &[]), [waiting, young]);
    assert_eq!(team.rig.run(&["queue", "show", &old.to_string()]).code(), 2);
    schema.change(&format!(
        "DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM queue_log WHERE task = {old}); END $$"
    ));
    run(
        &team,
        &["conversations", "show", conversation.as_str().unwrap()],
    );
    assert_eq!(team.rig.run(&["queue", "prune"]).code(), 2, "no age");
}

/// Without any worker, a scheduled task gets due and the worker of another one dies. Both are ready
/// for a worker that a scheduler starts, and it takes them at once.
#[test]
fn postgres_queue_ready_tasks_are_taken_by_a_worker_for_one_task() {
    let Some((team, schema)) = new_team(
        "ready",
        [
            reply_after(0, command_call("sleep 0.1; echo one > one.txt")),
            reply_after(1, Reply::text("Done.")),
        ],
    ) else {
        return;
    };
    let killed = team.add_task("be killed", &[]);
    let host = team.new_host();
    let mut worker = spawn_silently(&mut team.worker_command(host.path(), &[]));
    team.wait_until("it has the task", |team| {
        team.show_task(killed)["epoch"] == 1
    });
    worker.kill().unwrap();
    worker.wait().unwrap();
    // The worker may have been faster.
    schema.change(
        "UPDATE queue_tasks SET state = 'running', worker = 0, outcome = NULL, ended_at = NULL",
    );
    assert_eq!(list_ids(&team, &["--state", "ready"]), [killed]);
    let scheduled = team.add_task("later", &["--not-before", "1"]);
    let later = team.add_task("much later", &["--not-before", "3600"]);
    team.wait_until("its time has come", |team| {
        list_ids(team, &["--state", "ready"]) == [killed, scheduled]
    });
    let stats = run(&team, &["queue", "stats", "--json"]).json();
    assert_eq!(
        (&stats["ready"], &stats["states"]),
        (&json!(2), &json!({"queued": 2, "running": 1}))
    );
    let statuses = || [killed, scheduled, later].map(|id| team.show_task(id)["status"].clone());
    let ran = run_worker(&team, &["--task", &scheduled.to_string()]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(statuses(), ["queued", "completed", "queued"]);
    // Lost again, and taken by a worker that ends when nothing is left to take.
    schema.change("UPDATE queue_tasks SET state = 'running', worker = 0, due = false WHERE state = 'queued' AND epoch > 0");
    let ran = run_worker(&team, &["--task", "next"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(statuses(), ["completed", "completed", "queued"]);
    assert_eq!(list_ids(&team, &["--state", "ready"]), [0_i64; 0]);
    schema.change("UPDATE queue_tasks SET not_before = now() WHERE state = 'queued'");
    assert_eq!(list_ids(&team, &["--state", "ready"]), [later]);
    let ran = run_worker(&team, &["--until-empty"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(statuses(), ["completed"; 3]);
}
