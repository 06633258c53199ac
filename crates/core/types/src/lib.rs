//! The shared vocabulary of haft: messages and their parts, requests and their segments, events,
//! usage, prices, ids.
//!
//! Every type here is a plain serializable value. This crate does no I/O, is not async, reads no
//! clock and makes no random numbers: other crates receive a [`Clock`] and an [`IdSource`].
//!
//! Read first: [`Message`] (what is stored), [`Request`] (what is sent), [`Event`] (what is shown).
//!
//! ```
//! use haft_types::{ContentHash, Message, MessageId, Part, Role, Timestamp};
//!
//! let id = MessageId::from_hash(ContentHash::from_content(b"the first"));
//! let content = vec![Part::from_text("Fix the "), Part::from_text("bug.")];
//! let message = Message::new(id, Role::User, content, Timestamp::UNIX_EPOCH);
//! assert_eq!(message.joined_text(), "Fix the bug.");
//! assert_eq!(message.tool_calls().count(), 0);
//! ```

mod event;
mod form;
mod hash;
mod hook;
mod id;
mod mark;
mod message;
mod model;
mod notice;
mod outcome;
mod part;
mod permission;
mod price;
mod prompt;
mod request;
mod sandbox;
mod tool;
mod usage;

pub use event::{
    BudgetLayer, CallPhase, ChangeKind, CompactionPhase, Event, EventBody, SubagentPhase,
    TaskPhase, TurnResult,
};
pub use form::{Choice, Field, FieldKind, Form, FormOutcome};
pub use hash::{ContentHash, Hasher};
pub use hook::HookPoint;
pub use id::{Clock, ConversationId, IdSource, MessageId, ShortId, encode_file_name};
pub use mark::{MarkAction, MarkReport, TranscriptLine};
pub use message::{Entry, LlmMetadata, Message, Metadata, Origin, Role};
pub use model::{
    Api, CacheKind, CacheMatch, CacheRule, Capabilities, ModelProfile, ModelSpec, ToolProtocol,
};
pub use notice::find_notices_in;
pub use outcome::{Outcome, StopReason};
pub use part::{Image, Part, Thinking, ToolCall, ToolResult};
pub use permission::{
    Decision, PROTECTED_PATHS, PermissionMode, STEERING_FILES, UnknownMode, matches_listed_name,
};
pub use price::{Cost, CostSum, LongPrice, Price};
pub use prompt::{Prompt, PromptLanguage};
pub use request::{Layer, Request, Segment, SentSegment, TokenCounter, ToolSet};
pub use sandbox::{SandboxLayer, SandboxStatus};
pub use tool::{Envelope, ToolError, ToolSpec, ToolStatus};
pub use usage::{ToolShare, Usage};

/// A point in time, written as RFC 3339 in UTC.
pub use jiff::Timestamp;
