//! Recorded conversations, with substitutes for parts that a recording lacks.
//!
//! Recordings of other programs contain no reminders of haft, and often neither system prompt nor
//! tools. A TODO list that was kept with a tool becomes the reminder that haft would have sent;
//! otherwise a reminder is imagined. A recorded system prompt becomes the role in haft's own, and
//! every tool that is called is offered with a placeholder description.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use haft_context::{
    ContextError, Documents, ListOwner, Reminders, RoleText, SystemInput, TOOL_NAME_KEY, Todo,
    TodoProgress, format_todo_list, render_system, system_entry,
};
use haft_types::{
    Entry, LlmMetadata, Message, Part, PromptLanguage, Role, TokenCounter, ToolSet, ToolSpec,
    ToolStatus, Usage,
};
use serde_json::{Value, json};

use crate::replay::{RecordedStep, RequestSurroundings};

/// The assumed time between two requests if their times were not recorded. Most requests take about
/// this long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(7);

/// A recorded conversation that can be replayed.
pub struct RecordedConversation {
    /// The name of the conversation as shown to the user.
    pub name: String,
    /// All messages of the conversation, oldest first.
    pub history: Vec<Arc<Entry>>,
    /// The requests that were sent to the model.
    pub steps: Vec<RecordedStep>,
    /// The system message, tools and other parts that requests contain besides the conversation's
    /// messages: one entry per step, or one entry for all steps. Never empty.
    pub surroundings: Vec<RecordedSurroundings>,
    /// The provider's token counts, one per request, if recorded.
    pub counted: Vec<Usage>,
    /// The number of sent requests that did not extend the previous request; `None` if the requests
    /// were not recorded.
    pub breaks: Option<usize>,
    /// The names of the models that answered, as `provider/model` if both are known.
    pub models: BTreeSet<String>,
    /// The bodies of the requests as they were sent, if recorded.
    pub bodies: Vec<Vec<u8>>,
}

/// The parts that a recorded request contains besides the conversation's messages.
#[derive(Clone)]
pub struct RecordedSurroundings {
    /// The system message of the request.
    pub system: Arc<Entry>,
    /// The tools that the request offers to the model.
    pub tools: Arc<ToolSet>,
    /// The rules and other standing texts that were sent with the request.
    pub documents: Option<Documents>,
    /// The reminders that were sent with the request, if there were any.
    pub reminders: Option<Reminders>,
    /// The cache key of the conversation, for providers that route requests by key.
    pub cache_key: Option<String>,
}

/// Settings for the made-up reminders that are added to a recording without reminders.
#[derive(Clone, Copy, Debug)]
pub struct ImaginedReminders {
    /// The approximate length of the reminders, in tokens; 0 for no reminders.
    pub tokens: u32,
    /// The share of requests that change the reminders, from 0 to 1. With 0, the reminders exist
    /// from the beginning; otherwise, the first change creates them.
    pub changes: f64,
    /// True if the reminders exist from the first request on, whatever the share of changes is.
    pub from_first: bool,
}

impl RecordedConversation {
    /// Builds a recording from messages alone. Returns `None` if the messages contain no request.
    pub fn from_messages(
        name: String,
        messages: Vec<Message>,
        imagined: ImaginedReminders,
        counter: &dyn TokenCounter,
    ) -> Result<Option<Self>, ContextError> {
        let made = || {
            messages
                .iter()
                .filter_map(|message| message.llm_metadata.as_deref())
        };
        let models = made()
            .map(|made| made.model_name.clone())
            .filter(|name| !name.is_empty())
            .collect();
        let (system, said): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .partition(|one| one.role == Role::System);
        let prompt = system
            .iter()
            .map(Message::joined_text)
            .collect::<Vec<_>>()
            .join("\n\n");
        let steps = find_steps(&said);
        if steps.is_empty() {
            return Ok(None);
        }
        let answer = |step: &RecordedStep| {
            said.get(step.messages)?
                .llm_metadata
                .as_deref()
                .map(LlmMetadata::usage)
        };
        let counted = steps
            .iter()
            .filter_map(answer)
            .filter(|usage| usage.all_input() > 0)
            .collect();
        let specs: BTreeSet<_> = said
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.name.clone())
            .collect();
        let spec = |name: String| {
            let parameters: Value = json!({"type": "object", "properties": {}});
            ToolSpec {
                name,
                description: "A recorded tool.".into(),
                parameters,
            }
        };
        let tools = ToolSet::new(specs.into_iter().map(spec).collect(), counter);
        let role = if prompt.trim().is_empty() {
            RoleText::BuiltIn
        } else {
            RoleText::Custom(&prompt)
        };
        let input = SystemInput {
            role,
            tools: &tools.specs,
            ..SystemInput::default()
        };
        let system = system_entry(render_system(&input)?, counter);
        let mut list = None;
        let lists: Vec<Option<String>> = said
            .iter()
            .map(|message| {
                list = parse_todo_list(message).or(list.take());
                list.clone()
            })
            .collect();
        let is_kept = list.is_some() && imagined.tokens > 0;
        let aside = |step: usize| RecordedSurroundings {
            system: Arc::clone(&system),
            tools: Arc::clone(&tools),
            documents: None,
            reminders: if is_kept {
                lists[steps[step].messages - 1]
                    .clone()
                    .map(|todo| Reminders {
                        todo: Some(todo),
                        ..Reminders::default()
                    })
            } else {
                imagined.reminders_at(step, counter)
            },
            cache_key: None,
        };
        Ok(Some(Self {
            name,
            surroundings: (0..steps.len()).map(aside).collect(),
            history: said
                .into_iter()
                .map(|message| count_entry(message, counter))
                .collect(),
            steps,
            counted,
            breaks: None,
            models,
            bodies: Vec::new(),
        }))
    }

    /// True if the provider's token counts are known for at least nine of ten requests, which is
    /// enough to compare them with a replay.
    pub fn has_enough_counts(&self) -> bool {
        !self.counted.is_empty() && self.counted.len() * 10 >= self.steps.len() * 9
    }

    /// Returns the parts that the request at this step contains besides its messages. If the parts
    /// were recorded only once, they apply to all steps.
    pub fn surroundings(&self, step: usize) -> RequestSurroundings<'_> {
        let aside = &self.surroundings[step.min(self.surroundings.len() - 1)];
        RequestSurroundings {
            system: &aside.system,
            system_input: None,
            tools: &aside.tools,
            documents: aside.documents.as_ref(),
            reminders: aside.reminders.clone(),
            cache_key: aside.cache_key.as_deref(),
        }
    }
}

/// Returns the TODO list in a result of the tool `todo_write`, formatted as a reminder, or `None`
/// if `message` contains no such result.
fn parse_todo_list(message: &Message) -> Option<String> {
    let result = message.tool_results().find(|result| {
        let tool = message
            .metadata
            .get(TOOL_NAME_KEY)
            .and_then(Value::as_str)
            .unwrap_or(&result.name);
        tool == "todo_write" && result.envelope.status != ToolStatus::Error
    })?;
    let item = |item: &'_ Value| -> Option<(String, TodoProgress)> {
        let progress = match item["status"].as_str()? {
            "completed" => TodoProgress::Completed,
            "in_progress" => TodoProgress::InProgress,
            _ => TodoProgress::Pending,
        };
        Some((item["content"].as_str()?.to_owned(), progress))
    };
    let items: Vec<_> = result
        .envelope
        .data
        .get("items")?
        .as_array()?
        .iter()
        .filter_map(item)
        .collect();
    let items: Vec<_> = items
        .iter()
        .map(|(content, progress)| Todo {
            content,
            progress: *progress,
        })
        .collect();
    Some(format_todo_list(
        &items,
        ListOwner::Reader,
        PromptLanguage::English,
    ))
}

/// Counts the tokens of a message. Encrypted reasoning is billed by its tokens before encryption,
/// not by its encoded length, so the provider's count is used if there is one, otherwise the count
/// of the readable part.
fn count_entry(message: Message, counter: &dyn TokenCounter) -> Arc<Entry> {
    let is_encrypted =
        |part: &Part| matches!(part, Part::Thinking(thinking) if thinking.raw.is_some());
    let entry = Entry::new(message, counter);
    if !entry.message.content.iter().any(is_encrypted) {
        return entry;
    }
    let mut readable = entry.message.clone();
    for part in &mut readable.content {
        if let Part::Thinking(thinking) = part {
            thinking.raw = None;
        }
    }
    let reasoning = entry
        .message
        .llm_metadata
        .as_ref()
        .map_or(0, |made| made.reasoning_tokens);
    let thought: u32 = readable
        .content
        .iter()
        .map(|part| match part {
            Part::Thinking(thinking) => counter.count_text(&thinking.text),
            Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => 0,
        })
        .sum();
    let more = u32::try_from(reasoning)
        .unwrap_or(u32::MAX)
        .saturating_sub(thought);
    let tokens = counter.count_message(&readable).saturating_add(more);
    Arc::new(Entry {
        message: entry.message.clone(),
        hash: entry.hash,
        tokens,
    })
}

/// Finds the requests of a recording: one was sent wherever an assistant message follows a user
/// message or a tool result.
fn find_steps(said: &[Message]) -> Vec<RecordedStep> {
    let role = |index: usize| said.get(index).map(|message| message.role);
    let asks = |end: &usize| {
        matches!(role(end - 1), Some(Role::User | Role::Tool))
            && matches!(role(*end), Some(Role::Assistant))
    };
    let begun = said.first().map(|message| message.created_at);
    let timed = said.iter().any(|message| Some(message.created_at) != begun);
    let mut clock = Duration::ZERO;
    let step = |messages: usize| {
        let at = begun.and_then(|begun| {
            Duration::try_from(said[messages - 1].created_at.duration_since(begun)).ok()
        });
        clock = at
            .filter(|_| timed)
            .unwrap_or(clock + DEFAULT_PAUSE)
            .max(clock);
        RecordedStep {
            messages,
            at: clock,
        }
    };
    (1..=said.len()).filter(asks).map(step).collect()
}

impl ImaginedReminders {
    /// Returns the made-up reminders for the request at this step, in the form of a TODO list.
    /// Returns `None` if there are none at this step.
    fn reminders_at(self, step: usize, counter: &dyn TokenCounter) -> Option<Reminders> {
        const LINE: &str =
            "- [ ] a step of the plan, described in a line of the usual length for such a thing\n";
        let lines = self.tokens / counter.count_text(LINE).max(1);
        let version = (step as f64 * self.changes) as usize;
        let todo = format!(
            "{}- [x] {version} steps are done\n",
            LINE.repeat(lines as usize)
        );
        let is_begun = version > 0 || self.changes == 0.0 || self.from_first;
        (self.tokens > 0 && is_begun).then(|| Reminders {
            todo: Some(todo),
            ..Reminders::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{Envelope, Thinking, ToolCall, ToolResult};

    use super::*;
    use crate::testing::{Quarter, at, id};

    /// Returns a question and a reply with encrypted reasoning.
    fn encrypted_reply(reasoning_tokens: u64, input_tokens: u64) -> Vec<Message> {
        let raw = Some("x".repeat(40_000));
        let thinking = Thinking {
            text: "Short.".into(),
            signature: raw.clone(),
            raw,
        };
        let mut reply = Message::new(
            id(1),
            Role::Assistant,
            vec![Part::Thinking(thinking), Part::from_text("Done.")],
            at(1),
        );
        let made = LlmMetadata {
            model_name: "openai/gpt-5".into(),
            reasoning_tokens,
            input_tokens,
            ..LlmMetadata::default()
        };
        reply.llm_metadata = Some(made.into());
        vec![
            Message::from_text(id(0), Role::User, "Do it.", at(0)),
            reply,
        ]
    }

    fn recorded(messages: Vec<Message>) -> RecordedConversation {
        let imagined = ImaginedReminders {
            tokens: 0,
            changes: 0.0,
            from_first: false,
        };
        RecordedConversation::from_messages("a".into(), messages, imagined, &Quarter)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn encrypted_reasoning_counts_its_reported_tokens() {
        let known = recorded(encrypted_reply(300, 1)).history[1].tokens;
        assert!((300..330).contains(&known), "{known}");
        let unknown = recorded(encrypted_reply(0, 1)).history[1].tokens;
        assert!(unknown < 20, "{unknown}");
    }

    #[test]
    fn conversation_is_counted_if_its_requests_are() {
        let counted = recorded(encrypted_reply(0, 90));
        assert!(counted.has_enough_counts() && counted.counted.len() == 1);
        assert_eq!(counted.models, BTreeSet::from(["openai/gpt-5".to_owned()]));
        assert!(!recorded(encrypted_reply(0, 0)).has_enough_counts());
    }

    #[test]
    fn todo_list_of_a_tool_becomes_the_reminder() {
        let mut messages = encrypted_reply(0, 0);
        for (number, name, status) in [
            (2, "todo_write", "pending"),
            (4, "TodoWrite", "in_progress"),
            (6, "other", "completed"),
        ] {
            let call = ToolCall {
                id: number.to_string(),
                name: name.into(),
                arguments: "{}".into(),
                signature: None,
            };
            messages.push(Message::new(
                id(number),
                Role::Assistant,
                vec![Part::ToolCall(call)],
                at(number),
            ));
            let data = json!({"items": [{"content": "it", "status": status}]});
            let envelope = Envelope::success("Kept.").with_data(data);
            let result = ToolResult {
                tool_call_id: number.to_string(),
                name: name.into(),
                envelope,
            };
            let mut message = Message::new(
                id(number + 1),
                Role::Tool,
                vec![Part::ToolResult(Box::new(result))],
                at(number + 1),
            );
            if name == "TodoWrite" {
                message
                    .metadata
                    .insert(TOOL_NAME_KEY.into(), "todo_write".into());
            }
            messages.push(message);
        }
        messages.push(Message::from_text(id(8), Role::Assistant, "Done.", at(8)));
        let lists = |tokens: u32| -> Vec<Option<String>> {
            let imagined = ImaginedReminders {
                tokens,
                changes: 0.0,
                from_first: false,
            };
            let recorded = RecordedConversation::from_messages(
                "a".into(),
                messages.clone(),
                imagined,
                &Quarter,
            )
            .unwrap()
            .unwrap();
            recorded
                .surroundings
                .iter()
                .map(|aside| aside.reminders.as_ref()?.todo.clone())
                .collect()
        };
        let written = lists(1_000);
        let marks: Vec<_> = written
            .iter()
            .map(|list| list.as_ref().and_then(|list| list.find("[~]")).is_some())
            .collect();
        assert_eq!(
            written[0], None,
            "nothing is written yet, and none is imagined beside it"
        );
        assert!(
            written[1].as_ref().unwrap().contains("- [ ] it"),
            "{written:?}"
        );
        assert_eq!(
            marks,
            [false, false, true, true],
            "the newest one counts: {written:?}"
        );
        assert!(lists(0).iter().all(Option::is_none));
    }

    #[test]
    fn imagined_reminders_have_the_given_size_and_rate_of_change() {
        let imagined = ImaginedReminders {
            tokens: 1_000,
            changes: 0.05,
            from_first: false,
        };
        let at = |step| {
            imagined
                .reminders_at(step, &Quarter)
                .and_then(|reminders| reminders.todo)
                .unwrap()
        };
        assert_eq!(
            imagined.reminders_at(19, &Quarter),
            None,
            "there is no list before one is written"
        );
        assert!(
            (900..1_100).contains(&Quarter.count_text(&at(20))),
            "{}",
            Quarter.count_text(&at(20))
        );
        assert!(at(20) == at(39) && at(39) != at(40));
        assert_eq!(
            ImaginedReminders {
                tokens: 0,
                changes: 1.0,
                from_first: false,
            }
            .reminders_at(3, &Quarter),
            None
        );
        assert!(
            ImaginedReminders {
                tokens: 1_000,
                changes: 0.0,
                from_first: false,
            }
            .reminders_at(0, &Quarter)
            .is_some()
        );
    }
}
