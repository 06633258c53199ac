//! `haft jobs kill`: stops background runs.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::open_job_folder;
use crate::commands::jobs::KillArgs;
use crate::haft::Haft;
use crate::jobs::BackgroundJob;
use crate::output;

/// The time that a run has to stop its commands and store its state after a signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn kill_jobs(haft: &Haft, args: &KillArgs) -> anyhow::Result<()> {
    let jobs = open_job_folder(haft, &args.common)?;
    // All jobs are found before the first one is stopped.
    let found = args
        .ids
        .iter()
        .map(|id| jobs.find_job(id))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for job in found {
        let ran = stop_job(&job)?;
        let id = &job.request.id;
        let state = job.state().name();
        output::print_text_line(&if ran {
            text!("jobs-ended", id, state)
        } else {
            text!("jobs-not-running", id, state)
        })?;
    }
    Ok(())
}

/// Stops a job; returns true if it was running.
fn stop_job(job: &BackgroundJob) -> anyhow::Result<bool> {
    let Some(process) = job.process_id().and_then(Pid::from_raw) else {
        return Ok(false);
    };
    #[cfg(target_os = "linux")]
    let Ok(process) = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty())
    else {
        return Ok(false);
    };
    // This check follows the opening of the process: as long as the job holds its lock, the opened
    // process is the job's process and not another one with a reused id.
    if !job.is_running() {
        return Ok(false);
    }
    for signal in [Signal::TERM, Signal::KILL] {
        // An error means that the process is already gone, as wanted.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::pidfd_send_signal(&process, signal);
        // This system has no handles for processes, so the check of the lock must suffice.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process(process, signal);
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT {
            if !job.is_running() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    anyhow::bail!(text!(
        "jobs-does-not-end",
        id = job.request.id,
        process = job.process_id().unwrap_or_default()
    ))
}
