//! What appending a 2 KB message costs at the 10th, the 1,000th and the 100,000th message of a conversation.
//!
//! `cargo run --release -p haft-store --example append_cost -- FOLDER`: choose a folder on the disk to be measured.

#![expect(clippy::print_stdout, reason = "the numbers are what this is for")]

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

const MARKS: [u32; 3] = [10, 1_000, 100_000];
/// Appends measured up to each mark.
const SAMPLE: u32 = 10;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name a folder on the disk to be measured")?;
    let folder = tempfile::tempdir_in(folder)?;
    let store = SqliteStore::open(&folder.path().join("cost.db"), &StoreConfig::default(), Arc::new(Wall))?;
    let id = ConversationId::new("cost");
    store.create(NewConversation::new(id.clone(), "cost")).await?;

    println!("{:>9}  {:>10}  {:>10}", "message", "median", "worst");
    let mut sample: Vec<Duration> = Vec::new();
    let started = Instant::now();
    for n in 1..=MARKS[2] {
        // Spread over the index like the random ids of real messages.
        let digits = n.wrapping_mul(2_654_435_761);
        let message_id = format!("{digits:08x}-0000-4000-8000-000000000000").parse()?;
        let message = Message::text(message_id, Role::User, "x".repeat(2_000), Timestamp::now());
        let before = Instant::now();
        store.append(&id, &message).await?;
        sample.push(before.elapsed());
        if MARKS.contains(&n) {
            let last = sample.len() - (SAMPLE as usize).min(sample.len());
            let mut last = sample.split_off(last);
            last.sort_unstable();
            println!("{n:>9}  {:>10.1?}  {:>10.1?}", last[last.len() / 2], last[last.len() - 1]);
        }
    }
    println!("{:>9}  {:>10.1?} on average, checkpoints included", "all", started.elapsed() / MARKS[2]);
    Ok(())
}
