//! A client of a session, without help of haft.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::kill::workspace::Workspace;

pub(super) struct AttachedClient {
    output: UnixStream,
    input: BufReader<UnixStream>,
    partial: String,
}

/// A line that a session has sent.
pub(super) struct ReceivedLine {
    pub(super) value: Value,
}

impl ReceivedLine {
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.value["type"] == name
    }

    /// True if the line asks for an approval or a message.
    pub(super) fn is_question(&self) -> bool {
        self.is_type("approval_request") || self.is_type("idle")
    }

    pub(super) fn is_same_question(&self, asked: &Value) -> bool {
        ["type", "id", "prompt"]
            .iter()
            .all(|key| self.value[key] == asked[key])
    }
}

impl AttachedClient {
    /// Attaches to the session of a case. Fails if no session listens.
    pub(super) fn connect(place: &Workspace) -> Result<Self, String> {
        let folder = place.root().join("home/state/attach");
        let entries = folder
            .read_dir()
            .map_err(|error| format!("no sockets: {error}"))?;
        let stream = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "sock"))
            .find_map(|entry| UnixStream::connect(entry.path()).ok())
            .ok_or("no session listens")?;
        let input = stream.try_clone().map_err(|error| error.to_string())?;
        let mut client = Self {
            output: stream,
            input: BufReader::new(input),
            partial: String::new(),
        };
        client.send(&serde_json::json!({"type": "attach", "version": 1}));
        Ok(client)
    }

    /// Sends a line. A failure means that the session has ended, which the next read reports.
    pub(super) fn send(&mut self, line: &Value) {
        drop(self.output.write_all(format!("{line}\n").as_bytes()));
    }

    /// Sends a part of a line.
    pub(super) fn send_cut_off(&mut self, text: &str) {
        drop(self.output.write_all(text.as_bytes()));
    }

    /// Returns the next line, or `None` if the session has ended. Fails if no line arrives.
    pub(super) fn next_line(&mut self, timeout: Duration) -> Result<Option<ReceivedLine>, String> {
        self.output
            .set_read_timeout(Some(timeout))
            .map_err(|error| error.to_string())?;
        match self.input.read_line(&mut self.partial) {
            Ok(_) if self.partial.ends_with('\n') => {
                let line = std::mem::take(&mut self.partial);
                let value = serde_json::from_str(&line)
                    .map_err(|error| format!("a line of the session: {error}: {line}"))?;
                Ok(Some(ReceivedLine { value }))
            }
            // The end, perhaps in the middle of a line.
            Ok(_) => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(format!("no line of the session: {error}")),
        }
    }
}
