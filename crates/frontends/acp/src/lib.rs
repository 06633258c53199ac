//! Runs haft for other programs: as an agent for editors over the Agent Client Protocol, and as an
//! MCP server to which other agents delegate tasks.
//!
//! A [`Host`] opens sessions through `agent`, and lists models, modes and conversations. The binary
//! implements [`Program`]: it loads the configuration and knows the extensions of its build. This
//! crate must not read configuration files or the environment.
//!
//! Read [`serve`] first: one dispatcher (`dispatch.rs`) handles an editor's messages in order and
//! owns the sessions (`live_session.rs`). Session events become protocol updates (`updates.rs`,
//! `tool_calls.rs`), and a session's approvals, files and commands go to the editor (`approval.rs`,
//! `editor_files.rs`, `terminal.rs`). [`TaskServer`] is the MCP server.

mod approval;
mod attached_session;
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
mod steady_file;
mod terminal;
mod tool_calls;
mod updates;

pub use dispatch::serve;
pub use host::{
    Host, HostConfig, HostError, ListedConversation, OfferedCommand, OpenRequest, Program,
    WrittenPrompt,
};
pub use mcp_server::{
    AttachedTask, AttachedTasks, DelegatedTask, DelegatedTasks, FollowedState, HttpAccess,
    RunRequest, TaskApproval, TaskCaller, TaskError, TaskQuestion, TaskRuns, TaskServer, TaskState,
    TaskStatus, TaskView,
};
