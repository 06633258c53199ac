//! Tests of a full disk, a folder without write permission, and a clock that goes backwards.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_store::{ConversationScope, NewConversation, SqliteStore, Store, StoreConfig};
use haft_types::{Clock, Timestamp};

use crate::support::{Place, TickingClock, conversation, tick, user};

const PATH: &str = "HARDSHIP_TEST_PATH";

/// A helper process, not a test: it appends until an append fails, and prints the results.
#[tokio::test]
#[ignore = "run by the tests below as a process of its own"]
async fn child() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let mut out = std::io::stdout();
    let mut tell = |line: String| {
        writeln!(out, "\n{line}")
            .and_then(|()| out.flush())
            .unwrap();
    };
    let store = match SqliteStore::open(path.as_ref(), &StoreConfig::default(), TickingClock::new())
    {
        Ok(store) => store,
        Err(error) => return tell(format!("refused {error}")),
    };
    for n in 0..1_000 {
        match store
            .append_message(&conversation("a"), &user(n, &"x".repeat(2_000)))
            .await
        {
            Ok(()) => tell(format!("acknowledged {n}")),
            Err(error) => {
                tell(format!("refused {error}"));
                return tell(format!(
                    "reads {}",
                    store.messages(&conversation("a")).await.unwrap().len()
                ));
            }
        }
    }
}

/// The parsed output of the child.
struct Said {
    acknowledged: Vec<u32>,
    /// The error that ended it.
    refused: String,
    /// The number of messages it could still read.
    reads: Option<usize>,
}

fn run_child(command: &mut Command, path: &Path) -> Said {
    let ran = command
        .args(["--exact", "hardship::child", "--ignored", "--nocapture"])
        .env(PATH, path)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let acknowledged = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
        .collect();
    let refused = said
        .lines()
        .find_map(|line| line.strip_prefix("refused "))
        .unwrap_or_default()
        .to_owned();
    let reads = said
        .lines()
        .find_map(|line| line.strip_prefix("reads ")?.parse().ok());
    Said {
        acknowledged,
        refused,
        reads,
    }
}

async fn place_with_a() -> Place {
    let place = Place::new();
    place
        .open()
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    place
}

#[tokio::test]
async fn append_on_a_full_disk_loses_no_message() {
    let usable = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    if !usable.is_ok_and(|status| status.success()) {
        println!(
            "skipped: strace, which plays the full disk, is not installed or may not be used here"
        );
        return;
    }
    for from in [3, 20, 77] {
        let place = place_with_a().await;
        let mut strace = Command::new("strace");
        let full = format!("inject=pwrite64:error=ENOSPC:when={from}+");
        strace.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=pwrite64",
            "-e",
            &full,
        ]);
        strace.arg(std::env::current_exe().unwrap());
        let Said {
            acknowledged,
            refused,
            reads,
        } = run_child(&mut strace, &place.path());
        assert!(
            refused.contains("conversations.db") && refused.contains("full"),
            "{refused}"
        );
        // A store that cannot be opened has acknowledged no message.
        assert_eq!(reads.unwrap_or(0), acknowledged.len(), "reading goes on");
        // With free space again, all acknowledged messages exist and appending works.
        let store = place.open();
        let stored = store.messages(&conversation("a")).await.unwrap();
        assert_eq!(stored.len(), acknowledged.len(), "from write {from} on");
        store
            .append_message(&conversation("a"), &user(5_000, "room again"))
            .await
            .unwrap();
    }
}

/// A small mounted disk that is unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Returns `None` and prints a line if the process may not mount.
    fn mount_if_allowed(size: &str) -> Option<Self> {
        let disk = Self(tempfile::tempdir().unwrap());
        if disk.mount(&format!("size={size}")) {
            return Some(disk);
        }
        println!("skipped: a small disk cannot be mounted here");
        None
    }

    fn mount(&self, options: &str) -> bool {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "haft-test"])
            .arg(self.0.path())
            .stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg(self.0.path())
            .stderr(Stdio::null())
            .status();
    }
}

#[tokio::test]
async fn append_on_a_really_full_disk_loses_no_message() {
    let Some(disk) = SmallDisk::mount_if_allowed("1500k") else {
        return;
    };
    let path = disk.0.path().join("conversations.db");
    let open = || SqliteStore::open(&path, &StoreConfig::default(), TickingClock::new()).unwrap();
    open()
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    let said = run_child(&mut Command::new(std::env::current_exe().unwrap()), &path);
    assert!(said.acknowledged.len() > 50, "{}", said.acknowledged.len());
    assert!(
        said.refused.contains("conversations.db") && said.refused.contains("full"),
        "{}",
        said.refused
    );
    assert_eq!(said.reads, Some(said.acknowledged.len()), "reading goes on");
    // With free space again, all acknowledged messages exist and appending works.
    assert!(disk.mount("remount,size=20m"));
    let store = open();
    assert_eq!(
        store.messages(&conversation("a")).await.unwrap().len(),
        said.acknowledged.len()
    );
    store
        .append_message(&conversation("a"), &user(5_000, "room again"))
        .await
        .unwrap();
}

#[tokio::test]
async fn open_reports_a_folder_without_write_permission() {
    let place = place_with_a().await;
    let folder = place.path().parent().unwrap().to_path_buf();
    let before = fs::read(place.path()).unwrap();
    // A program that every user may run; its build folder may be private.
    let program = folder.parent().unwrap().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let allow =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(&program, 0o755);
    allow(folder.parent().unwrap(), 0o755);
    fs::remove_dir_all(folder.join("locks")).unwrap();
    allow(&place.path(), 0o444);
    allow(&folder, 0o555);
    let mut command = Command::new(&program);
    // Root can write anywhere.
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(65_534).gid(65_534);
    }
    let Said {
        acknowledged,
        refused,
        ..
    } = run_child(&mut command, &place.path());
    allow(&folder, 0o700);
    assert_eq!(acknowledged, [0; 0]);
    assert!(
        refused.contains(&folder.display().to_string()) && refused.contains("ermission denied"),
        "{refused}"
    );
    assert_eq!(fs::read(place.path()).unwrap(), before);
}

/// A clock that tests can set.
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        tick(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn append_keeps_the_order_when_the_clock_goes_backwards() {
    let place = Place::new();
    let clock = Arc::new(Set(AtomicI64::new(1_000)));
    let store = SqliteStore::open(
        &place.path(),
        &StoreConfig::default(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    )
    .unwrap();
    store
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    store
        .append_message(&conversation("a"), &user(1, "one"))
        .await
        .unwrap();
    clock.0.store(10, Ordering::Relaxed);
    store
        .append_message(&conversation("a"), &user(2, "two"))
        .await
        .unwrap();
    store
        .create(NewConversation::new(conversation("b"), "p"))
        .await
        .unwrap();
    let read = store.get(&conversation("a")).await.unwrap().unwrap();
    assert_eq!(
        (read.created_at, read.updated_at),
        (tick(1_000), tick(1_000)),
        "it was not used before it was made"
    );
    assert_eq!(
        store.messages(&conversation("a")).await.unwrap(),
        [user(1, "one"), user(2, "two")]
    );
    let listed = store.list(ConversationScope::Everywhere).await.unwrap();
    assert_eq!(
        listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    store
        .rename(&conversation("a"), "still works")
        .await
        .unwrap();
    let _lock = store.lock(&conversation("a")).await.unwrap();
}
