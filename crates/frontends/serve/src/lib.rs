//! The local web page of haft: HTTP on loopback, access control, and the pages of the context
//! inspector.
//!
//! The server ([`serve`]) rejects clients without the token, other host names (a page elsewhere
//! whose name was bound to this machine), other origins, and forms that the site did not write; it
//! sends a policy under which no script, style or image from elsewhere is loaded. The pages
//! ([`Inspector`]) read the store and the request log themselves; for sessions they call functions
//! of the binary ([`InspectorActions`]). This crate reads no environment and starts no
//! session.
//!
//! Read first: [`serve`], [`Inspector`], [`Markup`].

/// Returns the message with this key in the user's language, for example `text!("serve-why", cause,
/// tokens, cost)`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::MESSAGES, $($message)+) };
}

mod access_guard;
mod actions;
mod computation;
mod error;
mod inspector;
mod markdown;
mod markup;
mod server;

use std::fmt::Display;

use haft_messages::MessageFile;

pub use access_guard::AccessToken;
#[cfg(feature = "lab")]
pub use actions::{CompareQuery, PolicyTable};
pub use actions::{
    EditQuery, EditQuote, EditableMessages, EditableQuery, InspectorActions, NextQuery,
    NextRequestDetails, PageAction, PageEdit,
};
pub use computation::ComputationWatch;
pub use error::PageError;
#[cfg(feature = "postgres")]
pub use inspector::OpenQueue;
pub use inspector::{Inspector, JobRow, PageComputations, PageRuns};
pub use markup::{Column, Markup, build_html_document, build_redirect_page};
pub use server::{
    FormAnswer, FormFields, PageRequest, Site, SiteImage, encode_path_segment, serve,
};

/// The messages of the pages, in English and Chinese. Every key begins with `serve`, the name of
/// the file.
static MESSAGES: [MessageFile; 1] = [MessageFile::new(
    "serve",
    include_str!("../messages/en/serve.ftl"),
    include_str!("../messages/zh-CN/serve.ftl"),
)];

/// Translates a text that a library provides in English to the user's language.
fn localize_text(text: impl Display) -> String {
    haft_messages::translate_error(&text.to_string()).into_owned()
}
