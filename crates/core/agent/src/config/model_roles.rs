//! Which model does what.
//!
//! A role is one model, or several of which the later ones are asked while those before have too much to do. A role that is
//! not set is played by the main model and those in its place.

use serde::{Deserialize, Deserializer, Serialize};

/// Something a model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelRole {
    /// The work itself, and everything no other role is set for.
    Main,
    /// The coding agent.
    Code,
    /// Talk without tools.
    Chat,
    /// Summaries of archived rounds.
    Summary,
    /// What to leave out of a request.
    Prune,
    /// Agents that an agent starts.
    SubAgent,
    /// Names of conversations.
    Title,
    /// Descriptions of documents.
    Index,
    /// Vectors of texts.
    Embedding,
    /// Images.
    Vision,
    /// Plans.
    Planner,
    /// Designs.
    Designer,
    /// Messages of commits.
    Commit,
}

impl ModelRole {
    /// All of them, in the order they are shown.
    pub const ALL: [Self; 13] = [
        Self::Main,
        Self::Code,
        Self::Chat,
        Self::Summary,
        Self::Prune,
        Self::SubAgent,
        Self::Title,
        Self::Index,
        Self::Embedding,
        Self::Vision,
        Self::Planner,
        Self::Designer,
        Self::Commit,
    ];

    /// Whether anything in this build asks a model in this role. One that is set and never asked is told of.
    pub fn is_asked(self) -> bool {
        match self {
            Self::Main | Self::Code | Self::Chat | Self::Summary | Self::SubAgent | Self::Commit => true,
            Self::Prune
            | Self::Title
            | Self::Index
            | Self::Embedding
            | Self::Vision
            | Self::Planner
            | Self::Designer => false,
        }
    }

    /// The key in `[model_roles]`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Code => "code",
            Self::Chat => "chat",
            Self::Summary => "summary",
            Self::Prune => "prune",
            Self::SubAgent => "sub_agent",
            Self::Title => "title",
            Self::Index => "index",
            Self::Embedding => "embedding",
            Self::Vision => "vision",
            Self::Planner => "planner",
            Self::Designer => "designer",
            Self::Commit => "commit",
        }
    }
}

/// The `[model_roles]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRoles {
    /// The main model and those in its place.
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub main: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    code: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    chat: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    summary: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    prune: Vec<String>,
    #[serde(alias = "sub-agent", deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    sub_agent: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    title: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    index: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    embedding: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    vision: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    planner: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    designer: Vec<String>,
    #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    commit: Vec<String>,
}

impl ModelRoles {
    /// Gives the coding agent back to the main model.
    pub(super) fn clear_code(&mut self) {
        self.code.clear();
    }

    /// The models set for a role itself; empty when the main ones play it.
    pub fn own(&self, role: ModelRole) -> &[String] {
        match role {
            ModelRole::Main => &self.main,
            ModelRole::Code => &self.code,
            ModelRole::Chat => &self.chat,
            ModelRole::Summary => &self.summary,
            ModelRole::Prune => &self.prune,
            ModelRole::SubAgent => &self.sub_agent,
            ModelRole::Title => &self.title,
            ModelRole::Index => &self.index,
            ModelRole::Embedding => &self.embedding,
            ModelRole::Vision => &self.vision,
            ModelRole::Planner => &self.planner,
            ModelRole::Designer => &self.designer,
            ModelRole::Commit => &self.commit,
        }
    }
}

/// A name, or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a model such as \"openai/gpt-5\", or a list of them")]
    enum Names {
        One(String),
        More(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::More(names) => names,
    })
}
