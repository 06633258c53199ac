//! haft for other programs: an agent for editors over the Agent Client Protocol, and a server of
//! tasks for other agents over MCP.
//!
//! The binary is behind [`Host`]: it opens sessions and knows what can be chosen. [`serve`] speaks
//! the protocol: what an editor sends is put in order by one dispatcher (`dispatch.rs`), which owns
//! the sessions (`live.rs`); what happens in a session is worded as the protocol has it (`updates.
//! rs`, `calls.rs`), and what a session asks goes to the editor (`approval.rs`, `editor.rs`,
//! `terminal.rs`).

mod approval;
mod calls;
mod diffs;
mod dispatch;
mod editor;
mod forms;
mod host;
mod lines;
mod live;
mod mcp_server;
mod options;
mod prompt;
mod replay;
mod terminal;
mod updates;

pub use dispatch::serve;
pub use host::{Host, HostError, ListedConversation, OfferedCommand, OpenRequest, WrittenPrompt};
pub use mcp_server::{
    DelegatedTask, DelegatedTasks, HttpAccess, RunRequest, TaskApproval, TaskError, TaskQuestion,
    TaskRuns, TaskServer, TaskState, TaskStatus, TaskView,
};
