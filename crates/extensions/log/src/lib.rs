//! The log: JSON lines in `state/log` that record what each run loaded, requested and did, and its
//! failures. `haft logs` shows the log.
//!
//! Lines are masked and written by a separate thread, so that a run does not wait for the disk. The
//! first line starts the thread, and [`flush_log`] waits for it before the process ends. A process
//! that is killed loses at most its newest lines.
//!
//! Invariant: logging never fails or delays a run, no file is created before something is logged,
//! and no line contains a known secret. haft's own crates log no prompts, arguments, or file text.
//! Libraries might, so their lines are reduced to the source location.
//!
//! Read first: [`start_log`] (writes), [`LogLine`] (a line), [`read_newest_lines`].

mod log_files;

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use haft_agent::{HostEnvironment, Places, RandomIds, WallClock};
use haft_text::Masker;
use haft_types::{Clock, IdSource, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use log_files::LogFolder;
pub use log_files::{Follower, for_each_line, read_newest_lines};

/// The maximum size of one text in a line, in bytes. Longer texts are cut.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// The prefix of the targets of haft's own crates.
const OWN_TARGET_PREFIX: &str = "haft";

/// The message of the first line of a turn, by which `haft logs` recognizes a run.
pub const TURN_STARTED: &str = "turn started";

/// The maximum time that a process waits at its end for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The stack size of the writing thread, in bytes.
const WRITER_STACK_BYTES: usize = 256 * 1024;

/// The verbosity of the log.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Log nothing.
    Off,
    /// Log failures that ended something.
    Error,
    /// Log failures that a run survived, too.
    Warn,
    /// Log what was loaded, requested, and done, too.
    #[default]
    Info,
    /// Log decisions, too.
    Debug,
    /// Log everything.
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// One line of the log. Programs read the field names, so they must not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    pub time: Timestamp,
    pub level: LogLevel,
    /// The id of the process that logged the line; empty in lines of older versions.
    #[serde(default)]
    pub run: String,
    /// The module that logged the line.
    pub target: String,
    pub message: String,
    #[serde(default)]
    pub fields: Map<String, Value>,
}

/// The masker with secrets that became known after the log began, such as a key from a file.
static CURRENT_MASKER: Mutex<Option<Masker>> = Mutex::new(None);

/// The log queue of this process, once it is started.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Logs everything at `level` and above to the folder of this user from now on, with the secret
/// values of the environment masked. Only the first call in a process counts.
pub fn start_log(places: &Places, level: LogLevel) {
    if level == LogLevel::Off {
        return;
    }
    let mut is_first = false;
    let queue = QUEUE.get_or_init(|| {
        is_first = true;
        LogQueue::new(places.log_folder(), places.environment.secret_values())
    });
    if is_first {
        // Fails if another subscriber is set, which then handles all events.
        drop(tracing::subscriber::set_global_default(LogSubscriber {
            queue,
            level: level.into(),
        }));
    }
}

/// Starts this user's log at the default level, for a failure that occurred before the
/// configuration was loaded.
pub fn start_default_log(environment: &HostEnvironment) {
    if let Ok(places) = Places::from_environment(environment.clone()) {
        start_log(&places, LogLevel::default());
    }
}

/// Waits until every line is written.
pub fn flush_log() {
    if let Some(queue) = QUEUE.get() {
        queue.flush();
    }
}

/// Sets the masker for all further lines.
pub fn set_masker(masker: Masker) {
    *CURRENT_MASKER
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Some(masker);
}

/// Returns the masker that [`set_masker`] set, or one for `secrets` if none was set.
fn current_masker(secrets: &[String]) -> Masker {
    let mut known = CURRENT_MASKER
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    known
        .get_or_insert_with(|| Masker::with_values(secrets))
        .clone()
}

/// The queue of lines for the writing thread.
struct LogQueue {
    folder: PathBuf,
    /// The id of this process in the log.
    run: String,
    /// The values that are masked until [`set_masker`] is called.
    secrets: Vec<String>,
    /// Contains `None` if the thread could not be started; then nothing is logged.
    sender: OnceLock<Option<Sender<LogMessage>>>,
}

/// A message to the writing thread.
enum LogMessage {
    Line(LogLine),
    /// A request for confirmation that all earlier lines are written.
    Flush(Sender<()>),
}

impl LogQueue {
    fn new(folder: PathBuf, secrets: Vec<String>) -> Self {
        let run = RandomIds.new_uuid().simple().to_string()[..8].to_owned();
        Self {
            folder,
            run,
            secrets,
            sender: OnceLock::new(),
        }
    }

    fn push(&self, line: LogLine) {
        let sender = self.sender.get_or_init(|| {
            let (sender, receiver) = channel();
            let folder = self.folder.clone();
            let secrets = self.secrets.clone();
            let thread = std::thread::Builder::new()
                .name("haft-log".to_owned())
                .stack_size(WRITER_STACK_BYTES);
            thread
                .spawn(move || write_lines(&receiver, folder, &secrets))
                .ok()
                .map(|_| sender)
        });
        if let Some(sender) = sender {
            // Fails only if the thread is gone; the run continues without a log.
            drop(sender.send(LogMessage::Line(line)));
        }
    }

    fn flush(&self) {
        if let Some(Some(sender)) = self.sender.get() {
            let (done, written) = channel();
            if sender.send(LogMessage::Flush(done)).is_ok() {
                // A disk that does not respond must not keep the process from ending.
                let _ = written.recv_timeout(FLUSH_TIMEOUT);
            }
        }
    }
}

/// Writes lines until all senders are gone.
fn write_lines(receiver: &Receiver<LogMessage>, folder: PathBuf, secrets: &[String]) {
    let folder = LogFolder::new(folder);
    for message in receiver {
        match message {
            LogMessage::Line(line) => write_line(&folder, secrets, line),
            LogMessage::Flush(done) => drop(done.send(())),
        }
    }
}

fn write_line(folder: &LogFolder, secrets: &[String], mut line: LogLine) {
    let masker = current_masker(secrets);
    line.message = mask_and_cut(&masker, &line.message);
    for value in line.fields.values_mut() {
        if let Value::String(text) = value {
            *text = mask_and_cut(&masker, text);
        }
    }
    if let Ok(mut text) = serde_json::to_string(&line) {
        text.push('\n');
        folder.append(line.time, text.as_bytes());
    }
}

fn mask_and_cut(masker: &Masker, text: &str) -> String {
    let masked = masker.mask(text);
    masked[..masked.floor_char_boundary(MAX_TEXT_BYTES)].to_owned()
}

/// Queues events for the log: those of haft's own crates at the configured level, and warnings and
/// errors of libraries, both as warnings: whether they matter is decided and logged by the crate
/// that uses the library. Spans are ignored.
struct LogSubscriber {
    queue: &'static LogQueue,
    level: LevelFilter,
}

impl Subscriber for LogSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_wanted = if is_own_event(metadata) {
            *metadata.level() <= self.level
        } else {
            self.level >= LevelFilter::WARN && *metadata.level() <= Level::WARN
        };
        !metadata.is_span() && is_wanted
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        self.queue.push(event_to_line(event, &self.queue.run));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Any number but zero; spans are disabled, so the id is never used.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// True for an event of haft's own crates.
fn is_own_event(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(OWN_TARGET_PREFIX)
}

fn event_to_line(event: &Event<'_>, run: &str) -> LogLine {
    let metadata = event.metadata();
    let mut content = EventContent::default();
    let mut level = convert_level(*metadata.level());
    if is_own_event(metadata) {
        event.record(&mut content);
    } else {
        level = LogLevel::Warn;
        "reported by a library".clone_into(&mut content.message);
        let at = format!(
            "{}:{}",
            metadata.file().unwrap_or("?"),
            metadata.line().unwrap_or_default()
        );
        content.fields.insert("at".to_owned(), at.into());
    }
    LogLine {
        time: WallClock.now(),
        level,
        run: run.to_owned(),
        target: metadata.target().to_owned(),
        message: content.message,
        fields: content.fields,
    }
}

fn convert_level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// The message and the fields of an event, without empty texts.
#[derive(Default)]
struct EventContent {
    message: String,
    fields: Map<String, Value>,
}

impl EventContent {
    fn add_text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            _ if text.is_empty() => {}
            name => drop(self.fields.insert(name.to_owned(), text.into())),
        }
    }

    fn add_value(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventContent {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_value(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_value(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add_value(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_value(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

    fn capture_log(level: LogLevel, act: impl FnOnce()) -> Vec<LogLine> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/log");
        let queue: &'static LogQueue =
            Box::leak(Box::new(LogQueue::new(folder.clone(), Vec::new())));
        tracing::subscriber::with_default(
            LogSubscriber {
                queue,
                level: level.into(),
            },
            act,
        );
        queue.flush();
        let lines = read_newest_lines(&folder, 100, |_| true);
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn log_line_has_its_fields_and_no_secret() {
        let lines = capture_log(LogLevel::Warn, || {
            let absent: Option<u64> = None;
            tracing::warn!(call = "c1", tries = 3, took = 0.5, last = true, absent, error = %KEY, "it failed with {KEY}");
        });
        let [line] = lines.as_slice() else {
            panic!("{lines:?}")
        };
        assert_eq!(
            (line.level, line.target.as_str(), line.run.len()),
            (LogLevel::Warn, module_path!(), 8)
        );
        assert_eq!(line.message, "it failed with [masked: GitHub token]");
        let fields = Value::Object(line.fields.clone()).to_string();
        assert_eq!(
            fields,
            r#"{"call":"c1","tries":3,"took":0.5,"last":true,"error":"[masked: GitHub token]"}"#
        );
    }

    #[test]
    fn library_events_are_logged_from_warn_without_their_text() {
        let say = || {
            tracing::debug!("own");
            tracing::debug!(target: "rmcp", "other");
            tracing::error!(target: "rmcp", message_of_server = "arguments", "sent arguments");
        };
        let messages = |level| {
            capture_log(level, say)
                .into_iter()
                .map(|line| line.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(messages(LogLevel::Error), [""; 0]);
        assert_eq!(messages(LogLevel::Warn), ["reported by a library"]);
        assert_eq!(messages(LogLevel::Debug), ["own", "reported by a library"]);
        let lines = capture_log(LogLevel::Warn, say);
        assert_eq!(lines[0].level, LogLevel::Warn);
        assert_eq!(lines[0].fields.keys().collect::<Vec<_>>(), ["at"]);
        assert!(!serde_json::to_string(&lines).unwrap().contains("arguments"));
    }

    #[test]
    fn log_text_is_cut_at_the_limit() {
        let lines = capture_log(LogLevel::Warn, || {
            tracing::warn!("{}", "ü".repeat(MAX_TEXT_BYTES));
        });
        assert_eq!(lines[0].message.len(), MAX_TEXT_BYTES);
    }

    #[test]
    fn log_lines_keep_their_order() {
        let lines = capture_log(LogLevel::Info, || {
            (0..200).for_each(|number| tracing::info!(number, "line"));
        });
        let numbers: Vec<_> = lines
            .iter()
            .map(|line| line.fields["number"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (100..200).collect::<Vec<_>>());
    }
}
