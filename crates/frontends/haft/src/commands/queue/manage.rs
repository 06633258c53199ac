//! `haft queue cancel`, `retry`, `pause`, `resume`, `prune` and `migrate`: change the queue.

use std::time::Duration;

use haft_agent::RandomIds;
use haft_postgres::{TaskFilter, TaskQueue};
use haft_types::IdSource as _;
use serde_json::json;

use super::{MigrateArgs, PauseArgs, PruneArgs, SelectTasksArgs, open_queue};
use crate::commands::worker::server_address;
use crate::exit::usage_error;
use crate::haft::Haft;
use crate::output;

pub(super) fn cancel_tasks(haft: &Haft, args: &SelectTasksArgs) -> anyhow::Result<()> {
    change_tasks(
        haft,
        args,
        text!("queue-cancelled"),
        text!("queue-is-over"),
        TaskQueue::cancel,
    )
}

pub(super) fn retry_tasks(haft: &Haft, args: &SelectTasksArgs) -> anyhow::Result<()> {
    let retry = |queue: &TaskQueue, id| queue.retry(id, &RandomIds.new_uuid().to_string());
    change_tasks(
        haft,
        args,
        text!("queue-retried"),
        text!("queue-is-not-over"),
        retry,
    )
}

/// Applies `job` to each task. Tasks that were named and that `job` leaves unchanged are reported
/// as one error after the others are done; of tasks that a filter selects, they are left out.
fn change_tasks(
    haft: &Haft,
    args: &SelectTasksArgs,
    done: &str,
    refused: &str,
    job: impl Fn(&TaskQueue, i64) -> Result<bool, haft_store::StoreError>,
) -> anyhow::Result<()> {
    let queue = open_queue(haft, &args.output.common)?;
    let is_named = !args.ids.is_empty();
    let ids = if is_named {
        args.ids.clone()
    } else {
        queue.find_task_ids(&TaskFilter {
            status: args.state.clone(),
            label: args.label.clone(),
        })?
    };
    let mut rows = Vec::new();
    let mut left = Vec::new();
    for id in ids {
        let changed = job(&queue, id)?;
        if changed || is_named {
            rows.push(json!({"id": id, "changed": changed}));
        }
        match changed {
            true if !args.output.json => output::print_text_line(&format!("{id}: {done}"))?,
            true => {}
            false => left.push(id.to_string()),
        }
    }
    if args.output.json {
        output::print_json(&json!(rows))?;
    } else if rows.is_empty() && !is_named {
        output::print_text_line(text!("queue-none-selected"))?;
    }
    if left.is_empty() || !is_named {
        Ok(())
    } else {
        Err(usage_error(format!("{}: {refused}", left.join(", "))))
    }
}

pub(super) fn pause_tasks(haft: &Haft, args: &PauseArgs) -> anyhow::Result<()> {
    let is_new = open_queue(haft, &args.common)?.pause(&args.label)?;
    output::print_text_line(if is_new {
        text!("queue-paused")
    } else {
        text!("queue-was-paused")
    })
}

pub(super) fn resume_tasks(haft: &Haft, args: &PauseArgs) -> anyhow::Result<()> {
    if open_queue(haft, &args.common)?.resume(&args.label)? {
        output::print_text_line(text!("queue-resumed"))
    } else {
        Err(usage_error(text!("queue-not-paused")))
    }
}

pub(super) fn prune_tasks(haft: &Haft, args: &PruneArgs) -> anyhow::Result<()> {
    let queue = open_queue(haft, &args.output.common)?;
    let removed = queue.prune(Duration::from_hours(24) * args.days)?;
    if args.output.json {
        return output::print_json(&json!({"tasks": removed.tasks, "workers": removed.workers}));
    }
    output::print_text_line(&text!(
        "queue-pruned",
        tasks = removed.tasks,
        workers = removed.workers
    ))
}

pub(super) fn migrate_tables(haft: &Haft, args: &MigrateArgs) -> anyhow::Result<()> {
    if args.sql {
        return output::print_text(&haft_postgres::migration_sql());
    }
    let settings = haft.load(&args.common)?;
    let url = server_address(&settings.config)?;
    let timeout = settings.config.store.lock_timeout();
    haft_postgres::migrate_server(url, timeout)?;
    for role in &args.grants {
        haft_postgres::grant_data_rights(url, timeout, role)?;
    }
    output::print_text_line(text!("queue-migrated"))
}
