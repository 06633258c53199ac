//! Reads the request log back: the requests that were sent, their differences, the breaks of the
//! cached prefix, and a picture of all requests. `haft context` prints them, and the pages of
//! `haft serve` show them.
//!
//! Requests of imported conversations are rebuilt from their messages, and those of the recording
//! proxy are read like haft's own. This crate must not print, read the environment or open a
//! session.
//!
//! Read first: [`RequestLogReader`] (a log), [`RequestDiff`], [`find_breaks`], [`draw_picture`].

/// Returns a message of `messages/LANGUAGE` by its key: `text!("inspect-breaks", number)`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::MESSAGES, $($message)+) };
}

mod error;
mod imported_requests;
mod message_text;
mod prefix_breaks;
mod proxy_records;
mod request_diff;
mod request_log;
mod request_view;
mod timeline_picture;

use std::fmt::Display;

use haft_messages::MessageFile;

pub use error::InspectError;
pub use imported_requests::ImportedRequests;
pub use message_text::{Countable, format_count, full_message_text, message_opening, part_to_text};
pub use prefix_breaks::{PrefixBreakReport, find_breaks};
pub use proxy_records::{recorded_model, to_readable};
pub use request_diff::RequestDiff;
pub use request_log::{
    RequestLogReader, collect_offered_tools, declare_unknown_model, placeholder_url,
    rebuild_request,
};
pub use request_view::{RequestView, SegmentView, TextExtent, next_request_title};
pub use timeline_picture::{
    PICTURE_STYLE, PictureOptions, RequestColumn, draw_picture, summarize_columns,
};

/// The messages about requests. Every key begins with the name of its file.
static MESSAGES: [MessageFile; 1] = [MessageFile::new(
    "inspect",
    include_str!("../messages/en/inspect.ftl"),
    include_str!("../messages/zh-CN/inspect.ftl"),
)];

/// Translates an English text of a library to the user's language.
fn localize_text(text: impl Display) -> String {
    haft_messages::translate_error(&text.to_string()).into_owned()
}
