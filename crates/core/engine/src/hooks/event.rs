//! The events that callbacks receive. Hooks read them as JSON, so the field names are a contract.

use haft_types::{HookPoint, StopReason, ToolStatus, Usage};
use serde::Serialize;
use serde_json::Value;

/// An event of a run for which hooks are called, with the data that they receive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum HookEvent {
    /// The first turn of a session begins.
    ConversationStart {
        /// `startup`, or `resume` for a conversation that existed before.
        source: &'static str,
        /// The model, as `provider/model`.
        model: String,
    },
    /// The session is over.
    ConversationEnd {
        /// The outcome of the session's last turn.
        reason: String,
    },
    /// A stored conversation is about to be read.
    PreConversationResumed {},
    /// A stored conversation was read.
    PostConversationResumed {
        /// The number of messages in the conversation.
        messages: usize,
    },
    /// The tools are about to be collected.
    PreToolsLoaded {},
    /// The tools were collected.
    PostToolsLoaded {
        /// The names of the tools.
        tools: Vec<String>,
    },
    /// Rules and instructions are about to be read.
    PreRulesLoaded {},
    /// Rules and instructions were read.
    PostRulesLoaded {
        /// The headings of the documents.
        documents: Vec<String>,
    },
    /// The documentation of libraries is about to be read.
    PreLibrariesLoaded {},
    /// The documentation of libraries was read.
    PostLibrariesLoaded {
        /// The headings of the documents.
        documents: Vec<String>,
    },
    /// The user submitted a prompt.
    UserPromptSubmit {
        /// The text of the prompt.
        prompt: String,
    },
    /// A request is about to be sent.
    ApiRequestStart {
        /// The model, as `provider/model`.
        model: String,
        /// The number of messages in the request.
        messages: usize,
        /// The estimated number of tokens in the request.
        tokens: u64,
    },
    /// A request was answered or failed.
    ApiRequestEnd {
        /// The model, as `provider/model`.
        model: String,
        /// The tokens used, if there is a reply.
        usage: Option<Usage>,
        /// The reason why the model stopped, if there is a reply.
        stop_reason: Option<StopReason>,
        /// The error, if there is no reply.
        error: Option<String>,
    },
    /// The model begins to write a tool call.
    ToolGenerationStart {
        #[serde(flatten)]
        tool: ToolName,
        /// The id of the call.
        tool_use_id: String,
    },
    /// The model has finished writing a tool call.
    ToolGenerationEnd {
        #[serde(flatten)]
        tool: ToolName,
        /// The id of the call.
        tool_use_id: String,
    },
    /// A tool call is about to run.
    PreToolCall {
        #[serde(flatten)]
        tool: ToolName,
        /// The id of the call.
        tool_use_id: String,
        /// The arguments of the call.
        tool_input: Value,
    },
    /// A tool call has run.
    PostToolCall {
        #[serde(flatten)]
        tool: ToolName,
        /// The id of the call.
        tool_use_id: String,
        /// The arguments of the call.
        tool_input: Value,
        tool_response: ToolResponse,
    },
    /// Older rounds are about to be archived.
    PreCompact {
        /// `auto` if the window is nearly full, `manual` if the user requested it.
        trigger: &'static str,
        /// The number of rounds to archive.
        rounds: u32,
    },
    /// The user's attention is needed.
    Notification {
        /// `permission_prompt` or `idle_prompt`.
        notification_type: &'static str,
        /// The text of the notification.
        message: String,
    },
    /// The model ended its turn.
    Stop {
        /// True if a hook has already prevented the end of this turn.
        stop_hook_active: bool,
        /// The model's answer.
        last_assistant_message: String,
    },
    /// A sub-agent ended its turn.
    SubagentStop {
        /// The name of the sub-agent.
        agent_type: String,
        /// True if a hook has already prevented the end of this turn.
        stop_hook_active: bool,
        /// The sub-agent's answer.
        last_assistant_message: String,
    },
}

/// A tool's name and aliases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolName {
    /// The canonical name.
    #[serde(rename = "tool_name")]
    pub name: String,
    #[serde(skip)]
    pub also: Vec<String>,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolResponse {
    pub status: ToolStatus,
    /// The text of the result.
    pub text: String,
}

impl HookEvent {
    /// Returns the point at which the event happens.
    pub fn point(&self) -> HookPoint {
        match self {
            Self::ConversationStart { .. } => HookPoint::ConversationStart,
            Self::ConversationEnd { .. } => HookPoint::ConversationEnd,
            Self::PreConversationResumed {} => HookPoint::PreConversationResumed,
            Self::PostConversationResumed { .. } => HookPoint::PostConversationResumed,
            Self::PreToolsLoaded {} => HookPoint::PreToolsLoaded,
            Self::PostToolsLoaded { .. } => HookPoint::PostToolsLoaded,
            Self::PreRulesLoaded {} => HookPoint::PreRulesLoaded,
            Self::PostRulesLoaded { .. } => HookPoint::PostRulesLoaded,
            Self::PreLibrariesLoaded {} => HookPoint::PreLibrariesLoaded,
            Self::PostLibrariesLoaded { .. } => HookPoint::PostLibrariesLoaded,
            Self::UserPromptSubmit { .. } => HookPoint::UserPromptSubmit,
            Self::ApiRequestStart { .. } => HookPoint::ApiRequestStart,
            Self::ApiRequestEnd { .. } => HookPoint::ApiRequestEnd,
            Self::ToolGenerationStart { .. } => HookPoint::ToolGenerationStart,
            Self::ToolGenerationEnd { .. } => HookPoint::ToolGenerationEnd,
            Self::PreToolCall { .. } => HookPoint::PreToolCall,
            Self::PostToolCall { .. } => HookPoint::PostToolCall,
            Self::PreCompact { .. } => HookPoint::PreCompact,
            Self::Notification { .. } => HookPoint::Notification,
            Self::Stop { .. } => HookPoint::Stop,
            Self::SubagentStop { .. } => HookPoint::SubagentStop,
        }
    }

    /// Returns the names that a hook's matcher is compared with.
    pub fn matcher_names(&self) -> Vec<&str> {
        match self {
            Self::PreToolCall { tool, .. }
            | Self::PostToolCall { tool, .. }
            | Self::ToolGenerationStart { tool, .. }
            | Self::ToolGenerationEnd { tool, .. } => std::iter::once(tool.name.as_str())
                .chain(tool.also.iter().map(String::as_str))
                .collect(),
            Self::ConversationStart { source, .. } => vec![source],
            Self::ConversationEnd { reason } => vec![reason],
            Self::PreCompact { trigger, .. } => vec![trigger],
            Self::Notification {
                notification_type, ..
            } => vec![notification_type],
            Self::SubagentStop { agent_type, .. } => vec![agent_type],
            Self::PreConversationResumed {}
            | Self::PostConversationResumed { .. }
            | Self::PreToolsLoaded {}
            | Self::PostToolsLoaded { .. }
            | Self::PreRulesLoaded {}
            | Self::PostRulesLoaded { .. }
            | Self::PreLibrariesLoaded {}
            | Self::PostLibrariesLoaded { .. }
            | Self::UserPromptSubmit { .. }
            | Self::ApiRequestStart { .. }
            | Self::ApiRequestEnd { .. }
            | Self::Stop { .. } => vec![""],
        }
    }

    /// Replaces the arguments of a tool call, so that the next callback receives the new arguments.
    pub(super) fn change_input(&mut self, input: &Value) {
        if let Self::PreToolCall { tool_input, .. } = self {
            tool_input.clone_from(input);
        }
    }
}
