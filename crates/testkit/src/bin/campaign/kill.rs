//! Kills haft at random points and continues the task: it must finish, nothing stored may be lost
//! or duplicated, and no process may be left running.
//!
//! Each case plays one scripted task against the strict server, kills the process one to three
//! times, continues, and then compares everything visible from outside: the events printed before
//! each kill, the requests received by the server, the exported conversation, the files, and the
//! process table. The seed selects the kind of kill and the API, so that any sixteen consecutive
//! cases contain each pair of them once.

use std::thread::sleep;
use std::time::Duration;

use haft_testkit::ScriptedServer;
use haft_testkit::support::{Campaign, HaftCase, Random, Tally, Trial};
use haft_types::Api;

use crate::kill::check::CaseOutcome;
use crate::kill::events::{Acknowledged, Hit};
use crate::kill::kill_point::{Aim, KillPoint, Progress};
use crate::kill::process::{EndedRun, Running};
use crate::kill::workspace::Workspace;

mod check;
mod events;
pub(crate) mod export;
mod kill_point;
pub(crate) mod process;
mod requests;
mod survivors;
mod task;
pub(crate) mod workspace;

pub(crate) const CAMPAIGN: Campaign = Campaign {
    name: "kill",
    about: "A killed run is continued: the task finishes, nothing is lost, doubled, refused or left running.",
    trial: Trial::WithHaft(run_case),
};

/// The time limit for a run. It is far above the usual duration, so a run that exceeds it hangs.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);

fn run_case(case: &mut HaftCase<'_>) -> Result<(), String> {
    let api = Api::ALL[(case.seed / 4) as usize % Api::ALL.len()];
    let aims = choose_aims(case.seed, &mut case.random);
    let token = format!("{:07}{:020}", std::process::id(), case.seed);
    let script = task::build_script(&token)?;
    let server = ScriptedServer::builder(script)
        .start_in_thread()
        .map_err(|error| error.to_string())?;
    let place = Workspace::new(case.haft, api, &server)?;
    let mut game = CaseRun {
        server,
        place,
        token,
        random: case.random.clone(),
        runs: Vec::new(),
        snapshots: Vec::new(),
    };
    match game.run(&aims, case.tally) {
        Ok(()) => {
            case.tally.count(format!("cases over {api}"));
            Ok(())
        }
        Err(what) => Err(format!(
            "{api}, aimed at {aims:?}: {what}\n        kept in {}",
            game.place.keep_folders()
        )),
    }
}

/// Chooses the target of each kill in a case: a stream, a tool, any time, or a mixture of these.
fn choose_aims(seed: u64, random: &mut Random) -> Vec<Aim> {
    match seed % 4 {
        0 => vec![Aim::Stream],
        1 => vec![Aim::Tool],
        2 => vec![Aim::Anytime],
        _ => {
            let count = 2 + random.below(2);
            (0..count)
                .map(|_| random.choose(&Aim::ALL).copied().unwrap_or(Aim::Anytime))
                .collect()
        }
    }
}

/// The way in which a run of haft is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The run is the first one, and gets the task.
    New,
    /// The run continues the conversation, and does not get the task.
    Continue,
    /// The run gets the task again, because nothing of the task was stored.
    Again,
}

impl Start {
    fn arguments(self) -> Vec<&'static str> {
        let mut arguments = vec![
            "run",
            "--output-format",
            "stream-json",
            "--permission-mode",
            "yolo",
        ];
        match self {
            Self::New => arguments.push(task::TASK),
            Self::Continue => arguments.push("-c"),
            Self::Again => arguments.extend(["-c", task::TASK]),
        }
        arguments
    }
}

/// The state of a case while its runs are started and killed.
struct CaseRun {
    server: ScriptedServer,
    place: Workspace,
    token: String,
    random: Random,
    /// All runs that have ended.
    runs: Vec<EndedRun>,
    /// The conversation as exported after some of the kills.
    snapshots: Vec<serde_json::Value>,
}

impl CaseRun {
    fn run(&mut self, aims: &[Aim], tally: &mut Tally) -> Result<(), String> {
        let mut start = Start::New;
        for (index, aim) in aims.iter().enumerate() {
            let hit = self.kill_once(start, *aim, aims.len() - index)?;
            tally.count(format!("kills {hit}"));
            start = self.next_start(start)?;
            self.inspect_between_runs()?;
        }
        loop {
            let ended = self.start_run(start)?.finish(RUN_TIMEOUT)?;
            self.runs.push(ended);
            match self.next_start(start)? {
                Start::Again => start = Start::Again,
                Start::New | Start::Continue => break,
            }
        }
        survivors::check_no_survivors(&self.token, &self.place)?;
        let story = CaseOutcome {
            runs: &self.runs,
            requests: self.server.generation_requests(),
            refusals: self.server.refusals(),
            snapshots: &self.snapshots,
            place: &self.place,
        };
        story.check()
    }

    fn start_run(&self, start: Start) -> Result<Running, String> {
        Running::start(&self.place, &start.arguments(), self.runs.len() + 1)
    }

    /// Starts a run and kills it at a point that is chosen for `aim`. Returns the activity that the
    /// kill interrupted.
    fn kill_once(&mut self, start: Start, aim: Aim, kills_left: usize) -> Result<Hit, String> {
        let progress = Progress::measure(&self.server, &self.place);
        let moment = KillPoint::choose(aim, &progress, kills_left, &mut self.random);
        let mut running = self.start_run(start)?;
        moment.wait(&mut running, &self.server, &self.place, &progress)?;
        let ended = running.kill()?;
        self.runs.push(ended);
        Ok(Hit::from_runs(&self.runs, &self.place))
    }

    /// Returns the way to start the next run after a run that was started with `start`.
    fn next_start(&self, start: Start) -> Result<Start, String> {
        let Some(ended) = self.runs.last() else {
            return Ok(Start::New);
        };
        match (ended.code, start) {
            (None | Some(0), _) => Ok(Start::Continue),
            // The kill came before the task was stored and before any event acknowledged it, so
            // there is nothing to continue.
            (Some(2), Start::Continue) if self.has_no_acknowledgment() => Ok(Start::Again),
            (Some(code), _) => Err(format!(
                "run {} ({start:?}) ended with {code}: {} {}",
                self.runs.len(),
                ended.stderr,
                ended.last_event()
            )),
        }
    }

    fn has_no_acknowledgment(&self) -> bool {
        let told = Acknowledged::from_runs(&self.runs);
        told.replies.is_empty()
            && told.results.is_empty()
            && self.server.generation_requests().is_empty()
    }

    /// After a random half of the kills, searches the process table for survivors and reads the
    /// store. After the other kills, the next run starts at once, while the remains of the killed
    /// run are still being cleaned up.
    fn inspect_between_runs(&mut self) -> Result<(), String> {
        if self.random.below(2) == 0 {
            return Ok(());
        }
        survivors::check_no_survivors(&self.token, &self.place)?;
        if let Some(snapshot) = export::export_only_conversation(&self.place)? {
            self.snapshots.push(snapshot);
        }
        Ok(())
    }
}

/// Polls every millisecond until `ask` returns true; returns false after `timeout`.
pub(crate) fn poll_until(
    timeout: Duration,
    mut ask: impl FnMut() -> Result<bool, String>,
) -> Result<bool, String> {
    let begun = std::time::Instant::now();
    loop {
        if ask()? {
            return Ok(true);
        }
        if begun.elapsed() > timeout {
            return Ok(false);
        }
        sleep(Duration::from_millis(1));
    }
}
