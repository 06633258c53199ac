//! A configured model that writes answers from passages for `haft rag serve`.

use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use haft_agent::{RandomIds, WallClock};
use haft_model::{Client, Declared, Delta, ModelError, O200k, Reply, RetryConfig, Secret};
use haft_rag::{AnswerError, AnswerFuture, AnswerModel, AnswerPiece, AnswerPrompt, WrittenAnswer};
use haft_text::Masker;
use haft_types::{
    Clock as _, Entry, IdSource as _, Layer, Message, Request, Role, Segment, ToolSet,
};
use tokio_util::sync::CancellationToken;

use crate::exit::usage_error;
use crate::haft::{Haft, Settings};

/// A model with the configuration of its clients. Each of several concurrent questions uses its own
/// client.
pub(super) struct ConfiguredAnswerModel {
    declared: Declared,
    key: Option<Secret>,
    retry: RetryConfig,
    masker: Masker,
    /// The clients that are not in use. They keep their connections.
    idle: Mutex<Vec<Client>>,
}

impl ConfiguredAnswerModel {
    /// Resolves the model `name`, reads its key, and creates a first client, so that a wrong
    /// configuration is reported before the server starts.
    pub(super) fn open(haft: &Haft, settings: &Settings, name: &str) -> anyhow::Result<Self> {
        let declared = settings.resolve_model(name)?;
        let key = settings.read_key(&declared)?;
        let retry = settings.config.retry.clone();
        let client = Client::new(declared.clone(), key.clone(), retry.clone())
            .map_err(|error| usage_error(error.to_string()))?;
        Ok(Self {
            declared,
            key,
            retry,
            masker: haft.masker(),
            idle: Mutex::new(vec![client]),
        })
    }

    /// Returns `provider/model`.
    pub(super) fn name(&self) -> String {
        self.declared.spec.full_name()
    }

    fn take_client(&self) -> Result<Client, ModelError> {
        let idle = self.lock_idle().pop();
        match idle {
            Some(client) => Ok(client),
            None => Client::new(self.declared.clone(), self.key.clone(), self.retry.clone()),
        }
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request_reply(
        &self,
        prompt: &AnswerPrompt,
        sink: &mut (dyn FnMut(AnswerPiece) -> ControlFlow<()> + Send),
    ) -> Result<Reply, ModelError> {
        let request = self.build_request(prompt);
        let cancel = CancellationToken::new();
        let mut client = self.take_client()?;
        let mut pass_on = |delta: Delta| {
            let piece = match delta {
                Delta::Text(text) => AnswerPiece::Text(text),
                Delta::Retry { reason, .. } => AnswerPiece::Restart {
                    reason: self.masker.mask(&reason).into_owned(),
                },
                // Nothing was received before the rejection.
                Delta::FieldOmitted { .. }
                | Delta::Thinking(_)
                | Delta::CallStarted { .. }
                | Delta::CallArguments { .. }
                | Delta::CallFinished { .. } => return,
            };
            if sink(piece).is_break() {
                cancel.cancel();
            }
        };
        let reply = client.stream_reply(&request, &cancel, &mut pass_on).await;
        self.lock_idle().push(client);
        reply
    }

    /// Builds the request, without tools. Secrets are masked in the question; the passages are
    /// masked already.
    fn build_request(&self, prompt: &AnswerPrompt) -> Request {
        let ids = RandomIds;
        let now = WallClock.now();
        let segment = |layer, role, text: &str| Segment {
            layer,
            owner: "rag",
            entry: Entry::new(
                Message::from_text(ids.new_message_id(), role, text, now),
                &O200k,
            ),
            boundary: true,
        };
        Request {
            segments: vec![
                segment(Layer::System, Role::System, &prompt.instructions),
                segment(
                    Layer::Current,
                    Role::User,
                    &self.masker.mask(&prompt.question),
                ),
            ],
            tools: ToolSet::new(Vec::new(), &O200k),
            max_output_tokens: None,
            cache_key: None,
        }
    }
}

impl AnswerModel for ConfiguredAnswerModel {
    fn write_answer<'a>(
        &'a self,
        prompt: &'a AnswerPrompt,
        sink: &'a mut (dyn FnMut(AnswerPiece) -> ControlFlow<()> + Send),
    ) -> AnswerFuture<'a> {
        Box::pin(async move {
            let reply = self.request_reply(prompt, sink).await;
            let reply = reply.map_err(|error| AnswerError::Failed {
                model: self.name(),
                reason: self.masker.mask(&error.to_string()).into_owned(),
            })?;
            let price = self.declared.spec.price;
            Ok(WrittenAnswer {
                stop: reply.stop,
                usage: reply.usage,
                cost: price.map(|price| price.request_cost(reply.usage)),
            })
        })
    }
}
