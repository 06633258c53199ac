//! The process that is killed. It works on a store with several tasks at once, and says on stdout
//! what it is about to do (`+`) and what the store acknowledged (`=`), one short line each.
//!
//! ```text
//! a CONVERSATION NUMBER            append
//! u CONVERSATION NUMBER REVISION   revise
//! f CONVERSATION FORK              fork; acknowledged with the number of messages shared
//! s CONVERSATION VALUE             keep a state
//! r CONVERSATION                   log a request; acknowledged with its number
//! b                                make a backup; acknowledged with its name
//! ```
//!
//! Besides, `=h` when it holds what it was to hold, and `!` with what it was told when it was
//! refused.

use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haft_store::{
    Backups, ConversationScope, NewFork, Revision, SearchQuery, SentRequest, SqliteStore, Store,
    StoreConfig, StoreError,
};
use haft_testkit::support::Random;
use haft_types::{Api, Entry, Layer, Part, Request, Segment, TokenCounter, ToolSet};
use serde_json::json;

use crate::texts::{clock, conversation, id, message, words};

/// How the program is told to be one.
pub(crate) const NAME: &str = "worker";

/// The conversations that are there from the beginning.
pub(crate) const CONVERSATIONS: [&str; 4] = ["c0", "c1", "c2", "c3"];

/// What a worker is to do.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) path: PathBuf,
    pub(crate) seed: u64,
    /// The number of its first message; numbers are never used twice in a store.
    pub(crate) base: u32,
    /// How many things to do; without end when 0.
    pub(crate) deeds: u32,
    pub(crate) plan: Plan,
}

/// Which things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Everything a store can do.
    Everything,
    /// One append and nothing else.
    OneAppend,
    /// Appends to eight conversations in turn.
    Crowd,
    /// Takes the right to write to eight conversations and keeps it.
    Hold,
    /// Tries to append to eight conversations while somebody else holds them, and says what it is
    /// told.
    Intrude,
}

impl Plan {
    const ALL: [(&'static str, Self); 5] = [
        ("everything", Self::Everything),
        ("one-append", Self::OneAppend),
        ("crowd", Self::Crowd),
        ("hold", Self::Hold),
        ("intrude", Self::Intrude),
    ];
}

impl Orders {
    /// The command line that gives these orders.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let plan = Plan::ALL
            .iter()
            .find(|(_, plan)| *plan == self.plan)
            .map_or("", |(name, _)| name);
        let path = self.path.display().to_string();
        let numbers = [
            self.seed.to_string(),
            self.base.to_string(),
            self.deeds.to_string(),
        ];
        [NAME.to_owned(), path]
            .into_iter()
            .chain(numbers)
            .chain([plan.to_owned()])
            .collect()
    }

    fn read(given: &[String]) -> Option<Self> {
        let [path, seed, base, deeds, plan] = given else {
            return None;
        };
        Some(Self {
            path: path.into(),
            seed: seed.parse().ok()?,
            base: base.parse().ok()?,
            deeds: deeds.parse().ok()?,
            plan: Plan::ALL.iter().find(|(name, _)| name == plan)?.1,
        })
    }
}

pub(crate) fn run(given: &[String]) -> ExitCode {
    let Some(orders) = Orders::read(given) else {
        return ExitCode::from(2);
    };
    match crate::block_on(work(&orders)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("worker: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where backups of a store lie.
pub(crate) fn backups_of(path: &Path) -> Backups {
    let folder = path.with_file_name("backups");
    Backups::new(path, &folder, &config(), clock())
}

/// As configured by default; but a busy machine must not decide a case.
pub(crate) fn config() -> StoreConfig {
    StoreConfig {
        lock_timeout_ms: 300_000,
        ..StoreConfig::default()
    }
}

/// Who comes to be refused does not wait for ten seconds.
fn config_for(plan: Plan) -> StoreConfig {
    match plan {
        Plan::Intrude => StoreConfig {
            lock_timeout_ms: 100,
            ..config()
        },
        Plan::Everything | Plan::OneAppend | Plan::Crowd | Plan::Hold => config(),
    }
}

async fn work(orders: &Orders) -> Result<(), StoreError> {
    let worker = Worker {
        store: SqliteStore::open(&orders.path, &config_for(orders.plan), clock())?,
        path: orders.path.clone(),
        next: AtomicU32::new(orders.base),
        acknowledged: RefCell::default(),
        forks: RefCell::default(),
        deeds: AtomicU32::new(0),
        most: if orders.deeds == 0 {
            u32::MAX
        } else {
            orders.deeds
        },
    };
    match orders.plan {
        Plan::OneAppend => worker.append("c0").await,
        Plan::Crowd => worker.crowd().await,
        Plan::Hold => worker.hold().await,
        Plan::Intrude => worker.intrude().await,
        Plan::Everything => {
            let seeds = [0, 1, 2, 3]
                .map(|task| Random::new(orders.seed.wrapping_mul(4).wrapping_add(task)));
            let [one, two, three, four] = seeds.map(|random| worker.everything(random));
            let all = tokio::join!(one, two, three, four);
            all.0.and(all.1).and(all.2).and(all.3)
        }
    }
}

struct Worker {
    store: SqliteStore,
    path: PathBuf,
    next: AtomicU32,
    /// Messages that can be revised: conversation, number, how often it was.
    acknowledged: RefCell<Vec<(String, u32, u32)>>,
    forks: RefCell<Vec<String>>,
    deeds: AtomicU32,
    most: u32,
}

/// One line, in one call to the system: it is told whole or not at all.
fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // Who listens may be gone; then there is nobody to tell.
    let _ = out
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| out.flush());
}

impl Worker {
    fn number(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    async fn everything(&self, mut random: Random) -> Result<(), StoreError> {
        while self.deeds.fetch_add(1, Ordering::Relaxed) < self.most {
            let place = self.somewhere(&mut random);
            match random.below(100) {
                0..55 => self.append(&place).await?,
                55..70 => self.revise(&mut random).await?,
                70..78 => self.fork(&place).await?,
                // As compaction does: a summary, then what it stands for.
                78..83 => {
                    self.append(&place).await?;
                    self.state(&place).await?;
                }
                83..90 => self.state(&place).await?,
                90..95 => self.log(&place).await?,
                95..97 => self.back_up()?,
                _ => {
                    let query = SearchQuery {
                        text: "快",
                        scope: ConversationScope::Everywhere,
                        limit: 3,
                    };
                    self.store.search(query).await?;
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn somewhere(&self, random: &mut Random) -> String {
        let forks = self.forks.borrow();
        if !forks.is_empty() && random.below(4) == 0 {
            return forks[random.below(forks.len())].clone();
        }
        CONVERSATIONS[random.below(CONVERSATIONS.len())].to_owned()
    }

    async fn append(&self, place: &str) -> Result<(), StoreError> {
        let number = self.number();
        tell(&format!("+a {place} {number}"));
        self.store
            .append_message(&conversation(place), &message(number))
            .await?;
        tell(&format!("=a {place} {number}"));
        self.acknowledged
            .borrow_mut()
            .push((place.to_owned(), number, 0));
        Ok(())
    }

    async fn revise(&self, random: &mut Random) -> Result<(), StoreError> {
        let chosen = {
            let mut known = self.acknowledged.borrow_mut();
            let count = known.len();
            known.get_mut(random.below(count)).map(|entry| {
                entry.2 += 1;
                entry.clone()
            })
        };
        let Some((place, number, revision)) = chosen else {
            return Ok(());
        };
        tell(&format!("+u {place} {number} {revision}"));
        let content = Some(vec![Part::from_text(words(number, revision))]);
        let change = Revision {
            content,
            ..Revision::default()
        };
        self.store
            .revise_message(&conversation(&place), id(number), change)
            .await?;
        tell(&format!("=u {place} {number} {revision}"));
        Ok(())
    }

    async fn fork(&self, place: &str) -> Result<(), StoreError> {
        let name = format!("f{}", self.number());
        tell(&format!("+f {place} {name}"));
        let forked = self
            .store
            .fork(&conversation(place), NewFork::new(conversation(&name)))
            .await?;
        tell(&format!("=f {place} {name} {}", forked.messages));
        self.forks.borrow_mut().push(name);
        Ok(())
    }

    async fn state(&self, place: &str) -> Result<(), StoreError> {
        let value = self.number();
        tell(&format!("+s {place} {value}"));
        self.store
            .set_state(&conversation(place), "state", json!(value))
            .await?;
        tell(&format!("=s {place} {value}"));
        Ok(())
    }

    async fn log(&self, place: &str) -> Result<(), StoreError> {
        let messages = self.store.messages(&conversation(place)).await?;
        tell(&format!("+r {place}"));
        let number = self
            .store
            .log_request(&conversation(place), sent(messages))
            .await?;
        tell(&format!("=r {place} {number}"));
        Ok(())
    }

    fn back_up(&self) -> Result<(), StoreError> {
        tell("+b");
        let backup = backups_of(&self.path).create()?;
        tell(&format!("=b {}", backup.name));
        Ok(())
    }

    async fn hold(&self) -> Result<(), StoreError> {
        let mut locks = Vec::new();
        for place in 0..8 {
            locks.push(self.store.lock(&conversation(&format!("c{place}"))).await?);
        }
        tell("=h");
        // Until it is killed.
        std::future::pending().await
    }

    async fn intrude(&self) -> Result<(), StoreError> {
        for place in 0..8 {
            let place = conversation(&format!("c{place}"));
            match self
                .store
                .append_message(&place, &message(self.number()))
                .await
            {
                Ok(()) => tell("! it was let in"),
                Err(refused) => tell(&format!("! {refused}")),
            }
        }
        Ok(())
    }

    async fn crowd(&self) -> Result<(), StoreError> {
        for deed in 0..self.most {
            let place = format!("c{}", deed % 8);
            self.append(&place).await?;
        }
        Ok(())
    }
}

struct Letters;

impl TokenCounter for Letters {
    fn count_text(&self, text: &str) -> u32 {
        text.len() as u32
    }
}

/// A request of these messages.
fn sent(messages: Vec<haft_types::Message>) -> SentRequest {
    let system = message(u32::MAX);
    let all = std::iter::once(system).chain(messages);
    let segment = |message| Segment {
        layer: Layer::History,
        owner: "history",
        entry: Entry::new(message, &Letters),
        boundary: false,
    };
    let request = Request {
        segments: all.map(segment).collect(),
        tools: ToolSet::new(Vec::new(), &Letters),
        max_output_tokens: None,
        cache_key: None,
    };
    SentRequest {
        model: "mock/test".into(),
        api: Api::OpenaiChat,
        request: Arc::new(request),
        encoding: None,
        cause: None,
    }
}
