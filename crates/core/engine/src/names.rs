//! The names the engine itself must know: of the main agent, and of tools that steer the turn or
//! what is sent.

/// The agent the user talks to.
pub const MAIN: &str = "main";

/// Precedes the arguments of a call, in its result, where they are not the model's: a hook or the
/// user has changed them.
pub const CHANGED_NOTE: &str = "\n\nNote: the call ran with other arguments than yours: ";

/// Asks the user.
pub(crate) const ASK: &str = "ask_followup_question";
/// Puts a plan before the user.
pub(crate) const PLAN: &str = "plan_mode_respond";
/// Reports the task as done.
pub(crate) const COMPLETE: &str = "attempt_completion";
/// Reads a file.
pub(crate) const READ: &str = "read_file";
/// Writes a whole file.
pub(crate) const WRITE: &str = "write_to_file";
/// Runs a command line.
pub(crate) const EXECUTE: &str = "execute_command";
/// Those about module documents.
pub(crate) const OF_MODULES: [&str; 3] = ["ac_mod_list", "ac_mod_read", "ac_mod_write"];
/// Changes the TODO list, which is the main agent's.
pub(crate) const TODO_WRITE: &str = "todo_write";
/// Reads a skill.
pub(crate) const USE_SKILL: &str = "use_skill";
/// Finds tools that are not offered.
pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// The heading of the list of agents that run.
pub(crate) const AVAILABLE_AGENTS: &str = "AVAILABLE_AGENTS";
/// The heading of the list of groups.
pub(crate) const AVAILABLE_GROUPS: &str = "AVAILABLE_GROUPS";
/// The heading of the list of agents that can be started.
pub(crate) const NAMED_AGENTS: &str = "Named agents";

/// Tools that a session has only where there is something for them: agents, groups, skills,
/// servers, collections, the web.
pub(crate) const WHERE_NEEDED: [&str; 9] = [
    "run_named_subagents",
    "talk_to",
    "talk_to_group",
    USE_SKILL,
    PLAN,
    "use_mcp_tool",
    "use_rag_tool",
    "web_search",
    "web_crawl",
];
