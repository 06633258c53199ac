//! `haft rewind`: returns to an earlier message, and optionally restores the files.
//!
//! The stored conversation is never modified: a fork that ends at the message becomes the current
//! conversation.

use haft_agent::RandomIds;
use haft_changes::{Mode, Report, Target, UndoError};
use haft_store::{Conversation, NewConversation, NewFork};
use haft_types::{ConversationId, IdSource, Message, MessageId, Origin, Role};
use serde_json::json;

use super::{ConversationChanges, conversations, undo};
use crate::commands::changes::RewindArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

/// The state that a rewind restores: only the conversation, or the files as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewindScope {
    Conversation,
    ConversationAndFiles,
}

/// The outcome of a rewind or of its dry run.
pub(crate) struct RewindResult {
    /// The fork that is now the current conversation; `None` after a dry run.
    pub(crate) rewound: Option<Conversation>,
    /// The number of kept messages, and the number of all messages before the rewind.
    message_counts: (usize, usize),
    /// The text of the first removed message, which the user can edit and send again; `None` unless
    /// the user typed that message.
    pub(crate) prompt: Option<String>,
    report: Report,
    mode: Mode,
}

impl RewindResult {
    /// Returns the report on the files as text, or `None` if no file was affected.
    pub(crate) fn files_text(&self, opened: &ConversationChanges) -> Option<String> {
        let report = &self.report;
        (!report.paths.is_empty())
            .then(|| undo::report_to_text(opened, report, self.mode, undo::UndoDirection::Undo))
    }
}

/// Rewinds a conversation to the point before a message of the user, or after a message of the
/// model.
pub(crate) async fn rewind_to_message(
    opened: &ConversationChanges,
    message: &str,
    scope: RewindScope,
    mode: Mode,
) -> anyhow::Result<RewindResult> {
    // The lock keeps other processes from appending to the conversation during the rewind.
    let _lock = opened.store.lock(&opened.conversation.id).await?;
    let messages = opened.store.messages(&opened.conversation.id).await?;
    let wanted = conversations::find_message_id(&messages, message)?;
    let kept = count_kept_messages(&messages, wanted)?;
    let report = match scope {
        RewindScope::Conversation => Report::default(),
        RewindScope::ConversationAndFiles => undo_file_changes(opened, &messages[kept..], mode)?,
    };
    let rewound = match mode {
        Mode::DryRun => None,
        Mode::Apply => Some(create_fork(opened, &messages[..kept]).await?),
    };
    let is_typed = |message: &&Message| matches!(message.origin(), Origin::User | Origin::Joined);
    let prompt = messages
        .get(kept)
        .filter(|message| message.role == Role::User)
        .filter(is_typed)
        .map(Message::joined_text);
    Ok(RewindResult {
        rewound,
        message_counts: (kept, messages.len()),
        prompt,
        report,
        mode,
    })
}

pub(super) async fn rewind(haft: &Haft, args: &RewindArgs) -> anyhow::Result<ProcessExit> {
    let opened =
        ConversationChanges::find(haft, args.conversation.as_deref(), &args.how.common).await?;
    let scope = if args.files {
        RewindScope::ConversationAndFiles
    } else {
        RewindScope::Conversation
    };
    let result =
        rewind_to_message(&opened, &args.message, scope, undo::undo_mode(&args.how)).await?;
    let RewindResult {
        rewound,
        message_counts: (kept, all),
        prompt,
        report,
        ..
    } = &result;
    if args.how.json {
        let mut value = undo::report_to_json(&opened, report, &args.how);
        value["rewound_to"] = json!(rewound.as_ref().map(|conversation| &conversation.id));
        value["messages"] = json!(kept);
        value["words"] = json!(prompt);
        output::print_json(&value)?;
    } else {
        let mut text = match rewound {
            Some(conversation) => {
                format!(
                    "{}\n",
                    text!(
                        "changes-rewound",
                        id = conversation.id,
                        name = conversation.name
                    )
                )
            }
            None => format!("{}\n", text!("changes-would-keep", kept, all)),
        };
        text.extend(result.files_text(&opened));
        if let Some(prompt) = prompt {
            text.extend([text!("changes-prompt"), "\n", prompt, "\n"]);
        }
        output::print_text(&text)?;
    }
    Ok(if report.is_clean() {
        ProcessExit::Completed
    } else {
        ProcessExit::Waiting
    })
}

/// Returns the number of messages to keep: all messages before `wanted` if it is a prompt, or all
/// messages up to the tool results of `wanted` if it is a reply.
fn count_kept_messages(messages: &[Message], wanted: MessageId) -> anyhow::Result<usize> {
    let at = messages
        .iter()
        .position(|message| message.message_id == wanted)
        .unwrap_or(messages.len());
    let results = |from: usize| {
        messages[from..]
            .iter()
            .take_while(|message| message.role == Role::Tool)
            .count()
    };
    match messages.get(at).map(|message| message.role) {
        Some(Role::User) => Ok(at),
        Some(Role::Assistant) => Ok(at + 1 + results(at + 1)),
        Some(Role::Tool) => Ok(at + results(at)),
        Some(Role::System | Role::Summary) | None => {
            Err(usage_error(text!("changes-rewind-which")))
        }
    }
}

/// Undoes the file changes that the model made in the removed messages.
fn undo_file_changes(
    opened: &ConversationChanges,
    removed: &[Message],
    mode: Mode,
) -> anyhow::Result<Report> {
    let replies = removed
        .iter()
        .filter(|message| message.role == Role::Assistant);
    let target = Target::Messages(replies.map(|message| message.message_id).collect());
    match opened.record.undo(&target, None, mode) {
        Ok(report) => Ok(report),
        Err(UndoError::NothingToUndo | UndoError::AlreadyUndone(_)) => Ok(Report::default()),
        Err(error) => Err(error.into()),
    }
}

async fn create_fork(
    opened: &ConversationChanges,
    kept: &[Message],
) -> anyhow::Result<Conversation> {
    let id = ConversationId::from(RandomIds.new_uuid());
    let mark = text!("changes-rewound-name");
    let name = Some(format!(
        "{}{mark}",
        opened.conversation.name.trim_end_matches(mark)
    ));
    let made = if let Some(last) = kept.last() {
        let fork = NewFork {
            id,
            at: Some(last.message_id),
            name,
            make_current: true,
        };
        opened.store.fork(&opened.conversation.id, fork).await?
    } else {
        let namespace = opened.conversation.namespace.clone();
        let new = NewConversation {
            name,
            make_current: true,
            ..NewConversation::new(id, namespace)
        };
        opened.store.create(new).await?
    };
    Ok(made)
}
