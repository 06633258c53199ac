//! What appending a 2 KB message costs after 10, 1,000 and 100,000 messages of a conversation.
//!
//! `cargo run --release -p haft-store --example append_cost -- FOLDER`: choose a folder on the disk
//! to be measured. Beside each append a plain file on the same disk is written and synced: that is
//! the part no store can save.

#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_store::{NewConversation, SqliteStore, Store, StoreConfig};
use haft_types::{Clock, ConversationId, Message, Role, Timestamp};

struct Wall;

impl Clock for Wall {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Appends measured each time.
const SAMPLE: u32 = 500;

fn message(n: u32) -> Result<Message, Box<dyn Error>> {
    // Spread over the index like the random ids of real messages.
    let digits = n.wrapping_mul(2_654_435_761);
    let id = format!("{digits:08x}-0000-4000-8000-000000000000").parse()?;
    Ok(Message::from_text(
        id,
        Role::User,
        "x".repeat(2_000),
        Timestamp::now(),
    ))
}

fn median(mut sample: Vec<Duration>) -> Duration {
    sample.sort_unstable();
    sample[sample.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("name a folder on the disk to be measured")?;
    let folder = tempfile::tempdir_in(folder)?;
    let store = SqliteStore::open(
        &folder.path().join("cost.db"),
        &StoreConfig::default(),
        Arc::new(Wall),
    )?;
    let mut plain = File::create(folder.path().join("plain"))?;

    println!("{:>8}  {:>10}  {:>10}", "messages", "append", "plain sync");
    for before in [10, 1_000, 100_000] {
        let mut new =
            NewConversation::new(ConversationId::new(format!("{before} messages")), "cost");
        new.messages = (0..before).map(message).collect::<Result<_, _>>()?;
        let id = store.create(new).await?.id;
        let mut appends = Vec::new();
        let mut syncs = Vec::new();
        for n in before..before + SAMPLE {
            let message = message(n)?;
            let start = Instant::now();
            store.append_message(&id, &message).await?;
            appends.push(start.elapsed());
            let start = Instant::now();
            plain.write_all(&[b'x'; 2_000])?;
            plain.sync_data()?;
            syncs.push(start.elapsed());
        }
        println!(
            "{before:>8}  {:>10.1?}  {:>10.1?}",
            median(appends),
            median(syncs)
        );
    }
    Ok(())
}
