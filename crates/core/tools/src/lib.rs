//! Everything built in that the model can call: one folder per tool, with its code, the `prompt.md` the model reads, and
//! its fixtures.
//!
//! A tool takes a typed parameter struct and a [`ToolContext`](haft_tool::ToolContext) and gives back one envelope. This
//! crate asks nobody for permission, keeps no state between calls but what they left running ([`Running`]; what was read and
//! what is to do is behind the ports of `haft-tool`), reads no environment and starts no process except through the
//! supervisor of `haft-sandbox`.
//!
//! Read first: [`builtin`] (the set), `paths` (which files a call may touch), `change` (how files are changed, all
//! or none), `edit::blocks` (the engine that finds and replaces lines, a pure function).
//!
//! # The data of each result
//!
//! `text` is for the running round. `data` is what later rounds are compressed from, so its shape is a contract:
//!
//! | tool | data |
//! | --- | --- |
//! | `read_file` | `path, start_line, end_line, total_lines, mtime, content, truncated?, note?, notes?: [{id, note}]`; an image: `path, media_type, bytes, mtime, notes?`; a document: as text, with `document: pdf\|docx\|…` |
//! | `write_to_file` | `path, change: created\|overwritten, lines, bytes, note?` |
//! | `replace_in_file` | `path, change: edited, applied, changed_ranges: [{start_line, end_line}], added, removed, diff?, truncated?, fallback?, note?` |
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
//! A result that read or wrote a file also carries `context.file` (`path, size, mtime_ns, hash`), or `context.files` for
//! several, from which the read ledger is rebuilt when a conversation is resumed.

mod ac_mod_list;
mod ac_mod_read;
mod ac_mod_write;
mod apply_patch;
mod ask_followup_question;
mod attempt_completion;
mod background_task;
mod cases;
mod change;
mod conversation_message_ids_read;
mod conversation_message_ids_write;
mod count_tokens;
mod disk;
mod edit;
mod encoding;
mod excerpt;
mod execute_command;
mod extract;
mod extract_to_text;
mod failure;
mod glob;
mod guard;
mod knowledge;
mod limits;
mod list_code_definition_names;
mod list_files;
mod manual;
mod modules;
mod multi_edit;
mod note_add;
mod note_delete;
mod note_query;
mod note_update;
mod paths;
mod pattern;
mod plan_mode_respond;
mod read_file;
mod recall;
mod replace_in_file;
mod run_named_subagents;
mod running;
mod scope;
mod search_files;
mod session_interactive;
mod session_start;
mod session_stop;
mod talk_to;
mod talk_to_group;
mod todo_read;
mod todo_write;
mod undo_edit;
mod use_skill;
mod useful_info_add;
mod useful_info_delete;
mod useful_info_list;
mod visible;
mod walk;
mod write_to_file;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use cases::cases;
pub use change::{Recovery, RecoveryOutcome, recover};
pub use excerpt::{ExcerptError, excerpt};
pub use extract::pdf::read_pdf_entry;
pub use limits::LimitsConfig;
pub use plan_mode_respond::PlanModeRespond;
pub use run_named_subagents::{RUN_SUBAGENTS, RunNamedSubagents, assignments_of};
pub use running::{Running, TaskReport, announcement};
pub use talk_to::TalkTo;
pub use talk_to_group::TalkToGroup;
pub use use_skill::UseSkill;

use std::sync::Arc;

use haft_tool::{Tool, schema_of};
use haft_types::ToolSpec;
use schemars::JsonSchema;

/// Every built-in tool, in the order it is offered. The order is part of the request's prefix, so it never depends on
/// anything. Whatever calls leave running belongs to `running`.
pub fn builtin(running: &Arc<Running>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(read_file::ReadFile::with(Arc::clone(&running.supervisor))),
        Arc::new(write_to_file::WriteToFile::new()),
        Arc::new(replace_in_file::ReplaceInFile::new()),
        Arc::new(multi_edit::MultiEdit::new()),
        Arc::new(apply_patch::ApplyPatch::new()),
        Arc::new(list_files::ListFiles::new()),
        Arc::new(search_files::SearchFiles::new()),
        Arc::new(undo_edit::UndoEdit::new()),
        Arc::new(execute_command::ExecuteCommand::new(Arc::clone(running))),
        Arc::new(session_start::SessionStart::new(Arc::clone(running))),
        Arc::new(session_interactive::SessionInteractive::new(Arc::clone(running))),
        Arc::new(session_stop::SessionStop::new(Arc::clone(running))),
        Arc::new(background_task::BackgroundTask::new(Arc::clone(running))),
        Arc::new(todo_read::TodoRead::new()),
        Arc::new(todo_write::TodoWrite::new()),
        Arc::new(ask_followup_question::AskFollowupQuestion::new()),
        Arc::new(attempt_completion::AttemptCompletion::new()),
        Arc::new(useful_info_add::UsefulInfoAdd::new()),
        Arc::new(useful_info_list::UsefulInfoList::new()),
        Arc::new(useful_info_delete::UsefulInfoDelete::new()),
        Arc::new(note_add::NoteAdd::new()),
        Arc::new(note_query::NoteQuery::new()),
        Arc::new(note_update::NoteUpdate::new()),
        Arc::new(note_delete::NoteDelete::new()),
        Arc::new(conversation_message_ids_read::ConversationMessageIdsRead::new()),
        Arc::new(conversation_message_ids_write::ConversationMessageIdsWrite::new()),
        Arc::new(recall::Recall::new()),
        Arc::new(list_code_definition_names::ListCodeDefinitionNames::new()),
        Arc::new(extract_to_text::ExtractToText::new(Arc::clone(&running.supervisor))),
        Arc::new(glob::Glob::new()),
        Arc::new(count_tokens::CountTokens::new(Arc::clone(&running.supervisor))),
        Arc::new(ac_mod_list::AcModList::new()),
        Arc::new(ac_mod_read::AcModRead::new(Arc::clone(&running.supervisor))),
        Arc::new(ac_mod_write::AcModWrite::new()),
    ]
}

/// A tool's specification from its name, its `prompt.md` and its parameter struct.
fn spec_of<P: JsonSchema>(name: &str, prompt: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: prompt.trim_end().to_owned(), parameters: schema_of::<P>() }
}
