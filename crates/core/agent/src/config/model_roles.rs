//! Which model does what.
//!
//! A role is one model, or several of which the later ones are asked while those before have too
//! much to do. A role that is not set is played by the main model and those in its place.

use serde::{Deserialize, Deserializer, Serialize};

/// Declares the roles in the order they are shown: each with its key, and whether anything in this
/// build asks it.
macro_rules! roles {
    ($($(#[doc = $doc:literal])+ $role:ident, $key:ident $(or $alias:literal)?, $asked:literal;)+) => {
        /// Something a model is asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ModelRole {
            $($(#[doc = $doc])+ $role,)+
        }

        impl ModelRole {
            /// All of them, in the order they are shown.
            pub const ALL: [Self; 13] = [$(Self::$role),+];

            /// Whether anything in this build asks a model in this role. One that is set and never asked is told of.
            pub fn is_asked(self) -> bool {
                match self { $(Self::$role => $asked,)+ }
            }

            /// The key in `[model_roles]`.
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
        }

        impl ModelRoles {
            /// The models set for a role itself; empty when the main ones play it.
            pub fn own(&self, role: ModelRole) -> &[String] {
                match role { $(ModelRole::$role => &self.$key,)+ }
            }
        }
    };
}

roles! {
    /// The work itself, and everything no other role is set for.
    Main, main, true;
    /// The coding agent.
    Code, code, true;
    /// Talk without tools.
    Chat, chat, true;
    /// Summaries of archived rounds.
    Summary, summary, true;
    /// What to leave out of a request.
    Prune, prune, false;
    /// Agents that an agent starts.
    SubAgent, sub_agent or "sub-agent", true;
    /// Names of conversations.
    Title, title, false;
    /// Descriptions of documents.
    Index, index, false;
    /// Vectors of texts.
    Embedding, embedding, true;
    /// Images.
    Vision, vision, true;
    /// Plans.
    Planner, planner, false;
    /// Designs.
    Designer, designer, false;
    /// Messages of commits.
    Commit, commit, true;
}

/// A name, or a list of names.
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
