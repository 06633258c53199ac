//! The points of a run at which callbacks and hooks are called.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr, VariantArray};

/// A point in a run at which hooks are called. Configuration files may use haft's names or those of
/// Claude Code.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    Display,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HookPoint {
    /// The first turn of a session begins.
    #[serde(alias = "SessionStart", alias = "ConversationStart")]
    ConversationStart,
    /// The session is over.
    #[serde(alias = "SessionEnd", alias = "ConversationEnd")]
    ConversationEnd,
    /// A stored conversation is about to be resumed.
    #[serde(alias = "PreConversationResumed")]
    PreConversationResumed,
    /// A stored conversation was resumed.
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
    /// The user has submitted a prompt.
    #[serde(alias = "UserPromptSubmit")]
    UserPromptSubmit,
    /// A request is about to be sent.
    #[serde(alias = "ApiRequestStart")]
    ApiRequestStart,
    /// The reply has arrived, or the request has failed.
    #[serde(alias = "ApiRequestEnd")]
    ApiRequestEnd,
    /// The model begins to write a tool call.
    #[serde(alias = "ToolGenerationStart")]
    ToolGenerationStart,
    /// The model has written a tool call.
    #[serde(alias = "ToolGenerationEnd")]
    ToolGenerationEnd,
    /// A tool call is about to run.
    #[serde(alias = "PreToolUse", alias = "PreToolCall")]
    PreToolCall,
    /// A tool call has run.
    #[serde(alias = "PostToolUse", alias = "PostToolCall")]
    PostToolCall,
    /// Older rounds of the conversation are about to be archived.
    #[serde(alias = "PreCompact")]
    PreCompact,
    /// The user's attention is needed.
    #[serde(alias = "Notification")]
    Notification,
    /// The turn of the model is over.
    #[serde(alias = "Stop")]
    Stop,
    /// The turn of a sub-agent is over.
    #[serde(alias = "SubagentStop")]
    SubagentStop,
}

impl HookPoint {
    /// All hook points, in the order in which they occur in a run.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns haft's name of the hook point, in snake case.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns Claude Code's name for the hook point. If Claude Code has no such point, returns
    /// haft's name as Claude Code would write it.
    pub fn claude_name(self) -> String {
        match self {
            Self::ConversationStart => "SessionStart".to_owned(),
            Self::ConversationEnd => "SessionEnd".to_owned(),
            Self::PreToolCall => "PreToolUse".to_owned(),
            Self::PostToolCall => "PostToolUse".to_owned(),
            other => other.name().split('_').map(capitalize).collect(),
        }
    }

    /// Finds a hook point by haft's name or by [`Self::claude_name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|point| point.name() == name || point.claude_name() == name)
    }
}

fn capitalize(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + chars.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_point_by_name_accepts_both_spellings() {
        for &point in HookPoint::ALL {
            for name in [point.name().to_owned(), point.claude_name()] {
                assert_eq!(HookPoint::from_name(&name), Some(point), "{name}");
                assert_eq!(
                    serde_json::from_value::<HookPoint>(name.clone().into()).unwrap(),
                    point,
                    "{name}"
                );
            }
            assert_eq!(serde_json::to_value(point).unwrap(), point.name());
        }
        assert_eq!(HookPoint::PreToolCall.claude_name(), "PreToolUse");
        assert_eq!(HookPoint::PreCompact.claude_name(), "PreCompact");
    }
}
