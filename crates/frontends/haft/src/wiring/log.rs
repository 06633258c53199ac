//! The log: what went wrong without stopping anything, as JSON lines in `state/log`, for `haft logs` to show.
//!
//! Invariant: logging never fails or holds up a run, nothing is written or made before something is logged, and no secret that
//! can be known is in a line. Only haft's own crates are heard below `warn`: what libraries say there is neither short nor masked
//! with care.

mod file;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use haft_agent::WallClock;
use haft_text::Masker;
use haft_types::{Clock, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::wiring;
use file::LogFolder;
pub(crate) use file::{Follower, newest_lines};

/// More of one text says nothing new.
const LONGEST: usize = 8 * 1024;

/// What every target of haft's own begins with.
const OWN: &str = "haft";

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// What went wrong.
    Error,
    /// And what may be wrong.
    #[default]
    Warn,
    /// And what was done.
    Info,
    /// And how.
    Debug,
    /// And everything else.
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

/// One line of the log. What is written here is read by programs: names stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogLine {
    pub(crate) time: Timestamp,
    pub(crate) level: LogLevel,
    /// The module that says it.
    pub(crate) target: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) fields: Map<String, Value>,
}

/// Values that were learnt after the log began, such as a key out of a file.
static KNOWN: Mutex<Option<Masker>> = Mutex::new(None);

/// From now on everything at this level and above is written to this folder. Only the first call of a process counts.
pub(crate) fn start(folder: PathBuf, level: LogLevel) {
    if level == LogLevel::Off {
        return;
    }
    let others = LevelFilter::from(level).min(LevelFilter::WARN);
    let heard = Targets::new().with_default(others).with_target(OWN, level);
    let writer = LogWriter { folder: LogFolder::new(folder) };
    // It fails where there is a log already.
    drop(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(writer.with_filter(heard))));
}

/// Masks with this from now on.
pub(crate) fn mask_with(masker: Masker) {
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(masker);
}

fn masker() -> Masker {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_with(|| Masker::knowing(wiring::environment().secret_values())).clone()
}

/// Writes every event it hears as a line.
struct LogWriter {
    folder: LogFolder,
}

impl<S: Subscriber> Layer<S> for LogWriter {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut content = EventContent { masker: masker(), message: String::new(), fields: Map::new() };
        event.record(&mut content);
        let line = LogLine {
            time: WallClock.now(),
            level: level_of(*event.metadata().level()),
            target: event.metadata().target().to_owned(),
            message: content.message,
            fields: content.fields,
        };
        if let Ok(mut text) = serde_json::to_string(&line) {
            text.push('\n');
            self.folder.append(line.time, text.as_bytes());
        }
    }
}

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// What an event says, without its secrets.
struct EventContent {
    masker: Masker,
    message: String,
    fields: Map<String, Value>,
}

impl EventContent {
    fn text(&mut self, field: &Field, text: &str) {
        let masked = self.masker.mask(text);
        let short = &masked[..masked.floor_char_boundary(LONGEST)];
        match field.name() {
            "message" => short.clone_into(&mut self.message),
            name => drop(self.fields.insert(name.to_owned(), short.into())),
        }
    }

    fn value(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for EventContent {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.value(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.value(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.value(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.value(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

    fn logged(level: LogLevel, act: impl FnOnce()) -> Vec<LogLine> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/log");
        let heard = Targets::new().with_default(LevelFilter::WARN).with_target(OWN, level);
        let writer = LogWriter { folder: LogFolder::new(folder.clone()) };
        tracing::subscriber::with_default(tracing_subscriber::registry().with(writer.with_filter(heard)), act);
        let lines = newest_lines(&folder, 100, |_| true);
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_has_its_fields_and_no_secret() {
        let lines = logged(LogLevel::Warn, || {
            tracing::warn!(call = "c1", tries = 3, took = 0.5, last = true, error = %KEY, "it failed with {KEY}");
        });
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((line.level, line.target.as_str()), (LogLevel::Warn, module_path!()));
        assert_eq!(line.message, "it failed with [masked: GitHub token]");
        let fields = Value::Object(line.fields.clone()).to_string();
        assert_eq!(fields, r#"{"call":"c1","tries":3,"took":0.5,"last":true,"error":"[masked: GitHub token]"}"#);
    }

    #[test]
    fn only_what_the_level_lets_through_is_written_and_libraries_are_heard_from_warnings_on() {
        let say = || {
            tracing::debug!("own");
            tracing::debug!(target: "hyper", "other");
            tracing::warn!(target: "hyper", "warning");
        };
        let messages = |level| logged(level, say).into_iter().map(|line| line.message).collect::<Vec<_>>();
        assert_eq!(messages(LogLevel::Warn), ["warning"]);
        assert_eq!(messages(LogLevel::Debug), ["own", "warning"]);
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let lines = logged(LogLevel::Warn, || tracing::warn!("{}", "ü".repeat(LONGEST)));
        assert_eq!(lines[0].message.len(), LONGEST);
    }
}
