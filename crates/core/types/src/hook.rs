//! The points of a run at which callbacks and hooks are called.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point of a run. Configuration may use haft's names and those Claude Code users know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// The first turn of a session begins.
    #[serde(alias = "SessionStart", alias = "ConversationStart")]
    ConversationStart,
    /// The session is over.
    #[serde(alias = "SessionEnd", alias = "ConversationEnd")]
    ConversationEnd,
    /// A stored conversation is about to be read.
    #[serde(alias = "PreConversationResumed")]
    PreConversationResumed,
    /// A stored conversation was read.
    #[serde(alias = "PostConversationResumed")]
    PostConversationResumed,
    /// The tools are about to be gathered.
    #[serde(alias = "PreToolsLoaded")]
    PreToolsLoaded,
    /// The tools are gathered.
    #[serde(alias = "PostToolsLoaded")]
    PostToolsLoaded,
    /// Rules and instructions are about to be read.
    #[serde(alias = "PreRulesLoaded")]
    PreRulesLoaded,
    /// Rules and instructions were read.
    #[serde(alias = "PostRulesLoaded")]
    PostRulesLoaded,
    /// The documentation of libraries is about to be read.
    #[serde(alias = "PreLibrariesLoaded")]
    PreLibrariesLoaded,
    /// The documentation of libraries was read.
    #[serde(alias = "PostLibrariesLoaded")]
    PostLibrariesLoaded,
    /// The user has spoken.
    #[serde(alias = "UserPromptSubmit")]
    UserPromptSubmit,
    /// A request is about to be sent.
    #[serde(alias = "ApiRequestStart")]
    ApiRequestStart,
    /// A reply is there, or there is none.
    #[serde(alias = "ApiRequestEnd")]
    ApiRequestEnd,
    /// The model begins to write a call.
    #[serde(alias = "ToolGenerationStart")]
    ToolGenerationStart,
    /// The model has written a call.
    #[serde(alias = "ToolGenerationEnd")]
    ToolGenerationEnd,
    /// A call is about to run.
    #[serde(alias = "PreToolUse", alias = "PreToolCall")]
    PreToolCall,
    /// A call has run.
    #[serde(alias = "PostToolUse", alias = "PostToolCall")]
    PostToolCall,
    /// Older rounds are about to be archived.
    #[serde(alias = "PreCompact")]
    PreCompact,
    /// A person is needed.
    #[serde(alias = "Notification")]
    Notification,
    /// The model is done.
    #[serde(alias = "Stop")]
    Stop,
    /// A sub-agent is done.
    #[serde(alias = "SubagentStop")]
    SubagentStop,
}

impl HookPoint {
    /// All points, in the order a run comes by them.
    pub const ALL: [Self; 21] = [
        Self::ConversationStart,
        Self::ConversationEnd,
        Self::PreConversationResumed,
        Self::PostConversationResumed,
        Self::PreToolsLoaded,
        Self::PostToolsLoaded,
        Self::PreRulesLoaded,
        Self::PostRulesLoaded,
        Self::PreLibrariesLoaded,
        Self::PostLibrariesLoaded,
        Self::UserPromptSubmit,
        Self::ApiRequestStart,
        Self::ApiRequestEnd,
        Self::ToolGenerationStart,
        Self::ToolGenerationEnd,
        Self::PreToolCall,
        Self::PostToolCall,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::SubagentStop,
    ];

    /// haft's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConversationStart => "conversation_start",
            Self::ConversationEnd => "conversation_end",
            Self::PreConversationResumed => "pre_conversation_resumed",
            Self::PostConversationResumed => "post_conversation_resumed",
            Self::PreToolsLoaded => "pre_tools_loaded",
            Self::PostToolsLoaded => "post_tools_loaded",
            Self::PreRulesLoaded => "pre_rules_loaded",
            Self::PostRulesLoaded => "post_rules_loaded",
            Self::PreLibrariesLoaded => "pre_libraries_loaded",
            Self::PostLibrariesLoaded => "post_libraries_loaded",
            Self::UserPromptSubmit => "user_prompt_submit",
            Self::ApiRequestStart => "api_request_start",
            Self::ApiRequestEnd => "api_request_end",
            Self::ToolGenerationStart => "tool_generation_start",
            Self::ToolGenerationEnd => "tool_generation_end",
            Self::PreToolCall => "pre_tool_call",
            Self::PostToolCall => "post_tool_call",
            Self::PreCompact => "pre_compact",
            Self::Notification => "notification",
            Self::Stop => "stop",
            Self::SubagentStop => "subagent_stop",
        }
    }

    /// The name Claude Code has for it, or one made in its manner.
    pub fn claude_name(self) -> String {
        match self {
            Self::ConversationStart => "SessionStart".to_owned(),
            Self::ConversationEnd => "SessionEnd".to_owned(),
            Self::PreToolCall => "PreToolUse".to_owned(),
            Self::PostToolCall => "PostToolUse".to_owned(),
            other => other.name().split('_').map(capitalised).collect(),
        }
    }

    /// The point of that name, in either manner.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name || point.claude_name() == name)
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + chars.as_str())
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_both_manners_lead_back() {
        for point in HookPoint::ALL {
            for name in [point.name().to_owned(), point.claude_name()] {
                assert_eq!(HookPoint::by_name(&name), Some(point), "{name}");
                assert_eq!(serde_json::from_value::<HookPoint>(name.clone().into()).unwrap(), point, "{name}");
            }
            assert_eq!(serde_json::to_value(point).unwrap(), point.name());
        }
        assert_eq!(HookPoint::PreToolCall.claude_name(), "PreToolUse");
        assert_eq!(HookPoint::PreCompact.claude_name(), "PreCompact");
    }
}
