//! The `[context]` section of the configuration.

use haft_types::{ContentHash, ModelSpec, PromptLanguage, ToolProtocol};
use serde::{Deserialize, Serialize};

use crate::build::placement::Placement;
use crate::reduce::safe_zone::{SafeZone, SafeZoneError};

mod reduction;

pub use reduction::{Reduction, ReductionReason};

/// The settings for building requests. Every number of the design is a key here, with the design's
/// value as its default. Four of the settings depend on the model unless they are set:
/// [`Reduction`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The position of the reminders.
    pub reminders: Placement,
    /// Maximum messages between the reminders and the end. Applies to `cache-aware`, and to
    /// `after-tool-result` once the user has written since.
    pub max_distance: u32,
    /// The messages that show their id.
    pub message_ids: MessageIds,
    /// The language of haft's own texts for the model.
    pub prompt_language: PromptLanguage,
    /// The layout of the conversation.
    pub view: View,
    /// Newest utterances shown in the execute view.
    pub dialogue: u32,
    /// If true, the reminders tell the model date and time.
    pub clock: bool,
    /// Tokens above which a request is pruned.
    pub safe_zone: Option<SafeZone>,
    /// Share of the safe zone that pruning stops at, once it has to begin: the lower, the less
    /// often it begins.
    pub prune_to: Option<f64>,
    /// Newest results that pruning leaves alone.
    pub prune_keep: Option<u32>,
    /// Characters of a string argument that pruning leaves.
    pub prune_argument_chars: u32,
    /// The time at which tool results are compressed.
    pub compress: Option<Compress>,
    /// The size of the compressed form, by kind of result.
    pub compress_limits: CompressLimits,
    /// Newest rounds that compaction leaves alone.
    pub keep_rounds: u32,
    /// Newest blocks that compaction leaves alone when it archives parts of the newest rounds.
    pub keep_blocks: u32,
    /// Share from which compaction is due.
    pub compact_at: f64,
    /// The size that `compact_at` is a share of.
    pub compact_of: ShareOf,
    /// Share from which compaction is due if the prefix is sent anew anyway; applies to `compress =
    /// "when-free"`.
    pub compact_cold_at: f64,
    /// Share of the usable window that an archive must free.
    pub compact_frees: f64,
    /// Messages below which compaction is never due.
    pub compact_min_messages: u32,
    /// If true, descriptions of the project's folders are sent, and rewritten after turns that
    /// changed files.
    pub active: bool,
    /// Seconds a summary may take.
    pub summary_timeout: u32,
    /// Maximum files mentioned with `@` that the model is told to read.
    pub mentions: u32,
    /// Share of the usable window from which more is left out than by pruning.
    pub ladder_at: f64,
    /// Share of the usable window that leaving out older rounds and steps aims at.
    pub ladder_to: f64,
    /// Share of the usable window from which haft warns about the size of a request.
    pub warn_at: f64,
    /// Tokens from which haft warns about the size of the system layer.
    pub system_warn: u32,
    /// Share of the window kept free for the reply when the model's maximum output is unknown.
    pub output_reserve: f64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            reminders: Placement::default(),
            max_distance: 24,
            message_ids: MessageIds::default(),
            prompt_language: PromptLanguage::default(),
            view: View::default(),
            dialogue: 30,
            clock: false,
            safe_zone: None,
            prune_to: None,
            prune_keep: None,
            prune_argument_chars: 500,
            compress: None,
            compress_limits: CompressLimits::default(),
            keep_rounds: 10,
            keep_blocks: 20,
            compact_at: 0.85,
            compact_of: ShareOf::default(),
            compact_cold_at: 0.6,
            compact_frees: 0.2,
            compact_min_messages: 3,
            active: false,
            summary_timeout: 120,
            mentions: 5,
            ladder_at: 0.9,
            ladder_to: 0.8,
            warn_at: 0.8,
            system_warn: 30_000,
            output_reserve: 0.3,
        }
    }
}

impl Policy {
    /// Returns the model's window without the reserve for the reply, in the model's own tokens.
    pub fn usable_window(&self, model: &ModelSpec) -> u32 {
        model
            .context_window
            .saturating_sub(model.output_reserve(self.output_reserve))
    }

    /// Returns the tokens above which a request to this model is pruned, in the model's own tokens.
    pub fn safe_zone_tokens(&self, model: &ModelSpec) -> Result<u64, SafeZoneError> {
        self.reduction(model)
            .safe_zone
            .to_tokens(model.context_window, self.usable_window(model))
    }

    /// Returns the hash of all settings: requests built under different settings may differ for
    /// that reason alone.
    pub fn hash(&self) -> ContentHash {
        // A policy is plain numbers and names, so writing it cannot fail.
        ContentHash::from_content(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// The layout of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// Message by message, in layers.
    #[default]
    Layered,
    /// Four messages: rules, dialogue, window, state.
    Execute,
}

/// The messages that show their id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageIds {
    /// None.
    #[default]
    Off,
    /// Tool results.
    Results,
    /// Every message of the conversation.
    All,
}

/// The size that a share refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// The window without the reserve for the reply.
    #[default]
    Usable,
    /// The whole window.
    Window,
}

/// The time at which results are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compress {
    /// From the first request of the next round on.
    RoundEnd,
    /// As soon as compression costs nothing or pays: the prefix is cold or rewritten anyway, the
    /// safe zone is exceeded, or the tokens saved are worth more than the break. Other waiting
    /// reductions are made with it.
    #[default]
    WhenFree,
    /// Never.
    Never,
}

impl Compress {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundEnd => "round-end",
            Self::WhenFree => "when-free",
            Self::Never => "never",
        }
    }
}

/// The settings of one compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Compression {
    pub(crate) limits: CompressLimits,
    /// The model's tool protocol. A text protocol that takes results as JSON gets the whole result
    /// on one line.
    pub(crate) protocol: ToolProtocol,
}

/// The part of each kind of result that is kept, in lines or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompressLimits {
    /// Entries of a listing.
    pub list: u32,
    /// Paths of a glob.
    pub glob: u32,
    /// Matching lines of a search.
    pub grep: u32,
    /// Lines of a file.
    pub read: u32,
    /// Lines of a diff; of a longer one the head is kept, with its counts and ranges.
    pub edit: u32,
    /// Lines of a command's standard output, half from its head and half from its tail.
    pub stdout: u32,
    /// Last lines of a command's standard error.
    pub stderr: u32,
    /// Lines of any other result, half from its head and half from its tail.
    pub other: u32,
}

impl Default for CompressLimits {
    fn default() -> Self {
        Self {
            list: 20,
            glob: 10,
            grep: 5,
            read: 500,
            edit: 50,
            stdout: 10,
            stderr: 20,
            other: 40,
        }
    }
}

/// The error for a setting with which no request can be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`context.{key} = {value}` is not {expected}")]
pub struct PolicyError {
    pub key: &'static str,
    pub value: f64,
    /// The allowed range.
    pub expected: &'static str,
}

impl Policy {
    /// Returns the first problem that the types cannot rule out, such as a share above 1.
    pub fn validate(&self) -> Result<(), PolicyError> {
        self.find_problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// Lists the settings that fit their types but with which no request can be built.
    pub fn find_problems(&self) -> Vec<PolicyError> {
        let shares = [
            ("prune_to", self.prune_to.unwrap_or(1.0)),
            ("compact_at", self.compact_at),
            ("compact_cold_at", self.compact_cold_at),
            ("compact_frees", self.compact_frees),
            ("ladder_at", self.ladder_at),
            ("ladder_to", self.ladder_to),
            ("warn_at", self.warn_at),
        ];
        let is_share = |value: f64| value > 0.0 && value <= 1.0;
        let wrong = shares.into_iter().filter(|(_, value)| !is_share(*value));
        let expected = "above 0 and at most 1";
        let mut problems: Vec<_> = wrong
            .map(|(key, value)| PolicyError {
                key,
                value,
                expected,
            })
            .collect();
        let reserve = self.output_reserve;
        if !(0.0..1.0).contains(&reserve) {
            problems.push(PolicyError {
                key: "output_reserve",
                value: reserve,
                expected: "from 0 to below 1",
            });
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_rejects_unknown_keys_and_values() {
        let policy: Policy =
            serde_json::from_str(r#"{"reminders": "from-end:5", "warn_at": 0.5}"#).unwrap();
        assert_eq!(
            policy,
            Policy {
                reminders: Placement::FromEnd(5),
                warn_at: 0.5,
                ..Policy::default()
            }
        );
        policy.validate().unwrap();
        assert!(serde_json::from_str::<Policy>(r#"{"remindres": "tail"}"#).is_err());
        assert!(serde_json::from_str::<Policy>(r#"{"reminders": "nowhere"}"#).is_err());
    }

    #[test]
    fn check_rejects_shares_outside_their_range() {
        let wrong = |policy: Policy| policy.validate().unwrap_err().to_string();
        let message = wrong(Policy {
            ladder_at: 90.0,
            ..Policy::default()
        });
        assert_eq!(
            message,
            "`context.ladder_at = 90` is not above 0 and at most 1"
        );
        assert!(
            wrong(Policy {
                warn_at: f64::NAN,
                ..Policy::default()
            })
            .contains("warn_at")
        );
        assert!(
            wrong(Policy {
                output_reserve: 1.0,
                ..Policy::default()
            })
            .contains("output_reserve")
        );
    }
    #[test]
    fn docs_list_every_key_with_its_default() {
        let mut keys = Vec::new();
        for (key, value) in serde_json::to_value(Policy::default())
            .unwrap()
            .as_object()
            .unwrap()
        {
            match value.as_object() {
                Some(inner) => {
                    keys.extend(
                        inner
                            .iter()
                            .map(|(inner, value)| format!("| `{key}.{inner}` | `{value}` |")),
                    );
                }
                None if value.is_null() => {
                    keys.push(format!(
                        "| `{key}` | [by the model](#what-is-cleared-and-when) |"
                    ));
                }
                None => keys.push(format!("| `{key}` | `{value}` |")),
            }
        }
        let page = include_str!("../../../../docs/context.md");
        let (_, settings) = page.split_once("## Settings").unwrap();
        let listed = settings.lines().filter(|line| line.starts_with("| `"));
        let mut listed: Vec<_> = listed
            .map(|row| row.splitn(4, '|').take(3).collect::<Vec<_>>().join("|") + "|")
            .collect();
        keys.sort();
        listed.sort();
        assert_eq!(listed, keys);
    }
}
