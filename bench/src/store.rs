//! Measures the conversation store: the time of a durable append in a short and in a very long
//! conversation, and the time of a search.
//!
//! The two conversations are in separate databases, and appends alternate in one run, so that both
//! see equal disk conditions. For comparison, a conversation is also stored as one JSON file that
//! is rewritten with each message, synced and renamed.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use haft_store::{
    ConversationScope, NewConversation, SearchQuery, SqliteStore, Store, StoreConfig,
};
use haft_types::{Clock, ConversationId, Message, Role, Timestamp};

use crate::figures;

/// The size of a message in bytes.
const MESSAGE_BYTES: usize = 10_000;
/// The number of measured appends per conversation length.
const SAMPLE: u32 = 400;
/// The number of unmeasured appends before the measured ones.
const WARM_UP: u32 = 20;
/// The length of the short conversation, in messages.
const SHORT: u32 = 100;
/// The length of the long conversation, in messages.
const LONG: u32 = 100_000;
/// The number of measured searches per query.
const SEARCHES: usize = 20;

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

pub(crate) fn run_benchmark() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // The user's data would also be on disk, not in memory.
    let folder =
        tempfile::tempdir_in(std::env::var_os("HAFT_BENCH_FOLDER").unwrap_or_else(|| ".".into()))?;
    runtime.block_on(measure_appends(folder.path()))?;
    for conversations in [1_000, 10_000] {
        runtime.block_on(measure_searches(
            &folder.path().join(format!("search among {conversations}")),
            conversations,
        ))?;
    }
    Ok(())
}

fn build_message(number: u32) -> anyhow::Result<Message> {
    // Distributed over the index like the random ids of real messages.
    let digits = number.wrapping_mul(2_654_435_761);
    let id = format!("{digits:08x}-0000-4000-8000-000000000000").parse()?;
    let text = format!("{number} let value = read(input)?; ");
    Ok(Message::from_text(
        id,
        Role::User,
        text.repeat(MESSAGE_BYTES / text.len()),
        Timestamp::now(),
    ))
}

async fn measure_appends(folder: &Path) -> anyhow::Result<()> {
    let short = create_store(folder, SHORT).await?;
    let long = create_store(folder, LONG).await?;
    let mut plain = std::fs::File::create(folder.join("plain"))?;
    let mut shorts = Vec::new();
    let mut longs = Vec::new();
    let mut syncs = Vec::new();
    for number in 0..WARM_UP + SAMPLE {
        for (store, length, times) in [(&short, SHORT, &mut shorts), (&long, LONG, &mut longs)] {
            let message = build_message(length + number)?;
            let begun = Instant::now();
            store
                .append_message(&make_conversation_id(length), &message)
                .await?;
            times.push(begun.elapsed());
        }
        let begun = Instant::now();
        plain.write_all(&[b'x'; MESSAGE_BYTES])?;
        plain.sync_data()?;
        syncs.push(begun.elapsed());
    }
    for times in [&mut shorts, &mut longs, &mut syncs] {
        times.drain(..WARM_UP as usize);
    }
    figures::print_figure(
        "a write of 10 kB and a sync, no store at all",
        figures::median_ms(&mut syncs),
        "ms",
        None,
    );
    for (length, times) in [(SHORT, &mut shorts), (LONG, &mut longs)] {
        figures::print_figure(
            &format!("append of 10 kB after {length} messages"),
            figures::median_ms(times),
            "ms",
            None,
        );
        figures::print_figure(
            "  the slowest of a hundred",
            figures::quantile_ms(times, 0.99),
            "ms",
            None,
        );
    }
    let long = figures::median_ms(&mut longs);
    figures::print_figure_with_minimum(
        "speed after 100000 messages against 100",
        figures::median_ms(&mut shorts) / long,
        "",
        0.8,
    );
    for length in [1_000, 10_000] {
        let time = figures::median_ms(&mut time_rewrites(folder, length)?);
        figures::print_figure(
            &format!("the same, writing one JSON file again, after {length}"),
            time,
            "ms",
            None,
        );
        figures::print_figure(
            "  slower than the store after 100000 by",
            time / long,
            "x",
            None,
        );
    }
    Ok(())
}

/// Creates a store with one conversation of this length, and reopens it so that no pending work of
/// the creation is measured.
async fn create_store(folder: &Path, length: u32) -> anyhow::Result<SqliteStore> {
    let path = folder.join(length.to_string()).join("conversations.db");
    let open = || SqliteStore::open(&path, &StoreConfig::default(), Arc::new(SystemClock));
    let mut new = NewConversation::new(make_conversation_id(length), "bench");
    new.messages = (0..length).map(build_message).collect::<Result<_, _>>()?;
    open()?.create(new).await?;
    Ok(open()?)
}

fn make_conversation_id(length: u32) -> ConversationId {
    ConversationId::new(format!("{length} messages"))
}

/// Appends by rewriting the whole conversation.
fn time_rewrites(folder: &Path, length: u32) -> anyhow::Result<Vec<Duration>> {
    let mut messages = (0..length)
        .map(build_message)
        .collect::<Result<Vec<_>, _>>()?;
    let path = folder.join("conversation.json");
    let new = folder.join("conversation.json.new");
    let mut times = Vec::new();
    for number in 0..10 {
        messages.push(build_message(length + number)?);
        let begun = Instant::now();
        let mut file = std::fs::File::create(&new)?;
        serde_json::to_writer(std::io::BufWriter::new(&mut file), &messages)?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        std::fs::File::open(folder)?.sync_all()?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Builds the text of a message. Some of its words occur in every message, others in few.
fn build_message_text(conversation: usize, message: usize) -> String {
    const PLACES: [&str; 12] = [
        "parser",
        "renderer",
        "scheduler",
        "login",
        "billing",
        "search",
        "cache",
        "worker",
        "gateway",
        "index",
        "queue",
        "storage",
    ];
    let place = PLACES[(conversation * 7 + message) % PLACES.len()];
    let rare = conversation * 10 + message;
    let body = format!(
        "In the {place} the function handle_{place}_{rare} returns too early when the input is empty. \
         请检查{place}模块的第{rare}个测试，然后运行全部测试。 "
    );
    body.repeat(5)
}

async fn measure_searches(folder: &Path, conversations: usize) -> anyhow::Result<()> {
    let store = SqliteStore::open(
        &folder.join("conversations.db"),
        &StoreConfig::default(),
        Arc::new(SystemClock),
    )?;
    for number in 0..conversations {
        let mut new = NewConversation::new(
            ConversationId::new(format!("conversation {number}")),
            "bench",
        );
        new.messages = (0..10)
            .map(|place| {
                let id = format!("{place:08x}-0000-4000-8000-{number:012x}")
                    .parse()
                    .context("an id")?;
                Ok(Message::from_text(
                    id,
                    Role::User,
                    build_message_text(number, place),
                    Timestamp::now(),
                ))
            })
            .collect::<anyhow::Result<_>>()?;
        store.create(new).await?;
    }
    let begun = Instant::now();
    let query = |text: &'static str| SearchQuery {
        text,
        scope: ConversationScope::Everywhere,
        limit: 20,
    };
    store.search(query("nothing")).await?;
    figures::print_figure(
        &format!(
            "indexing {} messages of {conversations} conversations",
            conversations * 10
        ),
        begun.elapsed().as_secs_f64(),
        "s",
        None,
    );
    for (what, text) in [
        ("a word of one message", "handle_search_503"),
        ("a word of every message", "function"),
        ("two words", "billing early"),
        ("a phrase", "\"returns too early\""),
        ("Chinese", "运行全部测试"),
    ] {
        let mut times = Vec::new();
        for _ in 0..SEARCHES {
            let begun = Instant::now();
            let hits = store.search(query(text)).await?;
            times.push(begun.elapsed());
            ensure!(!hits.is_empty(), "nothing was found for {text}");
        }
        let name = format!("{what}, among {conversations} conversations");
        figures::print_figure(&name, figures::median_ms(&mut times), "ms", None);
    }
    Ok(())
}
