//! Names that the engine itself depends on: of the main agent, of tools that steer the turn or
//! affect the request, of headings in prompts, and the notes and metadata keys by which a replay
//! recognizes messages.

use haft_types::{Prompt, prompt};

/// The name of the agent that the user talks to.
pub const MAIN_AGENT: &str = "main";

/// Precedes the arguments in the result of a call whose arguments were changed by a hook or the
/// user.
pub const CHANGED_ARGUMENTS_NOTE: &str = "\n\nNote: the call ran with other arguments than yours: ";

pub(crate) const ASK_TOOL: &str = "ask_followup_question";
/// The tool that presents a plan to the user.
pub(crate) const PLAN_TOOL: &str = "plan_mode_respond";
/// The tool that reports the task as done.
pub(crate) const COMPLETE_TOOL: &str = "attempt_completion";
pub(crate) const READ_TOOL: &str = "read_file";
pub(crate) const WRITE_TOOL: &str = "write_to_file";
pub(crate) const EXECUTE_TOOL: &str = "execute_command";
/// The tools for module documents.
pub(crate) const MODULE_TOOLS: [&str; 3] = ["ac_mod_list", "ac_mod_read", "ac_mod_write"];
/// The tool that changes the TODO list of the main agent.
pub(crate) const TODO_WRITE: &str = "todo_write";
pub(crate) const USE_SKILL: &str = "use_skill";
/// The tool that finds tools whose descriptions are not part of the request.
pub(crate) const TOOL_SEARCH: &str = "tool_search";
/// The heading of the list of running agents.
pub(crate) const AVAILABLE_AGENTS: &str = "AVAILABLE_AGENTS";
pub(crate) const AVAILABLE_GROUPS: &str = "AVAILABLE_GROUPS";
/// The heading of the list of agents that can be started.
pub(crate) const NAMED_AGENTS: &str = "Named agents";

/// The metadata key under which an announcement lists the conversations of its agents.
pub(crate) const ENDED_AGENTS_KEY: &str = "ended_agents";
/// The metadata key under which an announcement lists its tasks.
pub(crate) const ANNOUNCED_TASKS_KEY: &str = "background_tasks";
/// The heading of a description that stands for an image.
pub(crate) const DESCRIPTION_HEADING: &str = "[The picture, described by another model:]";
/// The note that plan mode begins.
pub(crate) const PLAN_ON_NOTE: Prompt = prompt!("../prompts/plan_on");
/// The note that plan mode is over.
pub(crate) const PLAN_OVER_NOTE: Prompt = prompt!("../prompts/plan_over");
/// The instruction appended to the input that sets a goal.
pub(crate) const GOAL_INSTRUCTION: Prompt = prompt!("../prompts/goal");

/// Tools that a session offers only if their targets exist, such as agents, groups, skills,
/// servers, collections or access to the web.
pub(crate) const CONDITIONAL_TOOLS: [&str; 9] = [
    "run_named_subagents",
    "talk_to",
    "talk_to_group",
    USE_SKILL,
    PLAN_TOOL,
    "use_mcp_tool",
    "use_rag_tool",
    "web_search",
    "web_crawl",
];
