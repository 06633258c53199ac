//! Workers under what ordinary operations do to them: old folders, sick hosts, refused pushes, dead
//! connections, two workers in one folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use haft_testkit::Reply;
use serde_json::{Value, json};

use crate::rig::Ran;
use crate::workers::{Team, reply_after, send_signal, spawn_silently, write_file_call};
use crate::worktrees::{command_call, run_git};

/// A first reply that writes a file, and a second one that ends.
fn write_and_end() -> [Reply; 2] {
    [
        reply_after(0, write_file_call("new.txt")),
        reply_after(1, Reply::text("Done.")),
    ]
}

fn run_until_empty(team: &Team, home: &Path, more: &[&str]) -> Ran {
    Ran(team
        .worker_command(home, &[&["--until-empty"], more].concat())
        .output()
        .unwrap())
}

fn outcome(task: &Value) -> (Option<&str>, Option<&str>) {
    (
        task["result"]["outcome"].as_str(),
        task["result"]["code"].as_str(),
    )
}

fn problems(team: &Team) -> Vec<String> {
    let stats = team.rig.run(&["queue", "stats", "--json"]).json();
    let workers = stats["workers"].as_array().unwrap().iter();
    let own = workers.filter(|one| one["labels"] == json!([team.label]));
    let problems = own.filter_map(|one| one["problem"].as_str());
    problems.map(str::to_owned).collect()
}

fn end_worker(mut worker: Child) {
    send_signal(&worker, "-TERM");
    assert!(worker.wait().unwrap().success());
}

/// A worker that is up for more than two days keeps the folder of its sandbox.
#[test]
fn postgres_worker_keeps_its_own_folder_for_days() {
    let Some(team) = Team::new("old", write_and_end()) else {
        return;
    };
    let host = team.new_host();
    let worker = spawn_silently(&mut team.worker_command(host.path(), &[]));
    let tmp = host.path().join("cache/tmp");
    team.wait_until("its folder is there", |_| {
        fs::read_dir(&tmp).is_ok_and(|mut entries| entries.next().is_some())
    });
    let first = team.add_task("one", &[]);
    team.wait_until("a task ends", |team| {
        team.show_task(first)["ended_at"].is_i64()
    });
    let old = SystemTime::now() - Duration::from_hours(50);
    for entry in fs::read_dir(&tmp).unwrap().flatten() {
        for path in [
            entry.path().join("tmp"),
            entry.path().join("in-use.lock"),
            entry.path(),
        ] {
            if let Ok(file) = fs::File::open(&path) {
                file.set_modified(old).unwrap();
            }
        }
    }
    let ids: Vec<_> = (0..3)
        .map(|n| team.add_task(&format!("task {n}"), &[]))
        .collect();
    team.wait_until("the others end", |team| {
        ids.iter()
            .all(|id| team.show_task(*id)["ended_at"].is_i64())
    });
    for id in ids {
        let task = team.show_task(id);
        assert_eq!(outcome(&task).0, Some("completed"), "{task}");
        assert_eq!(task["failures"], 0, "at the first attempt: {task}");
    }
    end_worker(worker);
}

/// A host whose sandbox cannot be set up gives its tasks back, takes no more, and reports itself.
/// Another host runs them all, and the sick one goes on once it is repaired.
#[test]
fn postgres_worker_on_a_sick_host_fails_no_task() {
    let Some(team) = Team::new("sick", write_and_end()) else {
        return;
    };
    let host = team.new_host();
    let worker = spawn_silently(&mut team.worker_command(host.path(), &["--slots", "2"]));
    let tmp = host.path().join("cache/tmp");
    team.wait_until("its folder is there", |_| {
        fs::read_dir(&tmp).is_ok_and(|mut entries| entries.next().is_some())
    });
    fs::remove_dir_all(&tmp).unwrap();
    fs::write(&tmp, "no folder").unwrap();
    let ids = [0, 1, 2, 3, 4, 5].map(|n| team.add_task(&format!("task {n}"), &[]));
    team.wait_until("the worker reports its problem", |team| {
        !problems(team).is_empty()
    });
    let healthy = team.new_host();
    let ran = run_until_empty(&team, healthy.path(), &[]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(problems(&team).len(), 1, "the host is sick all the time");
    let tasks = ids.map(|id| team.show_task(id));
    for task in &tasks {
        assert_eq!(outcome(task).0, Some("completed"), "{task}");
        assert!(task["patch_bytes"].as_i64().unwrap() > 0, "{task}");
        assert_eq!(task["attempts"], 1, "only the good run counts: {task}");
    }
    // Each slot can have taken a task before the host was known to be sick; no check takes more.
    let takings: i64 = tasks
        .iter()
        .map(|task| task["epoch"].as_i64().unwrap())
        .sum();
    assert!(takings <= 6 + 2, "{takings} takings of 6 tasks");
    fs::remove_file(&tmp).unwrap();
    let repaired = team.add_task("on the repaired host", &[]);
    team.wait_until("it ends", |team| {
        team.show_task(repaired)["ended_at"].is_i64()
    });
    let task = team.show_task(repaired);
    assert_eq!(outcome(&task).0, Some("completed"), "{task}");
    assert!(problems(&team).is_empty(), "the problem is over");
    end_worker(worker);
}

/// A push that the server refuses is a failure, with git's reason and the patch. A retry can push
/// to the branch of the task's own earlier run, and to no other.
#[test]
fn postgres_worker_refused_push_fails_the_task() {
    let Some(team) = Team::new("push", write_and_end()) else {
        return;
    };
    run_git(&team.rig, &["checkout", "--quiet", "-b", "taken"]);
    run_git(
        &team.rig,
        &["commit", "--quiet", "--allow-empty", "-m", "by a person"],
    );
    let person = run_git(&team.rig, &["rev-parse", "taken"]);
    run_git(&team.rig, &["checkout", "--quiet", "-"]);
    let host = team.new_host();
    let id = team.add_task("refused", &["--push", "taken"]);
    assert_eq!(run_until_empty(&team, host.path(), &[]).code(), 0);
    let task = team.show_task(id);
    assert_eq!(
        outcome(&task),
        (Some("failed"), Some("push_failed")),
        "{task}"
    );
    assert!(
        task["result"]["push_error"]
            .as_str()
            .unwrap()
            .contains("rejected"),
        "{task}"
    );
    assert!(task["patch_bytes"].as_i64().unwrap() > 0, "{task}");
    let patch = team
        .rig
        .run(&["queue", "show", &id.to_string(), "--patch"])
        .stdout();
    assert!(patch.contains("b/new.txt"), "the change is kept: {patch}");
    assert_eq!(task["branch"], Value::Null, "nothing was pushed");
    let watched = team.rig.run(&["queue", "watch", &id.to_string()]);
    assert_eq!(watched.code(), 1, "{}", watched.stdout());
    let single = ["--task", &id.to_string()];
    let ran = Ran(team.worker_command(host.path(), &single).output().unwrap());
    assert_eq!(ran.code(), 1, "a scheduler learns it, too");
    assert_eq!(run_git(&team.rig, &["rev-parse", "taken"]), person);
    let listed = team.rig.run(&[
        "queue",
        "list",
        "--state",
        "failed",
        "--label",
        &team.label,
        "--json",
    ]);
    assert_eq!(
        listed.json()[0]["id"],
        id,
        "the list has it under its outcome"
    );

    let id = team.add_task("again", &["--push", "haft/again"]);
    for _ in 0..2 {
        assert_eq!(run_until_empty(&team, host.path(), &[]).code(), 0);
        let task = team.show_task(id);
        assert_eq!(outcome(&task).0, Some("completed"), "{task}");
        assert_eq!(task["branch"], "haft/again");
        team.rig.run(&["queue", "retry", &id.to_string()]);
    }
    assert_eq!(
        run_git(&team.rig, &["rev-list", "--count", "HEAD..haft/again"]),
        "1\n"
    );
}

/// A worker is killed after it has pushed and before it reports the end. The next one finds the
/// change on the branch.
#[test]
fn postgres_worker_killed_after_its_push_ends_with_one_commit() {
    let Some(team) = Team::new("pushed", write_and_end()) else {
        return;
    };
    // The first push stands still when the branch is there. The hook may write in its repository only.
    let git = team.rig.project().join(".git");
    let hook = git.join("hooks/post-receive");
    fs::create_dir_all(git.join("hooks")).unwrap();
    let script = "#!/bin/sh\ncat > /dev/null\n[ -e pushed ] && exit\ntouch pushed\nwhile [ ! -e go ]; do sleep 0.1; done\n";
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let id = team.add_task("push", &["--push", "haft/pushed"]);
    let host = team.new_host();
    let mut killed = spawn_silently(&mut team.worker_command(host.path(), &[]));
    team.wait_until("it has pushed", |_| git.join("pushed").exists());
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::write(git.join("go"), "").unwrap();
    let pushed = run_git(&team.rig, &["rev-parse", "haft/pushed"]);
    assert_eq!(
        team.show_task(id)["state"],
        "running",
        "its end is not told"
    );
    assert_eq!(run_until_empty(&team, host.path(), &[]).code(), 0);
    let task = team.show_task(id);
    assert_eq!(outcome(&task).0, Some("completed"), "{task}");
    assert_eq!(
        (&task["branch"], &task["epoch"]),
        (&json!("haft/pushed"), &json!(2))
    );
    assert_eq!(run_git(&team.rig, &["rev-parse", "haft/pushed"]), pushed);
    let patch = team
        .rig
        .run(&["queue", "show", &id.to_string(), "--patch"])
        .stdout();
    assert!(patch.contains("b/new.txt"), "{patch}");
}

/// The first attempt to make the patch fails. The task does not end without its change: another
/// claim makes it.
#[test]
fn postgres_worker_failed_patch_is_made_by_another_claim() {
    let spoil = "echo kept > new.txt; git init --quiet spoiled || mkdir spoiled";
    let replies = [
        reply_after(0, command_call(spoil)),
        reply_after(1, Reply::text("Done.")),
    ];
    let Some(team) = Team::new("patch", replies) else {
        return;
    };
    let id = team.add_task("spoil", &[]);
    let host = team.new_host();
    assert_eq!(run_until_empty(&team, host.path(), &[]).code(), 0);
    let task = team.show_task(id);
    let patch = team
        .rig
        .run(&["queue", "show", &id.to_string(), "--patch"])
        .stdout();
    assert_eq!(
        (outcome(&task).0, &task["epoch"]),
        (Some("completed"), &json!(2)),
        "{task}"
    );
    assert!(patch.contains("b/new.txt"), "{patch}: {task}");
}

/// The database is away for three leases while tasks run: the tasks are continued, by the same
/// workers, and none is taken again and again or given up.
#[test]
fn postgres_workers_survive_an_outage_longer_than_their_lease() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let wait = format!(
            "echo x >> '{at}/begun'; while [ ! -e '{at}/go' ]; do sleep 0.1; done; echo one > one.txt"
        );
        [
            reply_after(0, command_call(&wait)),
            reply_after(1, write_file_call("two.txt")),
            reply_after(2, Reply::text("Done.")),
        ]
    };
    let (Some(team), Some(line)) = (Team::with_shared_folder("away", replies), DeadLine::new())
    else {
        return;
    };
    let url = std::env::var("HAFT_POSTGRES").unwrap();
    let more = ["--max-attempts", "3"];
    let ids = [0, 1, 2, 3, 4, 5].map(|n| team.add_task(&format!("task {n}"), &more));
    let hosts = [team.new_host(), team.new_host()];
    let workers: Vec<_> = hosts
        .iter()
        .map(|host| {
            let path = host.path().join("config.toml");
            let config = fs::read_to_string(&path).unwrap();
            fs::write(&path, config.replace(&url, &line.url())).unwrap();
            spawn_silently(&mut team.worker_command(host.path(), &["--slots", "2"]))
        })
        .collect();
    let begun = team.shared.path().join("begun");
    team.wait_until("four commands run", |_| {
        fs::read_to_string(&begun).is_ok_and(|text| text.lines().count() >= 4)
    });
    line.is_frozen.store(true, Ordering::SeqCst);
    // The lease is two seconds. What is tested is what happens after an outage that is longer.
    std::thread::sleep(Duration::from_secs(6));
    line.is_frozen.store(false, Ordering::SeqCst);
    fs::write(team.shared.path().join("go"), "").unwrap();
    team.wait_until("all end", |team| {
        ids.iter()
            .all(|id| team.show_task(*id)["ended_at"].is_i64())
    });
    for id in ids {
        let task = team.show_task(id);
        assert_eq!(outcome(&task).0, Some("completed"), "{task}");
        assert!(task["epoch"].as_i64().unwrap() <= 4, "{task}");
    }
    for worker in workers {
        end_worker(worker);
    }
}

/// Two workers of one machine share a folder. One of them stops for longer than its lease; what it
/// does when it wakes up must not touch the clone of the other.
#[test]
fn postgres_workers_of_one_folder_do_not_share_clones() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let wait = format!("echo begun >> {at}/begun; while [ ! -e {at}/go ]; do sleep 0.1; done");
        [
            reply_after(0, command_call(&wait)),
            reply_after(1, write_file_call("second.txt")),
            reply_after(
                2,
                command_call(&format!("while [ ! -e {at}/end ]; do sleep 0.1; done")),
            ),
            reply_after(3, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("folder", replies) else {
        return;
    };
    let shared = team.shared.path();
    let host = team.new_host();
    let id = team.add_task("stand still", &[]);
    let late = spawn_silently(&mut team.worker_command(host.path(), &[]));
    team.wait_until("its command runs", |_| shared.join("begun").exists());
    send_signal(&late, "-STOP");
    let next = spawn_silently(&mut team.worker_command(host.path(), &[]));
    team.wait_until("the other has it", |team| team.show_task(id)["epoch"] == 2);
    let log = |team: &Team| {
        team.rig
            .run(&["queue", "show", &id.to_string(), "--log"])
            .stdout()
    };
    team.wait_until("it has written its file", |team| {
        log(team).contains("second.txt")
    });
    fs::write(shared.join("go"), "").unwrap();
    send_signal(&late, "-CONT");
    // The late worker takes another task once it has given up the lost one.
    let other = team.add_task("another", &[]);
    team.wait_until("the late one is free again", |team| {
        team.show_task(other)["state"] == "running"
    });
    fs::write(shared.join("end"), "").unwrap();
    team.wait_until("both end", |team| {
        [id, other]
            .iter()
            .all(|id| team.show_task(*id)["ended_at"].is_i64())
    });
    let task = team.show_task(id);
    assert_eq!(outcome(&task).0, Some("completed"), "{task}");
    let patch = team
        .rig
        .run(&["queue", "show", &id.to_string(), "--patch"])
        .stdout();
    assert!(patch.contains("b/second.txt"), "{task}");
    end_worker(late);
    end_worker(next);
    let left = fs::read_dir(host.path().join("cache/worker/tasks")).unwrap();
    assert_eq!(left.count(), 0, "no clone and no lock is left");
}

/// The clones of a killed worker are removed when the next worker of its folder starts, and a
/// worker that runs until the queue is empty waits for the tasks of the killed one.
#[test]
fn postgres_worker_until_empty_waits_for_tasks_of_a_killed_worker() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let wait = format!("echo begun >> {at}/begun; while [ ! -e {at}/go ]; do sleep 0.1; done");
        [
            reply_after(0, command_call(&wait)),
            reply_after(1, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("killed", replies) else {
        return;
    };
    let host = team.new_host();
    let id = team.add_task("be killed", &[]);
    let mut killed = spawn_silently(&mut team.worker_command(host.path(), &[]));
    team.wait_until("its command runs", |team| {
        team.shared.path().join("begun").exists()
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    fs::write(team.shared.path().join("go"), "").unwrap();
    let tasks = host.path().join("cache/worker/tasks");
    assert!(tasks.join(id.to_string()).exists());
    let ran = run_until_empty(&team, host.path(), &["--label", "nothing-has-this"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let task = team.show_task(id);
    assert_eq!(outcome(&task).0, Some("completed"), "{task}");
    assert_eq!(fs::read_dir(&tasks).unwrap().count(), 0);
}

/// `--task` takes one task and exits with its outcome.
#[test]
fn postgres_worker_task_takes_exactly_that_task() {
    let Some(team) = Team::new("single", write_and_end()) else {
        return;
    };
    let first = team.add_task("first", &[]);
    let second = team.add_task("second", &["--not-before", "3600"]);
    let host = team.new_host();
    let run = |task: &str| {
        let mut command = team
            .rig
            .command(&["worker", "--lease", "2", "--task", task]);
        Ran(command.env("HAFT_HOME", host.path()).output().unwrap())
    };
    let ran = run(&second.to_string());
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(team.show_task(first)["state"], "queued");
    assert_eq!(outcome(&team.show_task(second)).0, Some("completed"));
    assert_eq!(run(&second.to_string()).code(), 0, "it has ended");
    team.rig.run(&["queue", "cancel", &first.to_string()]);
    assert_eq!(run(&first.to_string()).code(), 130, "canceled");
    assert_eq!(run("999999999").code(), 2);
    assert_eq!(run("soon").code(), 2);
}

#[test]
fn postgres_queue_add_refuses_passwords_in_addresses() {
    let Some(team) = Team::new("password", []) else {
        return;
    };
    let list = team.shared.path().join("each");
    fs::write(&list, "https://me:secret@host/x.git\n").unwrap();
    for more in [
        ["--repository", "https://me:secret@host/x.git"],
        ["--each", list.to_str().unwrap()],
    ] {
        let ran = team.rig.run(&[&["queue", "add", "x"], &more[..]].concat());
        assert_eq!(ran.code(), 2);
        assert!(
            ran.stderr().contains("https://me:***@host/x.git") && !ran.stderr().contains("secret"),
            "{}",
            ran.stderr()
        );
    }
}

/// Forwards connections to the server until it is frozen: then they stay open, and nothing passes.
struct DeadLine {
    folder: tempfile::TempDir,
    is_frozen: Arc<AtomicBool>,
}

impl DeadLine {
    /// Returns `None` if the server has no socket in the file system.
    fn new() -> Option<Self> {
        let url = std::env::var("HAFT_POSTGRES").ok()?;
        let real = url.split("host=").nth(1)?.split('&').next()?.to_owned();
        let real = Path::new(&real).join(".s.PGSQL.5432");
        real.exists().then_some(())?;
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let is_frozen = Arc::new(AtomicBool::new(false));
        let frozen = Arc::clone(&is_frozen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = UnixStream::connect(&real) else {
                    return;
                };
                for (from, to) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap()),
                    (server, client),
                ] {
                    let frozen = Arc::clone(&frozen);
                    std::thread::spawn(move || Self::forward(from, to, &frozen));
                }
            }
        });
        Some(Self { folder, is_frozen })
    }

    fn forward(mut from: UnixStream, mut to: UnixStream, frozen: &AtomicBool) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length) = from.read(&mut buffer) {
            while frozen.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(20));
            }
            if length == 0 || to.write_all(&buffer[..length]).is_err() {
                let _ = to.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }

    fn url(&self) -> String {
        let url = std::env::var("HAFT_POSTGRES").unwrap();
        let (before, rest) = url.split_once("host=").unwrap();
        let more = rest.split_once('&').map_or("", |(_, more)| more);
        format!("{before}host={}&{more}", self.folder.path().display())
    }
}

/// The line to the database dies without a word: the run ends before another worker takes the task,
/// and SIGTERM ends the worker.
#[test]
fn postgres_worker_with_a_dead_line_ends_its_run_and_itself() {
    let replies = |shared: &Path| {
        let at = shared.display();
        let work =
            format!("while [ ! -e '{at}/end' ]; do echo \"$PWD\" >> '{at}/work'; sleep 0.05; done");
        [
            reply_after(0, command_call(&work)),
            reply_after(1, command_call(&work)),
            reply_after(2, Reply::text("Done.")),
        ]
    };
    let (Some(team), Some(line)) = (Team::with_shared_folder("dead", replies), DeadLine::new())
    else {
        return;
    };
    let host = team.new_host();
    let config = fs::read_to_string(host.path().join("config.toml")).unwrap();
    let url = std::env::var("HAFT_POSTGRES").unwrap();
    fs::write(
        host.path().join("config.toml"),
        config.replace(&url, &line.url()),
    )
    .unwrap();
    let folders = |team: &Team| -> Vec<String> {
        let work = fs::read_to_string(team.shared.path().join("work")).unwrap_or_default();
        work.lines().map(str::to_owned).collect()
    };
    let id = team.add_task("work on", &[]);
    let mut worker = team
        .worker_command(host.path(), &["--drain", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    team.wait_until("its command runs", |team| !folders(team).is_empty());
    line.is_frozen.store(true, Ordering::SeqCst);
    let other = team.new_host();
    let next = spawn_silently(&mut team.worker_command(other.path(), &[]));
    let late = host.path().canonicalize().unwrap();
    let is_late = |folder: &String| Path::new(folder).starts_with(&late);
    team.wait_until("another worker runs its command for a while", |team| {
        let folders = folders(team);
        folders.iter().filter(|&folder| !is_late(folder)).count() >= 40
    });
    let folders = folders(&team);
    let first = folders.iter().position(|folder| !is_late(folder)).unwrap();
    assert!(first > 0 && !folders[first..].iter().any(is_late));
    fs::write(team.shared.path().join("end"), "").unwrap();
    team.wait_until("the task ends", |team| {
        team.show_task(id)["ended_at"].is_i64()
    });
    assert_eq!(outcome(&team.show_task(id)).0, Some("completed"));
    end_worker(next);
    send_signal(&worker, "-TERM");
    let asked = Instant::now();
    let ended = loop {
        if let Some(status) = worker.try_wait().unwrap() {
            break Some(status);
        }
        // One second to drain and ten to hand over; a worker that waits for its connection takes
        // more than a minute.
        if asked.elapsed() > Duration::from_secs(40) {
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if ended.is_none() {
        worker.kill().unwrap();
    }
    assert!(ended.is_some(), "SIGTERM ends a worker whose line is dead");
}

/// The webhook gets a document at the end of a task, with the header of the configuration.
#[test]
fn postgres_worker_calls_the_webhook_at_the_end_of_a_task() {
    let Some(team) = Team::new("webhook", write_and_end()) else {
        return;
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let host = team.new_host();
    let config = fs::read_to_string(host.path().join("config.toml")).unwrap();
    fs::write(
        host.path().join("config.toml"),
        format!("{config}[worker]\nwebhook = \"http://{address}/end\"\nwebhook_authorization_env = \"HOOK\"\n"),
    )
    .unwrap();
    let id = team.add_task("announce", &[]);
    let mut command = team.worker_command(host.path(), &[]);
    let worker = spawn_silently(command.env("HOOK", "Bearer key"));
    // Other tests share the queue, and their ends are announced, too.
    let request = loop {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        let mut buffer = [0; 4_096];
        let body = loop {
            let length = stream.read(&mut buffer).unwrap();
            request.push_str(&String::from_utf8_lossy(&buffer[..length]));
            if let Some((_, body)) = request.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str::<Value>(body)
            {
                break body;
            }
        };
        stream
            .write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            .unwrap();
        if body["task"] == id {
            assert_eq!(
                (&body["status"], &body["labels"]),
                (&json!("completed"), &json!([team.label])),
                "{body}"
            );
            break request;
        }
    };
    assert!(
        request.to_lowercase().contains("authorization: bearer key"),
        "{request}"
    );
    end_worker(worker);
}
