//! Integration tests of the binary: real processes, real sockets, a scripted model.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]
#![expect(
    clippy::format_collect,
    reason = "short, and speed is not at stake here"
)]

mod acp;
mod active_context;
mod advice;
mod advisories;
mod agents;
mod architecture;
mod attach;
mod attacks;
mod auto_coder;
mod bad_input;
mod broken;
mod budgets;
mod catalogue;
mod chinese_inputs;
mod chinese_lists;
mod chinese_providers;
mod chinese_screens;
mod circles;
mod claude_client;
mod coming_from;
mod command_line;
mod commits;
mod confined_starts;
mod context;
mod context_edit;
mod context_tests;
mod conversations;
#[cfg(not(any(feature = "mcp", feature = "rag", feature = "web")))]
mod core_build;
mod crash;
mod deferred_tools;
mod demo;
mod denied_reads;
mod doctor;
mod edits;
mod effective_config;
mod engine_of_context;
#[cfg(feature = "mcp")]
mod escapes;
mod external_tools;
mod file_writes;
mod gate;
mod git;
mod hidden_files;
mod hooks;
mod hostile;
mod hot_reload;
mod imported_calls;
mod init;
mod inline;
mod jobs;
mod knowledge;
mod languages;
mod lib_docs;
mod limit_keys;
#[cfg(feature = "mcp")]
mod log_events;
mod logs;
mod long_session;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_scope;
#[cfg(all(feature = "acp", feature = "mcp"))]
mod mcp_serve;
mod mentions;
mod message_ids;
mod messages;
mod model_roles;
mod models;
mod modes;
mod modules;
mod money;
mod needles;
mod nothing_changed;
mod own_files;
mod own_programs;
#[cfg(feature = "mcp")]
mod own_servers;
mod pages;
mod permissions;
mod project_policy;
mod prompts;
mod prose;
mod protocols;
mod proxy;
mod purge;
#[cfg(feature = "postgres")]
mod queue_commands;
#[cfg(feature = "rag")]
mod rag;
#[cfg(feature = "rag")]
mod rag_answers;
#[cfg(feature = "lab")]
mod reading;
mod replay;
mod rewind;
mod rig;
mod run_replay;
mod run_view;
mod running;
mod sandbox;
mod sandbox_refusals;
mod screen;
mod secrets;
mod serve;
mod small_models;
mod small_window;
mod spilled_outputs;
mod stored_home;
mod stream;
mod surface;
mod terminal;
mod terminal_answers;
mod terminal_approvals;
mod terminal_choices;
mod terminal_commands;
mod terminal_images;
mod terminal_kept;
mod terminal_plain;
mod terminal_results;
mod terminal_rules;
mod terminal_screens;
mod terminal_setup;
mod terminal_start;
mod terminal_state;
mod terminal_text;
mod terminal_trust;
#[cfg(feature = "mcp")]
mod terminal_typed_ahead;
mod terminal_variants;
mod terminal_waiting;
mod text_protocols;
#[cfg(feature = "otel")]
mod traces;
mod traits;
mod translations;
mod turns;
mod undo;
mod unseen_results;
#[cfg(feature = "web")]
mod web;
#[cfg(feature = "postgres")]
mod worker_faults;
#[cfg(feature = "postgres")]
mod workers;
#[cfg(feature = "workflows")]
mod workflows;
mod worktrees;
#[cfg(all(feature = "mcp", feature = "rag", feature = "web"))]
mod write_sets;
mod written_tools;
mod zoo;
