//! Reads the request log of one conversation.

use std::collections::HashMap;
use std::sync::Arc;

use haft_agent::config::Config;
use haft_agent::{HostEnvironment, SetupError};
use haft_model::{BodyEncoding, Declared, O200k, ProviderConfig};
use haft_store::{ChunkMaximum, Conversation, LoggedRequest, RequestOutline, Store};
use haft_types::{
    Api, Entry, LlmMetadata, Message, ModelSpec, Request, Role, Segment, ToolProtocol, ToolSet,
    Usage,
};

use crate::error::InspectError;
use crate::imported_requests::{self, ImportedRequests};
use crate::proxy_records;

/// Reads the requests that were logged for one conversation.
pub struct RequestLogReader {
    pub store: Arc<dyn Store>,
    /// The environment and the configuration, which declare the models.
    pub environment: HostEnvironment,
    pub config: Config,
    pub conversation: Conversation,
    /// The number of requests.
    pub requests: u64,
    /// The requests rebuilt from the messages, if the conversation was imported.
    pub imported: Option<ImportedRequests>,
    notify: fn(&str),
}

impl RequestLogReader {
    /// Opens the log of `conversation`, which may be empty. `notify` receives notes about details
    /// that the log lacks.
    pub async fn for_conversation(
        store: Arc<dyn Store>,
        environment: HostEnvironment,
        config: Config,
        conversation: Conversation,
        notify: fn(&str),
    ) -> Result<Self, InspectError> {
        let mut requests = store.count_requests(&conversation.id).await?;
        let mut imported = None;
        if let (0, Some(agent)) = (
            requests,
            imported_requests::source_agent(&conversation.metadata),
        ) {
            let made = ImportedRequests::new(agent, &store.messages(&conversation.id).await?);
            requests = made.count();
            imported = Some(made);
        }
        Ok(Self {
            store,
            environment,
            config,
            conversation,
            requests,
            imported,
            notify,
        })
    }

    /// Returns a note that the requests were rebuilt from messages, if the conversation was
    /// imported.
    pub fn imported_note(&self) -> Option<String> {
        let made = self.imported.as_ref()?;
        let agent = imported_requests::source_agent(&self.conversation.metadata)?;
        Some(if made.has_system() {
            text!("inspect-imported-with-system", agent)
        } else {
            text!("inspect-imported", agent)
        })
    }

    /// Returns the request with this number, or the last one, with messages formatted for people.
    pub async fn request(&self, number: Option<u64>) -> Result<LoggedRequest, InspectError> {
        self.sent_request(number)
            .await
            .map(proxy_records::to_readable)
    }

    /// Like [`Self::request`], but returns the messages as they were sent.
    pub async fn sent_request(&self, number: Option<u64>) -> Result<LoggedRequest, InspectError> {
        let number = number.unwrap_or(self.requests);
        if let Some(imported) = &self.imported {
            return imported
                .request(number)
                .ok_or_else(|| self.unknown_request(number));
        }
        self.store
            .logged_request(&self.conversation.id, number)
            .await?
            .ok_or_else(|| self.unknown_request(number))
    }

    pub async fn outlines(&self) -> Result<Vec<RequestOutline>, InspectError> {
        match &self.imported {
            Some(imported) => Ok(imported.outlines()),
            None => Ok(self.store.request_outlines(&self.conversation.id).await?),
        }
    }

    pub async fn messages(&self) -> Result<Vec<Message>, InspectError> {
        Ok(self.store.messages(&self.conversation.id).await?)
    }

    /// Returns the error for a number that no request has.
    pub fn unknown_request(&self, number: u64) -> InspectError {
        InspectError::UnknownRequest {
            number,
            conversation: self.conversation.id.to_string(),
            requests: self.requests,
        }
    }

    fn resolve_model(&self, model: &str) -> Result<Declared, InspectError> {
        Ok(haft_agent::resolve_model(
            &self.environment,
            &self.config,
            model,
        )?)
    }

    /// Returns the body of a request, in the protocol it was sent with unless `api` is given.
    pub async fn body(
        &self,
        number: Option<u64>,
        api: Option<Api>,
    ) -> Result<Vec<u8>, InspectError> {
        if let Some(note) = self.imported_note() {
            return Err(InspectError::NoBody(text!(
                "inspect-imported-no-body",
                note
            )));
        }
        self.body_of_request(&self.sent_request(number).await?, api)
    }

    /// Like [`Self::body`], but for a request from [`Self::sent_request`].
    pub fn body_of_request(
        &self,
        logged: &LoggedRequest,
        api: Option<Api>,
    ) -> Result<Vec<u8>, InspectError> {
        if let Some(body) = proxy_records::recorded_body(logged) {
            return Ok(body);
        }
        let encoding = self.find_encoding(logged.encoding.as_deref(), &logged.summary.model)?;
        let encoding = match api {
            Some(api) => encoding.with_api(api),
            None => encoding,
        };
        Ok(encoding
            .encode_request(&rebuild_request(logged, encoding.spec.tool_protocol))
            .to_vec())
    }

    /// Returns the encoding of a request: the one noted when it was sent, or else that of the model
    /// as declared now.
    pub fn find_encoding(
        &self,
        noted: Option<&str>,
        model: &str,
    ) -> Result<BodyEncoding, InspectError> {
        if let Some(encoding) = noted.and_then(|text| serde_json::from_str(text).ok()) {
            return Ok(encoding);
        }
        (self.notify)(&text!("inspect-encoding-unknown", model));
        Ok(self.resolve_model(model)?.body_encoding())
    }

    /// Returns the model of a request as it was declared when the request was sent.
    pub fn find_model(&self, noted: Option<&str>, model: &str) -> Result<ModelSpec, InspectError> {
        if self.imported.is_some() {
            return Ok(self.resolve_model(model)?.spec);
        }
        proxy_records::recorded_model(noted)
            .map_or_else(|| Ok(self.find_encoding(noted, model)?.spec), Ok)
    }

    /// Returns the metadata of each request's reply, if known.
    pub fn reply_metadata<'a>(
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
    pub fn find_models(&self, outlines: &[RequestOutline]) -> Result<Vec<ModelSpec>, InspectError> {
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
                        declare_unknown_model(&self.environment, &summary.model, summary.api)?.spec
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
pub fn rebuild_request(logged: &LoggedRequest, protocol: ToolProtocol) -> Request {
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

/// Returns the tools the request offered. Their tokens count only if tools are sent beside the
/// messages.
pub fn collect_offered_tools(logged: &LoggedRequest, protocol: ToolProtocol) -> Arc<ToolSet> {
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
    let mut newest = ChunkMaximum::default();
    let reply = |outline: &RequestOutline| {
        let newest = newest.find(&outline.segments, |segment| {
            positions.get(&segment.message).copied()
        })?;
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

/// Declares a model of which only the name and the API are known.
pub fn declare_unknown_model(
    environment: &HostEnvironment,
    name: &str,
    api: Api,
) -> Result<Declared, SetupError> {
    let provider = name
        .split_once('/')
        .map_or(name, |(provider, _)| provider)
        .to_owned();
    let providers = [(provider, ProviderConfig::new(api, placeholder_url(api)))].into();
    let config = Config {
        providers,
        ..Config::default()
    };
    haft_agent::resolve_model(environment, &config, name)
}

/// Returns a well-formed address for declarations. Nothing is sent to it.
pub fn placeholder_url(api: Api) -> &'static str {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => "http://localhost/v1",
        Api::Anthropic | Api::Gemini => "http://localhost",
    }
}
