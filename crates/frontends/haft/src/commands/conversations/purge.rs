//! `haft conversations purge`: removes conversations from every file of haft for good.
//!
//! `haft_rescue` purges the store; this module removes the files beside it: jobs, kept outputs,
//! workflow runs, worktrees, the journal, the input history, and lines of the log.

use std::fs;
use std::io::BufRead;
use std::path::Path;

use haft_agent::{Places, WallClock};
use haft_files::Durability;
use haft_rescue::{RelatedConversations, StoreFiles};
use haft_store::{Conversation, ConversationMatch, ConversationScope, Store};
use haft_types::{ConversationId, Role, Timestamp};
use serde_json::{Value, json};

use super::{PurgeArgs, find_conversation};
use crate::cli::options::is_at_terminal;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// Data of the purged conversations, for finding their traces in other files.
#[derive(Default)]
struct PurgeTraces {
    ids: Vec<ConversationId>,
    namespaces: Vec<String>,
    /// The texts of the user messages.
    prompts: Vec<String>,
    /// All messages as JSON text.
    messages_json: String,
    /// The time from creation to last update, for each conversation.
    active_times: Vec<(Timestamp, Timestamp)>,
}

pub(super) async fn run(haft: &Haft, args: &PurgeArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.output.common)?;
    if settings.config.store.url.is_some() {
        return Err(usage_error(text!("conversations-purge-server")));
    }
    let patient = StoreFiles {
        database: settings.places.database_file(),
        backups: settings.places.backups_folder(),
        versions: settings.places.versions_folder(),
        config: settings.config.store.clone(),
        clock: std::sync::Arc::new(WallClock),
    };
    let store = settings.open_store()?;
    let mut named = Vec::new();
    for text in &args.ids {
        named.push(find_including_trash(store.as_ref(), text).await?);
    }
    let mut ids: Vec<_> = named.iter().map(|one| one.id.clone()).collect();
    let family = haft_rescue::find_related_conversations(&patient, &ids)?;
    if !family.forks.is_empty() && !args.forks {
        let forks: Vec<_> = family.forks.iter().map(ToString::to_string).collect();
        return Err(usage_error(text!(
            "conversations-purge-forks",
            forks = output::join_names(&forks)
        )));
    }
    confirm_purge(args, &named, &family)?;
    let RelatedConversations { sub_agents, forks } = family;
    ids.extend(sub_agents.into_iter().chain(forks));
    let traces = collect_traces(store.as_ref(), ids).await?;
    // Closes the store with its backup thread, so that no backup is made during the purge.
    drop(store);
    let backups = haft_rescue::purge_conversations(&patient, &traces.ids)?;
    remove_outside_store(&settings.places, &traces)?;
    if args.output.json {
        return output::print_json(&json!({ "purged": traces.ids, "backups": backups }));
    }
    output::print_text_line(&text!(
        "conversations-purged",
        count = traces.ids.len(),
        backups
    ))
}

/// Finds a conversation, first in the trash, then outside it.
async fn find_including_trash(store: &dyn Store, text: &str) -> anyhow::Result<Conversation> {
    match store
        .find_conversation(text, ConversationScope::Trash)
        .await?
    {
        ConversationMatch::One(conversation) => Ok(*conversation),
        ConversationMatch::Nothing | ConversationMatch::Several(_) => {
            find_conversation(store, text).await
        }
    }
}

/// Asks the user for confirmation twice: first for yes or no, then for the beginning of the first
/// conversation's id. Asks nothing with `--force`.
fn confirm_purge(
    args: &PurgeArgs,
    named: &[Conversation],
    family: &RelatedConversations,
) -> anyhow::Result<()> {
    if args.force {
        return Ok(());
    }
    if !is_at_terminal() {
        return Err(usage_error(text!("conversations-purge-force")));
    }
    for one in named {
        output::print_text(&format!("{}  {}\n", one.id, haft_text::sanitize(&one.name)))?;
    }
    let others = family.sub_agents.len() + family.forks.len();
    let id: String = named
        .first()
        .map(|one| one.id.to_string().chars().take(8).collect())
        .unwrap_or_default();
    haft_tui::wait_and_discard_typed_ahead(std::io::stdin());
    let mut answers = std::io::stdin().lock();
    for (question, wanted) in [
        (
            text!("conversations-purge-sure", count = named.len(), others),
            "y",
        ),
        (
            text!("conversations-purge-really", id = id.clone()),
            id.as_str(),
        ),
    ] {
        output::print_text(&format!("{question} "))?;
        let mut answer = String::new();
        answers.read_line(&mut answer)?;
        if answer.trim() != wanted
            && !(wanted == "y" && haft_messages::parse_yes_no(&answer) == Some(true))
        {
            return Err(usage_error(text!("conversations-purge-left")));
        }
    }
    Ok(())
}

async fn collect_traces(
    store: &dyn Store,
    ids: Vec<ConversationId>,
) -> anyhow::Result<PurgeTraces> {
    let mut traces = PurgeTraces {
        ids,
        ..PurgeTraces::default()
    };
    for id in &traces.ids {
        // Conversations in the trash cannot be read, so they are restored first.
        if matches!(
            store
                .find_conversation(id.as_str(), ConversationScope::Trash)
                .await?,
            ConversationMatch::One(_)
        ) {
            store.restore(id).await?;
        }
        // Fails after the lock timeout if another process is writing to the conversation.
        drop(store.lock(id).await?);
        if let Some(one) = store.get(id).await? {
            traces.namespaces.push(one.namespace);
            traces.active_times.push((one.created_at, one.updated_at));
        }
        let messages = store.messages(id).await?;
        traces
            .messages_json
            .push_str(&serde_json::to_string(&messages)?);
        let user_messages = messages.iter().filter(|message| message.role == Role::User);
        traces
            .prompts
            .extend(user_messages.map(haft_types::Message::joined_text));
    }
    Ok(traces)
}

/// Removes the traces of the purged conversations outside the store: whole files, and lines of
/// shared files.
fn remove_outside_store(places: &Places, traces: &PurgeTraces) -> anyhow::Result<()> {
    for folder in [
        places.jobs_folder(),
        places.workflows_folder(),
        places.worktrees_folder(),
        places.journal_folder(),
    ] {
        remove_matching_entries(&folder, traces)?;
    }
    // The folder of a conversation is removed as a whole, one output of another by its content.
    for entry in fs::read_dir(places.spill_folder()).into_iter().flatten() {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if traces.ids.iter().any(|id| *name == id.file_name()) {
            fs::remove_dir_all(&folder)?;
        } else if folder.is_dir() {
            remove_matching_entries(&folder, traces)?;
        }
    }
    #[cfg(feature = "proxy")]
    haft_proxy::remove_saved_texts(&places.proxy_folder(), |id| {
        traces.ids.iter().any(|purged| purged.as_str() == id)
    })?;
    // The private temporary folders of commands that have ended.
    if let Err(error) = fs::remove_dir_all(places.private_tmp_folder())
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error.into());
    }
    for namespace in &traces.namespaces {
        retain_lines(&places.history_file(namespace), |line| {
            !is_purged_input(line, traces)
        })?;
    }
    for entry in fs::read_dir(places.log_folder()).into_iter().flatten() {
        retain_lines(&entry?.path(), |line| !is_purged_log_line(line, traces))?;
    }
    Ok(())
}

/// Removes the entries of a folder whose names occur in the conversations, or whose names or
/// contents include the id of a conversation.
fn remove_matching_entries(folder: &Path, traces: &PurgeTraces) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_named = name.len() >= 6 && traces.messages_json.contains(name.as_ref());
        if is_named
            || traces.ids.iter().any(|id| name.contains(id.as_str()))
            || contains_any_id(&path, &traces.ids)
        {
            if path.is_dir() {
                fs::remove_dir_all(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}

/// True if a file, or any file below a folder, contains one of the ids. Symbolic links are not
/// followed.
fn contains_any_id(path: &Path, ids: &[ConversationId]) -> bool {
    if path.is_symlink() {
        return false;
    }
    if path.is_dir() {
        return fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| contains_any_id(&entry.path(), ids));
    }
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    ids.iter().any(|id| {
        bytes
            .windows(id.as_str().len())
            .any(|window| window == id.as_str().as_bytes())
    })
}

/// True if a line of the input history was sent in one of the conversations, or cannot be parsed.
fn is_purged_input(line: &str, traces: &PurgeTraces) -> bool {
    let Ok(typed) = serde_json::from_str::<String>(line) else {
        return true;
    };
    let typed = typed.trim();
    // A prompt contains the arguments of a slash command, but the whole of a shell command.
    let said = match typed.strip_prefix('/') {
        Some(command) => command
            .split_once(char::is_whitespace)
            .map_or("", |(_, arguments)| arguments),
        None => typed.trim_start_matches('!'),
    };
    !said.trim().is_empty()
        && traces
            .prompts
            .iter()
            .any(|prompt| prompt.contains(said.trim()))
}

/// True if a log line may belong to the conversations: it contains an id, was written while a
/// conversation was active, or has no time.
fn is_purged_log_line(line: &str, traces: &PurgeTraces) -> bool {
    // Lines about the end of a session are logged after the last message.
    const MAX_LOG_DELAY_SECONDS: i64 = 600;
    if traces.ids.iter().any(|id| line.contains(id.as_str())) {
        return true;
    }
    let time = serde_json::from_str::<Value>(line)
        .ok()
        .and_then(|line| line.get("time")?.as_str()?.parse().ok());
    time.is_none_or(|time: Timestamp| {
        traces.active_times.iter().any(|(from, to)| {
            time.as_second() >= from.as_second()
                && time.as_second() <= to.as_second() + MAX_LOG_DELAY_SECONDS
        })
    })
}

/// Rewrites a file, keeping only the lines for which `stays` is true.
fn retain_lines(file: &Path, stays: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let Ok(text) = fs::read_to_string(file) else {
        return Ok(());
    };
    let left: String = text
        .split_inclusive('\n')
        .filter(|line| stays(line.trim_end()))
        .collect();
    if left.len() == text.len() {
        return Ok(());
    }
    Ok(haft_files::replace_file(
        file,
        left.as_bytes(),
        Durability::PowerCut,
    )?)
}
