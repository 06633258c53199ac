//! Runs haft for other programs: as an agent for editors over the Agent Client Protocol, and as an
//! MCP server to which other agents delegate tasks.
//!
//! This crate must not read the configuration, the environment or the store. The binary implements
//! [`Host`], which opens sessions and lists the models, modes and conversations.
//!
//! Read [`serve`] first: one dispatcher (`dispatch.rs`) handles an editor's messages in order and
//! owns the sessions (`live_session.rs`). Session events become protocol updates (`updates.rs`,
//! `tool_calls.rs`), and a session's approvals, files and commands go to the editor (`approval.rs`,
//! `editor_files.rs`, `terminal.rs`). [`TaskServer`] is the MCP server.

mod approval;
mod diffs;
mod dispatch;
mod editor_files;
mod forms;
mod host;
mod live_session;
mod mcp_server;
mod options;
mod prompt;
mod replay;
mod stdio_lines;
mod terminal;
mod tool_calls;
mod updates;

pub use dispatch::serve;
pub use host::{Host, HostError, ListedConversation, OfferedCommand, OpenRequest, WrittenPrompt};
pub use mcp_server::{
    DelegatedTask, DelegatedTasks, HttpAccess, RunRequest, TaskApproval, TaskError, TaskQuestion,
    TaskRuns, TaskServer, TaskState, TaskStatus, TaskView,
};
