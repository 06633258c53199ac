//! The context engine: from a conversation to the next request, and an account of it.
//!
//! Everything here is a pure function. This crate is not async and reads no clock, file, environment or network: what it
//! needs comes in with the [`Snapshot`], what it decides comes out with the [`Assembly`]. The same snapshot gives the same
//! request, byte for byte.
//!
//! Read first: [`assemble`] (the whole way), [`Snapshot`] (what goes in), [`Account`] (what comes out besides the request),
//! [`Policy`] (what can be configured).
//!
//! # A request
//!
//! ```
//! use haft_context::{Policy, Reminders, Snapshot, SystemInput, assemble, render_system, system_entry};
//! # use haft_types::{Api, CacheRule, Capabilities, ContentHash, Entry, Message, MessageId, ModelSpec, Role};
//! # use haft_types::{Timestamp, TokenCounter, ToolProtocol, ToolSet};
//! # struct Bytes;
//! # impl TokenCounter for Bytes {
//! #     fn text(&self, text: &str) -> u32 { text.len() as u32 / 4 }
//! # }
//! # let model = ModelSpec {
//! #     provider: "mock".into(), name: "model".into(), api: Api::OpenaiChat, context_window: 200_000,
//! #     max_output_tokens: Some(8_192), price: None, cache: CacheRule::default(),
//! #     tool_protocol: ToolProtocol::Native, capabilities: Capabilities::default(), tokenizer_factor: 1.0,
//! # };
//! # let counter = Bytes;
//! # let id = |name: &str| MessageId::derived(ContentHash::of(name.as_bytes()));
//! // What the conversation holds, counted and hashed once.
//! let input = Message::text(id("input"), Role::User, "Why does the build fail?", Timestamp::UNIX_EPOCH);
//! let history = [Entry::new(input, &counter)];
//!
//! // What is sent besides it.
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
//! println!("{}", assembly.account.budget.table());
//! # let owners: Vec<_> = assembly.request.segments.iter().map(|segment| segment.owner).collect();
//! # assert_eq!(owners, ["system", "current", "reminder:todo"]);
//! # Ok::<(), haft_context::ContextError>(())
//! ```
//!
//! # Layers
//!
//! ```text
//! system      one message: role, tool use, capabilities, rules, …          render_system
//! documents   a pair a kind: the text, then "I have read …"                Documents
//! history     summaries, then the messages that survive                    repair, compress, prune, compaction
//!   run       reminders, somewhere among the history                       Reminders, Place
//! current     the user's input that is being answered
//! history     its tool calls and results, whole until the round ends
//! ```
//!
//! # The way
//!
//! ```text
//! blocks → rounds → pins → archive → marks → edits → compress → prune → hints → ladder → layers and run → integrity → prefix → budget
//! ```
//!
//! A block (an assistant message with calls, `A`, and its results, `T`) is never split, by anything:
//!
//! ```text
//! stored   U A T₁ U' T₂ …                 a message caught inside a block
//! sent     U A T₁ T₂ U' …                 is sent after it
//! stored   U A T₁ | crash                 a result that never came
//! sent     U A T₁ ⚠                       says that it was interrupted
//! ```
//!
//! The run stands near the end, where models read best, but never inside a block:
//!
//! ```text
//! after-tool-result:3      U A T A T A T A T        →  U A T A T * A T A T
//!                          U A T T T A T            →  U * A T T T A T
//! ```
//!
//! Results are whole while their round runs (`T`), compressed afterwards (`t`), and cleared, oldest first, when the request
//! exceeds the safe zone (`·`):
//!
//! ```text
//! round 1 runs             U A T A T
//! round 2 runs             U A t A t a U A T
//! above the safe zone      U A · A · a U A T
//! after compaction         Σ U A T                 Σ stands for the archived rounds
//! ```
//!
//! Against the request before, a request only appends; otherwise [`Account::prefix`] names the cause, the place and the price:
//!
//! ```text
//! last   S ¹ U A T ² * A T                ¹ ² marks where the provider can find the prefix again
//! now    S ¹ U A T A T ² * A T            broken where the run was: it moved, and A T is sent anew
//! ```
//!
//! # From one request to the next
//!
//! [`assemble`] keeps nothing. Four values carry over, all optional: [`Account::sent`] (give it as [`Snapshot::last`]),
//! [`Account::cleared`] and [`Account::carried`] (give them as [`Snapshot::cleared`] and [`Snapshot::carried`], and store
//! them), and a [`Memo`], which only saves work.

mod account;
mod active;
mod assemble;
mod blocks;
mod boundaries;
mod budget;
mod compaction;
mod compress;
mod copies;
mod documents;
mod edits;
mod error;
mod gate;
mod hints;
mod input;
mod integrity;
mod ladder;
mod layers;
mod marks;
mod memo;
mod placement;
mod policy;
mod prefix;
mod pricing;
mod prune;
mod quote;
mod regret;
mod reminders;
mod replay;
mod rounds;
mod safe_zone;
mod scale;
mod simulate;
mod snapshot;
mod superseded;
mod surgery;
mod system;
mod transcript;
mod variant;
mod view;

#[cfg(test)]
mod testing;

pub use account::{Account, Assembly, Warning};
pub use active::{ChangedFile, FolderChange, active_request};
pub use assemble::assemble;
pub use blocks::{Blocks, Repair, interrupted, repair};
pub use budget::Budget;
pub use compaction::{
    CompactionPlan, Due, compaction_due, first_kept, plan_compaction, summary_message, summary_request,
};
pub use compress::{Compress, CompressLimits, TOOL, compress};
pub use copies::{Carried, ReminderCopy};
pub use documents::{Document, DocumentKind, Documents, Need};
pub use edits::{Chosen, ContextEdit, EditError, EditState, Edited, Edits, Reach, check_edit, choose};
pub use error::ContextError;
pub use gate::{LedgerItem, LedgerKind, Refusal, Standing, accept, fallback, ledger, missing};
pub use hints::{MessageIds, strip_hints};
pub use input::treat_input;
pub use integrity::IntegrityError;
pub use ladder::LadderStep;
pub use marks::{Marks, MessageLine, message_lines};
pub use memo::Memo;
pub use placement::{Place, UnknownPlace};
pub use policy::{Policy, PolicyError};
pub use prefix::{Break, Cause, Prefix, Sent, SentSegment, compare_logged};
pub use prune::Cleared;
pub use quote::{Change, PrefixCache, Quote};
pub use reminders::{
    FolderNotes, ListOwner, MissingRole, Progress, Reminders, RoleParts, Todo, UsefulRange, check_subagent_role,
    folder_notes_text, todo_text, useful_text,
};
pub use replay::{Beside, Coverage, Recording, Replay, Replayed, Step, coverage, replay};
pub use safe_zone::{SafeZone, SafeZoneError};
pub use simulate::{CacheSimulator, Piece, pieces};
pub use snapshot::{Snapshot, is_cold};
pub use surgery::Edit;
pub use system::{Environment, RoleText, SystemInput, render_system, system_entry};
pub use transcript::{Labels, transcript};
pub use variant::{UnknownVariant, VARIANTS, Variant};
pub use view::{ExecutionState, PlanStep, View};
