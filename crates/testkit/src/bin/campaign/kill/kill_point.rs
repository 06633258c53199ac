//! Chooses the point at which to kill a run, and waits for it.

use std::thread::sleep;
use std::time::Duration;

use haft_testkit::support::Random;
use haft_testkit::{Handled, Recorded, ScriptedServer};

use super::process::Running;
use super::workspace::Workspace;
use super::{RUN_TIMEOUT, poll_until, task};

/// The activity that a kill is meant to interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The run is killed in the middle of a reply.
    Stream,
    /// The run is killed between the start of a command and its result.
    Tool,
    /// The run is killed at any time, but more often near its start.
    Anytime,
}

impl Aim {
    pub(crate) const ALL: [Self; 3] = [Self::Stream, Self::Tool, Self::Anytime];
}

/// The progress that the task has made before a run.
pub(crate) struct Progress {
    /// The number of requests that the server has received.
    requests: usize,
    /// The index of the latest reply that was requested. The next run begins with this reply or a
    /// later one.
    reply: usize,
    /// The numbers of the commands that have not been started.
    commands: Vec<usize>,
}

impl Progress {
    pub(crate) fn measure(server: &ScriptedServer, place: &Workspace) -> Self {
        let requests = server.generation_requests();
        let not_begun =
            |command: &usize| place.read_file(&task::start_file_name(*command)).is_none();
        Self {
            reply: requests
                .iter()
                .filter_map(scripted_reply_index)
                .max()
                .unwrap_or_default(),
            requests: requests.len(),
            commands: (1..=task::COMMAND_COUNT).filter(not_begun).collect(),
        }
    }
}

fn scripted_reply_index(request: &Recorded) -> Option<usize> {
    match request.handled {
        Handled::Replied { reply } => Some(reply),
        Handled::Refused(_)
        | Handled::RanOut
        | Handled::Unreadable { .. }
        | Handled::Informed
        | Handled::NotFound => None,
    }
}

/// The point at which a run is killed.
#[derive(Debug)]
pub(crate) enum KillPoint {
    /// The run is killed some time after this reply or a later one was requested.
    InReply { reply: usize, after: Duration },
    /// The run is killed some time after this command started.
    InCommand { command: usize, after: Duration },
    /// The run is killed some time after it started.
    AfterStart(Duration),
}

impl KillPoint {
    /// Chooses a point after which enough of the task is left for the remaining kills. `kills_left`
    /// includes the current kill.
    pub(crate) fn choose(
        aim: Aim,
        progress: &Progress,
        kills_left: usize,
        random: &mut Random,
    ) -> Self {
        let share = |left: usize| left.div_ceil(kills_left.max(1));
        let millis = |random: &mut Random, below: u64| {
            Duration::from_millis(random.below(below as usize) as u64)
        };
        let in_reply = |random: &mut Random| Self::InReply {
            reply: progress.reply + random.below(share(task::REPLY_COUNT - progress.reply)),
            after: Duration::from_millis(5) + millis(random, task::STREAM_MS - 5),
        };
        match aim {
            Aim::Stream => in_reply(random),
            Aim::Tool => {
                let soon = &progress.commands[..share(progress.commands.len())];
                match random.choose(soon).copied() {
                    // Not up to the end of the command, since polling for its file takes time too.
                    Some(command) => Self::InCommand {
                        command,
                        after: millis(random, task::COMMAND_MS * 3 / 4),
                    },
                    None => in_reply(random),
                }
            }
            Aim::Anytime if random.below(2) == 0 => Self::AfterStart(millis(random, 120)),
            Aim::Anytime => Self::AfterStart(millis(random, 2500)),
        }
    }

    /// Waits until the point is reached or the run ends by itself.
    pub(crate) fn wait(
        &self,
        running: &mut Running,
        server: &ScriptedServer,
        place: &Workspace,
        progress: &Progress,
    ) -> Result<(), String> {
        let mut sign = |ready: &dyn Fn() -> bool| {
            let come = poll_until(RUN_TIMEOUT, || Ok(ready() || running.is_over()?))?;
            come.then_some(())
                .ok_or_else(|| format!("the moment {self:?} did not come within {RUN_TIMEOUT:?}"))
        };
        let after = match self {
            Self::InReply { reply, after } => {
                let asked = |request: &Recorded| {
                    scripted_reply_index(request).is_some_and(|asked| asked >= *reply)
                };
                sign(&|| {
                    server
                        .generation_requests()
                        .iter()
                        .skip(progress.requests)
                        .any(asked)
                })?;
                after
            }
            Self::InCommand { command, after } => {
                sign(&|| place.read_file(&task::start_file_name(*command)).is_some())?;
                after
            }
            Self::AfterStart(after) => after,
        };
        sleep(*after);
        Ok(())
    }
}
