//! `haft attach`: follows a running session, answers its questions and sends it messages.

use std::io::BufRead;
use std::path::Path;

use clap::Args;
use haft_attach::{
    AttachLine, Attachable, AttachedSession, ReceivedLine, SessionInfo, find_sessions,
};
use haft_engine::MAIN_AGENT;
use haft_types::{ConversationId, EventBody, Role};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::cli::options::{Common, is_at_terminal};
use crate::commands::run::cancel_on_signals;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::interactive::InterfaceStyle;
use crate::interactive::attached::{self, AttachmentEnd, EndCause};
use crate::jobs::JobFolder;
use crate::output::{self, TextTable};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The session: the id of its conversation or job, or a prefix of it. By default, the only
    /// running session of this project.
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    /// List the running sessions, and attach to none.
    #[arg(long, conflicts_with = "id")]
    pub(crate) list: bool,
    /// Print the lines of the session as JSON, and send the lines of standard input; with `--list`,
    /// print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Use plain lines of text, nothing redrawn: for screen readers.
    #[arg(long)]
    pub(crate) plain: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, args: &AttachArgs) -> anyhow::Result<ProcessExit> {
    let settings = haft.load(&args.common)?;
    wiring::build_runtime()?.block_on(async {
        let sessions = RunningSessions::find(&settings).await?;
        sessions.report_problems();
        if args.list {
            print_sessions(&sessions.running, args.json)?;
            return Ok(ProcessExit::Completed);
        }
        let chosen = if let Some(id) = &args.id {
            sessions.choose(&settings, id)?
        } else {
            let project = haft.project(None)?;
            let Some(chosen) = sessions.choose_in_project(&project.namespace())? else {
                print_sessions(&sessions.running, args.json)?;
                return Err(usage_error(text!("attach-which")));
            };
            chosen
        };
        let looks = if args.plain {
            InterfaceStyle::Plain
        } else {
            InterfaceStyle::AsConfigured
        };
        if args.json {
            return pass_lines(&settings, chosen).await;
        }
        attach_at_terminal(&settings, chosen, looks).await
    })
}

/// Attaches the terminal to a session, and explains the end.
pub(crate) async fn attach_at_terminal(
    settings: &Settings,
    (info, socket): &(SessionInfo, String),
    looks: InterfaceStyle,
) -> anyhow::Result<ProcessExit> {
    if !is_at_terminal() {
        return Err(usage_error(text!("attach-no-terminal")));
    }
    let session = AttachedSession::connect(&settings.places.attach_folder(), socket).await?;
    let end = attached::run(settings, session, looks).await?;
    report_end(settings, info, &end).await;
    Ok(end.exit)
}

/// Prints why the attachment ended, and the messages that were not stored.
async fn report_end(settings: &Settings, info: &SessionInfo, end: &AttachmentEnd) {
    let id = short_id(&info.conversation_id);
    match end.cause {
        EndCause::Left => {
            output::print_to_stderr(&format!("haft: {}", text!("attach-left", id)));
        }
        EndCause::Detached => {}
        EndCause::Lost => {
            output::print_to_stderr(&format!("haft: {}", text!("attach-lost", id)));
        }
    }
    if end.unconfirmed.is_empty() || end.cause == EndCause::Left {
        return;
    }
    let last = read_last_input(settings, &info.conversation_id).await;
    for message in &end.unconfirmed {
        // The session stores messages in order and confirms each one, so only the last message in
        // the store can be unconfirmed.
        let is_stored = last.as_deref().is_some_and(|last| last == message);
        let line = if is_stored {
            text!("attach-stored", message)
        } else {
            text!("attach-not-stored", message, id)
        };
        output::print_to_stderr(&format!("haft: {line}"));
    }
}

/// Returns the newest message of the user in the store.
async fn read_last_input(settings: &Settings, conversation: &str) -> Option<String> {
    let store = settings.open_store().ok()?;
    let messages = store
        .messages(&ConversationId::new(conversation))
        .await
        .ok()?;
    let newest = messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User)?;
    Some(haft_context::user_text(&newest.joined_text()).to_owned())
}

/// The running sessions of this user.
pub(crate) struct RunningSessions {
    running: Vec<(SessionInfo, String)>,
    unusable: Vec<String>,
    /// The short ids of conversations whose sessions were killed.
    removed: Vec<String>,
}

impl RunningSessions {
    pub(crate) async fn find(settings: &Settings) -> anyhow::Result<Self> {
        let mut sessions = Self {
            running: Vec::new(),
            unusable: Vec::new(),
            removed: Vec::new(),
        };
        for found in find_sessions(&settings.places.attach_folder()).await? {
            match found {
                Attachable::Session { info, socket } => sessions.running.push((*info, socket)),
                Attachable::Unusable { socket, error } => {
                    let error = output::localize_text(error);
                    sessions
                        .unusable
                        .push(text!("attach-unusable", socket, error));
                }
                Attachable::Removed { short_id } => sessions.removed.push(short_id),
            }
        }
        Ok(sessions)
    }

    /// Prints the sockets that cannot be used, and those that were removed.
    fn report_problems(&self) {
        let removed = self.removed.iter().map(|id| text!("attach-removed", id));
        for line in self.unusable.iter().cloned().chain(removed) {
            output::print_to_stderr(&format!("haft: {line}"));
        }
    }

    /// Returns the session of a conversation.
    pub(crate) fn find_conversation(&self, id: &str) -> Option<&(SessionInfo, String)> {
        self.running
            .iter()
            .find(|(info, _)| info.conversation_id == id)
    }

    /// Returns the session that `id` names: by its conversation, or by its job.
    fn choose(&self, settings: &Settings, id: &str) -> anyhow::Result<&(SessionInfo, String)> {
        let mut fitting = self
            .running
            .iter()
            .filter(|(info, _)| info.conversation_id.starts_with(id) || info.name == id);
        match (fitting.next(), fitting.next()) {
            (Some(session), None) if !id.is_empty() => return Ok(session),
            (Some(_), Some(_)) => return Err(usage_error(text!("attach-ambiguous", id))),
            (Some(_), None) | (None, _) => {}
        }
        let jobs = JobFolder::new(settings.places.jobs_folder());
        let of_job = jobs
            .find_job(id)
            .ok()
            .and_then(|job| job.conversation_id())
            .and_then(|conversation| self.find_conversation(conversation.as_str()));
        of_job.ok_or_else(|| usage_error(text!("attach-unknown", id)))
    }

    /// Returns the only session of a project, or `None` if there are several or only others.
    fn choose_in_project(&self, namespace: &str) -> anyhow::Result<Option<&(SessionInfo, String)>> {
        if self.running.is_empty() {
            return Err(usage_error(text!("attach-none")));
        }
        let mut here = self
            .running
            .iter()
            .filter(|(info, _)| info.namespace == namespace);
        Ok(match (here.next(), here.next()) {
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) | (None, _) => None,
        })
    }
}

fn short_id(conversation: &str) -> String {
    ConversationId::new(conversation).short_prefix().to_owned()
}

fn print_sessions(sessions: &[(SessionInfo, String)], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let rows: Vec<Value> = sessions
            .iter()
            .map(|(info, _)| {
                json!({
                    "conversation_id": info.conversation_id,
                    "name": info.name,
                    "state": info.state,
                    "cwd": info.cwd,
                    "model": info.model,
                    "mode": info.mode,
                    "process": info.process,
                    "haft": info.haft,
                })
            })
            .collect();
        return output::print_json(&Value::Array(rows));
    }
    if sessions.is_empty() {
        return output::print_text_line(text!("attach-list-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-id"),
        text!("table-state"),
        text!("table-process"),
        text!("table-folder"),
        text!("table-name"),
    ]);
    for (info, _) in sessions {
        table.add_row(vec![
            short_id(&info.conversation_id),
            output::localize_text(info.state.name()),
            info.process.to_string(),
            Path::new(&info.cwd)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            info.name.clone(),
        ]);
    }
    output::print_text(&table.to_string())
}

/// Prints the lines of a session, and sends it the lines of standard input. Ends with the session,
/// or with Ctrl-C. The exit code is that of the session's last turn.
async fn pass_lines(
    settings: &Settings,
    (info, socket): &(SessionInfo, String),
) -> anyhow::Result<ProcessExit> {
    let mut session = AttachedSession::connect(&settings.places.attach_folder(), socket).await?;
    let first = AttachLine::Attach(session.info.clone());
    print_line(&serde_json::to_string(&first)?)?;
    let mut input = spawn_input_reader();
    let leave = CancellationToken::new();
    cancel_on_signals(&leave);
    let mut exit = ProcessExit::Failed;
    let mut is_farewell = false;
    let mut input_open = true;
    loop {
        tokio::select! {
            () = leave.cancelled() => return Ok(ProcessExit::Completed),
            line = input.recv(), if input_open => match line {
                // What the session sent before it ended is still read.
                Some(line) => input_open = session.send_text(&line).await.is_ok(),
                None => input_open = false,
            },
            line = session.next_text() => {
                let Some(line) = line? else { break };
                print_line(&line)?;
                match ReceivedLine::parse(&line) {
                    ReceivedLine::Control(line) => {
                        is_farewell |= matches!(*line, AttachLine::Detached { .. });
                    }
                    ReceivedLine::Event(event) => {
                        if let EventBody::Result(result) = &event.body
                            && event.agent == MAIN_AGENT
                        {
                            exit = result.outcome.into();
                        }
                    }
                    ReceivedLine::Unknown => {}
                }
            }
        }
    }
    if is_farewell {
        return Ok(exit);
    }
    let id = short_id(&info.conversation_id);
    output::print_to_stderr(&format!("haft: {}", text!("attach-lost", id)));
    Ok(ProcessExit::Failed)
}

/// Prints a line of JSON, with the characters escaped that a terminal would interpret.
fn print_line(line: &str) -> anyhow::Result<()> {
    output::print_exact(&haft_text::escape_json(&format!("{line}\n")))
}

/// Reads the lines of standard input on a thread of their own.
fn spawn_input_reader() -> UnboundedReceiver<String> {
    let (lines, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        // A read error counts as the end of the input.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
