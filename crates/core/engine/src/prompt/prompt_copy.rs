//! The part of a session's prompt that a fork of the session copies.

use std::sync::Arc;

use haft_context::StatedPlace;
use haft_tool::Registry;
use haft_types::Entry;

use super::advertised::AdvertisedTools;
use super::documents::StandingDocuments;
use crate::session::config::PromptSettings;

/// The first bytes of a session's requests, for forks of the session: system message, tools and
/// documents.
pub(crate) struct PromptCopy {
    pub(super) registry: Registry,
    pub(super) advertised: AdvertisedTools,
    pub(super) system: Arc<Entry>,
    pub(super) documents: StandingDocuments,
    pub(super) place: StatedPlace,
    /// The settings from which the system message was rendered.
    pub(crate) settings: PromptSettings,
}
