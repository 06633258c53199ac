//! Reads the request log of one conversation.

use std::collections::HashMap;
use std::sync::Arc;

use haft_model::{BodyEncoding, O200k};
use haft_store::{Conversation, LoggedRequest, RequestOutline, Store};
use haft_types::{
    Entry, LlmMetadata, Message, ModelSpec, Request, Role, Segment, ToolProtocol, ToolSet, Usage,
};

use super::imported::{self, ImportedRequests};
use super::{next, proxy_records};
use crate::cli::options::Common;
use crate::commands::conversations;
use crate::exit::usage_error;
use crate::haft::{Haft, Settings};
use crate::output;

/// Reads the requests that were logged for one conversation.
pub(super) struct RequestLogReader {
    pub(super) store: Arc<dyn Store>,
    pub(super) settings: Settings,
    pub(super) conversation: Conversation,
    /// The number of requests in the log.
    pub(super) requests: u64,
    /// The requests rebuilt from the messages, if the conversation was imported.
    pub(super) imported: Option<ImportedRequests>,
}

impl RequestLogReader {
    /// Opens the log of the named conversation, or of the current one. Returns a usage error if the
    /// conversation has no requests, and prints a note if it was imported.
    pub(super) async fn open(
        haft: &Haft,
        name: Option<&str>,
        common: &Common,
    ) -> anyhow::Result<Self> {
        let log = Self::open_any(haft, name, common).await?;
        if log.requests == 0 {
            return Err(usage_error(text!(
                "context-no-requests",
                id = log.conversation.id
            )));
        }
        log.imported_note()
            .iter()
            .for_each(|note| output::print_to_stderr(&format!("haft: {note}")));
        Ok(log)
    }

    /// Like [`Self::open`], but accepts a conversation without requests, and prints no note if the
    /// conversation was imported.
    pub(super) async fn open_any(
        haft: &Haft,
        name: Option<&str>,
        common: &Common,
    ) -> anyhow::Result<Self> {
        let settings = haft.load(common)?;
        let store = settings.open_store()?;
        let conversation = conversations::find_named_or_current(haft, store.as_ref(), name).await?;
        Self::for_conversation(store, settings, conversation).await
    }

    /// Opens the log of `conversation`, which may be empty.
    pub(super) async fn for_conversation(
        store: Arc<dyn Store>,
        settings: Settings,
        conversation: Conversation,
    ) -> anyhow::Result<Self> {
        let mut requests = store
            .logged_requests(&conversation.id)
            .await?
            .last()
            .map_or(0, |last| last.number);
        let mut imported = None;
        if let (0, Some(agent)) = (requests, imported::source_agent(&conversation.metadata)) {
            let made = ImportedRequests::new(agent, &store.messages(&conversation.id).await?);
            requests = made.count();
            imported = Some(made);
        }
        Ok(Self {
            store,
            settings,
            conversation,
            requests,
            imported,
        })
    }

    /// Returns a note that the requests were rebuilt from messages, if the conversation was
    /// imported.
    pub(super) fn imported_note(&self) -> Option<String> {
        let made = self.imported.as_ref()?;
        let agent = imported::source_agent(&self.conversation.metadata)?;
        Some(if made.has_system() {
            text!("context-imported-with-system", agent)
        } else {
            text!("context-imported", agent)
        })
    }

    /// Returns the request with this number, or the last one, with messages formatted for people.
    pub(super) async fn request(&self, number: Option<u64>) -> anyhow::Result<LoggedRequest> {
        self.sent_request(number)
            .await
            .map(proxy_records::to_readable)
    }

    /// Like [`Self::request`], but returns the messages as they were sent.
    pub(super) async fn sent_request(&self, number: Option<u64>) -> anyhow::Result<LoggedRequest> {
        let number = number.unwrap_or(self.requests);
        if let Some(imported) = &self.imported {
            return imported
                .request(number)
                .ok_or_else(|| self.unknown_request_error(number));
        }
        self.store
            .logged_request(&self.conversation.id, number)
            .await?
            .ok_or_else(|| self.unknown_request_error(number))
    }

    pub(super) async fn outlines(&self) -> anyhow::Result<Vec<RequestOutline>> {
        match &self.imported {
            Some(imported) => Ok(imported.outlines()),
            None => Ok(self.store.request_outlines(&self.conversation.id).await?),
        }
    }

    pub(super) async fn messages(&self) -> anyhow::Result<Vec<Message>> {
        Ok(self.store.messages(&self.conversation.id).await?)
    }

    pub(super) fn unknown_request_error(&self, number: u64) -> anyhow::Error {
        let requests = self.requests;
        usage_error(text!(
            "context-unknown-request",
            number,
            id = self.conversation.id,
            requests
        ))
    }

    /// Returns the encoding of a request: the encoding noted when the request was sent, or else the
    /// encoding of the model's present declaration.
    pub(super) fn find_encoding(
        &self,
        noted: Option<&str>,
        model: &str,
    ) -> anyhow::Result<BodyEncoding> {
        if let Some(encoding) = noted.and_then(|text| serde_json::from_str(text).ok()) {
            return Ok(encoding);
        }
        output::print_to_stderr(&format!(
            "haft: {}",
            text!("context-encoding-unknown", model)
        ));
        Ok(self.settings.resolve_model(model)?.body_encoding())
    }

    /// Returns the model of a request as it was declared when the request was sent.
    pub(super) fn find_model(&self, noted: Option<&str>, model: &str) -> anyhow::Result<ModelSpec> {
        if self.imported.is_some() {
            return Ok(self.settings.resolve_model(model)?.spec);
        }
        proxy_records::recorded_model(noted)
            .map_or_else(|| Ok(self.find_encoding(noted, model)?.spec), Ok)
    }

    /// Returns the metadata of each request's reply, if known.
    pub(super) fn reply_metadata<'a>(
        &self,
        outlines: &[RequestOutline],
        messages: &'a [Message],
    ) -> Vec<Option<&'a LlmMetadata>> {
        let mut replies = match_replies(outlines, messages);
        if self.imported.is_some() {
            // Zero usage means that the other agent counted nothing.
            for reply in &mut replies {
                *reply = reply.filter(|made| made.usage() != Usage::default());
            }
        }
        replies
    }

    /// Returns the models of the requests as they were declared when the requests were sent. A
    /// model that is no longer known has defaults and no price.
    pub(super) fn find_models(
        &self,
        outlines: &[RequestOutline],
    ) -> anyhow::Result<Vec<ModelSpec>> {
        let mut known: HashMap<(Option<Arc<str>>, &str), ModelSpec> = HashMap::new();
        let mut models = Vec::with_capacity(outlines.len());
        for RequestOutline {
            summary, encoding, ..
        } in outlines
        {
            let key = (encoding.clone(), summary.model.as_str());
            if !known.contains_key(&key) {
                let spec = match self.find_model(encoding.as_deref(), &summary.model) {
                    Ok(spec) => spec,
                    Err(_) => {
                        next::declare_unknown_model(
                            self.settings.environment(),
                            &summary.model,
                            summary.api,
                        )?
                        .spec
                    }
                };
                known.insert(key.clone(), spec);
            }
            models.extend(known.get(&key).cloned());
        }
        Ok(models)
    }
}

/// Rebuilds the request as it was given to the encoder, for a model that is offered tools by
/// `protocol`.
pub(super) fn rebuild_request(logged: &LoggedRequest, protocol: ToolProtocol) -> Request {
    let segment = |segment: &haft_store::LoggedSegment| Segment {
        layer: segment.layer,
        // Owners are static names, and the encoder does not send them.
        owner: "logged",
        entry: Arc::new(Entry {
            message: segment.message.clone(),
            hash: segment.hash,
            tokens: segment.tokens,
        }),
        boundary: segment.boundary,
    };
    Request {
        segments: logged.segments.iter().map(segment).collect(),
        tools: collect_offered_tools(logged, protocol),
        max_output_tokens: logged.max_output_tokens,
        cache_key: logged.cache_key.clone(),
    }
}

/// Returns the tools that the request offered. Their tokens count as 0 if the protocol describes
/// tools in the text of messages.
pub(super) fn collect_offered_tools(
    logged: &LoggedRequest,
    protocol: ToolProtocol,
) -> Arc<ToolSet> {
    let tools = ToolSet::new(logged.tools.clone(), &O200k);
    if protocol.is_text() {
        tools.with_zero_tokens()
    } else {
        tools
    }
}

/// Finds the metadata of each request's reply. The reply is the first assistant message stored
/// after the newest message of the request. A request that was sent again, or never answered, has
/// no reply.
fn match_replies<'a>(
    outlines: &[RequestOutline],
    messages: &'a [Message],
) -> Vec<Option<&'a LlmMetadata>> {
    let positions: HashMap<_, _> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| (message.message_id, index))
        .collect();
    let reply = |outline: &RequestOutline| {
        let newest = outline
            .segments
            .iter()
            .filter_map(|segment| positions.get(&segment.message))
            .max()?;
        (newest + 1..messages.len()).find(|index| messages[*index].role == Role::Assistant)
    };
    let found: Vec<_> = outlines.iter().map(reply).collect();
    let later = found.iter().skip(1).chain([&None]);
    let taken = found
        .iter()
        .zip(later)
        .map(|(reply, later)| reply.filter(|_| reply != later));
    taken
        .map(|reply| reply.and_then(|index| messages[index].llm_metadata.as_deref()))
        .collect()
}
