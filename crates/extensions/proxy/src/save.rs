//! Rewrites requests so that they cost less: `haft proxy --save`.
//!
//! ```text
//! request ──▶ request.rs  elements, calls and results, with their positions
//!             plan.rs     which results are cleared: a pure function of request, decisions, policy, prices
//!             decisions.rs  new decisions and the cleared texts, on disk before the request is sent
//!             body_edits.rs  notices instead of results, moved text last, cache markers
//! ```
//!
//! Everything that is not replaced is sent byte for byte. A decision belongs to a moment of a
//! conversation, which is recognized by the calls up to there ([`request::CallSite::key`]): every
//! later request that contains them is rewritten alike, also after a restart.

mod agents;
mod body_edits;
mod config;
mod decisions;
mod markers;
mod moved_text;
mod plan;
mod policy;
mod request;
#[cfg(test)]
mod tests;
mod working;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use haft_model::Catalogue;
use haft_types::{Api, Clock, ContentHash, ConversationId, Timestamp};

use crate::encodings::decode_body;
use crate::record::{find_header, find_model_spec};

pub use agents::{agent_from_header, can_read_everywhere};
pub use config::{ProxyConfig, SaveConfig};
pub use decisions::remove_saved_texts;
pub use plan::SaveCost;
pub use policy::{SavePolicy, SavePrices};
pub use request::UnchangedReason;

use body_edits::{BodyEdit, apply_edits};
use decisions::{ConversationDecisions, DecisionStore, write_text};
use moved_text::{MovedText, SentMessages, find_moved_element};
use plan::{ClearedResult, ClearingPass, Plan, PlanInput, find_passes, plan_request};
use request::ParsedRequest;

/// The text that is sent instead of a cleared result.
const NOTICE: &str = include_str!("save/notice.md");
/// The number of newest requests that are remembered for comparison with the next ones.
const MAX_RECENT: usize = 256;
/// The number of hex digits in the name of a conversation's folder.
const NAME_DIGITS: usize = 16;

/// The dependencies and settings of a [`Saver`].
pub struct SaveSetup {
    /// The catalogue with the prices of models.
    pub catalogue: Catalogue,
    pub clock: Arc<dyn Clock>,
    pub policy: SavePolicy,
    /// The agents whose requests may be rewritten.
    pub agents: Vec<String>,
    /// The agent that the proxy has started. Otherwise the agent is taken from each request.
    pub agent: Option<String>,
    /// The folder with decisions and texts.
    pub folder: PathBuf,
    /// The folder for the texts of cleared results, if it is not `folder`.
    pub spill_folder: Option<PathBuf>,
    /// If true, requests are sent as they were received, and nothing is stored.
    pub is_dry_run: bool,
}

/// An event that the saver reports to the front end.
#[derive(Clone, Debug, PartialEq)]
pub enum SaveEvent {
    /// Results were cleared, or would have been in a dry run.
    Cleared {
        /// The name of the conversation's folder.
        conversation: String,
        agent: String,
        results: usize,
        /// The estimated tokens saved in this and every later request.
        tokens: u64,
        /// The folder with the texts.
        folder: PathBuf,
    },
    /// The configured budget is smaller than the fixed prefix with the results that stay, so nothing
    /// is cleared.
    BudgetTooSmall {
        budget: u64,
        /// The smallest useful budget.
        needed: u64,
    },
    /// The agent moves a text with every request. From now on the text is sent last.
    TextMoved {
        agent: String,
        /// The beginning of the text.
        opening: String,
    },
    /// Requests of an agent pass unchanged, because the configuration does not list it.
    NotAllowed { agent: String },
    /// The agent's tools cannot open the files with cleared texts, and no other folder is set.
    NoReadableFolder { agent: String },
    /// A decision could not be stored, so it was not made.
    NotStored { reason: String },
}

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SaveTotals {
    pub requests: u64,
    /// The number of requests that were sent otherwise than they were received.
    pub rewritten: u64,
    /// The number of requests that could not be rewritten, by reason.
    pub unchanged: BTreeMap<UnchangedReason, u64>,
    /// The number of conversations in which results were cleared.
    pub conversations: usize,
    pub cost: SaveCost,
    /// The cost in USD; `None` if a model has no price.
    pub usd: Option<SaveCost>,
}

/// A request to a model as the proxy received it.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedRequest<'a> {
    pub api: Api,
    /// The path of the request.
    pub path: &'a str,
    /// The host and port of the upstream server.
    pub upstream: &'a str,
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

/// The result of rewriting a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RewrittenRequest {
    /// The body to send, which is not compressed.
    pub body: String,
    /// The name of the conversation's folder, if results are cleared in it.
    pub conversation: Option<String>,
}

/// Rewrites requests by the decisions about their conversations.
pub struct Saver {
    setup: SaveSetup,
    store: DecisionStore,
    state: Mutex<SaveState>,
    observe: Box<dyn Fn(SaveEvent) + Send + Sync>,
}

/// A conversation in which results are cleared.
struct SavedConversation {
    name: String,
    decisions: ConversationDecisions,
    cost: SaveCost,
    usd_per_token: Option<f64>,
    is_live: bool,
}

/// A request that was forwarded, for comparison with the next one of its conversation.
struct RecentRequest {
    at: Timestamp,
    messages: SentMessages,
}

#[derive(Default)]
struct SaveState {
    conversations: Vec<SavedConversation>,
    passes: HashMap<ContentHash, Vec<Arc<ClearingPass>>>,
    moved_texts: Vec<MovedText>,
    recent: HashMap<ContentHash, RecentRequest>,
    recent_order: VecDeque<ContentHash>,
    /// The passes whose files were checked by this process.
    checked: HashSet<(ContentHash, usize)>,
    warned: HashSet<String>,
    totals: SaveTotals,
}

impl Saver {
    /// Creates a saver with the decisions of earlier runs. Events are passed to `observe`.
    pub fn new(setup: SaveSetup, observe: impl Fn(SaveEvent) + Send + Sync + 'static) -> Self {
        let store = DecisionStore::new(setup.folder.clone());
        let mut state = SaveState {
            moved_texts: store.load_moved_texts(),
            ..SaveState::default()
        };
        for (name, decisions) in store.load() {
            state.add_conversation(name, decisions);
        }
        Self {
            setup,
            store,
            state: Mutex::new(state),
            observe: Box::new(observe),
        }
    }

    /// Returns the totals of this run.
    pub fn totals(&self) -> SaveTotals {
        let state = self.lock();
        let mut totals = state.totals.clone();
        let mut usd = Some(SaveCost::default());
        for one in state.conversations.iter().filter(|one| one.is_live) {
            totals.conversations += 1;
            totals.cost.received += one.cost.received;
            totals.cost.sent += one.cost.sent;
            usd = usd.zip(one.usd_per_token).map(|(sum, price)| SaveCost {
                received: sum.received + price * one.cost.received,
                sent: sum.sent + price * one.cost.sent,
            });
        }
        totals.usd = usd.filter(|_| totals.conversations > 0);
        totals
    }

    /// Notes the recorded conversation to which a rewritten request belongs, so that the texts are
    /// removed with it.
    pub(crate) fn link_conversation(&self, name: &str, conversation: &ConversationId) {
        if let Err(error) = self.store.link(name, conversation) {
            self.report_not_stored(&error);
        }
    }

    /// Rewrites a request. Returns `None` if the request must be forwarded as it was received.
    pub fn rewrite(&self, received: ReceivedRequest<'_>) -> Option<RewrittenRequest> {
        let header = find_header(received.headers, "user-agent");
        let agent = self.setup.agent.clone();
        let agent = agent.unwrap_or_else(|| agent_from_header(header));
        self.lock().totals.requests += 1;
        let rewritten = match self.rewrite_body(&agent, received) {
            Ok(rewritten) => rewritten,
            Err(reason) => {
                *self.lock().totals.unchanged.entry(reason).or_default() += 1;
                None
            }
        };
        if rewritten.is_some() {
            self.lock().totals.rewritten += 1;
        }
        rewritten.filter(|_| !self.setup.is_dry_run)
    }

    fn rewrite_body(
        &self,
        agent: &str,
        received: ReceivedRequest<'_>,
    ) -> Result<Option<RewrittenRequest>, UnchangedReason> {
        self.check_agent(agent)?;
        let encoding = find_header(received.headers, "content-encoding");
        let body = decode_body(encoding, received.body).ok_or(UnchangedReason::Unreadable)?;
        let body = std::str::from_utf8(&body).map_err(|_| UnchangedReason::Unreadable)?;
        let request = ParsedRequest::parse(received.api, body)?;
        let spec = find_model_spec(
            &self.setup.catalogue,
            received.api,
            received.upstream,
            received.path,
            request.model.as_deref(),
        );
        let prices = SavePrices::for_model(&spec);
        let mut state = self.lock();
        let is_cold = self.note_request(&mut state, agent, &request, &prices);
        let passes = find_passes(&request, &state.passes);
        let plan = plan_request(&PlanInput {
            request: &request,
            passes: &passes,
            policy: &self.setup.policy,
            prices: &prices,
            is_cold,
        });
        self.report_small_budget(&mut state, &plan);
        self.check_texts(&mut state, &request, &passes);
        let mut conversation = passes.first().map(|pass| pass.conversation);
        let mut newest = passes.last().cloned();
        let mut cleared = plan.cleared;
        if let Some(last) = request.calls.last().filter(|_| !plan.newly.is_empty()) {
            let pass = ClearingPass {
                frontier: last.key,
                request: request.request_ends().len(),
                is_free: is_cold,
                cleared: Vec::new(),
                conversation: conversation.unwrap_or(usize::MAX),
            };
            if let Some(pass) = self.decide_pass(&mut state, agent, &request, &plan.newly, pass) {
                let notices = pass.cleared.iter().map(|one| one.notice.clone());
                cleared.extend(plan.newly.iter().copied().zip(notices));
                conversation = Some(pass.conversation);
                self.report_pass(&state, &pass, plan.saved_tokens);
                newest = Some(pass);
            }
        }
        if let Some(index) = conversation
            && let Some(one) = state.conversations.get_mut(index)
        {
            one.cost = plan.cost;
            one.usd_per_token = prices.input_usd.map(|usd| usd / 1e6);
            one.is_live = true;
        }
        let moved = find_moved_element(&request, &state.moved_texts, agent);
        let rewritten = build_body(&request, &cleared, newest.as_deref(), moved);
        Ok((rewritten != body).then(|| RewrittenRequest {
            body: rewritten,
            conversation: conversation
                .and_then(|index| state.conversations.get(index))
                .map(|one| one.name.clone()),
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SaveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the user allows the agent's requests to be rewritten, and that the agent can open
    /// the files with cleared texts.
    fn check_agent(&self, agent: &str) -> Result<(), UnchangedReason> {
        let is_allowed = self.setup.agents.iter().any(|allowed| allowed == agent);
        let can_read = self.setup.spill_folder.is_some() || can_read_everywhere(agent);
        if is_allowed && can_read {
            return Ok(());
        }
        if self.lock().warned.insert(agent.to_owned()) {
            let agent = agent.to_owned();
            (self.observe)(if is_allowed {
                SaveEvent::NoReadableFolder { agent }
            } else {
                SaveEvent::NotAllowed { agent }
            });
        }
        Err(UnchangedReason::NoConsent)
    }

    /// Compares a request with the previous one of its conversation and remembers it. Returns true
    /// if the provider's cache no longer holds the previous request.
    fn note_request(
        &self,
        state: &mut SaveState,
        agent: &str,
        request: &ParsedRequest<'_>,
        prices: &SavePrices,
    ) -> bool {
        let Some(last) = request.calls.last() else {
            return false;
        };
        let messages = SentMessages::new(request);
        let now = self.setup.clock.now();
        let mut keys = request.calls.iter().rev().map(|call| call.key);
        let before = keys.find_map(|key| state.recent.get(&key));
        let mut is_cold = false;
        let mut opening = None;
        if let Some(before) = before {
            let idle = now.duration_since(before.at).unsigned_abs();
            is_cold = idle > prices.cache_lifetime;
            opening = messages.find_moved_opening(&before.messages);
        }
        if let Some(opening) = opening
            && !state
                .moved_texts
                .iter()
                .any(|text| text.agent == agent && opening.starts_with(&text.opening))
        {
            self.add_moved_text(state, agent, opening);
        }
        if state
            .recent
            .insert(last.key, RecentRequest { at: now, messages })
            .is_none()
        {
            state.recent_order.push_back(last.key);
        }
        while state.recent_order.len() > MAX_RECENT {
            if let Some(oldest) = state.recent_order.pop_front() {
                state.recent.remove(&oldest);
            }
        }
        is_cold
    }

    fn add_moved_text(&self, state: &mut SaveState, agent: &str, opening: String) {
        let agent = agent.to_owned();
        state.moved_texts.push(MovedText {
            agent: agent.clone(),
            opening: opening.clone(),
        });
        let stored = if self.setup.is_dry_run {
            Ok(())
        } else {
            self.store.store_moved_texts(&state.moved_texts)
        };
        match stored {
            Ok(()) => (self.observe)(SaveEvent::TextMoved { agent, opening }),
            Err(error) => {
                state.moved_texts.pop();
                self.report_not_stored(&error);
            }
        }
    }

    /// Adds the results that a new pass clears to `pass`, and stores it. Returns `None` if it could not
    /// be stored.
    fn decide_pass(
        &self,
        state: &mut SaveState,
        agent: &str,
        request: &ParsedRequest<'_>,
        newly: &[usize],
        mut pass: ClearingPass,
    ) -> Option<Arc<ClearingPass>> {
        if pass.conversation >= state.conversations.len() {
            let name: String = pass
                .frontier
                .to_string()
                .chars()
                .take(NAME_DIGITS)
                .collect();
            let spill = self.setup.spill_folder.as_ref();
            let texts = spill.unwrap_or(&self.setup.folder).join(&name);
            pass.conversation = state.conversations.len();
            state.conversations.push(SavedConversation {
                name,
                decisions: ConversationDecisions {
                    agent: agent.to_owned(),
                    texts,
                    passes: Vec::new(),
                },
                cost: SaveCost::default(),
                usd_per_token: None,
                is_live: false,
            });
        }
        let conversation = &mut state.conversations[pass.conversation];
        let decisions = &mut conversation.decisions;
        let stored: usize = decisions.passes.iter().map(|pass| pass.cleared.len()).sum();
        pass.cleared = newly
            .iter()
            .enumerate()
            .map(|(number, index)| {
                let result = &request.results[*index];
                let call = &request.calls[result.call];
                let file = decisions.texts.join(format!("{}.txt", stored + number + 1));
                ClearedResult {
                    call: call.key,
                    text: result.hash,
                    notice: build_notice(&call.name, &file.display().to_string()),
                    file,
                }
            })
            .collect();
        decisions.passes.push(pass.clone());
        if !self.setup.is_dry_run
            && let Err(error) = self.store_pass(conversation, &pass, request, newly)
        {
            conversation.decisions.passes.pop();
            self.report_not_stored(&error);
            return None;
        }
        let pass = Arc::new(pass);
        state
            .passes
            .entry(pass.frontier)
            .or_default()
            .push(Arc::clone(&pass));
        state.checked.insert((pass.frontier, pass.request));
        Some(pass)
    }

    fn store_pass(
        &self,
        conversation: &SavedConversation,
        pass: &ClearingPass,
        request: &ParsedRequest<'_>,
        newly: &[usize],
    ) -> io::Result<()> {
        for (one, index) in pass.cleared.iter().zip(newly) {
            write_text(&one.file, &request.result_text(&request.results[*index]))?;
        }
        self.store
            .store(&conversation.name, &conversation.decisions)
    }

    /// Writes the texts of earlier passes again that are missing.
    fn check_texts(
        &self,
        state: &mut SaveState,
        request: &ParsedRequest<'_>,
        passes: &[Arc<ClearingPass>],
    ) {
        if self.setup.is_dry_run {
            return;
        }
        for pass in passes {
            if !state.checked.insert((pass.frontier, pass.request)) {
                continue;
            }
            for one in pass.cleared.iter().filter(|one| !one.file.exists()) {
                let result = request.results.iter().find(|result| {
                    request.calls[result.call].key == one.call && result.hash == one.text
                });
                let written =
                    result.map(|result| write_text(&one.file, &request.result_text(result)));
                if let Some(Err(error)) = written {
                    self.report_not_stored(&error);
                }
            }
        }
    }

    fn report_small_budget(&self, state: &mut SaveState, plan: &Plan) {
        let Some(needed) = plan.needed_budget else {
            return;
        };
        if state.warned.insert("budget".to_owned()) {
            (self.observe)(SaveEvent::BudgetTooSmall {
                budget: self.setup.policy.budget_tokens(),
                needed,
            });
        }
    }

    fn report_pass(&self, state: &SaveState, pass: &ClearingPass, tokens: u64) {
        let conversation = &state.conversations[pass.conversation];
        (self.observe)(SaveEvent::Cleared {
            conversation: conversation.name.clone(),
            agent: conversation.decisions.agent.clone(),
            results: pass.cleared.len(),
            tokens,
            folder: conversation.decisions.texts.clone(),
        });
    }

    fn report_not_stored(&self, error: &io::Error) {
        (self.observe)(SaveEvent::NotStored {
            reason: error.to_string(),
        });
    }
}

impl SaveState {
    fn add_conversation(&mut self, name: String, decisions: ConversationDecisions) {
        let conversation = self.conversations.len();
        for pass in &decisions.passes {
            let pass = ClearingPass {
                conversation,
                ..pass.clone()
            };
            self.passes
                .entry(pass.frontier)
                .or_default()
                .push(Arc::new(pass));
        }
        self.conversations.push(SavedConversation {
            name,
            decisions,
            cost: SaveCost::default(),
            usd_per_token: None,
            is_live: false,
        });
    }
}

fn build_notice(tool: &str, file: &str) -> String {
    NOTICE
        .trim_end()
        .replace("{tool}", tool)
        .replace("{file}", file)
}

/// Builds the body that is sent: notices instead of cleared results, moved text last, and cache
/// markers.
fn build_body(
    request: &ParsedRequest<'_>,
    cleared: &[(usize, String)],
    newest: Option<&ClearingPass>,
    moved: Option<usize>,
) -> String {
    let mut edits = Vec::new();
    let mut spans = Vec::new();
    for (index, notice) in cleared {
        let result = &request.results[*index];
        let json = serde_json::Value::from(notice.as_str()).to_string();
        let text = match request.api {
            Api::Gemini => format!(r#"{{"output":{json}}}"#),
            Api::OpenaiChat | Api::OpenaiResponses | Api::Anthropic => json,
        };
        spans.push(result.span.clone());
        edits.push(BodyEdit {
            span: result.span.clone(),
            text,
        });
    }
    let newest_calls: HashSet<ContentHash> = newest
        .iter()
        .flat_map(|pass| &pass.cleared)
        .map(|one| one.call)
        .collect();
    let first_cleared = cleared
        .iter()
        .map(|(index, _)| &request.results[*index])
        .filter(|result| newest_calls.contains(&request.calls[result.call].key))
        .map(|result| result.element)
        .min();
    edits.extend(markers::build_marker_edits(
        request,
        &spans,
        first_cleared,
        moved,
    ));
    if let Some(index) = moved {
        let span = request.elements[index].span.clone();
        // The agent's marker in the moved text goes with the text, but not its edit.
        edits.retain(|edit| edit.span.end <= span.start || edit.span.start >= span.end);
        edits.extend(build_move(request, index));
    }
    apply_edits(request.body, edits)
}

/// Returns the edits that move a message to the end of the list. Its cache markers are removed.
fn build_move(request: &ParsedRequest<'_>, index: usize) -> [BodyEdit; 2] {
    let span = request.elements[index].span.clone();
    // The message is not the last one, so the text up to the next one holds the comma.
    let next = request.elements[index + 1].span.start;
    let end = request
        .elements
        .last()
        .map_or(span.end, |last| last.span.end);
    let (text, _) = crate::layout::cut_cache_markers(request.element_text(index));
    [
        BodyEdit {
            span: span.start..next,
            text: String::new(),
        },
        BodyEdit {
            span: end..end,
            text: format!(",{text}"),
        },
    ]
}
