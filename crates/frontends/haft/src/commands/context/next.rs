//! Builds the request that would be sent next, with the engine and the present configuration.

use std::path::Path;

use haft_agent::config::Config;
use haft_agent::{InspectionMode, Project};
use haft_context::{Assembly, MentionTools, Policy, append_mentions};
use haft_engine::mention_kind;
use haft_inspect::placeholder_url;
use haft_model::{BodyEncoding, ProviderConfig};
use haft_store::{Conversation, DEFAULT_NAMESPACE};
use haft_types::{
    ContentHash, ConversationId, Message, MessageId, Metadata, Origin, Role, Timestamp,
};

#[cfg(feature = "imports")]
use super::from_file;
use crate::cli::options::RunArgs;
use crate::commands::context::LookArgs;
use crate::commands::{conversations, run};
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

/// The placeholder for the user's next prompt.
const PROMPT_PLACEHOLDER: &str = "[the user's next input]";

/// The request that would be sent next.
pub(super) struct NextRequest {
    pub(super) assembly: Assembly,
    pub(super) encoding: BodyEncoding,
    /// The context policy from which the request was built.
    pub(super) policy: Policy,
}

/// True if the flags select the request that would be sent next instead of one in the log.
pub(super) fn is_next_requested(look: &LookArgs, next: bool) -> anyhow::Result<bool> {
    let next = next || look.from_file.is_some() || look.input.is_some();
    if !next && (look.model.is_some() || look.api.is_some()) {
        return Err(usage_error(text!("context-only-next")));
    }
    Ok(next)
}

/// Builds the next request of the selected conversation.
pub(super) async fn build_next_request(
    haft: &Haft,
    look: &LookArgs,
) -> anyhow::Result<NextRequest> {
    let mut settings = haft.load(&look.common)?;
    let model = choose_model(&mut settings.config, look)?;
    let store = settings.open_store()?;
    let mut args = RunArgs {
        model: Some(model.clone()),
        cwd: look.cwd.clone(),
        ..RunArgs::default()
    };
    let (conversation, mut messages) = if let Some(path) = &look.from_file {
        let (id, system, messages) = read_conversation(path)?;
        args.system_prompt = system;
        (unstored_conversation(id, messages.len()), messages)
    } else {
        let stored = match &look.conversation {
            Some(name) => Some(conversations::find_conversation(store.as_ref(), name).await?),
            None if look.input.is_some() => {
                conversations::find_current(store.as_ref(), &haft.project(None)?.namespace())
                    .await?
            }
            None => Some(conversations::load_current(haft, store.as_ref()).await?),
        };
        match stored {
            Some(conversation) => {
                let messages = store.messages(&conversation.id).await?;
                (conversation, messages)
            }
            None => (
                unstored_conversation(ConversationId::new("new"), 0),
                Vec::new(),
            ),
        }
    };
    args.resume = Some(conversation.id.to_string());
    let project = haft.project(args.cwd.as_deref())?;
    let plan = run::lower_args(&args, &settings, project, None)?;
    messages.extend(choose_next_prompt(
        look,
        &settings.config,
        &plan.project,
        &messages,
    ));
    let encoding = settings.resolve_model(&model)?.body_encoding();
    let mut session = settings
        .build_agent()
        .open_for_inspection(
            plan,
            store,
            (conversation, messages),
            InspectionMode::ReadOnly,
        )
        .await?;
    Ok(NextRequest {
        assembly: session.preview_request()?,
        encoding,
        policy: settings.config.context,
    })
}

/// Reads the id, the system prompt and the messages of a conversation in a file.
#[cfg(feature = "imports")]
fn read_conversation(
    path: &Path,
) -> anyhow::Result<(ConversationId, Option<String>, Vec<Message>)> {
    let haft_imports::ConversationFile {
        id,
        system,
        messages,
    } = from_file::read_conversation_file(path)?;
    Ok((id, system, messages))
}

#[cfg(not(feature = "imports"))]
fn read_conversation(_: &Path) -> anyhow::Result<(ConversationId, Option<String>, Vec<Message>)> {
    Err(usage_error(text!("context-no-imports")))
}

/// Returns the name of the model for the request. If `look` selects an API that the model's
/// provider does not have, declares a provider with that API and this model.
fn choose_model(config: &mut Config, look: &LookArgs) -> anyhow::Result<String> {
    let name = look.model.clone().or_else(|| config.model.clone());
    let Some(api) = look.api else {
        return name.ok_or_else(|| usage_error(text!("context-no-model")));
    };
    let name = name.unwrap_or_else(|| format!("{api}/model"));
    let Some((provider, model)) = name.split_once('/') else {
        return Ok(name);
    };
    if config
        .providers
        .get(provider)
        .is_some_and(|provider| provider.api == api)
    {
        return Ok(name);
    }
    let served = format!("{api}/{model}");
    if let Some(declared) = config.models.get(&name) {
        let mut declared = declared.clone();
        declared.cache = None;
        declared.extra_body.clear();
        config.models.insert(served.clone(), declared);
    }
    config.providers.insert(
        api.to_string(),
        ProviderConfig::new(api, placeholder_url(api)),
    );
    Ok(served)
}

/// Creates a conversation that is not stored.
pub(super) fn unstored_conversation(id: ConversationId, messages: usize) -> Conversation {
    Conversation {
        name: id.to_string(),
        id,
        namespace: DEFAULT_NAMESPACE.to_owned(),
        description: String::new(),
        metadata: Metadata::new(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        messages: messages as u64,
        revisions: 0,
    }
}

/// Returns the user's next prompt: the given prompt, or a placeholder if the next message must come
/// from the user.
fn choose_next_prompt(
    look: &LookArgs,
    config: &Config,
    project: &Project,
    messages: &[Message],
) -> Option<Message> {
    let text = match &look.input {
        Some(text) => {
            let most = config.context.mentions as usize;
            append_mentions(text, most, MentionTools::ALL, &[], &|path| {
                mention_kind(&project.cwd.join(path))
            })
        }
        None if is_waiting_for_user(messages) => {
            if !look.quiet {
                output::print_to_stderr(&format!(
                    "haft: {}",
                    text!("context-waits-for-user", placeholder = PROMPT_PLACEHOLDER)
                ));
            }
            PROMPT_PLACEHOLDER.to_owned()
        }
        None => return None,
    };
    let seed = format!("next input {} {text}", messages.len());
    let id = MessageId::from_hash(ContentHash::from_content(seed.as_bytes()));
    Some(Message::from_text(id, Role::User, text, Timestamp::UNIX_EPOCH).with_origin(Origin::User))
}

fn is_waiting_for_user(messages: &[Message]) -> bool {
    let last = messages.iter().rev().find(|message| match message.role {
        Role::User | Role::Assistant | Role::Tool => true,
        Role::System | Role::Summary => false,
    });
    last.is_none_or(|last| last.role == Role::Assistant && last.tool_calls().next().is_none())
}
