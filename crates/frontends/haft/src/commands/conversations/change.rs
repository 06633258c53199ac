//! `haft conversations new`, `use`, `rename`, `delete`, `restore` and `fork`: create and change
//! conversations.

use haft_agent::RandomIds;
use haft_store::{Conversation, ConversationScope, NewConversation, NewFork, Store};
use haft_types::{ConversationId, IdSource, Message, MessageId, Metadata};
use serde_json::Value;

use super::list::conversation_to_row;
use super::{
    find_conversation, find_in_scope, find_named_or_current, open_store, resolve_namespace,
};
use crate::commands::conversations::{
    DeleteArgs, ForkArgs, NewArgs, RenameArgs, RestoreArgs, UseArgs,
};
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

pub(super) async fn new(haft: &Haft, args: NewArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.output.common)?;
    let new = NewConversation {
        name: args.name,
        description: args.description,
        metadata: parse_metadata(&args.metadata)?,
        make_current: true,
        ..NewConversation::new(
            parse_or_generate_id(args.id),
            resolve_namespace(haft, &args.place)?,
        )
    };
    print_created("created", store.create(new).await?, args.output.json)
}

fn parse_or_generate_id(id: Option<String>) -> ConversationId {
    id.map_or_else(
        || ConversationId::from(RandomIds.new_uuid()),
        ConversationId::new,
    )
}

pub(super) fn parse_metadata(pairs: &[String]) -> anyhow::Result<Metadata> {
    let pair = |pair: &String| {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| usage_error(text!("conversations-bad-metadata", pair)))?;
        Ok((
            key.to_owned(),
            serde_json::from_str(value).unwrap_or_else(|_| Value::from(value)),
        ))
    };
    pairs.iter().map(pair).collect()
}

fn print_created(done: &str, conversation: Conversation, json: bool) -> anyhow::Result<()> {
    if json {
        return output::print_json(&serde_json::to_value(conversation_to_row(conversation))?);
    }
    print_change(done, &conversation)
}

fn print_change(done: &str, conversation: &Conversation) -> anyhow::Result<()> {
    output::print_text(&format!(
        "{done} {}  {}\n",
        conversation.id,
        haft_text::sanitize(&conversation.name)
    ))
}

pub(super) async fn use_conversation(haft: &Haft, args: &UseArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    let conversation = find_conversation(store.as_ref(), &args.id).await?;
    store
        .set_current_conversation(&resolve_namespace(haft, &args.place)?, &conversation.id)
        .await?;
    print_change("using", &conversation)
}

pub(super) async fn rename_conversation(haft: &Haft, args: &RenameArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    let conversation = find_conversation(store.as_ref(), &args.id).await?;
    store.rename(&conversation.id, &args.name).await?;
    print_change(
        "renamed",
        &Conversation {
            name: args.name.clone(),
            ..conversation
        },
    )
}

pub(super) async fn delete_conversations(haft: &Haft, args: &DeleteArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    for conversation in
        find_conversations(store.as_ref(), &args.ids, ConversationScope::Everywhere).await?
    {
        store.delete(&conversation.id).await?;
        print_change("deleted", &conversation)?;
    }
    Ok(())
}

pub(super) async fn restore_conversations(haft: &Haft, args: &RestoreArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.common)?;
    for conversation in
        find_conversations(store.as_ref(), &args.ids, ConversationScope::Trash).await?
    {
        print_change("restored", &store.restore(&conversation.id).await?)?;
    }
    Ok(())
}

/// Finds all named conversations. Any unknown name is an error, so that the caller changes either
/// all conversations or none.
async fn find_conversations(
    store: &dyn Store,
    names: &[String],
    scope: ConversationScope<'_>,
) -> anyhow::Result<Vec<Conversation>> {
    let mut found: Vec<Conversation> = Vec::with_capacity(names.len());
    for name in names {
        let conversation = find_in_scope(store, name, scope).await?;
        if found.iter().all(|other| other.id != conversation.id) {
            found.push(conversation);
        }
    }
    Ok(found)
}

pub(super) async fn fork_conversation(haft: &Haft, args: ForkArgs) -> anyhow::Result<()> {
    let store = open_store(haft, &args.output.common)?;
    let conversation = find_named_or_current(haft, store.as_ref(), args.id.as_deref()).await?;
    let at = match &args.at {
        Some(text) => Some(find_message_id(
            &store.messages(&conversation.id).await?,
            text,
        )?),
        None => None,
    };
    let fork = NewFork {
        id: parse_or_generate_id(args.new_id),
        at,
        name: args.name,
        make_current: true,
    };
    print_created(
        "forked",
        store.fork(&conversation.id, fork).await?,
        args.output.json,
    )
}

/// Finds the id of the message whose id is or begins with `text`.
pub(crate) fn find_message_id(messages: &[Message], text: &str) -> anyhow::Result<MessageId> {
    let wanted = text.to_ascii_lowercase();
    let mut fitting = messages
        .iter()
        .map(|message| message.message_id)
        .filter(|id| id.to_string().starts_with(&wanted));
    match (fitting.next(), fitting.next()) {
        (Some(id), None) if !wanted.is_empty() => Ok(id),
        (Some(_), Some(_)) => Err(usage_error(text!("conversations-ambiguous-message", text))),
        (Some(_), None) | (None, _) => {
            Err(usage_error(text!("conversations-unknown-message", text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_types::{Role, Timestamp};

    #[test]
    fn parse_metadata_accepts_json_and_strings() {
        let pairs = ["n=1", "list=[1, 2]", "text=some words", "empty=", "a=b=c"].map(str::to_owned);
        let read = Value::Object(parse_metadata(&pairs).unwrap());
        assert_eq!(
            read,
            serde_json::json!({"n": 1, "list": [1, 2], "text": "some words", "empty": "", "a": "b=c"})
        );
        assert!(
            parse_metadata(&["no value".to_owned()])
                .unwrap_err()
                .to_string()
                .contains("no value")
        );
    }

    #[test]
    fn find_message_id_accepts_the_start_of_an_id() {
        let made = |id: &str| {
            Message::from_text(id.parse().unwrap(), Role::User, "x", Timestamp::UNIX_EPOCH)
        };
        let messages = [
            made("0a1b2c3d-0000-4000-8000-000000000000"),
            made("0a1bffff-0000-4000-8000-000000000000"),
        ];
        assert_eq!(
            find_message_id(&messages, "0A1B2").unwrap(),
            messages[0].message_id
        );
        assert_eq!(
            find_message_id(&messages, &messages[1].message_id.to_string()).unwrap(),
            messages[1].message_id
        );
        for wrong in ["0a1b", "ff", ""] {
            assert!(find_message_id(&messages, wrong).is_err(), "{wrong}");
        }
    }
}
