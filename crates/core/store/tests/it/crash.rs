//! Tests that a killed process loses no acknowledged message.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use haft_store::{NewConversation, SqliteStore, Store, StoreConfig};

use crate::support::{Place, TickingClock, conversation, user};

/// Environment variable with the database's path for the child; only the parent test sets it.
const PATH: &str = "STORE_TEST_PATH";
const ACKNOWLEDGED: &str = "acknowledged ";

/// The process that is killed, not a test: it appends until it dies, and prints each
/// acknowledgment.
#[tokio::test]
#[ignore = "run by the test below as a process of its own"]
async fn child() {
    let Some(path) = std::env::var_os(PATH) else {
        return;
    };
    let store =
        SqliteStore::open(path.as_ref(), &StoreConfig::default(), TickingClock::new()).unwrap();
    let id = conversation("a");
    let stored = store.messages(&id).await.unwrap().len() as u32;
    for n in stored.. {
        store
            .append_message(&id, &user(n, &"x".repeat(2_000)))
            .await
            .unwrap();
        let mut out = std::io::stdout();
        // If the parent has exited, printing fails; ignore that.
        if writeln!(out, "\n{ACKNOWLEDGED}{n}")
            .and_then(|()| out.flush())
            .is_err()
        {
            return;
        }
    }
}

fn start_child(place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--ignored", "--nocapture"])
        .env(PATH, place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Reads until there are `enough` acknowledgments, kills the child, and reads the rest of its
/// output.
fn kill_after(mut child: Child, enough: usize) -> Vec<u32> {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while text.matches(ACKNOWLEDGED).count() < enough {
        assert_ne!(
            out.read_line(&mut text).unwrap(),
            0,
            "the child ended by itself: {text}"
        );
    }
    child.kill().unwrap();
    out.read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    // The last line may be incomplete, and then it is no acknowledgment.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    whole
        .lines()
        .filter_map(|line| line.strip_prefix(ACKNOWLEDGED)?.parse().ok())
        .collect()
}

#[tokio::test]
async fn append_survives_a_kill_exactly_once_if_acknowledged() {
    let place = Place::new();
    place
        .open()
        .create(NewConversation::new(conversation("a"), "p"))
        .await
        .unwrap();
    let mut acknowledged = Vec::new();
    // The kill comes at any time during the appends after those counted here.
    for enough in [1, 3, 40, 2, 17, 90, 5, 61] {
        acknowledged.extend(kill_after(start_child(&place), enough));
        let store = place.open();
        let stored: Vec<u32> = store
            .messages(&conversation("a"))
            .await
            .unwrap()
            .iter()
            .map(|m| m.message_id.short_id().0)
            .collect();
        let all: Vec<u32> = (0..stored.len() as u32).collect();
        assert_eq!(stored, all, "no gap, no double, in order");
        assert!(
            acknowledged.iter().all(|n| stored.contains(n)),
            "acknowledged {acknowledged:?}, stored {stored:?}"
        );
        let counted = store
            .get(&conversation("a"))
            .await
            .unwrap()
            .unwrap()
            .messages;
        assert_eq!(counted, stored.len() as u64);
    }
}
