//! The `[context]` section of the configuration.

use haft_types::{ContentHash, ModelSpec, PromptLanguage, ToolProtocol};
use serde::{Deserialize, Serialize};

use crate::build::placement::Placement;
use crate::cache::idle::{IdleLimits, IdleMode};
use crate::reduce::safe_zone::{SafeZone, SafeZoneError};

mod reduction;

pub use reduction::{Reduction, ReductionReason};

/// The settings for building requests, which are the keys of the configuration section `[context]`.
/// Four of the settings depend on the model unless they are set: see [`Reduction`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The position of the reminders.
    pub reminders: Placement,
    /// The maximum number of messages between the reminders and the end of the request. Applies to
    /// `cache-aware`, and to `after-tool-result` if the user has written since the tool result.
    pub max_distance: u32,
    /// The messages that are sent with their ids. The model can refer to a message only by its id.
    pub message_ids: MessageIds,
    /// The language of haft's own texts for the model.
    pub prompt_language: PromptLanguage,
    /// The layout of the conversation.
    pub view: View,
    /// The number of newest utterances that the execute view shows.
    pub dialogue: u32,
    /// If true, the reminders contain the current date and time.
    pub clock: bool,
    /// The safe zone: requests with more tokens are pruned.
    pub safe_zone: Option<SafeZone>,
    /// The share of the safe zone to which pruning reduces a request. The lower the share, the less
    /// often pruning is needed.
    pub prune_to: Option<f64>,
    /// The number of newest results that pruning never clears.
    pub prune_keep: Option<u32>,
    /// The length in characters to which pruning cuts long string arguments.
    pub prune_argument_chars: u32,
    /// The time at which tool results are compressed.
    pub compress: Option<Compress>,
    /// The amount that compression keeps of each kind of result.
    pub compress_limits: CompressLimits,
    /// The number of newest rounds that compaction does not archive.
    pub keep_rounds: u32,
    /// The number of newest blocks that compaction keeps when it archives parts of the newest
    /// rounds.
    pub keep_blocks: u32,
    /// The share of `compact_of` at which compaction is due.
    pub compact_at: f64,
    /// The size to which the share `compact_at` refers.
    pub compact_of: ShareOf,
    /// The share of `compact_of` at which compaction is due if the prefix must be sent uncached
    /// anyway. Applies to `compress = "when-free"`.
    pub compact_cold_at: f64,
    /// The minimum share of the usable window that an archive must free.
    pub compact_frees: f64,
    /// The number of messages below which compaction is never due.
    pub compact_min_messages: u32,
    /// The minimum number of user inputs between two automatic archives.
    pub compact_min_inputs: u32,
    /// The minimum number of blocks between two automatic archives in a round that continues
    /// without input; `keep_blocks` if it is `None`. Half of them are enough if clearing tool
    /// results no longer frees enough space.
    pub compact_min_blocks: Option<u32>,
    /// If true, descriptions of the project's folders are sent, and rewritten after turns that
    /// changed files.
    pub active: bool,
    /// The time limit for writing a summary, in seconds.
    pub summary_timeout: u32,
    /// The maximum number of files mentioned with `@` that the model is asked to read.
    pub mentions: u32,
    /// The share of the usable window above which a request is reduced further than by pruning.
    pub ladder_at: f64,
    /// The share of the usable window to which a request is reduced by leaving out older rounds and
    /// steps.
    pub ladder_to: f64,
    /// The share of the usable window at which haft starts to warn about the size of a request.
    pub warn_at: f64,
    /// The number of tokens at which haft starts to warn about the size of the system layer.
    pub system_warn: u32,
    /// The share of the window that is kept free for the reply if the model's maximum output is
    /// unknown.
    pub output_reserve: f64,
    /// Controls whether keep-alive requests prolong the provider's cache while no request is sent.
    pub idle: IdleMode,
    /// The maximum number of keep-alive requests between two requests.
    pub idle_max_pings: u32,
    /// The maximum cost of the keep-alive requests between two requests, in USD.
    pub idle_max_usd: f64,
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
            compact_min_inputs: 5,
            compact_min_blocks: None,
            active: false,
            summary_timeout: 120,
            mentions: 5,
            ladder_at: 0.9,
            ladder_to: 0.8,
            warn_at: 0.8,
            system_warn: 30_000,
            output_reserve: 0.3,
            idle: IdleMode::default(),
            idle_max_pings: 6,
            idle_max_usd: 0.1,
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

    /// Returns the number of tokens above which a request to this model is pruned, in the model's
    /// own tokens.
    pub fn safe_zone_tokens(&self, model: &ModelSpec) -> Result<u64, SafeZoneError> {
        self.reduction(model)
            .safe_zone
            .to_tokens(model.context_window, self.usable_window(model))
    }

    /// Returns the minimum number of blocks between two automatic archives in a round that continues
    /// without input.
    pub(crate) fn min_blocks_between_archives(&self) -> usize {
        self.compact_min_blocks.unwrap_or(self.keep_blocks) as usize
    }

    /// Returns the limits of the keep-alive requests between two requests.
    pub fn idle_limits(&self) -> IdleLimits {
        IdleLimits {
            pings: self.idle_max_pings,
            usd: self.idle_max_usd,
        }
    }

    /// Returns the hash of all settings on which requests depend: requests built under different
    /// settings may differ for that reason alone.
    pub fn hash(&self) -> ContentHash {
        let Self {
            idle,
            idle_max_pings,
            idle_max_usd,
            ..
        } = Self::default();
        let settings = Self {
            idle,
            idle_max_pings,
            idle_max_usd,
            ..self.clone()
        };
        // A policy is plain numbers and names, so writing it cannot fail.
        ContentHash::from_content(&serde_json::to_vec(&settings).unwrap_or_default())
    }
}

/// The layout of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The conversation is sent message by message, in layers.
    #[default]
    Layered,
    /// The conversation is sent as four messages: rules, dialogue, window, state.
    Execute,
}

/// The choice of the messages that are sent with their id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageIds {
    /// No message shows its id.
    #[default]
    Off,
    /// Tool results show the id of their message.
    Results,
    /// Every message of the conversation shows its id.
    All,
}

/// The size that `compact_at` and `compact_cold_at` are shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// The share refers to the window without the reserve for the reply.
    #[default]
    Usable,
    /// The share refers to the whole window.
    Window,
}

/// The time at which results are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compress {
    /// Results are compressed from the first request of the next round on.
    RoundEnd,
    /// Results are compressed as soon as this costs nothing or pays off: the prefix is cold or
    /// rewritten anyway, the safe zone is exceeded, or the saved tokens are worth more than the
    /// cache break. Other reductions that were waiting are made in the same request.
    #[default]
    WhenFree,
    /// Results are never compressed.
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

/// The maximum number of lines or entries that compression keeps of each kind of result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompressLimits {
    /// The number of entries kept of a listing.
    pub list: u32,
    /// The number of paths kept of a glob.
    pub glob: u32,
    /// The number of matching lines kept of a search.
    pub grep: u32,
    /// The number of lines kept of a file.
    pub read: u32,
    /// The number of lines kept of a diff. A longer diff is cut to its head, and keeps its counts
    /// and ranges.
    pub edit: u32,
    /// The number of lines kept of a command's standard output, half from its head and half from
    /// its tail.
    pub stdout: u32,
    /// The number of last lines kept of a command's standard error.
    pub stderr: u32,
    /// The number of lines kept of any other result, half from its head and half from its tail.
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

/// The error for a setting whose value makes it impossible to build a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`context.{key} = {value}` is not {expected}")]
pub struct PolicyError {
    pub key: &'static str,
    pub value: f64,
    /// A description of the values that are allowed.
    pub expected: &'static str,
}

impl Policy {
    /// Returns an error for the first setting whose value has a valid type but is out of range,
    /// such as a share above 1.
    pub fn validate(&self) -> Result<(), PolicyError> {
        self.find_problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// Lists the settings whose values have a valid type but make it impossible to build a request.
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
        let wrong = shares
            .into_iter()
            .filter(|(_, value)| !(*value > 0.0 && *value <= 1.0));
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
        let usd = self.idle_max_usd;
        if !(usd >= 0.0 && usd.is_finite()) {
            problems.push(PolicyError {
                key: "idle_max_usd",
                value: usd,
                expected: "an amount of money, 0 or more",
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
                None if key == "compact_min_blocks" => {
                    keys.push(format!("| `{key}` | `keep_blocks` |"));
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
