//! The models for different roles.
//!
//! A role has a list of models: each further model is used while those before it are overloaded. A
//! role that is not set uses the models of the main role.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

/// Declares the roles in display order, each with its key.
macro_rules! roles {
    ($($(#[doc = $doc:literal])+ $role:ident, $key:ident $(or $alias:literal)?;)+) => {
        /// A purpose for which a model is called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ModelRole {
            $($(#[doc = $doc])+ $role,)+
        }

        impl ModelRole {
            /// All roles, in display order.
            pub const ALL: [Self; 12] = [$(Self::$role),+];

            /// Returns the key in `[model_roles]`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$role => stringify!($key),)+ }
            }
        }

        /// The `[model_roles]` section.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct ModelRoles {
            $(
                $(#[doc = $doc])+
                #[serde($(alias = $alias,)? deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
                pub $key: Vec<String>,
            )+
            /// True if the removed key `prune` is set. It never had an effect.
            #[serde(rename = "prune", deserialize_with = "ignore_value", skip_serializing)]
            pub sets_prune: bool,
        }

        impl ModelRoles {
            /// Returns the models configured for the role itself; empty if the role uses the main
            /// models.
            pub fn configured_models(&self, role: ModelRole) -> &[String] {
                match role { $(ModelRole::$role => &self.$key,)+ }
            }
        }
    };
}

roles! {
    /// Doing the main work; also used for every role without models of its own.
    Main, main;
    /// Running the coding agent.
    Code, code;
    /// Answering in conversations without tools.
    Chat, chat;
    /// Summarizing archived rounds.
    Summary, summary;
    /// Running sub-agents.
    SubAgent, sub_agent or "sub-agent";
    /// Naming conversations at the terminal; named after the first prompt if not set.
    Title, title;
    /// Describing folders; the models for summaries if not set.
    Index, index;
    /// Computing the embedding vectors of texts.
    Embedding, embedding;
    /// Describing images for a main model that cannot process images.
    Vision, vision;
    /// Answering in plan mode.
    Planner, planner;
    /// Running the built-in sub-agent `designer`.
    Designer, designer;
    /// Writing commit messages.
    Commit, commit;
}

/// Accepts any value of a removed key, and returns true.
fn ignore_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Deserializes one name or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a model such as \"openai/gpt-5\", or a list of them"
    )]
    enum Names {
        One(String),
        More(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::More(names) => names,
    })
}
