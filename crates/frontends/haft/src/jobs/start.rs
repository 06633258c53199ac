//! Starts a background job, and turns the started process into the job.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use haft_agent::{RandomIds, WallClock};
use haft_files::LockFile;
use haft_sandbox::OwnProgram;
use haft_types::{Clock, IdSource};

use super::{BackgroundJob, JobFolder, JobRequest};
use crate::exit::usage_error;

/// The time limit for a job to store its task. The job may still start later, but the process that
/// started it no longer waits.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the command line of this process as a job. Returns once the task is stored, so that the
/// prompt can no longer be lost.
pub(crate) fn start_job(
    program: &OwnProgram,
    jobs: &JobFolder,
    task: Option<&str>,
    piped: Option<&str>,
) -> anyhow::Result<BackgroundJob> {
    jobs.remove_old_jobs(WallClock.now());
    let job = create_job(jobs, task)?;
    let input = match piped {
        None => Stdio::null(),
        Some(text) => {
            haft_files::open_append(&job.file_path("input"))?.write_all(text.as_bytes())?;
            File::open(job.file_path("input"))?.into()
        }
    };
    let mut process = program
        .command()
        .args(job_arguments(std::env::args_os().skip(1), &job.request.id))
        .stdin(input)
        .stdout(haft_files::open_append(&job.events_file())?)
        .stderr(haft_files::open_append(&job.file_path("stderr"))?)
        .spawn()
        .context(text!("jobs-cannot-start"))?;
    let begun = Instant::now();
    loop {
        if job.events_file().metadata()?.len() > 0 {
            return Ok(job);
        }
        if process.try_wait()?.is_some() && job.events_file().metadata()?.len() == 0 {
            let why = job.error_output();
            drop(std::fs::remove_dir_all(&job.folder));
            return Err(usage_error(why.strip_prefix("haft: ").unwrap_or(&why)));
        }
        if begun.elapsed() > START_TIMEOUT {
            return Ok(job);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn create_job(jobs: &JobFolder, task: Option<&str>) -> anyhow::Result<BackgroundJob> {
    let id = RandomIds.new_uuid().simple().to_string()[..8].to_owned();
    let folder = jobs.folder.join(&id);
    let within = || text!("jobs-cannot-prepare", folder = folder.display());
    haft_files::create_folder(&jobs.folder).with_context(within)?;
    haft_files::create_new_folder(&folder).with_context(within)?;
    let request = JobRequest {
        id,
        started_at: WallClock.now(),
        cwd: std::env::current_dir()?,
        task: task
            .and_then(|task| task.trim().lines().next())
            .map(str::to_owned),
    };
    haft_files::open_append(&folder.join("job.json"))
        .with_context(within)?
        .write_all(&serde_json::to_vec(&request)?)?;
    Ok(BackgroundJob { folder, request })
}

/// Returns the arguments of this process with `--job=ID` in place of `--bg`. Arguments after `--`
/// are the task and stay unchanged.
fn job_arguments(arguments: impl Iterator<Item = OsString>, id: &str) -> Vec<OsString> {
    let mut ours = true;
    let replaced = arguments.map(|argument| {
        ours &= argument != OsStr::new("--");
        if ours && argument == OsStr::new("--bg") {
            format!("--job={id}").into()
        } else {
            argument
        }
    });
    replaced.collect()
}

/// Turns this process into the job: it detaches from the terminal, and holds the job's lock until
/// it exits.
pub(crate) fn become_job(jobs: &JobFolder, id: &str) -> anyhow::Result<LockFile> {
    // Fails only for the leader of a process group, which a child that was just started never is.
    rustix::process::setsid().context(text!("jobs-cannot-leave-terminal"))?;
    let path = jobs.folder.join(id).join("lock");
    let lock = LockFile::acquire(&path)
        .with_context(|| text!("jobs-cannot-open", path = path.display()))?;
    write!(lock.file(), "{}", std::process::id())?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_arguments_replace_only_the_flag() {
        let arguments = ["run", "--bg", "-m", "a/b", "--", "--bg"].map(OsString::from);
        let expected = ["run", "--job=1f", "-m", "a/b", "--", "--bg"].map(OsString::from);
        assert_eq!(job_arguments(arguments.into_iter(), "1f"), expected);
    }
}
