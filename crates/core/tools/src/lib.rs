//! The built-in tools that the model can call, in the folders of their groups: `files`, `running`,
//! `dialogue`, `knowledge` and `agents`. A tool is a file with a folder beside it for the
//! `prompt.md` that the model reads, its tests and its fixtures.
//!
//! A tool consists of a typed parameter struct, its prompt and a function over a
//! [`ToolContext`](haft_tool::ToolContext), which returns one envelope;
//! [`ToolDefinition`](haft_tool::ToolDefinition) combines them.
//!
//! This crate must not ask for permission, read the environment, or start a process except through
//! the supervisor of `haft-sandbox`. State outlives a call only in [`Running`] and in values that
//! belong to a session, such as [`StoredTodo`] and [`StoredNotes`]: the session puts them into
//! [`ToolContext::state`](haft_tool::ToolContext).
//!
//! Start with [`builtin_tools`] (the set), `paths` (which files a call may touch), `files::change`
//! (how files are changed, all or none), and `files::edit::blocks` (the engine that finds and
//! replaces lines, a pure function).
//!
//! # The data of each result
//!
//! `text` is for the current round. Later rounds are compressed from `data`, so its shape is a
//! contract:
//!
//! | tool | data |
//! | --- | --- |
//! | `read_file` | `path, start_line, end_line, total_lines, mtime, content, truncated?, note?, notes?: [{id, note}]`; an image: `path, media_type, bytes, mtime, notes?`; a document: as text, with `document: pdf\|docx\|…` |
//! | `write_to_file` | `path, change: created\|overwritten, lines, bytes, diff?, note?` (`diff`: the first 50 lines of a new file, each after a `+`) |
//! | `edit_file`, `replace_in_file` | `path, change: edited, applied, changed_ranges: [{start_line, end_line}], added, removed, diff? or diff_head? (the first 20 lines of one that is too long), truncated?, fallback?, note?` |
//! | `multi_edit` | `applied, files, note?`; each of `files` as `replace_in_file`, or `path, change: created, lines` |
//! | `apply_patch` | `files, note?`; each of `files` as before, or with `change: moved` and `from`, or `path, change: deleted` |
//! | `extract_to_text` | `path, change: created\|overwritten, from, document, lines, bytes, truncated?, note?` |
//! | `undo_edit` | `tools, files: [{path, outcome: restored\|recreated\|removed\|unchanged\|left as it is, reason}]` |
//! | `list_files` | `path, recursive, total, files, folders, entries, truncated?` |
//! | `glob` | `path, pattern, total, entries, truncated?` |
//! | `search_files` | `path, regex, file_pattern?, matches, files, lines: [{path, line, text}], truncated?` |
//! | `list_code_definition_names` | `path, files, definitions, truncated?` |
//! | `execute_command` | `command, cwd, exit_code? or signal? or timed_out? or cancelled?, stdout, stderr, stdout_lines, stdout_bytes, stderr_lines, stderr_bytes, duration_ms, spill?: [path], truncated?` |
//! | `session_start`, `session_interactive`, `session_stop` | `session_id, state: running\|ended, exit_code? or signal?, awaits?: line\|hidden\|key, stdout, stdout_lines, stdout_bytes, spill?: [path], truncated?` (what is new) |
//! | `background_task` | `action`; `start`: `task_id, command, cwd, output?`; `monitor`, `kill`: `task_id, command, state: running\|finished\|failed\|killed, exit_code? or signal? or timed_out?, output?, duration_ms`, `monitor` also `stdout, stdout_lines, stdout_bytes`; `list`: `tasks: [{task_id, command, state}]`; `cleanup`: `removed: [task_id]` |
//! | `todo_read`, `todo_write` | `items: [{content, status}], pending, in_progress, completed` |
//! | `ask_followup_question` | `question, options` |
//! | `plan_mode_respond` | `response, options` |
//! | `attempt_completion` | `result, command?` |
//! | `useful_info_add` | `item: {number, path, start_line, end_line, description}, merged, dropped: [number]` |
//! | `useful_info_list` | `items` |
//! | `useful_info_delete` | `item` |
//! | `note_add`, `note_update`, `note_delete` | `note: {id, path, note, updated_at}` |
//! | `note_query` | `path, notes` |
//! | `conversation_message_ids_read` | `messages, tokens, marked` |
//! | `conversation_message_ids_write` | `action, changed, unchanged, unknown: [id], refused: [id], marked` |
//! | `count_tokens` | `path?, tokens, lines, bytes, window` |
//! | `ac_mod_list` | `path, total, modules: [{path, about?}]` |
//! | `ac_mod_read`, `ac_mod_write` | as `read_file` and `write_to_file` |
//! | `use_skill` | `name, folder, files` |
//! | `run_named_subagents` | `mode, agents: [{name, outcome, code, answer, conversation, evidence: [id], turns, usage, cost}]` |
//! | `talk_to` | `agent` |
//! | `talk_to_group` | `group, reached: [name], failed: [name]` |
//! | `recall` | `message_id, role, tools, truncated?, spill?: [path]` |
//!
//! A result that read or wrote a file also has `context.file` (`path, size, mtime_ns, hash`), or
//! `context.files` for several files. The read ledger is rebuilt from these fields when a
//! conversation is resumed.

mod agents;
mod arguments;
mod attach;
mod cases;
mod copies;
mod dialogue;
mod failure;
mod files;
mod knowledge;
mod limits;
mod on_files;
mod other_places;
mod paths;
mod prelude;
mod readers;
mod running;
mod scope;
mod visible;

// A source file of an extension is also tested in this crate.
#[cfg(test)]
extern crate self as haft_tools;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use agents::run_named_subagents::{
    RUN_SUBAGENTS, define_tool as run_named_subagents, format_ended_agents, parse_assignments,
    parse_background_agents,
};
pub use agents::talk_to::define_tool as talk_to;
pub use agents::talk_to_group::define_tool as talk_to_group;
pub use attach::{AttachedFile, attach_files};
pub use cases::case_documents;
pub use copies::{CopyRequest, MergeReport, ProjectCopies, ProjectCopy};
pub use dialogue::plan_mode_respond::define_tool as plan_mode_respond;
pub use failure::ToolFailure;
pub use files::apply_patch::{
    ParsedPatch, PatchAction, PatchParser, PatchSection, define_tool as apply_patch,
};
pub use files::change::{OpenFolder, Recovery, RecoveryOutcome, recover_changes};
pub use files::edit::blocks::{BlockAnchor, BlockLine, EditBlock};
#[cfg(any(test, fuzzing))]
pub use files::edit::fuzz_check::{check_edit_blocks, check_search_replace};
pub use files::excerpt::{ExcerptError, read_excerpt};
pub use files::read_file::image::encode_image;
pub use files::write_to_file::write_whole_file;
pub use knowledge::kept_document::{DocumentOwner, KeptDocument};
pub use knowledge::model_tokens::ModelTokens;
pub use knowledge::notes::{Note, StoredNotes};
pub use knowledge::todo::{StoredTodo, TodoItem, TodoItems, TodoState};
pub use knowledge::transcript::{
    DescribeMessages, ListChildren, MarkMessages, RecalledMessage, StoredTranscript,
};
pub use knowledge::use_skill::define_tool as use_skill;
pub use knowledge::useful::{AddedRange, NewUsefulItem, StoredUseful, UsefulItem, UsefulRanges};
pub use limits::{LimitsConfig, LoopLimits};
pub use on_files::OnFiles;
pub use other_places::{OtherPlace, ReplacedText, find_other_places, repair_edit};
pub use readers::Readers;
pub use running::{Running, TaskProgress, TaskReport, format_announcement, shell_path};
pub use scope::FileScope;
pub use visible::reveal_line as visible_line;

use std::sync::Arc;

use haft_tool::Tool;

/// Returns the built-in tools in the order in which they are offered. The order is part of the
/// request's prefix, so it depends only on the readers of this build ([`Readers`]). Processes
/// started by tool calls belong to `running`.
pub fn builtin_tools(running: &Arc<Running>) -> Vec<Arc<dyn Tool>> {
    let Readers {
        documents,
        tools: others,
        ..
    } = running.readers();
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(files::read_file::define_tool()),
        Arc::new(files::write_to_file::define_tool()),
        Arc::new(files::edit_file::define_tool()),
        Arc::new(files::replace_in_file::define_tool()),
        Arc::new(files::multi_edit::define_tool()),
        Arc::new(files::list_files::define_tool()),
        Arc::new(files::search_files::define_tool()),
        Arc::new(running::execute_command::define_tool(Arc::clone(running))),
        Arc::new(running::session_start::define_tool(Arc::clone(running))),
        Arc::new(running::session_interactive::define_tool(Arc::clone(
            running,
        ))),
        Arc::new(running::session_stop::define_tool(Arc::clone(running))),
        Arc::new(running::background_task::define_tool(Arc::clone(running))),
        Arc::new(knowledge::todo_read::define_tool()),
        Arc::new(knowledge::todo_write::define_tool()),
        Arc::new(dialogue::ask_followup_question::define_tool()),
        Arc::new(dialogue::attempt_completion::define_tool()),
        Arc::new(knowledge::useful_info_add::define_tool()),
        Arc::new(knowledge::useful_info_list::define_tool()),
        Arc::new(knowledge::useful_info_delete::define_tool()),
        Arc::new(knowledge::note_add::define_tool()),
        Arc::new(knowledge::note_query::define_tool()),
        Arc::new(knowledge::note_update::define_tool()),
        Arc::new(knowledge::note_delete::define_tool()),
        Arc::new(knowledge::conversation_message_ids_read::define_tool()),
        Arc::new(knowledge::conversation_message_ids_write::define_tool()),
        Arc::new(knowledge::recall::define_tool()),
    ];
    tools.extend(others.iter().cloned());
    if documents.is_some() {
        tools.push(Arc::new(files::extract_to_text::define_tool()));
    }
    let others: [Arc<dyn Tool>; 5] = [
        Arc::new(files::glob::define_tool()),
        Arc::new(knowledge::count_tokens::define_tool()),
        Arc::new(knowledge::ac_mod_list::define_tool()),
        Arc::new(knowledge::ac_mod_read::define_tool()),
        Arc::new(knowledge::ac_mod_write::define_tool()),
    ];
    tools.extend(others);
    tools
}
