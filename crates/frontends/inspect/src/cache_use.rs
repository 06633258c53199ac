//! Sums up the tokens that a conversation and its sub-agents read from the provider's cache and
//! wrote to it, by agent and by tool.

use std::collections::{BTreeMap, HashMap};

use haft_agent::{ChildAgent, MAIN_AGENT, list_child_agents};
use haft_context::divide_usage;
use haft_store::RequestOutline;
use haft_types::{LlmMetadata, Message, MessageId, Usage};

use crate::error::InspectError;
use crate::request_log::{RequestLogReader, match_replies};

/// The use of the provider's cache by a conversation and its sub-agents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CacheUse {
    /// The input tokens of the requests of each agent. The main agent comes first.
    pub agents: Vec<UseRow>,
    /// The input tokens that the results of each tool took in all requests, by name.
    pub tools: Vec<UseRow>,
}

/// The use of the provider's cache by one agent or tool.
#[derive(Clone, Debug, PartialEq)]
pub struct UseRow {
    pub name: String,
    /// The number of requests of the agent, or of requests with results of the tool.
    pub requests: u64,
    pub usage: Usage,
}

/// The sums by name.
#[derive(Default)]
struct Sums(BTreeMap<String, (u64, Usage)>);

impl Sums {
    fn add(&mut self, name: &str, usage: Usage) {
        let (requests, sum) = self.0.entry(name.to_owned()).or_default();
        *requests += 1;
        *sum += usage;
    }

    fn into_rows(self) -> Vec<UseRow> {
        let row = |(name, (requests, usage))| UseRow {
            name,
            requests,
            usage,
        };
        self.0.into_iter().map(row).collect()
    }
}

impl RequestLogReader {
    /// Sums up the requests of the conversation and of its sub-agents whose replies report usage.
    pub async fn sum_cache_use(&self) -> Result<CacheUse, InspectError> {
        let mut agents = Sums::default();
        let mut tools = Sums::default();
        let outlines = self.outlines().await?;
        let messages = self.messages().await?;
        let replies = self.reply_metadata(&outlines, &messages);
        add_requests(
            MAIN_AGENT,
            &outlines,
            &replies,
            &messages,
            [&mut agents, &mut tools],
        );
        let main = std::mem::take(&mut agents).into_rows();
        let children = list_child_agents(self.store.as_ref(), &self.conversation.id).await?;
        for ChildAgent { name, conversation } in children {
            let outlines = self.store.request_outlines(&conversation).await?;
            let messages = self.store.messages(&conversation).await?;
            let replies = match_replies(&outlines, &messages);
            add_requests(
                &name,
                &outlines,
                &replies,
                &messages,
                [&mut agents, &mut tools],
            );
        }
        let mut agents = agents.into_rows();
        agents.splice(0..0, main);
        let tools = tools.into_rows();
        Ok(CacheUse { agents, tools })
    }
}

/// Adds the requests of one conversation to the sums by agent and by tool.
fn add_requests(
    agent: &str,
    outlines: &[RequestOutline],
    replies: &[Option<&LlmMetadata>],
    messages: &[Message],
    [agents, tools]: [&mut Sums; 2],
) {
    let tool_of: HashMap<MessageId, &str> = messages
        .iter()
        .filter_map(|message| {
            Some((
                message.message_id,
                message.tool_results().next()?.name.as_str(),
            ))
        })
        .collect();
    let answered = outlines
        .iter()
        .zip(replies)
        .filter_map(|(outline, reply)| Some((outline, (*reply)?.usage())));
    for (outline, usage) in answered {
        agents.add(
            agent,
            Usage {
                output: 0,
                reasoning: 0,
                ..usage
            },
        );
        let segments = outline.segments.iter().map(|one| u64::from(one.tokens));
        let mut tokens: Vec<_> = segments.collect();
        // The tools of a request precede its messages.
        let tokens_of_messages: u64 = tokens.iter().sum();
        tokens.insert(0, outline.summary.tokens.saturating_sub(tokens_of_messages));
        let parts = divide_usage(&tokens, usage);
        let mut of_request: BTreeMap<&str, Usage> = BTreeMap::new();
        for (segment, part) in outline.segments.iter().zip(&parts[1..]) {
            if let Some(tool) = tool_of.get(&segment.message) {
                *of_request.entry(tool).or_default() += *part;
            }
        }
        for (tool, usage) in of_request {
            tools.add(tool, usage);
        }
    }
}
