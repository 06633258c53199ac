//! Drives a replay: opens a session in a scratch store, and gives it the recorded inputs.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{ModelSource, Project, ReplaySetup, RunPlan, WallClock};
use haft_context::Environment;
use haft_engine::{
    Approval, ApprovalReply, Approver, ConversationChoice, EventSink, RecordedRun, RepeatedCalls,
    ReplayedCall, Session,
};
use haft_inspect::placeholder_url;
use haft_model::{BodyEncoding, Client, Declared, ProviderConfig};
use haft_store::{SqliteStore, Store};
use haft_tool::NoChangeRecords;
use haft_types::{ConversationId, Event, Message, Origin, Part, PermissionMode, Role};
use tokio_util::sync::CancellationToken;

use super::options::ReplayOptions;
use super::record::StoredRun;
use super::replayed_model::{ComparedRequest, ReplayedModel};
use crate::cli::options::RunArgs;
use crate::commands::{permissions, run};
use crate::exit::usage_error;
use crate::haft::Settings;

/// A user's refusal, as the model reads it.
const REFUSAL: &str = "The user did not allow this call of `";
const REFUSAL_REASON: &str = " They said: ";
const REFUSAL_ADVICE: &str = " Find another way, or ask what they want.";

/// The place of a replay.
pub(super) struct ReplayPlace {
    pub(super) settings: Settings,
    pub(super) project: Project,
    /// The copy of the project in which calls run again; `None` if results come from the record.
    pub(super) copy: Option<PathBuf>,
    /// An empty folder for the store of the replay and outputs of calls.
    pub(super) scratch: PathBuf,
}

/// A replay that has ended.
pub(super) struct EndedReplay {
    pub(super) requests: Vec<ComparedRequest>,
    pub(super) calls: Vec<ReplayedCall>,
    /// The messages of today's session.
    pub(super) messages: Vec<Message>,
    pub(super) recorded: Arc<RecordedRun>,
    /// The description of the machine that the requests contain.
    pub(super) environment: Environment,
    /// True if the project's rules, instructions and agents were read.
    pub(super) trusted: bool,
}

/// Replays a run to its end.
pub(super) async fn replay_run(
    place: &ReplayPlace,
    record: StoredRun,
    options: &ReplayOptions,
) -> anyhow::Result<EndedReplay> {
    let repeated = match &place.copy {
        None => RepeatedCalls::Conversation,
        Some(copy) => RepeatedCalls::InCopy {
            project: place.project.root.clone(),
            copy: copy.clone(),
        },
    };
    let recorded = Arc::new(RecordedRun::new(record.messages(), repeated));
    let opener = SessionOpener::new(place, record, options, &recorded)?;
    let opened = Box::pin(opener.open()).await?;
    let driver = RunDriver {
        opened_in_plan_mode: opener.model.is_next_opened_in_plan_mode().unwrap_or(false),
        opener: &opener,
        recorded: Arc::clone(&recorded),
    };
    let mut session = Box::pin(driver.drive(opened.session)).await?;
    let messages = session.history().iter().map(|entry| entry.message.clone());
    let messages = messages
        .filter(|message| !RecordedRun::is_interruption(message))
        .collect();
    session.close().await;
    Ok(EndedReplay {
        requests: opener.model.finish(),
        calls: recorded.calls(),
        messages,
        recorded,
        environment: opened.environment,
        trusted: opened.trusted,
    })
}

/// Opens the sessions of a replay.
struct SessionOpener {
    settings: Settings,
    plan: RunPlan,
    store: Arc<dyn Store>,
    recorded: Arc<RecordedRun>,
    model: Arc<ReplayedModel>,
    encoding: BodyEncoding,
    environment: Option<Environment>,
    trusted: bool,
    copy: Option<PathBuf>,
    outputs: PathBuf,
    id: ConversationId,
    title: String,
}

/// A session that was opened, and what it was opened with.
struct OpenedReplay {
    session: Session,
    environment: Environment,
    trusted: bool,
}

impl SessionOpener {
    fn new(
        place: &ReplayPlace,
        record: StoredRun,
        options: &ReplayOptions,
        recorded: &Arc<RecordedRun>,
    ) -> anyhow::Result<Self> {
        let attended = record.was_attended();
        let Some(first) = record.requests.first() else {
            return Err(usage_error(text!("conversations-replay-no-log")));
        };
        let mut encoding = first.encoding.clone();
        // The first request of a fork has the factor that its origin learned; the replay learns it
        // again from the replies.
        if let Ok(declared) = place.settings.resolve_model(&encoding.spec.full_name()) {
            encoding.spec.tokenizer_factor = declared.spec.tokenizer_factor;
        }
        let title = record.document.name;
        let args = options.to_run_args(encoding.spec.full_name());
        let mut settings = place.settings.clone();
        permissions::add_run_rules(&mut settings, &args)?;
        let mut plan = run::lower_args(&args, &settings, place.project.clone(), Some(&title))?;
        run::apply_agent(&mut plan, &args, &settings.places)?;
        if attended {
            plan.task.approver = Some(Arc::new(RecordedApprover(Arc::clone(recorded))));
        }
        let store = SqliteStore::open(
            &place.scratch.join("conversations.db"),
            &settings.config.store,
            Arc::new(WallClock),
        )?;
        let model = ReplayedModel::new(
            Arc::clone(recorded),
            record.requests,
            record.image_descriptions,
        );
        Ok(Self {
            settings,
            plan,
            store: Arc::new(store),
            recorded: Arc::clone(recorded),
            model: Arc::new(model),
            encoding,
            environment: record.environment,
            trusted: record.trusted,
            copy: place.copy.clone(),
            outputs: place.scratch.join("outputs"),
            id: record.document.id,
            title,
        })
    }

    /// Opens a session in the mode of the next recorded request.
    async fn open(&self) -> anyhow::Result<OpenedReplay> {
        let replay = ReplaySetup {
            recorded: Arc::clone(&self.recorded),
            declared: declare_recorded_model(&self.encoding),
            models: open_recorded_models(Arc::clone(&self.model)),
            environment: self.environment.clone(),
            trusted: self.trusted,
            copy: self.copy.clone(),
            outputs: self.outputs.clone(),
        };
        let mode = match self.model.is_next_opened_in_plan_mode() {
            Some(true) => PermissionMode::Plan,
            Some(false) | None => self.mode_after_plan(),
        };
        let plan = RunPlan {
            mode,
            ..self.plan.clone()
        };
        let agent = self
            .settings
            .build_agent()
            .with_change_records(Arc::new(NoChangeRecords));
        let (config, services) = agent
            .prepare_replay(plan, Arc::clone(&self.store), replay)
            .await
            .map_err(run::to_usage_error)?;
        let trusted = config.knowledge.paths.trusted;
        let environment = Environment {
            safe_zone_tokens: None,
            ..config.prompt.environment.clone()
        };
        let which = match self.store.get(&self.id).await? {
            Some(_) => ConversationChoice::Named(self.id.to_string()),
            None => ConversationChoice::NewAs {
                title: self.title.clone(),
                id: self.id.clone(),
            },
        };
        Ok(OpenedReplay {
            session: Box::pin(Session::open(config, services, which)).await?,
            environment,
            trusted,
        })
    }

    /// Returns the permission mode outside of plan mode.
    fn mode_after_plan(&self) -> PermissionMode {
        match self.plan.mode {
            PermissionMode::Plan => PermissionMode::Ask,
            mode => mode,
        }
    }
}

/// Returns the declaration of a model from the encoding of a request to it.
fn declare_recorded_model(encoding: &BodyEncoding) -> Declared {
    let api = encoding.spec.api;
    Declared {
        spec: encoding.spec.clone(),
        provider: ProviderConfig::new(api, placeholder_url(api)),
        extra_body: serde_json::Map::new(),
        listed: None,
    }
}

fn open_recorded_models(model: Arc<ReplayedModel>) -> ModelSource {
    Arc::new(move |name| {
        let encoding = model
            .find_encoding(name)
            .ok_or_else(|| format!("the recorded run did not use `{name}`"))?;
        let model = Arc::clone(&model);
        let replies = Arc::new(move |request: &haft_types::Request| model.answer(request));
        Ok(Client::with_recorded_replies(encoding, replies))
    })
}

/// Gives a session the inputs of a recorded run.
struct RunDriver<'a> {
    opener: &'a SessionOpener,
    recorded: Arc<RecordedRun>,
    opened_in_plan_mode: bool,
}

impl RunDriver<'_> {
    /// Runs the session to the end of the record. Returns the session, which may be another one.
    async fn drive(mut self, mut session: Session) -> anyhow::Result<Session> {
        let recorded = Arc::clone(&self.recorded);
        let mut last = None;
        // Each step must take at least one recorded message.
        while let Some(message) = recorded.next_message() {
            let position = recorded.position();
            if last == Some(position) {
                break;
            }
            last = Some(position);
            session = Box::pin(self.run_step(session, position, message)).await?;
            self.realign(position);
        }
        Ok(session)
    }

    /// Runs the session from the recorded message at `position` to the end of a turn.
    async fn run_step(
        &mut self,
        mut session: Session,
        position: usize,
        message: &Message,
    ) -> anyhow::Result<Session> {
        let cancel = CancellationToken::new();
        self.recorded.set_interrupt(cancel.clone());
        let mut sink = ReplaySink(Arc::clone(&self.recorded));
        let mut input = None;
        match message.role {
            Role::Summary => {
                Box::pin(session.compact_now(None, &mut sink, &cancel)).await?;
                return Ok(session);
            }
            Role::User if message.origin() != Origin::Engine => {
                session = Box::pin(self.reopen_if_mode_differs(session)).await?;
                self.follow_plan_mode(&mut session, position)?;
                session.attach_images(images_of(message));
                input = Some(RecordedRun::typed_input(message));
            }
            Role::Tool => {
                if let Some((answer, ends_plan_mode)) = RecordedRun::parse_answer(message) {
                    if ends_plan_mode {
                        session.set_mode(self.opener.mode_after_plan())?;
                    }
                    input = Some(answer.to_owned());
                }
            }
            Role::System | Role::User | Role::Assistant => {}
        }
        if let Some(model) = self.opener.model.next_model(position)
            && session.mode() != PermissionMode::Plan
            && session.model().full_name() != model
        {
            // The user switched; if that fails, the request differs.
            drop(session.switch_model(&model));
        }
        Box::pin(session.run(input, &mut sink, &cancel)).await;
        Ok(session)
    }

    /// Opens the conversation again if the recorded run was continued by another process that
    /// began in plan mode, or that did not.
    async fn reopen_if_mode_differs(&mut self, mut session: Session) -> anyhow::Result<Session> {
        let wanted = self.opener.model.is_next_opened_in_plan_mode();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != self.opened_in_plan_mode) {
            session.close().await;
            // The open session holds the lock of the conversation.
            drop(session);
            session = Box::pin(self.opener.open()).await?.session;
            self.opened_in_plan_mode = wanted;
        }
        Ok(session)
    }

    /// Sets the permission mode that the run had after the input at `position`.
    fn follow_plan_mode(&self, session: &mut Session, position: usize) -> anyhow::Result<()> {
        let later = self.recorded.messages().get(position + 1..);
        let note = later
            .unwrap_or_default()
            .iter()
            .take_while(|message| message.role != Role::Assistant)
            .find_map(RecordedRun::plan_mode_note);
        match note {
            Some(true) => drop(session.set_mode(PermissionMode::Plan)?),
            Some(false) => drop(session.set_mode(self.opener.mode_after_plan())?),
            None => {}
        }
        Ok(())
    }

    /// Goes back to the user's next input if today's session appended more messages than the
    /// recorded run since the message at `position`.
    fn realign(&self, position: usize) {
        let last = self.recorded.last_reply().unwrap_or(0).max(position);
        let messages = self.recorded.messages().iter().enumerate();
        let next = messages
            .skip(last + 1)
            .find(|(_, message)| message.opens_round());
        if let Some((index, _)) = next
            && self.recorded.position() > index
        {
            self.recorded.continue_at(index);
        }
    }
}

fn images_of(message: &Message) -> Vec<haft_types::Image> {
    let images = message.content.iter().filter_map(|part| match part {
        Part::Image(image) => Some(image.clone()),
        Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    images.collect()
}

/// Ignores events, and returns the input that the user typed during a recorded turn.
struct ReplaySink(Arc<RecordedRun>);

impl EventSink for ReplaySink {
    fn event(&mut self, _: &Event) {}

    fn take_input(&mut self) -> Vec<String> {
        let rest = self.0.messages().get(self.0.position()..);
        rest.unwrap_or_default()
            .iter()
            .take_while(|message| message.role == Role::User && message.origin() == Origin::Joined)
            .map(RecordedRun::typed_input)
            .collect()
    }
}

/// Gives the recorded answers to approvals.
struct RecordedApprover(Arc<RecordedRun>);

#[async_trait]
impl Approver for RecordedApprover {
    async fn ask(&self, approval: &Approval) -> ApprovalReply {
        let reply = self.0.last_reply();
        let call = approval.call_id.as_deref();
        let result = reply
            .zip(call)
            .and_then(|(reply, call)| self.0.result_of(reply, call));
        match result {
            Some(result) => parse_refusal(&result.envelope.text)
                .map_or(ApprovalReply::Once, |reason| ApprovalReply::No { reason }),
            None => ApprovalReply::Once,
        }
    }

    async fn save_rules(&self, _: &[String]) -> Result<(), String> {
        Ok(())
    }
}

/// Returns the user's reason in the result of a call that they refused; `None` for another result.
fn parse_refusal(text: &str) -> Option<String> {
    let told = text.strip_prefix(REFUSAL)?;
    let reason = told
        .split_once(REFUSAL_REASON)
        .and_then(|(_, reason)| reason.split_once(REFUSAL_ADVICE))
        .map_or("", |(reason, _)| reason);
    Some(reason.to_owned())
}

impl ReplayOptions {
    /// Returns the arguments of a run with these options.
    fn to_run_args(&self, model: String) -> RunArgs {
        RunArgs {
            model: Some(model),
            agent: self.agent.clone(),
            permission_mode: self.permission_mode,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            allowed_tools: self.allowed_tools.clone(),
            goal: self.goal,
            max_turns: self.max_turns,
            max_total_tokens: self.max_total_tokens,
            max_budget_usd: self.max_budget_usd,
            json_schema: self.json_schema.clone(),
            system_prompt: self.system_prompt.clone(),
            system_prompt_file: self.system_prompt_file.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            add_dir: self.add_dir.clone(),
            file: self.file.clone(),
            ..RunArgs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_refusal_returns_the_reason_of_the_user() {
        let refused = |reason: &str| {
            parse_refusal(&format!(
                "{REFUSAL}execute_command`.{reason}{REFUSAL_ADVICE}"
            ))
        };
        assert_eq!(refused(""), Some(String::new()));
        assert_eq!(refused(" They said: not now."), Some("not now.".to_owned()));
        assert_eq!(parse_refusal("It is done."), None);
    }
}
