//! What was announced and acknowledged, written down outside; and whether a store still tells the
//! same.
//!
//! What was acknowledged must be there, once. What was announced and not acknowledged may be there,
//! whole, or not at all. Nothing else may be there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use haft_rescue::{CheckHealth, StoreFiles, examine_store};
use haft_store::{Conversation, ConversationScope, SearchQuery, SqliteStore, Store};
use haft_types::Message;

use crate::texts::{self, clock, conversation};
use crate::worker::config;

/// What is known of one message of one conversation.
#[derive(Default)]
struct Told {
    acknowledged: bool,
    /// Revisions that were announced.
    announced: u32,
    /// The newest one that was acknowledged.
    revised: u32,
}

/// What is known of one conversation.
#[derive(Default)]
struct Place {
    messages: BTreeMap<u32, Told>,
    /// For a fork: what it was forked from, and how many messages it shared if that was
    /// acknowledged.
    fork: Option<(String, Option<u64>)>,
    states: BTreeSet<u32>,
    state: Option<u32>,
    requests: u64,
}

/// The story of one store.
#[derive(Default)]
pub(crate) struct Story {
    places: HashMap<String, Place>,
    pub(crate) acknowledged: u64,
}

impl Story {
    /// A story that begins with these conversations, empty.
    pub(crate) fn of(conversations: &[&str]) -> Self {
        let places = conversations
            .iter()
            .map(|name| ((*name).to_owned(), Place::default()))
            .collect();
        Self {
            places,
            acknowledged: 0,
        }
    }

    /// Takes down what a worker said. Its last line may be cut: then it said nothing.
    pub(crate) fn hear(&mut self, said: &str) -> Result<(), String> {
        let whole = &said[..said.rfind('\n').map_or(0, |end| end + 1)];
        for line in whole.lines() {
            self.hear_line(line)
                .ok_or_else(|| format!("the worker said `{line}`"))?;
        }
        Ok(())
    }

    fn hear_line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words.get(index)?.parse::<u32>().ok();
        let place = |story: &mut Self| -> Option<()> {
            story.places.entry((*words.get(1)?).to_owned()).or_default();
            Some(())
        };
        match *words.first()? {
            "+b" | "=b" => return Some(()),
            "+f" => {
                let fork = self.places.entry((*words.get(2)?).to_owned()).or_default();
                fork.fork = Some(((*words.get(1)?).to_owned(), None));
            }
            "=f" => {
                self.acknowledged += 1;
                let fork = self.places.get_mut(*words.get(2)?)?;
                fork.fork = Some((
                    (*words.get(1)?).to_owned(),
                    Some(words.get(3)?.parse().ok()?),
                ));
            }
            deed => {
                place(self)?;
                self.acknowledged += u64::from(deed.starts_with('='));
                let place = self.places.get_mut(*words.get(1)?)?;
                match deed {
                    "+a" => {
                        place.messages.entry(number(2)?).or_default();
                    }
                    "=a" => place.messages.get_mut(&number(2)?)?.acknowledged = true,
                    "+u" => place.messages.get_mut(&number(2)?)?.announced = number(3)?,
                    "=u" => {
                        let told = place.messages.get_mut(&number(2)?)?;
                        told.revised = told.revised.max(number(3)?);
                    }
                    "+s" => {
                        place.states.insert(number(2)?);
                    }
                    "=s" => place.state = number(2),
                    "+r" => {}
                    "=r" => place.requests = place.requests.max(number(2)?.into()),
                    _ => return None,
                }
            }
        }
        Some(())
    }

    /// Opens the store and compares it with the story.
    pub(crate) fn check(&self, path: &Path) -> Result<(), String> {
        let store = SqliteStore::open(path, &config(), clock())
            .map_err(|error| format!("opening: {error}"))?;
        crate::block_on(self.check_store(&store))??;
        drop(store);
        check_health(path)
    }

    async fn check_store(&self, store: &SqliteStore) -> Result<(), String> {
        let listed = store
            .list(ConversationScope::Everywhere)
            .await
            .map_err(|error| format!("listing: {error}"))?;
        let there: BTreeSet<String> = listed.iter().map(|one| one.id.to_string()).collect();
        if let Some(unknown) = there.iter().find(|name| !self.places.contains_key(*name)) {
            return Err(format!("conversation `{unknown}` came from nowhere"));
        }
        for (name, place) in &self.places {
            let read = store
                .get(&conversation(name))
                .await
                .map_err(|error| format!("`{name}`: {error}"))?;
            match (read, &place.fork) {
                (Some(read), _) => self.check_place(store, name, place, &read).await?,
                // It may not be there if nobody was told that it is.
                (None, Some((_, None)))
                    if place.messages.values().all(|told| !told.acknowledged) => {}
                (None, _) => return Err(format!("conversation `{name}` is lost")),
            }
            // Nobody holds what a dead process held.
            store
                .lock(&conversation(name))
                .await
                .map_err(|error| error.to_string())?;
        }
        let query = SearchQuery {
            text: "快",
            scope: ConversationScope::Everywhere,
            limit: 5,
        };
        store
            .search(query)
            .await
            .map_err(|error| format!("searching: {error}"))?;
        Ok(())
    }

    async fn check_place(
        &self,
        store: &SqliteStore,
        name: &str,
        place: &Place,
        read: &Conversation,
    ) -> Result<(), String> {
        let of = |problem: String| format!("conversation `{name}`: {problem}");
        let messages = store
            .messages(&read.id)
            .await
            .map_err(|error| of(error.to_string()))?;
        if messages.len() as u64 != read.messages {
            return Err(of(format!(
                "it says it has {} messages and has {}",
                read.messages,
                messages.len()
            )));
        }
        let shared = match &place.fork {
            None => 0,
            Some((from, acknowledged)) => {
                let shared = read
                    .metadata
                    .get("forked_from")
                    .and_then(|from| from.get("messages")?.as_u64());
                let shared = shared.ok_or_else(|| of("it does not say what it shares".into()))?;
                if acknowledged.is_some_and(|told| told != shared) {
                    return Err(of(format!(
                        "it was told to share {acknowledged:?} messages and shares {shared}"
                    )));
                }
                self.check_shared(store, from, &messages, shared)
                    .await
                    .map_err(of)?;
                shared
            }
        };
        check_own(place, messages.get(shared as usize..).unwrap_or_default()).map_err(of)?;
        check_state(store, place, read).await.map_err(of)?;
        let requests = store
            .logged_requests(&read.id)
            .await
            .map_err(|error| of(error.to_string()))?;
        if (requests.len() as u64) < place.requests {
            return Err(of(format!(
                "{} of {} logged requests are there",
                requests.len(),
                place.requests
            )));
        }
        if let Some(last) = requests.last() {
            let whole = store
                .logged_request(&read.id, last.number)
                .await
                .map_err(|error| of(error.to_string()))?;
            whole.ok_or_else(|| of(format!("request {} is lost", last.number)))?;
        }
        Ok(())
    }

    /// What a fork shares is the beginning of what it was forked from.
    async fn check_shared(
        &self,
        store: &SqliteStore,
        from: &str,
        messages: &[Message],
        shared: u64,
    ) -> Result<(), String> {
        let original = store
            .messages(&conversation(from))
            .await
            .map_err(|error| error.to_string())?;
        let shared = shared as usize;
        let ids = |messages: &[Message]| {
            messages
                .iter()
                .take(shared)
                .map(|one| one.message_id)
                .collect::<Vec<_>>()
        };
        if messages.len() < shared || ids(messages) != ids(&original) {
            return Err(format!("it does not begin as `{from}` does"));
        }
        for message in &messages[..shared] {
            texts::read(&message.joined_text())
                .ok_or_else(|| format!("message {} is not whole", message.message_id))?;
        }
        Ok(())
    }
}

/// The messages a conversation does not share.
fn check_own(place: &Place, messages: &[Message]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for message in messages {
        let text = message.joined_text();
        let (number, revision) = texts::read(&text)
            .ok_or_else(|| format!("message {} is not whole", message.message_id))?;
        if texts::id(number) != message.message_id {
            return Err(format!(
                "message {} says that it is {number}",
                message.message_id
            ));
        }
        let told = place
            .messages
            .get(&number)
            .ok_or_else(|| format!("message {number} came from nowhere"))?;
        if !seen.insert(number) {
            return Err(format!("message {number} is there twice"));
        }
        if !(told.revised..=told.announced).contains(&revision) {
            let from = told.revised;
            let to = told.announced;
            return Err(format!(
                "message {number} is in revision {revision}, and {from} to {to} were told"
            ));
        }
    }
    match place
        .messages
        .iter()
        .find(|(number, told)| told.acknowledged && !seen.contains(number))
    {
        Some((number, _)) => Err(format!("message {number} was acknowledged and is lost")),
        None => Ok(()),
    }
}

async fn check_state(
    store: &SqliteStore,
    place: &Place,
    read: &Conversation,
) -> Result<(), String> {
    let kept = store
        .state(&read.id, "state")
        .await
        .map_err(|error| error.to_string())?;
    let kept = kept
        .and_then(|value| value.as_u64())
        .and_then(|value| u32::try_from(value).ok());
    match (place.state, kept) {
        // A fork begins with the state of what it was forked from.
        (None, _) => Ok(()),
        // Several tasks keep states at once, so the order of two of them is not told.
        (Some(_), Some(kept)) if place.states.contains(&kept) => Ok(()),
        (Some(told), kept) => Err(format!(
            "its state is {kept:?}, and {told} was acknowledged"
        )),
    }
}

/// Nothing needs a doctor after a crash.
fn check_health(path: &Path) -> Result<(), String> {
    let patient = StoreFiles {
        database: path.to_path_buf(),
        backups: path.with_file_name("backups"),
        versions: path.with_file_name("versions"),
        config: config(),
        clock: clock(),
    };
    let ill = examine_store(&patient)
        .into_iter()
        .find(|check| match check.name {
            // An unfinished backup is cleared away, and there may be none at all.
            "files" | "backups" => check.health == CheckHealth::Damaged,
            _ => check.health > CheckHealth::Skipped,
        });
    match ill {
        Some(check) => Err(format!(
            "{}: {} {:?}",
            check.name, check.message, check.details
        )),
        None => Ok(()),
    }
}
