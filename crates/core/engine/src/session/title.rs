//! Names a conversation after its first turn, with the model of the role `title`.
//!
//! Invariant: a request for a title shares nothing with its session but the store and the budget,
//! so it runs while the session waits for the user or runs the next turn.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{build_title_request, user_text};
use haft_store::Conversation;
use haft_text::Masker;
use haft_types::{PromptLanguage, Role};
use tokio_util::sync::CancellationToken;

use super::Session;
use super::config::SharedServices;
use super::model_opener::SideModels;
use super::open::make_title;
use crate::agents::parent::Rank;
use crate::budget::limits::TurnLimits;
use crate::budget::meter::Meter;
use crate::request::compact::{Summary, send_side_request};
use crate::stored_state::TokenizerFactors;
use crate::turn::turn_io::{EventSink, TurnIo};

/// The time limit for a title.
const TITLE_TIMEOUT: Duration = Duration::from_mins(1);
/// The maximum length, in characters, of the user's task and of the model's answer in a request.
const MAX_CHARACTERS: usize = 2_000;

/// A request for the title of a conversation, which can be sent beside its session.
pub struct TitleRequest {
    models: SideModels,
    services: Arc<SharedServices>,
    conversation: Conversation,
    agent: String,
    masker: Masker,
    limits: TurnLimits,
    language: PromptLanguage,
    task: String,
    answer: String,
}

impl Session {
    /// Returns the request for a title after the first turn, once. Returns `None` if no model has
    /// the role `title`, if the model has not answered yet, or if the conversation has a name that
    /// was not derived from its first prompt.
    pub fn take_title_request(&mut self) -> Option<TitleRequest> {
        if self.services.models.titlers.is_unset() || self.agents.rank == Rank::Sub {
            return None;
        }
        let history = self.transcript.history();
        let mut prompts = history.iter().filter(|entry| entry.message.opens_round());
        let first = prompts.next()?.message.joined_text();
        let has_other_prompts = prompts.next().is_some();
        let answer = self.transcript.newest_text(Role::Assistant, MAX_CHARACTERS);
        let conversation = self.transcript.conversation().clone();
        let masker = self.config.safety.masker.clone();
        let derived = masker.mask(&make_title(&first)).into_owned();
        if has_other_prompts || answer.is_empty() || conversation.name != derived {
            return None;
        }
        Some(TitleRequest {
            models: mem::take(&mut self.services.models.titlers),
            services: Arc::clone(&self.services.shared),
            conversation,
            agent: self.config.agent.clone(),
            masker,
            limits: self.config.task.limits,
            language: self.config.policy.prompt_language,
            task: user_text(&first).chars().take(MAX_CHARACTERS).collect(),
            answer,
        })
    }

    /// Uses the name that a [`TitleRequest`] has stored.
    pub fn set_name(&mut self, name: String) {
        self.transcript.set_name(name);
    }
}

impl TitleRequest {
    /// Asks for a title and stores it as the name of the conversation. Returns the name, or `None`
    /// if the conversation keeps its name. A failure is reported in one notice.
    pub async fn send(
        mut self,
        sink: &mut dyn EventSink,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let id = self.conversation.id.clone();
        let mut io = TurnIo::new(sink, cancel, id, self.masker.clone(), self.agent.clone());
        match self.request_title(&mut io).await {
            Ok(name) => name,
            Err(_) if cancel.is_cancelled() => None,
            Err(why) => {
                io.emit_notice(
                    "title",
                    format!("the conversation keeps its name, because no title was written: {why}"),
                );
                None
            }
        }
    }

    /// Asks the models in order, until a model is not overloaded. Sends nothing if a limit is
    /// reached.
    async fn request_title(&mut self, io: &mut TurnIo<'_>) -> Result<Option<String>, String> {
        let budget = self.services.budget.clone();
        let mut meter = Meter::new(self.limits, budget, TokenizerFactors::default());
        if self.limits.exceeded_limit(0, &meter.spent()).is_some() {
            return Ok(None);
        }
        let mut problems = Vec::new();
        loop {
            let opened = self
                .models
                .open(|name, problem| problems.push(format!("`{name}`: {problem}")));
            let Some(client) = opened else {
                return Err(problems.join("; "));
            };
            let by = client.spec().clone();
            let name = by.full_name();
            let counter = self.services.counter.as_ref();
            let request =
                build_title_request(&self.task, &self.answer, self.language, &by, counter);
            let sent = send_side_request(client, &mut meter, request, io);
            let Ok(answer) = tokio::time::timeout(TITLE_TIMEOUT, sent).await else {
                let seconds = TITLE_TIMEOUT.as_secs();
                return Err(format!("`{name}`: no answer within {seconds} s"));
            };
            match answer {
                Ok(reply) => {
                    let made = Summary {
                        reply,
                        by,
                        cost: meter.take_unreported_cost(),
                    };
                    io.emit(made.usage_event());
                    let text = made.complete_text().map_err(|why| why.to_string())?;
                    return self.store_title(&text).await;
                }
                Err(error) if error.is_overload() && self.models.drop_current() => {
                    problems.push(format!("`{name}`: {error}"));
                }
                Err(error) => return Err(format!("`{name}`: {error}")),
            }
        }
    }

    /// Stores the title, unless the user has renamed the conversation meanwhile.
    async fn store_title(&self, text: &str) -> Result<Option<String>, String> {
        let title = self.masker.mask(&clean_title(text)).into_owned();
        if title.is_empty() {
            return Err("the reply contains no title".to_owned());
        }
        let store = &self.services.store;
        let id = &self.conversation.id;
        let stored = store.get(id).await.map_err(|error| error.to_string())?;
        if stored.is_none_or(|stored| stored.name != self.conversation.name) {
            return Ok(None);
        }
        let renamed = store.rename(id, &title).await;
        renamed.map_err(|error| error.to_string())?;
        Ok(Some(title))
    }
}

/// The quotation marks that models put around a title.
const QUOTATION_MARKS: [char; 8] = ['"', '\'', '“', '”', '「', '」', '《', '》'];

/// Returns the first line of a reply as a title, without the marks around it.
fn clean_title(text: &str) -> String {
    let mut lines = text.lines().map(remove_marks);
    let line = lines.find(|line| !line.is_empty());
    make_title(line.unwrap_or_default())
}

fn remove_marks(line: &str) -> &str {
    const PERIODS: [char; 2] = ['.', '。'];
    line.trim()
        .trim_start_matches("# ")
        .trim_matches('*')
        .trim_start_matches("Title:")
        .trim_matches(['*', ' '])
        .trim_end_matches(PERIODS)
        .trim_matches(QUOTATION_MARKS)
        .trim_end_matches(PERIODS)
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_title_removes_marks_around_the_first_line() {
        for (reply, title) in [
            ("Fix the parser\n", "Fix the parser"),
            ("\n\"Fix the parser.\"\nBecause…", "Fix the parser"),
            ("# **Fix `a.rs`**", "Fix `a.rs`"),
            ("**Title: Fix the login\nand more**", "Fix the login"),
            ("**Title:** Fix the login", "Fix the login"),
            (".gitignore for builds", ".gitignore for builds"),
            ("《修复解析器》。", "修复解析器"),
            ("\"\"", ""),
        ] {
            assert_eq!(clean_title(reply), title, "{reply}");
        }
    }
}
