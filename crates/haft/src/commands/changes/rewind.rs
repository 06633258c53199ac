//! `haft rewind`: back to a message, with or without the files.
//!
//! What is stored is never changed: the conversation as it was stays, and a fork that ends at the message becomes the current
//! one.

use haft_engine::files::{Mode, Report, Target, UndoError};
use haft_store::{Conversation, NewConversation, NewFork};
use haft_types::{ConversationId, IdSource, Message, MessageId, Role};
use serde_json::json;

use super::{Opened, conversations, undo};
use crate::cli::RewindArgs;
use crate::clock::RandomIds;
use crate::exit::{Exit, mistake};
use crate::output;

pub(super) async fn rewind(args: &RewindArgs) -> anyhow::Result<Exit> {
    let opened = Opened::new(args.conversation.as_deref(), &args.how.common).await?;
    // Nobody goes on with it while it is taken back.
    let _lock = opened.store.lock(&opened.conversation.id).await?;
    let messages = opened.store.messages(&opened.conversation.id).await?;
    let wanted = conversations::message(&messages, &args.message)?;
    let kept = kept(&messages, wanted)?;
    let report = if args.files { files(&opened, &messages[kept..], undo::mode(&args.how))? } else { Report::default() };
    let rewound = if args.how.dry_run { None } else { Some(fork(&opened, &messages[..kept]).await?) };
    let words = messages.get(kept).filter(|message| message.opens_round()).map(Message::joined_text);
    if args.how.json {
        let mut told = undo::as_json(&opened, &report, &args.how);
        told["rewound_to"] = json!(rewound.as_ref().map(|conversation| &conversation.id));
        told["messages"] = json!(kept);
        told["words"] = json!(words);
        output::print_json(&told)?;
    } else {
        let mut text = match &rewound {
            Some(conversation) => format!("rewound to {}  {}\n", conversation.id, conversation.name),
            None => format!("Would keep {kept} of {} messages.\n", messages.len()),
        };
        if !report.paths.is_empty() {
            text.push_str(&undo::as_text(&opened, &report, &args.how, undo::Direction::Back));
        }
        if let Some(words) = words {
            text.extend(["You had said:\n", &words, "\n"]);
        }
        output::print(&haft_text::sanitise(&text))?;
    }
    Ok(if report.is_clean() { Exit::Completed } else { Exit::Waiting })
}

/// How many messages stay: up to the user's words, which are to be said anew, or up to the model's with all their results.
fn kept(messages: &[Message], wanted: MessageId) -> anyhow::Result<usize> {
    let at = messages.iter().position(|message| message.message_id == wanted).unwrap_or(messages.len());
    let results = |from: usize| messages[from..].iter().take_while(|message| message.role == Role::Tool).count();
    match messages.get(at).map(|message| message.role) {
        Some(Role::User) => Ok(at),
        Some(Role::Assistant) => Ok(at + 1 + results(at + 1)),
        Some(Role::Tool) => Ok(at + results(at)),
        Some(Role::System | Role::Summary) | None => {
            Err(mistake("give one of your messages or of the model's; `haft conversations show` names them"))
        }
    }
}

/// Takes back what the model changed in the messages that go.
fn files(opened: &Opened, gone: &[Message], mode: Mode) -> anyhow::Result<Report> {
    let replies = gone.iter().filter(|message| message.role == Role::Assistant);
    let target = Target::Messages(replies.map(|message| message.message_id).collect());
    match opened.record.undo(&target, None, mode) {
        Ok(report) => Ok(report),
        Err(UndoError::NothingToUndo | UndoError::AlreadyUndone(_)) => Ok(Report::default()),
        Err(error) => Err(error.into()),
    }
}

async fn fork(opened: &Opened, kept: &[Message]) -> anyhow::Result<Conversation> {
    let id = ConversationId::from(RandomIds.uuid());
    let name = Some(format!("{} (rewound)", opened.conversation.name.trim_end_matches(" (rewound)")));
    let made = if let Some(last) = kept.last() {
        let fork = NewFork { id, at: Some(last.message_id), name, make_current: true };
        opened.store.fork(&opened.conversation.id, fork).await?
    } else {
        let namespace = opened.conversation.namespace.clone();
        let new = NewConversation { name, make_current: true, ..NewConversation::new(id, namespace) };
        opened.store.create(new).await?
    };
    Ok(made)
}
