//! Puts the next request together from what the session knows, and tells the listener how it came to be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    Account, Assembly, ContextError, EditState, ExecutionState, ListOwner, Progress, Reminders, RoleParts, RoleText,
    Sent, SentSegment, Snapshot, SystemInput, Todo, assemble, render_system, system_entry, todo_text,
};
use haft_store::{LoggedRequest, Store};
use haft_tool::{Source, TodoState};
use haft_types::{ConversationId, Entry, EventBody, Layer, Request, Role, TokenCounter, ToolSet};

use super::advertised::AdvertisedTools;
use super::{EngineError, Session, SessionConfig, open};
use crate::documents::StandingDocuments;
use crate::emit::Emitter;
use crate::external::ExternalShelf;
use crate::names;
use crate::stored_state::{SentEdits, SentPolicy, StoredState};
use crate::subagents::Rank;
use crate::touched::Touched;

impl Session {
    /// The next request as it would be sent now, and an account of it. Nothing is sent or stored.
    pub fn preview(&mut self) -> Result<Assembly, ContextError> {
        drop(self.look_at_documents()?);
        self.assembly()
    }

    /// Tells another model of the tools, in its own protocol.
    pub(super) fn tell_again(&mut self) -> Result<(), ContextError> {
        let counter = self.services.counter.as_ref();
        self.advertised = AdvertisedTools::of(&self.config.model, &self.registry, counter);
        self.system = system_of(&self.config, &self.advertised, &self.documents, self.active.text(), counter)?;
        Ok(())
    }

    /// Looks at the project's documents; what they change of the system message is rendered anew.
    pub(super) fn look_at_documents(&mut self) -> Result<Vec<String>, ContextError> {
        self.look_at_skills()?;
        self.look_at_descriptions()?;
        self.mentions.look(&self.history, &self.config.ground);
        let touched = Touched { reads: &self.reads, mentions: &self.mentions };
        if let Some(external) = &mut self.external {
            external.look();
        }
        let changed = self.documents.look(touched, self.external.as_ref(), self.services.counter.as_ref());
        if changed && self.config.roles.main.is_some() {
            self.tell_again()?;
        }
        let mut problems = self.documents.take_problems();
        problems.extend(self.skills.take_problems());
        problems.extend(self.external.as_mut().into_iter().flat_map(ExternalShelf::take_problems));
        Ok(problems)
    }

    /// Looks whether skills were added, changed or removed, and tells of them as they are now.
    fn look_at_skills(&mut self) -> Result<(), ContextError> {
        if !self.skills.changed(&self.config.ground) {
            return Ok(());
        }
        let before: Vec<_> = self.registry.cases().cloned().collect();
        match open::skills_now(&self.config, &self.services) {
            Some((tool, listed)) => {
                self.registry.register(tool, Source::BuiltIn);
                self.registry.set_case(listed);
            }
            None => drop(self.registry.remove(names::USE_SKILL)),
        }
        if !before.iter().eq(self.registry.cases()) {
            self.tell_again()?;
        }
        Ok(())
    }

    pub(super) fn assembly(&self) -> Result<Assembly, ContextError> {
        self.assembly_of(&self.history_to_send(), &self.edited)
    }

    /// What would be sent of these messages under these edits.
    pub(super) fn assembly_of(&self, history: &[Arc<Entry>], edits: &EditState) -> Result<Assembly, ContextError> {
        let reminders = self.reminders();
        let marks = self.knowledge.marks.current();
        let execution = ExecutionState {
            mode: self.mode().to_string(),
            last_write: self.last_write.clone(),
            ..ExecutionState::default()
        };
        let role = assembled_role(&self.config, &self.documents);
        let input = system_input(&self.config, &self.advertised, role.as_deref(), self.active.text());
        let plain = Snapshot::new(
            &self.config.model,
            &self.config.policy,
            &self.system,
            &self.advertised.tools,
            history,
            self.services.counter.as_ref(),
        );
        assemble(&Snapshot {
            system_input: Some(&input),
            documents: Some(self.documents.layer()),
            reminders: Some(&reminders),
            execution: Some(&execution),
            marks: Some(&marks),
            edits: Some(edits),
            cleared: self.cleared.as_ref(),
            last: self.sent.as_ref(),
            carried: self.carried.as_ref(),
            most: self.most,
            idle: self.idle(),
            cache_key: Some(self.conversation.id.as_str()),
            memo: Some(&self.memo),
            ..plain
        })
    }

    /// How long ago the model was asked last.
    pub(super) fn idle(&self) -> Option<Duration> {
        let asked = self.history.iter().rfind(|entry| entry.message.role == Role::Assistant)?.message.created_at;
        self.services.clock.now().duration_since(asked).try_into().ok()
    }

    /// The reminders as they are now (SPEC 3.4: afresh for every request).
    fn reminders(&self) -> Reminders {
        let items = self.todo.items();
        let progress = |state| match state {
            TodoState::Pending => Progress::Pending,
            TodoState::InProgress => Progress::InProgress,
            TodoState::Completed => Progress::Completed,
        };
        let todo: Vec<_> =
            items.iter().map(|item| Todo { content: &item.content, progress: progress(item.status) }).collect();
        let owner = match self.rank {
            Rank::Main => ListOwner::Reader,
            Rank::Sub => ListOwner::MainAgent,
        };
        let masked = |text: String| self.config.masker.mask(&text).into_owned();
        Reminders {
            role: assembled_role(&self.config, &self.documents),
            todo: Some(masked(todo_text(&todo, owner))),
            useful: Some(masked(self.knowledge.useful.useful_reminder(&self.config.workspace.root))),
            folder_notes: Some(masked(self.knowledge.notes.reminder(self.reads.paths().iter().map(PathBuf::as_path)))),
            clock: Some(self.services.clock.now().to_string()),
        }
    }

    /// Keeps what this request decided, and tells how it came to be.
    pub(super) async fn take_account(
        &mut self,
        request: &Request,
        account: Account,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), EngineError> {
        tell(&account, request, emitter);
        if let Some(cleared) = account.cleared {
            self.keep_state(&cleared).await?;
            self.cleared = Some(cleared);
        }
        if let Some(carried) = account.carried {
            self.keep_state(&carried).await?;
            self.carried = Some(carried);
        }
        if let Some(descriptions) = self.to_keep.take() {
            self.keep_state(&descriptions).await?;
        }
        if self.sent.as_ref().is_none_or(|sent| sent.policy != account.sent.policy) {
            self.keep_state(&SentPolicy(account.sent.policy)).await?;
        }
        if self.sent.as_ref().and_then(|sent| sent.edits) != account.sent.edits {
            self.keep_state(&SentEdits(account.sent.edits)).await?;
        }
        self.sent = Some(account.sent);
        Ok(())
    }
}

/// What was sent last before this process, from the request log.
pub(super) async fn last_sent(
    store: &dyn Store,
    id: &ConversationId,
    config: &SessionConfig,
    counter: &dyn TokenCounter,
    state: &mut StoredState,
) -> Result<Option<Sent>, haft_store::StoreError> {
    let Some(last) = store.requests(id).await?.last().map(|summary| summary.number) else { return Ok(None) };
    let Some(LoggedRequest { summary, segments, tools, .. }) = store.request(id, last).await? else { return Ok(None) };
    let segment = |segment: haft_store::LoggedSegment| SentSegment {
        layer: segment.layer,
        owner: segment.owner.into(),
        message: segment.message.message_id,
        hash: segment.hash,
        tokens: segment.tokens,
        boundary: segment.boundary,
    };
    Ok(Some(Sent {
        model: summary.model,
        tools: ToolSet::new(tools, counter).hash,
        policy: state.take().map_or_else(|| config.policy.hash(), |SentPolicy(hash)| hash),
        edits: state.take().and_then(|SentEdits(hash)| hash),
        segments: segments.into_iter().map(segment).collect(),
    }))
}

/// The role of SPEC 3.5; none when none is configured.
fn assembled_role(config: &SessionConfig, documents: &StandingDocuments) -> Option<String> {
    let role = config.roles.main.as_deref()?;
    let environment = format!(
        "Working directory: {}\nOperating system: {}\nShell: {}",
        config.environment.cwd, config.environment.os, config.environment.shell
    );
    let parts = RoleParts {
        role: Some(role),
        agents_md: documents.agents_md(),
        environment: Some(&environment),
        completion: config.roles.completion.as_deref(),
        ..RoleParts::default()
    };
    Some(parts.join())
}

fn system_input<'a>(
    config: &'a SessionConfig,
    advertised: &'a AdvertisedTools,
    role: Option<&'a str>,
    descriptions: Option<&'a str>,
) -> SystemInput<'a> {
    let role = match (&config.roles.system_prompt, role) {
        (Some(prompt), _) => RoleText::Custom(prompt),
        (None, Some(role)) => RoleText::Role(role),
        (None, None) => RoleText::BuiltIn,
    };
    SystemInput {
        role,
        append: config.roles.append.as_deref(),
        tools: &advertised.tools.specs,
        protocol: config.model.tool_protocol,
        call_format: advertised.call_format.as_deref(),
        examples: &advertised.examples,
        guidelines: &advertised.guidelines,
        cases: &advertised.cases,
        environment: &config.environment,
        focus_files: &config.focus_files,
        package_context: descriptions,
    }
}

pub(super) fn system_of(
    config: &SessionConfig,
    advertised: &AdvertisedTools,
    documents: &StandingDocuments,
    descriptions: Option<&str>,
    counter: &dyn TokenCounter,
) -> Result<Arc<Entry>, ContextError> {
    let role = assembled_role(config, documents);
    Ok(system_entry(render_system(&system_input(config, advertised, role.as_deref(), descriptions))?, counter))
}

/// The name of what broke the prefix, as programs and the log know it.
pub(super) fn cause_of(account: &Account) -> Option<String> {
    let broken = account.prefix.as_ref()?.broken.as_ref()?;
    serde_json::to_value(broken.cause).ok()?.as_str().map(str::to_owned)
}

fn tell(account: &Account, request: &Request, emitter: &mut Emitter<'_>) {
    for warning in &account.warnings {
        emitter.error("context_warning", warning.to_string());
    }
    tell_pruning(account, emitter);
    if let Some(broken) = account.prefix.as_ref().and_then(|prefix| prefix.broken.as_ref()) {
        emitter.emit(EventBody::PrefixBreak {
            cause: cause_of(account).unwrap_or_default(),
            message: broken.cause.to_string(),
            index: account.prefix.as_ref().map_or(0, |prefix| prefix.kept),
            owner: broken.first.owner.to_string(),
            message_id: broken.first.message.short().to_string(),
            tokens: broken.tokens,
            cost: broken.cost,
        });
    }
    // The newest run: copies that were sent before may stand further up.
    let is_reminder = |segment: &haft_types::Segment| segment.layer == Layer::Reminders;
    if let Some(end) = request.segments.iter().rposition(is_reminder) {
        let index = request.segments[..end].iter().rposition(|one| !is_reminder(one)).map_or(0, |before| before + 1);
        let run = request.segments[index..=end].iter();
        let kind = |owner: &str| owner.strip_prefix("reminder:").unwrap_or(owner).to_owned();
        emitter.emit(EventBody::Reminders { index, kinds: run.map(|segment| kind(segment.owner)).collect() });
    }
    let budget = &account.budget;
    emitter.emit(EventBody::Window {
        tokens: budget.used(),
        window: budget.window,
        pruned_tokens: account.pruned_tokens,
        round: account.round,
    });
    emitter.emit(EventBody::Budget {
        layers: budget.layers.clone(),
        output_reserve: budget.output_reserve,
        remaining: budget.remaining,
        window: budget.window,
    });
}

fn tell_pruning(account: &Account, emitter: &mut Emitter<'_>) {
    use haft_context::LadderStep;
    let mut emit = |step: &str, tokens, message: String| {
        emitter.emit(EventBody::Pruning { step: step.into(), tokens, message });
    };
    if account.cleared.is_some() {
        let tokens = account.pruned_tokens;
        emit("cleared", tokens, format!("old results were cleared: {tokens} tokens less are sent"));
    }
    if account.deleted_tokens > 0 {
        let tokens = account.deleted_tokens;
        emit("deleted", tokens, format!("messages marked as deleted are left out: {tokens} tokens"));
    }
    for step in &account.ladder {
        let (name, tokens) = match step {
            LadderStep::OlderRounds { tokens, .. } => ("older_rounds", *tokens),
            LadderStep::ShortSystem { tokens } => ("short_system", *tokens),
            LadderStep::BareMinimum { tokens } => ("bare_minimum", *tokens),
        };
        emit(name, tokens, step.to_string());
    }
}
