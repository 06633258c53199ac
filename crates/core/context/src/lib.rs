//! The context engine: turns a conversation into the next request, with an account of the decisions
//! behind it.
//!
//! Everything here is a pure function. This crate is not async and must not read a clock, file,
//! environment or network: all input comes with the [`Snapshot`], and all decisions are returned in
//! the [`Assembly`]. Equal snapshots give equal requests, byte for byte.
//!
//! Read first: [`assemble()`] (the whole process), [`Snapshot`] (the input), [`Account`] (the
//! decisions), [`Policy`] (the settings).
//!
//! # A request
//!
//! ```
//! use haft_context::{
//!     Api, CacheRule, Capabilities, ContentHash, Entry, Message, MessageId, ModelProfile, ModelSpec, Policy,
//!     Reminders, Role, Snapshot, SystemInput, Timestamp, TokenCounter, ToolProtocol, ToolSet, assemble,
//!     render_system, system_entry,
//! };
//!
//! /// Counts a token per four bytes. Use the tokenizer of your model.
//! struct Bytes;
//!
//! impl TokenCounter for Bytes {
//!     fn count_text(&self, text: &str) -> u32 {
//!         text.len() as u32 / 4
//!     }
//! }
//!
//! // The model: its window, prices, cache rules and tool protocol.
//! let model = ModelSpec {
//!     provider: "mock".into(),
//!     name: "model".into(),
//!     api: Api::OpenaiChat,
//!     context_window: 200_000,
//!     max_output_tokens: Some(8_192),
//!     price: None,
//!     cache: CacheRule::default(),
//!     tool_protocol: ToolProtocol::Native,
//!     capabilities: Capabilities::default(),
//!     tokenizer_factor: 1.0,
//!     profile: ModelProfile::Full,
//! };
//!
//! // The messages of the conversation, counted and hashed once.
//! let counter = Bytes;
//! let id = |name: &str| MessageId::from_hash(ContentHash::from_content(name.as_bytes()));
//! let input = Message::from_text(id("input"), Role::User, "Why does the build fail?", Timestamp::UNIX_EPOCH);
//! let history = [Entry::new(input, &counter)];
//!
//! // The texts that are sent with them.
//! let policy = Policy::default();
//! let system = system_entry(render_system(&SystemInput::default())?, &counter);
//! let tools = ToolSet::new(Vec::new(), &counter);
//! let reminders = Reminders { todo: Some("- [ ] make the build pass".into()), ..Reminders::default() };
//!
//! let plain = Snapshot::new(&model, &policy, &system, &tools, &history, &counter);
//! let assembly = assemble(&Snapshot { reminders: Some(&reminders), ..plain })?;
//!
//! for segment in &assembly.request.segments {
//!     let message = &segment.entry.message;
//!     println!("{:<10} {:<14} {}", segment.layer, segment.owner, message.joined_text().lines().next().unwrap_or(""));
//! }
//! println!("{}", assembly.account.budget.format_table());
//! # let owners: Vec<_> = assembly.request.segments.iter().map(|segment| segment.owner).collect();
//! # assert_eq!(owners, ["system", "current", "reminder:todo"]);
//! # Ok::<(), haft_context::ContextError>(())
//! ```
//!
//! # The price of a request
//!
//! A [`CacheSimulator`] bills requests as a provider with a prefix cache would: it keeps what each
//! request stored, and divides the next one into tokens that are read from the cache, written to
//! it, and neither. A real reply reports these numbers itself.
//!
//! ```
//! use std::time::Duration;
//!
//! use haft_context::{CachePiece, CacheRule, CacheSimulator, ContentHash, Price, Usage};
//!
//! let piece = |text: &str, tokens| CachePiece {
//!     hash: ContentHash::from_content(text.as_bytes()),
//!     tokens,
//!     blocks: 1,
//!     boundary: false,
//! };
//! let first = [piece("tools", 2_000), piece("system", 3_000), piece("question", 1_000)];
//! let second = [&first[..], &[piece("answer", 500), piece("next question", 500)]].concat();
//!
//! let mut cache = CacheSimulator::new(&CacheRule::default());
//! assert_eq!(cache.send_request(Duration::ZERO, &first).cached_input, 0);
//! let usage: Usage = cache.send_request(Duration::from_secs(30), &second);
//! assert!(usage.cached_input > 5_000);
//!
//! let price = Price { input: 3.0, cached_input: Some(0.3), cache_write: None, output: 15.0, long: None };
//! assert!(price.request_cost(usage).total < 0.01);
//! ```
//!
//! For a whole conversation, pass [`request_pieces`] of each [`Assembly`];
//! `examples/price-requests` in the repository does. [`PrefixCache`] quotes the price of a change
//! before it is made.
//!
//! # Layers
//!
//! ```text
//! system      one message: role, tool use, capabilities, rules, …          render_system
//! documents   a pair per kind: the text, then "I have read …"              Documents
//! history     summaries, then the messages that are left                   repair_blocks, compression, pruning, compaction
//!   run       reminders, somewhere in the history                          Reminders, Placement
//! current     the user's input that is being answered
//! history     its tool calls and results, whole until the round ends
//! ```
//!
//! # Steps
//!
//! ```text
//! blocks → rounds → pins → archive → marks → edits → compress → prune → hints → ladder → layers and run → integrity → prefix → budget
//! ```
//!
//! No step splits a block (an assistant message with calls, `A`, and its results, `T`):
//!
//! ```text
//! stored   U A T₁ U' T₂ …                 a message stored inside a block
//! sent     U A T₁ T₂ U' …                 is sent after it
//! stored   U A T₁ | crash                 a missing result
//! sent     U A T₁ ⚠                       becomes one that reports the interruption
//! ```
//!
//! The run is near the end, where models read best, but never inside a block:
//!
//! ```text
//! after-tool-result:3      U A T A T A T A T        →  U A T A T * A T A T
//!                          U A T T T A T            →  U * A T T T A T
//! ```
//!
//! Results are whole while their round runs (`T`), compressed afterwards (`t`), and cleared, oldest
//! first, when the request exceeds the safe zone (`·`):
//!
//! ```text
//! round 1 runs             U A T A T
//! round 2 runs             U A t A t a U A T
//! above the safe zone      U A · A · a U A T
//! after compaction         Σ U A T                 Σ replaces the archived rounds
//! ```
//!
//! A request only appends to the previous one; otherwise [`Account::prefix`] gives the cause, the
//! position and the price of the break:
//!
//! ```text
//! last   S ¹ U A T ² * A T                ¹ ² marks where the provider can find the prefix again
//! now    S ¹ U A T A T ² * A T            broken where the run was: it moved, and A T is sent anew
//! ```
//!
//! # From one request to the next
//!
//! [`assemble()`] keeps no state. Four optional values connect one request to the next:
//! [`Account::sent`] (pass it as [`Snapshot::last`]), [`Account::cleared`] and [`Account::carried`]
//! (store them, and pass them as [`Snapshot::cleared`] and [`Snapshot::carried`]), and a [`Memo`],
//! which only saves work.

mod account;
mod assemble;
mod budget;
mod build;
mod cache;
mod carried;
mod error;
mod memo;
mod policy;
mod reduce;
mod scale;
mod snapshot;

#[cfg(test)]
mod testing;

pub use account::{Account, Assembly, Warning};
pub use assemble::assemble;
pub use budget::Budget;
pub use build::blocks::{Blocks, Repair, interrupted_result, repair_blocks};
pub use build::documents::{Document, DocumentKind, Documents, Need};
pub use build::folder_description::{ChangedFile, FolderChange, build_folder_description_request};
pub use build::hints::{HintFilter, strip_hints};
pub use build::mentions::{AttachedText, MentionKind, MentionTools, append_mentions, user_text};
pub use build::placement::{Placement, UnknownPlace};
pub use build::reminders::{
    FolderNotes, ListOwner, MissingRole, Reminders, RoleParts, Todo, TodoProgress, UsefulRange,
    add_reminder_tag, check_subagent_role, format_folder_notes, format_todo_list,
    format_useful_ranges, strip_reminder_tag,
};
pub use build::system::{
    Environment, PromptSections, RoleText, SystemInput, SystemSection, render_small_system,
    render_system, system_entry,
};
pub use build::title::build_title_request;
pub use build::transcript::{Labels, render_transcript};
pub use build::vision::build_vision_request;
pub use cache::prefix::{Break, Cause, Prefix, Sent};
pub use cache::pricing::{
    BreakPrice, BrokenInput, EarlierRequest, LoggedInput, PriceBasis, compare_logged_requests,
    estimate_new_tokens,
};
pub use cache::quote::{ContextChange, PrefixCache, Quote, RemovalQuotes};
pub use cache::simulate::{CachePiece, CacheSimulator, request_pieces};
pub use carried::{Carried, Cleared, ReminderCopy};
pub use error::{ContextError, IntegrityError};
pub use memo::Memo;
pub use policy::{
    Compress, CompressLimits, MessageIds, Policy, PolicyError, Reduction, ReductionReason, ShareOf,
    View,
};
pub use reduce::compaction::{
    ArchiveWish, CompactionPlan, Due, SummaryRefusal, SummaryWish, build_summary_request,
    compaction_due, first_kept_of_summary, has_round_grown, is_too_early, new_summary_message,
    plan_compaction,
};
pub use reduce::compress::{TOOL_NAME_KEY, compress_envelope};
pub use reduce::edits::{
    ContextEdit, EditError, EditReach, EditState, EditTargets, Edited, Edits, block_ends,
    check_edit, select_messages,
};
pub use reduce::excerpt::excerpt_path;
pub use reduce::ladder::LadderStep;
pub use reduce::marks::{Marks, list_messages};
pub use reduce::safe_zone::{SafeZone, SafeZoneError};
pub use reduce::summary_check::{
    LedgerItem, LedgerKind, OpenWork, accept_summary, build_fallback_summary, collect_ledger,
    find_missing,
};
pub use reduce::superseded::{CHANGED_FILES_KEY, CallSubject};
pub use reduce::when_free::PrefixEdit;
pub use snapshot::{ExecutionState, PlanStep, Snapshot, is_cold};

// The values that requests consist of, so that a program can depend on this crate alone.
pub use haft_types::{
    Api, CacheKind, CacheMatch, CacheRule, Capabilities, ContentHash, Cost, Entry, Envelope, Image,
    Layer, LlmMetadata, LongPrice, Message, MessageId, ModelProfile, ModelSpec, Part, Price,
    Request, Role, Segment, Thinking, Timestamp, TokenCounter, ToolCall, ToolProtocol, ToolResult,
    ToolSet, ToolSpec, Usage,
};
