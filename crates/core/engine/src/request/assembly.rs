//! Assembles the next request from the session's parts, and emits events about the decisions made
//! for the request.

use std::sync::Arc;

use haft_context::{
    Account, Assembly, ContextError, EditState, ListOwner, PriceBasis, Snapshot, assemble,
    excerpt_path,
};
use haft_files::Durability;
use haft_types::{Entry, EventBody, Layer, MessageId, Request, Usage};
use tracing::debug;

use crate::agents::parent::Rank;
use crate::error::EngineError;
use crate::prompt::prompt_context::PromptContext;
use crate::session::Session;
use crate::turn::turn_io::TurnIo;

impl Session {
    /// Returns the request that would be sent now, and the account of the decisions made for it.
    /// Sends and stores nothing.
    pub fn preview_request(&mut self) -> Result<Assembly, ContextError> {
        drop(self.refresh_prompt()?);
        self.assemble_next_request()
    }

    /// Reads the project's documents again and returns the problems found.
    pub(crate) fn refresh_prompt(&mut self) -> Result<Vec<String>, ContextError> {
        let cold = self.is_cache_cold();
        self.prompt
            .refresh(&self.config, self.transcript.history(), cold)
    }

    /// Returns true if the provider's cache can no longer contain the last request.
    pub(crate) fn is_cache_cold(&self) -> bool {
        self.sent
            .is_cache_cold(&self.config.model, self.transcript.idle_time())
    }

    pub(crate) fn assemble_next_request(&self) -> Result<Assembly, ContextError> {
        self.assemble_request(
            &self.sent.history_to_send(self.transcript.history()),
            self.sent.edit_state(),
        )
    }

    /// Assembles the request for `history` with `edits` applied.
    pub(crate) fn assemble_request(
        &self,
        history: &[Arc<Entry>],
        edits: &EditState,
    ) -> Result<Assembly, ContextError> {
        let owner = match self.agents.rank {
            Rank::Main => ListOwner::Reader,
            Rank::Sub => ListOwner::MainAgent,
        };
        let prompt = &self.prompt;
        let reminders =
            prompt.build_reminders(&self.config, owner, self.services.shared.clock.now());
        let marks = prompt.knowledge().marks.current();
        let execution = prompt.build_execution_state(
            &self.config,
            self.mode(),
            owner,
            &self.hub().agent_names(),
        );
        let role = PromptContext::configured_role(&self.config);
        let input = prompt.system_input(&self.config, role.as_deref());
        let plain = Snapshot::new(
            &self.config.model,
            &self.config.policy,
            prompt.system_message(),
            prompt.tool_set(),
            history,
            self.services.shared.counter.as_ref(),
        );
        let now = Snapshot {
            system_input: Some(&input),
            documents: Some(prompt.document_layer()),
            reminders: Some(&reminders),
            execution: Some(&execution),
            marks: Some(&marks),
            idle: self.transcript.idle_time(),
            cache_key: Some(self.transcript.id().as_str()),
            spill: Some(&self.config.folders.workspace.spill),
            ..plain
        };
        let time = self.services.shared.clock.now();
        assemble(&self.sent.add_to_snapshot(edits, now, time))
    }

    /// Logs how much of the next request the provider's cache is expected to contain.
    fn log_expected_cache(&self, account: &Account) {
        let Usage {
            input,
            cached_input,
            cache_write,
            ..
        } = account.expected;
        let kept = account.prefix.as_ref().map(|prefix| prefix.kept);
        let agent = &self.config.agent;
        let cost = account.expected_cost.map(|cost| cost.total);
        debug!(
            agent,
            input, cached_input, cache_write, kept, cost, "cache predicted"
        );
    }

    /// Stores the decisions recorded in the account of a request, and emits events about them.
    pub(crate) async fn record_account(
        &mut self,
        request: &Request,
        account: Account,
        io: &mut TurnIo<'_>,
    ) -> Result<(), EngineError> {
        self.spill_excerpts(&account.excerpts, io);
        emit_account_events(&account, request, io);
        self.log_expected_cache(&account);
        self.prompt
            .store_tool_descriptions(&self.transcript)
            .await?;
        let now = self.services.shared.clock.now();
        self.sent
            .record_account(account, &self.transcript, now)
            .await
    }
}

impl Session {
    /// Writes the full text of results that are sent as excerpts to the files that the excerpts
    /// name. If writing fails, the user gets a notice; the full text remains in the store.
    fn spill_excerpts(&self, messages: &[MessageId], io: &mut TurnIo<'_>) {
        // The files belong to the recorded conversation, which a replay leaves alone.
        if self.config.tools.replayed.is_some() {
            return;
        }
        let folder = &self.config.folders.workspace.spill;
        for id in messages {
            let history = self.transcript.history();
            let Some(entry) = history.iter().find(|entry| entry.message.message_id == *id) else {
                continue;
            };
            let texts: Vec<_> = entry
                .message
                .tool_results()
                .map(|result| result.envelope.text.as_str())
                .collect();
            let path = excerpt_path(folder, *id);
            if let Err(error) =
                haft_files::replace_file(&path, texts.join("\n\n").as_bytes(), Durability::Process)
            {
                let path = path.display();
                io.emit_notice(
                    "spill_failed",
                    format!("the whole result could not be written to `{path}`: {error}"),
                );
            }
        }
    }
}

/// Returns the name of the cause of a prefix break, as used in events and the log.
pub(crate) fn break_cause_name(account: &Account) -> Option<String> {
    let broken = account.prefix.as_ref()?.broken.as_ref()?;
    serde_json::to_value(broken.cause)
        .ok()?
        .as_str()
        .map(str::to_owned)
}

fn emit_account_events(account: &Account, request: &Request, io: &mut TurnIo<'_>) {
    for warning in &account.warnings {
        io.emit_notice("context_warning", warning.to_string());
    }
    emit_pruning_events(account, io);
    if let Some(broken) = account
        .prefix
        .as_ref()
        .and_then(|prefix| prefix.broken.as_ref())
    {
        io.emit(EventBody::PrefixBreak {
            cause: break_cause_name(account).unwrap_or_default(),
            message: broken.cause.to_string(),
            index: account.prefix.as_ref().map_or(0, |prefix| prefix.kept),
            owner: broken.first.owner.to_string(),
            message_id: broken.first.message.short_id().to_string(),
            tokens: broken.price.tokens,
            cost: broken.price.cost,
            forecast: broken.price.basis == PriceBasis::Forecast,
        });
    }
    // Only the last run of reminders counts: earlier copies may be part of the history.
    let is_reminder = |segment: &haft_types::Segment| segment.layer == Layer::Reminders;
    if let Some(end) = request.segments.iter().rposition(is_reminder) {
        let index = request.segments[..end]
            .iter()
            .rposition(|one| !is_reminder(one))
            .map_or(0, |before| before + 1);
        let owners = request.segments[index..=end]
            .iter()
            .map(|segment| segment.owner);
        io.emit(EventBody::Reminders {
            index,
            kinds: owners
                .map(|owner| owner.strip_prefix("reminder:").unwrap_or(owner).to_owned())
                .collect(),
        });
    }
    let budget = &account.budget;
    io.emit(EventBody::Window {
        tokens: budget.used_tokens(),
        window: budget.window,
        pruned_tokens: account.pruned_tokens,
        round: account.round,
    });
    io.emit(EventBody::Budget {
        layers: budget.layers.clone(),
        output_reserve: budget.output_reserve,
        remaining: budget.remaining,
        window: budget.window,
    });
}

fn emit_pruning_events(account: &Account, io: &mut TurnIo<'_>) {
    use haft_context::LadderStep;
    let mut emit = |step: &str, tokens, message: String| {
        io.emit(EventBody::Pruning {
            step: step.into(),
            tokens,
            message,
        });
    };
    if account.cleared.is_some() && account.pruned_tokens > 0 {
        let tokens = account.pruned_tokens;
        emit(
            "cleared",
            tokens,
            format!("old results were cleared: {tokens} tokens less are sent"),
        );
    }
    if account.deleted_tokens > 0 {
        let tokens = account.deleted_tokens;
        emit(
            "deleted",
            tokens,
            format!("messages marked as deleted are left out: {tokens} tokens"),
        );
    }
    for step in &account.ladder {
        let (name, tokens) = match step {
            LadderStep::OlderRounds { tokens, .. } => ("older_rounds", *tokens),
            LadderStep::ShortSystem { tokens } => ("short_system", *tokens),
            LadderStep::Excerpts { tokens, .. } => ("excerpts", *tokens),
            LadderStep::BareMinimum { tokens } => ("bare_minimum", *tokens),
        };
        emit(name, tokens, step.to_string());
    }
}
