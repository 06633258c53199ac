//! The list of running tool calls.

use std::time::Duration;

use haft_agent::{Approval, MAIN_AGENT};
use haft_messages::CallHeadline;
use haft_types::ToolStatus;
use serde_json::Value;

use super::scrollback::Scrollback;
use crate::call::ToolCallView;
use crate::line::StyledLine;

#[derive(Debug, Default)]
pub(super) struct CallList {
    running: Vec<ToolCallView>,
    /// Ids of calls that were shown as cancelled. Their results are ignored.
    cancelled: Vec<String>,
    /// The tool whose diff the user just approved, so that its result needn't repeat the diff.
    approved_diff: Option<String>,
    /// The project's folder, or `None` if the terminal doesn't support links to files.
    root: Option<String>,
}

impl CallList {
    pub(super) fn new(root: Option<String>) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Adds a call that was announced, but whose arguments are still arriving.
    pub(super) fn add_announced(&mut self, id: &str, name: &str) {
        self.running.push(ToolCallView::new(id, name));
    }

    /// Starts a call whose arguments have arrived completely.
    pub(super) fn start_call(
        &mut self,
        id: &str,
        name: &str,
        arguments: Option<&Value>,
        now: Duration,
    ) {
        let link = arguments.and_then(|arguments| self.file_link(arguments));
        let call = self.find_or_add(id, name, now);
        if let Some(arguments) = arguments {
            call.describe(arguments);
        }
        call.since = now;
        call.link = link;
    }

    pub(super) fn set_progress(&mut self, id: &str, name: &str, text: &str, now: Duration) {
        text.clone_into(&mut self.find_or_add(id, name, now).progress);
    }

    /// Forgets a cancelled call when its result arrives. Returns false if the call wasn't
    /// cancelled.
    pub(super) fn forget_cancelled(&mut self, id: &str) -> bool {
        match self.cancelled.iter().position(|cancelled| cancelled == id) {
            Some(at) => {
                self.cancelled.remove(at);
                true
            }
            None => false,
        }
    }

    /// Removes and returns a call whose result has arrived.
    pub(super) fn remove(&mut self, id: &str, name: &str) -> ToolCallView {
        match self.running.iter().position(|call| call.id == id) {
            Some(at) => self.running.remove(at),
            None => ToolCallView::new(id, name),
        }
    }

    /// Draws a finished call. A diff that the user just approved is left out.
    pub(super) fn draw_finished(
        &mut self,
        call: &ToolCallView,
        status: ToolStatus,
        text: &str,
        now: Duration,
        columns: usize,
    ) -> Vec<StyledLine> {
        let mut rows = call.draw_finished(status, text, now, columns);
        let was_shown = self
            .approved_diff
            .take_if(|tool| *tool == call.tool)
            .is_some();
        if was_shown && status == ToolStatus::Success {
            rows.truncate(1);
        }
        rows
    }

    /// Prints every call that has no result yet as cancelled.
    ///
    /// The session itself reports cancelled calls only after the next prompt, which is too late for
    /// the user.
    pub(super) fn cancel_all(&mut self, now: Duration, out: &mut Scrollback) {
        for call in std::mem::take(&mut self.running) {
            let text = text!("app-call-cancelled");
            out.print_rows(call.draw_finished(ToolStatus::Error, text, now, out.columns()));
            self.cancelled.push(call.id);
        }
    }

    /// Removes the calls of a reply that was discarded, because its request is sent again.
    pub(super) fn discard_calls(&mut self) {
        self.running.clear();
    }

    /// Shows a call with the arguments that the user edited.
    pub(super) fn set_edited(&mut self, approval: &Approval, arguments: &Value) {
        if approval.agent != MAIN_AGENT {
            return;
        }
        let link = self.file_link(arguments);
        let asked = CallHeadline::new(&approval.tool, &approval.arguments).object;
        let is_asked = |call: &&mut ToolCallView| call.tool == approval.tool && call.about == asked;
        if let Some(call) = self.running.iter_mut().find(is_asked) {
            call.describe(arguments);
            call.link = link;
            call.edited = true;
        }
    }

    pub(super) fn set_approved_diff(&mut self, tool: Option<String>) {
        self.approved_diff = tool;
    }

    /// Restarts the time measurement of all calls, so that the wait for the user isn't counted.
    pub(super) fn restart_clocks(&mut self, now: Duration) {
        self.running.iter_mut().for_each(|call| call.since = now);
    }

    /// Draws the running calls, except the calls of the tool that needs approval: the question
    /// shows those calls.
    pub(super) fn draw_rows(
        &self,
        asked_tool: Option<&str>,
        now: Duration,
        columns: usize,
    ) -> impl Iterator<Item = StyledLine> {
        self.running
            .iter()
            .filter(move |call| asked_tool != Some(&call.tool))
            .map(move |call| call.draw_running(now, columns))
    }

    /// Returns the call with this id, and adds the call first if it was never announced.
    fn find_or_add(&mut self, id: &str, name: &str, now: Duration) -> &mut ToolCallView {
        let at = self
            .running
            .iter()
            .position(|call| call.id == id)
            .unwrap_or_else(|| {
                self.running.push(ToolCallView {
                    since: now,
                    ..ToolCallView::new(id, name)
                });
                self.running.len() - 1
            });
        &mut self.running[at]
    }

    /// Returns the absolute path of the file that `arguments` name, if links are supported.
    fn file_link(&self, arguments: &Value) -> Option<String> {
        let root = self.root.as_ref()?;
        let path = arguments
            .get("path")
            .or_else(|| arguments.get("file_path"))?
            .as_str()?;
        Some(if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{root}/{path}")
        })
    }
}
