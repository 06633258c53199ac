//! Processes at work are killed at any moment, again and again on one store.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haft_store::{NewConversation, SqliteStore, Store};
use haft_testkit::support::Random;

use crate::Outcome;
use crate::story::Story;
use crate::texts::{clock, conversation};
use crate::worker::{CONVERSATIONS, Orders, Plan, config};

/// Kills on one store before a new one is begun.
const LIVES: u64 = 10;
/// Far longer than anything takes, even on a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_mins(10);

pub(crate) fn run(count: u64, seed: u64) -> Vec<(u64, Outcome)> {
    let mut outcomes = Vec::new();
    let mut kills = 0;
    let mut acknowledged = 0;
    let mut at = 0;
    while at < count {
        // A store's whole life is one repeatable thing: its seed is that of its first kill.
        let lives = LIVES.min(count - at);
        let first = seed.wrapping_add(at);
        let outcome = life(first, lives).map(|(killed, told)| {
            kills += killed;
            acknowledged += told;
        });
        let failed = outcome.is_err();
        outcomes.push((first, outcome));
        outcomes.extend((1..lives).map(|life| {
            (
                first.wrapping_add(life),
                if failed {
                    Err("see the first".into())
                } else {
                    Ok(())
                },
            )
        }));
        at += lives;
    }
    println!("{kills:>8} processes killed\n{acknowledged:>8} acknowledgements");
    outcomes
}

/// A new store with its conversations.
pub(crate) fn store(names: &[&str]) -> Result<(tempfile::TempDir, PathBuf), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("data").join("conversations.db");
    let store = SqliteStore::open(&path, &config(), clock()).map_err(|error| error.to_string())?;
    crate::block_on(async {
        for name in names {
            store
                .create(NewConversation::new(conversation(name), "p"))
                .await
                .map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    })??;
    Ok((folder, path))
}

fn life(seed: u64, lives: u64) -> Result<(u64, u64), String> {
    let mut random = Random::new(seed);
    let (folder, path) = store(&CONVERSATIONS)?;
    let mut story = Story::of(&CONVERSATIONS);
    let mut killed = 0;
    for life in 0..lives {
        let orders = |who: u64| Orders {
            path: path.clone(),
            seed: seed.wrapping_add(life * 2 + who),
            base: 1 + ((life * 2 + who) * 100_000) as u32,
            deeds: 0,
            plan: Plan::Everything,
        };
        let mut workers = [Running::start(&orders(0))?, Running::start(&orders(1))?];
        // Some acknowledgements of both together, then any moment within the next deed.
        let enough = 1 + random.below(40);
        wait_until(&mut workers, enough)?;
        thread::sleep(Duration::from_micros(random.below(8_000) as u64));
        let both_at_once = random.below(2) == 0;
        for worker in &mut workers {
            worker.kill()?;
            killed += 1;
            if !both_at_once {
                thread::sleep(Duration::from_micros(random.below(20_000) as u64));
            }
        }
        for worker in workers {
            story.hear(&worker.said()?)?;
        }
        if let Err(problem) = story.check(&path) {
            return Err(format!(
                "after kill {}: {problem}; kept in {}",
                life + 1,
                folder.keep().display()
            ));
        }
    }
    Ok((killed, story.acknowledged))
}

/// Waits for so many acknowledgements of all of them together.
pub(crate) fn wait_until(workers: &mut [Running], enough: usize) -> Result<(), String> {
    let begun = Instant::now();
    while workers
        .iter()
        .map(|worker| worker.acknowledged.load(Ordering::Relaxed))
        .sum::<usize>()
        < enough
    {
        for worker in &mut *workers {
            if let Some(status) = worker.child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("a worker ended by itself: {status}"));
            }
        }
        if begun.elapsed() > RUN_TIMEOUT {
            return Err("nothing was acknowledged within ten minutes".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A worker, and what it has said so far.
pub(crate) struct Running {
    child: Child,
    acknowledged: Arc<AtomicUsize>,
    said: Arc<Mutex<Vec<u8>>>,
    listening: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(orders: &Orders) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        Self::start_program(Command::new(program).args(orders.arguments()))
    }

    pub(crate) fn start_program(command: &mut Command) -> Result<Self, String> {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut out = child.stdout.take().ok_or("the worker has no output")?;
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let said = Arc::new(Mutex::new(Vec::new()));
        let listening = {
            let acknowledged = Arc::clone(&acknowledged);
            let said = Arc::clone(&said);
            thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while let Ok(count) = out.read(&mut buffer)
                    && count > 0
                {
                    let heard = &buffer[..count];
                    acknowledged.fetch_add(
                        heard.split(|byte| *byte == b'=').count() - 1,
                        Ordering::Relaxed,
                    );
                    said.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend_from_slice(heard);
                }
            })
        };
        Ok(Self {
            child,
            acknowledged,
            said,
            listening,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| error.to_string())
    }

    /// Waits for it to end by itself.
    pub(crate) fn finish(&mut self) -> Result<std::process::ExitStatus, String> {
        self.child.wait().map_err(|error| error.to_string())
    }

    /// Everything it said, once it is dead.
    pub(crate) fn said(mut self) -> Result<String, String> {
        self.child.wait().map_err(|error| error.to_string())?;
        self.listening.join().map_err(|_| "nobody listened")?;
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8(said).map_err(|error| error.to_string())
    }
}
